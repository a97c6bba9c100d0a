/* SPDX-License-Identifier: Apache-2.0 */
/* Words, characters, tokens and numbers: one table each. */
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "checkpoint/checkpoint.h"
#include "conf/text.h"

struct train_words_kind {
	enum mu_status (*read)(struct train_words *w, const char *text,
			       struct mu_token_list *numbers, size_t *hidden);
	void (*print)(struct train_words *w, size_t number);
};

/* ---- printing ---- */

/* Bytes that the character at p needs, by its first one. */
static size_t need(const char *p)
{
	const unsigned char c = (unsigned char)*p;

	return c < 0xc2 || c > 0xf4 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* The first character held, or its first byte if it is none. */
static void print_held(struct train_words *w)
{
	uint32_t code = 0;
	size_t n = mu_utf8_read(w->held, w->n_held, &code);
	const bool plain = n > 0 && (code >= ' ' || code == '\n' || code == '\t') &&
			   (code < 0x7f || code > 0x9f);

	n = n ? n : 1;
	for (size_t i = 0; i < n; i++)
		printf(plain ? "%c" : "\\x%02x", (unsigned char)w->held[i]);
	w->n_held -= n;
	memmove(w->held, w->held + n, w->n_held);
}

static void print_bytes(struct train_words *w, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		w->held[w->n_held++] = bytes[i];
		while (w->n_held > 0 && w->n_held >= need(w->held))
			print_held(w);
	}
}

void mu_train_words_end(struct train_words *w)
{
	while (w->n_held > 0)
		print_held(w);
}

/* ---- a vocabulary ---- */

static enum mu_status add_word(const struct train_words *w, const char *word, size_t nbytes,
			       struct mu_token_list *numbers)
{
	enum mu_status st = MU_OK;
	size_t number = mu_vocabulary_find(w->vocabulary, word, nbytes), n;
	const char *found = mu_vocabulary_word(w->vocabulary, number, &n);

	if (n != nbytes || memcmp(found, word, n) != 0) /* "<unk>" for it, or nothing */
		MU_FAIL(MU_ERR_USAGE, "--prime: \"%.*s\" is not in the vocabulary", (int)nbytes,
			word);
	MU_TRY(mu_token_list_add(numbers, (uint32_t)number));
out:
	return st;
}

/* A text of words begins after an end of sentence. */
static enum mu_status read_words(struct train_words *w, const char *text,
				 struct mu_token_list *numbers, size_t *hidden)
{
	enum mu_status st = MU_OK;

	MU_TRY(add_word(w, MU_WORD_END, strlen(MU_WORD_END), numbers));
	*hidden = 1;
	for (const char *p = text; *p; p += *p != '\0') {
		const size_t n = strcspn(p, " \t\n");

		if (n > 0)
			MU_TRY(add_word(w, p, n, numbers));
		p += n;
	}
out:
	return st;
}

static void print_word(struct train_words *w, size_t number)
{
	size_t n;
	const char *word = mu_vocabulary_word(w->vocabulary, number, &n);

	if (n == strlen(MU_WORD_END) && memcmp(word, MU_WORD_END, n) == 0) {
		print_bytes(w, "\n", 1);
		return;
	}
	print_bytes(w, word, n);
	print_bytes(w, " ", 1);
}

static const struct train_words_kind words = {read_words, print_word};

/* One of characters begins, if it is empty, after a line break. */
static enum mu_status read_characters(struct train_words *w, const char *text,
				      struct mu_token_list *numbers, size_t *hidden)
{
	enum mu_status st = MU_OK;
	size_t n;

	*hidden = 0;
	for (const char *p = *text ? text : "\n"; *p; p += n) {
		n = mu_vocabulary_step(w->vocabulary, p, strlen(p));
		MU_TRY(add_word(w, p, n, numbers));
	}
out:
	return st;
}

static void print_character(struct train_words *w, size_t number)
{
	size_t n;
	const char *character = mu_vocabulary_word(w->vocabulary, number, &n);

	print_bytes(w, character, n);
}

static const struct train_words_kind characters = {read_characters, print_character};

/* ---- a tokenizer ---- */

/* A text begins after the end of another, as tokenize writes them, if it is empty. */
static enum mu_status read_tokens(struct train_words *w, const char *text,
				  struct mu_token_list *numbers, size_t *hidden)
{
	enum mu_status st = MU_OK;
	uint32_t end;

	*hidden = 0;
	MU_TRY(mu_tokenizer_encode(w->tokenizer, text, strlen(text), numbers));
	if (numbers->n > 0)
		goto out;
	if (!mu_tokenizer_added(w->tokenizer, MU_TOKEN_END_OF_TEXT, &end))
		MU_FAIL(MU_ERR_USAGE,
			"--prime is missing: the tokenizer has no " MU_TOKEN_END_OF_TEXT
			" that a text could begin after");
	MU_TRY(mu_token_list_add(numbers, end));
	*hidden = 1;
out:
	return st;
}

static void print_token(struct train_words *w, size_t number)
{
	size_t n;
	const char *bytes = mu_tokenizer_bytes(w->tokenizer, (uint32_t)number, &n);

	if (bytes)
		print_bytes(w, bytes, n);
}

static const struct train_words_kind tokens = {read_tokens, print_token};

/* ---- numbers ---- */

static enum mu_status read_numbers(struct train_words *w, const char *text,
				   struct mu_token_list *numbers, size_t *hidden)
{
	enum mu_status st = MU_OK;

	(void)w;
	*hidden = 0;
	for (const char *p = text + strspn(text, " \t\n"); *p; p += strspn(p, " \t\n")) {
		char *end;
		const unsigned long number = strtoul(p, &end, 10);

		if (*p < '0' || *p > '9' || number >= MU_TOKENS_MAX || !strchr(" \t\n", *end))
			MU_FAIL(MU_ERR_USAGE,
				"--prime: \"%.*s\" is no number of a token, which --vocab "
				CONF_NUMBERS " needs",
				(int)strcspn(p, " \t\n"), p);
		MU_TRY(mu_token_list_add(numbers, (uint32_t)number));
		p = end;
	}
	if (numbers->n == 0)
		MU_FAIL(MU_ERR_USAGE,
			"--prime is missing: numbers of tokens that the text begins with, such as "
			"\"464 3797\"");
out:
	return st;
}

static void print_number(struct train_words *w, size_t number)
{
	(void)w;
	printf("%zu ", number);
}

static const struct train_words_kind bare_numbers = {read_numbers, print_number};

/* ---- any of them ---- */

static bool is_tokenizer(const char *name)
{
	struct stat status;

	return mu_stem(name, ".json") ||
	       (stat(name, &status) == 0 && S_ISDIR(status.st_mode));
}

enum mu_status mu_train_words_open(struct train_words *w, const char *name)
{
	enum mu_status st = MU_OK;
	uint32_t end;

	*w = (struct train_words){.kind = &bare_numbers, .end = SIZE_MAX};
	if (strcmp(name, CONF_NUMBERS) == 0)
		goto out;
	if (is_tokenizer(name))
		MU_TRY(mu_tokenizer_read(&w->tokenizer, name));
	else
		MU_TRY(mu_checkpoint_words_read(name, &w->vocabulary, &w->tokenizer));
	if (w->tokenizer) {
		w->kind = &tokens;
		w->n = mu_tokenizer_n(w->tokenizer);
		if (mu_tokenizer_added(w->tokenizer, MU_TOKEN_END_OF_TEXT, &end))
			w->end = end;
	} else {
		w->kind = mu_vocabulary_characters(w->vocabulary) ? &characters : &words;
		w->n = mu_vocabulary_n(w->vocabulary);
		w->first = 1;
	}
out:
	return st;
}

void mu_train_words_close(struct train_words *w)
{
	mu_vocabulary_free(w->vocabulary);
	mu_tokenizer_free(w->tokenizer);
	*w = (struct train_words){.kind = NULL};
}

enum mu_status mu_train_words_read(struct train_words *w, const char *text,
				   struct mu_token_list *numbers, size_t *hidden)
{
	return w->kind->read(w, text, numbers, hidden);
}

void mu_train_words_print(struct train_words *w, size_t number)
{
	w->kind->print(w, number);
}
