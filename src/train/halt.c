/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training that ends early, after a step, with a checkpoint: a signal came to a rank, or the job's
 * time is nearly over (queue_end.c). A rank that knows of it says a word, which goes round with the
 * store's own messages (mu_kv_notice): so the workers of synchronous stores end after the same
 * step.
 */
#include "train.h"

#include <signal.h>

#include <muster/base.h>

/*
 * A word: the cause, above it the rank that it came to, plus 1, and above that whether the job is
 * to end: the largest word is heard, so that going back to a checkpoint gives way. Causes below
 * these are signals.
 */
enum { CAUSE_JOB = 200, CAUSE_NOT_FINITE, RANK_SHIFT = 8 };
#define JOB_ENDS ((uint64_t)1 << 40)

enum mu_status mu_train_halt_open(struct train_run *run)
{
	enum mu_status st = MU_OK;

	if (run->options.halt_before && run->topology.index == 0)
		MU_TRY(mu_comm_queue_open(&run->halt.job, run->options.halt_before));
out:
	return st;
}

enum mu_status mu_train_halt_check(struct train_run *run)
{
	return run->halt.job ? mu_comm_queue_check(run->halt.job, run->options.halt_before) : MU_OK;
}

void mu_train_halt_close(struct train_halt *halt)
{
	mu_comm_queue_close(halt->job);
	halt->job = NULL;
}

uint64_t mu_train_halt_say(void *context)
{
	struct train_run *run = context;
	const uint64_t me = (uint64_t)(run->topology.rank + 1) << RANK_SHIFT;
	const struct train_halt *h = &run->halt;
	const int number = h->signal ? atomic_load_explicit(h->signal, memory_order_relaxed) : 0;

	if (number > 0)
		return JOB_ENDS | me | (uint64_t)number;
	if (h->job && mu_comm_queue_ends(h->job))
		return JOB_ENDS | me | CAUSE_JOB;
	return run->guard.rollback ? me | CAUSE_NOT_FINITE : 0;
}

bool mu_train_halt_heard(const struct train_run *run, size_t done)
{
	return mu_kv_notice(run->kv) != 0 && done % (size_t)run->options.update_period == 0;
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

static void describe(struct train_run *run, uint64_t word)
{
	const int cause = (int)(word & ((1 << RANK_SHIFT) - 1));
	struct train_halt *h = &run->halt;
	char who[128];

	if (cause == CAUSE_JOB) {
		snprintf(h->cause, sizeof h->cause,
			 "the job's time is nearly over (--halt-before %s)",
			 run->options.halt_before);
		return;
	}
	mu_topology_name(&run->topology, (int)((word & (JOB_ENDS - 1)) >> RANK_SHIFT) - 1, who,
			 sizeof who);
	h->goes_back = cause == CAUSE_NOT_FINITE;
	if (h->goes_back)
		snprintf(h->cause, sizeof h->cause, "a batch of %s was not finite", who);
	else
		snprintf(h->cause, sizeof h->cause, "%s came to %s", signal_name(cause), who);
}

enum mu_status mu_train_halt_agree(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const uint64_t said = mu_train_halt_say(run), heard = mu_kv_notice(run->kv);
	long word = (long)(said > heard ? said : heard);

	MU_TRY(mu_allreduce_long(&word, 1, MPI_MAX, run->topology.peers));
	if (word == 0 || run->halt.wanted)
		goto out;
	run->halt.wanted = true;
	describe(run, (uint64_t)word);
out:
	return st;
}

void mu_train_halt_tell(const struct train_run *run, const char *when, bool saves)
{
	if (run->topology.index != 0)
		return;
	if (run->halt.goes_back) {
		mu_log_warn("%s: training goes back from %s to the newest checkpoint",
			    run->halt.cause, when);
		return;
	}
	mu_log_info(
		"%s: training ends %s, %s; exit status %d; a second signal ends the job at once",
		run->halt.cause, when,
		saves ? "with a checkpoint"
		: run->options.model_prefix
			? "and there is nothing new to save"
			: "and nothing is saved, for that needs --model-prefix P",
		MU_TRAIN_EXIT_HALTED);
}

enum mu_status mu_train_halt_end(struct train_run *run)
{
	enum mu_status st = MU_OK;
	struct train_halt *h = &run->halt;
	bool agreed[2] = {h->wanted, h->goes_back};

	MU_TRY(mu_bcast(agreed, sizeof agreed, run->topology.worker_ranks[0], run->topology.world));
	h->wanted = agreed[0];
	h->goes_back = agreed[1];
out:
	return st;
}
