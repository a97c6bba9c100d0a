/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM on oneDNN's inner products; formulas: ref_lstm.c. Channels lie last, so the batch is rows of
 * units, row sample * steps + step. What comes from the input is one product over all rows, before
 * the steps in forward and behind them in backward; what comes from the step before is a product
 * of a row per sample in every step (the inner programs). The gates' values are kept in the rows
 * that they were computed in, and give way to their gradients in backward.
 *
 * oneDNN 2.6's own LSTM primitive is not used: it has its weights in another order of gates and
 * transposed, so they would be reordered in every step.
 */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

enum { GATES = 4 };
enum { I2H_WEIGHT, I2H_BIAS, H2H_WEIGHT, H2H_BIAS };
enum { FORWARD, BACKWARD }; /* inner programs */

/* Numbers of memories. */
struct lstm {
	struct cpu *cpu;
	size_t n, c, units, steps;
	int gates, cells; /* kept: (n steps, 4 units), (n steps, units) */
	/* Forward: the sum of both biases, (4 units); h of the step before, (n, units), and its
	 * product with the weight, (n, 4 units). */
	int bias, hidden, product;
	/* Backward: tanh of a sample's cells, (units); gradients of a step's cells and of h of the
	 * step before, (n, units), and of its gates, (n, 4 units); h of the step before, of all
	 * rows. */
	int value, cell_grad, hidden_grad, gate_grad, before;
};

static struct lstm *lstm_of(const struct mu_op *op)
{
	return ((struct cpu_op *)op->impl)->own;
}

/* ---- the steps ---- */

/* cells = f before + i g; before NULL: 0. */
MU_LOOP static void update_cells(const float *restrict gates, const float *restrict before,
				 float *restrict cells, size_t units)
{
	const float *i = gates, *g = i + units, *f = g + units;

	for (size_t u = 0; u < units; u++)
		cells[u] = i[u] * g[u];
	for (size_t u = 0; before && u < units; u++)
		cells[u] += f[u] * before[u];
}

MU_LOOP static void multiply(float *restrict to, const float *restrict by, size_t n)
{
	for (size_t k = 0; k < n; k++)
		to[k] *= by[k];
}

static void add_biases(struct mu_op *op)
{
	const struct lstm *l = lstm_of(op);
	float *sum = mu_cpu_pointer(op, l->bias);

	memcpy(sum, op->params[I2H_BIAS].data, GATES * l->units * sizeof *sum);
	mu_cpu_add(sum, op->params[H2H_BIAS].data, GATES * l->units);
}

/* Row `row` of the batch, of a sample at any step but the first if before is set. */
static void forward_row(const struct mu_op *op, size_t row, const float *product)
{
	const struct lstm *l = lstm_of(op);
	size_t units = l->units;
	float *gates = (float *)mu_cpu_pointer(op, l->gates) + row * GATES * units;
	float *cells = (float *)mu_cpu_pointer(op, l->cells) + row * units;
	float *y = op->outputs[0]->data + row * units;

	if (product)
		mu_cpu_add(gates, product, GATES * units);
	mu_cpu_sigmoid(gates, units);
	mu_cpu_tanh(gates + units, gates + units, units);
	mu_cpu_sigmoid(gates + 2 * units, 2 * units);
	update_cells(gates, product ? cells - units : NULL, cells, units);
	mu_cpu_tanh(cells, y, units);
	multiply(y, gates + 3 * units, units);
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	struct cpu_op *impl = op->impl;
	float *hidden = mu_cpu_pointer(op, l->hidden), *product = mu_cpu_pointer(op, l->product);

	for (size_t t = 0; t < l->steps; t++) {
		for (size_t s = 0; t > 0 && s < l->n; s++)
			memcpy(hidden + s * l->units,
			       op->outputs[0]->data + (s * l->steps + t - 1) * l->units,
			       l->units * sizeof *hidden);
		if (t > 0)
			MU_TRY(mu_cpu_run(l->cpu, op, &impl->inner[FORWARD]));
		for (size_t s = 0; s < l->n; s++)
			forward_row(op, s * l->steps + t,
				    t > 0 ? product + s * GATES * l->units : NULL);
	}
out:
	return st;
}

/* One sample and step of backward. */
struct row {
	float *gates;        /* their values become their gradients */
	const float *before; /* cells of the step before, NULL: 0 */
	const float *value;  /* tanh of the cells */
	const float *dy;
	const float *dh; /* from the step behind, NULL: 0 */
	float *dc;
	size_t units;
};

MU_LOOP static void gate_gradients(const struct row *r)
{
	size_t units = r->units;
	float *restrict i = r->gates, *restrict g = i + units, *restrict f = g + units;
	float *restrict o = f + units, *restrict dc = r->dc;
	const float *restrict before = r->before, *restrict value = r->value;
	const float *restrict dy = r->dy, *restrict dh = r->dh;

	for (size_t u = 0; u < units; u++) {
		float h = dy[u] + (dh ? dh[u] : 0), c;
		float in = i[u], change = g[u], forget = f[u], out = o[u], v = value[u];

		c = dc[u] + h * out * (1 - v * v);
		i[u] = c * change * in * (1 - in);
		g[u] = c * in * (1 - change * change);
		f[u] = before ? c * before[u] * forget * (1 - forget) : 0;
		o[u] = h * v * out * (1 - out);
		dc[u] = c * forget;
	}
}

static void backward_row(const struct mu_op *op, size_t s, size_t t)
{
	const struct lstm *l = lstm_of(op);
	size_t units = l->units, row = s * l->steps + t;
	const float *cells = (float *)mu_cpu_pointer(op, l->cells) + row * units;
	const float *hidden_grad = mu_cpu_pointer(op, l->hidden_grad);
	float *value = mu_cpu_pointer(op, l->value);
	float *gate_grad = (float *)mu_cpu_pointer(op, l->gate_grad) + s * GATES * units;
	struct row r = {
		.gates = (float *)mu_cpu_pointer(op, l->gates) + row * GATES * units,
		.before = t > 0 ? cells - units : NULL,
		.value = value,
		.dy = op->outputs[0]->grad + row * units,
		.dh = t + 1 < l->steps ? hidden_grad + s * units : NULL,
		.dc = (float *)mu_cpu_pointer(op, l->cell_grad) + s * units,
		.units = units,
	};

	mu_cpu_tanh(cells, value, units);
	gate_gradients(&r);
	memcpy(gate_grad, r.gates, GATES * units * sizeof *gate_grad);
}

static enum mu_status backward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	struct cpu_op *impl = op->impl;

	memset(mu_cpu_pointer(op, l->cell_grad), 0, l->n * l->units * sizeof(float));
	for (size_t t = l->steps; t-- > 0;) {
		for (size_t s = 0; s < l->n; s++)
			backward_row(op, s, t);
		if (t > 0)
			MU_TRY(mu_cpu_run(l->cpu, op, &impl->inner[BACKWARD]));
	}
out:
	return st;
}

/* Both biases have one gradient. h of the step before, of all rows. */
static void prepare_weights(struct mu_op *op)
{
	const struct lstm *l = lstm_of(op);
	float *before = mu_cpu_pointer(op, l->before);
	size_t units = l->units;

	memcpy(op->params[H2H_BIAS].grad, op->params[I2H_BIAS].grad,
	       GATES * units * sizeof(float));
	for (size_t s = 0; s < l->n; s++) {
		float *first = before + s * l->steps * units;

		memset(first, 0, units * sizeof *first);
		memcpy(first + units, op->outputs[0]->data + s * l->steps * units,
		       (l->steps - 1) * units * sizeof *first);
	}
}

/* ---- plan ---- */

static void rows_md(dnnl_memory_desc_t *md, size_t rows, size_t columns)
{
	mu_cpu_plain(md, &(struct mu_shape){2, {rows, columns}});
}

/* A product of rows with a weight: y (rows, 4 units) = x (rows, k) times the weight (4 units, k).
 */
struct product {
	dnnl_memory_desc_t x, weight, bias, y;
	dnnl_dims_t dims; /* of the weight */
	int which;        /* parameter */
	bool has_bias;
	dnnl_primitive_desc_t hint; /* its forward */
};

static void describe_product(struct product *m, const struct mu_op *op, int which, size_t rows)
{
	const struct mu_shape *weight = &op->params[which].shape;

	*m = (struct product){.which = which, .has_bias = which == I2H_WEIGHT};
	m->dims[0] = (dnnl_dim_t)weight->dims[0];
	m->dims[1] = (dnnl_dim_t)weight->dims[1];
	rows_md(&m->x, rows, weight->dims[1]);
	rows_md(&m->y, rows, weight->dims[0]);
	mu_cpu_plain(&m->bias, &op->params[I2H_BIAS].shape);
	dnnl_memory_desc_init_by_tag(&m->weight, 2, m->dims, dnnl_f32, dnnl_format_tag_any);
}

/* The weight in the layout that pd wants. */
static enum mu_status weight_for(struct cpu_plan *p, const struct product *m,
				 const_dnnl_primitive_desc_t pd, int *out)
{
	dnnl_memory_desc_t have;

	mu_cpu_param_md(&have, &p->op->params[m->which], 2, m->dims);
	return mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_PARAM_DATA, (size_t)m->which),
			 mu_cpu_query(pd, dnnl_query_weights_md), false, out);
}

static enum mu_status describe_forward(struct cpu_plan *p, const struct product *m,
				       dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_inner_product_desc_t desc;

	CPU_DNNL(dnnl_inner_product_forward_desc_init(
		&desc,
		p->op->phase == MU_PHASE_TRAIN ? dnnl_forward_training : dnnl_forward_inference,
		&m->x, &m->weight, m->has_bias ? &m->bias : NULL, &m->y));
	MU_TRY(mu_cpu_describe(p, &desc, NULL, NULL, pd));
out:
	return st;
}

static enum mu_status describe_data(struct cpu_plan *p, const struct product *m,
				    dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_inner_product_desc_t desc;

	CPU_DNNL(dnnl_inner_product_backward_data_desc_init(&desc, &m->x, &m->weight, &m->y));
	MU_TRY(mu_cpu_describe(p, &desc, NULL, m->hint, pd));
out:
	return st;
}

/* Channels last, as rows; in a copy of the step's own where the input lies otherwise. */
static enum mu_status input_rows(struct cpu_plan *p, const dnnl_memory_desc_t *rows, int *out)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = p->op->inputs[0];
	dnnl_memory_desc_t have, last;
	const struct cpu_memory *m;
	int memory;

	mu_cpu_tensor_md(&have, in);
	mu_cpu_tag(&last, &in->shape, dnnl_acdb);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &last, false, &memory));
	m = &p->impl->memories[memory];
	*out = mu_cpu_memory(p, rows, m->place, m->index);
out:
	return st;
}

static enum mu_status plan_forward(struct cpu_plan *p, struct lstm *l, struct product *from_input,
				   struct product *from_before)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {
		{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DST, 0}, {DNNL_ARG_BIAS, 0}};
	int weight;

	MU_TRY(describe_forward(p, from_before, &from_before->hint));
	MU_TRY(mu_cpu_set_param(&op->params[H2H_WEIGHT],
				mu_cpu_query(from_before->hint, dnnl_query_weights_md)));
	MU_TRY(describe_forward(p, from_input, &from_input->hint));
	MU_TRY(mu_cpu_set_param(&op->params[I2H_WEIGHT],
				mu_cpu_query(from_input->hint, dnnl_query_weights_md)));
	l->bias = mu_cpu_temporary(p, &from_input->bias);
	l->hidden = mu_cpu_temporary(p, &from_before->x);
	l->product = mu_cpu_temporary(p, &from_before->y);
	mu_cpu_call(p, add_biases);
	MU_TRY(weight_for(p, from_before, from_before->hint, &weight));
	MU_TRY(weight_for(p, from_input, from_input->hint, &args[1].memory));
	MU_TRY(input_rows(p, &from_input->x, &args[0].memory));
	args[2].memory = l->gates;
	args[3].memory = l->bias;
	CPU_DNNL(dnnl_primitive_desc_clone(&pd, from_input->hint));
	MU_TRY(mu_cpu_step(p, pd, 4, args));
	mu_cpu_try_call(p, forward);
	p->impl->inner[FORWARD].scratch_nbytes = p->program->scratch_nbytes;
	p->program = &p->impl->inner[FORWARD];
	args[0].memory = l->hidden;
	args[1].memory = weight;
	args[2].memory = l->product;
	CPU_DNNL(dnnl_primitive_desc_clone(&pd, from_before->hint));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
out:
	return st;
}

/* The gradient of a weight, and of its bias. rows: x. */
static enum mu_status plan_weights(struct cpu_plan *p, const struct lstm *l,
				   const struct product *m, int rows)
{
	enum mu_status st = MU_OK;
	dnnl_inner_product_desc_t desc;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_memory_desc_t have;
	struct cpu_arg args[4] = {{DNNL_ARG_SRC, rows}, {DNNL_ARG_DIFF_DST, l->gates}};
	int n = 2;

	CPU_DNNL(dnnl_inner_product_backward_weights_desc_init(
		&desc, &m->x, &m->weight, m->has_bias ? &m->bias : NULL, &m->y));
	MU_TRY(mu_cpu_describe(p, &desc, NULL, m->hint, &pd));
	if (m->has_bias)
		args[n++] = (struct cpu_arg){
			DNNL_ARG_DIFF_BIAS, mu_cpu_memory(p, &m->bias, CPU_PARAM_GRAD, I2H_BIAS)};
	args[n++].arg = DNNL_ARG_DIFF_WEIGHTS;
	mu_cpu_param_md(&have, &p->op->params[m->which], 2, m->dims);
	MU_TRY(mu_cpu_step_to(p, pd, n, args, mu_cpu_query(pd, dnnl_query_diff_weights_md),
			      mu_cpu_memory(p, &have, CPU_PARAM_GRAD, (size_t)m->which)));
out:
	return st;
}

/* The gradient of the input. */
static enum mu_status plan_data(struct cpu_plan *p, const struct lstm *l, const struct product *m)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = p->op->inputs[0];
	dnnl_memory_desc_t have, last;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {
		{DNNL_ARG_DIFF_DST, l->gates}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_SRC, 0}};
	int to, grad;

	mu_cpu_tensor_md(&have, in);
	mu_cpu_tag(&last, &in->shape, dnnl_acdb);
	grad = to = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	if (!dnnl_memory_desc_equal(&have, &last))
		grad = mu_cpu_temporary(p, &last);
	args[2].memory = mu_cpu_memory(p, &m->x, p->impl->memories[grad].place,
				       p->impl->memories[grad].index);
	MU_TRY(describe_data(p, m, &pd));
	MU_TRY(weight_for(p, m, pd, &args[1].memory));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
	if (grad != to)
		MU_TRY(mu_cpu_reorder(p, grad, to));
out:
	return st;
}

/* A step's part: of h of the step before. The weight is made ready before the steps, in plain
 * order: of the few rows of a step oneDNN's sgemm makes 1.4 times as much of the processor as the
 * product that it prefers. */
static enum mu_status plan_inner(struct cpu_plan *p, const struct lstm *l, struct product step,
				 struct cpu_program *outer)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {{DNNL_ARG_DIFF_DST, l->gate_grad},
				  {DNNL_ARG_WEIGHTS, 0},
				  {DNNL_ARG_DIFF_SRC, l->hidden_grad}};

	dnnl_memory_desc_init_by_tag(&step.weight, 2, step.dims, dnnl_f32, dnnl_ab);
	MU_TRY(describe_data(p, &step, &pd));
	MU_TRY(weight_for(p, &step, pd, &args[1].memory));
	p->program = &p->impl->inner[BACKWARD];
	p->program->scratch_nbytes = outer->scratch_nbytes;
	st = mu_cpu_step(p, pd, 3, args);
	p->program = outer;
	MU_TRY(st);
out:
	return st;
}

static enum mu_status plan_backward(struct cpu_plan *p, struct lstm *l,
				    const struct product *from_input,
				    const struct product *from_before)
{
	enum mu_status st = MU_OK;
	struct product all;
	dnnl_memory_desc_t value;
	int rows;

	p->program = &p->impl->backward;
	mu_cpu_plain(&value, &(struct mu_shape){1, {l->units}});
	l->value = mu_cpu_temporary(p, &value);
	l->cell_grad = mu_cpu_temporary(p, &from_before->x);
	l->hidden_grad = mu_cpu_temporary(p, &from_before->x);
	l->gate_grad = mu_cpu_temporary(p, &from_before->y);
	MU_TRY(plan_inner(p, l, *from_before, p->program));
	mu_cpu_try_call(p, backward);
	if (p->op->inputs[0]->needs_grad)
		MU_TRY(plan_data(p, l, from_input));
	MU_TRY(input_rows(p, &from_input->x, &rows));
	MU_TRY(plan_weights(p, l, from_input, rows));
	mu_cpu_call(p, prepare_weights);
	describe_product(&all, p->op, H2H_WEIGHT, l->n * l->steps);
	all.hint = NULL;
	l->before = mu_cpu_temporary(p, &all.x);
	MU_TRY(describe_forward(p, &all, &all.hint));
	st = plan_weights(p, l, &all, l->before);
	dnnl_primitive_desc_destroy(all.hint);
	MU_TRY(st);
out:
	return st;
}

enum mu_status mu_cpu_plan_lstm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct lstm *l = calloc(1, sizeof *l);
	struct product from_input = {.hint = NULL}, from_before = {.hint = NULL};
	dnnl_memory_desc_t md;

	p->impl->own = l;
	if (!l)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	*l = (struct lstm){.cpu = p->cpu,
			   .n = in->dims[0],
			   .c = in->dims[1],
			   .units = op->outputs[0]->shape.dims[1],
			   .steps = in->dims[2]};
	mu_cpu_tag(&md, &op->outputs[0]->shape, dnnl_acdb);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	mu_cpu_plain(&md, &op->params[I2H_BIAS].shape);
	MU_TRY(mu_cpu_set_param(&op->params[I2H_BIAS], &md));
	MU_TRY(mu_cpu_set_param(&op->params[H2H_BIAS], &md));
	describe_product(&from_input, op, I2H_WEIGHT, l->n * l->steps);
	describe_product(&from_before, op, H2H_WEIGHT, l->n);
	rows_md(&md, l->n * l->steps, l->units);
	l->gates = mu_cpu_keep(p, &from_input.y);
	l->cells = mu_cpu_keep(p, &md);
	MU_TRY(plan_forward(p, l, &from_input, &from_before));
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(plan_backward(p, l, &from_input, &from_before));
out:
	dnnl_primitive_desc_destroy(from_input.hint);
	dnnl_primitive_desc_destroy(from_before.hint);
	return st;
}
