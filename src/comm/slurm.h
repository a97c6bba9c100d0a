/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Slurm says of the job in the environment. How many cores a worker gets
 * (SLURM_CPUS_PER_TASK) is mu_topology_place's, when the job ends queue_end.c's.
 */
#ifndef COMM_SLURM_H
#define COMM_SLURM_H

#include <stdbool.h>

/*
 * The log's lines: that the job was queued anew (SLURM_RESTART_COUNT, not set in a first run), and
 * warnings: it begins anew then; it has fewer cores than it was given (SLURM_CPUS_PER_TASK), or
 * devices that are not used (SLURM_GPUS_ON_NODE). Worker 0.
 * cores: that it may run on; anew: it saves checkpoints and would not go on from them.
 */
void mu_comm_slurm_report(int cores, bool gpus_used, bool anew);

#endif
