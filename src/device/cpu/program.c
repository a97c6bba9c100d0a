/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the cpu device: building them in plan, pointers in bind, running them. */
#include "cpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/*
 * As omp.h and gcc's libgomp have them, whose entry other runtimes of OpenMP offer too; see cpu.c.
 * Called by name, so that our files need no compiler's own runtime beside oneDNN's.
 */
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void GOMP_parallel(void (*call)(void *), void *context, unsigned n_threads, unsigned flags);

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

int mu_cpu_memory(struct cpu_plan *p, const dnnl_memory_desc_t *md, enum cpu_place place,
		  size_t index)
{
	int number = p->impl->n_memories++;

	assert(number < CPU_MAX_MEMORIES);
	p->impl->memories[number] = (struct cpu_memory){.md = *md, .place = place, .index = index};
	return number;
}

static size_t room(const dnnl_memory_desc_t *md)
{
	return (dnnl_memory_desc_get_size(md) + MU_ALIGN - 1) / MU_ALIGN * MU_ALIGN;
}

int mu_cpu_keep(struct cpu_plan *p, const dnnl_memory_desc_t *md)
{
	size_t at = p->op->workspace_nbytes;

	p->op->workspace_nbytes += room(md);
	return mu_cpu_memory(p, md, CPU_WORKSPACE, at);
}

int mu_cpu_temporary(struct cpu_plan *p, const dnnl_memory_desc_t *md)
{
	size_t at = p->program->scratch_nbytes;

	p->program->scratch_nbytes += room(md);
	if (p->program->scratch_nbytes > p->op->scratch_nbytes)
		p->op->scratch_nbytes = p->program->scratch_nbytes;
	return mu_cpu_memory(p, md, CPU_SCRATCH, at);
}

const dnnl_memory_desc_t *mu_cpu_md(const struct cpu_plan *p, int memory)
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
	const dnnl_memory_desc_t *scratchpad = mu_cpu_query(pd, dnnl_query_scratchpad_md);

	for (int i = 0; i < n_args; i++)
		add_arg(step, args[i].arg, args[i].memory);
	if (dnnl_memory_desc_get_size(scratchpad) > 0) {
		size_t before = p->program->scratch_nbytes;

		add_arg(step, DNNL_ARG_SCRATCHPAD, mu_cpu_temporary(p, scratchpad));
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

static enum mu_status user_scratchpad(dnnl_primitive_attr_t *attr)
{
	enum mu_status st = MU_OK;

	CPU_DNNL(dnnl_primitive_attr_create(attr));
	CPU_DNNL(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
out:
	return st;
}

enum mu_status mu_cpu_reorder(struct cpu_plan *p, int from, int to)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t pd = NULL;

	MU_TRY(user_scratchpad(&attr));
	CPU_DNNL(dnnl_reorder_primitive_desc_create(&pd, mu_cpu_md(p, from), p->cpu->engine,
						    mu_cpu_md(p, to), p->cpu->engine, attr));
	MU_TRY(mu_cpu_step(p, pd, 2, (struct cpu_arg[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}));
out:
	dnnl_primitive_attr_destroy(attr);
	return st;
}

enum mu_status mu_cpu_step_to(struct cpu_plan *p, dnnl_primitive_desc_t pd, int n_args,
			      struct cpu_arg *args, const dnnl_memory_desc_t *md, int to)
{
	enum mu_status st = MU_OK;
	int *out = &args[n_args - 1].memory;

	*out = dnnl_memory_desc_equal(md, mu_cpu_md(p, to)) ? to : mu_cpu_temporary(p, md);
	MU_TRY(mu_cpu_step(p, pd, n_args, args));
	if (*out != to)
		MU_TRY(mu_cpu_reorder(p, *out, to));
out:
	return st;
}

enum mu_status mu_cpu_as(struct cpu_plan *p, int memory, const dnnl_memory_desc_t *md, bool keep,
			 int *out)
{
	enum mu_status st = MU_OK;

	*out = memory;
	if (dnnl_memory_desc_equal(mu_cpu_md(p, memory), md))
		return MU_OK;
	*out = keep ? mu_cpu_keep(p, md) : mu_cpu_temporary(p, md);
	MU_TRY(mu_cpu_reorder(p, memory, *out));
out:
	return st;
}

enum mu_status mu_cpu_weights_as(struct cpu_plan *p, int ndims, const dnnl_dim_t *dims,
				 const dnnl_memory_desc_t *md, int *out)
{
	dnnl_memory_desc_t have;

	mu_cpu_param_md(&have, &p->op->params[0], ndims, dims);
	return mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_PARAM_DATA, 0), md, false, out);
}

dnnl_alg_kind_t mu_cpu_eltwise(const struct mu_activation *activation)
{
	switch (activation->kind) {
	case MU_ACTIVATION_RELU: return dnnl_eltwise_relu;
	case MU_ACTIVATION_TANH: return dnnl_eltwise_tanh;
	default: return dnnl_eltwise_logistic;
	}
}

/* oneDNN's first kernel with this in its name; *pd NULL: there is none. */
static enum mu_status find_kernel(const struct cpu_plan *p, const void *desc,
				  const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t hint,
				  const char *name, dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_desc_iterator_t kernels = NULL;
	dnnl_status_t found =
		dnnl_primitive_desc_iterator_create(&kernels, desc, attr, p->cpu->engine, hint);

	for (; found == dnnl_success; found = dnnl_primitive_desc_iterator_next(kernels)) {
		*pd = dnnl_primitive_desc_iterator_fetch(kernels);
		if (!*pd)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", p->op->name);
		if (mu_cpu_is_kernel(*pd, name))
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

bool mu_cpu_is_kernel(const_dnnl_primitive_desc_t pd, const char *name)
{
	const char *is = "";

	return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &is) == dnnl_success &&
	       strstr(is, name);
}

enum mu_status mu_cpu_describe_if(struct cpu_plan *p, const void *desc,
				  const struct mu_activation *activation,
				  dnnl_primitive_desc_t hint, const char *name,
				  dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;
	dnnl_primitive_attr_t attr = NULL;
	dnnl_post_ops_t post = NULL;

	*pd = NULL;
	MU_TRY(user_scratchpad(&attr));
	if (activation) {
		CPU_DNNL(dnnl_post_ops_create(&post));
		CPU_DNNL(dnnl_post_ops_append_eltwise(post, 1, mu_cpu_eltwise(activation), 0, 0));
		CPU_DNNL(dnnl_primitive_attr_set_post_ops(attr, post));
	}
	MU_TRY(find_kernel(p, desc, attr, hint, name, pd));
out:
	dnnl_post_ops_destroy(post);
	dnnl_primitive_attr_destroy(attr);
	return st;
}

enum mu_status mu_cpu_describe(struct cpu_plan *p, const void *desc,
			       const struct mu_activation *activation, dnnl_primitive_desc_t hint,
			       dnnl_primitive_desc_t *pd)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cpu_describe_if(p, desc, activation, hint, "", pd));
	if (!*pd)
		MU_FAIL(MU_ERR_DEVICE, "%s: oneDNN has no kernel for this %s and shape",
			p->op->name, mu_op_kind_name(p->op->kind));
out:
	return st;
}

enum mu_status mu_cpu_binary(struct cpu_plan *p, dnnl_alg_kind_t kind, struct cpu_pair pair)
{
	enum mu_status st = MU_OK;
	dnnl_binary_desc_t desc;
	dnnl_primitive_desc_t pd = NULL;
	struct cpu_arg args[3] = {
		{DNNL_ARG_SRC_0, pair.a}, {DNNL_ARG_SRC_1, pair.b}, {DNNL_ARG_DST, pair.to}};

	CPU_DNNL(dnnl_binary_desc_init(&desc, kind, mu_cpu_md(p, pair.a), mu_cpu_md(p, pair.b),
				       mu_cpu_md(p, pair.to)));
	MU_TRY(mu_cpu_describe(p, &desc, pair.activation, NULL, &pd));
	MU_TRY(mu_cpu_step(p, pd, 3, args));
out:
	return st;
}

const dnnl_memory_desc_t *mu_cpu_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
	return dnnl_primitive_desc_query_md(pd, what, 0);
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
			CPU_DNNL(dnnl_memory_create(&m->memory, &m->md, cpu->engine,
						    pointer(op, m)));
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
