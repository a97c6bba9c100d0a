/* SPDX-License-Identifier: Apache-2.0 */
/* The line of an epoch's progress: see terminal.h. */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* Often enough to be seen moving. */
#define SHOW_SECONDS 0.2

enum { LINE_BYTES = 256, COLUMNS = 80 };

struct report_terminal {
	size_t columns; /* of the line */
	double start, shown;
	double data, comm; /* clocks at the start */
	size_t first;      /* steps of the epoch that an earlier run did */
};

enum mu_status mu_report_terminal_open(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const char *columns = getenv("COLUMNS");
	const enum conf_progress progress = run->options.progress;

	if (progress == CONF_PROGRESS_NO ||
	    (progress == CONF_PROGRESS_AUTO && !mu_comm_on_terminal()))
		goto out;
	MU_TRY(MU_ALLOC(run->terminal, 1, "line of progress"));
	run->terminal->columns = columns && atoi(columns) > 0 ? (size_t)atoi(columns) : COLUMNS;
out:
	return st;
}

void mu_report_terminal_close(struct train_run *run)
{
	if (!run->terminal)
		return;
	mu_log_status(NULL); /* in an error inside an epoch */
	mu_free(run->terminal);
	run->terminal = NULL;
}

void mu_report_terminal_begin(const struct train_fit *f)
{
	struct report_terminal *t = f->run->terminal;

	if (!t)
		return;
	t->start = t->shown = mu_now();
	t->data = mu_clock_seconds(MU_CLOCK_DATA);
	t->comm = mu_report_comm_seconds();
	t->first = f->done;
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
static void put_loss(const struct train_fit *f, char *text, size_t nbytes)
{
	const double n = f->total.predictions + f->window.predictions;

	text[0] = '\0';
	if (n > 0)
		snprintf(text, nbytes, " loss %.4g",
			 (f->total.cross_entropy + f->window.cross_entropy) / n);
}

static void show(const struct train_fit *f, double now)
{
	const struct train_run *run = f->run;
	struct report_terminal *t = run->terminal;
	const double steps = (double)run->steps, seconds = now - t->start;
	const double done = (double)(f->done - t->first);
	const double left = steps * (double)run->options.num_epochs -
			    (steps * (double)f->epoch + (double)f->done);
	char line[LINE_BYTES], eta[32], loss[32];
	size_t n;

	t->shown = now;
	if (done == 0 || seconds <= 0)
		return;
	put_time(eta, sizeof eta, left * seconds / done);
	put_loss(f, loss, sizeof loss);
	snprintf(line, sizeof line, "epoch %zu/%ld %.0f%% %.0f/s eta %s%s lr %.3g data %.0f%%",
		 f->epoch + 1, run->options.num_epochs, 100 * (double)f->done / steps,
		 done / seconds * (double)run->examples / steps, eta, loss, mu_kv_lr(run->kv),
		 100 * (mu_clock_seconds(MU_CLOCK_DATA) - t->data) / seconds);
	n = strlen(line);
	if (run->store.distributed)
		snprintf(line + n, sizeof line - n, " comm %.0f%%",
			 100 * (mu_report_comm_seconds() - t->comm) / seconds);
	if (strlen(line) >= t->columns) /* a line that goes on in the next cannot be replaced */
		line[t->columns - 1] = '\0';
	mu_log_status(line);
}

void mu_report_terminal_step(const struct train_fit *f)
{
	const struct report_terminal *t = f->run->terminal;
	double now;

	if (!t)
		return;
	now = mu_now();
	if (now - t->shown >= SHOW_SECONDS)
		show(f, now);
}

void mu_report_terminal_end(const struct train_fit *f)
{
	if (!f->run->terminal)
		return;
	show(f, mu_now());
	mu_log_status(NULL);
}
