/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input: samples for the net. A reader (one const table each) returns records by number; mu_input
 * partitions, shuffles and batches them. Threads prefetch and decode records of files that need
 * decoding (mu_pipeline); other readers run when a batch is requested.
 *
 * An epoch has T = ceil(n / (N b)) steps, the same on all workers. With shuffling, (seed, epoch)
 * determine one permutation of all n records. Step t is its slice [t N b, (t + 1) N b), and worker
 * r reads the r-th run of b. The short last step is divided evenly in rank order: of m remaining
 * samples worker r reads [m r / N, m (r + 1) / N) (integer division); this may be none. Batches are
 * never filled up with samples of another epoch (MXNet's round_batch): every record counts once per
 * epoch.
 *
 * Shuffling by chunks keeps runs of records together, for disks with slow seeks: chunks of
 * shuffle_chunk consecutive records come in random order, and so do the records within each chunk.
 *
 * Sequences of words are grouped by length: sequences of up to 8 words, say, are padded to 8. All
 * samples of a step are of one group, so all workers process sequences of one length. A group of n'
 * records has ceil(n' / (N b)) steps, of which the last may be short. Shuffling permutes the
 * records within their groups and the steps over the epoch.
 *
 * Not collective, except mu_input_cache: every worker reads for itself.
 */
#ifndef MUSTER_INPUT_H
#define MUSTER_INPUT_H

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/shape.h>
#include <muster/storage.h>

MU_BEGIN_C

struct mu_input;
struct mu_input_thread;
struct mu_tokenizer;
struct mu_vocabulary;
struct mu_pipeline;

/* A source of records. */
struct mu_reader {
	const char *name; /* "arrays", "idx", "cifar", "records", "text", "tokens", "synthetic" */
	const char *help;
	const char *files;  /* file names that find looks for; NULL: reads no files */
	/* Settings of the reader alone: as options of a run that reads such data
	 * (muster/base.h), in this struct of settings_nbytes; with it members without an option.
	 * The rows end with name NULL, the rules with option NULL. */
	const struct mu_option *settings;
	const struct mu_option_rule *rules;
	const char *whose;      /* they are, if several readers have them: "colour images" */
	size_t settings_nbytes; /* 0: it has none */
	/* After the options were parsed: values that follow from others. pad: pixels around images
	 * before a random crop that the network is trained with. Messages begin with the name of a
	 * setting. NULL: none follow. */
	enum mu_status (*settle)(void *settings, const struct mu_options *o, long pad);
	/* Why a setting has no effect on these data; NULL: it has. Or NULL: all have. */
	const char *(*idle)(const struct mu_input *in, const char *setting);
	bool colour_images;     /* its settings are struct mu_picture_settings; uses config.shape */
	bool knows_classes; /* config.classes may be 0 */
	bool threads;       /* reading is slow enough for threads */
	bool bad_records;   /* one that cannot be read leaves the others good: skip_bad_records */
	/* Number of data sets of this kind in a folder; lists one file of each, as "a, b". */
	size_t (*find)(const char *dir, char *found, size_t nbytes);
	/* Training samples in a folder, or a file, without reading them; NULL: unknown. */
	enum mu_status (*count)(const char *dir, size_t *n);
	/* Sets in->n and in->classes, and declares the fields of a sample, an input first. */
	enum mu_status (*open)(struct mu_input *in);
	void (*close)(struct mu_input *in);
	/* Are the files unchanged since they were opened? NULL: the data is in memory. */
	enum mu_status (*check)(const struct mu_input *in);
	/* See mu_input_cache; NULL: every worker holds the data in memory. */
	enum mu_status (*cache)(struct mu_input *in, const struct mu_topology *t, size_t *bytes);
	/* For the log: format, place and values of the data. */
	void (*describe)(const struct mu_input *in, char *text, size_t nbytes);
	/* Where record i is, for messages and predictions; of images without labels their path.
	 * NULL: i alone says. */
	void (*name_record)(const struct mu_input *in, size_t i, char *text, size_t nbytes);
	/* Read one sample, float32, plain (c, h, w), and its label_width labels. Any thread. */
	enum mu_status (*read)(const struct mu_input *in, struct mu_input_thread *thread,
			       size_t record, float *data, float *labels);

	/* See mu_input_look. hash: adds the bytes of a sample and its labels, as they are stored.
	 * NULL: random data. */
	enum mu_status (*hash)(const struct mu_input *in, struct mu_input_thread *thread,
			       size_t record, uint64_t *h);
	/* Bytes to read for a record, at most; NULL: the data is in memory. */
	size_t (*bound)(const struct mu_input *in, size_t record);
	/* Adds labels, names and sizes of files, and when they changed; NULL: nothing is known
	 * but the records. */
	void (*hash_files)(const struct mu_input *in, uint64_t *listing, uint64_t *times);
};

/*
 * What the data are, as hashes: to compare them with those of another rank, or of an earlier run.
 * Of large data some records are hashed, at equal distances; of smaller ones all.
 */
struct mu_input_contents {
	uint64_t records; /* samples and labels, in order */
	uint64_t listing; /* labels, names and sizes of files, as far as no record must be read */
	uint64_t times;   /* of changes of the files */
	size_t n, hashed; /* records; those that were hashed. n 0: no mu_input_look yet */
};

enum mu_input_part { MU_INPUT_TRAIN, MU_INPUT_VALIDATE };

struct mu_input_config {
	const char *reader; /* "idx", "cifar", "records", "text", "tokens" or "synthetic" */
	enum mu_input_part part;
	const char *dir;       /* idx, cifar: folder of the files that the reader's `files` names */
	const char *paths;     /* records: as for mu_records_open; arrays, text: a file; tokens:
				  files, "a.bin;b.bin" */
	/* What this reader alone needs, copied by mu_input_open: a struct mu_array_settings
	 * (muster/arrays.h), _picture_settings (pictures.h), _text_settings (text.h),
	 * _token_settings (tokens.h), _synthetic_settings (below). NULL: all 0. */
	const void *settings;
	double held_out;       /* share of the records, in (0, 1), for validation alone: the part
				  validate has these, the part train the others; 0 = none */
	size_t num_examples;   /* use the first num_examples records only; 0 = all */
	struct mu_shape shape; /* of a sample. Colour images: after augmentation; without
				  dimensions: the whole image */
	size_t classes;     /* labels must be below this; 0: the number in the files (cifar,
			       records) */
	size_t label_width; /* labels per sample, 0 = 1 */
	size_t batch;       /* b */
	int worker, num_workers; /* r, N */
	bool shuffle;
	size_t shuffle_chunk; /* consecutive records that stay together, 0 = none */
	uint64_t seed;
	int threads;           /* threads that read and decode; 0: the caller of mu_input_read */
	size_t prefetch;       /* batches to prefetch, >= 1 with threads */
	bool bytes; /* return samples as bytes where that changes no bit of them */
	bool any_size;         /* there may be fewer records than a batch: no step then */
	bool skip_bad_records; /* omit them from batches, and report them in the log */
	bool unlabelled;       /* records, arrays: samples without labels are no error */
	bool values;           /* arrays: integers among the targets are no classes either;
				  synthetic: targets are numbers from 0 to 1 */
};

/* Settings of the reader "synthetic". */
struct mu_synthetic_settings {
	enum mu_number number; /* INT32: samples are integers below classes */
};

/* Records [first, first + n): sequences of up to `length` steps, padded to it. */
struct mu_input_group {
	size_t first, n, length;
};

/* What its reader found out about the data; 0: not known, or not of these data. */
struct mu_input_about {
	bool in_memory;          /* all data: nothing is read from files any more */
	bool separate;           /* records are files of their own */
	struct mu_shape stored;  /* of the images in the files, (c, h, w); without dimensions: they
				   have several */
	const char *targets;     /* where they are, if a file of their own may have them */
	const char *columns;     /* names of a table's input columns, "a,b" */
	const char *target_columns; /* and of its targets */
	const char *not_classes; /* why targets are values: "sample 3 has -1" */
	const char *const *class_names; /* n_class_names of them */
	size_t n_class_names;
	const struct mu_vocabulary *vocabulary; /* of a text */
	const struct mu_tokenizer *tokenizer;   /* of training, of tokens */
	size_t used;  /* classes that occur among the targets of arrays, without the ignored one */
	bool ignored; /* that one occurs, too */
};

struct mu_input {
	struct mu_input_config config;
	const struct mu_reader *ops;
	void *settings; /* config.settings */
	void *impl;
	size_t n; /* records */
	struct mu_field fields[MU_MAX_FIELDS]; /* n_fields of them; with groups: of the longest */
	size_t n_fields;
	struct mu_input_about about;
	size_t classes; /* of targets that are values: how many a sample has, (classes, ...) */
	const struct mu_input_group *groups; /* n_groups of them, by ascending length; NULL: all
						records have one shape */
	size_t n_groups;
	bool unlabelled;                   /* labels are 0 and mean nothing */
	struct mu_input_contents contents; /* after mu_input_look */
	size_t steps;    /* T */
	uint32_t *records; /* n numbers in the files; NULL: those from 0 on */
	uint32_t *order; /* permutation of the current epoch */
	uint32_t *step_order; /* with groups: permutation of its steps */
	uint32_t epoch;
	size_t n_bad; /* unreadable records of this worker in this epoch */
	struct mu_pipeline *pipeline;   /* NULL without threads */
	struct mu_input_thread *thread; /* of the calling thread */
	uint8_t *marks;
};

/*
 * The samples of one worker in one step. With skip_bad_records count can be lower than
 * mu_input_count, even 0. The remaining places then hold copies of samples of the batch, so that
 * batch-norm sees images there, or 0 if there are none; they must not be counted.
 */
struct mu_input_batch {
	float *data;   /* (count, c, h, w); with groups (count, 1, length, 1) */
	float *labels; /* (count, sizes of the target); (count, length) */
	uint32_t *ids; /* (count): record numbers */
	size_t count;
	/* With config.bytes: space for samples as bytes; NULL: the caller needs floats. are_bytes:
	 * all samples are in bytes, none in data. */
	uint8_t *bytes;
	bool are_bytes;
};

/* Find the reader for the files of a folder. MU_ERR_IO: no such folder, no known files;
 * MU_ERR_USAGE: files of more than one kind. Messages list the names that were looked for. */
enum mu_status mu_input_detect(const char *dir, const struct mu_reader **reader);
/* The reader of this name. MU_ERR_USAGE: there is none. */
enum mu_status mu_input_reader(const char *name, const struct mu_reader **reader);
/* Reader i of all; NULL: there are fewer. */
const struct mu_reader *mu_input_reader_at(size_t i);
/* Errors: missing, truncated or corrupt files; a label out of range (file, record, label); fewer
 * records than N b ("batch larger than a worker's part"). */
enum mu_status mu_input_open(struct mu_input *in, const struct mu_input_config *config);
void mu_input_close(struct mu_input *in);
/* Bytes of the prefetched batches, 0 without threads. */
size_t mu_input_prefetch_bytes(const struct mu_input *in);
/*
 * From now on read the records, still encoded, from memory that the ranks of this node share; each
 * worker of the node copies its share of the records from the files now. *bytes: size on this node;
 * 0: no room in /dev/shm, records are read from the files as before. in: NULL on ranks without
 * data. MU_ERR_USAGE: data that every worker holds in memory (idx, cifar, synthetic). Call before
 * the first epoch. Collective over t->node.
 */
enum mu_status mu_input_cache(struct mu_input *in, const struct mu_topology *t, size_t *bytes);
/* Set in->contents, by reading 256 MiB of files at most (random data: no effect). Not with a
 * pipeline at work: before the first epoch. */
enum mu_status mu_input_look(struct mu_input *in);
/* Compute the permutation of the epoch, and start to prefetch. MU_ERR_IO: the files have changed
 * since they were opened. */
enum mu_status mu_input_epoch(struct mu_input *in, uint32_t epoch);
/* Samples of this worker in step t, bad records included. */
size_t mu_input_count(const struct mu_input *in, size_t step);
/* Group of step t of the current epoch; 0 without groups. */
size_t mu_input_group(const struct mu_input *in, size_t step);
/* Largest number of samples of this worker in a short step of the group; 0: all steps are full. */
size_t mu_input_rest(const struct mu_input *in, size_t group);
/* The first field with this role; without dimensions: there is none. */
const struct mu_field *mu_input_field(const struct mu_input *in, enum mu_field_role role);
/* Shape of the input; labels of a sample, the longest. */
const struct mu_shape *mu_input_shape(const struct mu_input *in);
size_t mu_input_width(const struct mu_input *in);
/* Can batches have the input in bytes? */
bool mu_input_has_bytes(const struct mu_input *in);
/* Elements of a sample of a group; labels of a sample. */
size_t mu_input_sample(const struct mu_input *in, size_t group);
size_t mu_input_labels(const struct mu_input *in, size_t group);
/* Can mu_input_read return at once? Waits at most `seconds` for that. */
bool mu_input_wait(struct mu_input *in, size_t step, double seconds);
/*
 * Read this worker's part of step t into the arrays of batch, which have space for config.batch
 * samples, and set count. Reading steps in order is fastest. Errors of the reader name file and
 * record.
 */
enum mu_status mu_input_read(struct mu_input *in, size_t step, struct mu_input_batch *batch);
/*
 * The same without a copy if threads prefetch: the pointers of batch are set to the threads'
 * arrays, which do not change until the next call with `in`. One batch less is prefetched
 * meanwhile.
 */
enum mu_status mu_input_borrow(struct mu_input *in, size_t step, struct mu_input_batch *batch);

MU_END_C

#endif
