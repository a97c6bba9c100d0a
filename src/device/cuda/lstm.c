/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM, by cuDNN; formulas: struct mu_lstm. cuDNN's sequences are (steps, samples, c), so x and y
 * are transposed. cuDNN keeps all weights in one space with its own layout and gates in the order
 * i, f, g, o: weights are copied there in each call, and gradients back. In float16 and bfloat16
 * tensors, the space and the states are 16-bit, and sums float32.
 *
 * The algorithm is the standard one; those that keep weights in registers support few shapes.
 */
#include "cuda.h"

#include <limits.h>
#include <stdlib.h>

#include <muster/base.h>

enum { I2H_WEIGHT, I2H_BIAS, H2H_WEIGHT, H2H_BIAS };
enum { GATES = CUDA_LSTM_GATES, DIMS = 3 };

struct lstm {
	cudnnRNNDescriptor_t shape;
	cudnnRNNDataDescriptor_t in, out;
	cudnnTensorDescriptor_t state; /* h, or c */
	const struct cuda_layout *layout;
	size_t n, c, units, steps;
	size_t space_nbytes, work_nbytes, reserve_nbytes;
	size_t width[CUDA_LSTM_PARAMS], at[CUDA_LSTM_PARAMS][GATES]; /* struct cuda_lstm_space */
};

static size_t element_nbytes(const struct lstm *l)
{
	return mu_dtype_bytes(l->layout ? (enum mu_dtype)l->layout->type : MU_FLOAT32);
}

/* ---- memory ---- */

/* Workspace, from forward to backward: x and y of all steps, and cuDNN's reserve. */
struct kept {
	void *x, *y, *reserve;
};

/* Scratch: the weights, cuDNN's workspace, with 16 bits the states; in backward also the gradients
 * of weights, of y and of x. */
struct scratch {
	void *space, *work, *states[3], *space_grad, *dy, *dx;
};

/* Reserve the next piece of a block. */
static void *take(CUdeviceptr *end, size_t nbytes)
{
	const CUdeviceptr at = *end;

	*end = at + mu_cuda_round(nbytes);
	return (void *)(uintptr_t)at;
}

static size_t lay_out_kept(const struct lstm *l, const void *begin, struct kept *k)
{
	const size_t rows = l->steps * l->n * element_nbytes(l);
	CUdeviceptr end = cuda_pointer(begin);

	k->x = take(&end, rows * l->c);
	k->y = take(&end, rows * l->units);
	k->reserve = take(&end, l->reserve_nbytes);
	return end - cuda_pointer(begin);
}

static size_t lay_out_scratch(const struct lstm *l, const void *begin, bool backward,
			      struct scratch *s)
{
	const size_t rows = l->steps * l->n * element_nbytes(l);
	const size_t state = 2 * l->n * l->units * element_nbytes(l);
	CUdeviceptr end = cuda_pointer(begin);

	s->space = take(&end, l->space_nbytes);
	s->work = take(&end, l->work_nbytes);
	for (size_t i = 0; i < 3; i++)
		s->states[i] = take(&end, l->layout ? state : 0);
	s->space_grad = take(&end, backward ? l->space_nbytes : 0);
	s->dy = take(&end, backward ? rows * l->units : 0);
	s->dx = take(&end, backward ? rows * l->c : 0);
	return end - cuda_pointer(begin);
}

/* ---- plan ---- */

static enum mu_status describe(struct cuda_device *d, const struct mu_op *op, struct lstm *l)
{
	enum mu_status st = MU_OK;
	const cudnnDataType_t type = mu_cuda_dnn_type(l->layout);
	const int n = (int)l->n, c = (int)l->c, units = (int)l->units, steps = (int)l->steps;
	const int dims[DIMS] = {1, n, units}, strides[DIMS] = {n * units, units, 1};
	int *lengths = NULL;

	MU_TRY(MU_ALLOC(lengths, l->n, "lengths of sequences"));
	for (size_t i = 0; i < l->n; i++)
		lengths[i] = steps;
	DNN(d, cudnnCreateRNNDescriptor, &l->shape);
	/* One layer has no dropout between layers, so there is no dropout descriptor. */
	DNN(d, cudnnSetRNNDescriptor_v8, l->shape, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
	    CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, CUDNN_DATA_FLOAT,
	    mu_cuda_dnn_math(d, l->layout), c, units, units, 1, NULL, CUDNN_RNN_PADDED_IO_DISABLED);
	DNN(d, cudnnCreateRNNDataDescriptor, &l->in);
	DNN(d, cudnnSetRNNDataDescriptor, l->in, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
	    steps, n, c, lengths, NULL);
	DNN(d, cudnnCreateRNNDataDescriptor, &l->out);
	DNN(d, cudnnSetRNNDataDescriptor, l->out, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
	    steps, n, units, lengths, NULL);
	DNN(d, cudnnCreateTensorDescriptor, &l->state);
	DNN(d, cudnnSetTensorNdDescriptor, l->state, type, DIMS, dims, strides);
	DNN(d, cudnnGetRNNWeightSpaceSize, d->dnn, l->shape, &l->space_nbytes);
	DNN(d, cudnnGetRNNTempSpaceSizes, d->dnn, l->shape,
	    op->phase == MU_PHASE_TRAIN ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, l->in,
	    &l->work_nbytes, &l->reserve_nbytes);
out:
	mu_free(lengths);
	return st;
}

/* Offset, in elements, of an array in the space. It must be (1, units, width), dense. */
static enum mu_status find_array(struct cuda_device *d, const struct mu_op *op,
				 const cudnnTensorDescriptor_t array, size_t nbytes, int p,
				 size_t *at)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = op->impl;
	const int units = (int)l->units, width = (int)l->width[p];
	int n = 0, dims[DIMS] = {0}, strides[DIMS] = {0};
	cudnnDataType_t type;

	DNN(d, cudnnGetTensorNdDescriptor, array, DIMS, &type, &n, dims, strides);
	if (n != DIMS || dims[0] != 1 || dims[1] != units || dims[2] != width ||
	    strides[1] != width || strides[2] != 1 || nbytes % element_nbytes(l) != 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (lstm): this cuDNN has %s as (%d, %d, %d) and not as (1, %d, %d), row "
			"by row",
			op->name, op->params[p].name, dims[0], dims[1], dims[2], units, width);
	*at = nbytes / element_nbytes(l);
out:
	return st;
}

/* cuDNN numbers first the matrices of the input, then those of h. */
static enum mu_status find_gate(struct cuda_device *d, const struct mu_op *op, size_t gate,
				const cudnnTensorDescriptor_t arrays[2])
{
	enum mu_status st = MU_OK;
	static const int numbers[GATES] = {0, 2, 1, 3}; /* of i, g, f, o */
	struct lstm *l = op->impl;
	char *begin = (char *)(uintptr_t)d->blas_workspace; /* any address: only offsets are
							       computed from it */
	void *weight, *bias;

	for (int p = I2H_WEIGHT; p <= H2H_WEIGHT; p += H2H_WEIGHT) {
		DNN(d, cudnnGetRNNWeightParams, d->dnn, l->shape, 0, l->space_nbytes, begin,
		    numbers[gate] + (p == H2H_WEIGHT ? GATES : 0), arrays[0], &weight, arrays[1],
		    &bias);
		MU_TRY(find_array(d, op, arrays[0], (size_t)((char *)weight - begin), p,
				  &l->at[p][gate]));
		MU_TRY(find_array(d, op, arrays[1], (size_t)((char *)bias - begin), p + 1,
				  &l->at[p + 1][gate]));
	}
out:
	return st;
}

static enum mu_status find_gates(struct cuda_device *d, const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	cudnnTensorDescriptor_t arrays[2] = {NULL, NULL};

	for (size_t i = 0; i < 2; i++)
		DNN(d, cudnnCreateTensorDescriptor, &arrays[i]);
	for (size_t gate = 0; gate < GATES; gate++)
		MU_TRY(find_gate(d, op, gate, arrays));
out:
	for (size_t i = 0; i < 2; i++)
		if (arrays[i])
			d->api.cudnnDestroyTensorDescriptor(arrays[i]);
	return st;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *in = &op->inputs[0]->shape, *out = &op->outputs[0]->shape;
	struct lstm *l = calloc(1, sizeof *l);
	struct kept k;
	struct scratch s;

	op->impl = l;
	if (!l)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	if (mu_shape_n(in) > INT_MAX || mu_shape_n(out) > INT_MAX / GATES)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (lstm): cuDNN counts elements up to %d, those of the gates too; a "
			"smaller batch size is needed",
			op->name, INT_MAX);
	*l = (struct lstm){
		.layout = op->inputs[0]->layout,
		.n = in->dims[0],
		.c = in->dims[1],
		.units = out->dims[1],
		.steps = in->dims[2],
		.width = {in->dims[1], 1, out->dims[1], 1},
	};
	MU_TRY(describe(d, op, l));
	MU_TRY(find_gates(d, op));
	op->can_add = op->phase == MU_PHASE_TRAIN;
	op->workspace_nbytes = lay_out_kept(l, NULL, &k);
	op->scratch_nbytes = lay_out_scratch(l, NULL, op->phase == MU_PHASE_TRAIN, &s);
out:
	return st;
}

static void release(struct cuda_device *d, struct mu_op *op)
{
	struct lstm *l = op->impl;

	if (l->state)
		d->api.cudnnDestroyTensorDescriptor(l->state);
	if (l->out)
		d->api.cudnnDestroyRNNDataDescriptor(l->out);
	if (l->in)
		d->api.cudnnDestroyRNNDataDescriptor(l->in);
	if (l->shape)
		d->api.cudnnDestroyRNNDescriptor(l->shape);
	free(l);
}

/* ---- work ---- */

/* Convert between a tensor (n, c, steps) and an array of steps. */
static enum mu_status turn(struct cuda_device *d, enum cuda_kernel kernel, const struct lstm *l,
			   size_t c, const void *from, void *to)
{
	struct cuda_steps args = {
		.from = from,
		.to = to,
		.type = l->layout ? l->layout->type : CUDA_FLOAT32,
		.last = l->layout != NULL,
		.samples = l->n,
		.c = c,
		.steps = l->steps,
		.n = l->n * c * l->steps,
	};

	return mu_cuda_each(d, kernel, args.n, &args);
}

/* Copy weights into the space, or gradients out of it. */
static enum mu_status move(struct cuda_device *d, enum cuda_kernel kernel, const struct mu_op *op,
			   void *space)
{
	const struct lstm *l = op->impl;
	struct cuda_lstm_space args = {
		.space = space,
		.type = l->layout ? l->layout->type : CUDA_FLOAT32,
		.adds = op->adds,
		.units = l->units,
	};

	for (int p = 0; p < CUDA_LSTM_PARAMS; p++) {
		args.params[p] =
			kernel == CUDA_lstm_weights ? op->params[p].data : op->params[p].grad;
		args.width[p] = l->width[p];
		args.n += GATES * l->units * l->width[p];
		for (size_t gate = 0; gate < GATES; gate++)
			args.at[p][gate] = l->at[p][gate];
	}
	return mu_cuda_each(d, kernel, args.n, &args);
}

/* h followed by c, for cuDNN: a state of the net, or a piece of the scratch. NULL: 0. */
struct state {
	void *h, *c;
};

static struct state state_at(const struct lstm *l, const float *ours, void *room)
{
	char *h = l->layout ? room : (void *)(uintptr_t)ours;

	return (struct state){h, h + l->n * l->units * element_nbytes(l)};
}

static enum mu_status read_state(struct cuda_device *d, const struct lstm *l, const float *ours,
				 void *room, struct state *out)
{
	enum mu_status st = MU_OK;
	const struct mu_shape shape = {2, {2 * l->n, l->units}};

	*out = (struct state){NULL, NULL};
	if (!ours)
		goto out;
	*out = state_at(l, ours, room);
	if (l->layout)
		MU_TRY(mu_cuda_convert(d, &shape,
				       &(struct cuda_array){(void *)(uintptr_t)ours, NULL},
				       &(struct cuda_array){room, l->layout}));
out:
	return st;
}

/* Copy the state that cuDNN has written to the net's state. */
static enum mu_status leave_state(struct cuda_device *d, const struct lstm *l, void *room,
				  float *ours)
{
	const struct mu_shape shape = {2, {2 * l->n, l->units}};

	if (!ours || !l->layout)
		return MU_OK;
	return mu_cuda_convert(d, &shape, &(struct cuda_array){room, l->layout},
			       &(struct cuda_array){ours, NULL});
}

static const struct mu_state no_state;

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = op->impl;
	const struct mu_state *ours = op->state ? op->state : &no_state;
	struct state before, after = {NULL, NULL};
	struct kept k;
	struct scratch s;

	lay_out_kept(l, op->workspace, &k);
	lay_out_scratch(l, op->scratch, false, &s);
	MU_TRY(turn(d, CUDA_to_steps, l, l->c, op->inputs[0]->data, k.x));
	MU_TRY(move(d, CUDA_lstm_weights, op, s.space));
	MU_TRY(read_state(d, l, ours->before, s.states[0], &before));
	if (ours->after)
		after = state_at(l, ours->after, s.states[1]);
	DNN(d, cudnnRNNForward, d->dnn, l->shape,
	    op->phase == MU_PHASE_TRAIN ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, NULL,
	    l->in, k.x, l->out, k.y, l->state, before.h, after.h, l->state, before.c, after.c,
	    l->space_nbytes, s.space, l->work_nbytes, s.work, l->reserve_nbytes,
	    l->reserve_nbytes > 0 ? k.reserve : NULL);
	MU_TRY(leave_state(d, l, after.h, ours->after));
	MU_TRY(turn(d, CUDA_from_steps, l, l->units, k.y, op->outputs[0]->data));
out:
	return st;
}

/* Uses the reserve as left by the gradients of the data, which must be computed first. */
static enum mu_status weight_gradients(struct cuda_device *d, struct mu_op *op,
				       const struct state *before)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = op->impl;
	struct kept k;
	struct scratch s;

	lay_out_kept(l, op->workspace, &k);
	lay_out_scratch(l, op->scratch, true, &s);
	/* cuDNN adds to the present values, and cannot overwrite. */
	CU(d, cuMemsetD8Async, cuda_pointer(s.space_grad), 0, l->space_nbytes, d->work);
	DNN(d, cudnnRNNBackwardWeights_v8, d->dnn, l->shape, CUDNN_WGRAD_MODE_ADD, NULL, l->in, k.x,
	    l->state, before->h, l->out, k.y, l->space_nbytes, s.space_grad, l->work_nbytes, s.work,
	    l->reserve_nbytes, k.reserve);
	MU_TRY(move(d, CUDA_lstm_gradients, op, s.space_grad));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct lstm *l = op->impl;
	const struct mu_tensor *in = op->inputs[0];
	const struct mu_state *ours = op->state ? op->state : &no_state;
	struct state before, after_grad, before_grad = {NULL, NULL};
	struct kept k;
	struct scratch s;

	lay_out_kept(l, op->workspace, &k);
	lay_out_scratch(l, op->scratch, true, &s);
	MU_TRY(turn(d, CUDA_to_steps, l, l->units, op->outputs[0]->grad, s.dy));
	MU_TRY(move(d, CUDA_lstm_weights, op, s.space));
	MU_TRY(read_state(d, l, ours->before, s.states[0], &before));
	MU_TRY(read_state(d, l, ours->after_grad, s.states[1], &after_grad));
	if (ours->before_grad)
		before_grad = state_at(l, ours->before_grad, s.states[2]);
	DNN(d, cudnnRNNBackwardData_v8, d->dnn, l->shape, NULL, l->out, k.y, s.dy, l->in, s.dx,
	    l->state, before.h, after_grad.h, before_grad.h, l->state, before.c, after_grad.c,
	    before_grad.c, l->space_nbytes, s.space, l->work_nbytes, s.work, l->reserve_nbytes,
	    k.reserve);
	MU_TRY(leave_state(d, l, before_grad.h, ours->before_grad));
	MU_TRY(weight_gradients(d, op, &before));
	if (in->needs_grad)
		MU_TRY(turn(d, CUDA_from_steps, l, l->c, s.dx, in->grad));
out:
	return st;
}

const struct cuda_kind mu_cuda_lstm = {
	.like = &mu_ref_lstm,
	.inputs = CUDA_INPUTS_OF_DTYPE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
	.release = release,
};
