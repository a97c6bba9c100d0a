/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .csv files (RFC 4180): lines of numbers between commas, a sample each. The first line may name
 * the columns. Columns that are targets are named, or the last one is the target. Lines that begin
 * with # are comments. Numbers are decimal and become the nearest float32.
 */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

#include "rows.h"

enum { CELL_BYTES = 64, LAST_WHOLE = 1 << 24 };

struct table {
	const char *path;
	char *text, *p; /* text: owned; p: what is not read yet */
	char *end;
	size_t line;    /* number of the line that was read last, from 1 */
	char *row;      /* that line, without its end */
	size_t columns, n;
	char **name;    /* of each column; owned, into text; NULL: no line of names */
	float *values;  /* (n, columns); owned */
	bool *integers, *target; /* of each column; owned */
	bool skip;
};

/* ---- lines and cells ---- */

/* Cut the next line that is no comment off. False: there is none. */
static bool next_line(struct table *t)
{
	do {
		char *stop;

		if (t->p >= t->end)
			return false;
		t->row = t->p;
		stop = t->p + strcspn(t->p, "\r\n");
		t->p = stop + (stop < t->end) + (stop[0] == '\r' && stop[1] == '\n');
		*stop = '\0';
		t->line++;
	} while (*t->row == '#');
	return true;
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t")] == '\0';
}

/* Cut the cell at *p off, without quotes and blanks around it; *p: the next one, NULL after the
 * last. NULL: a quote is not closed. */
static char *next_cell(char **p, bool *quoted)
{
	char *cell = *p + strspn(*p, " \t"), *from, *to, *stop;

	*quoted = *cell == '"';
	if (*quoted) {
		for (from = to = ++cell; *from && (*from != '"' || from[1] == '"'); from++) {
			from += *from == '"';
			*to++ = *from;
		}
		if (!*from || (from[1 + strspn(from + 1, " \t")] != ',' && !is_blank(from + 1)))
			return NULL;
		stop = from + 1 + strspn(from + 1, " \t");
	} else {
		stop = cell + strcspn(cell, ",");
		for (to = stop; to > cell && (to[-1] == ' ' || to[-1] == '\t'); to--)
			;
	}
	*p = *stop ? stop + 1 : NULL;
	*to = '\0';
	return cell;
}

static size_t count_digits(const char *p)
{
	return strspn(p, "0123456789");
}

/* [+-] digits [. digits] [e [+-] digits], all of it. *whole: digits alone. */
static bool is_number(const char *p, bool *whole)
{
	size_t n, m = 0;

	p += *p == '+' || *p == '-';
	n = count_digits(p);
	p += n;
	*whole = n > 0 && !*p;
	if (*p == '.') {
		m = count_digits(++p);
		p += m;
	}
	if (n + m == 0)
		return false;
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '+' || p[1] == '-');
		n = count_digits(p);
		p += n;
	}
	return n > 0 ? !*p : !*p && m > 0;
}

/* Words for a number that is not there (0), or is not finite (1). */
static bool is_word(const char *cell, int which)
{
	static const char *const words[2] = {"||na|n/a|#n/a|null|none|-|?|",
					     "|nan|inf|infinity|"};
	char word[16];
	size_t n;

	cell += which == 1 && (*cell == '+' || *cell == '-');
	n = strlen(cell);
	if (n > sizeof word - 3)
		return false;
	word[0] = '|';
	for (size_t i = 0; i < n; i++)
		word[i + 1] = (char)tolower((unsigned char)cell[i]);
	word[n + 1] = '|';
	word[n + 2] = '\0';
	return strstr(words[which], word) != NULL;
}

/* "column price" of a file with names, else "column 3"; from 0. */
static const char *column_text(const struct table *t, size_t k, char *text, size_t nbytes)
{
	if (t->name)
		snprintf(text, nbytes, "column %s", t->name[k]);
	else
		snprintf(text, nbytes, "column %zu", k + 1);
	return text;
}

/* A cell that is no number. */
static enum mu_status refuse(const struct table *t, size_t k, const char *cell)
{
	enum mu_status st = MU_OK;
	const size_t comma = strcspn(cell + strspn(cell, "+-"), ",") + strspn(cell, "+-");
	bool whole;
	char column[CELL_BYTES + 16], rest[CELL_BYTES];

	column_text(t, k, column, sizeof column);
	snprintf(rest, sizeof rest, "%.*s", (int)comma, cell);
	if (is_word(cell, 1))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s; all numbers must be finite: remove the line, or "
			"skip bad records", t->path, t->line, k + 1, column, mu_shown(cell));
	if (is_word(cell, 0))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is missing%s%s; a number is needed in each: fill it in, "
			"remove the line, or skip bad records",
			t->path, t->line, k + 1, column, *cell ? ": " : "", mu_shown(cell));
	if (cell[comma] == ',' && is_number(rest, &whole) && count_digits(cell + comma + 1) > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s, with a decimal comma; a point is needed: "
			"pandas.read_csv(FILE, decimal=',').to_csv(OTHER, index=False)",
			t->path, t->line, k + 1, column, mu_shown(cell));
	MU_FAIL(MU_ERR_FORMAT,
		"%s:%zu:%zu: %s is no number: \"%.40s\"; words must become numbers first, such as "
		"0 and 1", t->path, t->line, k + 1, column, mu_shown(cell));
out:
	return st;
}

static enum mu_status read_cell(struct table *t, size_t k, const char *cell, float *out)
{
	enum mu_status st = MU_OK;
	char column[CELL_BYTES + 16];
	bool whole;
	double x;

	if (!is_number(cell, &whole)) {
		if (!t->skip || (!is_word(cell, 0) && !is_word(cell, 1)))
			MU_TRY(refuse(t, k, cell));
		*out = NAN;
		return MU_OK;
	}
	x = strtod(cell, NULL);
	if (fabs(x) > (double)FLT_MAX)
		MU_FAIL(MU_ERR_FORMAT, "%s:%zu:%zu: %s is %.40s, which float32 does not hold",
			t->path, t->line, k + 1, column_text(t, k, column, sizeof column), cell);
	*out = (float)x;
	if (whole && fabs(x) > LAST_WHOLE && (double)*out != x)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s, an integer that float32 does not hold: scale it, "
			"or write it with a decimal point, to have it rounded",
			t->path, t->line, k + 1, column_text(t, k, column, sizeof column), cell);
	t->integers[k] &= whole;
out:
	return st;
}

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
static enum mu_status check_separator(const struct table *t)
{
	enum mu_status st = MU_OK;
	const bool semicolons = count_outside(t->row, ';') > 0;

	if (!semicolons && (count_outside(t->row, '\t') == 0 || count_outside(t->row, ',') > 0))
		goto out;
	if (has_decimal_comma(t->row) || has_decimal_comma(t->p))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: the separator is a %s, and numbers have a decimal comma; commas "
			"and points are needed: pandas.read_csv(FILE, sep='%s', decimal=',')"
			".to_csv(OTHER, index=False)",
			t->path, t->line, semicolons ? "semicolon" : "tab", semicolons ? ";" : "\\t");
	MU_FAIL(MU_ERR_FORMAT,
		"%s:%zu: the separator is a %s; a comma is needed: pandas.read_csv(FILE, sep='%s')"
		".to_csv(OTHER, index=False)",
		t->path, t->line, semicolons ? "semicolon" : "tab", semicolons ? ";" : "\\t");
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

		if (!is_number(cell[k], &whole) && !is_word(cell[k], 1) &&
		    (!is_word(cell[k], 0) || (k == 0 && n > 1)))
			continue;
		numbers++;
		counted += whole && value == k; /* as pandas names columns */
	}
	return numbers == 0 || (numbers < n && counted == numbers) ? NAMES
	       : numbers == n					   ? SAMPLE
								   : MIXED;
}

static enum mu_status check_names(const struct table *t)
{
	enum mu_status st = MU_OK;

	for (size_t k = 0; k < t->columns; k++) {
		if (!*t->name[k])
			MU_FAIL(MU_ERR_FORMAT,
				"%s:%zu:%zu: the column has no name%s", t->path, t->line, k + 1,
				k == 0 ? ": it may be an index of pandas, which "
					 "to_csv(FILE, index=False) leaves out"
				       : "; all have one, or none");
		for (size_t j = 0; j < k; j++)
			if (strcmp(t->name[j], t->name[k]) == 0)
				MU_FAIL(MU_ERR_FORMAT,
					"%s:%zu:%zu: two columns have the name \"%.40s\"; each "
					"needs one of its own", t->path, t->line, k + 1,
					mu_shown(t->name[k]));
	}
out:
	return st;
}

/* The cells of the line that was read last. */
static enum mu_status cut_line(const struct table *t, char **cell, size_t columns, size_t *n)
{
	enum mu_status st = MU_OK;
	bool quoted;

	*n = 0;
	for (char *p = t->row; p; (*n)++) {
		char *next = next_cell(&p, &quoted);

		if (!next)
			MU_FAIL(MU_ERR_FORMAT, "%s:%zu:%zu: a quote (\") is not closed", t->path,
				t->line, *n + 1);
		if (*n < columns)
			cell[*n] = next;
	}
	if (*n != columns)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: has %zu column%s, and the first line has %zu: all lines need as "
			"many", t->path, t->line, *n, MU_S(*n), columns);
out:
	return st;
}

static enum mu_status read_sample(struct table *t, char **cell)
{
	enum mu_status st = MU_OK;

	for (size_t k = 0; k < t->columns; k++)
		MU_TRY(read_cell(t, k, cell[k], &t->values[t->n * t->columns + k]));
	t->n++;
out:
	return st;
}

/* All of the file: names, if there are some, and values. */
static enum mu_status read_lines(struct table *t, char note[256])
{
	enum mu_status st = MU_OK;
	size_t lines = 1, n, counted = 0;
	char **cell = NULL;
	enum first_line first;

	for (const char *p = t->p; p < t->end; p++)
		lines += *p == '\n' || *p == '\r';
	if (!next_line(t) || (is_blank(t->row) && t->p == t->end))
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; lines of numbers are needed",
			t->path);
	MU_TRY(check_separator(t));
	t->columns = count_outside(t->row, ',') + 1;
	MU_TRY(MU_ALLOC(cell, t->columns, "cells"));
	MU_TRY(MU_ALLOC(t->integers, 2 * t->columns, "columns"));
	t->target = t->integers + t->columns;
	for (size_t k = 0; k < t->columns; k++)
		t->integers[k] = true;
	MU_TRY(cut_line(t, cell, t->columns, &n));
	MU_TRY(mu_alloc((void **)&t->values, lines * t->columns * sizeof *t->values, t->path));
	first = judge(cell, n);
	for (size_t k = 0; first == SAMPLE && k < n; k++)
		counted += strtoul(cell[k], NULL, 10) == k && count_digits(cell[k]) > 0;
	if (counted == n && n > 1)
		snprintf(note, 256, "%.100s: line %zu, which counts from 0 on, is taken as a "
			 "sample; if it numbers the columns, remove it", t->path, t->line);
	if (first == NAMES) {
		t->name = cell;
		MU_TRY(check_names(t));
		cell = NULL;
		MU_TRY(MU_ALLOC(cell, t->columns, "cells"));
	} else {
		MU_TRY(read_sample(t, cell));
	}
	while (next_line(t)) {
		if (is_blank(t->row) && t->p[strspn(t->p, " \t\r\n")] == '\0')
			break; /* blank lines at the end */
		MU_TRY(cut_line(t, cell, t->columns, &n));
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

static enum mu_status find_column(const struct table *t, const char *name, size_t *k)
{
	enum mu_status st = MU_OK;
	char list[400] = "";
	size_t used = 0, number = strtoul(name, NULL, 10);

	for (*k = 0; t->name && *k < t->columns; ++*k)
		if (strcmp(t->name[*k], name) == 0)
			return MU_OK;
	*k = number - 1;
	if (number >= 1 && number <= t->columns && count_digits(name) == strlen(name))
		return MU_OK;
	for (size_t i = 0; t->name && i < t->columns && used < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
					 t->name[i]);
	MU_FAIL(MU_ERR_USAGE, "%s: has no column \"%s\" for targets (label columns); it has %s",
		t->path, name, t->name ? list : "no names: give numbers, from 1 on");
out:
	return st;
}

/* Marks the targets. */
static enum mu_status find_targets(struct table *t, const struct mu_rows_config *config,
				   char note[256])
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
		t->target[k] = true;
		list = list[n] ? list + n + 1 : NULL;
	}
	if (config->columns || config->labels || config->targets_alone)
		goto out;
	if (t->columns == 1)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has one column: targets of its samples are needed, in a second one or "
			"a file of labels (label train, label val)", t->path);
	t->target[k] = true;
	column_text(t, k, name, sizeof name);
	if (!*note)
		snprintf(note, 256, "%.100s: the last one of %zu columns is the target, %.80s",
			 t->path, t->columns, name);
out:
	return st;
}

/* An array of the columns whose mark is `target`. */
static enum mu_status take_columns(struct mu_rows *rows, const struct table *t, bool target)
{
	enum mu_status st = MU_OK;
	size_t dims[2] = {t->n, 0}, m = 0, used = 0, room = 1;
	char text[CELL_BYTES + 16];
	float *out = NULL;

	rows->cell = MU_CELL_F4;
	rows->integers = true;
	for (size_t k = 0; k < t->columns; k++) {
		dims[1] += t->target[k] == target;
		room += t->name ? strlen(t->name[k]) + 1 : 24;
		if (t->target[k] == target)
			rows->integers &= t->integers[k];
	}
	MU_TRY(mu_rows_set_name(rows, t->path, NULL));
	MU_TRY(mu_rows_set_shape(rows, 2, dims));
	MU_TRY(MU_ALLOC(rows->columns, room, "names of columns"));
	MU_TRY(mu_alloc((void **)&out, t->n * rows->stride, t->path));
	rows->memory = (uint8_t *)out;
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->columns; k++)
			if (t->target[k] == target)
				out[m++] = t->values[i * t->columns + k];
	for (size_t k = 0; k < t->columns; k++) {
		snprintf(text, sizeof text, "%zu", k + 1);
		if (t->target[k] == target)
			used += (size_t)snprintf(rows->columns + used, room - used, "%s",
						 t->name ? t->name[k] : text) + 1;
	}
out:
	return st;
}

static enum mu_status open_csv(struct mu_rows_pair *pair, const struct mu_rows_config *config,
			       const char *path, const char *member)
{
	enum mu_status st = MU_OK;
	struct table t = {.path = path, .skip = config->skip};
	size_t n, targets = 0;

	(void)member;
	MU_TRY(mu_file_read_text(&t.text, &n, path));
	t.p = t.text;
	t.end = t.text + n;
	MU_TRY(read_lines(&t, pair->note));
	MU_TRY(find_targets(&t, config, pair->note));
	for (size_t k = 0; k < t.columns; k++)
		targets += t.target[k];
	if (targets == t.columns && !config->targets_alone)
		MU_FAIL(MU_ERR_USAGE, "%s: all columns are targets (label columns %s)", path,
			config->columns);
	MU_TRY(take_columns(&pair->data, &t, config->targets_alone && targets > 0));
	if (targets > 0 && !config->targets_alone)
		MU_TRY(take_columns(&pair->target, &t, true));
out:
	mu_free(t.values);
	mu_free(t.integers);
	mu_free(t.name);
	mu_free(t.text);
	return st;
}

const struct mu_rows_format mu_rows_csv = {
	.name = "csv",
	.ending = ".csv",
	.open = open_csv,
};
