/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum and split: where paths of a net join. Their work is reading and writing memory, so each is
 * one pass. Sum: forward adds and activates at once, and gives its output's gradient on without a
 * copy where it may. Split: backward adds, and undoes the activation that its input went through.
 */
#include "cpu.h"

#include <muster/base.h>

enum mu_status mu_cpu_check_parts(const struct mu_op *op, int n)
{
	enum mu_status st = MU_OK;

	if (n > CPU_MAX_PARTS)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: %d tensors; at most %d can be joined", op->name, n,
			CPU_MAX_PARTS);
out:
	return st;
}

/* to = the sum, in order, of n tensors; md is to's layout. */
static enum mu_status add_up(struct cpu_plan *p, const struct cpu_md *md, int n, const int *from,
			     int to)
{
	enum mu_status st = MU_OK;
	struct cpu_md mds[CPU_MAX_PARTS];
	struct cpu_arg args[CPU_MAX_PARTS + 1];
	dnnl_primitive_desc_t pd = NULL;

	for (int i = 0; i < n; i++) {
		mds[i] = *mu_cpu_md(p, from[i]);
		args[i] = (struct cpu_arg){DNNL_ARG_MULTIPLE_SRC + i, from[i]};
	}
	args[n] = (struct cpu_arg){DNNL_ARG_DST, to};
	MU_TRY(mu_dnnl_sum(p->cpu->engine, n, mds, md, &pd));
	MU_TRY(mu_cpu_step(p, pd, n + 1, args));
out:
	return st;
}

/* ---- sum ---- */

static enum mu_status plan_sum_forward(struct cpu_plan *p, const struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have;
	int from[CPU_MAX_PARTS], to;

	for (int i = 0; i < op->n_inputs; i++) {
		mu_cpu_tensor_md(&have, op->inputs[i]);
		from[i] = mu_cpu_memory(p, &have, CPU_IN_DATA, (size_t)i);
	}
	to = mu_cpu_memory(p, md, CPU_OUT_DATA, 0);
	if (op->n_inputs == 2 && mu_dnnl_equal(&have, md)) {
		MU_TRY(mu_cpu_binary(
			p, dnnl_binary_add,
			(struct cpu_pair){from[0], from[1], to, op->fusion.activation}));
		goto out;
	}
	MU_TRY(add_up(p, md, op->n_inputs, from, to));
	if (op->fusion.activation)
		MU_TRY(mu_cpu_plan_activation_forward(p, op->fusion.activation));
out:
	return st;
}

enum mu_status mu_cpu_plan_sum(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md md, have;

	MU_TRY(mu_cpu_check_parts(op, op->n_inputs));
	mu_cpu_tensor_md(&md, op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	MU_TRY(plan_sum_forward(p, &md));
	p->program = &p->impl->backward;
	if (op->fusion.undo)
		MU_TRY(mu_cpu_plan_activation_backward(p, op->fusion.undo));
	for (int i = 0; i < op->n_inputs; i++) {
		if (!op->inputs[i]->needs_grad)
			continue;
		mu_cpu_tensor_md(&have, op->inputs[i]);
		if (!mu_dnnl_equal(&have, &md))
			op->fusion.shared_grads &= ~(1u << i);
		if (op->fusion.shared_grads >> i & 1)
			continue;
		MU_TRY(mu_cpu_reorder(p, mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0),
				      mu_cpu_memory(p, &have, CPU_IN_GRAD, (size_t)i)));
	}
out:
	return st;
}

/* ---- split ---- */

#define CHUNK 2048 /* floats: a sum of two that is worked on further in the first-level cache */

/* Undo a ReLU whose output was y. */
MU_LOOP
static void mask(float *restrict to, const float *restrict y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = y[i] > 0 ? to[i] : 0;
}

/* The input's gradient: the sum of the outputs' in order, chunk by chunk. */
static void join_gradients(struct mu_op *op, struct cpu_part part)
{
	struct mu_tensor *in = op->inputs[0];
	size_t n = in->nbytes / sizeof(float), chunks = (n + CHUNK - 1) / CHUNK;
	size_t end = (part.index + 1) * chunks / part.n;

	for (size_t c = part.index * chunks / part.n; c < end; c++) {
		size_t at = c * CHUNK, m = n - at < CHUNK ? n - at : CHUNK;
		float *to = in->grad + at;

		mu_cpu_sum(to, op->outputs[0]->grad + at, op->outputs[1]->grad + at, m);
		for (int o = 2; o < op->n_outputs; o++)
			mu_cpu_add(to, op->outputs[o]->grad + at, m);
		if (op->fusion.undo)
			mask(to, in->data + at, m);
	}
}

/* The same in bfloat16, of which the sums are made in float32. */
static void join_gradients_16(struct mu_op *op, struct cpu_part part)
{
	struct mu_tensor *in = op->inputs[0];
	size_t n = in->nbytes / sizeof(uint16_t), chunks = (n + CHUNK - 1) / CHUNK;
	size_t end = (part.index + 1) * chunks / part.n;
	float sum[CHUNK], more[CHUNK];

	for (size_t c = part.index * chunks / part.n; c < end; c++) {
		size_t at = c * CHUNK, m = n - at < CHUNK ? n - at : CHUNK;

		mu_dtype_to_float(MU_BFLOAT16, sum, (uint16_t *)op->outputs[0]->grad + at, m);
		for (int o = 1; o < op->n_outputs; o++) {
			mu_dtype_to_float(MU_BFLOAT16, more, (uint16_t *)op->outputs[o]->grad + at,
					  m);
			mu_cpu_add(sum, more, m);
		}
		if (op->fusion.undo) {
			mu_dtype_to_float(MU_BFLOAT16, more, (uint16_t *)in->data + at, m);
			mask(sum, more, m);
		}
		mu_dtype_from_float(MU_BFLOAT16, (uint16_t *)in->grad + at, sum, m);
	}
}

/* Every output is the input; where they share memory (in place) nothing is copied. */
enum mu_status mu_cpu_plan_split(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md md;
	int in;

	MU_TRY(mu_cpu_check_parts(op, op->n_outputs));
	mu_cpu_tensor_md(&md, op->inputs[0]);
	for (int i = 0; i < op->n_outputs; i++) {
		MU_TRY(mu_cpu_set_tensor(op->outputs[i], &md));
		if (op->fusion.in_place)
			continue;
		in = mu_cpu_memory(p, &md, CPU_IN_DATA, 0);
		MU_TRY(mu_cpu_reorder(p, in, mu_cpu_memory(p, &md, CPU_OUT_DATA, (size_t)i)));
	}
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		mu_cpu_share(p, md.data_type == dnnl_bf16 ? join_gradients_16 : join_gradients,
			     mu_dnnl_nbytes(&md));
out:
	return st;
}
