/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2bit, 1bit and ternary: bits.h, with what the bits stand for. Sums are taken in LANES parts,
 * which are joined in order: the same bits for all instruction sets.
 */
#include <string.h>

#include "bits.h"
#include "codec.h"

#define LANES 16

/* Values, their sum and number, by lane and then together. */
struct sums {
	float low[LANES], high[LANES]; /* those not above the limit, and those above it */
	float n_high[LANES];
};

MU_LOOP
static void sum_sides(size_t n, float limit, const float *restrict values,
		      struct sums *restrict sums)
{
	for (size_t i = 0; i < n; i += LANES)
		for (size_t j = 0; j < LANES; j++) {
			const float v = values[i + j];
			const bool up = v > limit;

			sums->high[j] += up ? v : 0;
			sums->low[j] += up ? 0 : v;
			sums->n_high[j] += up ? 1.0f : 0.0f;
		}
}

/* |v|; those below the limit, and those that are not. */
MU_LOOP
static void sum_sizes(size_t n, float limit, const float *restrict values,
		      struct sums *restrict sums)
{
	for (size_t i = 0; i < n; i += LANES)
		for (size_t j = 0; j < LANES; j++) {
			const float v = values[i + j] < 0 ? -values[i + j] : values[i + j];
			const bool up = v >= limit;

			sums->high[j] += up ? v : 0;
			sums->low[j] += up ? 0 : v;
			sums->n_high[j] += up ? 1.0f : 0.0f;
		}
}

struct total {
	float low, high, n_low, n_high;
};

static struct total join(size_t n, const struct sums *sums)
{
	struct total t = {0};

	for (size_t j = 0; j < LANES; j++) {
		t.low += sums->low[j];
		t.high += sums->high[j];
		t.n_high += sums->n_high[j];
	}
	t.n_low = (float)n - t.n_high;
	return t;
}

/* Whole runs of lanes, then the last values with others that count nothing: fill. */
static struct total take_sums(size_t n, float limit, float fill, const float *values,
			      void (*sum)(size_t, float, const float *restrict,
					  struct sums *restrict))
{
	const size_t whole = n / LANES * LANES;
	struct sums sums = {0};
	float last[LANES];

	sum(whole, limit, values, &sums);
	if (whole == n)
		return join(n, &sums);
	for (size_t j = 0; j < LANES; j++)
		last[j] = whole + j < n ? values[whole + j] : fill;
	sum(LANES, limit, last, &sums);
	return join(n, &sums);
}

static float mean(float sum, float n)
{
	return n > 0 ? sum / n : 0;
}

/* ---- 2bit ---- */

static enum mu_status check_two(const struct mu_compression *c)
{
	enum mu_status st = MU_OK;

	if (!(c->threshold > 0))
		MU_FAIL(MU_ERR_USAGE, "threshold %g of 2bit compression: it must be above 0",
			c->threshold);
out:
	return st;
}

static size_t bytes_two(const struct mu_coder *coder, size_t n)
{
	(void)coder;
	return mu_bits_bytes(2, n);
}

static void encode_two(const struct mu_coder *coder, size_t n, float *restrict values,
		       unsigned char *restrict codes)
{
	mu_bits_encode_two(n, coder->threshold, coder->threshold, values, codes);
}

static void decode_two(const struct mu_coder *coder, size_t n, const unsigned char *restrict codes,
		       float *restrict out)
{
	mu_bits_decode_two(n, coder->threshold, codes, out);
}

const struct mu_codec mu_codec_2bit = {
	.name = "2bit",
	.back = &mu_codec_ternary,
	.check = check_two,
	.bytes = bytes_two,
	.encode = encode_two,
	.decode = decode_two,
};

/* ---- 1bit ---- */

static enum mu_status check_one(const struct mu_compression *c)
{
	enum mu_status st = MU_OK;

	if (!(c->threshold >= 0))
		MU_FAIL(MU_ERR_USAGE, "threshold %g of 1bit compression: it must not be below 0",
			c->threshold);
out:
	return st;
}

static size_t bytes_one(const struct mu_coder *coder, size_t n)
{
	(void)coder;
	return 2 * sizeof(float) + mu_bits_bytes(1, n);
}

static void encode_one(const struct mu_coder *coder, size_t n, float *restrict values,
		       unsigned char *restrict codes)
{
	/* What fills the last run is not above any threshold, and adds 0. */
	const struct total t = take_sums(n, coder->threshold, 0, values, sum_sides);
	const float low_high[2] = {mean(t.low, t.n_low), mean(t.high, t.n_high)};

	memcpy(codes, low_high, sizeof low_high);
	mu_bits_encode_one(n, coder->threshold, low_high, values, codes + sizeof low_high);
}

static void decode_one(const struct mu_coder *coder, size_t n, const unsigned char *restrict codes,
		       float *restrict out)
{
	float low_high[2];

	(void)coder;
	memcpy(low_high, codes, sizeof low_high);
	mu_bits_decode_one(n, low_high, codes + sizeof low_high, out);
}

const struct mu_codec mu_codec_1bit = {
	.name = "1bit",
	.blocks = true,
	.no_zero = true,
	.check = check_one,
	.bytes = bytes_one,
	.encode = encode_one,
	.decode = decode_one,
};

/* ---- ternary ---- */

#define TERNARY_LIMIT 0.7f /* of the mean size */

static size_t bytes_ternary(const struct mu_coder *coder, size_t n)
{
	(void)coder;
	return sizeof(float) + mu_bits_bytes(2, n);
}

/* A mean that is not finite is sent: it shows in all values of the block. */
static void encode_ternary(const struct mu_coder *coder, size_t n, float *restrict values,
			   unsigned char *restrict codes)
{
	const struct total all = take_sums(n, 0, 0, values, sum_sizes);
	const float size = (all.high + all.low) / (float)n, limit = TERNARY_LIMIT * size;
	const bool good = size > 0 && size <= 3.0e38f;
	/* Not less than the smallest number: zeros are not sent. */
	const struct total sent = take_sums(n, good ? limit : 1, 0, values, sum_sizes);
	const float value = good ? mean(sent.high, sent.n_high) : size;

	(void)coder;
	memcpy(codes, &value, sizeof value);
	mu_bits_encode_two(n, good ? limit : 1, value, values, codes + sizeof value);
}

static void decode_ternary(const struct mu_coder *coder, size_t n,
			   const unsigned char *restrict codes, float *restrict out)
{
	float value;

	(void)coder;
	memcpy(&value, codes, sizeof value);
	mu_bits_decode_two(n, value, codes + sizeof value, out);
}

const struct mu_codec mu_codec_ternary = {
	.name = "ternary",
	.blocks = true,
	.bytes = bytes_ternary,
	.encode = encode_ternary,
	.decode = decode_ternary,
};
