/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a training's log, each parsed once, for whoever reads logs: results (log_table.h)
 * and notes (notes.h). Logs are those of Muster and of MXNet's trainers: the same lines from 0.7
 * to 1.9; in 2015, before those, they began with "Iteration". Anything may stand before "Epoch":
 *
 *	Epoch[0] Batch [0-20]	Speed: 1706.99 samples/sec	accuracy=0.86
 *	Epoch[0] Train-accuracy=0.913000
 *	Epoch[0] Validation-accuracy=0.917000
 *	Epoch[0] Time cost=12.345
 */
#ifndef MUSTER_DATA_LOG_LINES_H
#define MUSTER_DATA_LOG_LINES_H

#include <muster/base.h>

enum log_kind { LOG_OTHER, LOG_SPEED, LOG_TRAIN, LOG_VALID, LOG_TIME };

/* Texts are valid during the call that gets the line. */
struct log_line {
	const char *path; /* for messages */
	size_t number;    /* from 1 on */
	enum log_kind kind;
	/* From "Epoch[" on; of other lines what follows time and rank. */
	const char *text;
	long epoch;        /* as in the log, from 0 on; -1 in lines of the kind LOG_OTHER */
	const char *name;  /* of the metric: LOG_TRAIN, LOG_VALID */
	const char *value; /* as in the log: LOG_TRAIN, LOG_VALID, LOG_TIME */
};

typedef enum mu_status (*log_line_fn)(void *context, const struct log_line *line);

/*
 * Call for each line of the log at path ("-": standard input); *n: number of lines. An error of the
 * call ends it. MU_ERR_FORMAT if the log ends inside a line of an epoch; with skip_bad that line is
 * left out, with a warning.
 */
enum mu_status log_lines_read(const char *path, bool skip_bad, log_line_fn call, void *context,
			      size_t *n);
/* "standard input" for "-". */
const char *log_path_shown(const char *path);

#endif
