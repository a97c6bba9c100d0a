/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Codes of gradients: bytes of MXNet, every codec against its formula, element by element, and that
 * nothing is lost: what was decoded and what is left are what was given.
 */
#include <muster/base.h>
#include <muster/compress.h>

#include "../lib/check.h"
#include "../lib/gc_oracle.h"

enum { N_MAX = 5000 };

static const char *const types[] = {"2bit", "1bit", "fp16", "bf16", "topk"};
enum { N_TYPES = sizeof types / sizeof *types };

/* Up to three blocks, with and without a short last one, and lengths that fill no word. */
static const size_t lengths[] = {1, 7, 16, 31, 33, 1000, 1024, 1025, 2048, 4999};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static float values[N_MAX], given[N_MAX], out[N_MAX];
static unsigned char codes[8 * N_MAX];

static void must(enum mu_status st)
{
	CHECK(st == MU_OK);
	if (st != MU_OK)
		mu_trace_print(stderr, "test_compress");
	mu_trace_clear();
}

static struct mu_coder coder_of(const char *type, double threshold, double ratio, bool back)
{
	const struct mu_compression c = {type, threshold, ratio, true};
	struct mu_coder push, pull;

	must(mu_compress_open(&c, &push, &pull));
	return back ? pull : push;
}

static float draw(uint64_t step, size_t i)
{
	const struct mu_random key = {.seed = 3, .purpose = MU_RANDOM_TEST, .sample = step};

	return mu_random_normal(&key, i);
}

/* ---- 2bit: MXNet 1.9.1's bytes for three messages, threshold 0.5 ---- */

static const unsigned char oracle_bytes[GC_ORACLE_STEPS][8] = {
	{0x00, 0x38, 0x00, 0x28, 0x0c, 0x80, 0x00, 0x00},
	{0x0b, 0xf3, 0x80, 0x28, 0x00, 0x00, 0x00, 0x00},
	{0x03, 0xf3, 0x80, 0x08, 0xac, 0x00, 0x00, 0x00},
};
static const float oracle_rest[GC_ORACLE] = {
	0.472757101f, -0.0263953805f, -0.1212814f,   0.732515574f, 0.341592193f,  0.173537254f,
	0.415858388f, 0.839072466f,   -0.630547166f, 0.199546099f, -0.226909205f, 0.432932228f,
	0.355449915f, -0.160018593f,  -0.150696456f, 0.346623898f, -0.590770245f, -0.00628149509f,
	0.229759336f, 0.105730832f,   0.370190293f};

static void test_oracle(void)
{
	const struct mu_coder two = coder_of("2bit", 0.5, 0, false);
	float rest[GC_ORACLE] = {0};

	CHECK(mu_compress_bytes(&two, GC_ORACLE) == 8);
	for (size_t step = 0; step < GC_ORACLE_STEPS; step++) {
		for (size_t i = 0; i < GC_ORACLE; i++)
			rest[i] += gc_oracle[step][i];
		memset(codes, 0xff, 8);
		mu_compress(&two, GC_ORACLE, rest, codes);
		CHECK(memcmp(codes, oracle_bytes[step], 8) == 0);
	}
	for (size_t i = 0; i < GC_ORACLE; i++)
		CHECK_NEAR(rest[i], oracle_rest[i], 1e-7);
}

/* ---- formulas ---- */

static size_t wrong_two(size_t n, float t)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		const float sent = given[i] >= t ? t : given[i] <= -t ? -t : 0;

		wrong += out[i] != sent || values[i] != given[i] - sent;
	}
	return wrong;
}

/* One block of 1bit: two means, to float32's precision. */
static size_t wrong_one(size_t from, size_t n, double t)
{
	double sum[2] = {0}, count[2] = {0};
	size_t wrong = 0;

	for (size_t i = from; i < from + n; i++) {
		sum[given[i] > t] += (double)given[i];
		count[given[i] > t]++;
	}
	for (size_t i = from; i < from + n; i++) {
		const int side = given[i] > t;

		wrong += fabs((double)out[i] - sum[side] / count[side]) < 1e-5 ? 0 : 1;
		wrong += values[i] != given[i] - out[i];
	}
	return wrong;
}

static size_t wrong_ternary(size_t from, size_t n)
{
	double sum = 0, sent = 0, count = 0, limit;
	size_t wrong = 0;

	for (size_t i = from; i < from + n; i++)
		sum += fabs((double)given[i]);
	limit = 0.7 * sum / (double)n;
	for (size_t i = from; i < from + n; i++) {
		sent += fabs((double)given[i]) >= limit ? fabs((double)given[i]) : 0;
		count += fabs((double)given[i]) >= limit;
	}
	for (size_t i = from; i < from + n; i++) {
		const double size = fabs((double)given[i]) >= limit ? sent / count : 0;

		wrong += fabs((double)out[i] - copysign(size, (double)given[i])) < 1e-5 ? 0 : 1;
		wrong += values[i] != given[i] - out[i];
	}
	return wrong;
}

/* How many come before element i when a block is sorted, the largest first? */
static size_t place_of(size_t from, size_t n, size_t i)
{
	size_t place = 0;

	for (size_t j = from; j < from + n; j++) {
		const float a = fabsf(given[j]), b = fabsf(given[i]);

		place += a > b || (a == b && j < i);
	}
	return place;
}

static size_t wrong_topk(size_t from, size_t n, double ratio)
{
	const size_t k = (size_t)ceil(ratio * (double)n);
	size_t wrong = 0;

	for (size_t i = from; i < from + n; i++) {
		const bool sent = place_of(from, n, i) < k;

		wrong += out[i] != (sent ? given[i] : 0) || values[i] != (sent ? 0 : given[i]);
	}
	return wrong;
}

static size_t wrong_half(size_t n, enum mu_dtype dtype)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		uint16_t half;
		float sent;

		mu_dtype_from_float(dtype, &half, &given[i], 1);
		mu_dtype_to_float(dtype, &sent, &half, 1);
		wrong += out[i] != sent || values[i] != given[i] - sent;
	}
	return wrong;
}

static size_t wrong_of(const char *type, size_t from, size_t n, bool back)
{
	if (strcmp(type, "2bit") == 0)
		return back ? wrong_ternary(from, n) : 0;
	if (strcmp(type, "1bit") == 0)
		return wrong_one(from, n, 0.25);
	return strcmp(type, "topk") == 0 ? wrong_topk(from, n, 0.03) : 0;
}

static void run(const struct mu_coder *coder, size_t n)
{
	const size_t nbytes = mu_compress_bytes(coder, n);

	memcpy(values, given, n * sizeof *values);
	memset(out, 0x55, sizeof out);
	memset(codes, 0xaa, nbytes + 1);
	mu_compress(coder, n, values, codes);
	CHECK(nbytes % 4 == 0 && codes[nbytes] == 0xaa);
	mu_decompress(coder, n, codes, out);
}

static void test_formula(const char *type, size_t n, bool back)
{
	const struct mu_coder coder =
		coder_of(type, strcmp(type, "1bit") == 0 ? 0.25 : 0.5, 0.03, back);
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) /* some that are equal */
		given[i] = i % 5 ? draw(n, i) : i % 2 ? 2.2f : -2.2f;
	run(&coder, n);
	if (strcmp(type, "2bit") == 0 && !back)
		wrong += wrong_two(n, 0.5f);
	if (strcmp(type, "fp16") == 0)
		wrong += wrong_half(n, MU_FLOAT16);
	if (strcmp(type, "bf16") == 0)
		wrong += wrong_half(n, MU_BFLOAT16);
	for (size_t from = 0; from < n; from += MU_COMPRESS_BLOCK)
		wrong +=
			wrong_of(type, from,
				 n - from < MU_COMPRESS_BLOCK ? n - from : MU_COMPRESS_BLOCK, back);
	if (!CHECK(wrong == 0))
		fprintf(stderr, "... %s of %zu elements%s: %zu wrong\n", type, n,
			back ? ", back" : "", wrong);
}

/* ---- error feedback: small whole numbers are summed exactly, so nothing may be lost ---- */

static void test_feedback(const char *type, double threshold, bool back)
{
	const struct mu_coder coder = coder_of(type, threshold, 0.01, back);
	static double sent[N_MAX], all[N_MAX];
	static float rest[N_MAX];
	const size_t n = 3000;
	const bool exact = strcmp(type, "2bit") == 0 ? !back : strcmp(type, "1bit") != 0;
	double worst = 0;

	memset(sent, 0, sizeof sent);
	memset(all, 0, sizeof all);
	memset(rest, 0, sizeof rest);
	for (size_t step = 0; step < 50; step++) {
		for (size_t i = 0; i < n; i++) {
			const int g = (int)((i * 7 + step * 13) % 11) - 5;

			rest[i] += (float)g;
			all[i] += g;
		}
		mu_compress(&coder, n, rest, codes);
		mu_decompress(&coder, n, codes, out);
		for (size_t i = 0; i < n; i++)
			sent[i] += (double)out[i];
	}
	for (size_t i = 0; i < n; i++) {
		const double lost = fabs(sent[i] + (double)rest[i] - all[i]);

		worst = lost > worst ? lost : worst;
	}
	if (!CHECK(exact ? worst == 0 : worst < 1e-4))
		fprintf(stderr, "... %s: %g lost\n", type, worst);
}

/* ---- values that are zero, too large, or not numbers ---- */

static void test_zero(const char *type, bool back)
{
	const struct mu_coder coder = coder_of(type, 0.5, 0.03, back);
	size_t wrong = 0;

	memset(given, 0, sizeof given);
	for (size_t i = 0; i < 100; i++)
		given[2 * i] = draw(1, i);
	run(&coder, 1500);
	for (size_t i = 0; i < 1500; i++)
		wrong += given[i] == 0 && (out[i] != 0 || values[i] != 0);
	CHECK(mu_compress_keeps_zero(&coder) == (strcmp(type, "1bit") != 0));
	CHECK(wrong == 0 || !mu_compress_keeps_zero(&coder));
}

static void test_large(void)
{
	const struct mu_coder half = coder_of("fp16", 0, 0, false);
	const struct mu_coder bfloat = coder_of("bf16", 0, 0, false);

	given[0] = 70000;
	given[1] = -1e9f;
	given[2] = 65519;
	run(&half, 3);
	CHECK(out[0] == 65504 && values[0] == 70000 - 65504);
	CHECK(out[1] == -65504 && values[1] == -1e9f + 65504);
	CHECK(out[2] == 65504 && values[2] == 15);
	run(&bfloat, 3);
	CHECK(fabsf(out[1] + 1e9f) < 4e6f && out[1] + values[1] == -1e9f);
}

/* What is not finite in the way back must reach the workers, or they would go on with old weights.
 */
static void test_not_finite(const char *type, float bad)
{
	const struct mu_coder coder = coder_of(type, 0.5, 0.01, true);

	for (size_t i = 0; i < 100; i++)
		given[i] = 1;
	given[50] = bad;
	run(&coder, 100);
	CHECK(strcmp(type, "fp16") == 0 ? isnan(out[50]) || out[50] == 65504 : !isfinite(out[50]));
}

/* ---- settings ---- */

static void refused(struct mu_compression c, const char *text)
{
	struct mu_coder push, pull;

	CHECK(mu_compress_open(&c, &push, &pull) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), text);
	mu_trace_clear();
}

static void test_settings(void)
{
	const struct mu_compression none = {.type = "none"}, two = {"2bit", 0.5, 0, false};
	struct mu_coder push, pull;

	refused((struct mu_compression){"3bit", 1, 1, false},
		"compression '3bit' is not known: none, 2bit, 1bit, fp16, bf16, topk are");
	refused((struct mu_compression){"2bit", 0, 1, false}, "threshold 0 of 2bit");
	refused((struct mu_compression){"2bit", (double)NAN, 1, false}, "above 0");
	refused((struct mu_compression){"1bit", -1, 1, false}, "threshold -1 of 1bit");
	refused((struct mu_compression){"topk", 1, 0, false}, "ratio 0 of topk");
	refused((struct mu_compression){"topk", 1, 1.5, false}, "more than 0, at most 1");
	refused((struct mu_compression){NULL, 0, 0, true}, "name a type");
	must(mu_compress_open(&none, &push, &pull));
	CHECK(!push.codec && !pull.codec && !mu_compress_is_on(&none) && mu_compress_is_on(&two));
	must(mu_compress_open(&two, &push, &pull));
	CHECK(push.codec && !pull.codec && !mu_compress_has_blocks(&push));
}

int main(void)
{
	test_oracle();
	for (size_t t = 0; t < N_TYPES; t++) {
		for (size_t i = 0; i < N_LENGTHS; i++) {
			test_formula(types[t], lengths[i], false);
			test_formula(types[t], lengths[i], true);
		}
		test_feedback(types[t], 2, false);
		test_feedback(types[t], 2, true);
		test_zero(types[t], false);
		test_zero(types[t], true);
		test_not_finite(types[t], (float)NAN);
		test_not_finite(types[t], (float)INFINITY);
	}
	test_large();
	test_settings();
	return check_failures() ? 1 : 0;
}
