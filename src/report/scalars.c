/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of the log as records, for two kinds of files: see scalars.h. */
#include "scalars.h"

#include <math.h>

#include <muster/base.h>

struct report_scalars {
	size_t n;
	const char *names[SCALAR_MAX];
	struct report_metrics_file *file; /* NULL: not asked for, or given up */
	struct report_events *events;     /* likewise */
};

static const char *const names[SCALAR_METRICS] = {
	[SCALAR_SECONDS] = "seconds", [SCALAR_RATE] = "samples_per_second", [SCALAR_LR] = "lr",
	[SCALAR_DATA] = "data_share", [SCALAR_COMM] = "comm_share",
};

enum mu_status mu_report_scalars_open(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;
	struct report_scalars *s;

	if (!v->metrics_file && !v->tensorboard)
		goto out;
	MU_TRY(MU_ALLOC(run->scalars, 1, "names of scalars"));
	s = run->scalars;
	for (size_t i = 0; i < SCALAR_METRICS; i++)
		s->names[i] = names[i];
	s->n = SCALAR_METRICS + run->metrics.n;
	for (size_t i = 0; i < run->metrics.n; i++)
		s->names[SCALAR_METRICS + i] = run->metrics.printed[i];
	if (v->metrics_file)
		MU_TRY(mu_report_metrics_file_open(&s->file, v->metrics_file,
						   run->begin_epoch > 0 || run->begin_step > 0));
	if (v->tensorboard)
		MU_TRY(mu_report_events_open(&s->events, v->tensorboard));
out:
	return st;
}

void mu_report_scalars_close(struct train_run *run)
{
	if (!run->scalars)
		return;
	mu_report_metrics_file_close(run->scalars->file);
	mu_report_events_close(run->scalars->events);
	mu_free(run->scalars);
	run->scalars = NULL;
}

/* A file about the run is no reason to end it. */
static void give_up(const char *option)
{
	mu_log_warn("%s: nothing more is written there: %s", option, mu_trace_message());
	mu_trace_clear();
}

static void put(struct report_scalars *s, const struct report_numbers *record)
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
static void take(const struct train_run *run, struct report_numbers *record,
		 const struct mu_metrics *m, const struct report_window *w)
{
	struct report_scalars *s = run->scalars;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	record->time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	for (size_t i = 0; i < SCALAR_METRICS; i++)
		record->values[i] = NAN;
	if (w) {
		record->values[SCALAR_SECONDS] = w->seconds;
		record->values[SCALAR_LR] = mu_kv_lr(run->kv);
	}
	if (w && w->seconds > 0) {
		record->values[SCALAR_RATE] = w->samples / w->seconds;
		record->values[SCALAR_DATA] = w->data_seconds / w->seconds;
		if (run->store.distributed)
			record->values[SCALAR_COMM] = w->comm_seconds / w->seconds;
	}
	for (size_t i = 0; i < run->metrics.n; i++)
		record->values[SCALAR_METRICS + i] = run->metrics.of[i]->value(m);
	record->n = s->n;
	record->names = s->names;
	put(s, record);
}

void mu_report_scalars_window(const struct train_run *run, const struct report_window *w)
{
	struct report_numbers record = {.event = "train", .epoch = w->epoch};

	record.step = w->epoch * run->steps + w->last + 1;
	if (run->scalars)
		take(run, &record, &w->metrics, w);
}

void mu_report_scalars_epoch(const struct train_run *run, const struct report_window *w)
{
	struct report_numbers record = {.event = "epoch", .epoch = w->epoch};

	record.step = (w->epoch + 1) * run->steps;
	if (run->scalars)
		take(run, &record, &w->metrics, w);
}

void mu_report_scalars_validation(const struct train_run *run, size_t epoch,
				  const struct mu_metrics *m)
{
	struct report_numbers record = {.event = "validation", .epoch = epoch};

	record.step = (epoch + 1) * run->steps;
	if (run->scalars)
		take(run, &record, m, NULL);
}
