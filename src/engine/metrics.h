/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a run, and their sums over workers. */
#ifndef ENGINE_METRICS_H
#define ENGINE_METRICS_H

#include <mpi.h>
#include <muster/metrics.h>

#include "conf/options.h"

#define TRAIN_MAX_METRICS 8

/* The metrics of a run, in the order of the log. */
struct engine_metrics {
	size_t n;
	const struct mu_metric *of[TRAIN_MAX_METRICS];
	char printed[TRAIN_MAX_METRICS][32];
};

/* The default metrics, and what --top-k and --loss add. MU_ERR_USAGE: an unknown name; the message
 * lists the known ones. */
enum mu_status mu_engine_metrics_choose(struct engine_metrics *metrics, const struct conf *v);
/* The metric of --best-metric; NULL: none. */
enum mu_status mu_engine_metrics_best(const struct mu_metric **metric, const struct conf *v);
/* Collective over comm. */
enum mu_status mu_engine_metrics_reduce(struct mu_metrics *m, MPI_Comm comm);

#endif
