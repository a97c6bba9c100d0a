/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of logs: see log_lines.h. A log may have gigabytes, nearly all of it lines of speed. */
#define _GNU_SOURCE /* memmem */
#include "log_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

enum { BLOCK_BYTES = 1 << 20, EPOCH_MAX = 1000000000, RANK_WITHIN = 32 };

struct reader {
	const char *path; /* for messages */
	bool skip_bad;
	size_t n; /* lines */
	log_line_fn call;
	void *context;
	char name[128]; /* of the line's metric */
};

/* ---- a line ---- */

/* "Epoch[" or "Iteration["; NULL: there is none. */
static char *find_epoch(char *line, size_t n)
{
	static const char epoch[] = "Epoch[", iteration[] = "Iteration[";
	char *at = memmem(line, n, epoch, sizeof epoch - 1);

	return at ? at : memmem(line, n, iteration, sizeof iteration - 1);
}

/* The text after time and rank: "2026-11-22 10:00:00,123 Node[0] text". */
static char *after_rank(char *line)
{
	char *rank = strstr(line, "Node["), *end;

	if (!rank || rank - line > RANK_WITHIN)
		return line;
	end = strstr(rank, "] ");
	return end ? end + 2 : line;
}

/* "Train-accuracy=0.9": false if text does not begin with `with` or has no "=". */
static bool find_result(struct reader *r, const char *text, const char *with, struct log_line *line)
{
	const char *name = text + strlen(with);
	const char *value = strncmp(text, with, strlen(with)) == 0 ? strchr(text, '=') : NULL;

	if (!value)
		return false;
	snprintf(r->name, sizeof r->name, "%.*s", (int)(value - name), name);
	line->name = r->name;
	line->value = value + 1;
	return true;
}

/* text: what follows "Epoch[0] ". */
static enum log_kind kind_of(struct reader *r, const char *text, struct log_line *line)
{
	if (strncmp(text, "Batch ", 6) == 0 && strstr(text, "Speed: "))
		return LOG_SPEED;
	if (find_result(r, text, "Train-", line))
		return LOG_TRAIN;
	if (find_result(r, text, "Validation-", line))
		return LOG_VALID;
	return find_result(r, text, "Time cost", line) ? LOG_TIME : LOG_OTHER;
}

/* The byte at text[n] is overwritten. */
static enum mu_status parse_line(struct reader *r, char *text, size_t n)
{
	struct log_line line = {.path = r->path, .number = ++r->n, .epoch = -1};
	char *epoch = find_epoch(text, n), *end;
	long v;

	while (n > 0 && text[n - 1] == '\r')
		n--;
	text[n] = '\0';
	if (epoch) {
		v = strtol(strchr(epoch, '[') + 1, &end, 10);
		if (strncmp(end, "] ", 2) == 0 && v >= 0 && v < EPOCH_MAX)
			line.kind = kind_of(r, end + 2, &line);
		if (line.kind != LOG_OTHER)
			line.epoch = v;
	}
	line.text = line.kind != LOG_OTHER ? epoch : after_rank(text);
	return r->call(r->context, &line);
}

/* The end of a file that does not end with a newline. */
static enum mu_status parse_end(struct reader *r, char *text, size_t n)
{
	enum mu_status st = MU_OK;
	int shown = n > 100 ? 100 : (int)n;

	if (!find_epoch(text, n))
		return parse_line(r, text, n);
	if (!r->skip_bad)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: the log ends inside a line, \"%.*s\": it is cut off; --skip-bad "
			"takes what is before that line",
			r->path, r->n + 1, shown, text);
	mu_log_warn("%s:%zu: the log ends inside this line: left out", r->path, ++r->n);
out:
	return st;
}

/* ---- files ---- */

/* A line longer than a block counts as several; none of those is of a training. */
static enum mu_status read_lines(struct reader *r, FILE *file, char *block)
{
	enum mu_status st = MU_OK;
	size_t have = 0, got;

	while ((got = fread(block + have, 1, BLOCK_BYTES - have, file)) > 0) {
		char *at = block, *end = block + have + got, *newline;

		while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
			MU_TRY(parse_line(r, at, (size_t)(newline - at)));
			at = newline + 1;
		}
		have = (size_t)(end - at);
		if (have == BLOCK_BYTES) {
			MU_TRY(parse_line(r, at, have));
			have = 0;
		}
		memmove(block, at, have);
	}
	if (ferror(file))
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", r->path, strerror(errno));
	if (have > 0)
		MU_TRY(parse_end(r, block, have));
out:
	return st;
}

/* A shell's <(command) is a pipe that something writes to; any other may wait for ever. */
static enum mu_status open_log(FILE **file, const char *path)
{
	enum mu_status st = MU_OK;

	if (strcmp(path, "-") == 0) {
		*file = stdin;
	} else if (strncmp(path, "/dev/", 5) == 0) {
		*file = fopen(path, "r");
		if (!*file)
			MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	} else {
		MU_TRY(mu_stream_open(file, path));
	}
out:
	return st;
}

enum mu_status log_lines_read(const char *path, bool skip_bad, log_line_fn call, void *context,
			      size_t *n)
{
	enum mu_status st = MU_OK;
	struct reader r = {.path = log_path_shown(path),
			   .skip_bad = skip_bad,
			   .call = call,
			   .context = context};
	FILE *file = NULL;
	char *block = NULL;

	MU_TRY(open_log(&file, path));
	MU_TRY(MU_ALLOC(block, BLOCK_BYTES + 1, "a part of the log"));
	MU_TRY(read_lines(&r, file, block));
	*n = r.n;
out:
	if (file && file != stdin)
		fclose(file);
	mu_free(block);
	return st;
}

const char *log_path_shown(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}
