/* SPDX-License-Identifier: Apache-2.0 */
/* Time blocks: which nets support them, the states between parts, and the half of backward that can
 * be deferred. */
#include "plan.h"

#include <muster/base.h>

enum mu_status mu_net_check_blocks(const struct mu_net *net)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *in = &net->tensors[0].shape;
	const struct mu_shape sequence = mu_sample_sequence(mu_shape_space(in, 0));
	bool recurs = false;

	for (int i = 0; i < net->n_layers; i++) {
		const struct net_layer *layer = &net->layers[i];
		const struct mu_layer_kind *kind = layer->kind;

		if (kind->state)
			recurs = true;
		else if (!mu_layer_is_stepwise(kind, layer->attr))
			MU_FAIL(MU_ERR_USAGE,
				"network %s cannot work on blocks of steps: layer %s (%s) needs "
				"all of them",
				net->config.network, layer->name, mu_op_kind_name(kind->op));
	}
	if (!recurs || !mu_shape_equal(in, &sequence))
		MU_FAIL(MU_ERR_USAGE,
			"network %s has no sequences of steps for LSTM layers: it cannot work on "
			"blocks of them",
			net->config.network);
out:
	return st;
}

/* ---- states ---- */

/* Floats of an operation's state; 0 if it has none. */
static size_t state_of(const struct mu_op *op)
{
	const struct mu_layer_kind *kind = mu_layer_kind(op->kind);

	return kind->state ? kind->state(&op->outputs[0]->shape) : 0;
}

enum mu_status mu_plan_alloc_states(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(plan->block.states, plan->n_ops, "states of blocks"));
	for (size_t i = 0; i < plan->n_ops; i++) {
		const size_t n = state_of(&plan->ops[i]);
		void *own = NULL;

		if (n == 0)
			continue;
		MU_TRY(mu_plan_alloc(plan, &own, 2 * n * sizeof(float), "states of blocks"));
		plan->block.states[i].own = own;
		if (!plan->block.first && plan->ops[i].shared_nbytes > 0)
			MU_TRY(mu_alloc(&plan->block.states[i].shared, plan->ops[i].shared_nbytes,
					"weights of blocks"));
		plan->ops[i].state = &plan->block.states[i].op;
	}
out:
	return st;
}

void mu_plan_free_states(struct mu_plan *plan)
{
	for (size_t i = 0; plan->block.states && i < plan->n_ops; i++) {
		mu_plan_release(plan, plan->block.states[i].own);
		mu_free(plan->block.states[i].shared);
	}
	mu_free(plan->block.states);
}

void mu_plan_join(struct mu_plan *plan, size_t block, const struct mu_plan *before,
		  const struct mu_plan *after)
{
	const struct mu_plan *first = plan->block.first ? plan->block.first : plan;

	for (size_t i = 0; i < plan->n_ops; i++) {
		const size_t n = state_of(&plan->ops[i]);
		struct plan_state *s = &plan->block.states[i];

		plan->ops[i].block = block;
		if (n == 0)
			continue;
		s->op = (struct mu_state){
			.before = before ? before->block.states[i].own : NULL,
			.after_grad = after ? after->block.states[i].own + n : NULL,
			.after = after ? s->own : NULL,
			.before_grad = before ? s->own + n : NULL,
			.shared = first->block.states[i].shared,
			.has_shared = after,
		};
	}
}

/* ---- gradients of weights ---- */

bool mu_plan_weights_later(const struct mu_plan *plan, size_t l)
{
	return plan->ops[l].fusion.weights_later;
}

enum mu_status mu_plan_backward_weights(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = &plan->ops[l];

	if (!op->fusion.weights_later || !op->outputs[0]->needs_grad)
		goto out;
	MU_TRY(plan->device->ops->backward_weights(plan->device, op));
	MU_TRY(mu_plan_unscale(plan, l, l + 1));
out:
	return st;
}
