/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer.json, as tokenizers (from 0.13 on) reads it. */
#include "tokens.h"

#include <muster/storage.h>

#include <stdlib.h>
#include <string.h>

struct writer {
	const struct mu_tokenizer *t;
	const char *path;
	struct mu_json json;
	char *text; /* of a name and a zero byte, or of a merge */
};

/* Names of JSON end at a zero byte here. */
static enum mu_status copy_name(const struct writer *w, uint32_t id, char *to, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	const char *name = mu_token_words_get(&w->t->names, w->t->pieces[id].name, nbytes);

	if (memchr(name, 0, *nbytes))
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: token %lu has a zero byte in its name", w->path,
			(unsigned long)id);
	memcpy(to, name, *nbytes);
	to[*nbytes] = '\0';
out:
	return st;
}

static size_t longest_name(const struct mu_tokenizer *t)
{
	size_t longest = 0, n;

	for (uint32_t i = 0; i < t->names.n; i++) {
		mu_token_words_get(&t->names, i, &n);
		longest = n > longest ? n : longest;
	}
	return longest;
}

static enum mu_status put_added(struct writer *w)
{
	enum mu_status st = MU_OK;
	struct mu_json *j = &w->json;
	size_t n;

	mu_json_open(j, "added_tokens", '[');
	for (size_t i = 0; i < w->t->n_added; i++) {
		const struct token_added *a = &w->t->added[i];

		MU_TRY(copy_name(w, a->id, w->text, &n));
		mu_json_open(j, NULL, '{');
		mu_json_number(j, "id", a->id);
		mu_json_text(j, "content", w->text);
		mu_json_bool(j, "single_word", false);
		mu_json_bool(j, "lstrip", false);
		mu_json_bool(j, "rstrip", false);
		mu_json_bool(j, "normalized", a->normalized);
		mu_json_bool(j, "special", a->special);
		mu_json_close(j, '}');
	}
	mu_json_close(j, ']');
out:
	return st;
}

static void put_byte_level(struct mu_json *j, const char *name, bool prefix_space, bool use_regex)
{
	mu_json_open(j, name, '{');
	mu_json_text(j, "type", "ByteLevel");
	mu_json_bool(j, "add_prefix_space", prefix_space);
	mu_json_bool(j, "trim_offsets", true);
	mu_json_bool(j, "use_regex", use_regex);
	mu_json_close(j, '}');
}

static void put_split(struct mu_json *j, const char *pattern)
{
	mu_json_open(j, NULL, '{');
	mu_json_text(j, "type", "Split");
	mu_json_open(j, "pattern", '{');
	mu_json_text(j, "Regex", pattern);
	mu_json_close(j, '}');
	mu_json_text(j, "behavior", "Isolated");
	mu_json_bool(j, "invert", false);
	mu_json_close(j, '}');
}

static void put_pre_tokenizer(struct mu_json *j, const struct mu_tokenizer *t)
{
	if (t->rule == mu_token_rules) {
		put_byte_level(j, "pre_tokenizer", t->prefix_space, true);
		return;
	}
	mu_json_open(j, "pre_tokenizer", '{');
	mu_json_text(j, "type", "Sequence");
	mu_json_open(j, "pretokenizers", '[');
	if (t->rule->pattern) {
		put_split(j, t->rule->pattern);
	} else {
		mu_json_open(j, NULL, '{');
		mu_json_text(j, "type", "Digits");
		mu_json_bool(j, "individual_digits", true);
		mu_json_close(j, '}');
	}
	put_byte_level(j, NULL, false, !t->rule->pattern);
	mu_json_close(j, ']');
	mu_json_close(j, '}');
}

static void put_normalizer(struct mu_json *j, const struct mu_tokenizer *t)
{
	if (!t->nfc) {
		mu_json_text(j, "normalizer", NULL);
		return;
	}
	mu_json_open(j, "normalizer", '{');
	mu_json_text(j, "type", "NFC");
	mu_json_close(j, '}');
}

static enum mu_status put_vocabulary(struct writer *w)
{
	enum mu_status st = MU_OK;
	size_t n;

	mu_json_open(&w->json, "vocab", '{');
	for (uint32_t id = 0; id < w->t->n; id++) {
		if (w->t->pieces[id].name == TOKENS_NONE)
			continue;
		MU_TRY(copy_name(w, id, w->text, &n));
		mu_json_number(&w->json, w->text, id);
	}
	mu_json_close(&w->json, '}');
out:
	return st;
}

static enum mu_status put_merges(struct writer *w)
{
	enum mu_status st = MU_OK;
	size_t n, m;

	mu_json_open(&w->json, "merges", '[');
	for (size_t i = 0; i < w->t->n_merges; i++) {
		MU_TRY(copy_name(w, w->t->merges[i].a, w->text, &n));
		w->text[n] = ' ';
		MU_TRY(copy_name(w, w->t->merges[i].b, w->text + n + 1, &m));
		mu_json_text(&w->json, NULL, w->text);
	}
	mu_json_close(&w->json, ']');
out:
	return st;
}

static enum mu_status put_all(struct writer *w)
{
	enum mu_status st = MU_OK;
	struct mu_json *j = &w->json;
	static const char *const unset[] = {"dropout", "unk_token", "continuing_subword_prefix",
					    "end_of_word_suffix"};

	mu_json_open(j, NULL, '{');
	mu_json_text(j, "version", "1.0");
	mu_json_text(j, "truncation", NULL);
	mu_json_text(j, "padding", NULL);
	MU_TRY(put_added(w));
	put_normalizer(j, w->t);
	put_pre_tokenizer(j, w->t);
	put_byte_level(j, "post_processor", false, true);
	put_byte_level(j, "decoder", false, true);
	mu_json_open(j, "model", '{');
	mu_json_text(j, "type", "BPE");
	for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
		mu_json_text(j, unset[i], NULL);
	mu_json_bool(j, "fuse_unk", false);
	mu_json_bool(j, "byte_fallback", false);
	mu_json_bool(j, "ignore_merges", w->t->ignore_merges);
	MU_TRY(put_vocabulary(w));
	MU_TRY(put_merges(w));
	mu_json_close(j, '}');
	mu_json_close(j, '}');
out:
	return st;
}

static enum mu_status write_json(const struct mu_tokenizer *t, const char *path, FILE *file)
{
	enum mu_status st = MU_OK;
	struct writer w = {.t = t, .path = path, .json.file = file};

	MU_TRY(MU_ALLOC(w.text, 2 * longest_name(t) + 2, "names of tokens"));
	MU_TRY(put_all(&w));
out:
	mu_free(w.text);
	return st;
}

enum mu_status mu_tokenizer_write(const struct mu_tokenizer *t, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_replace file = {0};

	MU_TRY(mu_replace_open(&file, path));
	MU_TRY(write_json(t, path, file.stream));
	MU_TRY(mu_replace_commit(&file));
out:
	mu_replace_release(&file);
	return st;
}

enum mu_status mu_tokenizer_to_text(const struct mu_tokenizer *t, char **text)
{
	enum mu_status st = MU_OK;
	size_t nbytes;
	FILE *f;

	*text = NULL;
	f = open_memstream(text, &nbytes);
	if (!f)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the text of a tokenizer");
	st = write_json(t, "the tokenizer", f);
	if (fclose(f) != 0 && st == MU_OK)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the text of a tokenizer");
out:
	return st;
}

enum mu_status mu_tokenizer_hash(const struct mu_tokenizer *t, uint64_t *h)
{
	enum mu_status st = MU_OK;
	char *text = NULL;

	*h = 0;
	MU_TRY(mu_tokenizer_to_text(t, &text));
	*h = mu_hash_block(MU_HASH_START, text, strlen(text));
out:
	free(text);
	return st;
}

enum mu_status mu_tokenizer_same(const struct mu_tokenizer *a, const struct mu_tokenizer *b,
				 bool *same)
{
	enum mu_status st = MU_OK;
	char *texts[2] = {NULL, NULL};

	MU_TRY(mu_tokenizer_to_text(a, &texts[0]));
	MU_TRY(mu_tokenizer_to_text(b, &texts[1]));
	*same = strcmp(texts[0], texts[1]) == 0;
out:
	free(texts[0]);
	free(texts[1]);
	return st;
}
