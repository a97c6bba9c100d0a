/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 16-bit number types. Conversions have no branches on the class of a value, so that the loops
 * become vector loops. Formats: IEEE 754-2008 binary16 (5 bits of exponent, 10 of fraction);
 * bfloat16 is the upper half of a binary32.
 */
#include <string.h>

#include <muster/base.h>

static inline uint32_t bits_of(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float float_of(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

/*
 * Fraction and exponent, moved to float32's places, give a number that is too small by 2^112, also
 * for subnormal numbers; multiplication by 2^112 is exact. Infinity and NaN need all bits of the
 * exponent.
 */
static inline float from_half(uint16_t h)
{
	uint32_t magnitude = h & 0x7fffu;
	uint32_t u = bits_of(float_of(magnitude << 13) * 0x1p112f);

	u |= magnitude >= 0x7c00u ? 0x7f800000u : 0;
	return float_of(u | (uint32_t)(h & 0x8000u) << 16);
}

static inline uint16_t to_half(float x)
{
	uint32_t u = bits_of(x);
	uint32_t a = u & 0x7fffffffu;
	/* Round to nearest even: add half of the last place, less one if the place before is even,
	 * and let it carry. */
	uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - 0x38000000u) >> 13;
	/* Added to 0.5, a float's last place is that of a subnormal half: the addition rounds. */
	uint32_t subnormal = bits_of(float_of(a) + 0.5f) - 0x3f000000u;
	uint32_t h = a < 0x38800000u ? subnormal : normal;

	h = a >= 0x47800000u ? 0x7c00u : h;
	h = a > 0x7f800000u ? 0x7e00u : h;
	return (uint16_t)(h | (u >> 16 & 0x8000u));
}

static inline uint16_t to_bfloat(float x)
{
	uint32_t u = bits_of(x);
	uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;

	return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

MU_LOOP
static void halves_to_floats(float *restrict out, const uint16_t *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = from_half(in[i]);
}

MU_LOOP
static void floats_to_halves(uint16_t *restrict out, const float *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = to_half(in[i]);
}

MU_LOOP
static void bfloats_to_floats(float *restrict out, const uint16_t *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = float_of((uint32_t)in[i] << 16);
}

MU_LOOP
static void floats_to_bfloats(uint16_t *restrict out, const float *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = to_bfloat(in[i]);
}

const char *mu_dtype_name(enum mu_dtype dtype)
{
	static const char *const names[MU_DTYPE_N] = {"float32", "float16", "bfloat16"};

	return (unsigned)dtype < MU_DTYPE_N ? names[dtype] : "unknown type";
}

size_t mu_dtype_bytes(enum mu_dtype dtype)
{
	return dtype == MU_FLOAT32 ? 4 : 2;
}

void mu_dtype_to_float(enum mu_dtype dtype, float *out, const void *in, size_t n)
{
	if (dtype == MU_FLOAT16)
		halves_to_floats(out, in, n);
	else if (dtype == MU_BFLOAT16)
		bfloats_to_floats(out, in, n);
	else
		memcpy(out, in, n * sizeof *out);
}

void mu_dtype_from_float(enum mu_dtype dtype, void *out, const float *in, size_t n)
{
	if (dtype == MU_FLOAT16)
		floats_to_halves(out, in, n);
	else if (dtype == MU_BFLOAT16)
		floats_to_bfloats(out, in, n);
	else
		memcpy(out, in, n * sizeof *in);
}
