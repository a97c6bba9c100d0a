/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers from files: Hugging Face's tokenizer.json, or GPT-2's vocab.json and merges.txt.
 */
#include "tokens.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

struct source {
	struct mu_tokenizer *t;
	const char *path;
	char *name; /* of a merge's token */
	size_t name_room;
};

/* ---- members that change no token ---- */

static const struct token_member top_members[] = {
	{"version", "*"},        {"truncation", "*"}, /* of a model's input: texts stay whole */
	{"padding", "*"},        {"added_tokens", "*"}, {"normalizer", "*"}, {"pre_tokenizer", "*"},
	{"post_processor", "*"}, {"decoder", "*"},      {"model", "*"},      {NULL, NULL},
};
static const struct token_member model_members[] = {
	{"type", "\"BPE\""},
	{"dropout", "null|zero"},
	{"unk_token", "null"},
	{"continuing_subword_prefix", "null|\"\""},
	{"end_of_word_suffix", "null|\"\""},
	{"fuse_unk", "*"},
	{"byte_fallback", "false"},
	{"ignore_merges", "false|true"},
	{"vocab", "*"},
	{"merges", "*"},
	{NULL, NULL},
};
static const struct token_member added_members[] = {
	{"id", "*"},         {"content", "*"},    {"single_word", "false"}, {"lstrip", "false"},
	{"rstrip", "false"}, {"normalized", "*"}, {"special", "*"},         {NULL, NULL},
};

/* ---- vocabulary and merges ---- */

static enum mu_status add_vocabulary(struct source *s, const struct mu_json_value *vocab)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v;
	uint64_t id;

	if (!vocab || vocab->type != MU_JSON_OBJECT || vocab->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no vocabulary, an object of tokens and numbers",
			s->path);
	v = mu_json_first(vocab);
	for (uint32_t i = 0; i < vocab->n; i++, v = mu_json_next(v)) {
		if (!mu_json_integer(v, UINT32_MAX, &id))
			MU_FAIL(MU_ERR_FORMAT, "%s: token \"%.60s\" has no number", s->path,
				v->name);
		MU_TRY(mu_tokenizer_add_token(s->t, s->path, v->name, v->name_bytes, id));
	}
out:
	return st;
}

static enum mu_status find_token(const struct source *s, size_t line, const char *name, size_t n,
				 uint32_t *id)
{
	enum mu_status st = MU_OK;

	*id = mu_tokenizer_find(s->t, name, n);
	if (*id == TOKENS_NONE)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: merge %zu needs token \"%.*s\", which is not in the "
			"vocabulary",
			s->path, line, (int)(n < 60 ? n : 60), name);
out:
	return st;
}

/* number: of the merge, from 1 on, for messages. */
static enum mu_status add_merge(struct source *s, size_t number, const char *a, size_t n_a,
				const char *b, size_t n_b)
{
	enum mu_status st = MU_OK;
	uint32_t ids[3];

	if (n_a == 0 || n_b == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: merge %zu is not a pair of tokens", s->path, number);
	MU_TRY(TOKENS_GROW(s->name, s->name_room, n_a + n_b));
	memcpy(s->name, a, n_a);
	memcpy(s->name + n_a, b, n_b);
	MU_TRY(find_token(s, number, a, n_a, &ids[0]));
	MU_TRY(find_token(s, number, b, n_b, &ids[1]));
	MU_TRY(find_token(s, number, s->name, n_a + n_b, &ids[2]));
	MU_TRY(mu_tokenizer_add_merge(s->t, ids[0], ids[1], ids[2]));
out:
	return st;
}

/* "a b" */
static enum mu_status add_merge_text(struct source *s, size_t number, const char *text, size_t n)
{
	const char *space = memchr(text, ' ', n);
	const size_t n_a = space ? (size_t)(space - text) : n, n_b = space ? n - n_a - 1 : 0;

	return add_merge(s, number, text, n_a, space ? space + 1 : text,
			 space && memchr(space + 1, ' ', n_b) ? 0 : n_b);
}

/* Each "a b", or ["a", "b"]. */
static enum mu_status add_merges(struct source *s, const struct mu_json_value *merges)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v, *a, *b;

	if (!merges || merges->type != MU_JSON_ARRAY)
		MU_FAIL(MU_ERR_FORMAT, "%s: model.merges is missing, or is no list", s->path);
	v = mu_json_first(merges);
	for (uint32_t i = 0; i < merges->n; i++, v = mu_json_next(v)) {
		if (v->type == MU_JSON_TEXT) {
			MU_TRY(add_merge_text(s, i + (size_t)1, v->text, v->text_bytes));
			continue;
		}
		a = mu_json_first(v);
		b = a + 1;
		if (v->type != MU_JSON_ARRAY || v->n != 2 || a->type != MU_JSON_TEXT ||
		    b->type != MU_JSON_TEXT)
			MU_FAIL(MU_ERR_FORMAT, "%s: merge %lu is not a pair of tokens", s->path,
				i + 1ul);
		MU_TRY(add_merge(s, i + (size_t)1, a->text, a->text_bytes, b->text,
				 b->text_bytes));
	}
out:
	return st;
}

static enum mu_status add_added(struct source *s, const struct mu_json_value *list)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v, *content, *flag;
	struct token_added added;
	uint64_t id;

	if (!list || list->type == MU_JSON_NULL)
		goto out;
	if (list->type != MU_JSON_ARRAY)
		MU_FAIL(MU_ERR_FORMAT, "%s: added_tokens is no list", s->path);
	v = mu_json_first(list);
	for (uint32_t i = 0; i < list->n; i++, v = mu_json_next(v)) {
		MU_TRY(mu_token_check_members(s->path, v, "added_tokens[]", added_members));
		content = mu_json_member(v, "content");
		if (!content || content->type != MU_JSON_TEXT || content->text_bytes == 0 ||
		    !mu_json_integer(mu_json_member(v, "id"), MU_TOKENS_MAX - 1, &id))
			MU_FAIL(MU_ERR_FORMAT, "%s: added token %lu has no content, or no number",
				s->path, (unsigned long)i);
		added = (struct token_added){.id = (uint32_t)id};
		flag = mu_json_member(v, "special");
		added.special = flag && flag->type == MU_JSON_TRUE;
		flag = mu_json_member(v, "normalized");
		added.normalized = flag && flag->type == MU_JSON_TRUE;
		MU_TRY(mu_tokenizer_add_added(s->t, s->path, content->text, content->text_bytes,
					      added));
	}
out:
	return st;
}

static enum mu_status read_whole(struct source *s, const struct mu_json_value *top)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *model = mu_json_member(top, "model");

	MU_TRY(mu_token_check_members(s->path, top, "", top_members));
	MU_TRY(mu_token_check_members(s->path, model, "model", model_members));
	MU_TRY(mu_token_read_pipeline(s->t, s->path, top));
	MU_TRY(add_vocabulary(s, mu_json_member(model, "vocab")));
	MU_TRY(add_merges(s, mu_json_member(model, "merges")));
	MU_TRY(add_added(s, mu_json_member(top, "added_tokens")));
out:
	return st;
}

/* ---- GPT-2's files ---- */

/* Lines "a b"; those that begin with "#version" are none. */
static enum mu_status read_merges(struct source *s)
{
	enum mu_status st = MU_OK;
	char *text = NULL;
	size_t nbytes, number = 0;

	MU_TRY(mu_token_text_read(s->path, false, &text, &nbytes));
	for (const char *p = text, *end = text + nbytes; p < end;) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((line_end ? line_end : end) - p);

		n -= n > 0 && p[n - 1] == '\r';
		if (n > 0 && strncmp(p, "#version", 8) != 0)
			MU_TRY(add_merge_text(s, ++number, p, n));
		p = line_end ? line_end + 1 : end;
	}
out:
	mu_free(text);
	return st;
}

/* What transformers saves beside the pair, where its rule may be another than GPT-2's. */
#define CURE "save the fast tokenizer (AutoTokenizer, save_pretrained), and give its tokenizer.json"

/* Is it of GPT-2, and nothing added? */
static enum mu_status check_config(const char *path, const struct mu_json_value *top)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *class = mu_json_member(top, "tokenizer_class"), *v;
	const struct mu_json_value *space = mu_json_member(top, "add_prefix_space");
	const struct mu_json_value *added = mu_json_member(top, "added_tokens_decoder");

	if (class && class->type != MU_JSON_NULL && !mu_json_is_text(class, "GPT2Tokenizer") &&
	    !mu_json_is_text(class, "GPT2TokenizerFast"))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: has tokenizer_class %.60s, and vocab.json and merges.txt are read by "
			"GPT-2's rule: " CURE,
			path, class->type == MU_JSON_TEXT ? class->text : "of no name");
	if (space && space->type != MU_JSON_NULL && space->type != MU_JSON_FALSE)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: has add_prefix_space, which is not done with vocab.json and "
			"merges.txt: " CURE,
			path);
	v = added && added->type == MU_JSON_OBJECT ? mu_json_first(added) : NULL;
	for (uint32_t i = 0; v && i < added->n; i++, v = mu_json_next(v)) {
		const struct mu_json_value *content = mu_json_member(v, "content");

		if (!mu_json_is_text(content, MU_TOKEN_END_OF_TEXT))
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s: has the added token %.60s, which vocab.json and merges.txt "
				"do not tell: " CURE,
				path,
				content && content->type == MU_JSON_TEXT ? content->text
									 : v->name);
	}
out:
	return st;
}

static enum mu_status check_added(const struct source *s, const char *path,
				  const struct mu_json_value *top)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v = top->type == MU_JSON_OBJECT ? mu_json_first(top) : NULL;

	for (uint32_t i = 0; v && i < top->n; i++, v = mu_json_next(v))
		if (mu_tokenizer_find(s->t, v->name, v->name_bytes) == TOKENS_NONE)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s: has the added token %.60s, which vocab.json lacks: " CURE,
				path, v->name);
out:
	return st;
}

static enum mu_status check_beside(const struct source *s, int folder)
{
	enum mu_status st = MU_OK;
	static const char *const names[] = {"tokenizer_config.json", "added_tokens.json"};
	struct mu_json_document json = {0};
	char path[PATH_BYTES], *text = NULL;
	size_t nbytes;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%.*s%s", folder, s->path, names[i]);
		if (access(path, F_OK) != 0)
			continue;
		MU_TRY(mu_token_text_read(path, false, &text, &nbytes));
		MU_TRY(mu_json_read(&json, path, text, nbytes));
		MU_TRY(i == 0 ? check_config(path, json.values)
			      : check_added(s, path, json.values));
		mu_json_release(&json);
		mu_free(text);
		text = NULL;
	}
out:
	mu_json_release(&json);
	mu_free(text);
	return st;
}

static enum mu_status read_pair(struct source *s, const struct mu_json_value *vocab)
{
	enum mu_status st = MU_OK;
	char merges[PATH_BYTES];
	const char *vocab_path = s->path, *slash = strrchr(s->path, '/');
	const int folder = slash ? (int)(slash - s->path) + 1 : 0;
	static const char end[] = MU_TOKEN_END_OF_TEXT;
	struct token_added added = {.special = true};

	MU_TRY(add_vocabulary(s, vocab));
	MU_TRY(check_beside(s, folder));
	snprintf(merges, sizeof merges, "%.*smerges.txt", folder, s->path);
	s->path = merges;
	MU_TRY(read_merges(s));
	added.id = mu_tokenizer_find(s->t, end, strlen(end));
	if (added.id != TOKENS_NONE)
		MU_TRY(mu_tokenizer_add_added(s->t, vocab_path, end, strlen(end), added));
out:
	s->path = vocab_path;
	return st;
}

/* ---- which file ---- */

static enum mu_status find_file(const char *path, char file[PATH_BYTES])
{
	enum mu_status st = MU_OK;
	static const char *const names[] = {"", "/tokenizer.json", "/vocab.json"};
	struct stat status;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (snprintf(file, PATH_BYTES, "%s%s", path, names[i]) >= PATH_BYTES)
			MU_FAIL(MU_ERR_IO, "%.80s...: is too long for the name of a file", path);
		if (stat(file, &status) == 0 && S_ISREG(status.st_mode))
			goto out;
	}
	MU_FAIL(MU_ERR_IO,
		"%s: is neither a tokenizer.json, nor a folder with one or with vocab.json and "
		"merges.txt",
		path);
out:
	return st;
}

/* path: of the text, or a name for messages. */
static enum mu_status read_text(struct mu_tokenizer **out, const char *path, char *text,
				size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_json_document json = {0};
	struct source s = {.path = path};
	const struct mu_json_value *model;

	*out = NULL;
	MU_TRY(mu_json_read(&json, path, text, nbytes));
	MU_TRY(mu_tokenizer_new(&s.t));
	model = mu_json_member(json.values, "model"); /* a number: of that word in a vocab.json */
	if (model && model->type != MU_JSON_NUMBER)
		MU_TRY(read_whole(&s, json.values));
	else
		MU_TRY(read_pair(&s, json.values));
	*out = s.t;
	s.t = NULL;
out:
	mu_tokenizer_free(s.t);
	mu_free(s.name);
	mu_json_release(&json);
	return st;
}

enum mu_status mu_tokenizer_read(struct mu_tokenizer **out, const char *path)
{
	enum mu_status st = MU_OK;
	char *text = NULL, file[PATH_BYTES];
	size_t nbytes;

	*out = NULL;
	MU_TRY(find_file(path, file));
	MU_TRY(mu_token_text_read(file, false, &text, &nbytes));
	MU_TRY(read_text(out, file, text, nbytes));
out:
	mu_free(text);
	return st;
}

enum mu_status mu_tokenizer_from_text(struct mu_tokenizer **out, const char *name, char *text)
{
	return read_text(out, name, text, strlen(text));
}
