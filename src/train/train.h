/* SPDX-License-Identifier: Apache-2.0 */
/* train: the parts of a run, known to src/train only. The order of the files to read: train.c,
 * fit.c, then the others. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <time.h>

#include <muster/comm.h>
#include <muster/device.h>
#include <muster/input.h>
#include <muster/kvstore.h>
#include <muster/net.h>
#include <muster/notice.h>
#include <muster/parallel.h>
#include <muster/train.h>

#include "halt.h"
#include "conf/options.h"
#include "engine/teams.h"
#include "report/report.h"

/* ---- optimizer.c ---- */

/* The part of mu_train_options_check about the optimiser and the learning rate. */
enum mu_status mu_train_optimizer_settle(const struct mu_options *o, struct train_options *v);
/* The schedule of settled options; lr: at its start, after scaling. */
enum mu_status mu_train_schedule(const struct train_options *v, double lr, double samples_per_epoch,
				 struct mu_schedule *s);

/* ---- multipliers.c: --fixed, --lr-mult, --wd-mult ---- */

/* The part of mu_train_options_check about them. */
enum mu_status mu_train_multipliers_check(const struct train_options *v);
/* run->slices: the plan's, as options say. MU_ERR_USAGE names a pattern that matches nothing. */
enum mu_status mu_train_multipliers_apply(struct train_run *run);
void mu_train_multipliers_report(const struct train_run *run);

/* ---- images.c ---- */

/* The part of mu_train_options_check about images: levels and presets become settings. */
enum mu_status mu_train_images_settle(const struct mu_options *o, struct train_options *v);
/* Settled options as the input takes them. Validation: resize alone. */
struct mu_augment mu_train_images_augment(const struct train_images *images,
					  enum mu_input_part part);

/* ---- interface.c ---- */

/* The network interface that was asked for, also by the environment; NULL: none. */
const char *mu_train_interface(const struct train_options *v);
/* This host has it, and it has an address. Not collective. */
enum mu_status mu_train_interface_check(const struct train_options *v);
/* "eth1 10.0.0.1": the one asked for, else those that carry TCP to other hosts; "": none. */
void mu_train_interface_address(const struct train_options *v, char *text, size_t nbytes);
/* Warns of variables that the user has set otherwise. */
void mu_train_interface_report(const struct train_options *v);

/* ---- store.c: how workers keep step, and compression ---- */

/* The part of mu_train_options_check about it. */
enum mu_status mu_train_store_settle(const struct mu_options *o, struct train_options *v);
/* What does not go with the chosen store; the same on every rank. */
enum mu_status mu_train_store_check(const struct train_run *run);
void mu_train_store_config(const struct train_options *v, struct mu_kv_config *config);
/* Lines of the start log and of the end log. */
void mu_train_store_report(const struct train_run *run);
void mu_train_store_report_end(const struct train_run *run);

/* ---- accumulate.c ---- */

/* Gradients of the batches since the last update, with --update-period above 1. */
struct train_sum {
	float *gradients; /* NULL with --update-period 1 */
	size_t n;
	size_t batches; /* that are in it */
	size_t count;   /* samples behind them */
};

enum mu_status mu_train_sum_init(struct train_sum *sum, size_t n);
void mu_train_sum_release(struct train_sum *sum);
/* Add a batch's gradients, n elements. */
void mu_train_sum_take(struct train_sum *sum, const float *gradients, size_t count);
/* gradients[at..at + n) += those of the sum; gradients is the whole array. */
void mu_train_sum_give(const struct train_sum *sum, float *gradients, size_t at, size_t n);
/* The update has them all. */
void mu_train_sum_clear(struct train_sum *sum);

/* to[i] += from[i] */
void mu_train_add(float *to, const float *from, size_t n);

/* ---- device_list.c: --devices, --gpus and --work-load-list ---- */

enum { TRAIN_MAX_DEVICES = 256 };

/* The devices of every worker, in their order. */
struct train_device_list {
	size_t n;
	const struct mu_device_ops *kind; /* of all */
	int indices[TRAIN_MAX_DEVICES];   /* 1 in "cpu:1" */
	size_t ends[TRAIN_MAX_DEVICES];   /* sums of the loads up to each, its own included */
	bool unequal;                     /* the loads are not all the same */
	bool split; /* the devices have the layers of one batch, instead of samples each */
	size_t ranks; /* that have such devices each, in a team: teams.c */
	bool automatic; /* --gpus auto: one device, whose index depends on the worker */
};

/* MU_ERR_USAGE for what cannot be. */
enum mu_status mu_train_device_list_read(struct train_device_list *list,
					 const struct train_options *v);
/* --gpus auto: workers of a node take its GPUs in turn. Where there are none opening says why. */
void mu_train_device_list_place(struct train_device_list *list, int node_worker);
/*
 * Of `count` samples of a worker, device i has those from first(i) up to, not including,
 * first(i + 1): with W(i) the loads of the devices before it, first(i) is count W(i) / W(n),
 * rounded down.
 */
size_t mu_train_device_first(const struct train_device_list *list, size_t i, size_t count);
/* MU_ERR_USAGE if a device has none of a whole batch, or a batch cannot be cut into micro-batches.
 */
enum mu_status mu_train_device_list_check(const struct train_device_list *list,
					  const struct train_options *v, size_t batch);
/* Devices that a worker's samples are dealt to. */
size_t mu_train_device_shares(const struct train_device_list *list);
/* A worker's batch as its devices share it, into text: "16", or "12,4"; returns text. */
const char *mu_train_device_batches(const struct train_device_list *list, size_t batch, char *text,
				    size_t nbytes);
/* Samples that are in the plan of the first device. */
size_t mu_train_device_batch(const struct train_device_list *list, const struct train_options *v,
			     size_t batch);
/* The stages of a network, for a split list: "devices" of them are ranks' times list->n and their
 * own numbers. */
enum mu_status mu_train_device_stages(const struct train_device_list *list,
				      const struct train_options *v, const struct mu_plan *plan,
				      struct mu_stages *stages);
/* --conv-algo, --dtype and --dtype-fallback, on an open device. */
enum mu_status mu_train_device_set(struct mu_device *device, const struct train_options *v);
/* "cpu:1" into text; returns text. */
const char *mu_train_device_name(const struct train_device_list *list, size_t i, char *text,
				 size_t nbytes);

/* ---- shared.c: the devices of this rank ---- */

struct train_run;
struct mu_team;

/*
 * A device works on its part of each of the worker's batches, on a thread of its own; the first one
 * on the thread that calls, which alone calls MPI. All read the store's weights. The first device's
 * gradients are the store's array; those of the others are added to it in the order of the devices
 * (device_sum.c), so the bits depend on the devices and nothing else.
 */
struct train_device {
	size_t number; /* in the list */
	struct mu_device device;
	size_t batch; /* its part of a full batch */
	/*
	 * By group of the input (see input.h), in the memory of the last group's first: of a full
	 * batch; of its part of the short last step, NULL if that is none or all; for validation.
	 */
	struct train_plans {
		struct mu_plan *full, *tail, *infer;
	} *plans;
	float *gradients;    /* flat array */
	struct mu_plan *now; /* of the present batch; NULL: it has no samples */
	size_t first, n;     /* its samples of the worker's */
	size_t unsummed;     /* backward: layers that it has not summed yet */
};

struct train_devices {
	struct train_device_list list;
	struct train_device *of;  /* list.n of them */
	struct mu_team *team;     /* their threads, NULL for one device */
	struct mu_places *places; /* cores of the calling thread before */
	float *samples;           /* a worker's batch, for the devices to take from; NULL for one */
	size_t sample;            /* elements of each of the present batch */
	size_t *homes;            /* of every key: the device that sums it; NULL for one */
	size_t layer, left; /* backward: layers that the first device has not begun, not done */
	struct mu_waiter waiter;  /* for the other devices, in backward */
};

/* Make the threads, and open the devices for batches of this many samples. Not collective. */
enum mu_status mu_train_devices_open(struct train_run *run, size_t batch);
void mu_train_devices_close(struct train_run *run);
/* Call fn for every device, on its own thread, all at the same time. */
typedef enum mu_status train_device_fn(struct train_run *run, struct train_device *d);
enum mu_status mu_train_devices_run(struct train_run *run, train_device_fn *fn);
/* Their threads, for work of the calling one's between jobs. */
void mu_train_devices_share(struct train_run *run, struct mu_share *share);
/* Bytes of all the devices' activations. */
double mu_train_devices_arena(const struct train_run *run);
/* Teams of ranks: the ways of what passes between them. Collective over workers. */
enum mu_status mu_train_devices_link(struct train_run *run);
/* A number that is equal on two workers if their devices lay out alike what they share. */
uint64_t mu_train_devices_hash(const struct train_run *run);
/* Set the flat arrays, once the store is there. */
enum mu_status mu_train_devices_bind(struct train_run *run);

/*
 * A batch. _begin deals batch->count samples of a group out, at least 1, and says where the caller
 * puts them before _forward; batch->labels and batch->ids are filled by then too.
 *
 * _forward for every layer in turn, once its weights are there: the first device works on it, and
 * the others may; after the last layer all have ended, and loss and metrics are there. _backward,
 * with *ready the number of layers at first, until *ready is 0: the gradients of layers from *ready
 * on are in the store's array, summed over the devices. What waits for other devices lets the
 * store's messages move on.
 */
float *mu_train_devices_begin(struct train_run *run, enum mu_phase phase, size_t group,
			      const struct mu_batch *batch);
/* Only the first so many samples of the batch count. Before _forward. */
void mu_train_devices_count(struct train_run *run, size_t count);
enum mu_status mu_train_devices_forward(struct train_run *run, size_t l);
enum mu_status mu_train_devices_backward(struct train_run *run, size_t *ready);
double mu_train_devices_loss(const struct train_run *run);
void mu_train_devices_measure(const struct train_run *run, struct mu_metrics *m);
/* Of the batch's samples, in their order: (samples, classes). */
size_t mu_train_devices_classes(const struct train_run *run);
void mu_train_devices_probabilities(const struct train_run *run, float *out);
/* After _backward of a batch with a loss scale: as mu_plan_overflowed, of all devices. */
enum mu_status mu_train_devices_overflowed(const struct train_run *run, bool *overflowed);
/* Instead of _backward: the batch is left out. */
enum mu_status mu_train_devices_leave(struct train_run *run);
/* As mu_plan_find_nonfinite; after _forward, and _leave. */
const char *mu_train_devices_find_nonfinite(struct train_run *run);

/* For stages_plan.c: the devices' way to say which of them has failed, and to wait for the others, while
 * messages move on with poll. */
enum mu_status mu_train_device_named(const struct train_run *run, const struct train_device *d,
				     enum mu_status st);
enum mu_status mu_train_devices_join(struct train_run *run, bool poll);

/*
 * device_sum.c, for shared.c. Choose each key's home: the first device, or with on_devices the one
 * that has the least to sum so far, the largest keys first.
 */
enum mu_status mu_train_homes(struct train_run *run, bool on_devices);
bool mu_train_is_home(const struct train_run *run, size_t device);
/* Sum the keys whose home is d, of the layers from d->unsummed down to `to`. */
void mu_train_sum_layers(struct train_run *run, struct train_device *d, size_t to);

/*
 * ---- gpus.c: stores of GPUs; nothing of it is done for others ----
 *
 * _obstacle: an option that works on the CPU's arrays, or NULL. _settle, before the store is made:
 * on_gpus, if it can have its arrays on GPUs and nobody else looks at gradients. _by_nodes: then
 * NCCL sums in nodes. _fall_back, once devices are open: not where options leave it open and a host
 * lacks NCCL, or a node has nothing to sum, or one GPU for several workers; by all ranks. _join,
 * before mu_kv_weights_init: the store takes the devices; by workers. _leave, before they are
 * closed. _clear: gradients of 0, where there are no samples or on all. _record: --cuda-graph.
 */
const char *mu_train_gpus_obstacle(const struct train_options *v, bool split);
bool mu_train_gpus_by_nodes(const struct train_run *run);
enum mu_status mu_train_gpus_settle(struct train_run *run);
enum mu_status mu_train_gpus_fall_back(struct train_run *run);
enum mu_status mu_train_gpus_join(struct train_run *run);
void mu_train_gpus_leave(struct train_run *run);
enum mu_status mu_train_gpus_clear(struct train_run *run, bool all);
enum mu_status mu_train_gpus_record(struct train_run *run);

/* ---- progress.c: --comm-thread ---- */

struct train_progress;
/* What does not go with the chosen store, or with this MPI; the same on every rank. */
enum mu_status mu_train_progress_check(const struct train_run *run);
/*
 * Make the thread, once the store is there, if one was asked for; without one _lend and _take do
 * nothing. The calling thread is the one that may call MPI and use the store, but between _lend and
 * _take, where the other moves messages on. Not collective.
 */
enum mu_status mu_train_progress_open(struct train_run *run);
void mu_train_progress_close(struct train_run *run);
void mu_train_lend(struct train_run *run);
/* st, or if that is MU_OK what went wrong in the thread. */
enum mu_status mu_train_take(struct train_run *run, enum mu_status st);
/* Between the two: let messages move on, as mu_kv_poll does. */
enum mu_status mu_train_poll(struct train_run *run);
void mu_train_progress_report(const struct train_run *run);

/* ---- run_file.c: P-run.json ---- */

struct train_run_file {
	const struct mu_options *options; /* NULL: this rank writes none */
	time_t started, ended;            /* 0: not yet */
};
/* Where worker 0 cannot write it, it warns. Not collective; other ranks do nothing. */
void mu_train_run_file_begin(struct train_run *run, const struct mu_options *options);
/* st: how the run ended here; the cause of an error is the present trace, which stays. */
void mu_train_run_file_end(struct train_run *run, enum mu_status st);

/* ---- conv_table.c: which algorithm computes which convolution ---- */

#define TRAIN_CONV_ATTRIBUTE "convolutions" /* of a checkpoint: the table's text */
enum { TRAIN_CONV_BYTES = 60000, TRAIN_CONV_TEXT = 256, TRAIN_CONV_PATH = 1024 };

/* Alike on all ranks but for choices, which are each rank's own. */
struct train_conv {
	char path[TRAIN_CONV_PATH];  /* where it comes from */
	char text[TRAIN_CONV_BYTES]; /* "": there is no table */
	bool saved;                  /* it is a checkpoint's */
	char network[TRAIN_CONV_TEXT], device[TRAIN_CONV_TEXT], measured[TRAIN_CONV_TEXT];
	uint64_t hash;
	struct mu_convolution_choice *choices;
	size_t n;
};

/* Of --conv-table, or of the checkpoint that the run goes on from. Collective over world. */
enum mu_status mu_train_conv_open(struct train_run *run);
void mu_train_conv_close(struct train_run *run);
/* On a device of its own that is open, before its first plan. A checkpoint's table that was
 * measured on another library or instruction set is dropped, with a warning: a run may go on
 * elsewhere. */
void mu_train_conv_ask(struct train_run *run, struct mu_device *device);
/* MU_ERR_FORMAT: the table is of another network, library or instruction set than the plan of this
 * run, whose samples have this shape (c, h, w). Not collective. */
enum mu_status mu_train_conv_check(const struct train_run *run, const size_t *shape);

struct train_conv_net {
	const char *name;    /* of the network */
	const size_t *shape; /* of a sample, (c, h, w) */
	const char *path;    /* of the table */
};
/* Replaces the file. */
enum mu_status mu_train_conv_write(const struct mu_plan *plan, const struct mu_device *device,
				   const struct train_conv_net *net,
				   const struct mu_convolution_choice *choices, size_t n);
/* tune.c, --conv-algo tune: measure, and write --conv-table. After the plans are made; worker 0. */
bool mu_train_tunes(const struct train_options *v);
enum mu_status mu_train_tune(struct train_run *run);

/* ---- loss_scale.c: --loss-scale ---- */

/*
 * A scale of the loss (struct mu_batch), fixed or dynamic: halved when a gradient overflows, whose
 * batch is left out, and doubled after so many good batches. Alike on all workers of synchronous
 * stores, for they agree on what overflows; 0: none.
 */
struct train_loss_scale {
	double scale;
	bool dynamic;
	size_t window;         /* good batches before it grows */
	size_t good, in_a_row; /* good batches since the last change; bad ones in a row */
	size_t left_out;       /* batches so far */
};

/* The part of mu_train_options_check about it. */
enum mu_status mu_train_loss_scale_check(const struct mu_options *o, const struct train_options *v);
/* Does the run begin with one? */
bool mu_train_loss_scale_is_on(const struct train_options *v);
/* Of a run whose batches and devices are known. */
void mu_train_loss_scale_begin(struct train_run *run);

/* ---- run: everything a rank holds ---- */

struct train_run {
	struct train_options options;
	struct mu_topology topology;
	struct mu_kv_type store;
	char without_nccl[512]; /* why sums between GPUs go by MPI; empty: they do not, or shall */
	int n_threads;
	struct train_team team;
	struct train_devices devices;
	struct train_conv *conv;
	struct train_split *split; /* NULL: every device has all layers */
	const struct mu_network *network;
	struct mu_net **nets;    /* by group of the input, n_groups of them */
	size_t n_groups;         /* 1 without groups */
	struct mu_net *block_net; /* of --time-block: of so many steps; else NULL */
	struct mu_net *net;      /* the last of them */
	struct mu_plan *plan;    /* its first device's of a full batch: layers and keys of all */
	struct mu_vocabulary *vocabulary; /* --vocab; NULL: none was given */
	struct mu_slice *slices; /* keys, as the store is to update them */
	struct mu_input train, validate;
	bool has_validation;
	struct mu_kv *kv;
	struct mu_places *places; /* --comm-thread: cores of this process before it was pinned */
	struct train_progress *progress; /* NULL without --comm-thread */
	struct train_profile *profile;   /* NULL without --profile */
	struct train_timeline *timeline; /* NULL without --timeline */
	struct train_scalars *scalars;   /* NULL: nobody wants them */
	struct train_terminal *terminal; /* NULL: no line of progress */
	struct train_metrics metrics;
	struct train_plateau {
		double best, rate; /* lowest perplexity; of the learning rate, 0: none yet */
	} plateau;
	struct train_loss_scale loss_scale;
	struct train_sum sum;
	float *labels; /* of one batch */
	uint32_t *ids;
	struct train_ahead *ahead; /* batch.h; NULL: no batches go to devices ahead */
	size_t steps;                        /* batches of a worker per epoch */
	size_t examples;                     /* per epoch, of the whole job */
	struct train_saver *saver;           /* NULL without --model-prefix */
	struct train_resume *resume;         /* what the run goes on from */
	struct train_prediction *prediction; /* --predict, or --evaluate --benchmark 1 */
	size_t begin_epoch, begin_step;
	struct train_halt halt;
	struct train_back *back; /* --on-nan rollback: what outlives this run */
	struct train_run_file run_file;
	double link;          /* bytes/s between ranks, 0 for one rank */
	double lr;            /* base, scaled with the workers if that was asked for */
	double speed_seconds; /* training time of all epochs, without validation */
	double speed_samples;
	double comm_seconds; /* of worker 0's in speed_seconds, not hidden */
	double exchanges;    /* between workers and store in that time */
};

/* setup.c: from options to a run that can train; collective over topology->world, agreed on all
 * ranks. */
enum mu_status mu_train_setup(struct train_run *run);
/* data_cache.c: samples in memory that a node shares. Collective over all ranks. */
enum mu_status mu_train_cache_data(struct train_run *run);
/* mu_agree after work that only some ranks have, for as long as it takes. */
enum mu_status mu_train_agree_late(enum mu_status mine, MPI_Comm comm);
/*
 * model.c: the network and its plans. _new: the devices, the network and its plans for training,
 * without memory. _plan, once the data are open: also the plans of this worker's part of the last
 * step and for validation, all on the same flat arrays; then they get memory. Both estimate what
 * the workers of this node need before it is allocated: MU_ERR_MEMORY with the batch that would
 * fit. Not collective.
 */
enum mu_status mu_train_model_new(struct train_run *run, const struct mu_net_config *model,
				  const struct mu_input_config *data);
enum mu_status mu_train_model_plan(struct train_run *run);

/* The shape of a sample, as --image-shape says or usual for the network; and the network. */
enum mu_status mu_train_find_shape(const struct train_options *v, const struct mu_network *network,
				   size_t *shape);
/* Can --time-block cut this net's sequences? */
enum mu_status mu_train_check_block(const struct train_options *v, const struct mu_net *net);
struct mu_net_config mu_train_describe_model(const struct train_options *v, const size_t *shape,
					     size_t classes);
/* summary.c: --summary, the network of the options on standard output. No data, no roles. Not
 * collective. */
enum mu_status mu_train_summary(const struct train_options *v);
void mu_train_release(struct train_run *run);

/* fit.c: the training loop of a worker. */
enum mu_status mu_train_fit(struct train_run *run);
/* Validation over all workers' shares; the result is the same on all. Collective over workers. */
enum mu_status mu_train_evaluate(struct train_run *run, struct mu_metrics *m);

/*
 * save.c: checkpoints (checkpoint.h). _open is collective over workers, as are _save unless alone,
 * _look and _finish.
 */
struct train_position;
/* The part of mu_train_options_check about them. */
enum mu_status mu_train_save_check(const struct mu_options *o, const struct train_options *v);
enum mu_status mu_train_save_open(struct train_run *run);
void mu_train_save_close(struct train_saver *s);
/* After `done` steps of an epoch, not its last: is a save due now? */
bool mu_train_save_due(struct train_run *run, size_t done);
/* Synchronous stores: all learn whether worker 0 finds that --save-minutes are over. */
enum mu_status mu_train_save_look(struct train_run *run);
/*
 * Begin a save; of position the epoch, the step and metrics count. alone: worker 0 of dist_async
 * inside an epoch; what workers have for themselves is not saved then.
 */
enum mu_status mu_train_save(struct train_run *run, const struct train_position *position,
			     bool alone);
/* Let the save under way move on; errors of its threads come out here. Cheap. */
enum mu_status mu_train_save_poll(struct train_run *run);
/* Wait until it is complete. */
enum mu_status mu_train_save_finish(struct train_run *run);
/* dist_async, before workers meet: complete one of all workers, whose vote no meeting moves on. */
enum mu_status mu_train_save_meet(struct train_run *run);

/* Can files be written there? Asked before the training. Not collective. */
enum mu_status mu_train_checkpoint_check(const struct train_run *run);

/* resume.c: the weights, by worker 0; afterwards all the rest, collective over workers. */
enum mu_status mu_train_resume_weights(struct train_run *run);
enum mu_status mu_train_resume_states(struct train_run *run);

/* load.c: the part of mu_train_options_check about --load; and the weights that fit, by worker 0.
 */
enum mu_status mu_train_load_check(const struct mu_options *o, const struct train_options *v);
enum mu_status mu_train_load_weights(struct train_run *run);

/*
 * predict.c: --evaluate and --predict, which means both. _settle is the part of
 * mu_train_options_check about them. mu_train_predict is all that such a run does, and _take, where
 * there is a prediction, is for its evaluation, after each step, with the samples of this worker in
 * it and its metrics so far. Collective over workers.
 */
enum mu_status mu_train_predict_settle(struct train_options *v);
enum mu_status mu_train_predict(struct train_run *run);
enum mu_status mu_train_prediction_take(struct train_run *run, size_t step, size_t count,
					const struct mu_metrics *m);
void mu_train_prediction_close(struct train_run *run);

/* test_io.c: --test-io 1, the input alone; memory for a batch. */
enum mu_status mu_train_batch_new(struct mu_input_batch *batch, const struct mu_input *in);
void mu_train_batch_free(struct mu_input_batch *batch);
enum mu_status mu_train_test_io(struct train_run *run);

/* dump.c: --dump-batch, the first batch of worker 0 as a sheet of images. */
enum mu_status mu_train_dump_batch(struct train_run *run);

#endif
