/* SPDX-License-Identifier: Apache-2.0 */
/* When the loop saves, and how it ends before the last epoch. */
#include "fit.h"

#include "best.h"
#include "checkpoint/run_file.h"

/* With the state of the guard and of observers. */
static struct checkpoint_position position(const struct train_fit *f, size_t epoch, size_t step)
{
	struct checkpoint_position at = {
		.epoch = epoch,
		.step = step,
		.loss_scale = mu_train_guard_state(f->guard),
		.best = f->best->state,
	};

	at.best.pending = step == 0 && f->unvalidated;
	mu_report_save(f->observers, &at);
	return at;
}

enum mu_status mu_train_fit_energy(struct train_fit *f)
{
	double joules;

	return mu_engine_energy_sum(&f->engine->energy, f->engine->members, ENGINE_ENERGY_EPOCH,
				    &joules);
}

static enum mu_status save(struct train_fit *f, const struct checkpoint_position *at, bool alone)
{
	if (f->recovering->wanted > 0)
		mu_checkpoint_saver_refuse(f->saver);
	return mu_train_recover(f->recovering, TRAIN_NOT_SAVED,
				mu_checkpoint_save(f->saver, at, alone));
}

/* Inside an epoch, after `done` of its steps. alone: worker 0 of dist_async by itself. */
static enum mu_status save_here(struct train_fit *f, size_t done, bool alone)
{
	enum mu_status st = MU_OK;
	struct checkpoint_position at;

	if (!alone)
		MU_TRY(mu_train_fit_energy(f));
	at = position(f, f->epoch, done);
	at.window_first = f->window_first;
	if (f->engine->store->synchronous) {
		at.total = f->total;
		at.window = f->window;
		MU_TRY(mu_engine_metrics_reduce(&at.total, f->engine->members));
		MU_TRY(mu_engine_metrics_reduce(&at.window, f->engine->members));
	}
	MU_TRY(save(f, &at, alone));
	mu_checkpoint_run_file_energy(f->run_file);
	f->saved = done;
out:
	return st;
}

enum mu_status mu_train_fit_poll(struct train_fit *f)
{
	return mu_train_recover(f->recovering, TRAIN_NOT_SAVED,
				mu_checkpoint_saver_poll(f->saver));
}

enum mu_status mu_train_fit_save_inside(struct train_fit *f)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_alarm_check(f->engine->members)); /* no wait may have looked for it */
	MU_TRY(mu_train_fit_poll(f));
	if (mu_checkpoint_saver_due(f->saver, f->done))
		MU_TRY(save_here(f, f->done, !f->engine->store->synchronous));
out:
	return st;
}

/* Where the run that follows this one begins. */
static void go_back(struct train_fit *f, size_t epoch, size_t step)
{
	f->back->option = f->halt->policy->option;
	f->back->skips = f->halt->policy->skips;
	f->back->epoch = epoch;
	f->back->step = step;
}

/*
 * All workers have stopped inside the epoch. Those of dist_async may be at different steps: the
 * mean is saved, which fits the samples that the servers have counted.
 */
static enum mu_status end_early(struct train_fit *f, long done)
{
	enum mu_status st = MU_OK;
	char when[96];

	snprintf(when, sizeof when, "after step %ld in epoch %zu of %ld", done, f->epoch + 1,
		 f->engine->conf->num_epochs);
	mu_train_halt_report(f->halt, when, f->saver && !f->halt->spoilt);
	if (f->halt->goes_back) {
		go_back(f, f->epoch, (size_t)done);
		goto out;
	}
	if (f->saver && !f->halt->spoilt &&
	    (!f->engine->store->synchronous || f->saved != (size_t)done))
		MU_TRY(save_here(f, (size_t)done, false));
out:
	return st;
}

enum mu_status mu_train_fit_end_inside(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	long done[2] = {(long)f->done, 1}; /* of all workers, and how many they are */

	MU_TRY(mu_train_halt_agree(f->halt));
	if (!f->halt->wanted)
		goto out;
	MU_TRY(mu_peers_reduce(f->engine->members, done, 2, MPI_SUM));
	done[0] /= done[1];
	f->early = (size_t)done[0] < f->engine->steps;
	if (f->early)
		MU_TRY(end_early(f, done[0]));
out:
	return st;
}

enum mu_status mu_train_fit_save(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	const size_t epochs = f->epoch + 1;
	const bool due = epochs % (size_t)f->engine->conf->save_period == 0;
	struct checkpoint_position at;

	if (!f->saver || !(due || f->best->state.improved))
		return MU_OK;
	MU_TRY(mu_train_fit_energy(f));
	at = position(f, epochs, 0);
	MU_TRY(save(f, &at, false));
	mu_checkpoint_run_file_energy(f->run_file);
	f->saved_epochs = at.epoch;
out:
	return st;
}

/* The same on all workers, which meet here. */
enum mu_status mu_train_fit_goes_back(struct train_fit *f, size_t epochs, bool *back)
{
	enum mu_status st = MU_OK;

	*back = false;
	if (f->halt->wanted)
		goto out;
	MU_TRY(mu_train_halt_agree_back(f->halt));
	*back = f->halt->goes_back;
	if (*back)
		MU_TRY(mu_train_fit_end_between(f, epochs));
out:
	return st;
}

enum mu_status mu_train_fit_finish(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	bool back;

	MU_TRY(mu_train_recover(f->recovering, TRAIN_NOT_SAVED,
				mu_checkpoint_saver_finish(f->saver)));
	MU_TRY(mu_train_fit_goes_back(f, f->epoch, &back));
out:
	return st;
}

enum mu_status mu_train_fit_end_between(struct train_fit *f, size_t epochs)
{
	enum mu_status st = MU_OK;
	const struct checkpoint_position at = position(f, epochs, 0);
	const bool back = f->halt->goes_back;
	const bool saves = f->saver && !back && !f->halt->spoilt && epochs > f->from->epoch;
	char when[96] = "before its first step";

	if (epochs > f->from->epoch)
		snprintf(when, sizeof when, "after epoch %zu of %ld", epochs,
			 f->engine->conf->num_epochs);
	mu_train_halt_report(f->halt, when, saves);
	if (back)
		go_back(f, epochs, 0);
	if (saves && f->saved_epochs != epochs)
		MU_TRY(mu_checkpoint_save(f->saver, &at, false));
out:
	return st;
}
