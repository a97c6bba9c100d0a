/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oneDNN library, of version 2.6 or 3.x. Every call that one of them spells differently is
 * behind this page; version2.c or version3.c is built, as configure found it. The rest of the
 * device uses the library's constants and handles, and the calls that no version changed: those of
 * primitives, streams and memory handles, clone and destroy of a primitive's description, sgemm.
 *
 * A layout is a value here, as it was in oneDNN 2. In oneDNN 3 it is a handle that must be
 * destroyed, has no setters and can be made from a name or strides only, so layouts with blocks
 * carry their name.
 */
#ifndef DEVICE_CPU_ONEDNN_H
#define DEVICE_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include <muster/base.h>

/* MU_TRY for a oneDNN call. */
#define CPU_DNNL(call) MU_TRY(mu_cpu_from_dnnl((call), #call, __FILE__, __LINE__))
enum mu_status mu_cpu_from_dnnl(dnnl_status_t status, const char *call, const char *file, int line);

/* ---- layouts ---- */

struct cpu_md {
	dnnl_data_type_t data_type;
	bool any;  /* the library chooses; of those below, only dims are set */
	int ndims; /* 0: nothing lies here */
	dnnl_dims_t dims, padded_dims, strides;
	int n_blocks;
	dnnl_dims_t blocks, blocked; /* sizes of the blocks, outermost first; their dimensions */
	dnnl_format_tag_t tag;       /* the name; undef where there are no blocks */
	bool is_sorted;              /* of the dimensions sorted by strides */
	bool is_part;                /* only these elements of it */
	dnnl_dims_t part_dims, part_at;
};

/* float32, in plain order or with one of these names: any, ab, ba, acdb (nhwc), acdeb (ndhwc),
 * aBcd16b (nChw16c), aBcde16b (nCdhw16c). */
void mu_dnnl_plain(struct cpu_md *md, int ndims, const dnnl_dim_t *dims);
void mu_dnnl_tag(struct cpu_md *md, int ndims, const dnnl_dim_t *dims, dnnl_format_tag_t tag);
/* Same type, sizes and places. */
bool mu_dnnl_equal(const struct cpu_md *a, const struct cpu_md *b);
/* No blocks, and the channels of a pixel lie together. */
bool mu_dnnl_channels_last(const struct cpu_md *md);
size_t mu_dnnl_nbytes(const struct cpu_md *md);
enum mu_status mu_dnnl_memory(dnnl_engine_t engine, const struct cpu_md *md, void *data,
			      dnnl_memory_t *memory);

/* ---- descriptions of primitives; the caller destroys them ---- */

enum cpu_kind {
	CPU_CONVOLUTION,
	CPU_INNER_PRODUCT,
	CPU_POOLING,
	CPU_BATCH_NORM,
	CPU_LRN,
	CPU_ELTWISE,
	CPU_BINARY, /* of src and weights */
	CPU_MATMUL,
	CPU_KINDS
};

struct cpu_request {
	enum cpu_kind kind;
	dnnl_prop_kind_t prop;
	dnnl_alg_kind_t algorithm;
	/* Layouts. Backward, a gradient has the layout that its values have here. */
	const struct cpu_md *src, *weights, *dst;
	const struct cpu_md *bias; /* NULL: none */
	dnnl_dims_t stride, kernel, dilate, pad_left, pad_right;
	unsigned flags; /* of batch-norm */
	float eps;
	dnnl_dim_t size; /* of LRN */
	float alpha, beta, k; /* of LRN; alpha also of an activation */

	dnnl_alg_kind_t post;             /* activation of the result; undef: none */
	const_dnnl_primitive_desc_t hint; /* backward: the forward one */
	const char *kernel_name;          /* only kernels with this in their name; NULL: all */
};

/* With a scratchpad of the caller's. *pd is NULL where the library has no such kernel. */
enum mu_status mu_dnnl_describe(dnnl_engine_t engine, const struct cpu_request *request,
				dnnl_primitive_desc_t *pd);
/* attr: NULL for the library's own scratchpad. */
enum mu_status mu_dnnl_reorder(dnnl_engine_t engine, const struct cpu_md *from,
			       const struct cpu_md *to, const_dnnl_primitive_attr_t attr,
			       dnnl_primitive_desc_t *pd);
/* Of n tensors: to = their sum; along the channels, to = all of them. */
#define CPU_MAX_PARTS 14
enum mu_status mu_dnnl_sum(dnnl_engine_t engine, int n, const struct cpu_md *from,
			   const struct cpu_md *to, dnnl_primitive_desc_t *pd);
enum mu_status mu_dnnl_concat(dnnl_engine_t engine, int n, const struct cpu_md *from,
			      const struct cpu_md *to, dnnl_primitive_desc_t *pd);

/* ---- what a description says ---- */

/* A layout; where there is none, ndims is 0. */
enum mu_status mu_dnnl_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, struct cpu_md *md);
/* Of a convolution. */
enum mu_status mu_dnnl_algorithm(const_dnnl_primitive_desc_t pd, dnnl_alg_kind_t *algorithm);
/* "gemm:" is in "x64:gemm:jit". */
bool mu_dnnl_is_kernel(const_dnnl_primitive_desc_t pd, const char *name);

/* Is the shift an argument of batch-norm's backward pass? */
bool mu_dnnl_backward_has_shift(void);

/* ---- the library ---- */

/* An error if the library at run time does not fit the one that Muster was built with. */
enum mu_status mu_dnnl_check_version(void);
/* "avx512 bf16": the instructions that its kernels use here. */
const char *mu_dnnl_isa_name(void);
bool mu_dnnl_has_bfloat16(void);
bool mu_dnnl_has_avx2(void);
bool mu_dnnl_has_avx512(void);
/* Has it Winograd's algorithm here? */
bool mu_dnnl_has_winograd(void);

/* ---- between common.c and version2.c or version3.c ---- */

/* A user's scratchpad, and the activation of the result. */
enum mu_status mu_dnnl_attributes(dnnl_alg_kind_t post, dnnl_primitive_attr_t *attr);
dnnl_status_t mu_dnnl_append_eltwise(dnnl_post_ops_t post, dnnl_alg_kind_t algorithm);

#endif
