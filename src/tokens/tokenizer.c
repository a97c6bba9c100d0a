/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vocabulary of a tokenizer. In files the name of a token has one character for each byte:
 * printable bytes of Latin-1 stand for themselves, the others are U+0100 and up (bytes_to_unicode
 * of GPT-2's encoder.py).
 */
#include "tokens.h"

#include <string.h>

#include "base/utf8.h"

/* ---- bytes and characters ---- */

static uint32_t code_of(unsigned char byte)
{
	if (byte <= ' ')
		return 0x100u + byte;
	if (byte >= 0x7f && byte <= 0xa0)
		return 0x121u + (byte - 0x7fu);
	return byte == 0xad ? 0x143 : byte;
}

int mu_token_byte_of(uint32_t code)
{
	const uint32_t byte = code == 0x143   ? 0xad
			      : code >= 0x121 ? code - 0x121 + 0x7f
			      : code >= 0x100 ? code - 0x100
					      : code;

	return byte < 0x100 && code_of((unsigned char)byte) == code ? (int)byte : -1;
}

size_t mu_token_byte_name(unsigned char byte, char name[2])
{
	const uint32_t code = code_of(byte);

	if (code < 0x80) {
		name[0] = (char)code;
		return 1;
	}
	name[0] = (char)(0xc0 | code >> 6);
	name[1] = (char)(0x80 | (code & 0x3f));
	return 2;
}

/* ---- tokens ---- */

enum mu_status mu_tokenizer_new(struct mu_tokenizer **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, 1, "a tokenizer"));
	for (int i = 0; i < 256; i++)
		(*out)->byte_ids[i] = TOKENS_NONE;
	(*out)->rule = mu_token_rules;
out:
	return st;
}

void mu_tokenizer_free(struct mu_tokenizer *t)
{
	struct token_scratch *s;

	if (!t)
		return;
	s = &t->scratch;
	mu_token_words_release(&s->words);
	mu_token_list_release(&s->tokens);
	mu_free(s->symbols);
	mu_free(s->next);
	mu_free(s->previous);
	mu_free(s->heap);
	mu_free(s->starts);
	mu_free(t->added);
	mu_token_map_release(&t->ranks);
	mu_free(t->merges);
	mu_free(t->bytes);
	mu_free(t->pieces);
	mu_free(t->ids);
	mu_token_words_release(&t->names);
	mu_free(t);
}

/* The bytes of a name; false: it has other characters, and stands for itself. */
static bool decode_name(const char *name, size_t nbytes, char *bytes, uint32_t *n)
{
	*n = 0;
	for (size_t at = 0; at < nbytes;) {
		uint32_t code;
		const size_t length = mu_utf8_read(name + at, nbytes - at, &code);
		const int byte = length ? mu_token_byte_of(code) : -1;

		if (byte < 0) {
			memcpy(bytes, name, nbytes);
			*n = (uint32_t)nbytes;
			return false;
		}
		bytes[(*n)++] = (char)byte;
		at += length;
	}
	return true;
}

/* Room for the number of a token; new numbers up to it have no token yet. */
static enum mu_status make_room(struct mu_tokenizer *t, size_t id)
{
	enum mu_status st = MU_OK;

	MU_TRY(TOKENS_GROW(t->pieces, t->pieces_room, id + 1));
	for (; t->n <= id; t->n++)
		t->pieces[t->n].name = TOKENS_NONE;
out:
	return st;
}

enum mu_status mu_tokenizer_add_token(struct mu_tokenizer *t, const char *path, const char *name,
				      size_t nbytes, uint64_t id)
{
	enum mu_status st = MU_OK;
	const size_t n_names = t->names.n;
	struct token_piece *piece;
	uint32_t number;

	if (nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: token %lu has an empty name", path, (unsigned long)id);
	if (id >= MU_TOKENS_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: token \"%.*s\" has number %lu; at most %d is possible", path,
			(int)nbytes, name, (unsigned long)id, MU_TOKENS_MAX - 1);
	MU_TRY(mu_token_words_add(&t->names, name, nbytes, &number));
	if (t->names.n == n_names)
		MU_FAIL(MU_ERR_FORMAT, "%s: token \"%.*s\" is there twice", path, (int)nbytes,
			name);
	MU_TRY(make_room(t, (size_t)id));
	piece = &t->pieces[id];
	if (piece->name != TOKENS_NONE)
		MU_FAIL(MU_ERR_FORMAT, "%s: two tokens have number %lu, \"%.*s\" is one", path,
			(unsigned long)id, (int)nbytes, name);
	MU_TRY(TOKENS_GROW(t->ids, t->ids_room, number + (size_t)1));
	t->ids[number] = (uint32_t)id;
	MU_TRY(TOKENS_GROW(t->bytes, t->bytes_room, t->n_bytes + nbytes));
	*piece = (struct token_piece){.at = t->n_bytes, .name = number};
	if (decode_name(name, nbytes, t->bytes + t->n_bytes, &piece->n) && piece->n == 1)
		t->byte_ids[(unsigned char)t->bytes[piece->at]] = (uint32_t)id;
	t->n_bytes += piece->n;
out:
	return st;
}

uint32_t mu_tokenizer_find(const struct mu_tokenizer *t, const char *name, size_t nbytes)
{
	const uint32_t number = mu_token_words_find(&t->names, name, nbytes);

	return number == TOKENS_NONE ? TOKENS_NONE : t->ids[number];
}

enum mu_status mu_tokenizer_add_merge(struct mu_tokenizer *t, uint32_t a, uint32_t b, uint32_t made)
{
	enum mu_status st = MU_OK;

	MU_TRY(TOKENS_GROW(t->merges, t->merges_room, t->n_merges + 1));
	t->merges[t->n_merges] = (struct token_merge){a, b, made};
	MU_TRY(mu_token_map_set(&t->ranks, token_pair(a, b), (uint32_t)t->n_merges));
	t->n_merges++;
out:
	return st;
}

/* A token that the model does not know is its text, and must not become the token of a byte. */
static enum mu_status add_unknown(struct mu_tokenizer *t, const char *path, const char *text,
				  size_t nbytes, uint32_t id)
{
	enum mu_status st = MU_OK;
	uint32_t byte_ids[256];
	struct token_piece *piece;

	memcpy(byte_ids, t->byte_ids, sizeof byte_ids);
	MU_TRY(mu_tokenizer_add_token(t, path, text, nbytes, id));
	memcpy(t->byte_ids, byte_ids, sizeof byte_ids);
	piece = &t->pieces[id];
	memcpy(t->bytes + piece->at, text, nbytes);
	piece->n = (uint32_t)nbytes;
	t->n_bytes = piece->at + nbytes;
out:
	return st;
}

/* Is it the token of a byte, or of two others? */
static bool is_made(const struct mu_tokenizer *t, uint32_t id)
{
	for (size_t i = 0; i < t->n_merges; i++)
		if (t->merges[i].made == id)
			return true;
	return t->pieces[id].n == 1;
}

/*
 * A token that the vocabulary has, too, is its text, as if it were there alone. If the model makes
 * the token, its name must be that of these bytes.
 */
static enum mu_status add_known(struct mu_tokenizer *t, const char *path, const char *text,
				size_t nbytes, const struct token_added *added)
{
	enum mu_status st = MU_OK;
	const uint32_t known = mu_tokenizer_find(t, text, nbytes);
	struct token_piece *piece = &t->pieces[known];

	if (known != added->id)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: added token \"%.*s\" has number %lu, and %lu in the vocabulary", path,
			(int)nbytes, text, (unsigned long)added->id, (unsigned long)known);
	if (piece->n == nbytes && memcmp(t->bytes + piece->at, text, nbytes) == 0)
		goto out;
	if (is_made(t, known))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: added token \"%.*s\" is the name of other bytes in the vocabulary",
			path, (int)nbytes, text);
	MU_TRY(TOKENS_GROW(t->bytes, t->bytes_room, t->n_bytes + nbytes));
	memcpy(t->bytes + t->n_bytes, text, nbytes);
	piece->at = t->n_bytes;
	piece->n = (uint32_t)nbytes;
	t->n_bytes += nbytes;
out:
	return st;
}

enum mu_status mu_tokenizer_add_added(struct mu_tokenizer *t, const char *path, const char *text,
				      size_t nbytes, struct token_added added)
{
	enum mu_status st = MU_OK;
	struct token_added *place;

	if (mu_tokenizer_find(t, text, nbytes) == TOKENS_NONE)
		MU_TRY(add_unknown(t, path, text, nbytes, added.id));
	else
		MU_TRY(add_known(t, path, text, nbytes, &added));
	MU_TRY(TOKENS_GROW(t->added, t->added_room, t->n_added + 1));
	/* Those that are not normalized first. */
	place = t->added + t->n_added++;
	for (; place > t->added && place[-1].normalized && !added.normalized; place--)
		*place = place[-1];
	*place = added;
	t->starts_added[(unsigned char)*text] = true;
out:
	return st;
}

size_t mu_tokenizer_n(const struct mu_tokenizer *t)
{
	return t->n;
}

bool mu_tokenizer_added(const struct mu_tokenizer *t, const char *text, uint32_t *id)
{
	*id = mu_tokenizer_find(t, text, strlen(text));
	for (size_t i = 0; i < t->n_added; i++)
		if (t->added[i].id == *id)
			return true;
	return false;
}

const char *mu_tokenizer_bytes(const struct mu_tokenizer *t, uint32_t id, size_t *nbytes)
{
	if (id >= t->n || t->pieces[id].name == TOKENS_NONE)
		return NULL;
	*nbytes = t->pieces[id].n;
	return t->bytes + t->pieces[id].at;
}

/* ---- lists ---- */

enum mu_status mu_token_list_add(struct mu_token_list *list, uint32_t id)
{
	enum mu_status st = MU_OK;

	MU_TRY(TOKENS_GROW(list->ids, list->room, list->n + 1));
	list->ids[list->n++] = id;
out:
	return st;
}

void mu_token_list_release(struct mu_token_list *list)
{
	mu_free(list->ids);
	*list = (struct mu_token_list){0};
}
