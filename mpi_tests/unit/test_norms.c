/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Sums of squares: their value, and that cuts and orders change no bit. */
#include <stdlib.h>

#include <muster/optim.h>

#include "../lib/check.h"

enum { N = 16 * 512 };

/* Values of all sizes, some of them 0. */
static void fill(float *x, int range, uint64_t sample)
{
	const struct mu_random key = {.seed = 5, .purpose = MU_RANDOM_TEST, .sample = sample};

	for (size_t i = 0; i < N; i++) {
		int e = (int)mu_random_below(&key, i, (uint64_t)(2 * range + 1)) - range;

		x[i] = i % 7 == 3 ? 0 : ldexpf(mu_random_normal(&key, i), e);
	}
}

static double value_of(const float *x, size_t n)
{
	uint64_t sum[MU_NORM_WORDS] = {0};

	mu_norm_squares(sum, n, x);
	return mu_norm_value(sum);
}

/* Against a plain sum in long double. */
static void test_value(void)
{
	static const int ranges[] = {0, 4, 30, 60, 120};
	static float x[N];

	for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
		long double plain = 0;
		double value;

		fill(x, ranges[r], r);
		for (size_t i = 0; i < N; i++)
			plain += (long double)x[i] * (long double)x[i];
		value = value_of(x, N);
		CHECK_NEAR(value / (double)plain, 1, 1e-14);
	}
	memset(x, 0, sizeof x);
	CHECK(value_of(x, N) == 0);
	x[20] = 3;
	x[21] = -4;
	CHECK(value_of(x, 32) == 25);
	x[21] = 0x1p-140f; /* subnormal, far below the rest */
	CHECK(value_of(x, 32) == 9);
	x[20] = 0;
	CHECK(value_of(x, 32) == 0x1p-280);
	x[20] = 0x1p127f;
	CHECK(value_of(x, 32) == 0x1p254);
	for (size_t i = 0; i < N; i++)
		x[i] = 0x1.fffffep127f;
	CHECK_NEAR(value_of(x, N) / N, 0x1p256, 0x1p234);
	x[77] = INFINITY;
	CHECK(isnan(value_of(x, N)) && !isnan(value_of(x, 64)));
	x[77] = NAN;
	CHECK(isnan(value_of(x, N)));
}

/* Parts of n_part * 16 elements, dealt over owners, summed by each in its own order. */
static double value_of_parts(const float *x, size_t n_part, size_t n_owners)
{
	uint64_t sums[4][MU_NORM_WORDS] = {{0}};
	size_t n_parts = (N / 16 + n_part - 1) / n_part;

	for (size_t i = 0; i < n_parts; i++) {
		size_t part = i * 37 % n_parts; /* 37 divides none of the numbers of parts */
		size_t at = part * n_part * 16;

		mu_norm_squares(sums[part % n_owners], N - at < n_part * 16 ? N - at : n_part * 16,
				x + at);
	}
	for (size_t owner = 1; owner < n_owners; owner++)
		for (int i = 0; i < MU_NORM_WORDS; i++)
			sums[0][i] += sums[owner][i];
	return mu_norm_value(sums[0]);
}

static void test_cuts(void)
{
	static const size_t parts[] = {1, 3, 8, 64, 100, 511};
	static float x[N];

	for (uint64_t r = 0; r < 4; r++) {
		double whole;

		fill(x, (int)r * 20, r);
		whole = value_of(x, N);
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			for (size_t owners = 1; owners <= 4; owners++)
				CHECK(value_of_parts(x, parts[i], owners) == whole);
	}
}

/* Words that were filled by many sums carry into one another. */
static void test_carry(void)
{
	uint64_t sum[MU_NORM_WORDS] = {0};
	float x[16] = {1};
	size_t unit = 0; /* the word that 1 stands in */

	mu_norm_squares(sum, 16, x);
	while (unit < MU_NORM_WORDS && sum[unit] == 0)
		unit++;
	if (!CHECK(unit > 0 && unit + 2 < MU_NORM_WORDS && sum[unit] == 1))
		return;
	sum[unit] = 0xffffffff;
	sum[unit - 1] = (uint64_t)1 << 32;
	CHECK(mu_norm_value(sum) == 0x1p32);
	sum[unit] = UINT64_MAX - 1;
	sum[unit - 1] = (uint64_t)2 << 32;
	CHECK(mu_norm_value(sum) == 0x1p64);
}

int main(void)
{
	test_value();
	test_carry();
	test_cuts();
	return check_failures() ? 1 : 0;
}
