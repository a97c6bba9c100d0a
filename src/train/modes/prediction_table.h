/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of --predict FILE.csv. Worker 0. */
#ifndef TRAIN_MODES_PREDICTION_TABLE_H
#define TRAIN_MODES_PREDICTION_TABLE_H

#include <muster/input.h>
#include <muster/metrics.h>

#include "checkpoint/checkpoint.h"

struct prediction_table {
	FILE *stream;
	const struct mu_input *data;
	enum mu_loss_output output;
	bool sequences;                  /* labels are tokens */
	size_t targets;                  /* of a sample */
	size_t classes, top_k;           /* classes: or values; top_k: from 1 to classes */
	struct checkpoint_classes saved; /* of the checkpoint */
};

/* Errors of the stream stay in it (ferror). */
/* Is the file empty, or one of ours by its first line? */
bool mu_prediction_table_is(const char *path);
void mu_prediction_table_begin(const struct prediction_table *t);
void mu_prediction_table_line(const struct prediction_table *t, size_t id, const float *labels,
			      const float *row);
/* A sequence of n labels, NaN where none counts; row: their log-probabilities, then their places
 * (struct mu_prediction). */
void mu_prediction_table_sequence(const struct prediction_table *t, size_t id, size_t n,
				  const float *labels, const float *row);

#endif
