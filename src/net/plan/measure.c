/* SPDX-License-Identifier: Apache-2.0 */
/* Work of layers, and the time that they need for it. */
#include "plan.h"

#include <muster/base.h>

void mu_plan_measure(struct mu_plan *plan, struct mu_layer_times *times)
{
	plan->times = times;
}

/* Bytes of these tensors, for one sample. */
static double bytes_of(struct mu_tensor *const *tensors, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += (double)mu_shape_sample(&tensors[i]->shape);
	return sum * sizeof(float);
}

static double bytes_of_gradients(const struct mu_op *op)
{
	double sum = 0;

	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad && !(op->fusion.shared_grads >> i & 1))
			sum += bytes_of(&op->inputs[i], 1);
	/* A loss starts with labels; a sum may have no work. */
	if (!mu_op_loss(op) && (sum > 0 || !mu_op_has(op, MU_LAYER_IS_ADDITION)))
		sum += bytes_of(op->outputs, op->n_outputs);
	return sum;
}

static double bytes_of_params(const struct mu_op *op)
{
	double sum = 0;

	for (int i = 0; i < op->n_params; i++)
		sum += (double)mu_shape_n(&op->params[i].shape);
	return sum * sizeof(float);
}

void mu_plan_layer_cost(const struct mu_plan *plan, size_t l, struct mu_layer_cost *forward,
			struct mu_layer_cost *backward)
{
	const struct mu_op *op = &plan->ops[l];
	double macs = mu_net_layer_macs(plan->net, &plan->net->layers[op->index]);
	double inputs = bytes_of(op->inputs, op->n_inputs);
	double outputs = bytes_of(op->outputs, op->n_outputs), params = bytes_of_params(op);

	*forward = (struct mu_layer_cost){
		.flops = 2 * macs, .sample_bytes = inputs + outputs, .call_bytes = params};
	if (mu_op_has(op, MU_LAYER_IS_PASSAGE)) /* its outputs alias its input */
		forward->sample_bytes = 0;
	*backward = (struct mu_layer_cost){
		.flops = 2 * macs * (1 + op->inputs[0]->needs_grad),
		.sample_bytes = bytes_of_gradients(op),
		.call_bytes = params * (1 + op->inputs[0]->needs_grad),
	};
	for (int i = 0; i < op->n_inputs; i++)
		if (mu_plan_reads_input(op, i))
			backward->sample_bytes += bytes_of(&op->inputs[i], 1);
	if (mu_plan_reads_output(op))
		backward->sample_bytes += outputs;
}

enum mu_convolution_algorithm mu_plan_convolution(const struct mu_plan *plan, size_t l,
						  enum mu_convolution_phase phase)
{
	const struct mu_op *op = &plan->ops[l];

	return mu_op_has(op, MU_LAYER_HAS_ALGORITHMS) ? op->algorithms[phase] : MU_CONVOLUTION_AUTO;
}

static const char *name_of(const struct mu_op *op, enum mu_convolution_phase phase)
{
	return mu_convolution_algorithm_name(op->algorithms[phase]);
}

const char *mu_plan_layer_algorithm(const struct mu_plan *plan, size_t l, bool backward, char *text,
				    size_t nbytes)
{
	const struct mu_op *op = &plan->ops[l];

	if (mu_plan_convolution(plan, l, MU_CONVOLUTION_FORWARD) == MU_CONVOLUTION_AUTO)
		snprintf(text, nbytes, "%s", "");
	else if (!backward)
		snprintf(text, nbytes, "%s%s", name_of(op, MU_CONVOLUTION_FORWARD),
			 op->outputs[0]->sums_at ? "+sums" : "");
	else if (!op->inputs[0]->needs_grad)
		snprintf(text, nbytes, "%s", name_of(op, MU_CONVOLUTION_WEIGHTS));
	else
		snprintf(text, nbytes, "%s/%s", name_of(op, MU_CONVOLUTION_DATA),
			 name_of(op, MU_CONVOLUTION_WEIGHTS));
	return text;
}
