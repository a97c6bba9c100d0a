/* SPDX-License-Identifier: Apache-2.0 */
/* best: the best validation so far, by --best-metric. The same on all workers. */
#ifndef TRAIN_BEST_H
#define TRAIN_BEST_H

#include "checkpoint/checkpoint.h"
#include "engine/metrics.h"

struct train_best {
	const struct conf *conf;
	const struct mu_metric *metric;
	struct checkpoint_best state;
	bool worker_0; /* reports */
};

/* from: of the checkpoint that the run resumes from. */
void mu_train_best_open(struct train_best *b, const struct mu_engine *e,
			const struct engine_metrics *metrics, const struct checkpoint_best *from);
/* A validation after this many epochs: is it the best? */
bool mu_train_best_update(struct train_best *b, size_t epochs, const struct mu_metrics *m);
/* A line of the log if the last validation was the best. */
void mu_train_best_report(const struct train_best *b);
/* --early-stopping: does training end? Reports it. */
bool mu_train_best_stops(const struct train_best *b);

#endif
