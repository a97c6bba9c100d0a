/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/*
 * cuDNN plans every convolution of every network, and transposed, strided, dilated and grouped ones
 * of volumes, for GPUs that are not there: forward and both gradients, alone and, where
 * convolution/graph.h says so (Hopper: exactly there), in one kernel with what stands beside them;
 * and takes the arrays of a call, up to the call. A sixteenth of the networks' in the tier quick,
 * all in full. float32 is on tensor cores, for most, exactly where TF32 is allowed. No GPU and no
 * driver is needed, cuDNN is.
 */
#include "config.h"

#include <limits.h>

#include <muster/base.h>

#include "../lib/check.h"

#ifdef HAVE_CUDA
#include "device/cuda/convolution/graph.h"
#include "../lib/gpus.h"
#include "net/layers/layer.h"
#include "zoo_table.h"

enum { BATCH = 64, MAX_SHAPES = 1024, SKIP = 16 };

static const struct {
	const char *name;
	cudnnDataType_t type;
	bool allow_tf32, plain;
} types[] = {
	{"float16", CUDNN_DATA_HALF, false, false},
	{"bfloat16", CUDNN_DATA_BFLOAT16, false, false},
	{"float32", CUDNN_DATA_FLOAT, false, true},
	{"float32 with TF32", CUDNN_DATA_FLOAT, true, true},
	{"float32 with TF32, channels last", CUDNN_DATA_FLOAT, true, false},
};

/* ---- shapes ---- */

static struct dnn_convolution shapes[MAX_SHAPES];
static bool meets_norms[MAX_SHAPES]; /* in a network that may have batch-norms */
static size_t n_shapes;

static void add_shape(const struct dnn_convolution *c, bool norms)
{
	for (size_t i = 0; i < n_shapes; i++)
		if (memcmp(&shapes[i], c, sizeof *c) == 0) {
			meets_norms[i] |= norms;
			return;
		}
	if (!CHECK(n_shapes < MAX_SHAPES))
		return;
	meets_norms[n_shapes] = norms;
	shapes[n_shapes++] = *c;
}

static void add_layer(const struct mu_net *net, const struct net_layer *layer, bool norms)
{
	const struct mu_convolution *a = layer->attr;
	struct mu_shape in = net->tensors[layer->inputs[0]].shape;
	const struct mu_window w = mu_window_of_convolution(a, &in);
	const struct dnn_convolution like = {.filters = a->filters,
					     .groups = mu_dnn_one_or(a->groups)};
	struct dnn_convolution c;

	in.dims[0] = BATCH;
	c = mu_dnn_describe(&w, &in, &like);
	add_shape(&c, norms);
}

static void find_shapes(void)
{
	for (size_t r = 0; r < zoo_n_rows; r++) {
		const struct zoo_row *row = &zoo_rows[r];
		struct mu_net_config config = {.network = row->network,
					       .classes = row->classes,
					       .num_layers = row->depth};
		const struct mu_network *network;
		struct mu_net *net = NULL;

		config.shape = zoo_shape(row);
		if (!CHECK(mu_network_find(&network, row->network) == MU_OK) ||
		    !CHECK(mu_net_new(&net, &config) == MU_OK))
			continue;
		for (int l = 0; l < net->n_layers; l++)
			if (net->layers[l].kind->op == MU_OP_CONVOLUTION)
				add_layer(net, &net->layers[l],
					  !mu_network_setting(network, "num-heads"));
		mu_net_free(net);
	}
}

/* Of volumes, each with what the others lack. A transposed one is the convolution that reads its
 * output: its forward is "data". */
static const struct dnn_convolution volumes[] = {
#define IN(...) .axes = 3, .in = {__VA_ARGS__}
#define KERNEL(k, p, s, d) \
	.kernel = {k, k, k}, .pad = {p, p, p}, .stride = {s, s, s}, .dilate = {d, d, d}
	{IN(2, 16, 32, 32, 32), .filters = 32, .groups = 1, KERNEL(3, 1, 1, 1)},
	{IN(2, 1, 64, 64, 64), .filters = 16, .groups = 1, KERNEL(7, 3, 2, 1)},
	{IN(2, 32, 16, 16, 16), .filters = 64, .groups = 1, KERNEL(2, 0, 2, 1)},
	{IN(2, 32, 16, 16, 16), .filters = 64, .groups = 1, KERNEL(1, 0, 2, 1)},
	{IN(2, 24, 15, 17, 9), .filters = 40, .groups = 1, KERNEL(3, 2, 1, 2)},
	{IN(2, 32, 16, 16, 16), .filters = 32, .groups = 4, KERNEL(3, 1, 1, 1)},
	{IN(2, 32, 16, 16, 16), .filters = 32, .groups = 32, KERNEL(3, 1, 1, 1)},
	{IN(3, 5, 7, 6, 9), .filters = 7, .groups = 1, KERNEL(3, 1, 1, 1)},
	{IN(2, 8, 12, 20, 20), .filters = 16, .groups = 1, .kernel = {1, 3, 5},
	 .pad = {0, 1, 2}, .stride = {1, 2, 1}, .dilate = {1, 1, 1}},
	{IN(2, 32, 32, 32, 32), .filters = 64, .groups = 1, KERNEL(2, 0, 2, 1)},
	{IN(2, 16, 31, 31, 31), .filters = 32, .groups = 2, KERNEL(3, 1, 2, 1)},
#undef KERNEL
#undef IN
};
enum { N_VOLUMES = sizeof volumes / sizeof *volumes };

/* ---- plans ---- */

struct totals {
	size_t asked, planned, tensor_cores;
	int64_t most_bytes;
};

/* Without a GPU only the last step fails, the execution: cuDNN takes the description of arrays. */
static void run_nowhere(const struct cuda_api *api, struct dnn_plan *plan)
{
	struct cuda_device d = {.api = *api};
	struct dnn_arrays arrays = {.scratch = (void *)(uintptr_t)4096};

	for (uintptr_t i = 0; i <= DNN_SQUARES; i++)
		arrays.of[i] = (void *)(8192 + 16 * i);
	CHECK(mu_dnn_run(&d, plan, &arrays) != MU_OK);
	CHECK_HAS(mu_trace_message(), "cudnnBackendExecute");
	CHECK(plan->pack != NULL);
	mu_trace_clear();
}

static bool is_fused(enum dnn_pattern pattern)
{
	return pattern != DNN_FORWARD && pattern != DNN_DATA && pattern != DNN_WEIGHTS;
}

/* For --conv-algo tune there are at least four engines, of volumes two, in half precision, of all
 * that the device takes: tensors of 2^31 elements are too large. */
static void plan_last(const struct cuda_api *api, const struct dnn_target *target,
		      const struct dnn_convolution *c, struct dnn_request request)
{
	struct dnn_plan plan;

	if (c->in[0] * c->in[2] * c->in[3] * (c->axes > 2 ? c->in[4] : 1) * c->filters > INT_MAX)
		return;
	request.engine = c->axes > 2 ? 1 : 3;
	CHECK(mu_dnn_plan(api, target, c, &request, &plan) == MU_OK);
	CHECK(plan.plan);
	mu_dnn_release(api, &plan);
}

static void plan_one(const struct cuda_api *api, const struct dnn_target *target,
		     const struct gpu *gpu, size_t t, const struct dnn_convolution *c,
		     enum dnn_pattern pattern, struct totals *totals)
{
	const bool fused = is_fused(pattern);
	const struct dnn_request request = {.pattern = pattern,
					    .engine = DNN_FIRST,
					    .most_bytes = (int64_t)1 << 30,
					    .allow_tf32 = types[t].allow_tf32};
	struct dnn_plan plan;

	totals->asked++;
	if (!CHECK(mu_dnn_plan(api, target, c, &request, &plan) == MU_OK)) {
		mu_trace_print(stderr, "test_plans");
		mu_trace_clear();
		return;
	}
	if (!fused && c->type != CUDNN_DATA_FLOAT)
		plan_last(api, target, c, request);
	if (plan.plan) {
		if (pattern == DNN_FORWARD_STATISTICS && totals->planned == 0)
			run_nowhere(api, &plan);
		totals->planned++;
		totals->tensor_cores += plan.tensor_cores;
		if (plan.nbytes > totals->most_bytes)
			totals->most_bytes = plan.nbytes;
	}
	if (!CHECK(!fused || mu_dnn_fuses(c) ? plan.plan != NULL
					     : !plan.plan || gpu->fuses_more))
		fprintf(stderr,
			"%s %s, %s: %d channels of %dx%dx%d, %d filters of %dx%dx%d, stride %d, "
			"pad %d,%d, groups %d\n",
			gpu->name, types[t].name, mu_dnn_pattern_name(pattern), (int)c->in[1],
			(int)c->in[2], (int)c->in[3], (int)c->in[4], (int)c->filters,
			(int)c->kernel[0], (int)c->kernel[1], (int)c->kernel[2],
			(int)c->stride[0], (int)c->pad[0], (int)c->pad[1], (int)c->groups);
	mu_dnn_release(api, &plan);
}

struct list {
	const char *name;
	const struct dnn_convolution *of;
	size_t n, step;
	const bool *norms; /* is it to be fused? NULL: yes */
	size_t most;       /* twelfths on tensor cores, at least, where TF32 is allowed */
};

static void plan_list(const struct cuda_api *api, const struct dnn_target *target,
		      const struct gpu *gpu, size_t t, const struct list *list)
{
	for (enum dnn_pattern p = 0; p < DNN_N_PATTERNS; p++) {
		struct totals totals = {0};

		for (size_t s = 0; s < list->n; s += list->step) {
			struct dnn_convolution c = list->of[s];

			if (is_fused(p) && list->norms && !list->norms[s])
				continue;
			c.type = types[t].type;
			c.plain = types[t].plain;
			plan_one(api, target, gpu, t, &c, p, &totals);
		}
		printf("%s %s, %s of %s: %zu of %zu planned, %zu on tensor cores, scratch of at "
		       "most %.1f MB\n",
		       gpu->name, types[t].name, mu_dnn_pattern_name(p), list->name,
		       totals.planned, totals.asked, totals.tensor_cores,
		       (double)totals.most_bytes / 1e6);
		if (types[t].type == CUDNN_DATA_FLOAT && !is_fused(p))
			CHECK(types[t].allow_tf32
				      ? 12 * totals.tensor_cores > totals.asked * list->most
				      : totals.tensor_cores == 0);
	}
}

static void plan_all(const struct cuda_api *api, const struct gpu *gpu, size_t t, size_t step)
{
	struct dnn_target target = {.handle = NULL};

	if (!CHECK(mu_dnn_properties(api, gpu->properties, &target.properties) == MU_OK)) {
		mu_trace_print(stderr, gpu->name);
		mu_trace_clear();
		return;
	}
	/* transformers have no batch-norms to fuse */
	plan_list(api, &target, gpu, t,
		  &(struct list){"networks", shapes, n_shapes, step, meets_norms, 8});
	plan_list(api, &target, gpu, t,
		  &(struct list){"volumes", volumes, N_VOLUMES, 1, NULL, 6});
	api->cudnnBackendDestroyDescriptor(target.properties);
}

int main(void)
{
	const size_t step = check_in_tier("long") ? 1 : check_in_tier("full") ? 4 : SKIP;
	struct cuda_api api = {.handles = {NULL}};

	if (mu_cuda_load_libraries(&api) != MU_OK) {
		printf("skipped: cuDNN cannot be opened\n");
		mu_trace_print(stdout, "test_plans");
		return CHECK_SKIPPED;
	}
	mu_cuda_keep_nvrtc(&api);
	find_shapes();
	printf("cuDNN %zu, %zu convolutions\n", api.cudnnGetVersion(), n_shapes);
	for (size_t g = 0; g < N_GPUS; g++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++)
			plan_all(&api, &gpus[g], t, step);
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
