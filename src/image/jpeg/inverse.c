/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse cosine transform of 16 blocks at once. Coefficient k of all blocks is contiguous, so
 * every step is one operation on 16 lanes, and only the samples are transposed at the end.
 *
 * 8 samples: Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11
 * multiplications", ICASSP 1989, figure 1 reversed. 4 and 2 samples: means of neighbours of those
 * 8, with combined factors per coefficient. All are equal to libjpeg's to the bit: 13-bit
 * constants, 2 more bits between columns and rows, round to nearest in both.
 */
#include <string.h>

#include "jpeg.h"

enum {
	LANES = MU_JPEG_LANES,
	SIDE = 8,
	FRACTION = 13, /* bits of the constants */
	BETWEEN = 2,   /* bits kept from columns to rows */
	SAMPLE_MIDDLE = 128,
	SAMPLE_MAX = 255,
	LIMIT = 16384, /* between: twice this overflows 16 bits */
	FEW_LAST = 9,  /* if only the file's first 10 coefficients are not zero, */
	FEW = 4,       /* they are in the first 4 rows and columns */
};

/* x times 2^13. */
#define FIX(x) ((uint32_t)(int32_t)((x)*8192 + ((x) < 0 ? -0.5 : 0.5)))

/* Intermediate sums may wrap around; the final sum does not overflow. */
MU_INLINE int32_t rounded(uint32_t x, int bits)
{
	return (int32_t)(x + (1u << (bits - 1))) >> bits;
}

/* In: v[k] is coefficient k, zero from `few` on. Out: v[k] is sample k. */
MU_INLINE void inverse8(uint32_t v[SIDE], int few)
{
	uint32_t c4 = few > 4 ? v[4] : 0, c5 = few > 4 ? v[5] : 0, c6 = few > 4 ? v[6] : 0,
		 c7 = few > 4 ? v[7] : 0;
	uint32_t even = (v[2] + c6) * FIX(0.541196100);
	uint32_t even2 = even - c6 * FIX(1.847759065), even3 = even + v[2] * FIX(0.765366865);
	uint32_t sum = (v[0] + c4) << FRACTION, difference = (v[0] - c4) << FRACTION;
	uint32_t e0 = sum + even3, e3 = sum - even3, e1 = difference + even2,
		 e2 = difference - even2;
	uint32_t z5 = (c7 + v[3] + c5 + v[1]) * FIX(1.175875602);
	uint32_t z1 = (c7 + v[1]) * FIX(0.899976223), z2 = (c5 + v[3]) * FIX(2.562915447);
	uint32_t z3 = z5 - (c7 + v[3]) * FIX(1.961570560), z4 = z5 - (c5 + v[1]) * FIX(0.390180644);
	uint32_t o0 = c7 * FIX(0.298631336) - z1 + z3, o1 = c5 * FIX(2.053119869) - z2 + z4;
	uint32_t o2 = v[3] * FIX(3.072711026) - z2 + z3, o3 = v[1] * FIX(1.501321110) - z1 + z4;

	v[0] = e0 + o3;
	v[7] = e0 - o3;
	v[1] = e1 + o2;
	v[6] = e1 - o2;
	v[2] = e2 + o1;
	v[5] = e2 - o1;
	v[3] = e3 + o0;
	v[4] = e3 - o0;
}

/* Twice the 4 means of two. Coefficient 4 has no effect. */
MU_INLINE void inverse4(uint32_t v[SIDE])
{
	uint32_t even = v[0] << (FRACTION + 1);
	uint32_t even2 = v[2] * FIX(1.847759065) - v[6] * FIX(0.765366865);
	uint32_t e0 = even + even2, e1 = even - even2;
	uint32_t o1 = v[1] * FIX(1.061594337) - v[3] * FIX(2.172734803) + v[5] * FIX(1.451774981) -
		      v[7] * FIX(0.211164243);
	uint32_t o0 = v[1] * FIX(2.562915447) + v[3] * FIX(0.899976223) - v[5] * FIX(0.601344887) -
		      v[7] * FIX(0.509795579);

	v[0] = e0 + o0;
	v[3] = e0 - o0;
	v[1] = e1 + o1;
	v[2] = e1 - o1;
}

/* Four times the 2 means of four. Coefficients 2, 4, 6 have no effect. */
MU_INLINE void inverse2(uint32_t v[SIDE])
{
	uint32_t even = v[0] << (FRACTION + 2);
	uint32_t odd = v[1] * FIX(3.624509785) - v[3] * FIX(1.272758580) + v[5] * FIX(0.850430095) -
		       v[7] * FIX(0.720959822);

	v[0] = even + odd;
	v[1] = even - odd;
}

MU_INLINE void inverse(uint32_t v[SIDE], int side, int few)
{
	if (side == 8)
		inverse8(v, few);
	else if (side == 4)
		inverse4(v);
	else
		inverse2(v);
}

/* Has coefficient k no effect? */
MU_INLINE bool is_unused(int k, int side)
{
	return (side == 4 && k == 4) || (side == 2 && k > 0 && k % 2 == 0);
}

/* Extra bits of the sums of `inverse`. */
MU_INLINE int surplus(int side)
{
	return FRACTION + (side == 8 ? 0 : side == 4 ? 1 : 2);
}

/* Between columns and rows. */
struct middle {
	int32_t values[SIDE][SIDE][LANES]; /* [row][column] */
	uint32_t range[LANES];             /* below 2 LIMIT if all values are small */
};

MU_INLINE void transform_columns(const struct mu_jpeg_group *group, struct middle *m, int side,
				 int few)
{
	const int16_t *restrict coefficients = group->coefficients;
	uint32_t *restrict range = m->range;

	for (int x = 0; x < few; x++) {
		int16_t quant[SIDE];

		if (is_unused(x, side))
			continue;
		for (int k = 0; k < SIDE; k++)
			quant[k] = (int16_t)group->quant[SIDE * k + x];
		for (int lane = 0; lane < LANES; lane++) {
			uint32_t v[SIDE];

#pragma GCC unroll 8
			for (int k = 0; k < SIDE; k++)
				v[k] = k < few ? (uint32_t)(int16_t)(coefficients[(SIDE * k + x) *
											  LANES +
										  lane] *
								     quant[k])
					       : 0;
			inverse(v, side, few);
#pragma GCC unroll 8
			for (int y = 0; y < side; y++) {
				int32_t value = rounded(v[y], surplus(side) - BETWEEN);

				range[lane] |= (uint32_t)(value + LIMIT);
				m->values[y][x][lane] = value;
			}
		}
	}
}

MU_INLINE uint32_t sample_of(int32_t value)
{
	value += SAMPLE_MIDDLE;
	value = value < 0 ? 0 : value;
	return (uint32_t)(value > SAMPLE_MAX ? SAMPLE_MAX : value);
}

/* Samples first to first + n - 1 as bytes of a word; the first is the lowest. */
MU_INLINE uint32_t join(const uint32_t v[SIDE], int first, int n, int side)
{
	uint32_t word = 0;

#pragma GCC unroll 4
	for (int x = 0; x < n; x++)
		word |= sample_of(rounded(v[first + x], surplus(side) + BETWEEN + 3)) << 8 * x;
	return word;
}

/* A row of each block; words of 4 samples, or of 2. */
MU_INLINE void transform_row(const struct middle *m, int y, uint32_t *restrict words, int side,
			     int few)
{
	for (int lane = 0; lane < LANES; lane++) {
		uint32_t v[SIDE];

#pragma GCC unroll 8
		for (int k = 0; k < SIDE; k++)
			v[k] = k < few && !is_unused(k, side) ? (uint32_t)m->values[y][k][lane] : 0;
		inverse(v, side, few);
		if (side == 8) {
			words[2 * lane] = join(v, 0, 4, side);
			words[2 * lane + 1] = join(v, 4, 4, side);
		} else {
			words[lane] = join(v, 0, side, side);
		}
	}
}

/* Row y of all blocks, side by side. */
MU_INLINE void put_row(const struct mu_jpeg_group *group, int y, const uint32_t *words, int side)
{
	uint8_t *out = group->out + (size_t)y * group->stride;

	if (side > 2)
		memcpy(out, words, (size_t)(LANES * side));
	for (int lane = 0; side == 2 && lane < LANES; lane++) {
		out[2 * lane] = (uint8_t)words[lane];
		out[2 * lane + 1] = (uint8_t)(words[lane] >> 8);
	}
}

/* All rows, each block at its place. */
MU_INLINE void put_blocks(const struct mu_jpeg_group *group, uint32_t (*words)[2 * LANES], int side)
{
	for (int lane = 0; lane < LANES; lane++) {
		uint8_t *out = group->places[lane];

		for (int y = 0; out && y < side; y++, out += group->stride)
			memcpy(out, &words[y][side == 8 ? 2 * lane : lane], (size_t)side);
	}
}

MU_INLINE void transform_rows(const struct mu_jpeg_group *group, const struct middle *m, int side,
			      int few)
{
	uint32_t words[SIDE][2 * LANES];

	for (int y = 0; y < side; y++) {
		transform_row(m, y, words[y], side, few);
		if (!group->places)
			put_row(group, y, words[y], side);
	}
	if (group->places)
		put_blocks(group, words, side);
}

MU_LOOP static void transform8(const struct mu_jpeg_group *group, struct middle *m)
{
	transform_columns(group, m, 8, SIDE);
	transform_rows(group, m, 8, SIDE);
}

MU_LOOP static void transform8_few(const struct mu_jpeg_group *group, struct middle *m)
{
	transform_columns(group, m, 8, FEW);
	transform_rows(group, m, 8, FEW);
}

MU_LOOP static void transform4(const struct mu_jpeg_group *group, struct middle *m)
{
	transform_columns(group, m, 4, SIDE);
	transform_rows(group, m, 4, SIDE);
}

MU_LOOP static void transform2(const struct mu_jpeg_group *group, struct middle *m)
{
	transform_columns(group, m, 2, SIDE);
	transform_rows(group, m, 2, SIDE);
}

/* Coefficient 0 only, which gives one sample: an eighth of it. */
static void spread_means(const struct mu_jpeg_group *group, struct middle *m, int side)
{
	for (int lane = 0; lane < LANES; lane++) {
		int16_t value = (int16_t)(group->coefficients[lane] * group->quant[0]);
		uint32_t sample = sample_of(rounded((uint32_t)value, 3));

		uint8_t *out = group->places ? group->places[lane] : group->out + lane * side;

		m->range[lane] |= (uint32_t)(value * (1 << BETWEEN) + LIMIT);
		for (int y = 0; out && y < side; y++, out += group->stride)
			memset(out, (int)sample, (size_t)side);
	}
}

bool mu_jpeg_inverse(const struct mu_jpeg_group *group, int side)
{
	struct middle m;
	uint32_t range = 0;

	memset(m.range, 0, sizeof m.range);
	if (group->last == 0 || side == 1)
		spread_means(group, &m, side);
	else if (side == 8 && group->last <= FEW_LAST)
		transform8_few(group, &m);
	else if (side == 8)
		transform8(group, &m);
	else if (side == 4)
		transform4(group, &m);
	else
		transform2(group, &m);
	for (int lane = 0; lane < LANES; lane++)
		range |= m.range[lane];
	return range < 2 * LIMIT;
}
