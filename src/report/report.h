/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: the log and the other reports of a run. Here: reports before the first step, and --info;
 * observers.h: reports during and after training. Worker 0 writes them, for the whole job.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "engine/engine.h"
#include "engine/metrics.h"

struct checkpoint_best;
struct checkpoint_position;

/* The part of a run that reports read, after set-up. On servers only the engine's configuration,
 * members and store are set. */
struct report_view {
	const struct mu_engine *engine; /* and its configuration, members, inputs and store */
	const struct engine_metrics *metrics;   /* shown */
	const struct mu_slice *slices;          /* keys, as the store updates them */
	const struct checkpoint_position *from; /* what the run resumes from; {0}: nothing */
	const struct checkpoint_best *best;     /* of the validations so far */
	const char *saved;                      /* the newest complete checkpoint; "": none */
	size_t examples;                        /* per epoch, of the whole job */
	double link;                            /* bytes/s between ranks, 0 for one rank */
	double lr; /* base learning rate, scaled with the workers if that was asked for */
};

/* ---- start.c. Worker 0, but for _ranks, which is collective over all ranks ---- */

void mu_report_start(const struct report_view *view);
/* One line about the data. */
void mu_report_data(const struct mu_engine *e);
/* What in->classes counts: "class", "classes", "value" or "values". */
const char *mu_report_outputs(const struct mu_input *in);
enum mu_status mu_report_ranks(const struct mu_engine *e);

/* ---- environment.c: variables of other libraries that results may depend on ---- */

struct report_environment {
	uint64_t hash;	/* of all of them */
	char text[248]; /* "OMP_DYNAMIC=true, ...", cut short */
};

/* Those of this process. */
void mu_report_environment(struct report_environment *e);
/* Log worker 0's, and a warning of workers with others; of_rank: an array over all ranks. Worker 0
 */
void mu_report_environments(const struct mu_engine *e, const struct report_environment *of_rank);

/* ---- store.c: lines of the start and of the end about the store. Worker 0 ---- */

void mu_report_store(const struct mu_engine *e);
void mu_report_store_end(const struct mu_engine *e);

/* brief.c: the same in the plain form. */
void mu_report_start_brief(const struct report_view *view);

/* ---- destinations.c: where the log of this rank goes, before the first line. The files of the
 * first generation stay open. Worker 0 may fail ---- */

enum mu_status mu_report_log_open(const struct conf *v, const struct mu_options *options,
				  const struct mu_members *m);
/* view.c: has the log on standard error the plain form? */
bool mu_report_is_plain(const struct conf *v);

/* ---- void.c: a warning of each option that has no effect in this run. view NULL: there is no
 * engine. Worker 0, or rank 0 ---- */

void mu_report_void(const struct conf *conf, const struct mu_options *options,
		    const struct report_view *view);

/* ---- tally.c: all predictions of a validation. Worker 0: warns of what is odd about them (false:
 * nothing is); and a line for each class, of --evaluate ---- */

bool mu_report_tally(const struct engine_metrics *metrics, const struct mu_metrics *m);
void mu_report_classes(const struct engine_metrics *metrics, const struct mu_metrics *m);

/* ---- info.c: --info ---- */

void mu_report_info(FILE *stream);

#endif
