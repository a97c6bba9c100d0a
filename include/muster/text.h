/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: vocabularies, which number the words of a text. Number 0 is not a word: it pads sequences.
 * A word is a run of characters between blanks; in a vocabulary of characters it is one code point
 * in UTF-8, or a byte that belongs to none. A vocabulary with bytes above ASCII and without a
 * character of several bytes is one of bytes (files of earlier versions): so its text is read.
 *
 * In a file a vocabulary is one word per line, in the order of their numbers, from 1 on. Line
 * breaks, backslashes and unprintable bytes are written as \n, \\, \x1b. Two words have a meaning:
 * "<eos>" is the end of a sentence (in a vocabulary of characters the line break is), and "<unk>"
 * stands for all words that are not in the vocabulary.
 */
#ifndef MUSTER_TEXT_H
#define MUSTER_TEXT_H

#include <muster/base.h>

MU_BEGIN_C

#define MU_WORD_END "<eos>"
#define MU_WORD_UNKNOWN "<unk>"

/* Numbers are stored as float32, which holds all integers up to this. */
enum { MU_VOCABULARY_MAX = 1 << 24 };

struct mu_vocabulary;

/* A vocabulary of words starts with "<eos>" as number 1. */
enum mu_status mu_vocabulary_new(struct mu_vocabulary **out, bool characters);
void mu_vocabulary_free(struct mu_vocabulary *v);
/* A vocabulary of words if it contains "<eos>", else of characters. MU_ERR_FORMAT names the line: a
 * duplicate or empty word, or more than one character in a vocabulary of characters. */
enum mu_status mu_vocabulary_read(struct mu_vocabulary **out, const char *path);
/* Written under a temporary name and renamed. */
enum mu_status mu_vocabulary_write(const struct mu_vocabulary *v, const char *path);

/* The same text in memory. text is the caller's, to be freed with free(); name: for messages. */
enum mu_status mu_vocabulary_to_text(const struct mu_vocabulary *v, char **text);
enum mu_status mu_vocabulary_from_text(struct mu_vocabulary **out, const char *name, char *text);

/* Number of words plus number 0: the classes of a network. */
size_t mu_vocabulary_n(const struct mu_vocabulary *v);
bool mu_vocabulary_characters(const struct mu_vocabulary *v);
bool mu_vocabulary_bytes(const struct mu_vocabulary *v);
/* Bytes of the character of the vocabulary's kind at p, of which nbytes > 0 may be read. */
size_t mu_vocabulary_step(const struct mu_vocabulary *v, const char *p, size_t nbytes);
/* The word of a number, *nbytes long; number 0 has no bytes. */
const char *mu_vocabulary_word(const struct mu_vocabulary *v, size_t number, size_t *nbytes);
/* Number of a word; if it is missing the number of "<unk>", and 0 if that is missing too. */
size_t mu_vocabulary_find(const struct mu_vocabulary *v, const char *word, size_t nbytes);
/* Number of a word; a missing word is added. */
enum mu_status mu_vocabulary_add(struct mu_vocabulary *v, const char *word, size_t nbytes,
				 size_t *number);
/* Hash; different vocabularies almost certainly differ. */
uint64_t mu_vocabulary_hash(const struct mu_vocabulary *v);

/* ---- settings of the reader "text" (mu_input_config.settings) ---- */

struct mu_text_settings {
	bool characters; /* words are single characters */
	/* Of other data, such as the training data; NULL: built from the text. */
	const struct mu_vocabulary *vocabulary;
	const size_t
		*lengths; /* of the groups, ascending; the caller's until the input is closed */
	size_t n_lengths;
};

MU_END_C

#endif
