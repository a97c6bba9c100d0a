/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pooling. A window starts at o * stride - pad, by axis, and has the kernel's size; it is clipped
 * to the padded image (with a rounded-up output size the last window can extend beyond it).
 * Maximum: over the window's elements inside the image; the first of equal elements wins. Average:
 * sum over the elements inside the image, divided by the area of the clipped window, padding
 * included.
 */
#include "ref.h"

#include <muster/base.h>

#include "device/window.h"

static struct mu_window describe(const struct mu_op *op)
{
	return mu_window_of_pooling(op->attr, &op->inputs[0]->shape);
}

static size_t planes_of(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0] * op->inputs[0]->shape.dims[1];
}

/* The window [begin, end) of output position i along an axis, clipped to the padded image. */
struct span {
	long begin, end;
};

static struct span window(const struct mu_window *w, int d, long i)
{
	struct span s = {i * w->stride[d] - w->pad[d], 0};

	s.end = s.begin + w->kernel[d];
	if (s.end > w->in[d] + w->pad[d])
		s.end = w->in[d] + w->pad[d];
	return s;
}

static struct span inside_image(const struct mu_window *w, int d, struct span s)
{
	if (s.begin < 0)
		s.begin = 0;
	if (s.end > w->in[d])
		s.end = w->in[d];
	return s;
}

/* ---- plan ---- */

/* Each window must contain an element of the image; only the first and the last one may not. */
static enum mu_status check_windows(const struct mu_op *op, const struct mu_window *w)
{
	enum mu_status st = MU_OK;
	char text[96], a[MU_WINDOW_TEXT], b[MU_WINDOW_TEXT], c[MU_WINDOW_TEXT];

	for (int d = 0; d < MU_MAX_SPACE; d++) {
		struct span first = inside_image(w, d, window(w, d, 0));
		struct span last = inside_image(w, d, window(w, d, w->out[d] - 1));

		if (first.begin >= first.end || last.begin >= last.end)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (pooling): kernel %s, stride %s, pad %s leave a window "
				"without an element of the input %s; a smaller pad or stride is "
				"needed",
				op->name, mu_window_text(w, w->kernel, a),
				mu_window_text(w, w->stride, b), mu_window_text(w, w->pad, c),
				mu_shape_text(&op->inputs[0]->shape, text, sizeof text));
	}
out:
	return st;
}

static enum mu_status infer(const struct mu_op *op, const struct mu_window *w, struct mu_shape *out)
{
	enum mu_status st = MU_OK;
	char text[96], kernel[MU_WINDOW_TEXT], pad[MU_WINDOW_TEXT];

	*out = op->inputs[0]->shape;
	for (int d = w->first, i = 2; d < MU_MAX_SPACE; d++, i++) {
		if (w->kernel[d] < 1 || w->stride[d] < 1 || w->pad[d] < 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (pooling): kernel %ld, stride %ld, pad %ld; kernel and stride "
				"must be at least 1, pad not negative",
				op->name, w->kernel[d], w->stride[d], w->pad[d]);
		if (w->out[d] < 1)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (pooling): kernel %s does not fit the input %s with pad %s",
				op->name, mu_window_text(w, w->kernel, kernel),
				mu_shape_text(&op->inputs[0]->shape, text, sizeof text),
				mu_window_text(w, w->pad, pad));
		out->dims[i] = (size_t)w->out[d];
	}
out:
	return st;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_pooling *a = op->attr;
	struct mu_shape out;
	struct mu_window w;

	MU_TRY(mu_ref_need_space(op));
	w = describe(op);
	MU_TRY(infer(op, &w, &out));
	MU_TRY(check_windows(op, &w));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	if (!a->average && op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = mu_shape_n(&out) * sizeof(uint32_t);
	op->scratch_nbytes = (size_t)mu_window_area(w.in) * sizeof(double);
out:
	return st;
}

/* ---- work ---- */

/* One window: its area in the padded image, and its part inside the image. */
struct field {
	double area;
	struct span inside[MU_MAX_SPACE];
};

/* Of output position k of a plane. */
static struct field field_of(const struct mu_window *w, long k)
{
	struct field f = {.area = 1};

	for (int d = MU_MAX_SPACE; d-- > 0; k /= w->out[d]) {
		const struct span s = window(w, d, k % w->out[d]);

		f.area *= (double)(s.end - s.begin);
		f.inside[d] = inside_image(w, d, s);
	}
	return f;
}

static long position(const struct mu_window *w, long z, long y, long x)
{
	return (z * w->in[1] + y) * w->in[2] + x;
}

/* The positions p in the image of the elements of a window. */
#define EACH_ELEMENT(w, f, p) \
	for (long z_ = (f)->inside[0].begin; z_ < (f)->inside[0].end; z_++) \
		for (long y_ = (f)->inside[1].begin; y_ < (f)->inside[1].end; y_++) \
			for (long x_ = (f)->inside[2].begin, p = position(w, z_, y_, x_); \
			     x_ < (f)->inside[2].end; x_++, p++)

static float average(const struct mu_window *w, const struct field *f, const float *image)
{
	double sum = 0;

	EACH_ELEMENT(w, f, p)
		sum += (double)image[p];
	return (float)(sum / f->area);
}

/* Position of the largest element inside the image. */
static long winner(const struct mu_window *w, const struct field *f, const float *image)
{
	long best = position(w, f->inside[0].begin, f->inside[1].begin, f->inside[2].begin);

	EACH_ELEMENT(w, f, p)
		if (image[p] > image[best])
			best = p;
	return best;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_pooling *a = op->attr;
	const float *image = op->inputs[0]->data;
	float *out = op->outputs[0]->data;
	uint32_t *winners = op->workspace; /* NULL in inference */
	const struct mu_window w = describe(op);
	const size_t in_area = (size_t)mu_window_area(w.in);
	const long out_area = mu_window_area(w.out);
	size_t k = 0;

	for (size_t p = 0; p < planes_of(op); p++, image += in_area)
		for (long o = 0; o < out_area; o++, k++) {
			struct field f = field_of(&w, o);
			long best;

			if (a->average) {
				out[k] = average(&w, &f, image);
				continue;
			}
			best = winner(&w, &f, image);
			out[k] = image[best];
			if (op->phase == MU_PHASE_TRAIN)
				winners[k] = (uint32_t)best;
		}
	return MU_OK;
}

static void spread(const struct mu_window *w, const struct field *f, double share, double *image)
{
	EACH_ELEMENT(w, f, p)
		image[p] += share;
}

/* One plane. winners is NULL for average pooling. */
static void backward_plane(const struct mu_window *w, const float *d_out, const uint32_t *winners,
			   double *image)
{
	for (long k = 0; k < mu_window_area(w->out); k++) {
		struct field f = field_of(w, k);

		if (winners)
			image[winners[k]] += (double)d_out[k];
		else
			spread(w, &f, (double)d_out[k] / f.area, image);
	}
}

static void backward(struct mu_op *op)
{
	const struct mu_pooling *a = op->attr;
	const uint32_t *winners = op->workspace;
	double *sums = op->scratch;
	const struct mu_window w = describe(op);
	const size_t in_area = (size_t)mu_window_area(w.in);
	const size_t out_area = (size_t)mu_window_area(w.out);

	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t p = 0; p < planes_of(op); p++) {
		for (size_t k = 0; k < in_area; k++)
			sums[k] = 0;
		backward_plane(&w, op->outputs[0]->grad + p * out_area,
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
