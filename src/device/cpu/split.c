/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split: one pass over memory. Backward adds the outputs' gradients, and undoes the activation that
 * the input went through.
 */
#include "cpu.h"

#include <muster/base.h>

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
