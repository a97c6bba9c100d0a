/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM, step by step and unit by unit: the formulas of struct mu_lstm. The workspace keeps the
 * values of the four gates and the cells of every step. Backward through time, where dh and dc are
 * the derivatives with respect to h(t) and c(t), later steps included:
 *
 *	dc += dh o (1 - tanh(c)^2)
 *	da0 = dc g i (1 - i)    da1 = dc i (1 - g^2)    da2 = dc c(t-1) f (1 - f)
 *	da3 = dh tanh(c) o (1 - o)
 *	for step t-1: dc = dc f, dh = dy(t-1) + Wh' da
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

enum { IN, CHANGE, FORGET, OUT, GATES };
enum { I2H_WEIGHT, I2H_BIAS, H2H_WEIGHT, H2H_BIAS };
enum { STATE_HIDDEN, STATE_CELLS };

struct size {
	size_t n, c, units, steps;
};

static struct size size_of(const struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	return (struct size){in->dims[0], in->dims[1], op->outputs[0]->shape.dims[1], in->dims[2]};
}

/* Sums in backward: gradients of weights, and values of one sample. */
struct sums {
	double *i2h, *h2h, *bias; /* (4 units, c), (4 units, units), (4 units) */
	double *da, *dh, *dc;     /* (4 units), (units), (units) */
};

static size_t n_sums(const struct size *z)
{
	return GATES * z->units * (z->c + z->units + 2) + 2 * z->units;
}

static struct sums sums_of(const struct mu_op *op, const struct size *z)
{
	struct sums s = {.i2h = op->scratch};

	s.h2h = s.i2h + GATES * z->units * z->c;
	s.bias = s.h2h + GATES * z->units * z->units;
	s.da = s.bias + GATES * z->units;
	s.dh = s.da + GATES * z->units;
	s.dc = s.dh + z->units;
	return s;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t units = (size_t)((const struct mu_lstm *)op->attr)->units, gates = GATES * units;
	struct mu_shape want = op->inputs[0]->shape, bias = {1, {gates}};
	struct size z;

	if (units < 1)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (lstm): no units", op->name);
	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, steps, 1)"));
	want.dims[3] = 1;
	MU_TRY(mu_ref_need_shape(op, "input", &op->inputs[0]->shape, &want));
	want.dims[1] = units;
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &want));
	z = size_of(op);
	MU_TRY(mu_ref_need_shape(op, "i2h_weight", &op->params[I2H_WEIGHT].shape,
				 &(struct mu_shape){2, {gates, z.c}}));
	MU_TRY(mu_ref_need_shape(op, "i2h_bias", &op->params[I2H_BIAS].shape, &bias));
	MU_TRY(mu_ref_need_shape(op, "h2h_weight", &op->params[H2H_WEIGHT].shape,
				 &(struct mu_shape){2, {gates, units}}));
	MU_TRY(mu_ref_need_shape(op, "h2h_bias", &op->params[H2H_BIAS].shape, &bias));
	op->workspace_nbytes = z.n * z.steps * (GATES + 1) * units * sizeof(float);
	op->scratch_nbytes = n_sums(&z) * sizeof(double);
out:
	return st;
}

/*
 * Addresses for step t of sample s: its gates, its cells, unit u of an array (n, units, steps, 1).
 */
static float *gates_at(const struct mu_op *op, const struct size *z, size_t s, size_t t)
{
	return (float *)op->workspace + (s * z->steps + t) * GATES * z->units;
}

static float *cells_at(const struct mu_op *op, const struct size *z, size_t s, size_t t)
{
	return (float *)op->workspace + z->n * z->steps * GATES * z->units +
	       (s * z->steps + t) * z->units;
}

/* h or c of sample s in a state (2, n, units); NULL: 0. */
static const float *in_state(const float *state, const struct size *z, size_t which, size_t s)
{
	return state ? state + (which * z->n + s) * z->units : NULL;
}

static size_t at(const struct size *z, size_t s, size_t u, size_t t)
{
	return (s * z->units + u) * z->steps + t;
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* h and c of unit u before step t. */
static double hidden_before(const struct mu_op *op, const struct size *z, size_t s, size_t u,
			    size_t t)
{
	const float *h = in_state(op->state ? op->state->before : NULL, z, STATE_HIDDEN, s);

	if (t > 0)
		return (double)op->outputs[0]->data[at(z, s, u, t - 1)];
	return h ? (double)h[u] : 0;
}

static double cell_before(const struct mu_op *op, const struct size *z, size_t s, size_t u,
			  size_t t)
{
	const float *c = in_state(op->state ? op->state->before : NULL, z, STATE_CELLS, s);

	if (t > 0)
		return (double)cells_at(op, z, s, t - 1)[u];
	return c ? (double)c[u] : 0;
}

/* a of gate row r = gate * units + unit. */
static double sum_row(const struct mu_op *op, const struct size *z, size_t r, size_t s, size_t t)
{
	const float *wi = op->params[I2H_WEIGHT].data + r * z->c;
	const float *wh = op->params[H2H_WEIGHT].data + r * z->units;
	double sum = (double)op->params[I2H_BIAS].data[r] + (double)op->params[H2H_BIAS].data[r];

	for (size_t k = 0; k < z->c; k++)
		sum += (double)wi[k] *
		       (double)op->inputs[0]->data[(s * z->c + k) * z->steps + t];
	for (size_t k = 0; k < z->units; k++)
		sum += (double)wh[k] * hidden_before(op, z, s, k, t);
	return sum;
}

static void forward_step(struct mu_op *op, const struct size *z, size_t s, size_t t)
{
	float *gates = gates_at(op, z, s, t), *cells = cells_at(op, z, s, t);
	size_t units = z->units;

	for (size_t r = 0; r < GATES * units; r++) {
		double sum = sum_row(op, z, r, s, t);

		gates[r] = (float)(r / units == CHANGE ? tanh(sum) : sigmoid(sum));
	}
	for (size_t u = 0; u < units; u++) {
		cells[u] = (float)((double)gates[FORGET * units + u] *
					   cell_before(op, z, s, u, t) +
				   (double)gates[IN * units + u] *
					   (double)gates[CHANGE * units + u]);
		op->outputs[0]->data[at(z, s, u, t)] =
			(float)((double)gates[OUT * units + u] * tanh((double)cells[u]));
	}
}

static void leave_state(const struct mu_op *op, const struct size *z, size_t s)
{
	float *h = op->state->after + s * z->units, *c = h + z->n * z->units;

	for (size_t u = 0; u < z->units; u++) {
		h[u] = op->outputs[0]->data[at(z, s, u, z->steps - 1)];
		c[u] = cells_at(op, z, s, z->steps - 1)[u];
	}
}

static enum mu_status forward(struct mu_op *op)
{
	struct size z = size_of(op);

	for (size_t s = 0; s < z.n; s++) {
		for (size_t t = 0; t < z.steps; t++)
			forward_step(op, &z, s, t);
		if (op->state && op->state->after)
			leave_state(op, &z, s);
	}
	return MU_OK;
}

/* From dh and dc compute da, and dc of the step before. */
static void gate_gradients(const struct mu_op *op, const struct size *z, const struct sums *m,
			   size_t s, size_t t)
{
	const float *gates = gates_at(op, z, s, t), *cells = cells_at(op, z, s, t);
	size_t units = z->units;

	for (size_t u = 0; u < units; u++) {
		double i = (double)gates[IN * units + u], g = (double)gates[CHANGE * units + u];
		double f = (double)gates[FORGET * units + u], o = (double)gates[OUT * units + u];
		double before = cell_before(op, z, s, u, t);
		double value = tanh((double)cells[u]), dc;

		dc = m->dc[u] + m->dh[u] * o * (1 - value * value);
		m->da[IN * units + u] = dc * g * i * (1 - i);
		m->da[CHANGE * units + u] = dc * i * (1 - g * g);
		m->da[FORGET * units + u] = dc * before * f * (1 - f);
		m->da[OUT * units + u] = m->dh[u] * value * o * (1 - o);
		m->dc[u] = dc * f;
	}
}

/* Add da times the inputs of the step to the sums of the weights. */
static void add_weights(const struct mu_op *op, const struct size *z, const struct sums *m,
			size_t s, size_t t)
{
	for (size_t r = 0; r < GATES * z->units; r++) {
		double da = m->da[r];

		for (size_t k = 0; k < z->c; k++)
			m->i2h[r * z->c + k] +=
				da * (double)op->inputs[0]->data[(s * z->c + k) * z->steps + t];
		for (size_t k = 0; k < z->units; k++)
			m->h2h[r * z->units + k] += da * hidden_before(op, z, s, k, t);
		m->bias[r] += da;
	}
}

/* Element k of a weight's transpose times da. */
static double through(const struct mu_param *weight, const struct sums *m, size_t k)
{
	size_t rows = weight->shape.dims[0], columns = weight->shape.dims[1];
	double sum = 0;

	for (size_t r = 0; r < rows; r++)
		sum += m->da[r] * (double)weight->data[r * columns + k];
	return sum;
}

static void backward_step(struct mu_op *op, const struct size *z, const struct sums *m, size_t s,
			  size_t t)
{
	struct mu_tensor *in = op->inputs[0];

	for (size_t u = 0; u < z->units; u++)
		m->dh[u] += (double)op->outputs[0]->grad[at(z, s, u, t)];
	gate_gradients(op, z, m, s, t);
	add_weights(op, z, m, s, t);
	for (size_t k = 0; in->needs_grad && k < z->c; k++)
		in->grad[(s * z->c + k) * z->steps + t] =
			(float)through(&op->params[I2H_WEIGHT], m, k);
	for (size_t u = 0; u < z->units; u++)
		m->dh[u] = through(&op->params[H2H_WEIGHT], m, u);
}

static void round_to(float *out, const double *sums, size_t n)
{
	for (size_t k = 0; k < n; k++)
		out[k] = (float)sums[k];
}

/* dh and dc after the last step of sample s. */
static void begin_sample(const struct mu_op *op, const struct size *z, const struct sums *m,
			 size_t s)
{
	const float *state = op->state ? op->state->after_grad : NULL;
	const float *dh = in_state(state, z, STATE_HIDDEN, s);
	const float *dc = in_state(state, z, STATE_CELLS, s);

	for (size_t u = 0; u < z->units; u++) {
		m->dh[u] = dh ? (double)dh[u] : 0;
		m->dc[u] = dc ? (double)dc[u] : 0;
	}
}

static void end_sample(const struct mu_op *op, const struct size *z, const struct sums *m, size_t s)
{
	float *dh = op->state->before_grad + s * z->units;

	round_to(dh, m->dh, z->units);
	round_to(dh + z->n * z->units, m->dc, z->units);
}

static void backward(struct mu_op *op)
{
	struct size z = size_of(op);
	struct sums m = sums_of(op, &z);

	for (size_t k = 0; k < n_sums(&z); k++)
		m.i2h[k] = 0;
	for (size_t s = 0; s < z.n; s++) {
		begin_sample(op, &z, &m, s);
		for (size_t t = z.steps; t-- > 0;)
			backward_step(op, &z, &m, s, t);
		if (op->state && op->state->before_grad)
			end_sample(op, &z, &m, s);
	}
	round_to(op->params[I2H_WEIGHT].grad, m.i2h, GATES * z.units * z.c);
	round_to(op->params[I2H_BIAS].grad, m.bias, GATES * z.units);
	round_to(op->params[H2H_WEIGHT].grad, m.h2h, GATES * z.units * z.units);
	round_to(op->params[H2H_BIAS].grad, m.bias, GATES * z.units);
}

const struct mu_ref_kind mu_ref_lstm = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 4,
	.max_params = 4,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
