/* SPDX-License-Identifier: Apache-2.0 */
/* Options about texts, and their vocabulary. */
#ifndef CONF_TEXT_H
#define CONF_TEXT_H

#include <muster/input.h>
#include <muster/net.h>
#include <muster/text.h>

#include "options.h"

/* --vocab of --sample: tokens are read and written as numbers. */
#define CONF_NUMBERS "numbers"

/* Is --data-train a text, or a file of tokens? Is it read as characters? */
bool mu_conf_reads_text(const struct conf *v);
bool mu_conf_reads_tokens(const struct conf *v);
/* Is it a file of arrays? */
bool mu_conf_reads_arrays(const struct conf *v);
bool mu_conf_text_characters(const struct conf *v);
/* The part of mu_conf_settle about texts. */
enum mu_status mu_conf_text_settle(const struct mu_options *o, struct conf *v);
/* Steps of a sequence that is cut out of a longer one, and of random data. */
size_t mu_conf_window(const struct conf *v, const struct mu_network *network);
/* The file of --vocab, or the file that a run with --model-prefix P writes. */
void mu_conf_vocabulary_path(const struct conf *v, char *text, size_t nbytes);
/* As a checkpoint records it: "10000 words, 0123456789abcdef" */
void mu_conf_vocabulary_text(const struct mu_vocabulary *v, char *text, size_t nbytes);

#endif
