/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling on oneDNN, in the layout of the input, where max_pooling.c does not take it. */
#include "cpu.h"

#include <muster/base.h>

static struct mu_window window_of(const struct mu_op *op)
{
	return mu_window_of_pooling(op->attr, &op->inputs[0]->shape);
}

static void describe_window(const struct mu_op *op, struct cpu_request *r)
{
	const struct mu_window w = window_of(op);

	*r = (struct cpu_request){.kind = CPU_POOLING};
	r->algorithm = ((const struct mu_pooling *)op->attr)->average
			       ? dnnl_pooling_avg_include_padding
			       : dnnl_pooling_max;
	mu_cpu_request_window(r, &w);
	for (int i = 0; i < MU_MAX_SPACE - w.first; i++)
		if (r->pad_right[i] < 0)
			r->pad_right[i] = 0; /* the last rows are not read */
}

/*
 * Does the last window reach past the padding? Then its average is over the part inside, whereas
 * oneDNN divides by the whole kernel: the results are scaled by whole / part.
 */
static bool overhangs(const struct mu_op *op)
{
	const struct mu_window w = window_of(op);
	bool past = false;

	for (int d = 0; d < MU_MAX_SPACE; d++)
		past |= mu_window_pad_after(&w, d) > w.pad[d];
	return ((const struct mu_pooling *)op->attr)->average && past;
}

/* Cells along an axis of window number o that lie within the padded input. */
static long extent(const struct mu_window *w, int d, long o)
{
	const long rest = w->in[d] + w->pad[d] - (o * w->stride[d] - w->pad[d]);

	return rest < w->kernel[d] ? rest : w->kernel[d];
}

static void fill_scale(struct mu_op *op)
{
	const struct mu_window w = window_of(op);
	const long whole = mu_window_area(w.kernel);
	float *scale = op->workspace;

	for (long z = 0; z < w.out[0]; z++)
		for (long y = 0; y < w.out[1]; y++)
			for (long x = 0; x < w.out[2]; x++)
				*scale++ = (float)whole /
					   (float)(extent(&w, 0, z) * extent(&w, 1, y) *
						   extent(&w, 2, x));
}

/* The scale of every output position, first thing in the workspace; -1 where none is needed. */
static int plan_scale(struct cpu_plan *p)
{
	struct mu_shape shape = p->op->outputs[0]->shape;
	struct cpu_md md;

	if (!overhangs(p->op))
		return -1;
	shape.dims[0] = shape.dims[1] = 1;
	mu_cpu_plain(&md, &shape);
	return mu_cpu_keep(p, &md);
}

/* In bfloat16 oneDNN 2.6.3 loses the gradients of the maximum of 256 and more values: float32. */
static bool loses_gradients(const struct mu_op *op)
{
	const struct mu_window w = window_of(op);

	return op->phase == MU_PHASE_TRAIN && !((const struct mu_pooling *)op->attr)->average &&
	       mu_window_area(w.kernel) >= 256;
}

/* src, dst: as w has them, which differ from the tensors' in the type at most. */
static enum mu_status plan_backward(struct cpu_plan *p, const struct cpu_request *w,
				    dnnl_primitive_desc_t hint, int workspace, int scale)
{
	enum mu_status st = MU_OK;
	struct cpu_md src, dst;
	struct cpu_request request = *w;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3];
	int n = 1, grad;

	mu_cpu_tensor_md(&src, p->op->inputs[0]);
	mu_cpu_tensor_md(&dst, p->op->outputs[0]);
	grad = mu_cpu_memory(p, &dst, CPU_OUT_GRAD, 0);
	if (scale >= 0)
		MU_TRY(mu_cpu_binary(p, dnnl_binary_mul,
				     (struct cpu_pair){grad, scale, grad, NULL}));
	MU_TRY(mu_cpu_as(p, grad, w->dst, false, &grad));
	request.prop = dnnl_backward_data;
	request.hint = hint;
	MU_TRY(mu_cpu_describe(p, &request, &pd));
	args[0] = (struct cpu_arg){DNNL_ARG_DIFF_DST, grad};
	if (workspace >= 0)
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, workspace};
	args[n++].arg = DNNL_ARG_DIFF_SRC;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, w->src, mu_cpu_memory(p, &src, CPU_IN_GRAD, 0)));
out:
	return st;
}

enum mu_status mu_cpu_plan_pooling(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	bool train = op->phase == MU_PHASE_TRAIN;
	struct cpu_md have, src, dst, out_md, kept;
	dnnl_primitive_desc_t pd = NULL, hint = NULL;
	struct cpu_request w;
	struct cpu_arg args[3];
	int n = 1, workspace = -1, scale, out;

	mu_cpu_tensor_md(&have, op->inputs[0]);
	if (mu_cpu_plan_max_pooling(p, &have, &st))
		return st;
	describe_window(op, &w);
	scale = plan_scale(p);
	src = have;
	if (loses_gradients(op))
		src.data_type = dnnl_f32;
	mu_cpu_tag(&dst, &op->outputs[0]->shape, dnnl_format_tag_any);
	dst.data_type = src.data_type;
	w.prop = train ? dnnl_forward_training : dnnl_forward_inference;
	w.src = &src;
	w.dst = &dst;
	MU_TRY(mu_cpu_describe(p, &w, &pd));
	CPU_DNNL(dnnl_primitive_desc_clone(&hint, pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_dst_md, &dst));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_workspace_md, &kept));
	out_md = dst;
	out_md.data_type = have.data_type;
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &out_md));
	out = mu_cpu_memory(p, &out_md, CPU_OUT_DATA, 0);
	args[0].arg = DNNL_ARG_SRC;
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &src, false, &args[0].memory));
	if (mu_dnnl_nbytes(&kept) > 0) {
		workspace = mu_cpu_keep(p, &kept);
		args[n++] = (struct cpu_arg){DNNL_ARG_WORKSPACE, workspace};
	}
	args[n++].arg = DNNL_ARG_DST;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, &dst, out));
	if (scale >= 0) {
		mu_cpu_call(p, fill_scale);
		MU_TRY(mu_cpu_binary(p, dnnl_binary_mul, (struct cpu_pair){out, scale, out, NULL}));
	}
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		MU_TRY(plan_backward(p, &w, hint, workspace, scale));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}
