/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Smooth activations, whose gradient needs the input. Those of which oneDNN has no such parameter
 * are loops of our own in float32, and there those with tanh, too: oneDNN's look into tables, which
 * takes more than three times as long with AVX2.
 */
#include "cpu.h"

#include <stdlib.h>

#include <muster/base.h>

#include "device/cpu/shared/exponential.h"

/* ---- by our own loops: values, and dx = dy times the slope at x, with the parameter p ---- */

MU_LOOP static void softplus(const float *restrict x, float *restrict y, size_t n, float p)
{
	const float share = 1 / p;

	for (size_t i = 0; i < n; i++)
		y[i] = (x[i] > 0 ? x[i] : 0) + share * log_of_1_and_exponential(p * x[i]);
}

MU_LOOP static void softplus_back(const float *restrict x, const float *restrict dy,
				  float *restrict dx, size_t n, float p)
{
	for (size_t i = 0; i < n; i++)
		dx[i] = dy[i] / (1 + exponential(-p * x[i]));
}

MU_LOOP static void scaled_tanh(const float *restrict x, float *restrict y, size_t n, float p)
{
	for (size_t i = 0; i < n; i++)
		y[i] = p * tangent(x[i]);
}

/* 1 - tanh(x)^2 is 4 e / (1 + e)^2 with e = e^-2|x|. */
MU_LOOP static void scaled_tanh_back(const float *restrict x, const float *restrict dy,
				     float *restrict dx, size_t n, float p)
{
	for (size_t i = 0; i < n; i++) {
		const float e = exponential(-2 * fabsf(x[i])), share = 1 / (1 + e);

		dx[i] = dy[i] * p * 4 * e * share * share;
	}
}

/* e^x - 1 is 2 t / (1 - t) with t = tanh(x / 2), which small values keep exact. */
MU_LOOP static void elu(const float *restrict x, float *restrict y, size_t n, float p)
{
	for (size_t i = 0; i < n; i++) {
		const float t = tangent(0.5f * x[i]);

		y[i] = x[i] > 0 ? x[i] : p * (2 * t / (1 - t));
	}
}

MU_LOOP static void elu_back(const float *restrict x, const float *restrict dy, float *restrict dx,
			     size_t n, float p)
{
	for (size_t i = 0; i < n; i++) {
		const float slope = p * exponential(x[i]);

		dx[i] = x[i] > 0 ? dy[i] : dy[i] * slope;
	}
}

static void gelu(const float *x, float *y, size_t n, float p)
{
	(void)p;
	mu_cpu_gelu(x, y, n);
}

static void gelu_back(const float *x, const float *dy, float *dx, size_t n, float p)
{
	(void)p;
	mu_cpu_gelu_back(x, dy, dx, n);
}

static void tanh_of(const float *x, float *y, size_t n, float p)
{
	(void)p;
	mu_cpu_tanh(x, y, n);
}

typedef void values_of(const float *x, float *y, size_t n, float p);
typedef void gradient_of(const float *x, const float *dy, float *dx, size_t n, float p);

static const struct own {
	values_of *values;
	gradient_of *gradient;
} own_loops[MU_ACTIVATION_N] = {
	[MU_ACTIVATION_GELU_TANH] = {gelu, gelu_back},
	[MU_ACTIVATION_ELU] = {elu, elu_back},
	[MU_ACTIVATION_SOFTPLUS] = {softplus, softplus_back},
	[MU_ACTIVATION_SCALED_TANH] = {scaled_tanh, scaled_tanh_back},
};

struct loop {
	values_of *values;
	gradient_of *gradient;
	float p;
	int x, y, x_again, dy, dx; /* memories of one layout */
	size_t n;                  /* floats, padding included */
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

	l->values((const float *)mu_cpu_pointer(op, l->x) + r.from,
		  (float *)mu_cpu_pointer(op, l->y) + r.from, r.n, l->p);
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct loop *l = loop_of(op);
	const struct range r = range_of(l, part);

	l->gradient((const float *)mu_cpu_pointer(op, l->x_again) + r.from,
		    (const float *)mu_cpu_pointer(op, l->dy) + r.from,
		    (float *)mu_cpu_pointer(op, l->dx) + r.from, r.n, l->p);
}

static enum mu_status plan_forward(struct cpu_plan *p, const struct loop *with)
{
	enum mu_status st = MU_OK;
	struct loop *l = malloc(sizeof *l);

	p->impl->own = l;
	if (!l)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", p->op->name);
	*l = *with;
	l->n = mu_dnnl_nbytes(mu_cpu_md(p, l->x)) / sizeof(float);
	mu_cpu_share(p, forward, l->n * sizeof(float));
out:
	return st;
}

enum mu_status mu_cpu_plan_tanh(struct cpu_plan *p, int x, int y)
{
	return plan_forward(p, &(struct loop){.values = tanh_of, .x = x, .y = y});
}

/* In float32, in the layout of the input, which is converted where it has another type. */
static enum mu_status plan_own(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	const struct mu_activation *a = p->op->attr;
	struct loop with = {.values = own_loops[a->kind].values,
			    .gradient = own_loops[a->kind].gradient,
			    .p = a->parameter};
	struct loop *l;
	struct cpu_md have, md;
	int gradient;

	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	md = have;
	md.data_type = dnnl_f32;
	MU_TRY(mu_cpu_set_tensor(p->op->outputs[0], &md));
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &md, false, &with.x));
	with.y = mu_cpu_memory(p, &md, CPU_OUT_DATA, 0);
	MU_TRY(plan_forward(p, &with));
	if (!p->op->inputs[0]->needs_grad)
		goto out;
	p->program = &p->impl->backward;
	l = p->impl->own;
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &md, false, &l->x_again));
	l->dy = mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0);
	gradient = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	l->dx = mu_dnnl_equal(&have, &md) ? gradient : mu_cpu_temporary(p, &md);
	mu_cpu_share(p, backward, l->n * sizeof(float));
	if (l->dx != gradient)
		MU_TRY(mu_cpu_reorder(p, l->dx, gradient));
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

/* oneDNN's have no such parameter in all versions; 2.6.3's ELU takes 1e-9 for below 0. */
static bool is_own(const struct mu_activation *a, dnnl_data_type_t type)
{
	switch (a->kind) {
	case MU_ACTIVATION_SOFTPLUS:
	case MU_ACTIVATION_SCALED_TANH: return true;
	case MU_ACTIVATION_ELU: return a->parameter != 1;
	default: return type == dnnl_f32 && own_loops[a->kind].values;
	}
}

enum mu_status mu_cpu_plan_smooth(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct cpu_md md;

	mu_cpu_tensor_md(&md, p->op->inputs[0]);
	if (is_own(p->op->attr, md.data_type))
		return plan_own(p);
	MU_TRY(mu_cpu_set_tensor(p->op->outputs[0], &md));
	MU_TRY(plan_onednn(p, &md));
out:
	return st;
}
