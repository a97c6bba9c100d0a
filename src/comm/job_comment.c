/* SPDX-License-Identifier: Apache-2.0 */
/* The comment of a job of Slurm: see job_comment.h. */
#include "job_comment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <muster/base.h>

#include "program.h"

const char *mu_comm_job_number(void)
{
	const char *id = getenv("SLURM_JOB_ID");

	return id && *id ? id : NULL;
}

/* What it writes goes to text; false: it still runs when the time is over. */
static bool watch(struct comm_program *p, double until, char *text, size_t nbytes)
{
	static const struct timespec nap = {.tv_nsec = 5 * 1000 * 1000};
	char more[256];
	size_t n = 0;
	ssize_t got;

	*text = '\0';
	while ((got = read(p->output, more, sizeof more)) != 0) {
		if (got < 0 && mu_now() > until)
			return false;
		if (got < 0)
			nanosleep(&nap, NULL);
		for (ssize_t i = 0; i < got && n + 1 < nbytes; i++)
			text[n++] = more[i];
		text[n] = '\0';
	}
	/* Its output is closed: now it ends, too. */
	for (siginfo_t info = {.si_pid = 0};;) {
		if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid != 0)
			return true;
		if (mu_now() > until)
			return false;
		nanosleep(&nap, NULL);
	}
}

void mu_comm_job_comment(const char *text, double seconds, char *why, size_t nbytes)
{
	char words[][16] = {"scontrol", "update"}, job[64], comment[512], said[256];
	char *const argv[] = {words[0], words[1], job, comment, NULL};
	const char *id = mu_comm_job_number();
	struct comm_program p;
	int error, status;
	bool done;

	*why = '\0';
	snprintf(job, sizeof job, "jobid=%s", id ? id : "");
	snprintf(comment, sizeof comment, "comment=%s", text);
	error = mu_comm_program_start(&p, argv, true);
	if (error != 0) {
		snprintf(why, nbytes, "scontrol: %s", strerror(error));
		return;
	}
	done = watch(&p, mu_now() + seconds, said, sizeof said);
	status = mu_comm_program_end(&p);
	said[strcspn(said, "\n")] = '\0';
	if (!done)
		snprintf(why, nbytes, "scontrol has not ended in %g s", seconds);
	else if (status != 0)
		snprintf(why, nbytes, "%s", *said ? said : "scontrol fails");
}
