/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation and LRN: formulas in ref_norm.c and ref_lrn.c. */
#include "cuda.h"

#include <muster/base.h>

enum { GAMMA, BETA };
enum { MEAN, VARIANCE };

/* ---- batch-norm ---- */

/* The workspace keeps mean and variance; the scratch has what turns x into y in each channel, then
 * two means that backward needs. */
static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	const size_t channels = op->inputs[0]->shape.dims[1];

	(void)d;
	op->scratch_nbytes = channels * (sizeof(struct cuda_normal) + 2 * sizeof(float));
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = 2 * channels * sizeof(double);
	return MU_OK;
}

static double *mean_of(const struct mu_op *op)
{
	return op->workspace;
}

static double *variance_of(const struct mu_op *op)
{
	return mean_of(op) + op->inputs[0]->shape.dims[1];
}

/* Into the scratch. */
static enum mu_status find_normals(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_batch_norm *a = op->attr;
	struct cuda_normals args = {
		.gamma = a->fix_gamma ? NULL : op->params[GAMMA].data,
		.beta = op->params[BETA].data,
		.eps = a->eps,
		.out = op->scratch,
		.n = op->inputs[0]->shape.dims[1],
	};

	if (op->phase == MU_PHASE_TRAIN) {
		args.mean = mean_of(op);
		args.variance = variance_of(op);
	} else {
		args.running_mean = op->aux[MEAN].data;
		args.running_variance = op->aux[VARIANCE].data;
	}
	return mu_cuda_each(d, CUDA_normals, args.n, &args);
}

/* From statistics that are there already. */
static enum mu_status normalize(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_normalize args = {
		.normals = op->scratch,
		.x = in->data,
		.y = op->outputs[0]->data,
		.relu = op->fused_activation != NULL,
		.channels = in->shape.dims[1],
		.area = mu_ref_area(&in->shape),
		.n = mu_shape_n(&in->shape),
	};

	MU_TRY(find_normals(d, op));
	MU_TRY(mu_cuda_each(d, CUDA_normalize, args.n, &args));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_statistics args = {
		.x = in->data,
		.mean = mean_of(op),
		.samples = in->shape.dims[0],
		.area = mu_ref_area(&in->shape),
		.n = in->shape.dims[1],
	};

	if (op->phase == MU_PHASE_TRAIN) {
		args.variance = variance_of(op);
		MU_TRY(mu_cuda_rows(d, CUDA_statistics, args.n, &args));
	}
	MU_TRY(normalize(d, op));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const size_t channels = in->shape.dims[1];
	const struct cuda_normal *normals = op->scratch;
	float *means = (float *)((struct cuda_normal *)op->scratch + channels);
	struct cuda_normal_sums sums = {
		.normals = normals,
		.mean = mean_of(op),
		.variance = variance_of(op),
		.x = in->data,
		.dy = out->grad,
		.means = means,
		.d_gamma = op->params[GAMMA].grad,
		.d_beta = op->params[BETA].grad,
		.d_mean = op->aux[MEAN].grad,
		.d_variance = op->aux[VARIANCE].grad,
		.relu = op->fused_activation != NULL,
		.fixed = ((const struct mu_batch_norm *)op->attr)->fix_gamma,
		.count = (double)op->batch->count,
		.samples = in->shape.dims[0],
		.area = mu_ref_area(&in->shape),
		.n = channels,
	};
	struct cuda_normalize_backward args = {
		.normals = normals,
		.x = in->data,
		.dy = out->grad,
		.means = means,
		.dx = in->grad,
		.relu = sums.relu,
		.channels = channels,
		.area = sums.area,
		.n = mu_shape_n(&in->shape),
	};

	MU_TRY(find_normals(d, op));
	MU_TRY(mu_cuda_rows(d, CUDA_normal_sums, sums.n, &sums));
	if (in->needs_grad)
		MU_TRY(mu_cuda_each(d, CUDA_normalize_backward, args.n, &args));
out:
	return st;
}

const struct cuda_kind mu_cuda_batch_norm = {
	.like = &mu_ref_batch_norm,
	.plan = plan,
	.forward = forward,
	.restore = normalize,
	.backward = backward,
};

/* ---- lrn: the workspace keeps what is raised to the power ---- */

static enum mu_status plan_lrn(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = mu_shape_n(&op->inputs[0]->shape) * sizeof(float);
	return MU_OK;
}

static enum mu_status forward_lrn(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_lrn *a = op->attr;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_lrn args = {
		.x = in->data,
		.y = op->outputs[0]->data,
		.scale = op->workspace_nbytes > 0 ? op->workspace : NULL,
		.channels = in->shape.dims[1],
		.area = mu_ref_area(&in->shape),
		.size = a->size,
		.alpha = a->alpha,
		.beta = a->beta,
		.k = a->k,
		.n = mu_shape_n(&in->shape),
	};

	return mu_cuda_each(d, CUDA_lrn, args.n, &args);
}

static enum mu_status backward_lrn(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_lrn *a = op->attr;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_lrn_backward args = {
		.x = in->data,
		.scale = op->workspace,
		.dy = op->outputs[0]->grad,
		.dx = in->grad,
		.channels = in->shape.dims[1],
		.area = mu_ref_area(&in->shape),
		.size = a->size,
		.alpha = a->alpha,
		.beta = a->beta,
		.n = mu_shape_n(&in->shape),
	};

	return in->needs_grad ? mu_cuda_each(d, CUDA_lrn_backward, args.n, &args) : MU_OK;
}

const struct cuda_kind mu_cuda_lrn = {
	.like = &mu_ref_lrn,
	.plan = plan_lrn,
	.forward = forward_lrn,
	.backward = backward_lrn,
};
