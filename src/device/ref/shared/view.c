/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of devices that leave their kind to ref. See ref.h. */
#include "device/ref/ref.h"

#include <muster/base.h>

void mu_ref_view_make(struct mu_ref_view *g, const struct mu_op *op)
{
	g->op = *op;
	g->op.impl = NULL;
	g->op.inputs = g->input_links;
	g->op.outputs = g->output_links;
	for (int i = 0; i < op->n_inputs; i++) {
		g->inputs[i] = *op->inputs[i];
		g->inputs[i].layout = NULL;
		g->input_links[i] = &g->inputs[i];
	}
	for (int o = 0; o < op->n_outputs; o++) {
		g->outputs[o] = *op->outputs[o];
		g->outputs[o].layout = NULL;
		g->output_links[o] = &g->outputs[o];
	}
}

enum mu_status mu_ref_view_plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_ref_kind *kind = mu_ref_kind_of(op->kind);
	struct mu_ref_view g;

	if (op->n_inputs > MU_REF_MAX_TENSORS || op->n_outputs > MU_REF_MAX_TENSORS)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (%s): %d inputs and %d outputs; at most %d each",
			op->name, mu_op_kind_name(op->kind), op->n_inputs, op->n_outputs,
			MU_REF_MAX_TENSORS);
	if (op->fusion.in_place)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (%s): on this device it cannot work in place",
			op->name, mu_op_kind_name(op->kind));
	op->fusion.shared_grads = 0;
	op->workspace_nbytes = op->scratch_nbytes = 0;
	mu_ref_view_make(&g, op);
	MU_TRY(mu_ref_check(&g.op, kind));
	MU_TRY(kind->plan(&g.op));
	op->workspace_nbytes = g.op.workspace_nbytes;
	op->scratch_nbytes = g.op.scratch_nbytes;
out:
	return st;
}

enum mu_status mu_ref_view_forward(struct mu_ref_view *g)
{
	return mu_ref_kind_of(g->op.kind)->forward(&g->op);
}

enum mu_status mu_ref_view_backward(struct mu_ref_view *g)
{
	return mu_ref_backward(&g->op);
}
