/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropout. The mask (0 or 1 / (1 - p)) is drawn in plain order of the elements, so that it does not
 * depend on the layout, and kept in the input's, in which the operation works; in bfloat16 it works
 * on plain float32.
 */
#include "cpu.h"

#include <stdlib.h>

#include <muster/base.h>

MU_LOOP static void mask_from_draws(float *mask, size_t n, float p)
{
	const float scale = 1 / (1 - p);

	for (size_t k = 0; k < n; k++)
		mask[k] = mask[k] < p ? 0 : scale;
}

void mu_cpu_draw_mask(const struct mu_op *op, size_t sample, uint64_t element, size_t n, float p,
		      float *mask)
{
	const struct mu_batch *b = op->batch;
	const uint64_t id = b->ids ? b->ids[sample] : sample, most = UINT64_C(1) << 24;

	for (size_t at = 0; at < n;) { /* draws with the same high bits at a time */
		const uint64_t high = (element + at) / most, low = (element + at) % most;
		const size_t m = n - at < most - low ? n - at : (size_t)(most - low);
		const struct mu_random key = {b->seed, MU_RANDOM_DROPOUT, b->epoch,
					      id | high << 40};

		mu_random_uniforms(&key, (uint64_t)op->index * most + low, m, mask + at);
		at += m;
	}
	mask_from_draws(mask, n, p);
}

struct dropout {
	int drawn, mask; /* memories: the mask in plain order, and as it is kept; may be one */
};

static void draw_mask(struct mu_op *op, struct cpu_part part)
{
	const struct mu_dropout *a = op->attr;
	const struct dropout *d = ((struct cpu_op *)op->impl)->own;
	const size_t n = op->inputs[0]->shape.dims[0];
	const size_t each = mu_shape_n(&op->inputs[0]->shape) / n;
	const size_t end = (part.index + 1) * n / part.n;

	for (size_t i = part.index * n / part.n; i < end; i++)
		mu_cpu_draw_mask(op, i, op->block * each, each, a->p,
				 (float *)mu_cpu_pointer(op, d->drawn) + i * each);
}

static enum mu_status plan_mask(struct cpu_plan *p, struct dropout *d, const struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	struct cpu_md plain;

	mu_cpu_plain(&plain, &p->op->inputs[0]->shape);
	d->mask = mu_cpu_keep(p, md);
	d->drawn = mu_dnnl_equal(md, &plain) ? d->mask : mu_cpu_temporary(p, &plain);
	mu_cpu_share(p, draw_mask, mu_dnnl_nbytes(&plain));
	if (d->drawn != d->mask)
		MU_TRY(mu_cpu_reorder(p, d->drawn, d->mask));
out:
	return st;
}

/* Out = in x mask for the data, and the other way for the gradients. */
enum mu_status mu_cpu_plan_dropout(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct dropout *d = calloc(1, sizeof *d);
	struct cpu_md have, md;
	int in, out;

	p->impl->own = d;
	if (!d)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	mu_cpu_tensor_md(&have, op->inputs[0]);
	md = have;
	if (have.data_type != dnnl_f32)
		mu_cpu_plain(&md, &op->inputs[0]->shape);
	if (op->phase != MU_PHASE_TRAIN) {
		MU_TRY(mu_cpu_set_tensor(op->outputs[0], &have));
		in = mu_cpu_memory(p, &have, CPU_IN_DATA, 0);
		MU_TRY(mu_cpu_reorder(p, in, mu_cpu_memory(p, &have, CPU_OUT_DATA, 0)));
		goto out;
	}
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	MU_TRY(plan_mask(p, d, &md));
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &md, false, &in));
	MU_TRY(mu_cpu_binary(
		p, dnnl_binary_mul,
		(struct cpu_pair){in, d->mask, mu_cpu_memory(p, &md, CPU_OUT_DATA, 0), NULL}));
	p->program = &p->impl->backward;
	if (!op->inputs[0]->needs_grad)
		goto out;
	in = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	out = mu_dnnl_equal(&have, &md) ? in : mu_cpu_temporary(p, &md);
	MU_TRY(mu_cpu_binary(
		p, dnnl_binary_mul,
		(struct cpu_pair){mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0), d->mask, out, NULL}));
	if (out != in)
		MU_TRY(mu_cpu_reorder(p, out, in));
out:
	return st;
}
