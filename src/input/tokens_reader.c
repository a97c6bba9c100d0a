/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of tokens from token files (muster/tokens.h): sample i is T tokens, its labels are the
 * tokens after each. The windows of a file follow one another; what is left at its end is too short
 * for one. Files are read as windows are asked for: a set may be larger than the memory.
 *
 * The vocabulary is that of the tokenizer.json beside the files; without one, the largest token of
 * the training files tells.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/tokens.h>

#include "reader.h"
#include "storage/file.h"

enum { PATH_BYTES = 4096, HEADER = 1024 };

struct shard {
	struct mu_file file;
	size_t n;     /* tokens */
	size_t width; /* bytes of each */
	size_t first; /* window of the set */
};

struct tokens {
	char **paths; /* of the files, n of them */
	size_t n, room;
	struct shard *shards; /* n_open of them are open */
	size_t n_open;
	size_t n_tokens, length;        /* of a window, T */
	struct mu_tokenizer *tokenizer; /* NULL: not there */
};

static const char *const prefixes[] = {[MU_INPUT_TRAIN] = "train", [MU_INPUT_VALIDATE] = "val"};

/* ---- which files ---- */

/* Does a name begin with that of a part? */
static bool begins(const char *name)
{
	for (size_t part = 0; part < sizeof prefixes / sizeof *prefixes; part++)
		if (strncmp(name, prefixes[part], strlen(prefixes[part])) == 0)
			return true;
	return false;
}

/* Is this a name of a file of the part: "train*.bin", or llm.c's "*_train*.bin"? "train.bin" may
 * also be CIFAR-100's. */
static bool is_name(const char *name, enum mu_input_part part)
{
	const char *const word = prefixes[part], *last = NULL;

	if (!mu_stem(name, ".bin"))
		return false;
	for (const char *p = name; (p = strchr(p, '_')); p++)
		if (begins(p + 1))
			last = p + 1;
	if (begins(name))
		last = name;
	return last && strncmp(last, word, strlen(word)) == 0;
}

/* Do files of other kinds have such names? */
static bool is_common(const char *name)
{
	return strcmp(name, "train.bin") == 0 || !begins(name);
}

static size_t find_tokens(const char *dir, char *found, size_t nbytes)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	char path[PATH_BYTES];
	size_t n = 0;

	while (d && n == 0 && (entry = readdir(d))) {
		if (!is_name(entry->d_name, MU_INPUT_TRAIN) &&
		    !is_name(entry->d_name, MU_INPUT_VALIDATE))
			continue;
		snprintf(path, sizeof path, "%.2000s/%s", dir, entry->d_name);
		if (is_common(entry->d_name) && !mu_token_file_is(path))
			continue;
		snprintf(found, nbytes, "%s", path);
		n = 1;
	}
	if (d)
		closedir(d);
	return n;
}

static enum mu_status add_path(struct tokens *t, const char *dir, const char *name, size_t n)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = strlen(dir) + n + 2;
	char **larger;

	if (t->n == t->room) {
		MU_TRY(MU_ALLOC(larger, 2 * t->n + 8, "token files"));
		if (t->n > 0)
			memcpy(larger, t->paths, t->n * sizeof *larger);
		mu_free(t->paths);
		t->paths = larger;
		t->room = 2 * t->n + 8;
	}
	MU_TRY(MU_ALLOC(t->paths[t->n], nbytes, "file name"));
	snprintf(t->paths[t->n++], nbytes, "%s%s%.*s", dir, *dir ? "/" : "", (int)n, name);
out:
	return st;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The files of the part in a folder, by name. */
static enum mu_status list_folder(struct tokens *t, const char *dir, enum mu_input_part part)
{
	enum mu_status st = MU_OK;
	DIR *d = opendir(dir);
	const struct dirent *entry;

	if (!d)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", dir, strerror(errno));
	while ((entry = readdir(d)))
		if (is_name(entry->d_name, part))
			MU_TRY(add_path(t, dir, entry->d_name, strlen(entry->d_name)));
	if (t->n == 0)
		MU_FAIL(MU_ERR_IO, "%s: holds no %s*.bin%s", dir, prefixes[part],
			part == MU_INPUT_TRAIN ? ""
					       : ": without validation, name the files of data "
						 "train instead of the folder");
	qsort(t->paths, t->n, sizeof *t->paths, by_name);
out:
	if (d)
		closedir(d);
	return st;
}

/* "a.bin;b.bin" */
static enum mu_status list_paths(struct tokens *t, const char *paths)
{
	enum mu_status st = MU_OK;

	while (*paths) {
		const size_t n = strcspn(paths, ";");

		if (n > 0)
			MU_TRY(add_path(t, "", paths, n));
		paths += n + (paths[n] == ';');
	}
	if (t->n == 0)
		MU_FAIL(MU_ERR_USAGE, "token input: no file is named");
out:
	return st;
}

/* ---- windows and vocabulary ---- */

static enum mu_status open_files(struct mu_input *in, struct tokens *t)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(t->shards, t->n, "token files"));
	mu_file_allow(t->n);
	for (size_t i = 0; i < t->n; i++) {
		struct shard *s = &t->shards[i];

		MU_TRY(mu_token_file_count(t->paths[i], &s->n, &s->width));
		t->n_open++;
		MU_TRY(mu_file_open(&s->file, t->paths[i]));
		s->first = in->n;
		t->n_tokens += s->n;
		in->n += s->n > 0 ? (s->n - 1) / t->length : 0;
	}
	if (in->n == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has %zu token%s%s: a window of %zu and the token after it do not fit",
			t->paths[0], t->n_tokens, MU_S(t->n_tokens),
			t->n > 1 ? ", with the other files" : "",
			t->length);
out:
	return st;
}

/* Tokens of all files are below *n. */
static enum mu_status scan(struct tokens *t, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_token_list list = {0};

	*n = 0;
	for (size_t i = 0; i < t->n; i++) {
		list.n = 0;
		MU_TRY(mu_token_file_read(t->paths[i], &list));
		for (size_t j = 0; j < list.n; j++)
			*n = list.ids[j] >= *n ? list.ids[j] + (size_t)1 : *n;
	}
out:
	mu_token_list_release(&list);
	return st;
}

/* The tokenizer.json beside the first file. */
static enum mu_status find_tokenizer(struct tokens *t)
{
	const char *first = t->paths[0], *slash = strrchr(first, '/');
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%.*stokenizer.json", slash ? (int)(slash - first) + 1 : 0,
		 first);
	return access(path, F_OK) == 0 ? mu_tokenizer_read(&t->tokenizer, path) : MU_OK;
}

/* More classes than tokens are allowed: a vocabulary may be filled up to a round number. */
static enum mu_status find_classes(struct mu_input *in, struct tokens *t)
{
	enum mu_status st = MU_OK;
	size_t n;

	in->classes = in->config.classes;
	MU_TRY(find_tokenizer(t));
	in->about.tokenizer = t->tokenizer;
	if (t->tokenizer)
		n = mu_tokenizer_n(t->tokenizer);
	else
		MU_TRY(scan(t, &n));
	if (n > MU_TOKENS_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: has token %zu; a vocabulary of at most %d is possible (is it a file "
			"of uint16?)",
			t->paths[0], n - 1, MU_TOKENS_MAX);
	if (in->classes == 0)
		in->classes = n > 2 ? n : 2;
	if (in->classes < n)
		MU_FAIL(MU_ERR_USAGE,
			"%s: the vocabulary has %zu tokens; %zu classes (number of classes) are "
			"fewer",
			t->paths[0], n, in->classes);
out:
	return st;
}

static enum mu_status open_tokens(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	const struct mu_token_settings *s = in->settings;
	const struct mu_shape shape = mu_sample_sequence(s->window);
	struct tokens *t;

	if (s->window == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "token input: it needs the length of windows");
	MU_TRY(MU_ALLOC(t, 1, "token reader"));
	in->impl = t;
	t->length = s->window;
	if (c->paths)
		MU_TRY(list_paths(t, c->paths));
	else
		MU_TRY(list_folder(t, c->dir, c->part));
	MU_TRY(open_files(in, t));
	MU_TRY(find_classes(in, t));
	mu_input_declare_data(in, MU_NUMBER_INT32, &shape);
	mu_input_declare_labels(in, MU_NUMBER_INT32, t->length);
out:
	return st;
}

static void close_tokens(struct mu_input *in)
{
	struct tokens *t = in->impl;

	if (!t)
		return;
	mu_tokenizer_free(t->tokenizer);
	for (size_t i = 0; i < t->n_open; i++)
		mu_file_close(&t->shards[i].file);
	for (size_t i = 0; i < t->n; i++)
		mu_free(t->paths[i]);
	mu_free(t->paths);
	mu_free(t->shards);
	mu_free(t);
	in->impl = NULL;
}

static enum mu_status check_tokens(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct tokens *t = in->impl;

	for (size_t i = 0; i < t->n; i++)
		MU_TRY(mu_file_unchanged(&t->shards[i].file));
out:
	return st;
}

/* ---- reading ---- */

/* The file of a window. */
static const struct shard *find_shard(const struct tokens *t, size_t record)
{
	size_t low = 0, high = t->n;

	while (high - low > 1) {
		const size_t middle = (low + high) / 2;

		if (t->shards[middle].first <= record)
			low = middle;
		else
			high = middle;
	}
	return &t->shards[low];
}

static enum mu_status read_tokens(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t record, float *data, float *labels)
{
	enum mu_status st = MU_OK;
	const struct tokens *t = in->impl;
	const struct shard *s = find_shard(t, record);
	const size_t at = (record - s->first) * t->length;
	unsigned char piece[4 * 512];

	(void)thread;
	for (size_t done = 0; done <= t->length;) {
		const size_t left = t->length + 1 - done;
		const size_t n = left < sizeof piece / 4 ? left : sizeof piece / 4;

		MU_TRY(mu_file_read(&s->file, HEADER + s->width * (at + done), piece,
				    s->width * n));
		for (size_t i = 0; i < n; i++, done++) {
			const unsigned token = mu_token_get(piece, i, s->width);

			if (token >= in->classes)
				MU_FAIL(MU_ERR_FORMAT,
					"%s: token %u, at place %zu, is not below %zu: the file is "
					"of "
					"another tokenizer",
					s->file.path, token, at + done, in->classes);
			if (done < t->length)
				data[done] = (float)token;
			if (done > 0)
				labels[done - 1] = (float)token;
		}
	}
out:
	return st;
}

static void name_window(const struct mu_input *in, size_t record, char *text, size_t nbytes)
{
	const struct tokens *t = in->impl;
	const struct shard *s = find_shard(t, record);

	snprintf(text, nbytes, "%s, token %zu", s->file.path, (record - s->first) * t->length);
}

static void describe_tokens(const struct mu_input *in, char *text, size_t nbytes)
{
	const struct tokens *t = in->impl;
	char more[40] = "";

	if (t->n > 1)
		snprintf(more, sizeof more, " and %zu more", t->n - 1);
	snprintf(text, nbytes, "%zu tokens of %s%s, windows of %zu", t->n_tokens, t->paths[0], more,
		 t->length);
}

/* Are the lowest two bytes of each token all of it? */
static enum mu_status is_narrow(const struct shard *s, size_t at, size_t n, bool *narrow)
{
	enum mu_status st = MU_OK;
	unsigned char piece[4 * 512];

	*narrow = true;
	for (size_t done = 0, m; s->width == 4 && *narrow && done < n; done += m) {
		m = n - done < sizeof piece / 4 ? n - done : sizeof piece / 4;
		MU_TRY(mu_file_read(&s->file, HEADER + 4 * (at + done), piece, 4 * m));
		for (size_t i = 0; i < m; i++)
			*narrow &= mu_token_get(piece, i, 4) <= UINT16_MAX;
	}
out:
	return st;
}

/* The values count, not the width: 2 bytes of each token, or 4 where a token of the window needs
 * them; the lowest byte first. */
static enum mu_status hash_window(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t record, uint64_t *h)
{
	enum mu_status st = MU_OK;
	const struct tokens *t = in->impl;
	const struct shard *s = find_shard(t, record);
	const size_t at = (record - s->first) * t->length, n = t->length + 1;
	unsigned char piece[4 * 2048];
	bool narrow;

	(void)thread;
	MU_TRY(is_narrow(s, at, n, &narrow));
	for (size_t done = 0, m; done < n; done += m) {
		m = n - done < sizeof piece / 4 ? n - done : sizeof piece / 4;
		MU_TRY(mu_file_read(&s->file, HEADER + s->width * (at + done), piece,
				    s->width * m));
		for (size_t i = 0; narrow && s->width == 4 && i < m; i++)
			memmove(piece + 2 * i, piece + 4 * i, 2);
		*h = mu_hash_block(*h, piece, (narrow ? 2 : 4) * m);
	}
out:
	return st;
}

/* Of 2 bytes each, whatever the file has, so that the same windows are chosen to be hashed. */
static size_t bound(const struct mu_input *in, size_t record)
{
	const struct tokens *t = in->impl;

	(void)record;
	return 2 * (t->length + 1);
}

static void hash_files(const struct mu_input *in, uint64_t *listing, uint64_t *times)
{
	const struct tokens *t = in->impl;

	for (size_t i = 0; i < t->n; i++) {
		*listing = mu_hash_block(*listing, &t->shards[i].n, sizeof t->shards[i].n);
		mu_file_hash_time(&t->shards[i].file, times);
	}
}

const struct mu_reader mu_reader_tokens = {
	.name = "tokens",
	.help = "windows of tokens from files of llm.c",
	.settings_nbytes = sizeof(struct mu_token_settings),
	.files = "[X_]train*.bin and [X_]val*.bin of tokens",
	.knows_classes = true,
	.find = find_tokens,
	.open = open_tokens,
	.close = close_tokens,
	.check = check_tokens,
	.describe = describe_tokens,
	.name_record = name_window,
	.read = read_tokens,
	.hash = hash_window,
	.bound = bound,
	.hash_files = hash_files,
};
