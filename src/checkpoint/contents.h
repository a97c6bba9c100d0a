/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds: the identity of the run, arrays, a position. */
#ifndef CHECKPOINT_CONTENTS_H
#define CHECKPOINT_CONTENTS_H

#include "checkpoint.h"

/* ---- identity.c, compare.c: what the results of a run depend on, as texts ---- */

#define CHECKPOINT_IDENTITY_MAX 96

struct checkpoint_identity {
	const struct conf *conf;
	size_t n;
	bool full;   /* there was no room for more */
	bool trains; /* else the run evaluates */
	struct checkpoint_identity_item {
		const char *name; /* of the option, if it is one */
		enum mu_option_record kind;
		const char *before; /* the value of files without it; NULL: every file has it */
		char text[192];
	} of[CHECKPOINT_IDENTITY_MAX];
};

/* Of this run, after its plans are made. Workers only; not collective. */
enum mu_status mu_checkpoint_identity_make(const struct mu_engine *e,
					   struct checkpoint_identity *identity);
enum mu_status mu_checkpoint_identity_write(const struct checkpoint_identity *identity,
					    struct mu_array_file *file);
#define CHECKPOINT_CLASS_NAMES "class-names" /* compared by classes.c */
#define CHECKPOINT_COLUMNS "columns"         /* compared by columns.c */
#define CHECKPOINT_TARGETS "target-columns"
#define CHECKPOINT_WORDS "vocabulary-words"
#define CHECKPOINT_TOKENIZER "tokenizer"     /* compared by words.c */
/* mu_input_contents: records for training, for validation; and the rest of it, of both. */
#define CHECKPOINT_DATA_CONTENTS "data-contents"
#define CHECKPOINT_DATA_VALIDATION "data-validation"
#define CHECKPOINT_DATA_FILES "data-files"
#define CHECKPOINT_PLACEMENT "placement" /* of the ranks on nodes */
#define CHECKPOINT_STRUCTURE "structure" /* names, shapes and rules of the arrays, hashed */
/* Is the name in the list of --override? */
bool mu_checkpoint_identity_overrides(const char *override, const char *name);
/* override: names separated by commas, or "all". MU_ERR_USAGE for a name that is not here. */
enum mu_status mu_checkpoint_identity_check_override(const struct checkpoint_identity *identity,
						     const char *override);
/* schedule_text.c: the item lr-schedule in words; as it is, if it has another form. */
void mu_checkpoint_schedule_text(const char *item, char *text, size_t nbytes);
struct checkpoint_comparison {
	struct mu_array_file *file;
	const char *path, *override;
	const struct mu_plan *plan; /* of this run */
};
struct checkpoint_difference {
	bool foreign;    /* what needs --override */
	bool compared;   /* the file has the contents of its data */
	bool validation; /* the validation data are others, or the file's are not known */
	bool unknown;    /* the latter */
	bool parts;      /* only one of the two has validation data */
	bool files;      /* the files of the data have other times, names, sizes or labels */
	bool counts;     /* of ranks or nodes */
	char text[1024]; /* a list of the differences but `files`; "": there are none */
};
/* Compare with a file's. MU_ERR_FORMAT, with foreign set, for what needs --override. */
enum mu_status mu_checkpoint_identity_compare(const struct checkpoint_identity *identity,
					      const struct checkpoint_comparison *with,
					      struct checkpoint_difference *difference);

/*
 * What numbers of the data stand for: class names and tokenizer. To be compared before the
 * identity, for it says more than that the data differ. *foreign: as above.
 */
enum mu_status mu_checkpoint_words_check(const struct mu_engine *e, struct mu_array_file *file,
					 const char *path, bool *foreign);
/* A line about files of other times. The hashes of their records are equal, or were reported. */
void mu_checkpoint_files_report(const struct mu_engine *e, const char *path,
				const struct checkpoint_difference *difference);
/* The best value of other validation data says nothing about those of this run. */
void mu_checkpoint_best_forget(struct checkpoint_position *at, const char *path,
			       const struct checkpoint_difference *difference);

/* ---- describe.c ---- */

/* What the identity lacks for a description of the model. */
enum mu_status mu_checkpoint_description_write(const struct mu_engine *e,
					       struct mu_array_file *file);

/* MU_ERR_USAGE if both the file and the data have a tokenizer, and they differ; a warning if one of
 * them has none. */
enum mu_status mu_checkpoint_tokenizer_check(const struct mu_engine *e, struct mu_array_file *file,
					     const char *path);

/* ---- classes.c ---- */

/* Of the training data, if it names its classes. */
enum mu_status mu_checkpoint_classes_write(const struct mu_engine *e, struct mu_array_file *file);
/* MU_ERR_USAGE if both the file and the data name their classes, and differ. */
enum mu_status mu_checkpoint_classes_check(const struct mu_engine *e, struct mu_array_file *file,
					   const char *path, const char *cure);

/* ---- columns.c ---- */

/* Of the training data, if they are a table with names. */
enum mu_status mu_checkpoint_columns_write(const struct mu_engine *e, struct mu_array_file *file);
/* MU_ERR_USAGE if both the file and the data name their columns, and differ. */
enum mu_status mu_checkpoint_columns_check(const struct mu_engine *e, const char *path);
/* A warning if samples had another shape: the weights may fit all the same. */
enum mu_status mu_checkpoint_shape_tell(const struct mu_engine *e, const char *path);

/* ---- contents.c ---- */

/* The arrays of a file, in order. */
struct checkpoint_array {
	enum { CHECKPOINT_ARRAY_WEIGHTS, CHECKPOINT_ARRAY_STATE, CHECKPOINT_ARRAY_OWN } of;
	int which; /* index of the state, or of the worker's own array */
	int worker;
	size_t key;
};
struct checkpoint_arrays {
	int workers; /* each has its own arrays */
	size_t n;
	struct checkpoint_array *all;
	int n_states;
	const char *states[MU_KV_MAX_STATES];
	struct mu_kv_own own;
};
/* own: include the arrays of each worker alone. */
enum mu_status mu_checkpoint_arrays_make(const struct mu_engine *e,
					 struct checkpoint_arrays *arrays, bool own);
void mu_checkpoint_arrays_release(struct checkpoint_arrays *arrays);
void mu_checkpoint_array_name(const struct mu_engine *e, const struct checkpoint_arrays *arrays,
			      const struct checkpoint_array *array, char *text, size_t nbytes);

/* Of a parameter or a running statistic: "arg/fc1_weight". */
void mu_checkpoint_weights_name(const struct mu_slice *slice, char *text, size_t nbytes);

/* Room for the largest array in plain order. */
enum mu_status mu_checkpoint_plain_buffer(const struct mu_plan *plan, float **out);

/* loss: what the sums of metrics are of. */
enum mu_status mu_checkpoint_position_write(const struct checkpoint_position *at,
					    const struct mu_loss *loss, struct mu_array_file *file);
enum mu_status mu_checkpoint_position_read(struct checkpoint_position *at,
					   const struct mu_loss *loss, struct mu_array_file *file,
					   const char *path);

#endif
