/* SPDX-License-Identifier: Apache-2.0 */
/* Activation, from its output's value, so that it can work in place. */
#include "cpu.h"

#include <muster/base.h>

static dnnl_alg_kind_t training_algorithm(const struct mu_activation *a)
{
	switch (a->kind) {
	case MU_ACTIVATION_RELU: return dnnl_eltwise_relu_use_dst_for_bwd;
	case MU_ACTIVATION_TANH: return dnnl_eltwise_tanh_use_dst_for_bwd;
	default: return dnnl_eltwise_logistic_use_dst_for_bwd;
	}
}

static enum mu_status describe_forward(struct cpu_plan *p, const struct mu_activation *a,
				       const struct cpu_md *md, dnnl_primitive_desc_t *pd)
{
	bool train = p->op->phase == MU_PHASE_TRAIN;
	const struct cpu_request request = {
		.kind = CPU_ELTWISE,
		.prop = train ? dnnl_forward_training : dnnl_forward_inference,
		.algorithm = train ? training_algorithm(a) : mu_cpu_eltwise(a),
		.src = md,
	};

	return mu_cpu_describe(p, &request, pd);
}

static enum mu_status plan_backward(struct cpu_plan *p, const struct mu_activation *a,
				    const struct cpu_md *md, int diff_src)
{
	enum mu_status st = MU_OK;
	struct cpu_request request = {.kind = CPU_ELTWISE,
				      .prop = dnnl_backward_data,
				      .algorithm = training_algorithm(a),
				      .src = md};
	dnnl_primitive_desc_t hint = NULL, pd = NULL;
	struct cpu_arg args[3] = {{DNNL_ARG_DST, mu_cpu_memory(p, md, CPU_OUT_DATA, 0)},
				  {DNNL_ARG_DIFF_DST, mu_cpu_memory(p, md, CPU_OUT_GRAD, 0)},
				  {DNNL_ARG_DIFF_SRC, diff_src}};

	MU_TRY(describe_forward(p, a, md, &hint));
	request.hint = hint;
	MU_TRY(mu_cpu_describe(p, &request, &pd));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}

/* From one memory to another, or the same. */
static enum mu_status plan_forward(struct cpu_plan *p, const struct mu_activation *a, int from,
				   int to)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[2] = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};

	MU_TRY(describe_forward(p, a, mu_cpu_md(p, from), &pd));
	MU_TRY(mu_cpu_step(p, pd, 2, args));
out:
	return st;
}

enum mu_status mu_cpu_plan_activation_forward(struct cpu_plan *p,
					      const struct mu_activation *activation)
{
	struct cpu_md md;
	int out;

	mu_cpu_tensor_md(&md, p->op->outputs[0]);
	out = mu_cpu_memory(p, &md, CPU_OUT_DATA, 0);
	return plan_forward(p, activation, out, out);
}

enum mu_status mu_cpu_plan_activation_backward(struct cpu_plan *p,
					       const struct mu_activation *activation)
{
	struct cpu_md md;

	mu_cpu_tensor_md(&md, p->op->outputs[0]);
	return plan_backward(p, activation, &md, mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0));
}

enum mu_status mu_cpu_plan_activation(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_activation *a = op->attr;
	struct cpu_md md;
	int x, y;

	mu_cpu_tensor_md(&md, op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	x = mu_cpu_memory(p, &md, CPU_IN_DATA, 0);
	y = mu_cpu_memory(p, &md, CPU_OUT_DATA, 0);
	if (a->kind == MU_ACTIVATION_TANH && md.data_type == dnnl_f32)
		MU_TRY(mu_cpu_plan_tanh(p, x, y));
	else
		MU_TRY(plan_forward(p, a, x, y));
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		MU_TRY(plan_backward(p, a, &md, mu_cpu_memory(p, &md, CPU_IN_GRAD, 0)));
out:
	return st;
}
