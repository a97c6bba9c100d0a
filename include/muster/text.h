/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: vocabularies, which give the words of a text numbers. Number 0 is no word: it fills
 * sequences up. A word is what stands between blanks, or of a vocabulary of characters one byte.
 *
 * In a file a vocabulary is one word a line, in the order of its numbers, from 1 on; a line break,
 * a backslash and other bytes that no editor shows are written \n, \\, \x1b. Two of the words have
 * a meaning: "<eos>", the end of a sentence (not of characters, where the line break does that),
 * and "<unk>", which stands for all words that are not there.
 */
#ifndef MUSTER_TEXT_H
#define MUSTER_TEXT_H

#include <muster/base.h>

#define MU_WORD_END "<eos>"
#define MU_WORD_UNKNOWN "<unk>"

/* Numbers are kept in float32, which has all whole ones up to this. */
enum { MU_VOCABULARY_MAX = 1 << 24 };

struct mu_vocabulary;

/* Of words it begins with "<eos>" as number 1. */
enum mu_status mu_vocabulary_new(struct mu_vocabulary **out, bool characters);
void mu_vocabulary_free(struct mu_vocabulary *v);
/* Of words if "<eos>" is there, else of characters. MU_ERR_FORMAT names the line: a word twice,
 * none, or no character where they are. */
enum mu_status mu_vocabulary_read(struct mu_vocabulary **out, const char *path);
/* Written to a temporary name and renamed. */
enum mu_status mu_vocabulary_write(const struct mu_vocabulary *v, const char *path);

/* Words and number 0: what a network must have as classes. */
size_t mu_vocabulary_n(const struct mu_vocabulary *v);
bool mu_vocabulary_characters(const struct mu_vocabulary *v);
/* nbytes of it; the bytes of number 0 are none. */
const char *mu_vocabulary_word(const struct mu_vocabulary *v, size_t number, size_t *nbytes);
/* The word's number; if it is not there that of "<unk>", and 0 if that is not there either. */
size_t mu_vocabulary_find(const struct mu_vocabulary *v, const char *word, size_t nbytes);
/* Its number, which is a new one if it was not there. */
enum mu_status mu_vocabulary_add(struct mu_vocabulary *v, const char *word, size_t nbytes,
				 size_t *number);
/* Nearly certainly equal for equal vocabularies only. */
uint64_t mu_vocabulary_hash(const struct mu_vocabulary *v);

#endif
