/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes: what each one needs to be set up, which ranks do its work, and the work itself, which gets
 * what it uses.
 */
#include "modes.h"

#include "checkpoint/saver.h"
#include "train/fit.h"
#include "train/setup.h"

static enum mu_status summary(struct train_run *run)
{
	return mu_train_summary(run->conf, &run->list, &run->members);
}

static enum mu_status sample(struct train_run *run)
{
	return mu_train_sample(run->conf, &run->list);
}

static enum mu_status export_model(struct train_run *run)
{
	return mu_train_export(run->conf, run->description.input);
}

static enum mu_status dump_batch(struct train_run *run)
{
	return mu_train_dump_batch(&run->engine, &run->train);
}

static enum mu_status test_io(struct train_run *run)
{
	return mu_train_test_io(&run->engine, &run->train);
}

static enum mu_status tune(struct train_run *run)
{
	return mu_train_tune(&run->engine);
}

static enum mu_status evaluate(struct train_run *run)
{
	const struct checkpoint_resume *from = run->resume;

	return mu_train_predict(&(struct train_predict){
		.batches = &run->batches,
		.data = &run->validate,
		.observers = run->observers,
		.parameters = *from->path ? from->path : run->conf->load,
		.epoch = from->at.epoch > 0 ? from->at.epoch - 1 : 0,
	});
}

static enum mu_status train(struct train_run *run)
{
	enum mu_status st = MU_OK;
	struct train_fit f = {
		.engine = &run->engine,
		.train = &run->train,
		.validate = run->has_validation ? &run->validate : NULL,
		.batches = &run->batches,
		.guard = &run->guard,
		.halt = &run->halt,
		.recovering = &run->recovering,
		.sum = &run->sum,
		.observers = run->observers,
		.from = &run->resume->at,
		.back = run->back,
		.best = &run->best,
		.target = run->metrics.target,
	};

	MU_TRY(mu_checkpoint_resume_states(&run->engine, run->resume));
	MU_TRY(mu_checkpoint_saver_open(&run->saver, &run->engine, run->back,
					mu_train_takes(&run->recovering, TRAIN_NOT_SAVED)));
	f.saver = run->saver;
	f.run_file = &run->run_file;
	MU_TRY(mu_train_fit(&f));
	MU_TRY(mu_train_fit_finish(&f));
out:
	return st;
}

const struct train_mode mu_train_modes[CONF_MODE_N] = {
	[CONF_MODE_SUMMARY] = {TRAIN_ROLES, TRAIN_RANK_0, summary},
	[CONF_MODE_SAMPLE] = {TRAIN_OPTIONS, TRAIN_RANK_0, sample},
	[CONF_MODE_EXPORT] = {TRAIN_OPTIONS, TRAIN_RANK_0, export_model},
	[CONF_MODE_DUMP_BATCH] = {TRAIN_DATA, TRAIN_WORKER_0, dump_batch},
	[CONF_MODE_TEST_IO] = {TRAIN_DATA, TRAIN_WORKERS, test_io},
	[CONF_MODE_TUNE] = {TRAIN_NETWORK, TRAIN_WORKER_0, tune},
	[CONF_MODE_PREDICT] = {TRAIN_STORE, TRAIN_WORKERS, evaluate},
	[CONF_MODE_EVALUATE] = {TRAIN_STORE, TRAIN_WORKERS, evaluate},
	[CONF_MODE_TRAIN] = {TRAIN_STORE, TRAIN_WORKERS, train},
};
