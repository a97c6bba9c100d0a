/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 2.6: layouts are structs; a primitive is described in two steps. */
#include "device/cpu/onednn/onednn.h"

#include <string.h>

static void to_native(const struct cpu_md *md, dnnl_memory_desc_t *native)
{
	dnnl_blocking_desc_t *b = &native->format_desc.blocking;
	dnnl_memory_desc_t whole;

	if (md->any || md->ndims == 0) {
		dnnl_memory_desc_init_by_tag(native, md->ndims, md->dims, md->data_type,
					     dnnl_format_tag_any);
		return;
	}
	*native = (dnnl_memory_desc_t){
		.ndims = md->ndims, .data_type = md->data_type, .format_kind = dnnl_blocked};
	memcpy(native->dims, md->dims, sizeof md->dims);
	memcpy(native->padded_dims, md->padded_dims, sizeof md->padded_dims);
	memcpy(b->strides, md->strides, sizeof md->strides);
	b->inner_nblks = md->n_blocks;
	memcpy(b->inner_blks, md->blocks, sizeof md->blocks);
	memcpy(b->inner_idxs, md->blocked, sizeof md->blocked);
	if (!md->is_part)
		return;
	whole = *native;
	dnnl_memory_desc_init_submemory(native, &whole, md->part_dims, md->part_at);
}

/* The same, NULL for NULL. */
static const dnnl_memory_desc_t *native_of(const struct cpu_md *md, dnnl_memory_desc_t *native)
{
	if (!md)
		return NULL;
	to_native(md, native);
	return native;
}

enum mu_status mu_dnnl_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	const dnnl_memory_desc_t *native = dnnl_primitive_desc_query_md(pd, what, 0);
	const dnnl_blocking_desc_t *b;

	*md = (struct cpu_md){.ndims = 0};
	if (!native || native->ndims == 0)
		goto out;
	if (native->format_kind != dnnl_blocked || native->extra.flags != 0)
		MU_FAIL(MU_ERR_DEVICE, "oneDNN chose a layout of a kind that Muster cannot hold");
	b = &native->format_desc.blocking;
	md->ndims = native->ndims;
	md->data_type = native->data_type;
	memcpy(md->dims, native->dims, sizeof md->dims);
	memcpy(md->padded_dims, native->padded_dims, sizeof md->padded_dims);
	memcpy(md->strides, b->strides, sizeof md->strides);
	md->n_blocks = b->inner_nblks;
	memcpy(md->blocks, b->inner_blks, sizeof md->blocks);
	memcpy(md->blocked, b->inner_idxs, sizeof md->blocked);
out:
	return st;
}

size_t mu_dnnl_nbytes(const struct cpu_md *md)
{
	dnnl_memory_desc_t native;

	if (md->ndims == 0)
		return 0;
	to_native(md, &native);
	return dnnl_memory_desc_get_size(&native);
}

enum mu_status mu_dnnl_memory(dnnl_engine_t engine, const struct cpu_md *md, void *data,
			      dnnl_memory_t *memory)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t native;

	to_native(md, &native);
	CPU_DNNL(dnnl_memory_create(memory, &native, engine, data));
out:
	return st;
}

/* ---- primitives ---- */

union desc {
	dnnl_convolution_desc_t convolution;
	dnnl_inner_product_desc_t inner_product;
	dnnl_pooling_desc_t pooling;
	dnnl_batch_normalization_desc_t batch_norm;
	dnnl_lrn_desc_t lrn;
	dnnl_eltwise_desc_t eltwise;
	dnnl_binary_desc_t binary;
	dnnl_matmul_desc_t matmul;
};

/* A request and its layouts as the library has them. */
struct request {
	const struct cpu_request *r;
	const dnnl_memory_desc_t *src, *weights, *bias, *dst;
};

static dnnl_status_t convolution(const struct request *q, union desc *d)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_dilated_convolution_backward_data_desc_init(
			&d->convolution, r->algorithm, q->src, q->weights, q->dst, r->stride,
			r->dilate, r->pad_left, r->pad_right);
	if (r->prop == dnnl_backward_weights)
		return dnnl_dilated_convolution_backward_weights_desc_init(
			&d->convolution, r->algorithm, q->src, q->weights, q->bias, q->dst,
			r->stride, r->dilate, r->pad_left, r->pad_right);
	return dnnl_dilated_convolution_forward_desc_init(
		&d->convolution, r->prop, r->algorithm, q->src, q->weights, q->bias, q->dst,
		r->stride, r->dilate, r->pad_left, r->pad_right);
}

static dnnl_status_t inner_product(const struct request *q, union desc *d)
{
	if (q->r->prop == dnnl_backward_data)
		return dnnl_inner_product_backward_data_desc_init(&d->inner_product, q->src,
								  q->weights, q->dst);
	if (q->r->prop == dnnl_backward_weights)
		return dnnl_inner_product_backward_weights_desc_init(&d->inner_product, q->src,
								     q->weights, q->bias, q->dst);
	return dnnl_inner_product_forward_desc_init(&d->inner_product, q->r->prop, q->src,
						    q->weights, q->bias, q->dst);
}

static dnnl_status_t pooling(const struct request *q, union desc *d)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_pooling_backward_desc_init(&d->pooling, r->algorithm, q->src, q->dst,
						       r->stride, r->kernel, r->pad_left,
						       r->pad_right);
	return dnnl_pooling_forward_desc_init(&d->pooling, r->prop, r->algorithm, q->src, q->dst,
					      r->stride, r->kernel, r->pad_left, r->pad_right);
}

static dnnl_status_t batch_norm(const struct request *q, union desc *d)
{
	if (q->r->prop == dnnl_backward)
		return dnnl_batch_normalization_backward_desc_init(
			&d->batch_norm, dnnl_backward, q->src, q->src, q->r->eps, q->r->flags);
	return dnnl_batch_normalization_forward_desc_init(&d->batch_norm, q->r->prop, q->src,
							  q->r->eps, q->r->flags);
}

static dnnl_status_t lrn(const struct request *q, union desc *d)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_lrn_backward_desc_init(&d->lrn, r->algorithm, q->src, q->src, r->size,
						   r->alpha, r->beta, r->k);
	return dnnl_lrn_forward_desc_init(&d->lrn, r->prop, r->algorithm, q->src, r->size, r->alpha,
					  r->beta, r->k);
}

static dnnl_status_t eltwise(const struct request *q, union desc *d)
{
	const struct cpu_request *r = q->r;

	if (r->prop == dnnl_backward_data)
		return dnnl_eltwise_backward_desc_init(&d->eltwise, r->algorithm, q->src, q->src,
						       r->alpha, 0);
	return dnnl_eltwise_forward_desc_init(&d->eltwise, r->prop, r->algorithm, q->src, r->alpha,
					      0);
}

static dnnl_status_t binary(const struct request *q, union desc *d)
{
	return dnnl_binary_desc_init(&d->binary, q->r->algorithm, q->src, q->weights, q->dst);
}

static dnnl_status_t matmul(const struct request *q, union desc *d)
{
	return dnnl_matmul_desc_init(&d->matmul, q->src, q->weights, NULL, q->dst);
}

static dnnl_status_t (*const kinds[CPU_KINDS])(const struct request *q, union desc *d) = {
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
	return dnnl_post_ops_append_eltwise(post, 1, algorithm, 0, 0);
}

/* The library's first kernel with this in its name; *pd NULL: there is none. */
static enum mu_status find_kernel(dnnl_engine_t engine, const struct cpu_request *request,
				  const union desc *desc, const_dnnl_primitive_attr_t attr,
				  dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_iterator_t kernels = NULL;
	dnnl_status_t found =
		dnnl_primitive_desc_iterator_create(&kernels, desc, attr, engine, request->hint);

	for (; found == dnnl_success; found = dnnl_primitive_desc_iterator_next(kernels)) {
		*pd = dnnl_primitive_desc_iterator_fetch(kernels);
		if (!*pd)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of an operation");
		if (!request->kernel_name || mu_dnnl_is_kernel(*pd, request->kernel_name))
			goto out;
		dnnl_primitive_desc_destroy(*pd);
		*pd = NULL;
	}
	if (found != dnnl_unimplemented && found != dnnl_iterator_ends)
		CPU_DNNL(found);
out:
	dnnl_primitive_desc_iterator_destroy(kernels);
	return st;
}

enum mu_status mu_dnnl_describe(dnnl_engine_t engine, const struct cpu_request *request,
				dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t src, weights, bias, dst;
	const struct request q = {request, native_of(request->src, &src),
				  native_of(request->weights, &weights),
				  native_of(request->bias, &bias), native_of(request->dst, &dst)};
	dnnl_primitive_attr_t attr = NULL;
	union desc desc;

	*pd = NULL;
	MU_TRY(mu_dnnl_attributes(request->post, &attr));
	CPU_DNNL(kinds[request->kind](&q, &desc));
	MU_TRY(find_kernel(engine, request, &desc, attr, pd));
out:
	dnnl_primitive_attr_destroy(attr);
	return st;
}

enum mu_status mu_dnnl_reorder(dnnl_engine_t engine, const struct cpu_md *from,
			       const struct cpu_md *to, const_dnnl_primitive_attr_t attr,
			       dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t a, b;

	to_native(from, &a);
	to_native(to, &b);
	CPU_DNNL(dnnl_reorder_primitive_desc_create(pd, &a, engine, &b, engine, attr));
out:
	return st;
}

enum mu_status mu_dnnl_sum(dnnl_engine_t engine, int n, const struct cpu_md *from,
			   const struct cpu_md *to, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t all[CPU_MAX_PARTS], result;
	float scales[CPU_MAX_PARTS];

	for (int i = 0; i < n; i++) {
		to_native(&from[i], &all[i]);
		scales[i] = 1;
	}
	to_native(to, &result);
	CPU_DNNL(dnnl_sum_primitive_desc_create(pd, &result, n, scales, all, NULL, engine));
out:
	return st;
}

enum mu_status mu_dnnl_concat(dnnl_engine_t engine, int n, const struct cpu_md *from,
			      const struct cpu_md *to, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t all[CPU_MAX_PARTS], result;

	for (int i = 0; i < n; i++)
		to_native(&from[i], &all[i]);
	to_native(to, &result);
	CPU_DNNL(dnnl_concat_primitive_desc_create(pd, &result, n, 1, all, NULL, engine));
out:
	return st;
}

enum mu_status mu_dnnl_algorithm(const_dnnl_primitive_desc_t pd, dnnl_alg_kind_t *algorithm)
{
	enum mu_status st = MU_OK;
	const dnnl_convolution_desc_t *chosen;

	CPU_DNNL(dnnl_primitive_desc_query(pd, dnnl_query_convolution_d, 0, &chosen));
	*algorithm = chosen->alg_kind;
out:
	return st;
}

bool mu_dnnl_backward_has_shift(void)
{
	return true;
}

bool mu_dnnl_has_winograd(void)
{
	return mu_dnnl_has_avx512();
}
