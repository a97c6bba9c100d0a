/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local response normalisation on oneDNN, whose formula across channels is ours. oneDNN 2.6.3's
 * kernel for layouts with channels last is right for windows of 5 channels, the size that networks
 * use; planning others crashes or gives wrong gradients. Those work on plain tensors, or, where
 * plain is channels last too (one channel, or images of one pixel), on blocks of 16 channels. In
 * bfloat16 that kernel is off by 5 % for 17 channels: all work in float32.
 */
#include "cpu.h"

#include <muster/base.h>

/* hint: the forward one, of backward; else NULL. */
static enum mu_status describe(struct cpu_plan *p, const struct cpu_md *md,
			       dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *pd)
{
	const struct mu_lrn *a = p->op->attr;
	bool train = p->op->phase == MU_PHASE_TRAIN;
	const struct cpu_request request = {
		.kind = CPU_LRN,
		.prop = hint    ? dnnl_backward_data
			: train ? dnnl_forward_training
				: dnnl_forward_inference,
		.algorithm = dnnl_lrn_across_channels,
		.src = md,
		.size = a->size,
		.alpha = a->alpha,
		.beta = a->beta,
		.k = a->k,
		.hint = hint,
	};

	return mu_cpu_describe(p, &request, pd);
}

/* in: the input's values as md; workspace: what forward keeps for backward, -1 if nothing. */
static enum mu_status plan_backward(struct cpu_plan *p, const struct cpu_md *md,
				    dnnl_primitive_desc_t hint, int in, int workspace)
{
	enum mu_status st = MU_OK;
	struct cpu_md have;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {{DNNL_ARG_SRC, in}, {DNNL_ARG_DIFF_DST, 0}};
	int n = 2;

	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_OUT_GRAD, 0), md, false, &args[1].memory));
	MU_TRY(describe(p, md, hint, &pd));
	if (workspace >= 0)
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, workspace};
	args[n++].arg = DNNL_ARG_DIFF_SRC;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, md, mu_cpu_memory(p, &have, CPU_IN_GRAD, 0)));
out:
	return st;
}

/* The layout to work in, where the tensors have the layout `have`. */
static void choose_layout(const struct mu_op *op, const struct cpu_md *have, struct cpu_md *md)
{
	const struct mu_lrn *a = op->attr;
	const struct mu_shape *shape = &op->inputs[0]->shape;

	*md = *have;
	md->data_type = dnnl_f32;
	if (!mu_dnnl_channels_last(have) || a->size == 5)
		return;
	if (shape->dims[1] == 1 || shape->dims[2] * shape->dims[3] == 1)
		mu_cpu_tag(md, shape, dnnl_nChw16c);
	else
		mu_cpu_plain(md, shape);
}

enum mu_status mu_cpu_plan_lrn(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	bool train = op->phase == MU_PHASE_TRAIN;
	struct cpu_md have, md, kept;
	dnnl_primitive_desc_t pd = NULL, hint = NULL;
	struct cpu_arg args[3];
	int n = 1, workspace = -1;

	mu_cpu_tensor_md(&have, op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &have));
	choose_layout(op, &have, &md);
	MU_TRY(describe(p, &md, NULL, &pd));
	CPU_DNNL(dnnl_primitive_desc_clone(&hint, pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_workspace_md, &kept));
	args[0].arg = DNNL_ARG_SRC;
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &md, train, &args[0].memory));
	if (mu_dnnl_nbytes(&kept) > 0) {
		workspace = mu_cpu_keep(p, &kept);
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, workspace};
	}
	args[n++].arg = DNNL_ARG_DST;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, &md, mu_cpu_memory(p, &have, CPU_OUT_DATA, 0)));
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		MU_TRY(plan_backward(p, &md, hint, args[0].memory, workspace));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}
