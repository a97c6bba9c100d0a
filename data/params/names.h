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
	NAME_PART,      /* ours is three of theirs one after another, query, key and value, and as
			   NAME_PRODUCT if theirs is (out, in) */
	NAME_HEAD,      /* as NAME_PRODUCT, and left out where it equals the embedding */
	NAME_SKIP,      /* theirs alone, no parameter */
};
enum { NAME_PARTS = 3 };

struct name_family;

/* NULL: a word that names no family, such as "plain". */
const struct name_family *name_family_find(const char *word);
/* By a name that only this family has; NULL: go on looking. */
const struct name_family *name_family_of_ours(const char *name);
const struct name_family *name_family_of_theirs(const char *name);
const char *name_family_word(const struct name_family *family);

/* What the models of a family have in common, in transformers and here. */
struct family_facts {
	const char *network;  /* here */
	const char *model;    /* its class in transformers, of a transformer; NULL */
	const char *eps_name; /* the network's setting */
	double eps, own_eps;  /* transformers' default, and the network's; 0: none */
	bool text;            /* it reads tokens, else images */
	bool tied;            /* the output has the embedding's weight where nothing is said */
	bool grouped;         /* heads of keys and values may be fewer, heads have a size */
	bool shares_names;    /* other models have arrays of these names: config.json decides */
};
const struct family_facts *name_family_facts(const struct name_family *family);

/* false: the family has no such name. part: which of the parts; else 0. */
bool name_to_ours(const struct name_family *family, const char *theirs, char ours[NAME_BYTES],
		  enum name_how *how, size_t *part);
/* Letters before a name of the family that another program has added; NULL: of any family, by the
 * usual prefixes alone. 0: there are none. */
size_t name_wrapper(const struct name_family *family, const char *theirs);
/* Row i of a family whose arrays have at most the number of a layer. false: there are no more. */
struct name_pair {
	char ours[NAME_BYTES], theirs[NAME_BYTES];
	enum name_how how; /* NAME_SKIP: theirs alone */
	bool per_layer;
};
bool name_of_row(const struct name_family *family, size_t i, size_t layer, struct name_pair *pair);
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
	size_t inner;   /* units within a block */
	size_t query, key; /* channels of all queries, and of all keys */
	size_t patches; /* positions of a ViT: of its patches and its token */
	bool head;      /* there is a weight of the output */
	bool head_tied; /* and it is the embedding's once more */
};
/* array: of theirs. */
void model_sizes_add(struct model_sizes *s, const struct name_family *family,
		     const struct mu_params_array *array);

/* A note may name a path; in what is shown a byte may be four. */
enum { MODEL_PATH = 4096, MODEL_NOTE = 4096 + 512, MODEL_NOTES = 2 * 4 * MODEL_NOTE };
/* Rows of ours that are rows of part 0, 1 or 2 of theirs, of n, and the first of them. false: the
 * heads do not divide n. */
struct part_rows {
	size_t heads, kv_heads; /* of queries, and of keys and values: only their ratio counts */
};
bool name_part_rows(const struct part_rows *p, size_t n, size_t part, size_t *first, size_t *rows);
/* config.c: what the config.json beside a model tells. 0, or tied -1: nothing. */
struct model_config {
	bool there; /* the file */
	char type[64];
	double heads, eps;
	double kv_heads, head_dim, theta, positions; /* of a Llama */
	size_t height, width; /* of images */
	int tied;
	/* images.c: of pixels from 0 to 255. */
	bool pixels;
	double mean[3], std[3];
	double resize;             /* of the shorter side; 0: no */
	char *class_names;         /* classes.c: a line each; NULL: not known; owned */
	char notes[MODEL_NOTES]; /* lines for the user */
};
/* The name in the folder `place`, or in that of the file `place`. */
void model_path(const char *place, const char *name, char path[MODEL_PATH]);
/* A line for the user; what is not to be shown in what it quotes is escaped. */
__attribute__((format(printf, 2, 3))) void model_note(struct model_config *c, const char *format,
						      ...);
/* Is text one of "|word|word|"? "word.*" stands for all members of an object. */
bool model_is_one_of(const char *words, const char *text);
/* Reads the config.json of the folder. family NULL: its type alone. MU_ERR_UNSUPPORTED: it has a
 * member by which the network here computes something else, or that is not known. */
enum mu_status model_config_read(struct model_config *c, const char *place,
				 const struct name_family *family, const struct model_sizes *sizes);
void model_config_release(struct model_config *c);
/* classes.c: what config.json calls the classes. */
enum mu_status model_classes_read(struct model_config *c, const char *place, size_t classes);
/* Members of a config.json. names: a line each; they are cut into texts. */
void model_classes_write(struct mu_json *j, char *names);
/* images.c: preprocessor_config.json, after config.json. */
enum mu_status model_images_read(struct model_config *c, const char *place);
/* MU_ERR_FORMAT: the one in the folder of the file `to` makes other pixels than `in` says. */
enum mu_status model_images_check(struct mu_array_file *in, const char *to, size_t height,
				  size_t width);
enum mu_status model_images_write(struct mu_array_file *in, const char *to, size_t height,
				  size_t width);

/* describe.c: write config.json, preprocessor_config.json and tokenizer.json beside the file `to`,
 * where `in` tells enough. Where there is one, it must be of the same model. write: false: only
 * check. */
enum mu_status convert_describe(struct mu_array_file *in, const struct name_family *family,
				const struct model_sizes *sizes, const char *to, bool write);
/* muconvert.c: say which arrays of an HDF5 file that is no checkpoint are left out: no floats. */
enum mu_status convert_tell_others(struct mu_array_file *from, const char *path);
/* model_files.c: refuse a folder of an adapter. */
enum mu_status model_adapter_check(const char *place);
/* Keep the tokenizer of the folder. The message of an error names no file. */
enum mu_status model_tokenizer_keep(struct model_config *c, const char *place, size_t vocabulary,
				    struct mu_array_file *out);
/* which.c: the family of the arrays. NULL: none. MU_ERR_UNSUPPORTED: they seem to be of one, by
 * their names or by config.json, and cannot be taken as such. */
enum mu_status model_family_find(const char *place, const struct mu_safetensors *in,
				 const struct name_family **family);
/* Has `out` all arrays of the network? c->there: MU_ERR_FORMAT names the first that is missing;
 * else a note does. */
enum mu_status model_complete_check(struct model_config *c, const struct name_family *family,
				    const struct model_sizes *sizes, struct mu_array_file *out);
/* settings.c: attributes of the model. The message of an error names no file. */
enum mu_status convert_settings(struct model_config *c, const struct name_family *family,
				const struct model_sizes *sizes, struct mu_array_file *out);
enum mu_status convert_from_safetensors(const char *from, const char *to, struct name_choice names,
					size_t *n);
enum mu_status convert_to_safetensors(const char *from, const char *to, struct name_choice names,
				      size_t *n);

#endif
