/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN plans fused attention for GPUs that are not there: forward and backward, of the shapes of
 * transformers and of odd ones, with all keys and with those before, for heads that share keys, for
 * interleaved and split heads, in both types; in the tier quick two shapes for one GPU. cuDNN
 * compiles these kernels itself, and gives them to the driver when they are planned:
 * test_attention_plans.sh has a driver that takes all. Argument: the file of that driver.
 */
#include "config.h"

#include <muster/base.h>

#include "../lib/check.h"
#include "../lib/gpus.h"

#ifdef HAVE_CUDA
#include <dlfcn.h>

#include "device/cuda/attention/attention.h"

static const struct fused_shape shapes[] = {
	{.n = 8, .heads = 12, .kv = 12, .steps = 1024, .d = 64},  /* gpt2 */
	{.n = 2, .heads = 32, .kv = 8, .steps = 2048, .d = 128},  /* llama */
	{.n = 64, .heads = 12, .kv = 12, .steps = 1024, .d = 64}, /* gpt2, a large batch */
	{.n = 8, .heads = 12, .kv = 12, .steps = 197, .d = 64},   /* vit */
	{.n = 3, .heads = 4, .kv = 2, .steps = 77, .d = 64},
	{.n = 2, .heads = 6, .kv = 6, .steps = 129, .d = 32},
	{.n = 2, .heads = 4, .kv = 1, .steps = 5, .d = 8},
	{.n = 1, .heads = 1, .kv = 1, .steps = 2, .d = 16},
};

enum { N_SHAPES = sizeof shapes / sizeof *shapes };

struct totals {
	size_t asked, planned;
	int64_t most_bytes;
};

static void plan_one(const struct cuda_api *api, const struct dnn_target *target,
		     const struct fused_shape *s, enum fused_way way, struct totals *totals)
{
	struct dnn_plan plan;

	totals->asked++;
	if (!CHECK(mu_cuda_fused_plan(api, target, s, way, (int64_t)4 << 30, &plan) == MU_OK)) {
		mu_trace_print(stderr, "attention_plans");
		mu_trace_clear();
		return;
	}
	if (CHECK(plan.plan)) {
		totals->planned++;
		if (plan.nbytes > totals->most_bytes)
			totals->most_bytes = plan.nbytes;
		/* gradients of the scores are kept, for a product of a fixed order */
		CHECK(way == FUSED_FORWARD ||
		      plan.nbytes >= 2 * s->n * s->heads * s->steps * s->steps);
	} else {
		fprintf(stderr, "%s: %d heads, %d of keys, of %d, %d steps, causal %d, split %d\n",
			way == FUSED_FORWARD ? "forward" : "backward", (int)s->heads, (int)s->kv,
			(int)s->d, (int)s->steps, s->causal, s->split);
	}
	mu_dnn_release(api, &plan);
}

static void plan_all(const struct cuda_api *api, const struct gpu *gpu, enum fused_way way)
{
	const int n = 4 * (check_in_tier("long") ? N_SHAPES : N_SHAPES / 4);
	static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
	struct dnn_target target = {.handle = NULL};
	struct totals totals = {0};

	if (!CHECK(mu_dnn_properties(api, gpu->properties, &target.properties) == MU_OK)) {
		mu_trace_print(stderr, gpu->name);
		mu_trace_clear();
		return;
	}
	for (int i = 0; i < n; i++) {
		struct fused_shape s = shapes[i / 4];

		s.type = types[(i / 4 + i) % 2];
		s.causal = i % 2;
		s.split = i / 2 % 2;
		plan_one(api, &target, &s, way, &totals);
	}
	printf("%s, %s: %zu of %zu planned, scratch of at most %.1f MB\n", gpu->name,
	       way == FUSED_FORWARD ? "forward" : "backward", totals.planned, totals.asked,
	       (double)totals.most_bytes / 1e6);
	api->cudnnBackendDestroyDescriptor(target.properties);
}

int main(int argc, char **argv)
{
	struct cuda_api api = {.handles = {NULL}};

	if (argc != 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "usage: attention_plans DRIVER, a file\n");
		return 1;
	}
	if (mu_cuda_load_libraries(&api) != MU_OK) {
		printf("skipped: cuDNN cannot be opened\n");
		mu_trace_print(stdout, "attention_plans");
		return CHECK_SKIPPED;
	}
	if (api.cudnnGetVersion() < FUSED_LEAST_CUDNN) {
		printf("skipped: cuDNN %zu is older than 9.16\n", api.cudnnGetVersion());
		return CHECK_SKIPPED;
	}
	mu_cuda_keep_nvrtc(&api);
	printf("cuDNN %zu, %d shapes\n", api.cudnnGetVersion(), N_SHAPES);
	/* an H100 has the H200's kernels */
	for (size_t g = 0; g < (check_in_tier("full") ? N_GPUS : 1); g += 2)
		for (int way = 0; way < FUSED_WAYS; way++)
			plan_all(&api, &gpus[g], (enum fused_way)way);
	mu_cuda_unload(&api);
	return check_failures() ? 1 : 0;
}
#else
int main(void)
{
	printf("skipped: this build has no device gpu\n");
	return CHECK_SKIPPED;
}
#endif
