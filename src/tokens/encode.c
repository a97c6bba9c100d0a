/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of a text. Of the merges that are possible in a word the first in the list is done, of
 * several places the leftmost; then the merges that this made possible join the others. A heap
 * holds them: a word of n bytes takes O(n log n). Short words are remembered.
 */
#include "tokens.h"

#include <string.h>

enum {
	REMEMBERED_BYTES = 48,     /* longer words are rare */
	LONGEST_TOKEN = 2048,      /* bytes; no vocabulary has longer ones */
	REMEMBERED_WORDS = 1 << 18 /* then all are forgotten */
};

/* ---- a heap of merges: rank << 32 | place; the smallest is first ---- */

static void heap_push(struct token_scratch *s, uint64_t entry)
{
	size_t i = s->n_heap++;

	for (; i > 0 && s->heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = entry;
}

static uint64_t heap_pop(struct token_scratch *s)
{
	const uint64_t first = s->heap[0], last = s->heap[--s->n_heap];
	size_t i = 0;

	for (size_t child = 1; child < s->n_heap; child = 2 * i + 1) {
		child += child + 1 < s->n_heap && s->heap[child + 1] < s->heap[child];
		if (s->heap[child] >= last)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

/* ---- a word ---- */

/* If the symbol at this place and the next one can be merged, note it. */
static void note_merge(struct mu_tokenizer *t, uint32_t place)
{
	struct token_scratch *s = &t->scratch;
	const uint32_t next = s->next[place];
	uint32_t rank;

	if (next == TOKENS_NONE)
		return;
	rank = mu_token_map_get(&t->ranks, token_pair(s->symbols[place], s->symbols[next]));
	if (rank != TOKENS_NONE)
		heap_push(s, (uint64_t)rank << 32 | place);
}

/* An entry may be out of date: its symbols have become others. */
static void merge_at(struct mu_tokenizer *t, uint64_t entry)
{
	struct token_scratch *s = &t->scratch;
	const uint32_t made = t->merges[entry >> 32].made, place = (uint32_t)entry;
	uint32_t next, rank;

	if (s->symbols[place] == TOKENS_NONE || s->next[place] == TOKENS_NONE)
		return;
	next = s->next[place];
	rank = mu_token_map_get(&t->ranks, token_pair(s->symbols[place], s->symbols[next]));
	if (rank == TOKENS_NONE || t->merges[rank].made != made)
		return;
	s->symbols[place] = made;
	s->symbols[next] = TOKENS_NONE;
	s->next[place] = s->next[next];
	if (s->next[place] != TOKENS_NONE)
		s->previous[s->next[place]] = place;
	if (s->previous[place] != TOKENS_NONE)
		note_merge(t, s->previous[place]);
	note_merge(t, place);
}

static enum mu_status begin_word(struct mu_tokenizer *t, const char *word, size_t n)
{
	enum mu_status st = MU_OK;
	struct token_scratch *s = &t->scratch;

	if (n >= TOKENS_NONE)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"the text has a word of %zu bytes; at most %d are possible", n,
			TOKENS_NONE - 1);
	MU_TRY(TOKENS_GROW(s->symbols, s->room[0], n));
	MU_TRY(TOKENS_GROW(s->next, s->room[1], n));
	MU_TRY(TOKENS_GROW(s->previous, s->room[2], n));
	MU_TRY(TOKENS_GROW(s->heap, s->heap_room, 3 * n));
	s->n_heap = 0;
	for (size_t i = 0; i < n; i++) {
		const unsigned char byte = (unsigned char)word[i];

		if (t->byte_ids[byte] == TOKENS_NONE)
			MU_FAIL(MU_ERR_FORMAT,
				"byte 0x%02x of the text has no token in the vocabulary of %zu",
				byte, t->names.n);
		s->symbols[i] = t->byte_ids[byte];
		s->next[i] = i + 1 < n ? (uint32_t)i + 1 : TOKENS_NONE;
		s->previous[i] = i > 0 ? (uint32_t)i - 1 : TOKENS_NONE;
	}
out:
	return st;
}

/* The word's own token, if it has one. */
static uint32_t whole_word(const struct mu_tokenizer *t, const char *word, size_t n)
{
	char name[2 * LONGEST_TOKEN];
	size_t at = 0;

	for (size_t i = 0; i < n && n <= LONGEST_TOKEN; i++)
		at += mu_token_byte_name((unsigned char)word[i], name + at);
	return n <= LONGEST_TOKEN ? mu_tokenizer_find(t, name, at) : TOKENS_NONE;
}

static enum mu_status encode_word(struct mu_tokenizer *t, const char *word, size_t n,
				  struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	struct token_scratch *s = &t->scratch;
	uint32_t id;

	if (t->ignore_merges && (id = whole_word(t, word, n)) != TOKENS_NONE)
		return mu_token_list_add(list, id);
	MU_TRY(begin_word(t, word, n));
	for (size_t i = 0; i < n; i++)
		note_merge(t, (uint32_t)i);
	while (s->n_heap > 0)
		merge_at(t, heap_pop(s));
	for (uint32_t i = 0; i != TOKENS_NONE; i = s->next[i])
		MU_TRY(mu_token_list_add(list, s->symbols[i]));
out:
	return st;
}

/* A short word that is not among the remembered ones. */
static enum mu_status remember_word(struct mu_tokenizer *t, const char *word, size_t n)
{
	enum mu_status st = MU_OK;
	struct token_scratch *s = &t->scratch;
	uint32_t number;

	if (s->words.n == REMEMBERED_WORDS) {
		mu_token_words_clear(&s->words);
		s->tokens.n = 0;
	}
	MU_TRY(TOKENS_GROW(s->starts, s->starts_room, s->words.n + 2));
	s->starts[s->words.n] = s->tokens.n;
	MU_TRY(encode_word(t, word, n, &s->tokens)); /* before it has a number: it may fail */
	s->starts[s->words.n + 1] = s->tokens.n;
	MU_TRY(mu_token_words_add(&s->words, word, n, &number));
out:
	return st;
}

static enum mu_status add_word(struct mu_tokenizer *t, const char *word, size_t n,
			       struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	struct token_scratch *s = &t->scratch;
	uint32_t number;
	size_t from, count;

	if (n > REMEMBERED_BYTES)
		return encode_word(t, word, n, list);
	number = mu_token_words_find(&s->words, word, n);
	if (number == TOKENS_NONE) {
		MU_TRY(remember_word(t, word, n));
		number = (uint32_t)s->words.n - 1;
	}
	from = s->starts[number];
	count = s->starts[number + 1] - from;
	MU_TRY(TOKENS_GROW(list->ids, list->room, list->n + count));
	memcpy(list->ids + list->n, s->tokens.ids + from, count * sizeof *list->ids);
	list->n += count;
out:
	return st;
}

/* ---- a text ---- */

static enum mu_status cut_words(struct mu_tokenizer *t, const char *text, size_t nbytes,
				struct mu_token_list *list)
{
	enum mu_status st = MU_OK;

	while (nbytes > 0) {
		const size_t n = mu_token_word(t->rule, text, nbytes);

		MU_TRY(add_word(t, text, n, list));
		text += n;
		nbytes -= n;
	}
out:
	return st;
}

/* A text without added tokens. */
static enum mu_status add_words(struct mu_tokenizer *t, const char *text, size_t nbytes,
				struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	char *copy = NULL;

	if (!t->prefix_space || nbytes == 0 || *text == ' ')
		return cut_words(t, text, nbytes, list);
	MU_TRY(MU_ALLOC(copy, nbytes + 1, "a text"));
	copy[0] = ' ';
	memcpy(copy + 1, text, nbytes);
	MU_TRY(cut_words(t, copy, nbytes + 1, list));
out:
	mu_free(copy);
	return st;
}

/* The longest added token [from, to) of the table that text begins with; NULL: none. */
static const struct token_piece *added_at(const struct mu_tokenizer *t, size_t from, size_t to,
					  const char *text, size_t nbytes)
{
	const struct token_piece *found = NULL;

	for (size_t i = from; i < to; i++) {
		const struct token_piece *p = &t->pieces[t->added[i].id];

		if (p->n <= nbytes && memcmp(t->bytes + p->at, text, p->n) == 0 &&
		    (!found || p->n > found->n))
			found = p;
	}
	return found;
}

/*
 * Added tokens that are not normalized are found in the whole text, then the normalized ones in
 * what is between them, as tokenizers does.
 */
static enum mu_status add_text(struct mu_tokenizer *t, size_t group, const char *text,
			       size_t nbytes, struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	size_t first = 0, from, to, start = 0;

	while (first < t->n_added && !t->added[first].normalized)
		first++;
	if (group == 2)
		return add_words(t, text, nbytes, list);
	from = group == 0 ? 0 : first;
	to = group == 0 ? first : t->n_added;
	for (size_t i = 0; from < to && i < nbytes;) {
		const struct token_piece *added = NULL;

		if (t->starts_added[(unsigned char)text[i]])
			added = added_at(t, from, to, text + i, nbytes - i);
		if (!added) {
			i++;
			continue;
		}
		MU_TRY(add_text(t, group + 1, text + start, i - start, list));
		MU_TRY(mu_token_list_add(list, (uint32_t)(added - t->pieces)));
		start = i += added->n;
	}
	MU_TRY(add_text(t, group + 1, text + start, nbytes - start, list));
out:
	return st;
}

enum mu_status mu_tokenizer_encode(struct mu_tokenizer *t, const char *text, size_t nbytes,
				   struct mu_token_list *list)
{
	enum mu_status st = MU_OK;

	if (t->nfc)
		MU_TRY(mu_token_check_nfc(text, nbytes));
	MU_TRY(add_text(t, 0, text, nbytes, list));
out:
	return st;
}

enum mu_status mu_tokenizer_encode_file(struct mu_tokenizer *t, const char *path,
					struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	char *text = NULL;
	size_t n;

	MU_TRY(mu_token_text_read(path, true, &text, &n));
	st = mu_tokenizer_encode(t, text, n, list);
	if (st != MU_OK)
		mu_trace_prefix("%s: ", path);
	MU_TRY(st);
out:
	mu_free(text);
	return st;
}
