/* SPDX-License-Identifier: Apache-2.0 */
/* Layers defined by users: check their results, and call them. See device.h. */
#include "custom.h"

#include <string.h>

#include <muster/base.h>

static const struct mu_custom *custom_of(const struct mu_op *op)
{
	return op->attr;
}

/* Status of a user's function. An error without a message gets one here. */
static enum mu_status returned(enum mu_status st, const struct mu_layer *layer,
			       const struct mu_layer_ops *ops, const char *function)
{
	if (st == MU_OK || *mu_trace_message())
		return st;
	return mu_trace_start(st, __FILE__, __LINE__, "%s: the %s of layer %s returned: %s",
			      layer->name, function, ops->name, mu_status_name(st));
}

static enum mu_status check_output(const struct mu_layer *layer, const struct mu_layer_ops *ops)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *out = &layer->output.shape;
	size_t n = layer->inputs[0].shape.dims[0];
	char text[96];

	if (!mu_tensor_shape_fits(out))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: the shape of layer %s sets an output of %d dimensions; it must be "
			"(n, c), (n, c, h, w) or (n, c, d, h, w)",
			layer->name, ops->name, out->ndims);
	if (mu_shape_n(out) == 0 || out->dims[0] != n)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: the shape of layer %s sets an output %s; the batch, %zu, comes first, "
			"and none is 0",
			layer->name, ops->name, mu_shape_text(out, text, sizeof text), n);
out:
	return st;
}

static enum mu_status check_param(const struct mu_layer *layer, const struct mu_layer_ops *ops,
				  int p)
{
	enum mu_status st = MU_OK;
	const struct mu_layer_array *param = &layer->params[p];

	if (!param->suffix || !*param->suffix)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: parameter %d of layer %s has no suffix", layer->name,
			p, ops->name);
	if (param->shape.ndims < 1 || param->shape.ndims > MU_MAX_DIMS ||
	    mu_shape_n(&param->shape) == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: parameter %s of layer %s must have 1 to %d dimensions, none of them 0",
			layer->name, param->suffix, ops->name, MU_MAX_DIMS);
	for (int i = 0; i < p; i++)
		if (strcmp(layer->params[i].suffix, param->suffix) == 0)
			MU_FAIL(MU_ERR_ARGUMENT, "%s: two parameters of layer %s have suffix %s",
				layer->name, ops->name, param->suffix);
out:
	return st;
}

enum mu_status mu_layer_shape(struct mu_layer *layer, const struct mu_layer_ops *ops)
{
	enum mu_status st = MU_OK;

	if (ops->shape)
		MU_TRY(returned(ops->shape(layer), layer, ops, "shape"));
	else
		layer->output.shape = layer->inputs[0].shape;
	MU_TRY(check_output(layer, ops));
	if (layer->n_params < 0 || layer->n_params > MU_MAX_PARAMS)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: layer %s has %d parameters; at most %d are possible",
			layer->name, ops->name, layer->n_params, MU_MAX_PARAMS);
	for (int p = 0; p < layer->n_params; p++)
		MU_TRY(check_param(layer, ops, p));
out:
	return st;
}

void mu_custom_view(struct mu_layer *layer, const struct mu_op *op, bool grads)
{
	const struct mu_custom *custom = custom_of(op);
	const struct mu_tensor *out = op->outputs[0];

	*layer = (struct mu_layer){
		.name = op->name,
		.attr = custom->attr,
		.phase = op->phase,
		.n_inputs = op->n_inputs,
		.n_params = op->n_params,
		.output = {.shape = out->shape,
			   .data = out->data,
			   .grad = grads ? out->grad : NULL},
		.workspace_nbytes = op->workspace_nbytes,
		.workspace = op->workspace,
		.batch = op->batch,
	};
	for (int i = 0; i < op->n_inputs; i++)
		layer->inputs[i] = (struct mu_layer_array){
			.shape = op->inputs[i]->shape,
			.data = op->inputs[i]->data,
			.grad = grads && op->inputs[i]->needs_grad ? op->inputs[i]->grad : NULL,
		};
	for (int p = 0; p < op->n_params; p++)
		layer->params[p] = (struct mu_layer_array){
			.shape = op->params[p].shape,
			.data = op->params[p].data,
			.grad = grads ? op->params[p].grad : NULL,
		};
}

/* Are the shapes the same as when the net was built? */
static enum mu_status check_constant(const struct mu_op *op, const struct mu_layer *layer)
{
	enum mu_status st = MU_OK;
	bool same = layer->n_params == op->n_params &&
		    mu_shape_equal(&layer->output.shape, &op->outputs[0]->shape);

	for (int p = 0; same && p < op->n_params; p++)
		same = mu_shape_equal(&layer->params[p].shape, &op->params[p].shape);
	if (!same)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: the shapes that layer %s sets depend on the batch or the phase; only "
			"its workspace may",
			op->name, custom_of(op)->ops->name);
out:
	return st;
}

enum mu_status mu_custom_plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_custom *custom = custom_of(op);
	struct mu_layer layer = {
		.name = op->name,
		.attr = custom->attr,
		.phase = op->phase,
		.n_inputs = op->n_inputs,
	};

	if (op->n_inputs < 1 || op->n_inputs > MU_MAX_LAYER_INPUTS)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (custom): %d inputs; 1 to %d are possible", op->name,
			op->n_inputs, MU_MAX_LAYER_INPUTS);
	for (int i = 0; i < op->n_inputs; i++)
		layer.inputs[i].shape = op->inputs[i]->shape;
	MU_TRY(mu_layer_shape(&layer, custom->ops));
	MU_TRY(check_constant(op, &layer));
	op->workspace_nbytes = layer.workspace_nbytes;
out:
	return st;
}

enum mu_status mu_custom_forward(const struct mu_op *op, struct mu_layer *layer)
{
	const struct mu_layer_ops *ops = custom_of(op)->ops;

	return returned(ops->forward(layer), layer, ops, "forward");
}

enum mu_status mu_custom_backward(const struct mu_op *op, struct mu_layer *layer)
{
	const struct mu_layer_ops *ops = custom_of(op)->ops;

	return returned(ops->backward(layer), layer, ops, "backward");
}
