/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution on oneDNN: forward with fused activation, data and weight gradients. */
#include "cpu.h"

#include <muster/base.h>

/* In the names of oneDNN's kernels that multiply matrices; they are among its direct ones. */
static const char *const matrices = "gemm:";

static const struct cpu_own_convolution *const own[] = {&mu_cpu_winograd, &mu_cpu_columns};

struct shape {
	struct cpu_md src, weights, bias,
		dst;                /* as asked for: src and dst fixed or any, weights any */
	struct cpu_request request; /* what all phases have in common */
	bool has_bias;
	/* By our own kernels, where the layouts fit, or NULL. */
	const struct cpu_own_convolution *own[MU_CONVOLUTION_PHASES];
	int ndims; /* of the weights: the tensors', or one more with groups */
	dnnl_dims_t weight_dims;
};

/* Channels that are no multiple of 16 would be padded in oneDNN's blocked layouts: nhwc instead. So
 * do sequences (n, c, steps, 1), whose other layers have channels last. */
static bool prefers_nhwc(const struct mu_op *op, const struct mu_convolution *a)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	return a->filters % 16 != 0 || (in->ndims == 4 && in->dims[2] > 1 && in->dims[3] == 1) ||
	       (in->dims[1] > 3 && in->dims[1] % 16 != 0);
}

/*
 * The fixed rule of MU_CONVOLUTION_AUTO where none of our own applies (their files' `pays`):
 * oneDNN's own choice, which depends on shape, phase, threads and instruction set, and direct for
 * fewer than 32 channels. Its Winograd pads fewer than 16: for RGB images at batch 128 that took
 * 4.6 GB of scratch, and ran at a quarter of direct's speed; with 16 channels it took 1.3 times
 * direct's time forward and 1.6 times backward.
 */
static dnnl_alg_kind_t ask(const struct cpu_plan *p, const struct shape *s,
			   enum mu_convolution_phase phase)
{
	switch (p->algorithms[phase]) {
	case MU_CONVOLUTION_DIRECT:
	case MU_CONVOLUTION_GEMM: return dnnl_convolution_direct;
	case MU_CONVOLUTION_WINOGRAD: return dnnl_convolution_winograd;
	default: return s->src.dims[1] < 32 ? dnnl_convolution_direct : dnnl_convolution_auto;
	}
}

/* The kernel of a phase, direct where there is none of the algorithm asked for; notes which it is.
 */
static enum mu_status choose(struct cpu_plan *p, const struct shape *s,
			     enum mu_convolution_phase phase, dnnl_primitive_desc_t hint,
			     dnnl_primitive_desc_t *pd)
{
	/* Of training in inference, too: there Winograd's kernels want weights in a layout of their
	 * own, into which oneDNN does not bring all those that training chooses. */
	static const dnnl_prop_kind_t props[] = {
		[MU_CONVOLUTION_FORWARD] = dnnl_forward_training,
		[MU_CONVOLUTION_DATA] = dnnl_backward_data,
		[MU_CONVOLUTION_WEIGHTS] = dnnl_backward_weights,
	};
	enum mu_status st = MU_OK;
	struct cpu_request request = s->request;
	struct cpu_md weights = s->weights;
	dnnl_alg_kind_t chosen;

	if (phase == MU_CONVOLUTION_WEIGHTS)
		weights.data_type = dnnl_f32;
	request.prop = props[phase];
	request.algorithm = ask(p, s, phase);
	request.src = &s->src;
	request.weights = &weights;
	request.bias = s->has_bias ? &s->bias : NULL;
	request.dst = &s->dst;
	request.hint = hint;
	if (phase == MU_CONVOLUTION_FORWARD)
		request.post = mu_cpu_eltwise(p->op->fusion.activation);
	if (p->algorithms[phase] == MU_CONVOLUTION_GEMM)
		request.kernel_name = matrices;
	MU_TRY(mu_dnnl_describe(p->cpu->engine, &request, pd));
	if (!*pd) {
		request.algorithm = dnnl_convolution_direct;
		request.kernel_name = NULL;
		MU_TRY(mu_cpu_describe(p, &request, pd));
	}
	MU_TRY(mu_dnnl_algorithm(*pd, &chosen));
	p->op->algorithms[phase] = chosen == dnnl_convolution_winograd ? MU_CONVOLUTION_WINOGRAD
				   : mu_dnnl_is_kernel(*pd, matrices)  ? MU_CONVOLUTION_GEMM
								       : MU_CONVOLUTION_DIRECT;
out:
	return st;
}

static const struct cpu_own_convolution *find_own(const struct cpu_plan *p,
						  enum mu_convolution_phase phase)
{
	for (size_t i = 0; i < sizeof own / sizeof *own && p->op->inputs[0]->shape.ndims == 4; i++)
		if (own[i]->does(p, phase))
			return own[i];
	return NULL;
}

static void describe_shape(const struct cpu_plan *p, struct shape *s)
{
	const struct mu_op *op = p->op;
	const struct mu_convolution *a = op->attr;
	const struct mu_shape *weight = &op->params[0].shape;
	const struct mu_window w = mu_window_of_convolution(a, &op->inputs[0]->shape);
	dnnl_format_tag_t tag = prefers_nhwc(op, a) ? dnnl_nhwc : dnnl_format_tag_any;
	dnnl_dim_t groups = a->groups > 1 ? a->groups : 1;
	int k = 0;

	if (groups > 1)
		s->weight_dims[k++] = groups;
	s->weight_dims[k++] = (dnnl_dim_t)weight->dims[0] / groups;
	for (int i = 1; i < weight->ndims; i++)
		s->weight_dims[k++] = (dnnl_dim_t)weight->dims[i];
	s->ndims = k;
	s->has_bias = !a->no_bias;
	s->request = (struct cpu_request){.kind = CPU_CONVOLUTION};
	mu_cpu_request_window(&s->request, &w);
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		s->own[phase] = find_own(p, (enum mu_convolution_phase)phase);
	mu_cpu_tag(&s->src, &op->inputs[0]->shape, tag);
	mu_cpu_tag(&s->dst, &op->outputs[0]->shape, tag);
	s->src.data_type = s->dst.data_type = p->dtype;
	mu_dnnl_tag(&s->weights, s->ndims, s->weight_dims, dnnl_format_tag_any);
	s->weights.data_type = p->dtype;
	if (s->has_bias)
		mu_cpu_plain(&s->bias, &op->params[1].shape);
}

/* The input in the layout that the primitive wants. One channel: plain and nhwc are the same bytes.
 */
static enum mu_status input_as(struct cpu_plan *p, const struct cpu_md *md, int *out)
{
	const struct mu_tensor *in = p->op->inputs[0];
	struct cpu_md have;

	mu_cpu_tensor_md(&have, in);
	if (!in->layout && in->shape.dims[1] == 1)
		mu_cpu_tag(&have, &in->shape, dnnl_nhwc);
	return mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), md,
			 p->op->phase == MU_PHASE_TRAIN, out);
}

/* ---- our own kernels ---- */

/* Layouts of forward: those that oneDNN has chosen if they fit, so that the layers around keep
 * theirs, else channels last. */
static bool choose_layouts(const struct cpu_plan *p, const struct shape *s, struct cpu_md *in,
			   struct cpu_md *out)
{
	const struct cpu_own_convolution *o = s->own[MU_CONVOLUTION_FORWARD];

	if (!o)
		return false;
	if (!o->fits(in, out)) {
		mu_cpu_tag(in, &p->op->inputs[0]->shape, dnnl_nhwc);
		mu_cpu_tag(out, &p->op->outputs[0]->shape, dnnl_nhwc);
	}
	return true;
}

/* A layout of the input for the gradients: its own if it fits, else channels last. */
static bool choose_input(const struct cpu_plan *p, const struct shape *s,
			 enum mu_convolution_phase phase, struct cpu_md *in)
{
	const struct cpu_own_convolution *o = s->own[phase];
	struct cpu_md out;

	if (!o)
		return false;
	mu_cpu_tensor_md(&out, p->op->outputs[0]);
	if (!o->fits(in, &out))
		mu_cpu_tag(in, &p->op->inputs[0]->shape, dnnl_nhwc);
	return o->fits(in, &out);
}

static enum mu_status own_forward(struct cpu_plan *p, const struct shape *s, int src,
				  const struct cpu_md *out)
{
	enum mu_status st = MU_OK;
	const struct cpu_own_convolution *o = s->own[MU_CONVOLUTION_FORWARD];
	struct mu_op *op = p->op;
	struct cpu_convolution c = {.x = src, .bias = -1};
	struct cpu_md md;

	mu_dnnl_tag(&md, s->ndims, s->weight_dims, o->weights);
	MU_TRY(mu_cpu_set_param(&op->params[0], &md));
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &md, &c.weight));
	if (s->has_bias) {
		MU_TRY(mu_cpu_set_param(&op->params[1], &s->bias));
		c.bias = mu_cpu_memory(p, &s->bias, CPU_PARAM_DATA, 1);
	}
	c.y = mu_cpu_memory(p, out, CPU_OUT_DATA, 0);
	MU_TRY(o->plan(p, MU_CONVOLUTION_FORWARD, &c));
	op->algorithms[MU_CONVOLUTION_FORWARD] = o->algorithm;
out:
	return st;
}

static enum mu_status own_data(struct cpu_plan *p, const struct shape *s, const struct cpu_md *in,
			       int diff_dst)
{
	enum mu_status st = MU_OK;
	const struct cpu_own_convolution *o = s->own[MU_CONVOLUTION_DATA];
	struct cpu_convolution c = {.y = diff_dst, .bias = -1};
	struct cpu_md have, md;
	int to;

	mu_dnnl_tag(&md, s->ndims, s->weight_dims, o->weights);
	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	to = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	c.x = mu_dnnl_equal(in, &have) ? to : mu_cpu_temporary(p, in);
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &md, &c.weight));
	MU_TRY(o->plan(p, MU_CONVOLUTION_DATA, &c));
	if (c.x != to)
		MU_TRY(mu_cpu_reorder(p, c.x, to));
	p->op->algorithms[MU_CONVOLUTION_DATA] = o->algorithm;
out:
	return st;
}

static enum mu_status own_weight_grad(struct cpu_plan *p, const struct shape *s, int src,
				      int diff_dst)
{
	enum mu_status st = MU_OK;
	const struct cpu_own_convolution *o = s->own[MU_CONVOLUTION_WEIGHTS];
	struct cpu_convolution c = {.x = src, .y = diff_dst, .bias = -1};
	struct cpu_md have, md;
	int to;

	mu_cpu_param_md(&have, &p->op->params[0], s->ndims, s->weight_dims);
	mu_dnnl_tag(&md, s->ndims, s->weight_dims, o->weights);
	to = mu_cpu_memory(p, &have, CPU_PARAM_GRAD, 0);
	c.weight = mu_dnnl_equal(&md, &have) ? to : mu_cpu_temporary(p, &md);
	if (s->has_bias)
		c.bias = mu_cpu_memory(p, &s->bias, CPU_PARAM_GRAD, 1);
	MU_TRY(o->plan(p, MU_CONVOLUTION_WEIGHTS, &c));
	if (c.weight != to)
		MU_TRY(mu_cpu_reorder(p, c.weight, to));
	p->op->algorithms[MU_CONVOLUTION_WEIGHTS] = o->algorithm;
out:
	return st;
}

/* ---- phases ---- */

static enum mu_status plan_forward(struct cpu_plan *p, const struct shape *s,
				   dnnl_primitive_desc_t *pd, int *src)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md in, weights, out_md;
	struct cpu_arg args[4];
	bool is_own;
	int n = 3;

	MU_TRY(choose(p, s, MU_CONVOLUTION_FORWARD, NULL, pd));
	MU_TRY(mu_dnnl_query(*pd, dnnl_query_src_md, &in));
	MU_TRY(mu_dnnl_query(*pd, dnnl_query_weights_md, &weights));
	MU_TRY(mu_dnnl_query(*pd, dnnl_query_dst_md, &out_md));
	is_own = choose_layouts(p, s, &in, &out_md);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &out_md));
	MU_TRY(input_as(p, &in, src));
	if (is_own) {
		MU_TRY(own_forward(p, s, *src, &out_md));
		goto out;
	}
	MU_TRY(mu_cpu_set_param(&op->params[0], &weights));
	args[0] = (struct cpu_arg){DNNL_ARG_SRC, *src};
	args[1].arg = DNNL_ARG_WEIGHTS;
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &weights, &args[1].memory));
	args[2] = (struct cpu_arg){DNNL_ARG_DST, mu_cpu_memory(p, &out_md, CPU_OUT_DATA, 0)};
	if (s->has_bias) {
		MU_TRY(mu_cpu_set_param(&op->params[1], &s->bias));
		args[n++] = (struct cpu_arg){DNNL_ARG_BIAS,
					     mu_cpu_memory(p, &s->bias, CPU_PARAM_DATA, 1)};
	}
	{
		dnnl_primitive_desc_t copy;

		CPU_DNNL(dnnl_primitive_desc_clone(&copy, *pd));
		MU_TRY(mu_cpu_step(p, copy, n, args));
	}
out:
	return st;
}

static enum mu_status plan_weights(struct cpu_plan *p, const struct shape *s,
				   dnnl_primitive_desc_t hint, int src, int diff_dst)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md have, src_md, dst_md, gradient;
	struct cpu_arg args[4] = {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_DST, 0}};
	int n = 2;

	src_md = *mu_cpu_md(p, src);
	if (choose_input(p, s, MU_CONVOLUTION_WEIGHTS, &src_md)) {
		MU_TRY(mu_cpu_as(p, src, &src_md, false, &src));
		return own_weight_grad(p, s, src, diff_dst);
	}
	MU_TRY(choose(p, s, MU_CONVOLUTION_WEIGHTS, hint, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_src_md, &src_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_dst_md, &dst_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_weights_md, &gradient));
	mu_cpu_param_md(&have, &p->op->params[0], s->ndims, s->weight_dims);
	MU_TRY(mu_cpu_as(p, src, &src_md, false, &args[0].memory));
	MU_TRY(mu_cpu_as(p, diff_dst, &dst_md, false, &args[1].memory));
	if (s->has_bias)
		args[n++] = (struct cpu_arg){DNNL_ARG_DIFF_BIAS,
					     mu_cpu_memory(p, &s->bias, CPU_PARAM_GRAD, 1)};
	args[n++].arg = DNNL_ARG_DIFF_WEIGHTS;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, &gradient,
			      mu_cpu_memory(p, &have, CPU_PARAM_GRAD, 0)));
out:
	return st;
}

static enum mu_status plan_data(struct cpu_plan *p, const struct shape *s,
				dnnl_primitive_desc_t hint, int diff_dst)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md have, src_md, weights, dst_md;
	struct cpu_arg args[3] = {
		{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_SRC, 0}};

	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	src_md = have;
	if (choose_input(p, s, MU_CONVOLUTION_DATA, &src_md))
		return own_data(p, s, &src_md, diff_dst);
	MU_TRY(choose(p, s, MU_CONVOLUTION_DATA, hint, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_src_md, &src_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &weights));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_dst_md, &dst_md));
	MU_TRY(mu_cpu_as(p, diff_dst, &dst_md, false, &args[0].memory));
	MU_TRY(mu_cpu_weights_as(p, s->ndims, s->weight_dims, &weights, &args[1].memory));
	MU_TRY(mu_cpu_step_to(p, pd, 3, args, &src_md, mu_cpu_memory(p, &have, CPU_IN_GRAD, 0)));
out:
	return st;
}

/* ---- plans ---- */

enum mu_status mu_cpu_plan_convolution(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_primitive_desc_t forward = NULL;
	struct cpu_md dst;
	struct shape s;
	int src, diff_dst;

	if (mu_cpu_convolves_rows(p))
		return mu_cpu_plan_convolution_rows(p);
	describe_shape(p, &s);
	MU_TRY(plan_forward(p, &s, &forward, &src));
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	p->program = &p->impl->backward;
	mu_cpu_tensor_md(&dst, op->outputs[0]);
	diff_dst = mu_cpu_memory(p, &dst, CPU_OUT_GRAD, 0);
	if (op->fusion.undo)
		MU_TRY(mu_cpu_plan_activation_backward(p, op->fusion.undo));
	MU_TRY(plan_weights(p, &s, forward, src, diff_dst));
	if (op->inputs[0]->needs_grad)
		MU_TRY(plan_data(p, &s, forward, diff_dst));
out:
	dnnl_primitive_desc_destroy(forward);
	return st;
}
