/* SPDX-License-Identifier: Apache-2.0 */
/* The job, from Slurm's environment, and options that fit it. */
#ifndef CONF_SLURM_H
#define CONF_SLURM_H

#include <stdbool.h>

/*
 * Log that the job was requeued (SLURM_RESTART_COUNT, not set in the first run), and warnings: a
 * requeued job that starts training anew (anew: it saves checkpoints and would not resume); fewer
 * cores than allocated (SLURM_CPUS_PER_TASK); unused GPUs (SLURM_GPUS_ON_NODE). Worker 0.
 */
void mu_conf_slurm_report(int cores, bool gpus_used, bool anew);

#endif
