/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers defined by users run in host memory. Their inputs are copied to the host, and their
 * results back, with a wait for the GPU in between. Backward reuses the copies of inputs,
 * parameters and output that forward made.
 */
#include "cuda.h"
#include "device/custom.h"

#include <stdlib.h>

#include <muster/base.h>

struct host {
	struct mu_layer layer; /* its arrays are in `memory` */
	void *memory;
	size_t workspace_nbytes;
};

/* Reserve n floats, aligned; without memory only compute the size. */
static float *place(struct host *h, size_t *at, size_t n)
{
	float *p = h->memory ? (float *)h->memory + *at : NULL;

	*at += mu_pad(n);
	return p;
}

static size_t place_array(struct host *h, size_t at, struct mu_layer_array *a, bool grad)
{
	const size_t n = mu_shape_n(&a->shape);

	a->data = place(h, &at, n);
	a->grad = grad ? place(h, &at, n) : NULL;
	return at;
}

/* All arrays, one after another; returns their total number of floats. */
static size_t place_all(struct host *h, const struct mu_op *op)
{
	struct mu_layer *layer = &h->layer;
	const bool train = op->phase == MU_PHASE_TRAIN;
	size_t at = 0;

	for (int i = 0; i < op->n_inputs; i++)
		at = place_array(h, at, &layer->inputs[i], train && op->inputs[i]->needs_grad);
	for (int p = 0; p < op->n_params; p++)
		at = place_array(h, at, &layer->params[p], train);
	at = place_array(h, at, &layer->output, train);
	layer->workspace = place(h, &at, (h->workspace_nbytes + 3) / sizeof(float));
	return at;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct host *h = calloc(1, sizeof *h);

	op->impl = h;
	if (!h)
		MU_FAIL(MU_ERR_MEMORY, "gpu:%d: no memory for the plan of %s", d->index, op->name);
	MU_TRY(mu_custom_plan(op));
	h->workspace_nbytes = op->workspace_nbytes;
	op->workspace_nbytes = 0;
	mu_custom_view(&h->layer, op, false);
	MU_TRY(mu_alloc(&h->memory, place_all(h, op) * sizeof(float), "a layer of the user's"));
	place_all(h, op);
out:
	return st;
}

static void release(struct cuda_device *d, struct mu_op *op)
{
	struct host *h = op->impl;

	(void)d;
	mu_free(h->memory);
	free(h);
}

static enum mu_status copy(struct cuda_device *d, float *to, const float *from,
			   const struct mu_shape *shape)
{
	return mu_cuda_copy(d, to, from, mu_shape_n(shape) * sizeof *to);
}

/* The layer with its arrays on the host; gradients only in backward. */
static struct mu_layer view(const struct mu_op *op, bool grads)
{
	const struct host *h = op->impl;
	struct mu_layer layer = h->layer;

	layer.workspace_nbytes = h->workspace_nbytes;
	layer.batch = op->batch;
	for (int i = 0; i < op->n_inputs && !grads; i++)
		layer.inputs[i].grad = NULL;
	for (int p = 0; p < op->n_params && !grads; p++)
		layer.params[p].grad = NULL;
	if (!grads)
		layer.output.grad = NULL;
	return layer;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_layer layer = view(op, false);

	for (int i = 0; i < op->n_inputs; i++)
		MU_TRY(copy(d, layer.inputs[i].data, op->inputs[i]->data, &op->inputs[i]->shape));
	for (int p = 0; p < op->n_params; p++)
		MU_TRY(copy(d, layer.params[p].data, op->params[p].data, &op->params[p].shape));
	MU_TRY(mu_cuda_finish(d));
	MU_TRY(mu_custom_forward(op, &layer));
	MU_TRY(copy(d, op->outputs[0]->data, layer.output.data, &op->outputs[0]->shape));
	MU_TRY(mu_cuda_finish(d));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_layer layer = view(op, true);

	MU_TRY(copy(d, layer.output.grad, op->outputs[0]->grad, &op->outputs[0]->shape));
	MU_TRY(mu_cuda_finish(d));
	MU_TRY(mu_custom_backward(op, &layer));
	for (int i = 0; i < op->n_inputs; i++)
		if (layer.inputs[i].grad)
			MU_TRY(copy(d, op->inputs[i]->grad, layer.inputs[i].grad,
				    &op->inputs[i]->shape));
	for (int p = 0; p < op->n_params; p++)
		MU_TRY(copy(d, op->params[p].grad, layer.params[p].grad, &op->params[p].shape));
	MU_TRY(mu_cuda_finish(d));
out:
	return st;
}

const struct cuda_kind mu_cuda_custom = {
	.like = &mu_ref_custom,
	.host_forward = true,
	.host_backward = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
	.release = release,
};
