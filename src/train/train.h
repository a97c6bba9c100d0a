/* SPDX-License-Identifier: Apache-2.0 */
/* train: the parts of a run, known to src/train only. The order of the files to read: train.c,
 * fit.c, then the others. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <muster/comm.h>
#include <muster/device.h>
#include <muster/input.h>
#include <muster/kvstore.h>
#include <muster/net.h>
#include <muster/train.h>

struct train_run;

/* ---- options.c: the values of the options table ---- */

/* How the learning rate changes; lengths in epochs. */
struct train_schedule {
	const char *name, *step_epochs, *warmup_strategy;
	double factor, factor_epoch, power, final_lr, warmup_epochs, warmup_begin_lr;
	long scale_with_workers;
};

/* How training images are changed; negative: not given. */
struct train_images {
	long resize, pad, fill, level, imagenet, random_crop, random_mirror, random_resized_crop,
		min_crop, max_crop, max_rotate_angle, max_h, max_s, max_l;
	double min_area, max_area, min_aspect, max_aspect, max_shear, min_scale, max_scale,
		brightness, contrast, saturation, pca_noise;
	const char *given; /* one that was, for messages; NULL: none */
};

struct train_options {
	const char *network, *kv_store, *devices, *work_load_list, *gpus, *dtype, *initializer;
	long num_layers, num_classes, num_servers, num_epochs, batch_size, global_batch_size,
		batch_per_device;
	const char *image_shape;
	const char *server_placement, *node_reduce;
	const char *optimizer, *adam_decay;
	double lr;
	struct train_schedule schedule;
	struct mu_optim_config optim; /* complete after mu_train_optimizer_settle */
	long wd_gamma, centered;
	const char *data_dir, *data_train, *data_val, *data_train_idx, *data_val_idx;
	const char *model_prefix;
	const char *shuffle, *dump_batch; /* dump_batch NULL: not given */
	const char *data_cache;
	long shuffle_chunk, data_nthreads, prefetch_buffer, skip_bad_records;
	struct train_images images;
	const char *rgb_mean, *rgb_std; /* NULL: not given */
	long num_examples, benchmark, num_batches, test_io, load_epoch, save_period;
	const char *loss;
	double label_smoothing;
	long update_period;
	long max_staleness, sync_period, block_nesterov;
	double block_momentum, block_lr;
	long disp_batches, top_k, seed, log_time, bucket_bytes;
	const char *log_prefix;
	long verbose;
	enum mu_verbose traffic; /* the same, or that of the environment if it was not given */
	struct mu_limits limits;
	double target_accuracy;
	const char *summary; /* "" or "dot"; NULL: none */
	bool check, help, help_all, version, info;
};

extern const struct mu_option mu_train_option_table[];
extern const size_t mu_train_option_count;
/*
 * Rules that no single option knows: contradictions, values of this version. Options that were not
 * given and have no default of their own get the one that follows from others.
 */
enum mu_status mu_train_options_check(const struct mu_options *o, struct train_options *v);
/* Values of --rgb-mean and --rgb-std, their defaults where they are not given. */
enum mu_status mu_train_options_rgb(const struct train_options *v, float mean[3], float std[3]);

/* ---- optimizer.c ---- */

/* The part of mu_train_options_check about the optimiser and the learning rate. */
enum mu_status mu_train_optimizer_settle(const struct mu_options *o, struct train_options *v);
/* The schedule of settled options; lr: at its start, after scaling. */
enum mu_status mu_train_schedule(const struct train_options *v, double lr, double samples_per_epoch,
				 struct mu_schedule *s);

/* ---- images.c ---- */

/* The part of mu_train_options_check about images: levels and presets become settings. */
enum mu_status mu_train_images_settle(const struct mu_options *o, struct train_options *v);
/* Settled options as the input takes them. Validation: resize alone. */
struct mu_augment mu_train_images_augment(const struct train_images *images,
					  enum mu_input_part part);

/* ---- store.c: how workers keep step ---- */

/* The part of mu_train_options_check about it. */
enum mu_status mu_train_store_settle(const struct mu_options *o, const struct train_options *v);
/* What does not go with the chosen store; the same on every rank. */
enum mu_status mu_train_store_check(const struct train_run *run);
void mu_train_store_config(const struct train_options *v, struct mu_kv_config *config);
/* Lines of the start log and of the end log. */
void mu_train_store_report(const struct train_run *run);
void mu_train_store_report_end(const struct train_run *run);

/* ---- metrics.c ---- */

#define TRAIN_MAX_METRICS 8

/* The metrics of a run, in the order of the log. */
struct train_metrics {
	size_t n;
	const struct mu_metric *of[TRAIN_MAX_METRICS];
	char printed[TRAIN_MAX_METRICS][32];
};

/* Those of --top-k and --loss and the usual ones. MU_ERR_USAGE with the list for an unknown name.
 */
enum mu_status mu_train_metrics_choose(struct train_metrics *metrics,
				       const struct train_options *v);
/* Collective over comm. */
enum mu_status mu_train_metrics_reduce(struct mu_metrics *m, MPI_Comm comm);

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

/* ---- device_list.c: --devices and --work-load-list ---- */

enum { TRAIN_MAX_DEVICES = 256 };

/* The devices of every worker, in their order. */
struct train_device_list {
	size_t n;
	const struct mu_device_ops *kind; /* of all */
	int indices[TRAIN_MAX_DEVICES];   /* 1 in "cpu:1" */
	size_t ends[TRAIN_MAX_DEVICES];   /* sums of the loads up to each, its own included */
	bool unequal;                     /* the loads are not all the same */
};

/* MU_ERR_USAGE for what cannot be. */
enum mu_status mu_train_device_list_read(struct train_device_list *list,
					 const struct train_options *v);
/*
 * Of `count` samples of a worker, device i has those from first(i) up to, not including,
 * first(i + 1): with W(i) the loads of the devices before it, first(i) is count W(i) / W(n),
 * rounded down.
 */
size_t mu_train_device_first(const struct train_device_list *list, size_t i, size_t count);
/* MU_ERR_USAGE if a device has none of a whole batch. */
enum mu_status mu_train_device_list_check(const struct train_device_list *list, size_t batch);
/* "cpu:1" into text; returns text. */
const char *mu_train_device_name(const struct train_device_list *list, size_t i, char *text,
				 size_t nbytes);

/* ---- devices.c: the devices of this rank ---- */

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
	size_t batch;         /* its part of a full batch */
	struct mu_plan *plan; /* of that */
	struct mu_plan *tail; /* of its part of the short last step, NULL if that is none or all */
	struct mu_plan *infer;
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
	size_t *homes;            /* of every key: the device that sums it; NULL for one */
	size_t layer;             /* backward: layers left to the first device */
	struct mu_waiter waiter;  /* for the other devices, in backward */
};

/* Make the threads, and open the devices for batches of this many samples. Not collective. */
enum mu_status mu_train_devices_open(struct train_run *run, size_t batch);
void mu_train_devices_close(struct train_devices *s);
/* Call fn for every device, on its own thread, all at the same time. */
typedef enum mu_status train_device_fn(struct train_run *run, struct train_device *d);
enum mu_status mu_train_devices_run(struct train_run *run, train_device_fn *fn);
/* Bytes of all the devices' activations. */
double mu_train_devices_arena(const struct train_run *run);
/* Set the flat arrays, once the store is there. */
enum mu_status mu_train_devices_bind(struct train_run *run);

/*
 * A batch. _begin deals batch->count samples out, at least 1, and says where the caller puts them
 * before _forward; batch->labels and batch->ids are filled by then too.
 *
 * _forward for every layer in turn, once its weights are there: the first device works on it, and
 * the others may; after the last layer all have ended, and loss and metrics are there. _backward,
 * with *ready the number of layers at first, until *ready is 0: the gradients of layers from *ready
 * on are in the store's array, summed over the devices. What waits for other devices lets the
 * store's messages move on.
 */
float *mu_train_devices_begin(struct train_run *run, enum mu_phase phase,
			      const struct mu_batch *batch);
/* Only the first so many samples of the batch count. Before _forward. */
void mu_train_devices_count(struct train_run *run, size_t count);
enum mu_status mu_train_devices_forward(struct train_run *run, size_t l);
enum mu_status mu_train_devices_backward(struct train_run *run, size_t *ready);
double mu_train_devices_loss(const struct train_run *run);
void mu_train_devices_measure(const struct train_run *run, struct mu_metrics *m);
/* As mu_plan_find_nonfinite; after _forward. */
const char *mu_train_devices_find_nonfinite(const struct train_run *run);

/*
 * device_sum.c, for devices.c. Choose each key's home: the first device, or with on_devices the one
 * that has the least to sum so far, the largest keys first.
 */
enum mu_status mu_train_homes(struct train_run *run, bool on_devices);
bool mu_train_is_home(const struct train_run *run, size_t device);
/* Sum the keys whose home is d, of the layers from d->unsummed down to `to`. */
void mu_train_sum_layers(struct train_run *run, struct train_device *d, size_t to);

/* ---- run: everything a rank holds ---- */

struct train_run {
	struct train_options options;
	struct mu_topology topology;
	struct mu_kv_type store;
	int n_threads;
	struct train_devices devices;
	const struct mu_network *network;
	struct mu_net *net;
	struct mu_plan *plan; /* the first device's of a full batch: layers and keys of all */
	struct mu_input train, validate;
	bool has_validation;
	struct mu_kv *kv;
	struct train_metrics metrics;
	struct train_sum sum;
	float *labels; /* of one batch */
	uint32_t *ids;
	size_t steps;    /* batches of a worker per epoch */
	size_t examples; /* per epoch, of the whole job */
	size_t begin_epoch;
	double link;          /* bytes/s between ranks, 0 for one rank */
	double lr;            /* base, scaled with the workers if that was asked for */
	double speed_seconds; /* training time of all epochs, without validation */
	double speed_samples;
	double exchanges; /* between workers and store in that time */
};

/* setup.c: from options to a run that can train; collective over topology->world, agreed on all
 * ranks. */
enum mu_status mu_train_setup(struct train_run *run);
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

/* --summary: the network of the options on standard output. No data, no roles. Not collective. */
enum mu_status mu_train_summary(const struct train_options *v);
void mu_train_release(struct train_run *run);

/* fit.c: the training loop of a worker. */
enum mu_status mu_train_fit(struct train_run *run);
/* Validation over all workers' shares; the result is the same on all. Collective over workers. */
enum mu_status mu_train_evaluate(struct train_run *run, struct mu_metrics *m);

/* report.c: what the log says. Lines come from worker 0 only; they speak of the whole job. */
void mu_train_report_start(const struct train_run *run);
/* What the data is: one line. */
void mu_train_report_data(const struct train_run *run);
enum mu_status mu_train_report_ranks(const struct train_run *run);
struct train_window {
	size_t epoch, first, last; /* steps (first, last] */
	double samples, seconds;   /* of the whole job */
	double data_seconds;       /* that worker 0 waited for samples */
	struct mu_metrics metrics;
};
void mu_train_report_speed(const struct train_run *run, const struct train_window *w);
void mu_train_report_epoch(const struct train_run *run, size_t epoch, const struct mu_metrics *m,
			   double seconds);
void mu_train_report_validation(const struct train_run *run, size_t epoch,
				const struct mu_metrics *m);
void mu_train_report_end(const struct train_run *run);
/* --info */
void mu_train_report_info(FILE *stream);

/* checkpoint.c: P-0001.h5 after epoch 0 and so on. Worker 0 only; weights from and to the store's
 * flat array. */
/* Can files be written there? Asked before the training. Not collective. */
enum mu_status mu_train_checkpoint_check(const struct train_run *run);
enum mu_status mu_train_checkpoint_save(const struct train_run *run, size_t epoch);
enum mu_status mu_train_checkpoint_load(const struct train_run *run, size_t epoch);

/* test_io.c: --test-io 1, the input alone; memory for a batch. */
enum mu_status mu_train_batch_new(struct mu_input_batch *batch, const struct mu_input *in);
void mu_train_batch_free(struct mu_input_batch *batch);
enum mu_status mu_train_test_io(struct train_run *run);

/* dump.c: --dump-batch, the first batch of worker 0 as a sheet of images. */
enum mu_status mu_train_dump_batch(struct train_run *run);

#endif
