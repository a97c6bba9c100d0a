/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the folder share. */
#ifndef TOKENS_TOKENS_H
#define TOKENS_TOKENS_H

#include <muster/json.h>
#include <muster/tokens.h>

#include "map.h"

/* ---- classes.c, split.c: the words of a text ---- */

enum mu_token_class { MU_TOKEN_OTHER, MU_TOKEN_LETTER, MU_TOKEN_NUMBER, MU_TOKEN_SPACE };

enum mu_token_class mu_token_class(uint32_t code);

/* How a text is cut into words. */
struct token_rule {
	const char *name;    /* whose it is */
	const char *pattern; /* of a Split before ByteLevel; NULL: ByteLevel has its own */
	bool wide;           /* any one character before letters; line breaks end words */
	size_t digits;       /* of a word; 0: any number */
	bool digits_alone;   /* Digits(individual_digits) before ByteLevel */
};

/* The first is GPT-2's; ends with a NULL name. */
extern const struct token_rule mu_token_rules[];

/* Bytes of the first word of a text that is not empty. */
size_t mu_token_word(const struct token_rule *rule, const char *text, size_t nbytes);

/* ---- pipeline.c ---- */

/* Values that are allowed, "|" between them: null, false, true, zero, "" and texts in quotation
 * marks; "*": any. */
struct token_member {
	const char *name, *values;
};

/* where: "model", or "" at the top; for messages. */
enum mu_status mu_token_check_members(const char *path, const struct mu_json_value *object,
				      const char *where, const struct token_member *table);
/* All but model, but with its ignore_merges. */
enum mu_status mu_token_read_pipeline(struct mu_tokenizer *t, const char *path,
				      const struct mu_json_value *top);

/* normal.c: an error with the place of a character that the normal form NFC may change. */
enum mu_status mu_token_check_nfc(const char *text, size_t nbytes);

/* ---- tokenizer.c ---- */

/* Tokens a and b, side by side, become the token `made`. */
struct token_merge {
	uint32_t a, b, made;
};

/* A token that is found in the text as it stands; its bytes are the text. */
struct token_added {
	uint32_t id;
	bool special, normalized; /* as the file says; those that are not normalized come first */
};

/* Bytes of a token, [at, at + n) of bytes. */
struct token_piece {
	size_t at;
	uint32_t n;
	uint32_t name; /* number of its name; TOKENS_NONE: there is no such token */
};

/* Memory of mu_tokenizer_encode. */
struct token_scratch {
	uint32_t *symbols, *next, *previous; /* of the bytes of a word */
	size_t room[3];
	uint64_t *heap; /* rank of a merge, place */
	size_t n_heap, heap_room;
	struct token_words words;    /* short words that were encoded */
	struct mu_token_list tokens; /* theirs; those of word i begin at starts[i] */
	size_t *starts;
	size_t starts_room;
};

struct mu_tokenizer {
	/* The vocabulary as files hold it: one character for each byte of a token. */
	struct token_words names;
	uint32_t *ids; /* by number of a name */
	size_t ids_room;
	struct token_piece *pieces; /* by number of a token */
	size_t n, pieces_room;
	char *bytes;
	size_t n_bytes, bytes_room;
	uint32_t byte_ids[256];     /* TOKENS_NONE: the byte has no token */
	struct token_merge *merges; /* in their order */
	size_t n_merges, merges_room;
	struct token_map ranks; /* pair -> number of its merge */
	struct token_added *added;
	size_t n_added, added_room;
	bool starts_added[256]; /* bytes that an added token begins with */
	const struct token_rule *rule;
	bool prefix_space;  /* a text gets a blank before it, unless it begins with one */
	bool nfc;           /* texts are in this normal form, or refused */
	bool ignore_merges; /* a word that is a token stays whole */
	struct token_scratch scratch;
};

enum mu_status mu_tokenizer_new(struct mu_tokenizer **out);
/* A token with its name in the files; path: for messages. */
enum mu_status mu_tokenizer_add_token(struct mu_tokenizer *t, const char *path, const char *name,
				      size_t nbytes, uint64_t id);
/* The next merge. */
enum mu_status mu_tokenizer_add_merge(struct mu_tokenizer *t, uint32_t a, uint32_t b,
				      uint32_t made);
/* An added token, which is or becomes a token of the vocabulary. */
enum mu_status mu_tokenizer_add_added(struct mu_tokenizer *t, const char *path, const char *text,
				      size_t nbytes, struct token_added added);
uint32_t mu_tokenizer_find(const struct mu_tokenizer *t, const char *name, size_t nbytes);
/* The character that stands for a byte, as UTF-8; returns its bytes, 1 or 2. */
size_t mu_token_byte_name(unsigned char byte, char name[2]);
/* The byte that a character stands for; -1: none. */
int mu_token_byte_of(uint32_t code);

/* ---- token_file.c ---- */

/* Read a text without its byte order mark, and a zero byte after it; to be freed by mu_free. plain:
 * it is to be learnt from (mu_text_plain). */
enum mu_status mu_token_text_read(const char *path, bool plain, char **text, size_t *nbytes);

#endif
