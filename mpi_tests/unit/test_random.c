/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Random numbers: known answers, distributions, independence of keys. */
#include <muster/base.h>

#include <stdlib.h>

#include "../lib/check.h"

/* From the file kat_vectors of Random123, the authors' own library: philox 4x32 10. */
static void test_known_answers(void)
{
	static const struct {
		uint32_t counter[4], key[2], answer[4];
	} cases[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t out[4];

		mu_random_philox(cases[i].counter, cases[i].key, out);
		CHECK(memcmp(out, cases[i].answer, sizeof out) == 0);
	}
}

static void test_uniform(void)
{
	enum { N = 100000 };
	struct mu_random key = {.seed = 1, .purpose = MU_RANDOM_TEST};
	double sum = 0, squares = 0, low = 1, high = 0;

	for (uint64_t i = 0; i < N; i++) {
		double x = mu_random_uniform(&key, i);

		sum += x;
		squares += x * x;
		low = x < low ? x : low;
		high = x > high ? x : high;
	}
	CHECK(low >= 0 && high < 1);
	CHECK(low < 0.001 && high > 0.999);
	CHECK_NEAR(sum / N, 0.5, 0.005); /* five standard errors */
	CHECK_NEAR(squares / N, 1.0 / 3, 0.005);
}

static void test_normal(void)
{
	enum { N = 100000 };
	struct mu_random key = {.seed = 2, .purpose = MU_RANDOM_TEST};
	double sum = 0, squares = 0, cubes = 0, pairs = 0, before = 0;
	int within = 0;

	for (uint64_t i = 0; i < N; i++) {
		double x = mu_random_normal(&key, i);

		CHECK(isfinite(x));
		sum += x;
		squares += x * x;
		cubes += x * x * x;
		pairs += x * before;
		within += fabs(x) < 1;
		before = x;
	}
	CHECK_NEAR(sum / N, 0, 0.016);
	CHECK_NEAR(squares / N, 1, 0.023);
	CHECK_NEAR(cubes / N, 0, 0.062);
	CHECK_NEAR(pairs / N, 0, 0.016);
	CHECK_NEAR((double)within / N, 0.682689, 0.0075);
}

/* Many at once are the same ones, from wherever they begin. */
static void test_uniforms(void)
{
	const struct mu_random key = {7, MU_RANDOM_TEST, 3, UINT64_C(1) << 40};
	static float many[300];

	for (uint64_t first = 0; first < 9; first++)
		for (size_t n = 0; n < 300; n += 1 + n / 3) {
			many[n] = -1;
			mu_random_uniforms(&key, first << 20 | first, n, many);
			for (size_t i = 0; i < n; i++)
				CHECK(many[i] ==
				      mu_random_uniform(&key, (first << 20 | first) + i));
			CHECK(many[n] == -1);
		}
}

static void test_normals(void)
{
	enum { N = 4001 };
	struct mu_random key = {.seed = 6, .purpose = MU_RANDOM_TEST, .sample = 3};
	static float many[N + 1];
	size_t wrong = 0;

	for (uint64_t first = 0; first < 9; first++) {
		size_t n = N - 10 * first;

		many[n] = 77;
		mu_random_normals(&key, first, n, many);
		for (size_t i = 0; i < n; i++)
			wrong += many[i] != mu_random_normal(&key, first + i);
		CHECK(many[n] == 77);
	}
	CHECK(wrong == 0);
}

static void test_below(void)
{
	enum { N = 70000, SIDES = 7 };
	struct mu_random key = {.seed = 3, .purpose = MU_RANDOM_TEST};
	int count[SIDES] = {0};
	uint64_t most = UINT64_C(3) << 62; /* a quarter of all draws must be drawn again */
	int upper = 0;

	for (uint64_t i = 0; i < N; i++) {
		uint64_t x = mu_random_below(&key, i, SIDES);

		if (CHECK(x < SIDES))
			count[x]++;
		x = mu_random_below(&key, i, most);
		CHECK(x < most);
		upper += x >= most / 2;
		CHECK(mu_random_below(&key, i, 1) == 0);
	}
	for (int i = 0; i < SIDES; i++)
		CHECK_NEAR(count[i], N / SIDES, 5 * sqrt((double)N / SIDES));
	/* A biased x % most would give the lower half two thirds. */
	CHECK_NEAR(upper, N / 2, 5 * sqrt(N / 4.0));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Keys that differ in one part, and elements, give different numbers; the same key gives the same.
 */
static void test_keys(void)
{
	static const struct mu_random keys[] = {
		{.seed = 5, .purpose = 1},
		{.seed = 6, .purpose = 1},
		{.seed = 5 | UINT64_C(1) << 32, .purpose = 1},
		{.seed = 5, .purpose = 2},
		{.seed = 5, .purpose = 1, .epoch = 1},
		{.seed = 5, .purpose = 1, .epoch = UINT32_C(1) << 31},
		{.seed = 5, .purpose = 1, .sample = 1},
		{.seed = 5, .purpose = 1, .sample = UINT64_C(1) << 32},
		{.seed = 5, .purpose = 1, .sample = UINT64_C(1) << 55},
		{.seed = 5, .purpose = 127},
	};
	enum { KEYS = sizeof keys / sizeof *keys, ELEMENTS = 100 };
	uint64_t all[KEYS * ELEMENTS];
	size_t n = 0, equal = 0;

	for (size_t i = 0; i < KEYS; i++) {
		for (uint64_t j = 0; j < ELEMENTS; j++) {
			uint64_t element = j < ELEMENTS / 2 ? j : (UINT64_C(1) << 34) - j;
			uint64_t x = mu_random_bits(&keys[i], element);

			CHECK(x == mu_random_bits(&keys[i], element));
			all[n++] = x << 32 | mu_random_bits(&keys[i], element ^ 1);
		}
	}
	qsort(all, n, sizeof *all, compare);
	for (size_t i = 1; i < n; i++)
		equal += all[i] == all[i - 1];
	CHECK(equal == 0);
}

static void test_permutation(void)
{
	static const size_t sizes[] = {0, 1, 2, 3, 1000};
	struct mu_random key = {.seed = 9, .purpose = MU_RANDOM_SHUFFLE};
	uint32_t order[1000];
	int first[3] = {0};

	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		size_t n = sizes[k], in_place = 0;
		bool seen[1000] = {false};

		mu_random_permutation(&key, order, n);
		for (size_t i = 0; i < n; i++) {
			if (CHECK(order[i] < n && !seen[order[i]]))
				seen[order[i]] = true;
			in_place += order[i] == i;
		}
		CHECK(n < 1000 || in_place < 10); /* one is expected */
	}
	for (uint32_t epoch = 0; epoch < 3000; epoch++) {
		key.epoch = epoch;
		mu_random_permutation(&key, order, 3);
		first[order[0]]++;
	}
	for (int i = 0; i < 3; i++)
		CHECK_NEAR(first[i], 1000, 130);
}

int main(void)
{
	test_known_answers();
	test_uniform();
	test_normal();
	test_uniforms();
	test_normals();
	test_below();
	test_keys();
	test_permutation();
	return check_failures() ? 1 : 0;
}
