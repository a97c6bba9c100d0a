/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that have nothing to work on in a run, one row each; the run says so, and goes on. What
 * contradicts is refused: rules.c.
 */
#include "rules.h"

#include <stddef.h>

#define SAVES "save-every|save-period|save-steps|save-minutes|keep|save-async|overwrite"
#define ABOUT_LEARNING \
	"num-epochs|co2-factor|job-comment|" \
	"lr|lr-schedule|lr-factor|lr-step-epochs|lr-factor-epoch|plateau-improvement|" \
	"lr-power|final-lr|warmup-epochs|warmup-steps|warmup-strategy|warmup-begin-lr|" \
	"lr-scale-with-workers|" \
	"wd|wd-gamma|wd-mult|beta1|beta2|epsilon|adam-decay|rho|gamma1|gamma2|" \
	"lamda1|beta|wd-lh|lars-eta|lower-bound|upper-bound|lamda|clip-gradient|" \
	"clip-global-norm|label-smoothing|lr-mult|loss-scale|loss-scale-window|" \
	"target-accuracy|early-stopping|" \
	"best-metric|validate-every|validate-steps|verify-steps|on-nan|on-error|" \
	"halt-before"
#define ABOUT_UPDATES \
	"optimizer|mom|centered|update-period|sync-period|gc-type|shard-gradients|recompute"
#define ABOUT_READING \
	"num-examples|max-val-samples|num-batches|data-nthreads|prefetch-buffer|data-cache|" \
	"skip-bad-records|disp-batches|loss|metrics-file|tensorboard|timeline|profile"

static const struct mu_option_fact facts[] = {
#define FACT(member, shown_) {#member, offsetof(struct conf_void, member), shown_, 0}
#define BY_MODE(member)                                 \
	{#member, offsetof(struct conf_void, member), NULL, \
	 offsetof(struct conf_void, conf.facts.mode)}
	BY_MODE(untrained),
	BY_MODE(unread),
	BY_MODE(no_training_data),
	BY_MODE(no_updates),
	BY_MODE(undrawn),
	BY_MODE(unsaved),
	FACT(no_convolutions, "network"),
	FACT(no_attention, "network"),
	FACT(no_gammas, "network"),
	FACT(no_gpus, NULL),
	FACT(one_device, NULL),
	FACT(one_rank, NULL),
	FACT(one_worker, NULL),
	FACT(no_energy, NULL),
	FACT(no_queue, NULL),
	FACT(no_threads, NULL),
	FACT(no_bad_records, NULL),
	FACT(idle, NULL),
	FACT(given_weights, "load|resume|load-epoch"),
	FACT(few_samples, NULL),
	FACT(few_validation, NULL),
	FACT(few_validations, NULL),
	FACT(few_steps, NULL),
};

static const struct mu_option_rule rules[] = {
	{.option = ABOUT_LEARNING "|" SAVES, EXCLUDES = "untrained", .why = "nothing is trained"},
	{.option = "model-prefix", EXCLUDES = "unsaved", .why = "nothing is saved"},
	{.option = ABOUT_UPDATES, EXCLUDES = "no_updates", .why = "nothing is trained"},
	{.option = ABOUT_READING, EXCLUDES = "unread", .why = "no data are read"},
	{.option = "co2-factor", EXCLUDES = "no_energy",
	 .why = "no counter of energy can be read here"},
	{.option = "job-comment", EXCLUDES = "no_queue",
	 .why = "this is no job of Slurm: SLURM_JOB_ID is not set"},
	{.option = "seed", EXCLUDES = "undrawn", .why = "nothing is drawn at random"},
	{.option = "conv-algo|conv-table", EXCLUDES = "no_convolutions",
	 .why = "it has no convolutions"},
	{.option = "attention-algo", EXCLUDES = "no_attention", .why = "it has no attention"},
	{.option = "wd-gamma", EXCLUDES = "no_gammas", .why = "it has no gammas"},
	{.option = "cuda-graph|allow-tf32|attention-algo", EXCLUDES = "no_gpus",
	 .why = "this job has no GPU"},
	{.option = "work-load-list", EXCLUDES = "one_device", .why = "a worker has one device"},
	{.option = "setup-timeout|comm-warn|interface", EXCLUDES = "one_rank",
	 .why = "there is one rank"},
	{.option = "verify-steps", EXCLUDES = "one_worker", .why = "there is one worker"},
	{.option = "data-nthreads|prefetch-buffer", EXCLUDES = "no_threads",
	 .why = "no threads read these data"},
	{.option = "skip-bad-records", EXCLUDES = "no_bad_records",
	 .why = "a sample of these data cannot be bad alone"},
	{.option = "prefetch-buffer", EXCLUDES = "data-nthreads", BEING("0"),
	 .why = "the training thread reads"},
	{.option = "initializer", EXCLUDES = "given_weights", .why = "the weights are the file's"},
	{.option = "num-examples", EXCLUDES = "few_samples", .why = "there are fewer samples"},
	{.option = "max-val-samples", EXCLUDES = "few_validation",
	 .why = "there are fewer samples"},
	{.option = "early-stopping", EXCLUDES = "few_validations",
	 .why = "the first validation is the best so far, and fewer follow"},
	{.option = "num-batches", EXCLUDES = "few_steps", .why = "an epoch has fewer steps"},
	{.option = "best-metric", IS("!none"), NEEDS = "model-prefix|early-stopping",
	 .why = "no checkpoint and no end depend on it"},
	{.option = "sample-top-k|sample-top-p", EXCLUDES = "temperature", BEING("0"),
	 .why = "it always takes the likeliest"},
};

#define N(table) (sizeof table / sizeof *table)

const struct mu_option_rules mu_conf_void_rules = {
	.facts = facts, .n_facts = N(facts), .of = rules, .n = N(rules)};
