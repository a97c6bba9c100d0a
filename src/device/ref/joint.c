/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several losses: each head by ref's loops of its kind, on its own input, with its targets and
 * outputs in the workspace, in the order of a loss that is alone. loss = sum of weight[i] loss[i],
 * and the gradient of input i is weight[i] times that of loss i.
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

#include "device/joint.h"

enum { ALIGNED = 64 };

/* A head as an operation of its own; at: in the workspace, where the next one begins. */
struct head {
	const struct mu_joint_head *of;
	struct mu_joint_part part;
	struct mu_op op;
	struct mu_tensor in, out, *ins, *outs;
	struct mu_batch batch;
	float *labels;
	size_t at;
};

static const struct mu_joint *joint_of(const struct mu_op *op)
{
	return op->attr;
}

static struct mu_joint_part all_of(const struct mu_op *op)
{
	return mu_joint_part(joint_of(op), joint_of(op)->n);
}

static size_t samples_of(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0];
}

/* n bytes at *at of the workspace, NULL before there is one. */
static void *take(const struct mu_op *op, size_t *at, size_t n)
{
	char *bytes = op->workspace ? (char *)op->workspace + *at : NULL;

	*at += (n + ALIGNED - 1) / ALIGNED * ALIGNED;
	return bytes;
}

/* The first bytes of the workspace: predictions of all heads, sample after sample. */
static size_t first_at(const struct mu_op *op)
{
	size_t at = 0;

	take(op, &at, samples_of(op) * all_of(op).prediction * sizeof(struct mu_prediction));
	return at;
}

static void look(struct head *h, const struct mu_op *op, size_t i, size_t at)
{
	const struct mu_joint_head *of = &joint_of(op)->heads[i];
	const size_t n = samples_of(op);

	*h = (struct head){.of = of, .part = mu_joint_part(joint_of(op), i), .at = at};
	h->in = *op->inputs[i];
	h->out = (struct mu_tensor){.shape = h->in.shape};
	h->ins = &h->in;
	h->outs = &h->out;
	h->op = (struct mu_op){.kind = of->kind,
			       .name = of->name,
			       .attr = of->attr,
			       .phase = op->phase,
			       .n_inputs = 1,
			       .n_outputs = 1,
			       .inputs = &h->ins,
			       .outputs = &h->outs,
			       .batch = &h->batch};
	h->out.data = take(op, &h->at, n * h->part.outputs * sizeof(float));
	h->labels = take(op, &h->at, n * h->part.targets * sizeof(float));
	h->op.workspace_nbytes = n * h->part.predictions * sizeof(struct mu_prediction);
	h->op.workspace = take(op, &h->at, h->op.workspace_nbytes);
	if (op->batch)
		mu_joint_batch(&h->batch, op->batch, of);
	h->batch.labels = h->labels;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_joint *joint = joint_of(op);
	struct mu_shape all = {2, {samples_of(op), 0}}, shape;
	struct head h = {.at = 0};

	op->workspace = NULL;
	if (joint->n != (size_t)op->n_inputs || joint->n > MU_MAX_HEADS)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (joint): %d inputs of %zu heads", op->name,
			op->n_inputs, joint->n);
	all.dims[1] = all_of(op).output;
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &all));
	h.at = first_at(op);
	for (size_t i = 0; i < joint->n; i++) {
		const struct mu_ref_kind *kind = mu_ref_kind_of(joint->heads[i].kind);
		size_t room;

		shape = joint->heads[i].shape;
		shape.dims[0] = samples_of(op);
		MU_TRY(mu_ref_need_shape(op, "input of a head", &op->inputs[i]->shape, &shape));
		look(&h, op, i, h.at);
		room = h.op.workspace_nbytes;
		MU_TRY(mu_ref_check(&h.op, kind));
		MU_TRY(kind->plan(&h.op));
		if (h.op.workspace_nbytes != room || h.op.scratch_nbytes > 0)
			MU_FAIL(MU_ERR_UNSUPPORTED, "%s (joint): %s (%s) is no loss of a head",
				op->name, h.of->name, mu_op_kind_name(h.of->kind));
	}
	op->workspace_nbytes = h.at;
out:
	return st;
}

/* A class is a whole number: one of a column of values would be cut off without a word. */
static enum mu_status check_classes(const struct head *h)
{
	enum mu_status st = MU_OK;
	const size_t classes = mu_shape_channels(&h->in.shape), each = h->part.targets;

	for (size_t i = 0; h->of->of_classes && i < h->batch.count * each; i++) {
		const float t = h->labels[i];

		if (h->of->use_ignore && t == h->of->ignore_label)
			continue;
		if (!(t >= 0 && t < (float)classes) || t != floorf(t))
			MU_FAIL(MU_ERR_ARGUMENT,
				"head %s: target %zu of sample %zu is %g; it is a class, which "
				"must be a whole number from 0 to %zu",
				h->of->name, i % each,
				mu_ref_sample(&h->batch, i / each), (double)t, classes - 1);
	}
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_batch *b = op->batch;
	struct mu_prediction *predictions = op->workspace;
	const struct mu_joint_part all = all_of(op);
	const size_t n = samples_of(op);
	struct head h = {.at = first_at(op)};

	b->loss = 0;
	b->predictions = predictions;
	if (b->count > n)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: %zu samples count in a batch of %zu", op->name,
			b->count, n);
	for (size_t i = 0; i < joint_of(op)->n; i++) {
		look(&h, op, i, h.at);
		for (size_t s = 0; s < b->count; s++)
			memcpy(h.labels + s * h.part.targets,
			       b->labels + s * all.target + h.part.target,
			       h.part.targets * sizeof *h.labels);
		MU_TRY(check_classes(&h));
		MU_TRY(mu_ref_kind_of(h.of->kind)->forward(&h.op));
		for (size_t s = 0; s < n; s++) {
			memcpy(op->outputs[0]->data + s * all.output + h.part.output,
			       h.out.data + s * h.part.outputs, h.part.outputs * sizeof(float));
			memcpy(predictions + s * all.prediction + h.part.prediction,
			       h.batch.predictions + s * h.part.predictions,
			       h.part.predictions * sizeof *predictions);
		}
		b->loss += h.of->weight * h.batch.loss;
	}
out:
	return st;
}

static enum mu_status backward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct head h = {.at = first_at(op)};

	for (size_t i = 0; i < joint_of(op)->n; i++) {
		look(&h, op, i, h.at);
		MU_TRY(mu_ref_backward(&h.op));
		for (size_t k = 0; h.in.needs_grad && k < mu_shape_n(&h.in.shape); k++)
			h.in.grad[k] = (float)(h.of->weight * (double)h.in.grad[k]);
	}
out:
	return st;
}

const struct mu_ref_kind mu_ref_joint = {
	.n_inputs = -1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.try_backward = backward,
};
