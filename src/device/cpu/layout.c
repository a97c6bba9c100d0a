/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of the cpu device: a layout is an allocated struct cpu_md; NULL is plain. */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

void mu_cpu_plain(struct cpu_md *md, const struct mu_shape *shape)
{
	mu_cpu_tag(md, shape, dnnl_format_tag_undef);
}

void mu_cpu_tag(struct cpu_md *md, const struct mu_shape *shape, dnnl_format_tag_t tag)
{
	dnnl_dims_t dims;

	for (int i = 0; i < shape->ndims; i++)
		dims[i] = (dnnl_dim_t)shape->dims[i];
	if (shape->ndims == 5)
		tag = tag == dnnl_nhwc ? dnnl_ndhwc : tag == dnnl_nChw16c ? dnnl_nCdhw16c : tag;
	mu_dnnl_tag(md, shape->ndims, dims, tag);
}

void mu_cpu_request_window(struct cpu_request *request, const struct mu_window *w)
{
	for (int d = w->first, i = 0; d < MU_MAX_SPACE; d++, i++) {
		request->kernel[i] = w->kernel[d];
		request->stride[i] = w->stride[d];
		request->dilate[i] = w->dilate[d] - 1;
		request->pad_left[i] = w->pad[d];
		request->pad_right[i] = mu_window_pad_after(w, d);
	}
}

void mu_cpu_tensor_md(struct cpu_md *md, const struct mu_tensor *t)
{
	if (t->layout)
		*md = *(const struct cpu_md *)t->layout;
	else
		mu_cpu_plain(md, &t->shape);
}

static bool is_plain(const struct cpu_md *md)
{
	struct cpu_md plain;

	mu_dnnl_plain(&plain, md->ndims, md->dims);
	return mu_dnnl_equal(&plain, md);
}

static enum mu_status new_layout(const struct cpu_md *md, void **out)
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

enum mu_status mu_cpu_set_tensor(struct mu_tensor *t, const struct cpu_md *md)
{
	t->nbytes = mu_dnnl_nbytes(md);
	return new_layout(md, &t->layout);
}

enum mu_status mu_cpu_set_param(struct mu_param *param, const struct cpu_md *md)
{
	struct cpu_md layout = *md;

	if (param->n_padded != 0)
		return MU_OK; /* fixed by an earlier plan */
	layout.data_type = dnnl_f32;
	param->n_padded = mu_dnnl_nbytes(&layout) / sizeof(float);
	return new_layout(&layout, &param->layout);
}

enum mu_status mu_cpu_set_plain_params(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cpu_md md;

	for (int i = 0; i < op->n_params; i++) {
		mu_cpu_plain(&md, &op->params[i].shape);
		MU_TRY(mu_cpu_set_param(&op->params[i], &md));
	}
out:
	return st;
}

void mu_cpu_param_md(struct cpu_md *md, const struct mu_param *param, int ndims,
		     const dnnl_dim_t *dims)
{
	if (param->layout)
		*md = *(const struct cpu_md *)param->layout;
	else
		mu_dnnl_plain(md, ndims, dims);
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

bool mu_cpu_is_rows(const struct mu_shape *shape, const void *layout)
{
	struct cpu_md last;

	if (!layout || shape->ndims < 4)
		return false;
	mu_cpu_tag(&last, shape, dnnl_acdb);
	return mu_dnnl_equal(&last, layout);
}

static uint64_t mix(uint64_t hash, int64_t word)
{
	return (hash ^ (uint64_t)word) * 1099511628211u;
}

uint64_t mu_cpu_hash_layout(struct mu_device *device, const void *layout)
{
	const struct cpu_md *md = layout;
	uint64_t hash = 14695981039346656037u;

	(void)device;
	if (!md)
		return 0;
	for (int i = 0; i < md->ndims; i++) {
		hash = mix(hash, md->dims[i]);
		hash = mix(hash, md->padded_dims[i]);
		hash = mix(hash, md->strides[i]);
	}
	for (int i = 0; i < md->n_blocks; i++) {
		hash = mix(hash, md->blocks[i]);
		hash = mix(hash, md->blocked[i]);
	}
	return hash;
}

static enum mu_status convert(struct cpu *cpu, const struct cpu_md *from_md, const float *from,
			      const struct cpu_md *to_md, float *to)
{
	enum mu_status st = MU_OK;
	dnnl_memory_t a = NULL, b = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t reorder = NULL;
	dnnl_exec_arg_t args[2];

	MU_TRY(mu_dnnl_memory(cpu->engine, from_md, (void *)(uintptr_t)from, &a));
	MU_TRY(mu_dnnl_memory(cpu->engine, to_md, to, &b));
	MU_TRY(mu_dnnl_reorder(cpu->engine, from_md, to_md, NULL, &pd));
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
static void plain_like(struct cpu_md *plain, const struct cpu_md *md)
{
	struct mu_param none = {.layout = NULL};

	mu_cpu_param_md(plain, &none, md->ndims, md->dims);
}

enum mu_status mu_cpu_from_plain(struct mu_device *device, const struct mu_shape *shape,
				 const void *layout, const float *plain, float *out)
{
	struct cpu_md plain_md;

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
	struct cpu_md plain_md;

	if (!layout) {
		memcpy(plain, in, mu_shape_n(shape) * sizeof(float));
		return MU_OK;
	}
	plain_like(&plain_md, layout);
	return convert(device->impl, layout, in, &plain_md, plain);
}
