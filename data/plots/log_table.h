/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a training, out of its log (log_lines.h). Of an epoch all lines of a kind are
 * averaged, as MXNet's parse_log does: each worker may have written one.
 */
#ifndef MUSTER_DATA_LOG_TABLE_H
#define MUSTER_DATA_LOG_TABLE_H

#include "log_lines.h"
#include "notes.h"

enum { LOG_METRICS_MAX = 8, LOG_CELLS_MAX = 2 * LOG_METRICS_MAX + 1, LOG_NAME_BYTES = 64 };

/* Metrics that a table holds: of each a cell of training, one of validation; the last is time. */
struct log_metrics {
	size_t n;
	char names[LOG_METRICS_MAX][LOG_NAME_BYTES];
};

/* list: "accuracy,cross-entropy". MU_ERR_USAGE. */
enum mu_status log_metrics_read(struct log_metrics *m, const char *list);
size_t log_metrics_cells(const struct log_metrics *m);
/* Of validation; that of training is one less. */
size_t log_metrics_cell(size_t metric);
/* "train-accuracy", "valid-accuracy", "time" into text; returns text. */
const char *log_metrics_cell_name(const struct log_metrics *m, size_t cell, char *text,
				  size_t nbytes);

struct log_row {
	long epoch; /* as in the log, from 0 on */
	struct {
		double sum;
		size_t n; /* lines */
	} cells[LOG_CELLS_MAX];
};

/* {0} at first. */
struct log_table {
	struct log_row *rows; /* n of them, by epoch; owned */
	size_t n, room;
	bool incomplete;  /* the last log that was added has no complete epoch */
	char others[256]; /* names of metrics that were not asked for: "a, b" */
};

/* Of "a/b/lenet.log" into text: "lenet"; returns text. */
const char *log_name(const char *path, char *text, size_t nbytes);
/* The mean of a cell; false: it has no line. */
bool log_table_value(const struct log_row *row, size_t cell, double *value);

/* Several logs. {0} at first, but for metrics. */
struct log_set {
	struct log_metrics metrics;
	struct log_table *tables; /* n of them; owned */
	struct notes *notes;      /* n of them, or NULL; owned */
	const char **names;       /* of the logs, the caller's */
	size_t n;
};

struct log_reading {
	bool average;  /* the logs are those of one job's workers: one table, notes of the first */
	bool skip_bad; /* leave out values that are not finite and a cut last line, and warn */
	bool notes;
	/* Nobody asked for the metrics: those of them that the logs have; if they have none, all
	 * that they have. */
	bool usual;
};

/*
 * The n logs at paths, each read once. An error names the file and what it lacks, or the line that
 * is wrong: MU_ERR_FORMAT for a log that is empty, of another program, without a complete epoch,
 * that has a value which is not finite, or that ends inside a line of an epoch. Of several logs
 * those without a complete epoch are left out, with a warning, of paths too.
 */
enum mu_status log_set_read(struct log_set *set, const char **paths, size_t n,
			    const struct log_reading *how);
void log_set_release(struct log_set *set);
/* Has any log a value of this metric? */
bool log_set_has(const struct log_set *set, size_t metric);
/* MU_ERR_FORMAT names a metric that no log has, and those that they have. */
enum mu_status log_set_check(const struct log_set *set);

#endif
