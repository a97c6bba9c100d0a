/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch on stages. Every device runs its tasks in the order of the schedule. Counters (threads.h)
 * hold the forwards and backwards of each stage of this rank that have ended, and the messages that
 * have arrived from other ranks. The thread of the first device, the only one that calls MPI, runs
 * its tasks in the calls of the training loop: in forward up to its last forward, in backward the
 * rest, layer by layer. A layer's gradients are complete after the backward of the last
 * micro-batch, or of time blocks after its part for weights; gradients of stages on other ranks are
 * 0 here. The later stage copies the tensors of a border, in both directions, while the earlier
 * stage's slot waits for the gradient.
 */
#include "staged.h"

#include <string.h>

#include <muster/base.h>

size_t mu_engine_staged_counter(size_t stage, int which)
{
	return stage * ENGINE_STAGE_COUNTERS + (size_t)which;
}

static size_t counted(const struct mu_engine *e, size_t stage, int which)
{
	return mu_engine_threads_count(e->devices.threads, mu_engine_staged_counter(stage, which));
}

static const struct mu_stage_order *schedule_of(const struct engine_staged *s)
{
	return s->phase == MU_PHASE_TRAIN ? s->train : s->infer;
}

/* The next task of a device of this rank in this batch; NULL after the last. */
static const struct mu_stage_task *next_task(const struct mu_engine *e, size_t member,
					     struct engine_place *place)
{
	const struct engine_staged *s = e->split;
	const struct mu_stage_order *schedule = schedule_of(s);
	const size_t device = e->team.member * e->devices.list.n + member;
	const size_t n = schedule->first[device + 1] - schedule->first[device];

	for (; place->task < n; place->task++) {
		const struct mu_stage_task *task =
			&schedule->tasks[schedule->first[device] + place->task];

		if (task->micro < s->n_now)
			return task;
	}
	return NULL;
}

/* ---- a task ---- */

/* What a task needs because of border b: counter *i is at least *least. False: nothing. */
static bool find_need(const struct mu_engine *e, const struct mu_stage_task *task, size_t b,
		      size_t *i, size_t *least)
{
	const struct engine_staged *s = e->split;
	const struct engine_border *border = &s->borders[b];
	const bool from_here = mu_engine_staged_is_here(e, border->from);
	const bool to_here = mu_engine_staged_is_here(e, border->to);
	const size_t slots = s->of[task->stage].n_slots;

	*least = task->micro + 1;
	if (task->work == MU_STAGE_WEIGHTS)
		return false;
	if (task->work == MU_STAGE_BACKWARD) {
		*i = to_here ? mu_engine_staged_counter(border->to, ENGINE_BACKWARDS)
			     : mu_engine_border_counter(e, b, ENGINE_GRADIENTS);
		return border->from == task->stage &&
		       (to_here || border->ways[ENGINE_GRADIENTS].passage);
	}
	if (border->to == task->stage) {
		*i = from_here ? mu_engine_staged_counter(border->from, ENGINE_FORWARDS)
			       : mu_engine_border_counter(e, b, ENGINE_VALUES);
		return true;
	}
	/* Without backward a slot is free after its reader's forward. */
	*i = mu_engine_staged_counter(border->to, ENGINE_FORWARDS);
	*least -= slots;
	return s->phase == MU_PHASE_INFER && border->from == task->stage && to_here &&
	       task->micro >= slots;
}

/* Can the task begin? Members from 1 on sleep until it can; false: stopped. */
static bool is_ready(struct mu_engine *e, size_t member, const struct mu_stage_task *task)
{
	struct engine_threads *threads = e->devices.threads;
	size_t i, least;

	for (size_t b = 0; b < e->split->n_borders; b++) {
		if (!find_need(e, task, b, &i, &least))
			continue;
		if (member > 0 ? !mu_engine_threads_wait_count(threads, i, least)
			       : mu_engine_threads_count(threads, i) < least)
			return false;
	}
	return true;
}

static enum mu_status end_forward(struct mu_engine *e, size_t member, size_t stage, size_t k)
{
	enum mu_status st = MU_OK;

	if (stage + 1 == e->split->stages.n)
		MU_TRY(mu_engine_staged_keep(e, k));
	MU_TRY(mu_engine_borders_send(e, stage, k, ENGINE_VALUES));
	MU_TRY(mu_plan_finish(mu_engine_staged_plan_of(e->split, stage, k)));
	mu_engine_threads_increment(e->devices.threads, member,
				    mu_engine_staged_counter(stage, ENGINE_FORWARDS));
out:
	return st;
}

/* Add the gradients of layer l to the sums of earlier micro-batches, if its kernels cannot. */
static void add_gradients(const struct mu_engine *e, size_t l)
{
	const struct engine_staged *s = e->split;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	const size_t *keys;

	for (size_t i = mu_plan_layer_keys(e->plan, l, &keys); i-- > 0;) {
		const struct mu_slice *slice = &slices[keys[i]];

		mu_engine_add(s->gradients + slice->at, s->partial + slice->at, slice->n_padded);
	}
}

/* Backward of layer i of the stage, or its deferred part. */
static enum mu_status backward_layer(struct mu_engine *e, size_t member,
				     const struct mu_stage_task *task, size_t i)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	const bool later = task->work == MU_STAGE_WEIGHTS;
	struct mu_plan *plan =
		mu_engine_staged_plan_of(s, task->stage, mu_engine_staged_micro(s, task->micro));

	MU_TRY(later ? mu_plan_backward_weights(plan, i) : mu_plan_backward(plan, i));
	if (task->micro > 0 && !mu_plan_adds(plan, i) && later == mu_plan_weights_later(plan, i))
		add_gradients(e, s->stages.of[task->stage].first + i);
	if (task->micro + 1 == s->n_now && later == s->stages.blocks)
		mu_engine_threads_increment(e->devices.threads, member,
					    mu_engine_staged_counter(task->stage, ENGINE_LAYERS));
out:
	return st;
}

static enum mu_status end_backward(struct mu_engine *e, size_t member, size_t stage, size_t number)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	const size_t k = mu_engine_staged_micro(s, number);

	for (size_t r = 0; r < stage; r++)
		if (mu_engine_staged_is_here(e, r))
			MU_TRY(mu_plan_return(mu_engine_staged_plan_of(s, stage, k),
					      mu_engine_staged_plan_of(s, r, k)));
	MU_TRY(mu_engine_borders_send(e, stage, number, ENGINE_GRADIENTS));
	MU_TRY(mu_plan_finish(mu_engine_staged_plan_of(s, stage, k)));
	mu_engine_threads_increment(e->devices.threads, member,
				    mu_engine_staged_counter(stage, ENGINE_BACKWARDS));
out:
	return st;
}

static enum mu_status begin_task(struct mu_engine *e, const struct mu_stage_task *task)
{
	switch (task->work) {
	case MU_STAGE_FORWARD: return mu_engine_staged_begin_forward(e, task->stage, task->micro);
	case MU_STAGE_BACKWARD:
		return mu_engine_borders_receive(e, task->stage, task->micro, ENGINE_GRADIENTS);
	default: return MU_OK;
	}
}

static enum mu_status end_task(struct mu_engine *e, size_t member, const struct mu_stage_task *task)
{
	switch (task->work) {
	case MU_STAGE_FORWARD: return end_forward(e, member, task->stage, task->micro);
	case MU_STAGE_BACKWARD: return end_backward(e, member, task->stage, task->micro);
	default: return MU_OK;
	}
}

/* The next layer of a task that is ready; after its last layer the place is the next task. */
static enum mu_status do_layer(struct mu_engine *e, size_t member, struct engine_place *place,
			       const struct mu_stage_task *task)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	const size_t n = s->stages.of[task->stage].n;

	if (!place->begun)
		MU_TRY(begin_task(e, task));
	place->begun = true;
	if (task->work == MU_STAGE_FORWARD)
		MU_TRY(mu_plan_forward(mu_engine_staged_plan_of(s, task->stage, task->micro),
				       place->done));
	else
		MU_TRY(backward_layer(e, member, task, n - 1 - place->done));
	if (++place->done < n)
		goto out;
	MU_TRY(end_task(e, member, task));
	*place = (struct engine_place){.task = place->task + 1};
out:
	return mu_engine_device_named(e, &e->devices.of[member], st);
}

/* ---- the other devices ---- */

/* Wait for the weights of the next layer: only in the first micro-batch. */
static bool has_weights(const struct mu_engine *e, const struct mu_stage_task *task, size_t done)
{
	const size_t l = e->split->stages.of[task->stage].first + done;

	if (task->work != MU_STAGE_FORWARD || task->micro > 0)
		return true;
	return mu_engine_threads_wait_left(e->devices.threads, ENGINE_PULL,
					   mu_plan_layers(e->plan) - 1 - l);
}

static enum mu_status work(void *context, size_t member)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = context;
	struct engine_place place = {.task = 0};
	const struct mu_stage_task *task;

	while ((task = next_task(e, member, &place))) {
		if ((!place.begun && !is_ready(e, member, task)) ||
		    !has_weights(e, task, place.done) ||
		    mu_engine_threads_stopped(e->devices.threads))
			goto out;
		MU_TRY(do_layer(e, member, &place, task));
	}
out:
	return st;
}

/* ---- the first device ---- */

/* A layer of the first device, or a short wait if it is not ready; makes progress on messages. */
static enum mu_status do_or_wait(struct mu_engine *e, const struct mu_stage_task *task)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;

	MU_TRY(mu_engine_poll(e));
	MU_TRY(mu_engine_borders_move(e));
	if (task && (s->place.begun || is_ready(e, 0, task))) {
		MU_TRY(do_layer(e, 0, &s->place, task));
		MU_TRY(mu_engine_borders_move(e));
		mu_waiter_reset(&s->waiter);
	} else {
		mu_waiter_nap(&s->waiter);
		if (e->team.size > 1)
			MU_TRY(mu_waiter_check(&s->waiter, mu_engine_borders_awaited, e));
	}
out:
	return st;
}

/* End the batch, after all messages for other ranks have left: later waits make no progress on
 * them. */
static enum mu_status end_job(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;

	while (!mu_engine_threads_stopped(e->devices.threads) &&
	       !(mu_engine_threads_ended(e->devices.threads) && mu_engine_borders_have_left(e)))
		MU_TRY(do_or_wait(e, next_task(e, 0, &s->place)));
	s->under_way = false;
	MU_TRY(mu_engine_devices_join(e, true));
out:
	return st;
}

/* Is the next layer of this task layer l of the first micro-batch's forward? */
static bool is_first_forward(const struct engine_staged *s, const struct mu_stage_task *task,
			     size_t l)
{
	return task && task->work == MU_STAGE_FORWARD && task->micro == 0 &&
	       s->stages.of[task->stage].first + s->place.done == l;
}

/* The rest of forward on this rank's devices. */
static enum mu_status end_forwards(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	size_t last = s->stages.n - 1;

	while (!mu_engine_staged_is_here(e, last))
		last--;
	while (counted(e, last, ENGINE_FORWARDS) < s->n_now) {
		if (mu_engine_threads_stopped(e->devices.threads)) {
			MU_TRY(end_job(e));
			goto out;
		}
		MU_TRY(do_or_wait(e, next_task(e, 0, &s->place)));
	}
	if (s->phase == MU_PHASE_INFER)
		MU_TRY(end_job(e));
out:
	return st;
}

static enum mu_status begin_job(struct mu_engine *e)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_borders_begin(e));
	e->split->under_way = true;
	mu_waiter_init(&e->split->waiter, e->members);
	e->split->waiter.without_mpi = e->comm_thread != NULL;
	mu_engine_threads_begin(e->devices.threads, work, e);
out:
	return st;
}

static float *begin(struct mu_engine *e, enum mu_phase phase, size_t group,
		    const struct mu_batch *batch)
{
	struct engine_staged *s = e->split;

	s->phase = phase;
	s->group = group;
	s->batch = *batch;
	s->total = batch->count;
	s->n_now = (s->total + s->micro - 1) / s->micro;
	s->place = (struct engine_place){.task = 0};
	e->devices.sample = mu_input_sample(e->train, group);
	if (s->steps > 0)
		s->n_now = (e->devices.sample + s->steps - 1) / s->steps;
	mu_engine_threads_reset(e->devices.threads);
	return e->devices.samples;
}

static void count(struct mu_engine *e, size_t count)
{
	e->split->batch.count = count;
}

static enum mu_status forward(struct mu_engine *e, size_t l)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	const size_t left = mu_plan_layers(e->plan) - 1 - l;

	mu_engine_threads_set_left(e->devices.threads, 0, ENGINE_PULL, left);
	if (l == 0)
		MU_TRY(begin_job(e));
	while (!mu_engine_threads_stopped(e->devices.threads) &&
	       is_first_forward(s, next_task(e, 0, &s->place), l))
		MU_TRY(do_or_wait(e, next_task(e, 0, &s->place)));
	if (left == 0 || mu_engine_threads_stopped(e->devices.threads))
		MU_TRY(end_forwards(e));
out:
	return st;
}

/* Set the gradients of layers on other ranks to 0. */
static void clear_others(const struct mu_engine *e)
{
	const struct mu_stages *stages = &e->split->stages;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	const size_t *keys;

	for (size_t s = 0; s < stages->n; s++)
		for (size_t l = 0; !mu_engine_staged_is_here(e, s) && l < stages->of[s].n; l++)
			for (size_t i = mu_plan_layer_keys(e->plan, stages->of[s].first + l, &keys);
			     i-- > 0;)
				memset(e->split->gradients + slices[keys[i]].at, 0,
				       slices[keys[i]].n_padded * sizeof(float));
}

/* The first layer from which on all gradients are complete. */
static size_t complete_from(const struct mu_engine *e)
{
	const struct mu_stages *stages = &e->split->stages;

	for (size_t s = stages->n; s-- > 0;) {
		const size_t done = counted(e, s, ENGINE_LAYERS);

		if (mu_engine_staged_is_here(e, s) && done < stages->of[s].n)
			return stages->of[s].first + stages->of[s].n - done;
	}
	return 0;
}

static enum mu_status backward(struct mu_engine *e, size_t *ready)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	const size_t before = complete_from(e);

	if (*ready == mu_plan_layers(e->plan))
		clear_others(e);
	do { /* one call for each layer: clocks and spans count calls */
		if (!mu_engine_threads_stopped(e->devices.threads))
			MU_TRY(do_or_wait(e, next_task(e, 0, &s->place)));
		*ready = complete_from(e);
	} while (*ready == before && before > 0 && !mu_engine_threads_stopped(e->devices.threads));
	if (*ready == 0 || mu_engine_threads_stopped(e->devices.threads))
		MU_TRY(end_job(e));
out:
	return st;
}

static enum mu_status skip(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	size_t ready = mu_plan_layers(e->plan);
	bool overflowed;

	while (e->split->under_way && ready > 0)
		MU_TRY(backward(e, &ready));
	MU_TRY(mu_engine_staged_overflowed(e, &overflowed)); /* clears the mark */
out:
	return st;
}

static void describe(const struct mu_engine *e)
{
	char text[128];

	for (size_t i = 0; i < e->devices.list.n; i++)
		mu_log_detail("device %s",
			      mu_engine_device_text(&e->devices.of[i].device, text, sizeof text));
	mu_engine_staged_report(e);
}

const struct mu_engine_ops mu_engine_staged = {
	.open = mu_engine_staged_open,
	.plan = mu_engine_staged_plan,
	.allocate = mu_engine_staged_allocate,
	.close = mu_engine_staged_close,
	.arena = mu_engine_staged_arena,
	.activations = mu_engine_staged_arena,
	.hash = mu_engine_borders_hash,
	.bind = mu_engine_staged_bind,
	.begin = begin,
	.count = count,
	.forward = forward,
	.backward = backward,
	.loss = mu_engine_staged_loss,
	.measure = mu_engine_staged_measure,
	.probabilities = mu_engine_staged_probabilities,
	.predictions = mu_engine_staged_predictions,
	.overflowed = mu_engine_staged_overflowed,
	.skip = skip,
	.find_nonfinite = mu_engine_staged_find_nonfinite,
	.describe = describe,
	.print = mu_engine_staged_print,
};
