/* SPDX-License-Identifier: Apache-2.0 */
/* Saving and going on from checkpoints; checkpoint.h has the files. */
#ifndef CHECKPOINT_SAVE_H
#define CHECKPOINT_SAVE_H

#include "conf/options.h"

struct train_run;
struct checkpoint_saver;

/*
 * save.c: checkpoints (checkpoint.h). _open is collective over workers, as are _save unless alone,
 * _look and _finish.
 */
struct checkpoint_position;
enum mu_status mu_checkpoint_save_open(struct train_run *run);
void mu_checkpoint_save_close(struct checkpoint_saver *s);
/* After `done` steps of an epoch, not its last: is a save due now? */
bool mu_checkpoint_save_due(struct train_run *run, size_t done);
/* Synchronous stores: all learn whether worker 0 finds that --save-minutes are over. */
enum mu_status mu_checkpoint_save_look(struct train_run *run);
/*
 * Begin a save; of position the epoch, the step and metrics count. alone: worker 0 of dist_async
 * inside an epoch; what workers have for themselves is not saved then.
 */
enum mu_status mu_checkpoint_save(struct train_run *run, const struct checkpoint_position *position,
				  bool alone);
/* Let the save under way move on; errors of its threads come out here. Cheap. */
enum mu_status mu_checkpoint_save_poll(struct train_run *run);
/* Wait until it is complete. */
enum mu_status mu_checkpoint_save_finish(struct train_run *run);
/* dist_async, before workers meet: complete one of all workers, whose vote no meeting moves on. */
enum mu_status mu_checkpoint_save_meet(struct train_run *run);

/* Can files be written there? Asked before the training. Not collective. */
enum mu_status mu_checkpoint_check(const struct train_run *run);

/* resume.c: the weights, by worker 0; afterwards all the rest, collective over workers. */
enum mu_status mu_checkpoint_resume_weights(struct train_run *run);
enum mu_status mu_checkpoint_resume_states(struct train_run *run);

/* load.c, --load: the weights that fit, by worker 0. */
enum mu_status mu_checkpoint_load_weights(struct train_run *run);

#endif
