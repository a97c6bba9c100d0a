/* SPDX-License-Identifier: Apache-2.0 */
/* Results of trainings: see log_table.h. */
#include "log_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct log_table *table;
	struct log_metrics *metrics; /* of these the first n_asked, others as they are met */
	size_t n_asked;
	struct notes *notes; /* NULL: none */
	bool skip_bad;
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

static void table_release(struct log_table *table)
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

static enum mu_status add_value(struct reader *r, const struct log_line *line, size_t cell)
{
	enum mu_status st = MU_OK;
	struct log_row *row = NULL;
	char *end;
	double v = strtod(line->value, &end);

	if (end == line->value || end[strspn(end, " \t")] != '\0')
		MU_FAIL(MU_ERR_FORMAT, "%s:%zu: \"%s\" is not a number", line->path, line->number,
			line->value);
	if (!isfinite(v) && r->skip_bad) {
		mu_log_warn("%s:%zu: a value of epoch %ld is %g: left out", line->path,
			    line->number, line->epoch, v);
		goto out;
	}
	if (!isfinite(v))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: a value of epoch %ld is %g: the training may have diverged (a "
			"lower --lr may help); --skip-bad leaves such values out",
			line->path, line->number, line->epoch, v);
	MU_TRY(find_row(r->table, line->epoch, &row));
	row->cells[cell].sum += v;
	row->cells[cell].n++;
out:
	return st;
}

/* The number of a metric; one that was not asked for takes an empty place. n: there is none. */
static size_t find_metric(struct log_metrics *m, const char *name)
{
	size_t i = 0;

	while (i < m->n && *m->names[i] && strcmp(name, m->names[i]) != 0)
		i++;
	if (i < m->n && !*m->names[i] && strlen(name) < LOG_NAME_BYTES)
		snprintf(m->names[i], LOG_NAME_BYTES, "%s", name);
	return i < m->n && strcmp(name, m->names[i]) == 0 ? i : m->n;
}

/* Of a metric that was not asked for: what its values are matters only if it is shown. */
static enum mu_status add_unasked(struct reader *r, const struct log_line *line, size_t cell)
{
	enum mu_status st = MU_OK;
	struct log_row *row = NULL;
	char *end;
	const double v = strtod(line->value, &end);

	if (r->skip_bad && (end == line->value || !isfinite(v)))
		goto out;
	MU_TRY(find_row(r->table, line->epoch, &row));
	row->cells[cell].sum += end == line->value ? (double)NAN : v;
	row->cells[cell].n++;
out:
	return st;
}

static enum mu_status add_line(void *context, const struct log_line *line)
{
	struct reader *r = context;
	struct log_metrics *m = r->metrics;
	enum mu_status st = MU_OK;
	size_t i, cell;

	if (r->notes)
		MU_TRY(notes_add(r->notes, line));
	r->n_speed += line->kind == LOG_SPEED;
	if (line->kind == LOG_OTHER || line->kind == LOG_SPEED)
		goto out;
	r->n_values++;
	if (line->kind == LOG_TIME) {
		MU_TRY(add_value(r, line, 2 * m->n));
		goto out;
	}
	i = find_metric(m, line->name);
	cell = log_metrics_cell(i) - (line->kind == LOG_TRAIN);
	if (i >= r->n_asked)
		add_other(r->table, line->name);
	if (i < m->n)
		MU_TRY((i < r->n_asked ? add_value : add_unasked)(r, line, cell));
out:
	return st;
}

static enum mu_status read_log(struct reader *r, const char *path)
{
	enum mu_status st = MU_OK;
	size_t n = 0;

	r->table->incomplete = false;
	MU_TRY(log_lines_read(path, r->skip_bad, add_line, r, &n));
	r->table->incomplete = r->n_values == 0;
	if (n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s is empty: the log of a training is needed",
			log_path_shown(path));
	if (r->n_values == 0 && r->n_speed > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: no epoch is complete in it: %zu lines of speed, and none with the "
			"results of an epoch",
			log_path_shown(path), r->n_speed);
	if (r->n_values == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: not the log of a training: none of its %zu lines is like \"Epoch[0] "
			"Train-accuracy=0.9\"",
			log_path_shown(path), n);
out:
	return st;
}

/* ---- the usual metrics ---- */

/* MU_ERR_FORMAT: a value of a metric that was not asked for is no finite number. */
static enum mu_status check_finite(const struct log_set *set, size_t metric)
{
	enum mu_status st = MU_OK;

	for (size_t t = 0; t < set->n; t++)
		for (size_t i = 0; i < set->tables[t].n; i++) {
			const struct log_row *row = &set->tables[t].rows[i];

			if (!isfinite(row->cells[2 * metric].sum + row->cells[2 * metric + 1].sum))
				MU_FAIL(MU_ERR_FORMAT,
					"%s: the %s of epoch %ld is not finite: the training may "
					"have diverged (a lower --lr may help); --skip-bad leaves "
					"such values out",
					log_path_shown(set->names[t]), set->metrics.names[metric],
					row->epoch);
		}
out:
	return st;
}

/* Metrics keep[0..n) become the first, time follows them. Does the row have a value of these? */
static bool keep_cells(struct log_row *row, const size_t *keep, size_t n)
{
	bool any = false;

	for (size_t k = 0; k < n; k++) {
		row->cells[2 * k] = row->cells[2 * keep[k]];
		row->cells[2 * k + 1] = row->cells[2 * keep[k] + 1];
	}
	row->cells[2 * n] = row->cells[2 * LOG_METRICS_MAX];
	for (size_t c = 0; c <= 2 * n; c++)
		any = any || row->cells[c].n > 0;
	return any;
}

static void keep_metrics(struct log_set *set, const size_t *keep, size_t n)
{
	for (size_t k = 0; k < n; k++)
		memmove(set->metrics.names[k], set->metrics.names[keep[k]], LOG_NAME_BYTES);
	set->metrics.n = n;
	for (size_t t = 0; t < set->n; t++) {
		struct log_table *table = &set->tables[t];
		size_t rows = 0;

		for (size_t i = 0; i < table->n; i++)
			if (keep_cells(&table->rows[i], keep, n))
				table->rows[rows++] = table->rows[i];
		table->n = rows;
	}
}

/* Of the first n_usual metrics those that the logs have; if they have none, all others. */
static enum mu_status keep_usual(struct log_set *set, size_t n_usual)
{
	enum mu_status st = MU_OK;
	size_t keep[LOG_METRICS_MAX], n = 0;

	for (size_t i = 0; i < set->metrics.n; i++)
		if (log_set_has(set, i) && (i < n_usual || n == 0 || keep[0] >= n_usual))
			keep[n++] = i;
	for (size_t k = 0; k < n; k++)
		if (keep[k] >= n_usual)
			MU_TRY(check_finite(set, keep[k]));
	if (n == 0) /* the error names these */
		for (; n < n_usual; n++)
			keep[n] = n;
	keep_metrics(set, keep, n);
out:
	return st;
}

/* ---- several logs ---- */

enum mu_status log_set_read(struct log_set *set, const char **paths, size_t n,
			    const struct log_reading *how)
{
	enum mu_status st = MU_OK;
	const size_t n_asked = set->metrics.n;
	size_t good = 0;

	if (how->usual)
		set->metrics.n = LOG_METRICS_MAX;
	MU_TRY(MU_ALLOC(set->tables, n, "tables"));
	if (how->notes)
		MU_TRY(MU_ALLOC(set->notes, n, "notes on logs"));
	set->names = paths;
	for (size_t i = 0; i < n; i++) {
		struct log_table *table = &set->tables[how->average ? 0 : good];
		struct reader r = {.table = table,
				   .metrics = &set->metrics,
				   .n_asked = n_asked,
				   .skip_bad = how->skip_bad};

		if (how->notes && (good == 0 || !how->average))
			r.notes = &set->notes[good];
		set->n = how->average ? 1 : good + 1;
		st = read_log(&r, paths[i]);
		if (st == MU_ERR_FORMAT && table->incomplete && (good > 0 || i + 1 < n)) {
			mu_log_warn("%s; it is left out", mu_trace_message());
			mu_trace_clear();
			table->incomplete = false;
			if (r.notes)
				notes_release(r.notes);
			continue;
		}
		MU_TRY(st);
		paths[good++] = paths[i];
	}
	set->n = how->average ? 1 : good;
	st = MU_OK;
	if (how->usual)
		MU_TRY(keep_usual(set, n_asked));
out:
	return st;
}

void log_set_release(struct log_set *set)
{
	for (size_t t = 0; t < set->n; t++) {
		table_release(&set->tables[t]);
		if (set->notes)
			notes_release(&set->notes[t]);
	}
	mu_free(set->tables);
	mu_free(set->notes);
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

	path = log_path_shown(path);
	if (slash && slash[1])
		path = slash + 1;
	n = mu_stem(path, ".log");
	if (n == 0)
		n = strlen(path);
	snprintf(text, nbytes, "%.*s", (int)n, path);
	return text;
}
