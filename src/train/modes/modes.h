/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modes: what a run of the trainer does, besides training. A mode is a line of conf/modes.def, a
 * row of table.c, and a file of its own with the work.
 */
#ifndef TRAIN_MODES_MODES_H
#define TRAIN_MODES_MODES_H

#include <muster/input.h>
#include <muster/metrics.h>

#include "net/plan.h"
#include "conf/options.h"

struct engine_device_list;
struct mu_engine;
struct mu_members;
struct report_observers;
struct train_batches;
struct train_run;

/* How far a run is set up, in this order. */
enum train_set_up {
	TRAIN_OPTIONS, /* settled */
	TRAIN_ROLES,   /* who is a worker, who a server */
	TRAIN_DATA,    /* opened, and the same on all workers */
	TRAIN_NETWORK, /* planned on the devices */
	TRAIN_STORE,   /* with the weights; servers serve while workers work */
};
enum train_who { TRAIN_RANK_0, TRAIN_WORKER_0, TRAIN_WORKERS };

/* ---- table.c ---- */

struct train_mode {
	enum train_set_up needs;
	enum train_who who;
	enum mu_status (*work)(struct train_run *run);
};
extern const struct train_mode mu_train_modes[CONF_MODE_N];

/* generate.c: --sample, text drawn from a trained network, on standard output. No data, no roles.
 * Not collective. */
enum mu_status mu_train_sample(const struct conf *v, const struct engine_device_list *devices);

/* export.c: --export, the network and its parameters as a model of ONNX. input: what the checkpoint
 * says of its run's, "images"; "": nothing. No data, no roles. Not collective. */
enum mu_status mu_train_export(const struct conf *v, const char *input);

/* summary.c: --summary, the network of the options and the memory of a rank on standard output. No
 * data. Not collective. */
enum mu_status mu_train_summary(const struct conf *v, const struct engine_device_list *devices,
				const struct mu_members *roles);

/* ---- setup.c ---- */

struct mu_net_config mu_train_describe_model(const struct conf *v, const struct mu_shape *shape,
					     size_t classes);

/* tune.c, --conv-algo tune: measure, and write --conv-table. After the plans are made; worker 0. */
enum mu_status mu_train_tune(struct mu_engine *e);

/* ---- predict.c: --evaluate and --predict, which implies --evaluate ---- */

struct train_predict {
	struct train_batches *batches;
	struct mu_input *data;
	struct report_observers *observers;
	const char *parameters; /* the file that they are from */
	size_t epoch;           /* after which they were saved */
};
/* The whole run. Collective over workers. */
enum mu_status mu_train_predict(const struct train_predict *run);

/* test_io.c: --test-io 1, the input alone; memory for a batch. */
enum mu_status mu_train_batch_new(struct mu_input_batch *batch, const struct mu_input *in);
void mu_train_batch_free(struct mu_input_batch *batch);
enum mu_status mu_train_test_io(const struct mu_engine *e, struct mu_input *in);

/* dump.c: --dump-batch, the first batch of worker 0 as a sheet of images. */
enum mu_status mu_train_dump_check(const struct conf *v); /* the name of the file */
enum mu_status mu_train_dump_batch(const struct mu_engine *e, struct mu_input *in);

#endif
