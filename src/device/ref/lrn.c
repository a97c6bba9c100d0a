/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local response normalisation across channels. Krizhevsky et al., "ImageNet Classification with
 * Deep Convolutional Neural Networks", 2012, section 3.3, with alpha divided by the size of the
 * window as MXNet and Caffe do. For one pixel, W(c) the channels at most size / 2 away from c:
 *
 *	s_c = k + alpha / size * sum over W(c) of x^2      y_c = x_c s_c^-beta
 *
 *	dx_c = dy_c s_c^-beta
 *	       - 2 alpha beta / size x_c * sum over i in W(c) of dy_i x_i s_i^(-beta-1)
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_lrn *a = op->attr;

	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, h, w)"));
	MU_TRY(mu_ref_need_same_shape(op));
	if (a->size < 1 || a->size % 2 == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (lrn): size %d; it must be odd", op->name, a->size);
out:
	return st;
}

/* The channels of one pixel: c values at distance `step`. */
struct pixel {
	size_t first, n_channels, step;
};

static struct pixel pixel_at(const struct mu_op *op, size_t sample, size_t position)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	size_t area = mu_shape_positions(in);

	return (struct pixel){sample * in->dims[1] * area + position, in->dims[1], area};
}

/* First and one past the last channel of the window around c. */
static void window(const struct pixel *p, const struct mu_lrn *a, size_t c, size_t *from,
		   size_t *to)
{
	size_t half = (size_t)a->size / 2;

	*from = c > half ? c - half : 0;
	*to = c + half + 1 < p->n_channels ? c + half + 1 : p->n_channels;
}

static double scale(const struct pixel *p, const struct mu_lrn *a, const float *x, size_t c)
{
	double sum = 0;
	size_t from, to;

	window(p, a, c, &from, &to);
	for (size_t i = from; i < to; i++) {
		double v = (double)x[p->first + i * p->step];

		sum += v * v;
	}
	return (double)a->k + (double)a->alpha / a->size * sum;
}

static void normalize_pixel(const struct pixel *p, const struct mu_lrn *a, const float *x, float *y)
{
	for (size_t c = 0; c < p->n_channels; c++) {
		size_t k = p->first + c * p->step;

		y[k] = (float)((double)x[k] * pow(scale(p, a, x, c), -(double)a->beta));
	}
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	for (size_t s = 0; s < in->dims[0]; s++)
		for (size_t k = 0; k < mu_shape_positions(in); k++) {
			struct pixel p = pixel_at(op, s, k);

			normalize_pixel(&p, op->attr, op->inputs[0]->data, op->outputs[0]->data);
		}
	return MU_OK;
}

/* dx of channel c. */
static double derive(const struct mu_op *op, const struct pixel *p, size_t c)
{
	const struct mu_lrn *a = op->attr;
	const float *x = op->inputs[0]->data, *dy = op->outputs[0]->grad;
	double beta = (double)a->beta, sum = 0;
	size_t at = p->first + c * p->step, from, to;

	window(p, a, c, &from, &to);
	for (size_t i = from; i < to; i++) {
		size_t k = p->first + i * p->step;

		sum += (double)dy[k] * (double)x[k] * pow(scale(p, a, x, i), -beta - 1);
	}
	return (double)dy[at] * pow(scale(p, a, x, c), -beta) -
	       2 * (double)a->alpha * beta / a->size * (double)x[at] * sum;
}

static void backward(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t s = 0; s < in->dims[0]; s++)
		for (size_t k = 0; k < mu_shape_positions(in); k++) {
			struct pixel p = pixel_at(op, s, k);

			for (size_t c = 0; c < p.n_channels; c++)
				op->inputs[0]->grad[p.first + c * p.step] =
					(float)derive(op, &p, c);
		}
}

const struct mu_ref_kind mu_ref_lrn = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
