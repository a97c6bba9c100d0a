/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a step's work: what would come of it if all stages' forwards took one unit of time
 * and backwards two, and every device did what is there, a backward rather than a forward.
 *
 * It always comes to an end: of the earliest micro-batch that is not through, whatever is next has
 * all that it needs, for the slot that it waits for can only be one of a micro-batch before it.
 */
#include <muster/parallel.h>

enum { FORWARD_TIME = 1, BACKWARD_TIME = 2 };

/* Of a stage: its next micro-batches, and when the last ones end. */
struct progress {
	size_t forwards, backwards; /* begun */
	double forward_end, backward_end;
};

struct simulation {
	const struct mu_stages *stages;
	size_t n_devices, n_micro;
	bool train;
	double now;
	struct progress *of;
	double *free_at; /* of the devices */
	struct mu_stage_order *schedule;
	size_t *n_tasks; /* of the devices, so far */
	size_t left;     /* tasks in all */
};

size_t mu_stage_slots(const struct mu_stages *stages, size_t stage, size_t n_micro)
{
	const size_t behind = stages->n - stage;

	return stages->blocks || n_micro < behind ? n_micro : behind;
}

/* Forwards and backwards that have ended by now. */
static size_t forwards_done(const struct simulation *m, size_t s)
{
	return m->of[s].forwards - (m->of[s].forward_end > m->now);
}

static size_t backwards_done(const struct simulation *m, size_t s)
{
	return m->of[s].backwards - (m->of[s].backward_end > m->now);
}

static bool forward_is_ready(const struct simulation *m, size_t s)
{
	const size_t k = m->of[s].forwards, last = m->stages->n - 1;
	const size_t through = m->train ? backwards_done(m, s) : forwards_done(m, last);

	if (k == m->n_micro || (s > 0 && forwards_done(m, s - 1) <= k))
		return false;
	return (!m->train && s == last) || k < through + mu_stage_slots(m->stages, s, m->n_micro);
}

static bool backward_is_ready(const struct simulation *m, size_t s)
{
	const size_t k = m->of[s].backwards;

	if (!m->train || k == m->n_micro ||
	    forwards_done(m, s) < (m->stages->blocks ? m->n_micro : k + 1))
		return false;
	return s + 1 == m->stages->n || backwards_done(m, s + 1) > k;
}

static void begin(struct simulation *m, size_t s, bool backward)
{
	struct progress *p = &m->of[s];
	const size_t d = m->stages->of[s].device;
	const double end = m->now + (backward ? BACKWARD_TIME : FORWARD_TIME);
	const size_t at = m->schedule->first[d] + m->n_tasks[d]++;

	m->schedule->tasks[at] =
		(struct mu_stage_task){s, backward ? p->backwards : p->forwards, backward};
	if (backward) {
		p->backwards++;
		p->backward_end = end;
	} else {
		p->forwards++;
		p->forward_end = end;
	}
	m->free_at[d] = end;
	m->left--;
}

/* The next task of a device that is free; later stages first, for others wait for them. */
static void choose(struct simulation *m, size_t d)
{
	for (int backward = 1; backward >= 0; backward--)
		for (size_t s = m->stages->n; s-- > 0;)
			if (m->stages->of[s].device == d &&
			    (backward ? backward_is_ready(m, s) : forward_is_ready(m, s))) {
				begin(m, s, backward);
				return;
			}
}

static void simulate(struct simulation *m)
{
	for (; m->left > 0; m->now++)
		for (size_t d = 0; d < m->n_devices; d++)
			if (m->free_at[d] <= m->now)
				choose(m, d);
}

enum mu_status mu_stage_order_new(struct mu_stage_order **out, const struct mu_stages *stages,
				  size_t n_devices, size_t n_micro, bool train)
{
	enum mu_status st = MU_OK;
	const size_t of_stage = n_micro * (train ? 2 : 1), n = stages->n * of_stage;
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
