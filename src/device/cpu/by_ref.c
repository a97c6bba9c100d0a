/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds that are left to ref (device/kinds.def), users' layers among them: ref works on plain
 * arrays. An input that the net lays out otherwise is reordered into scratch before forward, and
 * again before backward (kept in between it would cost memory for the whole step); its gradient is
 * reordered back. Outputs and parameters are plain.
 */
#include "cpu.h"
#include "device/ref/ref.h"

#include <stdlib.h>

#include <muster/base.h>

/* Memories of the inputs in plain order, and of ref's scratch, for each program; -1: none. */
struct by_ref {
	int data[MU_REF_MAX_TENSORS], data_again[MU_REF_MAX_TENSORS], grad[MU_REF_MAX_TENSORS];
	int scratch, scratch_again;
	size_t scratch_nbytes;
};

static const struct by_ref *own_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

/* The operation as ref sees it. */
static void make_view(struct mu_ref_view *g, const struct mu_op *op, const int *data, int scratch)
{
	mu_ref_view_make(g, op);
	for (int i = 0; i < op->n_inputs; i++)
		g->inputs[i].data = mu_cpu_pointer(op, data[i]);
	if (scratch >= 0)
		g->op.scratch = mu_cpu_pointer(op, scratch);
	g->op.scratch_nbytes = own_of(op)->scratch_nbytes;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct by_ref *own = own_of(op);
	struct mu_ref_view g;

	make_view(&g, op, own->data, own->scratch);
	return mu_ref_view_forward(&g);
}

static enum mu_status backward(struct mu_op *op)
{
	const struct by_ref *own = own_of(op);
	struct mu_ref_view g;

	make_view(&g, op, own->data_again, own->scratch_again);
	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad)
			g.inputs[i].grad = mu_cpu_pointer(op, own->grad[i]);
	return mu_ref_view_backward(&g);
}

/* The inputs' values in plain order, and room for ref's scratch. */
static enum mu_status plan_inputs(struct cpu_plan *p, const struct by_ref *own, int *memories,
				  int *scratch)
{
	enum mu_status st = MU_OK;
	struct cpu_md have, plain;

	for (int i = 0; i < p->op->n_inputs; i++) {
		const struct mu_tensor *in = p->op->inputs[i];

		mu_cpu_tensor_md(&have, in);
		mu_cpu_plain(&plain, &in->shape);
		MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, (size_t)i), &plain, false,
				 &memories[i]));
	}
	*scratch = -1;
	if (own->scratch_nbytes > 0)
		*scratch = mu_cpu_floats(p, (own->scratch_nbytes + 3) / sizeof(float));
out:
	return st;
}

static enum mu_status plan_backward(struct cpu_plan *p, struct by_ref *own)
{
	enum mu_status st = MU_OK;
	const struct mu_op *op = p->op;
	struct cpu_md have, plain;
	int grad[MU_REF_MAX_TENSORS] = {0};

	MU_TRY(plan_inputs(p, own, own->data_again, &own->scratch_again));
	for (int i = 0; i < op->n_inputs; i++) {
		if (!op->inputs[i]->needs_grad)
			continue;
		mu_cpu_tensor_md(&have, op->inputs[i]);
		mu_cpu_plain(&plain, &op->inputs[i]->shape);
		grad[i] = mu_cpu_memory(p, &have, CPU_IN_GRAD, (size_t)i);
		own->grad[i] = mu_dnnl_equal(&have, &plain) ? grad[i] : mu_cpu_temporary(p, &plain);
	}
	mu_cpu_try_call(p, backward);
	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad && own->grad[i] != grad[i])
			MU_TRY(mu_cpu_reorder(p, own->grad[i], grad[i]));
out:
	return st;
}

enum mu_status mu_cpu_plan_by_ref(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct by_ref *own = calloc(1, sizeof *own);
	struct cpu_md md;

	p->impl->own = own;
	if (!own)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	MU_TRY(mu_ref_view_plan(op));
	own->scratch_nbytes = op->scratch_nbytes;
	op->scratch_nbytes = 0;
	for (int o = 0; o < op->n_outputs; o++) {
		mu_cpu_plain(&md, &op->outputs[o]->shape);
		MU_TRY(mu_cpu_set_tensor(op->outputs[o], &md));
	}
	MU_TRY(mu_cpu_set_plain_params(op));
	for (int i = 0; i < op->n_aux; i++) {
		mu_cpu_plain(&md, &op->aux[i].shape);
		MU_TRY(mu_cpu_set_param(&op->aux[i], &md));
	}
	MU_TRY(plan_inputs(p, own, own->data, &own->scratch));
	mu_cpu_try_call(p, forward);
	p->program = &p->impl->backward;
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(plan_backward(p, own));
out:
	return st;
}
