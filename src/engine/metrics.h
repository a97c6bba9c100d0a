/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a run, and their sums over workers. */
#ifndef ENGINE_METRICS_H
#define ENGINE_METRICS_H

#include <mpi.h>
#include <muster/metrics.h>

#include "conf/options.h"
#include "engine.h"

#define TRAIN_MAX_METRICS 32

/* On servers, which have no net, all is NULL and 0. */
struct engine_metrics {
	const struct mu_loss *loss;      /* of the net */
	const struct mu_metric *mean;    /* the mean loss */
	const struct mu_metric *best;    /* of --best-metric; NULL: none */
	const struct mu_metric *target;  /* of --target-accuracy; NULL: not set */
	const struct mu_metric *plateau; /* of --lr-schedule plateau */
	/* In the order of the log. */
	size_t n;
	const struct mu_metric *of[TRAIN_MAX_METRICS];
	char printed[TRAIN_MAX_METRICS][48];
};

/* Before there is a net: is every metric that the options name one of some loss? MU_ERR_USAGE; the
 * message lists the known ones. Not of a network that ends in a loss of its own. */
enum mu_status mu_engine_metrics_check(const struct conf *v);
/* The default metrics, and those of --top-k, --loss and --best-metric; weighs: mu_net_weighs.
 * MU_ERR_USAGE: this loss lacks one. */
enum mu_status mu_engine_metrics_choose(struct engine_metrics *metrics, const struct mu_loss *loss,
					const struct conf *v, bool weighs);
/* Collective over workers. */
enum mu_status mu_engine_metrics_reduce(struct mu_metrics *m, const struct mu_members *members);

/* Sets e->tally, if the metrics need one, or to watch few classes. MU_ERR_USAGE: too many. */
enum mu_status mu_engine_tally_open(struct mu_engine *e, const struct engine_metrics *metrics);
/* Is the metric of the part, "auc" or "HEAD-auc", in the log, or does it decide? */
bool mu_engine_metrics_use(const struct engine_metrics *metrics, const struct mu_loss_part *part,
			   const char *name);

#endif
