/* SPDX-License-Identifier: Apache-2.0 */
/* What is the same with every version of oneDNN: errors, layouts as values, attributes. */
#include "device/cpu/onednn/onednn.h"

#include <string.h>

static const char *status_text(dnnl_status_t status)
{
	switch (status) {
	case dnnl_out_of_memory: return "out of memory";
	case dnnl_invalid_arguments: return "invalid arguments";
	case dnnl_unimplemented: return "not implemented for this shape";
	case dnnl_runtime_error: return "run-time error";
	default: return "error";
	}
}

enum mu_status mu_cpu_from_dnnl(dnnl_status_t status, const char *call, const char *file, int line)
{
	if (status == dnnl_success)
		return MU_OK;
	return mu_trace_start(MU_ERR_DEVICE, file, line, "oneDNN: %s: %s", status_text(status),
			      call);
}

/* ---- layouts ---- */

/* Strides of the dimensions in this order, outermost first. */
static void set_strides(struct cpu_md *md, const int *order)
{
	dnnl_dim_t stride = 1;

	for (int i = 0; i < md->n_blocks; i++)
		stride *= md->blocks[i];
	for (int i = md->ndims; i-- > 0;) {
		int d = order ? order[i] : i;

		md->strides[d] = stride;
		for (int b = 0; b < md->n_blocks; b++)
			if (md->blocked[b] == d)
				stride /= md->blocks[b];
		stride *= md->padded_dims[d];
	}
}

void mu_dnnl_plain(struct cpu_md *md, int ndims, const dnnl_dim_t *dims)
{
	*md = (struct cpu_md){.data_type = dnnl_f32, .ndims = ndims};
	memcpy(md->dims, dims, (size_t)ndims * sizeof *dims);
	memcpy(md->padded_dims, dims, (size_t)ndims * sizeof *dims);
	set_strides(md, NULL);
}

void mu_dnnl_tag(struct cpu_md *md, int ndims, const dnnl_dim_t *dims, dnnl_format_tag_t tag)
{
	mu_dnnl_plain(md, ndims, dims);
	switch (tag) {
	case dnnl_format_tag_any: md->any = true; break;
	case dnnl_ba: set_strides(md, (int[]){1, 0}); break;
	case dnnl_acdb: set_strides(md, (int[]){0, 2, 3, 1}); break;
	case dnnl_acdeb: set_strides(md, (int[]){0, 2, 3, 4, 1}); break;
	case dnnl_aBcd16b:
	case dnnl_aBcde16b:
		md->tag = tag;
		md->n_blocks = 1;
		md->blocks[0] = 16;
		md->blocked[0] = 1;
		md->padded_dims[1] = (dims[1] + 15) / 16 * 16;
		set_strides(md, NULL);
		break;
	default: break;
	}
}

/* As the library compares: the stride of a dimension of size 1 does not matter. */
bool mu_dnnl_equal(const struct cpu_md *a, const struct cpu_md *b)
{
	if (a->data_type != b->data_type || a->ndims != b->ndims || a->any != b->any ||
	    a->n_blocks != b->n_blocks || a->is_part || b->is_part)
		return false;
	for (int i = 0; i < a->n_blocks; i++)
		if (a->blocks[i] != b->blocks[i] || a->blocked[i] != b->blocked[i])
			return false;
	for (int i = 0; i < a->ndims; i++) {
		if (a->dims[i] != b->dims[i] || a->padded_dims[i] != b->padded_dims[i])
			return false;
		if (a->strides[i] != b->strides[i] && a->padded_dims[i] != 1)
			return false;
	}
	return true;
}

bool mu_dnnl_channels_last(const struct cpu_md *md)
{
	return md->n_blocks == 0 && md->strides[1] == 1;
}

/* ---- primitives ---- */

enum mu_status mu_dnnl_attributes(dnnl_alg_kind_t post, dnnl_primitive_attr_t *attr)
{
	enum mu_status st = MU_OK;
	dnnl_post_ops_t ops = NULL;

	CPU_DNNL(dnnl_primitive_attr_create(attr));
	CPU_DNNL(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
	if (post == dnnl_alg_kind_undef)
		goto out;
	CPU_DNNL(dnnl_post_ops_create(&ops));
	CPU_DNNL(mu_dnnl_append_eltwise(ops, post));
	CPU_DNNL(dnnl_primitive_attr_set_post_ops(*attr, ops));
out:
	dnnl_post_ops_destroy(ops);
	return st;
}

bool mu_dnnl_is_kernel(const_dnnl_primitive_desc_t pd, const char *name)
{
	const char *is = "";

	return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &is) == dnnl_success &&
	       strstr(is, name);
}

/* ---- the library ---- */

#ifdef __x86_64__
#define IS_X86 true
#define PLAIN_ISA "baseline"
#elif defined(__aarch64__)
#define IS_X86 false
#define PLAIN_ISA "aarch64"
#else
#define IS_X86 false
#define PLAIN_ISA "other"
#endif

/* A value of dnnl_cpu_isa_t is a set of bits: its own and those of all that it includes. Elsewhere
 * than on x86 oneDNN answers with bits that mean nothing. */
static bool has(dnnl_cpu_isa_t isa)
{
	return IS_X86 && ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

const char *mu_dnnl_isa_name(void)
{
	static const struct {
		dnnl_cpu_isa_t isa;
		const char *name;
	} names[] = {
		{dnnl_cpu_isa_avx512_core_amx, "avx512 amx"},
		{dnnl_cpu_isa_avx512_core_bf16, "avx512 bf16"},
		{dnnl_cpu_isa_avx512_core_vnni, "avx512 vnni"},
		{dnnl_cpu_isa_avx512_core, "avx512"},
		{dnnl_cpu_isa_avx2, "avx2"},
		{dnnl_cpu_isa_avx, "avx"},
		{dnnl_cpu_isa_sse41, "sse4.1"},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (has(names[i].isa))
			return names[i].name;
	return PLAIN_ISA;
}

bool mu_dnnl_has_bfloat16(void)
{
	return has(dnnl_cpu_isa_avx512_core_bf16);
}

bool mu_dnnl_has_avx2(void)
{
	return has(dnnl_cpu_isa_avx2);
}

bool mu_dnnl_has_avx512(void)
{
	return has(dnnl_cpu_isa_avx512_core);
}

enum mu_status mu_dnnl_check_version(void)
{
	enum mu_status st = MU_OK;
	const dnnl_version_t *v = dnnl_version();

#ifdef MU_MAX_ISA_AVX2
	dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2); /* refused where the first device did it */
#endif
	if (v->major != DNNL_VERSION_MAJOR || v->minor < DNNL_VERSION_MINOR)
		MU_FAIL(MU_ERR_USAGE,
			"oneDNN %d.%d.%d is loaded, but this Muster was built with %d.%d.%d: build "
			"it again, or see LD_LIBRARY_PATH",
			v->major, v->minor, v->patch, DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
			DNNL_VERSION_PATCH);
out:
	return st;
}
