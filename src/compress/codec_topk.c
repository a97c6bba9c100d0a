/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topk: the bits of |r| are integers of the same order, so the k-th largest is found by halving
 * their range: passes over the block that only count.
 */
#include <math.h>
#include <string.h>

#include "codec.h"

static enum mu_status check(const struct mu_compression *c)
{
	enum mu_status st = MU_OK;

	if (!(c->ratio > 0 && c->ratio <= 1))
		MU_FAIL(MU_ERR_USAGE, "ratio %g of topk compression: more than 0, at most 1",
			c->ratio);
out:
	return st;
}

static size_t count_kept(const struct mu_coder *coder, size_t n)
{
	const double k = ceil(coder->ratio * (double)n);

	return k < 1 ? 1 : k > (double)n ? n : (size_t)k;
}

/* Places, which end at a multiple of 4 bytes. */
static size_t place_bytes(size_t k)
{
	return (k + 1) / 2 * 2 * sizeof(uint16_t);
}

static size_t bytes(const struct mu_coder *coder, size_t n)
{
	const size_t k = count_kept(coder, n);

	return place_bytes(k) + k * sizeof(float);
}

MU_LOOP
static uint32_t take_sizes(size_t n, const float *restrict values, uint32_t *restrict sizes)
{
	uint32_t all = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t u;

		memcpy(&u, &values[i], sizeof u);
		sizes[i] = u & 0x7fffffffu;
		all |= sizes[i];
	}
	return all;
}

MU_LOOP
static uint32_t count_from(size_t n, const uint32_t *restrict sizes, uint32_t least)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += sizes[i] >= least;
	return count;
}

/* The largest size that at least k have, or more. all: the bits that any has. */
static uint32_t find_limit(size_t n, const uint32_t *sizes, uint32_t all, size_t k)
{
	uint32_t limit = 0;

	for (int bit = 30; bit >= 0; bit--) {
		const uint32_t more = limit | 1u << bit;

		if (more <= all && count_from(n, sizes, more) >= k)
			limit = more;
	}
	return limit;
}

static void encode(const struct mu_coder *coder, size_t n, float *restrict values,
		   unsigned char *restrict codes)
{
	const size_t k = count_kept(coder, n);
	uint32_t sizes[MU_COMPRESS_BLOCK], limit;
	uint16_t places[MU_COMPRESS_BLOCK + 1] = {0};
	float sent[MU_COMPRESS_BLOCK];
	size_t equal, m = 0; /* equal: how many of the limit's own size are still to be sent */

	limit = find_limit(n, sizes, take_sizes(n, values, sizes), k);
	equal = k - (size_t)count_from(n, sizes, limit + 1);
	for (size_t i = 0; i < n && m < k; i++) {
		if (sizes[i] < limit || (sizes[i] == limit && equal == 0))
			continue;
		equal -= sizes[i] == limit;
		places[m] = (uint16_t)i;
		sent[m++] = values[i];
		values[i] = 0;
	}
	memcpy(codes, places, place_bytes(k));
	memcpy(codes + place_bytes(k), sent, k * sizeof *sent);
}

static void decode(const struct mu_coder *coder, size_t n, const unsigned char *restrict codes,
		   float *restrict out)
{
	const size_t k = count_kept(coder, n);
	uint16_t places[MU_COMPRESS_BLOCK];
	float sent[MU_COMPRESS_BLOCK];

	memcpy(places, codes, k * sizeof *places);
	memcpy(sent, codes + place_bytes(k), k * sizeof *sent);
	memset(out, 0, n * sizeof *out);
	for (size_t i = 0; i < k; i++)
		out[places[i]] = sent[i];
}

const struct mu_codec mu_codec_topk = {
	.name = "topk",
	.blocks = true,
	.check = check,
	.bytes = bytes,
	.encode = encode,
	.decode = decode,
};
