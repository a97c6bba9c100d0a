/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation: formulas in ref/batch_norm.c. */
#include "cuda.h"

#include <muster/base.h>

enum { EIGHT = 8 };
enum { GAMMA, BETA };
enum { MEAN, VARIANCE };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* n of a kernel that normalises: elements, or for groups threads, a multiple of those of a row. */
static size_t threads_of(const struct cuda_device *d, const struct mu_tensor *t, size_t blocks)
{
	const size_t groups = t->shape.dims[1] / EIGHT, rows = mu_cuda_extent(t).samples;
	const size_t threads = (size_t)d->processors * blocks * CUDA_THREADS;

	if (!mu_cuda_in_groups(t))
		return mu_shape_n(&t->shape);
	return groups * least(most(threads / groups, 1), rows);
}

/* Workspace: scale and shift of each channel, then mean and variance; with branches a bit for each
 * output above 0. Scratch: the two means for backward, then partial sums; in inference scale and
 * shift. */
static size_t sums_at(const struct mu_op *op)
{
	return mu_cuda_round(op->inputs[0]->shape.dims[1] * 2 * sizeof(float));
}

static size_t bits_at(const struct mu_op *op)
{
	return mu_cuda_round(op->inputs[0]->shape.dims[1] *
			     (sizeof(struct cuda_normal) + 2 * sizeof(double)));
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *in = op->inputs[0];

	op->scratch_nbytes = in->shape.dims[1] * sizeof(struct cuda_normal);
	if (op->phase != MU_PHASE_TRAIN || !mu_cuda_in_groups(in))
		op->fusion.branches = NULL;
	if (op->phase == MU_PHASE_TRAIN) {
		op->workspace_nbytes =
			bits_at(op) + (op->fusion.branches ? mu_shape_n(&in->shape) / EIGHT : 0);
		op->scratch_nbytes = sums_at(op) + mu_cuda_sums_bytes(d, op->inputs[0]);
	}
	return MU_OK;
}

static void *room_of(const struct mu_op *op)
{
	return (char *)op->scratch + sums_at(op);
}

static struct cuda_normal *normals_of(const struct mu_op *op)
{
	return op->phase == MU_PHASE_TRAIN ? op->workspace : op->scratch;
}

static double *mean_of(const struct mu_op *op)
{
	return (double *)(normals_of(op) + op->inputs[0]->shape.dims[1]);
}

static double *variance_of(const struct mu_op *op)
{
	return mean_of(op) + op->inputs[0]->shape.dims[1];
}

/* What normals are computed of. */
static struct cuda_normals find_normals(const struct mu_op *op)
{
	const struct mu_batch_norm *a = op->attr;
	struct cuda_normals args = {
		.gamma = a->fix_gamma ? NULL : op->params[GAMMA].data,
		.beta = op->params[BETA].data,
		.eps = a->eps,
		.out = normals_of(op),
		.n = op->inputs[0]->shape.dims[1],
	};

	if (op->phase == MU_PHASE_TRAIN) {
		args.mean = mean_of(op);
		args.variance = variance_of(op);
	} else {
		args.running_mean = op->aux[MEAN].data;
		args.running_variance = op->aux[VARIANCE].data;
	}
	return args;
}

static uint8_t *bits_of(const struct mu_op *op)
{
	return (uint8_t *)op->workspace + bits_at(op);
}

/* With `from`: of these sums; else from existing normals. */
static enum mu_status normalize_from(struct cuda_device *d, struct mu_op *op,
				     const struct cuda_statistics *from)
{
	const struct mu_tensor *in = op->inputs[0];
	const struct cuda_extent e = mu_cuda_extent(in);
	struct cuda_normalize args = {
		.normals = normals_of(op),
		.x = in->data,
		.add = op->n_inputs > 1 ? op->inputs[1]->data : NULL,
		.y = op->outputs[0]->data,
		.on = op->fusion.branches ? bits_of(op) : NULL,
		.type = mu_cuda_type(in),
		.relu = op->fusion.activation != NULL,
		.samples = e.samples,
		.channels = e.channels,
		.area = e.area,
		.n = threads_of(d, in, CUDA_SUM_BLOCKS),
	};

	if (from)
		args.from = *from;
	if (mu_cuda_in_groups(in))
		return mu_cuda_each(d, mu_cuda_of_type(in, CUDA_normalize_float16), args.n, &args);
	return mu_cuda_eights(d, CUDA_normalize, args.n, &args);
}

static enum mu_status normalize(struct cuda_device *d, struct mu_op *op)
{
	return normalize_from(d, op, NULL);
}

/* The sums that the convolution before has written, or sums of its output's spread. */
static enum mu_status find_sums(struct cuda_device *d, const struct mu_op *op,
				struct cuda_statistics *args)
{
	const struct mu_tensor *in = op->inputs[0];
	const size_t channels = in->shape.dims[1];
	const float *sums = (const float *)(const void *)((const char *)in->data + in->sums_at);
	struct cuda_partial_sums parts = {.of = CUDA_OF_SPREAD, .x = in->data};

	if (in->sums_at == 0)
		return mu_cuda_partial_sums(d, in, &parts, room_of(op), &args->of);
	args->x = NULL;
	args->of = (struct cuda_lanes){sums, sums + channels, 1, channels};
	return MU_OK;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	const struct cuda_extent e = mu_cuda_extent(in);
	struct cuda_statistics args = {
		.x = in->data,
		.type = mu_cuda_type(in),
		.mean = mean_of(op),
		.share = 1 / (double)(e.samples * e.area),
		.area = e.area,
		.normals = find_normals(op),
		.n = mu_cuda_eights_of(e.channels),
	};

	if (op->phase == MU_PHASE_TRAIN) {
		args.variance = variance_of(op);
		MU_TRY(find_sums(d, op, &args));
		if (in->sums_at && mu_cuda_in_groups(in)) {
			MU_TRY(normalize_from(d, op, &args));
			goto out;
		}
		MU_TRY(mu_cuda_rows(d, CUDA_statistics, args.n, &args));
	} else {
		MU_TRY(mu_cuda_each(d, CUDA_normals, args.normals.n, &args.normals));
	}
	MU_TRY(normalize(d, op));
out:
	return st;
}

/* With a second input, which has the same gradient before the activation. */
static enum mu_status add_gradient(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0];
	const struct mu_tensor *added = op->n_inputs > 1 ? op->inputs[1] : NULL;

	if (added && added->needs_grad && !(op->fusion.shared_grads & 2))
		MU_TRY(mu_cuda_copy(d, added->grad, out->grad, mu_cuda_bytes(out)));
out:
	return st;
}

/* ReLU of normalized values: not of their sum with another input. */
static int has_relu(const struct mu_op *op)
{
	return op->fusion.activation && op->n_inputs == 1;
}

/* The parameters' gradients, and what the input's needs: by the kernel that sums, for groups. */
static enum mu_status sum_gradients(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const struct cuda_extent e = mu_cuda_extent(in);
	const struct cuda_normal_totals totals = {
		.mean = mean_of(op),
		.variance = variance_of(op),
		.means = op->scratch,
		.d_gamma = op->params[GAMMA].grad,
		.d_beta = op->params[BETA].grad,
		.d_mean = op->aux[MEAN].grad,
		.d_variance = op->aux[VARIANCE].grad,
		.fixed = ((const struct mu_batch_norm *)op->attr)->fix_gamma,
		.share = 1 / (double)(e.samples * e.area),
		.count = (double)op->batch->count,
	};
	struct cuda_normal_sums sums = {.totals = totals, .n = mu_cuda_eights_of(e.channels)};
	struct cuda_partial_sums parts = {
		.of = CUDA_OF_GRADIENTS,
		.x = in->data,
		.dy = out->grad,
		.normals = normals_of(op),
		.relu = has_relu(op),
		.ended = mu_cuda_in_groups(in) ? (uint32_t *)(uintptr_t)d->ended : NULL,
		.totals = totals,
	};

	if (op->fusion.branches) {
		parts.dy = op->fusion.branches[0]->grad;
		parts.more = op->fusion.branches[1]->grad;
		parts.on = bits_of(op);
		parts.sum = out->grad;
	}
	MU_TRY(mu_cuda_partial_sums(d, in, &parts, room_of(op), &sums.of));
	if (!parts.ended)
		MU_TRY(mu_cuda_rows(d, CUDA_normal_sums, sums.n, &sums));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	const struct cuda_extent e = mu_cuda_extent(in);
	struct cuda_normalize_backward args = {
		.normals = normals_of(op),
		.x = in->data,
		.dy = op->outputs[0]->grad,
		.means = op->scratch,
		.dx = in->grad,
		.type = mu_cuda_type(in),
		.relu = has_relu(op),
		.samples = e.samples,
		.channels = e.channels,
		.area = e.area,
		.n = threads_of(d, in, CUDA_SUM_BLOCKS_BACKWARD),
	};

	if (!op->fusion.branches && op->n_inputs > 1)
		MU_TRY(mu_cuda_undo_activation(d, op));
	MU_TRY(sum_gradients(d, op));
	MU_TRY(add_gradient(d, op));
	if (!in->needs_grad)
		goto out;
	if (mu_cuda_in_groups(in))
		MU_TRY(mu_cuda_each(d, mu_cuda_of_type(in, CUDA_normalize_backward_float16), args.n,
				    &args));
	else
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
