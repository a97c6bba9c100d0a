/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables of the folder: numbers of pairs, and of strings of bytes. */
#ifndef TOKENS_MAP_H
#define TOKENS_MAP_H

#include <muster/base.h>

enum { TOKENS_NONE = 0x7fffffff };

/* A value for each pair of tokens. {0} is empty. */
struct token_map {
	uint64_t *keys;
	uint32_t *values;
	size_t n, room; /* room: a power of two, or 0 */
};

static inline uint64_t token_pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* TOKENS_NONE: the pair has no value. */
uint32_t mu_token_map_get(const struct token_map *m, uint64_t pair);
enum mu_status mu_token_map_set(struct token_map *m, uint64_t pair, uint32_t value);
void mu_token_map_release(struct token_map *m);

/* Different strings, numbered from 0 on. {0} is empty. */
struct token_words {
	char *bytes;
	size_t n_bytes, bytes_room;
	size_t *ends; /* of word i: [ends[i - 1], ends[i]) of bytes */
	size_t n, room;
	uint32_t *slots; /* 1 + number of a word, or 0 */
	size_t n_slots;  /* a power of two, or 0 */
};

uint32_t mu_token_words_find(const struct token_words *w, const char *word, size_t nbytes);
/* The number of a word, which is added if it is new. */
enum mu_status mu_token_words_add(struct token_words *w, const char *word, size_t nbytes,
				  uint32_t *number);
const char *mu_token_words_get(const struct token_words *w, uint32_t number, size_t *nbytes);
void mu_token_words_clear(struct token_words *w);
void mu_token_words_release(struct token_words *w);

/* A larger copy of an array; the old one is freed. *room is at least n afterwards. */
enum mu_status mu_token_grow(void **array, size_t *room, size_t n, size_t element);
#define TOKENS_GROW(array, room, n) mu_token_grow((void **)&(array), &(room), (n), sizeof *(array))

#endif
