/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training that ends early, after a step, with a checkpoint: a rank received a signal, or the job's
 * time is nearly over (queue_end.c). The rank posts a notice, which travels with the store's own
 * messages (mu_kv_notice): so the workers of synchronous stores end after the same step.
 */
#include "halt.h"

#include <signal.h>

#include <muster/train.h>

#include "conf/options.h"

/*
 * A notice is a number: the cause in its low bits, above it the rank plus 1, above that whether the
 * job is to end. The largest wins, so that the end of the job comes before a rollback. Causes below
 * these are signals.
 */
enum { CAUSE_JOB = 200, RANK_SHIFT = 8 }; /* after CAUSE_JOB: numbers of recoveries */
#define JOB_ENDS ((uint64_t)1 << 40)

enum mu_status mu_train_halt_open(struct train_halt *h)
{
	enum mu_status st = MU_OK;

	if (h->conf->halt_before && h->members->index == 0)
		MU_TRY(mu_comm_queue_open(&h->job, h->conf->halt_before));
out:
	return st;
}

enum mu_status mu_train_halt_check(struct train_halt *h)
{
	return h->job ? mu_comm_queue_check(h->job, h->conf->halt_before) : MU_OK;
}

void mu_train_halt_close(struct train_halt *h)
{
	mu_comm_queue_close(h->job);
	h->job = NULL;
}

static uint64_t ask_back(const struct train_halt *h)
{
	const uint64_t me = (uint64_t)(h->members->rank + 1) << RANK_SHIFT;

	return h->recovering->wanted > 0 ? me | (CAUSE_JOB + h->recovering->wanted) : 0;
}

uint64_t mu_train_halt_say(void *context)
{
	const struct train_halt *h = context;
	const uint64_t me = (uint64_t)(h->members->rank + 1) << RANK_SHIFT;
	int number = h->signal ? atomic_load_explicit(h->signal, memory_order_relaxed) : 0;

	if (number == 0 && mu_log_is_cut())
		number = SIGPIPE;
	if (number > 0)
		return JOB_ENDS | me | (uint64_t)number;
	if (h->job && mu_comm_queue_ends(h->job))
		return JOB_ENDS | me | CAUSE_JOB;
	return ask_back(h);
}

bool mu_train_halt_is_due(const struct train_halt *h, size_t done)
{
	return mu_kv_notice(h->kv) != 0 && done % (size_t)h->conf->update_period == 0;
}

static const char *signal_name(int number)
{
	switch (number) {
	case SIGTERM: return "SIGTERM";
	case SIGINT: return "SIGINT (Ctrl-C)";
	case SIGUSR1: return "SIGUSR1";
	default: return "a signal";
	}
}

static void describe(struct train_halt *h, uint64_t notice)
{
	const int cause = (int)(notice & ((1 << RANK_SHIFT) - 1));
	char who[128];

	if (cause == CAUSE_JOB) {
		snprintf(h->cause, sizeof h->cause,
			 "the job's time is nearly over (--halt-before %s)",
			 h->conf->halt_before);
		return;
	}
	mu_members_name(h->members, (int)((notice & (JOB_ENDS - 1)) >> RANK_SHIFT) - 1, who,
			sizeof who);
	h->goes_back = cause > CAUSE_JOB;
	if (h->goes_back)
		h->policy = &mu_train_recoveries[cause - CAUSE_JOB];
	if (h->goes_back)
		snprintf(h->cause, sizeof h->cause, "%s %s%s", h->policy->before, who,
			 h->policy->after);
	else if (cause == SIGPIPE)
		snprintf(h->cause, sizeof h->cause, "the program that read the log of %s has ended",
			 who);
	else if (cause == SIGTERM && mu_world_lost_launcher())
		snprintf(h->cause, sizeof h->cause, "the launcher of %s has ended", who);
	else
		snprintf(h->cause, sizeof h->cause, "%s came to %s", signal_name(cause), who);
}

static enum mu_status agree(struct train_halt *h, uint64_t mine)
{
	enum mu_status st = MU_OK;
	long agreed[2] = {(long)mine, h->recovering->wanted};

	MU_TRY(mu_peers_reduce(h->members, agreed, 2, MPI_MAX));
	if (agreed[0] == 0 || h->wanted)
		goto out;
	h->wanted = true;
	describe(h, (uint64_t)agreed[0]);
	h->spoilt = agreed[1] > 0 && !h->goes_back && mu_train_replays(h->recovering);
	h->recovering->ends = !h->goes_back;
out:
	return st;
}

enum mu_status mu_train_halt_agree(struct train_halt *h)
{
	const uint64_t mine = mu_train_halt_say(h), others = mu_kv_notice(h->kv);

	return agree(h, mine > others ? mine : others);
}

enum mu_status mu_train_halt_agree_back(struct train_halt *h)
{
	return mu_train_recovers(h->recovering) ? agree(h, ask_back(h)) : MU_OK;
}

void mu_train_halt_report(const struct train_halt *h, const char *when, bool saves)
{
	if (h->members->index != 0)
		return;
	if (h->goes_back) {
		mu_log_warn("%s: training goes back from %s to the newest checkpoint",
			    h->cause, when);
		return;
	}
	mu_log_info(
		"%s: training ends %s, %s; exit status %d; a second signal ends the job at once",
		h->cause, when,
		saves ? "with a checkpoint"
		: h->spoilt
			? "and nothing is saved, for a worker had no part in the last step"
		: h->conf->model_prefix
			? "and there is nothing new to save"
			: "and nothing is saved, for that needs --model-prefix P",
		MU_TRAIN_EXIT_HALTED);
}

enum mu_status mu_train_halt_share(struct train_halt *h)
{
	enum mu_status st = MU_OK;
	bool agreed[2] = {h->wanted, h->goes_back};

	MU_TRY(mu_members_follow(h->members, agreed, sizeof agreed));
	h->wanted = agreed[0];
	h->goes_back = agreed[1];
out:
	return st;
}
