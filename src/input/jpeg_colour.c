/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to pixels, row by row, with libjpeg's rounding. A smooth sample of chroma is 3/4 of
 * the nearest one and 1/4 of the next, in each direction in which there are half as many: both
 * lie at the centres of the pixels that they stand for. Colours: JFIF 1.02 (Hamilton 1992), whose
 * matrix is ITU-R BT.601's for the full range of 8 bits.
 */
#include <string.h>

#include "jpeg.h"

enum { FRACTION = 16 };

#define FIX(x) ((int32_t)((x)*65536 + 0.5))

/* ---- upsampling ---- */

MU_LOOP static void weigh_rows(uint16_t *restrict out, const uint8_t *restrict near,
			       const uint8_t *restrict far, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint16_t)(3 * near[i] + far[i]);
}

MU_LOOP static void widen_row(uint16_t *restrict out, const uint8_t *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = in[i];
}

/* in[-1] to in[n]; what is added before the shift alternates, so that no side is preferred. */
MU_LOOP static void weigh_columns(uint8_t *restrict out, const uint16_t *restrict in, size_t n,
				  const int rule[3])
{
	int left = rule[0], right = rule[1], shift = rule[2];
	const uint16_t *restrict before = in - 1;

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = (uint8_t)((3 * in[i] + before[i] + left) >> shift);
		out[2 * i + 1] = (uint8_t)((3 * in[i] + in[i + 1] + right) >> shift);
	}
}

MU_LOOP static void quarter_row(uint8_t *restrict out, const uint16_t *restrict in, size_t n,
				int more)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)((in[i] + more) >> 2);
}

static void repeat(const struct mu_jpeg_widening *w, uint8_t *out)
{
	if (!w->across) {
		memcpy(out + w->from, w->near + w->from, w->to - w->from);
		return;
	}
	for (size_t i = w->from; i < w->to; i++)
		out[2 * i] = out[2 * i + 1] = w->near[i];
}

void mu_jpeg_widen(const struct mu_jpeg_widening *w, uint8_t *out)
{
	static const int one_way[3] = {1, 2, 2}, two_ways[3] = {8, 7, 4};
	/* With a neighbour at each side; at the picture's edges the sample itself. */
	size_t from = w->from > 0 ? w->from - 1 : 0, to = w->to < w->w ? w->to + 1 : w->w;
	uint16_t *row = w->scratch + 1;

	if (!w->smooth) {
		repeat(w, out);
		return;
	}
	if (w->down)
		weigh_rows(row + from, w->near + from, w->far + from, to - from);
	else
		widen_row(row + from, w->near + from, to - from);
	if (!w->across) {
		quarter_row(out + w->from, row + w->from, w->to - w->from, w->below ? 2 : 1);
		return;
	}
	if (w->from == 0)
		row[-1] = row[0];
	if (w->to == w->w)
		row[w->w] = row[w->w - 1];
	weigh_columns(out + 2 * w->from, row + w->from, w->to - w->from,
		      w->down ? two_ways : one_way);
}

/* ---- colours ---- */

MU_INLINE uint32_t clamp(int32_t value)
{
	return (uint32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

MU_INLINE uint32_t pixel_of(uint32_t red, uint32_t green, uint32_t blue)
{
	return red | green << 8 | blue << 16 | (uint32_t)255 << 24;
}

/* The two parts of green are rounded as one. */
MU_LOOP static void mix_colours(uint32_t *restrict pixels, const uint8_t *restrict y,
				const uint8_t *restrict cb, const uint8_t *restrict cr, size_t n)
{
	const int32_t half = 1 << (FRACTION - 1);

	for (size_t i = 0; i < n; i++) {
		int32_t light = y[i], blue = cb[i] - 128, red = cr[i] - 128;
		int32_t r = light + ((FIX(1.40200) * red + half) >> FRACTION);
		int32_t g = light + ((half - FIX(0.34414) * blue - FIX(0.71414) * red) >> FRACTION);
		int32_t b = light + ((FIX(1.77200) * blue + half) >> FRACTION);

		pixels[i] = pixel_of(clamp(r), clamp(g), clamp(b));
	}
}

void mu_jpeg_grey(uint32_t *pixels, const uint8_t *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pixels[i] = pixel_of(y[i], y[i], y[i]);
}

void mu_jpeg_colour(uint32_t *pixels, const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
		    size_t n)
{
	mix_colours(pixels, y, cb, cr, n);
}
