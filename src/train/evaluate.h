/* SPDX-License-Identifier: Apache-2.0 */
/* Validation: loss and metrics on data that is not used for training. */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include "batch.h"

/* After each step, with its good samples in the engine; m: this worker's metrics so far. */
typedef enum mu_status train_evaluate_fn(void *context, size_t step, size_t count,
					 const struct mu_metrics *m);

/* ---- evaluate.c ---- */

/* m: over all workers' shares of the data, the same on all. Collective over workers. */
enum mu_status mu_train_evaluate(struct train_batches *b, struct mu_input *data,
				 train_evaluate_fn *each_step, void *context, struct mu_metrics *m);

/* MU_ERR_FORMAT: no sample of `what` was good. The same on all workers. */
enum mu_status mu_train_check_samples(const struct mu_metrics *m, const char *what);
/* Warns of records that --skip-bad-records skipped. */
void mu_train_report_bad(const struct mu_engine *e, const struct mu_input *in, const char *what);

#endif
