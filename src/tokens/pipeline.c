/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tokenizer.json says beyond its vocabulary: how texts become words. Each part is a table of
 * members with the values that are known here; any other value, and any other member, is refused.
 */
#include "tokens.h"

#include <string.h>

struct source {
	struct mu_tokenizer *t;
	const char *path;
};

static const struct token_member level_members[] = {
	{"type", "\"ByteLevel\""},
	{"add_prefix_space", "false|true"},
	{"trim_offsets", "*"},
	{"use_regex", "true"},
	{NULL, NULL},
};
/* After a split by a rule of its own. */
static const struct token_member after_members[] = {
	{"type", "\"ByteLevel\""},
	{"add_prefix_space", "false"},
	{"trim_offsets", "*"},
	{"use_regex", "false"},
	{NULL, NULL},
};
static const struct token_member after_digits_members[] = {
	{"type", "\"ByteLevel\""},
	{"add_prefix_space", "false"},
	{"trim_offsets", "*"},
	{"use_regex", "true"},
	{NULL, NULL},
};
static const struct token_member split_members[] = {
	{"type", "\"Split\""}, {"pattern", "*"}, {"behavior", "\"Isolated\""},
	{"invert", "false"},   {NULL, NULL},
};
static const struct token_member digits_members[] = {
	{"type", "\"Digits\""},
	{"individual_digits", "true"},
	{NULL, NULL},
};
static const struct token_member normalizer_members[] = {
	{"type", "\"NFC\""},
	{NULL, NULL},
};
/* Of the post-processor and the decoder only the type counts. */
static const struct token_member later_members[] = {
	{"type", "\"ByteLevel\""},
	{"add_prefix_space", "*"},
	{"trim_offsets", "*"},
	{"use_regex", "*"},
	{NULL, NULL},
};

/* The value as a table writes it; of texts and numbers the beginning. */
static void describe(const struct mu_json_value *v, char *text, size_t nbytes)
{
	static const char *const names[] = {[MU_JSON_NULL] = "null",
					    [MU_JSON_FALSE] = "false",
					    [MU_JSON_TRUE] = "true",
					    [MU_JSON_ARRAY] = "a list",
					    [MU_JSON_OBJECT] = "an object"};
	const struct mu_json_value *type = mu_json_member(v, "type");

	if (type && type->type == MU_JSON_TEXT)
		snprintf(text, nbytes, "of type \"%.40s\"", type->text);
	else if (v->type == MU_JSON_TEXT)
		snprintf(text, nbytes, "\"%.40s\"", v->text);
	else if (v->type == MU_JSON_NUMBER && mu_json_double(v) == 0)
		snprintf(text, nbytes, "zero");
	else if (v->type == MU_JSON_NUMBER)
		snprintf(text, nbytes, "%g", mu_json_double(v));
	else
		snprintf(text, nbytes, "%s", names[v->type]);
}

static bool is_among(const char *word, const char *values)
{
	const size_t n = strlen(word);

	for (const char *p = values; *p; p += strcspn(p, "|"), p += *p == '|')
		if (strcspn(p, "|") == n && memcmp(p, word, n) == 0)
			return true;
	return strcmp(values, "*") == 0;
}

/* where: "model", or "" at the top. */
enum mu_status mu_token_check_members(const char *path, const struct mu_json_value *object,
				      const char *where, const struct token_member *table)
{
	enum mu_status st = MU_OK;
	const char *dot = *where ? "." : "";
	const struct mu_json_value *v;
	char value[80];

	if (!object || object->type != MU_JSON_OBJECT)
		MU_FAIL(MU_ERR_FORMAT, "%s: %s is missing, or is no object", path,
			*where ? where : "the tokenizer");
	v = mu_json_first(object);
	for (uint32_t i = 0; i < object->n; i++, v = mu_json_next(v)) {
		const struct token_member *m = table;

		while (m->name && strcmp(m->name, v->name) != 0)
			m++;
		if (!m->name)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s: %s%s%.60s is not known here, and may change tokens", path,
				where, dot, v->name);
		describe(v, value, sizeof value);
		if (!is_among(value, m->values))
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s: %s%s%s is %s: only byte-level BPE by the rules of GPT-2, "
				"Llama 3, Qwen2 and SmolLM is supported, which has %s there",
				path, where, dot, v->name, value, m->values);
	}
out:
	return st;
}

static bool is_true(const struct mu_json_value *object, const char *name)
{
	const struct mu_json_value *v = mu_json_member(object, name);

	return v && v->type == MU_JSON_TRUE;
}

static bool has_type(const struct mu_json_value *part, const char *type)
{
	return mu_json_is_text(mu_json_member(part, "type"), type);
}

/* A part of the pipeline that may be absent. */
static enum mu_status check_part(const struct source *s, const struct mu_json_value *top,
				 const char *name)
{
	const struct mu_json_value *part = mu_json_member(top, name);

	if (!part || part->type == MU_JSON_NULL)
		return MU_OK;
	return mu_token_check_members(s->path, part, name, later_members);
}

/* What adds special tokens around a model's input changes no token of a text. */
static enum mu_status check_post_processor(const struct source *s, const struct mu_json_value *top)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *part = mu_json_member(top, "post_processor"),
				   *list = part ? mu_json_member(part, "processors") : NULL, *v;
	bool adds = part && has_type(part, "TemplateProcessing");

	if (!adds &&
	    (!part || !has_type(part, "Sequence") || !list || list->type != MU_JSON_ARRAY)) {
		MU_TRY(check_part(s, top, "post_processor"));
		goto out;
	}
	v = adds ? NULL : mu_json_first(list);
	for (uint32_t i = 0; v && i < list->n; i++, v = mu_json_next(v)) {
		if (has_type(v, "TemplateProcessing"))
			adds = true;
		else
			MU_TRY(mu_token_check_members(s->path, v, "post_processor.processors[]",
						      later_members));
	}
	if (adds)
		mu_log_info("%s: the special tokens that its post_processor adds to a model's "
			    "input are "
			    "not added to texts",
			    s->path);
out:
	return st;
}

static enum mu_status read_normalizer(struct source *s, const struct mu_json_value *top)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *part = mu_json_member(top, "normalizer");

	if (!part || part->type == MU_JSON_NULL)
		goto out;
	MU_TRY(mu_token_check_members(s->path, part, "normalizer", normalizer_members));
	s->t->nfc = true;
out:
	return st;
}

static enum mu_status find_rule(struct source *s, const struct mu_json_value *split)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *pattern = mu_json_member(split, "pattern"),
				   *regex = pattern ? mu_json_member(pattern, "Regex") : NULL;
	const struct token_rule *rule = mu_token_rules;

	MU_TRY(mu_token_check_members(s->path, split, "pre_tokenizer.pretokenizers[0]",
				      split_members));
	while (rule->name && !(regex && regex->type == MU_JSON_TEXT && rule->pattern &&
			       strcmp(rule->pattern, regex->text) == 0))
		rule++;
	if (!rule->name)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: pre_tokenizer splits texts by a pattern that is not known here; those "
			"of "
			"GPT-2, Llama 3 and Qwen2 are",
			s->path);
	s->t->rule = strcmp(rule->name, mu_token_rules->name) == 0 ? mu_token_rules : rule;
out:
	return st;
}

/* A Split or Digits, then ByteLevel. */
static enum mu_status read_sequence(struct source *s, const struct mu_json_value *part)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *list = mu_json_member(part, "pretokenizers"), *first;
	const struct token_member *after = after_members;

	if (!list || list->type != MU_JSON_ARRAY || list->n != 2)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: pre_tokenizer is a Sequence, and not one of Split or Digits, and "
			"ByteLevel",
			s->path);
	first = mu_json_first(list);
	if (has_type(first, "Digits")) {
		MU_TRY(mu_token_check_members(s->path, first, "pre_tokenizer.pretokenizers[0]",
					      digits_members));
		s->t->rule = mu_token_rules;
		while (s->t->rule->name && !s->t->rule->digits_alone)
			s->t->rule++;
		after = after_digits_members;
	} else {
		MU_TRY(find_rule(s, first));
	}
	MU_TRY(mu_token_check_members(s->path, mu_json_next(first),
				      "pre_tokenizer.pretokenizers[1]", after));
	if (after == after_members && !mu_json_member(mu_json_next(first), "use_regex"))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: pre_tokenizer's ByteLevel has no use_regex, which "
			"must be false after a Split",
			s->path);
out:
	return st;
}

/* The default of add_prefix_space is true. */
static enum mu_status read_pre_tokenizer(struct source *s, const struct mu_json_value *part)
{
	enum mu_status st = MU_OK;

	if (part && has_type(part, "Sequence")) {
		MU_TRY(read_sequence(s, part));
		goto out;
	}
	MU_TRY(mu_token_check_members(s->path, part, "pre_tokenizer", level_members));
	if (!mu_json_member(part, "type") || !mu_json_member(part, "add_prefix_space"))
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: pre_tokenizer has no %s: ByteLevel is needed",
			s->path, mu_json_member(part, "type") ? "add_prefix_space" : "type");
	s->t->prefix_space = is_true(part, "add_prefix_space");
out:
	return st;
}

enum mu_status mu_token_read_pipeline(struct mu_tokenizer *t, const char *path,
				      const struct mu_json_value *top)
{
	enum mu_status st = MU_OK;
	struct source s = {.t = t, .path = path};

	MU_TRY(read_normalizer(&s, top));
	MU_TRY(read_pre_tokenizer(&s, mu_json_member(top, "pre_tokenizer")));
	t->ignore_merges = is_true(mu_json_member(top, "model"), "ignore_merges");
	MU_TRY(check_post_processor(&s, top));
	MU_TRY(check_part(&s, top, "decoder"));
out:
	return st;
}
