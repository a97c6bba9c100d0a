/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's sizes, and the heads of its tensors: see attention.h. */
#include "device/cuda/attention/attention.h"

#include <math.h>

#include <muster/base.h>

enum { BLOCK_ROWS = 128, ROOM = 64 << 20 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct attention_sizes mu_cuda_attention_sizes(const struct mu_op *op)
{
	const struct mu_attention_sizes a = mu_attention_sizes(op->attr, &op->inputs[0]->shape);
	struct attention_sizes s = {.n = a.n,
				    .steps = a.steps,
				    .heads = a.heads,
				    .kv = a.kv,
				    .d = a.d,
				    .channels = a.channels,
				    .type = mu_cuda_type(op->inputs[0])};
	size_t of_sample;

	s.rows = s.heads / s.kv * s.steps;
	s.block_rows = least(s.rows, BLOCK_ROWS);
	of_sample = s.kv * s.block_rows * s.steps * sizeof(float);
	s.block_samples = least(s.n, of_sample < ROOM ? ROOM / of_sample : 1);
	s.queries = s.n * s.heads * s.steps * s.d;
	s.keys = s.n * s.kv * s.steps * s.d;
	return s;
}

bool mu_cuda_attention_drops(const struct mu_op *op)
{
	return op->phase == MU_PHASE_TRAIN && ((const struct mu_attention *)op->attr)->dropout > 0;
}

void *mu_cuda_room(char *scratch, size_t *nbytes, size_t n)
{
	void *p = scratch ? scratch + *nbytes : NULL;

	*nbytes += mu_cuda_round(n);
	return p;
}

/* Cosines and sines, which do not change. */
enum mu_status mu_cuda_upload_angles(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const double base = (double)((const struct mu_attention *)op->attr)->rotary;
	struct attention *own = op->impl;
	const size_t half = s.d / 2, n = 2 * s.steps * half;
	float *angles = NULL;

	MU_TRY(MU_ALLOC(angles, n, "angles of steps"));
	for (size_t i = 0; i < s.steps * half; i++) {
		const double angle =
			(double)(i / half) * pow(base, -2.0 * (double)(i % half) / (double)s.d);

		angles[2 * i] = (float)cos(angle);
		angles[2 * i + 1] = (float)sin(angle);
	}
	MU_TRY(mu_cuda_reserve(d, &own->angles, n * sizeof *angles, "angles of steps"));
	MU_TRY(mu_cuda_copy(d, (void *)(uintptr_t)own->angles, angles, n * sizeof *angles));
	MU_TRY(mu_cuda_finish(d));
out:
	mu_free(angles);
	return st;
}

/* ---- heads ---- */

static struct cuda_heads heads_of(const struct mu_op *op)
{
	const struct attention_sizes s = mu_cuda_attention_sizes(op);

	return (struct cuda_heads){
		.from_type = s.type,
		.to_type = s.type,
		.last = op->inputs[0]->layout != NULL,
		.samples = s.n,
		.steps = s.steps,
		.heads = s.heads,
		.d = s.d,
		.n = s.queries,
	};
}

/* Of the input, which has keys and values, too. */
static struct cuda_heads input_heads_of(const struct mu_op *op)
{
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	struct cuda_heads h = heads_of(op);

	h.kv = s.kv;
	h.n = s.queries + 2 * s.keys;
	h.angles = (const float *)(uintptr_t)((const struct attention *)op->impl)->angles;
	return h;
}

static enum mu_status move(struct cuda_device *d, enum cuda_kernel kernel, struct cuda_heads h,
			   const void *from, void *to)
{
	h.from = from;
	h.to = to;
	return mu_cuda_eights(d, kernel, h.n, &h);
}

enum mu_status mu_cuda_split_input(struct cuda_device *d, const struct mu_op *op, void *x)
{
	return move(d, CUDA_split_heads, input_heads_of(op), op->inputs[0]->data, x);
}

enum mu_status mu_cuda_join_input(struct cuda_device *d, const struct mu_op *op, const void *dx,
				  int type)
{
	struct cuda_heads h = input_heads_of(op);

	h.from_type = type;
	return move(d, CUDA_join_heads, h, dx, op->inputs[0]->grad);
}

enum mu_status mu_cuda_split_output(struct cuda_device *d, const struct mu_op *op, void *dy)
{
	return move(d, CUDA_split_heads, heads_of(op), op->outputs[0]->grad, dy);
}

enum mu_status mu_cuda_join_output(struct cuda_device *d, const struct mu_op *op, const void *y)
{
	return move(d, CUDA_join_heads, heads_of(op), y, op->outputs[0]->data);
}
