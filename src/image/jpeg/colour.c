/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to pixels, row by row, with libjpeg's rounding. Smooth upsampling of chroma: 3/4 of
 * the nearest sample and 1/4 of the next, in each direction with half as many samples: both are at
 * the centres of the pixels that they stand for. Colours: JFIF 1.02 (Hamilton 1992), whose matrix
 * is ITU-R BT.601's for the full range of 8 bits.
 */
#include <string.h>

#include "jpeg.h"

enum { FRACTION = 16 };

#define FIX(x) ((int32_t)((x)*65536 + 0.5))

/*
 * Loops process whole vectors of samples; the last one contains unused samples. They are written
 * with vectors because compilers do not vectorise them: rows of small pictures are two or three
 * vectors long.
 */
enum { VECTOR = 16 };

#define VECTOR_OF(type) type __attribute__((vector_size(VECTOR * sizeof(type))))

/* ---- upsampling ---- */

/* A row of samples, or 3 near + far. */
MU_INLINE void take_row(VECTOR_OF(uint16_t) * out, const uint8_t *near, const uint8_t *far,
			bool down)
{
	VECTOR_OF(uint8_t) bytes;
	VECTOR_OF(uint16_t) row;

	memcpy(&bytes, near, sizeof bytes);
	row = __builtin_convertvector(bytes, VECTOR_OF(uint16_t));
	if (down) {
		memcpy(&bytes, far, sizeof bytes);
		row = row + row + row + __builtin_convertvector(bytes, VECTOR_OF(uint16_t));
	}
	*out = row;
}

/* The rounding term alternates, so that there is no bias. */
struct rounding {
	uint16_t left, right, shift;
};

/* A pixel pair as a word, the first sample in the lower byte. */
MU_INLINE void weigh_columns(uint8_t *out, const uint8_t *near, const uint8_t *far, bool down,
			     struct rounding r)
{
	VECTOR_OF(uint16_t) row, before, after;

	take_row(&row, near, far, down);
	take_row(&before, near - 1, far - 1, down);
	take_row(&after, near + 1, far + 1, down);
	row = row + row + row;
	before = (row + before + r.left) >> r.shift;
	after = (row + after + r.right) >> r.shift;
	row = before | after << 8;
	memcpy(out, &row, sizeof row);
}

/* Chroma of half width. The first and the last sample of the picture are their own neighbours. */
MU_INLINE void widen_across(const struct mu_jpeg_widening *w, uint8_t *out, bool down)
{
	const struct rounding r = {down ? 8 : 1, down ? 7 : 2, down ? 4 : 2};
	const uint8_t *near = w->near, *far = w->far;
	size_t from = w->from, to = w->to, last = w->w - 1;

	for (size_t i = from; i < to; i += VECTOR)
		weigh_columns(out + 2 * i, near + i, far + i, down, r);
	if (from == 0) {
		int first = down ? 3 * near[0] + far[0] : near[0];

		out[0] = (uint8_t)((4 * first + r.left) >> r.shift);
	}
	if (to > last) {
		int end = down ? 3 * near[last] + far[last] : near[last];

		out[2 * last + 1] = (uint8_t)((4 * end + r.right) >> r.shift);
	}
}

MU_LOOP static void widen_one_way(const struct mu_jpeg_widening *w, uint8_t *out)
{
	widen_across(w, out, false);
}

MU_LOOP static void widen_two_ways(const struct mu_jpeg_widening *w, uint8_t *out)
{
	widen_across(w, out, true);
}

MU_LOOP static void heighten(const struct mu_jpeg_widening *w, uint8_t *out)
{
	const uint8_t *near = w->near, *far = w->far;
	uint16_t more = w->below ? 2 : 1;

	for (size_t i = w->from, to = w->to; i < to; i += VECTOR) {
		VECTOR_OF(uint8_t) bytes;
		VECTOR_OF(uint16_t) row;

		take_row(&row, near + i, far + i, true);
		bytes = __builtin_convertvector((row + more) >> 2, VECTOR_OF(uint8_t));
		memcpy(out + i, &bytes, sizeof bytes);
	}
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
	if (!w->smooth)
		repeat(w, out);
	else if (!w->across)
		heighten(w, out);
	else if (w->down)
		widen_two_ways(w, out);
	else
		widen_one_way(w, out);
}

/* ---- colours ---- */

/* Converts bytes in steps that compilers have instructions for. */
#define NUMBERS(bytes)                                                                             \
	__builtin_convertvector(__builtin_convertvector(bytes, VECTOR_OF(uint16_t)),               \
				VECTOR_OF(int32_t))
/* From 0 to 255. */
#define CLAMP(v) ((((v) & ~((v) >> 31)) | (255 - (v)) >> 31) & 255)

MU_INLINE uint32_t pixel_of(uint32_t red, uint32_t green, uint32_t blue)
{
	return red | green << 8 | blue << 16 | (uint32_t)255 << 24;
}

/* The two terms of green are rounded together. */
MU_INLINE void mix_colours(uint32_t *pixels, const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
	const int32_t half = 1 << (FRACTION - 1);
	VECTOR_OF(uint8_t) bytes;
	VECTOR_OF(int32_t) light, blue, red, r, g, b;

	memcpy(&bytes, y, sizeof bytes);
	light = NUMBERS(bytes);
	memcpy(&bytes, cb, sizeof bytes);
	blue = NUMBERS(bytes) - 128;
	memcpy(&bytes, cr, sizeof bytes);
	red = NUMBERS(bytes) - 128;
	r = light + ((FIX(1.40200) * red + half) >> FRACTION);
	g = light + ((half - FIX(0.34414) * blue - FIX(0.71414) * red) >> FRACTION);
	b = light + ((FIX(1.77200) * blue + half) >> FRACTION);
	r = CLAMP(r) | CLAMP(g) << 8 | CLAMP(b) << 16 | (int32_t)(255u << 24);
	memcpy(pixels, &r, sizeof r);
}

/* The last vector overlaps the one before. */
MU_LOOP static void mix_row(uint32_t *pixels, const uint8_t *y, const uint8_t *cb,
			    const uint8_t *cr, size_t n)
{
	uint32_t few[VECTOR];
	size_t i = 0;

	for (; i + VECTOR <= n; i += VECTOR)
		mix_colours(pixels + i, y + i, cb + i, cr + i);
	if (i < n && i > 0) {
		i = n - VECTOR;
		mix_colours(pixels + i, y + i, cb + i, cr + i);
	} else if (i < n) {
		mix_colours(few, y, cb, cr);
		memcpy(pixels, few, n * sizeof *few);
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
	mix_row(pixels, y, cb, cr, n);
}
