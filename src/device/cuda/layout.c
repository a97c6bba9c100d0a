/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of tensors on a GPU, and an operation's view of its inputs. With dtype float16 or
 * bfloat16 tensors (n, c, space...) written by a convolution are of that type with channels last,
 * as tensor cores need, and so are tensors derived from them. A kind of operation declares the
 * layout of its inputs (struct cuda_kind); an input in another layout is converted into the
 * scratch, before forward and again before backward, and its gradient is converted back afterwards.
 * So a kind handles one layout only. Parameters and their gradients are always plain float32;
 * convolutions have copies of theirs.
 */
#include "cuda.h"

#include <stdlib.h>

#include <muster/base.h>

enum { ALIGNMENT = 256, EIGHT = 8 };

/* All layouts except plain. */
static const struct cuda_layout layouts[] = {{CUDA_FLOAT16, false}, {CUDA_BFLOAT16, false}};
static const struct cuda_layout padded[] = {{CUDA_FLOAT16, true}, {CUDA_BFLOAT16, true}};

const struct cuda_layout *mu_cuda_layout(enum mu_dtype dtype)
{
	return dtype == MU_FLOAT16 ? &layouts[0] : dtype == MU_BFLOAT16 ? &layouts[1] : NULL;
}

void mu_cuda_pad_rows(struct mu_tensor *t)
{
	t->layout = (void *)(uintptr_t)&padded[mu_cuda_type(t) == CUDA_BFLOAT16];
	t->nbytes = mu_cuda_bytes(t);
}

static size_t row_of(const struct cuda_layout *layout, size_t channels)
{
	return layout && layout->padded ? (channels + EIGHT - 1) / EIGHT * EIGHT : channels;
}

size_t mu_cuda_row(const struct mu_tensor *t)
{
	return row_of(t->layout, t->shape.dims[1]);
}

static size_t bytes_of(const struct cuda_layout *layout, const struct mu_shape *shape)
{
	const size_t n = mu_shape_n(shape), c = shape->dims[1];

	return layout ? 2 * (layout->padded ? n / c * row_of(layout, c) : n) : n * sizeof(float);
}

int mu_cuda_type(const struct mu_tensor *t)
{
	const struct cuda_layout *layout = t->layout;

	return layout ? layout->type : CUDA_FLOAT32;
}

cudnnDataType_t mu_cuda_dnn_type(const struct cuda_layout *layout)
{
	if (!layout)
		return CUDNN_DATA_FLOAT;
	return layout->type == CUDA_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

cudnnMathType_t mu_cuda_dnn_math(const struct cuda_device *d, const struct cuda_layout *layout)
{
	if (layout)
		return CUDNN_TENSOR_OP_MATH;
	return d->device->allow_tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

size_t mu_cuda_bytes(const struct mu_tensor *t)
{
	return bytes_of(t->layout, &t->shape);
}

struct cuda_extent mu_cuda_extent(const struct mu_tensor *t)
{
	const size_t *n = t->shape.dims, area = mu_shape_positions(&t->shape);

	return t->layout ? (struct cuda_extent){n[0] * area, n[1], 1}
			 : (struct cuda_extent){n[0], n[1], area};
}

bool mu_cuda_in_rows(const struct mu_tensor *t)
{
	return t->layout && mu_cuda_row(t) % EIGHT == 0;
}

bool mu_cuda_in_groups(const struct mu_tensor *t)
{
	return t->layout && t->shape.dims[1] % EIGHT == 0;
}

/* The list of kernels has bfloat16's behind it. */
enum cuda_kernel mu_cuda_of_type(const struct mu_tensor *t, enum cuda_kernel float16)
{
	return mu_cuda_type(t) == CUDA_BFLOAT16 ? float16 + 1 : float16;
}

size_t mu_cuda_round(size_t nbytes)
{
	return (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static enum mu_status convert(struct cuda_device *d, const struct mu_shape *shape,
			      const struct cuda_array *from, const struct cuda_array *to, bool adds)
{
	struct cuda_convert args = {
		.from = from->data,
		.to = to->data,
		.from_type = from->layout ? from->layout->type : CUDA_FLOAT32,
		.to_type = to->layout ? to->layout->type : CUDA_FLOAT32,
		.from_last = from->layout != NULL,
		.to_last = to->layout != NULL,
		.adds = adds,
		.row = row_of(from->layout, shape->dims[1]),
		.channels = shape->dims[1],
		.area = mu_shape_positions(shape),
		.n = mu_shape_n(shape),
	};

	return mu_cuda_each(d, CUDA_convert, args.n, &args);
}

enum mu_status mu_cuda_convert(struct cuda_device *d, const struct mu_shape *shape,
			       const struct cuda_array *from, const struct cuda_array *to)
{
	return convert(d, shape, from, to, false);
}

enum mu_status mu_cuda_convert_add(struct cuda_device *d, const struct mu_shape *shape,
				   const struct cuda_array *from, const struct cuda_array *to)
{
	return convert(d, shape, from, to, true);
}

/* ---- views ---- */

struct cuda_op {
	struct mu_op view; /* what its kind works on; impl is the kind's */
	const struct cuda_kind *kind;
	struct cuda_input {
		struct mu_tensor tensor;
		bool converted;
		size_t data_at, grad_at; /* in the scratch */
	} * inputs;
	struct mu_tensor **links; /* to them */
};

static enum mu_status new_view(struct mu_op *op, const struct cuda_layout *layout)
{
	enum mu_status st = MU_OK;
	const size_t n = (size_t)op->n_inputs;
	struct cuda_op *own = calloc(1, sizeof *own);

	op->impl = own;
	if (!own || !(own->inputs = calloc(n, sizeof *own->inputs)) ||
	    !(own->links = calloc(n, sizeof *own->links)))
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	own->view = *op;
	own->view.impl = NULL;
	own->view.inputs = own->links;
	for (size_t i = 0; i < n; i++) {
		own->links[i] = &own->inputs[i].tensor;
		own->inputs[i].tensor = *op->inputs[i];
		own->inputs[i].tensor.layout = NULL; /* until shapes are checked as ref's */
		own->inputs[i].converted = op->inputs[i]->layout != layout;
	}
out:
	return st;
}

/* The layout of a kind's inputs, and of its outputs. */
static const struct cuda_layout *wanted(const struct cuda_device *d, const struct mu_op *op,
					enum cuda_inputs inputs)
{
	if (op->inputs[0]->shape.ndims < 4 || inputs == CUDA_INPUTS_PLAIN ||
	    (inputs == CUDA_INPUTS_OVER && !op->fusion.in_place))
		return NULL;
	if (inputs == CUDA_INPUTS_ALIKE || inputs == CUDA_INPUTS_OVER)
		return op->inputs[0]->layout;
	return mu_cuda_layout(d->device->dtype);
}

/* Copies of inputs follow the kind's own scratch. */
static void place_copies(struct mu_op *op)
{
	struct cuda_op *own = op->impl;

	for (int i = 0; i < op->n_inputs; i++) {
		struct cuda_input *in = &own->inputs[i];

		if (!in->converted)
			continue;
		op->fusion.shared_grads &= ~(i < 32 ? 1u << i : 0u);
		in->data_at = mu_cuda_round(op->scratch_nbytes);
		op->scratch_nbytes = in->data_at + mu_cuda_bytes(&in->tensor);
		if (!in->tensor.needs_grad || op->phase != MU_PHASE_TRAIN)
			continue;
		in->grad_at = mu_cuda_round(op->scratch_nbytes);
		op->scratch_nbytes = in->grad_at + mu_cuda_bytes(&in->tensor);
	}
}

enum mu_status mu_cuda_plan_view(struct cuda_device *d, struct mu_op *op,
				 const struct cuda_kind *kind)
{
	enum mu_status st = MU_OK;
	const struct cuda_layout *layout = wanted(d, op, kind->inputs);
	struct cuda_op *own;

	MU_TRY(new_view(op, layout));
	own = op->impl;
	own->kind = kind;
	MU_TRY(mu_ref_check(&own->view, kind->like));
	MU_TRY(kind->like->plan(&own->view));
	MU_TRY(mu_ref_set_plain(&own->view));
	for (int i = 0; i < op->n_inputs; i++)
		own->inputs[i].tensor.layout = (void *)(uintptr_t)layout;
	for (int o = 0; o < op->n_outputs; o++) {
		op->outputs[o]->layout = (void *)(uintptr_t)layout;
		op->outputs[o]->nbytes = mu_cuda_bytes(op->outputs[o]);
	}
	own->view.workspace_nbytes = own->view.scratch_nbytes = 0;
	if (kind->plan)
		MU_TRY(kind->plan(d, &own->view));
	for (int p = 0; p < op->n_params; p++)
		op->params[p].n_padded = own->view.params[p].n_padded;
	for (int p = 0; p < op->n_aux; p++)
		op->aux[p].n_padded = own->view.aux[p].n_padded;
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		op->algorithms[phase] = own->view.algorithms[phase];
	op->can_add = own->view.can_add;
	op->fusion = own->view.fusion;
	op->workspace_nbytes = own->view.workspace_nbytes;
	op->scratch_nbytes = own->view.scratch_nbytes;
	op->kept_nbytes = own->view.kept_nbytes;
	place_copies(op);
out:
	return st;
}

void mu_cuda_release_view(struct cuda_device *d, struct mu_op *op, const struct cuda_kind *kind)
{
	struct cuda_op *own = op->impl;

	if (!own)
		return;
	if (kind->release && own->view.impl)
		kind->release(d, &own->view);
	free(own->links);
	free(own->inputs);
	free(own);
	op->impl = NULL;
}

static float *in_scratch(const struct mu_op *op, size_t at)
{
	return (float *)((char *)op->scratch + at);
}

enum mu_status mu_cuda_begin_view(struct cuda_device *d, struct mu_op *op, struct mu_op **view)
{
	enum mu_status st = MU_OK;
	struct cuda_op *own = op->impl;
	void *impl = own->view.impl;

	own->view = *op;
	own->view.impl = impl;
	own->view.inputs = own->links;
	*view = &own->view;
	for (int i = 0; i < op->n_inputs; i++) {
		struct cuda_input *in = &own->inputs[i];
		const struct mu_tensor *t = op->inputs[i];

		in->tensor.data = in->converted ? in_scratch(op, in->data_at) : t->data;
		in->tensor.grad = in->converted && t->grad ? in_scratch(op, in->grad_at) : t->grad;
		if (in->converted)
			MU_TRY(mu_cuda_convert(
				d, &t->shape, &(struct cuda_array){t->data, t->layout},
				&(struct cuda_array){in->tensor.data, in->tensor.layout}));
	}
out:
	return st;
}

struct mu_op *mu_cuda_view(const struct mu_op *op)
{
	return &((struct cuda_op *)op->impl)->view;
}

bool mu_cuda_can_record(const struct mu_op *op, bool backward)
{
	const struct cuda_kind *kind = ((const struct cuda_op *)op->impl)->kind;

	return !(backward ? kind->host_backward : kind->host_forward);
}

enum mu_status mu_cuda_end_backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct cuda_op *own = op->impl;

	for (int i = 0; i < op->n_inputs; i++) {
		const struct cuda_input *in = &own->inputs[i];
		const struct mu_tensor *t = op->inputs[i];

		if (in->converted && t->needs_grad)
			MU_TRY(mu_cuda_convert(
				d, &t->shape,
				&(struct cuda_array){in->tensor.grad, in->tensor.layout},
				&(struct cuda_array){t->grad, t->layout}));
	}
out:
	return st;
}

/* ---- between plain order and a layout ---- */

/* Copy between any kinds of memory; done on return. */
static enum mu_status move(struct mu_device *device, const struct mu_shape *shape,
			   const struct cuda_array *from, const struct cuda_array *to)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	const size_t in = bytes_of(from->layout, shape), out = bytes_of(to->layout, shape);
	void *room = NULL;
	struct cuda_array begin = *from, end = *to;

	MU_TRY(mu_cuda_enter(d));
	if (from->layout == to->layout) {
		MU_TRY(mu_cuda_copy(d, to->data, from->data, in));
		MU_TRY(mu_cuda_finish(d));
		goto out;
	}
	MU_TRY(mu_cuda_memory.alloc(device, &room, mu_cuda_round(in) + out, "a conversion"));
	begin.data = room;
	end.data = (char *)room + mu_cuda_round(in);
	MU_TRY(mu_cuda_copy(d, begin.data, from->data, in));
	MU_TRY(mu_cuda_convert(d, shape, &begin, &end));
	MU_TRY(mu_cuda_copy(d, to->data, end.data, out));
	MU_TRY(mu_cuda_finish(d));
out:
	mu_cuda_memory.free(device, room);
	return st;
}

enum mu_status mu_cuda_from_plain(struct mu_device *device, const struct mu_shape *shape,
				  const void *layout, const float *plain, float *out)
{
	return move(device, shape, &(struct cuda_array){(void *)(uintptr_t)plain, NULL},
		    &(struct cuda_array){out, layout});
}

enum mu_status mu_cuda_to_plain(struct mu_device *device, const struct mu_shape *shape,
				const void *layout, const float *in, float *plain)
{
	return move(device, shape, &(struct cuda_array){(void *)(uintptr_t)in, layout},
		    &(struct cuda_array){plain, NULL});
}

/* Samples come in the layout of a convolution, which would convert them in forward and backward. */
void mu_cuda_lay_input(struct mu_device *device, const struct mu_op *op)
{
	struct mu_tensor *in = op->inputs[0];

	if (op->kind == MU_OP_CONVOLUTION && in->shape.ndims >= 4) {
		in->layout = (void *)(uintptr_t)mu_cuda_layout(device->dtype);
		in->nbytes = mu_cuda_bytes(in);
	}
}

/* Layouts are constants: nothing to copy or free. */
enum mu_status mu_cuda_copy_layout(struct mu_device *device, const void *layout, void **out)
{
	(void)device;
	*out = (void *)(uintptr_t)layout;
	return MU_OK;
}

void mu_cuda_free_layout(struct mu_device *device, void *layout)
{
	(void)device;
	(void)layout;
}

uint64_t mu_cuda_hash_layout(struct mu_device *device, const void *layout)
{
	const struct cuda_layout *of = layout;

	(void)device;
	return of ? (uint64_t)of->type * 2 + of->padded : 0;
}

/* ---- weights of convolutions ---- */

/*
 * Weights in the layout of float16 and bfloat16, and their gradients back in float32, for all
 * convolutions of a run of layers in one kernel: each has a copy (`kept`) from the begin of forward
 * on, into which its backward writes the gradient. The update does not write the copies: weights
 * also change when they are loaded, gathered or averaged, and several plans have copies of their
 * own; to make them is 0.2 ms a step of ResNet-50 at most (computed).
 */
static enum mu_status launch_weights(struct cuda_device *d, struct cuda_lay_weights *a)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cuda_rows(d, CUDA_lay_weights, a->n, a));
	a->n = 0;
	a->n_of = 0;
out:
	return st;
}

static enum mu_status add_weights(struct cuda_device *d, struct cuda_lay_weights *a,
				  const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_param *p = &op->params[0];
	const size_t n = mu_shape_n(&p->shape);

	if (a->n_of == CUDA_MAX_WEIGHTS)
		MU_TRY(launch_weights(d, a));
	a->of[a->n_of++] = (struct cuda_weights){
		.plain = a->back ? p->grad : p->data,
		.laid = op->kept,
		.n = (uint32_t)n,
		.channels = (uint32_t)p->shape.dims[1],
		.area = (uint32_t)mu_shape_positions(&p->shape),
		.first = (uint32_t)a->n,
		.adds = op->adds,
	};
	a->n += (n + CUDA_WEIGHTS_ROW - 1) / CUDA_WEIGHTS_ROW;
out:
	return st;
}

enum mu_status mu_cuda_lay_weights(struct cuda_device *d, enum mu_dtype dtype, struct mu_op *ops,
				   size_t n, bool back)
{
	enum mu_status st = MU_OK;
	struct cuda_lay_weights args = {.type = (int)dtype, .back = back};

	for (size_t i = 0; i < n; i++)
		if (ops[i].kept && (!back || ops[i].outputs[0]->needs_grad))
			MU_TRY(add_weights(d, &args, &ops[i]));
	MU_TRY(launch_weights(d, &args));
out:
	return st;
}
