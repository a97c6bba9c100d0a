/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens: texts as numbers of tokens, by GPT-2's byte-level BPE, and files of them.
 *
 * A text is cut into words by GPT-2's rule (split.c); each word, as bytes, becomes tokens by
 * merging neighbours in the order of the tokenizer's list of merges. Added tokens such as
 * "<|endoftext|>" are found in the text before. The numbers are those of the package `tokenizers`
 * (0.23) with the same tokenizer.json. Bytes that are not UTF-8 are characters of their own that
 * are neither letters, numbers nor blanks; decoding gives the same bytes again.
 *
 * Errors name the file, the value found and what is needed. Not collective.
 */
#ifndef MUSTER_TOKENS_H
#define MUSTER_TOKENS_H

#include <muster/base.h>

MU_BEGIN_C

/* Settings of the reader "tokens" (mu_input_config.settings). */
struct mu_token_settings {
	size_t window; /* steps of a sample */
};

#define MU_TOKEN_END_OF_TEXT "<|endoftext|>"

/* Numbers of tokens are below this: float32 holds them exactly. */
enum { MU_TOKENS_MAX = 1 << 24 };

/* ---- lists of tokens ---- */

/* {0} is empty. */
struct mu_token_list {
	uint32_t *ids;
	size_t n, room;
};

enum mu_status mu_token_list_add(struct mu_token_list *list, uint32_t id);
void mu_token_list_release(struct mu_token_list *list);

/* ---- tokenizers ---- */

struct mu_tokenizer;

/*
 * path: a tokenizer.json, a vocab.json with merges.txt beside it, or a folder with either. Of a
 * tokenizer.json: model BPE, pre-tokenizer ByteLevel with GPT-2's rule and without a prefix space;
 * MU_ERR_UNSUPPORTED names a member that would give other tokens.
 */
enum mu_status mu_tokenizer_read(struct mu_tokenizer **out, const char *path);
/* As a tokenizer.json. Written under a temporary name and renamed. */
enum mu_status mu_tokenizer_write(const struct mu_tokenizer *t, const char *path);
/* The same text in memory. text is the caller's, to be freed with free(); name: for messages. */
enum mu_status mu_tokenizer_to_text(const struct mu_tokenizer *t, char **text);
enum mu_status mu_tokenizer_from_text(struct mu_tokenizer **out, const char *name, char *text);
void mu_tokenizer_free(struct mu_tokenizer *t);
/* A hash of the text above. */
enum mu_status mu_tokenizer_hash(const struct mu_tokenizer *t, uint64_t *h);
/* Do both give the same tokens, by the text above? */
enum mu_status mu_tokenizer_same(const struct mu_tokenizer *a, const struct mu_tokenizer *b,
				 bool *same);

/* The largest number of a token, plus 1. */
size_t mu_tokenizer_n(const struct mu_tokenizer *t);
/* Number of an added token; false: there is none of this text. */
bool mu_tokenizer_added(const struct mu_tokenizer *t, const char *text, uint32_t *id);
/* Bytes of a token; NULL: no token has this number. */
const char *mu_tokenizer_bytes(const struct mu_tokenizer *t, uint32_t id, size_t *nbytes);
/* Append the tokens of a text. Uses memory of t: one thread at a time. MU_ERR_FORMAT: a byte of the
 * text has no token. */
enum mu_status mu_tokenizer_encode(struct mu_tokenizer *t, const char *text, size_t nbytes,
				   struct mu_token_list *list);
/* The same for the text of a file. */
enum mu_status mu_tokenizer_encode_file(struct mu_tokenizer *t, const char *path,
					struct mu_token_list *list);

/* ---- training of a tokenizer: words are counted once, then merged ---- */

struct mu_token_counts;

enum mu_status mu_token_counts_new(struct mu_token_counts **out);
void mu_token_counts_free(struct mu_token_counts *c);
/* Count the words of a text. Texts of added tokens in it count like others. */
enum mu_status mu_token_counts_add(struct mu_token_counts *c, const char *text, size_t nbytes);
enum mu_status mu_token_counts_add_file(struct mu_token_counts *c, const char *path);
/*
 * A tokenizer of at most n tokens: number 0 is "<|endoftext|>", then come the 256 bytes, in the
 * order of the characters that stand for them, then the merges, the most frequent pair first; of
 * pairs of equal counts the one whose numbers are lower. It ends early if no pair occurs min_count
 * times. The same as tokenizers' BpeTrainer with all bytes as alphabet. Uses c up.
 */
enum mu_status mu_token_counts_train(struct mu_token_counts *c, size_t n, size_t min_count,
				     struct mu_tokenizer **out);

/*
 * ---- files of tokens, as llm.c writes them: 256 int32 (20240520, 1, number of tokens, zeros),
 * then a uint16 for each token; all little-endian. Version 2 has uint32, and so have files of
 * 20240801, 7 (Llama 3); both are read. ----
 */

enum { MU_TOKEN_FILE_MAX = 1 << 16 };

/* MU_ERR_UNSUPPORTED: a number needs more than 16 bits. Written under a temporary name and
 * renamed. */
enum mu_status mu_token_file_write(const char *path, const uint32_t *ids, size_t n);
/* Append the tokens of a file. MU_ERR_FORMAT: magic, version or size are wrong. */
enum mu_status mu_token_file_read(const char *path, struct mu_token_list *list);
/* Number of tokens by the header, which must fit the size of the file; width: bytes of each. */
enum mu_status mu_token_file_count(const char *path, size_t *n, size_t *width);
/* Token i of the bytes of a file's tokens. */
uint32_t mu_token_get(const unsigned char *bytes, size_t i, size_t width);
/* Does the file begin with the magic number? */
bool mu_token_file_is(const char *path);

MU_END_C

#endif
