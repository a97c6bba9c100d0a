/* SPDX-License-Identifier: Apache-2.0 */
/* When the job of a queueing system ends. */
#ifndef COMM_QUEUE_END_H
#define COMM_QUEUE_END_H

#include <muster/base.h>

struct comm_queue;

/*
 * Training is to halt some time before the job's end: `before`, such as "90s", "5m" or "1h". _open
 * asks when the job ends; MU_ERR_USAGE if `before` cannot be read, or there is no job.
 * _check, before the training, waits some seconds for the answer: MU_ERR_USAGE if the job's time
 * limit is no longer than `before`.
 */
enum mu_status mu_comm_queue_open(struct comm_queue **out, const char *before);
enum mu_status mu_comm_queue_check(struct comm_queue *job, const char *before);
void mu_comm_queue_close(struct comm_queue *job);
/* Is it time? Cheap. */
bool mu_comm_queue_ends(struct comm_queue *job);

#endif
