/* SPDX-License-Identifier: Apache-2.0 */
/* See rig.h. "test_kernels races": few cases, for ThreadSanitizer; "all": every shape with every
 * number of blocks. */
#include "rig.h"

#include "block.h"

enum { THREADS = 256, MAX_ARRAYS = 64 };

#define ENTRY(name) \
	void name(const struct cuda_##name); \
	static void run_##name(const void *p) \
	{ \
		name(*(const struct cuda_##name *)p); \
	}
CUDA_KERNELS(ENTRY)
#undef ENTRY

static struct {
	const char *name;
	void (*run)(const void *);
	void (*test)(const struct variant *v);
	size_t launches;
} kernels[] = {
#define ENTRY(name) {#name, run_##name, test_##name, 0},
	CUDA_KERNELS(ENTRY)};
#undef ENTRY

int rig_check(int ok, const char *file, int line, const char *text)
{
	return check_true(ok, file, line, text);
}

static void *arrays[MAX_ARRAYS];
static size_t n_arrays;
static uint64_t hash; /* of the results of a case */
static const char *kernel;
static const struct variant *variant;

void rig_run_rows(enum kernel_id k, const struct variant *v, size_t rows, const void *args)
{
	const unsigned blocks = rows < v->blocks ? (unsigned)rows : v->blocks;

	kernels[k].launches++;
	block_launch(kernels[k].run, args, blocks, THREADS);
}

void rig_run(enum kernel_id k, const struct variant *v, size_t n, const void *args)
{
	rig_run_rows(k, v, (n + THREADS - 1) / THREADS, args);
}

static size_t width_of(int type)
{
	return type == CUDA_FLOAT32 ? 4 : 2;
}

void *rig_bytes(size_t nbytes, int value)
{
	void *p = NULL;

	if (n_arrays == MAX_ARRAYS || posix_memalign(&p, 64, nbytes) != 0)
		abort();
	memset(p, value, nbytes);
	return arrays[n_arrays++] = p;
}

void *rig_numbers_at(int type, size_t n, unsigned seed, size_t by)
{
	char *p = (char *)rig_bytes((by + n) * width_of(type), 0xee) + by * width_of(type);

	for (size_t i = 0; i < n; i++) {
		uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u ^ (seed + 1) * 0xD1B54A32D192ED03u;

		x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
		rig_set(p, type, i, (double)(x >> 40) / (1 << 22) - 2);
	}
	return p;
}

void *rig_numbers(int type, size_t n, unsigned seed)
{
	return rig_numbers_at(type, n, seed, 0);
}

float *rig_floats(size_t n, unsigned seed)
{
	return rig_numbers(CUDA_FLOAT32, n, seed);
}

void *rig_copy(const void *of, int type, size_t n)
{
	return memcpy(rig_bytes(n * width_of(type), 0), of, n * width_of(type));
}

double rig_at(const void *p, int type, size_t i)
{
	float v;

	mu_dtype_to_float((enum mu_dtype)type, &v, (const char *)p + i * width_of(type), 1);
	return (double)v;
}

void rig_set(void *p, int type, size_t i, double v)
{
	const float x = (float)v;

	mu_dtype_from_float((enum mu_dtype)type, (char *)p + i * width_of(type), &x, 1);
}

void rig_near(const void *p, int type, size_t i, double want, double tolerance)
{
	static const double errors[] = {1e-6, 1e-3, 8e-3};
	const double is = rig_at(p, type, i);
	const unsigned char *bytes = (const unsigned char *)p + i * width_of(type);

	for (size_t k = 0; k < width_of(type); k++)
		hash = (hash ^ bytes[k]) * 0x100000001B3u;
	if (fabs(is - want) <= tolerance * errors[type] * fmax(1, fabs(want)))
		return;
	if (check_failed++ < 20)
		fprintf(stderr,
			"%s:%d: failed: %s of (%zu, %zu, %zu), type %d, way %d, %u blocks: "
			"element %zu is %.9g, not %.9g\n",
			__FILE__, __LINE__, kernel, variant->samples, variant->channels,
			variant->area, variant->type, variant->odd, variant->blocks, i, is, want);
}

void rig_expect(const void *p, int type, size_t i, double want)
{
	rig_near(p, type, i, want, 4);
}

/* Results are the same bits with any number of blocks. */
static void test(size_t k, const struct variant *of, const unsigned *blocks, size_t n_blocks)
{
	uint64_t first = 0;

	for (size_t b = 0; b < n_blocks; b++) {
		struct variant v = *of;

		v.n = v.samples * v.channels * v.area;
		v.blocks = blocks[b];
		kernel = kernels[k].name;
		variant = &v;
		hash = 0xCBF29CE484222325u;
		kernels[k].test(&v);
		while (n_arrays > 0)
			free(arrays[--n_arrays]);
		if (b == 0)
			first = hash;
		else if (!CHECK(hash == first))
			fprintf(stderr,
				"%s of (%zu, %zu, %zu), type %d, way %d: %u blocks change "
				"bits\n",
				kernel, v.samples, v.channels, v.area, v.type, v.odd, v.blocks);
	}
}

/* Sizes below eight, tails behind eights and behind blocks, channels in eights and not. */
static const struct variant shapes[] = {
	{.samples = 2, .channels = 24, .area = 183}, {.samples = 769, .channels = 8, .area = 1},
	{.samples = 1, .channels = 1, .area = 1},    {.samples = 1, .channels = 7, .area = 1},
	{.samples = 2, .channels = 4, .area = 1},    {.samples = 3, .channels = 3, .area = 1},
	{.samples = 1, .channels = 3, .area = 21},   {.samples = 2, .channels = 8, .area = 16},
	{.samples = 257, .channels = 1, .area = 1},  {.samples = 5, .channels = 3, .area = 49},
	{.samples = 1, .channels = 2, .area = 3075}, {.samples = 301, .channels = 72, .area = 1},
	{.samples = 9, .channels = 264, .area = 1},  {.samples = 3, .channels = 2048, .area = 1},
};

int main(int argc, char **argv)
{
	const bool races = argc > 1 && strcmp(argv[1], "races") == 0;
	const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
	const size_t n_shapes = races ? 3 : sizeof shapes / sizeof shapes[0];
	static const unsigned blocks[] = {3, 1, 64};

	for (size_t k = 0; k < KERNELS; k++) {
		for (size_t s = 0; s < n_shapes; s++)
			for (int way = 0; way < 3 * 2; way++) {
				struct variant v = shapes[s];

				v.type = way / 2;
				v.odd = way % 2;
				if (!races || v.type != CUDA_BFLOAT16)
					test(k, &v, blocks, races ? 1 : all ? 3 : s < 2 ? 2 : 1);
			}
		CHECK(kernels[k].launches > 0);
		printf("%s: %zu launches\n", kernels[k].name, kernels[k].launches);
	}
	return check_failures() ? 1 : 0;
}
