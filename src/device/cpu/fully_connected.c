/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fully connected layers on oneDNN's inner product. The input may be (n, c, h, w) in any layout.
 * The output is float32 also where bfloat16 is multiplied: it is small, and often the last.
 */
#include "cpu.h"

#include <muster/base.h>

struct shape {
	struct cpu_md src, weights, bias, dst; /* src fixed, weights any, dst plain */
	struct cpu_md have;                    /* the input's own, which src may not be */
	dnnl_dims_t weight_dims;               /* (units, c, h, w) or (units, features) */
	int ndims;
	bool has_bias;
};

static void describe_shape(const struct cpu_plan *p, struct shape *s)
{
	const struct mu_op *op = p->op;
	const struct mu_fully_connected *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;

	s->ndims = in->ndims;
	s->weight_dims[0] = a->units;
	for (int i = 1; i < in->ndims; i++)
		s->weight_dims[i] = (dnnl_dim_t)in->dims[i];
	s->has_bias = !a->no_bias;
	mu_cpu_tensor_md(&s->have, op->inputs[0]);
	s->src = s->have;
	s->src.data_type = p->dtype;
	mu_cpu_plain(&s->dst, &op->outputs[0]->shape);
	mu_dnnl_tag(&s->weights, s->ndims, s->weight_dims, dnnl_format_tag_any);
	s->weights.data_type = p->dtype;
	if (s->has_bias)
		mu_cpu_plain(&s->bias, &op->params[1].shape);
}

static enum mu_status plan_forward(struct cpu_plan *p, const struct shape *s,
				   dnnl_primitive_desc_t *hint, int *src)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct cpu_request request = {
		.kind = CPU_INNER_PRODUCT,
		.prop = op->phase == MU_PHASE_TRAIN ? dnnl_forward_training
						    : dnnl_forward_inference,
		.src = &s->src,
		.weights = &s->weights,
		.bias = s->has_bias ? &s->bias : NULL,
		.dst = &s->dst,
		.post = mu_cpu_eltwise(op->fusion.activation),
	};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md weights;
	struct cpu_arg args[4];
	int n = 3;

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	CPU_DNNL(dnnl_primitive_desc_clone(hint, pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &weights));
	MU_TRY(mu_cpu_set_param(&op->params[0], &weights));
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &s->dst));
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &s->have, CPU_IN_DATA, 0), &s->src,
			 op->phase == MU_PHASE_TRAIN, src));
	args[0] = (struct cpu_arg){DNNL_ARG_SRC, *src};
	args[1].arg = DNNL_ARG_WEIGHTS;
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &weights, &args[1].memory));
	args[2] = (struct cpu_arg){DNNL_ARG_DST, mu_cpu_memory(p, &s->dst, CPU_OUT_DATA, 0)};
	if (s->has_bias) {
		MU_TRY(mu_cpu_set_param(&op->params[1], &s->bias));
		args[n++] = (struct cpu_arg){DNNL_ARG_BIAS,
					     mu_cpu_memory(p, &s->bias, CPU_PARAM_DATA, 1)};
	}
	MU_TRY(mu_cpu_step(p, pd, n, args));
out:
	return st;
}

/* src, diff_dst: memories of the input and of the output's gradient, in the type of products. */
static enum mu_status plan_weights(struct cpu_plan *p, const struct shape *s,
				   dnnl_primitive_desc_t hint, int src, int diff_dst)
{
	enum mu_status st = MU_OK;
	struct cpu_md have, gradient = s->weights;
	const struct cpu_request request = {.kind = CPU_INNER_PRODUCT,
					    .prop = dnnl_backward_weights,
					    .src = &s->src,
					    .weights = &gradient,
					    .bias = s->has_bias ? &s->bias : NULL,
					    .dst = mu_cpu_md(p, diff_dst),
					    .hint = hint};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DIFF_DST, diff_dst}};
	int n = 2;

	gradient.data_type = dnnl_f32;
	MU_TRY(mu_cpu_describe(p, &request, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_weights_md, &gradient));
	mu_cpu_param_md(&have, &p->op->params[0], s->ndims, s->weight_dims);
	if (s->has_bias)
		args[n++] = (struct cpu_arg){DNNL_ARG_DIFF_BIAS,
					     mu_cpu_memory(p, &s->bias, CPU_PARAM_GRAD, 1)};
	args[n++].arg = DNNL_ARG_DIFF_WEIGHTS;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, &gradient,
			      mu_cpu_memory(p, &have, CPU_PARAM_GRAD, 0)));
out:
	return st;
}

static enum mu_status plan_data(struct cpu_plan *p, const struct shape *s,
				dnnl_primitive_desc_t hint, int diff_dst)
{
	enum mu_status st = MU_OK;
	const struct cpu_request request = {.kind = CPU_INNER_PRODUCT,
					    .prop = dnnl_backward_data,
					    .src = &s->src,
					    .weights = &s->weights,
					    .dst = mu_cpu_md(p, diff_dst),
					    .hint = hint};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md weights;
	struct cpu_arg args[3] = {
		{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_SRC, 0}};

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &weights));
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &weights, &args[1].memory));
	MU_TRY(mu_cpu_step_to(p, pd, 3, args, &s->src, mu_cpu_memory(p, &s->have, CPU_IN_GRAD, 0)));
out:
	return st;
}

/*
 * As a product of matrices, not as an inner product's gradient: where threads share the units and
 * these are no multiple of 64, that of oneDNN 2.6.3 in bfloat16 adds memory that nobody wrote.
 */
static enum mu_status plan_rounded_data(struct cpu_plan *p, const struct shape *s, int diff_dst)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *in = &p->op->inputs[0]->shape;
	const size_t units = (size_t)s->weight_dims[0], k = mu_shape_sample(in);
	const int to = mu_cpu_memory(p, &s->have, CPU_IN_GRAD, 0);
	struct cpu_md weights, x, w, plain;
	const struct cpu_request request = {.kind = CPU_MATMUL,
					    .src = mu_cpu_md(p, diff_dst),
					    .weights = &w,
					    .dst = &x};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {
		{DNNL_ARG_SRC, diff_dst}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DST, 0}};
	int grad = to;

	mu_cpu_rows_md(&x, in->dims[0], k);
	mu_cpu_rows_md(&w, units, k);
	mu_cpu_plain(&plain, in);
	mu_dnnl_tag(&weights, s->ndims, s->weight_dims, s->ndims == 2 ? dnnl_ab : dnnl_abcd);
	x.data_type = w.data_type = plain.data_type = weights.data_type = p->dtype;
	if (!mu_dnnl_equal(&s->have, &plain))
		grad = mu_cpu_temporary(p, &plain);
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &weights, &args[1].memory));
	args[1].memory = mu_cpu_seen_as(p, args[1].memory, &w);
	args[2].memory = mu_cpu_seen_as(p, grad, &x);
	MU_TRY(mu_cpu_describe(p, &request, &pd));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
	if (grad != to)
		MU_TRY(mu_cpu_reorder(p, grad, to));
out:
	return st;
}

enum mu_status mu_cpu_plan_fully_connected(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_primitive_desc_t hint = NULL;
	struct cpu_md gradient;
	struct shape s;
	int src, diff_dst;

	describe_shape(p, &s);
	MU_TRY(plan_forward(p, &s, &hint, &src));
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	p->program = &p->impl->backward;
	if (op->fusion.undo)
		MU_TRY(mu_cpu_plan_activation_backward(p, op->fusion.undo));
	gradient = s.dst;
	gradient.data_type = p->dtype;
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &s.dst, CPU_OUT_GRAD, 0), &gradient, false,
			 &diff_dst));
	MU_TRY(plan_weights(p, &s, hint, src, diff_dst));
	if (op->inputs[0]->needs_grad)
		MU_TRY(p->dtype == dnnl_f32 ? plan_data(p, &s, hint, diff_dst)
					    : plan_rounded_data(p, &s, diff_dst));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}
