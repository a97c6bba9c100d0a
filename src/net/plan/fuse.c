/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From layers to operations. An activation after a convolution, a fully connected layer or a sum,
 * and a ReLU after a batch-norm, are fused with that operation. Other activations work in place if
 * backward of their producer does not read the output. Residual networks need no copies: a sum
 * works in its first input's memory and shares its gradient with its inputs, and the split after it
 * undoes its ReLU while it adds. On devices whose batch-norms add, a sum of two is fused with the
 * batch-norm directly before it, whose backward may do the split's.
 */
#include "plan.h"

#include <stdlib.h>

#include <muster/base.h>

enum { LARGE_VOCABULARY = 4096 };

static bool can_fuse_activation(const struct mu_op *op, const struct mu_activation *activation)
{
	if (op->fusion.activation)
		return false;
	return mu_op_has(op, MU_LAYER_ABSORBS_ACTIVATION) ||
	       (mu_op_has(op, MU_LAYER_ABSORBS_RELU) && activation->kind == MU_ACTIVATION_RELU);
}

/* The operation that writes tensor t, or NULL. */
static struct mu_op *producer(const struct mu_plan *plan, const struct mu_tensor *t)
{
	const size_t i = mu_plan_maker(plan, t);

	return i == MU_PLAN_NONE ? NULL : &plan->ops[i];
}

static void set_param(struct mu_param *to, const struct net_param *from)
{
	to->name = from->name;
	to->shape = from->shape;
}

static enum mu_status add_operation(struct mu_plan *plan, int l)
{
	enum mu_status st = MU_OK;
	const struct net_layer *layer = &plan->net->layers[l];
	struct mu_op *op = &plan->ops[plan->n_ops];
	struct mu_tensor **links =
		calloc((size_t)(layer->n_inputs + layer->n_outputs), sizeof *links);

	if (!links)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of network %s",
			plan->net->config.network);
	plan->links[plan->n_ops] = links;
	plan->n_ops++;
	*op = (struct mu_op){
		.kind = layer->kind->op,
		.name = layer->name,
		.index = l,
		.attr = layer->attr,
		.phase = plan->phase,
		.n_inputs = layer->n_inputs,
		.n_outputs = layer->n_outputs,
		.inputs = links,
		.outputs = links + layer->n_inputs,
		.batch = &plan->batch,
	};
	for (int i = 0; i < layer->n_inputs; i++)
		op->inputs[i] = &plan->tensors[layer->inputs[i]];
	for (int i = 0; i < layer->n_outputs; i++)
		op->outputs[i] = &plan->tensors[layer->outputs[i]];
	for (int p = 0; p < layer->n_params; p++) {
		if (layer->params[p].aux)
			set_param(&op->aux[op->n_aux++], &layer->params[p]);
		else
			set_param(&op->params[op->n_params++], &layer->params[p]);
	}
out:
	return st;
}

/* May its backward overwrite its output's gradient? */
static bool writes_gradient(const struct mu_op *op)
{
	return mu_plan_has_activation_to_undo(op) || mu_op_has(op, MU_LAYER_OVERWRITES_GRAD);
}

/* After all operations before it are complete. A batch-norm undoes its own ReLU at no cost. */
static void join(struct mu_plan *plan, struct mu_op *op)
{
	struct mu_op *before = producer(plan, op->inputs[0]);
	const bool over = mu_op_has(op, MU_LAYER_WORKS_OVER);

	if (before && mu_op_has(op, MU_LAYER_WANTS_SUMS))
		before->fusion.feeds_norm = true;
	if (mu_op_has(op, MU_LAYER_IS_PASSAGE)) {
		op->fusion.in_place = true;
		if (before && mu_plan_has_activation_to_undo(before) &&
		    before->fusion.activation->kind == MU_ACTIVATION_RELU) {
			op->fusion.undo = before->fusion.undo;
			before->fusion.undo = NULL;
			if (mu_op_has(before, MU_LAYER_ABSORBS_ADDEND) && op->n_outputs == 2)
				before->fusion.branches = op->outputs;
		}
	}
	/* A large vocabulary: neither its predictions nor their gradient take memory of their own.
	 * Another part of the net may want them at any time. */
	if (over && mu_shape_channels(&op->outputs[0]->shape) >= LARGE_VOCABULARY)
		op->fusion.in_place = !plan->part && before && !before->fusion.in_place &&
				      !before->fusion.shared_grads && !mu_plan_reads_output(before);
	if (over && op->fusion.in_place)
		before->fusion.feeds_loss = true;
	if (!mu_op_has(op, MU_LAYER_IS_ADDITION))
		return;
	op->fusion.in_place = before && !before->fusion.in_place && !mu_plan_reads_output(before);
	for (int i = 0; i < op->n_inputs && i < 32; i++) {
		before = producer(plan, op->inputs[i]);
		if (before && !writes_gradient(before))
			op->fusion.shared_grads |= 1u << i;
	}
}

/* For a sum of two: the last operation, if it is a batch-norm that computes one of the addends. */
static struct mu_op *norm_for(const struct mu_plan *plan, const struct net_layer *sum)
{
	struct mu_op *last = plan->n_ops > 0 ? &plan->ops[plan->n_ops - 1] : NULL;

	if (!plan->device->ops->norms_add || !mu_layer_has(sum->kind, MU_LAYER_IS_ADDITION) ||
	    sum->n_inputs != 2 || !last || !mu_op_has(last, MU_LAYER_ABSORBS_ADDEND) ||
	    last->n_inputs > 1 || last->fusion.activation)
		return NULL;
	for (int i = 0; i < 2; i++)
		if (last->outputs[0] == &plan->tensors[sum->inputs[i]])
			return last;
	return NULL;
}

/* The batch-norm adds the other addend and writes the sum's output. */
static enum mu_status add_to_norm(struct mu_plan *plan, struct mu_op *norm,
				  const struct net_layer *sum)
{
	enum mu_status st = MU_OK;
	const bool first = norm->outputs[0] == &plan->tensors[sum->inputs[0]];
	struct mu_tensor *added = &plan->tensors[sum->inputs[first ? 1 : 0]];
	const struct mu_op *before = producer(plan, added);
	struct mu_tensor **links = NULL;

	links = calloc(3, sizeof *links);
	if (!links)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of network %s",
			plan->net->config.network);
	links[0] = norm->inputs[0];
	links[1] = added;
	links[2] = &plan->tensors[sum->outputs[0]];
	free(plan->links[plan->n_ops - 1]);
	plan->links[plan->n_ops - 1] = links;
	norm->n_inputs = 2;
	norm->inputs = links;
	norm->outputs = links + 2;
	if (before && !writes_gradient(before))
		norm->fusion.shared_grads = 2;
out:
	return st;
}

void mu_plan_join_splits(struct mu_plan *plan)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		if (plan->ops[i].fusion.branches)
			producer(plan, plan->ops[i].fusion.branches[0])->fusion.joined = true;
}

static void mark_gradients(struct mu_plan *plan)
{
	for (size_t i = 0; i < plan->n_ops; i++) {
		const struct mu_op *op = &plan->ops[i];
		bool needs = op->n_params > 0;

		for (int t = 0; t < op->n_inputs; t++)
			needs |= op->inputs[t]->needs_grad;
		for (int t = 0; t < op->n_outputs; t++)
			op->outputs[t]->needs_grad = needs && plan->phase == MU_PHASE_TRAIN;
	}
}

enum mu_status mu_plan_operations(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	const struct mu_net *net = plan->net;

	for (int t = 0; t < net->n_tensors; t++) {
		plan->tensors[t].shape = net->tensors[t].shape;
		plan->tensors[t].shape.dims[0] = plan->batch_size;
	}
	for (int l = 0; l < net->n_layers; l++) {
		const struct net_layer *layer = &net->layers[l];
		struct mu_op *before = producer(plan, &plan->tensors[layer->inputs[0]]);
		struct mu_op *norm = norm_for(plan, layer);
		bool activation = mu_layer_has(layer->kind, MU_LAYER_IS_ACTIVATION);

		if (activation && before && can_fuse_activation(before, layer->attr)) {
			before->fusion.activation = before->fusion.undo = layer->attr;
			before->outputs[0] = &plan->tensors[layer->outputs[0]];
			continue;
		}
		if (norm) {
			MU_TRY(add_to_norm(plan, norm, layer));
			continue;
		}
		MU_TRY(add_operation(plan, l));
		plan->ops[plan->n_ops - 1].fusion.in_place =
			activation && before && mu_op_has(before, MU_LAYER_LENDS_OUTPUT);
		join(plan, &plan->ops[plan->n_ops - 1]);
	}
	mark_gradients(plan);
out:
	return st;
}
