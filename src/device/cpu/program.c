/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the cpu device: building them in plan, pointers in bind, running them. */
#include "cpu.h"

#include <assert.h>
#include <stdlib.h>

#include <muster/base.h>

/*
 * As omp.h and gcc's libgomp have them, whose entry other runtimes of OpenMP offer too; see cpu.c.
 * Called by name, so that our files need no compiler's own runtime beside oneDNN's.
 */
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void GOMP_parallel(void (*call)(void *), void *context, unsigned n_threads, unsigned flags);

int mu_cpu_memory(struct cpu_plan *p, const struct cpu_md *md, enum cpu_place place, size_t index)
{
	int number = p->impl->n_memories++;

	assert(number < CPU_MAX_MEMORIES);
	p->impl->memories[number] = (struct cpu_memory){.md = *md, .place = place, .index = index};
	return number;
}

static size_t room(const struct cpu_md *md)
{
	return (mu_dnnl_nbytes(md) + MU_ALIGN - 1) / MU_ALIGN * MU_ALIGN;
}

int mu_cpu_keep(struct cpu_plan *p, const struct cpu_md *md)
{
	size_t at = p->op->workspace_nbytes;

	p->op->workspace_nbytes += room(md);
	return mu_cpu_memory(p, md, CPU_WORKSPACE, at);
}

int mu_cpu_temporary(struct cpu_plan *p, const struct cpu_md *md)
{
	size_t at = p->program->scratch_nbytes;

	p->program->scratch_nbytes += room(md);
	if (p->program->scratch_nbytes > p->op->scratch_nbytes)
		p->op->scratch_nbytes = p->program->scratch_nbytes;
	return mu_cpu_memory(p, md, CPU_SCRATCH, at);
}

int mu_cpu_floats(struct cpu_plan *p, size_t n)
{
	const dnnl_dim_t dims[1] = {(dnnl_dim_t)n};
	struct cpu_md md;

	mu_dnnl_plain(&md, 1, dims);
	return mu_cpu_temporary(p, &md);
}

const struct cpu_md *mu_cpu_md(const struct cpu_plan *p, int memory)
{
	return &p->impl->memories[memory].md;
}

static struct cpu_step *next_step(struct cpu_plan *p)
{
	assert(p->program->n_steps < CPU_MAX_STEPS);
	return &p->program->steps[p->program->n_steps++];
}

static void add_arg(struct cpu_step *step, int arg, int memory)
{
	assert(step->n_args < CPU_MAX_ARGS);
	step->memories[step->n_args] = memory;
	step->args[step->n_args++].arg = arg;
}

enum mu_status mu_cpu_step(struct cpu_plan *p, dnnl_primitive_desc_t pd, int n_args,
			   const struct cpu_arg *args)
{
	enum mu_status st = MU_OK;
	struct cpu_step *step = next_step(p);
	struct cpu_md scratchpad;

	MU_TRY(mu_dnnl_query(pd, dnnl_query_scratchpad_md, &scratchpad));
	for (int i = 0; i < n_args; i++)
		add_arg(step, args[i].arg, args[i].memory);
	if (mu_dnnl_nbytes(&scratchpad) > 0) {
		size_t before = p->program->scratch_nbytes;

		add_arg(step, DNNL_ARG_SCRATCHPAD, mu_cpu_temporary(p, &scratchpad));
		p->program->scratch_nbytes =
			before; /* the next step's scratchpad may overwrite this one's */
	}
	CPU_DNNL(dnnl_primitive_create(&step->primitive, pd));
out:
	dnnl_primitive_desc_destroy(pd);
	return st;
}

void mu_cpu_call(struct cpu_plan *p, mu_cpu_step_fn *call)
{
	next_step(p)->call = call;
}

void mu_cpu_try_call(struct cpu_plan *p, mu_cpu_try_fn *call)
{
	next_step(p)->try_call = call;
}

/* Waking a thread takes about the time in which another one works through this much. */
#define BYTES_PER_PART ((size_t)64 << 10)

void mu_cpu_share(struct cpu_plan *p, mu_cpu_part_fn *call, size_t nbytes)
{
	struct cpu_step *step = next_step(p);
	size_t worth = nbytes / BYTES_PER_PART + 1;

	step->shared = call;
	step->n_parts = worth < p->cpu->n_threads ? worth : p->cpu->n_threads;
}

enum mu_status mu_cpu_reorder(struct cpu_plan *p, int from, int to)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t pd = NULL;

	MU_TRY(mu_dnnl_attributes(dnnl_alg_kind_undef, &attr));
	MU_TRY(mu_dnnl_reorder(p->cpu->engine, mu_cpu_md(p, from), mu_cpu_md(p, to), attr, &pd));
	MU_TRY(mu_cpu_step(p, pd, 2, (struct cpu_arg[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}));
out:
	dnnl_primitive_attr_destroy(attr);
	return st;
}

enum mu_status mu_cpu_step_to(struct cpu_plan *p, dnnl_primitive_desc_t pd, int n_args,
			      struct cpu_arg *args, const struct cpu_md *md, int to)
{
	enum mu_status st = MU_OK;
	int *out = &args[n_args - 1].memory;

	*out = mu_dnnl_equal(md, mu_cpu_md(p, to)) ? to : mu_cpu_temporary(p, md);
	MU_TRY(mu_cpu_step(p, pd, n_args, args));
	if (*out != to)
		MU_TRY(mu_cpu_reorder(p, *out, to));
out:
	return st;
}

enum mu_status mu_cpu_as(struct cpu_plan *p, int memory, const struct cpu_md *md, bool keep,
			 int *out)
{
	enum mu_status st = MU_OK;

	*out = memory;
	if (mu_dnnl_equal(mu_cpu_md(p, memory), md))
		return MU_OK;
	*out = keep ? mu_cpu_keep(p, md) : mu_cpu_temporary(p, md);
	MU_TRY(mu_cpu_reorder(p, memory, *out));
out:
	return st;
}

int mu_cpu_seen_as(struct cpu_plan *p, int memory, const struct cpu_md *md)
{
	const struct cpu_memory *m = &p->impl->memories[memory];

	return mu_cpu_memory(p, md, m->place, m->index);
}

enum mu_status mu_cpu_weights_as(struct cpu_plan *p, int ndims, const dnnl_dim_t *dims,
				 const struct cpu_md *md, int *out)
{
	struct cpu_md have;

	mu_cpu_param_md(&have, &p->op->params[0], ndims, dims);
	return mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_PARAM_DATA, 0), md, false, out);
}

dnnl_alg_kind_t mu_cpu_eltwise(const struct mu_activation *activation)
{
	if (!activation)
		return dnnl_alg_kind_undef;
	switch (activation->kind) {
	case MU_ACTIVATION_RELU: return dnnl_eltwise_relu;
	case MU_ACTIVATION_TANH: return dnnl_eltwise_tanh;
	default: return dnnl_eltwise_logistic;
	}
}

enum mu_status mu_cpu_describe(struct cpu_plan *p, const struct cpu_request *request,
			       dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_dnnl_describe(p->cpu->engine, request, pd));
	if (!*pd)
		MU_FAIL(MU_ERR_DEVICE, "%s: oneDNN has no kernel for this %s and shape",
			p->op->name, mu_op_kind_name(p->op->kind));
out:
	return st;
}

enum mu_status mu_cpu_check_parts(const struct mu_op *op, int n)
{
	enum mu_status st = MU_OK;

	if (n > CPU_MAX_PARTS)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: %d tensors; at most %d can be joined", op->name, n,
			CPU_MAX_PARTS);
out:
	return st;
}

enum mu_status mu_cpu_binary(struct cpu_plan *p, dnnl_alg_kind_t kind, struct cpu_pair pair)
{
	enum mu_status st = MU_OK;
	const struct cpu_request request = {.kind = CPU_BINARY,
					    .algorithm = kind,
					    .src = mu_cpu_md(p, pair.a),
					    .weights = mu_cpu_md(p, pair.b),
					    .dst = mu_cpu_md(p, pair.to),
					    .post = mu_cpu_eltwise(pair.activation)};
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {
		{DNNL_ARG_SRC_0, pair.a}, {DNNL_ARG_SRC_1, pair.b}, {DNNL_ARG_DST, pair.to}};

	MU_TRY(mu_cpu_describe(p, &request, &pd));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
out:
	return st;
}

static void *pointer(const struct mu_op *op, const struct cpu_memory *m)
{
	switch (m->place) {
	case CPU_IN_DATA: return op->inputs[m->index]->data;
	case CPU_IN_GRAD: return op->inputs[m->index]->grad;
	case CPU_OUT_DATA: return op->outputs[m->index]->data;
	case CPU_OUT_GRAD: return op->outputs[m->index]->grad;
	case CPU_PARAM_DATA: return op->params[m->index].data;
	case CPU_PARAM_GRAD: return op->params[m->index].grad;
	case CPU_AUX_DATA: return op->aux[m->index].data;
	case CPU_AUX_GRAD: return op->aux[m->index].grad;
	case CPU_WORKSPACE: return (char *)op->workspace + m->index;
	default: return (char *)op->scratch + m->index;
	}
}

void *mu_cpu_pointer(const struct mu_op *op, int memory)
{
	return pointer(op, &((const struct cpu_op *)op->impl)->memories[memory]);
}

static void bind_program(struct cpu_op *impl, struct cpu_program *program)
{
	for (int s = 0; s < program->n_steps; s++)
		for (int a = 0; a < program->steps[s].n_args; a++)
			program->steps[s].args[a].memory =
				impl->memories[program->steps[s].memories[a]].memory;
}

enum mu_status mu_cpu_bind(struct cpu *cpu, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cpu_op *impl = op->impl;

	for (int i = 0; i < impl->n_memories; i++) {
		struct cpu_memory *m = &impl->memories[i];

		if (m->memory)
			CPU_DNNL(dnnl_memory_set_data_handle(m->memory, pointer(op, m)));
		else
			MU_TRY(mu_dnnl_memory(cpu->engine, &m->md, pointer(op, m), &m->memory));
	}
	bind_program(impl, &impl->forward);
	bind_program(impl, &impl->backward);
	bind_program(impl, &impl->weights);
	bind_program(impl, &impl->restore);
	bind_program(impl, &impl->inner);
out:
	return st;
}

struct parts {
	size_t n;
	mu_part_fn *part;
	void *of;
};

/* The runtime may give fewer threads than it was asked for. */
static void run_parts(void *context)
{
	const struct parts *parts = context;

	for (size_t i = (size_t)omp_get_thread_num(); i < parts->n;
	     i += (size_t)omp_get_num_threads())
		parts->part(parts->of, i);
}

static void count_team(void *context)
{
	if (omp_get_thread_num() == 0)
		*(int *)context = omp_get_num_threads();
}

int mu_cpu_team(int n)
{
	int real = 0;

	GOMP_parallel(count_team, &real, (unsigned)n, 0);
	return real;
}

void mu_cpu_parts(size_t n, mu_part_fn *part, void *of)
{
	if (n == 1)
		part(of, 0);
	else
		GOMP_parallel(run_parts, &(struct parts){n, part, of}, (unsigned)n, 0);
}

/* A step that the device's threads share. */
struct shared {
	struct mu_op *op;
	const struct cpu_step *step;
};

static void run_shared(void *context, size_t i)
{
	const struct shared *shared = context;

	shared->step->shared(shared->op, (struct cpu_part){i, shared->step->n_parts});
}

enum mu_status mu_cpu_run(struct cpu *cpu, struct mu_op *op, struct cpu_program *program)
{
	enum mu_status st = MU_OK;

	for (int s = 0; s < program->n_steps; s++) {
		struct cpu_step *step = &program->steps[s];

		if (step->call)
			step->call(op);
		else if (step->shared)
			mu_cpu_parts(step->n_parts, run_shared, &(struct shared){op, step});
		else if (step->try_call)
			MU_TRY(step->try_call(op));
		else
			CPU_DNNL(dnnl_primitive_execute(step->primitive, cpu->stream, step->n_args,
							step->args));
	}
out:
	return st;
}

static void release_program(struct cpu_program *program)
{
	for (int s = 0; s < program->n_steps; s++)
		dnnl_primitive_destroy(program->steps[s].primitive);
}

void mu_cpu_release(struct mu_op *op)
{
	struct cpu_op *impl = op->impl;

	if (!impl)
		return;
	for (int i = 0; i < impl->n_memories; i++)
		dnnl_memory_destroy(impl->memories[i].memory);
	release_program(&impl->forward);
	release_program(&impl->backward);
	release_program(&impl->weights);
	release_program(&impl->restore);
	release_program(&impl->inner);
	free(impl->own);
	free(impl);
	op->impl = NULL;
}
