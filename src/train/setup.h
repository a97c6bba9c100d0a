/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup: everything that a rank of a run owns. Only train.c, setup.c and modes/table.c know it; all
 * other functions get what they use.
 */
#ifndef TRAIN_SETUP_H
#define TRAIN_SETUP_H

#include "batch.h"
#include "best.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_file.h"
#include "conf/conf.h"
#include "data.h"
#include "engine/accumulate.h"
#include "engine/engine.h"
#include "engine/metrics.h"
#include "guard.h"
#include "halt.h"
#include "report/observers.h"

struct checkpoint_saver;
struct train_mode;

struct train_run {
	const struct conf *conf; /* settled */
	const struct train_mode *mode;
	struct checkpoint_description description; /* of the file that the options name */
	struct train_look look; /* at the training data */
	struct engine_device_list list;
	bool falls_back; /* --dtype-fallback: to float32 from float16 */
	struct mu_members members;
	struct mu_kv_type store;
	struct mu_engine engine;
	struct mu_vocabulary *vocabulary; /* --vocab; NULL: none was given */
	struct mu_slice *slices;          /* keys, with the multipliers of the options */
	struct mu_input train, validate;
	bool has_validation;
	struct mu_kv *kv;
	struct engine_metrics metrics;
	struct report_view view;            /* complete after set-up */
	struct report_observers *observers; /* NULL: nothing is observed */
	struct train_recovering recovering;
	struct train_guard guard;
	struct train_best best;
	struct engine_sum sum;
	struct train_batches batches;
	size_t examples;                  /* per epoch, of the whole job */
	struct checkpoint_resume *resume; /* what the run resumes from */
	struct mu_checkpoint_lock *lock;  /* of worker 0's prefix; NULL: none */
	struct train_halt halt;
	struct checkpoint_saver *saver; /* NULL: nothing is saved */
	struct checkpoint_rollback *back; /* --on-nan rollback: passed on to the next run */
	struct checkpoint_run_file run_file;
};

/*
 * setup.c: from options to what the mode needs. conf, mode, store, list, members, halt.signal and
 * back are set. Collective over topology.world, agreed on by all ranks.
 */
enum mu_status mu_train_setup(struct train_run *run);
void mu_train_release(struct train_run *run);
/* Instead of _release, after an error that other ranks do not know of: leaves the files of this
 * process in order, and calls no MPI. */
void mu_train_leave(struct train_run *run);

#endif
