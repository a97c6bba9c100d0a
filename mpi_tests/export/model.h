/* SPDX-License-Identifier: Apache-2.0 */
/* A model of ONNX as text and arrays, read by a decoder of Protocol Buffers that shares nothing
 * with the one that writes. */
#ifndef EXPORT_MODEL_H
#define EXPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TEXT = 16384 };
struct text {
	char of[TEXT];
	size_t n;
};

struct array {
	char name[64], place[64];
	size_t ndims, dims[8], nbytes, offset, length;
	const unsigned char *raw;
	bool outside;
};

enum { ARRAYS = 64 };
struct model {
	char *bytes;
	size_t nbytes;
	struct text text;
	struct array arrays[ARRAYS];
	size_t n_arrays;
};

/* Of a file that was just written; false: a failed check. The caller frees bytes. */
bool model_read(struct model *m, FILE *file);
const struct array *model_array(const struct model *m, const char *name); /* NULL: it has none */

#endif
