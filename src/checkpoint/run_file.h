/* SPDX-License-Identifier: Apache-2.0 */
/* P-run.json: what was run, where, and how it ended. */
#ifndef CHECKPOINT_RUN_FILE_H
#define CHECKPOINT_RUN_FILE_H

#include <time.h>

#include <muster/base.h>

struct train_run;

/* ---- run_file.c: P-run.json ---- */

struct checkpoint_run_file {
	const struct mu_options *options; /* NULL: this rank writes none */
	time_t started, ended;            /* 0: not yet */
};
/* Where worker 0 cannot write it, it warns. Not collective; other ranks do nothing. */
void mu_checkpoint_run_file_begin(struct train_run *run, const struct mu_options *options);
/* st: how the run ended here; the cause of an error is the present trace, which stays. */
void mu_checkpoint_run_file_end(struct train_run *run, enum mu_status st);

#endif
