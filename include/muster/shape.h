/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape: the sizes of a tensor, (n, c, space...): samples, channels, and up to three axes of space,
 * such as (height, width). Arrays of parameters have axes of their own. And the fields of a sample.
 *
 * A sample is a shape whose n is 0: a picture (c, h, w), a sequence (1, steps, 1). No dimensions at
 * all: not known, or not given.
 */
#ifndef MUSTER_SHAPE_H
#define MUSTER_SHAPE_H

#include <muster/base.h>

MU_BEGIN_C

#define MU_MAX_SPACE 3
#define MU_MAX_DIMS (2 + MU_MAX_SPACE)

struct mu_shape {
	int ndims;
	size_t dims[MU_MAX_DIMS];
};

/* Initialises the shape of a sample: MU_SAMPLE(3, 224, 224). */
#define MU_SAMPLE(...) \
	{1 + (int)(sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)), {0, __VA_ARGS__}}

/* Product of all dimensions. */
size_t mu_shape_n(const struct mu_shape *shape);
/* Elements of one sample; 0 without dimensions. */
size_t mu_shape_sample(const struct mu_shape *shape);
/* Channels, c; 1 without any. */
size_t mu_shape_channels(const struct mu_shape *shape);
/* Positions of one sample: the product of its axes of space, 1 without any. */
size_t mu_shape_positions(const struct mu_shape *shape);
/* Size of the axis of space `axis`, from 0; 1 if there is no such axis. */
size_t mu_shape_space(const struct mu_shape *shape, int axis);
bool mu_shape_equal(const struct mu_shape *a, const struct mu_shape *b);
/* "(64, 20, 24, 24)", of any batch, 0, "(n, 20, 24, 24)", into text; returns text. */
const char *mu_shape_text(const struct mu_shape *shape, char *text, size_t nbytes);

/* ---- samples ---- */

enum { MU_SAMPLE_TEXT = 96 }; /* bytes of a text */

/* The sizes of a sample, without n, and `separator` between them: "3,224,224". Returns text. */
const char *mu_sample_text(const struct mu_shape *sample, const char *separator, char *text,
			   size_t nbytes);
/* Parse "3,224,224": from one to MU_MAX_DIMS - 1 numbers from 1 to 99999. False: anything else. */
bool mu_sample_parse(struct mu_shape *sample, const char *text);
struct mu_shape mu_sample_sequence(size_t steps); /* (1, steps, 1) */

/* ---- fields: what a sample consists of ---- */

enum mu_field_role { MU_FIELD_INPUT, MU_FIELD_TARGET, MU_FIELD_MASK, MU_FIELD_ID };
/* What the values are. Batches hold float32, which holds integers below 2^24; bytes may stay bytes
 * until a device converts them. */
enum mu_number { MU_NUMBER_FLOAT32, MU_NUMBER_INT32, MU_NUMBER_BYTE };

struct mu_field {
	const char *name; /* "data", "label" */
	enum mu_field_role role;
	enum mu_number number;
	struct mu_shape shape; /* of one sample */
	float mean[3], std[3]; /* of bytes: values are (byte - mean) / std, per channel */
};
enum { MU_MAX_FIELDS = 4 };

/* ---- pictures ---- */

/* A sample as a picture: axes that it lacks are 1. Without dimensions: all 0. */
struct mu_picture {
	size_t c, h, w;
};
struct mu_picture mu_sample_picture(const struct mu_shape *sample);

MU_END_C

#endif
