/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Smooth activations, whose gradient needs the input. In float32 those with tanh are loops of our
 * own: oneDNN's look into tables, which takes more than three times as long with AVX2.
 */
#include "cpu.h"

#include <stdlib.h>

#include <muster/base.h>

/* ---- by our own loops ---- */

typedef void function_of(const float *x, float *y, size_t n);

struct loop {
	function_of *function;
	int x, y, dy, dx; /* memories of one layout */
	size_t n;         /* floats, padding included */
};

/* Of a part, in whole lines of the cache. */
struct range {
	size_t from, n;
};

static struct range range_of(const struct loop *l, struct cpu_part part)
{
	enum { LINE = 16 };
	const size_t lines = (l->n + LINE - 1) / LINE;
	const size_t from = part.index * lines / part.n * LINE;
	const size_t to = (part.index + 1) * lines / part.n * LINE;

	return (struct range){from, (to < l->n ? to : l->n) - from};
}

static const struct loop *loop_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct loop *l = loop_of(op);
	const struct range r = range_of(l, part);

	l->function((const float *)mu_cpu_pointer(op, l->x) + r.from,
		    (float *)mu_cpu_pointer(op, l->y) + r.from, r.n);
}

static void backward_gelu(struct mu_op *op, struct cpu_part part)
{
	const struct loop *l = loop_of(op);
	const struct range r = range_of(l, part);

	mu_cpu_gelu_back((const float *)mu_cpu_pointer(op, l->x) + r.from,
			 (const float *)mu_cpu_pointer(op, l->dy) + r.from,
			 (float *)mu_cpu_pointer(op, l->dx) + r.from, r.n);
}

static enum mu_status plan_forward(struct cpu_plan *p, function_of *function, int x, int y)
{
	enum mu_status st = MU_OK;
	struct loop *l = malloc(sizeof *l);

	p->impl->own = l;
	if (!l)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", p->op->name);
	*l = (struct loop){function, x, y, -1, -1,
			   mu_dnnl_nbytes(mu_cpu_md(p, x)) / sizeof(float)};
	mu_cpu_share(p, forward, l->n * sizeof(float));
out:
	return st;
}

enum mu_status mu_cpu_plan_tanh(struct cpu_plan *p, int x, int y)
{
	return plan_forward(p, mu_cpu_tanh, x, y);
}

static enum mu_status plan_gelu(struct cpu_plan *p, const struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	struct loop *l;
	const int x = mu_cpu_memory(p, md, CPU_IN_DATA, 0);

	MU_TRY(plan_forward(p, mu_cpu_gelu, x, mu_cpu_memory(p, md, CPU_OUT_DATA, 0)));
	if (!p->op->inputs[0]->needs_grad)
		goto out;
	p->program = &p->impl->backward;
	l = p->impl->own;
	l->dy = mu_cpu_memory(p, md, CPU_OUT_GRAD, 0);
	l->dx = mu_cpu_memory(p, md, CPU_IN_GRAD, 0);
	mu_cpu_share(p, backward_gelu, l->n * sizeof(float));
out:
	return st;
}

/* ---- by oneDNN ---- */

static dnnl_alg_kind_t algorithm_of(const struct mu_op *op)
{
	switch (((const struct mu_activation *)op->attr)->kind) {
	case MU_ACTIVATION_GELU: return dnnl_eltwise_gelu_erf;
	case MU_ACTIVATION_GELU_TANH: return dnnl_eltwise_gelu_tanh; /* in bfloat16 */
	case MU_ACTIVATION_LEAKY_RELU: return dnnl_eltwise_relu;
	case MU_ACTIVATION_ELU: return dnnl_eltwise_elu;
	default: return dnnl_eltwise_swish;
	}
}

static enum mu_status plan_onednn(struct cpu_plan *p, const struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const float parameter = ((const struct mu_activation *)op->attr)->parameter;
	struct cpu_request request = {
		.kind = CPU_ELTWISE,
		.prop = op->phase == MU_PHASE_TRAIN ? dnnl_forward_training
						    : dnnl_forward_inference,
		.algorithm = algorithm_of(op),
		.src = md,
		.alpha = parameter > 0 ? parameter : 1, /* 1: of swish */
	};
	dnnl_primitive_desc_t pd = NULL, hint = NULL;
	struct cpu_arg args[3];
	int x;

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	CPU_DNNL(dnnl_primitive_desc_clone(&hint, pd));
	x = mu_cpu_memory(p, md, CPU_IN_DATA, 0);
	args[0] = (struct cpu_arg){DNNL_ARG_SRC, x};
	args[1] = (struct cpu_arg){DNNL_ARG_DST, mu_cpu_memory(p, md, CPU_OUT_DATA, 0)};
	MU_TRY(mu_cpu_step(p, pd, 2, args));
	if (!op->inputs[0]->needs_grad)
		goto out;
	p->program = &p->impl->backward;
	request.prop = dnnl_backward_data;
	request.hint = hint;
	MU_TRY(mu_cpu_describe(p, &request, &pd));
	args[1] = (struct cpu_arg){DNNL_ARG_DIFF_DST, mu_cpu_memory(p, md, CPU_OUT_GRAD, 0)};
	args[2] = (struct cpu_arg){DNNL_ARG_DIFF_SRC, mu_cpu_memory(p, md, CPU_IN_GRAD, 0)};
	MU_TRY(mu_cpu_step(p, pd, 3, args));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}

enum mu_status mu_cpu_plan_smooth(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	const struct mu_activation *a = p->op->attr;
	struct cpu_md md;

	/* oneDNN's have no such parameter in all versions; 2.6.3's ELU takes 1e-9 for below 0. */
	if (a->kind == MU_ACTIVATION_SOFTPLUS || a->kind == MU_ACTIVATION_SCALED_TANH ||
	    (a->kind == MU_ACTIVATION_ELU && a->parameter != 1))
		return mu_cpu_plan_by_ref(p);
	mu_cpu_tensor_md(&md, p->op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(p->op->outputs[0], &md));
	if (a->kind == MU_ACTIVATION_GELU_TANH && md.data_type == dnnl_f32)
		MU_TRY(plan_gelu(p, &md));
	else
		MU_TRY(plan_onednn(p, &md));
out:
	return st;
}
