/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Tokens of texts. What is expected of `trained_on` and `encoded` is what tokenizers 0.23.3 gives:
 *
 *	t = Tokenizer(models.BPE())
 *	t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
 *	t.train_from_iterator([trained_on], trainers.BpeTrainer(vocab_size=291, min_frequency=2,
 *		special_tokens=["<|endoftext|>"],
 *		initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
 *
 * and then its merges, and t.encode(text).ids. mpi_tests/text/test_tokenizers.sh compares more.
 */
#include <muster/tokens.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

static const char trained_on[] =
	"the don't the dons 12345 12 345 don't we'll we'll\r\n\r\nthe  the   the\t\tthe "
	"<|endoftext|> caf\xc3\xa9 cafe\xcc\x81 caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad"
	"\xe6\x96\x87 \xf0\x9f\x98\x80\xf0\x9f\x98\x80 \xc2\xbd\xc2\xbd\xd9\xa3\xd9\xa3 "
	"\xc2\xa0\xc2\xa0x \xc2\xa0\xc2\xa0x 'S'S ... ...the";

/* \xc4\xa0 stands for a blank. */
static const char *const merges[] = {
	"h e",
	"t he",
	". .",
	"d o",
	"\xc3\x82 \xc5\x82",
	"a f",
	"c af",
	"\xc4\xa0 the",
	"\xc4\xa0 do",
	"\xc4\xa0 caf",
	"\xc4\xa0"
	"do n",
	"' l",
	"' t",
	"1 2",
	"3 4",
	"w e",
	"\xc2\xb8 \xc5\x83",
	"\xc3\x82 \xc2\xbd",
	"\xc3\x83 \xc2\xa9",
	"\xc3\x99 \xc2\xa3",
	"\xc3\xa4 \xc2\xb8\xc5\x83",
	"\xc3\xa6 \xc4\xb8",
	"\xc3\xb0 \xc5\x81",
	"\xc4\xa0 ..",
	"\xc4\xa0 \xc3\x82\xc5\x82",
	"\xc4\xa0 12",
	"\xc4\xa0 we",
	"\xc4\xba \xc4\xa2",
	"\xc4\xa0"
	"caf \xc3\x83\xc2\xa9",
	"'l l",
	"34 5",
	"\xc3\xa4\xc2\xb8\xc5\x83 \xc3\xa6\xc4\xb8",
	"\xc3\xb0\xc5\x81 \xc4\xba\xc4\xa2",
	"\xc4\xa0.. .",
};
enum { NUM_MERGES = sizeof merges / sizeof *merges, SIZE = 257 + NUM_MERGES };

static const struct {
	const char *text;
	size_t n;
	uint32_t ids[12];
} encoded[] = {
	{"the  the", 3, {258, 221, 264}},
	{"don't", 3, {260, 78, 269}},
	{"we'll\r\n\r\nthe", 7, {272, 286, 202, 199, 202, 199, 258}},
	{"   the", 3, {221, 221, 264}},
	{"the   ", 4, {258, 221, 221, 221}},
	{"a \n the", 4, {65, 221, 199, 264}},
	{"12345the", 3, {270, 287, 258}},
	{"caf\xc3\xa9 cafe\xcc\x81", 6, {263, 275, 266, 69, 137, 224}},
	{"\xe4\xb8\xad\xe6\x96\x87!", 3, {288, 230, 1}},
	{"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 3, {289, 289, 289}},
	{"\xc2\xa0\xc2\xa0x", 3, {261, 261, 88}},
	{"\xc2\xbd\xd9\xa3", 2, {274, 276}},
	{"<|endoftext|>the<|endoftext|>", 3, {0, 258, 0}},
	{"<|endoftext", 10, {28, 92, 69, 78, 260, 70, 84, 69, 88, 84}},
	{"'S 's", 5, {7, 51, 221, 7, 83}},
	{"...the", 3, {259, 14, 258}},
};

static char folder[SCRATCH_BYTES];

static const char *path_of(const char *name)
{
	static char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_bytes(const char *name, const char *bytes, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	if (CHECK(f != NULL)) {
		fwrite(bytes, 1, n, f);
		fclose(f);
	}
}

static struct mu_tokenizer *train(const char *text, size_t n, size_t min_count)
{
	struct mu_token_counts *counts = NULL;
	struct mu_tokenizer *t = NULL;

	CHECK(mu_token_counts_new(&counts) == MU_OK);
	CHECK(mu_token_counts_add(counts, text, strlen(text)) == MU_OK);
	CHECK(mu_token_counts_train(counts, n, min_count, &t) == MU_OK);
	mu_token_counts_free(counts);
	return t;
}

/* The lines of the list of merges in a file. */
static void check_merges(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[200], want[200];
	size_t i = 0;

	while (f && fgets(line, sizeof line, f) && !strstr(line, "\"merges\""))
		;
	for (; f && i < NUM_MERGES && fgets(line, sizeof line, f); i++) {
		snprintf(want, sizeof want, "      \"%s\"%s\n", merges[i],
			 i + 1 < NUM_MERGES ? "," : "");
		CHECK_TEXT(line, want);
	}
	CHECK(i == NUM_MERGES);
	if (f)
		fclose(f);
}

static void check_encoded(struct mu_tokenizer *t)
{
	for (size_t i = 0; i < sizeof encoded / sizeof *encoded; i++) {
		struct mu_token_list list = {0};

		CHECK(mu_tokenizer_encode(t, encoded[i].text, strlen(encoded[i].text), &list) ==
		      MU_OK);
		if (!CHECK(list.n == encoded[i].n &&
			   memcmp(list.ids, encoded[i].ids, list.n * sizeof *list.ids) == 0))
			fprintf(stderr, "text %zu, \"%s\"\n", i, encoded[i].text);
		mu_token_list_release(&list);
	}
}

/* All bytes come back, twice: the second time words are remembered. */
static void check_bytes(struct mu_tokenizer *t)
{
	char text[2 * 700];
	struct mu_token_list list = {0};
	size_t at = 0, n;

	for (size_t i = 0; i < 700; i++)
		text[i] = text[700 + i] = (char)(i < 256 ? i : i * i * 2654435761u >> 11);
	CHECK(mu_tokenizer_encode(t, text, sizeof text, &list) == MU_OK);
	for (size_t i = 0; i < list.n; i++, at += n) {
		const char *bytes = mu_tokenizer_bytes(t, list.ids[i], &n);

		if (!CHECK(bytes && n <= sizeof text - at && memcmp(bytes, text + at, n) == 0))
			break;
	}
	CHECK(at == sizeof text);
	CHECK(!mu_tokenizer_bytes(t, SIZE, &n));
	mu_token_list_release(&list);
}

static void test_training(void)
{
	struct mu_tokenizer *t = train(trained_on, SIZE, 2), *again = NULL;
	uint32_t id = 1;

	if (!CHECK(t != NULL))
		return;
	CHECK(mu_tokenizer_n(t) == SIZE);
	CHECK(mu_tokenizer_added(t, MU_TOKEN_END_OF_TEXT, &id) && id == 0);
	CHECK(!mu_tokenizer_added(t, "the", &id));
	check_encoded(t);
	check_bytes(t);
	CHECK(mu_tokenizer_write(t, path_of("tokenizer.json")) == MU_OK);
	mu_tokenizer_free(t);
	check_merges(path_of("tokenizer.json"));
	if (CHECK(mu_tokenizer_read(&again, folder) == MU_OK)) {
		check_encoded(again);
		check_bytes(again);
	}
	mu_tokenizer_free(again);
	remove(path_of("tokenizer.json"));
	/* A pair that occurs once does not become a token. */
	t = train("ab ab cd", 300, 2);
	CHECK(t && mu_tokenizer_n(t) == 258);
	mu_tokenizer_free(t);
}

/* ---- files ---- */

static const char small[] =
	"{\"version\": \"1.0\", \"truncation\": null, \"added_tokens\": [{\"id\": 5, \"content\": "
	"\"<e>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": "
	"false, \"special\": true}], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
	"\"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true}, \"decoder\": "
	"{\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"dropout\": null, "
	"\"unk_token\": null, \"fuse_unk\": false, \"vocab\": {\"a\": 0, \"b\": 1, \"\\u0120\": 2, "
	"\"ab\": 3, \"\\u0120ab\": 4}, \"merges\": [\"a b\", [\"\\u0120\", \"ab\"]]}}";

/* One change of `small`, and what the error names. */
static const struct {
	const char *from, *to, *error;
} wrong[] = {
	{"\"version\"", "\"versions\"", "versions is not known here"},
	{"\"single_word\": false", "\"single_word\": true", "added_tokens[].single_word is true"},
	{"\"lstrip\": false", "\"lstrip\": true", "added_tokens[].lstrip is true"},
	{"\"id\": 5", "\"id\": 3", "two tokens have number 3"},
	{"\"id\": 5", "\"id\": -5", "added token 0 has no content, or no number"},
	{"\"<e>\"", "\"ab\"", "added token \"ab\" has number 5, and 3"},
	{"\"id\": 5, \"content\": \"<e>\"", "\"id\": 4, \"content\": \"\\u0120ab\"",
	 "is the name of other bytes in the vocabulary"},
	{"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFKC\"}",
	 "normalizer.type is \"NFKC\""},
	{"\"type\": \"ByteLevel\", \"add", "\"type\": \"Whitespace\", \"add",
	 "pre_tokenizer.type is \"Whitespace\""},
	{"\"type\": \"ByteLevel\", \"add", "\"type\": \"Sequence\", \"pretokenizers\": [], \"add",
	 "pre_tokenizer is a Sequence, and not one of Split or Digits, and ByteLevel"},
	{"\"trim_offsets\": true", "\"use_regex\": false", "pre_tokenizer.use_regex is false"},
	{"{\"type\": \"ByteLevel\"}", "{\"type\": \"Metaspace\"}", "decoder.type is \"Metaspace\""},
	{"\"BPE\"", "\"WordPiece\"", "model.type is \"WordPiece\""},
	{"\"dropout\": null", "\"dropout\": 0.5", "model.dropout is 0.5"},
	{"\"unk_token\": null", "\"unk_token\": \"<u>\"", "model.unk_token is \"<u>\""},
	{"\"b\": 1", "\"b\": 0", "two tokens have number 0"},
	{"\"b\": 1", "\"a\": 1", "line 1: has two members \"a\""},
	{"\"b\": 1", "\"b\": 16777216", "has number 16777216; at most"},
	{"\"b\": 1", "\"b\": \"1\"", "token \"b\" has no number"},
	{"[\"a b\"", "[\"a c\"", "merge 1 needs token \"c\""},
	{"[\"a b\"", "[\"b a\"", "merge 1 needs token \"ba\""},
	{"[\"a b\"", "[\"a b b\"", "merge 1 is not a pair"},
	{"[\"a b\"", "[\"ab\"", "merge 1 is not a pair"},
	{"\"ab\"]]", "\"ab\", \"b\"]]", "merge 2 is not a pair"},
	{"\"ab\"]]}}", "\"ab\"]]}", "is no JSON: a comma or } is missing"},
	{"\"ab\"]]}}", "\"ab\"]]}}}", "is no JSON: there is more after its end"},
	{"\\u0120", "\\ud800", "is no JSON: half of a surrogate pair"},
	{"\"b\": 1", "\"\xff\": 1", "is no JSON: a text that is not UTF-8"},
};

static void test_wrong_files(void)
{
	struct mu_tokenizer *t = NULL;
	struct mu_token_list list = {0};
	char text[2000];

	write_bytes("x.json", small, strlen(small));
	if (CHECK(mu_tokenizer_read(&t, path_of("x.json")) == MU_OK)) {
		CHECK(mu_tokenizer_encode(t, "ab ab<e>", 8, &list) == MU_OK);
		CHECK(list.n == 3 && list.ids[0] == 3 && list.ids[1] == 4 && list.ids[2] == 5);
		CHECK(mu_tokenizer_encode(t, "abc", 3, &list) == MU_ERR_FORMAT);
		CHECK_HAS(mu_trace_message(), "byte 0x63 of the text has no token");
	}
	mu_token_list_release(&list);
	mu_tokenizer_free(t);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *at = strstr(small, wrong[i].from);

		if (!CHECK(at != NULL))
			continue;
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - small), small, wrong[i].to,
			 at + strlen(wrong[i].from));
		write_bytes("x.json", text, strlen(text));
		mu_trace_clear();
		CHECK(mu_tokenizer_read(&t, path_of("x.json")) != MU_OK && !t);
		CHECK_HAS(mu_trace_message(), wrong[i].error);
	}
	mu_trace_clear();
	memset(text, '[', sizeof text);
	write_bytes("x.json", text, sizeof text);
	CHECK(mu_tokenizer_read(&t, path_of("x.json")) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), "nested more than 64 deep");
	mu_trace_clear();
}

/* ---- rules: ids are those of PyPI's tokenizers; padding and the like change none ---- */

#define LEVEL(prefix, regex)                                                                       \
	"{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix ",\"use_regex\":" regex "}"
#define SEQUENCE(first, regex)                                                                     \
	"{\"type\":\"Sequence\",\"pretokenizers\":[" first "," LEVEL("false", regex) "]}"
#define SPLIT(pattern)                                                                             \
	SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern                           \
		 "\"},\"behavior\":\"Isolated\",\"invert\":false}",                                \
		 "false")
#define REST "\\\\s+(?!\\\\S)|\\\\s+"
#define NARROW "'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|" REST
#define WIDE(number)                                                                               \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" number             \
	"| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|" REST

#define TEXT " 1111 a.a.\n\n1a  ab \n\n  1'Sa's. .ab"
#define NARROW_IDS "2 11 14 4 0 4 5 5 3 0 2 23 2 12 2 13 6 8 0 19 4 15 22 "

static const struct {
	const char *pre_tokenizer, *text, *ids, *whole; /* with ignore_merges and no merges */
} rules[] = {
	{LEVEL("false", "true"), TEXT, NARROW_IDS, NULL},
	{LEVEL("true", "true"), "ab 1", "23 13 ", "23 13 "},
	{SPLIT(NARROW), TEXT, NARROW_IDS, NULL},
	{SPLIT(WIDE("\\\\p{N}{1,3}")), TEXT,
	 "2 10 3 14 16 4 12 3 0 2 23 2 12 2 2 3 20 0 19 4 15 22 ",
	 "2 10 3 14 16 4 5 5 3 0 2 23 2 5 5 2 2 3 20 0 19 4 15 22 "},
	{SPLIT(WIDE("\\\\p{N}")), TEXT,
	 "2 3 3 3 3 14 16 4 12 3 0 2 23 2 12 2 2 3 20 0 19 4 15 22 ", NULL},
	{SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}", "true"), TEXT,
	 "2 3 3 3 3 14 4 0 4 12 3 0 2 23 2 12 18 3 6 8 0 19 4 15 22 ", NULL},
};

static void check_ids(struct mu_tokenizer *t, const char *text, const char *wanted)
{
	struct mu_token_list list = {0};
	char ids[256] = "";

	CHECK(mu_tokenizer_encode(t, text, strlen(text), &list) == MU_OK);
	for (size_t i = 0; i < list.n; i++)
		snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%u ", list.ids[i]);
	CHECK_TEXT(ids, wanted);
	mu_token_list_release(&list);
}

static void test_rule(size_t i, bool whole)
{
	const char *wanted = whole ? rules[i].whole : rules[i].ids;
	struct mu_tokenizer *t = NULL, *again = NULL;
	char text[3000], *written = NULL;

	snprintf(text, sizeof text,
		 "{\"truncation\":{\"max_length\":4},\"padding\":{},\"normalizer\":{\"type\":"
		 "\"NFC\"},\"pre_tokenizer\":%s,\"post_processor\":{\"type\":\"Sequence\","
		 "\"processors\":[" LEVEL("true", "true") ",{\"type\":\"TemplateProcessing\"}]},"
		 "\"model\":{\"ignore_merges\":%s,\"vocab\":{\"a\":0,\"b\":1,\"\\u0120\":2,\"1\":3,"
		 "\".\":4,\"\\u010a\":5,\"'\":6,\"s\":7,\"S\":8,\"11\":9,\"111\":10,\"1111\":11,"
		 "\"\\u010a\\u010a\":12,\"\\u01201\":13,\"\\u0120a\":14,\"\\u0120.\":15,\".a\":16,"
		 "\".\\u010a\":17,\"\\u0120\\u0120\":18,\"'s\":19,\"'S\":20,\"\\u0120\\u010a\":21,"
		 "\"ab\":22,\"\\u0120ab\":23},\"merges\":[%s]}}",
		 rules[i].pre_tokenizer, whole ? "true" : "false",
		 whole ? "" : "\"1 1\",\"11 1\",\"11 11\",\"\\u010a \\u010a\",\"\\u0120 1\","
			      "\"a b\",\"\\u0120 ab\",\"\\u0120 a\",\"\\u0120 .\",\". a\","
		"\". \\u010a\",\"\\u0120 \\u0120\",\"' s\",\"' S\",\"\\u0120 \\u010a\"");
	if (CHECK(mu_tokenizer_from_text(&t, "rule", text) == MU_OK) &&
	    CHECK(mu_tokenizer_to_text(t, &written) == MU_OK) &&
	    CHECK(mu_tokenizer_from_text(&again, "again", written) == MU_OK)) {
		check_ids(t, rules[i].text, wanted);
		check_ids(again, rules[i].text, wanted);
		CHECK(mu_tokenizer_encode(t, "ab e\xcc\x81", 6, NULL) == MU_ERR_UNSUPPORTED);
		CHECK_HAS(mu_trace_message(), "U+0301 at byte 4, which the tokenizer's normalizer");
	}
	mu_trace_clear();
	free(written);
	mu_tokenizer_free(t);
	mu_tokenizer_free(again);
}

/* GPT-2's pair of files. */
static void test_pair(void)
{
	static const char vocab[] = "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3, "
				    "\"model\": 4}";
	struct mu_tokenizer *t = NULL;
	struct mu_token_list list = {0};

	write_bytes("vocab.json", vocab, strlen(vocab));
	CHECK(mu_tokenizer_read(&t, folder) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "merges.txt: cannot be opened");
	mu_trace_clear();
	write_bytes("merges.txt", "#version: 0.2\na b\r\n", 19);
	if (CHECK(mu_tokenizer_read(&t, folder) == MU_OK)) {
		CHECK(mu_tokenizer_encode(t, "aab<|endoftext|>", 16, &list) == MU_OK);
		CHECK(list.n == 3 && list.ids[0] == 0 && list.ids[1] == 2 && list.ids[2] == 3);
	}
	mu_token_list_release(&list);
	mu_tokenizer_free(t);
	write_bytes("merges.txt", "a b\nb c\n", 8);
	CHECK(mu_tokenizer_read(&t, folder) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), "merges.txt: merge 2 needs token \"c\"");
	mu_trace_clear();
}

/* Files beside the pair by which its rule is another. */
static void test_beside_pair(void)
{
	static const char vocab[] = "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3}";
	static const struct {
		const char *name, *text, *words; /* words: NULL: it changes nothing */
	} files[] = {
		{"added_tokens.json", "{\"ab\": 2}", NULL},
		{"added_tokens.json", "{\"<|im_end|>\": 4}",
		 "has the added token <|im_end|>, which vocab.json lacks: save the fast"},
		{"tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\", "
					  "\"add_prefix_space\": false, \"added_tokens_decoder\": "
					  "{\"3\": {\"content\": \"<|endoftext|>\"}}}",
		 NULL},
		{"tokenizer_config.json", "{\"tokenizer_class\": \"GPT2TokenizerFast\"}", NULL},
		{"tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}",
		 "tokenizer_config.json: has tokenizer_class Qwen2Tokenizer, and vocab.json"},
		{"tokenizer_config.json", "{\"add_prefix_space\": true}", "has add_prefix_space"},
		{"tokenizer_config.json",
		 "{\"added_tokens_decoder\": {\"2\": {\"content\": \"ab\"}}}",
		 "has the added token ab, which vocab.json and merges.txt do not tell"},
		{"tokenizer_config.json", "{\"a\"",
		 "tokenizer_config.json, line 1, column 5: is no JSON"},
	};

	write_bytes("vocab.json", vocab, strlen(vocab));
	write_bytes("merges.txt", "a b\n", 4);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct mu_tokenizer *t = NULL;

		write_bytes(files[i].name, files[i].text, strlen(files[i].text));
		CHECK((mu_tokenizer_read(&t, folder) == MU_OK) == !files[i].words);
		if (files[i].words)
			CHECK_HAS(mu_trace_message(), files[i].words);
		mu_trace_clear();
		mu_tokenizer_free(t);
		remove(path_of(files[i].name));
	}
}

/* An added token in the vocabulary, too, whose name there would be other bytes: it is its text. */
static void test_added_name(void)
{
	const char *at = strstr(small, "<e>");
	struct mu_tokenizer *t = NULL;
	struct mu_token_list list = {0};
	char text[2 * sizeof small];
	size_t n = 0;

	snprintf(text, sizeof text, "%.*s<\u00e9>%s", (int)(at - small), small, at + 3);
	write_bytes("tokenizer.json", text, strlen(text));
	for (int i = 0; i < 2; i++) { /* the second time as we write it */
		if (!CHECK(mu_tokenizer_read(&t, path_of("tokenizer.json")) == MU_OK))
			break;
		CHECK(mu_tokenizer_encode(t, "a<\u00e9>", 5, &list) == MU_OK);
		CHECK(list.n == 2 && list.ids[1] == 5);
		CHECK(list.n == 2 && strncmp(mu_tokenizer_bytes(t, 5, &n), "<\u00e9>", 4) == 0);
		CHECK(n == 4);
		mu_token_list_release(&list);
		CHECK(mu_tokenizer_write(t, path_of("tokenizer.json")) == MU_OK);
		mu_tokenizer_free(t);
		t = NULL;
	}
	mu_tokenizer_free(t);
	remove(path_of("tokenizer.json"));
}

/* "a b" is possible first, and no longer when "b c" has been merged. */
static void test_out_of_date(void)
{
	static const char vocab[] = "{\"a\": 0, \"b\": 1, \"c\": 2, \"bc\": 3, \"ab\": 4, "
				    "\"abc\": 5}";
	static const char lines[] = "b c\na b\na bc\n";
	struct mu_tokenizer *t = NULL;
	struct mu_token_list list = {0};

	write_bytes("vocab.json", vocab, strlen(vocab));
	write_bytes("merges.txt", lines, strlen(lines));
	if (CHECK(mu_tokenizer_read(&t, folder) == MU_OK)) {
		CHECK(mu_tokenizer_encode(t, "abcab", 5, &list) == MU_OK);
		CHECK(list.n == 2 && list.ids[0] == 5 && list.ids[1] == 4);
	}
	mu_token_list_release(&list);
	mu_tokenizer_free(t);
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_training();
	test_wrong_files();
	for (size_t i = 0; i < 2 * sizeof rules / sizeof *rules; i++)
		test_rule(i / 2, i % 2 && rules[i / 2].whole);
	test_added_name();
	test_pair();
	test_beside_pair();
	test_out_of_date();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
