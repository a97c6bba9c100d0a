/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory plan. Time runs 0 .. 3n: forward of operation i is at time i, its backward at time
 * 2n-1-i, and deferred gradients of weights at 3n-i. Every buffer (a tensor's data, its gradient, a
 * workspace) has a first and a last time; a restored or recomputed buffer has gaps between its
 * uses. Two buffers may share memory if their times do not overlap. Buffers are placed from the
 * largest to the smallest, each at the lowest offset that is free during its time. (Greedy by size:
 * Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020.)
 */
#include "plan.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <muster/base.h>

struct span {
	long first, last; /* last < first: none */
};

enum { FORWARD, BACKWARD, WEIGHTS, PARTS };

/* With gaps, other buffers may use the memory between the phases of the step. */
struct buffer {
	size_t nbytes, at;
	struct span whole, parts[PARTS];
	bool gaps;
};

/* Buffer numbers: data of tensor t, gradient of tensor t; workspace, scratch and kept memory of
 * operation i. */
struct layout {
	struct mu_plan *plan;
	struct buffer *buffers;
	size_t n_buffers;
	size_t *data, *grad;         /* per tensor: its buffer; aliases share one */
	size_t *workspace, *scratch, *kept; /* per operation */
	size_t *order, *placed;             /* used while placing */
};

static long forward_time(size_t i)
{
	return (long)i;
}

static long backward_time(const struct mu_plan *plan, size_t i)
{
	return 2 * (long)plan->n_ops - 1 - (long)i;
}

static long weights_time(const struct mu_plan *plan, size_t i)
{
	return 3 * (long)plan->n_ops - (long)i;
}

static size_t tensor_number(const struct mu_plan *plan, const struct mu_tensor *t)
{
	return (size_t)(t - plan->tensors);
}

static size_t add_buffer(struct layout *m, size_t nbytes)
{
	const struct span none = {LONG_MAX, LONG_MIN};
	/* A line of a cache; on GPUs as whole allocations, which their libraries are used to. */
	const size_t line = m->plan->device->ops->memory ? 256 : 64;

	m->buffers[m->n_buffers] = (struct buffer){.nbytes = (nbytes + line - 1) / line * line,
						   .whole = none,
						   .parts = {none, none, none}};
	return m->n_buffers++;
}

static void extend(struct span *span, long time)
{
	if (time < span->first)
		span->first = time;
	if (time > span->last)
		span->last = time;
}

static void use(struct layout *m, size_t b, long time)
{
	const long n = (long)m->plan->n_ops;

	extend(&m->buffers[b].whole, time);
	extend(&m->buffers[b].parts[time < n ? FORWARD : time <= 2 * n ? BACKWARD : WEIGHTS], time);
}

/* A tensor that backward has read and that is not recomputed: no gap. */
static void keep(struct layout *m, size_t b, long time)
{
	extend(&m->buffers[b].whole, time);
	extend(&m->buffers[b].parts[BACKWARD], time);
}

/* Buffers merge: users of gradient buffer `from` use `to`. */
static void join_buffers(struct layout *m, size_t from, size_t to)
{
	for (size_t t = 0; t < m->plan->n_tensors; t++)
		if (m->grad[t] == from)
			m->grad[t] = to;
	if (from != to)
		m->buffers[from].nbytes = 0;
}

/* The gradients of a sum's inputs that alias its output's gradient. */
static void share_gradients(struct layout *m, const struct mu_op *op)
{
	for (int i = 0; i < op->n_inputs; i++)
		if (op->fusion.shared_grads >> i & 1 && op->inputs[i]->needs_grad)
			join_buffers(m, m->grad[tensor_number(m->plan, op->inputs[i])],
				     m->grad[tensor_number(m->plan, op->outputs[0])]);
}

/* Of an output. Nobody has a gradient of the predictions. */
static size_t gradient_bytes(const struct mu_op *op, int o)
{
	return mu_op_loss(op) ? 0 : op->outputs[o]->nbytes;
}

static void assign_buffers(struct layout *m)
{
	struct mu_plan *plan = m->plan;
	bool train = plan->phase == MU_PHASE_TRAIN;

	for (size_t i = 0; i < plan->n_received; i++) {
		const size_t t = plan->received[i];

		m->data[t] = add_buffer(m, plan->tensors[t].nbytes);
		if (plan->tensors[t].needs_grad)
			m->grad[t] = add_buffer(m, plan->tensors[t].nbytes);
	}
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];
		size_t in = tensor_number(plan, op->inputs[0]);

		for (int o = 0; o < op->n_outputs; o++) {
			size_t t = tensor_number(plan, op->outputs[o]);
			bool alias_grad =
				op->fusion.in_place && mu_op_has(op, MU_LAYER_IS_ACTIVATION);
			bool over = op->fusion.in_place && mu_op_has(op, MU_LAYER_WORKS_OVER);

			m->data[t] = op->fusion.in_place ? m->data[in]
							 : add_buffer(m, op->outputs[o]->nbytes);
			if (op->outputs[o]->needs_grad)
				m->grad[t] = alias_grad ? m->grad[in]
							: add_buffer(m, gradient_bytes(op, o));
			if (over && op->inputs[0]->needs_grad)
				m->grad[in] = m->data[in];
		}
		share_gradients(m, op);
		if (op->fusion.joined)
			join_buffers(m, m->grad[tensor_number(plan, op->outputs[0])], m->grad[in]);
		m->workspace[i] = add_buffer(m, op->workspace_nbytes);
		m->scratch[i] = add_buffer(m, op->scratch_nbytes);
		m->buffers[m->scratch[i]].gaps = train;
		m->kept[i] = add_buffer(m, op->kept_nbytes);
	}
}

/* Operation r is restored at this time. */
static void use_restored(struct layout *m, size_t r, long time)
{
	const struct mu_op *op = &m->plan->ops[r];

	for (int i = 0; i < op->n_inputs; i++)
		use(m, m->data[tensor_number(m->plan, op->inputs[i])], time);
	use(m, m->data[tensor_number(m->plan, op->outputs[0])], time);
	use(m, m->scratch[r], time);
}

/*
 * Tensors that are written or read outside this plan, at unknown times: received tensors, and
 * tensors without a reader here. Another part reads those between this part's forward and backward,
 * and then writes their gradient.
 */
static void use_borders(struct layout *m)
{
	struct mu_plan *plan = m->plan;
	const long n = (long)plan->n_ops, end = 2 * n;
	const bool train = plan->phase == MU_PHASE_TRAIN;

	for (size_t i = 0; i < plan->n_received; i++) {
		const size_t t = plan->received[i];

		use(m, m->data[t], -1);
		use(m, m->data[t], end);
		if (plan->tensors[t].needs_grad)
			use(m, m->grad[t], end);
	}
	for (size_t i = 0; i < plan->n_ops; i++)
		for (int o = 0; o < plan->ops[i].n_outputs; o++) {
			const struct mu_tensor *out = plan->ops[i].outputs[o];
			const size_t t = tensor_number(plan, out);

			if (mu_plan_reads(plan, out))
				continue;
			use(m, m->data[t], train && !mu_plan_has_end(plan) ? n - 1 : end);
			if (out->needs_grad)
				use(m, m->grad[t], n);
		}
}

/* What operation i reads when it computes the gradients of its weights. */
static void use_later(struct layout *m, size_t i)
{
	struct mu_plan *plan = m->plan;
	const struct mu_op *op = &plan->ops[i];
	const long time = weights_time(plan, i);

	for (int k = 0; k < op->n_inputs; k++)
		if (mu_plan_reads_input(op, k))
			keep(m, m->data[tensor_number(plan, op->inputs[k])], time);
	for (int k = 0; k < op->n_outputs; k++) {
		const size_t t = tensor_number(plan, op->outputs[k]);

		if (mu_plan_reads_output(op))
			keep(m, m->data[t], time);
		keep(m, m->grad[t], time);
	}
	keep(m, m->workspace[i], time);
	use(m, m->scratch[i], time);
}

static void find_lifetimes(struct layout *m)
{
	struct mu_plan *plan = m->plan;
	bool train = plan->phase == MU_PHASE_TRAIN;

	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];
		long forward = forward_time(i), backward = backward_time(plan, i);

		use(m, m->workspace[i], forward);
		use(m, m->scratch[i], forward);
		use(m, m->kept[i], -1); /* layers are prepared, and concluded, in any groups */
		use(m, m->kept[i], train ? 2 * (long)plan->n_ops : (long)plan->n_ops);
		if (train) {
			use(m, m->workspace[i], backward);
			use(m, m->scratch[i], backward);
		}
		for (int k = 0; k < op->n_inputs + op->n_outputs; k++) {
			bool input = k < op->n_inputs;
			size_t t = tensor_number(plan, input ? op->inputs[k]
							     : op->outputs[k - op->n_inputs]);

			use(m, m->data[t], forward);
			if (train &&
			    (input ? mu_plan_reads_input(op, k) : mu_plan_reads_output(op)))
				use(m, m->data[t], backward);
			if (plan->tensors[t].needs_grad)
				use(m, m->grad[t], backward);
		}
		for (int k = 0; op->fusion.branches && k < 2; k++)
			use(m, m->grad[tensor_number(plan, op->fusion.branches[k])], backward);
		if (op->fusion.restored)
			m->buffers[m->data[tensor_number(plan, op->outputs[0])]].gaps = true;
		if (op->fusion.weights_later && op->outputs[0]->needs_grad)
			use_later(m, i);
	}
	for (size_t l = 0; l < plan->n_ops; l++)
		for (size_t k = plan->restore.first[l]; k < plan->restore.first[l + 1]; k++)
			use_restored(m, plan->restore.all[k], backward_time(plan, l));
	use_borders(m);
}

static bool spans_meet(const struct span *a, const struct span *b)
{
	return a->first <= b->last && b->first <= a->last;
}

static bool meet(const struct buffer *a, const struct buffer *b)
{
	const struct span *of_a = a->gaps ? a->parts : &a->whole;
	const struct span *of_b = b->gaps ? b->parts : &b->whole;

	for (int i = 0; i < (a->gaps ? PARTS : 1); i++)
		for (int k = 0; k < (b->gaps ? PARTS : 1); k++)
			if (spans_meet(&of_a[i], &of_b[k]))
				return true;
	return false;
}

/* Lowest offset at which buffer b overlaps no placed buffer that is alive at the same time; placed
 * is sorted by offset. */
static size_t lowest_offset(const struct layout *m, const struct buffer *b, size_t n_placed)
{
	size_t at = 0;

	for (size_t i = 0; i < n_placed; i++) {
		const struct buffer *p = &m->buffers[m->placed[i]];

		if (!meet(b, p) || p->nbytes == 0)
			continue;
		if (p->at >= at + b->nbytes)
			break;
		if (p->at + p->nbytes > at)
			at = p->at + p->nbytes;
	}
	return at;
}

static void place(struct layout *m)
{
	size_t n = m->n_buffers, *order = m->order, total = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && m->buffers[order[k - 1]].nbytes < m->buffers[i].nbytes; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	for (size_t i = 0; i < n; i++) {
		struct buffer *b = &m->buffers[order[i]];
		size_t k = i;

		b->at = lowest_offset(m, b, i);
		for (; k > 0 && m->buffers[m->placed[k - 1]].at > b->at; k--)
			m->placed[k] = m->placed[k - 1];
		m->placed[k] = order[i];
		if (b->at + b->nbytes > total)
			total = b->at + b->nbytes;
	}
	m->plan->memory.nbytes = total;
}

static void *pointer(const struct layout *m, size_t b)
{
	return (char *)m->plan->memory.arena + m->buffers[b].at;
}

static void set_pointers(struct layout *m)
{
	struct mu_plan *plan = m->plan;

	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		op->workspace = op->workspace_nbytes ? pointer(m, m->workspace[i]) : NULL;
		op->scratch = op->scratch_nbytes ? pointer(m, m->scratch[i]) : NULL;
		op->kept = op->kept_nbytes ? pointer(m, m->kept[i]) : NULL;
		for (int k = 0; k < op->n_inputs + op->n_outputs; k++) {
			struct mu_tensor *t =
				k < op->n_inputs ? op->inputs[k] : op->outputs[k - op->n_inputs];

			t->data = pointer(m, m->data[tensor_number(plan, t)]);
			t->grad =
				t->needs_grad ? pointer(m, m->grad[tensor_number(plan, t)]) : NULL;
		}
	}
}

/* Memory is zeroed when allocated, so the system would kill the process instead of returning an
 * error. Memory is about proportional to the batch. */
static enum mu_status check_fits(const struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	double have = mu_memory_bytes(), need = (double)plan->memory.nbytes;

	if (have > 0 && need > have)
		MU_FAIL(MU_ERR_MEMORY,
			"network %s with a batch of %zu needs %.1f GB for activations; this "
			"machine has %.1f GB: a batch of about %.0f would fit",
			plan->net->config.network, plan->batch_size, need / 1e9, have / 1e9,
			floor((double)plan->batch_size * 0.8 * have / need));
out:
	return st;
}

enum mu_status mu_plan_memory(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	size_t nt = plan->n_tensors, n_max = 2 * nt + 3 * plan->n_ops;
	struct layout m = {.plan = plan};

	m.buffers = calloc(n_max, sizeof *m.buffers);
	m.data = calloc(3 * n_max, sizeof *m.data);
	if (!m.buffers || !m.data)
		MU_FAIL(MU_ERR_MEMORY, "no memory to plan network %s", plan->net->config.network);
	m.grad = m.data + nt;
	m.workspace = m.grad + nt;
	m.scratch = m.workspace + plan->n_ops;
	m.kept = m.scratch + plan->n_ops;
	m.order = m.kept + plan->n_ops;
	m.placed = m.order + n_max;
	assign_buffers(&m);
	find_lifetimes(&m);
	place(&m);
	if (plan->memory.dry)
		goto out;
	if (!plan->memory.borrowed) {
		if (!plan->device->ops->memory)
			MU_TRY(check_fits(plan));
		MU_TRY(mu_plan_alloc(plan, &plan->memory.arena, plan->memory.nbytes,
				     "activations"));
	}
	set_pointers(&m);
out:
	free(m.buffers);
	free(m.data);
	return st;
}
