/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on blocks of a tensor, in loops of our own: see cpu.h. */
#include "device/cpu/cpu.h"

#include <muster/base.h>

enum { BLOCK = 16 };

/* In float32. */
static void lay(const struct cpu_blocks *b, const struct mu_shape *shape, struct cpu_md *md)
{
	mu_cpu_tag(md, shape, b->tag);
}

static bool is_laid(const struct cpu_blocks *b, const struct mu_tensor *t)
{
	struct cpu_md have, md;

	mu_cpu_tensor_md(&have, t);
	lay(b, &t->shape, &md);
	md.data_type = have.data_type;
	return mu_dnnl_equal(&have, &md);
}

static struct cpu_blocks blocks_of(const struct mu_tensor *t)
{
	const struct cpu_blocks last = {.tag = dnnl_nhwc, .inner = t->shape.dims[1]};
	const struct cpu_blocks blocked = {.tag = dnnl_nChw16c, .inner = BLOCK};

	if (t->shape.ndims >= 4 && t->layout && is_laid(&last, t))
		return last;
	if (t->shape.ndims >= 4 && t->shape.dims[1] % BLOCK == 0 && is_laid(&blocked, t))
		return blocked;
	return (struct cpu_blocks){.tag = dnnl_format_tag_undef, .inner = 1};
}

static enum mu_status read_input(struct cpu_plan *p, const struct cpu_blocks *b, int *out)
{
	const struct mu_tensor *in = p->op->inputs[0];
	struct cpu_md have, md;

	mu_cpu_tensor_md(&have, in);
	lay(b, &in->shape, &md);
	return mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &md, false, out);
}

enum mu_status mu_cpu_blocks_begin(struct cpu_plan *p, struct cpu_blocks *b)
{
	enum mu_status st = MU_OK;
	struct mu_tensor *out = p->op->outputs[0];
	const struct mu_tensor *in = p->op->inputs[0];
	struct cpu_md md;

	*b = blocks_of(in);
	b->outer = in->shape.dims[0] * in->shape.dims[1] / b->inner;
	lay(b, &out->shape, &md);
	MU_TRY(mu_cpu_set_tensor(out, &md));
	MU_TRY(read_input(p, b, &b->x));
	b->y = mu_cpu_memory(p, &md, CPU_OUT_DATA, 0);
out:
	return st;
}

enum mu_status mu_cpu_blocks_turn(struct cpu_plan *p, struct cpu_blocks *b, bool reads_x)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = p->op->inputs[0];
	struct cpu_md have, md;

	p->program = &p->impl->backward;
	if (reads_x)
		MU_TRY(read_input(p, b, &b->x_again));
	lay(b, &p->op->outputs[0]->shape, &md);
	b->dy = mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0);
	b->dx = b->gradient = -1;
	if (!in->needs_grad)
		goto out;
	mu_cpu_tensor_md(&have, in);
	lay(b, &in->shape, &md);
	b->gradient = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	b->dx = mu_dnnl_equal(&have, &md) ? b->gradient : mu_cpu_temporary(p, &md);
out:
	return st;
}

enum mu_status mu_cpu_blocks_end(struct cpu_plan *p, const struct cpu_blocks *b)
{
	return b->dx == b->gradient ? MU_OK : mu_cpu_reorder(p, b->dx, b->gradient);
}

struct cpu_range mu_cpu_range(size_t n, struct cpu_part part)
{
	return (struct cpu_range){part.index * n / part.n, (part.index + 1) * n / part.n};
}

void mu_cpu_space(const struct mu_shape *shape, long out[MU_MAX_SPACE])
{
	const int first = MU_MAX_DIMS - shape->ndims;

	for (int i = 0; i < MU_MAX_SPACE; i++)
		out[i] = i < first ? 1 : (long)shape->dims[2 + i - first];
}
