/* SPDX-License-Identifier: Apache-2.0 */
/* Private to optim: the rules of the table, and what their loops share. */
#ifndef MUSTER_OPTIM_RULE_H
#define MUSTER_OPTIM_RULE_H

#include <muster/optim.h>

/*
 * Elements come in whole runs of this length, and the loop limit mu_lanes(n) shows this to the
 * compiler. Then there is no remainder loop, in which multiplications and additions might be fused
 * differently.
 */
#define MU_LANES MU_ELEMENT_RUN

static inline size_t mu_lanes(size_t n)
{
	return n / MU_LANES * MU_LANES;
}

/* For lists of settings: one with the rule's own default, and the common ones. */
#define MU_SETTING(name, member, initial) \
	{ \
		(name), offsetof(struct mu_optim_config, member), (initial) \
	}
#define MU_SETTING_SHARED(name) \
	{ \
		(name), 0, 0 \
	}
#define MU_SETTINGS_CLIP MU_SETTING_SHARED("clip-gradient"), MU_SETTING_SHARED("clip-global-norm")
#define MU_SETTINGS_DECAY \
	MU_SETTING_SHARED("wd"), MU_SETTING_SHARED("wd-gamma"), MU_SETTING_SHARED("wd-mult")
#define MU_SETTINGS_RATE \
	MU_SETTING_SHARED("lr"), MU_SETTING_SHARED("lr-schedule"), MU_SETTING_SHARED("lr-mult")
#define MU_SETTINGS_COMMON MU_SETTINGS_RATE, MU_SETTINGS_DECAY, MU_SETTINGS_CLIP
#define MU_SETTINGS_END \
	{ \
		NULL, 0, 0 \
	}

extern const struct mu_rule mu_rule_sgd;
extern const struct mu_rule mu_rule_nag;
extern const struct mu_rule mu_rule_adam;
extern const struct mu_rule mu_rule_adagrad;
extern const struct mu_rule mu_rule_adadelta;
extern const struct mu_rule mu_rule_rmsprop;
extern const struct mu_rule mu_rule_ftrl;
extern const struct mu_rule mu_rule_signum;
extern const struct mu_rule mu_rule_lars;
extern const struct mu_rule mu_rule_lamb;
extern const struct mu_rule mu_rule_dcasgd;
extern const struct mu_rule mu_rule_test;
extern const struct mu_rule mu_rule_sum;
extern const struct mu_rule mu_rule_none;

/* For mu_rule.states: none without momentum. */
int mu_states_of_momentum(const struct mu_optim_config *config);
/* State arrays that this config needs. */
int mu_rule_states(const struct mu_rule *rule, const struct mu_optim_config *config);
bool mu_rule_clips_norm(const struct mu_rule *rule, const struct mu_optim_config *config);

/* The constants that most rules need. */
static inline struct mu_element mu_element_of(const struct mu_update *u, enum mu_element_kind kind)
{
	return (struct mu_element){
		.kind = (int)kind,
		.rescale = u->rescale,
		.limit = u->clip,
		.lr = u->lr,
		.wd = u->wd,
		.mom = u->mom,
	};
}

/* The rule of MU_SLICE_AVERAGE slices for every optimiser: u->mom is the slice's. */
void mu_rule_average(const struct mu_update *u, size_t n, float *weights, const float *gradients);
struct mu_element mu_rule_average_element(const struct mu_update *u);

#endif
