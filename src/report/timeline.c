/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --timeline: what every rank did in the first steps of a run, for a viewer of Chrome's traces
 * (Perfetto). Each rank records the spans of its training or serving thread (base.h) in memory that
 * is allocated before the training, so a step costs a few stores. After the training worker 0
 * writes the file, rank by rank, with all times on its host's clock.
 *
 * The format: Trace Event Format, Google, 2016. A process of the trace is a rank; a span is a
 * complete event ("X") of its one thread, a bucket's way to the servers and back an asynchronous
 * event ("b" and "e"), which overlaps with the thread's work.
 */
#include "observers.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>
#include <muster/storage.h>

/* Spans of a rank. A server has at most one for each part of the model and step. */
enum { SERVER_ROOM = 1 << 18, WORKER_ROOM = 1 << 20 };

struct timeline {
	const struct mu_engine *engine;
	struct mu_span *spans;
	size_t n, room;
	size_t steps_left;
	bool stopped;
	double offset; /* to the clock of worker 0 */
	struct mu_replace replace;
	FILE *file; /* of worker 0 */
};

/* ---- recording ---- */

static enum mu_status begin_file(struct timeline *t)
{
	enum mu_status st = MU_OK;
	const char *path = t->engine->conf->timeline;

	st = mu_replace_open(&t->replace, path);
	if (st != MU_OK)
		mu_trace_prefix("--timeline ");
	MU_TRY(st);
	t->file = t->replace.stream;
out:
	return st;
}

/* Every layer is pulled, computed forward and backward, and pushed; a hosted server may interrupt
 * each of these. */
static size_t room_of(const struct mu_engine *e)
{
	size_t keys, layers, all;

	if (e->members->role == MU_ROLE_SERVER)
		return SERVER_ROOM;
	mu_plan_slices(e->plan, &keys);
	layers = mu_plan_layers(e->plan);
	all = (size_t)e->conf->timeline_steps * (4 * layers + 8 * keys + 64);
	return all < WORKER_ROOM ? all : WORKER_ROOM;
}

/* Worker 0 begins the file. */
static enum mu_status prepare(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = o->view->engine;
	struct timeline *t;

	MU_TRY(MU_ALLOC(t, 1, "timeline"));
	o->state = t;
	t->engine = e;
	t->steps_left = (size_t)e->conf->timeline_steps;
	t->room = room_of(e);
	MU_TRY(MU_ALLOC(t->spans, t->room, "spans of the timeline"));
	if (mu_report_is_worker_0(o))
		MU_TRY(begin_file(t));
out:
	return st;
}

/* Ranks of a host have one clock; others are compared with rank 0's, and so with each other. */
static enum mu_status compare_clocks(struct timeline *timeline)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = timeline->engine->members;
	double offset, first;

	MU_TRY(mu_clock_offset(m->comm, mu_now, &offset));
	if (strcmp(m->topology.hosts[m->rank], m->topology.hosts[0]) == 0)
		offset = 0;
	first = offset;
	MU_TRY(mu_members_follow(m, &first, sizeof first));
	timeline->offset = offset - first;
out:
	return st;
}

static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = o->view->engine;
	struct timeline *t;

	if (!e->conf->timeline)
		goto out;
	MU_TRY(mu_agree(prepare(o), e->members->comm));
	t = o->state;
	MU_TRY(compare_clocks(t));
	mu_spans_start(t->spans, t->room);
out:
	return st;
}

static void stop(struct timeline *t)
{
	if (!t->stopped)
		t->n = mu_spans_stop();
	t->stopped = true;
}

static void close(struct report_observer *o)
{
	struct timeline *t = o->state;

	stop(t);
	mu_replace_release(&t->replace);
	mu_free(t->spans);
	mu_free(t);
}

/* Steps are numbered over all epochs. */
static void step(struct report_observer *o, const struct report_step *s)
{
	struct timeline *t = o->state;

	if (t->stopped)
		return;
	mu_spans_add(MU_SPAN_STEP, (int)(s->epoch * t->engine->steps + s->done - 1), s->begin,
		     mu_now());
	if (--t->steps_left == 0)
		stop(t);
}

/* ---- writing ---- */

/* What is common to all ranks' events. */
struct trace {
	struct timeline *mine;
	struct mu_json json;
	double begin, end; /* of all that is shown, on worker 0's clock */
	size_t n_buckets;  /* so far: their events have numbers */
};

/* Microseconds since the start, to the nanosecond. */
static double micro(double seconds)
{
	return round(1e9 * seconds) / 1e3;
}

static void begin_event(struct trace *t, const char *name, const char *category, const char *phase,
			int rank)
{
	mu_json_open(&t->json, NULL, '{');
	mu_json_text(&t->json, "name", name);
	mu_json_text(&t->json, "cat", category);
	mu_json_text(&t->json, "ph", phase);
	mu_json_number(&t->json, "pid", rank);
	mu_json_number(&t->json, "tid", 0);
}

/* "forward convolution0", "update part 3", "data" into text; returns text. */
static const char *name_of(const struct trace *t, const struct mu_span *s, bool server, char *text,
			   size_t nbytes)
{
	const char *clock;
	bool hosted = s->what == MU_CLOCK_UPDATE && t->mine->engine->store->distributed;

	if (s->what == MU_SPAN_STEP || s->what == MU_SPAN_BUCKET) {
		snprintf(text, nbytes, "%s %d", s->what == MU_SPAN_STEP ? "step" : "bucket",
			 s->which);
		return text;
	}
	clock = mu_clock_name((enum mu_clock)s->what);
	if (s->which < 0)
		snprintf(text, nbytes, "%s", clock);
	else if (server || hosted)
		snprintf(text, nbytes, "%s part %d", clock, s->which);
	else
		snprintf(text, nbytes, "%s %s", clock,
			 mu_plan_layer_name(t->mine->engine->plan, (size_t)s->which));
	return text;
}

static void put_bucket(struct trace *t, const struct mu_span *s, int rank, const char *name)
{
	const double times[] = {s->begin, s->end};

	for (int i = 0; i < 2; i++) {
		begin_event(t, name, "bucket", i == 0 ? "b" : "e", rank);
		mu_json_number(&t->json, "id", (double)t->n_buckets);
		mu_json_number(&t->json, "ts", micro(times[i] - t->begin));
		mu_json_close(&t->json, '}');
	}
	t->n_buckets++;
}

static void put_span(struct trace *t, const struct mu_span *s, int rank, bool server)
{
	char name[256];

	name_of(t, s, server, name, sizeof name);
	if (s->what == MU_SPAN_BUCKET) {
		put_bucket(t, s, rank, name);
		return;
	}
	begin_event(t, name,
		    s->what == MU_SPAN_STEP ? "step" : mu_clock_name((enum mu_clock)s->what), "X",
		    rank);
	mu_json_number(&t->json, "ts", micro(s->begin - t->begin));
	mu_json_number(&t->json, "dur", micro(s->end - s->begin));
	mu_json_close(&t->json, '}');
}

/* The names that the viewer shows. */
static void put_rank(struct trace *t, int rank, bool server)
{
	const struct mu_members *m = t->mine->engine->members;
	const char *const what[] = {"process_name", "thread_name"};
	char text[128];

	mu_members_name(m, rank, text, sizeof text);
	for (int i = 0; i < 2; i++) {
		begin_event(t, what[i], "", "M", rank);
		mu_json_open(&t->json, "args", '{');
		mu_json_text(&t->json, "name", i == 0 ? text : server ? "serving" : "training");
		mu_json_close(&t->json, '}');
		mu_json_close(&t->json, '}');
	}
}

static bool is_server(const struct mu_members *m, int rank)
{
	int index;

	return mu_members_role(m, rank, &index) == MU_ROLE_SERVER;
}

/* spans: of this rank, on worker 0's clock. A server has some before and after the workers'. */
static void put_spans(struct trace *t, int rank, const struct mu_span *spans, size_t n)
{
	const bool server = is_server(t->mine->engine->members, rank);

	put_rank(t, rank, server);
	for (size_t i = 0; i < n; i++)
		if (spans[i].begin >= t->begin && spans[i].begin <= t->end)
			put_span(t, &spans[i], rank, server);
}

/* Each rank in turn sends its spans. */
static enum mu_status put_ranks(struct trace *t)
{
	enum mu_status st = MU_OK;
	const struct timeline *mine = t->mine;
	const struct mu_members *m = t->mine->engine->members;
	struct mu_span *spans = NULL;

	for (int rank = 0; rank < m->size; rank++) {
		size_t n = mine->n;

		MU_TRY(mu_bcast(&n, sizeof n, rank, m->comm));
		if (rank != m->rank)
			MU_TRY(MU_ALLOC(spans, n, "spans of another rank"));
		MU_TRY(mu_bcast(spans ? spans : mine->spans, n * sizeof *spans, rank, m->comm));
		if (mine->file)
			put_spans(t, rank, spans ? spans : mine->spans, n);
		mu_free(spans);
		spans = NULL;
	}
out:
	mu_free(spans);
	return st;
}

/* From the first span of a worker to the end of its last. Collective over all ranks. */
static enum mu_status find_limits(struct trace *t)
{
	enum mu_status st = MU_OK;
	struct timeline *mine = t->mine;
	const struct mu_members *m = t->mine->engine->members;
	double limits[2] = {INFINITY, INFINITY}; /* begin, -end */
	long full = mine->n == mine->room;

	for (size_t i = 0; i < mine->n; i++) {
		mine->spans[i].begin += mine->offset;
		mine->spans[i].end += mine->offset;
	}
	for (size_t i = 0; m->role == MU_ROLE_WORKER && i < mine->n; i++) {
		limits[0] = fmin(limits[0], mine->spans[i].begin);
		limits[1] = fmin(limits[1], -mine->spans[i].end);
	}
	MU_TRY(mu_allreduce_double(limits, 2, MPI_MIN, m->comm));
	MU_TRY(mu_allreduce_long(&full, 1, MPI_MAX, m->comm));
	t->begin = limits[0];
	t->end = -limits[1];
	if (full && mine->file)
		mu_log_warn("timeline: %ld steps are more than there is room for: some ranks' end "
			    "earlier; use a smaller --timeline-steps",
			    t->mine->engine->conf->timeline_steps);
out:
	return st;
}

static enum mu_status end_file(struct timeline *t)
{
	enum mu_status st = MU_OK;
	const char *path = t->engine->conf->timeline;

	t->file = NULL;
	st = mu_replace_commit(&t->replace);
	if (st != MU_OK)
		mu_trace_prefix("--timeline ");
	MU_TRY(st);
	mu_log_info("Saved timeline to \"%s\"", path);
out:
	return st;
}

static enum mu_status end(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	struct timeline *mine = o->state;
	struct trace t = {.mine = mine, .json = {.file = mine->file, .flat = 3}};

	stop(mine);
	MU_TRY(find_limits(&t));
	if (mine->file) {
		mu_json_open(&t.json, NULL, '{');
		mu_json_text(&t.json, "displayTimeUnit", "ms");
		mu_json_open(&t.json, "traceEvents", '[');
	}
	MU_TRY(put_ranks(&t));
	if (mine->file) {
		mu_json_close(&t.json, ']');
		mu_json_close(&t.json, '}');
		MU_TRY(end_file(mine));
	}
out:
	return st;
}

const struct report_observer_ops mu_report_timeline = {
	.open = open, .close = close, .step = step, .end = end};
