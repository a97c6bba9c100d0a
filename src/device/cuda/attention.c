/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention: products of cuBLAS around a kernel that turns rows of scores into weights. Queries,
 * keys and values are first copied so that those of a head are contiguous, (steps, d), and rotated;
 * so the layout of the tensor matters in these copies alone, and the heads that share keys are one
 * matrix of (heads / kv_heads) steps rows. The products of all samples and heads of keys are one
 * call, for a block of BLOCK_ROWS rows at a time, of as many samples as have ROOM for scores:
 * memory grows with the number of steps, not with its square. With `causal` a block has only the
 * keys that its last query sees. backward computes the weights again.
 *
 * In half precision factors are of the device's type, scores and sums of gradients are float32.
 *
 * Where it is asked for and can be had, a kernel of cuDNN's does it all: fused.c.
 */
#include "device/cuda/attention/attention.h"

#include <math.h>
#include <stdlib.h>

#include <muster/base.h>

enum { ELEMENT_BITS = 24 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- memory ---- */

/* In the scratch. Arrays of scores are of one block; `weights` and `slopes`, gradients of the
 * scores, are of the tensor's type, and in float32 the scores themselves, and `grads`. */
struct room {
	char *x;   /* heads of the input: queries, keys, values */
	char *y;   /* of the output, in backward of its gradient */
	float *dx; /* backward: gradients of x's */
	float *scores, *grads;
	void *weights, *slopes;
	size_t nbytes;
};

static struct room room_of(const struct mu_op *op, const struct attention_sizes *s, char *scratch)
{
	const size_t width = mu_dtype_bytes((enum mu_dtype)s->type);
	const size_t n_scores = s->block_samples * s->kv * s->block_rows * s->steps;
	const bool half = s->type != CUDA_FLOAT32, train = op->phase == MU_PHASE_TRAIN;
	const size_t n_x = s->queries + 2 * s->keys;
	struct room r = {.nbytes = 0};

	r.x = mu_cuda_room(scratch, &r.nbytes, n_x * width);
	r.y = mu_cuda_room(scratch, &r.nbytes, s->queries * width);
	r.scores = mu_cuda_room(scratch, &r.nbytes, n_scores * sizeof(float));
	r.weights = half ? mu_cuda_room(scratch, &r.nbytes, n_scores * width) : r.scores;
	if (!train)
		return r;
	r.dx = mu_cuda_room(scratch, &r.nbytes, n_x * sizeof(float));
	r.grads = mu_cuda_room(scratch, &r.nbytes, n_scores * sizeof(float));
	r.slopes = half ? mu_cuda_room(scratch, &r.nbytes, n_scores * width) : r.grads;
	return r;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);

	op->scratch_nbytes = room_of(op, &s, NULL).nbytes;
	if (mu_cuda_attention_drops(op))
		op->workspace_nbytes = (s.n + 1) * sizeof(uint32_t);
	if (s.queries + 2 * s.keys > UINT32_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (attention): %zu numbers, and a GPU counts up to %u; a smaller batch "
			"size is needed",
			op->name, s.queries + 2 * s.keys, UINT32_MAX);
	op->impl = calloc(1, sizeof(struct attention));
	if (!op->impl)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	if (((const struct mu_attention *)op->attr)->rotary > 0)
		MU_TRY(mu_cuda_upload_angles(d, op));
	MU_TRY(mu_cuda_plan_fused(d, op));
out:
	return st;
}

static void release(struct cuda_device *d, struct mu_op *op)
{
	const struct attention *own = op->impl;

	mu_cuda_release_fused(d, own->fused);
	if (own->angles && d->api.cuCtxSetCurrent(d->context) == CUDA_SUCCESS)
		d->api.cuMemFree(own->angles);
	free(op->impl);
}

/* ---- blocks of queries ---- */

struct block {
	size_t sample, n; /* samples */
	size_t row, rows; /* of the queries that share keys */
	size_t keys;      /* that they may see */
};

/* The last rows come first: they see all keys, whose gradients they set and the others add to. */
static bool next_block(const struct mu_op *op, const struct attention_sizes *s, struct block *b)
{
	size_t last;

	if (b->row > 0) {
		b->row -= s->block_rows;
		b->rows = s->block_rows;
	} else {
		b->sample += b->n;
		b->row = (s->rows - 1) / s->block_rows * s->block_rows;
		b->rows = s->rows - b->row;
	}
	if (b->sample >= s->n)
		return false;
	b->n = least(s->block_samples, s->n - b->sample);
	last = b->row + b->rows - 1;
	b->keys = s->steps;
	if (((const struct mu_attention *)op->attr)->causal && b->row / s->steps == last / s->steps)
		b->keys = last % s->steps + 1;
	return true;
}

/* Matrices of a block: of its queries, which begin at `queries` of all samples, or of their keys
 * or values; and of scores. */
static struct cuda_matrices rows_at(void *queries, size_t width, const struct attention_sizes *s,
				    const struct block *b)
{
	const size_t step = s->rows * s->d;

	return (struct cuda_matrices){(char *)queries +
					      (b->sample * s->kv * step + b->row * s->d) * width,
				      s->d, step, false};
}

static struct cuda_matrices keys_at(void *keys, size_t width, const struct attention_sizes *s,
				    const struct block *b)
{
	const size_t step = s->steps * s->d;

	return (struct cuda_matrices){(char *)keys + b->sample * s->kv * step * width, s->d, step,
				      false};
}

static struct cuda_matrices scores_at(void *scores, const struct block *b)
{
	return (struct cuda_matrices){scores, b->keys, b->rows * b->keys, false};
}

static struct cuda_matrices transposed(struct cuda_matrices m)
{
	m.transpose = true;
	return m;
}

static struct cuda_products products_of(const struct attention_sizes *s, const struct block *b,
					int c_type)
{
	return (struct cuda_products){
		.count = b->n * s->kv, .type = s->type, .c_type = c_type, .factor = 1};
}

/* a (rows, d) times b (keys, d) transposed, into scores. */
static enum mu_status score(struct cuda_device *d, const struct attention_sizes *s,
			    const struct block *b, struct cuda_products p)
{
	p.b = transposed(p.b);
	p.rows = b->rows;
	p.columns = b->keys;
	p.inner = s->d;
	return mu_cuda_multiply_many(d, &p);
}

static float scale_of(const struct attention_sizes *s)
{
	return (float)(1 / sqrt((double)s->d));
}

/* The arrays of a block, and its arguments of the kernels. */
struct parts {
	struct cuda_matrices q, k, v, y; /* y: of the output, or its gradient */
	struct cuda_attend args;
};

static struct parts parts_of(const struct mu_op *op, const struct attention_sizes *s,
			     const struct room *r, const struct block *b)
{
	const size_t width = mu_dtype_bytes((enum mu_dtype)s->type);
	const struct mu_attention *a = op->attr;
	const struct mu_batch *batch = op->batch;
	const uint32_t *draws = op->workspace;
	const bool has_ids = mu_cuda_attention_drops(op) && (batch->device_draws || batch->ids);

	return (struct parts){
		.q = rows_at(r->x, width, s, b),
		.k = keys_at(r->x + s->queries * width, width, s, b),
		.v = keys_at(r->x + (s->queries + s->keys) * width, width, s, b),
		.y = rows_at(r->y, width, s, b),
		.args = {.scores = r->scores,
			 .grads = r->grads,
			 .weights = r->weights,
			 .slopes = r->slopes,
			 .type = s->type,
			 .causal = a->causal,
			 .keys = b->keys,
			 .rows = b->rows,
			 .first = b->row,
			 .sample = b->sample,
			 .steps = s->steps,
			 .heads = s->heads,
			 .kv = s->kv,
			 .ids = has_ids ? draws + 1 : NULL,
			 .epochs = has_ids && batch->device_draws ? draws : NULL,
			 .seed = batch->seed,
			 .element = (uint64_t)op->index << ELEMENT_BITS,
			 .epoch = batch->epoch,
			 .purpose = MU_RANDOM_DROPOUT,
			 .p = mu_cuda_attention_drops(op) ? a->dropout : 0,
			 .n = b->n * b->rows * s->kv},
	};
}

/* ---- forward ---- */

/* Epoch and ids, for restore and backward: by then the batch's may be the next one's. Rows from
 * count on have undefined ids; their draws are not used. */
static enum mu_status keep_draws(struct cuda_device *d, const struct mu_op *op)
{
	const struct mu_batch *b = op->batch;
	uint32_t *draws = op->workspace;

	if (!mu_cuda_attention_drops(op) || (!b->ids && !b->device_draws))
		return MU_OK;
	if (b->device_draws)
		return mu_cuda_copy(d, draws, b->device_draws,
				    (op->inputs[0]->shape.dims[0] + 1) * sizeof *draws);
	return mu_cuda_copy(d, draws + 1, b->ids, b->count * sizeof *b->ids);
}

static enum mu_status attend_block(struct cuda_device *d, const struct mu_op *op,
				   const struct attention_sizes *s, const struct room *r,
				   const struct block *b)
{
	enum mu_status st = MU_OK;
	struct parts of = parts_of(op, s, r, b);
	struct cuda_products scores = products_of(s, b, CUDA_FLOAT32);
	struct cuda_products y = products_of(s, b, s->type);

	scores.a = of.q;
	scores.b = of.k;
	scores.c = scores_at(r->scores, b);
	scores.factor = scale_of(s);
	MU_TRY(score(d, s, b, scores));
	MU_TRY(mu_cuda_warps(d, CUDA_attend, of.args.n, &of.args));
	y.a = scores_at(r->weights, b);
	y.b = of.v;
	y.c = of.y;
	y.rows = b->rows;
	y.columns = s->d;
	y.inner = b->keys;
	MU_TRY(mu_cuda_multiply_many(d, &y));
out:
	return st;
}

static enum mu_status restore(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const struct room r = room_of(op, &s, op->scratch);
	struct block b = {.n = 0};

	if (((const struct attention *)op->impl)->fused)
		return mu_cuda_fused_forward(d, op);
	MU_TRY(mu_cuda_split_input(d, op, r.x));
	while (next_block(op, &s, &b))
		MU_TRY(attend_block(d, op, &s, &r, &b));
	MU_TRY(mu_cuda_join_output(d, op, r.y));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(keep_draws(d, op));
	MU_TRY(restore(d, op));
out:
	return st;
}

/* ---- backward ---- */

/* Gradients of a block's queries, and its part of those of keys and values. */
static enum mu_status backward_products(struct cuda_device *d, const struct attention_sizes *s,
					const struct room *r, const struct block *b,
					const struct parts *of)
{
	enum mu_status st = MU_OK;
	struct cuda_products q = products_of(s, b, CUDA_FLOAT32), k = q, v;

	q.a = scores_at(r->slopes, b);
	q.b = of->k;
	q.c = rows_at(r->dx, sizeof(float), s, b);
	q.rows = b->rows;
	q.columns = k.columns = s->d;
	q.inner = b->keys;
	q.factor = k.factor = scale_of(s);
	MU_TRY(mu_cuda_multiply_many(d, &q));
	k.a = transposed(scores_at(r->slopes, b));
	k.b = of->q;
	k.c = keys_at(r->dx + s->queries, sizeof(float), s, b);
	k.rows = b->keys;
	k.inner = b->rows;
	k.keep = b->row + b->rows < s->rows ? 1 : 0;
	MU_TRY(mu_cuda_multiply_many(d, &k));
	v = k;
	v.a = transposed(scores_at(r->weights, b));
	v.b = of->y;
	v.c = keys_at(r->dx + s->queries + s->keys, sizeof(float), s, b);
	v.factor = 1;
	MU_TRY(mu_cuda_multiply_many(d, &v));
out:
	return st;
}

static enum mu_status backward_block(struct cuda_device *d, const struct mu_op *op,
				     const struct attention_sizes *s, const struct room *r,
				     const struct block *b)
{
	enum mu_status st = MU_OK;
	struct parts of = parts_of(op, s, r, b);
	struct cuda_products scores = products_of(s, b, CUDA_FLOAT32), grads = scores;

	scores.a = of.q;
	scores.b = of.k;
	scores.c = scores_at(r->scores, b);
	scores.factor = scale_of(s);
	MU_TRY(score(d, s, b, scores));
	grads.a = of.y;
	grads.b = of.v;
	grads.c = scores_at(r->grads, b);
	MU_TRY(score(d, s, b, grads));
	MU_TRY(mu_cuda_warps(d, CUDA_attend_backward, of.args.n, &of.args));
	MU_TRY(backward_products(d, s, r, b, &of));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const struct room r = room_of(op, &s, op->scratch);
	struct block b = {.n = 0};

	if (!op->inputs[0]->needs_grad)
		goto out;
	if (((const struct attention *)op->impl)->fused)
		return mu_cuda_fused_backward(d, op);
	MU_TRY(mu_cuda_split_input(d, op, r.x));
	MU_TRY(mu_cuda_split_output(d, op, r.y));
	while (next_block(op, &s, &b))
		MU_TRY(backward_block(d, op, &s, &r, &b));
	MU_TRY(mu_cuda_join_input(d, op, r.dx, CUDA_FLOAT32));
out:
	return st;
}

const struct cuda_kind mu_cuda_attention = {
	.like = &mu_ref_attention,
	.inputs = CUDA_INPUTS_OF_DTYPE,
	.plan = plan,
	.forward = forward,
	.restore = restore,
	.backward = backward,
	.release = release,
};
