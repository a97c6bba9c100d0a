/* SPDX-License-Identifier: Apache-2.0 */
/* The comment of a queueing system's job, which its accounting keeps. */
#ifndef COMM_JOB_COMMENT_H
#define COMM_JOB_COMMENT_H

#include <stddef.h>

/* The number of this job in a queue whose jobs have a comment (Slurm); NULL: there is none. */
const char *mu_comm_job_number(void);
/*
 * Sets the comment of this job, which must not have ended: scontrol, for `seconds` at most. why:
 * "" if it is set, else what is wrong, in one line. Not collective.
 */
void mu_comm_job_comment(const char *text, double seconds, char *why, size_t nbytes);

#endif
