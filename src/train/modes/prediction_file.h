/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of --predict: .csv, a table (prediction_table.h); .npy, an array; else HDF5, arrays of
 * outputs and labels. A row for each record, in order. Worker 0.
 */
#ifndef TRAIN_MODES_PREDICTION_FILE_H
#define TRAIN_MODES_PREDICTION_FILE_H

#include "conf/conf.h"
#include "prediction_table.h"

struct prediction_file {
	/* Set by the caller, on all workers. */
	const struct conf *conf;
	const struct mu_input *data;
	const char *parameters; /* the file that they are from */
	enum mu_loss_output output;
	bool sequences;
	size_t classes, n, steps; /* n: records; steps: labels of one, at most */
	/* Private. */
	struct mu_shape shape; /* of the array of all outputs */
	bool csv, npy;         /* else HDF5 */
	struct mu_replace replace;
	FILE *stream;
	struct prediction_table table; /* CSV */
	size_t next;                   /* record */
	float *labels;   /* HDF5: (n, steps), written at the end */
	float *left_out; /* arrays: a row for a record without an answer; end of a short one */
	uint64_t at_probabilities, at_labels, at_checksums;
	uint32_t checksum; /* of the probabilities so far */
};

/* Not collective. Numbers of a record: of a sequence the log-probabilities of its labels, of a
 * network with outputs for each position all of them. An error: they cannot be written. */
enum mu_status mu_prediction_file_init(struct prediction_file *f, const struct mu_shape *output);
size_t mu_prediction_file_columns(const struct prediction_file *f);
/* Creates it under another name; _finish gives it its own. */
enum mu_status mu_prediction_file_open(struct prediction_file *f);
/* The record of this number, later than all before, with n labels; a sequence may have fewer than
 * others, and `row` has their places after them (struct mu_prediction). */
enum mu_status mu_prediction_file_add(struct prediction_file *f, size_t id, size_t n,
				      const float *labels, const float *row);
enum mu_status mu_prediction_file_finish(struct prediction_file *f);
void mu_prediction_file_close(struct prediction_file *f);

#endif
