/* SPDX-License-Identifier: Apache-2.0 */
/* A net compiled for one device, batch size and phase: how a plan is made, and freed. */
#include "plan.h"

#include <stdlib.h>

#include <muster/base.h>

static enum mu_status allocate(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	size_t n_layers = (size_t)plan->net->n_layers;

	plan->n_tensors = (size_t)plan->net->n_tensors;
	plan->tensors = calloc(plan->n_tensors, sizeof *plan->tensors);
	plan->ops = calloc(n_layers, sizeof *plan->ops);
	plan->links = calloc(n_layers, sizeof *plan->links);
	if (!plan->tensors || !plan->ops || !plan->links)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of network %s",
			plan->net->config.network);
out:
	return st;
}

static void lay_input(struct mu_plan *plan)
{
	struct mu_tensor *in = &plan->tensors[0];
	const struct mu_op *reader = NULL;
	size_t n = 0;

	in->nbytes = mu_shape_n(&in->shape) * sizeof(float);
	for (size_t i = 0; i < plan->n_ops; i++)
		for (int k = 0; k < plan->ops[i].n_inputs; k++)
			if (plan->ops[i].inputs[k] == in) {
				reader = &plan->ops[i];
				n++;
			}
	if (n == 1 && plan->device->ops->lay_input)
		plan->device->ops->lay_input(plan->device, reader);
}

/* The device chooses kernels and layouts; parameters keep the layouts of `like`. */
static enum mu_status plan_device(struct mu_plan *plan, const struct mu_plan *like)
{
	enum mu_status st = MU_OK;
	const struct mu_device_ops *device = plan->device->ops;
	const size_t first = plan->first - (like ? like->first : 0);

	lay_input(plan);
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		for (int p = 0; like && p < op->n_params + op->n_aux; p++) {
			const struct mu_param *from = mu_plan_op_param(&like->ops[first + i], p);
			struct mu_param *to = mu_plan_op_param(op, p);

			to->n_padded = from->n_padded;
			MU_TRY(device->copy_layout(plan->device, from->layout, &to->layout));
		}
		MU_TRY(mu_plan_tie_layout(plan, i));
		plan->n_planned++;
		op->fusion.weights_later =
			plan->block.on && plan->phase == MU_PHASE_TRAIN && device->backward_weights;
		MU_TRY(device->plan(plan->device, op));
	}
	mu_plan_join_splits(plan);
out:
	return st;
}

static enum mu_status compile(struct mu_plan *plan, const struct mu_plan *like)
{
	enum mu_status st = MU_OK;

	if (plan->batch_size == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "a plan needs a batch of at least 1");
	plan->batch.use_ignore = plan->net->use_ignore;
	plan->batch.ignore_label = plan->net->ignore_label;
	plan->batch.class_weights = plan->net->class_weights;
	MU_TRY(allocate(plan));
	MU_TRY(mu_plan_operations(plan));
	MU_TRY(mu_plan_cut(plan));
	MU_TRY(mu_plan_find_ties(plan));
	MU_TRY(mu_plan_choose_restores(plan));
	MU_TRY(plan_device(plan, like));
	MU_TRY(mu_plan_lay_keys(plan));
	MU_TRY(mu_plan_memory(plan));
out:
	return st;
}

static enum mu_status new_plan(struct mu_plan **out, const struct mu_plan *model,
			       const struct mu_plan *like)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = calloc(1, sizeof *plan);

	*out = NULL;
	if (!plan)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of network %s",
			model->net->config.network);
	*plan = *model;
	MU_TRY(compile(plan, like));
	plan->part = NULL;
	*out = plan;
	plan = NULL;
out:
	mu_plan_free(plan);
	return st;
}

enum mu_status mu_plan_new_dry(struct mu_plan **out, const struct mu_net *net,
			       struct mu_device *device, size_t batch, enum mu_phase phase,
			       const struct mu_plan *like)
{
	const struct mu_plan model = {.net = net,
				      .device = device,
				      .phase = phase,
				      .batch_size = batch,
				      .memory.dry = true};

	return new_plan(out, &model, like);
}

enum mu_status mu_plan_new_part(struct mu_plan **out, const struct mu_plan_part *part)
{
	const struct mu_plan model = {.net = part->net,
				      .device = part->device,
				      .phase = part->phase,
				      .batch_size = part->batch,
				      .part = part,
				      .first = part->first,
				      .block.on = part->of_block,
				      .block.first = part->first_block,
				      .memory.dry = true};

	return new_plan(out, &model, part->whole);
}

enum mu_status mu_plan_allocate(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	if (!plan->memory.dry)
		goto out;
	plan->memory.dry = false;
	MU_TRY(mu_plan_memory(plan));
	MU_TRY(mu_plan_alloc_words(plan));
	MU_TRY(mu_plan_feed_open(plan));
	if (plan->block.on)
		MU_TRY(mu_plan_alloc_states(plan));
	if (!plan->result.probabilities && mu_plan_has_end(plan) && !plan->device->ops->memory &&
	    !mu_plan_rows(plan))
		MU_TRY(mu_plan_alloc_probabilities(plan));
out:
	return st;
}

enum mu_status mu_plan_allocate_in(struct mu_plan *plan, const struct mu_plan *owner)
{
	const size_t n = mu_shape_n(mu_plan_probabilities_shape(plan));
	const size_t nbytes = plan->memory.nbytes;

	if (plan->memory.dry && owner->memory.arena && owner->memory.nbytes >= nbytes &&
	    mu_shape_n(mu_plan_probabilities_shape(owner)) >= n) {
		plan->memory.arena = owner->memory.arena;
		plan->result.probabilities = owner->result.probabilities;
		plan->memory.borrowed = true;
	}
	return mu_plan_allocate(plan);
}

enum mu_status mu_plan_new(struct mu_plan **out, const struct mu_net *net, struct mu_device *device,
			   size_t batch, enum mu_phase phase, const struct mu_plan *like)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = NULL;

	*out = NULL;
	MU_TRY(mu_plan_new_dry(&plan, net, device, batch, phase, like));
	MU_TRY(mu_plan_allocate(plan));
	*out = plan;
	plan = NULL;
out:
	mu_plan_free(plan);
	return st;
}

void mu_plan_free(struct mu_plan *plan)
{
	if (!plan)
		return;
	mu_plan_record_close(plan); /* before what it has recorded goes */
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		if (i < plan->n_planned)
			plan->device->ops->release(plan->device, op);
		for (int p = 0; p < op->n_params + op->n_aux; p++)
			plan->device->ops->free_layout(plan->device,
						       mu_plan_op_param(op, p)->layout);
		for (int o = 0; o < op->n_outputs; o++)
			plan->device->ops->free_layout(plan->device, op->outputs[o]->layout);
		free(plan->links[i]);
	}
	for (size_t i = 0; i < plan->n_received; i++)
		plan->device->ops->free_layout(plan->device,
					       plan->tensors[plan->received[i]].layout);
	mu_plan_free_layout(plan);
	mu_plan_free_memory(plan);
	mu_plan_free_states(plan);
	mu_plan_forget(plan);
	mu_plan_free_probabilities(plan);
	mu_free(plan->received);
	mu_free(plan->restore.all);
	mu_free(plan->restore.first);
	free(plan->tensors);
	free(plan->ops);
	free(plan->links);
	free(plan);
}
