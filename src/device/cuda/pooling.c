/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling, with the formulas of ref/pooling.c. The workspace keeps where the maxima are. */
#include "cuda.h"
#include "device/window.h"

#include <limits.h>

#include <muster/base.h>

static struct cuda_windows windows_of(const struct mu_op *op)
{
	const struct mu_pooling *a = op->attr;
	const struct mu_window of = mu_window_of_pooling(a, &op->inputs[0]->shape);
	struct cuda_windows w = {.average = a->average};

	for (int i = 0; i < CUDA_SPACE; i++) {
		const int d = (i + 1) % CUDA_SPACE; /* depth is last there */

		w.in[i] = (int)of.in[d];
		w.out[i] = (int)of.out[d];
		w.kernel[i] = (int)of.kernel[d];
		w.stride[i] = (int)of.stride[d];
		w.pad[i] = (int)of.pad[d];
	}
	return w;
}

/* Number of interleaved planes. */
static size_t planes_of(const struct mu_op *op)
{
	return op->inputs[0]->layout ? op->inputs[0]->shape.dims[1] : 1;
}

/* By the kernels of a type, for images, which keep the place of a maximum in its window as a byte:
 * larger windows, such as whole images, are left to the others. */
static bool in_groups(const struct mu_op *op)
{
	const struct cuda_windows w = windows_of(op);

	return mu_cuda_in_groups(op->inputs[0]) && op->inputs[0]->shape.ndims == 4 &&
	       (w.average || (size_t)w.kernel[0] * (size_t)w.kernel[1] <= 256);
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_pooling *a = op->attr;

	(void)d;
	if (mu_shape_positions(&op->inputs[0]->shape) > INT_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (pooling): its planes are too large for a GPU",
			op->name);
	if (!a->average && op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = mu_shape_n(&op->outputs[0]->shape) *
				       (in_groups(op) ? sizeof(uint8_t) : sizeof(int));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_pool args = {
		.w = windows_of(op),
		.x = op->inputs[0]->data,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.planes = planes_of(op),
		.winners = op->workspace_nbytes > 0 ? op->workspace : NULL,
		.n = mu_shape_n(&op->outputs[0]->shape),
	};

	if (!in_groups(op))
		return mu_cuda_each(d, CUDA_pool, args.n, &args);
	args.n = mu_cuda_eights_of(args.n);
	return mu_cuda_each(d, mu_cuda_of_type(op->outputs[0], CUDA_pool_float16), args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_pool_backward args = {
		.w = windows_of(op),
		.dy = op->outputs[0]->grad,
		.type = mu_cuda_type(op->inputs[0]),
		.planes = planes_of(op),
		.winners = op->workspace,
		.dx = op->inputs[0]->grad,
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	if (!op->inputs[0]->needs_grad)
		return MU_OK;
	if (!in_groups(op))
		return mu_cuda_each(d, CUDA_pool_backward, args.n, &args);
	args.n = mu_cuda_eights_of(args.n);
	return mu_cuda_each(d, mu_cuda_of_type(op->inputs[0], CUDA_pool_backward_float16), args.n,
			    &args);
}

const struct cuda_kind mu_cuda_pooling = {
	.like = &mu_ref_pooling,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
