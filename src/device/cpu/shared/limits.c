/* SPDX-License-Identifier: Apache-2.0 */
/* What this processor can do at most: a matrix product of oneDNN, and a copy of its. */
#include "device/cpu/cpu.h"

#include <muster/base.h>

/* A product's matrices lie in the L2 cache, a copy's arrays in none. */
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
static struct cpu_md square(dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	const dnnl_dims_t dims = {SIDE, SIDE};
	struct cpu_md md;

	mu_dnnl_tag(&md, 2, dims, tag);
	md.data_type = type;
	return md;
}

static enum mu_status run_products(const struct cpu *cpu, dnnl_primitive_t product, int n,
				   const dnnl_exec_arg_t *args, struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;
	double start = mu_now();

	do {
		double before = mu_now(), rate;

		CPU_DNNL(dnnl_primitive_execute(product, cpu->stream, n, args));
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
	struct cpu_md md[4] = {square(dnnl_bf16, dnnl_ab), square(dnnl_bf16, dnnl_format_tag_any),
			       square(dnnl_f32, dnnl_ab)};
	dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, NULL},
				   {DNNL_ARG_WEIGHTS, NULL},
				   {DNNL_ARG_DST, NULL},
				   {DNNL_ARG_SCRATCHPAD, NULL}};
	char *arrays[4] = {NULL, NULL, NULL, NULL};
	const struct cpu_request request = {
		.kind = CPU_MATMUL, .src = &md[0], .weights = &md[1], .dst = &md[2]};
	struct cpu_md weights;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t product = NULL;
	int n;

	MU_TRY(mu_dnnl_describe(cpu->engine, &request, &pd));
	MU_TRY(mu_dnnl_query(pd, dnnl_query_weights_md, &weights));
	md[1] = weights;
	MU_TRY(mu_dnnl_query(pd, dnnl_query_scratchpad_md, &md[3]));
	n = md[3].ndims > 0 ? 4 : 3;
	for (int i = 0; i < n; i++) {
		MU_TRY(MU_ALLOC(arrays[i], mu_dnnl_nbytes(&md[i]),
				"matrices to measure the processor"));
		MU_TRY(mu_dnnl_memory(cpu->engine, &md[i], arrays[i], &args[i].memory));
	}
	CPU_DNNL(dnnl_primitive_create(&product, pd));
	MU_TRY(run_products(cpu, product, n, args, limits));
out:
	dnnl_primitive_destroy(product);
	dnnl_primitive_desc_destroy(pd);
	for (int i = 0; i < 4; i++) {
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
	struct cpu_md md;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t copy = NULL;
	dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
	float *a = NULL;
	double start;

	MU_TRY(MU_ALLOC(a, 2 * (size_t)COPIED, "arrays to measure the memory"));
	mu_dnnl_plain(&md, 1, dims);
	MU_TRY(mu_dnnl_memory(cpu->engine, &md, a, &args[0].memory));
	MU_TRY(mu_dnnl_memory(cpu->engine, &md, a + COPIED, &args[1].memory));
	MU_TRY(mu_dnnl_reorder(cpu->engine, &md, &md, NULL, &pd));
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
