/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN's graph API: see graph.h. */
#include "device/cuda/convolution/graph.h"

#include <string.h>

#include <muster/base.h>

typedef cudnnBackendDescriptor_t part;

enum { MAX_CONFIGS = 64, MAX_NOTES = 16, MAX_OPS = 8 };

const char *mu_dnn_pattern_name(enum dnn_pattern pattern)
{
	static const char *const names[] = {
		[DNN_FORWARD] = "conv",
		[DNN_FORWARD_STATISTICS] = "conv + statistics",
		[DNN_NORM_FORWARD_STATISTICS] = "norm + relu + conv + statistics",
		[DNN_DATA] = "data",
		[DNN_WEIGHTS] = "weights",
		[DNN_NORM_WEIGHTS] = "norm + relu + weights",
	};

	return names[pattern];
}

bool mu_dnn_fuses(const struct dnn_convolution *c)
{
	return c->type == CUDNN_DATA_HALF && c->groups == 1 && c->in[1] % 8 == 0 &&
	       c->filters % 8 == 0;
}

/* ---- descriptors ---- */

/* A graph while it is built. After the first error later calls have no effect. */
struct builder {
	const struct cuda_api *api;
	struct dnn_plan *plan;
	const struct dnn_request *request;
	int fit; /* engines so far */
	enum mu_status st;
	int64_t last_tensor; /* numbers count from 1, in the order of enum dnn_array */
	part ops[MAX_OPS];
	int n_ops;
};

static void check(struct builder *b, cudnnStatus_t result, const char *what)
{
	enum mu_status st = MU_OK;

	if (b->st == MU_OK && result != CUDNN_STATUS_SUCCESS)
		MU_FAIL(MU_ERR_DEVICE, "cuDNN's graph API, %s: %s", what,
			b->api->cudnnGetErrorString(result));
	return;
out:
	b->st = st;
}

static part begin(struct builder *b, cudnnBackendDescriptorType_t type)
{
	part out = NULL;

	if (b->st != MU_OK)
		return NULL;
	check(b, b->api->cudnnBackendCreateDescriptor(type, &out), "a descriptor");
	if (out && b->plan->n_parts < (int)(sizeof b->plan->parts / sizeof *b->plan->parts))
		b->plan->parts[b->plan->n_parts++] = out;
	return out;
}

static void set(struct builder *b, part d, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
	if (b->st == MU_OK)
		check(b, b->api->cudnnBackendSetAttribute(d, name, type, n, values), "a setting");
}

static void set_part(struct builder *b, part d, cudnnBackendAttributeName_t name, part value)
{
	set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void end(struct builder *b, part d, const char *what)
{
	if (b->st == MU_OK)
		check(b, b->api->cudnnBackendFinalize(d), what);
}

static void add_op(struct builder *b, part op, const char *what)
{
	end(b, op, what);
	b->ops[b->n_ops++] = op;
}

/* ---- tensors ---- */

/* (n, c, h, w), channels last; computed: it stays inside the kernel. */
static part tensor(struct builder *b, cudnnDataType_t type, const int64_t *sizes, bool computed)
{
	const int64_t strides[] = {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3],
				   sizes[1]};
	const int64_t alignment = 16, number = ++b->last_tensor;
	part t = begin(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	set(b, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(b, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes);
	set(b, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
	set(b, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
	set(b, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	set(b, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &computed);
	end(b, t, "a tensor");
	return t;
}

static part per_channel(struct builder *b, cudnnDataType_t type, int64_t channels)
{
	return tensor(b, type, (const int64_t[]){1, channels, 1, 1}, false);
}

/* ---- operations ---- */

static part convolution(struct builder *b, const struct dnn_convolution *c)
{
	const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const int64_t dims = 2;
	part d = begin(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	set(b, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
	set(b, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	set(b, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilate);
	set(b, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
	set(b, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->pad);
	set(b, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->pad);
	set(b, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
	end(b, d, "a convolution");
	return d;
}

/* The names of the three operations' attributes. */
struct phase_names {
	cudnnBackendDescriptorType_t op;
	cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

static const struct phase_names phases[MU_CONVOLUTION_PHASES] = {
	[MU_CONVOLUTION_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
	[MU_CONVOLUTION_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
				 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
				 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
				 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
				 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
				 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
				 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
	[MU_CONVOLUTION_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
				    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static void add_convolution(struct builder *b, const struct dnn_convolution *c,
			    enum mu_convolution_phase phase, part x, part w, part y)
{
	const struct phase_names *names = &phases[phase];
	const float one = 1, zero = 0;
	part shape = convolution(b, c), op = begin(b, names->op);

	set_part(b, op, names->convolution, shape);
	set_part(b, op, names->x, x);
	set_part(b, op, names->w, w);
	set_part(b, op, names->y, y);
	set(b, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &one);
	set(b, op, names->beta, CUDNN_TYPE_FLOAT, 1, &zero);
	add_op(b, op, "a convolution's operation");
}

/* y = x (mode) z, in float32; z may be NULL. */
static void add_pointwise(struct builder *b, cudnnPointwiseMode_t mode, part x, part z, part y)
{
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	part how = begin(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op;

	set(b, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	set(b, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	end(b, how, "a pointwise operation");
	op = begin(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	set_part(b, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	set_part(b, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (z)
		set_part(b, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, z);
	set_part(b, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	add_op(b, op, "a pointwise operation");
}

static void add_statistics(struct builder *b, part y, int64_t channels)
{
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
	part sum = per_channel(b, CUDNN_DATA_FLOAT, channels);
	part squares = per_channel(b, CUDNN_DATA_FLOAT, channels);
	part op = begin(b, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);

	set(b, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
	set(b, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	set_part(b, op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y);
	set_part(b, op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
	set_part(b, op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
	add_op(b, op, "statistics");
}

/* relu(x a + b), inside the kernel. */
static part add_norm(struct builder *b, const struct dnn_convolution *c, part x)
{
	part a = per_channel(b, c->type, c->in[1]), shift = per_channel(b, c->type, c->in[1]);
	part scaled = tensor(b, CUDNN_DATA_FLOAT, c->in, true);
	part shifted = tensor(b, CUDNN_DATA_FLOAT, c->in, true);
	part out = tensor(b, c->type, c->in, true);

	add_pointwise(b, CUDNN_POINTWISE_MUL, x, a, scaled);
	add_pointwise(b, CUDNN_POINTWISE_ADD, scaled, shift, shifted);
	add_pointwise(b, CUDNN_POINTWISE_RELU_FWD, shifted, NULL, out);
	return out;
}

static int64_t out_size(const struct dnn_convolution *c, int i)
{
	return (c->in[2 + i] + 2 * c->pad[i] - c->dilate[i] * (c->kernel[i] - 1) - 1) /
		       c->stride[i] +
	       1;
}

static void add_pattern(struct builder *b, const struct dnn_convolution *c,
			enum dnn_pattern pattern)
{
	const int64_t weight[] = {c->filters, c->in[1] / c->groups, c->kernel[0], c->kernel[1]};
	const int64_t out[] = {c->in[0], c->filters, out_size(c, 0), out_size(c, 1)};
	part w = tensor(b, c->type, weight, false), y = tensor(b, c->type, out, false), x;

	switch (pattern) {
	case DNN_DATA:
		add_convolution(b, c, MU_CONVOLUTION_DATA, tensor(b, c->type, c->in, false), w, y);
		return;
	case DNN_WEIGHTS:
	case DNN_NORM_WEIGHTS:
		x = tensor(b, c->type, c->in, false);
		if (pattern == DNN_NORM_WEIGHTS)
			x = add_norm(b, c, x);
		add_convolution(b, c, MU_CONVOLUTION_WEIGHTS, x, w, y);
		return;
	default:
		x = tensor(b, c->type, c->in, false);
		if (pattern == DNN_NORM_FORWARD_STATISTICS)
			x = add_norm(b, c, x);
		add_convolution(b, c, MU_CONVOLUTION_FORWARD, x, w, y);
		if (pattern != DNN_FORWARD)
			add_statistics(b, y, c->filters);
	}
}

/* ---- choice ---- */

/* The engine of a configuration: whether it is fit, its number, whether it uses tensor cores. */
static bool is_fit(const struct cuda_api *api, const struct dnn_convolution *c, part config,
		   struct dnn_plan *out)
{
	cudnnBackendNumericalNote_t notes[MAX_NOTES];
	int64_t n = 0, count;
	part engine = NULL;
	bool fit = false;

	if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
	    CUDNN_STATUS_SUCCESS)
		return false;
	if (api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
					  &engine) != CUDNN_STATUS_SUCCESS ||
	    api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
					  CUDNN_TYPE_INT64, 1, &count,
					  &out->engine) != CUDNN_STATUS_SUCCESS ||
	    api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
					  CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &n,
					  notes) != CUDNN_STATUS_SUCCESS)
		goto out;
	fit = true;
	out->tensor_cores = false;
	for (int64_t i = 0; i < n; i++)
		switch (notes[i]) {
		case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
			out->tensor_cores = true;
			fit = fit && c->type != CUDNN_DATA_FLOAT;
			break;
		case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP: break;
		default: fit = false;
		}
out:
	api->cudnnBackendDestroyDescriptor(engine);
	return fit;
}

/* A plan of this configuration: true if cuDNN makes it within the limit. */
static bool finish(const struct cuda_api *api, const struct dnn_target *target, part config,
		   int64_t most_bytes, struct dnn_plan *out)
{
	int64_t count;
	part plan = NULL;

	if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
	    CUDNN_STATUS_SUCCESS)
		return false;
	if (api->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
					  &config) == CUDNN_STATUS_SUCCESS &&
	    (target->handle
		     ? api->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
						     CUDNN_TYPE_HANDLE, 1, &target->handle)
		     : api->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
						     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
						     &target->properties)) ==
		    CUDNN_STATUS_SUCCESS &&
	    api->cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS &&
	    api->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
					  CUDNN_TYPE_INT64, 1, &count,
					  &out->nbytes) == CUDNN_STATUS_SUCCESS &&
	    out->nbytes <= most_bytes) {
		out->plan = plan;
		return true;
	}
	api->cudnnBackendDestroyDescriptor(plan);
	return false;
}

/* The configuration that is wanted, if it is in this list of cuDNN's. An empty list is no error. */
static void choose(struct builder *b, const struct dnn_target *target,
		   const struct dnn_convolution *c, part graph, cudnnBackendHeurMode_t mode)
{
	const int wanted = b->request->engine;
	part list = begin(b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), configs[MAX_CONFIGS] = {NULL};
	const struct cuda_api *api = b->api;
	int64_t n = 0;

	set_part(b, list, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	set(b, list, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (!target->handle)
		set_part(b, list, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->properties);
	if (b->st != MU_OK || api->cudnnBackendFinalize(list) != CUDNN_STATUS_SUCCESS)
		return;
	for (int i = 0; i < MAX_CONFIGS; i++)
		if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
						      &configs[i]) != CUDNN_STATUS_SUCCESS)
			goto out;
	if (api->cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, &n,
					  configs) != CUDNN_STATUS_SUCCESS)
		goto out;
	for (int64_t i = 0; i < n && !b->plan->plan; i++)
		if (is_fit(api, c, configs[i], b->plan) &&
		    (wanted == DNN_FIRST || wanted == b->fit++))
			finish(api, target, configs[i], b->request->most_bytes, b->plan);
out:
	for (int i = 0; i < MAX_CONFIGS && configs[i]; i++)
		api->cudnnBackendDestroyDescriptor(configs[i]);
}

/* ---- the calls ---- */

enum mu_status mu_dnn_properties(const struct cuda_api *api, const char *json, part *out)
{
	struct dnn_plan none = {.plan = NULL};
	struct builder b = {.api = api, .plan = &none};

	*out = begin(&b, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	set(&b, *out, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
	    (int64_t)strlen(json) + 1, json);
	end(&b, *out, "properties of a GPU");
	return b.st;
}

enum mu_status mu_dnn_plan(const struct cuda_api *api, const struct dnn_target *target,
			   const struct dnn_convolution *c, const struct dnn_request *request,
			   struct dnn_plan *out)
{
	struct builder b = {.api = api, .plan = out, .request = request};
	part graph;

	*out = (struct dnn_plan){.plan = NULL};
	add_pattern(&b, c, request->pattern);
	graph = begin(&b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(&b, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, b.n_ops,
	    b.ops);
	if (target->handle)
		set(&b, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
		    &target->handle);
	/* A graph that cuDNN does not know is none that it can plan. */
	if (b.st == MU_OK && api->cudnnBackendFinalize(graph) == CUDNN_STATUS_SUCCESS) {
		choose(&b, target, c, graph, CUDNN_HEUR_MODE_A);
		if (!out->plan)
			choose(&b, target, c, graph, CUDNN_HEUR_MODE_FALLBACK);
	}
	if (b.st != MU_OK)
		mu_dnn_release(api, out);
	return b.st;
}

void mu_dnn_release(const struct cuda_api *api, struct dnn_plan *plan)
{
	if (plan->pack)
		api->cudnnBackendDestroyDescriptor(plan->pack);
	if (plan->plan)
		api->cudnnBackendDestroyDescriptor(plan->plan);
	while (plan->n_parts > 0)
		api->cudnnBackendDestroyDescriptor(plan->parts[--plan->n_parts]);
	*plan = (struct dnn_plan){.plan = NULL};
}
