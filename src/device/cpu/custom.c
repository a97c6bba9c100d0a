/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of a user's own: they work on plain arrays. An input that the net lays out otherwise is
 * reordered into scratch before forward, and again before backward (kept in between it would cost
 * memory for the whole step); its gradient is reordered back. The output is plain.
 */
#include "cpu.h"
#include "device/custom.h"

#include <stdlib.h>

#include <muster/base.h>

/* Memories of the inputs in plain order, for each program; -1: none. */
struct plain_inputs {
	int data[MU_MAX_LAYER_INPUTS], data_again[MU_MAX_LAYER_INPUTS], grad[MU_MAX_LAYER_INPUTS];
};

static const struct plain_inputs *inputs_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct plain_inputs *plain = inputs_of(op);
	struct mu_layer layer;

	mu_custom_view(&layer, op, false);
	for (int i = 0; i < op->n_inputs; i++)
		layer.inputs[i].data = mu_cpu_pointer(op, plain->data[i]);
	return mu_custom_forward(op, &layer);
}

static enum mu_status backward(struct mu_op *op)
{
	const struct plain_inputs *plain = inputs_of(op);
	struct mu_layer layer;

	mu_custom_view(&layer, op, true);
	for (int i = 0; i < op->n_inputs; i++) {
		layer.inputs[i].data = mu_cpu_pointer(op, plain->data_again[i]);
		if (layer.inputs[i].grad)
			layer.inputs[i].grad = mu_cpu_pointer(op, plain->grad[i]);
	}
	return mu_custom_backward(op, &layer);
}

/* The inputs' values in plain order. */
static enum mu_status plan_inputs(struct cpu_plan *p, int *memories)
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
out:
	return st;
}

static enum mu_status plan_backward(struct cpu_plan *p, struct plain_inputs *own)
{
	enum mu_status st = MU_OK;
	const struct mu_op *op = p->op;
	struct cpu_md have, plain;
	int grad[MU_MAX_LAYER_INPUTS] = {0};

	MU_TRY(plan_inputs(p, own->data_again));
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

enum mu_status mu_cpu_plan_custom(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct plain_inputs *own = calloc(1, sizeof *own);
	struct cpu_md md;

	p->impl->own = own;
	if (!own)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	MU_TRY(mu_custom_plan(op));
	mu_cpu_plain(&md, &op->outputs[0]->shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	for (int i = 0; i < op->n_params; i++) {
		mu_cpu_plain(&md, &op->params[i].shape);
		MU_TRY(mu_cpu_set_param(&op->params[i], &md));
	}
	MU_TRY(plan_inputs(p, own->data));
	mu_cpu_try_call(p, forward);
	p->program = &p->impl->backward;
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(plan_backward(p, own));
out:
	return st;
}
