/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation and LRN: formulas in ref/norm.c and ref/lrn.c. */
#include "cuda.h"

#include <muster/base.h>

enum { GAMMA, BETA };
enum { MEAN, VARIANCE };
enum { THREADS_OF_SUMS = 256 }; /* per processor of the GPU */

/* ---- sums over channels that are last ---- */

/* Channels per thread. */
static int width_of(const struct mu_tensor *t)
{
	return t->shape.dims[1] % 8 == 0 ? 8 : 1;
}

/* Enough lanes to occupy the GPU, each with several rows where there are that many. */
static size_t lanes_of(const struct cuda_device *d, const struct mu_tensor *t)
{
	const size_t rows = mu_cuda_extent(t).samples;
	const size_t groups = t->shape.dims[1] / (size_t)width_of(t);
	const size_t lanes = (size_t)d->processors * THREADS_OF_SUMS / groups + 1;

	return lanes < rows ? lanes : rows;
}

/* ---- batch-norm ---- */

size_t mu_cuda_sums_bytes(const struct cuda_device *d, const struct mu_tensor *t)
{
	return t->layout ? lanes_of(d, t) * t->shape.dims[1] * 2 * sizeof(float) : 0;
}

enum mu_status mu_cuda_partial_sums(struct cuda_device *d, const struct mu_tensor *t,
				    struct cuda_partial_sums *args, void *room,
				    struct cuda_lanes *lanes)
{
	const size_t channels = t->shape.dims[1];

	*lanes = (struct cuda_lanes){.lanes = 0};
	if (!t->layout)
		return MU_OK;
	args->type = mu_cuda_type(t);
	args->width = width_of(t);
	args->rows = mu_cuda_extent(t).samples;
	args->channels = channels;
	args->lanes = lanes_of(d, t);
	args->first = room;
	args->second = args->first + args->lanes * channels;
	args->n = args->lanes * channels / (size_t)args->width;
	*lanes = (struct cuda_lanes){args->first, args->second, args->lanes};
	return mu_cuda_each(d, CUDA_partial_sums, args->n, args);
}

/* Workspace: mean and variance. Scratch: scale and shift of each channel, then the two means for
 * backward, then partial sums. */
static size_t sums_at(const struct mu_op *op)
{
	const size_t channels = op->inputs[0]->shape.dims[1];

	return mu_cuda_round(channels * (sizeof(struct cuda_normal) + 2 * sizeof(float)));
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	const size_t channels = op->inputs[0]->shape.dims[1];

	op->scratch_nbytes = sums_at(op) + mu_cuda_sums_bytes(d, op->inputs[0]);
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = 2 * channels * sizeof(double);
	return MU_OK;
}

static void *room_of(const struct mu_op *op)
{
	return (char *)op->scratch + sums_at(op);
}

static double *mean_of(const struct mu_op *op)
{
	return op->workspace;
}

static double *variance_of(const struct mu_op *op)
{
	return mean_of(op) + op->inputs[0]->shape.dims[1];
}

/* Compute into the scratch. */
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

/* From existing statistics. */
static enum mu_status normalize(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_normalize args = {
		.normals = op->scratch,
		.x = in->data,
		.add = op->n_inputs > 1 ? op->inputs[1]->data : NULL,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(in),
		.relu = op->fused_activation != NULL,
		.channels = in->shape.dims[1],
		.area = mu_cuda_extent(in).area,
		.n = mu_shape_n(&in->shape),
	};

	MU_TRY(find_normals(d, op));
	MU_TRY(mu_cuda_eights(d, CUDA_normalize, args.n, &args));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_partial_sums parts = {.of = CUDA_OF_SPREAD, .x = in->data};
	struct cuda_statistics args = {
		.x = in->data,
		.type = mu_cuda_type(in),
		.mean = mean_of(op),
		.samples = in->shape.dims[0],
		.area = mu_ref_area(&in->shape),
		.n = in->shape.dims[1],
	};

	if (op->phase == MU_PHASE_TRAIN) {
		args.variance = variance_of(op);
		MU_TRY(mu_cuda_partial_sums(d, in, &parts, room_of(op), &args.of));
		MU_TRY(mu_cuda_rows(d, CUDA_statistics, args.n, &args));
	}
	MU_TRY(normalize(d, op));
out:
	return st;
}

/* With a second input: the gradient before the activation, for both inputs. */
static enum mu_status part(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0], *added = op->inputs[1];

	MU_TRY(mu_cuda_undo_activation(d, op));
	if (added->needs_grad && !(op->shared_grads & 2))
		MU_TRY(mu_cuda_copy(d, added->grad, out->grad, mu_cuda_bytes(out)));
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
		.relu = op->fused_activation && op->n_inputs == 1,
		.fixed = ((const struct mu_batch_norm *)op->attr)->fix_gamma,
		.count = (double)op->batch->count,
		.samples = in->shape.dims[0],
		.area = mu_ref_area(&in->shape),
		.n = channels,
	};
	struct cuda_partial_sums parts = {
		.of = CUDA_OF_GRADIENTS,
		.x = in->data,
		.dy = out->grad,
		.normals = normals,
		.relu = sums.relu,
	};
	struct cuda_normalize_backward args = {
		.normals = normals,
		.x = in->data,
		.dy = out->grad,
		.means = means,
		.dx = in->grad,
		.type = mu_cuda_type(in),
		.relu = sums.relu,
		.channels = channels,
		.area = mu_cuda_extent(in).area,
		.n = mu_shape_n(&in->shape),
	};

	if (op->n_inputs > 1)
		MU_TRY(part(d, op));
	MU_TRY(find_normals(d, op));
	MU_TRY(mu_cuda_partial_sums(d, in, &parts, room_of(op), &sums.of));
	MU_TRY(mu_cuda_rows(d, CUDA_normal_sums, sums.n, &sums));
	if (in->needs_grad)
		MU_TRY(mu_cuda_eights(d, CUDA_normalize_backward, args.n, &args));
out:
	return st;
}

const struct cuda_kind mu_cuda_batch_norm = {
	.like = &mu_ref_batch_norm,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan,
	.forward = forward,
	.restore = normalize,
	.backward = backward,
};

/* ---- lrn: the workspace keeps the base of the power ---- */

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
