/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training that ends early, with or without a checkpoint: by a signal, before the job's end, or to
 * roll back to a checkpoint.
 */
#ifndef TRAIN_HALT_H
#define TRAIN_HALT_H

#include <stdatomic.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/notice.h>

#include "comm/queue_end.h"
#include "train/recovery/recovery.h"

struct conf;

struct train_halt {
	/* Set by the caller. */
	const struct conf *conf;
	const struct mu_members *members;
	struct mu_kv *kv;                /* once it is created */
	struct train_recovering *recovering; /* asks to go back */
	const atomic_int *signal;        /* last one received; NULL: signals are not handled */

	struct comm_queue *job; /* worker 0, with --halt-before; else NULL */
	/* Agreed on by all workers: training ends; it then goes on from a checkpoint. */
	bool wanted, goes_back;
	const struct train_recovery *policy; /* with goes_back */
	/* A worker has left something out of a step, and the job ends before it goes back: nothing
	 * is saved. */
	bool spoilt;
	char cause[192]; /* with wanted */
};

/* ---- halt.c ---- */

/* Worker 0: start to watch the end of the job (--halt-before). Not collective. */
enum mu_status mu_train_halt_open(struct train_halt *h);
/* Worker 0, before the training: mu_comm_queue_check. Not collective. */
enum mu_status mu_train_halt_check(struct train_halt *h);
void mu_train_halt_close(struct train_halt *h);
/* What this rank reports to the others (mu_kv_say); context: struct train_halt. */
mu_kv_say_fn mu_train_halt_say;
/* Inside an epoch, after `done` of its steps: must a worker stop here? Synchronous stores: the
 * same on all workers. */
bool mu_train_halt_is_due(const struct train_halt *h, size_t done);
/* Sets wanted, goes_back and cause, the same on all workers. Collective over workers. */
enum mu_status mu_train_halt_agree(struct train_halt *h);
/* The same of recoveries alone, after an evaluation or a save; signals wait. Nothing where the
 * options have no policy. */
enum mu_status mu_train_halt_agree_back(struct train_halt *h);
/* The line of the log; when: "after epoch 2". */
void mu_train_halt_report(const struct train_halt *h, const char *when, bool saves);
/* After the work: send the agreement of the workers to the servers. Collective over all ranks.
 */
enum mu_status mu_train_halt_share(struct train_halt *h);

#endif
