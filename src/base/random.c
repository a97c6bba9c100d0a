/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter-based random numbers: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC11 (figure 4 and table 2). A draw depends only on its key and its
 * number, so ranks and threads draw the same numbers however they divide the work.
 */
#include <muster/base.h>

#include <assert.h>
#include <math.h>

enum { ROUNDS = 10 };

/* Bit of the counter's last word that separates the blocks of mu_random_below from those of
 * mu_random_bits. */
static const uint32_t below_mark = UINT32_C(1) << 31;

void mu_random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t p0 = UINT64_C(0xD2511F53) * c0;
		uint64_t p1 = UINT64_C(0xCD9E8D57) * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += UINT32_C(0x9E3779B9);
		k1 += UINT32_C(0xBB67AE85);
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

/*
 * Different (purpose, epoch, sample, block, mark) give different counters: each has its own bits.
 */
static void set_counter(const struct mu_random *key, uint64_t block, uint32_t mark,
			uint32_t counter[4])
{
	assert(block >> 32 == 0 && key->sample >> 56 == 0 && key->purpose < 128);
	counter[0] = (uint32_t)block;
	counter[1] = key->epoch;
	counter[2] = (uint32_t)key->sample;
	counter[3] = (uint32_t)(key->sample >> 32) | key->purpose << 24 | mark;
}

static void draw_block(const struct mu_random *key, uint64_t block, uint32_t mark, uint32_t out[4])
{
	const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
	uint32_t counter[4];

	set_counter(key, block, mark, counter);
	mu_random_philox(counter, seed, out);
}

uint32_t mu_random_bits(const struct mu_random *key, uint64_t element)
{
	uint32_t words[4];

	draw_block(key, element / 4, 0, words);
	return words[element % 4];
}

float mu_random_uniform(const struct mu_random *key, uint64_t element)
{
	return (float)(mu_random_bits(key, element) >> 8) * 0x1p-24f;
}

enum { LANES = 16 }; /* blocks computed together, for vector instructions */

/* Blocks of the counters whose first words are first, first + 1, ... out: LANES blocks of four
 * words. */
MU_LOOP static void philox_lanes(const uint32_t first[4], const uint32_t key[2],
				 uint32_t *restrict out)
{
	uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
	uint32_t k0 = key[0], k1 = key[1];

	for (uint32_t i = 0; i < LANES; i++) {
		c0[i] = first[0] + i;
		c1[i] = first[1];
		c2[i] = first[2];
		c3[i] = first[3];
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < LANES; i++) {
			uint64_t p0 = UINT64_C(0xD2511F53) * c0[i];
			uint64_t p1 = UINT64_C(0xCD9E8D57) * c2[i];

			c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
			c1[i] = (uint32_t)p1;
			c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
			c3[i] = (uint32_t)p0;
		}
		k0 += UINT32_C(0x9E3779B9);
		k1 += UINT32_C(0xBB67AE85);
	}
	for (int i = 0; i < LANES; i++) {
		out[4 * i] = c0[i];
		out[4 * i + 1] = c1[i];
		out[4 * i + 2] = c2[i];
		out[4 * i + 3] = c3[i];
	}
}

void mu_random_uniforms(const struct mu_random *key, uint64_t first, size_t n, float *out)
{
	const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
	uint32_t words[4 * LANES], counter[4];

	for (size_t i = 0; i < n;) {
		const size_t skip = (first + i) % 4;
		const size_t m = 4 * LANES - skip < n - i ? 4 * LANES - skip : n - i;

		set_counter(key, (first + i) / 4, 0, counter);
		philox_lanes(counter, seed, words);
		for (size_t k = 0; k < m; k++)
			out[i + k] = (float)(words[skip + k] >> 8) * 0x1p-24f;
		i += m;
	}
}

/* Box and Muller, "A note on the generation of random normal deviates", 1958: two draws give two
 * normal numbers. */
static void make_normals(const uint32_t draws[2], float out[2])
{
	const double two_pi = 6.283185307179586;
	/* A draw in (0, 1], so that the logarithm is finite. */
	double radius = sqrt(-2 * log((draws[0] + 1.0) * 0x1p-32));
	double angle = two_pi * (draws[1] * 0x1p-32);

	out[0] = (float)(radius * cos(angle));
	out[1] = (float)(radius * sin(angle));
}

float mu_random_normal(const struct mu_random *key, uint64_t element)
{
	uint32_t words[4];
	float two[2];

	draw_block(key, element / 4, 0, words);
	make_normals(words + element % 4 / 2 * 2, two);
	return two[element % 2];
}

void mu_random_normals(const struct mu_random *key, uint64_t first, size_t n, float *out)
{
	uint32_t words[4];
	float four[4];

	for (size_t i = 0; i < n;) {
		size_t skip = (first + i) % 4, m = 4 - skip < n - i ? 4 - skip : n - i;

		draw_block(key, (first + i) / 4, 0, words);
		make_normals(words, four);
		make_normals(words + 2, four + 2);
		for (size_t k = 0; k < m; k++)
			out[i + k] = four[skip + k];
		i += m;
	}
}

uint64_t mu_random_below(const struct mu_random *key, uint64_t element, uint64_t n)
{
	const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
	uint64_t unfair;
	uint32_t words[4];

	assert(n > 0);
	/*
	 * 2^64 mod n: without that many of the lowest values all remainders are equally frequent.
	 */
	unfair = (0 - n) % n;
	draw_block(key, element, below_mark, words);
	for (;;) {
		for (int i = 0; i < 4; i += 2) {
			uint64_t x = (uint64_t)words[i] << 32 | words[i + 1];

			if (x >= unfair)
				return x % n;
		}
		mu_random_philox(words, seed, words);
	}
}

void mu_random_permutation(const struct mu_random *key, uint32_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (size_t i = n; i-- > 1;) {
		size_t j = (size_t)mu_random_below(key, i, i + 1);
		uint32_t other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
}
