/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by kernels of cuDNN's that do not write scores to memory: see attention.h. */
#include "device/cuda/attention/attention.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/base.h>

enum { EIGHT = 8 };
#define MOST_BYTES ((int64_t)2 << 30)

struct fused {
	struct dnn_plan plans[FUSED_WAYS];
	float scale, masked, one;
	size_t parts; /* of the samples */
	bool split;
};

/* In the scratch. */
struct room {
	char *x, *dx;         /* rotated queries, keys and values, and gradients of all three */
	char *logarithms;     /* in inference */
	char *row_sums, *own; /* own: cuDNN's */
	size_t nbytes;
};

/* Bytes of a float for each query of a part. */
static size_t of_queries(const struct attention_sizes *s, const struct fused *f)
{
	return mu_cuda_round(s->n / f->parts * s->heads * s->steps * sizeof(float));
}

static struct room room_of(const struct mu_op *op, const struct fused *f, char *scratch)
{
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const size_t queries = f->parts * of_queries(&s, f);
	const size_t heads = (s.queries + 2 * s.keys) * mu_dtype_bytes((enum mu_dtype)s.type);
	const bool train = op->phase == MU_PHASE_TRAIN;
	const int64_t forward = f->plans[FUSED_FORWARD].nbytes;
	const int64_t backward = f->plans[FUSED_BACKWARD].nbytes;
	struct room r = {.nbytes = 0};

	r.x = f->split ? mu_cuda_room(scratch, &r.nbytes, heads) : NULL;
	r.dx = f->split && train ? mu_cuda_room(scratch, &r.nbytes, heads) : NULL;
	r.logarithms = train ? op->workspace : mu_cuda_room(scratch, &r.nbytes, queries);
	r.row_sums = train ? mu_cuda_room(scratch, &r.nbytes, queries) : NULL;
	r.own = mu_cuda_room(scratch, &r.nbytes, (size_t)(forward > backward ? forward : backward));
	return r;
}

/* Why not, or NULL. */
static const char *why_not(struct cuda_device *d, const struct mu_op *op,
			   const struct attention_sizes *s)
{
	const bool causal = ((const struct mu_attention *)op->attr)->causal;
	int major = 0;

	if (s->type == CUDA_FLOAT32)
		return "float32";
	if (mu_cuda_attention_drops(op))
		return "dropout";
	if (s->d % EIGHT != 0)
		return "the channels of a head are no multiple of 8";
	if (d->api.cudnnGetVersion() < FUSED_LEAST_CUDNN)
		return "cuDNN is older than 9.16";
	if (op->phase == MU_PHASE_TRAIN && (s->steps == 1 || (!causal && s->steps % 128 == 64)))
		return "cuDNN's gradients for this number of steps";
	if (d->api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					d->number) != CUDA_SUCCESS ||
	    (major != 8 && major != 9))
		return "the GPU's architecture";
	return NULL;
}

/* cuDNN's sizes are 32-bit, and a grid's are 16. */
static bool is_small(const struct attention_sizes *s, size_t n)
{
	return n * s->steps * s->channels <= INT32_MAX && n <= UINT16_MAX;
}

/* Both ways, for a part of the samples. Backward first: where cuDNN has none, it says so
 * at once. */
static enum mu_status plan_part(struct cuda_device *d, const struct mu_op *op, struct fused *f,
				bool *planned)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const struct mu_attention *a = op->attr;
	const struct fused_shape shape = {.type = mu_cuda_dnn_type(op->inputs[0]->layout),
					  .n = (int64_t)(s.n / f->parts),
					  .steps = (int64_t)s.steps,
					  .heads = (int64_t)s.heads,
					  .kv = (int64_t)s.kv,
					  .d = (int64_t)s.d,
					  .causal = a->causal,
					  .split = f->split};

	*planned = is_small(&s, s.n / f->parts);
	for (int way = op->phase == MU_PHASE_TRAIN ? FUSED_BACKWARD : FUSED_FORWARD;
	     way >= FUSED_FORWARD && *planned; way--) {
		MU_TRY(mu_cuda_keep_fused_plan(d, &shape, (enum fused_way)way, MOST_BYTES,
					       &f->plans[way]));
		*planned = f->plans[way].plan != NULL;
	}
out:
	return st;
}

/* Once a device, as a warning: the others are no news. */
static void log_refusal(struct cuda_device *d, const struct mu_op *op, const char *why)
{
	if (d->tells_products)
		mu_log_detail("%s is by products: %s", op->name, why);
	else
		mu_log_warn("fused attention was asked for, and %s is by products: %s", op->name,
			    why);
	d->tells_products = true;
}

static void log_plan(const struct mu_op *op, const struct fused *f)
{
	char back[32] = "";

	if (op->phase == MU_PHASE_TRAIN)
		snprintf(back, sizeof back, ", %d backward", (int)f->plans[FUSED_BACKWARD].engine);
	mu_log_detail("attention of %s: cuDNN's engine %d forward%s, %zu samples at a time",
		      op->name, (int)f->plans[FUSED_FORWARD].engine, back,
		      op->inputs[0]->shape.dims[0] / f->parts);
}

enum mu_status mu_cuda_plan_fused(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	struct attention *own = op->impl;
	struct fused *f = NULL;
	const char *why;
	bool planned = false;

	if (!d->device->fused_attention)
		return MU_OK;
	why = why_not(d, op, &s);
	f = calloc(1, sizeof *f);
	if (!f)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	*f = (struct fused){.scale = (float)(1 / sqrt((double)s.d)),
			    .masked = -INFINITY,
			    .one = 1,
			    .split = own->angles != 0};
	for (size_t parts = 1; parts <= s.n && !why && !planned; parts++)
		if (s.n % parts == 0) {
			f->parts = parts;
			MU_TRY(plan_part(d, op, f, &planned));
		}
	if (!planned) {
		log_refusal(d, op, why ? why : "cuDNN has no kernel");
		goto out;
	}
	log_plan(op, f);
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = f->parts * of_queries(&s, f);
	op->scratch_nbytes = room_of(op, f, NULL).nbytes;
	own->fused = f;
	f = NULL;
out:
	mu_cuda_release_fused(d, f);
	return st;
}

void mu_cuda_release_fused(struct cuda_device *d, struct fused *fused)
{
	for (int way = 0; fused && way < FUSED_WAYS; way++)
		mu_dnn_release(&d->api, &fused->plans[way]);
	free(fused);
}

/* Queries, keys and values of a part of the samples, or their gradients. */
static void place_heads(const struct mu_op *op, const struct fused *f, const void *from,
			size_t part, const void **to)
{
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const size_t width = mu_dtype_bytes((enum mu_dtype)s.type), n = s.n / f->parts;
	const size_t all[] = {s.heads * s.d, s.kv * s.d, s.kv * s.d}; /* channels */
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		const size_t first = part * n * s.steps * (f->split ? all[i] : s.channels);

		to[i] = (const char *)from + (at + first) * width;
		at += all[i] * (f->split ? s.n * s.steps : 1);
	}
}

static enum mu_status run(struct cuda_device *d, const struct mu_op *op, enum fused_way way)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	struct fused *f = ((struct attention *)op->impl)->fused;
	const struct room r = room_of(op, f, op->scratch);
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const size_t width = mu_dtype_bytes((enum mu_dtype)s.type);
	const size_t nbytes = s.n / f->parts * s.steps * s.heads * s.d * width;
	const bool back = way == FUSED_BACKWARD;

	for (size_t part = 0; part < f->parts; part++) {
		struct dnn_arrays a = {.scratch = r.own};

		place_heads(op, f, f->split ? r.x : (const void *)in->data, part, a.of + QUERIES);
		a.of[OUTPUT] = (const char *)out->data + part * nbytes;
		a.of[LOGARITHMS] = r.logarithms + part * of_queries(&s, f);
		a.of[SCALE] = &f->scale;
		if (((const struct mu_attention *)op->attr)->causal)
			a.of[MASKED] = &f->masked;
		if (back) {
			place_heads(op, f, f->split ? r.dx : (const void *)in->grad, part,
				    a.of + QUERIES_GRAD);
			a.of[OUTPUT_GRAD] = (const char *)out->grad + part * nbytes;
			a.of[ROW_SUMS] = r.row_sums + part * of_queries(&s, f);
			a.of[ONE] = &f->one;
		}
		MU_TRY(mu_dnn_run(d, &f->plans[way], &a));
	}
out:
	return st;
}

enum mu_status mu_cuda_fused_forward(struct cuda_device *d, const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct fused *f = ((const struct attention *)op->impl)->fused;

	if (f->split)
		MU_TRY(mu_cuda_split_input(d, op, room_of(op, f, op->scratch).x));
	MU_TRY(run(d, op, FUSED_FORWARD));
out:
	return st;
}

enum mu_status mu_cuda_fused_backward(struct cuda_device *d, const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct fused *f = ((const struct attention *)op->impl)->fused;
	const struct room r = room_of(op, f, op->scratch);

	if (f->split)
		MU_TRY(mu_cuda_split_input(d, op, r.x));
	MU_TRY(run(d, op, FUSED_BACKWARD));
	if (f->split)
		MU_TRY(mu_cuda_join_input(d, op, r.dx, mu_cuda_type(op->inputs[0])));
out:
	return st;
}
