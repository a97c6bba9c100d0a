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
 */
#ifndef CHECKPOINT_LOCK_H
#define CHECKPOINT_LOCK_H

#include <muster/base.h>

struct mu_checkpoint_lock;

/* MU_ERR_IO if another job has the prefix: the message names host, process and file. */
enum mu_status mu_checkpoint_lock(const char *prefix, struct mu_checkpoint_lock **out);
/* Removes the file. NULL is allowed. */
void mu_checkpoint_unlock(struct mu_checkpoint_lock *lock);

#endif
