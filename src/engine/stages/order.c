/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a step's tasks, from a simulation. A forward of a stage takes one unit of time (or
 * the stage's size), a backward two (of blocks one, and one for weights). Every device runs a task
 * that is ready: backward first, then forward, then weights.
 *
 * The simulation ends: the next task of the earliest unfinished micro-batch is always ready,
 * because only an earlier micro-batch can hold the slot that it needs.
 */
#include <muster/parallel.h>

#include <math.h>

/* Of a stage and a kind of work: the next micro-batch, and the end of the previous one. */
struct progress {
	size_t begun;
	double end;
};

struct simulation {
	const struct mu_stages *stages;
	size_t n_devices, n_micro;
	bool train;
	double now;
	struct progress (*of)[MU_STAGE_WORKS]; /* the stages */
	double *free_at;                       /* of the devices */
	struct mu_stage_order *schedule;
	size_t *n_tasks; /* of the devices, so far */
	size_t left;     /* tasks of all devices */
};

size_t mu_stage_slots(const struct mu_stages *stages, size_t stage, size_t n_micro)
{
	const size_t after = stages->n - stage; /* this stage and those that follow */

	return stages->blocks || n_micro < after ? n_micro : after;
}

/* Micro-batches of which this work of a stage has ended. */
static size_t done(const struct simulation *m, size_t s, enum mu_stage_work work)
{
	const struct progress *p = &m->of[s][work];

	return p->begun - (p->end > m->now);
}

static bool forward_is_ready(const struct simulation *m, size_t s, size_t k)
{
	const size_t last = m->stages->n - 1;
	const size_t through =
		m->train ? done(m, s, MU_STAGE_BACKWARD) : done(m, last, MU_STAGE_FORWARD);

	if (s > 0 && done(m, s - 1, MU_STAGE_FORWARD) <= k)
		return false;
	return (!m->train && s == last) || k < through + mu_stage_slots(m->stages, s, m->n_micro);
}

static bool backward_is_ready(const struct simulation *m, size_t s, size_t k)
{
	if (done(m, s, MU_STAGE_FORWARD) < (m->stages->blocks ? m->n_micro : k + 1))
		return false;
	return s + 1 == m->stages->n || done(m, s + 1, MU_STAGE_BACKWARD) > k;
}

static bool is_ready(const struct simulation *m, size_t s, enum mu_stage_work work)
{
	const size_t k = m->of[s][work].begun;

	if (k == m->n_micro || (work != MU_STAGE_FORWARD && !m->train))
		return false;
	switch (work) {
	case MU_STAGE_FORWARD: return forward_is_ready(m, s, k);
	case MU_STAGE_BACKWARD: return backward_is_ready(m, s, k);
	default: return m->stages->blocks && done(m, s, MU_STAGE_BACKWARD) > k;
	}
}

static void begin(struct simulation *m, size_t s, enum mu_stage_work work)
{
	struct progress *p = &m->of[s][work];
	const size_t d = m->stages->of[s].device;
	const size_t at = m->schedule->first[d] + m->n_tasks[d]++;

	m->schedule->tasks[at] = (struct mu_stage_task){s, p->begun++, work};
	p->end = m->now + (m->stages->of[s].size > 0 ? m->stages->of[s].size : 1) *
				  (work == MU_STAGE_BACKWARD && !m->stages->blocks ? 2 : 1);
	m->free_at[d] = p->end;
	m->left--;
}

/* Begin the next task of a free device; later stages first, because others wait for them. */
static void choose(struct simulation *m, size_t d)
{
	static const enum mu_stage_work in_turn[] = {MU_STAGE_BACKWARD, MU_STAGE_FORWARD,
						     MU_STAGE_WEIGHTS};

	for (size_t i = 0; i < sizeof in_turn / sizeof *in_turn; i++)
		for (size_t s = m->stages->n; s-- > 0;)
			if (m->stages->of[s].device == d && is_ready(m, s, in_turn[i])) {
				begin(m, s, in_turn[i]);
				return;
			}
}

/* The next time at which a device ends its task; now, if all are free. */
static double next_end(const struct simulation *m)
{
	double next = INFINITY;

	for (size_t d = 0; d < m->n_devices; d++)
		if (m->free_at[d] > m->now)
			next = fmin(next, m->free_at[d]);
	return next < INFINITY ? next : m->now;
}

static void simulate(struct simulation *m)
{
	for (; m->left > 0; m->now = next_end(m))
		for (size_t d = 0; d < m->n_devices; d++)
			if (m->free_at[d] <= m->now)
				choose(m, d);
	for (size_t d = 0; d < m->n_devices; d++)
		m->schedule->time = fmax(m->schedule->time, m->free_at[d]);
}

enum mu_status mu_stage_order_new(struct mu_stage_order **out, const struct mu_stages *stages,
				  size_t n_devices, size_t n_micro, bool train)
{
	enum mu_status st = MU_OK;
	const size_t of_stage = n_micro * (!train ? 1 : stages->blocks ? 3 : 2);
	const size_t n = stages->n * of_stage;
	struct mu_stage_order *schedule = NULL;
	struct simulation m = {.stages = stages,
			       .n_devices = n_devices,
			       .n_micro = n_micro,
			       .train = train,
			       .left = n};

	*out = NULL;
	MU_TRY(MU_ALLOC(schedule, 1, "schedule"));
	m.schedule = schedule;
	schedule->n_devices = n_devices;
	MU_TRY(MU_ALLOC(schedule->first, n_devices + 1, "schedule"));
	MU_TRY(MU_ALLOC(schedule->tasks, n, "schedule"));
	MU_TRY(MU_ALLOC(m.of, stages->n, "schedule"));
	MU_TRY(MU_ALLOC(m.free_at, n_devices, "schedule"));
	MU_TRY(MU_ALLOC(m.n_tasks, n_devices, "schedule"));
	for (size_t s = 0; s < stages->n; s++)
		schedule->first[stages->of[s].device + 1] += of_stage;
	for (size_t d = 0; d < n_devices; d++)
		schedule->first[d + 1] += schedule->first[d];
	simulate(&m);
	*out = schedule;
	schedule = NULL;
out:
	mu_free(m.of);
	mu_free(m.free_at);
	mu_free(m.n_tasks);
	mu_stage_order_free(schedule);
	return st;
}

void mu_stage_order_free(struct mu_stage_order *schedule)
{
	if (!schedule)
		return;
	mu_free(schedule->first);
	mu_free(schedule->tasks);
	mu_free(schedule);
}
