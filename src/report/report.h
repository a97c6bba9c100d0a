/* SPDX-License-Identifier: Apache-2.0 */
/* report: metrics, and what the log says of a run. A part of train.h, which includes it. */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include "engine/metrics.h"

struct train_run;
struct conf;

/* ---- log.c: what the log says, and with it the files of scalars.h. Lines come from worker 0
 * only; they speak of the whole job. ---- */

void mu_report_start(const struct train_run *run);
/* What the data is: one line. */
void mu_report_data(const struct train_run *run);
enum mu_status mu_report_ranks(const struct train_run *run);
struct report_window {
	size_t epoch, first, last; /* steps (first, last] */
	double samples, seconds;   /* of the whole job */
	double data_seconds;       /* that worker 0 waited for samples */
	double comm_seconds;       /* that worker 0 spent in pushes and pulls: not hidden */
	struct mu_metrics metrics;
};
void mu_report_speed(const struct train_run *run, const struct report_window *w);
/* An epoch; of steps there are all. */
void mu_report_epoch(const struct train_run *run, const struct report_window *w);
void mu_report_validation(const struct train_run *run, size_t epoch, const struct mu_metrics *m);
void mu_report_end(const struct train_run *run);
/*
 * Communication that computation does not hide: what this worker's thread spent in pushes and
 * pulls, waits for slower workers included, updates of its own left out.
 */
double mu_report_comm_seconds(void);
/* --info */
void mu_report_info(FILE *stream);

/* store.c: lines about the store. */
void mu_report_store(const struct train_run *run);
void mu_report_store_end(const struct train_run *run);

#endif
