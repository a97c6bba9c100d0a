/* SPDX-License-Identifier: Apache-2.0 */
/* The table of observers, and one event to all of them: see observers.h. */
#include "observers.h"

#include <muster/base.h>

/* The order of their lines in the log. */
static const struct report_observer_ops *const table[] = {
	&mu_report_timeline,    &mu_report_log,        &mu_report_numbers, &mu_report_terminal,
	&mu_report_plateau,     &mu_report_epoch_line, &mu_report_profile, &mu_report_learning,
	&mu_report_job_comment, &mu_report_benchmark,
};
enum { N_OBSERVERS = sizeof table / sizeof *table };

struct report_observers {
	struct report_observer of[N_OBSERVERS];
};

enum mu_status mu_report_open(struct report_observers **out, const struct report_view *view)
{
	enum mu_status st = MU_OK;
	MPI_Comm world = view->engine->members->comm;

	MU_TRY(mu_agree(MU_ALLOC(*out, 1, "observers"), world));
	for (size_t i = 0; i < N_OBSERVERS; i++)
		(*out)->of[i] = (struct report_observer){.ops = table[i], .view = view};
	for (size_t i = 0; i < N_OBSERVERS; i++)
		MU_TRY(mu_agree_late(table[i]->open(&(*out)->of[i]), world));
out:
	return st;
}

void mu_report_close(struct report_observers *all)
{
	for (size_t i = 0; all && i < N_OBSERVERS; i++)
		if (all->of[i].state)
			table[i]->close(&all->of[i]);
	mu_free(all);
}

/* Calls the active observers that have a function for the event. */
#define CALL_EACH(all, event, ...) \
	for (size_t i = 0; i < N_OBSERVERS; i++) \
		if ((all)->of[i].state && table[i]->event) \
			table[i]->event(&(all)->of[i], __VA_ARGS__)

void mu_report_epoch_begin(struct report_observers *all, size_t first)
{
	CALL_EACH(all, epoch_begin, first);
}

void mu_report_step(struct report_observers *all, const struct report_step *s)
{
	CALL_EACH(all, step, s);
}

void mu_report_validating(struct report_observers *all, size_t done, size_t steps)
{
	CALL_EACH(all, validating, done, steps);
}

void mu_report_window(struct report_observers *all, const struct report_window *w)
{
	CALL_EACH(all, window, w);
}

void mu_report_epoch_end(struct report_observers *all)
{
	for (size_t i = 0; i < N_OBSERVERS; i++)
		if (all->of[i].state && table[i]->epoch_end)
			table[i]->epoch_end(&all->of[i]);
}

void mu_report_epoch(struct report_observers *all, const struct report_window *w)
{
	CALL_EACH(all, epoch, w);
}

void mu_report_validation(struct report_observers *all, size_t epoch, size_t done,
			  const struct mu_metrics *m)
{
	CALL_EACH(all, validation, epoch, done, m);
}

void mu_report_save(const struct report_observers *all, struct checkpoint_position *at)
{
	CALL_EACH(all, save, at);
}

enum mu_status mu_report_end(struct report_observers *all)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < N_OBSERVERS; i++)
		if (all->of[i].state && table[i]->end)
			MU_TRY(table[i]->end(&all->of[i]));
out:
	return st;
}
