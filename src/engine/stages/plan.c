/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a network on several devices, and their plans. A stage has a slot for each
 * micro-batch that it holds at a time: a plan of its layers with its own memory. Stages are planned
 * in order, because a plan uses the layouts of the tensors that it receives; each on the thread of
 * its device.
 */
#include "staged.h"

#include <muster/base.h>

/* ---- places ---- */

size_t mu_engine_staged_member(const struct mu_engine *e, size_t stage)
{
	return e->split->stages.of[stage].device / e->devices.list.n;
}

bool mu_engine_staged_is_here(const struct mu_engine *e, size_t stage)
{
	return mu_engine_staged_member(e, stage) == e->team.member;
}

/* The stage's device; for a stage of another rank the device of this rank with the same number. */
static size_t device_of(const struct mu_engine *e, size_t stage)
{
	return e->split->stages.of[stage].device % e->devices.list.n;
}

/* ---- life ---- */

typedef enum mu_status slot_fn(struct mu_engine *e, size_t stage, size_t slot);

static enum mu_status work_on_stage(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	const size_t stage = s->work.stage;

	for (size_t i = 0; device_of(e, stage) == d->number && i < s->of[stage].n_slots; i++)
		MU_TRY(s->work.fn(e, stage, i));
out:
	return st;
}

/* Stage by stage, each on the thread of its device. */
static enum mu_status for_all_slots(struct mu_engine *e, slot_fn *fn)
{
	enum mu_status st = MU_OK;
	struct engine_stage_work *work = &e->split->work;

	work->fn = fn;
	for (work->stage = 0; work->stage < e->split->stages.n; work->stage++)
		MU_TRY(mu_engine_devices_run(e, work_on_stage));
out:
	return st;
}

/* The plan of a slot and group for the phase and batch of `like`. */
static struct mu_plan **find_plan(struct mu_engine *e, size_t stage, size_t slot, size_t group,
				  const struct mu_plan_part *like)
{
	struct engine_plans *p = &e->split->of[stage].slots[slot].plans[group];

	if (like->phase == MU_PHASE_INFER)
		return &p->infer;
	return like->batch == e->split->micro ? &p->full : &p->tail;
}

/* Plan a slot of a stage, for the phase and batch of `like`. All slots of a stage have the same
 * layouts. */
static enum mu_status plan_part(struct mu_engine *e, size_t stage, size_t slot, size_t group,
				const struct mu_plan_part *like)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	const struct mu_stage *own = &s->stages.of[stage];
	struct mu_plan *before[MU_MAX_STAGES];
	struct mu_plan_part part = *like;

	for (size_t r = 0; r < stage; r++)
		for (size_t i = 0; i < s->of[r].n_slots; i++)
			if (*find_plan(e, r, i, group, like))
				before[r] = *find_plan(e, r, i, group, like);
	part.net = e->block_net ? e->block_net : e->nets[group];
	part.of_block = s->steps > 0;
	if (part.of_block && slot > 0)
		part.first_block = *find_plan(e, stage, 0, group, like);
	part.device = &e->devices.of[device_of(e, stage)].device;
	part.whole = s->whole;
	part.first = own->first;
	part.n = own->n;
	part.before = before;
	part.n_before = stage;
	MU_TRY(mu_plan_new_part(find_plan(e, stage, slot, group, like), &part));
out:
	return st;
}

static enum mu_status plan_full(struct mu_engine *e, size_t stage, size_t slot)
{
	enum mu_status st = MU_OK;
	struct engine_slot *own = &e->split->of[stage].slots[slot];
	const struct mu_plan_part like = {.batch = e->split->micro, .phase = MU_PHASE_TRAIN};

	MU_TRY(MU_ALLOC(own->plans, e->split->n_groups, "plans"));
	MU_TRY(plan_part(e, stage, slot, e->split->n_groups - 1, &like));
out:
	return st;
}

static enum mu_status make_stages(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	const size_t devices = e->devices.list.n * e->devices.list.ranks;
	struct mu_stage_border *borders = NULL;

	MU_TRY(mu_engine_device_stages(&e->devices.list, e->conf, s->whole, &s->stages));
	s->stages.blocks = s->steps > 0;
	MU_TRY(mu_stage_order_new(&s->train, &s->stages, devices, s->n_micro, true));
	MU_TRY(mu_stage_order_new(&s->infer, &s->stages, devices, s->n_micro, false));
	MU_TRY(MU_ALLOC(s->of, s->stages.n, "stages"));
	for (size_t i = 0; i < s->stages.n; i++) {
		const size_t n = mu_engine_staged_is_here(e, i)
					 ? mu_stage_slots(&s->stages, i, s->n_micro)
					 : 1;

		MU_TRY(MU_ALLOC(s->of[i].slots, n, "stages"));
		s->of[i].n_slots = n;
	}
	MU_TRY(mu_stages_borders(&s->stages, s->whole, s->n_micro, &borders, &s->n_borders));
	MU_TRY(MU_ALLOC(s->borders, s->n_borders + 1, "borders"));
	for (size_t b = 0; b < s->n_borders; b++)
		s->borders[b] =
			(struct engine_border){.from = borders[b].from, .to = borders[b].to};
out:
	mu_free(borders);
	return st;
}

static enum mu_status plan_whole(struct mu_engine *e, struct engine_device *d)
{
	if (d->number > 0)
		return MU_OK;
	return mu_plan_new_dry(&e->split->whole, e->block_net ? e->block_net : e->net, &d->device,
			       e->split->micro, MU_PHASE_TRAIN, NULL);
}

enum mu_status mu_engine_staged_open(struct mu_engine *e, size_t batch)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s;

	MU_TRY(MU_ALLOC(e->split, 1, "stages"));
	s = e->split;
	s->comm = MPI_COMM_NULL;
	s->n_groups = e->n_groups;
	s->n_micro = (size_t)e->conf->micro_batches;
	s->micro = batch / s->n_micro;
	if (e->block_net) {
		s->n_groups = 1;
		s->steps = mu_net_labels(e->block_net);
		s->n_micro = (mu_net_labels(e->net) + s->steps - 1) / s->steps;
	}
	MU_TRY(mu_engine_devices_run(e, plan_whole));
	e->plan = s->whole;
	MU_TRY(make_stages(e));
	if (!e->devices.threads)
		MU_TRY(mu_engine_threads_new(&e->devices.threads, 1, e->members));
	MU_TRY(mu_engine_threads_counters(e->devices.threads,
					  mu_engine_border_counter(e, s->n_borders, 0)));
	MU_TRY(for_all_slots(e, plan_full));
out:
	return st;
}

static void close_slot(struct engine_slot *slot, size_t n_groups)
{
	for (size_t g = 0; slot->plans && g < n_groups; g++) {
		mu_plan_free(slot->plans[g].tail);
		mu_plan_free(slot->plans[g].infer);
		if (g + 1 < n_groups)
			mu_plan_free(slot->plans[g].full);
	}
	if (slot->plans)
		mu_plan_free(slot->plans[n_groups - 1].full);
	mu_free(slot->plans);
}

void mu_engine_staged_close(struct mu_engine *e)
{
	struct engine_staged *s = e->split;

	if (!s)
		return;
	mu_engine_borders_close(e);
	for (size_t i = 0; s->of && i < s->stages.n; i++) {
		for (size_t k = 0; k < s->of[i].n_slots; k++)
			close_slot(&s->of[i].slots[k], s->n_groups);
		mu_free(s->of[i].slots);
	}
	mu_plan_free(s->whole);
	mu_stage_order_free(s->train);
	mu_stage_order_free(s->infer);
	mu_free(s->of);
	mu_free(s->borders);
	mu_free(s->partial);
	mu_free(s->probabilities);
	mu_free(s->predictions);
	mu_free(s->labels);
	mu_free(s->losses);
	mu_free(s->measured);
	mu_free(s);
	e->split = NULL;
}

/* ---- other plans, and memory ---- */

static bool has_records(const struct mu_input *in, size_t group)
{
	return in->groups ? in->groups[group].n > 0 : in->n > 0;
}

static enum mu_status plan_others(struct mu_engine *e, size_t stage, size_t slot)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	const bool ends_early = !e->train->groups && e->steps < e->train->steps;
	const struct mu_plan_part infer = {.batch = s->micro, .phase = MU_PHASE_INFER};

	if (s->steps > 0 && e->validate)
		MU_TRY(plan_part(e, stage, slot, 0, &infer));
	for (size_t g = 0; s->steps == 0 && g < s->n_groups; g++) {
		const size_t rest = ends_early ? 0 : mu_input_rest(e->train, g);
		struct mu_plan_part like = {.batch = s->micro, .phase = MU_PHASE_TRAIN};

		if (g + 1 < s->n_groups && has_records(e->train, g))
			MU_TRY(plan_part(e, stage, slot, g, &like));
		if (e->validate && has_records(e->validate, g))
			MU_TRY(plan_part(e, stage, slot, g, &infer));
		like.batch = rest % s->micro;
		if (like.batch > 0 && rest / s->micro % s->of[stage].n_slots == slot)
			MU_TRY(plan_part(e, stage, slot, g, &like));
	}
out:
	return st;
}

enum mu_status mu_engine_staged_plan(struct mu_engine *e)
{
	return for_all_slots(e, plan_others);
}

/* The plans of a slot share memory: only one is used at a time. */
static enum mu_status allocate(struct mu_engine *e, size_t stage, size_t slot)
{
	enum mu_status st = MU_OK;
	const struct engine_plans *plans = e->split->of[stage].slots[slot].plans;
	const size_t n_groups = e->split->n_groups;
	struct mu_plan *largest = plans[n_groups - 1].full;

	if (!mu_engine_staged_is_here(e, stage))
		goto out;
	MU_TRY(mu_plan_allocate(largest));
	for (size_t g = 0; g < n_groups; g++) {
		struct mu_plan *others[] = {plans[g].full, plans[g].tail, plans[g].infer};

		for (size_t i = 0; i < 3; i++)
			if (others[i] && others[i] != largest)
				MU_TRY(mu_plan_allocate_in(others[i], largest));
	}
out:
	return st;
}

enum mu_status mu_engine_staged_allocate(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	const struct mu_shape *shape = mu_plan_probabilities_shape(e->plan);

	MU_TRY(for_all_slots(e, allocate));
	MU_TRY(MU_ALLOC(s->losses, s->n_micro, "losses"));
	MU_TRY(MU_ALLOC(s->measured, s->n_micro, "metrics"));
	if (s->steps > 0)
		MU_TRY(MU_ALLOC(s->labels, s->n_micro * s->micro * s->steps, "labels of blocks"));
	if (e->conf->predict && (e->network->traits & MU_NETWORK_SEQUENCES) &&
	    mu_net_loss(e->net)->output == MU_OUTPUT_PROBABILITIES)
		MU_TRY(MU_ALLOC(s->predictions, s->n_micro * s->micro * mu_net_labels(e->net),
				"predictions of a batch"));
	if (s->n_micro == 1)
		goto out;
	MU_TRY(MU_ALLOC(s->partial, mu_plan_n(s->whole), "gradients of a micro-batch"));
	if (s->steps > 0)
		goto out;
	MU_TRY(MU_ALLOC(s->probabilities, s->n_micro * s->micro * mu_shape_sample(shape),
			"probabilities of a batch"));
out:
	return st;
}

double mu_engine_staged_arena(const struct mu_engine *e)
{
	const struct engine_staged *s = e->split;
	double sum = 0;

	for (size_t i = 0; i < s->stages.n; i++)
		for (size_t k = 0; mu_engine_staged_is_here(e, i) && k < s->of[i].n_slots; k++)
			sum += (double)mu_plan_arena_bytes(
				s->of[i].slots[k].plans[s->n_groups - 1].full);
	return sum;
}

static enum mu_status bind(struct mu_engine *e, size_t stage, size_t slot)
{
	enum mu_status st = MU_OK;
	const struct engine_plans *plans = e->split->of[stage].slots[slot].plans;
	float *weights = mu_kv_weights(e->kv);

	if (!mu_engine_staged_is_here(e, stage))
		goto out;
	for (size_t g = 0; g < e->split->n_groups; g++) {
		if (plans[g].full)
			MU_TRY(mu_plan_bind(plans[g].full, weights, e->split->gradients));
		if (plans[g].tail)
			MU_TRY(mu_plan_bind(plans[g].tail, weights, e->split->gradients));
		if (plans[g].infer)
			MU_TRY(mu_plan_bind(plans[g].infer, weights, NULL));
	}
out:
	return st;
}

enum mu_status mu_engine_staged_bind(struct mu_engine *e)
{
	e->split->gradients = mu_kv_gradients(e->kv);
	return for_all_slots(e, bind);
}

/* ---- log and summary ---- */

static double count_params(const struct mu_plan *plan, const struct mu_stage *stage)
{
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(plan, &n_slices);
	const size_t *keys;
	double n = 0;

	for (size_t l = stage->first; l < stage->first + stage->n; l++)
		for (size_t i = mu_plan_layer_keys(plan, l, &keys); i-- > 0;)
			if (slices[keys[i]].rule == MU_SLICE_LEARN)
				n += (double)slices[keys[i]].n;
	return n;
}

static double count_macs(const struct mu_plan *plan, const struct mu_stage *stage)
{
	struct mu_layer_cost forward, backward;
	double flops = 0;

	for (size_t l = stage->first; l < stage->first + stage->n; l++) {
		mu_plan_layer_cost(plan, l, &forward, &backward);
		flops += forward.flops;
	}
	return flops / 2;
}

/* "stage 0 on cpu:0: embed to dropout4, 9.4 M parameters, 0.236 GMAC per sample"; in a team "on
 * cpu:0 of rank 0" */
static void describe_stage(const struct engine_device_list *list, const struct mu_plan *plan,
			   const struct mu_stages *stages, size_t s, char text[256])
{
	const char *of = stages->blocks ? "block of a sample" : "sample";
	const struct mu_stage *stage = &stages->of[s];
	char name[32], rank[32] = "";

	if (list->ranks > 1)
		snprintf(rank, sizeof rank, " of rank %zu", stage->device / list->n);
	snprintf(text, 256, "stage %zu on %s%s: %s to %s, %.0f parameters, %.6f GMAC per %s", s,
		 mu_engine_device_name(list, stage->device % list->n, name, sizeof name), rank,
		 mu_plan_layer_name(plan, stage->first),
		 mu_plan_layer_name(plan, stage->first + stage->n - 1), count_params(plan, stage),
		 count_macs(plan, stage) / 1e9, of);
}

static void describe_border(const struct mu_stage_border *b, char text[256])
{
	snprintf(text, 256,
		 "from stage %zu to stage %zu: %zu tensor%s, %.0f bytes per step, both ways",
		 b->from, b->to, b->tensors, MU_S(b->tensors), b->nbytes);
}

void mu_engine_staged_report(const struct mu_engine *e)
{
	const struct engine_staged *s = e->split;
	char text[256];

	for (size_t i = 0; i < s->stages.n; i++) {
		describe_stage(&e->devices.list, s->whole, &s->stages, i, text);
		mu_log_detail("%s", text);
	}
	if (s->steps > 0)
		mu_log_detail("a batch passes through them as blocks of %zu steps, %zu at most",
			      s->steps, s->n_micro);
	else
		mu_log_detail("a batch passes through them as %zu micro-batch%s of %zu samples",
			      s->n_micro, MU_ES(s->n_micro), s->micro);
}

enum mu_status mu_engine_staged_print(const struct engine_device_list *list, const struct conf *v,
				      const struct mu_plan *plan, FILE *stream)
{
	enum mu_status st = MU_OK;
	struct mu_stages stages;
	struct mu_stage_border *borders = NULL;
	size_t n;
	char text[256];

	MU_TRY(mu_engine_device_stages(list, v, plan, &stages));
	stages.blocks = false; /* the plan is of whole sequences */
	MU_TRY(mu_stages_borders(&stages, plan, (size_t)v->micro_batches, &borders, &n));
	fprintf(stream, "\n%zu stage%s, ", stages.n, MU_S(stages.n));
	if (v->time_block > 0)
		fprintf(stream, "%ld steps of %zu samples at a time:\n", v->time_block,
			mu_plan_batch_size(plan));
	else
		fprintf(stream, "%ld micro-batch%s of %zu samples a step:\n", v->micro_batches,
			MU_ES(v->micro_batches), mu_plan_batch_size(plan));
	for (size_t s = 0; s < stages.n; s++) {
		describe_stage(list, plan, &stages, s, text);
		fprintf(stream, "%s\n", text);
	}
	for (size_t i = 0; i < n; i++) {
		describe_border(&borders[i], text);
		fprintf(stream, "%s\n", text);
	}
	if (fflush(stream) != 0 || ferror(stream))
		MU_FAIL(MU_ERR_IO, "the stages of the network cannot be written");
out:
	mu_free(borders);
	return st;
}
