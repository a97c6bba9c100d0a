/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: one HDF5 file per save, P-0001.h5 after epoch 0, P-0001-000250.h5 after 250 more
 * steps.
 *
 *	arg/<key>, aux/<key>              parameters, running statistics, plain order
 *	state/<name>/<key>                states of the optimiser; of local SGD's average: block/...
 *	worker-<w>/weights|state/<name>|residual/<key>   arrays of worker w alone
 *	checksums                         see mu_array_file_define
 *
 * Attributes: format, version, the identity of the run (identity.c), the position (struct
 * checkpoint_position) and, if there is one, the table of convolutions (conv_table.c). A file
 * without the attribute format holds parameters only.
 *
 * Saving (saver.h): all workers, or for dist_async inside an epoch only worker 0, copy a share of
 * the keys from the store to memory (snapshot.c). Worker 0 creates the file under a temporary name
 * and sends the places of the arrays to the others (new_file.c); a thread of each worker writes its
 * own arrays (writer.c). After a vote that all parts are on the disk, worker 0 renames the file
 * (saver.c). Training waits for the copy only.
 */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include <time.h>

#include <muster/kvstore.h>
#include <muster/metrics.h>
#include <muster/storage.h>

#include "net/plan.h"
#include "conf/conf.h"
#include "engine/engine.h"

enum { CHECKPOINT_VERSION = 1, CHECKPOINT_PATH = 1024, CHECKPOINT_NAME = 256 };
enum { CHECKPOINT_SUMS = 4096 }; /* bytes of a loss's sums as text */

/*
 * The run ends without a checkpoint, and another begins in the same processes from the newest one
 * (train/recovery). Passed on from one run to the next; path and in_a_row are worker 0's.
 */
enum { CHECKPOINT_MOST_BACK = 10, CHECKPOINT_MOST_IN_A_ROW = 3 };
struct checkpoint_rollback {
	int times;          /* so far */
	const char *option; /* that asks for it, of the last time */
	bool skips;         /* the next run begins at epoch and step; else where the file is */
	size_t epoch, step; /* where the last run ended */
	char path[CHECKPOINT_PATH]; /* the newest file, saved or resumed from; "": none */
	char before[CHECKPOINT_PATH]; /* the one before it, in this job; it may be gone */
	char from[CHECKPOINT_PATH]; /* where the last run began */
	int in_a_row;               /* times without skips from this file */
};

/* Where in a run a checkpoint is. */
struct checkpoint_position {
	size_t epoch, step;    /* completed epochs; completed steps of the next */
	size_t window_first;   /* step at which the next line of the log begins */
	size_t workers, batch; /* batch: samples of a step of all workers */
	double progress;       /* samples that the store has counted */
	uint64_t updates;
	double last_lr;
	struct mu_metrics total, window; /* of all workers: of the epoch, since the last line */
	struct checkpoint_plateau {
		double best, rate; /* best value; factor of the learning rate, 0: none yet */
	} plateau;
	struct checkpoint_best {
		char metric[32]; /* of --best-metric */
		double value;
		size_t epoch;  /* completed epochs at the best validation; 0: none yet */
		size_t since;  /* validations since */
		bool pending;  /* the last epoch has not been validated: the run was halted */
		bool improved; /* the last validation is the best; not in files */
	} best;
	struct checkpoint_loss_scale {
		double scale;          /* 0: none */
		size_t good, left_out; /* good batches since its last change; skipped ones in all */
	} loss_scale;
};

/* ---- files.c ---- */

/* step 0: after an epoch. */
void mu_checkpoint_path(const char *prefix, size_t epoch, size_t step, char *text, size_t nbytes);
/*
 * The checkpoints of --model-prefix, newest first: by epoch and step, not by time. Files further in
 * training than P-latest are an earlier run's and come last, unless they are younger than the link:
 * then a kill prevented its update.
 */
struct checkpoint_files {
	size_t n;
	struct checkpoint_file {
		char path[CHECKPOINT_PATH];
		size_t epoch, step;
		bool earlier; /* of an earlier run */
		struct timespec changed;
	} * of;
};
enum mu_status mu_checkpoint_files_find(const char *prefix, struct checkpoint_files *files);
/* Warn of a file whose time is in the future. */
void mu_checkpoint_files_warn(const struct checkpoint_files *files);
void mu_checkpoint_files_release(struct checkpoint_files *files);
struct mu_checkpoint_lock;
/* Remove temporary files of runs that ended during a save. */
void mu_checkpoint_files_sweep(const char *prefix, const struct mu_checkpoint_lock *lock);
/*
 * Point P-latest to path, and P-best to the file of the best epoch (0: none); without that file
 * there is no P-best. Remove files beyond --keep N, but these.
 */
enum mu_status mu_checkpoint_files_settle(const struct conf *v, const char *path,
					  size_t best_epoch);

/* ---- describe.c: a checkpoint as the description of its model and the model's input ---- */

/* Options that a file may set, before the settings of network, objective and reader; the first ones
 * cannot differ from the file's. */
enum checkpoint_described {
	CHECKPOINT_NETWORK,
	CHECKPOINT_OBJECTIVE,
	CHECKPOINT_NUM_LAYERS,
	CHECKPOINT_NUM_CLASSES,
	CHECKPOINT_IMAGE_SHAPE,
	CHECKPOINT_TEXT,
	CHECKPOINT_VOCAB,
	CHECKPOINT_BUCKETS,
	CHECKPOINT_SEQ_LEN,
	CHECKPOINT_N_DESCRIBED,
	CHECKPOINT_MOST_DESCRIBED = CHECKPOINT_N_DESCRIBED + 3 * MU_MAX_SETTINGS,
};
struct checkpoint_description {
	char path[CHECKPOINT_PATH]; /* "": no file, or one that says nothing */
	char network[64], input[16];
	bool parameters; /* the file is no checkpoint of a run: it holds parameters alone */
	bool bytes;      /* its vocabulary is one of bytes */
	char of[CHECKPOINT_MOST_DESCRIBED][CHECKPOINT_PATH]; /* "": not in the file */
	char argument[CHECKPOINT_MOST_DESCRIBED][CHECKPOINT_PATH + 96];
	char taken[1024], differs[1024]; /* "name value, ...": for the log */
};
/* The objective of a run: the option's, else that of a checkpoint of the same network, else the
 * network's usual one. */
enum mu_status mu_checkpoint_objective(const struct checkpoint_description *description,
				       const struct conf *v, const struct mu_network *network,
				       const struct mu_loss **loss);
/*
 * Of the file that the options name; rank 0 reads it. An error if it cannot be read and no network
 * is given. Collective over comm.
 */
enum mu_status mu_checkpoint_description_read(struct checkpoint_description *d,
					      const struct mu_options *o, const struct conf *v,
					      MPI_Comm comm);
/*
 * Sets the options that were not given; v: their values. *d must outlive them. MU_ERR_USAGE for an
 * option that contradicts the file.
 */
enum mu_status mu_checkpoint_description_apply(struct checkpoint_description *d,
					       struct mu_options *o, const struct conf *v);
/* The words of a checkpoint or of a file of words, or the tokenizer of a checkpoint; the other one
 * is NULL. */
enum mu_status mu_checkpoint_words_read(const char *path, struct mu_vocabulary **vocabulary,
					struct mu_tokenizer **tokenizer);

/* ---- classes.c: names of classes ---- */

struct checkpoint_classes {
	size_t n; /* 0: the file has none */
	const char **name;
	char *text;
};
/* Not collective. Release it afterwards. */
/* *same: the file has no tokenizer, or this one. */
enum mu_status mu_checkpoint_tokenizer_compare(const char *path, const struct mu_tokenizer *t,
					       bool *same);
enum mu_status mu_checkpoint_classes_read(struct checkpoint_classes *classes, const char *path);
void mu_checkpoint_classes_release(struct checkpoint_classes *classes);

/* ---- conv_table.c ---- */

/*
 * The table of convolutions of the checkpoint from which the run resumes, unless the options name
 * an algorithm; "" if there is none. Worker 0.
 */
enum mu_status mu_checkpoint_conv_find(const struct conf *v, const struct checkpoint_rollback *back,
				       struct engine_conv *c);

/* ---- identity.c ---- */

/* "cpu: oneDNN 2.6.3, avx2": what the first device computes by, without its threads. */
void mu_checkpoint_computed_by(const struct mu_engine *e, char *text, size_t nbytes);

/* ---- resume.c ---- */

/* What a run resumes from. */
struct checkpoint_resume {
	char path[CHECKPOINT_PATH]; /* "": a new run */
	bool whole;                 /* false: the file holds parameters only */
	struct checkpoint_position at;
};

/*
 * The file of --load-epoch or --resume, or back->path after a rollback; back->path is set to it.
 * The caller frees *resume. examples: samples per epoch of the whole job. Collective over all
 * ranks, which get the same result.
 */
enum mu_status mu_checkpoint_resume_find(const struct mu_engine *e, size_t examples,
					 struct checkpoint_rollback *back,
					 struct checkpoint_resume **resume);
/* Weights into e->kv, by worker 0; after the store has sent them to all workers, the states:
 * collective over workers. */
enum mu_status mu_checkpoint_resume_weights(const struct mu_engine *e,
					    const struct checkpoint_resume *resume);
enum mu_status mu_checkpoint_resume_states(const struct mu_engine *e,
					   const struct checkpoint_resume *resume);
/* load.c, --load: the weights that fit, into e->kv. Worker 0. */
enum mu_status mu_checkpoint_load_weights(const struct mu_engine *e);

#endif
