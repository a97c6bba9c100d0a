/* SPDX-License-Identifier: Apache-2.0 */
/* What several kinds of operations do: bias and activation after a product, copies and sums of
 * whole tensors. */
#include "device/cuda/cuda.h"

#include <limits.h>

#include <muster/base.h>

enum mu_status mu_cuda_check_sizes(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	(void)d;
	if (mu_shape_n(&op->inputs[0]->shape) > INT_MAX ||
	    mu_shape_n(&op->outputs[0]->shape) > INT_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (%s): on a GPU its tensors have at most %d elements; a smaller batch "
			"size is needed",
			op->name, mu_op_kind_name(op->kind), INT_MAX);
out:
	return st;
}

void mu_cuda_release_host(struct cuda_device *d, struct mu_op *op)
{
	if (d->api.cuCtxSetCurrent(d->context) == CUDA_SUCCESS)
		d->api.cuMemFreeHost(op->impl);
}

void mu_cuda_space(const struct mu_shape *shape, int out[CUDA_SPACE])
{
	const int first = MU_MAX_DIMS - shape->ndims;

	for (int i = 0; i < CUDA_SPACE; i++)
		out[i] = i < first ? 1 : (int)shape->dims[2 + i - first];
}

int mu_cuda_activation_code(const struct mu_activation *activation)
{
	static const int kinds[] = {
		[MU_ACTIVATION_RELU] = CUDA_RELU,
		[MU_ACTIVATION_TANH] = CUDA_TANH,
		[MU_ACTIVATION_SIGMOID] = CUDA_SIGMOID,
	};

	return activation ? kinds[activation->kind] : CUDA_LINEAR;
}

enum mu_status mu_cuda_add_bias(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0];
	struct cuda_add_bias args = {
		.y = out->data,
		.bias = op->n_params > 1 ? op->params[1].data : NULL,
		.area = mu_cuda_extent(out).area,
		.channels = out->shape.dims[1],
		.type = mu_cuda_type(out),
		.kind = mu_cuda_activation_code(op->fusion.activation),
		.n = mu_shape_n(&out->shape),
	};

	if (!args.bias && args.kind == CUDA_LINEAR)
		return MU_OK;
	return mu_cuda_eights(d, CUDA_add_bias, args.n, &args);
}

enum mu_status mu_cuda_undo_activation(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0];
	struct cuda_activate_backward args = {
		.y = out->data,
		.dy = out->grad,
		.dx = out->grad,
		.type = mu_cuda_type(out),
		.kind = mu_cuda_activation_code(op->fusion.undo),
		.n = mu_shape_n(&out->shape),
	};

	if (!op->fusion.undo)
		return MU_OK;
	return mu_cuda_eights(d, CUDA_activate_backward, args.n, &args);
}

enum mu_status mu_cuda_bias_gradient(struct cuda_device *d, struct mu_op *op, void *room)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0];
	struct cuda_partial_sums parts = {.of = CUDA_OF_VALUES, .x = out->grad};
	struct cuda_channel_sums args = {.n = mu_cuda_eights_of(out->shape.dims[1])};

	if (op->n_params < 2)
		goto out;
	args.out = op->params[1].grad;
	args.adds = op->adds;
	MU_TRY(mu_cuda_partial_sums(d, out, &parts, room, &args.of));
	MU_TRY(mu_cuda_rows(d, CUDA_channel_sums, args.n, &args));
out:
	return st;
}

enum mu_status mu_cuda_copy_like(struct cuda_device *d, float *to, const float *from,
				 const struct mu_tensor *like)
{
	return mu_cuda_copy(d, to, from, mu_cuda_bytes(like));
}

enum mu_status mu_cuda_add_all(struct cuda_device *d, struct mu_tensor *const *tensors, int n,
			       bool grads, struct cuda_add *args)
{
	enum mu_status st = MU_OK;
	const int kind = args->kind;
	const void *of = args->of;

	args->n_x = 0;
	for (int i = 0; i < n; i++) {
		args->x[args->n_x++] = grads ? tensors[i]->grad : tensors[i]->data;
		args->kind = i == n - 1 ? kind : CUDA_LINEAR;
		args->of = i == n - 1 ? of : NULL;
		if (i < n - 1 && args->n_x < CUDA_MAX_ADDED)
			continue;
		MU_TRY(mu_cuda_eights(d, CUDA_add, args->n, args));
		args->x[0] = args->y;
		args->n_x = 1;
	}
out:
	return st;
}
