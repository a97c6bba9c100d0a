/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training that ends early, with or without a checkpoint: by a signal, before the job's end, or to
 * go back to a checkpoint. train.h includes it.
 */
#ifndef TRAIN_HALT_H
#define TRAIN_HALT_H

#include <muster/base.h>
#include <muster/kvstore.h>

#include "comm/queue_end.h"

struct train_run;
struct conf;

struct train_halt {
	const atomic_int *signal; /* that came to this process; NULL: nobody looks */
	struct comm_queue *job;   /* worker 0, with --halt-before; else NULL */
	/* Agreed on by all workers: training ends; then it goes on from an older checkpoint. */
	bool wanted, goes_back;
	char cause[192]; /* with wanted */
};

/* ---- halt.c ---- */

/* Worker 0 begins to watch the job's end, if that was asked for. Not collective. */
enum mu_status mu_train_halt_open(struct train_run *run);
/* Worker 0, before the training: mu_comm_queue_check. Not collective. */
enum mu_status mu_train_halt_check(struct train_run *run);
void mu_train_halt_close(struct train_halt *halt);
/* What this rank has to say to the others (mu_kv_say); context: the run. */
mu_kv_say_fn mu_train_halt_say;
/* Inside an epoch, when `done` of its steps are: does a worker have to stop here? Synchronous
 * stores: the same on all workers. */
bool mu_train_halt_heard(const struct train_run *run, size_t done);
/* halt.wanted, .goes_back and .cause, the same on all workers. Collective over workers. */
enum mu_status mu_train_halt_agree(struct train_run *run);
/* The line of the log; when: "after epoch 2". */
void mu_train_halt_tell(const struct train_run *run, const char *when, bool saves);
/* What workers have agreed on, on servers, too, when all is done. Collective over all ranks. */
enum mu_status mu_train_halt_end(struct train_run *run);


#endif
