/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 3.x: layouts are handles; a primitive is described in one step. */
#include "device/cpu/onednn/onednn.h"

#include <string.h>

/* The dimensions, that of the largest stride first. */
static void find_order(const struct cpu_md *md, int *order)
{
	for (int i = 0; i < md->ndims; i++) {
		int k = i;

		for (; k > 0 && md->strides[order[k - 1]] < md->strides[i]; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
}

/* A name's layout whose dimension i is dimension order[i] of md. */
static dnnl_status_t make_named(const struct cpu_md *md, dnnl_format_tag_t tag, const int *order,
				dnnl_memory_desc_t *native)
{
	dnnl_memory_desc_t sorted = NULL;
	dnnl_dims_t dims;
	dnnl_status_t status;

	for (int i = 0; i < md->ndims; i++)
		dims[i] = md->dims[order[i]];
	status = dnnl_memory_desc_create_with_tag(&sorted, md->ndims, dims, md->data_type, tag);
	if (status == dnnl_success)
		status = dnnl_memory_desc_permute_axes(native, sorted, order);
	dnnl_memory_desc_destroy(sorted);
	return status;
}

static dnnl_status_t make_whole(const struct cpu_md *md, dnnl_memory_desc_t *native)
{
	int order[DNNL_MAX_NDIMS];

	if (md->any)
		return dnnl_memory_desc_create_with_tag(native, md->ndims, md->dims, md->data_type,
							dnnl_format_tag_any);
	if (md->n_blocks == 0)
		return dnnl_memory_desc_create_with_strides(native, md->ndims, md->dims,
							    md->data_type, md->strides);
	if (!md->is_sorted)
		return dnnl_memory_desc_create_with_tag(native, md->ndims, md->dims, md->data_type,
							md->tag);
	find_order(md, order);
	return make_named(md, md->tag, order, native);
}

/* The handle of a layout, for the caller to destroy. */
static enum mu_status to_native(const struct cpu_md *md, dnnl_memory_desc_t *native)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t whole = NULL;

	*native = NULL;
	CPU_DNNL(make_whole(md, &whole));
	if (md->is_part) {
		CPU_DNNL(dnnl_memory_desc_create_submemory(native, whole, md->part_dims,
							   md->part_at));
	} else {
		*native = whole;
		whole = NULL;
	}
out:
	dnnl_memory_desc_destroy(whole);
	return st;
}

static dnnl_status_t copy_dims(const_dnnl_memory_desc_t native, dnnl_query_t what, int n,
			       dnnl_dim_t *to)
{
	const dnnl_dims_t *from = NULL;
	dnnl_status_t status = n > 0 ? dnnl_memory_desc_query(native, what, &from) : dnnl_success;

	if (status == dnnl_success && n > 0)
		memcpy(to, *from, (size_t)n * sizeof *to);
	return status;
}

/* All but the name. */
static enum mu_status from_native(const_dnnl_memory_desc_t native, struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	dnnl_format_kind_t kind = dnnl_format_kind_undef;

	*md = (struct cpu_md){.ndims = 0};
	if (native)
		CPU_DNNL(dnnl_memory_desc_query(native, dnnl_query_ndims_s32, &md->ndims));
	if (md->ndims == 0)
		goto out;
	CPU_DNNL(dnnl_memory_desc_query(native, dnnl_query_format_kind, &kind));
	if (kind != dnnl_blocked)
		MU_FAIL(MU_ERR_DEVICE, "oneDNN chose a layout of a kind that Muster cannot hold");
	CPU_DNNL(dnnl_memory_desc_query(native, dnnl_query_data_type, &md->data_type));
	CPU_DNNL(copy_dims(native, dnnl_query_dims, md->ndims, md->dims));
	CPU_DNNL(copy_dims(native, dnnl_query_padded_dims, md->ndims, md->padded_dims));
	CPU_DNNL(copy_dims(native, dnnl_query_strides, md->ndims, md->strides));
	CPU_DNNL(dnnl_memory_desc_query(native, dnnl_query_inner_nblks_s32, &md->n_blocks));
	CPU_DNNL(copy_dims(native, dnnl_query_inner_blks, md->n_blocks, md->blocks));
	CPU_DNNL(copy_dims(native, dnnl_query_inner_idxs, md->n_blocks, md->blocked));
out:
	return st;
}

/* Does md, with its name, give this layout? */
static bool is_named(const_dnnl_memory_desc_t native, const struct cpu_md *md)
{
	dnnl_memory_desc_t named = NULL;
	bool same = make_whole(md, &named) == dnnl_success && dnnl_memory_desc_equal(named, native);

	dnnl_memory_desc_destroy(named);
	return same;
}

/* The library tells no names, so all are tried, and then all with the dimensions sorted. */
static bool find_name(const_dnnl_memory_desc_t native, struct cpu_md *md)
{
	for (int sorted = 0; sorted < 2; sorted++)
		for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; tag++) {
			md->is_sorted = sorted;
			md->tag = (dnnl_format_tag_t)tag;
			if (is_named(native, md))
				return true;
		}
	return false;
}

enum mu_status mu_dnnl_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	const_dnnl_memory_desc_t native = dnnl_primitive_desc_query_md(pd, what, 0);

	MU_TRY(from_native(native, md));
	if (md->n_blocks > 0 && !find_name(native, md))
		MU_FAIL(MU_ERR_DEVICE, "oneDNN chose a layout that has no name");
out:
	return st;
}

size_t mu_dnnl_nbytes(const struct cpu_md *md)
{
	dnnl_dim_t largest = md->ndims > 0 ? 1 : 0;
	dnnl_dim_t block = 1;

	for (int i = 0; i < md->n_blocks; i++)
		block *= md->blocks[i];
	for (int d = 0; d < md->ndims; d++) {
		dnnl_dim_t n = md->padded_dims[d];

		for (int i = 0; i < md->n_blocks; i++)
			n /= md->blocked[i] == d ? md->blocks[i] : 1;
		largest = n * md->strides[d] > largest ? n * md->strides[d] : largest;
	}
	largest = largest > 0 && largest < block ? block : largest;
	return (size_t)largest * dnnl_data_type_size(md->data_type);
}

enum mu_status mu_dnnl_memory(dnnl_engine_t engine, const struct cpu_md *md, void *data,
			      dnnl_memory_t *memory)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t native = NULL;

	MU_TRY(to_native(md, &native));
	CPU_DNNL(dnnl_memory_create(memory, native, engine, data));
out:
	dnnl_memory_desc_destroy(native);
	return st;
}

/* ---- primitives ---- */

/* A request and its layouts as the library has them. */
struct request {
	const struct cpu_request *r;
	dnnl_engine_t engine;
	const_dnnl_primitive_attr_t attr;
	dnnl_memory_desc_t src, weights, bias, dst;
};

static dnnl_status_t convolution(const struct request *q, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_convolution_backward_data_primitive_desc_create(
			pd, q->engine, r->algorithm, q->src, q->weights, q->dst, r->stride,
			r->dilate, r->pad_left, r->pad_right, r->hint, q->attr);
	if (r->prop == dnnl_backward_weights)
		return dnnl_convolution_backward_weights_primitive_desc_create(
			pd, q->engine, r->algorithm, q->src, q->weights, q->bias, q->dst, r->stride,
			r->dilate, r->pad_left, r->pad_right, r->hint, q->attr);
	return dnnl_convolution_forward_primitive_desc_create(
		pd, q->engine, r->prop, r->algorithm, q->src, q->weights, q->bias, q->dst,
		r->stride, r->dilate, r->pad_left, r->pad_right, q->attr);
}

static dnnl_status_t inner_product(const struct request *q, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_inner_product_backward_data_primitive_desc_create(
			pd, q->engine, q->src, q->weights, q->dst, r->hint, q->attr);
	if (r->prop == dnnl_backward_weights)
		return dnnl_inner_product_backward_weights_primitive_desc_create(
			pd, q->engine, q->src, q->weights, q->bias, q->dst, r->hint, q->attr);
	return dnnl_inner_product_forward_primitive_desc_create(
		pd, q->engine, r->prop, q->src, q->weights, q->bias, q->dst, q->attr);
}

static dnnl_status_t pooling(const struct request *q, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_pooling_backward_primitive_desc_create(
			pd, q->engine, r->algorithm, q->src, q->dst, r->stride, r->kernel,
			r->dilate, r->pad_left, r->pad_right, r->hint, q->attr);
	return dnnl_pooling_forward_primitive_desc_create(
		pd, q->engine, r->prop, r->algorithm, q->src, q->dst, r->stride, r->kernel,
		r->dilate, r->pad_left, r->pad_right, q->attr);
}

static dnnl_status_t batch_norm(const struct request *q, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward)
		return dnnl_batch_normalization_backward_primitive_desc_create(
			pd, q->engine, r->prop, q->src, q->src, q->src, r->eps, r->flags, r->hint,
			q->attr);
	return dnnl_batch_normalization_forward_primitive_desc_create(
		pd, q->engine, r->prop, q->src, q->src, r->eps, r->flags, q->attr);
}

static dnnl_status_t lrn(const struct request *q, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_lrn_backward_primitive_desc_create(pd, q->engine, r->algorithm, q->src,
							       q->src, q->src, r->size, r->alpha,
							       r->beta, r->k, r->hint, q->attr);
	return dnnl_lrn_forward_primitive_desc_create(pd, q->engine, r->prop, r->algorithm, q->src,
						      q->src, r->size, r->alpha, r->beta, r->k,
						      q->attr);
}

static dnnl_status_t eltwise(const struct request *q, dnnl_primitive_desc_t *pd)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_eltwise_backward_primitive_desc_create(pd, q->engine, r->algorithm,
								   q->src, q->src, q->src,
								   r->alpha, 0, r->hint, q->attr);
	return dnnl_eltwise_forward_primitive_desc_create(pd, q->engine, r->prop, r->algorithm,
							  q->src, q->src, r->alpha, 0, q->attr);
}

static dnnl_status_t binary(const struct request *q, dnnl_primitive_desc_t *pd)
{
	return dnnl_binary_primitive_desc_create(pd, q->engine, q->r->algorithm, q->src, q->weights,
						 q->dst, q->attr);
}

static dnnl_status_t matmul(const struct request *q, dnnl_primitive_desc_t *pd)
{
	return dnnl_matmul_primitive_desc_create(pd, q->engine, q->src, q->weights, NULL, q->dst,
						 q->attr);
}

static dnnl_status_t (*const kinds[CPU_KINDS])(const struct request *q,
					       dnnl_primitive_desc_t *pd) = {
	[CPU_CONVOLUTION] = convolution,
	[CPU_INNER_PRODUCT] = inner_product,
	[CPU_POOLING] = pooling,
	[CPU_BATCH_NORM] = batch_norm,
	[CPU_LRN] = lrn,
	[CPU_ELTWISE] = eltwise,
	[CPU_BINARY] = binary,
	[CPU_MATMUL] = matmul,
};

dnnl_status_t mu_dnnl_append_eltwise(dnnl_post_ops_t post, dnnl_alg_kind_t algorithm)
{
	return dnnl_post_ops_append_eltwise(post, algorithm, 0, 0);
}

/* The library's first kernel with the name that was asked for; *pd NULL: there is none. */
static enum mu_status find_kernel(const struct request *q, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	const char *name = q->r->kernel_name;
	dnnl_status_t found = kinds[q->r->kind](q, pd);

	while (found == dnnl_success && name && !mu_dnnl_is_kernel(*pd, name))
		found = dnnl_primitive_desc_next_impl(*pd);
	if (found == dnnl_success)
		goto out;
	dnnl_primitive_desc_destroy(*pd);
	*pd = NULL;
	if (found != dnnl_unimplemented && found != dnnl_last_impl_reached)
		CPU_DNNL(found);
out:
	return st;
}

static enum mu_status native_of(const struct cpu_md *md, dnnl_memory_desc_t *native)
{
	return md ? to_native(md, native) : MU_OK;
}

/* Weights in a layout that has no name, such as inner products of blocked images choose. */
static bool has_odd_weights(const_dnnl_primitive_desc_t pd, const struct cpu_request *request)
{
	const bool is_grad = request->prop == dnnl_backward_weights;
	const_dnnl_memory_desc_t native = dnnl_primitive_desc_query_md(
		pd, is_grad ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
	struct cpu_md md;

	return from_native(native, &md) == MU_OK && md.n_blocks > 0 && !find_name(native, &md);
}

/* The same with weights in the layout of src, and with the same types. */
static enum mu_status find_with_weights_like_src(struct request *q, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	const struct cpu_md *weights = q->r->weights;

	dnnl_primitive_desc_destroy(*pd);
	*pd = NULL;
	dnnl_memory_desc_destroy(q->weights);
	q->weights = NULL;
	CPU_DNNL(dnnl_memory_desc_create_with_tag(&q->weights, weights->ndims, weights->dims,
						  weights->data_type, q->r->src->tag));
	MU_TRY(find_kernel(q, pd));
out:
	return st;
}

enum mu_status mu_dnnl_describe(dnnl_engine_t engine, const struct cpu_request *request,
				dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_attr_t attr = NULL;
	struct request q = {.r = request, .engine = engine};

	*pd = NULL;
	MU_TRY(mu_dnnl_attributes(request->post, &attr));
	q.attr = attr;
	MU_TRY(native_of(request->src, &q.src));
	MU_TRY(native_of(request->weights, &q.weights));
	MU_TRY(native_of(request->bias, &q.bias));
	MU_TRY(native_of(request->dst, &q.dst));
	MU_TRY(find_kernel(&q, pd));
	if (*pd && request->weights && request->weights->any && has_odd_weights(*pd, request))
		MU_TRY(find_with_weights_like_src(&q, pd));
out:
	dnnl_memory_desc_destroy(q.src);
	dnnl_memory_desc_destroy(q.weights);
	dnnl_memory_desc_destroy(q.bias);
	dnnl_memory_desc_destroy(q.dst);
	dnnl_primitive_attr_destroy(attr);
	return st;
}

enum mu_status mu_dnnl_reorder(dnnl_engine_t engine, const struct cpu_md *from,
			       const struct cpu_md *to, const_dnnl_primitive_attr_t attr,
			       dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t a = NULL, b = NULL;

	MU_TRY(to_native(from, &a));
	MU_TRY(to_native(to, &b));
	CPU_DNNL(dnnl_reorder_primitive_desc_create(pd, a, engine, b, engine, attr));
out:
	dnnl_memory_desc_destroy(a);
	dnnl_memory_desc_destroy(b);
	return st;
}

/* The layouts of n tensors, and behind them that of the result. */
struct many {
	dnnl_memory_desc_t md[CPU_MAX_PARTS + 1];
	int n;
};

static enum mu_status many_native(struct many *many, int n, const struct cpu_md *from,
				  const struct cpu_md *to)
{
	enum mu_status st = MU_OK;

	for (; many->n < n; many->n++)
		MU_TRY(to_native(&from[many->n], &many->md[many->n]));
	MU_TRY(to_native(to, &many->md[n]));
out:
	return st;
}

static void release_many(struct many *many)
{
	for (int i = 0; i <= many->n; i++)
		dnnl_memory_desc_destroy(many->md[i]);
}

enum mu_status mu_dnnl_sum(dnnl_engine_t engine, int n, const struct cpu_md *from,
			   const struct cpu_md *to, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	struct many many = {.n = 0};
	float scales[CPU_MAX_PARTS];

	for (int i = 0; i < n; i++)
		scales[i] = 1;
	MU_TRY(many_native(&many, n, from, to));
	CPU_DNNL(dnnl_sum_primitive_desc_create(pd, engine, many.md[n], n, scales,
						(const_dnnl_memory_desc_t const *)many.md, NULL));
out:
	release_many(&many);
	return st;
}

enum mu_status mu_dnnl_concat(dnnl_engine_t engine, int n, const struct cpu_md *from,
			      const struct cpu_md *to, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	struct many many = {.n = 0};

	MU_TRY(many_native(&many, n, from, to));
	CPU_DNNL(dnnl_concat_primitive_desc_create(
		pd, engine, many.md[n], n, 1, (const_dnnl_memory_desc_t const *)many.md, NULL));
out:
	release_many(&many);
	return st;
}

enum mu_status mu_dnnl_algorithm(const_dnnl_primitive_desc_t pd, dnnl_alg_kind_t *algorithm)
{
	enum mu_status st = MU_OK;

	CPU_DNNL(dnnl_primitive_desc_query(pd, dnnl_query_alg_kind, 0, algorithm));
out:
	return st;
}

bool mu_dnnl_backward_has_shift(void)
{
	return false;
}

bool mu_dnnl_has_winograd(void)
{
	return false;
}
