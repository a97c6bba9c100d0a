/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input: samples for the net. A reader (one const table each) gives records by index; mu_input
 * partitions, shuffles and batches them.
 *
 * An epoch has T = ceil(n / (N b)) steps, the same on all workers. One permutation of all n records
 * per (seed, epoch) when shuffling; step t is its slice [t N b, (t + 1) N b), worker r takes the
 * r-th run of b. The short last step is cut evenly in rank order: with m samples left, worker r
 * gets samples [m r / N, m (r + 1) / N) of them (integer division); it may get none.
 */
#ifndef MUSTER_INPUT_H
#define MUSTER_INPUT_H

#include <muster/base.h>
#include <muster/storage.h>

struct mu_input;

/* A source of records. */
struct mu_reader {
	const char *name; /* "idx", "cifar", "synthetic" */
	const char *help;
	const char *files;  /* the names that find looks for; NULL: reads no files */
	bool colour_images; /* takes shape, mean and std from the config */
	bool knows_classes; /* config.classes may be 0 */
	/* Number of data sets of this kind in a folder; names one file of each, as "a, b". */
	size_t (*find)(const char *dir, char *found, size_t nbytes);
	/* fills in->n, in->shape (c, h, w), in->classes */
	enum mu_status (*open)(struct mu_input *in);
	void (*close)(struct mu_input *in);
	/* What the data is, where it lies, what its values mean: for the log. */
	void (*describe)(const struct mu_input *in, char *text, size_t nbytes);
	/* one sample, float32, plain (c, h, w), and its labels: label_width of them */
	void (*read)(const struct mu_input *in, size_t record, float *data, float *labels);
};

enum mu_input_part { MU_INPUT_TRAIN, MU_INPUT_VALIDATE };

struct mu_input_config {
	const char *reader; /* "idx", "cifar" or "synthetic" */
	enum mu_input_part part;
	const char *dir;       /* of the files that the reader's `files` names */
	size_t num_examples;   /* the first so many records only; 0 = all */
	size_t shape[3];       /* c, h, w. synthetic: of a sample. Colour images: this much is cut
				  from the middle; all 0 = the whole image */
	float mean[3], std[3]; /* colour images: a value is (pixel - mean) / std, per channel;
				  std > 0 */
	size_t classes; /* labels must be below; 0: as many as files of this kind have (cifar) */
	size_t label_width; /* labels per sample, 0 = 1; only synthetic data have more than one */
	size_t batch;       /* b */
	int worker, num_workers; /* r, N */
	bool shuffle;
	uint64_t seed;
};

struct mu_input {
	struct mu_input_config config;
	const struct mu_reader *ops;
	void *impl;
	size_t n; /* records */
	size_t shape[3];
	size_t classes;
	size_t steps;    /* T */
	uint32_t *order; /* permutation of the present epoch */
	uint32_t epoch;
};

/*
 * The reader for the files that a folder holds. Errors, which list what was looked for: no such
 * folder, no such files (MU_ERR_IO), files of more than one kind (MU_ERR_USAGE). Not collective.
 */
enum mu_status mu_input_detect(const char *dir, const struct mu_reader **reader);
/*
 * Errors: missing, truncated or corrupt files, a label out of range (file, record, label), fewer
 * records than N b ("batch larger than a worker's part"). Not collective: every worker reads for
 * itself.
 */
enum mu_status mu_input_open(struct mu_input *in, const struct mu_input_config *config);
void mu_input_close(struct mu_input *in);
/* Make the epoch's permutation. */
void mu_input_epoch(struct mu_input *in, uint32_t epoch);
/* Samples of this worker in step t. */
size_t mu_input_count(const struct mu_input *in, size_t step);
/* Fill data (count samples, plain), labels (label_width per sample) and ids of this worker's part
 * of step t; returns count. */
size_t mu_input_read(struct mu_input *in, size_t step, float *data, float *labels, uint32_t *ids);

#endif
