/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Texts: vocabularies in memory and in files; sequences, their groups and what fills them up; steps
 * of one group, alike on all workers, in which every sequence has its place once.
 */
#include <stdlib.h>

#include <muster/input.h>
#include <muster/text.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

static char folder[SCRATCH_BYTES];

static const char *path_of(const char *name)
{
	static char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	if (CHECK(f != NULL)) {
		fputs(text, f);
		fclose(f);
	}
}

/* ---- vocabularies ---- */

static size_t number_of(const struct mu_vocabulary *v, const char *word)
{
	return mu_vocabulary_find(v, word, strlen(word));
}

static size_t add(struct mu_vocabulary *v, const char *word)
{
	size_t number = 0;

	CHECK(mu_vocabulary_add(v, word, strlen(word), &number) == MU_OK);
	return number;
}

/* In memory. */
static void check_memory(const struct mu_vocabulary *v)
{
	struct mu_vocabulary *again = NULL;
	char *text = NULL;

	if (CHECK(mu_vocabulary_to_text(v, &text) == MU_OK) &&
	    CHECK(mu_vocabulary_from_text(&again, "memory", text) == MU_OK)) {
		CHECK(mu_vocabulary_characters(again) == mu_vocabulary_characters(v));
		CHECK(mu_vocabulary_hash(again) == mu_vocabulary_hash(v));
	}
	mu_vocabulary_free(again);
	free(text);
}

static void test_words(void)
{
	struct mu_vocabulary *v = NULL, *again = NULL;
	char word[32];
	size_t n;

	if (!CHECK(mu_vocabulary_new(&v, false) == MU_OK))
		return;
	CHECK(mu_vocabulary_n(v) == 2 && number_of(v, "<eos>") == 1);
	CHECK(add(v, "cat") == 2 && add(v, "dog") == 3 && add(v, "cat") == 2);
	CHECK(number_of(v, "dog") == 3 && number_of(v, "cow") == 0 && number_of(v, "do") == 0);
	CHECK(add(v, "<unk>") == 4 && number_of(v, "cow") == 4);
	for (size_t i = 0; i < 20000; i++) { /* the table grows */
		snprintf(word, sizeof word, "w%zu", i);
		CHECK(add(v, word) == 5 + i);
	}
	CHECK(number_of(v, "w19999") == 20004 && number_of(v, "w0") == 5);
	CHECK(memcmp(mu_vocabulary_word(v, 3, &n), "dog", 3) == 0 && n == 3);
	CHECK(mu_vocabulary_write(v, path_of("words.txt")) == MU_OK);
	if (CHECK(mu_vocabulary_read(&again, path_of("words.txt")) == MU_OK)) {
		CHECK(!mu_vocabulary_characters(again));
		CHECK(mu_vocabulary_n(again) == mu_vocabulary_n(v));
		CHECK(mu_vocabulary_hash(again) == mu_vocabulary_hash(v));
		add(again, "one more");
		CHECK(mu_vocabulary_hash(again) != mu_vocabulary_hash(v));
	}
	check_memory(v);
	mu_vocabulary_free(again);
	mu_vocabulary_free(v);
}

static void test_characters(void)
{
	static const char *const all[] = {"a", "\n", "\\", "n", " ", "\x1b", "\xc3", "<unk>",
					  "\xc3\xa9", "\xf0\x9f\x98\x80"};
	static const char *const bytes[] = {"\xff", "<unk>", "\xc3"};
	struct mu_vocabulary *v = NULL, *again = NULL;

	if (!CHECK(mu_vocabulary_new(&v, true) == MU_OK))
		return;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		CHECK(add(v, all[i]) == i + 1);
	CHECK(mu_vocabulary_write(v, path_of("characters.txt")) == MU_OK);
	if (CHECK(mu_vocabulary_read(&again, path_of("characters.txt")) == MU_OK)) {
		CHECK(mu_vocabulary_characters(again));
		CHECK(mu_vocabulary_hash(again) == mu_vocabulary_hash(v));
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			CHECK(number_of(again, all[i]) == i + 1);
		CHECK(!mu_vocabulary_bytes(again));
		CHECK(mu_vocabulary_step(again, "\xc3\xa9", 2) == 2);
		CHECK(mu_vocabulary_step(again, "\xc3\xa9", 1) == 1);
		CHECK(mu_vocabulary_step(again, "\xed\xa0\x80", 3) == 1); /* a surrogate */
	}
	check_memory(v);
	mu_vocabulary_free(again);
	mu_vocabulary_free(v);
	/* Without a character of several bytes: one of bytes. */
	if (!CHECK(mu_vocabulary_new(&v, true) == MU_OK))
		return;
	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
		add(v, bytes[i]);
	CHECK(mu_vocabulary_bytes(v) && mu_vocabulary_step(v, "\xc3\xa9", 2) == 1);
	mu_vocabulary_free(v);
	/* A byte order mark that is a character of the text, and the first one. */
	if (!CHECK(mu_vocabulary_new(&v, true) == MU_OK))
		return;
	add(v, "\xef\xbb\xbf");
	check_memory(v);
	mu_vocabulary_free(v);
}

static void check_bad(const char *text, const char *words)
{
	struct mu_vocabulary *v = NULL;

	write_text("bad.txt", text);
	CHECK(mu_vocabulary_read(&v, path_of("bad.txt")) != MU_OK && !v);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
}

static void test_bad_vocabularies(void)
{
	struct mu_vocabulary *v = NULL;
	char line[4200];

	check_bad("", "is empty");
	check_bad("<eos>\na\nb\na\n", "line 4: \"a\" is in line 2, too");
	check_bad("<eos>\n\na\n", "line 2: it must be a word");
	check_bad("<eos>\na\\q\n", "line 2: it must be a word, with backslashes only as");
	check_bad("a\nbc\n", "line 2: \"bc\" is no character");
	memcpy(line, "\xef\xbb\xbf", 3); /* a byte order mark, and a line that is too long */
	memset(line + 3, 'a', sizeof line - 4);
	line[sizeof line - 1] = '\0';
	check_bad(line, "line 1 has more than 4094 bytes");
	check_bad("a\n\xc3\xa9x\n", "line 2: \"\xc3\xa9x\" is no character");
	CHECK(mu_vocabulary_read(&v, path_of("nothing.txt")) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "nothing.txt");
	mu_trace_clear();
}

/* ---- sequences ---- */

enum { LONGEST = 8, BATCH = 4, MOST = 64 };

static const size_t lengths[] = {2, 4, LONGEST};

static struct mu_text_settings settings;

static struct mu_input_config config_of(const char *name)
{
	settings = (struct mu_text_settings){.lengths = lengths, .n_lengths = 3};
	return (struct mu_input_config){.reader = "text",
					.paths = path_of(name),
					.settings = &settings,
					.batch = 2,
					.num_workers = 1};
}

static void check_sample(const struct mu_input *in, size_t record, size_t length, const float *data,
			 const float *labels)
{
	float found[LONGEST], next[LONGEST];

	CHECK(in->ops->read(in, NULL, record, found, next) == MU_OK);
	for (size_t i = 0; i < length; i++)
		CHECK(found[i] == data[i] && next[i] == labels[i]);
}

static void test_sentences(void)
{
	struct mu_input_config config;
	struct mu_input in, validation;
	char text[512];

	write_text("a.txt", "a b\n\n  c \n a b c d e\n one two three four five six seven eight\nb");
	config = config_of("a.txt");
	if (!CHECK(mu_input_open(&in, &config) == MU_OK))
		return;
	/* Number 1 is <eos>; a b c d e are 2 to 6, one to eight 7 to 14, <unk> is 15. */
	CHECK(in.classes == 16 && in.n == 4 && in.n_groups == 3);
	CHECK(mu_shape_equal(mu_input_shape(&in), &(struct mu_shape)MU_SAMPLE(1, LONGEST, 1)));
	CHECK(in.groups[0].n == 2 && in.groups[1].n == 1 && in.groups[2].n == 1);
	check_sample(&in, 0, 2, (float[]){1, 4}, (float[]){4, 1});             /* c */
	check_sample(&in, 1, 2, (float[]){1, 3}, (float[]){3, 1});             /* b */
	check_sample(&in, 2, 4, (float[]){1, 2, 3, 0}, (float[]){2, 3, 1, 0}); /* a b */
	check_sample(&in, 3, 8, (float[]){1, 2, 3, 4, 5, 6, 0, 0},
		     (float[]){2, 3, 4, 5, 6, 1, 0, 0});
	in.ops->describe(&in, text, sizeof text);
	CHECK_HAS(text, "2 of 2, 1 of 4, 1 of 8; 1 longer than 8 are left out");
	write_text("b.txt", "a zebra b\n");
	config = config_of("b.txt");
	config.part = MU_INPUT_VALIDATE;
	settings.vocabulary = in.about.vocabulary;
	if (CHECK(mu_input_open(&validation, &config) == MU_OK)) {
		CHECK(validation.classes == 16 && validation.n_groups == 3);
		check_sample(&validation, 0, 4, (float[]){1, 2, 15, 3}, (float[]){2, 15, 3, 1});
		validation.ops->describe(&validation, text, sizeof text);
		CHECK_HAS(text, "; 1 of them not in the vocabulary");
		mu_input_close(&validation);
	}
	mu_input_close(&in);
}

static void test_runs_of_characters(void)
{
	struct mu_input_config config;
	struct mu_input in;
	char text[200];

	write_text("c.txt", "abcdefgh\nab");
	config = config_of("c.txt");
	settings.characters = true;
	if (!CHECK(mu_input_open(&in, &config) == MU_OK))
		return;
	/* a to h are 1 to 8, the line break 9, <unk> 10: runs of 8, which overlap in a label. */
	CHECK(in.classes == 11 && in.n == 2 && in.groups[0].n == 1 && in.groups[2].n == 1);
	check_sample(&in, 0, 2, (float[]){9, 1}, (float[]){1, 2});
	check_sample(&in, 1, 8, (float[]){1, 2, 3, 4, 5, 6, 7, 8},
		     (float[]){2, 3, 4, 5, 6, 7, 8, 9});
	in.ops->describe(&in, text, sizeof text);
	CHECK_HAS(text, "11 characters");
	mu_input_close(&in);
}

/* Code points of UTF-8, of 2, 3 and 4 bytes; bytes that are none; a vocabulary of bytes. */
static void test_code_points(void)
{
	const char *utf8 = "h\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80h\xc3\xa9";
	struct mu_input_config config;
	struct mu_input in;
	struct mu_vocabulary *v = NULL;
	char text[200];

	write_text("c.txt", utf8);
	config = config_of("c.txt");
	settings.characters = true;
	config.batch = 1;
	if (CHECK(mu_input_open(&in, &config) == MU_OK)) {
		in.ops->describe(&in, text, sizeof text);
		CHECK_HAS(text, "6 characters; sequences");
		CHECK(!strstr(text, "UTF-8"));
		CHECK(in.classes == 6); /* h, e, a sign, a face, <unk>, and what fills up */
		check_sample(&in, 0, 8, (float[]){1, 2, 3, 4, 1, 0, 0, 0},
			     (float[]){2, 3, 4, 1, 2, 0, 0, 0});
	}
	mu_input_close(&in);
	write_text("c.txt", "\xa9h\xc3\xa9\xc3");
	if (CHECK(mu_input_open(&in, &config) == MU_OK)) {
		in.ops->describe(&in, text, sizeof text);
		CHECK_HAS(text, "4 characters");
		CHECK_HAS(text, "; 2 bytes are no UTF-8, a character each");
		check_sample(&in, 0, 4, (float[]){1, 2, 3, 0}, (float[]){2, 3, 4, 0});
	}
	mu_input_close(&in);
	write_text("c.txt", utf8);
	CHECK(mu_vocabulary_new(&v, true) == MU_OK);
	for (const char *p = utf8; *p; p++)
		add(v, (char[]){*p, '\0'});
	settings.vocabulary = v;
	if (CHECK(mu_input_open(&in, &config) == MU_OK)) {
		in.ops->describe(&in, text, sizeof text);
		CHECK_HAS(text, "13 bytes");
	}
	mu_input_close(&in);
	mu_vocabulary_free(v);
}

static void check_refused(struct mu_input_config config, const char *words)
{
	struct mu_input in;

	CHECK(mu_input_open(&in, &config) != MU_OK);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
}

/* A plain text that begins as others do. */
static void check_read(const char *text)
{
	struct mu_input_config config;
	struct mu_input in;

	write_text("begins.txt", text);
	config = config_of("begins.txt");
	config.batch = 1;
	if (CHECK(mu_input_open(&in, &config) == MU_OK))
		mu_input_close(&in);
	mu_trace_clear();
}

static void test_bad_texts(void)
{
	static const char *const packed[][2] = {
		{"\x1f\x8b\x08", "is packed by gzip, no plain text: unpack it"},
		{"BZh91AY&SY", "is packed by bzip2, no plain text: unpack it"},
		{"PAR1 columns PAR1", "is a Parquet file, no plain text"},
		{"%PDF-1.7", "is a PDF file, no plain text"},
	};
	struct mu_input_config config;
	struct mu_vocabulary *v = NULL;

	write_text("empty.txt", "");
	check_refused(config_of("empty.txt"), "is empty; it must be a text");
	write_text("blank.txt", " \n \n");
	check_refused(config_of("blank.txt"), "has no words to predict");
	write_text("long.txt", "a b c d e f g h i\n");
	check_refused(config_of("long.txt"), "none of its 1 sentence is of 8 words or less");
	check_refused(config_of("nowhere.txt"), "cannot be read");
	write_text("wide.txt", "\xff\xfe"
			       "a");
	check_refused(config_of("wide.txt"), "is a text in UTF-16, and UTF-8 is needed");
	for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
		write_text("packed.txt", packed[i][0]);
		check_refused(config_of("packed.txt"), packed[i][1]);
	}
	check_read("BZh a b\n");
	check_read("BZh9 a b\n");
	check_read("PAR1 a b\n");
	check_read("%PDF- a b\n");
	write_text("lines.jsonl", "{\"text\": \"a b\"}\n");
	check_refused(config_of("lines.jsonl"), "is JSON lines, no plain text: take the texts out");
	write_text("good.txt", "\xef\xbb\xbf"
			       "a b\nc d\n");
	CHECK(mu_vocabulary_new(&v, true) == MU_OK);
	config = config_of("good.txt");
	settings.vocabulary = v;
	check_refused(config, "the vocabulary is one of characters, not of words");
	mu_vocabulary_free(v);
	CHECK(mu_vocabulary_new(&v, false) == MU_OK);
	settings.vocabulary = v;
	check_refused(config, "\"a\" is not in the vocabulary, which has no \"<unk>\"");
	mu_vocabulary_free(v);
}

/* ---- steps ---- */

/* An epoch of all workers: the groups of its steps into groups, and how often each record came. */
static size_t read_epoch(struct mu_input_config config, int workers, uint32_t epoch, int *seen,
			 size_t *groups)
{
	float data[BATCH * LONGEST], labels[BATCH * LONGEST];
	uint32_t ids[BATCH];
	size_t steps = 0, counts[MOST] = {0};

	for (int w = 0; w < workers; w++) {
		struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
		const struct mu_text_settings kept = settings;
		struct mu_input in;

		config.worker = w;
		config.num_workers = workers;
		if (!CHECK(mu_input_open(&in, &config) == MU_OK))
			return 0;
		settings = (struct mu_text_settings){.lengths = NULL}; /* it has a copy */
		CHECK(in.steps < MOST && (w == 0 || in.steps == steps));
		steps = in.steps;
		CHECK(mu_input_epoch(&in, epoch) == MU_OK);
		for (size_t t = 0; t < in.steps; t++) {
			const size_t g = mu_input_group(&in, t);
			const size_t rest = mu_input_rest(&in, g);

			CHECK(w == 0 || groups[t] == g);
			groups[t] = g;
			CHECK(mu_input_read(&in, t, &batch) == MU_OK);
			CHECK(batch.count == mu_input_count(&in, t));
			CHECK(batch.count == config.batch || batch.count == rest);
			counts[t] += batch.count;
			for (size_t i = 0; i < batch.count; i++) {
				const struct mu_input_group *group = &in.groups[g];

				CHECK(ids[i] >= group->first && ids[i] < group->first + group->n);
				seen[ids[i]]++;
				check_sample(&in, ids[i], group->length, data + i * group->length,
					     labels + i * group->length);
			}
		}
		mu_input_close(&in);
		settings = kept;
	}
	for (size_t t = 0; t < steps; t++)
		CHECK(counts[t] > 0);
	return steps;
}

static void test_steps(void)
{
	struct mu_input_config config;
	size_t first[MOST], second[MOST];
	char text[4096] = "";

	for (int i = 0; i < 41; i++)
		strcat(text, i % 3 == 0 ? "a\n" : i % 3 == 1 ? "a b c\n" : "a b c d e\n");
	write_text("steps.txt", text);
	config = config_of("steps.txt");
	config.shuffle = true;
	config.seed = 5;
	for (int workers = 1; workers <= 3; workers++) {
		int seen[41] = {0}, again[41] = {0};
		size_t n = read_epoch(config, workers, 0, seen, first);
		const size_t all = (size_t)workers * config.batch;

		for (size_t i = 0; i < 41; i++)
			CHECK(seen[i] == 1);
		CHECK(n == 2 * ((14 + all - 1) / all) + (13 + all - 1) / all);
		CHECK(read_epoch(config, workers, 1, again, second) == n);
		CHECK(memcmp(first, second, n * sizeof *first) != 0); /* another order of steps */
	}
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_words();
	test_characters();
	test_bad_vocabularies();
	test_sentences();
	test_runs_of_characters();
	test_code_points();
	test_bad_texts();
	test_steps();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
