/* SPDX-License-Identifier: Apache-2.0 */
/* Multipliers of learning rate and weight decay, by key. */
#ifndef TRAIN_MULTIPLIERS_H
#define TRAIN_MULTIPLIERS_H

#include "conf/options.h"

struct train_run;

/* ---- multipliers.c: --fixed, --lr-mult, --wd-mult ---- */

/* The part of the settling of options about them. */
enum mu_status mu_train_multipliers_check(const struct conf *v);
/* run->slices: the plan's, as options say. MU_ERR_USAGE names a pattern that matches nothing. */
enum mu_status mu_train_multipliers_apply(struct train_run *run);

#endif
