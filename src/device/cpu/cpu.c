/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu device: oneDNN. This file is its table; see cpu.h for how it works. */
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>

#include <muster/base.h>

/* As omp.h has them; clang's omp.h comes with clang's own runtime, and these must be oneDNN's. */
void omp_set_num_threads(int n);
void omp_set_dynamic(int on);
int omp_get_max_active_levels(void);
void omp_set_max_active_levels(int n);

#define BY_own(row) mu_cpu_plan_##row
#define BY_ref(row) mu_cpu_plan_by_ref
static enum mu_status (*const planners[MU_OP_N])(struct cpu_plan *p) = {
#define KIND(OP, row, name, cpu, cuda) BY_##cpu(row),
#include "device/kinds.def"
#undef KIND
};

/* The variables that are set and leave a team fewer threads than it asks for: "A=1, B=2". */
static const char *limits_text(char *text, size_t nbytes)
{
	static const char *const names[] = {"OMP_THREAD_LIMIT", "KMP_DEVICE_THREAD_LIMIT",
					    "KMP_TEAMS_THREAD_LIMIT", "KMP_ALL_THREADS",
					    "OMP_MAX_ACTIVE_LEVELS", "OMP_DYNAMIC"};
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof names / sizeof *names && n < nbytes; i++)
		if (getenv(names[i]))
			n += (size_t)snprintf(text + n, nbytes - n, "%s%s=%s", n ? ", " : "",
					      names[i], getenv(names[i]));
	return text;
}

/*
 * oneDNN's kernels are planned for a number of threads, and some compute wrong values, or wait for
 * ever, in a smaller team. OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS are settings of the calling
 * thread: they are set here; what a limit of the runtime leaves is measured.
 */
static enum mu_status set_team(int n_threads)
{
	enum mu_status st = MU_OK;
	char limits[256];
	int n;

	omp_set_dynamic(0);
	if (omp_get_max_active_levels() < 1)
		omp_set_max_active_levels(1);
	omp_set_num_threads(n_threads);
	n = mu_cpu_team(n_threads);
	if (n < n_threads)
		MU_FAIL(MU_ERR_USAGE,
			"OpenMP runs %d of the %d threads of device cpu (%s): unset what limits "
			"them, or set OMP_NUM_THREADS=%d",
			n, n_threads,
			*limits_text(limits, sizeof limits) ? limits : "no variable is set", n);
out:
	return st;
}

static enum mu_status open_cpu(struct mu_device *device)
{
	enum mu_status st = MU_OK;
	struct cpu *cpu = calloc(1, sizeof *cpu);

	if (!cpu)
		MU_FAIL(MU_ERR_MEMORY, "no memory for device cpu");
	device->impl = cpu;
	cpu->n_threads = (size_t)device->n_threads;
	MU_TRY(set_team(device->n_threads));
	MU_TRY(mu_dnnl_check_version());
	CPU_DNNL(dnnl_engine_create(&cpu->engine, dnnl_cpu, 0));
	CPU_DNNL(dnnl_stream_create(&cpu->stream, cpu->engine, dnnl_stream_default_flags));
out:
	return st;
}

static void close_cpu(struct mu_device *device)
{
	struct cpu *cpu = device->impl;

	if (!cpu)
		return;
	dnnl_stream_destroy(cpu->stream);
	dnnl_engine_destroy(cpu->engine);
	free(cpu);
	device->impl = NULL;
}

/* oneDNN would emulate bfloat16 without these instructions, slower than float32. */
static enum mu_status check_dtype(const struct mu_device *device, enum mu_dtype dtype)
{
	enum mu_status st = MU_OK;

	(void)device;
	if (dtype != MU_BFLOAT16)
		MU_FAIL(MU_ERR_UNSUPPORTED, "device cpu has float32 and bfloat16, no %s",
			mu_dtype_name(dtype));
	if (!mu_dnnl_has_bfloat16())
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"this CPU has no instructions for bfloat16 (AVX512-BF16 or AMX): it has %s",
			mu_dnnl_isa_name());
out:
	return st;
}

static enum mu_status plan(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cpu_op *impl = calloc(1, sizeof *impl);
	struct cpu_plan p = {
		.cpu = device->impl,
		.op = op,
		.impl = impl,
		.dtype = device->dtype == MU_BFLOAT16 ? dnnl_bf16 : dnnl_f32,
	};

	if (!impl)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	op->impl = impl;
	p.program = &impl->forward;
	mu_convolution_requested(device, op->name, p.algorithms);
	MU_TRY(planners[op->kind](&p));
	op->fusion.weights_later = op->fusion.weights_later && impl->weights.n_steps > 0;
out:
	return st;
}

static enum mu_status bind(struct mu_device *device, struct mu_op *op)
{
	return mu_cpu_bind(device->impl, op);
}

static enum mu_status forward(struct mu_device *device, struct mu_op *op)
{
	return mu_cpu_run(device->impl, op, &((struct cpu_op *)op->impl)->forward);
}

static enum mu_status backward_weights(struct mu_device *device, struct mu_op *op)
{
	return mu_cpu_run(device->impl, op, &((struct cpu_op *)op->impl)->weights);
}

static enum mu_status backward(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cpu_run(device->impl, op, &((struct cpu_op *)op->impl)->backward));
	if (!op->fusion.weights_later)
		MU_TRY(backward_weights(device, op));
out:
	return st;
}

static enum mu_status restore(struct mu_device *device, struct mu_op *op)
{
	struct cpu_op *impl = op->impl;

	return mu_cpu_run(device->impl, op,
			  op->kind == MU_OP_BATCH_NORM ? &impl->restore : &impl->forward);
}

static void release(struct mu_device *device, struct mu_op *op)
{
	(void)device;
	mu_cpu_release(op);
}

static void describe(const struct mu_device *device, char *text, size_t nbytes)
{
	const dnnl_version_t *v = dnnl_version();

	snprintf(text, nbytes, "cpu: oneDNN %d.%d.%d, %s, %d thread%s", v->major, v->minor,
		 v->patch, mu_dnnl_isa_name(), device->n_threads,
		 MU_S(device->n_threads));
}

const struct mu_device_ops mu_device_cpu = {
	.name = "cpu",
	.help = "oneDNN",
	.open = open_cpu,
	.close = close_cpu,
	.plan = plan,
	.bind = bind,
	.forward = forward,
	.backward = backward,
	.backward_weights = backward_weights,
	.restore = restore,
	.release = release,
	.from_plain = mu_cpu_from_plain,
	.to_plain = mu_cpu_to_plain,
	.copy_layout = mu_cpu_copy_layout,
	.free_layout = mu_cpu_free_layout,
	.is_rows = mu_cpu_is_rows,
	.hash_layout = mu_cpu_hash_layout,
	.check_dtype = check_dtype,
	.share = mu_cpu_parts,
	.describe = describe,
	.remembers = true,
	.measure = mu_cpu_measure,
};
