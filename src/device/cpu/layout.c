/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of the cpu device: a layout is an allocated dnnl_memory_desc_t; NULL is plain. */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

void mu_cpu_plain(dnnl_memory_desc_t *md, const struct mu_shape *shape)
{
	static const dnnl_format_tag_t tags[] = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd};

	mu_cpu_tag(md, shape, tags[shape->ndims - 1]);
}

/* Cannot fail: dimensions come from a checked shape. */
void mu_cpu_tag(dnnl_memory_desc_t *md, const struct mu_shape *shape, dnnl_format_tag_t tag)
{
	dnnl_dims_t dims;

	for (int i = 0; i < shape->ndims; i++)
		dims[i] = (dnnl_dim_t)shape->dims[i];
	dnnl_memory_desc_init_by_tag(md, shape->ndims, dims, dnnl_f32, tag);
}

void mu_cpu_tensor_md(dnnl_memory_desc_t *md, const struct mu_tensor *t)
{
	if (t->layout)
		*md = *(const dnnl_memory_desc_t *)t->layout;
	else
		mu_cpu_plain(md, &t->shape);
}

static bool is_plain(const dnnl_memory_desc_t *md)
{
	dnnl_memory_desc_t plain;
	dnnl_dims_t strides;
	dnnl_dim_t stride = 1;

	for (int i = md->ndims; i-- > 0;) {
		strides[i] = stride;
		stride *= md->dims[i];
	}
	dnnl_memory_desc_init_by_strides(&plain, md->ndims, md->dims, dnnl_f32, strides);
	return dnnl_memory_desc_equal(&plain, md);
}

static enum mu_status new_layout(const dnnl_memory_desc_t *md, void **out)
{
	enum mu_status st = MU_OK;

	free(*out);
	*out = NULL;
	if (is_plain(md))
		return MU_OK;
	*out = malloc(sizeof *md);
	if (!*out)
		MU_FAIL(MU_ERR_MEMORY, "no memory for a layout");
	memcpy(*out, md, sizeof *md);
out:
	return st;
}

enum mu_status mu_cpu_set_tensor(struct mu_tensor *t, const dnnl_memory_desc_t *md)
{
	t->nbytes = dnnl_memory_desc_get_size(md);
	return new_layout(md, &t->layout);
}

enum mu_status mu_cpu_set_param(struct mu_param *param, const dnnl_memory_desc_t *md)
{
	dnnl_memory_desc_t layout = *md;

	if (param->n_padded != 0)
		return MU_OK; /* fixed by an earlier plan */
	layout.data_type = dnnl_f32;
	param->n_padded = dnnl_memory_desc_get_size(&layout) / sizeof(float);
	return new_layout(&layout, &param->layout);
}

void mu_cpu_param_md(dnnl_memory_desc_t *md, const struct mu_param *param, int ndims,
		     const dnnl_dim_t *dims)
{
	dnnl_dims_t strides;
	dnnl_dim_t stride = 1;

	if (param->layout) {
		*md = *(const dnnl_memory_desc_t *)param->layout;
		return;
	}
	for (int i = ndims; i-- > 0;) {
		strides[i] = stride;
		stride *= dims[i];
	}
	dnnl_memory_desc_init_by_strides(md, ndims, dims, dnnl_f32, strides);
}

enum mu_status mu_cpu_copy_layout(struct mu_device *device, const void *layout, void **out)
{
	(void)device;
	*out = NULL;
	return layout ? new_layout(layout, out) : MU_OK;
}

void mu_cpu_free_layout(struct mu_device *device, void *layout)
{
	(void)device;
	free(layout);
}

static uint64_t mix(uint64_t hash, int64_t word)
{
	return (hash ^ (uint64_t)word) * 1099511628211u;
}

/* Fields one by one: the struct has unused tails that need not be equal. */
uint64_t mu_cpu_hash_layout(struct mu_device *device, const void *layout)
{
	const dnnl_memory_desc_t *md = layout;
	uint64_t hash = 14695981039346656037u;

	(void)device;
	if (!md)
		return 0;
	for (int i = 0; i < md->ndims; i++) {
		hash = mix(hash, md->dims[i]);
		hash = mix(hash, md->padded_dims[i]);
		hash = mix(hash, md->format_desc.blocking.strides[i]);
	}
	for (int i = 0; i < md->format_desc.blocking.inner_nblks; i++) {
		hash = mix(hash, md->format_desc.blocking.inner_blks[i]);
		hash = mix(hash, md->format_desc.blocking.inner_idxs[i]);
	}
	return hash;
}

static enum mu_status convert(struct cpu *cpu, const dnnl_memory_desc_t *from_md, const float *from,
			      const dnnl_memory_desc_t *to_md, float *to)
{
	enum mu_status st = MU_OK;
	dnnl_memory_t a = NULL, b = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t reorder = NULL;
	dnnl_exec_arg_t args[2];

	CPU_DNNL(dnnl_memory_create(&a, from_md, cpu->engine, (void *)(uintptr_t)from));
	CPU_DNNL(dnnl_memory_create(&b, to_md, cpu->engine, to));
	CPU_DNNL(dnnl_reorder_primitive_desc_create(&pd, from_md, cpu->engine, to_md, cpu->engine,
						    NULL));
	CPU_DNNL(dnnl_primitive_create(&reorder, pd));
	args[0] = (dnnl_exec_arg_t){DNNL_ARG_FROM, a};
	args[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, b};
	CPU_DNNL(dnnl_primitive_execute(reorder, cpu->stream, 2, args));
	CPU_DNNL(dnnl_stream_wait(cpu->stream));
out:
	dnnl_primitive_destroy(reorder);
	dnnl_primitive_desc_destroy(pd);
	dnnl_memory_destroy(a);
	dnnl_memory_destroy(b);
	return st;
}

/* The plain description in the dimensions of the layout, which may have more of them (groups
 * apart). */
static void plain_like(dnnl_memory_desc_t *plain, const dnnl_memory_desc_t *md)
{
	struct mu_param none = {.layout = NULL};

	mu_cpu_param_md(plain, &none, md->ndims, md->dims);
}

enum mu_status mu_cpu_from_plain(struct mu_device *device, const struct mu_shape *shape,
				 const void *layout, const float *plain, float *out)
{
	dnnl_memory_desc_t plain_md;

	if (!layout) {
		memcpy(out, plain, mu_shape_n(shape) * sizeof(float));
		return MU_OK;
	}
	plain_like(&plain_md, layout);
	return convert(device->impl, &plain_md, plain, layout, out);
}

enum mu_status mu_cpu_to_plain(struct mu_device *device, const struct mu_shape *shape,
			       const void *layout, const float *in, float *plain)
{
	dnnl_memory_desc_t plain_md;

	if (!layout) {
		memcpy(plain, in, mu_shape_n(shape) * sizeof(float));
		return MU_OK;
	}
	plain_like(&plain_md, layout);
	return convert(device->impl, layout, in, &plain_md, plain);
}
