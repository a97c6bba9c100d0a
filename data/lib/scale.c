/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaling by a triangle filter, first along rows, then along columns. A new pixel is the mean of
 * the old ones around its centre with weights that fall to 0 at a distance of one pixel, of the
 * coarser of the two grids: D. Schumacher, "General filtered image rescaling", Graphics Gems III,
 * 1992. At the border the weights that are left are divided by their sum.
 */
#include "image.h"

#include <math.h>

enum { CHANNELS = 3 };

/* The old pixels that a new one is made of, and their weights. */
struct taps {
	size_t first, n;
	float *weight; /* n; part of one piece of memory */
	float sum;
};

/* Taps of `size` new pixels on a line of n old ones; *room owns the weights. */
static enum mu_status make_taps(struct taps **out, float **room, size_t n, size_t size)
{
	enum mu_status st = MU_OK;
	float ratio = (float)n / (float)size, radius = ratio > 1 ? ratio : 1;
	size_t most = 2 * (size_t)ceilf(radius) + 2;

	MU_TRY(MU_ALLOC(*out, size, "weights of a filter"));
	MU_TRY(MU_ALLOC(*room, size * most, "weights of a filter"));
	for (size_t i = 0; i < size; i++) {
		struct taps *t = &(*out)[i];
		float centre = ((float)i + 0.5f) * ratio - 0.5f;
		float low = ceilf(centre - radius), high = floorf(centre + radius);
		size_t last = high < (float)(n - 1) ? (size_t)high : n - 1;

		t->first = low > 0 ? (size_t)low : 0;
		t->n = last + 1 - t->first;
		t->weight = *room + i * most;
		for (size_t j = 0; j < t->n; j++) {
			t->weight[j] = 1 - fabsf((float)(t->first + j) - centre) / radius;
			t->sum += t->weight[j];
		}
	}
out:
	return st;
}

/* A new pixel from old ones, `step` values apart. */
static void filter(float out[CHANNELS], const struct taps *t, const float *values, size_t step)
{
	out[0] = out[1] = out[2] = 0;
	for (size_t j = 0; j < t->n; j++) {
		const float *pixel = values + (t->first + j) * step;

		for (size_t c = 0; c < CHANNELS; c++)
			out[c] += t->weight[j] * pixel[c];
	}
	for (size_t c = 0; c < CHANNELS; c++)
		out[c] /= t->sum;
}

/* The rows of the window, each scaled to `width`: (h, width, 3). */
static enum mu_status scale_rows(float *out, size_t width, const struct data_window *window,
				 const struct taps *taps)
{
	enum mu_status st = MU_OK;
	const struct data_pixels *in = window->in;
	float *row = NULL;

	MU_TRY(MU_ALLOC(row, window->w * CHANNELS, "row of an image"));
	for (size_t y = 0; y < window->h; y++) {
		const uint8_t *line =
			in->rgb + ((window->top + y) * in->w + window->left) * CHANNELS;

		for (size_t i = 0; i < window->w * CHANNELS; i++)
			row[i] = line[i];
		for (size_t x = 0; x < width; x++)
			filter(out + (y * width + x) * CHANNELS, &taps[x], row, CHANNELS);
	}
out:
	mu_free(row);
	return st;
}

enum mu_status data_scale(uint8_t *out, size_t height, size_t width,
			  const struct data_window *window)
{
	enum mu_status st = MU_OK;
	struct taps *across = NULL, *down = NULL;
	float *weights[2] = {NULL, NULL}, *rows = NULL, pixel[CHANNELS];

	MU_TRY(make_taps(&across, &weights[0], window->w, width));
	MU_TRY(make_taps(&down, &weights[1], window->h, height));
	MU_TRY(MU_ALLOC(rows, window->h * width * CHANNELS, "rows of an image"));
	MU_TRY(scale_rows(rows, width, window, across));
	for (size_t y = 0; y < height; y++) {
		for (size_t x = 0; x < width; x++) {
			filter(pixel, &down[y], rows + x * CHANNELS, width * CHANNELS);
			for (size_t c = 0; c < CHANNELS; c++)
				out[(y * width + x) * CHANNELS + c] = (uint8_t)lrintf(pixel[c]);
		}
	}
out:
	mu_free(across);
	mu_free(down);
	mu_free(weights[0]);
	mu_free(weights[1]);
	mu_free(rows);
	return st;
}
