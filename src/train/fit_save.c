/* SPDX-License-Identifier: Apache-2.0 */
/* When the loop saves, and how it ends before the last epoch. */
#include "fit.h"

#include <string.h>

/* With what a checkpoint holds of the loop's state. */
static struct checkpoint_position position(const struct train_fit *f, size_t epoch, size_t step)
{
	struct checkpoint_position at = {
		.epoch = epoch,
		.step = step,
		.loss_scale = mu_train_guard_state(&f->run->guard),
	};

	mu_report_save(f->run->observers, &at);
	return at;
}

/* Inside an epoch, after `done` of its steps. alone: worker 0 of dist_async by itself. */
static enum mu_status save_here(struct train_fit *f, size_t done, bool alone)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	struct checkpoint_position at = position(f, f->epoch, done);

	at.window_first = f->window_first;
	f->saved = done;
	if (run->store.synchronous) {
		at.total = f->total;
		at.window = f->window;
		MU_TRY(mu_engine_metrics_reduce(&at.total, run->topology.peers));
		MU_TRY(mu_engine_metrics_reduce(&at.window, run->topology.peers));
	}
	MU_TRY(mu_checkpoint_save(run->saver, &at, alone));
out:
	return st;
}

enum mu_status mu_train_fit_save_inside(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;

	MU_TRY(mu_checkpoint_saver_poll(run->saver));
	if (mu_checkpoint_saver_due(run->saver, f->done))
		MU_TRY(save_here(f, f->done, !run->store.synchronous));
out:
	return st;
}

/*
 * All workers have stopped inside the epoch. Those of dist_async may be at different steps: the
 * mean goes with the samples that the servers have counted.
 */
static enum mu_status end_early(struct train_fit *f, long done)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	char when[64];

	snprintf(when, sizeof when, "after step %ld of epoch %zu", done, f->epoch);
	mu_train_halt_tell(run, when, run->saver);
	if (run->halt.goes_back) {
		run->back->epoch = f->epoch;
		run->back->step = (size_t)done;
		goto out;
	}
	if (run->saver && (!run->store.synchronous || f->saved != (size_t)done))
		MU_TRY(save_here(f, (size_t)done, false));
out:
	return st;
}

enum mu_status mu_train_fit_look_inside(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	long done = (long)f->done;

	MU_TRY(mu_train_halt_agree(run));
	if (!run->halt.wanted)
		goto out;
	MU_TRY(mu_allreduce_long(&done, 1, MPI_SUM, run->topology.peers));
	done /= run->topology.num_workers;
	f->early = (size_t)done < run->steps;
	if (f->early)
		MU_TRY(end_early(f, done));
out:
	return st;
}

enum mu_status mu_train_fit_save(struct train_fit *f)
{
	const struct checkpoint_position at = position(f, f->epoch + 1, 0);

	if (!f->run->saver || at.epoch % (size_t)f->run->options.save_period != 0)
		return MU_OK;
	f->saved_epochs = at.epoch;
	return mu_checkpoint_save(f->run->saver, &at, false);
}

enum mu_status mu_train_fit_end_between(struct train_fit *f, size_t epochs)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	const struct checkpoint_position at = position(f, epochs, 0);
	const bool back = run->halt.goes_back;
	const bool saves = run->saver && !back && epochs > run->begin_epoch;
	char when[64] = "before its first step";

	if (epochs > run->begin_epoch)
		snprintf(when, sizeof when, "after epoch %zu", epochs - 1);
	mu_train_halt_tell(run, when, saves);
	if (back) {
		run->back->epoch = epochs;
		run->back->step = 0;
	}
	if (saves && f->saved_epochs != epochs)
		MU_TRY(mu_checkpoint_save(run->saver, &at, false));
out:
	return st;
}
