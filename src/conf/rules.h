/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about several options (rules.c). */
#ifndef CONF_RULES_H
#define CONF_RULES_H

#include <muster/base.h>

#include "options.h"

/* The words of a row. */
#define NEEDS    .relation = MU_OPTION_NEEDS, .other
#define EXCLUDES .relation = MU_OPTION_EXCLUDES, .other
#define IS(list) .values = list
#define BEING(list) .other_values = list

extern const struct mu_option_rules mu_conf_rules;     /* of all runs */
extern const struct mu_option_rules mu_conf_job_rules; /* of the store, for a number of ranks */

/* ---- voids.c: options that have no effect in a run; report/void.c finds the facts ---- */

/* The values that the rows are about: settled options, and what this run has not. A fact that is
 * not known is false. */
struct conf_void {
	struct conf conf;		 /* the first member: options have their offsets in it */
	bool untrained, unread, undrawn; /* nothing is trained, read, or drawn at random */
	bool no_training_data, no_updates;
	bool unsaved; /* nothing is written or read under a prefix */
	bool no_convolutions, no_attention, no_gammas; /* in the network */
	bool no_gpus, one_device, one_rank, one_worker;
	bool no_energy;     /* counter of it */
	bool no_queue;      /* whose jobs have a comment */
	bool no_threads;    /* that read the data */
	bool no_bad_records; /* none of them is read by itself */
	bool idle;	    /* a setting of the reader has nothing to work on */
	bool given_weights; /* all weights are a file's */
	bool few_samples, few_steps; /* than the options ask for */
	bool few_validation, few_validations;	   /* samples of it; validations of the run */
};

/* Rows for mu_option_rule_void, about a struct conf_void. */
extern const struct mu_option_rules mu_conf_void_rules;

#endif
