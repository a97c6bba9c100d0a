/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pooling. A window starts at y * stride - pad and has the kernel's size; it is clipped to the
 * padded image (with a rounded-up output size the last window can extend beyond it). Maximum: over
 * the window's elements inside the image; the first of equal elements wins. Average: sum over the
 * elements inside the image, divided by the area of the clipped window, padding included.
 */
#include "ref.h"

#include <muster/base.h>

/* Index 0 = height, 1 = width. Signed, because windows start at negative positions. */
struct geometry {
	size_t planes; /* n * c */
	long in[2], out[2], kernel[2], stride[2], pad[2];
	bool ceil;
};

static void describe(const struct mu_op *op, struct geometry *g)
{
	const struct mu_pooling *a = op->attr;
	const size_t *in = op->inputs[0]->shape.dims;

	g->planes = in[0] * in[1];
	g->ceil = a->ceil && !a->global;
	for (int d = 0; d < 2; d++) {
		long rest;

		g->in[d] = (long)in[2 + d];
		g->kernel[d] = a->global ? g->in[d] : a->kernel[d];
		g->stride[d] = a->global || a->stride[d] == 0 ? 1 : a->stride[d];
		g->pad[d] = a->global ? 0 : a->pad[d];
		rest = g->in[d] + 2 * g->pad[d] - g->kernel[d] + (g->ceil ? g->stride[d] - 1 : 0);
		g->out[d] = rest / g->stride[d] + 1;
	}
}

/* The window [begin, end) of output position i along dimension d, clipped to the padded image. */
struct span {
	long begin, end;
};

static struct span window(const struct geometry *g, int d, long i)
{
	struct span w = {i * g->stride[d] - g->pad[d], 0};

	w.end = w.begin + g->kernel[d];
	if (w.end > g->in[d] + g->pad[d])
		w.end = g->in[d] + g->pad[d];
	return w;
}

static struct span inside_image(const struct geometry *g, int d, struct span w)
{
	if (w.begin < 0)
		w.begin = 0;
	if (w.end > g->in[d])
		w.end = g->in[d];
	return w;
}

/* Each window must contain an element of the image; only the first and the last one may not. */
static enum mu_status check_windows(const struct mu_op *op, const struct geometry *g)
{
	enum mu_status st = MU_OK;
	char text[96];

	for (int d = 0; d < 2; d++) {
		struct span first = inside_image(g, d, window(g, d, 0));
		struct span last = inside_image(g, d, window(g, d, g->out[d] - 1));

		if (first.begin >= first.end || last.begin >= last.end)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (pooling): kernel %ldx%ld, stride %ldx%ld, pad %ldx%ld leave a "
				"window "
				"without an element of the input %s; a smaller pad or stride is "
				"needed",
				op->name, g->kernel[0], g->kernel[1], g->stride[0], g->stride[1],
				g->pad[0], g->pad[1],
				mu_shape_text(&op->inputs[0]->shape, text, sizeof text));
	}
out:
	return st;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_pooling *a = op->attr;
	struct mu_shape out = op->inputs[0]->shape;
	struct geometry g;
	char text[96];

	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, h, w)"));
	describe(op, &g);
	for (int d = 0; d < 2; d++) {
		if (g.kernel[d] < 1 || g.stride[d] < 1 || g.pad[d] < 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (pooling): kernel %ld, stride %ld, pad %ld; kernel and stride "
				"must be at "
				"least 1, pad not negative",
				op->name, g.kernel[d], g.stride[d], g.pad[d]);
		if (g.in[d] + 2 * g.pad[d] < g.kernel[d])
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (pooling): kernel %ldx%ld does not fit the input %s with pad "
				"%ldx%ld",
				op->name, g.kernel[0], g.kernel[1],
				mu_shape_text(&op->inputs[0]->shape, text, sizeof text), g.pad[0],
				g.pad[1]);
		out.dims[2 + d] = (size_t)g.out[d];
	}
	MU_TRY(check_windows(op, &g));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	if (!a->average && op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = mu_shape_n(&out) * sizeof(uint32_t);
	op->scratch_nbytes = (size_t)(g.in[0] * g.in[1]) * sizeof(double);
out:
	return st;
}

/* One window: its area in the padded image, and its part inside the image. */
struct field {
	double area;
	struct span rows, columns;
};

static struct field field_of(const struct geometry *g, long y, long x)
{
	struct span rows = window(g, 0, y), columns = window(g, 1, x);

	return (struct field){
		.area = (double)(rows.end - rows.begin) * (double)(columns.end - columns.begin),
		.rows = inside_image(g, 0, rows),
		.columns = inside_image(g, 1, columns),
	};
}

static float average(const struct geometry *g, const struct field *w, const float *image)
{
	double sum = 0;

	for (long i = w->rows.begin; i < w->rows.end; i++)
		for (long j = w->columns.begin; j < w->columns.end; j++)
			sum += (double)image[i * g->in[1] + j];
	return (float)(sum / w->area);
}

/* Position of the largest element inside the image. */
static long winner(const struct geometry *g, const struct field *w, const float *image)
{
	long best = w->rows.begin * g->in[1] + w->columns.begin;

	for (long i = w->rows.begin; i < w->rows.end; i++)
		for (long j = w->columns.begin; j < w->columns.end; j++)
			if (image[i * g->in[1] + j] > image[best])
				best = i * g->in[1] + j;
	return best;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_pooling *a = op->attr;
	const float *image = op->inputs[0]->data;
	float *out = op->outputs[0]->data;
	uint32_t *winners = op->workspace; /* NULL in inference */
	struct geometry g;
	size_t k = 0;

	describe(op, &g);
	for (size_t p = 0; p < g.planes; p++, image += g.in[0] * g.in[1])
		for (long y = 0; y < g.out[0]; y++)
			for (long x = 0; x < g.out[1]; x++, k++) {
				struct field w = field_of(&g, y, x);
				long best;

				if (a->average) {
					out[k] = average(&g, &w, image);
					continue;
				}
				best = winner(&g, &w, image);
				out[k] = image[best];
				if (op->phase == MU_PHASE_TRAIN)
					winners[k] = (uint32_t)best;
			}
	return MU_OK;
}

static void spread(const struct geometry *g, const struct field *w, double share, double *image)
{
	for (long i = w->rows.begin; i < w->rows.end; i++)
		for (long j = w->columns.begin; j < w->columns.end; j++)
			image[i * g->in[1] + j] += share;
}

/* One plane. winners is NULL for average pooling. */
static void backward_plane(const struct geometry *g, const float *d_out, const uint32_t *winners,
			   double *image)
{
	long k = 0;

	for (long y = 0; y < g->out[0]; y++)
		for (long x = 0; x < g->out[1]; x++, k++) {
			struct field w = field_of(g, y, x);

			if (winners)
				image[winners[k]] += (double)d_out[k];
			else
				spread(g, &w, (double)d_out[k] / w.area, image);
		}
}

static void backward(struct mu_op *op)
{
	const struct mu_pooling *a = op->attr;
	const uint32_t *winners = op->workspace;
	double *sums = op->scratch;
	struct geometry g;
	size_t in_area, out_area;

	if (!op->inputs[0]->needs_grad)
		return;
	describe(op, &g);
	in_area = (size_t)(g.in[0] * g.in[1]);
	out_area = (size_t)(g.out[0] * g.out[1]);
	for (size_t p = 0; p < g.planes; p++) {
		for (size_t k = 0; k < in_area; k++)
			sums[k] = 0;
		backward_plane(&g, op->outputs[0]->grad + p * out_area,
			       a->average ? NULL : winners + p * out_area, sums);
		for (size_t k = 0; k < in_area; k++)
			op->inputs[0]->grad[p * in_area + k] = (float)sums[k];
	}
}

const struct mu_ref_kind mu_ref_pooling = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
