/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM: the formulas of ref_lstm.c, as products of matrices. Inside, arrays are (steps, samples,
 * c), so that a step is a matrix. One product over all steps for what comes from the input, one per
 * step for what comes from the step before. Backward has the gates' gradients of all steps in the
 * end, and makes the gradients of weights and input with one product each.
 */
#include "cuda.h"

#include <muster/base.h>

enum { I2H_WEIGHT, I2H_BIAS, H2H_WEIGHT, H2H_BIAS };
enum { GATES = 4 };

struct size {
	size_t n, c, units, steps;
};

static struct size size_of(const struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	return (struct size){in->dims[0], in->dims[1], op->outputs[0]->shape.dims[1], in->dims[2]};
}

/* The workspace: inputs, gates, cells and h of all steps, (steps, n, ...). */
struct kept {
	float *x, *gates, *cells, *h;
};

static size_t n_kept(const struct size *z)
{
	return z->steps * z->n * (z->c + (GATES + 2) * z->units);
}

static struct kept kept_of(const struct mu_op *op, const struct size *z)
{
	const size_t rows = z->steps * z->n;
	struct kept k = {.x = op->workspace};

	k.gates = k.x + rows * z->c;
	k.cells = k.gates + rows * GATES * z->units;
	k.h = k.cells + rows * z->units;
	return k;
}

/* The scratch of backward: gradients of gates, outputs and inputs of all steps; of h and the cells
 * of one. */
struct gradients {
	float *gates, *y, *x, *h, *cells;
};

static size_t n_gradients(const struct size *z)
{
	return z->steps * z->n * (z->c + (GATES + 1) * z->units) + 2 * z->n * z->units;
}

static struct gradients gradients_of(const struct mu_op *op, const struct size *z)
{
	const size_t rows = z->steps * z->n;
	struct gradients g = {.gates = op->scratch};

	g.y = g.gates + rows * GATES * z->units;
	g.x = g.y + rows * z->units;
	g.h = g.x + rows * z->c;
	g.cells = g.h + z->n * z->units;
	return g;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	const struct size z = size_of(op);

	(void)d;
	op->workspace_nbytes = n_kept(&z) * sizeof(float);
	if (op->phase == MU_PHASE_TRAIN)
		op->scratch_nbytes = n_gradients(&z) * sizeof(float);
	return MU_OK;
}

/* Between a tensor (n, c, steps) and an array of steps. */
static enum mu_status turn(struct cuda_device *d, enum cuda_kernel kernel, const struct size *z,
			   size_t c, const float *from, float *to)
{
	struct cuda_steps args = {
		.from = from,
		.to = to,
		.samples = z->n,
		.c = c,
		.steps = z->steps,
		.n = z->n * c * z->steps,
	};

	return mu_cuda_each(d, kernel, args.n, &args);
}

static enum mu_status forward_step(struct cuda_device *d, struct mu_op *op, const struct size *z,
				   size_t t)
{
	enum mu_status st = MU_OK;
	const struct kept k = kept_of(op, z);
	const size_t cell = z->n * z->units, at = t * cell;
	const struct cuda_product product = {
		.a = t > 0 ? k.h + at - cell : NULL,
		.b = op->params[H2H_WEIGHT].data,
		.transpose_b = true,
		.c = k.gates + GATES * at,
		.rows = z->n,
		.columns = GATES * z->units,
		.inner = z->units,
		.keep = 1,
	};
	struct cuda_lstm_gates args = {
		.gates = k.gates + GATES * at,
		.i2h_bias = op->params[I2H_BIAS].data,
		.h2h_bias = op->params[H2H_BIAS].data,
		.before = t > 0 ? k.cells + at - cell : NULL,
		.cells = k.cells + at,
		.h = k.h + at,
		.units = z->units,
		.n = cell,
	};

	if (t > 0)
		MU_TRY(mu_cuda_multiply(d, &product));
	MU_TRY(mu_cuda_each(d, CUDA_lstm_gates, args.n, &args));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct size z = size_of(op);
	const struct kept k = kept_of(op, &z);
	const struct cuda_product inputs = {
		.a = k.x,
		.b = op->params[I2H_WEIGHT].data,
		.transpose_b = true,
		.c = k.gates,
		.rows = z.steps * z.n,
		.columns = GATES * z.units,
		.inner = z.c,
	};

	MU_TRY(turn(d, CUDA_to_steps, &z, z.c, op->inputs[0]->data, k.x));
	MU_TRY(mu_cuda_multiply(d, &inputs));
	for (size_t t = 0; t < z.steps; t++)
		MU_TRY(forward_step(d, op, &z, t));
	MU_TRY(turn(d, CUDA_from_steps, &z, z.units, k.h, op->outputs[0]->data));
out:
	return st;
}

/* da of the step, and dh of the one before. */
static enum mu_status backward_step(struct cuda_device *d, struct mu_op *op, const struct size *z,
				    size_t t)
{
	enum mu_status st = MU_OK;
	const struct kept k = kept_of(op, z);
	const struct gradients g = gradients_of(op, z);
	const size_t cell = z->n * z->units, at = t * cell;
	struct cuda_lstm_gates_backward args = {
		.gates = k.gates + GATES * at,
		.cells = k.cells + at,
		.before = t > 0 ? k.cells + at - cell : NULL,
		.dh = g.h,
		.dy = g.y + at,
		.dc = g.cells,
		.da = g.gates + GATES * at,
		.units = z->units,
		.n = cell,
	};
	const struct cuda_product product = {
		.a = args.da,
		.b = op->params[H2H_WEIGHT].data,
		.c = g.h,
		.rows = z->n,
		.columns = z->units,
		.inner = GATES * z->units,
	};

	MU_TRY(mu_cuda_each(d, CUDA_lstm_gates_backward, args.n, &args));
	if (t > 0)
		MU_TRY(mu_cuda_multiply(d, &product));
out:
	return st;
}

/* From da of all steps. With one step nothing came from a step before. */
static enum mu_status weight_gradients(struct cuda_device *d, struct mu_op *op,
				       const struct size *z)
{
	enum mu_status st = MU_OK;
	const struct kept k = kept_of(op, z);
	const struct gradients g = gradients_of(op, z);
	const size_t gates = GATES * z->units;
	struct cuda_product product = {
		.a = g.gates,
		.transpose_a = true,
		.b = k.x,
		.c = op->params[I2H_WEIGHT].grad,
		.rows = gates,
		.columns = z->c,
		.inner = z->steps * z->n,
	};
	struct cuda_channel_sums bias = {
		.x = g.gates,
		.out = op->params[I2H_BIAS].grad,
		.second = op->params[H2H_BIAS].grad,
		.samples = z->steps * z->n,
		.area = 1,
		.n = gates,
	};

	MU_TRY(mu_cuda_multiply(d, &product));
	MU_TRY(mu_cuda_rows(d, CUDA_channel_sums, bias.n, &bias));
	product.a = g.gates + z->n * gates; /* from step 1 on */
	product.b = k.h;
	product.c = op->params[H2H_WEIGHT].grad;
	product.columns = z->units;
	product.inner = (z->steps - 1) * z->n;
	if (z->steps > 1)
		MU_TRY(mu_cuda_multiply(d, &product));
	else
		CU(d, cuMemsetD8Async, cuda_pointer(product.c), 0, gates * z->units * sizeof(float),
		   d->work);
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct size z = size_of(op);
	const struct gradients g = gradients_of(op, &z);
	const struct mu_tensor *in = op->inputs[0];
	const struct cuda_product inputs = {
		.a = g.gates,
		.b = op->params[I2H_WEIGHT].data,
		.c = g.x,
		.rows = z.steps * z.n,
		.columns = z.c,
		.inner = GATES * z.units,
	};

	/* dh and dc of the step behind the last; they lie together. */
	CU(d, cuMemsetD8Async, cuda_pointer(g.h), 0, 2 * z.n * z.units * sizeof(float), d->work);
	MU_TRY(turn(d, CUDA_to_steps, &z, z.units, op->outputs[0]->grad, g.y));
	for (size_t t = z.steps; t-- > 0;)
		MU_TRY(backward_step(d, op, &z, t));
	MU_TRY(weight_gradients(d, op, &z));
	if (!in->needs_grad)
		goto out;
	MU_TRY(mu_cuda_multiply(d, &inputs));
	MU_TRY(turn(d, CUDA_from_steps, &z, z.c, g.x, in->grad));
out:
	return st;
}

const struct cuda_kind mu_cuda_lstm = {
	.like = &mu_ref_lstm,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
