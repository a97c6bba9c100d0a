/* SPDX-License-Identifier: Apache-2.0 */
/* options: the values of the table of options. */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include <stdalign.h>

#include <muster/comm.h>
#include <muster/device.h>
#include <muster/input.h>
#include <muster/kvstore.h>
#include <muster/metrics.h>
#include <muster/net.h>
#include <muster/optim.h>

/* ---- words.c: values of options that are words, and the words ---- */

enum conf_conv {
	CONF_CONV_AUTO = MU_CONVOLUTION_AUTO,
	CONF_CONV_DIRECT = MU_CONVOLUTION_DIRECT,
	CONF_CONV_WINOGRAD = MU_CONVOLUTION_WINOGRAD,
	CONF_CONV_GEMM = MU_CONVOLUTION_GEMM,
	CONF_CONV_TUNE = MU_CONVOLUTION_ALGORITHMS,
	CONF_CONV_N
};
enum conf_attention { CONF_ATTENTION_PRODUCTS, CONF_ATTENTION_FUSED, CONF_ATTENTION_N };
enum conf_placement { CONF_SPREAD, CONF_PACKED, CONF_COLOCATED, CONF_PLACEMENT_N };
enum conf_inter_node {
	CONF_INTER_NODE_AUTO,
	CONF_INTER_NODE_NCCL,
	CONF_INTER_NODE_MPI,
	CONF_INTER_NODE_N
};
enum conf_schedule_kind {
	CONF_SCHEDULE_NONE, /* not set */
	CONF_SCHEDULE_CONSTANT,
	CONF_SCHEDULE_MULTIFACTOR,
	CONF_SCHEDULE_FACTOR,
	CONF_SCHEDULE_POLY,
	CONF_SCHEDULE_COSINE,
	CONF_SCHEDULE_PLATEAU,
	CONF_SCHEDULE_N
};
enum conf_warmup { CONF_WARMUP_LINEAR, CONF_WARMUP_CONSTANT, CONF_WARMUP_N };
enum conf_decay { CONF_DECAY_L2, CONF_DECAY_DECOUPLED, CONF_DECAY_N };
enum conf_unit { CONF_UNIT_NONE, CONF_UNIT_WORDS, CONF_UNIT_CHARACTERS, CONF_UNIT_N };
enum conf_shuffle { CONF_SHUFFLE_NO, CONF_SHUFFLE_ALL, CONF_SHUFFLE_CHUNK, CONF_SHUFFLE_N };
enum conf_cache { CONF_CACHE_NONE, CONF_CACHE_NODE, CONF_CACHE_N };
enum conf_on_nan { CONF_ON_NAN_STOP, CONF_ON_NAN_SKIP, CONF_ON_NAN_ROLLBACK, CONF_ON_NAN_N };
enum conf_on_error {
#define ON_ERROR(NAME, word) CONF_ON_ERROR_##NAME,
#include "on_error.def"
#undef ON_ERROR
	CONF_ON_ERROR_N
};
enum conf_prefix { CONF_PREFIX_NODE, CONF_PREFIX_NONE, CONF_PREFIX_N };
enum conf_progress { CONF_PROGRESS_AUTO, CONF_PROGRESS_NO, CONF_PROGRESS_YES, CONF_PROGRESS_N };
enum conf_log { CONF_LOG_AUTO, CONF_LOG_MXNET, CONF_LOG_PLAIN, CONF_LOG_N };
enum conf_resume { CONF_RESUME_NONE, CONF_RESUME_AUTO, CONF_RESUME_FILE };
enum conf_summary { CONF_SUMMARY_NONE, CONF_SUMMARY_LAYERS, CONF_SUMMARY_DOT, CONF_SUMMARY_N };

extern const char *const mu_conf_dtype_words[MU_DTYPE_N];
extern const char *const mu_conf_conv_words[CONF_CONV_N];
extern const char *const mu_conf_attention_words[CONF_ATTENTION_N];
extern const char *const mu_conf_placement_words[CONF_PLACEMENT_N];
extern const char *const mu_conf_node_words[MU_KV_NODE_NCCL + 1];
extern const char *const mu_conf_inter_node_words[CONF_INTER_NODE_N];
extern const char *const mu_conf_schedule_words[CONF_SCHEDULE_N];
extern const char *const mu_conf_recompute_words[MU_RECOMPUTE_N];
extern const char *const mu_conf_warmup_words[CONF_WARMUP_N];
extern const char *const mu_conf_decay_words[CONF_DECAY_N];
extern const char *const mu_conf_unit_words[CONF_UNIT_N];
extern const char *const mu_conf_shuffle_words[CONF_SHUFFLE_N];
extern const char *const mu_conf_cache_words[CONF_CACHE_N];
extern const char *const mu_conf_on_nan_words[CONF_ON_NAN_N];
extern const char *const mu_conf_on_error_words[CONF_ON_ERROR_N];
extern const char *const mu_conf_prefix_words[CONF_PREFIX_N];
extern const char *const mu_conf_progress_words[CONF_PROGRESS_N];
extern const char *const mu_conf_log_words[CONF_LOG_N];
extern const char *const mu_conf_summary_words[CONF_SUMMARY_N];
/* "none|accuracy|...|loss|...": metrics of all losses. */
const char *mu_conf_best_metrics(void);

/* ---- the values ---- */

enum { CONF_MAX_STAGES = 256 }; /* as muster/parallel.h has it */

/* The learning rate; lengths in epochs. */
struct conf_schedule {
	enum conf_schedule_kind kind; /* settled: not NONE */
	const char *step_epochs;
	enum conf_warmup warmup_strategy;
	double factor, factor_epoch, power, final_lr, warmup_epochs, warmup_begin_lr, improvement;
	long scale_with_workers, warmup_steps;
};

enum { TRAIN_MAX_LENGTHS = 64, TRAIN_LONGEST = 65536 };

/* Texts. */
struct conf_text {
	enum conf_unit unit;
	const char *vocabulary, *buckets, *prime;	 /* NULL: not set */
	long seq_len;	    /* 0: not set */
	bool lengths_given; /* by --buckets or --seq-len */
	size_t lengths[TRAIN_MAX_LENGTHS], n_lengths; /* of --buckets, or --seq-len alone */
	long sample, top_k;
	double temperature, top_p;
};

/* --export: the model for other programs. */
struct conf_export {
	const char *file; /* NULL: none */
	bool fold, pixels;
	long opset;
};

/* --loss-scale. start 0: chosen by the batch if dynamic, else no scale. */
struct conf_loss_scale {
	bool dynamic;
	double start;
};

#define CONF_SCALE_LEAST 0x1p-16
#define CONF_SCALE_MOST	 0x1p127

/* Facts for the rules: they follow from options and the number of ranks. */
struct conf_facts {
	bool text_or_sample;       /* the training data are text; or --sample */
	bool reads_sequences;      /* the network */
	bool of_values, of_classes; /* targets of the objective */
	bool sequences_or_sample;  /* it does; or --sample */
	bool lacks_rate;	   /* the optimiser has no learning rate */
	bool validation, can_evaluate, evaluates, evaluates_files, parameters;
	bool split;   /* devices have layers of the network each, not samples */
	bool cut_devices, cut_several, cut_ranks; /* N devices, above 1, ranks above 1 */
	bool goes_on; /* resumes from a checkpoint */
	bool past_the_end, warmup_only, final_above, warmup_above, uneven_verify;
	bool dynamic_scale, no_best;
	const char *mode; /* the option that asks for what the run does; NULL: none, it trains */
	bool unwatched, uncomputed; /* a job that does not train, that computes no batches */
	/* Of a job: */
	bool servers, distributed, synchronous;
	bool lockstep;	      /* synchronous, for several workers */
	bool one_by_one;      /* servers, and an update per push */
	bool scaled_lockstep; /* synchronous with a loss scale */
	bool team;	      /* ranks share the layers of a network */
	bool sharded;	      /* dist_sharded */
	bool scaled;	      /* a loss scale */
	bool sums_elsewhere;  /* neither servers nor dist_sharded */
	bool peers;	      /* several workers without servers, not a store of GPUs alone */
};

/*
 * The part of the options that a network, its objective and the reader of its data bring: rows
 * after the fixed ones. The reader is known from the names of the data, before options are parsed;
 * fixed are those rows that say which it is (--text), or that other runs have, too (--vocab and
 * --buckets: --sample, random data). A folder's data, which are seen later, may be pictures, and so
 * may those that a run without data describes (--summary).
 */
enum conf_owner_kind { CONF_NETWORK, CONF_OBJECTIVE, CONF_READER, CONF_OWNERS };
struct conf_owner {
	const struct mu_network *network; /* NULL: not known yet; rows of all networks */
	const struct mu_loss *objective;  /* NULL: not known yet, or of the network's own */
	const struct mu_reader *reader;   /* NULL: not known yet */
	const char *given; /* settled: a setting of it that was given; NULL: none was */
	const struct mu_option *table;    /* fixed rows, then the owners': of struct mu_options */
	size_t n;
	/* As the struct of the network, of the objective, of the reader has them. */
	alignas(max_align_t) char values[MU_SETTINGS_BYTES];
	alignas(max_align_t) char objective_values[MU_SETTINGS_BYTES];
	alignas(max_align_t) char reader_values[MU_SETTINGS_BYTES];
};

struct conf {
	struct conf_facts facts;
	struct conf_owner owner;
	struct mu_kv_type store;    /* of --kv-store */
	bool default_store;	    /* --kv-store is not given */
	const char *network_name;   /* of --network, which may be a file */
	const char *objective;      /* NULL: the network's usual one, or its own */
	enum conf_resume resume_from;
	struct conf_loss_scale scale;
	const char *network, *kv_store, *devices, *work_load_list, *gpus, *initializer;
	enum mu_recompute recompute;
	enum mu_dtype dtype;
	enum conf_conv conv_algo;
	enum conf_attention attention_algo;
	const char *conv_table; /* NULL: not set */
	const char *group2dev, *group2rank; /* NULL: not set */
	struct {
		const char *devices, *ranks; /* --model-parallel, --model-parallel-ranks */
	} cut;
	long model_parallel, model_parallel_ranks; /* settled from these: 0 and 1 without */
	long micro_batches, time_block;
	long dtype_fallback, allow_tf32;
	struct conf_text text;
	long num_layers, num_classes, num_servers, num_epochs, batch_size, global_batch_size,
		batch_per_device;
	const char *image_shape;
	enum conf_placement server_placement;
	enum mu_kv_node node_reduce;
	long shard_gradients;
	enum conf_inter_node inter_node;
	const char *interface; /* NULL: not set */
	struct {
		const char *path, *interface; /* NULL: there is none */
	} site; /* its file, and what that says of the interface */
	const char *optimizer;
	enum conf_decay adam_decay;
	double lr;
	bool network_lr; /* lr is the network's default */
	bool usual_batch;  /* and so is the batch size */
	long num_samples;  /* of the training data; 0: unknown */
	long lowered_from; /* the usual batch size, if there are fewer samples; else 0 */
	struct conf_schedule schedule;
	struct mu_optim_config optim; /* complete after mu_conf_optimizer_settle */
	long wd_gamma, centered;
	const char *load, *fixed, *lr_mult, *wd_mult; /* NULL: not set */
	bool skip_mismatch, evaluate;
	const char *predict; /* NULL: not set */
	struct conf_export onnx;
	double val_split;
	const char *data_dir, *data_train, *data_val;
	const char *model_prefix;
	enum conf_shuffle shuffle;
	const char *dump_batch; /* NULL: not set */
	enum conf_cache data_cache;
	long shuffle_chunk, data_nthreads, prefetch_buffer, skip_bad_records;
	long num_examples, benchmark, num_batches, test_io, load_epoch, save_period;
	long save_steps, keep, save_async, overwrite, verify_steps;
	const char *save_every; /* NULL: not set; else the periods are settled */
	double save_minutes;
	const char *halt_before;       /* NULL: not set */
	enum conf_on_nan on_nan;
	enum conf_on_error on_error;
	const char *config; /* NULL: not set; its options have been read */
	const char *resume, *override; /* override NULL: not set */
	const char *loss;
	double label_smoothing;
	const char *loss_scale; /* NULL: dynamic for float16, else none */
	long loss_scale_window;
	long update_period;
	long max_staleness, sync_period, block_nesterov;
	struct mu_compression compression; /* complete after mu_conf_store_settle */
	long gc_pull;
	double block_momentum, block_lr;
	long disp_batches, top_k, seed, log_time, bucket_bytes, comm_thread, priority, cuda_graph;
	enum conf_prefix log_prefix;
	long verbose;
	enum mu_verbose traffic; /* of --verbose, else of the environment */
	struct mu_limits limits;
	double target_accuracy;
	const char *best_metric; /* NULL: by the network */
	long early_stopping, validate_every, validate_steps, max_val_samples;
	enum conf_summary summary;
	const char *profile; /* "" or a file; NULL: none */
	double co2_factor; /* g/kWh; 0: not reported */
	bool job_comment;
	const char *metrics_file, *tensorboard, *timeline; /* NULL: none */
	long timeline_steps;
	enum conf_progress progress;
	const char *log_file; /* NULL: none */
	enum conf_log log_format;
	bool quiet;
	const char *help; /* NULL: not set; "", or a network */
	bool check, help_all, version, info;
};

extern const struct mu_option mu_conf_options[];
extern const size_t mu_conf_n_options;

/* ---- owners.c, owners_find.c: settings of networks, objectives and readers ---- */

/* Defaults of a table with the settings of owners (network, objective, reader; NULL: with those of
 * all). What o had before is released. */
enum mu_status mu_conf_options_open(struct mu_options *o, struct conf *v,
				    const struct conf_owner *owner);
/* The same for the network and the objective that a command line names; _parse: and its options,
 * where no checkpoint says which objective it is. */
enum mu_status mu_conf_options_find(struct mu_options *o, struct conf *v, int argc,
				    char *const argv[]);
enum mu_status mu_conf_options_parse(struct mu_options *o, struct conf *v, int argc,
				     char *const argv[]);
/* The reader of the data that options name, by their names alone. */
enum mu_status mu_conf_reader(const struct mu_reader **reader, const struct conf *v);
/* mu_network_find for the value of --network. */
enum mu_status mu_conf_network(const struct mu_network **network, const char *name);
/* mu_loss_find for the value of --objective, or NULL: the network's usual one; NULL without a
 * network, or where that has its own. MU_ERR_USAGE: it has its own, and another is named. */
enum mu_status mu_conf_objective(const struct mu_loss **loss, const struct mu_network *network,
				 const char *name);
/* Settings of all three, any of which may be NULL; one of them. */
size_t mu_conf_owned(const struct mu_network *network, const struct mu_loss *objective,
		     const struct mu_reader *reader);
const struct mu_option *mu_conf_owned_row(const struct mu_network *network,
					  const struct mu_loss *objective,
					  const struct mu_reader *reader, size_t i);
/* The owners' rules about their settings. */
enum mu_status mu_conf_owner_check(const struct mu_options *o, const struct conf *v);
/* The row of an option, fixed or of this run's owners; NULL: there is none. */
const struct mu_option *mu_conf_option(const struct conf *v, const char *name);
/* A number among the settings of this run's network; 0: it has no such setting. */
long mu_conf_setting(const struct conf *v, const char *name);
/* Settings of this run's reader, if the one of this name has the same; else NULL. */
const void *mu_conf_reader_settings(const struct conf *v, const char *name);
/* The part of mu_conf_settle about them; pad: as mu_reader.settle takes it. */
enum mu_status mu_conf_reader_settle(const struct mu_options *o, struct conf *v, long pad);
/* --ignore-class of the objective; *ignores false: none. */
size_t mu_conf_ignored(const struct conf *v, bool *ignores);
/* Is it --help or the like? */
bool mu_conf_asks(const struct conf *v);
/* --help, and --help-all with the settings of all owners; --help NETWORK, --help OBJECTIVE. */
enum mu_status mu_conf_help(FILE *stream, bool all);
enum mu_status mu_conf_help_owner(const char *name, FILE *stream);

/* Of the job. */
struct conf_ranks {
	int n, nodes;
};

/*
 * After parsing: set defaults that depend on other options, and check the rules. The values are
 * const afterwards.
 */
enum mu_status mu_conf_settle(const struct mu_options *o, const struct conf_ranks *ranks,
			      struct conf *v);
/* Once roles are known: --num-servers, and the default learning rate of asynchronous stores: the
 * network's over twice the workers. */
void mu_conf_roles_settle(struct conf *v, int workers, int servers);

/* ---- modes ---- */

enum conf_mode {
#define MODE(NAME, option, condition, traits) CONF_MODE_##NAME,
#include "modes.def"
#undef MODE
	CONF_MODE_N
};
enum conf_mode_trait {
	CONF_MODE_HAS_JOB = 1 << 0, /* ranks are workers and servers, and have a log */
	CONF_MODE_TRAINS = 1 << 1,
	CONF_MODE_COMPUTES = 1 << 2,     /* batches: --profile has their time */
	CONF_MODE_DRAWS = 1 << 3,        /* at random: weights, samples, words */
	CONF_MODE_HAS_UPDATES = 1 << 4,  /* of weights, or their memory or plans */
	CONF_MODE_READS_PREFIX = 1 << 5, /* the checkpoint of --model-prefix */
};
enum conf_mode mu_conf_mode(const struct conf *v);
bool mu_conf_mode_has(const struct conf *v, enum conf_mode_trait trait);
/* "test-io": the option that asks for this mode; NULL: none does. A run may ask for several. */
const char *mu_conf_mode_option(const struct conf *v, enum conf_mode mode);

#endif
