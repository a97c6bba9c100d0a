/* SPDX-License-Identifier: Apache-2.0 */
/* options: the values of the options table, and the rules about them (options.c). */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <muster/comm.h>
#include <muster/kvstore.h>
#include <muster/optim.h>

/* How the learning rate changes; lengths in epochs. */
struct conf_schedule {
	const char *name, *step_epochs, *warmup_strategy;
	double factor, factor_epoch, power, final_lr, warmup_epochs, warmup_begin_lr, improvement;
	long scale_with_workers;
};

/* How training images are changed; negative: not given. */
struct conf_images {
	long resize, pad, fill, level, imagenet, random_crop, random_mirror, random_resized_crop,
		min_crop, max_crop, max_rotate_angle, max_h, max_s, max_l, exif_orientation;
	double min_area, max_area, min_aspect, max_aspect, max_shear, min_scale, max_scale,
		brightness, contrast, saturation, pca_noise;
	const char *given; /* one that was, for messages; NULL: none */
};

enum { TRAIN_MAX_LENGTHS = 64, TRAIN_LONGEST = 65536 };

/* Networks of sequences, and texts. */
struct conf_text {
	long hidden, embed; /* 0: the network's own */
	double dropout;     /* if dropout_given */
	bool dropout_given;
	const char *unit, *vocabulary, *buckets, *prime; /* NULL: not given */
	size_t lengths[TRAIN_MAX_LENGTHS], n_lengths;    /* of --buckets */
	long sample;
};

struct conf {
	const char *network, *kv_store, *devices, *work_load_list, *gpus, *dtype, *initializer;
	const char *conv_algo, *conv_table; /* conv_table NULL: not given */
	const char *group2dev, *group2rank; /* NULL: not given */
	long model_parallel, model_parallel_ranks, micro_batches, time_block;
	long dtype_fallback;
	struct conf_text text;
	long num_layers, num_classes, num_servers, num_epochs, batch_size, global_batch_size,
		batch_per_device;
	const char *image_shape;
	const char *server_placement, *node_reduce, *inter_node;
	const char *interface; /* NULL: not given */
	const char *optimizer, *adam_decay;
	double lr;
	struct conf_schedule schedule;
	struct mu_optim_config optim; /* complete after mu_conf_optimizer_settle */
	long wd_gamma, centered;
	const char *load, *fixed, *lr_mult, *wd_mult; /* NULL: not given */
	bool skip_mismatch, evaluate;
	const char *predict; /* NULL: not given */
	const char *data_dir, *data_train, *data_val, *data_train_idx, *data_val_idx;
	const char *model_prefix;
	const char *shuffle, *dump_batch; /* dump_batch NULL: not given */
	const char *data_cache;
	long shuffle_chunk, data_nthreads, prefetch_buffer, skip_bad_records;
	struct conf_images images;
	const char *rgb_mean, *rgb_std; /* NULL: not given */
	long num_examples, benchmark, num_batches, test_io, load_epoch, save_period;
	long save_steps, keep, save_async, verify_steps;
	double save_minutes;
	const char *halt_before;       /* NULL: not given */
	const char *on_nan;
	const char *resume, *override; /* override NULL: not given */
	const char *loss;
	double label_smoothing;
	const char *loss_scale; /* NULL: dynamic for float16, else none */
	long loss_scale_window;
	long update_period;
	long max_staleness, tolerate_worker_loss, sync_period, block_nesterov;
	struct mu_compression compression; /* complete after mu_conf_store_settle */
	long gc_pull;
	double block_momentum, block_lr;
	long disp_batches, top_k, seed, log_time, bucket_bytes, comm_thread, priority, cuda_graph;
	const char *log_prefix;
	long verbose;
	enum mu_verbose traffic; /* the same, or that of the environment if it was not given */
	struct mu_limits limits;
	double target_accuracy;
	const char *summary; /* "" or "dot"; NULL: none */
	const char *profile; /* "" or a file; NULL: none */
	const char *metrics_file, *tensorboard, *timeline; /* NULL: none */
	long timeline_steps;
	const char *progress;
	bool check, help, help_all, version, info;
};

/* The means of ImageNet, which MXNet subtracts, too. */
#define TRAIN_RGB_MEAN "123.68,116.779,103.939"
#define TRAIN_RGB_STD "1,1,1"

extern const struct mu_option mu_conf_options[];
extern const size_t mu_conf_n_options;
/*
 * Rules that no single option knows: contradictions, values of this version. Options that were not
 * given and have no default of their own get the one that follows from others.
 */
enum mu_status mu_conf_check(const struct mu_options *o, struct conf *v);
/* Does a file's name end so, and is longer? */
bool mu_conf_ends_in(const char *path, const char *end);
/* Values of --rgb-mean and --rgb-std, their defaults where they are not given. */
enum mu_status mu_conf_rgb(const struct conf *v, float mean[3], float std[3]);

#endif
