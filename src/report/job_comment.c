/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --job-comment: after the training, but before the job ends, which closes its books, its comment
 * gets what was trained: samples, the metric of --best-metric, and joules where they are known.
 */
#include "observers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "comm/job_comment.h"

/* At most, so that ranks that wait for worker 0 do not take it for lost. */
#define LONGEST_SECONDS 10.0

struct books {
	double samples;
	bool validated;
	double value; /* of the last validation, else of the last epoch */
};

static enum mu_status open(struct report_observer *o)
{
	if (!mu_report_is_worker_0(o) || !o->view->engine->conf->job_comment ||
	    !mu_comm_job_number())
		return MU_OK;
	return mu_alloc(&o->state, sizeof(struct books), "comment of the job");
}

static void close(struct report_observer *o)
{
	mu_free(o->state);
}

static const struct mu_metric *metric(const struct report_observer *o)
{
	const struct engine_metrics *metrics = o->view->metrics;

	return metrics->best ? metrics->best : metrics->of[0];
}

static void take(const struct report_observer *o, const struct mu_metrics *m, bool validated)
{
	struct books *b = o->state;

	if (!mu_metric_is_known(metric(o), m))
		return;
	b->value = mu_metric_value(metric(o), m);
	b->validated = validated;
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	struct books *b = o->state;

	b->samples += w->samples;
	if (!b->validated)
		take(o, &w->metrics, false);
}

static void validation(struct report_observer *o, size_t epoch, size_t done,
		       const struct mu_metrics *m)
{
	(void)epoch;
	(void)done;
	take(o, m, true);
}

static enum mu_status end(struct report_observer *o)
{
	const struct books *b = o->state;
	const struct mu_engine *e = o->view->engine;
	const double timeout = e->conf->limits.timeout;
	char text[256], why[300];
	size_t n;

	n = (size_t)snprintf(text, sizeof text, "muster: %.0f samples", b->samples);
	if (isfinite(b->value))
		n += (size_t)snprintf(text + n, sizeof text - n, ", %s %s %.4f",
				      b->validated ? "validation" : "training", metric(o)->name,
				      b->value);
	if (e->energy.known)
		snprintf(text + n, sizeof text - n, ", %.1f J", e->energy.job);
	mu_comm_job_comment(
		text, timeout > 0 && timeout / 2 < LONGEST_SECONDS ? timeout / 2 : LONGEST_SECONDS,
		why, sizeof why);
	if (*why)
		mu_log_warn("--job-comment: job %s keeps its comment: %s", mu_comm_job_number(),
			    why);
	else
		mu_log_info("job %s has the comment: %s", mu_comm_job_number(), text);
	return MU_OK;
}

const struct report_observer_ops mu_report_job_comment = {
	.open = open,
	.close = close,
	.epoch = epoch,
	.validation = validation,
	.end = end,
};
