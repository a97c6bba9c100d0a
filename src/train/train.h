/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: everything that a rank of a run holds. The order of the files to read: train.c, fit.c,
 * then the others.
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <muster/comm.h>
#include <muster/device.h>
#include <muster/input.h>
#include <muster/kvstore.h>
#include <muster/net.h>
#include <muster/notice.h>
#include <muster/parallel.h>
#include <muster/train.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/run_file.h"
#include "checkpoint/saver.h"
#include "conf/conf.h"
#include "engine/accumulate.h"
#include "engine/engine.h"
#include "guard.h"
#include "halt.h"
#include "train/modes/modes.h"
#include "multipliers.h"
#include "report/observers.h"

struct train_run {
	const struct conf options; /* settled */
	struct engine_device_list list;
	struct mu_topology topology;
	struct mu_kv_type store;
	struct mu_engine engine;
	struct mu_vocabulary *vocabulary; /* --vocab; NULL: none was given */
	struct mu_slice *slices;          /* keys, as the store is to update them */
	struct mu_input train, validate;
	bool has_validation;
	struct mu_kv *kv;
	struct engine_metrics metrics;
	struct report_view view;            /* complete after set-up */
	struct report_observers *observers; /* NULL: nothing runs that could be watched */
	struct train_guard guard;
	struct engine_sum sum;
	float *labels; /* of one batch */
	uint32_t *ids;
	struct train_ahead *ahead;           /* batch.h; NULL: no batches go to devices ahead */
	size_t steps;                        /* batches of a worker per epoch */
	size_t examples;                     /* per epoch, of the whole job */
	struct checkpoint_saver *saver;      /* NULL without --model-prefix */
	struct checkpoint_resume *resume;    /* what the run goes on from */
	struct train_prediction *prediction; /* --predict, or --evaluate --benchmark 1 */
	size_t begin_epoch, begin_step;
	struct train_halt halt;
	struct checkpoint_rollback *back; /* --on-nan rollback: what outlives this run */
	struct checkpoint_run_file run_file;
	double lr; /* base, scaled with the workers if that was asked for */
};

/* setup.c: from options to a run that can train; collective over topology->world, agreed on all
 * ranks. */
enum mu_status mu_train_setup(struct train_run *run);
/* data_cache.c: samples in memory that a node shares. Collective over all ranks. */
enum mu_status mu_train_cache_data(struct train_run *run);
void mu_train_release(struct train_run *run);

/* text.c: checks that the network reads what the data are, loads the vocabulary of a text, and
 * fills in the config of the input. Worker 0 writes the vocabulary that was made of the text. */
enum mu_status mu_train_text_open(struct train_run *run, struct mu_input_config *config);
enum mu_status mu_train_vocabulary_save(const struct train_run *run);

/* fit.c: the training loop of a worker. */
enum mu_status mu_train_fit(struct train_run *run);
/* Validation over all workers' shares; the result is the same on all. Collective over workers. */
enum mu_status mu_train_evaluate(struct train_run *run, struct mu_metrics *m);

#endif
