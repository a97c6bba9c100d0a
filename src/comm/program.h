/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the queueing system, started beside the job: never waited for without a limit. */
#ifndef COMM_PROGRAM_H
#define COMM_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

struct comm_program {
	pid_t pid;  /* 0: it does not run */
	int output; /* what it writes, a pipe whose reads do not wait */
};

/* The words end with NULL; the first one is looked for in PATH. errors: what it writes to standard
 * error is output, too, and else lost. Returns 0, or an error number. */
int mu_comm_program_start(struct comm_program *p, char *const words[], bool errors);
/* Kills it with its children, if it still runs. Returns its status as waitpid has it. */
int mu_comm_program_end(struct comm_program *p);

#endif
