/* SPDX-License-Identifier: Apache-2.0 */
/* What this processor can do at most: a matrix product of oneDNN, and a copy of its. */
#include "cpu.h"

#include <muster/base.h>

/* A product's matrices lie in the second cache, a copy's arrays in none. */
enum { SIDE = 768, COPIED = 16 << 20 };
static const double seconds_each = 0.12;

static enum mu_status measure_product(struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;
	const dnnl_dim_t n = SIDE;
	const double flops = 2.0 * SIDE * SIDE * SIDE;
	float *a = NULL;
	double start = mu_now();

	MU_TRY(MU_ALLOC(a, 3 * (size_t)SIDE * SIDE, "matrices to measure the processor"));
	for (size_t i = 0; i < 2 * (size_t)SIDE * SIDE; i++)
		a[i] = 1;
	do {
		double before = mu_now(), rate;

		CPU_DNNL(dnnl_sgemm('N', 'N', n, n, n, 1, a, n, a + n * n, n, 0, a + 2 * n * n, n));
		rate = flops / (mu_now() - before);
		if (rate > limits->flops)
			limits->flops = rate;
	} while (mu_now() - start < seconds_each);
out:
	mu_free(a);
	return st;
}

/* Of square matrices in this layout: its description. */
static dnnl_memory_desc_t square(dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	const dnnl_dims_t dims = {SIDE, SIDE};
	dnnl_memory_desc_t md;

	dnnl_memory_desc_init_by_tag(&md, 2, dims, type, tag);
	return md;
}

static enum mu_status run_products(const struct cpu *cpu, dnnl_primitive_t product,
				   const dnnl_exec_arg_t *args, struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;
	double start = mu_now();

	do {
		double before = mu_now(), rate;

		CPU_DNNL(dnnl_primitive_execute(product, cpu->stream, 3, args));
		rate = 2.0 * SIDE * SIDE * SIDE / (mu_now() - before);
		if (rate > limits->flops)
			limits->flops = rate;
	} while (mu_now() - start < seconds_each);
out:
	return st;
}

/* The second factor, as weights, in the layout that oneDNN likes best. */
static enum mu_status measure_bfloat16(const struct cpu *cpu, struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;
	dnnl_memory_desc_t md[3] = {square(dnnl_bf16, dnnl_ab),
				    square(dnnl_bf16, dnnl_format_tag_any),
				    square(dnnl_f32, dnnl_ab)};
	dnnl_exec_arg_t args[3] = {
		{DNNL_ARG_SRC, NULL}, {DNNL_ARG_WEIGHTS, NULL}, {DNNL_ARG_DST, NULL}};
	char *arrays[3] = {NULL, NULL, NULL};
	dnnl_matmul_desc_t desc;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t product = NULL;

	CPU_DNNL(dnnl_matmul_desc_init(&desc, &md[0], &md[1], NULL, &md[2]));
	CPU_DNNL(dnnl_primitive_desc_create(&pd, &desc, NULL, cpu->engine, NULL));
	md[1] = *mu_cpu_query(pd, dnnl_query_weights_md);
	for (int i = 0; i < 3; i++) {
		MU_TRY(MU_ALLOC(arrays[i], dnnl_memory_desc_get_size(&md[i]),
				"matrices to measure the processor"));
		CPU_DNNL(dnnl_memory_create(&args[i].memory, &md[i], cpu->engine, arrays[i]));
	}
	CPU_DNNL(dnnl_primitive_create(&product, pd));
	MU_TRY(run_products(cpu, product, args, limits));
out:
	dnnl_primitive_destroy(product);
	dnnl_primitive_desc_destroy(pd);
	for (int i = 0; i < 3; i++) {
		dnnl_memory_destroy(args[i].memory);
		mu_free(arrays[i]);
	}
	return st;
}

/* By oneDNN, so that all threads of the device take part. */
static enum mu_status measure_copy(const struct cpu *cpu, struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;
	const dnnl_dims_t dims = {COPIED};
	dnnl_memory_desc_t md;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t copy = NULL;
	dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
	float *a = NULL;
	double start;

	MU_TRY(MU_ALLOC(a, 2 * (size_t)COPIED, "arrays to measure the memory"));
	CPU_DNNL(dnnl_memory_desc_init_by_tag(&md, 1, dims, dnnl_f32, dnnl_a));
	CPU_DNNL(dnnl_memory_create(&args[0].memory, &md, cpu->engine, a));
	CPU_DNNL(dnnl_memory_create(&args[1].memory, &md, cpu->engine, a + COPIED));
	CPU_DNNL(dnnl_reorder_primitive_desc_create(&pd, &md, cpu->engine, &md, cpu->engine, NULL));
	CPU_DNNL(dnnl_primitive_create(&copy, pd));
	start = mu_now();
	do {
		double before = mu_now(), rate;

		CPU_DNNL(dnnl_primitive_execute(copy, cpu->stream, 2, args));
		rate = 2.0 * COPIED * sizeof(float) / (mu_now() - before);
		if (rate > limits->bytes)
			limits->bytes = rate;
	} while (mu_now() - start < seconds_each);
out:
	dnnl_primitive_destroy(copy);
	dnnl_primitive_desc_destroy(pd);
	dnnl_memory_destroy(args[0].memory);
	dnnl_memory_destroy(args[1].memory);
	mu_free(a);
	return st;
}

enum mu_status mu_cpu_measure(struct mu_device *device, struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;

	if (device->dtype == MU_BFLOAT16)
		MU_TRY(measure_bfloat16(device->impl, limits));
	else
		MU_TRY(measure_product(limits));
	MU_TRY(measure_copy(device->impl, limits));
out:
	return st;
}
