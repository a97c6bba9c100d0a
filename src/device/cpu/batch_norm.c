/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch-norm on oneDNN, with scale and shift as two arrays. fix_gamma: no scale at all. A fused
 * ReLU keeps in the workspace which outputs were above 0, so that backward reads no output.
 */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* Where the batch statistics lie in the workspace, in bytes. */
struct statistics {
	size_t mean, variance;
};

/* Gradient arrays of the moving statistics receive the batch's, times the samples that count. */
static void publish_statistics(struct mu_op *op)
{
	const struct statistics *s = ((struct cpu_op *)op->impl)->own;
	const float *mean = (const float *)((const char *)op->workspace + s->mean);
	const float *variance = (const float *)((const char *)op->workspace + s->variance);
	size_t c = op->aux[0].shape.dims[0];
	float n = (float)op->batch->count;

	for (size_t i = 0; i < c; i++) {
		op->aux[0].grad[i] = n * mean[i];
		op->aux[1].grad[i] = n * variance[i];
	}
}

static void clear_gamma_gradient(struct mu_op *op)
{
	memset(op->params[0].grad, 0, op->params[0].n_padded * sizeof(float));
}

struct norm {
	struct cpu_md data, vector;
	unsigned flags;
	int mean, variance;
	int positive; /* of a fused ReLU, in training */
};

static int statistics_args(const struct norm *b, struct cpu_arg *args, int n)
{
	args[n++] = (struct cpu_arg){DNNL_ARG_MEAN, b->mean};
	args[n++] = (struct cpu_arg){DNNL_ARG_VARIANCE, b->variance};
	return n;
}

static int forward_args(struct cpu_plan *p, const struct norm *b, struct cpu_arg *args)
{
	const struct mu_batch_norm *a = p->op->attr;
	int n = 0;

	args[n++] = (struct cpu_arg){DNNL_ARG_SRC, mu_cpu_memory(p, &b->data, CPU_IN_DATA, 0)};
	args[n++] = (struct cpu_arg){DNNL_ARG_DST, mu_cpu_memory(p, &b->data, CPU_OUT_DATA, 0)};
	n = statistics_args(b, args, n);
	args[n++] =
		(struct cpu_arg){DNNL_ARG_SHIFT, mu_cpu_memory(p, &b->vector, CPU_PARAM_DATA, 1)};
	if (!a->fix_gamma)
		args[n++] = (struct cpu_arg){DNNL_ARG_SCALE,
					     mu_cpu_memory(p, &b->vector, CPU_PARAM_DATA, 0)};
	return n;
}

/* The output with given statistics: in inference, and to restore it. That is a training's, with
 * the workspace written again: oneDNN's loops of inference round a fused ReLU's input otherwise. */
static enum mu_status plan_normalise(struct cpu_plan *p, struct norm *b)
{
	enum mu_status st = MU_OK;
	const struct mu_batch_norm *a = p->op->attr;
	const bool trains = p->op->phase == MU_PHASE_TRAIN;
	const struct cpu_request request = {.kind = CPU_BATCH_NORM,
					    .prop = trains ? dnnl_forward_training
							   : dnnl_forward_inference,
					    .src = &b->data,
					    .eps = a->eps,
					    .flags = b->flags | (unsigned)dnnl_use_global_stats};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[7];
	int n;

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	n = forward_args(p, b, args);
	if (trains && p->op->fusion.activation)
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, b->positive};
	MU_TRY(mu_cpu_step(p, pd, n, args));
out:
	return st;
}

static enum mu_status plan_forward(struct cpu_plan *p, struct norm *b, dnnl_primitive_desc_t *hint)
{
	enum mu_status st = MU_OK;
	const struct mu_batch_norm *a = p->op->attr;
	const struct cpu_request request = {.kind = CPU_BATCH_NORM,
					    .prop = dnnl_forward_training,
					    .src = &b->data,
					    .eps = a->eps,
					    .flags = b->flags};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md positive;
	struct cpu_arg args[7];
	int n;

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	CPU_DNNL(dnnl_primitive_desc_clone(hint, pd));
	n = forward_args(p, b, args);
	if (p->op->fusion.activation) {
		MU_TRY(mu_dnnl_query(pd, dnnl_query_workspace_md, &positive));
		b->positive = mu_cpu_keep(p, &positive);
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, b->positive};
	}
	MU_TRY(mu_cpu_step(p, pd, n, args));
out:
	return st;
}

static enum mu_status plan_backward(struct cpu_plan *p, struct norm *b, dnnl_primitive_desc_t hint)
{
	enum mu_status st = MU_OK;
	const struct mu_batch_norm *a = p->op->attr;
	const struct cpu_request request = {.kind = CPU_BATCH_NORM,
					    .prop = dnnl_backward,
					    .src = &b->data,
					    .eps = a->eps,
					    .flags = b->flags,
					    .hint = hint};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[10];
	int n = 0;

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	args[n++] = (struct cpu_arg){DNNL_ARG_SRC, mu_cpu_memory(p, &b->data, CPU_IN_DATA, 0)};
	args[n++] =
		(struct cpu_arg){DNNL_ARG_DIFF_DST, mu_cpu_memory(p, &b->data, CPU_OUT_GRAD, 0)};
	args[n++] = (struct cpu_arg){DNNL_ARG_DIFF_SRC,
				     p->op->inputs[0]->needs_grad
					     ? mu_cpu_memory(p, &b->data, CPU_IN_GRAD, 0)
					     : mu_cpu_temporary(p, &b->data)};
	n = statistics_args(b, args, n);
	if (mu_dnnl_backward_has_shift())
		args[n++] = (struct cpu_arg){DNNL_ARG_SHIFT,
					     mu_cpu_memory(p, &b->vector, CPU_PARAM_DATA, 1)};
	args[n++] = (struct cpu_arg){DNNL_ARG_DIFF_SHIFT,
				     mu_cpu_memory(p, &b->vector, CPU_PARAM_GRAD, 1)};
	if (!a->fix_gamma) {
		args[n++] = (struct cpu_arg){DNNL_ARG_SCALE,
					     mu_cpu_memory(p, &b->vector, CPU_PARAM_DATA, 0)};
		args[n++] = (struct cpu_arg){DNNL_ARG_DIFF_SCALE,
					     mu_cpu_memory(p, &b->vector, CPU_PARAM_GRAD, 0)};
	}
	if (p->op->fusion.activation)
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, b->positive};
	MU_TRY(mu_cpu_step(p, pd, n, args));
	if (a->fix_gamma)
		mu_cpu_call(p, clear_gamma_gradient);
	mu_cpu_call(p, publish_statistics);
out:
	return st;
}

enum mu_status mu_cpu_plan_batch_norm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_batch_norm *a = op->attr;
	struct norm b = {.flags = (unsigned)dnnl_use_shift |
				  (a->fix_gamma ? 0 : (unsigned)dnnl_use_scale) |
				  (op->fusion.activation ? (unsigned)dnnl_fuse_norm_relu : 0)};
	dnnl_primitive_desc_t hint = NULL;
	struct statistics *s = calloc(1, sizeof *s);

	p->impl->own = s;
	if (!s)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	mu_cpu_tensor_md(&b.data, op->inputs[0]);
	mu_cpu_plain(&b.vector, &op->params[0].shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &b.data));
	for (int i = 0; i < 2; i++) {
		MU_TRY(mu_cpu_set_param(&op->params[i], &b.vector));
		MU_TRY(mu_cpu_set_param(&op->aux[i], &b.vector));
	}
	if (op->phase != MU_PHASE_TRAIN) {
		b.mean = mu_cpu_memory(p, &b.vector, CPU_AUX_DATA, 0);
		b.variance = mu_cpu_memory(p, &b.vector, CPU_AUX_DATA, 1);
		MU_TRY(plan_normalise(p, &b));
		goto out;
	}
	b.mean = mu_cpu_keep(p, &b.vector);
	b.variance = mu_cpu_keep(p, &b.vector);
	s->mean = p->impl->memories[b.mean].index;
	s->variance = p->impl->memories[b.variance].index;
	MU_TRY(plan_forward(p, &b, &hint));
	p->program = &p->impl->backward;
	MU_TRY(plan_backward(p, &b, hint));
	p->program = &p->impl->restore;
	if (op->fusion.restored)
		MU_TRY(plan_normalise(p, &b));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}
