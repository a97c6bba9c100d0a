/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch normalisation. Ioffe and Szegedy, "Batch Normalization", ICML 2015, algorithm 1 and section
 * 3. Per channel, with m values (batch times area):
 *
 *	normal = (x - mean) / sqrt(variance + eps)      y = gamma * normal + beta
 *
 *	d_beta = sum dy      d_gamma = sum dy * normal
 *	dx = gamma / sqrt(variance + eps) * (dy - d_beta / m - normal * d_gamma / m)
 *
 * In training mean and variance are the batch's (biased). They are kept in the workspace for
 * backward, which also writes them, times the number of samples that count, to the auxiliary
 * gradients.
 *
 * A fused ReLU is max(y, 0); backward recomputes which y were above 0, and does not read the
 * output. With a second input z the output is y + z, and backward undoes the ReLU as for a sum.
 */
#include "ref.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

enum { GAMMA, BETA };
enum { MEAN, VARIANCE };

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_batch_norm *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct mu_shape vector = {1, {in->dims[1]}};

	if (!(a->eps > 0))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (batchnorm): eps %g; it must be above 0", op->name,
			(double)a->eps);
	if (op->n_inputs > 2)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (batchnorm): %d inputs; one can be added, no more",
			op->name, op->n_inputs);
	if (op->n_inputs == 2)
		MU_TRY(mu_ref_need_shape(op, "second input", &op->inputs[1]->shape, in));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, in));
	MU_TRY(mu_ref_need_shape(op, "gamma", &op->params[GAMMA].shape, &vector));
	MU_TRY(mu_ref_need_shape(op, "beta", &op->params[BETA].shape, &vector));
	MU_TRY(mu_ref_need_shape(op, "moving_mean", &op->aux[MEAN].shape, &vector));
	MU_TRY(mu_ref_need_shape(op, "moving_var", &op->aux[VARIANCE].shape, &vector));
	if (op->fusion.activation && op->fusion.activation->kind != MU_ACTIVATION_RELU)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (batchnorm): only relu can be fused behind it",
			op->name);
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = 2 * in->dims[1] * sizeof(double);
out:
	return st;
}

/* The values of one channel: n runs of `area` elements at distance `step`. */
struct channel {
	size_t first, n, area, step;
};

static struct channel channel_at(const struct mu_op *op, size_t c)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	size_t area = mu_shape_positions(in);

	return (struct channel){c * area, in->dims[0], area, in->dims[1] * area};
}

static size_t element(const struct channel *ch, size_t s, size_t k)
{
	return ch->first + s * ch->step + k;
}

static double mean_of(const struct channel *ch, const float *x)
{
	double sum = 0;

	for (size_t s = 0; s < ch->n; s++)
		for (size_t k = 0; k < ch->area; k++)
			sum += (double)x[element(ch, s, k)];
	return sum / (double)(ch->n * ch->area);
}

static double variance_of(const struct channel *ch, const float *x, double mean)
{
	double sum = 0;

	for (size_t s = 0; s < ch->n; s++)
		for (size_t k = 0; k < ch->area; k++) {
			double d = (double)x[element(ch, s, k)] - mean;

			sum += d * d;
		}
	return sum / (double)(ch->n * ch->area);
}

static double gamma_of(const struct mu_op *op, size_t c)
{
	const struct mu_batch_norm *a = op->attr;

	return a->fix_gamma ? 1 : (double)op->params[GAMMA].data[c];
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_batch_norm *a = op->attr;
	const float *x = op->inputs[0]->data;
	const float *z = op->n_inputs > 1 ? op->inputs[1]->data : NULL;
	float *y = op->outputs[0]->data;
	size_t channels = op->inputs[0]->shape.dims[1];
	double *means = op->workspace,
	       *variances = means + channels; /* of the batch, in training */

	for (size_t c = 0; c < channels; c++) {
		struct channel ch = channel_at(op, c);
		double mean, variance, scale, shift = (double)op->params[BETA].data[c];

		if (op->phase == MU_PHASE_TRAIN) {
			mean = means[c] = mean_of(&ch, x);
			variance = variances[c] = variance_of(&ch, x, mean);
		} else {
			mean = (double)op->aux[MEAN].data[c];
			variance = (double)op->aux[VARIANCE].data[c];
		}
		scale = gamma_of(op, c) / sqrt(variance + (double)a->eps);
		for (size_t s = 0; s < ch.n; s++)
			for (size_t k = 0; k < ch.area; k++) {
				size_t e = element(&ch, s, k);

				y[e] = (float)(((double)x[e] - mean) * scale + shift);
				y[e] += z ? z[e] : 0;
				if (op->fusion.activation)
					mu_ref_activate(op->fusion.activation, &y[e], 1);
			}
	}
	return MU_OK;
}

/* Data of a channel in backward. */
struct normal {
	double mean, inverse, scale, shift;
};

static struct normal normal_of(const struct mu_op *op, size_t c)
{
	const struct mu_batch_norm *a = op->attr;
	const double *means = op->workspace, *variances = means + op->inputs[0]->shape.dims[1];

	return (struct normal){.mean = means[c],
			       .inverse = 1 / sqrt(variances[c] + (double)a->eps),
			       .scale = gamma_of(op, c) / sqrt(variances[c] + (double)a->eps),
			       .shift = (double)op->params[BETA].data[c]};
}

/* Gradient of y, before the activation. */
static double dy_at(const struct mu_op *op, const struct normal *b, size_t e)
{
	double x = (double)op->inputs[0]->data[e];

	if (op->fusion.activation && op->n_inputs == 1 &&
	    !((float)((x - b->mean) * b->scale + b->shift) > 0))
		return 0;
	return (double)op->outputs[0]->grad[e];
}

/* Sums over a channel from which all gradients are computed. */
struct sums {
	double dy, dy_normal;
};

static struct sums sums_of(const struct mu_op *op, const struct channel *ch, const struct normal *b)
{
	const float *x = op->inputs[0]->data;
	struct sums sums = {0, 0};

	for (size_t s = 0; s < ch->n; s++)
		for (size_t k = 0; k < ch->area; k++) {
			size_t e = element(ch, s, k);
			double dy = dy_at(op, b, e);

			sums.dy += dy;
			sums.dy_normal += dy * ((double)x[e] - b->mean) * b->inverse;
		}
	return sums;
}

/* The gradient of y + z, in place, is the gradient of y and of z. */
static void part(struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0], *z = op->inputs[1];
	const size_t n = mu_shape_n(&out->shape);

	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, out->data, out->grad, out->grad, n);
	if (z->needs_grad && !(op->fusion.shared_grads & 2))
		memcpy(z->grad, out->grad, n * sizeof *z->grad);
}

static void backward(struct mu_op *op)
{
	const struct mu_batch_norm *a = op->attr;
	const float *x = op->inputs[0]->data;
	float *dx = op->inputs[0]->grad;
	size_t n = op->batch->count, channels = op->inputs[0]->shape.dims[1];
	const double *variances = (const double *)op->workspace + channels;

	if (op->n_inputs > 1)
		part(op);
	for (size_t c = 0; c < channels; c++) {
		struct channel ch = channel_at(op, c);
		struct normal b = normal_of(op, c);
		double m = (double)(ch.n * ch.area);
		struct sums sums = sums_of(op, &ch, &b);

		op->params[GAMMA].grad[c] = a->fix_gamma ? 0 : (float)sums.dy_normal;
		op->params[BETA].grad[c] = (float)sums.dy;
		op->aux[MEAN].grad[c] = (float)((double)n * b.mean);
		op->aux[VARIANCE].grad[c] = (float)((double)n * variances[c]);
		for (size_t s = 0; op->inputs[0]->needs_grad && s < ch.n; s++)
			for (size_t k = 0; k < ch.area; k++) {
				size_t e = element(&ch, s, k);
				double normal = ((double)x[e] - b.mean) * b.inverse;

				dx[e] = (float)(gamma_of(op, c) * b.inverse *
						(dy_at(op, &b, e) - sums.dy / m -
						 normal * sums.dy_normal / m));
			}
	}
}

const struct mu_ref_kind mu_ref_batch_norm = {
	.n_inputs = -1,
	.n_outputs = 1,
	.min_params = 2,
	.max_params = 2,
	.n_aux = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
