/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of trainings: see log_table.h. A log may have gigabytes, nearly all of it lines of speed. */
#define _GNU_SOURCE /* memmem */
#include "log_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

enum { BLOCK_BYTES = 1 << 20, TEXT_BYTES = 256, EPOCH_MAX = 1000000000 };

struct reader {
	struct log_table *table;
	const struct log_metrics *metrics;
	const char *path; /* for messages */
	bool skip_bad;
	size_t line;
	size_t n_values, n_speed; /* lines of results and of speed */
};

/* ---- metrics ---- */

enum mu_status log_metrics_read(struct log_metrics *m, const char *list)
{
	enum mu_status st = MU_OK;

	*m = (struct log_metrics){0};
	for (const char *word = list; word; word = *word ? word + 1 : NULL) {
		size_t n = strcspn(word, ",");

		if (n == 0 || n >= LOG_NAME_BYTES || m->n == LOG_METRICS_MAX)
			MU_FAIL(MU_ERR_USAGE,
				"metrics \"%s\": expected 1 to %d names as in the log, with commas "
				"between them, such as accuracy,cross-entropy",
				list, LOG_METRICS_MAX);
		memcpy(m->names[m->n++], word, n);
		word += n;
	}
out:
	return st;
}

size_t log_metrics_cells(const struct log_metrics *m)
{
	return 2 * m->n + 1;
}

size_t log_metrics_cell(size_t metric)
{
	return 2 * metric + 1;
}

const char *log_metrics_cell_name(const struct log_metrics *m, size_t cell, char *text,
				  size_t nbytes)
{
	if (cell == 2 * m->n)
		snprintf(text, nbytes, "time");
	else
		snprintf(text, nbytes, "%s-%s", cell % 2 ? "valid" : "train", m->names[cell / 2]);
	return text;
}

/* Store the name of a metric that was not requested. */
static void add_other(struct log_table *table, const char *name)
{
	size_t used = strlen(table->others), n = strlen(name);

	for (const char *at = table->others; (at = strstr(at, name)); at += n)
		if ((at == table->others || at[-1] == ' ') && (at[n] == ',' || !at[n]))
			return;
	if (used + n + 3 < sizeof table->others)
		snprintf(table->others + used, sizeof table->others - used, "%s%s",
			 used ? ", " : "", name);
}

/* ---- rows ---- */

void log_table_release(struct log_table *table)
{
	free(table->rows);
	*table = (struct log_table){0};
}

bool log_table_value(const struct log_row *row, size_t cell, double *value)
{
	if (row->cells[cell].n == 0)
		return false;
	*value = row->cells[cell].sum / (double)row->cells[cell].n;
	return true;
}

/* The row of an epoch, made where there is none. Epochs come nearly in order. */
static enum mu_status find_row(struct log_table *table, long epoch, struct log_row **out)
{
	enum mu_status st = MU_OK;
	size_t i = table->n;

	while (i > 0 && table->rows[i - 1].epoch > epoch)
		i--;
	if (i > 0 && table->rows[i - 1].epoch == epoch) {
		*out = &table->rows[i - 1];
		goto out;
	}
	if (table->n == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		struct log_row *rows = realloc(table->rows, room * sizeof *rows);

		if (!rows)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the rows of %zu epochs", room);
		table->rows = rows;
		table->room = room;
	}
	memmove(&table->rows[i + 1], &table->rows[i], (table->n - i) * sizeof *table->rows);
	table->n++;
	table->rows[i] = (struct log_row){.epoch = epoch};
	*out = &table->rows[i];
out:
	return st;
}

/* ---- lines ---- */

/* The text after "Epoch[" or "Iteration["; NULL: there is none. */
static const char *find_epoch(const char *line, size_t n)
{
	static const char epoch[] = "Epoch[", iteration[] = "Iteration[";
	const char *at = memmem(line, n, epoch, sizeof epoch - 1);

	if (at)
		return at + sizeof epoch - 1;
	at = memmem(line, n, iteration, sizeof iteration - 1);
	return at ? at + sizeof iteration - 1 : NULL;
}

/* Cut the name of the metric, or "Time cost", out of *text, which then is the value. */
static bool set_name(char **text, char **name)
{
	*name = *text;
	*text = strchr(*text, '=');
	if (!*text)
		return false;
	*(*text)++ = '\0';
	return true;
}

/* "Train-accuracy=0.9": the cell, and the text of the value. false: this is something else. */
static bool find_cell(struct reader *r, char *text, size_t *cell, char **value)
{
	static const char train[] = "Train-", valid[] = "Validation-";
	bool is_train = strncmp(text, train, sizeof train - 1) == 0;
	char *name;

	if (!is_train && strncmp(text, valid, sizeof valid - 1) != 0) {
		if (!set_name(&text, &name) || strcmp(name, "Time cost") != 0)
			return false;
		*cell = 2 * r->metrics->n;
		*value = text;
		r->n_values++;
		return true;
	}
	text += (is_train ? sizeof train : sizeof valid) - 1;
	if (!set_name(&text, &name))
		return false;
	r->n_values++;
	for (size_t i = 0; i < r->metrics->n; i++) {
		if (strcmp(name, r->metrics->names[i]) == 0) {
			*cell = log_metrics_cell(i) - is_train;
			*value = text;
			return true;
		}
	}
	add_other(r->table, name);
	return false;
}

/* text: the part after "Epoch[". */
static enum mu_status add_text(struct reader *r, char *text)
{
	enum mu_status st = MU_OK;
	struct log_row *row = NULL;
	char *end, *value;
	long epoch = strtol(text, &end, 10);
	size_t cell;
	double v;

	if (end == text || strncmp(end, "] ", 2) != 0 || epoch < 0 || epoch >= EPOCH_MAX)
		goto out;
	r->n_speed += strncmp(end + 2, "Batch ", 6) == 0 && strstr(end, "Speed: ");
	if (!find_cell(r, end + 2, &cell, &value))
		goto out;
	v = strtod(value, &end);
	if (end == value || end[strspn(end, " \t\r")] != '\0')
		MU_FAIL(MU_ERR_FORMAT, "%s:%zu: \"%s\" is not a number", r->path, r->line, value);
	if (!isfinite(v) && r->skip_bad) {
		mu_log_warn("%s:%zu: a value of epoch %ld is %g: left out", r->path, r->line, epoch,
			    v);
		goto out;
	}
	if (!isfinite(v))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: a value of epoch %ld is %g: the training may have diverged (a "
			"lower --lr may help); --skip-bad leaves such values out",
			r->path, r->line, epoch, v);
	MU_TRY(find_row(r->table, epoch, &row));
	row->cells[cell].sum += v;
	row->cells[cell].n++;
out:
	return st;
}

static enum mu_status parse_line(struct reader *r, const char *line, size_t n)
{
	const char *at = find_epoch(line, n);
	char text[TEXT_BYTES];

	r->line++;
	if (!at)
		return MU_OK;
	n -= (size_t)(at - line);
	if (n >= sizeof text)
		n = sizeof text - 1; /* a line of speed with many metrics */
	memcpy(text, at, n);
	text[n] = '\0';
	return add_text(r, text);
}

/* The end of a file that does not end with a newline. */
static enum mu_status parse_end(struct reader *r, const char *line, size_t n)
{
	enum mu_status st = MU_OK;
	int shown = n > 100 ? 100 : (int)n;

	if (!find_epoch(line, n))
		goto out;
	if (!r->skip_bad)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: the log ends inside a line, \"%.*s\": it is cut off; --skip-bad "
			"takes what is before that line",
			r->path, r->line + 1, shown, line);
	mu_log_warn("%s:%zu: the log ends inside this line: left out", r->path, r->line + 1);
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
	r->table->incomplete = r->line == 0 && have == 0;
	if (r->table->incomplete)
		MU_FAIL(MU_ERR_FORMAT, "%s is empty: the log of a training is needed", r->path);
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

enum mu_status log_table_read(struct log_table *table, const struct log_metrics *m,
			      const char *path, bool skip_bad)
{
	enum mu_status st = MU_OK;
	bool is_stdin = strcmp(path, "-") == 0;
	struct reader r = {.table = table,
			   .metrics = m,
			   .path = is_stdin ? "standard input" : path,
			   .skip_bad = skip_bad};
	FILE *file = stdin;
	char *block = NULL;

	MU_TRY(open_log(&file, path));
	MU_TRY(MU_ALLOC(block, BLOCK_BYTES, "a part of the log"));
	MU_TRY(read_lines(&r, file, block));
	table->incomplete = r.n_values == 0;
	if (r.n_values == 0 && r.n_speed > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: no epoch is complete in it: %zu lines of speed, and none with the "
			"results of an epoch",
			r.path, r.n_speed);
	if (r.n_values == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: not the log of a training: none of its %zu lines is like \"Epoch[0] "
			"Train-accuracy=0.9\"",
			r.path, r.line);
out:
	if (file && !is_stdin)
		fclose(file);
	mu_free(block);
	return st;
}

/* ---- several logs ---- */

enum mu_status log_set_read(struct log_set *set, const char **paths, size_t n, bool average,
			    bool skip_bad)
{
	enum mu_status st = MU_OK;
	size_t good = 0;

	MU_TRY(MU_ALLOC(set->tables, n, "tables"));
	set->names = paths;
	for (size_t i = 0; i < n; i++) {
		struct log_table *table = &set->tables[average ? 0 : good];

		set->n = average ? 1 : good + 1;
		st = log_table_read(table, &set->metrics, paths[i], skip_bad);
		if (st == MU_ERR_FORMAT && table->incomplete && (good > 0 || i + 1 < n)) {
			mu_log_warn("%s; it is left out", mu_trace_message());
			mu_trace_clear();
			table->incomplete = false;
			continue;
		}
		MU_TRY(st);
		paths[good++] = paths[i];
	}
	set->n = average ? 1 : good;
	st = MU_OK;
out:
	return st;
}

void log_set_release(struct log_set *set)
{
	for (size_t t = 0; t < set->n; t++)
		log_table_release(&set->tables[t]);
	mu_free(set->tables);
	*set = (struct log_set){.n = 0};
}

bool log_set_has(const struct log_set *set, size_t metric)
{
	const size_t valid = log_metrics_cell(metric);

	for (size_t t = 0; t < set->n; t++)
		for (size_t i = 0; i < set->tables[t].n; i++)
			if (set->tables[t].rows[i].cells[valid].n > 0 ||
			    set->tables[t].rows[i].cells[valid - 1].n > 0)
				return true;
	return false;
}

enum mu_status log_set_check(const struct log_set *set)
{
	enum mu_status st = MU_OK;
	const char *others = "";

	for (size_t t = 0; t < set->n && !*others; t++)
		others = set->tables[t].others;
	for (size_t m = 0; m < set->metrics.n; m++)
		if (!log_set_has(set, m))
			MU_FAIL(MU_ERR_FORMAT, "no log has values of the metric \"%s\"%s%s",
				set->metrics.names[m], *others ? "; others there: " : "", others);
out:
	return st;
}

const char *log_name(const char *path, char *text, size_t nbytes)
{
	const char *slash = strrchr(path, '/');
	size_t n;

	if (slash && slash[1])
		path = slash + 1;
	n = mu_stem(path, ".log");
	if (n == 0)
		n = strlen(path);
	snprintf(text, nbytes, "%.*s", (int)n, path);
	return text;
}
