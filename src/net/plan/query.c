/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: slices, layers, sizes; and conversion of slices between plain order and the device's
 * layout. */
#include "plan.h"

#include <string.h>

#include <muster/base.h>

size_t mu_plan_maker(const struct mu_plan *plan, const struct mu_tensor *t)
{
	for (size_t i = plan->n_ops; i-- > 0;)
		for (int o = 0; o < plan->ops[i].n_outputs; o++)
			if (plan->ops[i].outputs[o] == t)
				return i;
	return MU_PLAN_NONE;
}

bool mu_plan_reads(const struct mu_plan *plan, const struct mu_tensor *t)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		for (int k = 0; k < plan->ops[i].n_inputs; k++)
			if (plan->ops[i].inputs[k] == t)
				return true;
	return false;
}

bool mu_plan_has_end(const struct mu_plan *plan)
{
	return mu_op_loss(&plan->ops[plan->n_ops - 1]);
}

bool mu_plan_reads_input(const struct mu_op *op, int i)
{
	const bool added = mu_op_has(op, MU_LAYER_ABSORBS_ADDEND) && i > 0; /* to the result */

	if (mu_op_has(op, MU_LAYER_IS_PASSAGE))
		return op->fusion.undo && !op->fusion.joined;
	return !mu_op_has(op, MU_LAYER_INPUT_UNUSED) && !added;
}

bool mu_plan_has_activation_to_undo(const struct mu_op *op)
{
	return op->fusion.activation && op->fusion.undo &&
	       (!mu_op_has(op, MU_LAYER_ABSORBS_RELU) || op->n_inputs > 1);
}

bool mu_plan_reads_output(const struct mu_op *op)
{
	return mu_plan_has_activation_to_undo(op) || !mu_op_has(op, MU_LAYER_OUTPUT_UNUSED);
}

const struct mu_slice *mu_plan_slices(const struct mu_plan *plan, size_t *n_slices)
{
	*n_slices = plan->layout.n_slices;
	return plan->layout.slices;
}

size_t mu_plan_n(const struct mu_plan *plan)
{
	return plan->layout.n;
}

size_t mu_plan_arena_bytes(const struct mu_plan *plan)
{
	return plan->memory.nbytes;
}

/* FNV-1a over all data that determine where an element lies. */
uint64_t mu_plan_hash(const struct mu_plan *plan)
{
	uint64_t hash = MU_HASH_START;

	for (size_t k = 0; k < plan->layout.n_slices; k++) {
		const struct mu_slice *s = &plan->layout.slices[k];
		uint64_t words[4] = {s->at, s->n, s->n_padded, 0};

		words[3] = plan->device->ops->hash_layout(plan->device,
							  mu_plan_param(plan, k)->layout);
		hash = mu_hash(hash, words, sizeof words);
	}
	return hash;
}

uint64_t mu_plan_structure_hash(const struct mu_plan *plan)
{
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(plan, &n);
	uint64_t h = MU_HASH_START;

	for (size_t k = 0; k < n; k++) {
		const struct mu_shape *shape = mu_plan_slice_shape(plan, k);
		uint32_t rule = slices[k].rule;

		h = mu_hash(h, slices[k].name, strlen(slices[k].name) + 1);
		h = mu_hash(h, shape->dims, (size_t)shape->ndims * sizeof *shape->dims);
		h = mu_hash(h, &rule, sizeof rule);
	}
	return h;
}

struct mu_batch *mu_plan_batch(struct mu_plan *plan)
{
	return &plan->batch;
}

const struct mu_shape *mu_plan_probabilities_shape(const struct mu_plan *plan)
{
	return &plan->ops[plan->n_ops - 1].outputs[0]->shape;
}

size_t mu_plan_batch_size(const struct mu_plan *plan)
{
	return plan->batch_size;
}

size_t mu_plan_layers(const struct mu_plan *plan)
{
	return plan->n_ops;
}

const char *mu_plan_layer_name(const struct mu_plan *plan, size_t l)
{
	return plan->ops[l].name;
}

void mu_plan_convolutions(const struct mu_plan *plan, struct mu_plan_convolutions *counts)
{
	*counts = (struct mu_plan_convolutions){.n = {0}};
	for (size_t i = 0; i < plan->n_ops; i++) {
		const struct mu_op *op = &plan->ops[i];
		bool train = plan->phase == MU_PHASE_TRAIN;

		if (!mu_op_has(op, MU_LAYER_HAS_ALGORITHMS))
			continue;
		counts->n[MU_CONVOLUTION_FORWARD]++;
		counts->n[MU_CONVOLUTION_DATA] += op->inputs[0]->needs_grad;
		counts->n[MU_CONVOLUTION_WEIGHTS] += train;
		for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++) {
			counts->winograd[phase] += op->algorithms[phase] == MU_CONVOLUTION_WINOGRAD;
			counts->gemm[phase] += op->algorithms[phase] == MU_CONVOLUTION_GEMM;
			counts->engines[phase] += op->algorithms[phase] >= MU_CONVOLUTION_ENGINE;
		}
	}
}

size_t mu_plan_layer_keys(const struct mu_plan *plan, size_t l, const size_t **keys)
{
	const int first = mu_plan_first_own(plan, l);

	*keys = plan->layout.op_keys[l] + first;
	return (size_t)(plan->ops[l].n_params + plan->ops[l].n_aux - first);
}

size_t mu_plan_layer_writes(const struct mu_plan *plan, size_t l, const size_t **keys)
{
	*keys = plan->layout.op_keys[l];
	return (size_t)(plan->ops[l].n_params + plan->ops[l].n_aux);
}

enum mu_status mu_plan_key_from_plain(const struct mu_plan *plan, size_t k, const float *plain,
				      float *laid)
{
	const struct mu_param *param = mu_plan_param(plan, k);

	return plan->device->ops->from_plain(plan->device, &param->shape, param->layout, plain,
					     laid);
}

enum mu_status mu_plan_key_to_plain(const struct mu_plan *plan, size_t k, const float *laid,
				    float *plain)
{
	const struct mu_param *param = mu_plan_param(plan, k);

	return plan->device->ops->to_plain(plan->device, &param->shape, param->layout, laid, plain);
}

enum mu_status mu_plan_slice_from_plain(const struct mu_plan *plan, size_t k, const float *plain,
					float *flat)
{
	return mu_plan_key_from_plain(plan, k, plain, flat + plan->layout.slices[k].at);
}

enum mu_status mu_plan_slice_to_plain(const struct mu_plan *plan, size_t k, const float *flat,
				      float *plain)
{
	return mu_plan_key_to_plain(plan, k, flat + plan->layout.slices[k].at, plain);
}

const struct mu_shape *mu_plan_slice_shape(const struct mu_plan *plan, size_t k)
{
	return &mu_plan_param(plan, k)->shape;
}
