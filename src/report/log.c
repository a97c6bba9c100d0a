/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of steps, epochs and validations: MXNet's lines (1.4 and later), and a summary at the
 * end. Speed and metrics are for the whole job.
 */
#include "observers.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

#define J_PER_KWH 3.6e6

/* Of all epochs, without validation. */
struct log {
	double seconds, samples;
	double comm_seconds; /* of worker 0, not hidden by computation */
	double exchanges;    /* between workers and store in that time */
	bool told;           /* what is odd about validations */
};

static enum mu_status open(struct report_observer *o)
{
	if (!mu_report_is_worker_0(o))
		return MU_OK;
	return mu_alloc(&o->state, sizeof(struct log), "log");
}

static void close(struct report_observer *o)
{
	mu_free(o->state);
}

static double mean(double sum, double n)
{
	return n > 0 ? sum / n : 0;
}

static void window(struct report_observer *o, const struct report_window *w)
{
	const struct mu_engine *e = o->view->engine;
	const struct engine_metrics *shown = o->view->metrics;
	char text[2048];
	size_t n;

	snprintf(text, sizeof text, "Epoch[%zu] Batch [%zu-%zu]\tSpeed: %.2f samples/sec", w->epoch,
		 w->first, w->last, mean(w->samples, w->seconds));
	for (size_t i = 0; i < shown->n; i++) {
		if (!mu_metric_is_known(shown->of[i], &w->metrics))
			continue;
		n = strlen(text);
		snprintf(text + n, sizeof text - n, "\t%s=%f", shown->printed[i],
			 mu_metric_value(shown->of[i], &w->metrics));
	}
	n = strlen(text);
	if (e->train->pipeline)
		snprintf(text + n, sizeof text - n, "\tdata=%.1f%%",
			 100 * mean(w->data_seconds, w->seconds));
	n = strlen(text);
	if (e->store->distributed)
		snprintf(text + n, sizeof text - n, "\tcomm=%.1f%%",
			 100 * mean(w->comm_seconds, w->seconds));
	mu_log_in(mu_report_terminal_is_on(e->conf) ? MU_LOG_FILES : MU_LOG_ANY, MU_LOG_INFO, "%s",
		  text);
}

static void report_metrics(const struct report_observer *o, const char *what, size_t epoch,
			   const struct mu_metrics *m)
{
	const struct engine_metrics *shown = o->view->metrics;

	for (size_t i = 0; i < shown->n; i++)
		if (mu_metric_is_known(shown->of[i], m))
			mu_log_mxnet("Epoch[%zu] %s-%s=%f", epoch, what, shown->printed[i],
			     mu_metric_value(shown->of[i], m));
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	const struct conf *v = o->view->engine->conf;
	const double steps = (double)(w->last - w->first);
	struct log *log = o->state;

	log->seconds += w->seconds;
	log->samples += w->samples;
	log->comm_seconds += w->comm_seconds;
	log->exchanges += ceil(ceil(steps / (double)v->update_period) / (double)v->sync_period);
	if (w->early || w->metrics.samples <= 0)
		return;
	report_metrics(o, "Train", w->epoch, &w->metrics);
	mu_log_mxnet("Epoch[%zu] Time cost=%.3f", w->epoch, w->seconds);
	if (isfinite(w->joules))
		mu_log_mxnet("Epoch[%zu] Energy=%.3f", w->epoch, w->joules);
	if (o->view->engine->store->distributed)
		mu_log_mxnet("Epoch[%zu] Exposed communication=%.3f", w->epoch, w->comm_seconds);
}

static void validation(struct report_observer *o, size_t epoch, size_t done,
		       const struct mu_metrics *m)
{
	struct log *log = o->state;
	char what[48] = "Validation";

	if (done > 0)
		snprintf(what, sizeof what, "Batch [%zu]\tValidation", done);
	report_metrics(o, what, epoch, m);
	if (!log->told)
		log->told = mu_report_tally(o->view->metrics, m);
}

/* More than 1: computation hid some of the communication. */
static void report_bound(const struct report_observer *o)
{
	const struct log *log = o->state;
	const double link = o->view->link;
	const double bound = mu_kv_bound(o->view->engine->kv, link) * log->exchanges;
	const double spent = mu_report_comm_seconds();

	if (o->view->engine->store->distributed)
		mu_log_detail(
			"exposed communication (worker 0's time in pushes and pulls): %.3f s, "
			"%.1f%% of training",
			log->comm_seconds, 100 * mean(log->comm_seconds, log->seconds));
	if (link > 0 && bound > 0 && spent > 0)
		mu_log_detail("push and pull: %.3f ms a step, %.2f of the bound's speed",
			      1e3 * spent / log->exchanges, bound / spent);
}

/* With what was measured, and what was not. */
static void report_energy(const struct report_observer *o)
{
	const struct engine_energy *g = &o->view->engine->energy;
	const struct log *log = o->state;
	const double factor = o->view->engine->conf->co2_factor, all = g->before + g->job;
	char text[256];
	size_t n;

	n = (size_t)snprintf(text, sizeof text, "%.1f J, %.6f kWh, %.3g J/sample", g->job,
			     g->job / J_PER_KWH, mean(g->job, log->samples));
	if (g->before > 0)
		n += (size_t)snprintf(text + n, sizeof text - n,
				      "; with the runs before it %.1f J, %.6f kWh", all,
				      all / J_PER_KWH);
	if (factor > 0)
		snprintf(text + n, sizeof text - n, "; %.3g g of CO2", all / J_PER_KWH * factor);
	mu_log_in(MU_LOG_ANY, MU_LOG_RESULT, "energy: %s; of %s; without %s", text, g->of,
		  g->not_of);
}

static enum mu_status end(struct report_observer *o)
{
	const struct log *log = o->state;

	if (log->samples == 0)
		return MU_OK;
	mu_log_in(MU_LOG_MXNET, MU_LOG_RESULT, "trained %.0f samples in %.3f s: %.2f samples/sec",
		  log->samples, log->seconds, mean(log->samples, log->seconds));
	if (o->view->engine->energy.known)
		report_energy(o);
	mu_log_detail("worker 0's seconds: data %.3f, forward %.3f, backward %.3f, push %.3f, pull "
		      "%.3f, update %.3f",
		      mu_clock_seconds(MU_CLOCK_DATA), mu_clock_seconds(MU_CLOCK_FORWARD),
		      mu_clock_seconds(MU_CLOCK_BACKWARD), mu_clock_seconds(MU_CLOCK_PUSH),
		      mu_clock_seconds(MU_CLOCK_PULL), mu_clock_seconds(MU_CLOCK_UPDATE));
	report_bound(o);
	mu_report_store_end(o->view->engine);
	return MU_OK;
}

const struct report_observer_ops mu_report_log = {
	.open = open,
	.close = close,
	.window = window,
	.epoch = epoch,
	.validation = validation,
	.end = end,
};
