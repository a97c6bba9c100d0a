/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about a job of Slurm: options that were forgotten. */
#include "slurm.h"

#include <stdlib.h>

#include <muster/base.h>

/* 0 if the variable is not set, or is not a number. */
static long number(const char *variable)
{
	const char *text = getenv(variable);

	return text ? strtol(text, NULL, 10) : 0;
}

static void report_restart(const char *job, bool anew)
{
	const long restarts = number("SLURM_RESTART_COUNT");

	if (restarts <= 0)
		return;
	mu_log_info("Slurm job %s was queued anew: restart %ld", job, restarts);
	if (anew)
		mu_log_warn("Slurm job %s was requeued and starts training from the beginning: "
			    "--resume "
			    "auto resumes from the newest checkpoint",
			    job);
}

void mu_conf_slurm_report(int cores, bool gpus_used, bool anew)
{
	const char *job = getenv("SLURM_JOB_ID");
	const long per_task = number("SLURM_CPUS_PER_TASK"), gpus = number("SLURM_GPUS_ON_NODE");

	if (!job)
		return;
	report_restart(job, anew);
	if (per_task > cores)
		mu_log_warn("Slurm gives %ld cores to a task (SLURM_CPUS_PER_TASK), and worker 0 "
			    "may run on %d: give srun --cpus-per-task=%ld, too",
			    per_task, cores, per_task);
	if (gpus > 0 && !gpus_used)
		mu_log_warn("Slurm gives %ld GPU%s on this node (SLURM_GPUS_ON_NODE), and this job "
			    "trains on CPUs: give --devices gpu:auto",
			    gpus, MU_S(gpus));
}
