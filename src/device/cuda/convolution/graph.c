/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN's graph API: see graph.h. */
#include "device/cuda/convolution/graph.h"

#include <string.h>

#include <muster/base.h>

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

struct dnn_convolution mu_dnn_describe(const struct mu_window *w, const struct mu_shape *in,
				       const struct dnn_convolution *like)
{
	struct dnn_convolution c = *like;

	c.axes = in->ndims - 2;
	for (int i = 0; i < in->ndims; i++)
		c.in[i] = (int64_t)in->dims[i];
	for (int i = 0; i < c.axes; i++) {
		const int from = w->first + i;

		c.kernel[i] = (int64_t)w->kernel[from];
		c.pad[i] = (int64_t)w->pad[from];
		c.stride[i] = (int64_t)w->stride[from];
		c.dilate[i] = (int64_t)w->dilate[from];
	}
	return c;
}

bool mu_dnn_fuses(const struct dnn_convolution *c)
{
	return c->axes == 2 && c->type == CUDNN_DATA_HALF && c->groups == 1 &&
	       c->in[1] % 8 == 0 && c->filters % 8 == 0;
}

/* ---- tensors ---- */

/* Of sizes (n, c, space), in the order of the convolution's in memory. */
static dnn_part tensor(struct dnn_graph *g, const struct dnn_convolution *c, cudnnDataType_t type,
		       const int64_t *n, int number)
{
	struct dnn_tensor t = {.type = type, .number = number, .ndims = 2 + c->axes};
	int64_t step = c->plain ? 1 : n[1];

	for (int i = t.ndims - 1; i > 1; step *= n[i--])
		t.strides[i] = step;
	t.strides[1] = c->plain ? step : 1;
	t.strides[0] = c->plain ? step * n[1] : step;
	memcpy(t.sizes, n, sizeof t.sizes);
	return mu_dnn_tensor(g, &t);
}

static dnn_part per_channel(struct dnn_graph *g, const struct dnn_convolution *c,
			    cudnnDataType_t type, int64_t channels, int number)
{
	return tensor(g, c, type, (const int64_t[MU_MAX_DIMS]){1, channels, 1, 1, 1}, number);
}

/* ---- operations ---- */

static dnn_part convolution(struct dnn_graph *g, const struct dnn_convolution *c)
{
	const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const int64_t n = c->axes;
	dnn_part d = mu_dnn_begin(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, c->dilate);
	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, c->stride);
	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, c->pad);
	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, c->pad);
	mu_dnn_set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
	mu_dnn_end(g, d, "a convolution");
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

static void add_convolution(struct dnn_graph *g, const struct dnn_convolution *c,
			    enum mu_convolution_phase phase, dnn_part x, dnn_part w, dnn_part y)
{
	const struct phase_names *names = &phases[phase];
	const float one = 1, zero = 0;
	dnn_part shape = convolution(g, c), op = mu_dnn_begin(g, names->op);

	mu_dnn_set_part(g, op, names->convolution, shape);
	mu_dnn_set_part(g, op, names->x, x);
	mu_dnn_set_part(g, op, names->w, w);
	mu_dnn_set_part(g, op, names->y, y);
	mu_dnn_set(g, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &one);
	mu_dnn_set(g, op, names->beta, CUDNN_TYPE_FLOAT, 1, &zero);
	mu_dnn_add_op(g, op, "a convolution's operation");
}

static void add_statistics(struct dnn_graph *g, const struct dnn_convolution *c, dnn_part y)
{
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
	dnn_part sum = per_channel(g, c, CUDNN_DATA_FLOAT, c->filters, DNN_SUM);
	dnn_part squares = per_channel(g, c, CUDNN_DATA_FLOAT, c->filters, DNN_SQUARES);
	dnn_part op = mu_dnn_begin(g, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);

	mu_dnn_set(g, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
	mu_dnn_set(g, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
		   &precision);
	mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y);
	mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
	mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
	mu_dnn_add_op(g, op, "statistics");
}

/* relu(x a + b), inside the kernel. */
static dnn_part add_norm(struct dnn_graph *g, const struct dnn_convolution *c, dnn_part x)
{
	dnn_part a = per_channel(g, c, c->type, c->in[1], DNN_NORM_A);
	dnn_part b = per_channel(g, c, c->type, c->in[1], DNN_NORM_B);
	dnn_part scaled = tensor(g, c, CUDNN_DATA_FLOAT, c->in, DNN_COMPUTED);
	dnn_part shifted = tensor(g, c, CUDNN_DATA_FLOAT, c->in, DNN_COMPUTED);
	dnn_part out = tensor(g, c, c->type, c->in, DNN_COMPUTED);

	mu_dnn_pointwise(g, &(struct dnn_pointwise){
				    .mode = CUDNN_POINTWISE_MUL, .x = x, .b = a, .y = scaled});
	mu_dnn_pointwise(g,
			 &(struct dnn_pointwise){
				 .mode = CUDNN_POINTWISE_ADD, .x = scaled, .b = b, .y = shifted});
	mu_dnn_pointwise(g, &(struct dnn_pointwise){
				    .mode = CUDNN_POINTWISE_RELU_FWD, .x = shifted, .y = out});
	return out;
}

static int64_t out_size(const struct dnn_convolution *c, int i)
{
	return (c->in[2 + i] + 2 * c->pad[i] - c->dilate[i] * (c->kernel[i] - 1) - 1) /
		       c->stride[i] +
	       1;
}

static void add_pattern(struct dnn_graph *g, const struct dnn_convolution *c,
			enum dnn_pattern pattern)
{
	int64_t weight[MU_MAX_DIMS] = {c->filters, c->in[1] / c->groups};
	int64_t out[MU_MAX_DIMS] = {c->in[0], c->filters};
	dnn_part w, x, y;

	for (int i = 0; i < c->axes; i++) {
		weight[2 + i] = c->kernel[i];
		out[2 + i] = out_size(c, i);
	}
	w = tensor(g, c, c->type, weight, DNN_W);
	y = tensor(g, c, c->type, out, DNN_Y);
	x = tensor(g, c, c->type, c->in, DNN_X);
	switch (pattern) {
	case DNN_DATA: add_convolution(g, c, MU_CONVOLUTION_DATA, x, w, y); return;
	case DNN_WEIGHTS:
	case DNN_NORM_WEIGHTS:
		if (pattern == DNN_NORM_WEIGHTS)
			x = add_norm(g, c, x);
		add_convolution(g, c, MU_CONVOLUTION_WEIGHTS, x, w, y);
		return;
	default:
		if (pattern == DNN_NORM_FORWARD_STATISTICS)
			x = add_norm(g, c, x);
		add_convolution(g, c, MU_CONVOLUTION_FORWARD, x, w, y);
		if (pattern != DNN_FORWARD)
			add_statistics(g, c, y);
	}
}

enum mu_status mu_dnn_plan(const struct cuda_api *api, const struct dnn_target *target,
			   const struct dnn_convolution *c, const struct dnn_request *request,
			   struct dnn_plan *out)
{
	const struct dnn_wish wish = {.type = c->type,
				      .engine = request->engine,
				      .most_bytes = request->most_bytes,
				      .allow_tf32 = request->allow_tf32};
	struct dnn_graph g;

	mu_dnn_graph(&g, api, out);
	add_pattern(&g, c, request->pattern);
	return mu_dnn_finish(&g, target, &wish);
}
