/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of the data: texts and their vocabulary, the cache of a node. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <muster/arrays.h>
#include <muster/comm.h>
#include <muster/input.h>
#include <muster/pictures.h>
#include <muster/text.h>
#include <muster/tokens.h>

#include "net/plan.h"
#include "conf/options.h"

/* ---- text.c ---- */

/*
 * MU_ERR_USAGE unless the network accepts this kind of data. For a text: reads the vocabulary of
 * --vocab into *vocabulary (the caller's to free; else NULL).
 */
enum mu_status mu_train_text_open(const struct conf *v, const struct mu_network *network,
				  const struct mu_input_config *config,
				  struct mu_vocabulary **vocabulary);
/* Worker 0: write the vocabulary built from the text. vocabulary: NULL if there is none. */
enum mu_status mu_train_vocabulary_save(const struct conf *v,
					const struct mu_vocabulary *vocabulary);

/* ---- data_look.c ---- */

/* What is known of the training data before they are opened. */
struct train_look {
	size_t n;        /* samples; 0: unknown */
	char shape[MU_SAMPLE_TEXT]; /* for --image-shape; "": by the network */
	char note[1400]; /* where the shape comes from; "": nothing to say */
};
/* v: options before they are settled. Rank 0 reads. Collective over comm. */
enum mu_status mu_train_look(const struct mu_options *o, const struct conf *v, MPI_Comm comm,
			     struct train_look *look);

/* ---- data_reader.c ---- */

/* The shape of a sample: --image-shape, or the network's usual one. */
enum mu_status mu_train_find_shape(const struct conf *v, const struct mu_network *network,
				   struct mu_shape *shape);
/* Settings of the reader of a run. */
union train_reader_settings {
	struct mu_array_settings arrays;
	struct mu_picture_settings pictures;
	struct mu_synthetic_settings synthetic;
	struct mu_text_settings text;
	struct mu_token_settings tokens;
};
/* From the options, for config->reader and config->part; config->settings points to s. vocabulary:
 * of a text, NULL: its own. */
enum mu_status mu_train_reader_set(const struct conf *v, const struct mu_network *network,
				   const struct mu_vocabulary *vocabulary,
				   struct mu_input_config *config, union train_reader_settings *s);
/* Sets the reader, and what it reads: random data, or the files that the options name. */
enum mu_status mu_train_choose_reader(const struct conf *v, const struct mu_network *network,
				      struct mu_input_config *config);

/* Outputs of the network: classes of the data; of an objective of values as many as a target has
 * channels, or as --num-classes says, or 1 without data (in: NULL). */
size_t mu_train_outputs(const struct conf *v, const struct mu_input *in);
/* Opens arrays without targets again, as if a sample had n, which the network has. */
enum mu_status mu_train_widen_targets(struct mu_input *in, size_t n);
/* MU_ERR_USAGE: the loss is of classes, and the targets are values; or a sample has several targets
 * where it needs one class. labels: of a sample, for the network; 0: not known yet. */
enum mu_status mu_train_check_targets(const struct conf *v, const struct mu_input *in,
				      const struct mu_loss *loss, size_t labels);
/* Validation has the shape, columns, kind and number of targets that training has. */
enum mu_status mu_train_check_validation(const struct conf *v, const struct mu_input *in,
					 const struct mu_input *train);

/* ---- data_cache.c: --data-cache node ---- */

/*
 * Keep the samples in memory that the ranks of a node share. train, validate: NULL on a rank that
 * reads none. Collective over all ranks.
 */
enum mu_status mu_train_cache_data(const struct mu_members *m, struct mu_input *train,
				   struct mu_input *validate);

#endif
