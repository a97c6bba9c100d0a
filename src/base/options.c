/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of the options table: defaults, command line, errors. options_help.c writes --help. */
#include <muster/base.h>

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
		MU_FAIL(MU_ERR_USAGE, "--%s: \"%s\" is not a whole number", option->name, text);
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

/* The index of the word; n_words: there is none. */
static size_t find_word(const struct mu_option *option, const char *text)
{
	size_t i = 0;

	while (i < option->n_words && !(option->words[i] && strcmp(option->words[i], text) == 0))
		i++;
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
	return (option->choices && is_choice(option->choices, "")) ||
	       find_word(option, "") < option->n_words;
}

static enum mu_status set_string(const struct mu_option *option, const char *text,
				 const char **value)
{
	enum mu_status st = MU_OK;

	/* "|" alone lists none: anything. */
	if (option->choices && strcmp(option->choices, "|") != 0 &&
	    !is_choice(option->choices, text))
		MU_TRY(refuse_word(option, text));
	*value = text;
out:
	return st;
}

/* text: NULL for the empty value of the type */
static enum mu_status set(const struct mu_options *o, const struct mu_option *option,
			  const char *text)
{
	void *value = member(o, option);

	switch (option->type) {
	case MU_OPTION_FLAG: *(bool *)value = text && strcmp(text, "true") == 0; return MU_OK;
	case MU_OPTION_INT: *(long *)value = 0; return text ? set_int(option, text, value) : MU_OK;
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

/* ---- names ---- */

/* Edit distance: Wagner and Fischer 1974. */
size_t mu_name_distance(const char *typed, const char *name)
{
	size_t row[NAME_BYTES + 1];
	size_t n = strlen(name) < NAME_BYTES ? strlen(name) : NAME_BYTES, least;

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; typed[i - 1]; i++) {
		size_t diagonal = row[0]; /* of the row before */

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (typed[i - 1] != name[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	least = row[0];
	for (size_t j = 1; j <= n; j++)
		least = row[j] < least ? row[j] : least;
	return least * 2 * NAME_BYTES + row[n];
}

static const struct mu_option *nearest(const struct mu_options *o, const char *name)
{
	const struct mu_option *best = NULL;
	size_t best_distance = 0;

	for (size_t i = 0; i < o->n; i++) {
		size_t d = mu_name_distance(name, o->table[i].name);

		if (!best || d < best_distance) {
			best = &o->table[i];
			best_distance = d;
		}
	}
	return best;
}

/* All names that start with this text, as "--a, --b". */
static void list_matches(const struct mu_options *o, const char *name, char *text, size_t nbytes)
{
	size_t used = 0;

	for (size_t i = 0; i < o->n && used < nbytes; i++) {
		if (strncmp(o->table[i].name, name, strlen(name)) != 0)
			continue;
		used += (size_t)snprintf(text + used, nbytes - used, "%s--%s", used ? ", " : "",
					 o->table[i].name);
	}
}

/* name: as typed, with '_' replaced by '-'. */
static enum mu_status find(const struct mu_options *o, const char *name,
			   const struct mu_option **out)
{
	enum mu_status st = MU_OK;
	const struct mu_option *match = NULL;
	char list[LIST_BYTES];
	int matches = 0;

	for (size_t i = 0; i < o->n; i++) {
		const struct mu_option *option = &o->table[i];

		if (strncmp(option->name, name, strlen(name)) != 0)
			continue;
		match = option;
		if (strlen(option->name) == strlen(name)) {
			matches = 1;
			break;
		}
		matches++;
	}
	if (matches > 1) {
		list_matches(o, name, list, sizeof list);
		MU_FAIL(MU_ERR_USAGE, "--%s is ambiguous: it may be %s", name, list);
	}
	if (matches == 0) {
		match = nearest(o, name);
		MU_FAIL(MU_ERR_USAGE,
			"unknown option --%s; the nearest known one is --%s (--help lists them)",
			name, match ? match->name : "");
	}
	*out = match;
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

/* Parse the option at argv[*i]; advance *i past its value. */
static enum mu_status parse_one(struct mu_options *o, int argc, char *const argv[], int *i)
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES];
	const struct mu_option *option = NULL;
	const char *value = NULL;

	if (strncmp(argv[*i], "--", 2) != 0)
		MU_FAIL(MU_ERR_USAGE,
			"\"%s\" belongs to no option: options are written --name value or "
			"--name=value",
			argv[*i]);
	MU_TRY(split(argv[*i] + 2, name, &value));
	MU_TRY(find(o, name, &option));
	if (option->type == MU_OPTION_FLAG) {
		if (value)
			MU_FAIL(MU_ERR_USAGE, "--%s takes no value, but \"%s\" was given",
				option->name, value);
		value = "true";
	} else if (!value) {
		/* A value that starts with two dashes must be written --name=value. */
		if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
			value = argv[++*i];
		else if (takes_nothing(option))
			value = "";
		else
			MU_FAIL(MU_ERR_USAGE, "--%s needs a value", option->name);
	}
	MU_TRY(set(o, option, value));
	o->given[option - o->table] = true;
out:
	return st;
}

enum mu_status mu_options_parse(struct mu_options *o, int argc, char *const argv[])
{
	enum mu_status st = MU_OK;

	for (int i = 1; i < argc; i++)
		MU_TRY(parse_one(o, argc, argv, &i));
out:
	return st;
}

enum mu_status mu_options_init(struct mu_options *o, const struct mu_option *table, size_t n,
			       void *values)
{
	enum mu_status st = MU_OK;

	*o = (struct mu_options){.table = table, .n = n, .values = values};
	MU_TRY(MU_ALLOC(o->given, n, "marks of the given options"));
	for (size_t i = 0; i < n; i++)
		MU_TRY(set(o, &table[i], table[i].initial));
out:
	return st;
}

void mu_options_release(struct mu_options *o)
{
	mu_free(o->given);
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
