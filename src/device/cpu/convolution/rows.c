/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 1 x 1 of sequences (n, c, steps, 1): a product of all steps' rows with the
 * weight, which is faster than oneDNN's convolutions, the more so the fewer rows there are.
 */
#include "device/cpu/cpu.h"

#include <stdlib.h>

#include <muster/base.h>

bool mu_cpu_convolves_rows(const struct cpu_plan *p)
{
	const struct mu_op *op = p->op;
	const struct mu_convolution *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	const int phases = op->phase == MU_PHASE_TRAIN ? MU_CONVOLUTION_PHASES : 1;
	/* A single step too if the weight is another layer's, whose layout is plain; bfloat16 only
	 * then: otherwise oneDNN's convolutions are as fast. */
	const bool tied = op->params[0].n_padded > 0;
	bool one = in->ndims == 4 && in->dims[3] == 1 && a->groups <= 1 &&
		   (tied || (in->dims[2] > 1 && p->dtype == dnnl_f32));

	for (int i = 0; i < 2; i++)
		one = one && a->kernel[i] == 1 && a->stride[i] <= 1 && a->pad[i] == 0;
	for (int i = 0; i < phases; i++)
		one = one && (p->algorithms[i] == MU_CONVOLUTION_AUTO ||
			      p->algorithms[i] == MU_CONVOLUTION_GEMM);
	return one && !op->fusion.activation && !op->params[0].layout;
}

static enum mu_status forward_of_rows(struct cpu_plan *p, struct cpu_rows *m)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md last, plain;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {
		{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DST, 0}, {DNNL_ARG_BIAS, 0}};

	mu_cpu_plain(&plain, &op->params[0].shape);
	MU_TRY(mu_cpu_set_param(&op->params[0], &plain));
	mu_cpu_tag(&last, &op->outputs[0]->shape, dnnl_acdb);
	last.data_type = p->dtype;
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &last));
	MU_TRY(mu_cpu_rows_forward(p, m, &m->hint));
	MU_TRY(mu_cpu_rows_input(p, m, &args[0].memory));
	MU_TRY(mu_cpu_rows_weight(p, m, m->hint, &args[1].memory));
	args[2].memory = mu_cpu_memory(p, &m->y, CPU_OUT_DATA, 0);
	if (m->has_bias) {
		MU_TRY(mu_cpu_set_param(&op->params[1], &m->bias));
		args[3].memory = mu_cpu_memory(p, &m->bias, CPU_PARAM_DATA, 1);
	}
	CPU_DNNL(dnnl_primitive_desc_clone(&pd, m->hint));
	MU_TRY(mu_cpu_step(p, pd, m->has_bias ? 4 : 3, args));
	op->algorithms[MU_CONVOLUTION_FORWARD] = MU_CONVOLUTION_GEMM;
out:
	return st;
}

static enum mu_status weight_grad_of_rows(struct mu_op *op)
{
	return mu_cpu_rows_weight_grad(op, ((struct cpu_op *)op->impl)->own);
}

/* In float32 oneDNN's sgemm can add to the gradient, and needs no copy of it. */
static enum mu_status weights_of_rows(struct cpu_plan *p, const struct cpu_rows *m, int dy)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_rows_grad *g;
	int x;

	MU_TRY(mu_cpu_rows_input(p, m, &x));
	op->algorithms[MU_CONVOLUTION_WEIGHTS] = MU_CONVOLUTION_GEMM;
	if (p->dtype != dnnl_f32)
		return mu_cpu_rows_weight_step(p, m, x, dy);
	g = calloc(1, sizeof *g);
	p->impl->own = g;
	if (!g)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	*g = (struct cpu_rows_grad){
		.x = x, .dy = dy, .rows = (size_t)m->x.dims[0], .has_bias = m->has_bias};
	mu_cpu_try_call(p, weight_grad_of_rows);
	op->can_add = true;
out:
	return st;
}

static enum mu_status backward_of_rows(struct cpu_plan *p, const struct cpu_rows *m)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const int dy = mu_cpu_memory(p, &m->y, CPU_OUT_GRAD, 0);

	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad) {
		MU_TRY(mu_cpu_rows_input_grad(p, m, dy));
		op->algorithms[MU_CONVOLUTION_DATA] = MU_CONVOLUTION_GEMM;
	}
	p->program = &p->impl->weights;
	MU_TRY(weights_of_rows(p, m, dy));
out:
	return st;
}

enum mu_status mu_cpu_plan_convolution_rows(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct cpu_rows m;

	mu_cpu_rows_describe(&m, op, 0, in->dims[0] * in->dims[2],
			     p->dtype == dnnl_f32 ? dnnl_ab : dnnl_format_tag_any);
	m.x.data_type = m.y.data_type = m.weight.data_type = p->dtype;
	m.has_bias = !((const struct mu_convolution *)op->attr)->no_bias;
	MU_TRY(forward_of_rows(p, &m));
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(backward_of_rows(p, &m));
out:
	dnnl_primitive_desc_destroy(m.hint);
	return st;
}
