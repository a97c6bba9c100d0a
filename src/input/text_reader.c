/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of words, or of characters, from a text file, kept in memory as numbers. A sample is
 * the numbers of words t, t + 1, ...; its labels are the numbers of the words after each. Both are
 * padded with 0 to the length of their group, the shortest one that they fit in.
 *
 * Words: a sequence is one line, preceded by the end of the sentence before: its words predict one
 * another, and the last one predicts "<eos>". Empty lines are no sequences; lines longer than the
 * longest group are omitted and counted. Characters (code points of UTF-8; a byte that belongs to
 * none is one of its own): the text is cut into runs of the length of the longest group, across
 * lines.
 */
#include <errno.h>
#include <string.h>

#include <muster/storage.h>
#include <muster/text.h>

#include "base/utf8.h"
#include "reader.h"

struct sequence {
	size_t start;    /* index in numbers */
	size_t line;     /* words: number of the sentence, among those left out, too */
	uint32_t length; /* of the sample: its words less one */
};

struct text {
	struct mu_vocabulary *own; /* NULL: the config's vocabulary is used */
	char *bytes;               /* the file, while it is read */
	size_t n_bytes;
	uint32_t *numbers; /* of the words of the text */
	size_t n_numbers;
	struct sequence *sequences; /* by group; within a group in file order */
	struct mu_input_group *groups;
	size_t n_lines, n_long, n_unknown;
	size_t n_stray; /* bytes that are no UTF-8 */
};

static const struct mu_text_settings *settings_of(const struct mu_input *in)
{
	return in->settings;
}

/* ---- the file ---- */

static enum mu_status read_stream(struct text *t, const char *path, FILE *f)
{
	enum mu_status st = MU_OK;
	long end = -1;
	size_t mark;

	if (fseek(f, 0, SEEK_END) == 0)
		end = ftell(f);
	if (end < 0 || fseek(f, 0, SEEK_SET) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	if (end == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: is empty; it must be a text", path);
	t->n_bytes = (size_t)end;
	MU_TRY(MU_ALLOC(t->bytes, t->n_bytes, "text"));
	if (fread(t->bytes, 1, t->n_bytes, f) != t->n_bytes)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path,
			ferror(f) ? strerror(errno) : "it became shorter");
	MU_TRY(mu_text_plain(path, t->bytes, t->n_bytes, &mark));
	t->n_bytes -= mark;
	memmove(t->bytes, t->bytes + mark, t->n_bytes);
out:
	return st;
}

static enum mu_status read_file(struct text *t, const char *path)
{
	enum mu_status st = MU_OK;
	FILE *f;

	MU_TRY(mu_stream_open(&f, path));
	MU_TRY(read_stream(t, path, f));
out:
	if (f)
		fclose(f);
	return st;
}

/* ---- words ---- */

/* Iterates over the text: words, and ends of lines that are not empty. */
struct scan {
	const char *at, *end;
	size_t in_line; /* words of the current line so far */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* The next word; *nbytes 0: end of a line. false: end of the text. */
static bool next_word(struct scan *s, const char **word, size_t *nbytes)
{
	for (; s->at < s->end; s->at++) {
		if (*s->at == '\n' && s->in_line > 0) {
			s->in_line = *nbytes = 0;
			return true;
		}
		if (*s->at != '\n' && !is_blank(*s->at))
			break;
	}
	*word = s->at;
	while (s->at < s->end && *s->at != '\n' && !is_blank(*s->at))
		s->at++;
	*nbytes = (size_t)(s->at - *word);
	if (*nbytes == 0) { /* the last line may lack a line break */
		bool line = s->in_line > 0;

		s->in_line = 0;
		return line;
	}
	s->in_line++;
	return true;
}

static struct scan begin(const struct text *t)
{
	return (struct scan){t->bytes, t->bytes + t->n_bytes, 0};
}

/* Bytes of the character at i; 0: it is no UTF-8. */
static size_t read_character(const struct text *t, size_t i)
{
	uint32_t code;

	return mu_utf8_read(t->bytes + i, t->n_bytes - i, &code);
}

/* All words of the text in order, and "<unk>" at the end if it was not among them. */
static enum mu_status make_vocabulary(struct text *t, bool characters)
{
	enum mu_status st = MU_OK;
	struct scan s = begin(t);
	const char *word;
	size_t nbytes, number;

	MU_TRY(mu_vocabulary_new(&t->own, characters));
	for (size_t i = 0; characters && i < t->n_bytes; i += nbytes) {
		nbytes = read_character(t, i);
		MU_TRY(mu_vocabulary_add(t->own, t->bytes + i, nbytes ? nbytes : 1, &number));
		nbytes += nbytes == 0;
	}
	while (!characters && next_word(&s, &word, &nbytes))
		if (nbytes > 0)
			MU_TRY(mu_vocabulary_add(t->own, word, nbytes, &number));
	MU_TRY(mu_vocabulary_add(t->own, MU_WORD_UNKNOWN, strlen(MU_WORD_UNKNOWN), &number));
out:
	return st;
}

/* Append the word's number. Unknown words become "<unk>", and are counted. */
static enum mu_status add_word(struct text *t, const struct mu_input *in, const char *word,
			       size_t nbytes)
{
	enum mu_status st = MU_OK;
	const struct mu_vocabulary *v = in->about.vocabulary;
	size_t number = mu_vocabulary_find(v, word, nbytes), n;
	const char *found;

	if (number == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: \"%.*s\" is not in the vocabulary, which has no \"" MU_WORD_UNKNOWN
			"\" to stand for it",
			in->config.paths, (int)nbytes, word);
	found = mu_vocabulary_word(v, number, &n);
	t->n_unknown += n != nbytes || memcmp(found, word, n) != 0;
	t->numbers[t->n_numbers++] = (uint32_t)number;
out:
	return st;
}

static enum mu_status number_characters(struct text *t, const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	size_t nbytes;

	for (size_t i = 0; i < t->n_bytes; i += nbytes) {
		nbytes = mu_vocabulary_step(in->about.vocabulary, t->bytes + i, t->n_bytes - i);
		t->n_stray += nbytes == 1 && read_character(t, i) == 0;
		MU_TRY(add_word(t, in, t->bytes + i, nbytes));
	}
out:
	return st;
}

/* Words and ends of lines together are no more than the bytes of the text, except for the first
 * end. */
static enum mu_status number_words(struct text *t, const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	struct scan s = begin(t);
	const char *word;
	size_t nbytes;

	MU_TRY(MU_ALLOC(t->numbers, t->n_bytes + 2, "words of the text"));
	if (settings_of(in)->characters)
		return number_characters(t, in);
	MU_TRY(add_word(t, in, MU_WORD_END, strlen(MU_WORD_END)));
	while (next_word(&s, &word, &nbytes)) {
		if (nbytes > 0)
			MU_TRY(add_word(t, in, word, nbytes));
		else
			MU_TRY(add_word(t, in, MU_WORD_END, strlen(MU_WORD_END)));
	}
out:
	return st;
}

/* ---- sequences ---- */

/* The group of a sequence; n_lengths: it is longer than all groups. */
static size_t group_for(const struct mu_text_settings *s, size_t length)
{
	size_t g = 0;

	while (g < s->n_lengths && s->lengths[g] < length)
		g++;
	return g;
}

static size_t longest(const struct mu_input *in)
{
	return settings_of(in)->lengths[settings_of(in)->n_lengths - 1];
}

/* The sequence that starts here; false: none. */
static bool next_sequence(const struct text *t, const struct mu_input *in, size_t end,
			  struct sequence *s)
{
	size_t left = t->n_numbers - s->start - 1, n = 1;

	if (left == 0)
		return false;
	if (settings_of(in)->characters)
		n = left < longest(in) ? left : longest(in);
	while (!settings_of(in)->characters && t->numbers[s->start + n] != end)
		n++;
	s->length = (uint32_t)n;
	return true;
}

/* With sequences NULL count the sequences; then call again to store them. */
static void go_through(struct text *t, const struct mu_input *in, struct sequence *sequences,
		       size_t *places)
{
	const struct mu_text_settings *own = in->settings;
	const size_t most = in->config.num_examples;
	const size_t end =
		mu_vocabulary_find(in->about.vocabulary, MU_WORD_END, strlen(MU_WORD_END));
	size_t n = 0;
	struct sequence s = {.start = 0};

	t->n_lines = t->n_long = 0;
	for (; next_sequence(t, in, end, &s); s.start += s.length) {
		size_t g = group_for(own, s.length);

		s.line = t->n_lines++;
		t->n_long += g == own->n_lengths;
		if (g == own->n_lengths || (most > 0 && n == most))
			continue;
		n++;
		if (sequences)
			sequences[places[g]] = s;
		places[g]++;
	}
}

static enum mu_status find_sequences(struct text *t, struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_text_settings *s = in->settings;
	size_t *places = NULL;

	MU_TRY(MU_ALLOC(places, s->n_lengths, "groups of sequences"));
	MU_TRY(MU_ALLOC(t->groups, s->n_lengths, "groups of sequences"));
	go_through(t, in, NULL, places);
	for (size_t g = 0; g < s->n_lengths; g++) {
		t->groups[g] = (struct mu_input_group){in->n, places[g], s->lengths[g]};
		in->n += places[g];
		places[g] = t->groups[g].first;
	}
	if (in->n == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: none of its %zu sentence%s is of %zu word%s or less, the longest that "
			"is taken",
			in->config.paths, t->n_lines, MU_S(t->n_lines), longest(in),
			MU_S(longest(in)));
	MU_TRY(MU_ALLOC(t->sequences, in->n, "sequences"));
	go_through(t, in, t->sequences, places);
	in->groups = t->groups;
	in->n_groups = s->n_lengths;
out:
	mu_free(places);
	return st;
}

/* ---- the reader ---- */

static enum mu_status check_lengths(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_text_settings *s = in->settings;

	if (!in->config.paths || s->n_lengths == 0 || s->lengths[0] == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "text input: it needs a file, and lengths of sequences");
	for (size_t g = 1; g < s->n_lengths; g++)
		if (s->lengths[g] <= s->lengths[g - 1])
			MU_FAIL(MU_ERR_ARGUMENT, "text input: sequence lengths must ascend");
	if (s->vocabulary && mu_vocabulary_characters(s->vocabulary) != s->characters)
		MU_FAIL(MU_ERR_USAGE, "%s: the vocabulary is one of %s", in->config.paths,
			s->characters ? "words, not of characters" : "characters, not of words");
out:
	return st;
}

static enum mu_status open_text(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_text_settings *s = in->settings;
	const char *path = in->config.paths;
	struct mu_shape shape;
	struct text *t;

	MU_TRY(check_lengths(in));
	shape = mu_sample_sequence(longest(in));
	MU_TRY(MU_ALLOC(t, 1, "text reader"));
	in->impl = t;
	MU_TRY(read_file(t, path));
	if (!s->vocabulary)
		MU_TRY(make_vocabulary(t, s->characters));
	in->about.vocabulary = s->vocabulary ? s->vocabulary : t->own;
	MU_TRY(number_words(t, in));
	mu_free(t->bytes);
	t->bytes = NULL;
	if (t->n_numbers < 2)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no words to predict", path);
	MU_TRY(find_sequences(t, in));
	in->classes = mu_vocabulary_n(in->about.vocabulary);
	mu_input_declare_data(in, MU_NUMBER_INT32, &shape);
	mu_input_declare_labels(in, MU_NUMBER_INT32, longest(in));
out:
	return st;
}

static void close_text(struct mu_input *in)
{
	struct text *t = in->impl;

	if (!t)
		return;
	mu_vocabulary_free(t->own);
	mu_free(t->bytes);
	mu_free(t->numbers);
	mu_free(t->sequences);
	mu_free(t->groups);
	mu_free(t);
	in->impl = NULL;
}

static enum mu_status read_text(const struct mu_input *in, struct mu_input_thread *thread,
				size_t record, float *data, float *labels)
{
	const struct text *t = in->impl;
	const struct sequence *s = &t->sequences[record];
	size_t length = in->groups[group_for(in->settings, s->length)].length;

	(void)thread;
	for (size_t i = 0; i < length; i++) {
		const uint32_t *word = &t->numbers[s->start + i];

		data[i] = i < s->length ? (float)word[0] : 0;
		labels[i] = i < s->length ? (float)word[1] : 0;
	}
	return MU_OK;
}

static void name_sequence(const struct mu_input *in, size_t record, char *text, size_t nbytes)
{
	const struct text *t = in->impl;
	const struct sequence *s = &t->sequences[record];

	snprintf(text, nbytes, "%s, %s %zu", in->config.paths,
		 settings_of(in)->characters ? "character" : "sentence",
		 settings_of(in)->characters ? s->start : s->line);
}

static void describe_text(const struct mu_input *in, char *text, size_t nbytes)
{
	const struct text *t = in->impl;
	const bool bytes = mu_vocabulary_bytes(in->about.vocabulary);
	const char *of = !settings_of(in)->characters ? "words" : bytes ? "bytes" : "characters";
	size_t used;

	used = (size_t)snprintf(text, nbytes, "%s, %zu %s", in->config.paths, t->n_numbers, of);
	for (size_t g = 0; g < in->n_groups && used < nbytes; g++)
		used += (size_t)snprintf(text + used, nbytes - used, "%s %zu of %zu",
					 g ? "," : "; sequences, filled up:", in->groups[g].n,
					 in->groups[g].length);
	if (used < nbytes && t->n_long > 0)
		used += (size_t)snprintf(text + used, nbytes - used,
					 "; %zu longer than %zu are left out", t->n_long,
					 longest(in));
	if (used < nbytes && t->n_unknown > 0)
		used += (size_t)snprintf(text + used, nbytes - used,
					 "; %zu of them not in the vocabulary", t->n_unknown);
	if (used < nbytes && t->n_stray > 0 && !bytes)
		snprintf(text + used, nbytes - used, "; %zu byte%s no UTF-8, a character each",
			 t->n_stray, t->n_stray == 1 ? " is" : "s are");
}

static enum mu_status hash_text(const struct mu_input *in, struct mu_input_thread *thread,
				size_t record, uint64_t *h)
{
	const struct text *t = in->impl;
	const struct sequence *s = &t->sequences[record];

	(void)thread;
	*h = mu_hash_block(*h, t->numbers + s->start, (s->length + (size_t)1) * sizeof *t->numbers);
	return MU_OK;
}

#define FOR_IMAGES \
	.relation = MU_OPTION_EXCLUDES, .other = "data-train|data-val", \
	.why = "it is for images, and this file is read as text"

static const struct mu_option_rule rules[] = {
	{.option = "image-shape|dump-batch|data-cache|num-classes|skip-bad-records", FOR_IMAGES},
	{.option = "shuffle", .values = "chunk", FOR_IMAGES},
	{.option = "val-split", .values = ">0", .relation = MU_OPTION_EXCLUDES,
	 .other = "data-train|data-val",
	 .why = "a text is one piece, and validation needs another (setting data-val)"},
	{.option = "ignore-class",
	 .why = "of a text number 0, which fills sequences up, is ignored, and no other"},
	{.option = NULL},
};

const struct mu_reader mu_reader_text = {
	.name = "text",
	.help = "sequences of words or characters from a text file",
	.rules = rules,
	.settings_nbytes = sizeof(struct mu_text_settings),
	.knows_classes = true,
	.open = open_text,
	.close = close_text,
	.describe = describe_text,
	.name_record = name_sequence,
	.read = read_text,
	.hash = hash_text,
};
