/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job per prefix: P.lock names it. Two jobs that save under one name would remove each other's
 * files.
 *
 * The file holds host, process and start time of the owner, which sets its modification time every
 * few seconds. An owner on this host is dead if there is no such process. For one elsewhere, or in
 * another container, the file is watched: if its time or text does not change for three of these
 * periods, the owner is dead. The clocks of hosts are never compared. A dead owner's file is
 * replaced.
 *
 * A job that has no room for the file works without, and is not seen by another one on another
 * host. So a temporary file there is removed only if its process owned the file that was replaced,
 * or if it is older than an hour.
 */
#ifndef CHECKPOINT_LOCK_H
#define CHECKPOINT_LOCK_H

#include <time.h>

#include <muster/base.h>

struct mu_checkpoint_lock;

/* MU_ERR_IO if another job has the prefix: the message names host, process and file. */
enum mu_status mu_checkpoint_lock(const char *prefix, struct mu_checkpoint_lock **out);
/* Has the process that last wrote a temporary file of the prefix ended? changed: the file's time.
 * false if it is not known. */
bool mu_checkpoint_lock_outlives(const struct mu_checkpoint_lock *lock, long pid, time_t changed);
/* Removes the file. NULL is allowed. */
void mu_checkpoint_unlock(struct mu_checkpoint_lock *lock);

#endif
