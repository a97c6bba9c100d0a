/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposed convolution on oneDNN: forward is the gradient of the data of a convolution that reads
 * y and writes x, the gradient of x is that convolution. The gradient of the bias is ref's loop.
 */
#include "cpu.h"
#include "device/ref/convolution/convolve.h"

#include <stdlib.h>

#include <muster/base.h>

struct transposed {
	struct cpu_md y, x, weights; /* as asked for */
	struct cpu_request request;  /* what all phases have in common */
	int ndims;                   /* of the weights: the tensors', or one more with groups */
	dnnl_dims_t weight_dims;
	int plain_dy; /* the output's gradient for the sums of the bias */
};

static void describe(const struct cpu_plan *p, struct transposed *t)
{
	const struct mu_op *op = p->op;
	const struct mu_deconvolution *a = op->attr;
	const struct mu_shape *weight = &op->params[0].shape;
	const struct mu_window w = mu_window_of_deconvolution(a, &op->inputs[0]->shape);
	const bool last = a->filters % 16 != 0 || op->inputs[0]->shape.dims[1] % 16 != 0;
	const dnnl_format_tag_t tag = last ? dnnl_nhwc : dnnl_format_tag_any;
	const dnnl_dim_t groups = a->groups > 1 ? a->groups : 1;
	int k = 0;

	if (groups > 1)
		t->weight_dims[k++] = groups;
	t->weight_dims[k++] = (dnnl_dim_t)weight->dims[0] / groups;
	for (int i = 1; i < weight->ndims; i++)
		t->weight_dims[k++] = (dnnl_dim_t)weight->dims[i];
	t->ndims = k;
	t->request = (struct cpu_request){.kind = CPU_CONVOLUTION,
					  .algorithm = dnnl_convolution_direct};
	mu_cpu_request_window(&t->request, &w);
	mu_cpu_tag(&t->y, &op->outputs[0]->shape, tag);
	mu_cpu_tag(&t->x, &op->inputs[0]->shape, tag);
	mu_dnnl_tag(&t->weights, t->ndims, t->weight_dims, dnnl_format_tag_any);
	t->x.data_type = t->y.data_type = t->weights.data_type = p->dtype;
}

/* A phase's kernel; hint: the convolution. */
static enum mu_status choose(struct cpu_plan *p, const struct transposed *t, dnnl_prop_kind_t prop,
			     dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *pd)
{
	struct cpu_request request = t->request;
	struct cpu_md weights = t->weights;

	if (prop == dnnl_backward_weights)
		weights.data_type = dnnl_f32;
	request.prop = prop;
	request.src = &t->y;
	request.weights = &weights;
	request.dst = &t->x;
	request.hint = hint;
	return mu_cpu_describe(p, &request, pd);
}

/* Adds the bias, a number for each channel, to the output. */
static enum mu_status plan_bias(struct cpu_plan *p, int y)
{
	enum mu_status st = MU_OK;
	struct mu_shape each = p->op->outputs[0]->shape;
	struct cpu_md vector, md;
	int bias;

	mu_cpu_plain(&vector, &p->op->params[1].shape);
	MU_TRY(mu_cpu_set_param(&p->op->params[1], &vector));
	for (int i = 0; i < each.ndims; i++)
		each.dims[i] = i == 1 ? each.dims[1] : 1;
	mu_cpu_plain(&md, &each);
	bias = mu_cpu_memory(p, &md, CPU_PARAM_DATA, 1);
	MU_TRY(mu_cpu_binary(p, dnnl_binary_add, (struct cpu_pair){y, bias, y, NULL}));
out:
	return st;
}

static enum mu_status plan_forward(struct cpu_plan *p, const struct transposed *t,
				   dnnl_primitive_desc_t hint, int *x)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md have, x_md, y_md, weights;
	struct cpu_arg args[3] = {
		{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_SRC, 0}};

	MU_TRY(choose(p, t, dnnl_backward_data, hint, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_dst_md, &x_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_src_md, &y_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &weights));
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &y_md));
	MU_TRY(mu_cpu_set_param(&op->params[0], &weights));
	mu_cpu_tensor_md(&have, op->inputs[0]);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &x_md,
			 op->phase == MU_PHASE_TRAIN, x));
	args[0].memory = *x;
	MU_TRY(mu_cpu_weights_as(p, t->ndims, t->weight_dims, &weights, &args[1].memory));
	args[2].memory = mu_cpu_memory(p, &y_md, CPU_OUT_DATA, 0);
	MU_TRY(mu_cpu_step(p, pd, 3, args));
	if (op->n_params > 1)
		MU_TRY(plan_bias(p, args[2].memory));
out:
	return st;
}

static void sum_bias(struct mu_op *op)
{
	const struct transposed *t = ((const struct cpu_op *)op->impl)->own;

	mu_ref_channel_sums(&op->outputs[0]->shape, mu_cpu_pointer(op, t->plain_dy),
			    op->params[1].grad);
}

static enum mu_status plan_gradients(struct cpu_plan *p, struct transposed *t,
				     dnnl_primitive_desc_t hint, int x, int dy)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md have, src_md, dst_md, gradient, plain;
	struct cpu_arg args[3] = {
		{DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_DIFF_WEIGHTS, 0}};

	MU_TRY(choose(p, t, dnnl_backward_weights, hint, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_src_md, &src_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_dst_md, &dst_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_weights_md, &gradient));
	mu_cpu_param_md(&have, &p->op->params[0], t->ndims, t->weight_dims);
	MU_TRY(mu_cpu_as(p, dy, &src_md, false, &args[0].memory));
	MU_TRY(mu_cpu_as(p, x, &dst_md, false, &args[1].memory));
	MU_TRY(mu_cpu_step_to(p, pd, 3, args, &gradient,
			      mu_cpu_memory(p, &have, CPU_PARAM_GRAD, 0)));
	if (p->op->n_params > 1) {
		mu_cpu_plain(&plain, &p->op->outputs[0]->shape);
		MU_TRY(mu_cpu_as(p, dy, &plain, false, &t->plain_dy));
		mu_cpu_call(p, sum_bias);
	}
out:
	return st;
}

static enum mu_status plan_data(struct cpu_plan *p, const struct transposed *t, int dy)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_md have, src_md, dst_md, weights;
	struct cpu_arg args[3] = {{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DST, 0}};

	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	MU_TRY(choose(p, t, dnnl_forward_training, NULL, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_src_md, &src_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_dst_md, &dst_md));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &weights));
	MU_TRY(mu_cpu_as(p, dy, &src_md, false, &args[0].memory));
	MU_TRY(mu_cpu_weights_as(p, t->ndims, t->weight_dims, &weights, &args[1].memory));
	MU_TRY(mu_cpu_step_to(p, pd, 3, args, &dst_md, mu_cpu_memory(p, &have, CPU_IN_GRAD, 0)));
out:
	return st;
}

enum mu_status mu_cpu_plan_deconvolution(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct transposed *t = calloc(1, sizeof *t);
	dnnl_primitive_desc_t hint = NULL;
	struct cpu_md dy;
	int x, gradient;

	p->impl->own = t;
	if (!t)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	describe(p, t);
	MU_TRY(choose(p, t, dnnl_forward_training, NULL, &hint));
	MU_TRY(plan_forward(p, t, hint, &x));
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	p->program = &p->impl->backward;
	mu_cpu_tensor_md(&dy, op->outputs[0]);
	gradient = mu_cpu_memory(p, &dy, CPU_OUT_GRAD, 0);
	MU_TRY(plan_gradients(p, t, hint, x, gradient));
	if (op->inputs[0]->needs_grad)
		MU_TRY(plan_data(p, t, gradient));
out:
	dnnl_primitive_desc_destroy(hint);
	return st;
}
