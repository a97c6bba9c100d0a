/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of tensors and samples. */
#include <muster/shape.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 5 }; /* of a parsed size */

static size_t product(const struct mu_shape *shape, int from)
{
	size_t n = 1;

	for (int i = from; i < shape->ndims; i++)
		n *= shape->dims[i];
	return n;
}

size_t mu_shape_n(const struct mu_shape *shape)
{
	return product(shape, 0);
}

size_t mu_shape_sample(const struct mu_shape *shape)
{
	return shape->ndims > 0 ? product(shape, 1) : 0;
}

size_t mu_shape_channels(const struct mu_shape *shape)
{
	return shape->ndims > 1 ? shape->dims[1] : 1;
}

size_t mu_shape_positions(const struct mu_shape *shape)
{
	return product(shape, 2);
}

size_t mu_shape_space(const struct mu_shape *shape, int axis)
{
	return 2 + axis < shape->ndims ? shape->dims[2 + axis] : 1;
}

bool mu_shape_equal(const struct mu_shape *a, const struct mu_shape *b)
{
	return a->ndims == b->ndims &&
	       memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof *a->dims) == 0;
}

static void join(const struct mu_shape *shape, int from, const char *separator, char *text,
		 size_t nbytes)
{
	*text = '\0';
	for (int i = from; i < shape->ndims; i++) {
		const size_t at = strlen(text);

		snprintf(text + at, nbytes - at, "%s%zu", i > from ? separator : "",
			 shape->dims[i]);
	}
}

const char *mu_shape_text(const struct mu_shape *shape, char *text, size_t nbytes)
{
	char sizes[MU_SAMPLE_TEXT + 24];
	const bool any = shape->ndims > 0 && shape->dims[0] == 0;

	join(shape, any ? 1 : 0, ", ", sizes, sizeof sizes);
	snprintf(text, nbytes, "(%s%s%s)", any ? "n" : "", any && *sizes ? ", " : "", sizes);
	return text;
}

/* ---- samples ---- */

const char *mu_sample_text(const struct mu_shape *sample, const char *separator, char *text,
			   size_t nbytes)
{
	join(sample, 1, separator, text, nbytes);
	return text;
}

bool mu_sample_parse(struct mu_shape *sample, const char *text)
{
	char *end = NULL;
	size_t n = 1;

	*sample = (struct mu_shape){.ndims = 1};
	do {
		const char *digits = text + strspn(text, " ");
		const size_t size = strtoul(digits, &end, 10);

		if (end == digits || end - digits > MAX_DIGITS || *digits == '-' || size == 0 ||
		    sample->ndims == MU_MAX_DIMS || __builtin_mul_overflow(n, size, &n))
			return false;
		sample->dims[sample->ndims++] = size;
		text = end + 1;
	} while (*end == ',');
	return *end == '\0';
}

struct mu_shape mu_sample_sequence(size_t steps)
{
	return (struct mu_shape)MU_SAMPLE(1, steps, 1);
}

struct mu_picture mu_sample_picture(const struct mu_shape *sample)
{
	if (sample->ndims == 0)
		return (struct mu_picture){0};
	return (struct mu_picture){mu_shape_channels(sample), mu_shape_space(sample, 0),
				   mu_shape_space(sample, 1)};
}
