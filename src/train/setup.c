/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options to what the run's mode needs. All ranks agree on each worker's errors (files,
 * shapes, memory) before the store is created, so that a bad file ends the job with one message and
 * no hang.
 */
#include "setup.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/notice.h>
#include <muster/tokens.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/lock.h"
#include "checkpoint/saver.h"
#include "conf/text.h"
#include "data.h"
#include "engine/comm_thread.h"
#include "engine/conv_table.h"
#include "engine/gpus.h"
#include "engine/lives.h"
#include "multipliers.h"
#include "same.h"
#include "storage/file.h"
#include "train/modes/modes.h"

static enum mu_status find_batch(const struct train_run *run, size_t *batch)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;
	const struct engine_device_list *devices = &run->list;
	long workers = (long)run->engine.team.n, parts = workers * v->update_period;

	*batch = v->batch_per_device
			 ? (size_t)v->batch_per_device * mu_engine_device_shares(devices)
			 : (size_t)v->batch_size;
	if (v->global_batch_size % parts != 0)
		MU_FAIL(MU_ERR_USAGE, "--global-batch-size %ld is not a multiple of the %ld %s%s",
			v->global_batch_size, workers,
			run->engine.team.size > 1 ? "teams" : "workers",
			v->update_period > 1 ? " times --update-period" : "");
	if (v->global_batch_size)
		*batch = (size_t)(v->global_batch_size / parts);
	MU_TRY(mu_engine_device_list_check(devices, v, *batch));
out:
	return st;
}

struct mu_net_config mu_train_describe_model(const struct conf *v, const struct mu_shape *shape,
					     size_t classes)
{
	return (struct mu_net_config){.network = v->network_name,
				      .shape = *shape,
				      .classes = classes,
				      .num_layers = v->num_layers,
				      .settings = v->owner.values,
				      .objective = v->objective,
				      .objective_settings = v->owner.objective_values,
				      .recompute = v->recompute};
}

/* Threads that decode: --data-nthreads, else 4, at most the cores of this worker. */
static int count_threads(const struct train_run *run)
{
	enum { USUAL = 4 };
	long asked = run->conf->data_nthreads;

	if (asked >= 0)
		return (int)asked;
	return run->engine.n_threads < USUAL ? run->engine.n_threads : USUAL;
}

/* Folders number their classes in order: a class that one of them lacks shifts the others. */
static enum mu_status check_class_names(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_input_about *train = &run->train.about, *validate = &run->validate.about;

	if (!train->class_names || !validate->class_names)
		goto out;
	for (size_t i = 0; i < train->n_class_names && i < validate->n_class_names; i++)
		if (strcmp(train->class_names[i], validate->class_names[i]) != 0)
			MU_FAIL(MU_ERR_USAGE,
				"class %zu is \"%s\" in %s and \"%s\" in %s: the same classes are "
				"needed, also those without images (as empty folders)",
				i, train->class_names[i], run->conf->data_train,
				validate->class_names[i], run->conf->data_val);
out:
	return st;
}

/* The numbers of one tokenizer mean nothing to a model of another. */
static enum mu_status check_tokenizers(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;
	const struct mu_tokenizer *train = run->train.about.tokenizer,
				  *validate = run->validate.about.tokenizer;
	bool same = true;

	if (train && validate)
		MU_TRY(mu_tokenizer_same(train, validate, &same));
	if (!same)
		MU_FAIL(MU_ERR_USAGE,
			"%s and %s are tokens of two tokenizers: make both files by one "
			"(tokenize --tokenizer)",
			v->data_train ? v->data_train : v->data_dir,
			v->data_val ? v->data_val : v->data_dir);
out:
	return st;
}

static enum mu_status open_validation(struct train_run *run, struct mu_input_config config)
{
	enum mu_status st = MU_OK;
	union train_reader_settings settings;
	const struct conf *v = run->conf;

	config.part = MU_INPUT_VALIDATE;
	config.num_examples = v->benchmark ? config.num_examples : (size_t)v->max_val_samples;
	config.shuffle = false;
	if (v->val_split <= 0)
		config.paths = v->data_val;
	config.values |= mu_input_field(&run->train, MU_FIELD_TARGET)->number == MU_NUMBER_FLOAT32;
	config.classes = run->train.classes;
	MU_TRY(mu_train_reader_set(v, run->engine.network, run->train.about.vocabulary, &config,
				   &settings));
	MU_TRY(mu_input_open(&run->validate, &config));
	MU_TRY(mu_train_check_validation(v, &run->validate, &run->train));
	MU_TRY(check_class_names(run));
	MU_TRY(check_tokenizers(run));
	run->has_validation = true;
	run->engine.validate = &run->validate;
out:
	return st;
}

/* Do training samples go to devices (deal.c) that convert bytes to floats? */
static bool takes_bytes(const struct train_run *run)
{
	return mu_engine_ops_of(&run->list)->shares_batch && run->list.kind->memory;
}

/* Training and validation data. *model: the configuration of the network for them. */
static enum mu_status open_inputs(struct train_run *run, struct mu_net_config *model)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;
	struct mu_input_config config = {
		.part = MU_INPUT_TRAIN,
		.dir = v->data_dir,
		.held_out = v->val_split,
		.num_examples = (size_t)v->num_examples,
		.worker = (int)run->engine.team.index,
		.num_workers = (int)run->engine.team.n,
		.paths = v->data_train,
		.shuffle = v->shuffle != CONF_SHUFFLE_NO,
		.shuffle_chunk = v->shuffle == CONF_SHUFFLE_CHUNK ? (size_t)v->shuffle_chunk : 0,
		.seed = (uint64_t)v->seed,
		.threads = count_threads(run),
		.prefetch = (size_t)v->prefetch_buffer,
		.any_size = v->evaluate && !v->benchmark,
		.skip_bad_records = v->skip_bad_records != 0,
		.unlabelled = v->predict != NULL,
	};
	const struct mu_network *network;
	union train_reader_settings settings;

	MU_TRY(mu_network_find(&network, v->network));
	run->engine.network = network;
	if (strcmp(v->network, v->network_name) != 0 && access(v->network, F_OK) == 0)
		MU_TRY(mu_file_hash(v->network, &run->engine.network_bytes));
	MU_TRY(find_batch(run, &config.batch));
	MU_TRY(mu_train_choose_reader(v, network, &config));
	MU_TRY(mu_train_text_open(v, network, &config, &run->vocabulary));
	MU_TRY(mu_train_reader_set(v, network, run->vocabulary, &config, &settings));
	if (v->benchmark) { /* random data are made for the network, and take memory */
		*model = mu_train_describe_model(v, &config.shape, config.classes);
		MU_TRY(mu_engine_model_new(&run->engine, model, &config));
		config.label_width = mu_net_labels(run->engine.net);
	}
	config.bytes = takes_bytes(run);
	MU_TRY(mu_input_open(&run->train, &config));
	config.bytes = false;
	if (v->owner.objective)
		MU_TRY(mu_train_check_targets(v, &run->train, v->owner.objective, 0));
	*model = mu_train_describe_model(v, mu_input_shape(&run->train),
					 mu_train_outputs(v, &run->train));
	run->engine.steps = run->train.steps;
	run->examples = run->train.n;
	if (v->num_batches && (size_t)v->num_batches < run->engine.steps) {
		run->engine.steps = (size_t)v->num_batches;
		run->examples = run->engine.steps * config.batch * (size_t)config.num_workers;
	}
	if (v->benchmark ? v->evaluate : v->facts.validation)
		MU_TRY(open_validation(run, config));
out:
	return st;
}

/* Worker 0 of a run that may save. */
static enum mu_status open_prefix(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;

	MU_TRY(mu_checkpoint_check(v));
	if (!mu_conf_mode_has(v, CONF_MODE_TRAINS))
		goto out;
	if (!v->check)
		MU_TRY(mu_checkpoint_lock(v->model_prefix, &run->lock));
	if (run->members.generation == 0)
		MU_TRY(mu_checkpoint_check_unused(v));
	if (run->lock)
		mu_checkpoint_files_sweep(v->model_prefix, run->lock);
out:
	return st;
}

static enum mu_status setup_worker(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;
	struct mu_net_config model;

	MU_TRY(mu_train_halt_open(&run->halt));
	if (v->model_prefix && !v->evaluate && v->load_epoch < v->num_epochs &&
	    run->members.index == 0)
		MU_TRY(open_prefix(run));
	MU_TRY(open_inputs(run, &model));
	if (run->members.index == 0)
		MU_TRY(mu_train_vocabulary_save(v, run->train.about.vocabulary));
	if (run->mode->needs < TRAIN_NETWORK)
		goto out;
	if (!run->engine.net)
		MU_TRY(mu_engine_model_new(&run->engine, &model, &run->train.config));
	MU_TRY(mu_train_widen_targets(&run->train, mu_net_labels(run->engine.net)));
	MU_TRY(mu_train_check_targets(v, &run->train, mu_net_loss(run->engine.net),
				      mu_net_labels(run->engine.net)));
	if (!mu_net_loss(run->engine.net)->joint && v->top_k > (long)run->train.classes)
		MU_FAIL(MU_ERR_USAGE, "--top-k %ld: there are %zu classes, and K is at most that",
			v->top_k, run->train.classes);
	MU_TRY(mu_engine_metrics_choose(&run->metrics, mu_net_loss(run->engine.net), v,
					mu_net_weighs(run->engine.net)));
	MU_TRY(mu_engine_model_plan(&run->engine));
	if (run->has_validation || v->evaluate)
		MU_TRY(mu_engine_tally_open(&run->engine, &run->metrics));
	MU_TRY(mu_train_batch_open(&run->batches));
	MU_TRY(mu_train_multipliers_apply(v, run->engine.plan, &run->slices));
out:
	return st;
}

/* Data that are compared: with those of other workers, and with those of a checkpoint. */
static enum mu_status look_at_data(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;

	if (mu_members_alone(&run->members) && !v->model_prefix && !v->facts.goes_on)
		goto out;
	MU_TRY(mu_input_look(&run->train));
	if (run->has_validation)
		MU_TRY(mu_input_look(&run->validate));
out:
	return st;
}

/* Samples of the warm-up. */
static double count_warmup(const struct train_run *run)
{
	const struct mu_engine *e = &run->engine;

	return mu_conf_warmup(run->conf, (double)run->examples, mu_engine_updates(e),
			      run->train.config.batch * e->team.n * mu_engine_update_period(e));
}

static enum mu_status make_store(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = run->conf;
	double lengths[2] = {(double)run->examples}; /* of an epoch, and of the warm-up */
	struct mu_kv_life *lives = NULL;
	struct mu_kv_config config = {
		.type = v->kv_store,
		.members = &run->members,
		.bucket_bytes = (size_t)v->bucket_bytes,
		.priority = v->priority != 0,
		.verbose = v->traffic,
		.optim = v->optim,
		.node_reduce = v->node_reduce,
		.on_gpus = run->store.on_gpus,
	};

	/* Without messages and sums one kernel updates all weights. */
	if (v->bucket_bytes == 0 && run->members.role == MU_ROLE_WORKER &&
	    mu_engine_gpus_alone(&run->engine))
		config.bucket_bytes = SIZE_MAX;
	/* Servers read no data. Rank 0 may be one: the only rank of its node. */
	if (run->members.role == MU_ROLE_WORKER)
		lengths[1] = count_warmup(run);
	MU_TRY(mu_members_follow(&run->members, lengths, sizeof lengths));
	config.progress = run->resume->at.progress;
	MU_TRY(mu_agree(mu_conf_schedule(v, run->view.lr, lengths[0], lengths[1], &config.schedule),
			run->members.comm));
	mu_conf_store_config(v, &config);
	if (run->members.role == MU_ROLE_WORKER) {
		mu_plan_slices(run->engine.plan, &config.n_slices);
		mu_engine_devices_share(&run->engine, &config.share);
		MU_TRY(mu_agree(mu_engine_lives(v, run->engine.plan, &lives), run->members.peers));
	}
	config.lives = lives;
	config.slices = run->slices;
	MU_TRY(mu_kv_new(&run->kv, &config));
	run->halt.kv = run->kv;
	mu_kv_say(run->kv, mu_train_halt_say, &run->halt);
out:
	mu_free(lives);
	return st;
}

static enum mu_status fill_weights(struct train_run *run)
{
	enum mu_status st = MU_OK;
	float *weights = mu_kv_weights(run->kv);

	if (run->conf->update_period > 1)
		MU_TRY(mu_engine_sum_init(&run->sum, mu_kv_n(run->kv)));
	run->engine.kv = run->kv;
	MU_TRY(run->engine.ops->bind(&run->engine));
	MU_TRY(mu_engine_comm_thread_open(&run->engine));
	if (run->members.index != 0)
		goto out;
	if (*run->resume->path) {
		MU_TRY(mu_checkpoint_resume_weights(&run->engine, run->resume));
		goto out;
	}
	if (run->conf->evaluate && !run->conf->load && !run->conf->benchmark)
		MU_FAIL(MU_ERR_USAGE, "--evaluate: there is no checkpoint, and no --load FILE");
	MU_TRY(mu_plan_init_weights(run->engine.plan, run->conf->initializer,
				    (uint64_t)run->conf->seed, weights));
	if (run->conf->load)
		MU_TRY(mu_checkpoint_load_weights(&run->engine));
out:
	return st;
}

/* The communication thread gets the cores that the other threads do not use. */
static enum mu_status place(struct train_run *run)
{
	enum mu_status st = MU_OK, saved = MU_OK;

	if (run->conf->comm_thread)
		saved = mu_places_save(&run->engine.places);
	MU_TRY(mu_members_place(&run->members, (int)run->conf->comm_thread,
				&run->engine.n_threads)); /* collective over the node */
	MU_TRY(saved);
out:
	return st;
}

/* Worker 0: the table of --conv-table, or of the checkpoint that the run resumes from. */
static enum mu_status find_conv_table(struct train_run *run)
{
	const struct conf *v = run->conf;

	if (v->conv_table && v->conv_algo != CONF_CONV_TUNE)
		return mu_engine_conv_read(run->engine.conv, v->conv_table);
	return mu_checkpoint_conv_find(v, run->back, run->engine.conv);
}

static enum mu_status open_conv_table(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = &run->members;

	MU_TRY(mu_agree(MU_ALLOC(run->engine.conv, 1, "table of convolutions"), m->comm));
	MU_TRY(mu_agree_late(mu_members_lead(m) ? find_conv_table(run) : MU_OK, m->comm));
	MU_TRY(mu_engine_conv_share(&run->engine));
out:
	return st;
}

static enum mu_status cache_data(struct train_run *run)
{
	const bool worker = run->members.role == MU_ROLE_WORKER;

	return mu_train_cache_data(&run->members, worker ? &run->train : NULL,
				   run->has_validation ? &run->validate : NULL);
}

enum mu_status mu_train_setup(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = &run->members;
	bool worker = m->role == MU_ROLE_WORKER;

	run->engine.conf = run->conf;
	run->engine.list = &run->list;
	run->engine.members = m;
	run->engine.store = &run->store;
	run->engine.train = &run->train;
	run->batches = (struct train_batches){.engine = &run->engine,
					      .train = &run->train,
					      .loss_scale = &run->guard.scale.scale,
					      .recovering = &run->recovering};
	run->recovering = (struct train_recovering){
		.conf = run->conf,
		.worker = m->index,
		.ends = !mu_conf_mode_has(run->conf, CONF_MODE_TRAINS),
	};
	run->guard.recovering = &run->recovering;
	run->halt.conf = run->conf;
	run->halt.members = m;
	run->halt.recovering = &run->recovering;
	run->view.engine = &run->engine;
	run->view.metrics = &run->metrics;
	MU_TRY(mu_agree(mu_engine_team_open(&run->engine), m->comm));
	MU_TRY(mu_agree(place(run), m->comm));
	MU_TRY(open_conv_table(run));
	MU_TRY(mu_agree_late(worker ? setup_worker(run) : MU_OK, m->comm));
	MU_TRY(mu_agree(worker ? mu_train_same_sizes(&run->engine) : MU_OK, m->comm));
	MU_TRY(mu_agree_late(worker ? look_at_data(run) : MU_OK, m->comm));
	MU_TRY(mu_agree(worker ? mu_train_same_data(&run->engine) : MU_OK, m->comm));
	if (run->conf->data_cache == CONF_CACHE_NODE)
		MU_TRY(mu_agree_late(cache_data(run), m->comm));
	if (run->mode->needs < TRAIN_STORE)
		goto out;
	MU_TRY(mu_agree(worker ? mu_engine_link(&run->engine) : MU_OK, m->comm));
	if (mu_conf_mode_has(run->conf, CONF_MODE_TRAINS))
		MU_TRY(mu_agree(worker ? mu_engine_energy_open(&run->engine) : MU_OK, m->comm));
	MU_TRY(mu_agree(worker ? mu_train_same_layouts(&run->engine) : MU_OK, m->comm));
	run->view.lr = mu_conf_base_lr(run->conf, run->engine.team.n);
	MU_TRY(mu_checkpoint_resume_find(&run->engine, run->examples, run->back, &run->resume));
	mu_train_guard_open(&run->guard, &run->engine, &run->resume->at.loss_scale);
	MU_TRY(mu_engine_gpus_fall_back(&run->engine, &run->store));
	MU_TRY(make_store(run));
	MU_TRY(mu_comm_link(m->comm, &run->view.link));
	MU_TRY(mu_agree_late(worker ? fill_weights(run) : MU_OK, m->comm));
	run->view.slices = run->slices;
	mu_train_best_open(&run->best, &run->engine, &run->metrics, &run->resume->at.best);
	run->view.from = &run->resume->at;
	run->view.best = &run->best.state;
	run->view.saved = run->back->path;
	run->view.examples = run->examples;
	MU_TRY(mu_report_ranks(&run->engine));
	if (worker && m->index == 0) {
		mu_report_start(&run->view);
		mu_report_start_brief(&run->view);
	}
out:
	return st;
}

void mu_train_leave(struct train_run *run)
{
	mu_memory_keep();
	mu_report_close(run->observers);
	mu_checkpoint_unlock(run->lock);
	mu_train_halt_close(&run->halt);
}

void mu_train_release(struct train_run *run)
{
	mu_engine_comm_thread_close(&run->engine);
	mu_report_close(run->observers);
	mu_checkpoint_unlock(run->lock);
	mu_train_halt_close(&run->halt);
	mu_free(run->resume);
	mu_engine_close(&run->engine);
	mu_kv_free(run->kv);
	mu_input_close(&run->validate); /* it has the vocabulary of train */
	mu_input_close(&run->train);
	mu_vocabulary_free(run->vocabulary);
	if (run->members.size > 0) /* else it was never created */
		mu_members_release(&run->members);
	mu_engine_sum_release(&run->sum);
	mu_free(run->slices);
	mu_train_batch_close(&run->batches);
}
