/* SPDX-License-Identifier: Apache-2.0 */
/* Concat along c. */
#include "cpu.h"

#include <string.h>

#include <muster/base.h>

/* Backward cuts the output's gradient: input i is the part [at, at + c) of its channels. */
static enum mu_status cut(struct cpu_plan *p, const struct cpu_md *whole, int i, dnnl_dim_t at)
{
	enum mu_status st = MU_OK;
	struct cpu_md have, part = *whole;

	mu_cpu_tensor_md(&have, p->op->inputs[i]);
	part.is_part = true;
	memcpy(part.part_dims, have.dims, sizeof part.part_dims);
	part.part_at[1] = at;
	MU_TRY(mu_cpu_reorder(p, mu_cpu_memory(p, &part, CPU_OUT_GRAD, 0),
			      mu_cpu_memory(p, &have, CPU_IN_GRAD, (size_t)i)));
out:
	return st;
}

/* The output is plain where a part's channels do not fill whole blocks, since blocks cannot be cut.
 */
static void concat_layout(const struct mu_op *op, struct cpu_md *md)
{
	bool whole = true;
	struct cpu_md first;

	mu_cpu_tensor_md(&first, op->inputs[0]);
	for (int i = 0; i < op->n_inputs; i++)
		whole &= op->inputs[i]->shape.dims[1] % 16 == 0;
	if (first.n_blocks > 0 && !whole)
		mu_cpu_tag(md, &op->outputs[0]->shape, dnnl_nhwc);
	else
		mu_cpu_tag(md, &op->outputs[0]->shape, dnnl_format_tag_any);
	md->data_type = first.data_type;
}

enum mu_status mu_cpu_plan_concat(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md mds[CPU_MAX_PARTS], whole;
	struct cpu_arg args[CPU_MAX_PARTS + 1];
	dnnl_primitive_desc_t pd = NULL;
	dnnl_dim_t at = 0;

	MU_TRY(mu_cpu_check_parts(op, op->n_inputs));
	for (int i = 0; i < op->n_inputs; i++) {
		int in;

		mu_cpu_tensor_md(&mds[i], op->inputs[i]);
		in = mu_cpu_memory(p, &mds[i], CPU_IN_DATA, (size_t)i);
		mds[i].data_type = mds[0].data_type; /* in bfloat16 inputs can differ */
		args[i].arg = DNNL_ARG_MULTIPLE_SRC + i;
		MU_TRY(mu_cpu_as(p, in, &mds[i], false, &args[i].memory));
	}
	concat_layout(op, &whole);
	MU_TRY(mu_dnnl_concat(p->cpu->engine, op->n_inputs, mds, &whole, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_dst_md, &whole));
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &whole));
	args[op->n_inputs] =
		(struct cpu_arg){DNNL_ARG_DST, mu_cpu_memory(p, &whole, CPU_OUT_DATA, 0)};
	MU_TRY(mu_cpu_step(p, pd, op->n_inputs + 1, args));
	p->program = &p->impl->backward;
	for (int i = 0; i < op->n_inputs; i++) {
		if (op->inputs[i]->needs_grad)
			MU_TRY(cut(p, &whole, i, at));
		at += (dnnl_dim_t)op->inputs[i]->shape.dims[1];
	}
out:
	return st;
}
