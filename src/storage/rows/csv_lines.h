/* SPDX-License-Identifier: Apache-2.0 */
/* Private to .csv files: lines, cells and numbers. */
#ifndef MUSTER_STORAGE_CSV_LINES_H
#define MUSTER_STORAGE_CSV_LINES_H

#include <muster/base.h>

enum { MU_CSV_CELL = 64 }; /* bytes of a cell, or a name, in messages */

struct mu_csv {
	const char *path;
	char *text, *p; /* text: owned; p: what is not read yet */
	char *end;
	size_t line; /* number of the line that was read last, from 1 */
	char *row;   /* that line, without its end */
	size_t columns, n;
	char **name;             /* of each column; owned, into text; NULL: no line of names */
	float *values;           /* (n, columns); owned */
	bool *integers, *target; /* of each column; owned */
	size_t *order, targets;  /* columns that are targets, as they were named; owned */
	bool skip;
};

/* Cut the next line that is no comment off. False: there is none. */
bool mu_csv_next_line(struct mu_csv *t);
/* The cells of that line, which must be as many as `columns`; *n: how many there are. */
enum mu_status mu_csv_cut_line(const struct mu_csv *t, char **cell, size_t columns, size_t *n);
/* The number in a cell of column k; with t->skip NaN where none is. */
enum mu_status mu_csv_read_cell(struct mu_csv *t, size_t k, const char *cell, float *out);
bool mu_csv_is_blank(const char *text);
/* [+-] digits [. digits] [e [+-] digits], all of it. *whole: digits alone. */
bool mu_csv_is_number(const char *p, bool *whole);
/* Words for a number that is not there (0), or is not finite (1). */
bool mu_csv_is_word(const char *cell, int which);
/* Digits at the beginning. */
size_t mu_csv_digits(const char *p);
/* "column price" of a file with names, else "column 3"; k from 0. */
const char *mu_csv_column(const struct mu_csv *t, size_t k, char *text, size_t nbytes);

#endif
