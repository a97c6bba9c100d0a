/* SPDX-License-Identifier: Apache-2.0 */
/* Policies, and which of them takes an error. */
#include "recovery.h"

#include <stdio.h>

static bool rolls_back(const struct conf *v)
{
	return v->on_nan == CONF_ON_NAN_ROLLBACK;
}

static bool reloads(const struct conf *v)
{
	return v->on_error == CONF_ON_ERROR_RELOAD;
}

const struct train_recovery mu_train_recoveries[] = {
	{.option = "--on-error stop"},
	{.option = "--on-nan rollback",
	 .chosen = rolls_back,
	 .takes = TRAIN_LEFT_OUT,
	 .skips = true,
	 .before = "a batch of",
	 .after = " was not finite"},
	{.option = "--on-error reload",
	 .chosen = reloads,
	 .takes = TRAIN_NOT_FINITE | TRAIN_NOT_GOOD | TRAIN_NOT_READ | TRAIN_NOT_SAVED,
	 .before = "an error of",
	 .after = ""},
};

const unsigned mu_train_n_recoveries = sizeof mu_train_recoveries / sizeof *mu_train_recoveries;

bool mu_train_recovers(const struct train_recovering *r)
{
	for (unsigned i = 1; !r->ends && i < mu_train_n_recoveries; i++)
		if (mu_train_recoveries[i].chosen(r->conf))
			return true;
	return false;
}

bool mu_train_takes(const struct train_recovering *r, enum train_trouble what)
{
	for (unsigned i = 1; !r->ends && i < mu_train_n_recoveries; i++)
		if (mu_train_recoveries[i].chosen(r->conf) && mu_train_recoveries[i].takes & what)
			return true;
	return false;
}

bool mu_train_replays(const struct train_recovering *r)
{
	for (unsigned i = 1; i < mu_train_n_recoveries; i++)
		if (mu_train_recoveries[i].chosen(r->conf) && !mu_train_recoveries[i].skips)
			return true;
	return false;
}

/* Errors of files and of numbers leave all ranks where they are; those of messages do not. */
static bool is_survived(enum mu_status st, enum train_trouble what)
{
	return st == MU_OK || st == MU_ERR_NUMERIC || st == MU_ERR_IO || st == MU_ERR_FORMAT ||
	       (st == MU_ERR_PEER && what == TRAIN_NOT_SAVED); /* saver.h */
}

/* The worker with the error says it; after the first one others follow from it. */
static bool says(const struct train_recovering *r, enum train_trouble what, enum mu_status st)
{
	return st != MU_OK && st != MU_ERR_PEER && (what != TRAIN_NOT_GOOD || r->worker == 0);
}

enum mu_status mu_train_recover(struct train_recovering *r, enum train_trouble what,
				enum mu_status st)
{
	if (!r || r->ends || !is_survived(st, what) || (st == MU_OK && what != TRAIN_LEFT_OUT))
		return st;
	for (unsigned i = 1; i < mu_train_n_recoveries; i++) {
		const struct train_recovery *policy = &mu_train_recoveries[i];

		if (!policy->chosen(r->conf) || !(policy->takes & what))
			continue;
		if (r->wanted < i && says(r, what, st)) {
			snprintf(r->error, sizeof r->error, "%s", mu_trace_message());
			mu_log_warn("worker %d: %s (%s)", r->worker, r->error, policy->option);
		}
		if (r->wanted < i && st != MU_ERR_PEER) /* that worker asks for it */
			r->wanted = i;
		mu_trace_clear();
		return MU_OK;
	}
	return st;
}
