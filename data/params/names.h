/* SPDX-License-Identifier: Apache-2.0 */
/* Names of arrays: ours, such as "arg/h0_qkv_weight", and those of other programs. */
#ifndef MUSTER_DATA_NAMES_H
#define MUSTER_DATA_NAMES_H

#include <muster/storage.h>

enum { NAME_BYTES = 200 };

enum name_how {
	NAME_KEEP,      /* the same numbers and sizes */
	NAME_TRANSPOSE, /* theirs is (in, out), ours (out, in, 1, 1) */
	NAME_PRODUCT,   /* theirs is (out, in), ours (out, in, 1, 1) */
	NAME_BATCH,     /* theirs has three dimensions: ones stand before those of ours */
	NAME_THIRD,     /* ours is three of theirs behind one another, and as NAME_PRODUCT if theirs
			   is (out, in) */
	NAME_HEAD,      /* as NAME_PRODUCT, and left out where it equals the embedding */
	NAME_SKIP,      /* theirs alone, no parameter */
};
enum { NAME_THIRDS = 3 };

struct name_family;

/* NULL: a word that names no family, such as "plain". */
const struct name_family *name_family_find(const char *word);
/* By a name that only this family has; NULL: go on looking. */
const struct name_family *name_family_of_ours(const char *name);
const struct name_family *name_family_of_theirs(const char *name);
const char *name_family_word(const struct name_family *family);

/* false: the family has no such name. part: which of the thirds; else 0. */
bool name_to_ours(const struct name_family *family, const char *theirs, char ours[NAME_BYTES],
		  enum name_how *how, size_t *part);
/* The embedding of NAME_HEAD. */
const char *name_of_embedding(const struct name_family *family);
/* Write the prefix that theirs may lack before a name, unless it is there. */
void name_add_prefix(const struct name_family *family, char theirs[NAME_BYTES]);
bool name_to_theirs(const struct name_family *family, const char *ours, size_t part,
		    char theirs[NAME_BYTES], enum name_how *how);

/* from_safetensors.c, to_safetensors.c: names: NULL: plain, by the names if `detect`. */
struct name_choice {
	bool detect;
	const struct name_family *family;
};
/* settings.c: sizes that a model's arrays tell; 0: none does. */
struct model_sizes {
	size_t layers, hidden, positions, vocabulary, classes, channels, patch;
	bool head; /* the output's weight is not the embedding's */
};
/* array: of theirs. */
void model_sizes_add(struct model_sizes *s, const struct name_family *family,
		     const struct mu_params_array *array);
/* describe.c: write config.json and tokenizer.json beside the file `to`, where there are none yet
 * and `in` tells enough. */
enum mu_status convert_describe(struct mu_array_file *in, const char *family,
				const struct model_sizes *sizes, const char *to);
/* settings.c: attributes of the model. The message of an error names no file. *heads_known: false
 * if the trainer must be told how many heads there are. */
enum mu_status convert_settings(const struct mu_safetensors *in, const struct name_family *family,
				struct mu_array_file *out, bool *heads_known);
enum mu_status convert_from_safetensors(const char *from, const char *to, struct name_choice names,
					size_t *n);
enum mu_status convert_to_safetensors(const char *from, const char *to, struct name_choice names,
				      size_t *n);

#endif
