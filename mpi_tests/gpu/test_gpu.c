/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * A GPU as a device: its memory, copies and marks, arrays that stand for the host's, and errors.
 * What it computes is tested with all other devices (test_ops, test_net, test_golden, ...).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/check.h"
#include "device/op.h"

enum { N = 1000003 };

/* The device gpu, or NULL where this build or this machine has none: said. */
static const struct mu_device_ops *find(void)
{
	char why[256];

	for (size_t d = 0; mu_device_table[d]; d++) {
		if (strcmp(mu_device_table[d]->name, "gpu") != 0)
			continue;
		if (mu_device_is_here(mu_device_table[d], why, sizeof why))
			return mu_device_table[d];
		printf("skipped: %s\n", why);
		return NULL;
	}
	printf("skipped: this build has no device gpu\n");
	return NULL;
}

/* What was started last has ended. */
static void finish(struct mu_device *gpu)
{
	uint64_t mark = 0;
	bool reached = false;

	CHECK(gpu->ops->memory->mark(gpu, &mark) == MU_OK);
	CHECK(gpu->ops->memory->reach(gpu, mark, true, &reached) == MU_OK && reached);
}

static void test_copies(struct mu_device *gpu)
{
	const struct mu_device_memory *memory = gpu->ops->memory;
	const size_t nbytes = N * sizeof(float);
	void *data = NULL, *host = NULL;
	float *plain = NULL, *pinned;

	if (!CHECK(memory->alloc(gpu, &data, nbytes, "numbers") == MU_OK) ||
	    !CHECK(memory->alloc_host(gpu, &host, nbytes, "numbers") == MU_OK) ||
	    !CHECK(MU_ALLOC(plain, N, "numbers") == MU_OK))
		return;
	pinned = host;
	memset(plain, 0xff, nbytes);
	CHECK(memory->download(gpu, plain, data, nbytes) == MU_OK);
	finish(gpu);
	for (size_t i = 0; i < N; i++)
		if (!CHECK(plain[i] == 0 && pinned[i] == 0)) /* zeroed */
			break;
	for (size_t i = 0; i < N; i++)
		pinned[i] = (float)i;
	CHECK(memory->upload(gpu, data, pinned, nbytes) == MU_OK);
	CHECK(memory->download(gpu, plain, data, nbytes) == MU_OK);
	finish(gpu);
	CHECK(memcmp(plain, pinned, nbytes) == 0);
	memory->free_host(gpu, host);
	memory->free(gpu, data);
	mu_free(plain);
}

/* Part of a feed, which is bytes of three channels; and floats. */
static void test_feed(struct mu_device *gpu)
{
	enum { SAMPLES = 2, AREA = 35, FLOATS = SAMPLES * 3 * AREA, FROM = 64 };
	const struct mu_device_memory *memory = gpu->ops->memory;
	const struct mu_pixels pixels = {.mean = {0, 123.68f, 7}, .std = {255, 1, 58.393f}};
	struct mu_tensor out = {.shape = {4, {SAMPLES, 3, 5, 7}}};
	const size_t nbytes = FLOATS * sizeof(float);
	static float got[2][FLOATS];
	struct mu_feed feed;
	unsigned char *bytes;
	void *data = NULL;

	if (!CHECK(memory->feed_open(gpu, &feed, FROM + nbytes, "samples") == MU_OK) ||
	    !CHECK(memory->alloc(gpu, &data, nbytes, "a tensor") == MU_OK))
		return;
	out.data = data;
	bytes = (unsigned char *)feed.host + FROM;
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < FLOATS; k++)
			if (i == 0)
				bytes[k] = (unsigned char)(k * 7);
			else
				((float *)(void *)bytes)[k] = (float)k / 3;
		CHECK(memory->feed_send(gpu, &feed, FROM, FROM + (i ? nbytes : FLOATS)) == MU_OK);
		CHECK(memory->feed_take(gpu, &feed) == MU_OK);
		CHECK(memory->lay(gpu, &out, (char *)feed.data + FROM, i ? NULL : &pixels) ==
		      MU_OK);
		CHECK(memory->download(gpu, got[i], data, nbytes) == MU_OK);
		finish(gpu);
	}
	for (size_t k = 0; k < FLOATS; k++) {
		const size_t c = k / AREA % 3;
		const float byte = (float)(unsigned char)(k * 7);

		if (!CHECK(got[0][k] == (byte - pixels.mean[c]) / pixels.std[c] &&
			   got[1][k] == (float)k / 3))
			break;
	}
	memory->feed_close(gpu, &feed);
	memory->free(gpu, data);
}

/* More marks than there are events for: none is forgotten. */
static void test_marks(struct mu_device *gpu)
{
	uint64_t first = 0, mark = 0;
	bool reached = false;

	CHECK(gpu->ops->memory->mark(gpu, &first) == MU_OK);
	for (int i = 0; i < 5000; i++)
		CHECK(gpu->ops->memory->mark(gpu, &mark) == MU_OK && mark > first);
	CHECK(gpu->ops->memory->reach(gpu, first, true, &reached) == MU_OK && reached);
	CHECK(gpu->ops->memory->reach(gpu, mark, true, &reached) == MU_OK && reached);
	CHECK(gpu->ops->memory->reach(gpu, first, false, &reached) == MU_OK && reached);
}

static void test_mirrors(struct mu_device *gpu)
{
	const struct mu_device_memory *memory = gpu->ops->memory;
	float *a = NULL, *b = NULL, *mirrors[3] = {NULL};

	if (!CHECK(MU_ALLOC(a, N, "numbers") == MU_OK && MU_ALLOC(b, N, "numbers") == MU_OK))
		return;
	CHECK(memory->mirror(gpu, &mirrors[0], a, N) == MU_OK);
	CHECK(memory->mirror(gpu, &mirrors[1], a, N) == MU_OK);
	CHECK(memory->mirror(gpu, &mirrors[2], b, N) == MU_OK);
	CHECK(mirrors[0] == mirrors[1] && mirrors[0] != mirrors[2]);
	memory->unmirror(gpu, mirrors[0]); /* the second user still has it */
	for (size_t i = 0; i < N; i++)
		a[i] = (float)i;
	CHECK(memory->upload(gpu, mirrors[1], a, N * sizeof *a) == MU_OK);
	CHECK(memory->download(gpu, b, mirrors[1], N * sizeof *b) == MU_OK);
	finish(gpu);
	CHECK(memcmp(a, b, N * sizeof *a) == 0);
	memory->unmirror(gpu, mirrors[1]);
	memory->unmirror(gpu, mirrors[2]);
	memory->unmirror(gpu, NULL);
	mu_free(a);
	mu_free(b);
}

/* One array of the host on two GPUs: it stays pinned while the second one copies to it. */
static void test_two(const struct mu_device_ops *ops, struct mu_device *gpu)
{
	const struct mu_device_memory *memory = ops->memory;
	struct mu_device second;
	float *a = NULL, *mirrors[2] = {NULL};
	char why[256];

	if (ops->count(why, sizeof why) < 2) {
		printf("not tested: two GPUs, for there is one\n");
		return;
	}
	if (!CHECK(MU_ALLOC(a, N, "numbers") == MU_OK) ||
	    !CHECK(mu_device_open(&second, "gpu:1", 1) == MU_OK))
		return;
	CHECK(memory->mirror(gpu, &mirrors[0], a, N) == MU_OK);
	CHECK(memory->mirror(&second, &mirrors[1], a, N) == MU_OK);
	a[N - 1] = 1;
	for (int i = 0; i < 20; i++)
		CHECK(memory->download(&second, a, mirrors[1], N * sizeof *a) == MU_OK);
	memory->unmirror(gpu, mirrors[0]);
	finish(&second);
	CHECK(a[N - 1] == 0);
	memory->unmirror(&second, mirrors[1]);
	CHECK(memory->mirror(gpu, &mirrors[0], a, N) == MU_OK); /* once more, from the start */
	memory->unmirror(gpu, mirrors[0]);
	mu_device_close(&second);
	mu_free(a);
}

static void test_errors(const struct mu_device_ops *ops, struct mu_device *gpu)
{
	struct mu_device other;
	char name[32], why[256];
	void *data = NULL;

	CHECK(gpu->ops->memory->alloc(gpu, &data, (size_t)1 << 46, "too much") == MU_ERR_MEMORY);
	CHECK_HAS(mu_trace_message(), "too much");
	mu_trace_clear();
	snprintf(name, sizeof name, "gpu:%d", ops->count(why, sizeof why));
	CHECK(mu_device_open(&other, name, 1) == MU_ERR_UNSUPPORTED);
	CHECK_HAS(mu_trace_message(), name);
	mu_trace_clear();
}

int main(void)
{
	const struct mu_device_ops *ops = find();
	struct mu_device gpu;
	char text[128];

	if (!ops)
		return CHECK_SKIPPED;
	if (!CHECK(mu_device_open(&gpu, "gpu:0", 1) == MU_OK)) {
		mu_trace_print(stderr, "gpu");
		return 1;
	}
	ops->describe(&gpu, text, sizeof text);
	printf("%s\n", text);
	test_copies(&gpu);
	test_feed(&gpu);
	test_marks(&gpu);
	test_mirrors(&gpu);
	test_two(ops, &gpu);
	test_errors(ops, &gpu);
	mu_device_close(&gpu);
	return check_failures() ? 1 : 0;
}
