/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If the log goes to a terminal, a status line below it shows the progress of an epoch, instead of
 * the log's lines of speed. Its metrics are worker 0's; the speed is for the whole job.
 */
#include "observers.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* Between updates of the line. */
#define SHOW_SECONDS 0.2

enum { LINE_BYTES = 256, COLUMNS = 80 };

struct terminal {
	size_t columns; /* of the line */
	double start, shown;
	double data, comm; /* clocks at the start */
	double aside;      /* when a validation began */
	size_t first;      /* steps of the epoch that an earlier run did */
	struct report_step last;
};

bool mu_report_terminal_is_on(const struct conf *v)
{
	return v->progress == CONF_PROGRESS_YES ||
	       (v->progress == CONF_PROGRESS_AUTO && !v->quiet && mu_comm_on_terminal());
}

static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const char *columns = getenv("COLUMNS");
	struct terminal *t;

	if (!mu_report_is_worker_0(o) || !mu_report_terminal_is_on(o->view->engine->conf))
		goto out;
	MU_TRY(MU_ALLOC(t, 1, "line of progress"));
	o->state = t;
	t->columns = columns && atoi(columns) > 0 ? (size_t)atoi(columns) : COLUMNS;
out:
	return st;
}

static void close(struct report_observer *o)
{
	mu_log_status(""); /* after an error inside an epoch */
	mu_free(o->state);
}

static void epoch_begin(struct report_observer *o, size_t first)
{
	struct terminal *t = o->state;

	t->start = t->shown = mu_now();
	t->data = mu_clock_seconds(MU_CLOCK_DATA);
	t->comm = mu_report_comm_seconds();
	t->first = first;
	t->last = (struct report_step){.done = first};
}

/* "1:02:03", "0:12" */
static void put_time(char *text, size_t nbytes, double seconds)
{
	const long s = seconds < 1e9 ? (long)seconds : 0;

	if (s >= 3600)
		snprintf(text, nbytes, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(text, nbytes, "%ld:%02ld", s / 60, s % 60);
}

/* " loss 0.25", the mean over the epoch so far; "" where another rank of the team has it. */
static void put_loss(const struct report_observer *o, const struct mu_metrics *m, char *text,
		     size_t nbytes)
{
	text[0] = '\0';
	if (m->counted > 0)
		snprintf(text, nbytes, " loss %.4g", mu_metric_value(o->view->metrics->mean, m));
}

static void show(struct report_observer *o, double now)
{
	const struct mu_engine *e = o->view->engine;
	struct terminal *t = o->state;
	const struct report_step *s = &t->last;
	const double steps = (double)e->steps, seconds = now - t->start;
	const double done = (double)(s->done - t->first);
	const double left = steps * (double)e->conf->num_epochs -
			    (steps * (double)s->epoch + (double)s->done);
	char line[LINE_BYTES], eta[32], loss[32];
	size_t n;

	t->shown = now;
	if (done == 0 || seconds <= 0)
		return;
	put_time(eta, sizeof eta, left * seconds / done);
	put_loss(o, &s->metrics, loss, sizeof loss);
	snprintf(line, sizeof line, "epoch %zu/%ld %.0f%% %.0f/s eta %s%s lr %.3g data %.0f%%",
		 s->epoch + 1, e->conf->num_epochs, 100 * (double)s->done / steps,
		 done / seconds * (double)o->view->examples / steps, eta, loss, mu_kv_lr(e->kv),
		 100 * (mu_clock_seconds(MU_CLOCK_DATA) - t->data) / seconds);
	n = strlen(line);
	if (e->store->distributed)
		snprintf(line + n, sizeof line - n, " comm %.0f%%",
			 100 * (mu_report_comm_seconds() - t->comm) / seconds);
	if (strlen(line) >= t->columns) /* a line that continues in the next cannot be replaced */
		line[t->columns - 1] = '\0';
	mu_log_status(line);
}

static void step(struct report_observer *o, const struct report_step *s)
{
	struct terminal *t = o->state;
	const double now = mu_now();

	t->last = *s;
	if (now - t->shown >= SHOW_SECONDS)
		show(o, now);
}

/* A validation inside an epoch is no time of its steps. */
static void begin_aside(struct terminal *t, double now)
{
	t->aside = t->shown = now;
	t->data -= mu_clock_seconds(MU_CLOCK_DATA);
	t->comm -= mu_report_comm_seconds();
}

static void end_aside(struct terminal *t, double now)
{
	t->start += now - t->aside;
	t->data += mu_clock_seconds(MU_CLOCK_DATA);
	t->comm += mu_report_comm_seconds();
}

static void validating(struct report_observer *o, size_t done, size_t steps)
{
	struct terminal *t = o->state;
	const double now = mu_now(), part = (double)done / (double)steps;
	char line[LINE_BYTES], eta[32];

	if (done == 1)
		begin_aside(t, now);
	if (now - t->shown < SHOW_SECONDS && done < steps)
		return;
	t->shown = now;
	put_time(eta, sizeof eta, (now - t->aside) * (double)(steps - done) / (double)done);
	snprintf(line, sizeof line, "validation %.0f%% eta %s", 100 * part, eta);
	if (strlen(line) >= t->columns)
		line[t->columns - 1] = '\0';
	mu_log_status(line);
	if (done < steps)
		return;
	mu_log_status(""); /* the results follow */
	end_aside(t, now);
}

static void epoch_end(struct report_observer *o)
{
	show(o, mu_now());
	if (!mu_report_is_plain(o->view->engine->conf)) /* else a line of the epoch replaces it */
		mu_log_status(NULL);
}

const struct report_observer_ops mu_report_terminal = {
	.open = open,
	.close = close,
	.epoch_begin = epoch_begin,
	.step = step,
	.validating = validating,
	.epoch_end = epoch_end,
};
