/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu: the oneDNN device, known to src/device/cpu only.
 *
 * An operation is planned into programs, forward, backward, perhaps weights (behind backward, or
 * later) and, of a batch-norm, restore: lists of steps, each a oneDNN primitive with its memories,
 * or a function of our own. A memory is a description and a place (a tensor, a parameter, the
 * operation's workspace or scratch); bind gives it its pointer. Execution walks the list.
 *
 * Layouts: convolutions whose channel counts are multiples of 16 let oneDNN choose (blocked
 * layouts); others would be padded to the next multiple there and work in nhwc instead. Every other
 * operation takes its input's layout. Parameters lie in the layout that forward wants; where
 * backward wants another one, the parameter (never an activation if it can be helped) is reordered
 * in the step.
 *
 * bfloat16: convolutions and fully connected layers read bfloat16; convolutions write it, and the
 * other operations work in their input's type. A weight is rounded in the step, into scratch.
 *
 * oneDNN's scratchpads are ours: they lie in the scratch of the operation, in the plan's arena.
 */
#ifndef DEVICE_CPU_H
#define DEVICE_CPU_H

#include "device/op.h"
#include "device/window.h"
#include "device/cpu/onednn/onednn.h"

struct cpu {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	size_t n_threads;
};

enum cpu_place {
	CPU_IN_DATA,
	CPU_IN_GRAD,
	CPU_OUT_DATA,
	CPU_OUT_GRAD,
	CPU_PARAM_DATA,
	CPU_PARAM_GRAD,
	CPU_AUX_DATA,
	CPU_AUX_GRAD,
	CPU_WORKSPACE, /* index = offset in bytes */
	CPU_SCRATCH,   /* index = offset in bytes */
};

struct cpu_memory {
	struct cpu_md md;
	enum cpu_place place;
	size_t index;
	dnnl_memory_t memory;
};

#define CPU_MAX_ARGS (CPU_MAX_PARTS + 2)
#define CPU_MAX_STEPS 16
#define CPU_MAX_MEMORIES 64

/* Part `index` of n of a step's work. */
struct cpu_part {
	size_t index, n;
};

typedef void mu_cpu_step_fn(struct mu_op *op);
typedef enum mu_status mu_cpu_try_fn(struct mu_op *op);
typedef void mu_cpu_part_fn(struct mu_op *op, struct cpu_part part);

/* One of the first four is set. */
struct cpu_step {
	dnnl_primitive_t primitive;
	mu_cpu_step_fn *call;
	mu_cpu_try_fn *try_call;
	mu_cpu_part_fn *shared; /* by n_parts threads */
	size_t n_parts;
	int n_args;
	int memories[CPU_MAX_ARGS];
	dnnl_exec_arg_t args[CPU_MAX_ARGS];
};

struct cpu_program {
	struct cpu_step steps[CPU_MAX_STEPS];
	int n_steps;
	size_t scratch_nbytes; /* given out in this program so far */
};

struct cpu_op {
	struct cpu_memory memories[CPU_MAX_MEMORIES];
	int n_memories;
	struct cpu_program forward, backward, weights, restore;
	struct cpu_program inner; /* run by functions of those, when they like */
	void *own;                /* of the kind's file; freed with free() */
};

/* What an op's plan function works with. program: the one that steps are added to at present. */
struct cpu_plan {
	struct cpu *cpu;
	struct mu_op *op;
	struct cpu_op *impl;
	struct cpu_program *program;
	/* Asked for, of a convolution. */
	enum mu_convolution_algorithm algorithms[MU_CONVOLUTION_PHASES];
	dnnl_data_type_t dtype; /* of what is multiplied */
};

/* ---- cpu/program.c ---- */

/* A memory at a place; returns its number. More than CPU_MAX_MEMORIES is an internal error. */
int mu_cpu_memory(struct cpu_plan *p, const struct cpu_md *md, enum cpu_place place, size_t index);
/* New memory kept from forward to backward, or for the present program only. */
int mu_cpu_keep(struct cpu_plan *p, const struct cpu_md *md);
int mu_cpu_temporary(struct cpu_plan *p, const struct cpu_md *md);
/* The latter, of n floats. */
int mu_cpu_floats(struct cpu_plan *p, size_t n);
const struct cpu_md *mu_cpu_md(const struct cpu_plan *p, int memory);
/* Make the primitive of pd the next step, add its scratchpad, and destroy pd. */
struct cpu_arg {
	int arg; /* DNNL_ARG_SRC, ... */
	int memory;
};
enum mu_status mu_cpu_step(struct cpu_plan *p, dnnl_primitive_desc_t pd, int n_args,
			   const struct cpu_arg *args);
/*
 * The same for a primitive whose output (the last of args, its memory not set yet) has the layout
 * md, and whose values go to the memory `to`: directly, or through a temporary and a reorder.
 */
enum mu_status mu_cpu_step_to(struct cpu_plan *p, dnnl_primitive_desc_t pd, int n_args,
			      struct cpu_arg *args, const struct cpu_md *md, int to);
void mu_cpu_call(struct cpu_plan *p, mu_cpu_step_fn *call);
/* The same for a function that can fail. */
void mu_cpu_try_call(struct cpu_plan *p, mu_cpu_try_fn *call);
/* The same for a function whose parts run at the same time, on as many of the device's threads as
 * pay for so many bytes of work. */
void mu_cpu_share(struct cpu_plan *p, mu_cpu_part_fn *call, size_t nbytes);
enum mu_status mu_cpu_reorder(struct cpu_plan *p, int from, int to);
/* The values of `memory` laid out as md: itself, or a reordered copy (kept, or temporary). */
enum mu_status mu_cpu_as(struct cpu_plan *p, int memory, const struct cpu_md *md, bool keep,
			 int *out);
/* The first parameter, of these dimensions, laid out as md: itself, or a temporary copy. */
enum mu_status mu_cpu_weights_as(struct cpu_plan *p, int ndims, const dnnl_dim_t *dims,
				 const struct cpu_md *md, int *out);
/* What oneDNN calls an activation; undef for NULL. */
dnnl_alg_kind_t mu_cpu_eltwise(const struct mu_activation *activation);
/* As mu_dnnl_describe; an error where oneDNN has no such kernel. */
enum mu_status mu_cpu_describe(struct cpu_plan *p, const struct cpu_request *request,
			       dnnl_primitive_desc_t *pd);
/* The same bytes with another description. */
int mu_cpu_seen_as(struct cpu_plan *p, int memory, const struct cpu_md *md);
/* to = a and b, element by element; dimensions of b may be 1. activation: behind it, or NULL. */
struct cpu_pair {
	int a, b, to;
	const struct mu_activation *activation;
};
enum mu_status mu_cpu_binary(struct cpu_plan *p, dnnl_alg_kind_t kind, struct cpu_pair pair);
/* An error if so many tensors cannot be summed or put together in one step. */
enum mu_status mu_cpu_check_parts(const struct mu_op *op, int n);
/* Where a memory lies; once the operation's arrays are set. */
void *mu_cpu_pointer(const struct mu_op *op, int memory);
enum mu_status mu_cpu_bind(struct cpu *cpu, struct mu_op *op);
enum mu_status mu_cpu_run(struct cpu *cpu, struct mu_op *op, struct cpu_program *program);
/* See struct mu_device_ops's share. */
void mu_cpu_parts(size_t n, mu_part_fn *part, void *of);
/* Threads of a team for which this thread asks n. */
int mu_cpu_team(int n);
void mu_cpu_release(struct mu_op *op);

/* The windows of a request. */
void mu_cpu_request_window(struct cpu_request *request, const struct mu_window *w);

/* ---- cpu/shared/rows.c ---- */

/* A product of rows with a weight: y (rows, units) = x (rows, k) times the weight (units, k), all
 * float32. The bias, if any, is the parameter behind the weight. */
struct cpu_rows {
	struct cpu_md x, weight, bias, y;
	int which;                  /* parameter */
	bool has_bias;              /* the caller's */
	dnnl_primitive_desc_t hint; /* its forward; the caller's */
};

void mu_cpu_rows_md(struct cpu_md *md, size_t rows, size_t columns);
/* The weight as dnnl_ab, (units, k), or dnnl_ba, (k, units). */
void mu_cpu_rows_describe(struct cpu_rows *m, const struct mu_op *op, int which, size_t rows,
			  dnnl_format_tag_t layout);
/* The weight in the layout that pd wants. */
enum mu_status mu_cpu_rows_weight(struct cpu_plan *p, const struct cpu_rows *m,
				  const_dnnl_primitive_desc_t pd, int *out);
/* Forward, and the gradient of x; of the latter hint is the hint. */
enum mu_status mu_cpu_rows_forward(struct cpu_plan *p, const struct cpu_rows *m,
				   dnnl_primitive_desc_t *pd);
enum mu_status mu_cpu_rows_data(struct cpu_plan *p, const struct cpu_rows *m,
				dnnl_primitive_desc_t *pd);
/* x: the input (n, k, steps, 1) with channels last, as rows; in a temporary copy where it lies
 * otherwise. */
enum mu_status mu_cpu_rows_input(struct cpu_plan *p, const struct cpu_rows *m, int *out);
/* Steps: the gradient of such an input, from that of y. */
enum mu_status mu_cpu_rows_input_grad(struct cpu_plan *p, const struct cpu_rows *m, int dy);

/* The gradients of a weight and its bias from those of y, in a function of a step. They are added
 * to what is there with op->adds. */
struct cpu_rows_grad {
	int which, x, dy; /* the parameter; memories of rows */
	size_t rows;
	bool columns, has_bias; /* columns: the weight is dnnl_ba */
};
enum mu_status mu_cpu_rows_weight_grad(const struct mu_op *op, const struct cpu_rows_grad *g);
/* The same as a step of oneDNN's, of any type of products; x, dy: memories of rows. Never added. */
enum mu_status mu_cpu_rows_weight_step(struct cpu_plan *p, const struct cpu_rows *m, int x, int dy);

/* ---- cpu/shared/vectors.c: operations on the channels of each position, in our own loops ---- */

/* Memories of vectors: float32, channels last. dx -1: not wanted. */
struct cpu_vectors {
	int x, y, dx, dy;
	int statistics; /* of a layer norm: mean and factor of each vector */
	int gradient;   /* the input's, in the layout it has */
};

/* The memories of forward, which become the operation's `own`; the output gets channels last. */
enum mu_status mu_cpu_vectors_begin(struct cpu_plan *p, struct cpu_vectors **out);
/* Those of backward, whose step comes next; what follows that step. */
void mu_cpu_vectors_turn(struct cpu_plan *p, struct cpu_vectors *r);
enum mu_status mu_cpu_vectors_end(struct cpu_plan *p, const struct cpu_vectors *r);
const struct cpu_vectors *mu_cpu_vectors_of(const struct mu_op *op);
size_t mu_cpu_vectors_n(const struct mu_shape *shape);

/* ---- cpu/shared/blocks.c: operations on (outer, positions, inner), in loops of our own ---- */

/* The layout is the input's, if that is plain, has channels last or in blocks of 16, else plain;
 * types are float32. The tensor in memory is `outer` times all positions times `inner` channels.
 * Memories: of forward, then of backward, dx -1: not wanted. */
struct cpu_blocks {
	dnnl_format_tag_t tag;
	size_t outer, inner;
	int x, y;
	int x_again, dy, dx, gradient; /* gradient: dx in the layout that it has */
};

/* As vectors' calls; reads_x: backward reads the input. */
enum mu_status mu_cpu_blocks_begin(struct cpu_plan *p, struct cpu_blocks *b);
enum mu_status mu_cpu_blocks_turn(struct cpu_plan *p, struct cpu_blocks *b, bool reads_x);
enum mu_status mu_cpu_blocks_end(struct cpu_plan *p, const struct cpu_blocks *b);

/* A part's share of n: from .. to - 1. */
struct cpu_range {
	size_t from, to;
};
struct cpu_range mu_cpu_range(size_t n, struct cpu_part part);
/* Axes of space: depth, 1 of images, height, width. */
void mu_cpu_space(const struct mu_shape *shape, long out[MU_MAX_SPACE]);

/* ---- cpu/convolution: winograd.c, columns.c: convolutions of our own ---- */

/* Memories of a convolution's phase, data or gradients: the input, the output, the weights, the
 * bias (-1: none). */
struct cpu_convolution {
	int x, y, weight, bias;
};

struct cpu_own_convolution {
	enum mu_convolution_algorithm algorithm;
	dnnl_format_tag_t weights; /* their layout */
	/* Is this phase done so, by what is asked for and the rule of `auto`? */
	bool (*does)(const struct cpu_plan *p, enum mu_convolution_phase phase);
	/* Can it work on these layouts of input and output? */
	bool (*fits)(const struct cpu_md *x, const struct cpu_md *y);
	/* The steps of a phase; forward with the fused activation. */
	enum mu_status (*plan)(struct cpu_plan *p, enum mu_convolution_phase phase,
			       const struct cpu_convolution *c);
};

/* One operation uses at most one of them: both keep their plan in cpu_op's `own`. */
extern const struct cpu_own_convolution mu_cpu_winograd, mu_cpu_columns;

/* ---- cpu/convolution/rows.c: of 1 x 1, of sequences ---- */

bool mu_cpu_convolves_rows(const struct cpu_plan *p);
enum mu_status mu_cpu_plan_convolution_rows(struct cpu_plan *p);

/* ---- cpu/layout.c ---- */

/* Descriptions: plain of a shape; with a name of images' layouts, which for volumes means the one
 * like it; the layout a tensor or a parameter has. */
void mu_cpu_plain(struct cpu_md *md, const struct mu_shape *shape);
void mu_cpu_tag(struct cpu_md *md, const struct mu_shape *shape, dnnl_format_tag_t tag);
void mu_cpu_tensor_md(struct cpu_md *md, const struct mu_tensor *t);
/* Set the layout of an output tensor, of a parameter (which is float32 whatever md's type). */
enum mu_status mu_cpu_set_tensor(struct mu_tensor *t, const struct cpu_md *md);
enum mu_status mu_cpu_set_param(struct mu_param *param, const struct cpu_md *md);
enum mu_status mu_cpu_set_plain_params(struct mu_op *op);
/* The layout of a parameter, or plain in these dimensions when it has none. */
void mu_cpu_param_md(struct cpu_md *md, const struct mu_param *param, int ndims,
		     const dnnl_dim_t *dims);
enum mu_status mu_cpu_copy_layout(struct mu_device *device, const void *layout, void **out);
void mu_cpu_free_layout(struct mu_device *device, void *layout);
bool mu_cpu_is_rows(const struct mu_shape *shape, const void *layout);
uint64_t mu_cpu_hash_layout(struct mu_device *device, const void *layout);
enum mu_status mu_cpu_from_plain(struct mu_device *device, const struct mu_shape *shape,
				 const void *layout, const float *plain, float *out);
enum mu_status mu_cpu_to_plain(struct mu_device *device, const struct mu_shape *shape,
			       const void *layout, const float *in, float *plain);

/* ---- cpu/shared/math.c: vector loops, with an error of some 1e-7; NaN stays NaN ---- */

/* x = sigmoid(x), in place; y = tanh(x), y may be x. */
void mu_cpu_sigmoid(float *x, size_t n);
void mu_cpu_tanh(const float *x, float *y, size_t n);
/* GELU with tanh: see MU_ACTIVATION_GELU_TANH; y may be x. dx = dy times its slope at x; dx may be
 * dy. */
void mu_cpu_gelu(const float *x, float *y, size_t n);
void mu_cpu_gelu_back(const float *x, const float *dy, float *dx, size_t n);
float mu_cpu_dot(const float *a, const float *b, size_t n);
/* p = softmax(x); p may be x. ln(sum of exp(x)) is shift + ln(sum). */
struct cpu_exponentials {
	float shift, sum; /* the largest x, the sum of exp(x - shift) */
};
struct cpu_exponentials mu_cpu_softmax(const float *x, float *p, size_t n);
/* to += from; to *= by; to = a + b. They do not overlap. */
void mu_cpu_add(float *to, const float *from, size_t n);
void mu_cpu_multiply(float *to, const float *by, size_t n);
void mu_cpu_sum(float *to, const float *a, const float *b, size_t n);

/* ---- limits.c ---- */

enum mu_status mu_cpu_measure(struct mu_device *device, struct mu_device_limits *limits);

/* ---- one planner per kind ---- */

#define KIND(OP, row, name, cpu, cuda) enum mu_status mu_cpu_plan_##row(struct cpu_plan *p);
#include "device/kinds.def"
#undef KIND
/* Those of kinds that are left to ref. */
enum mu_status mu_cpu_plan_by_ref(struct cpu_plan *p);
/* Our own maximum pooling; false where it does not fit, else *st says how planning went. */
bool mu_cpu_plan_max_pooling(struct cpu_plan *p, const struct cpu_md *src, enum mu_status *st);
/* The step y = tanh(x); both memories are float32 and of one layout. */
enum mu_status mu_cpu_plan_tanh(struct cpu_plan *p, int x, int y);
/* 0 or 1 / (1 - p) for n elements of a sample, from this one on: see struct mu_op's index. */
void mu_cpu_draw_mask(const struct mu_op *op, size_t sample, uint64_t element, size_t n, float p,
		      float *mask);
/* Adds the step that activates the output, in place. */
enum mu_status mu_cpu_plan_activation_forward(struct cpu_plan *p,
					      const struct mu_activation *activation);
/* Adds the step that undoes op->fusion.undo on the output's gradient, in place. */
enum mu_status mu_cpu_plan_activation_backward(struct cpu_plan *p,
					       const struct mu_activation *activation);

#endif
