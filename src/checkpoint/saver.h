/* SPDX-License-Identifier: Apache-2.0 */
/* Saving checkpoints while training continues; checkpoint.h has the files. */
#ifndef CHECKPOINT_SAVER_H
#define CHECKPOINT_SAVER_H

#include "engine/engine.h"

struct checkpoint_position;
struct checkpoint_rollback;
struct checkpoint_saver;

/*
 * *out: NULL without --model-prefix, which the functions below accept, except mu_checkpoint_save.
 * The path of the last complete save is written to back->path. survives: the run goes on after a
 * save that fails (train/recovery). Collective over workers.
 */
enum mu_status mu_checkpoint_saver_open(struct checkpoint_saver **out, const struct mu_engine *e,
					struct checkpoint_rollback *back, bool survives);
void mu_checkpoint_saver_close(struct checkpoint_saver *s);
/* After `done` steps of an epoch, not its last: is a save due now? */
bool mu_checkpoint_saver_due(struct checkpoint_saver *s, size_t done);
/*
 * Synchronous stores: worker 0 broadcasts whether --save-minutes have passed. Collective over
 * workers.
 */
enum mu_status mu_checkpoint_saver_check_minutes(struct checkpoint_saver *s);
/*
 * Begin a save. The store and the engine fill in the rest of the position: workers, batch,
 * progress, updates and last_lr. alone: worker 0 of dist_async inside an epoch; the workers' own
 * arrays are not saved then. Otherwise collective over workers.
 */
enum mu_status mu_checkpoint_save(struct checkpoint_saver *s,
				  const struct checkpoint_position *position, bool alone);
/*
 * Where it survives: this worker has left something out of a step, and the run goes back. No worker
 * begins another save, for mu_checkpoint_save is an error on all: on the others MU_ERR_PEER. So is
 * a save that fails.
 */
void mu_checkpoint_saver_refuse(struct checkpoint_saver *s);
/* Advance the save in progress; returns the errors of its threads. Cheap. */
enum mu_status mu_checkpoint_saver_poll(struct checkpoint_saver *s);
/* Wait until it is complete. Collective over workers, unless the save was alone. */
enum mu_status mu_checkpoint_saver_finish(struct checkpoint_saver *s);
/*
 * The run has failed: complete the save that is under way, if it can be without other steps of
 * training; for `seconds` at most. Other ranks are asked to wait while this one writes. For workers
 * whose parts are not written it waits only while they can be expected (mu_alarm_nobody_comes):
 * after a rank was silent, not for one that computes for longer than that.
 */
void mu_checkpoint_saver_rescue(struct checkpoint_saver *s, double seconds);
/*
 * dist_async, before workers meet: finish a save of all workers, whose vote makes no progress
 * while they meet.
 */
enum mu_status mu_checkpoint_saver_finish_shared(struct checkpoint_saver *s);

/* Can files be written to --model-prefix? Call before training. Not collective. */
enum mu_status mu_checkpoint_check(const struct conf *v);
/* MU_ERR_USAGE: --model-prefix has checkpoints, and the run neither resumes nor has --overwrite. */
enum mu_status mu_checkpoint_check_unused(const struct conf *v);

#endif
