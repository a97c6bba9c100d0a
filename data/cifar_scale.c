/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaling by a triangle filter, first along rows, then along columns. A new pixel is the mean of
 * the old ones around its centre with weights that fall to 0 at a distance of one pixel, of the
 * coarser of the two grids: D. Schumacher, "General filtered image rescaling", Graphics Gems III,
 * 1992. At the border the weights that are left are divided by their sum.
 */
#include "cifar_pack.h"

#include <math.h>

/* n old pixels of three values, `step` values apart, along a line. */
struct line {
	const float *values;
	size_t n, step;
};

/* Pixel i of `size` on the line. */
static void filter(float out[3], const struct line *line, size_t i, size_t size)
{
	float ratio = (float)line->n / (float)size, radius = ratio > 1 ? ratio : 1, sum = 0;
	float centre = ((float)i + 0.5f) * ratio - 0.5f;
	float low = ceilf(centre - radius), high = floorf(centre + radius);
	size_t from = low > 0 ? (size_t)low : 0;
	size_t to = high < (float)(line->n - 1) ? (size_t)high : line->n - 1;

	out[0] = out[1] = out[2] = 0;
	for (size_t j = from; j <= to; j++) {
		float weight = 1 - fabsf((float)j - centre) / radius;

		for (size_t c = 0; c < 3; c++)
			out[c] += weight * line->values[j * line->step + c];
		sum += weight;
	}
	for (size_t c = 0; c < 3; c++)
		out[c] /= sum;
}

enum mu_status pack_scale(uint8_t *out, size_t size, const struct pack_pixels *in)
{
	enum mu_status st = MU_OK;
	size_t side = in->w < in->h ? in->w : in->h;
	size_t top = (in->h - side) / 2, left = (in->w - side) / 2;
	float *row = NULL, *rows = NULL, pixel[3]; /* (side, 3), (side, size, 3) */

	MU_TRY(MU_ALLOC(row, side * 3, "row of an image"));
	MU_TRY(MU_ALLOC(rows, side * size * 3, "rows of an image"));
	for (size_t y = 0; y < side; y++) {
		struct line line = {row, side, 3};

		for (size_t i = 0; i < side * 3; i++)
			row[i] = in->rgb[((top + y) * in->w + left) * 3 + i];
		for (size_t x = 0; x < size; x++)
			filter(rows + (y * size + x) * 3, &line, x, size);
	}
	for (size_t x = 0; x < size; x++) {
		struct line line = {rows + x * 3, side, size * 3};

		for (size_t y = 0; y < size; y++) {
			filter(pixel, &line, y, size);
			for (size_t c = 0; c < 3; c++)
				out[(c * size + y) * size + x] = (uint8_t)lrintf(pixel[c]);
		}
	}
out:
	mu_free(row);
	mu_free(rows);
	return st;
}
