/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that move or add whole tensors: flatten, sum, concat, split. */
#include "cpu.h"

#include <muster/base.h>

/* Reorder between an input and an output of the operation, data or gradient. */
static enum mu_status copy(struct cpu_plan *p, const dnnl_memory_desc_t *from_md,
			   enum cpu_place from, const dnnl_memory_desc_t *to_md, enum cpu_place to)
{
	int a = mu_cpu_memory(p, from_md, from, 0), b = mu_cpu_memory(p, to_md, to, 0);

	return mu_cpu_reorder(p, a, b);
}

/* The output's bytes are those of the plain input. */
enum mu_status mu_cpu_plan_flatten(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_memory_desc_t have, plain, flat;

	mu_cpu_tensor_md(&have, op->inputs[0]);
	mu_cpu_plain(&plain, &op->inputs[0]->shape);
	mu_cpu_plain(&flat, &op->outputs[0]->shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &flat));
	MU_TRY(copy(p, &have, CPU_IN_DATA, &plain, CPU_OUT_DATA));
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		MU_TRY(copy(p, &plain, CPU_OUT_GRAD, &have, CPU_IN_GRAD));
out:
	return st;
}

#define MAX_PARTS (CPU_MAX_ARGS - 2)

static enum mu_status check_parts(const struct mu_op *op, int n)
{
	enum mu_status st = MU_OK;

	if (n > MAX_PARTS)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: %d tensors; at most %d can be joined", op->name, n,
			MAX_PARTS);
out:
	return st;
}

/* to = the sum, in order, of n tensors in one layout. */
static enum mu_status add_up(struct cpu_plan *p, const dnnl_memory_desc_t *md, int n,
			     const int *from, int to)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t mds[MAX_PARTS];
	float scales[MAX_PARTS];
	struct cpu_arg args[MAX_PARTS + 1];
	dnnl_primitive_desc_t pd = NULL;

	for (int i = 0; i < n; i++) {
		mds[i] = *mu_cpu_md(p, from[i]);
		scales[i] = 1;
		args[i] = (struct cpu_arg){DNNL_ARG_MULTIPLE_SRC + i, from[i]};
	}
	args[n] = (struct cpu_arg){DNNL_ARG_DST, to};
	CPU_DNNL(dnnl_sum_primitive_desc_create(&pd, md, n, scales, mds, NULL, p->cpu->engine));
	MU_TRY(mu_cpu_step(p, pd, n + 1, args));
out:
	return st;
}

enum mu_status mu_cpu_plan_sum(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_memory_desc_t md, have;
	int from[MAX_PARTS];

	MU_TRY(check_parts(op, op->n_inputs));
	mu_cpu_tensor_md(&md, op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	for (int i = 0; i < op->n_inputs; i++) {
		mu_cpu_tensor_md(&have, op->inputs[i]);
		from[i] = mu_cpu_memory(p, &have, CPU_IN_DATA, (size_t)i);
	}
	MU_TRY(add_up(p, &md, op->n_inputs, from, mu_cpu_memory(p, &md, CPU_OUT_DATA, 0)));
	p->program = &p->impl->backward;
	for (int i = 0; i < op->n_inputs; i++) {
		if (!op->inputs[i]->needs_grad)
			continue;
		mu_cpu_tensor_md(&have, op->inputs[i]);
		from[i] = mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0);
		MU_TRY(mu_cpu_reorder(p, from[i], mu_cpu_memory(p, &have, CPU_IN_GRAD, (size_t)i)));
	}
out:
	return st;
}

/* Every output is the input; where they share memory (in place) nothing is copied. Gradients are
 * summed in order. */
enum mu_status mu_cpu_plan_split(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_memory_desc_t md;
	int from[MAX_PARTS];

	MU_TRY(check_parts(op, op->n_outputs));
	mu_cpu_tensor_md(&md, op->inputs[0]);
	for (int i = 0; i < op->n_outputs; i++) {
		MU_TRY(mu_cpu_set_tensor(op->outputs[i], &md));
		if (op->in_place)
			continue;
		from[i] = mu_cpu_memory(p, &md, CPU_IN_DATA, 0);
		MU_TRY(mu_cpu_reorder(p, from[i], mu_cpu_memory(p, &md, CPU_OUT_DATA, (size_t)i)));
	}
	p->program = &p->impl->backward;
	if (!op->inputs[0]->needs_grad)
		goto out;
	for (int i = 0; i < op->n_outputs; i++)
		from[i] = mu_cpu_memory(p, &md, CPU_OUT_GRAD, (size_t)i);
	MU_TRY(add_up(p, &md, op->n_outputs, from, mu_cpu_memory(p, &md, CPU_IN_GRAD, 0)));
out:
	return st;
}

/* Backward cuts the output's gradient: input i is the part [at, at + c) of its channels. */
static enum mu_status cut(struct cpu_plan *p, const dnnl_memory_desc_t *whole, int i, dnnl_dim_t at)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t have, part;
	dnnl_dims_t offsets = {0};

	mu_cpu_tensor_md(&have, p->op->inputs[i]);
	offsets[1] = at;
	CPU_DNNL(dnnl_memory_desc_init_submemory(&part, whole, have.dims, offsets));
	MU_TRY(mu_cpu_reorder(p, mu_cpu_memory(p, &part, CPU_OUT_GRAD, 0),
			      mu_cpu_memory(p, &have, CPU_IN_GRAD, (size_t)i)));
out:
	return st;
}

/* The output is plain where a part's channels do not fill whole blocks, since blocks cannot be cut.
 */
static void concat_layout(const struct mu_op *op, dnnl_memory_desc_t *md)
{
	bool whole = true;
	dnnl_memory_desc_t first;

	mu_cpu_tensor_md(&first, op->inputs[0]);
	for (int i = 0; i < op->n_inputs; i++)
		whole &= op->inputs[i]->shape.dims[1] % 16 == 0;
	if (first.format_desc.blocking.inner_nblks > 0 && !whole)
		mu_cpu_tag(md, &op->outputs[0]->shape, dnnl_nhwc);
	else
		mu_cpu_tag(md, &op->outputs[0]->shape, dnnl_format_tag_any);
}

enum mu_status mu_cpu_plan_concat(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_memory_desc_t mds[MAX_PARTS], whole;
	struct cpu_arg args[MAX_PARTS + 1];
	dnnl_primitive_desc_t pd = NULL;
	dnnl_dim_t at = 0;

	MU_TRY(check_parts(op, op->n_inputs));
	for (int i = 0; i < op->n_inputs; i++) {
		mu_cpu_tensor_md(&mds[i], op->inputs[i]);
		args[i] = (struct cpu_arg){DNNL_ARG_MULTIPLE_SRC + i,
					   mu_cpu_memory(p, &mds[i], CPU_IN_DATA, (size_t)i)};
	}
	concat_layout(op, &whole);
	CPU_DNNL(dnnl_concat_primitive_desc_create(&pd, &whole, op->n_inputs, 1, mds, NULL,
						   p->cpu->engine));
	whole = *mu_cpu_query(pd, dnnl_query_dst_md);
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
