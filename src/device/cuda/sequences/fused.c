/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by kernels of cuDNN's that keep scores to themselves: see attention.h. */
#include "device/cuda/sequences/attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/base.h>

enum { EIGHT = 8 };
/* cuDNN 9.10 has mistakes, and up to 9.15 backward reads behind the last key where the number of
 * keys is no multiple of 128 (both as cuDNN's own frontend says). */
enum { LEAST_VERSION = 91600 };
#define MOST_BYTES ((int64_t)2 << 30)

/* Arrays of a graph; the last three are numbers of the host's. */
enum {
	QUERIES,
	KEYS,
	VALUES,
	OUTPUT,
	LOGARITHMS, /* of sums, of each query */
	OUTPUT_GRAD,
	QUERIES_GRAD,
	KEYS_GRAD,
	VALUES_GRAD,
	MEANS, /* D of attention.h, of each query */
	SCALE,
	LOWEST,
	ONE,
};

struct fused {
	struct dnn_plan plans[FUSED_WAYS];
	float scale, lowest, one;
	size_t parts; /* of the samples */
	bool split;
};

/* ---- tensors of a graph ---- */

struct shape {
	struct dnn_graph *g;
	const struct fused_shape *of;
};

/* Samples, heads, steps, d. transposed: steps last. */
static dnn_part rows(const struct shape *s, int number, int64_t heads, int64_t sample, int64_t head,
		     int64_t step, bool transposed)
{
	struct dnn_tensor t = {.type = s->of->type,
			       .number = number,
			       .sizes = {s->of->n, heads, s->of->steps, s->of->d},
			       .strides = {sample, head, step, 1}};

	if (transposed) {
		t.sizes[2] = s->of->d;
		t.sizes[3] = s->of->steps;
		t.strides[2] = 1;
		t.strides[3] = step;
	}
	return mu_dnn_tensor(s->g, &t);
}

/* Queries, keys or values, and their gradients. */
static dnn_part of_input(const struct shape *s, int number, int64_t heads, bool transposed)
{
	const int64_t d = s->of->d, row = (s->of->heads + 2 * s->of->kv) * d;

	if (s->of->split)
		return rows(s, number, heads, heads * s->of->steps * d, s->of->steps * d, d,
			    transposed);
	return rows(s, number, heads, s->of->steps * row, d, row, transposed);
}

static dnn_part of_output(const struct shape *s, int number)
{
	const int64_t row = s->of->heads * s->of->d;

	return rows(s, number, s->of->heads, s->of->steps * row, s->of->d, row, false);
}

/* Computed, one for each query and key. transposed: queries last. */
static dnn_part scores(const struct shape *s, cudnnDataType_t type, bool transposed)
{
	const int64_t n = s->of->steps, heads = s->of->heads;
	const struct dnn_tensor t = {
		.type = type,
		.number = DNN_COMPUTED,
		.sizes = {s->of->n, heads, n, n},
		.strides = {heads * n * n, n * n, transposed ? 1 : n, transposed ? n : 1}};

	return mu_dnn_tensor(s->g, &t);
}

/* One float for each query. */
static dnn_part per_query(const struct shape *s, int number)
{
	const int64_t n = s->of->steps, heads = s->of->heads;
	const struct dnn_tensor t = {.type = CUDNN_DATA_FLOAT,
				     .number = number,
				     .sizes = {s->of->n, heads, n, 1},
				     .strides = {heads * n, n, 1, 1}};

	return mu_dnn_tensor(s->g, &t);
}

static dnn_part number(const struct shape *s, int array)
{
	const struct dnn_tensor t = {.type = CUDNN_DATA_FLOAT,
				     .number = array,
				     .by_value = true,
				     .sizes = {1, 1, 1, 1},
				     .strides = {1, 1, 1, 1}};

	return mu_dnn_tensor(s->g, &t);
}

/* ---- operations ---- */

/* c = a b, of each sample and head. */
static void multiply(const struct shape *s, dnn_part a, dnn_part b, dnn_part c)
{
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	dnn_part how = mu_dnn_begin(s->g, CUDNN_BACKEND_MATMUL_DESCRIPTOR), op;

	mu_dnn_set(s->g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	mu_dnn_end(s->g, how, "a product");
	op = mu_dnn_begin(s->g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	mu_dnn_add_op(s->g, op, "a product");
}

/* Along the dimensions that y has not. */
static void reduce(const struct shape *s, cudnnReduceTensorOp_t what, dnn_part x, dnn_part y)
{
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	dnn_part how = mu_dnn_begin(s->g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR), op;

	mu_dnn_set(s->g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
		   &what);
	mu_dnn_set(s->g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	mu_dnn_end(s->g, how, "a reduction");
	op = mu_dnn_begin(s->g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	mu_dnn_add_op(s->g, op, "a reduction");
}

static void transpose(const struct shape *s, dnn_part x, dnn_part y)
{
	dnn_part op = mu_dnn_begin(s->g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	mu_dnn_set_part(s->g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	mu_dnn_add_op(s->g, op, "a transposition");
}

static dnn_part put(const struct shape *s, cudnnPointwiseMode_t mode, dnn_part x, dnn_part b,
		    dnn_part y)
{
	mu_dnn_pointwise(s->g, &(struct dnn_pointwise){.mode = mode, .x = x, .b = b, .y = y});
	return y;
}

/* Another array of scores. */
static dnn_part change(const struct shape *s, cudnnPointwiseMode_t mode, dnn_part x, dnn_part b)
{
	return put(s, mode, x, b, scores(s, CUDNN_DATA_FLOAT, false));
}

/* Where the query comes before the key: LOWEST. */
static dnn_part mask(const struct shape *s, dnn_part x)
{
	dnn_part index[2], sees = scores(s, CUDNN_DATA_BOOLEAN, false);
	dnn_part y = scores(s, CUDNN_DATA_FLOAT, false);

	for (int i = 0; i < 2; i++) {
		index[i] = scores(s, CUDNN_DATA_INT32, false);
		mu_dnn_pointwise(s->g, &(struct dnn_pointwise){.mode = CUDNN_POINTWISE_GEN_INDEX,
							       .x = x,
							       .y = index[i],
							       .axis = 2 + i});
	}
	mu_dnn_pointwise(s->g, &(struct dnn_pointwise){.mode = CUDNN_POINTWISE_CMP_GE,
						       .x = index[0],
						       .b = index[1],
						       .y = sees,
						       .of_truth = true});
	mu_dnn_pointwise(s->g, &(struct dnn_pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
						       .x = x,
						       .b = number(s, LOWEST),
						       .t = sees,
						       .y = y});
	return y;
}

/* q k' / sqrt d */
static dnn_part score(const struct shape *s, dnn_part q, dnn_part k_transposed, dnn_part scale)
{
	dnn_part x = scores(s, CUDNN_DATA_FLOAT, false);

	multiply(s, q, k_transposed, x);
	return change(s, CUDNN_POINTWISE_MUL, x, scale);
}

static void add_forward(const struct shape *s)
{
	dnn_part q = of_input(s, QUERIES, s->of->heads, false);
	dnn_part k = of_input(s, KEYS, s->of->kv, true);
	dnn_part most = per_query(s, DNN_COMPUTED), sum = per_query(s, DNN_COMPUTED), e, w;
	dnn_part x = score(s, q, k, number(s, SCALE));

	if (s->of->causal)
		x = mask(s, x);
	reduce(s, CUDNN_REDUCE_TENSOR_MAX, x, most);
	e = change(s, CUDNN_POINTWISE_SUB, x, most);
	e = change(s, CUDNN_POINTWISE_EXP, e, NULL);
	reduce(s, CUDNN_REDUCE_TENSOR_ADD, e, sum);
	put(s, CUDNN_POINTWISE_ADD, most,
	    put(s, CUDNN_POINTWISE_LOG, sum, NULL, per_query(s, DNN_COMPUTED)),
	    per_query(s, LOGARITHMS));
	w = put(s, CUDNN_POINTWISE_DIV, e, sum, scores(s, s->of->type, false));
	multiply(s, w, of_input(s, VALUES, s->of->kv, false), of_output(s, OUTPUT));
}

/* Sums over the queries of x times y's rows: gradients of keys or values. Heads that share keys
 * are added. */
static void gather(const struct shape *s, dnn_part x, dnn_part y, int array)
{
	const int64_t d = s->of->d, steps = s->of->steps, heads = s->of->heads;
	dnn_part turned = scores(s, s->of->type, true);
	dnn_part out = of_input(s, array, s->of->kv, false), all;

	transpose(s, x, turned);
	if (heads == s->of->kv) {
		multiply(s, turned, y, out);
		return;
	}
	all = rows(s, DNN_COMPUTED, heads, heads * steps * d, steps * d, d, false);
	multiply(s, turned, y, all);
	reduce(s, CUDNN_REDUCE_TENSOR_ADD, all, out);
}

/* D */
static dnn_part add_means(const struct shape *s, dnn_part dy, dnn_part y)
{
	const int64_t d = s->of->d, steps = s->of->steps, heads = s->of->heads;
	const struct dnn_tensor t = {.type = CUDNN_DATA_FLOAT,
				     .number = DNN_COMPUTED,
				     .sizes = {s->of->n, heads, steps, d},
				     .strides = {heads * steps * d, steps * d, heads * d, 1}};
	dnn_part product = mu_dnn_tensor(s->g, &t), sum = per_query(s, DNN_COMPUTED);

	put(s, CUDNN_POINTWISE_MUL, dy, y, product);
	reduce(s, CUDNN_REDUCE_TENSOR_ADD, product, sum);
	return put(s, CUDNN_POINTWISE_MUL, sum, number(s, ONE), per_query(s, MEANS));
}

static void add_backward(const struct shape *s)
{
	dnn_part q = of_input(s, QUERIES, s->of->heads, false);
	dnn_part k = of_input(s, KEYS, s->of->kv, true), v = of_input(s, VALUES, s->of->kv, true);
	dnn_part dy = of_output(s, OUTPUT_GRAD), scale = number(s, SCALE), w, ds, turned;
	dnn_part means = add_means(s, dy, of_output(s, OUTPUT));

	w = change(s, CUDNN_POINTWISE_SUB, score(s, q, k, scale), per_query(s, LOGARITHMS));
	if (s->of->causal)
		w = mask(s, w);
	w = change(s, CUDNN_POINTWISE_EXP, w, NULL);
	gather(s, w, dy, VALUES_GRAD);
	ds = scores(s, CUDNN_DATA_FLOAT, false);
	multiply(s, dy, v, ds);
	ds = change(s, CUDNN_POINTWISE_SUB, ds, means);
	ds = change(s, CUDNN_POINTWISE_MUL, ds, w);
	ds = change(s, CUDNN_POINTWISE_MUL, ds, scale);
	gather(s, ds, q, KEYS_GRAD);
	turned = of_input(s, DNN_COMPUTED, s->of->kv, false);
	transpose(s, k, turned);
	multiply(s, ds, turned, of_input(s, QUERIES_GRAD, s->of->heads, false));
}

enum mu_status mu_cuda_fused_plan(const struct cuda_api *api, const struct dnn_target *target,
				  const struct fused_shape *shape, enum fused_way way,
				  int64_t most_bytes, struct dnn_plan *out)
{
	const struct dnn_wish wish = {
		.type = shape->type, .engine = DNN_FIRST, .most_bytes = most_bytes};
	struct dnn_graph g;
	const struct shape s = {.g = &g, .of = shape};

	mu_dnn_graph(&g, api, out);
	(way == FUSED_FORWARD ? add_forward : add_backward)(&s);
	return mu_dnn_finish(&g, target, &wish);
}

/* ---- the operation ---- */

/* In the scratch. */
struct room {
	char *x, *dx;      /* rotated queries, keys and values, and gradients of all three */
	char *logarithms;  /* in inference */
	char *means, *own; /* own: cuDNN's */
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
	r.means = train ? mu_cuda_room(scratch, &r.nbytes, queries) : NULL;
	r.own = mu_cuda_room(scratch, &r.nbytes, (size_t)(forward > backward ? forward : backward));
	return r;
}

static bool can_fuse(const struct cuda_device *d, const struct mu_op *op,
		     const struct attention_sizes *s)
{
	return d->device->fused_attention && s->type != CUDA_FLOAT32 && s->d % EIGHT == 0 &&
	       !mu_cuda_attention_drops(op) && d->api.cudnnGetVersion() >= LEAST_VERSION;
}

/* Both ways, for a part of the samples. */
static enum mu_status plan_part(struct cuda_device *d, const struct mu_op *op, struct fused *f,
				bool *planned)
{
	enum mu_status st = MU_OK;
	const struct attention_sizes s = mu_cuda_attention_sizes(op);
	const struct mu_attention *a = op->attr;
	const struct dnn_target target = {.handle = d->dnn};
	const struct fused_shape shape = {.type = mu_cuda_dnn_type(op->inputs[0]->layout),
					  .n = (int64_t)(s.n / f->parts),
					  .steps = (int64_t)s.steps,
					  .heads = (int64_t)s.heads,
					  .kv = (int64_t)s.kv,
					  .d = (int64_t)s.d,
					  .causal = a->causal,
					  .split = f->split};
	const int n = op->phase == MU_PHASE_TRAIN ? FUSED_WAYS : FUSED_FORWARD + 1;

	*planned = true;
	for (int way = 0; way < n && *planned; way++) {
		mu_dnn_release(&d->api, &f->plans[way]);
		MU_TRY(mu_cuda_fused_plan(&d->api, &target, &shape, (enum fused_way)way, MOST_BYTES,
					  &f->plans[way]));
		*planned = f->plans[way].plan != NULL;
	}
out:
	return st;
}

static void tell(const struct mu_op *op, const struct fused *f)
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
	bool planned = false;

	if (!can_fuse(d, op, &s))
		return MU_OK;
	mu_cuda_keep_nvrtc(&d->api);
	f = calloc(1, sizeof *f);
	if (!f)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	*f = (struct fused){.scale = (float)(1 / sqrt((double)s.d)),
			    .lowest = -INFINITY,
			    .one = 1,
			    .split = own->angles != 0};
	for (f->parts = 1; f->parts <= s.n && !planned; f->parts++)
		if (s.n % f->parts == 0)
			MU_TRY(plan_part(d, op, f, &planned));
	f->parts--;
	if (!planned)
		goto out;
	tell(op, f);
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
			a.of[LOWEST] = &f->lowest;
		if (back) {
			place_heads(op, f, f->split ? r.dx : (const void *)in->grad, part,
				    a.of + QUERIES_GRAD);
			a.of[OUTPUT_GRAD] = (const char *)out->grad + part * nbytes;
			a.of[MEANS] = r.means + part * of_queries(&s, f);
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
