/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training of a byte-level BPE (Sennrich et al., Neural machine translation of rare words with
 * subword units, 2016), with the result of tokenizers' BpeTrainer: different words are counted
 * once; a heap has the pairs by count. An entry knows the words where its pair was new. A count
 * that has become lower since is corrected when its entry comes up.
 */
#include "tokens.h"

#include <string.h>

struct mu_token_counts {
	struct token_words words;
	uint64_t *counts; /* by word */
	size_t room;
};

/* Numbers of words. */
struct places {
	uint32_t *of;
	size_t n, room;
};

struct entry {
	int64_t count; /* when it was pushed */
	uint64_t pair;
	struct places places; /* owned */
};

struct trainer {
	struct mu_token_counts *words;
	struct mu_tokenizer *t;
	uint32_t *symbols; /* of word i: lengths[i] of them from the first byte of the word on */
	uint32_t *lengths;
	struct token_map pairs; /* pair -> index of the three below */
	uint64_t *pair_of;
	int64_t *pair_counts;
	struct places *new_places; /* of the current merge */
	size_t n_pairs, pairs_room[3];
	struct places touched; /* pairs with new places */
	struct entry *heap;
	size_t n_heap, heap_room;
	char *name;
	size_t name_room;
};

/* ---- counting words ---- */

enum mu_status mu_token_counts_new(struct mu_token_counts **out)
{
	return MU_ALLOC(*out, 1, "counts of words");
}

void mu_token_counts_free(struct mu_token_counts *c)
{
	if (!c)
		return;
	mu_token_words_release(&c->words);
	mu_free(c->counts);
	mu_free(c);
}

enum mu_status mu_token_counts_add(struct mu_token_counts *c, const char *text, size_t nbytes)
{
	enum mu_status st = MU_OK;
	uint32_t number;

	while (nbytes > 0) {
		const size_t n = mu_token_word(&mu_token_rules[0], text, nbytes),
			     before = c->words.n;

		MU_TRY(mu_token_words_add(&c->words, text, n, &number));
		MU_TRY(TOKENS_GROW(c->counts, c->room, c->words.n));
		if (number == before)
			c->counts[number] = 0;
		c->counts[number]++;
		text += n;
		nbytes -= n;
	}
out:
	return st;
}

enum mu_status mu_token_counts_add_file(struct mu_token_counts *c, const char *path)
{
	enum mu_status st = MU_OK;
	char *text;
	size_t n;

	MU_TRY(mu_token_text_read(path, true, &text, &n));
	MU_TRY(mu_token_counts_add(c, text, n));
out:
	mu_free(text);
	return st;
}

/* ---- the heap: the largest count is first, of equal ones the lowest pair ---- */

static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static enum mu_status heap_push(struct trainer *r, const struct entry *entry)
{
	enum mu_status st = MU_OK;
	size_t i = r->n_heap;

	MU_TRY(TOKENS_GROW(r->heap, r->heap_room, r->n_heap + 1));
	r->n_heap++;
	for (; i > 0 && is_before(entry, &r->heap[(i - 1) / 2]); i = (i - 1) / 2)
		r->heap[i] = r->heap[(i - 1) / 2];
	r->heap[i] = *entry;
out:
	return st;
}

static struct entry heap_pop(struct trainer *r)
{
	const struct entry first = r->heap[0], last = r->heap[--r->n_heap];
	size_t i = 0;

	for (size_t child = 1; child < r->n_heap; child = 2 * i + 1) {
		child += child + 1 < r->n_heap && is_before(&r->heap[child + 1], &r->heap[child]);
		if (!is_before(&r->heap[child], &last))
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = last;
	return first;
}

/* ---- pairs ---- */

static enum mu_status find_pair(struct trainer *r, uint64_t pair, uint32_t *index)
{
	enum mu_status st = MU_OK;
	const size_t n = r->n_pairs + 1;

	*index = mu_token_map_get(&r->pairs, pair);
	if (*index != TOKENS_NONE)
		goto out;
	if (n >= TOKENS_NONE)
		MU_FAIL(MU_ERR_UNSUPPORTED, "the texts have more than %d pairs of tokens",
			TOKENS_NONE - 1);
	MU_TRY(TOKENS_GROW(r->pair_of, r->pairs_room[0], n));
	MU_TRY(TOKENS_GROW(r->pair_counts, r->pairs_room[1], n));
	MU_TRY(TOKENS_GROW(r->new_places, r->pairs_room[2], n));
	*index = (uint32_t)r->n_pairs;
	MU_TRY(mu_token_map_set(&r->pairs, pair, *index));
	r->pair_of[*index] = pair;
	r->pair_counts[*index] = 0;
	r->new_places[*index] = (struct places){0};
	r->n_pairs = n;
out:
	return st;
}

/* The pair occurs once more in a word, or once less. */
static enum mu_status change_pair(struct trainer *r, uint64_t pair, uint32_t word, bool more)
{
	enum mu_status st = MU_OK;
	const int64_t count = (int64_t)r->words->counts[word];
	struct places *places;
	uint32_t index;

	MU_TRY(find_pair(r, pair, &index));
	r->pair_counts[index] += more ? count : -count;
	if (!more)
		goto out;
	places = &r->new_places[index];
	if (places->n == 0) {
		MU_TRY(TOKENS_GROW(r->touched.of, r->touched.room, r->touched.n + 1));
		r->touched.of[r->touched.n++] = index;
	}
	if (places->n == 0 || places->of[places->n - 1] != word) {
		MU_TRY(TOKENS_GROW(places->of, places->room, places->n + 1));
		places->of[places->n++] = word;
	}
out:
	return st;
}

/* Pairs with new places become entries of the heap. */
static enum mu_status push_touched(struct trainer *r)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < r->touched.n; i++) {
		const uint32_t index = r->touched.of[i];
		const struct entry entry = {r->pair_counts[index], r->pair_of[index],
					    r->new_places[index]};

		if (entry.count > 0)
			MU_TRY(heap_push(r, &entry));
		else
			mu_free(entry.places.of);
		r->new_places[index] = (struct places){0};
	}
	r->touched.n = 0;
out:
	return st;
}

/* ---- merging ---- */

static uint32_t *symbols_of(const struct trainer *r, uint32_t word)
{
	return r->symbols + (word == 0 ? 0 : r->words->words.ends[word - 1]);
}

/* Merge the pair in a word, from left to right. */
static enum mu_status merge_word(struct trainer *r, uint32_t word, uint64_t pair, uint32_t made)
{
	enum mu_status st = MU_OK;
	const uint32_t a = (uint32_t)(pair >> 32), b = (uint32_t)pair, n = r->lengths[word];
	uint32_t *s = symbols_of(r, word), to = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (s[i] != a || i + 1 == n || s[i + 1] != b) {
			s[to++] = s[i];
			continue;
		}
		if (to > 0) {
			MU_TRY(change_pair(r, token_pair(s[to - 1], a), word, false));
			MU_TRY(change_pair(r, token_pair(s[to - 1], made), word, true));
		}
		i++;
		if (i + 1 < n) {
			MU_TRY(change_pair(r, token_pair(b, s[i + 1]), word, false));
			MU_TRY(change_pair(r, token_pair(made, s[i + 1]), word, true));
		}
		s[to++] = made;
	}
	r->lengths[word] = to;
out:
	return st;
}

/* The token of a pair: a new one, unless another pair gave the same bytes. */
static enum mu_status make_token(struct trainer *r, uint64_t pair, uint32_t *made)
{
	enum mu_status st = MU_OK;
	struct mu_tokenizer *t = r->t;
	const uint32_t a = t->pieces[pair >> 32].name, b = t->pieces[(uint32_t)pair].name;
	size_t n_a, n_b;
	const char *name = mu_token_words_get(&t->names, a, &n_a);

	mu_token_words_get(&t->names, b, &n_b);
	MU_TRY(TOKENS_GROW(r->name, r->name_room, n_a + n_b));
	memcpy(r->name, name, n_a);
	memcpy(r->name + n_a, mu_token_words_get(&t->names, b, &n_b), n_b);
	*made = mu_tokenizer_find(t, r->name, n_a + n_b);
	if (*made == TOKENS_NONE) {
		*made = (uint32_t)t->n;
		MU_TRY(mu_tokenizer_add_token(t, "the trained tokenizer", r->name, n_a + n_b,
					      *made));
	}
	MU_TRY(mu_tokenizer_add_merge(t, (uint32_t)(pair >> 32), (uint32_t)pair, *made));
out:
	return st;
}

static enum mu_status merge_pair(struct trainer *r, const struct entry *entry)
{
	enum mu_status st = MU_OK;
	uint32_t made;

	MU_TRY(make_token(r, entry->pair, &made));
	for (size_t i = 0; i < entry->places.n; i++)
		MU_TRY(merge_word(r, entry->places.of[i], entry->pair, made));
	MU_TRY(push_touched(r));
out:
	return st;
}

static enum mu_status merge_all(struct trainer *r, size_t n, size_t min_count)
{
	enum mu_status st = MU_OK;

	while (r->t->names.n < n && r->n_heap > 0) {
		struct entry entry = heap_pop(r);
		const uint32_t index = mu_token_map_get(&r->pairs, entry.pair);

		if (entry.count != r->pair_counts[index]) {
			entry.count = r->pair_counts[index];
			MU_TRY(heap_push(r, &entry));
			continue;
		}
		if (entry.count < 1 || entry.count < (int64_t)min_count) {
			mu_free(entry.places.of);
			break;
		}
		st = merge_pair(r, &entry);
		mu_free(entry.places.of);
		MU_TRY(st);
	}
out:
	return st;
}

/* ---- the beginning ---- */

/* "<|endoftext|>", and the bytes in the order of their characters. */
static enum mu_status add_alphabet(struct mu_tokenizer *t)
{
	enum mu_status st = MU_OK;
	static const char who[] = "the trained tokenizer";
	static const char end[] = MU_TOKEN_END_OF_TEXT;
	char name[2];

	MU_TRY(mu_tokenizer_add_token(t, who, end, strlen(end), 0));
	MU_TRY(mu_tokenizer_add_added(t, who, end, strlen(end),
				      (struct token_added){.special = true}));
	for (uint32_t code = 0; code <= 0x143; code++) {
		const int byte = mu_token_byte_of(code);

		if (byte < 0)
			continue;
		MU_TRY(mu_tokenizer_add_token(t, who, name,
					      mu_token_byte_name((unsigned char)byte, name), t->n));
	}
out:
	return st;
}

static enum mu_status count_pairs(struct trainer *r)
{
	enum mu_status st = MU_OK;
	const struct token_words *words = &r->words->words;

	MU_TRY(MU_ALLOC(r->symbols, words->n_bytes + 1, "symbols of words"));
	MU_TRY(MU_ALLOC(r->lengths, words->n + 1, "lengths of words"));
	for (size_t i = 0; i < words->n_bytes; i++)
		r->symbols[i] = r->t->byte_ids[(unsigned char)words->bytes[i]];
	for (uint32_t word = 0; word < words->n; word++) {
		const uint32_t *s = symbols_of(r, word);

		r->lengths[word] = (uint32_t)(words->ends[word] - (size_t)(s - r->symbols));
		for (uint32_t i = 0; i + 1 < r->lengths[word]; i++)
			MU_TRY(change_pair(r, token_pair(s[i], s[i + 1]), word, true));
	}
	MU_TRY(push_touched(r));
out:
	return st;
}

static void release(struct trainer *r)
{
	for (size_t i = 0; i < r->n_heap; i++)
		mu_free(r->heap[i].places.of);
	for (size_t i = 0; i < r->touched.n; i++)
		mu_free(r->new_places[r->touched.of[i]].of);
	mu_free(r->heap);
	mu_free(r->touched.of);
	mu_free(r->new_places);
	mu_free(r->pair_counts);
	mu_free(r->pair_of);
	mu_token_map_release(&r->pairs);
	mu_free(r->symbols);
	mu_free(r->lengths);
	mu_free(r->name);
	mu_tokenizer_free(r->t);
}

enum mu_status mu_token_counts_train(struct mu_token_counts *c, size_t n, size_t min_count,
				     struct mu_tokenizer **out)
{
	enum mu_status st = MU_OK;
	struct trainer r = {.words = c};

	*out = NULL;
	MU_TRY(mu_tokenizer_new(&r.t));
	MU_TRY(add_alphabet(r.t));
	MU_TRY(count_pairs(&r));
	MU_TRY(merge_all(&r, n, min_count));
	*out = r.t;
	r.t = NULL;
out:
	release(&r);
	return st;
}
