/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalars: the numbers of the log for other programs, in the files of --metrics-file and
 * --tensorboard. Worker 0 writes them, of the whole job; without these options nothing is done.
 *
 * A record is written whenever the log reports steps ("train"), an epoch ("epoch") or a
 * validation ("validation"). Its step counts batches of a worker over all epochs. A resumed
 * run appends to the existing file.
 */
#ifndef REPORT_SCALARS_H
#define REPORT_SCALARS_H

#include "observers.h"

enum {
	SCALAR_SECONDS, /* that the steps took, or the epoch without validation */
	SCALAR_RATE,    /* samples/s of the whole job */
	SCALAR_LR,      /* of the last update */
	SCALAR_DATA,    /* part of the seconds that worker 0 waited for samples */
	SCALAR_COMM,    /* part that it spent in pushes and pulls */
	SCALAR_METRICS, /* and from here on the metrics of the log, in their order */
	/* Then joules, where they are known. */
	SCALAR_MAX = SCALAR_METRICS + TRAIN_MAX_METRICS + 1,
};

/* NAN: it has no such value. */
struct report_numbers {
	const char *event;
	size_t epoch, step;
	double time; /* seconds since 1970 */
	size_t n;
	const char *const *names;
	double values[SCALAR_MAX];
};

/* ---- metrics_file.c: --metrics-file, a line for each record: JSON, or CSV after a head ---- */

struct report_metrics_file;
/* Check the name of the file: MU_ERR_USAGE. */
enum mu_status mu_report_metrics_file_check(const struct conf *v);
enum mu_status mu_report_metrics_file_open(struct report_metrics_file **out, const char *path,
					   bool append);
enum mu_status mu_report_metrics_file_put(struct report_metrics_file *f,
					  const struct report_numbers *record);
void mu_report_metrics_file_close(struct report_metrics_file *f);

/* ---- tensorboard.c: --tensorboard; tensorboard_none.c where there is no protobuf-c ---- */

struct report_events;
/* Check the option: does this build support it? */
enum mu_status mu_report_events_check(const struct conf *v);
/* Create a file in the folder, and the folder if it is missing. */
enum mu_status mu_report_events_open(struct report_events **out, const char *folder);
enum mu_status mu_report_events_put(struct report_events *e, const struct report_numbers *record);
void mu_report_events_close(struct report_events *e);

#endif
