/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of the options table: defaults, command line, errors. options_names.c finds names,
 * options_help.c writes --help. */
#include "options.h"

#include <ctype.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64, LIST_BYTES = 512 };

static void *member(const struct mu_options *o, const struct mu_option *option)
{
	return (char *)o->values + option->offset;
}

/* ---- values ---- */

static enum mu_status check_range(const struct mu_option *option, double value, const char *text)
{
	enum mu_status st = MU_OK;

	if ((option->min == 0 && option->max == 0) ||
	    (value >= option->min && value <= option->max))
		goto out;
	if (isinf(option->max))
		MU_FAIL(MU_ERR_USAGE, "--%s: %s is out of range: it must be at least %.15g",
			option->name, text, option->min);
	if (isinf(option->min))
		MU_FAIL(MU_ERR_USAGE, "--%s: %s is out of range: it must be at most %.15g",
			option->name, text, option->max);
	MU_FAIL(MU_ERR_USAGE, "--%s: %s is out of range: it must be from %.15g to %.15g",
		option->name, text, option->min, option->max);
out:
	return st;
}

static enum mu_status set_int(const struct mu_option *option, const char *text, long *value)
{
	enum mu_status st = MU_OK;
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (end == text || *end)
		MU_FAIL(MU_ERR_USAGE, "--%s: \"%s\" is not a whole number in digits", option->name,
			text);
	if (errno == ERANGE)
		MU_FAIL(MU_ERR_USAGE, "--%s: %s is out of range: it must be from %ld to %ld",
			option->name, text, LONG_MIN, LONG_MAX);
	MU_TRY(check_range(option, (double)number, text));
	*value = number;
out:
	return st;
}

static enum mu_status set_real(const struct mu_option *option, const char *text, double *value)
{
	enum mu_status st = MU_OK;
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !isfinite(number))
		MU_FAIL(MU_ERR_USAGE, "--%s: \"%s\" is not a finite number", option->name, text);
	MU_TRY(check_range(option, number, text));
	*value = number;
out:
	return st;
}

/* Is the text one of the words of "a|b|c"? */
static bool is_choice(const char *choices, const char *text)
{
	size_t length = strlen(text);

	for (const char *word = choices;; word++) {
		size_t n = strcspn(word, "|");

		if (n == length && strncmp(word, text, n) == 0)
			return true;
		word += n;
		if (!*word)
			return false;
	}
}

static enum mu_status refuse_word(const struct mu_option *option, const char *text)
{
	enum mu_status st = MU_OK;
	char list[LIST_BYTES];

	mu_option_list(option, list, sizeof list);
	MU_FAIL(MU_ERR_USAGE, "--%s: \"%s\" is not known; choose one of: %s", option->name, text,
		list);
out:
	return st;
}

/* "Cosine" is cosine. */
static size_t find_word(const struct mu_option *option, const char *text)
{
	size_t i = mu_option_word(option, text);

	if (i < option->n_words)
		return i;
	for (i = 0; i < option->n_words; i++)
		if (option->words[i] && mu_option_same(option->words[i], text))
			break;
	return i;
}

static enum mu_status set_word(const struct mu_option *option, const char *text, int *value)
{
	const size_t i = find_word(option, text);

	*value = i < option->n_words ? (int)i : 0;
	return i < option->n_words ? MU_OK : refuse_word(option, text);
}

/* May the option stand without a word? */
static bool takes_nothing(const struct mu_option *option)
{
	const char *choices = mu_option_choices(option);

	return (choices && is_choice(choices, "")) ||
	       mu_option_word(option, "") < option->n_words;
}

static enum mu_status set_string(const struct mu_option *option, const char *text,
				 const char **value)
{
	enum mu_status st = MU_OK;
	const char *choices = mu_option_choices(option);

	/* "|" alone lists none: anything. */
	if (choices && !option->others && strcmp(choices, "|") != 0 && !is_choice(choices, text))
		MU_TRY(refuse_word(option, text));
	*value = text;
out:
	return st;
}

/* "0" or "1"; NULL: the text is neither. */
static const char *find_truth(const char *text)
{
	static const char *const words[][2] = {
		{"0", "0"}, {"1", "1"}, {"false", "0"}, {"true", "1"}};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i][0], text) == 0)
			return words[i][1];
	return NULL;
}

static enum mu_status set_flag(const struct mu_option *option, const char *text, bool *value)
{
	enum mu_status st = MU_OK;
	const char *truth = find_truth(text);

	if (!truth)
		MU_FAIL(MU_ERR_USAGE, "--%s: \"%s\" is neither 0 nor 1: --%s or --no-%s is enough",
			option->name, text, option->name, option->name);
	*value = *truth == '1';
out:
	return st;
}

static enum mu_status set_toggle(const struct mu_option *option, const char *text, long *value)
{
	const char *truth = find_truth(text);

	return set_int(option, truth ? truth : text, value);
}

/* text: NULL for the empty value of the type */
static enum mu_status set(const struct mu_options *o, const struct mu_option *option,
			  const char *text)
{
	void *value = member(o, option);

	switch (option->type) {
	case MU_OPTION_FLAG:
		*(bool *)value = false;
		return text ? set_flag(option, text, value) : MU_OK;
	case MU_OPTION_INT:
		*(long *)value = 0;
		return text ? (option->toggle ? set_toggle : set_int)(option, text, value) : MU_OK;
	case MU_OPTION_REAL:
		*(double *)value = 0;
		return text ? set_real(option, text, value) : MU_OK;
	case MU_OPTION_STRING:
		*(const char **)value = NULL;
		return text ? set_string(option, text, value) : MU_OK;
	case MU_OPTION_WORD: *(int *)value = 0; return text ? set_word(option, text, value) : MU_OK;
	}
	return MU_ERR_ARGUMENT;
}

static const struct mu_option_spelling *find_spelling(const struct mu_option *option,
						      const char *text)
{
	const struct mu_option_spelling *s = option->spellings;

	while (s && s->word && !mu_option_same(s->word, text))
		s++;
	return s && s->word ? s : NULL;
}

/* As a user gives it. */
static enum mu_status give(struct mu_options *o, const struct mu_option *option, const char *text)
{
	enum mu_status st = MU_OK;
	const struct mu_option_spelling *s = find_spelling(option, text);
	struct mu_option_found also;

	MU_TRY(set(o, option, s ? s->value : text));
	o->given[option - o->table] = true;
	if (s && s->also) {
		MU_TRY(mu_options_find(o, s->also, &also));
		MU_TRY(give(o, also.option, s->also_value));
	}
out:
	return st;
}

/* ---- the command line ---- */

/* Split "name" or "name=value". */
static enum mu_status split(const char *text, char name[NAME_BYTES], const char **value)
{
	enum mu_status st = MU_OK;
	size_t n = strcspn(text, "=");

	if (n == 0 || n >= NAME_BYTES)
		MU_FAIL(MU_ERR_USAGE, "unknown option --%.100s (--help lists the known ones)",
			text);
	for (size_t i = 0; i < n; i++)
		name[i] = text[i];
	name[n] = '\0';
	for (size_t i = 0; i < n; i++) {
		if (name[i] == '_')
			name[i] = '-';
	}
	*value = text[n] == '=' ? text + n + 1 : NULL;
out:
	return st;
}

bool mu_options_is_option(const char *word)
{
	return strncmp(word, "--", 2) == 0 || strcmp(word, "-h") == 0;
}

/* Is the next word the option's value? */
static bool takes(const struct mu_option *option, const char *next)
{
	const bool flag = option->type == MU_OPTION_FLAG || option->toggle;

	if (!next || strncmp(next, "--", 2) == 0)
		return false;
	/* Without a value, too, it takes no short option: "--profile -q". */
	if (takes_nothing(option) && *next == '-' && isalpha((unsigned char)next[1]))
		return false;
	return !flag || find_truth(next) || (option->min < 0 && strcmp(next, "-1") == 0);
}

/* Without "=value": the next word, or what the option is without one. NULL: it needs a value. */
static const char *value_without(const struct mu_option_found *found, const char *next, int *i)
{
	if (found->negated)
		return "0";
	if (takes(found->option, next)) {
		++*i;
		return next;
	}
	if (mu_option_is_switch(found->option))
		return "1";
	return takes_nothing(found->option) ? "" : NULL;
}

/* --version of a program whose table has only --help. */
static bool is_version(const struct mu_options *o, const char *name)
{
	bool help = false, version = false;

	for (size_t i = 0; i < o->n; i++) {
		help |= strcmp(o->table[i].name, "help") == 0;
		version |= strcmp(o->table[i].name, "version") == 0;
	}
	return help && !version && strcmp(name, "version") == 0;
}

/* name: "name" or "name=value". *i advances if next is its value. */
static enum mu_status parse_one(struct mu_options *o, const char *word, const char *next, int *i)
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES];
	struct mu_option_found found = {NULL, false};
	const char *value = NULL;

	MU_TRY(split(word, name, &value));
	if (is_version(o, name)) {
		o->version = true;
		goto out;
	}
	MU_TRY(mu_options_find(o, name, &found));
	if (found.negated && value)
		MU_FAIL(MU_ERR_USAGE, "--%s takes no value, but \"%s\" was given", name, value);
	if (!value)
		value = value_without(&found, next, i);
	/* A value that starts with two dashes must be written --name=value. */
	if (!value)
		MU_FAIL(MU_ERR_USAGE, "--%s needs a value", found.option->name);
	MU_TRY(give(o, found.option, value));
out:
	return st;
}

bool mu_options_takes(const struct mu_options *o, const char *word, const char *next)
{
	char name[NAME_BYTES];
	struct mu_option_found found = {NULL, false};
	const char *value = NULL;
	struct mu_trace *before = mu_trace_detach();
	const bool known = split(word + 2, name, &value) == MU_OK && !is_version(o, name) &&
			   mu_options_find(o, name, &found) == MU_OK;

	mu_trace_clear(); /* mu_options_parse reports wrong names */
	mu_trace_attach(before);
	return known && !value && !found.negated && takes(found.option, next);
}

enum mu_status mu_options_set(struct mu_options *o, const char *name, const char *text)
{
	enum mu_status st = MU_OK;
	struct mu_option_found found = {NULL, false};
	const char *value;
	int unused = 0;

	MU_TRY(mu_options_find(o, name, &found));
	value = text ? text : value_without(&found, NULL, &unused);
	if (!value || (text && found.negated))
		MU_FAIL(MU_ERR_USAGE, "--%s %s", name, text ? "takes no value" : "needs a value");
	MU_TRY(give(o, found.option, value));
out:
	return st;
}

/* Name of the option with this letter, "-q"; NULL: none. */
static const char *find_letter(const struct mu_options *o, const char *word)
{
	if (strcmp(word, "-h") == 0)
		return "help";
	if (word[0] != '-' || word[1] == '\0' || word[2] != '\0')
		return NULL;
	for (size_t i = 0; i < o->n; i++)
		if (o->table[i].letter == word[1])
			return o->table[i].name;
	return NULL;
}

/* next: the word after it, or NULL. *i advances if that is its value. */
static enum mu_status parse_word(struct mu_options *o, const char *word, const char *next, int *i)
{
	enum mu_status st = MU_OK;
	const char *short_of = find_letter(o, word);

	if (!short_of && word[0] == '-' && isalpha((unsigned char)word[1]))
		MU_TRY(mu_options_refuse_letter(o, word));
	if (!short_of && !mu_options_is_option(word))
		MU_FAIL(MU_ERR_USAGE,
			"\"%s\" belongs to no option: options are written --name value or "
			"--name=value",
			word);
	MU_TRY(parse_one(o, short_of ? short_of : word + 2, next, i));
out:
	return st;
}

enum mu_status mu_options_parse(struct mu_options *o, int argc, char *const argv[])
{
	enum mu_status st = MU_OK;

	for (int i = 1; i < argc; i++)
		MU_TRY(parse_word(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &i));
out:
	return st;
}

void mu_options_scan(struct mu_options *o, int argc, char *const argv[])
{
	struct mu_trace *before = mu_trace_detach();

	for (int i = 1; i < argc; i++)
		if (parse_word(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &i) != MU_OK)
			mu_trace_clear();
	mu_trace_attach(before);
}

enum mu_status mu_options_init(struct mu_options *o, const struct mu_option *table, size_t n,
			       void *values)
{
	enum mu_status st = MU_OK;

	*o = (struct mu_options){.table = table, .n = n, .values = values};
	MU_TRY(MU_ALLOC(o->given, n, "marks of the given options"));
	for (size_t i = 0; i < n; i++) {
		struct mu_option option = table[i];

		if (option.automatic) /* the default may be outside of the range */
			option.min = option.max = 0;
		MU_TRY(set(o, &option, option.initial));
	}
out:
	return st;
}

void mu_options_release(struct mu_options *o)
{
	mu_free(o->given);
	mu_free(o->own);
	*o = (struct mu_options){0};
}

bool mu_options_given(const struct mu_options *o, const char *name)
{
	for (size_t i = 0; i < o->n; i++) {
		if (strcmp(o->table[i].name, name) == 0)
			return o->given[i];
	}
	return false;
}
