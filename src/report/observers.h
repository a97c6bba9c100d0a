/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observers of a run: the log, metrics files, the terminal's status line, timeline, profile, and
 * the learning rate's plateau. The loop reports each event once, and every observer that has a
 * function for it is called, in the order of the table in observers.c.
 *
 * A new observer is one file with a const table of functions, and one row in observers.c.
 */
#ifndef REPORT_OBSERVERS_H
#define REPORT_OBSERVERS_H

#include "report.h"

/* A step is over. Metrics: of this worker, of the epoch so far. */
struct report_step {
	size_t epoch, done; /* steps of the epoch that are done, this one included */
	double begin;       /* when it began (mu_now) */
	struct mu_metrics metrics;
};

/* Steps of an epoch. Metrics, where observers see them: of the whole job. */
struct report_window {
	size_t epoch, first, last; /* steps (first, last] */
	double samples, seconds;   /* of the whole job */
	double data_seconds;       /* that worker 0 waited for samples */
	double comm_seconds;       /* that worker 0 spent in pushes and pulls: not hidden */
	double joules;             /* of the whole job; NAN: not known */
	struct mu_metrics metrics;
	bool early; /* of an epoch: training ended inside it */
};

struct report_observer {
	const struct report_observer_ops *ops;
	const struct report_view *view;
	void *state; /* the observer's own; NULL: inactive in this run, or on this rank */
};

/* Any but open and close may be NULL. Without a state only these two are called. */
struct report_observer_ops {
	/* Before the first step: sets the state if the observer is active. Collective over all
	 * ranks; an error is known to all. */
	enum mu_status (*open)(struct report_observer *o);
	void (*close)(struct report_observer *o);

	/* On every worker. An epoch, or an evaluation, begins after its first `first` steps. */
	void (*epoch_begin)(struct report_observer *o, size_t first);
	void (*step)(struct report_observer *o, const struct report_step *s);
	/* `done` of the `steps` steps of a validation are done. */
	void (*validating)(struct report_observer *o, size_t done, size_t steps);
	/* A line of the log is due. */
	void (*window)(struct report_observer *o, const struct report_window *w);
	/* All steps are done, and this worker has all weights. */
	void (*epoch_end)(struct report_observer *o);
	/* Then: the epoch's metrics are known. */
	void (*epoch)(struct report_observer *o, const struct report_window *w);
	/* Of an epoch, or inside it after `done` of its steps; done = 0: after all of them. */
	void (*validation)(struct report_observer *o, size_t epoch, size_t done,
			   const struct mu_metrics *m);
	/* Add the observer's state to a checkpoint. */
	void (*save)(const struct report_observer *o, struct checkpoint_position *at);

	/* The run is over, without an error. Collective over all ranks. */
	enum mu_status (*end)(struct report_observer *o);
};

/* Rows of the table in observers.c. */
extern const struct report_observer_ops mu_report_log, mu_report_numbers, mu_report_terminal,
	mu_report_epoch_line, mu_report_timeline, mu_report_profile, mu_report_plateau,
	mu_report_learning, mu_report_benchmark, mu_report_job_comment;

/* ---- observers.c: the same for all of them ---- */

struct report_observers;
/* The view must outlive them. */
enum mu_status mu_report_open(struct report_observers **out, const struct report_view *view);
void mu_report_close(struct report_observers *all);

void mu_report_epoch_begin(struct report_observers *all, size_t first);
void mu_report_step(struct report_observers *all, const struct report_step *s);
void mu_report_validating(struct report_observers *all, size_t done, size_t steps);
void mu_report_window(struct report_observers *all, const struct report_window *w);
void mu_report_epoch_end(struct report_observers *all);
void mu_report_epoch(struct report_observers *all, const struct report_window *w);
void mu_report_validation(struct report_observers *all, size_t epoch, size_t done,
			  const struct mu_metrics *m);
void mu_report_save(const struct report_observers *all, struct checkpoint_position *at);
enum mu_status mu_report_end(struct report_observers *all);

/* ---- view.c: what observers share ---- */

bool mu_report_is_worker_0(const struct report_observer *o);
/*
 * Communication that computation does not hide: what this worker's thread spent in pushes and
 * pulls, including waits for slower workers, without its own updates.
 */
double mu_report_comm_seconds(void);
/* terminal.c: does the line of progress replace the log's lines of speed? */
bool mu_report_terminal_is_on(const struct conf *v);

#endif
