/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: arrays of numbers in files, n rows of one shape and one type, read by number. A row is a
 * sample's input or its targets. A format of files is a file of this folder with one const table
 * (struct mu_rows_format) and a line in rows.c; reading, conversion and checks are here for all.
 *
 * Arrays of up to MU_ROWS_KEPT bytes are kept in memory as they are stored (bytes stay bytes), and
 * so are texts, and arrays in Fortran's order or deflated, of any size; rows of other larger ones
 * are read from the file, by any thread. Values become float32: an integer that
 * float32 does not hold, NaN and infinity are MU_ERR_FORMAT with file, sample and element. Not
 * collective.
 */
#ifndef MUSTER_STORAGE_ROWS_H
#define MUSTER_STORAGE_ROWS_H

#include <stdio.h>

#include <muster/records.h>
#include <muster/shape.h>

#include "storage/file.h"

#define MU_ROWS_KEPT ((size_t)1 << 30)
#define MU_ROWS_NOTE 512

/* Types of numbers in files. */
enum mu_cell {
	MU_CELL_U1,
	MU_CELL_I1,
	MU_CELL_U2,
	MU_CELL_I2,
	MU_CELL_U4,
	MU_CELL_I4,
	MU_CELL_U8,
	MU_CELL_I8,
	MU_CELL_F2,
	MU_CELL_F4,
	MU_CELL_F8,
	MU_CELLS
};

size_t mu_cell_bytes(enum mu_cell cell);
const char *mu_cell_name(enum mu_cell cell); /* "float64" */

struct mu_rows {
	char *name;            /* for messages: "x.npy", "x.npz:y"; owned */
	size_t n;              /* rows; 0: there is no such array */
	struct mu_shape shape; /* of a row, as a sample has it */
	enum mu_cell cell;
	bool integers;       /* by type; in a text: all are written so */
	bool swapped;        /* the bytes of a number are in the other order than this machine's */
	struct mu_file file; /* rows are read from it, if memory is NULL */
	uint8_t *memory;     /* owned, aligned for its numbers */
	bool within;         /* targets that lie in the input's file, which owns all */
	size_t at, stride;   /* bytes before the first row; from a row to the next */
	char *columns;       /* the names of the numbers of a row, "a,b"; NULL: none; owned */
};

/* What a file, or two, have: inputs and targets of the same samples. */
struct mu_rows_pair {
	struct mu_rows data, target; /* target.n 0: there are none */
	char note[MU_ROWS_NOTE];     /* choices that nobody has made; "": none */
};

struct mu_rows_config {
	const char *data;    /* "x.npy", "x.npz", "x.npz:member", "x.csv" */
	const char *labels;  /* the same, of the targets; NULL: they are in `data` */
	const char *columns; /* of a text: names or numbers of the targets, "a,b"; "none"; NULL.
				Of an .npz file: names of the arrays that are targets together */
	bool validate;       /* the part of the data, where a file holds several */
	bool unlabelled;     /* data without targets are no error */
	bool targets_alone;  /* set for formats: the file has the targets of another's samples */
	bool skip;           /* cells of a text without a number: NaN, and no error yet */
	bool count;          /* only how many rows there are: a .npy file's numbers are not read */
};

/* ---- files of bytes, which keep their pixels and labels as such ---- */

enum mu_status mu_rows_open_idx(struct mu_rows_pair *pair, const char *images, const char *labels);
/* labels: bytes of labels before an image, 1 or 2; 0: found out. kind: for messages, "CIFAR-10". */
enum mu_status mu_rows_open_cifar(struct mu_rows_pair *pair, const char *path, const char *kind,
				  size_t *labels);

/* Several files as one. */
struct mu_rows_parts {
	struct mu_rows_pair *of; /* n of them; owned */
	size_t n, rows;          /* rows: of all parts that are open */
};
/* Room for n parts. Release by _close, also after an error. */
enum mu_status mu_rows_parts_new(struct mu_rows_parts *parts, size_t n);
void mu_rows_parts_close(struct mu_rows_parts *parts);
/* The part that has row *i; *i: its number there. */
const struct mu_rows_pair *mu_rows_part(const struct mu_rows_parts *parts, size_t *i);
/* The bytes of the row of the input, and of its label; both are in memory. */
const uint8_t *mu_rows_pixels(const struct mu_rows_parts *parts, size_t i, uint8_t *label);

/* ---- arrays ---- */

/* Is it a file of these formats, by its name or its first bytes? */
bool mu_rows_known(const char *path);
/* What to do with a file that is not read as data, "; it is a TIFF image: ...", for the end of a
 * message; "": nothing is known of it. */
const char *mu_rows_advice(const char *path);
/* Release by _close, also after an error. */
enum mu_status mu_rows_open(struct mu_rows_pair *pair, const struct mu_rows_config *config);
void mu_rows_close(struct mu_rows_pair *pair);
/* The bytes of row i as they are stored; *out is valid until the next call with the buffer. */
enum mu_status mu_rows_bytes(const struct mu_rows *rows, size_t i, struct mu_record_buffer *buffer,
			     const uint8_t **out);
size_t mu_rows_row_bytes(const struct mu_rows *rows);
/* Row i as float32. */
enum mu_status mu_rows_read(const struct mu_rows *rows, size_t i, struct mu_record_buffer *buffer,
			    float *out);
/* "x.npy, sample 3" into text; returns text. */
const char *mu_rows_where(const struct mu_rows *rows, size_t i, char *text, size_t nbytes);

/* The beginning of a .npy file of float32 whose numbers follow. False: errno says what is wrong. */
bool mu_rows_begin_npy(FILE *stream, const struct mu_shape *shape);
/* Was the file written after it? */
bool mu_rows_is_written_npy(const char *path);

/* ---- for formats ---- */

struct mu_rows_format {
	const char *ending; /* of names */
	const char *magic;  /* first bytes of all files; NULL: any */
	bool members;       /* names such as "file:member" */
	/* Opens the input, and the targets if `config` has no other file for them. member: after
	 * the colon; NULL. */
	enum mu_status (*open)(struct mu_rows_pair *pair, const struct mu_rows_config *config,
			       const char *path, const char *member);
};

extern const struct mu_rows_format mu_rows_csv;
extern const struct mu_rows_format mu_rows_npy;
extern const struct mu_rows_format mu_rows_npz;

/* A run of bytes that holds a file in .npy's format: all of a file, or a part of it. */
struct mu_rows_piece {
	struct mu_file *file; /* NULL: memory */
	uint8_t *memory;      /* n bytes; owned by the array after a success */
	size_t at, n;         /* in the file */
	bool count;           /* as in struct mu_rows_config */
};

/* Sets rows from a part, whose file it takes over (and sets it to none) if rows stay there. */
enum mu_status mu_rows_from_npy(struct mu_rows *rows, struct mu_rows_piece *part);
/* Turn the bytes of n numbers round. */
void mu_rows_swap(uint8_t *bytes, size_t n, size_t width);
enum mu_status mu_rows_set_name(struct mu_rows *rows, const char *path, const char *member);
/* The shape (n, ...) of an array becomes n and the shape of a row. Errors: no samples, too many
 * axes. Checks that all bytes can be counted. */
enum mu_status mu_rows_set_shape(struct mu_rows *rows, int ndims, const size_t *dims);

#endif
