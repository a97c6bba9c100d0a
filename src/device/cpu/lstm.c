/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM on oneDNN's products; formulas: ref/lstm.c. Channels lie last, so the batch is rows of
 * units, row sample * steps + step. What comes from the input is one product over all rows, before
 * the steps in forward and behind them in backward; what comes from the step before is a product
 * of a row per sample in every step, in place: those rows lie `steps` rows apart. The gates' values
 * are kept in the rows that they were computed in, and give way to their gradients in backward.
 *
 * Weights lie as columns, (k, 4 units): so oneDNN's sgemm is as fast as the blocked layouts that
 * its inner products prefer, can add to what is there, and reads rows that lie apart. Only what
 * backward multiplies with in each step is transposed first, once for all blocks of a step: of
 * the few rows of a step sgemm makes 1.6 times as much of the processor so.
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

/* Numbers of memories. */
struct lstm {
	struct cpu *cpu;
	size_t n, c, units, steps;
	int gates, cells; /* kept: (n steps, 4 units), (n steps, units) */
	int bias;         /* forward: the sum of both, (4 units) */
	/* Backward: the weight of h of the step before as (4 units, units), in a block not here but
	 * in its state's; tanh of a sample's cells, (units); gradients of a step's cells and of h
	 * of the step before, (n, units). Then h of the step before, of all rows. */
	int turned, value, cell_grad, hidden_grad, before;
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

/* Row `row` of the batch, from the cells of the step before; NULL: 0. */
static void forward_row(const struct mu_op *op, size_t row, const float *before)
{
	const struct lstm *l = lstm_of(op);
	size_t units = l->units;
	float *gates = (float *)mu_cpu_pointer(op, l->gates) + row * GATES * units;
	float *cells = (float *)mu_cpu_pointer(op, l->cells) + row * units;
	float *y = op->outputs[0]->data + row * units;

	mu_cpu_sigmoid(gates, units);
	mu_cpu_tanh(gates + units, gates + units, units);
	mu_cpu_sigmoid(gates + 2 * units, 2 * units);
	update_cells(gates, before, cells, units);
	mu_cpu_tanh(cells, y, units);
	mu_cpu_multiply(y, gates + 3 * units, units);
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

/* The gates of step t of all samples += the product of h of the step before and its weight. */
static enum mu_status add_product(const struct mu_op *op, size_t t)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	const dnnl_dim_t n = (dnnl_dim_t)l->n, units = (dnnl_dim_t)l->units;
	const dnnl_dim_t apart = (dnnl_dim_t)l->steps;
	const float *h = t > 0 ? op->outputs[0]->data + (t - 1) * l->units : hidden_before(op, 0);
	float *gates = (float *)mu_cpu_pointer(op, l->gates) + t * GATES * l->units;

	if (h)
		CPU_DNNL(dnnl_sgemm('N', 'N', n, GATES * units, units, 1, h,
				    t > 0 ? apart * units : units, op->params[H2H_WEIGHT].data,
				    GATES * units, 1, gates, apart * GATES * units));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	const float *cells = mu_cpu_pointer(op, l->cells);

	for (size_t t = 0; t < l->steps; t++) {
		MU_TRY(add_product(op, t));
		for (size_t s = 0; s < l->n; s++) {
			const size_t row = s * l->steps + t;

			forward_row(op, row,
				    t > 0 ? cells + (row - 1) * l->units : cells_before(op, s));
		}
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
}

/* The gradient of h of the step before t, of all samples. */
static enum mu_status product_grad(const struct mu_op *op, size_t t, const float *turned)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	const dnnl_dim_t n = (dnnl_dim_t)l->n, units = (dnnl_dim_t)l->units;
	const float *gates = (float *)mu_cpu_pointer(op, l->gates) + t * GATES * l->units;

	CPU_DNNL(dnnl_sgemm('N', 'N', n, units, GATES * units, 1, gates,
			    (dnnl_dim_t)l->steps * GATES * units, turned, units, 0,
			    mu_cpu_pointer(op, l->hidden_grad), units));
out:
	return st;
}

/* The weight of h of the step before, transposed. */
static enum mu_status turn(struct mu_op *op, const float **turned)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	struct cpu_op *impl = op->impl;
	const bool shares = op->state && op->state->shared;
	float *to = shares ? op->state->shared : mu_cpu_pointer(op, l->turned);

	*turned = to;
	if (shares && op->state->has_shared)
		goto out;
	CPU_DNNL(dnnl_memory_set_data_handle(impl->memories[l->turned].memory, to));
	MU_TRY(mu_cpu_run(l->cpu, op, &impl->inner));
out:
	return st;
}

static enum mu_status backward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = lstm_of(op);
	const struct mu_state none = {.before = NULL}, *state = op->state ? op->state : &none;
	const size_t n = l->n * l->units;
	float *dh = mu_cpu_pointer(op, l->hidden_grad), *dc = mu_cpu_pointer(op, l->cell_grad);
	const float *turned;

	MU_TRY(turn(op, &turned));
	memset(dc, 0, n * sizeof *dc);
	if (state->after_grad) {
		memcpy(dh, state->after_grad, n * sizeof *dh);
		memcpy(dc, state->after_grad + n, n * sizeof *dc);
	}
	for (size_t t = l->steps; t-- > 0;) {
		for (size_t s = 0; s < l->n; s++)
			backward_row(op, s, t, t + 1 < l->steps || state->after_grad);
		if (t > 0 || state->before_grad)
			MU_TRY(product_grad(op, t, turned));
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

static enum mu_status plan_forward(struct cpu_plan *p, struct lstm *l, struct cpu_rows *from_input)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[4] = {
		{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DST, 0}, {DNNL_ARG_BIAS, 0}};

	MU_TRY(mu_cpu_rows_forward(p, from_input, &from_input->hint));
	l->bias = mu_cpu_temporary(p, &from_input->bias);
	mu_cpu_call(p, add_biases);
	MU_TRY(mu_cpu_rows_weight(p, from_input, from_input->hint, &args[1].memory));
	MU_TRY(mu_cpu_rows_input(p, from_input, &args[0].memory));
	args[2].memory = l->gates;
	args[3].memory = l->bias;
	CPU_DNNL(dnnl_primitive_desc_clone(&pd, from_input->hint));
	MU_TRY(mu_cpu_step(p, pd, 4, args));
	mu_cpu_try_call(p, forward);
out:
	return st;
}

/* The weight of h of the step before, as rows: outside blocks in scratch. */
static enum mu_status plan_turn(struct cpu_plan *p, struct lstm *l)
{
	enum mu_status st = MU_OK;
	struct cpu_program *outer = p->program;
	struct cpu_rows columns, rows;

	mu_cpu_rows_describe(&columns, p->op, H2H_WEIGHT, l->n, dnnl_ba);
	mu_cpu_rows_describe(&rows, p->op, H2H_WEIGHT, l->n, dnnl_ab);
	p->op->shared_nbytes = mu_dnnl_nbytes(&rows.weight);
	l->turned = mu_cpu_temporary(p, &rows.weight);
	p->program = &p->impl->inner;
	st = mu_cpu_reorder(p, mu_cpu_memory(p, &columns.weight, CPU_PARAM_DATA, H2H_WEIGHT),
			    l->turned);
	p->program = outer;
	return st;
}

static enum mu_status plan_backward(struct cpu_plan *p, struct lstm *l,
				    const struct cpu_rows *from_input)
{
	enum mu_status st = MU_OK;
	const size_t rows = l->n * l->steps;
	struct cpu_md md;

	p->program = &p->impl->backward;
	MU_TRY(plan_turn(p, l));
	mu_cpu_plain(&md, &(struct mu_shape){1, {l->units}});
	l->value = mu_cpu_temporary(p, &md);
	mu_cpu_rows_md(&md, l->n, l->units);
	l->cell_grad = mu_cpu_temporary(p, &md);
	l->hidden_grad = mu_cpu_temporary(p, &md);
	mu_cpu_try_call(p, backward);
	if (p->op->inputs[0]->needs_grad)
		MU_TRY(mu_cpu_rows_input_grad(p, from_input, l->gates));
	p->program = &p->impl->weights;
	mu_cpu_rows_md(&md, rows, l->units);
	l->before = mu_cpu_temporary(p, &md);
	l->from_input = (struct cpu_rows_grad){.which = I2H_WEIGHT,
					       .dy = l->gates,
					       .rows = rows,
					       .columns = true,
					       .has_bias = true};
	MU_TRY(mu_cpu_rows_input(p, from_input, &l->from_input.x));
	l->from_before = (struct cpu_rows_grad){
		.which = H2H_WEIGHT, .x = l->before, .dy = l->gates, .rows = rows, .columns = true};
	mu_cpu_try_call(p, weight_grads);
	p->op->can_add = true;
out:
	return st;
}

static enum mu_status set_layouts(struct mu_op *op, const struct cpu_rows *from_input)
{
	enum mu_status st = MU_OK;
	struct mu_param *params = op->params;
	struct cpu_rows from_before;
	struct cpu_md md;

	mu_cpu_tag(&md, &op->outputs[0]->shape, dnnl_acdb);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	MU_TRY(mu_cpu_set_param(&params[I2H_WEIGHT], &from_input->weight));
	MU_TRY(mu_cpu_set_param(&params[I2H_BIAS], &from_input->bias));
	mu_cpu_rows_describe(&from_before, op, H2H_WEIGHT, 1, dnnl_ba);
	MU_TRY(mu_cpu_set_param(&params[H2H_WEIGHT], &from_before.weight));
	MU_TRY(mu_cpu_set_param(&params[H2H_BIAS], &from_before.bias));
out:
	return st;
}

enum mu_status mu_cpu_plan_lstm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct lstm *l = calloc(1, sizeof *l);
	struct cpu_rows from_input = {.hint = NULL};
	struct cpu_md md;

	p->impl->own = l;
	if (!l)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	*l = (struct lstm){.cpu = p->cpu,
			   .n = in->dims[0],
			   .c = in->dims[1],
			   .units = op->outputs[0]->shape.dims[1],
			   .steps = in->dims[2]};
	mu_cpu_rows_describe(&from_input, op, I2H_WEIGHT, l->n * l->steps, dnnl_ba);
	from_input.has_bias = true;
	MU_TRY(set_layouts(op, &from_input));
	mu_cpu_rows_md(&md, l->n * l->steps, l->units);
	l->gates = mu_cpu_keep(p, &from_input.y);
	l->cells = mu_cpu_keep(p, &md);
	MU_TRY(plan_forward(p, l, &from_input));
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(plan_backward(p, l, &from_input));
out:
	dnnl_primitive_desc_destroy(from_input.hint);
	return st;
}
