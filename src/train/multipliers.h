/* SPDX-License-Identifier: Apache-2.0 */
/* Multipliers of learning rate and weight decay, by key. */
#ifndef TRAIN_MULTIPLIERS_H
#define TRAIN_MULTIPLIERS_H

#include "net/plan.h"
#include "conf/options.h"

/* ---- multipliers.c: --fixed, --lr-mult, --wd-mult ---- */

/* Check these options. */
enum mu_status mu_train_multipliers_check(const struct conf *v);
/* *slices, the caller's to free: the plan's, changed by the options. MU_ERR_USAGE names a pattern
 * that matches nothing. */
enum mu_status mu_train_multipliers_apply(const struct conf *v, const struct mu_plan *plan,
					  struct mu_slice **slices);

#endif
