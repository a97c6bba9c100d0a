/* SPDX-License-Identifier: Apache-2.0 */
/* text: what of a run is about texts: text.c, sample.c, plateau.c. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include "train/train.h"

/* ---- text.c ---- */

/* Is --data-train a text? Is that one of characters? */
bool mu_conf_reads_text(const struct conf *v);
bool mu_conf_text_characters(const struct conf *v);
/* The part of mu_conf_check about texts. */
enum mu_status mu_conf_text_settle(const struct mu_options *o, struct conf *v);
/* What the network reads must be what the data are; of a text the vocabulary is loaded, and the
 * config of the input filled in. */
enum mu_status mu_conf_text_open(struct train_run *run, struct mu_input_config *config);
/* Of --vocab, or that which a run with --model-prefix P writes. */
void mu_conf_vocabulary_path(const struct conf *v, char *text, size_t nbytes);
/* What a checkpoint says of it: "10000 words, 0123456789abcdef" */
void mu_conf_vocabulary_text(const struct mu_vocabulary *v, char *text, size_t nbytes);
/* Worker 0 writes the vocabulary that was made of the text beside the checkpoints. */
enum mu_status mu_conf_vocabulary_save(const struct train_run *run);

/* ---- sample.c ---- */

/* --sample: text drawn from a trained network, on standard output. No data, no roles. Not
 * collective. */
enum mu_status mu_train_sample(const struct conf *v);

/* ---- plateau.c: --lr-schedule plateau ---- */

bool mu_train_has_plateau(const struct conf *v);
/* Set the store's rate to what it was when the checkpoint was saved. */
void mu_train_plateau_resume(struct train_run *run);
/* After a validation; the same on all workers. */
void mu_train_plateau_look(struct train_run *run, const struct mu_metrics *m);

#endif
