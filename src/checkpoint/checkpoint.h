/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: one HDF5 file per save, P-0001.h5 after epoch 0, P-0001-000250.h5 after 250 more
 * steps.
 *
 *	arg/<key>, aux/<key>              parameters, running statistics, plain order
 *	state/<name>/<key>                states of the optimiser; of local SGD's average: block/...
 *	worker-<w>/weights|state/<name>|residual/<key>   what worker w has for itself
 *	checksums                         see mu_array_file_define
 *
 * Attributes: format, version, the record (identity.c), the position (struct checkpoint_position)
 * and, if there is one, the table of convolutions (conv_table.c).
 * Files without the attribute format are parameters alone.
 *
 * Saving: all workers, or for dist_async inside an epoch worker 0 alone, take a snapshot of the
 * store, each of a share of the keys. Worker 0 makes the file under a temporary name and tells the
 * others where the arrays lie; a thread of each writes its own. When all have told that their part
 * is on the disk, worker 0 renames the file. Training waits for the copy to memory alone.
 */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include <limits.h>
#include <time.h>

#include <muster/kvstore.h>
#include <muster/metrics.h>
#include <muster/net.h>
#include <muster/storage.h>

#include "conf/conf.h"
#include "engine/engine.h"

enum { CHECKPOINT_VERSION = 1, CHECKPOINT_PATH = 1024, CHECKPOINT_NAME = 256 };

/*
 * --on-nan rollback: the run ends without a checkpoint and another begins in the same processes,
 * with weights and states of its newest file and behind the batch that was not finite. What passes
 * from one to the other, on worker 0; times on all ranks.
 */
#define CHECKPOINT_MOST_BACK 10
struct checkpoint_rollback {
	int times;                  /* so far */
	size_t epoch, step;         /* where the next run goes on */
	char path[CHECKPOINT_PATH]; /* what was saved last, or resumed from; "": nothing */
};

/* ---- record.c: what the results depend on, as texts ---- */

#define CHECKPOINT_RECORD_MAX 64

struct checkpoint_record {
	size_t n;
	bool full;   /* more were to be added */
	bool trains; /* the run does; else it evaluates */
	struct checkpoint_record_item {
		const char *name; /* an option's, where there is one */
		enum conf_record kind;
		char text[192];
	} of[CHECKPOINT_RECORD_MAX];
};

/* Of this run; after the plans are made. On workers, not collective. */
enum mu_status mu_checkpoint_record_make(const struct mu_engine *e,
					 struct checkpoint_record *record);
enum mu_status mu_checkpoint_record_write(const struct checkpoint_record *record,
					  struct mu_array_file *file);
/* override: names, with commas between them, or "all". MU_ERR_USAGE if one is not in the record. */
enum mu_status mu_checkpoint_record_check_override(const struct checkpoint_record *record,
						   const char *override);
/*
 * Compare with a file's. MU_ERR_FORMAT for another identity, *foreign is true then. Else what
 * differs, as a text; "" if nothing.
 */
enum mu_status mu_checkpoint_record_compare(const struct checkpoint_record *record,
					    struct mu_array_file *file, const char *path,
					    const char *override, bool *foreign, char *differs,
					    size_t nbytes);

/* ---- checkpoint.c: names, positions, arrays ---- */

/* Where in a run a checkpoint is. */
struct checkpoint_position {
	size_t epoch, step; /* epochs that are done; steps of the next that are done */
	size_t window_first;
	size_t workers, batch; /* workers; samples of a step of all of them */
	double progress;       /* samples that the store has counted */
	uint64_t updates;
	double last_lr;
	struct mu_metrics total, window; /* of the epoch so far; of all workers */
	struct checkpoint_plateau {
		double best, rate; /* lowest perplexity; of the learning rate, 0: none yet */
	} plateau;
	struct checkpoint_loss_scale {
		double scale;          /* 0: none */
		size_t good, left_out; /* batches since its last change; in all */
	} loss_scale;
};

/* What resume.c found; {0}: a new run. */
struct checkpoint_resume {
	char path[CHECKPOINT_PATH]; /* "": none */
	bool whole;                 /* not parameters alone */
	struct checkpoint_position at;
};

/* Arrays of a file, in their order. */
struct checkpoint_array {
	enum { CHECKPOINT_ARRAY_WEIGHTS, CHECKPOINT_ARRAY_STATE, CHECKPOINT_ARRAY_OWN } of;
	int which; /* state, or array of the worker's own */
	int worker;
	size_t key;
};
struct checkpoint_arrays {
	size_t n;
	struct checkpoint_array *all;
	int n_states;
	const char *states[MU_KV_MAX_STATES];
	struct mu_kv_own own;
};
/* own: with those that workers have for themselves. */
enum mu_status mu_checkpoint_arrays_make(const struct mu_engine *e,
					 struct checkpoint_arrays *arrays, bool own);
void mu_checkpoint_arrays_release(struct checkpoint_arrays *arrays);
void mu_checkpoint_array_name(const struct mu_engine *e, const struct checkpoint_arrays *arrays,
			      const struct checkpoint_array *array, char *text, size_t nbytes);

/* Of a parameter, or a running statistic: "arg/fc1_weight". */
void mu_checkpoint_weights_name(const struct mu_slice *slice, char *text, size_t nbytes);

/* step 0: after an epoch. */
void mu_checkpoint_path(const char *prefix, size_t epoch, size_t step, char *text, size_t nbytes);
enum mu_status mu_checkpoint_position_write(const struct checkpoint_position *at,
					    struct mu_array_file *file);
enum mu_status mu_checkpoint_position_read(struct checkpoint_position *at,
					   struct mu_array_file *file, const char *path);

/*
 * The checkpoints of --model-prefix, newest first: by epoch and step, whatever the clocks of hosts
 * say. Files further than P-latest are an earlier run's, and come last, unless they are younger
 * than the link, which a kill kept from being moved.
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
/* Of a file that was changed in the future. */
void mu_checkpoint_files_warn(const struct checkpoint_files *files);
void mu_checkpoint_files_release(struct checkpoint_files *files);
/* Remove temporary files of runs that were stopped while they saved, an hour ago or more. */
void mu_checkpoint_files_sweep(const char *prefix);
/* Point P-latest to path, and remove what --keep N does not keep. */
enum mu_status mu_checkpoint_files_settle(const struct conf *v, const char *path);

/* ---- conv_table.c ---- */

/*
 * The table of convolutions of the checkpoint that the run goes on from, if it goes on and names no
 * algorithm; "" if there is none. Worker 0.
 */
enum mu_status mu_checkpoint_conv_find(const struct conf *v, const struct checkpoint_rollback *back,
				       struct engine_conv *c);

/* ---- writer.c: the thread that writes ---- */

struct checkpoint_piece {
	const float *data;
	size_t nbytes;
	uint64_t offset, checksum; /* where it goes, and where its checksum does */
};
/* Write pieces into the file that is at path, and bring it to the disk. */
enum mu_status mu_checkpoint_pieces_write(const char *path, const struct checkpoint_piece *pieces,
					  size_t n);

/* A thread that calls fn. _end waits for it, frees, and gives what fn did. */
struct checkpoint_writer;
typedef enum mu_status checkpoint_writer_fn(void *context);
enum mu_status mu_checkpoint_writer_begin(struct checkpoint_writer **out, checkpoint_writer_fn *fn,
					  void *context);
bool mu_checkpoint_writer_done(struct checkpoint_writer *w);
enum mu_status mu_checkpoint_writer_end(struct checkpoint_writer *w);

/* ---- resume.c ---- */

/*
 * What to go on from, by --load-epoch and --resume, or back->path after a rollback; back->path is
 * set to it. *resume is the caller's to free. examples: per epoch, of the whole job. Collective
 * over all ranks; all find the same.
 */
enum mu_status mu_checkpoint_resume_find(const struct mu_engine *e, size_t examples,
					 struct checkpoint_rollback *back,
					 struct checkpoint_resume **resume);
/* The weights, into e->kv, by worker 0; afterwards all the rest, collective over workers. */
enum mu_status mu_checkpoint_resume_weights(const struct mu_engine *e,
					    const struct checkpoint_resume *resume);
enum mu_status mu_checkpoint_resume_states(const struct mu_engine *e,
					   const struct checkpoint_resume *resume);
/* Room for the largest array in plain order. */
enum mu_status mu_checkpoint_plain_buffer(const struct mu_plan *plan, float **out);

/* load.c, --load: the weights that fit, into e->kv, by worker 0. */
enum mu_status mu_checkpoint_load_weights(const struct mu_engine *e);

#endif
