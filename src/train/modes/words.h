/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the numbers are that a language model reads and predicts: words or characters of a
 * vocabulary, tokens of a tokenizer, or numbers of which nothing is known.
 */
#ifndef TRAIN_MODES_WORDS_H
#define TRAIN_MODES_WORDS_H

#include <muster/text.h>
#include <muster/tokens.h>

struct train_words_kind;

struct train_words {
	const struct train_words_kind *kind;
	struct mu_vocabulary *vocabulary; /* of this kind; else NULL */
	struct mu_tokenizer *tokenizer;
	size_t n;     /* numbers are below this; 0: unknown */
	size_t first; /* 1: number 0 is no word */
	size_t end;   /* the number that ends a text; SIZE_MAX: none */
	char held[4]; /* bytes that may begin a character; not printed yet */
	size_t n_held;
};

/* name: a checkpoint that holds them, a list of words, a tokenizer.json or a folder with one, or
 * "numbers". Not collective. */
enum mu_status mu_train_words_open(struct train_words *w, const char *name);
void mu_train_words_close(struct train_words *w);
/* The numbers of a text, at least one; the first *hidden of them are not in it. MU_ERR_USAGE: a
 * word is not known. */
enum mu_status mu_train_words_read(struct train_words *w, const char *text,
				   struct mu_token_list *numbers, size_t *hidden);
/* On standard output: UTF-8 and line breaks as they are, other control characters and bytes as
 * \xNN. A character may come in several tokens; _end prints what is left of one. */
void mu_train_words_print(struct train_words *w, size_t number);
void mu_train_words_end(struct train_words *w);

#endif
