/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref: the reference device, private to src/device/ref; its checks also serve the cuda device.
 * Plain loops that a reader can compare with the formulas; every other device must give the same
 * numbers.
 *
 * All tensors and parameters are plain: dense float32 in the order of their shape. Sums are
 * computed in double and rounded once. Every kind of operation has one struct mu_ref_kind. ref.c
 * holds their table and checks what all kinds share (numbers of tensors and parameters, plain
 * inputs, which kinds work in place); the kind's plan checks its own shapes.
 */
#ifndef DEVICE_REF_H
#define DEVICE_REF_H

#include <string.h>

#include "device/op.h"

struct mu_ref_kind {
	int n_inputs, n_outputs; /* -k: k or more */
	int min_params, max_params;
	int n_aux;
	bool in_place; /* may the output share the input's memory? */
	/* Check shapes; set workspace_nbytes and scratch_nbytes where they are not 0. */
	enum mu_status (*plan)(struct mu_op *op);
	enum mu_status (*forward)(struct mu_op *op);
	void (*backward)(struct mu_op *op);
	/* Instead of backward, if it can fail. */
	enum mu_status (*try_backward)(struct mu_op *op);
};

#define KIND(OP, row, name, cpu, cuda) extern const struct mu_ref_kind mu_ref_##row;
#include "device/kinds.def"
#undef KIND

const struct mu_ref_kind *mu_ref_kind_of(enum mu_op_kind kind);
enum mu_status mu_ref_backward(struct mu_op *op);

/*
 * view.c: an operation of a device that leaves its kind to ref (device/kinds.def), as ref sees it:
 * with tensors of its own, plain, which begin with the operation's pointers. The device sets those
 * that lie elsewhere (op.params, op.workspace, op.scratch, too).
 */
enum { MU_REF_MAX_TENSORS = 8 };
struct mu_ref_view {
	struct mu_op op;
	struct mu_tensor inputs[MU_REF_MAX_TENSORS], outputs[MU_REF_MAX_TENSORS];
	struct mu_tensor *input_links[MU_REF_MAX_TENSORS], *output_links[MU_REF_MAX_TENSORS];
};

/* Check op, and set its workspace_nbytes and scratch_nbytes. It works neither in place nor with
 * shared gradients, and does not add. */
enum mu_status mu_ref_view_plan(struct mu_op *op);
void mu_ref_view_make(struct mu_ref_view *g, const struct mu_op *op);
enum mu_status mu_ref_view_forward(struct mu_ref_view *g);
enum mu_status mu_ref_view_backward(struct mu_ref_view *g);

/* Checks common to all kinds: numbers of tensors and parameters, plain inputs, which kinds work in
 * place. */
enum mu_status mu_ref_check(const struct mu_op *op, const struct mu_ref_kind *kind);
/* Make outputs and parameters plain. */
enum mu_status mu_ref_set_plain(struct mu_op *op);

/* An error unless `have`, the shape of `what` of this operation ("output", "weight"), is `want`. */
enum mu_status mu_ref_need_shape(const struct mu_op *op, const char *what,
				 const struct mu_shape *have, const struct mu_shape *want);
enum mu_status mu_ref_need_same_shape(struct mu_op *op); /* of output and input */
/* An error unless the first input has ndims dimensions, described by `form`: "(n, c, h, w)". */
enum mu_status mu_ref_need_ndims(const struct mu_op *op, int ndims, const char *form);
/* An error unless the first input has two or three axes of space. */
enum mu_status mu_ref_need_space(const struct mu_op *op);

/* Softmax: an error if a label that counts is not a class. */
enum mu_status mu_ref_check_labels(const struct mu_op *op);
/* Losses by element: likewise a target that is not finite, or no share. */
enum mu_status mu_ref_check_targets(const struct mu_op *op);

/* Attention: an error if shapes or settings do not fit. */
enum mu_status mu_ref_check_attention(const struct mu_op *op);
/* Is an element of a sample dropped with this probability? See struct mu_op's index. */
bool mu_ref_drops(const struct mu_op *op, size_t sample, uint64_t element, float p);

/* Sample i of a batch, as messages name it: its number among all, where that is known. */
static inline size_t mu_ref_sample(const struct mu_batch *b, size_t i)
{
	return b->ids ? b->ids[i] : i;
}

/* In place both are the same memory, and nothing is copied. */
static inline void mu_ref_copy(float *to, const float *from, size_t n)
{
	if (to != from)
		memcpy(to, from, n * sizeof *to);
}

/* y = f(y), element by element. */
void mu_ref_activate(const struct mu_activation *activation, float *y, size_t n);
/* dx = dy f'(x), from the value y = f(x). dx may be dy. */
void mu_ref_activate_backward(const struct mu_activation *activation, const float *y,
			      const float *dy, float *dx, size_t n);

#endif
