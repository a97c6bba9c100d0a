/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of MXNet 1.9.1: see optim_table.c.
 */
#ifndef MUSTER_OPTIM_TABLE_H
#define MUSTER_OPTIM_TABLE_H

#include <stddef.h>

enum { OPTIM_N = 6, OPTIM_STEPS = 5 };

/* Settings that are not here are the rule's defaults. count = 1 / rescale_grad. */
struct optim_trajectory {
	const char *rule;
	double lr, count, wd, mom, wd_lh;
	float weights[OPTIM_STEPS][OPTIM_N];
};

extern const float optim_first[OPTIM_N];
extern const float optim_pushed[OPTIM_STEPS][OPTIM_N];
extern const struct optim_trajectory optim_trajectories[]; /* ends with a NULL rule */

#endif
