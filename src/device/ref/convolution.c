/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution. For sample s, filter f, output row y and column x:
 *
 *	out[s][f][y][x] = bias[f] + sum over c, i, j of weight[f][c][i][j] * in[s][c][v][u]
 *	with v = y * stride + i * dilate - pad, u = x * stride + j * dilate - pad
 *
 * where c runs over the channels of f's group and inputs outside the image count as zero. The loops
 * process whole planes for one weight at a time: a plane of double sums, long inner loops.
 */
#include "ref.h"

#include <muster/base.h>

/* Sizes are long because positions in the padding are negative. Index 0 = height, 1 = width. */
struct geometry {
	long n, channels, filters;
	long group_channels, group_filters; /* of one group */
	long in[2], out[2], kernel[2], stride[2], pad[2], dilate[2];
	long in_area, out_area;
};

static long one_or(int value)
{
	return value ? value : 1;
}

static void describe(const struct mu_op *op, struct geometry *g)
{
	const struct mu_convolution *a = op->attr;
	const size_t *in = op->inputs[0]->shape.dims, *out = op->outputs[0]->shape.dims;

	g->n = (long)in[0];
	g->channels = (long)in[1];
	g->filters = a->filters;
	g->group_channels = g->channels / one_or(a->groups);
	g->group_filters = g->filters / one_or(a->groups);
	for (int d = 0; d < 2; d++) {
		g->in[d] = (long)in[2 + d];
		g->out[d] = (long)out[2 + d];
		g->kernel[d] = a->kernel[d];
		g->stride[d] = one_or(a->stride[d]);
		g->pad[d] = a->pad[d];
		g->dilate[d] = one_or(a->dilate[d]);
	}
	g->in_area = g->in[0] * g->in[1];
	g->out_area = g->out[0] * g->out[1];
}

/* ---- plan ---- */

static enum mu_status check_attributes(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_convolution *a = op->attr;
	size_t channels = op->inputs[0]->shape.dims[1];
	long groups = one_or(a->groups);

	for (int d = 0; d < 2; d++)
		if (a->kernel[d] < 1 || a->stride[d] < 0 || a->pad[d] < 0 || a->dilate[d] < 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (convolution): kernel %d, stride %d, pad %d, dilate %d; the "
				"kernel must "
				"be at least 1, the others not negative",
				op->name, a->kernel[d], a->stride[d], a->pad[d], a->dilate[d]);
	if (a->filters < 1 || groups < 1 || a->filters % groups != 0 ||
	    channels % (size_t)groups != 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (convolution): %zu channels and %d filters cannot be cut into %ld "
			"groups",
			op->name, channels, a->filters, groups);
	if (op->n_params != (a->no_bias ? 1 : 2))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (convolution): %d parameters; %s", op->name,
			op->n_params,
			a->no_bias ? "without bias there is one"
				   : "there are two, weight and bias");
out:
	return st;
}

static enum mu_status infer_output(const struct mu_op *op, struct mu_shape *out)
{
	enum mu_status st = MU_OK;
	const struct mu_convolution *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	char text[96];

	*out = (struct mu_shape){4, {in->dims[0], (size_t)a->filters, 0, 0}};
	for (int d = 0; d < 2; d++) {
		long span = (long)in->dims[2 + d] + 2L * a->pad[d] -
			    one_or(a->dilate[d]) * (a->kernel[d] - 1) - 1;

		if (span < 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (convolution): kernel %dx%d does not fit the input %s with pad "
				"%dx%d",
				op->name, a->kernel[0], a->kernel[1],
				mu_shape_text(in, text, sizeof text), a->pad[0], a->pad[1]);
		out->dims[2 + d] = (size_t)(span / one_or(a->stride[d])) + 1;
	}
out:
	return st;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_convolution *a = op->attr;
	struct mu_shape out, weight, bias = {1, {(size_t)a->filters}};
	struct geometry g;
	long largest;

	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, h, w)"));
	MU_TRY(check_attributes(op));
	MU_TRY(infer_output(op, &out));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	describe(op, &g);
	weight = (struct mu_shape){4,
				   {(size_t)g.filters, (size_t)g.group_channels,
				    (size_t)g.kernel[0], (size_t)g.kernel[1]}};
	MU_TRY(mu_ref_need_shape(op, "weight", &op->params[0].shape, &weight));
	if (!a->no_bias)
		MU_TRY(mu_ref_need_shape(op, "bias", &op->params[1].shape, &bias));
	largest = g.in_area > g.out_area ? g.in_area : g.out_area;
	op->scratch_nbytes = (size_t)largest * sizeof(double);
out:
	return st;
}

/* ---- one weight and one plane ---- */

/*
 * Kernel position (i, j): output (y, x) reads input (y * stride + shift[0], x * stride + shift[1]).
 */
struct tap {
	long shift[2];
	long begin[2], end[2]; /* outputs whose input is inside the image */
};

static struct tap tap_at(const struct geometry *g, long i, long j)
{
	struct tap t = {.shift = {i * g->dilate[0] - g->pad[0], j * g->dilate[1] - g->pad[1]}};

	for (int d = 0; d < 2; d++) {
		long room = g->in[d] - t.shift[d]; /* y * stride must be below it */

		t.begin[d] = t.shift[d] < 0 ? (-t.shift[d] + g->stride[d] - 1) / g->stride[d] : 0;
		t.end[d] = room > 0 ? (room + g->stride[d] - 1) / g->stride[d] : 0;
		if (t.end[d] > g->out[d])
			t.end[d] = g->out[d];
	}
	return t;
}

/* Offset of the input row of output row y; add column x * stride to it. */
static long input_row(const struct geometry *g, const struct tap *t, long y)
{
	return (y * g->stride[0] + t->shift[0]) * g->in[1] + t->shift[1];
}

/* out += w * in */
static void add_output(const struct geometry *g, const struct tap *t, double w, const float *in,
		       double *out)
{
	for (long y = t->begin[0]; y < t->end[0]; y++) {
		long from = input_row(g, t, y), to = y * g->out[1];

		for (long x = t->begin[1]; x < t->end[1]; x++)
			out[to + x] += w * (double)in[from + x * g->stride[1]];
	}
}

/* d_in += w * d_out */
static void add_input(const struct geometry *g, const struct tap *t, double w, const float *d_out,
		      double *d_in)
{
	for (long y = t->begin[0]; y < t->end[0]; y++) {
		long to = input_row(g, t, y), from = y * g->out[1];

		for (long x = t->begin[1]; x < t->end[1]; x++)
			d_in[to + x * g->stride[1]] += w * (double)d_out[from + x];
	}
}

/* Sum of in * d_out: this sample's contribution to the weight's gradient. */
static double weight_sum(const struct geometry *g, const struct tap *t, const float *in,
			 const float *d_out)
{
	double sum = 0;

	for (long y = t->begin[0]; y < t->end[0]; y++) {
		long row = input_row(g, t, y), to = y * g->out[1];

		for (long x = t->begin[1]; x < t->end[1]; x++)
			sum += (double)in[row + x * g->stride[1]] * (double)d_out[to + x];
	}
	return sum;
}

/* ---- the whole operation ---- */

/* weight[filter][channel of the group][i][j] */
static long weight_at(const struct geometry *g, long filter, long channel, long i, long j)
{
	return ((filter * g->group_channels + channel) * g->kernel[0] + i) * g->kernel[1] + j;
}

static void forward_plane(const struct geometry *g, const float *weight, const float *sample,
			  long filter, double *sums)
{
	long first = filter / g->group_filters * g->group_channels;

	for (long c = 0; c < g->group_channels; c++)
		for (long i = 0; i < g->kernel[0]; i++)
			for (long j = 0; j < g->kernel[1]; j++) {
				struct tap t = tap_at(g, i, j);
				double w = (double)weight[weight_at(g, filter, c, i, j)];

				add_output(g, &t, w, sample + (first + c) * g->in_area, sums);
			}
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;
	const float *in = op->inputs[0]->data;
	float *out = op->outputs[0]->data;
	double *sums = op->scratch;
	struct geometry g;

	describe(op, &g);
	for (long s = 0; s < g.n; s++)
		for (long f = 0; f < g.filters; f++) {
			float *plane = out + (s * g.filters + f) * g.out_area;

			for (long k = 0; k < g.out_area; k++)
				sums[k] = a->no_bias ? 0 : (double)op->params[1].data[f];
			forward_plane(&g, op->params[0].data, in + s * g.channels * g.in_area, f,
				      sums);
			for (long k = 0; k < g.out_area; k++)
				plane[k] = (float)sums[k];
		}
	if (op->fusion.activation)
		mu_ref_activate(op->fusion.activation, out, mu_shape_n(&op->outputs[0]->shape));
	return MU_OK;
}

static void input_plane(const struct geometry *g, const float *weight, const float *d_sample,
			long channel, double *sums)
{
	long group = channel / g->group_channels, c = channel % g->group_channels;

	for (long f = group * g->group_filters; f < (group + 1) * g->group_filters; f++)
		for (long i = 0; i < g->kernel[0]; i++)
			for (long j = 0; j < g->kernel[1]; j++) {
				struct tap t = tap_at(g, i, j);
				double w = (double)weight[weight_at(g, f, c, i, j)];

				add_input(g, &t, w, d_sample + f * g->out_area, sums);
			}
}

static void backward_input(struct mu_op *op, const struct geometry *g)
{
	const float *d_out = op->outputs[0]->grad;
	float *d_in = op->inputs[0]->grad;
	double *sums = op->scratch;

	for (long s = 0; s < g->n; s++)
		for (long c = 0; c < g->channels; c++) {
			float *plane = d_in + (s * g->channels + c) * g->in_area;

			for (long k = 0; k < g->in_area; k++)
				sums[k] = 0;
			input_plane(g, op->params[0].data, d_out + s * g->filters * g->out_area, c,
				    sums);
			for (long k = 0; k < g->in_area; k++)
				plane[k] = (float)sums[k];
		}
}

static double weight_gradient(const struct mu_op *op, const struct geometry *g, const struct tap *t,
			      long filter, long channel)
{
	const float *in = op->inputs[0]->data + channel * g->in_area;
	const float *d_out = op->outputs[0]->grad + filter * g->out_area;
	double sum = 0;

	for (long s = 0; s < g->n; s++)
		sum += weight_sum(g, t, in + s * g->channels * g->in_area,
				  d_out + s * g->filters * g->out_area);
	return sum;
}

static void backward_weight(struct mu_op *op, const struct geometry *g)
{
	for (long f = 0; f < g->filters; f++) {
		long first = f / g->group_filters * g->group_channels;

		for (long c = 0; c < g->group_channels; c++)
			for (long i = 0; i < g->kernel[0]; i++)
				for (long j = 0; j < g->kernel[1]; j++) {
					struct tap t = tap_at(g, i, j);

					op->params[0].grad[weight_at(g, f, c, i, j)] =
						(float)weight_gradient(op, g, &t, f, first + c);
				}
	}
}

static void backward_bias(struct mu_op *op, const struct geometry *g)
{
	const float *d_out = op->outputs[0]->grad;

	for (long f = 0; f < g->filters; f++) {
		double sum = 0;

		for (long s = 0; s < g->n; s++)
			for (long k = 0; k < g->out_area; k++)
				sum += (double)d_out[(s * g->filters + f) * g->out_area + k];
		op->params[1].grad[f] = (float)sum;
	}
}

static void backward(struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;
	struct mu_tensor *out = op->outputs[0];
	struct geometry g;

	describe(op, &g);
	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, out->data, out->grad, out->grad,
					 mu_shape_n(&out->shape));
	backward_weight(op, &g);
	if (!a->no_bias)
		backward_bias(op, &g);
	if (op->inputs[0]->needs_grad)
		backward_input(op, &g);
}

const struct mu_ref_kind mu_ref_convolution = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
