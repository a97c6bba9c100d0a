/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to optim: the rules that the table lists, and what their loops share.
 */
#ifndef MUSTER_OPTIM_RULE_H
#define MUSTER_OPTIM_RULE_H

#include <muster/optim.h>

/*
 * Elements come in whole runs of this many, and a loop up to mu_lanes(n) shows the compiler so:
 * then it makes no loop for a remainder, in which multiplications and additions might be joined in
 * another way.
 */
#define MU_LANES 16

static inline size_t mu_lanes(size_t n)
{
	return n / MU_LANES * MU_LANES;
}

/* MXNet clips the rescaled gradient to +-clip_gradient; without clipping the limit is infinite. */
static inline float mu_clip(float g, float limit)
{
	return g > limit ? limit : g < -limit ? -limit : g;
}

extern const struct mu_rule mu_rule_sgd;
extern const struct mu_rule mu_rule_nag;
extern const struct mu_rule mu_rule_adam;
extern const struct mu_rule mu_rule_test;
extern const struct mu_rule mu_rule_none;

/* The rule of MU_SLICE_AVERAGE slices, whatever the optimiser: u->mom is the slice's. */
void mu_rule_average(const struct mu_update *u, size_t n, float *weights, const float *gradients);

#endif
