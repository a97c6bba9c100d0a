/* SPDX-License-Identifier: Apache-2.0 */
/* Fused attention as a graph of cuDNN's, and its plans: see attention.h. */
#include "device/cuda/attention/attention.h"

#include <stdlib.h>

#include <muster/base.h>

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
			       .ndims = 4,
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
		.ndims = 4,
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
				     .ndims = 4,
				     .number = number,
				     .sizes = {s->of->n, heads, n, 1},
				     .strides = {heads * n, n, 1, 1}};

	return mu_dnn_tensor(s->g, &t);
}

static dnn_part by_value(const struct shape *s, int array)
{
	const struct dnn_tensor t = {.type = CUDNN_DATA_FLOAT,
				     .ndims = 4,
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

static dnn_part add_pointwise(const struct shape *s, cudnnPointwiseMode_t mode, dnn_part x,
			      dnn_part b, dnn_part y)
{
	mu_dnn_pointwise(s->g, &(struct dnn_pointwise){.mode = mode, .x = x, .b = b, .y = y});
	return y;
}

/* Another array of scores. */
static dnn_part add_scores(const struct shape *s, cudnnPointwiseMode_t mode, dnn_part x, dnn_part b)
{
	return add_pointwise(s, mode, x, b, scores(s, CUDNN_DATA_FLOAT, false));
}

/* Where the query comes before the key: MASKED. */
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
						       .b = by_value(s, MASKED),
						       .t = sees,
						       .y = y});
	return y;
}

/* q k' / sqrt d */
static dnn_part score(const struct shape *s, dnn_part q, dnn_part k_transposed, dnn_part scale)
{
	dnn_part x = scores(s, CUDNN_DATA_FLOAT, false);

	multiply(s, q, k_transposed, x);
	return add_scores(s, CUDNN_POINTWISE_MUL, x, scale);
}

static void add_forward(const struct shape *s)
{
	dnn_part q = of_input(s, QUERIES, s->of->heads, false);
	dnn_part k = of_input(s, KEYS, s->of->kv, true);
	dnn_part most = per_query(s, DNN_COMPUTED), sum = per_query(s, DNN_COMPUTED), e, w;
	dnn_part x = score(s, q, k, by_value(s, SCALE));

	if (s->of->causal)
		x = mask(s, x);
	reduce(s, CUDNN_REDUCE_TENSOR_MAX, x, most);
	e = add_scores(s, CUDNN_POINTWISE_SUB, x, most);
	e = add_scores(s, CUDNN_POINTWISE_EXP, e, NULL);
	reduce(s, CUDNN_REDUCE_TENSOR_ADD, e, sum);
	add_pointwise(s, CUDNN_POINTWISE_ADD, most,
		      add_pointwise(s, CUDNN_POINTWISE_LOG, sum, NULL, per_query(s, DNN_COMPUTED)),
		      per_query(s, LOGARITHMS));
	w = add_pointwise(s, CUDNN_POINTWISE_DIV, e, sum, scores(s, s->of->type, false));
	multiply(s, w, of_input(s, VALUES, s->of->kv, false), of_output(s, OUTPUT));
}

/* Sums over the queries of x times y's rows: gradients of keys or values. Heads that share keys
 * are added. */
static void add_transposed_product(const struct shape *s, dnn_part x, dnn_part y, int array)
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
static dnn_part add_row_sums(const struct shape *s, dnn_part dy, dnn_part y)
{
	const int64_t d = s->of->d, steps = s->of->steps, heads = s->of->heads;
	const struct dnn_tensor t = {.type = CUDNN_DATA_FLOAT,
				     .ndims = 4,
				     .number = DNN_COMPUTED,
				     .sizes = {s->of->n, heads, steps, d},
				     .strides = {heads * steps * d, steps * d, heads * d, 1}};
	dnn_part product = mu_dnn_tensor(s->g, &t), sum = per_query(s, DNN_COMPUTED);

	add_pointwise(s, CUDNN_POINTWISE_MUL, dy, y, product);
	reduce(s, CUDNN_REDUCE_TENSOR_ADD, product, sum);
	return add_pointwise(s, CUDNN_POINTWISE_MUL, sum, by_value(s, ONE), per_query(s, ROW_SUMS));
}

static void add_backward(const struct shape *s)
{
	dnn_part q = of_input(s, QUERIES, s->of->heads, false);
	dnn_part k = of_input(s, KEYS, s->of->kv, true), v = of_input(s, VALUES, s->of->kv, true);
	dnn_part dy = of_output(s, OUTPUT_GRAD), scale = by_value(s, SCALE), w, ds, turned;
	dnn_part row_sums = add_row_sums(s, dy, of_output(s, OUTPUT));

	w = add_scores(s, CUDNN_POINTWISE_SUB, score(s, q, k, scale), per_query(s, LOGARITHMS));
	if (s->of->causal)
		w = mask(s, w);
	w = add_scores(s, CUDNN_POINTWISE_EXP, w, NULL);
	add_transposed_product(s, w, dy, VALUES_GRAD);
	ds = scores(s, CUDNN_DATA_FLOAT, false);
	multiply(s, dy, v, ds);
	ds = add_scores(s, CUDNN_POINTWISE_SUB, ds, row_sums);
	ds = add_scores(s, CUDNN_POINTWISE_MUL, ds, w);
	ds = add_scores(s, CUDNN_POINTWISE_MUL, ds, scale);
	add_transposed_product(s, ds, q, KEYS_GRAD);
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

/* ---- plans, which the device keeps ---- */

struct fused_plan {
	struct fused_plan *next;
	struct fused_shape shape;
	enum fused_way way;
	struct dnn_plan plan; /* none: cuDNN has none */
};

static bool is_same(const struct fused_shape *a, const struct fused_shape *b)
{
	return a->type == b->type && a->n == b->n && a->steps == b->steps && a->heads == b->heads &&
	       a->kv == b->kv && a->d == b->d && a->causal == b->causal && a->split == b->split;
}

enum mu_status mu_cuda_keep_fused_plan(struct cuda_device *d, const struct fused_shape *shape,
				       enum fused_way way, int64_t most_bytes, struct dnn_plan *out)
{
	enum mu_status st = MU_OK;
	const struct dnn_target target = {.handle = d->dnn};
	struct fused_plan *p = d->fused_plans;

	while (p && (p->way != way || !is_same(&p->shape, shape)))
		p = p->next;
	if (!p) {
		mu_cuda_keep_nvrtc(&d->api);
		p = calloc(1, sizeof *p);
		if (!p)
			MU_FAIL(MU_ERR_MEMORY, "no memory for a plan of attention");
		*p = (struct fused_plan){.next = d->fused_plans, .shape = *shape, .way = way};
		d->fused_plans = p;
		MU_TRY(mu_cuda_fused_plan(&d->api, &target, shape, way, most_bytes, &p->plan));
	}
	*out = mu_dnn_lend(&p->plan);
out:
	return st;
}

void mu_cuda_free_fused_plans(struct cuda_device *d)
{
	while (d->fused_plans) {
		struct fused_plan *p = d->fused_plans;

		d->fused_plans = p->next;
		mu_dnn_release(&d->api, &p->plan);
		free(p);
	}
}
