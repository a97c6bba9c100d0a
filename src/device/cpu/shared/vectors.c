/* SPDX-License-Identifier: Apache-2.0 */
/* The memories of operations that work on vectors: the channels of each position. See cpu.h. */
#include "device/cpu/cpu.h"

#include <stdlib.h>

#include <muster/base.h>

const struct cpu_vectors *mu_cpu_vectors_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

static void last_md(struct cpu_md *md, const struct mu_shape *shape)
{
	mu_cpu_tag(md, shape, shape->ndims >= 4 ? dnnl_acdb : dnnl_format_tag_undef);
}

enum mu_status mu_cpu_vectors_begin(struct cpu_plan *p, struct cpu_vectors **out)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have, last;
	struct cpu_vectors *r = calloc(1, sizeof *r);

	*out = p->impl->own = r;
	if (!r)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	r->dx = -1;
	mu_cpu_tensor_md(&have, op->inputs[0]);
	last_md(&last, &op->inputs[0]->shape);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &last,
			 op->phase == MU_PHASE_TRAIN, &r->x));
	last_md(&last, &op->outputs[0]->shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &last));
	r->y = mu_cpu_memory(p, &last, CPU_OUT_DATA, 0);
out:
	return st;
}

void mu_cpu_vectors_turn(struct cpu_plan *p, struct cpu_vectors *r)
{
	struct cpu_md have, last;

	p->program = &p->impl->backward;
	last_md(&last, &p->op->outputs[0]->shape);
	r->dy = mu_cpu_memory(p, &last, CPU_OUT_GRAD, 0);
	if (!p->op->inputs[0]->needs_grad)
		return;
	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	last_md(&last, &p->op->inputs[0]->shape);
	r->gradient = r->dx = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	if (!mu_dnnl_equal(&have, &last))
		r->dx = mu_cpu_temporary(p, &last);
}

enum mu_status mu_cpu_vectors_end(struct cpu_plan *p, const struct cpu_vectors *r)
{
	return r->dx >= 0 && r->dx != r->gradient ? mu_cpu_reorder(p, r->dx, r->gradient) : MU_OK;
}

size_t mu_cpu_vectors_n(const struct mu_shape *shape)
{
	return mu_shape_n(shape) / shape->dims[1];
}
