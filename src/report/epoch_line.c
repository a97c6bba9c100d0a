/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log in the plain form: a table with a line an epoch, and a line at the end. A line is written
 * when its epoch is validated and its checkpoint complete. A checkpoint is written while the next
 * epoch trains: where that takes longer than WAIT_SECONDS, the line says "saving" in place of its
 * name.
 */
#include "observers.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

#include "checkpoint/checkpoint.h"

#define WAIT_SECONDS 2.0

struct lines {
	long num_epochs;
	const struct mu_metric *mean;   /* the mean loss */
	const struct mu_metric *metric; /* shown beside it: that of --best-metric */
	bool begun;                     /* the table has its heading */
	struct report_window trained;
	struct mu_metrics validated;
	bool pending, has_validation;
	char saved[CHECKPOINT_PATH]; /* "": the epoch has no file */
	double since;                /* when the epoch was over */
	size_t epochs;
	double seconds, samples; /* of all epochs, without validation */
};

/* A name of at most six letters for a column. */
static const char *heading(const struct mu_metric *metric)
{
	return metric->column ? metric->column : metric->name;
}

static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct engine_metrics *metrics = o->view->metrics;
	struct lines *l;

	if (!mu_report_is_worker_0(o))
		goto out;
	MU_TRY(MU_ALLOC(l, 1, "lines of epochs"));
	o->state = l;
	l->num_epochs = o->view->engine->conf->num_epochs;
	l->mean = metrics->mean;
	l->metric = metrics->best ? metrics->best : metrics->of[0];
out:
	return st;
}

static double speed(double samples, double seconds)
{
	return seconds > 0 ? samples / seconds : 0;
}

/* Of a speed: 0.49, 9,198. */
static int digits(double per_second)
{
	return per_second < 10 ? 2 : 0;
}

/* At most seven columns: 0.9781, 97.81. */
static void print_value(char text[16], double value)
{
	if (isnan(value)) /* not defined, or of validation alone */
		snprintf(text, 16, "-");
	else
		snprintf(text, 16, value < 10 ? "%.4f" : value < 1000 ? "%.2f" : "%.4g", value);
}

static void write_heading(struct lines *l)
{
	const char *name = heading(l->metric);
	char val[16];

	if (l->begun)
		return;
	l->begun = true;
	snprintf(val, sizeof val, "val %s", name);
	mu_log_plain("%-7s %7s %7s %8s %9s %7s %7s %7s  %s", "epoch", "loss", name, "val loss", val,
		     "best", "seconds", "1/s", "saved");
}

static bool is_complete(const struct report_observer *o)
{
	const struct lines *l = o->state;

	return !*l->saved || strcmp(o->view->saved, l->saved) == 0;
}

/* 80 columns, for a file of a usual name. */
static void write_line(const struct report_observer *o)
{
	struct lines *l = o->state;
	const struct report_window *w = &l->trained;
	const struct checkpoint_best *top = o->view->best;
	const char *name = strrchr(l->saved, '/');
	const double rate = speed(w->samples, w->seconds);
	char epoch[48], figures[5][16] = {"", "", "", "", ""};

	if (!l->pending)
		return;
	l->pending = false;
	print_value(figures[0], mu_metric_value(l->mean, &w->metrics));
	print_value(figures[1], mu_metric_value(l->metric, &w->metrics));
	if (l->has_validation) {
		print_value(figures[2], mu_metric_value(l->mean, &l->validated));
		print_value(figures[3], mu_metric_value(l->metric, &l->validated));
	}
	if (top->epoch > 0)
		print_value(figures[4], top->value);
	snprintf(epoch, sizeof epoch, "%zu/%ld", w->epoch + 1, l->num_epochs);
	mu_log_status("");
	write_heading(l);
	mu_log_plain("%-7s %7s %7s %8s %9s %7s %7.1f %7.*f  %s", epoch, figures[0], figures[1],
		     figures[2], figures[3], figures[4], w->seconds, digits(rate), rate,
		     is_complete(o) ? (name ? name + 1 : l->saved) : "saving");
}

static void close(struct report_observer *o)
{
	write_line(o);
	mu_free(o->state);
}

static void step(struct report_observer *o, const struct report_step *s)
{
	const struct lines *l = o->state;

	(void)s;
	if (l->pending && (is_complete(o) || mu_now() - l->since > WAIT_SECONDS))
		write_line(o);
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	struct lines *l = o->state;

	write_line(o);
	l->has_validation = false;
	l->saved[0] = '\0';
	l->seconds += w->seconds;
	l->samples += w->samples;
	if (w->early || w->metrics.samples <= 0)
		return;
	l->trained = *w;
	l->pending = true;
	l->since = mu_now();
	l->epochs++;
}

/* Without an epoch before it: of --evaluate, or of a run that has nothing left to train. */
static void validation(struct report_observer *o, size_t epoch, size_t done,
		       const struct mu_metrics *m)
{
	struct lines *l = o->state;

	if (done > 0) {
		write_line(o); /* of the epoch before */
		mu_log_status("");
		mu_log_in(MU_LOG_PLAIN, MU_LOG_INFO,
			  "epoch %zu, step %zu of %zu: validation loss %.4f, %s %.4f", epoch + 1,
			  done, o->view->engine->steps, mu_metric_value(l->mean, m),
			  l->metric->name, mu_metric_value(l->metric, m));
		return;
	}
	l->validated = *m;
	l->has_validation = true;
	if (l->pending && !*l->saved) /* of the epoch, whose file follows */
		return;
	mu_log_status("");
	mu_log_in(MU_LOG_PLAIN, MU_LOG_RESULT,
		  "validation: loss %.4f, %s %.4f (%.0f sample%s)", mu_metric_value(l->mean, m),
		  l->metric->name, mu_metric_value(l->metric, m), m->samples, MU_S(m->samples));
}

static void save(const struct report_observer *o, struct checkpoint_position *at)
{
	struct lines *l = o->state;
	const struct mu_engine *e = o->view->engine;

	if (!l->pending || at->step > 0)
		return;
	if (e->conf->model_prefix &&
	    (at->epoch % (size_t)e->conf->save_period == 0 || o->view->best->improved))
		mu_checkpoint_path(e->conf->model_prefix, at->epoch, 0, l->saved, sizeof l->saved);
	else
		write_line(o);
}

static enum mu_status end(struct report_observer *o)
{
	const struct lines *l = o->state;
	const struct checkpoint_best *top = o->view->best;
	const double rate = speed(l->samples, l->seconds);
	char last[80] = "", best[80] = "";

	write_line(o);
	if (l->samples == 0)
		return MU_OK;
	if (l->has_validation)
		snprintf(last, sizeof last, "; validation %s %.4f", l->metric->name,
			 mu_metric_value(l->metric, &l->validated));
	if (top->epoch > 0)
		snprintf(best, sizeof best, ", best %.4f after epoch %zu", top->value, top->epoch);
	mu_log_in(MU_LOG_PLAIN, MU_LOG_RESULT, "trained %zu epoch%s in %.1f s, %.*f samples/s%s%s",
		  l->epochs, MU_S(l->epochs), l->seconds, digits(rate), rate, last, best);
	return MU_OK;
}

const struct report_observer_ops mu_report_epoch_line = {
	.open = open,
	.close = close,
	.step = step,
	.epoch = epoch,
	.validation = validation,
	.save = save,
	.end = end,
};
