/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, cells and numbers of .csv files. */
#include "csv_lines.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_WHOLE = 1 << 24 };

bool mu_csv_next_line(struct mu_csv *t)
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

bool mu_csv_is_blank(const char *text)
{
	return text[strspn(text, " \t")] == '\0';
}

/* Cut the cell at *p off, without quotes and blanks around it; *p: the next one, NULL after the
 * last. NULL: a quote is not closed. */
static char *next_cell(char **p)
{
	char *cell = *p + strspn(*p, " \t"), *from, *to, *stop;

	if (*cell == '"') {
		for (from = to = ++cell; *from && (*from != '"' || from[1] == '"'); from++) {
			from += *from == '"';
			*to++ = *from;
		}
		if (!*from ||
		    (from[1 + strspn(from + 1, " \t")] != ',' && !mu_csv_is_blank(from + 1)))
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

size_t mu_csv_digits(const char *p)
{
	return strspn(p, "0123456789");
}

bool mu_csv_is_number(const char *p, bool *whole)
{
	size_t n, m = 0;

	p += *p == '+' || *p == '-';
	n = mu_csv_digits(p);
	p += n;
	*whole = n > 0 && !*p;
	if (*p == '.') {
		m = mu_csv_digits(++p);
		p += m;
	}
	if (n + m == 0)
		return false;
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '+' || p[1] == '-');
		n = mu_csv_digits(p);
		p += n;
	}
	return n > 0 ? !*p : !*p && m > 0;
}

bool mu_csv_is_word(const char *cell, int which)
{
	static const char *const words[2] = {"||na|n/a|#n/a|null|none|-|?|", "|nan|inf|infinity|"};
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

const char *mu_csv_column(const struct mu_csv *t, size_t k, char *text, size_t nbytes)
{
	if (t->name)
		snprintf(text, nbytes, "column %s", t->name[k]);
	else
		snprintf(text, nbytes, "column %zu", k + 1);
	return text;
}

/* A cell that is no number. */
static enum mu_status refuse(const struct mu_csv *t, size_t k, const char *cell)
{
	enum mu_status st = MU_OK;
	const size_t comma = strcspn(cell + strspn(cell, "+-"), ",") + strspn(cell, "+-");
	bool whole;
	char column[MU_CSV_CELL + 16], rest[MU_CSV_CELL];

	mu_csv_column(t, k, column, sizeof column);
	snprintf(rest, sizeof rest, "%.*s", (int)comma, cell);
	if (mu_csv_is_word(cell, 1))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s; all numbers must be finite: remove the line, or "
			"skip bad records",
			t->path, t->line, k + 1, column, mu_shown(cell));
	if (mu_csv_is_word(cell, 0))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is missing%s%s; a number is needed in each: fill it in, "
			"remove the line, or skip bad records",
			t->path, t->line, k + 1, column, *cell ? ": " : "", mu_shown(cell));
	if (cell[comma] == ',' && mu_csv_is_number(rest, &whole) && comma <= 4 &&
	    mu_csv_digits(cell + comma + 1) == 3)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s; a number has no comma: pandas.read_csv(FILE, "
			"thousands=',') takes it as a mark of thousands, decimal=',' as the "
			"point, and .to_csv(OTHER, index=False) writes the file again",
			t->path, t->line, k + 1, column, mu_shown(cell));
	if (cell[comma] == ',' && mu_csv_is_number(rest, &whole) &&
	    mu_csv_digits(cell + comma + 1) > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s, with a decimal comma; a point is needed: "
			"pandas.read_csv(FILE, decimal=',').to_csv(OTHER, index=False)",
			t->path, t->line, k + 1, column, mu_shown(cell));
	MU_FAIL(MU_ERR_FORMAT,
		"%s:%zu:%zu: %s is no number: \"%.40s\"; words must become numbers first, such as "
		"0 and 1",
		t->path, t->line, k + 1, column, mu_shown(cell));
out:
	return st;
}

enum mu_status mu_csv_read_cell(struct mu_csv *t, size_t k, const char *cell, float *out)
{
	enum mu_status st = MU_OK;
	char column[MU_CSV_CELL + 16];
	bool whole;
	double x;

	if (!mu_csv_is_number(cell, &whole)) {
		if (!t->skip || (!mu_csv_is_word(cell, 0) && !mu_csv_is_word(cell, 1)))
			MU_TRY(refuse(t, k, cell));
		*out = NAN;
		return MU_OK;
	}
	x = strtod(cell, NULL);
	*out = fabs(x) <= (double)FLT_MAX ? (float)x : INFINITY;
	if (isinf(*out))
		MU_FAIL(MU_ERR_FORMAT, "%s:%zu:%zu: %s is %.40s, which float32 does not hold",
			t->path, t->line, k + 1, mu_csv_column(t, k, column, sizeof column), cell);
	if (whole && fabs(x) > LAST_WHOLE && ((double)*out != x || fabs(x) >= 0x1p53))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu:%zu: %s is %.40s, an integer that float32 does not hold: scale it, "
			"or write it with a decimal point, to have it rounded",
			t->path, t->line, k + 1, mu_csv_column(t, k, column, sizeof column), cell);
	t->integers[k] &= whole;
out:
	return st;
}

enum mu_status mu_csv_cut_line(const struct mu_csv *t, char **cell, size_t columns, size_t *n)
{
	enum mu_status st = MU_OK;

	*n = 0;
	for (char *p = t->row; p; (*n)++) {
		char *next = next_cell(&p);

		if (!next)
			MU_FAIL(MU_ERR_FORMAT, "%s:%zu:%zu: a quote (\") is not closed", t->path,
				t->line, *n + 1);
		if (*n < columns)
			cell[*n] = next;
	}
	if (*n != columns && mu_csv_is_blank(t->row))
		MU_FAIL(MU_ERR_FORMAT, "%s:%zu: is empty, and lines follow: remove it", t->path,
			t->line);
	if (*n != columns)
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%zu: has %zu column%s, and the first line has %zu: all lines need as "
			"many",
			t->path, t->line, *n, MU_S(*n), columns);
out:
	return st;
}
