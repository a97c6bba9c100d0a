/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a plan. All operations of the net are created and fused as for the whole plan, and a
 * part keeps a run of them. So all decisions that depend on neighbours are those of the whole plan,
 * and results are equal to the bit. Tensors that a part reads from others have their own memory
 * here, and nothing works in place in them.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* ---- creating a part ---- */

static enum mu_status keep_own(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	const struct mu_plan_part *part = plan->part;

	if (part->n == 0 || part->first + part->n > plan->n_ops ||
	    plan->n_ops != part->whole->n_ops)
		MU_FAIL(MU_ERR_ARGUMENT,
			"network %s: no part of %zu layers from layer %zu on of %zu",
			plan->net->config.network, part->n, part->first, plan->n_ops);
	for (size_t i = part->first; i < part->first + part->n; i++)
		if (plan->ops[i].fusion.branches &&
		    mu_plan_maker(plan, plan->ops[i].fusion.branches[0]) >=
			    part->first + part->n)
			plan->ops[i].fusion.branches = NULL;
	for (size_t i = 0; i < plan->n_ops; i++)
		if (i < part->first || i >= part->first + part->n)
			free(plan->links[i]);
	memmove(plan->ops, plan->ops + part->first, part->n * sizeof *plan->ops);
	memmove(plan->links, plan->links + part->first, part->n * sizeof *plan->links);
	plan->n_ops = part->n;
out:
	return st;
}

/* Size and layout of a tensor that another part computes. */
static enum mu_status receive_from(struct mu_plan *plan, size_t t)
{
	enum mu_status st = MU_OK;
	struct mu_tensor *to = &plan->tensors[t];

	for (size_t i = 0; i < plan->part->n_before; i++) {
		const struct mu_plan *from = plan->part->before[i];
		const struct mu_tensor *made = &from->tensors[t];

		if (mu_plan_maker(from, made) == MU_PLAN_NONE)
			continue;
		to->nbytes = made->nbytes;
		to->sums_at = made->sums_at;
		MU_TRY(plan->device->ops->copy_layout(plan->device, made->layout, &to->layout));
		goto out;
	}
	MU_FAIL(MU_ERR_ARGUMENT,
		"network %s: the part from layer %zu on reads a tensor that no part before it "
		"computes",
		plan->net->config.network, plan->first);
out:
	return st;
}

static enum mu_status receive(struct mu_plan *plan, const struct mu_tensor *tensor)
{
	enum mu_status st = MU_OK;
	const size_t t = (size_t)(tensor - plan->tensors);

	for (size_t i = 0; i < plan->n_received; i++)
		if (plan->received[i] == t)
			goto out;
	if (t != 0)
		MU_TRY(receive_from(plan, t));
	plan->received[plan->n_received++] = t;
out:
	return st;
}

enum mu_status mu_plan_cut(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	if (plan->part)
		MU_TRY(keep_own(plan));
	MU_TRY(MU_ALLOC(plan->received, plan->n_tensors, "tensors of other parts"));
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		for (int k = 0; k < op->n_inputs; k++) {
			if (mu_plan_maker(plan, op->inputs[k]) != MU_PLAN_NONE)
				continue;
			MU_TRY(receive(plan, op->inputs[k]));
			if (k == 0 && !mu_op_has(op, MU_LAYER_IS_PASSAGE))
				op->fusion.in_place = false;
		}
	}
out:
	return st;
}

/* ---- transfers between parts ---- */

/* Copy to device memory, from anywhere. */
static enum mu_status copy(struct mu_device *device, void *to, const void *from, size_t nbytes)
{
	const struct mu_device_memory *memory = device->ops->memory;

	if (memory)
		return memory->upload(device, to, from, nbytes);
	memcpy(to, from, nbytes);
	return MU_OK;
}

/* Copy from device to host memory. */
static enum mu_status fetch(struct mu_device *device, void *to, const void *from, size_t nbytes)
{
	const struct mu_device_memory *memory = device->ops->memory;

	if (memory)
		return memory->download(device, to, from, nbytes);
	memcpy(to, from, nbytes);
	return MU_OK;
}

enum mu_status mu_plan_receive(struct mu_plan *part, const struct mu_plan *from)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < part->n_received; i++) {
		const size_t t = part->received[i];
		const struct mu_tensor *made = &from->tensors[t];

		if (mu_plan_maker(from, made) != MU_PLAN_NONE)
			MU_TRY(copy(part->device, part->tensors[t].data, made->data, made->nbytes));
	}
out:
	return st;
}

enum mu_status mu_plan_return(const struct mu_plan *part, struct mu_plan *to)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < part->n_received; i++) {
		const size_t t = part->received[i];
		struct mu_tensor *made = &to->tensors[t];

		if (made->needs_grad && mu_plan_maker(to, made) != MU_PLAN_NONE)
			MU_TRY(copy(part->device, made->grad, part->tensors[t].grad, made->nbytes));
	}
out:
	return st;
}

/* Entry i of the tensors that `to` receives: find its tensor number, if `from` computes it and, for
 * gradients, needs its gradient. */
static bool passes(const struct mu_plan *from, const struct mu_plan *to, size_t i, bool gradients,
		   size_t *t)
{
	*t = to->received[i];
	return mu_plan_maker(from, &from->tensors[*t]) != MU_PLAN_NONE &&
	       (!gradients || from->tensors[*t].needs_grad);
}

size_t mu_plan_pack_nbytes(const struct mu_plan *from, const struct mu_plan *to, bool gradients)
{
	size_t t, n = 0;

	for (size_t i = 0; i < to->n_received; i++)
		if (passes(from, to, i, gradients, &t))
			n += from->tensors[t].nbytes;
	return n;
}

enum mu_status mu_plan_pack(struct mu_plan *from, struct mu_plan *to, bool gradients, void *bytes)
{
	enum mu_status st = MU_OK;
	struct mu_plan *giver = gradients ? to : from;
	char *at = bytes;
	size_t t;

	for (size_t i = 0; i < to->n_received; i++) {
		if (!passes(from, to, i, gradients, &t))
			continue;
		MU_TRY(fetch(giver->device, at,
			     gradients ? giver->tensors[t].grad : giver->tensors[t].data,
			     from->tensors[t].nbytes));
		at += from->tensors[t].nbytes;
	}
	MU_TRY(mu_plan_finish(giver));
out:
	return st;
}

enum mu_status mu_plan_unpack(struct mu_plan *from, struct mu_plan *to, bool gradients,
			      const void *bytes)
{
	enum mu_status st = MU_OK;
	struct mu_plan *taker = gradients ? from : to;
	const char *at = bytes;
	size_t t;

	for (size_t i = 0; i < to->n_received; i++) {
		if (!passes(from, to, i, gradients, &t))
			continue;
		MU_TRY(copy(taker->device,
			    gradients ? taker->tensors[t].grad : taker->tensors[t].data, at,
			    from->tensors[t].nbytes));
		at += from->tensors[t].nbytes;
	}
	MU_TRY(mu_plan_finish(taker));
out:
	return st;
}

enum mu_status mu_plan_edges(const struct mu_plan *plan, struct mu_plan_edge **edges, size_t *n)
{
	enum mu_status st = MU_OK;

	*n = 0;
	MU_TRY(MU_ALLOC(*edges, plan->n_tensors, "what passes between layers"));
	for (size_t to = 0; to < plan->n_ops; to++)
		for (int k = 0; k < plan->ops[to].n_inputs; k++) {
			const struct mu_tensor *t = plan->ops[to].inputs[k];
			const size_t from = mu_plan_maker(plan, t);

			if (from != MU_PLAN_NONE)
				(*edges)[(*n)++] = (struct mu_plan_edge){
					from, to, t->nbytes, t->needs_grad ? t->nbytes : 0};
		}
out:
	return st;
}

const char *mu_plan_layer_group(const struct mu_plan *plan, size_t l)
{
	const struct net_layer *layers = plan->net->layers;
	int i = plan->ops[l].index;

	while (i > 0 && !*layers[i].group)
		i--;
	while (!*layers[i].group && i + 1 < plan->net->n_layers)
		i++;
	return layers[i].group;
}
