/* SPDX-License-Identifier: Apache-2.0 */
/* From the path of a pen to pixels: see digits.h. */
#include "digits.h"

#include <math.h>

/* Distance of every pixel's centre from the edge of the ink, negative inside. */
struct field {
	float at[DIGITS_SIDE][DIGITS_SIDE];
};

static const float far = 1e3f;
static const float reach = 1.5f; /* pixels around the ink in which the distance is of interest */

static int clamp_pixel(float x)
{
	return x < 0 ? 0 : x > DIGITS_SIDE - 1 ? DIGITS_SIDE - 1 : (int)x;
}

/* The line from a to b, round at both ends, as thick as the pen. */
static void draw_line(struct field *f, const struct digits_point *a, const struct digits_point *b)
{
	float dx = b->x - a->x, dy = b->y - a->y, square = dx * dx + dy * dy + 1e-9f;
	float most = (a->radius > b->radius ? a->radius : b->radius) + reach;
	int left = clamp_pixel((a->x < b->x ? a->x : b->x) - most);
	int right = clamp_pixel((a->x > b->x ? a->x : b->x) + most);
	int top = clamp_pixel((a->y < b->y ? a->y : b->y) - most);
	int bottom = clamp_pixel((a->y > b->y ? a->y : b->y) + most);

	for (int i = top; i <= bottom; i++) {
		for (int j = left; j <= right; j++) {
			float x = (float)j + 0.5f - a->x, y = (float)i + 0.5f - a->y;
			float u = (x * dx + y * dy) / square, away;

			u = u < 0 ? 0 : u > 1 ? 1 : u;
			x -= u * dx;
			y -= u * dy;
			away = sqrtf(x * x + y * y) - (a->radius + u * (b->radius - a->radius));
			f->at[i][j] = away < f->at[i][j] ? away : f->at[i][j];
		}
	}
}

static void draw_path(struct field *f, const struct digits_path *path)
{
	for (int i = 0; i < DIGITS_SIDE; i++) {
		for (int j = 0; j < DIGITS_SIDE; j++)
			f->at[i][j] = far;
	}
	for (int k = 1; k < path->n; k++) {
		if (!path->point[k].lifted)
			draw_line(f, &path->point[k - 1], &path->point[k]);
	}
}

/* From the distance to the share of each pixel that is covered; an edge is `soft` pixels wide. */
static void distance_to_ink(struct field *f, float soft)
{
	for (int i = 0; i < DIGITS_SIDE; i++) {
		for (int j = 0; j < DIGITS_SIDE; j++) {
			float ink = 0.5f - f->at[i][j] / soft;

			f->at[i][j] = ink < 0 ? 0 : ink > 1 ? 1 : ink;
		}
	}
}

static float row_mean(const struct field *f, int i, int j, float side)
{
	float left = j > 0 ? f->at[i][j - 1] : 0;
	float right = j + 1 < DIGITS_SIDE ? f->at[i][j + 1] : 0;

	return (1 - 2 * side) * f->at[i][j] + side * (left + right);
}

/* Mean of each pixel with its neighbours, across, then down. side: the weight of one neighbour */
static void blur(struct field *f, float side)
{
	struct field across;

	for (int i = 0; i < DIGITS_SIDE; i++) {
		for (int j = 0; j < DIGITS_SIDE; j++)
			across.at[i][j] = row_mean(f, i, j, side);
	}
	for (int i = 0; i < DIGITS_SIDE; i++) {
		for (int j = 0; j < DIGITS_SIDE; j++) {
			float above = i > 0 ? across.at[i - 1][j] : 0;
			float below = i + 1 < DIGITS_SIDE ? across.at[i + 1][j] : 0;

			f->at[i][j] = (1 - 2 * side) * across.at[i][j] + side * (above + below);
		}
	}
}

/* Grey values; the grain of the paper takes a little of the ink away. */
static void ink_to_bytes(const struct field *f, struct digits_draws *d, uint8_t *pixels)
{
	float full = digits_uniform(d, 200, 255), grain = digits_uniform(d, 0, 0.25f);

	for (int k = 0; k < DIGITS_PIXELS; k++) {
		float ink = f->at[k / DIGITS_SIDE][k % DIGITS_SIDE];

		if (ink > 0)
			ink *= full * (1 - digits_uniform(d, 0, grain));
		pixels[k] = (uint8_t)(ink + 0.5f);
	}
}

void digits_image(uint8_t *pixels, uint64_t seed, uint64_t sample, int label)
{
	struct digits_draws d = {
		.key = {.seed = seed, .purpose = MU_RANDOM_DIGITS, .sample = sample},
	};
	struct digits_path path;
	struct field f;

	digits_path(&path, &d, label);
	draw_path(&f, &path);
	distance_to_ink(&f, digits_uniform(&d, 1.0f, 1.8f));
	blur(&f, digits_uniform(&d, 0, 0.12f));
	ink_to_bytes(&f, &d, pixels);
}
