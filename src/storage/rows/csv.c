/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .csv files (RFC 4180): lines of numbers between commas, a sample each. The first line may name
 * the columns. Columns that are targets are named, or the last one is the target. Lines that begin
 * with # are comments. Numbers are decimal and become the nearest float32.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

#include "csv_lines.h"
#include "rows.h"

/* ---- the first line ---- */

/* Times that a character stands in a line, outside of quotes. */
static size_t count_outside(const char *line, char c)
{
	bool quoted = false;
	size_t n = 0;

	for (; *line && *line != '\n'; line++) {
		quoted ^= *line == '"';
		n += !quoted && *line == c;
	}
	return n;
}

/* Is a comma between two digits in the line? */
static bool has_decimal_comma(const char *line)
{
	for (; *line && *line != '\n'; line++)
		if (isdigit((unsigned char)*line) && line[1] == ',' &&
		    isdigit((unsigned char)line[2]))
			return true;
	return false;
}

/* Semicolons and tabs that separate cells. */
static enum mu_status check_separator(const struct mu_csv *t)
{
	enum mu_status st = MU_OK;
	const bool semicolons = count_outside(t->row, ';') > 0;
	const char *name = semicolons ? "semicolon" : "tab", *mark = semicolons ? ";" : "\\t";

	if (!semicolons && (count_outside(t->row, '\t') == 0 || count_outside(t->row, ',') > 0))
		goto out;
	if (has_decimal_comma(t->row) || has_decimal_comma(t->p))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: the separator is a %s, and numbers have a decimal comma; commas "
			"and points are needed: pandas.read_csv(FILE, sep='%s', decimal=',')"
			".to_csv(OTHER, index=False)",
			t->path, t->line, name, mark);
	MU_FAIL(MU_ERR_FORMAT,
		"%s:%zu: the separator is a %s; a comma is needed: pandas.read_csv(FILE, sep='%s')"
		".to_csv(OTHER, index=False)",
		t->path, t->line, name, mark);
out:
	return st;
}

/* Names of columns, a sample, or something between. */
enum first_line { NAMES, SAMPLE, MIXED };

static enum first_line judge(char **cell, size_t n)
{
	size_t numbers = 0, counted = 0;
	bool whole;

	for (size_t k = 0; k < n; k++) {
		const size_t value = strtoul(cell[k], NULL, 10);

		if (!mu_csv_is_number(cell[k], &whole) && !mu_csv_is_word(cell[k], 1) &&
		    (!mu_csv_is_word(cell[k], 0) || (k == 0 && n > 1)))
			continue;
		numbers++;
		counted += whole && value == k; /* as pandas names columns */
	}
	return numbers == 0 || (counted == numbers && (numbers < n || n > 2)) ? NAMES
	       : numbers == n                                      ? SAMPLE
								   : MIXED;
}

static enum mu_status check_names(const struct mu_csv *t)
{
	enum mu_status st = MU_OK;

	for (size_t k = 0; k < t->columns; k++) {
		if (!*t->name[k])
			MU_FAIL(MU_ERR_FORMAT, "%s:%zu:%zu: the column has no name%s", t->path,
				t->line, k + 1,
				k == 0 ? ": it may be an index of pandas, which "
					 "to_csv(FILE, index=False) leaves out"
				       : "; all have one, or none");
		for (size_t j = 0; j < k; j++)
			if (strcmp(t->name[j], t->name[k]) == 0)
				MU_FAIL(MU_ERR_FORMAT,
					"%s:%zu:%zu: two columns have the name \"%.40s\"; each "
					"needs one of its own",
					t->path, t->line, k + 1, mu_shown(t->name[k]));
	}
out:
	return st;
}

static enum mu_status read_sample(struct mu_csv *t, char **cell)
{
	enum mu_status st = MU_OK;

	for (size_t k = 0; k < t->columns; k++)
		MU_TRY(mu_csv_read_cell(t, k, cell[k], &t->values[t->n * t->columns + k]));
	t->n++;
out:
	return st;
}

/* Another choice that nobody has made. */
__attribute__((format(printf, 2, 3))) static void
add_note(char note[MU_ROWS_NOTE], const char *format, ...)
{
	const size_t used = strlen(note), before = used ? 2 : 0;
	va_list values;

	if (used + before >= MU_ROWS_NOTE)
		return;
	memcpy(note + used, "; ", before);
	va_start(values, format);
	vsnprintf(note + used + before, MU_ROWS_NOTE - used - before, format, values);
	va_end(values);
}

/* Does the line count its columns, from 0 or from 1 on? */
static void note_counting(const struct mu_csv *t, char **cell, size_t n, enum first_line first,
			  char note[MU_ROWS_NOTE])
{
	size_t counted[2] = {0, 0};

	for (size_t k = 0; k < n; k++)
		for (size_t from = 0; from < 2; from++)
			counted[from] += strtoul(cell[k], NULL, 10) == k + from &&
					 mu_csv_digits(cell[k]) == strlen(cell[k]);
	if (n > 1 && (counted[0] == n || counted[1] == n))
		add_note(note, "%.100s: line %zu, which counts from %d on, is taken as %s", t->path,
			 t->line, counted[0] != n,
			 first == NAMES ? "names of columns, as pandas writes them; if it is a "
					  "sample, write a line of names above it"
					: "a sample; if it numbers the columns, remove it");
}

/* All of the file: names, if there are some, and values. */
static enum mu_status read_lines(struct mu_csv *t, char note[MU_ROWS_NOTE])
{
	enum mu_status st = MU_OK;
	size_t lines = 1, n;
	char **cell = NULL;
	enum first_line first;

	for (const char *p = t->p; p < t->end; p++)
		lines += *p == '\n' || *p == '\r';
	if (!mu_csv_next_line(t) || (mu_csv_is_blank(t->row) && t->p == t->end))
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; lines of numbers are needed",
			t->path);
	MU_TRY(check_separator(t));
	t->columns = count_outside(t->row, ',') + 1;
	MU_TRY(MU_ALLOC(cell, t->columns, "cells"));
	MU_TRY(MU_ALLOC(t->integers, 2 * t->columns, "columns"));
	MU_TRY(MU_ALLOC(t->order, t->columns, "columns"));
	t->target = t->integers + t->columns;
	for (size_t k = 0; k < t->columns; k++)
		t->integers[k] = true;
	MU_TRY(mu_csv_cut_line(t, cell, t->columns, &n));
	MU_TRY(mu_alloc((void **)&t->values, lines * t->columns * sizeof *t->values, t->path));
	first = judge(cell, n);
	note_counting(t, cell, n, first, note);
	if (first == NAMES) {
		t->name = cell;
		MU_TRY(check_names(t));
		cell = NULL;
		MU_TRY(MU_ALLOC(cell, t->columns, "cells"));
	} else {
		MU_TRY(read_sample(t, cell));
	}
	while (mu_csv_next_line(t)) {
		if (mu_csv_is_blank(t->row) && t->p[strspn(t->p, " \t\r\n")] == '\0')
			break; /* blank lines at the end */
		MU_TRY(mu_csv_cut_line(t, cell, t->columns, &n));
		MU_TRY(read_sample(t, cell));
	}
	if (t->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: there is no sample in it, only names of columns",
			t->path);
out:
	if (cell != t->name)
		mu_free(cell);
	return st;
}

/* ---- inputs and targets ---- */

static enum mu_status find_column(const struct mu_csv *t, const char *name, size_t *k)
{
	enum mu_status st = MU_OK;
	char list[400] = "";
	size_t used = 0, number = strtoul(name, NULL, 10);

	for (*k = 0; t->name && *k < t->columns; ++*k)
		if (strcmp(t->name[*k], name) == 0)
			return MU_OK;
	*k = number - 1;
	if (number >= 1 && number <= t->columns && mu_csv_digits(name) == strlen(name))
		return MU_OK;
	for (size_t i = 0; t->name && i < t->columns && used < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
					 t->name[i]);
	MU_FAIL(MU_ERR_USAGE, "%s: has no column \"%s\" for targets (label columns); it has %s",
		t->path, name, t->name ? list : "no names: give numbers, from 1 on");
out:
	return st;
}

static void mark_target(struct mu_csv *t, size_t k)
{
	t->target[k] = true;
	t->order[t->targets++] = k;
}

/* Marks the targets, in the order in which they are named. */
static enum mu_status find_targets(struct mu_csv *t, const struct mu_rows_config *config,
				   char note[MU_ROWS_NOTE])
{
	enum mu_status st = MU_OK;
	const char *list = config->columns;
	size_t k = t->columns - 1;
	char name[256];

	if (list && strcmp(list, "none") == 0)
		goto out;
	while (list) {
		const size_t n = strcspn(list, ",");

		snprintf(name, sizeof name, "%.*s", (int)n, list);
		MU_TRY(find_column(t, name, &k));
		if (t->target[k])
			MU_FAIL(MU_ERR_USAGE, "label columns %s: \"%s\" is there twice",
				config->columns, name);
		mark_target(t, k);
		list = list[n] ? list + n + 1 : NULL;
	}
	if (config->labels && !config->columns && t->columns > 1)
		add_note(note, "%.100s: all %zu columns are inputs, the last one, %.80s, too",
			 t->path, t->columns, mu_csv_column(t, k, name, sizeof name));
	if (config->columns || config->labels || (config->targets_alone && t->columns == 1))
		goto out;
	if (t->columns == 1)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has one column: targets of its samples are needed, in a second one or "
			"a file of labels (label train, label val)",
			t->path);
	mark_target(t, k);
	add_note(note, "%.100s: the last one of %zu columns is the target, %.80s", t->path,
		 t->columns, mu_csv_column(t, k, name, sizeof name));
out:
	return st;
}

/* An array of the targets, or of the other columns. */
static enum mu_status take_columns(struct mu_rows *rows, struct mu_csv *t, bool target)
{
	enum mu_status st = MU_OK;
	size_t dims[2] = {t->n, 0}, m = 0, used = 0, room = 1;
	size_t *const of = target ? t->order : t->order + t->targets;
	float *out = NULL;

	dims[1] = target ? t->targets : t->columns - t->targets;
	for (size_t k = 0; !target && k < t->columns; k++)
		if (!t->target[k])
			of[m++] = k;
	rows->cell = MU_CELL_F4;
	rows->integers = true;
	for (size_t i = 0; i < dims[1]; i++) {
		room += t->name ? strlen(t->name[of[i]]) + 1 : 0;
		rows->integers &= t->integers[of[i]];
	}
	MU_TRY(mu_rows_set_name(rows, t->path, NULL));
	MU_TRY(mu_rows_set_shape(rows, 2, dims));
	MU_TRY(mu_alloc((void **)&out, t->n * rows->stride, t->path));
	rows->memory = (uint8_t *)out;
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < dims[1]; k++)
			*out++ = t->values[i * t->columns + of[k]];
	if (t->name)
		MU_TRY(MU_ALLOC(rows->columns, room, "names of columns"));
	for (size_t k = 0; t->name && k < dims[1]; k++)
		used += (size_t)snprintf(rows->columns + used, room - used, "%s%s", k ? "," : "",
					 t->name[of[k]]);
out:
	return st;
}

static enum mu_status open_csv(struct mu_rows_pair *pair, const struct mu_rows_config *config,
			       const char *path, const char *member)
{
	enum mu_status st = MU_OK;
	struct mu_csv t = {.path = path, .skip = config->skip};
	size_t n;

	(void)member;
	MU_TRY(mu_file_read_text(&t.text, &n, path));
	t.p = t.text;
	t.end = t.text + n;
	MU_TRY(read_lines(&t, pair->note));
	MU_TRY(find_targets(&t, config, pair->note));
	if (t.targets == t.columns && !config->targets_alone)
		MU_FAIL(MU_ERR_USAGE, "%s: all columns are targets (label columns %s)", path,
			config->columns);
	MU_TRY(take_columns(&pair->data, &t, config->targets_alone && t.targets > 0));
	if (t.targets > 0 && !config->targets_alone)
		MU_TRY(take_columns(&pair->target, &t, true));
out:
	mu_free(t.values);
	mu_free(t.integers);
	mu_free(t.order);
	mu_free(t.name);
	mu_free(t.text);
	return st;
}

const struct mu_rows_format mu_rows_csv = {
	.ending = ".csv",
	.open = open_csv,
};
