/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pretended cuDNN's LSTM: one layer, by the formulas of cuDNN's documentation, in double
 * precision, each call when its stream comes to it. The space of weights has another order than the
 * real one's and gaps, so that who assumes a layout is seen; workspaces hold nothing from call to
 * call; gradients of weights are made of what the data's have left in the reserve. What the real
 * one refuses (of version 9.19: gradients of weights that are set, other sizes) is refused.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "pretend.h"

enum { GATES = 4, IN = 0, FORGET = 1, NEW = 2, OUT = 3 }; /* cuDNN's order */
enum { ROOM = 1100, GAP = 3 };
enum { EMPTY, FORWARD_DONE, DATA_DONE }; /* the first number of a reserve */

struct cudnnRNNStruct {
	cudnnDataType_t type;
	int inputs, units;
	int tf32; /* factors of products are rounded to it */
};
struct cudnnRNNDataStruct {
	cudnnDataType_t type;
	int steps, samples, width;
};

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *out)
{
	*out = calloc(1, sizeof **out);
	return 0;
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t d)
{
	free(d);
	return 0;
}
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *out)
{
	*out = calloc(1, sizeof **out);
	return 0;
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t d)
{
	free(d);
	return 0;
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t d, cudnnRNNAlgo_t algorithm,
				       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
				       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
				       cudnnDataType_t type, cudnnDataType_t precision,
				       cudnnMathType_t math, int32_t inputs, int32_t units,
				       int32_t projected, int32_t layers,
				       cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
	NEED(algorithm == CUDNN_RNN_ALGO_STANDARD && cell == CUDNN_LSTM);
	NEED(bias == CUDNN_RNN_DOUBLE_BIAS && direction == CUDNN_UNIDIRECTIONAL);
	NEED(input == CUDNN_LINEAR_INPUT && precision == CUDNN_DATA_FLOAT && layers == 1);
	if (type == CUDNN_DATA_FLOAT)
		NEED(math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH);
	else
		NEED(math == CUDNN_TENSOR_OP_MATH);
	NEED(inputs > 0 && units > 0 && projected == units && !dropout);
	NEED(flags == CUDNN_RNN_PADDED_IO_DISABLED); /* for packed sequences */
	*d = (struct cudnnRNNStruct){type, inputs, units,
				     type == CUDNN_DATA_FLOAT && math == CUDNN_DEFAULT_MATH};
	return 0;
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
					cudnnRNNDataLayout_t layout, int steps, int samples,
					int width, const int *lengths, void *fill)
{
	(void)fill;
	NEED(layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
	for (int i = 0; i < samples; i++)
		NEED(lengths[i] == steps && steps > 0);
	*d = (struct cudnnRNNDataStruct){type, steps, samples, width};
	return 0;
}

/* ---- the space of weights ---- */

static size_t nbytes_of(cudnnDataType_t type)
{
	return type == CUDNN_DATA_FLOAT ? 4 : 2;
}

static int number_type(cudnnDataType_t type)
{
	return type == CUDNN_DATA_FLOAT  ? CUDA_FLOAT32
	       : type == CUDNN_DATA_HALF ? CUDA_FLOAT16
					 : CUDA_BFLOAT16;
}

/* Biases first, the last gate's in front; what multiplies h; what multiplies the input. */
static size_t bias_at(const struct cudnnRNNStruct *r, int id)
{
	return GAP + (size_t)(2 * GATES - 1 - id) * ((size_t)r->units + GAP);
}

static size_t weight_at(const struct cudnnRNNStruct *r, int id)
{
	const size_t units = (size_t)r->units, h2h = units * units + GAP;
	const size_t i2h = units * (size_t)r->inputs + GAP, first = bias_at(r, -1);

	return id >= GATES ? first + (size_t)(2 * GATES - 1 - id) * h2h
			   : first + GATES * h2h + (size_t)(GATES - 1 - id) * i2h;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t h, cudnnRNNDescriptor_t r, size_t *nbytes)
{
	NEED(h);
	*nbytes = weight_at(r, -1) * nbytes_of(r->type);
	return 0;
}

static void describe(cudnnTensorDescriptor_t d, cudnnDataType_t type, int rows, int columns)
{
	const int dims[] = {1, rows, columns}, strides[] = {rows * columns, columns, 1};

	cudnnSetTensorNdDescriptor(d, type, 3, dims, strides);
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t h, cudnnRNNDescriptor_t r, int32_t layer,
				      size_t nbytes, const void *space, int32_t id,
				      cudnnTensorDescriptor_t weight, void **weight_at_,
				      cudnnTensorDescriptor_t bias, void **bias_at_)
{
	char *begin = (char *)(uintptr_t)space;
	size_t all;

	cudnnGetRNNWeightSpaceSize(h, r, &all);
	NEED(layer == 0 && nbytes == all && id >= 0 && id < 2 * GATES);
	describe(weight, r->type, r->units, id < GATES ? r->inputs : r->units);
	describe(bias, r->type, r->units, 1);
	*weight_at_ = begin + weight_at(r, id) * nbytes_of(r->type);
	*bias_at_ = begin + bias_at(r, id) * nbytes_of(r->type);
	return 0;
}

/* ---- work ---- */

enum { FORWARD, DATA, WEIGHTS };
struct rnn {
	struct cudnnRNNStruct r;
	int what, training, steps, samples;
	const void *x, *dy, *hx, *cx, *dhy, *dcy, *space;
	void *y, *hy, *cy, *dx, *dhx, *dcx, *dspace;
	float *reserve;
};

/* Of the reserve: a word; the gates' values, then their gradients, and the cells of every step. */
static size_t rows_of(const struct rnn *k)
{
	return (size_t)k->steps * (size_t)k->samples;
}
static float *gates_at(const struct rnn *k, int t, int s)
{
	return k->reserve + 1 + ((size_t)t * k->samples + s) * GATES * k->r.units;
}
static float *cells_at(const struct rnn *k, int t, int s)
{
	return k->reserve + 1 + (rows_of(k) * GATES + (size_t)t * k->samples + s) * k->r.units;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t h, cudnnRNNDescriptor_t r,
					cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
					size_t *work, size_t *reserve)
{
	const size_t rows = (size_t)x->steps * (size_t)x->samples;

	NEED(h && x->type == r->type && x->width == r->inputs);
	*work = ROOM;
	*reserve = mode == CUDNN_FWD_MODE_TRAINING
			   ? (1 + rows * (GATES + 1) * (size_t)r->units) * sizeof(float)
			   : 0;
	return 0;
}

static double at(const struct rnn *k, const void *p, size_t i)
{
	return p ? (double)number_at(p, number_type(k->r.type), i) : 0;
}
static void put_at(const struct rnn *k, void *p, size_t i, double v)
{
	if (p)
		set_number(p, number_type(k->r.type), i, (float)v);
}
static double factor(const struct rnn *k, double v)
{
	return k->r.tf32 ? pretend_tf32((float)v) : v;
}
static double weight(const struct rnn *k, int id, int row, int column)
{
	const size_t columns = (size_t)(id < GATES ? k->r.inputs : k->r.units);

	return factor(k, at(k, k->space, weight_at(&k->r, id) + (size_t)row * columns + column));
}

/* h and c in front of step t. */
static double h_before(const struct rnn *k, int t, int s, int u)
{
	if (t == 0)
		return at(k, k->hx, (size_t)s * k->r.units + u);
	return at(k, k->y, ((size_t)(t - 1) * k->samples + s) * k->r.units + u);
}
static double c_before(const struct rnn *k, int t, int s, int u)
{
	return t > 0 ? (double)cells_at(k, t - 1, s)[u] : at(k, k->cx, (size_t)s * k->r.units + u);
}

static double sum_of_gate(const struct rnn *k, int t, int s, int g, int u)
{
	double sum = at(k, k->space, bias_at(&k->r, g) + u) +
		     at(k, k->space, bias_at(&k->r, GATES + g) + u);

	for (int i = 0; i < k->r.inputs; i++)
		sum += weight(k, g, u, i) *
		       factor(k, at(k, k->x, ((size_t)t * k->samples + s) * k->r.inputs + i));
	for (int i = 0; i < k->r.units; i++)
		sum += weight(k, GATES + g, u, i) * factor(k, h_before(k, t, s, i));
	return sum;
}

static void forward_step(const struct rnn *k, int t, int s)
{
	const int units = k->r.units;
	float *v = gates_at(k, t, s), *cells = cells_at(k, t, s);

	for (int g = 0; g < GATES; g++)
		for (int u = 0; u < units; u++) {
			double sum = sum_of_gate(k, t, s, g, u);

			v[g * units + u] = (float)(g == NEW ? tanh(sum) : 1 / (1 + exp(-sum)));
		}
	for (int u = 0; u < units; u++) {
		double c = (double)v[FORGET * units + u] * c_before(k, t, s, u) +
			   (double)v[IN * units + u] * (double)v[NEW * units + u];
		double h = (double)v[OUT * units + u] * tanh(c);

		cells[u] = (float)c;
		put_at(k, k->y, ((size_t)t * k->samples + s) * units + u, h);
		if (t + 1 == k->steps) {
			put_at(k, k->hy, (size_t)s * units + u, h);
			put_at(k, k->cy, (size_t)s * units + u, c);
		}
	}
}

/* dh and dc in front of the step, from those behind it. */
static void data_step(const struct rnn *k, int t, int s, double *dh, double *dc)
{
	const int units = k->r.units;
	const size_t row = (size_t)t * k->samples + s;
	float *v = gates_at(k, t, s);

	for (int u = 0; u < units; u++) {
		double i = (double)v[IN * units + u], f = (double)v[FORGET * units + u];
		double n = (double)v[NEW * units + u], o = (double)v[OUT * units + u];
		double value = tanh((double)cells_at(k, t, s)[u]);

		dh[u] += at(k, k->dy, row * units + u);
		dc[u] += dh[u] * o * (1 - value * value);
		v[IN * units + u] = (float)(dc[u] * n * i * (1 - i));
		v[FORGET * units + u] = (float)(dc[u] * c_before(k, t, s, u) * f * (1 - f));
		v[NEW * units + u] = (float)(dc[u] * i * (1 - n * n));
		v[OUT * units + u] = (float)(dh[u] * value * o * (1 - o));
		dc[u] *= f;
	}
	for (int i = 0; i < k->r.inputs + units; i++) {
		double sum = 0;

		for (int g = 0; g < GATES; g++)
			for (int u = 0; u < units; u++)
				sum += factor(k, (double)v[g * units + u]) *
				       (i < k->r.inputs ? weight(k, g, u, i)
							: weight(k, GATES + g, u, i - k->r.inputs));
		if (i < k->r.inputs)
			put_at(k, k->dx, row * k->r.inputs + i, sum);
		else
			dh[i - k->r.inputs] = sum;
	}
}

static void data_gradients(const struct rnn *k, int s)
{
	const int units = k->r.units;
	double *dh = calloc(2 * (size_t)units, sizeof *dh), *dc = dh + units;

	for (int u = 0; u < units; u++) {
		dh[u] = at(k, k->dhy, (size_t)s * units + u);
		dc[u] = at(k, k->dcy, (size_t)s * units + u);
	}
	for (int t = k->steps; t-- > 0;)
		data_step(k, t, s, dh, dc);
	for (int u = 0; u < units; u++) {
		put_at(k, k->dhx, (size_t)s * units + u, dh[u]);
		put_at(k, k->dcx, (size_t)s * units + u, dc[u]);
	}
	free(dh);
}

static void add_to_space(const struct rnn *k, size_t i, double v)
{
	put_at(k, k->dspace, i, at(k, k->dspace, i) + v);
}

/* Of one row of a gate: both weights and both biases. */
static void weight_gradients(const struct rnn *k, int g, int u)
{
	const int units = k->r.units, inputs = k->r.inputs;

	for (int i = -1; i < inputs + units; i++) {
		double sum = 0;

		for (int t = 0; t < k->steps; t++)
			for (int s = 0; s < k->samples; s++) {
				double da = (double)gates_at(k, t, s)[g * units + u];
				size_t row = (size_t)t * k->samples + s;

				if (i < 0)
					sum += da;
				else
					sum += factor(k, da) *
					       factor(k, i < inputs
								 ? at(k, k->x, row * inputs + i)
								 : h_before(k, t, s, i - inputs));
			}
		if (i < 0) {
			add_to_space(k, bias_at(&k->r, g) + u, sum);
			add_to_space(k, bias_at(&k->r, GATES + g) + u, sum);
		} else if (i < inputs) {
			add_to_space(k, weight_at(&k->r, g) + (size_t)u * inputs + i, sum);
		} else {
			add_to_space(k,
				     weight_at(&k->r, GATES + g) + (size_t)u * units + i - inputs,
				     sum);
		}
	}
}

static int run_rnn(struct pretend_work *w)
{
	struct rnn k;
	float *own = NULL;

	memcpy(&k, w->args, sizeof k);
	if (!k.reserve)
		k.reserve = own =
			calloc(1 + rows_of(&k) * (GATES + 1) * (size_t)k.r.units, sizeof *own);
	NEED(k.what != DATA || k.reserve[0] == FORWARD_DONE);
	NEED(k.what != WEIGHTS || k.reserve[0] == DATA_DONE);
	for (int t = 0; k.what == FORWARD && t < k.steps; t++)
		for (int s = 0; s < k.samples; s++)
			forward_step(&k, t, s);
	for (int s = 0; k.what == DATA && s < k.samples; s++)
		data_gradients(&k, s);
	for (int u = 0; k.what == WEIGHTS && u < GATES * k.r.units; u++)
		weight_gradients(&k, u / k.r.units, u % k.r.units);
	k.reserve[0] = k.what == FORWARD ? FORWARD_DONE : k.what == DATA ? DATA_DONE : EMPTY;
	free(own);
	memset(w->to, 0x7f, w->n);
	return 1;
}

/* Sizes as they were told, and descriptors of one thing. */
static cudnnStatus_t put(cudnnHandle_t h, const struct rnn *k, const struct cudnnRNNDataStruct *x,
			 const struct cudnnRNNDataStruct *y, const struct cudnnTensorStruct *hd,
			 const struct cudnnTensorStruct *cd, const size_t nbytes[3], void *room)
{
	struct pretend_work w = {.run = run_rnn, .to = room, .n = ROOM};
	size_t space, work, reserve;
	cudnnRNNDescriptor_t r = (cudnnRNNDescriptor_t)(uintptr_t)&k->r;

	cudnnGetRNNWeightSpaceSize(h, r, &space);
	cudnnGetRNNTempSpaceSizes(h, r,
				  k->training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
				  (cudnnRNNDataDescriptor_t)(uintptr_t)x, &work, &reserve);
	NEED(nbytes[0] == space && nbytes[1] >= work && nbytes[2] >= reserve && room);
	NEED(y->type == k->r.type && y->width == k->r.units);
	NEED(y->steps == x->steps && y->samples == x->samples);
	NEED(hd->type == k->r.type && cd->type == k->r.type && hd->n_dims == 3 && cd->n_dims == 3);
	NEED(hd->n[0] == 1 && hd->n[1] == x->samples && hd->n[2] == k->r.units);
	NEED(memcmp(hd->n, cd->n, sizeof hd->n) == 0 && hd->strides[1] == k->r.units);
	NEED(!k->training == !k->reserve);
	memcpy(w.args, k, sizeof *k);
	w.cost.name = k->r.tf32 ? "cuDNN, LSTM, TF32" : "cuDNN, LSTM";
	pretend_put(pretend_stream(h), w);
	return 0;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
			      const int32_t *lengths, cudnnRNNDataDescriptor_t xd, const void *x,
			      cudnnRNNDataDescriptor_t yd, void *y, cudnnTensorDescriptor_t hd,
			      const void *hx, void *hy, cudnnTensorDescriptor_t cd, const void *cx,
			      void *cy, size_t n_space, const void *space, size_t n_work,
			      void *work, size_t n_reserve, void *reserve)
{
	NEED(!lengths && x && y && space);
	return put(h,
		   &(struct rnn){*r, FORWARD, mode == CUDNN_FWD_MODE_TRAINING, xd->steps,
				 xd->samples, .x = x, .y = y, .hx = hx, .hy = hy, .cx = cx,
				 .cy = cy, .space = space, .reserve = reserve},
		   xd, yd, hd, cd, (size_t[]){n_space, n_work, n_reserve}, work);
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t h, cudnnRNNDescriptor_t r,
				      const int32_t *lengths, cudnnRNNDataDescriptor_t yd,
				      const void *y, const void *dy, cudnnRNNDataDescriptor_t xd,
				      void *dx, cudnnTensorDescriptor_t hd, const void *hx,
				      const void *dhy, void *dhx, cudnnTensorDescriptor_t cd,
				      const void *cx, const void *dcy, void *dcx, size_t n_space,
				      const void *space, size_t n_work, void *work,
				      size_t n_reserve, void *reserve)
{
	NEED(!lengths && y && dy && dx && space);
	return put(h,
		   &(struct rnn){*r, DATA, 1, xd->steps, xd->samples, .y = (void *)(uintptr_t)y,
				 .dy = dy, .dx = dx, .hx = hx, .dhy = dhy, .dhx = dhx, .cx = cx,
				 .dcy = dcy, .dcx = dcx, .space = space, .reserve = reserve},
		   xd, yd, hd, cd, (size_t[]){n_space, n_work, n_reserve}, work);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t h, cudnnRNNDescriptor_t r,
					 cudnnWgradMode_t mode, const int32_t *lengths,
					 cudnnRNNDataDescriptor_t xd, const void *x,
					 cudnnTensorDescriptor_t hd, const void *hx,
					 cudnnRNNDataDescriptor_t yd, const void *y, size_t n_space,
					 void *dspace, size_t n_work, void *work, size_t n_reserve,
					 void *reserve)
{
	if (mode != CUDNN_WGRAD_MODE_ADD)
		return CUDNN_STATUS_NOT_SUPPORTED;
	NEED(!lengths && x && y && dspace);
	return put(h,
		   &(struct rnn){*r, WEIGHTS, 1, xd->steps, xd->samples, .x = x, .hx = hx,
				 .y = (void *)(uintptr_t)y, .dspace = dspace, .reserve = reserve},
		   xd, yd, hd, hd, (size_t[]){n_space, n_work, n_reserve}, work);
}
