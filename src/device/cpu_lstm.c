/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM on oneDNN's inner products; formulas: ref_lstm.c. Channels lie last, so the batch is rows of
 * units, row sample * steps + step. What comes from the input is one product over all rows, before
 * the steps in forward and behind them in backward; what comes from the step before is a product
 * of a row per sample in every step (the inner programs). The gates' values are kept in the rows
 * that they were computed in, and give way to their gradients in backward.
 *
 * Weights lie as columns, (k, 4 units): so oneDNN's sgemm is as fast as the blocked layouts that
 * its inner products prefer, and can add the gradients of a block of steps to those of others.
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
	struct cpu_rows_grad from_input, from_before;
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

/* The state in front of the first step, of sample s: h, or c. NULL: 0. */
static const float *hidden_before(const struct mu_op *op, size_t s)
{
	return op->state && op->state->before ? op->state->before + s * lstm_of(op)->units : NULL;
}

static const float *cells_before(const struct mu_op *op, size_t s)
{
	const struct lstm *l = lstm_of(op);
	const float *h = hidden_before(op, s);

	return h ? h + l->n * l->units : NULL;
}

/* Row `row` of the batch, from the cells of the step before and the product of its h; both NULL: 0.
 */
static void forward_row(const struct mu_op *op, size_t row, const float *before,
			const float *product)
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
	update_cells(gates, before, cells, units);
	mu_cpu_tanh(cells, y, units);
	multiply(y, gates + 3 * units, units);
}

/* Step t of all samples, h and c of the step before being there. */
static void forward_rows(const struct mu_op *op, size_t t, bool has_before)
{
	const struct lstm *l = lstm_of(op);
	const float *cells = mu_cpu_pointer(op, l->cells);
	const float *product = mu_cpu_pointer(op, l->product);

	for (size_t s = 0; s < l->n; s++) {
		const size_t row = s * l->steps + t;

		forward_row(op, row,
			    t > 0 ? cells + (row - 1) * l->units : cells_before(op, s),
			    has_before ? product + s * GATES * l->units : NULL);
	}
}

/* h and c of the last step. */
static void leave_state(const struct mu_op *op)
{
	const struct lstm *l = lstm_of(op);
	const float *cells = mu_cpu_pointer(op, l->cells);
	float *h = op->state->after, *c = h + l->n * l->units;

	for (size_t s = 0; s < l->n; s++) {
		const size_t at = ((s + 1) * l->steps - 1) * l->units;

		memcpy(h + s * l->units, op->outputs[0]->data + at, l->units * sizeof *h);
		memcpy(c + s * l->units, cells + at, l->units * sizeof *c);
	}
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	struct cpu_op *impl = op->impl;
	float *hidden = mu_cpu_pointer(op, l->hidden);

	for (size_t t = 0; t < l->steps; t++) {
		const bool has_before = t > 0 || hidden_before(op, 0);

		for (size_t s = 0; has_before && s < l->n; s++)
			memcpy(hidden + s * l->units,
			       t > 0 ? op->outputs[0]->data + (s * l->steps + t - 1) * l->units
				     : hidden_before(op, s),
			       l->units * sizeof *hidden);
		if (has_before)
			MU_TRY(mu_cpu_run(l->cpu, op, &impl->inner[FORWARD]));
		forward_rows(op, t, has_before);
	}
	if (op->state && op->state->after)
		leave_state(op);
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

static void backward_row(const struct mu_op *op, size_t s, size_t t, bool has_behind)
{
	const struct lstm *l = lstm_of(op);
	size_t units = l->units, row = s * l->steps + t;
	const float *cells = (float *)mu_cpu_pointer(op, l->cells) + row * units;
	const float *hidden_grad = mu_cpu_pointer(op, l->hidden_grad);
	float *value = mu_cpu_pointer(op, l->value);
	float *gate_grad = (float *)mu_cpu_pointer(op, l->gate_grad) + s * GATES * units;
	struct row r = {
		.gates = (float *)mu_cpu_pointer(op, l->gates) + row * GATES * units,
		.before = t > 0 ? cells - units : cells_before(op, s),
		.value = value,
		.dy = op->outputs[0]->grad + row * units,
		.dh = has_behind ? hidden_grad + s * units : NULL,
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
	const struct mu_state none = {.before = NULL}, *state = op->state ? op->state : &none;
	const size_t n = l->n * l->units;
	float *dh = mu_cpu_pointer(op, l->hidden_grad), *dc = mu_cpu_pointer(op, l->cell_grad);

	memset(dc, 0, n * sizeof *dc);
	if (state->after_grad) {
		memcpy(dh, state->after_grad, n * sizeof *dh);
		memcpy(dc, state->after_grad + n, n * sizeof *dc);
	}
	for (size_t t = l->steps; t-- > 0;) {
		for (size_t s = 0; s < l->n; s++)
			backward_row(op, s, t, t + 1 < l->steps || state->after_grad);
		if (t > 0 || state->before_grad)
			MU_TRY(mu_cpu_run(l->cpu, op, &impl->inner[BACKWARD]));
	}
	if (state->before_grad) {
		memcpy(state->before_grad, dh, n * sizeof *dh);
		memcpy(state->before_grad + n, dc, n * sizeof *dc);
	}
out:
	return st;
}

/* h of the step before, of all rows. */
static void gather_before(const struct mu_op *op)
{
	const struct lstm *l = lstm_of(op);
	float *before = mu_cpu_pointer(op, l->before);
	size_t units = l->units;

	for (size_t s = 0; s < l->n; s++) {
		float *first = before + s * l->steps * units;
		const float *h = hidden_before(op, s);

		if (h)
			memcpy(first, h, units * sizeof *first);
		else
			memset(first, 0, units * sizeof *first);
		memcpy(first + units, op->outputs[0]->data + s * l->steps * units,
		       (l->steps - 1) * units * sizeof *first);
	}
}

/* Both biases have one gradient. */
static enum mu_status weight_grads(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);

	MU_TRY(mu_cpu_rows_weight_grad(op, &l->from_input));
	memcpy(op->params[H2H_BIAS].grad, op->params[I2H_BIAS].grad,
	       GATES * l->units * sizeof(float));
	gather_before(op);
	MU_TRY(mu_cpu_rows_weight_grad(op, &l->from_before));
out:
	return st;
}

/* ---- plan ---- */

static enum mu_status plan_forward(struct cpu_plan *p, struct lstm *l, struct cpu_rows *from_input,
				   struct cpu_rows *from_before)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {
		{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DST, 0}, {DNNL_ARG_BIAS, 0}};
	int weight;

	MU_TRY(mu_cpu_rows_forward(p, from_before, &from_before->hint));
	MU_TRY(mu_cpu_set_param(&op->params[H2H_WEIGHT],
				mu_cpu_query(from_before->hint, dnnl_query_weights_md)));
	MU_TRY(mu_cpu_rows_forward(p, from_input, &from_input->hint));
	MU_TRY(mu_cpu_set_param(&op->params[I2H_WEIGHT],
				mu_cpu_query(from_input->hint, dnnl_query_weights_md)));
	l->bias = mu_cpu_temporary(p, &from_input->bias);
	l->hidden = mu_cpu_temporary(p, &from_before->x);
	l->product = mu_cpu_temporary(p, &from_before->y);
	mu_cpu_call(p, add_biases);
	MU_TRY(mu_cpu_rows_weight(p, from_before, from_before->hint, &weight));
	MU_TRY(mu_cpu_rows_weight(p, from_input, from_input->hint, &args[1].memory));
	MU_TRY(mu_cpu_rows_input(p, from_input, &args[0].memory));
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

/* A step's part: of h of the step before. The weight is made ready before the steps, in plain
 * order: of the few rows of a step oneDNN's sgemm makes 1.4 times as much of the processor so. */
static enum mu_status plan_inner(struct cpu_plan *p, const struct lstm *l,
				 const struct cpu_rows *from_before, struct cpu_program *outer)
{
	enum mu_status st = MU_OK;
	struct cpu_rows step;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {{DNNL_ARG_DIFF_DST, l->gate_grad},
				  {DNNL_ARG_WEIGHTS, 0},
				  {DNNL_ARG_DIFF_SRC, l->hidden_grad}};

	mu_cpu_rows_describe(&step, p->op, H2H_WEIGHT, l->n, dnnl_ab);
	step.hint = from_before->hint;
	MU_TRY(mu_cpu_rows_data(p, &step, &pd));
	MU_TRY(mu_cpu_rows_weight(p, &step, pd, &args[1].memory));
	p->program = &p->impl->inner[BACKWARD];
	p->program->scratch_nbytes = outer->scratch_nbytes;
	st = mu_cpu_step(p, pd, 3, args);
	p->program = outer;
	MU_TRY(st);
out:
	return st;
}

static enum mu_status plan_backward(struct cpu_plan *p, struct lstm *l,
				    const struct cpu_rows *from_input,
				    const struct cpu_rows *from_before)
{
	enum mu_status st = MU_OK;
	const size_t rows = l->n * l->steps;
	dnnl_memory_desc_t md;

	p->program = &p->impl->backward;
	mu_cpu_plain(&md, &(struct mu_shape){1, {l->units}});
	l->value = mu_cpu_temporary(p, &md);
	l->cell_grad = mu_cpu_temporary(p, &from_before->x);
	l->hidden_grad = mu_cpu_temporary(p, &from_before->x);
	l->gate_grad = mu_cpu_temporary(p, &from_before->y);
	MU_TRY(plan_inner(p, l, from_before, p->program));
	mu_cpu_try_call(p, backward);
	if (p->op->inputs[0]->needs_grad)
		MU_TRY(mu_cpu_rows_input_grad(p, from_input, l->gates));
	mu_cpu_rows_md(&md, rows, l->units);
	l->before = mu_cpu_temporary(p, &md);
	l->from_input = (struct cpu_rows_grad){.which = I2H_WEIGHT,
					       .dy = l->gates,
					       .rows = rows,
					       .columns = true,
					       .has_bias = true};
	MU_TRY(mu_cpu_rows_input(p, from_input, &l->from_input.x));
	l->from_before = (struct cpu_rows_grad){.which = H2H_WEIGHT,
						.x = l->before,
						.dy = l->gates,
						.rows = rows,
						.columns = true};
	mu_cpu_try_call(p, weight_grads);
	p->op->can_add = true;
out:
	return st;
}

enum mu_status mu_cpu_plan_lstm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct lstm *l = calloc(1, sizeof *l);
	struct cpu_rows from_input = {.hint = NULL}, from_before = {.hint = NULL};
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
	mu_cpu_rows_describe(&from_input, op, I2H_WEIGHT, l->n * l->steps, dnnl_ba);
	from_input.has_bias = true;
	mu_cpu_rows_describe(&from_before, op, H2H_WEIGHT, l->n, dnnl_ba);
	mu_cpu_rows_md(&md, l->n * l->steps, l->units);
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
