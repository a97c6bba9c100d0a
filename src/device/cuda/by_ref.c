/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds that are left to ref (device/kinds.def), users' layers among them, run in host memory:
 * their inputs are copied to the host, and their results back, with a wait for the GPU in between.
 * Backward reuses the copies of inputs, parameters and outputs that forward made.
 */
#include "cuda.h"

#include <stdlib.h>

#include <muster/base.h>

struct host {
	void *memory; /* all arrays, one after another */
	size_t workspace_nbytes, scratch_nbytes;
};

/* Reserve n floats, aligned; without memory only compute the size. */
static float *place(const struct host *h, size_t *at, size_t n)
{
	float *p = h->memory ? (float *)h->memory + *at : NULL;

	*at += mu_pad(n);
	return p;
}

static void place_tensor(const struct host *h, size_t *at, struct mu_tensor *t, bool grad)
{
	const size_t n = mu_shape_n(&t->shape);

	t->data = place(h, at, n);
	t->grad = grad ? place(h, at, n) : NULL;
}

static void place_param(const struct host *h, size_t *at, struct mu_param *p, bool grad)
{
	const size_t n = mu_shape_n(&p->shape);

	p->data = place(h, at, n);
	p->grad = grad ? place(h, at, n) : NULL;
}

/* The operation as ref sees it, with arrays of the host; returns their total number of floats. */
static size_t make_view(const struct host *h, const struct mu_op *op, struct mu_ref_view *g)
{
	const bool train = op->phase == MU_PHASE_TRAIN;
	size_t at = 0;

	mu_ref_view_make(g, op);
	for (int i = 0; i < op->n_inputs; i++)
		place_tensor(h, &at, &g->inputs[i], train && op->inputs[i]->needs_grad);
	for (int p = 0; p < op->n_params; p++)
		place_param(h, &at, &g->op.params[p], train);
	for (int p = 0; p < op->n_aux; p++)
		place_param(h, &at, &g->op.aux[p], train);
	for (int o = 0; o < op->n_outputs; o++)
		place_tensor(h, &at, &g->outputs[o], train);
	g->op.workspace_nbytes = h->workspace_nbytes;
	g->op.scratch_nbytes = h->scratch_nbytes;
	g->op.workspace = place(h, &at, (h->workspace_nbytes + 3) / sizeof(float));
	g->op.scratch = place(h, &at, (h->scratch_nbytes + 3) / sizeof(float));
	return at;
}

enum mu_status mu_cuda_plan_by_ref(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct host *h = calloc(1, sizeof *h);
	struct mu_ref_view g;

	op->impl = h;
	if (!h)
		MU_FAIL(MU_ERR_MEMORY, "gpu:%d: no memory for the plan of %s", d->index, op->name);
	MU_TRY(mu_ref_view_plan(op));
	h->workspace_nbytes = op->workspace_nbytes;
	h->scratch_nbytes = op->scratch_nbytes;
	op->workspace_nbytes = op->scratch_nbytes = 0;
	MU_TRY(mu_alloc(&h->memory, make_view(h, op, &g) * sizeof(float),
			"an operation in the host's memory"));
out:
	return st;
}

void mu_cuda_release_by_ref(struct cuda_device *d, struct mu_op *op)
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

enum mu_status mu_cuda_forward_by_ref(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_ref_view g;

	make_view(op->impl, op, &g);
	for (int i = 0; i < op->n_inputs; i++)
		MU_TRY(copy(d, g.inputs[i].data, op->inputs[i]->data, &op->inputs[i]->shape));
	for (int p = 0; p < op->n_params; p++)
		MU_TRY(copy(d, g.op.params[p].data, op->params[p].data, &op->params[p].shape));
	for (int p = 0; p < op->n_aux; p++)
		MU_TRY(copy(d, g.op.aux[p].data, op->aux[p].data, &op->aux[p].shape));
	MU_TRY(mu_cuda_finish(d));
	MU_TRY(mu_ref_view_forward(&g));
	for (int o = 0; o < op->n_outputs; o++)
		MU_TRY(copy(d, op->outputs[o]->data, g.outputs[o].data, &op->outputs[o]->shape));
	MU_TRY(mu_cuda_finish(d));
out:
	return st;
}

enum mu_status mu_cuda_backward_by_ref(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_ref_view g;

	make_view(op->impl, op, &g);
	for (int o = 0; o < op->n_outputs; o++)
		MU_TRY(copy(d, g.outputs[o].grad, op->outputs[o]->grad, &op->outputs[o]->shape));
	MU_TRY(mu_cuda_finish(d));
	MU_TRY(mu_ref_view_backward(&g));
	for (int i = 0; i < op->n_inputs; i++)
		if (g.inputs[i].grad)
			MU_TRY(copy(d, op->inputs[i]->grad, g.inputs[i].grad,
				    &op->inputs[i]->shape));
	for (int p = 0; p < op->n_params; p++)
		MU_TRY(copy(d, op->params[p].grad, g.op.params[p].grad, &op->params[p].shape));
	for (int p = 0; p < op->n_aux; p++)
		MU_TRY(copy(d, op->aux[p].grad, g.op.aux[p].grad, &op->aux[p].shape));
	MU_TRY(mu_cuda_finish(d));
out:
	return st;
}
