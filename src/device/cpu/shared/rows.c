/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows with a weight: what LSTMs and convolutions over steps are made of. */
#include "device/cpu/cpu.h"

#include <string.h>

#include <muster/base.h>

void mu_cpu_rows_md(struct cpu_md *md, size_t rows, size_t columns)
{
	mu_cpu_plain(md, &(struct mu_shape){2, {rows, columns}});
}

void mu_cpu_rows_describe(struct cpu_rows *m, const struct mu_op *op, int which, size_t rows,
			  dnnl_format_tag_t layout)
{
	const struct mu_shape *weight = &op->params[which].shape;
	const dnnl_dim_t dims[] = {(dnnl_dim_t)weight->dims[0], (dnnl_dim_t)weight->dims[1]};

	*m = (struct cpu_rows){.which = which};
	mu_cpu_rows_md(&m->x, rows, weight->dims[1]);
	mu_cpu_rows_md(&m->y, rows, weight->dims[0]);
	mu_cpu_plain(&m->bias, &(struct mu_shape){1, {weight->dims[0]}});
	mu_dnnl_tag(&m->weight, 2, dims, layout);
}

enum mu_status mu_cpu_rows_weight(struct cpu_plan *p, const struct cpu_rows *m,
				  const_dnnl_primitive_desc_t pd, int *out)
{
	enum mu_status st = MU_OK;
	struct cpu_md have, wanted;

	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &wanted));
	mu_cpu_param_md(&have, &p->op->params[m->which], 2, m->weight.dims);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_PARAM_DATA, (size_t)m->which), &wanted,
			 false, out));
out:
	return st;
}

enum mu_status mu_cpu_rows_forward(struct cpu_plan *p, const struct cpu_rows *m,
				   dnnl_primitive_desc_t *pd)
{
	const struct cpu_request request = {
		.kind = CPU_INNER_PRODUCT,
		.prop = p->op->phase == MU_PHASE_TRAIN ? dnnl_forward_training
						       : dnnl_forward_inference,
		.src = &m->x,
		.weights = &m->weight,
		.bias = m->has_bias ? &m->bias : NULL,
		.dst = &m->y,
	};

	return mu_cpu_describe(p, &request, pd);
}

enum mu_status mu_cpu_rows_data(struct cpu_plan *p, const struct cpu_rows *m,
				dnnl_primitive_desc_t *pd)
{
	const struct cpu_request request = {.kind = CPU_INNER_PRODUCT,
					    .prop = dnnl_backward_data,
					    .src = &m->x,
					    .weights = &m->weight,
					    .dst = &m->y,
					    .hint = m->hint};

	return mu_cpu_describe(p, &request, pd);
}

enum mu_status mu_cpu_rows_input(struct cpu_plan *p, const struct cpu_rows *m, int *out)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = p->op->inputs[0];
	struct cpu_md have, last;
	int memory;

	mu_cpu_tensor_md(&have, in);
	mu_cpu_tag(&last, &in->shape, dnnl_acdb);
	last.data_type = m->x.data_type;
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &last, false, &memory));
	*out = mu_cpu_seen_as(p, memory, &m->x);
out:
	return st;
}

/* to = the sum of the rows, or to += that. */
static void sum_rows(float *to, const float *rows, size_t n_rows, size_t n, bool adds)
{
	if (!adds)
		memset(to, 0, n * sizeof *to);
	for (size_t r = 0; r < n_rows; r++)
		mu_cpu_add(to, rows + r * n, n);
}

enum mu_status mu_cpu_rows_weight_grad(const struct mu_op *op, const struct cpu_rows_grad *g)
{
	enum mu_status st = MU_OK;
	const struct mu_param *weight = &op->params[g->which];
	const dnnl_dim_t units = (dnnl_dim_t)weight->shape.dims[0], n = (dnnl_dim_t)g->rows;
	const dnnl_dim_t k = (dnnl_dim_t)weight->shape.dims[1];
	const float *x = mu_cpu_pointer(op, g->x), *dy = mu_cpu_pointer(op, g->dy);
	const float beta = op->adds ? 1 : 0;

	if (g->columns)
		CPU_DNNL(dnnl_sgemm('T', 'N', k, units, n, 1, x, k, dy, units, beta, weight->grad,
				    units));
	else
		CPU_DNNL(dnnl_sgemm('T', 'N', units, k, n, 1, dy, units, x, k, beta, weight->grad,
				    k));
	if (g->has_bias)
		sum_rows(op->params[g->which + 1].grad, dy, g->rows, (size_t)units, op->adds);
out:
	return st;
}

enum mu_status mu_cpu_rows_weight_step(struct cpu_plan *p, const struct cpu_rows *m, int x, int dy)
{
	enum mu_status st = MU_OK;
	struct cpu_md have, gradient = m->weight;
	const struct cpu_request request = {.kind = CPU_INNER_PRODUCT,
					    .prop = dnnl_backward_weights,
					    .src = &m->x,
					    .weights = &gradient,
					    .bias = m->has_bias ? &m->bias : NULL,
					    .dst = &m->y,
					    .hint = m->hint};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}};
	int n = 2;

	gradient.data_type = dnnl_f32;
	MU_TRY(mu_cpu_describe(p, &request, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_diff_weights_md, &gradient));
	mu_cpu_param_md(&have, &p->op->params[m->which], 2, m->weight.dims);
	if (m->has_bias)
		args[n++] = (struct cpu_arg){
			DNNL_ARG_DIFF_BIAS,
			mu_cpu_memory(p, &m->bias, CPU_PARAM_GRAD, (size_t)m->which + 1)};
	args[n++].arg = DNNL_ARG_DIFF_WEIGHTS;
	MU_TRY(mu_cpu_step_to(p, pd, n, args, &gradient,
			      mu_cpu_memory(p, &have, CPU_PARAM_GRAD, (size_t)m->which)));
out:
	return st;
}

/* Of rounded numbers: a product of matrices (see fully_connected.c). */
static enum mu_status describe_data(struct cpu_plan *p, const struct cpu_rows *m,
				    struct cpu_arg *args, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request request = {
		.kind = CPU_MATMUL, .src = &m->y, .weights = &m->weight, .dst = &m->x};

	if (m->x.data_type == dnnl_f32)
		return mu_cpu_rows_data(p, m, pd);
	args[0].arg = DNNL_ARG_SRC;
	args[2].arg = DNNL_ARG_DST;
	return mu_cpu_describe(p, &request, pd);
}

enum mu_status mu_cpu_rows_input_grad(struct cpu_plan *p, const struct cpu_rows *m, int dy)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = p->op->inputs[0];
	struct cpu_md have, last;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {
		{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_SRC, 0}};
	int to, grad;

	mu_cpu_tensor_md(&have, in);
	mu_cpu_tag(&last, &in->shape, dnnl_acdb);
	last.data_type = m->x.data_type;
	grad = to = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	if (!mu_dnnl_equal(&have, &last))
		grad = mu_cpu_temporary(p, &last);
	args[2].memory = mu_cpu_seen_as(p, grad, &m->x);
	MU_TRY(describe_data(p, m, args, &pd));
	MU_TRY(mu_cpu_rows_weight(p, m, pd, &args[1].memory));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
	if (grad != to)
		MU_TRY(mu_cpu_reorder(p, grad, to));
out:
	return st;
}
