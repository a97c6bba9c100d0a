/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of the log as records, for two kinds of files: see scalars.h. */
#include "scalars.h"

#include <math.h>
#include <time.h>

#include <muster/base.h>

#include "checkpoint/checkpoint.h"

struct scalars {
	size_t n;
	const char *names[SCALAR_MAX];
	struct report_metrics_file *file; /* NULL: not requested, or closed after an error */
	struct report_events *events;     /* likewise */
};

static const char *const names[SCALAR_METRICS] = {
	[SCALAR_SECONDS] = "seconds", [SCALAR_RATE] = "samples_per_second", [SCALAR_LR] = "lr",
	[SCALAR_DATA] = "data_share", [SCALAR_COMM] = "comm_share",
};

/* A file that cannot be created is an error. A resumed run appends to the existing file. */
static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct conf *v = o->view->engine->conf;
	const struct engine_metrics *shown = o->view->metrics;
	const struct checkpoint_position *from = o->view->from;
	struct scalars *s;

	if ((!v->metrics_file && !v->tensorboard) || !mu_report_is_worker_0(o))
		goto out;
	MU_TRY(MU_ALLOC(s, 1, "names of scalars"));
	o->state = s;
	for (size_t i = 0; i < SCALAR_METRICS; i++)
		s->names[i] = names[i];
	s->n = SCALAR_METRICS + shown->n;
	for (size_t i = 0; i < shown->n; i++)
		s->names[SCALAR_METRICS + i] = shown->printed[i];
	if (o->view->engine->energy.known)
		s->names[s->n++] = "joules";
	if (v->metrics_file)
		MU_TRY(mu_report_metrics_file_open(&s->file, v->metrics_file,
						   from->epoch > 0 || from->step > 0));
	if (v->tensorboard)
		MU_TRY(mu_report_events_open(&s->events, v->tensorboard));
out:
	return st;
}

static void close(struct report_observer *o)
{
	struct scalars *s = o->state;

	mu_report_metrics_file_close(s->file);
	mu_report_events_close(s->events);
	mu_free(s);
}

/* An error of such a file does not end the run. */
static void give_up(const char *option)
{
	mu_log_warn("%s: nothing more is written there: %s", option, mu_trace_message());
	mu_trace_clear();
}

static void put(struct scalars *s, const struct report_numbers *record)
{
	if (s->file && mu_report_metrics_file_put(s->file, record) != MU_OK) {
		give_up("--metrics-file");
		mu_report_metrics_file_close(s->file);
		s->file = NULL;
	}
	if (s->events && mu_report_events_put(s->events, record) != MU_OK) {
		give_up("--tensorboard");
		mu_report_events_close(s->events);
		s->events = NULL;
	}
}

/* w: what else is known, or NULL. */
static void add(const struct report_observer *o, struct report_numbers *record,
		const struct mu_metrics *m, const struct report_window *w)
{
	const struct mu_engine *e = o->view->engine;
	const struct engine_metrics *shown = o->view->metrics;
	struct scalars *s = o->state;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	record->time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	for (size_t i = 0; i < SCALAR_MAX; i++)
		record->values[i] = NAN;
	if (w) {
		record->values[SCALAR_METRICS + shown->n] = w->joules;
		record->values[SCALAR_SECONDS] = w->seconds;
		record->values[SCALAR_LR] = mu_kv_lr(e->kv);
	}
	if (w && w->seconds > 0) {
		record->values[SCALAR_RATE] = w->samples / w->seconds;
		record->values[SCALAR_DATA] = w->data_seconds / w->seconds;
		if (e->store->distributed)
			record->values[SCALAR_COMM] = w->comm_seconds / w->seconds;
	}
	for (size_t i = 0; i < shown->n; i++)
		record->values[SCALAR_METRICS + i] = mu_metric_value(shown->of[i], m);
	record->n = s->n;
	record->names = s->names;
	put(s, record);
}

static void window(struct report_observer *o, const struct report_window *w)
{
	struct report_numbers record = {.event = "train", .epoch = w->epoch};

	record.step = w->epoch * o->view->engine->steps + w->last + 1;
	add(o, &record, &w->metrics, w);
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	struct report_numbers record = {.event = "epoch", .epoch = w->epoch};

	record.step = (w->epoch + 1) * o->view->engine->steps;
	if (!w->early && w->metrics.samples > 0)
		add(o, &record, &w->metrics, w);
}

static void validation(struct report_observer *o, size_t epoch, size_t done,
		       const struct mu_metrics *m)
{
	struct report_numbers record = {.event = "validation", .epoch = epoch};
	const size_t steps = o->view->engine->steps;

	record.step = epoch * steps + (done > 0 ? done : steps);
	add(o, &record, m, NULL);
}

const struct report_observer_ops mu_report_numbers = {
	.open = open,
	.close = close,
	.window = window,
	.epoch = epoch,
	.validation = validation,
};
