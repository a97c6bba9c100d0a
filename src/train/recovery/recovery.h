/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery: how a run goes on after an error of its training that all ranks survive. The worker
 * with the error does without what failed and takes part in the present step to its end. Then all
 * workers end as for a signal (halt.h), and another run begins in the same processes, with members,
 * store and data of its own, from the newest checkpoint: a generation (muster/comm.h). The other
 * errors end the job (train.c, end_badly). A policy is a row of table.c.
 *
 * The policies here keep all ranks, and all answer, so that closes are collective. One that goes on
 * with fewer needs two more members in its row. `members`: the communicator of the next run_once,
 * from the present one and the rank with the error; a rank that is left out gets MPI_COMM_NULL, and
 * ends. `agree`: in place of mu_train_halt_agree, where that rank does not answer;
 * mu_members_drop then comes before mu_train_release. Nothing else keeps a rank:
 * struct checkpoint_rollback has none, and the log, the alarm and the watch of waits are those of
 * the present members.
 *
 * No file holds weights that are not finite (checkpoint/writer.c), so the newest one is good.
 */
#ifndef TRAIN_RECOVERY_RECOVERY_H
#define TRAIN_RECOVERY_RECOVERY_H

#include <muster/base.h>

#include "conf/options.h"

/* What goes wrong. */
enum train_trouble {
	TRAIN_LEFT_OUT = 1 << 0,   /* a batch that is not finite was left out; no error */
	TRAIN_NOT_FINITE = 1 << 1, /* a loss or gradient, where --on-nan has no answer (more) */
	TRAIN_NOT_GOOD = 1 << 2,   /* weights or a validation; the same on all workers */
	TRAIN_NOT_READ = 1 << 3,   /* samples */
	TRAIN_NOT_SAVED = 1 << 4,
};

struct train_recovery {
	const char *option; /* "--on-nan rollback" */
	bool (*chosen)(const struct conf *v);
	unsigned takes; /* enum train_trouble */
	/* The next run begins after the batch at which this one ended; else where the checkpoint
	 * is, and errors in a row from the same file end the job. */
	bool skips;
	const char *before, *after; /* the name of the worker, in the cause: "an error of", "" */
};

/* The policy of number i. 0: none, such errors end the job. */
extern const struct train_recovery mu_train_recoveries[];
extern const unsigned mu_train_n_recoveries;

/* Of a worker. */
struct train_recovering {
	const struct conf *conf;
	int worker;
	unsigned wanted; /* number of the policy that this worker asks for; 0: none */
	bool ends;       /* training ends for good, or nothing is trained: no error is taken */
	char error[512]; /* this worker's first; "" */
};

/* ---- table.c ---- */

/*
 * st if no policy of the options takes this error, or none is needed. Else MU_OK: the error is in
 * the log, r->wanted is set, and its trace is cleared; the caller does without what failed. r NULL:
 * st.
 */
enum mu_status mu_train_recover(struct train_recovering *r, enum train_trouble what,
				enum mu_status st);
/* May errors be taken? The same on all workers, as are these options. */
bool mu_train_recovers(const struct train_recovering *r);
/* Does a policy take errors of this kind? */
bool mu_train_takes(const struct train_recovering *r, enum train_trouble what);
/* By a policy that does not skip: steps without a worker's part are done again. */
bool mu_train_replays(const struct train_recovering *r);

#endif
