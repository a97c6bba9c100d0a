/* SPDX-License-Identifier: Apache-2.0 */
/* Which option a typed name means: whole names, aliases, abbreviations, and what to suggest. */
#include "options.h"

#include <ctype.h>
#include <string.h>

enum { NAME_BYTES = 64, LIST_BYTES = 512, MOST_EDITS = 3 };

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

/* Edits of a word of n letters with which it is still the same: two letters may change places. */
static bool is_word_near(const char *typed, const char *name, size_t n, size_t m)
{
	char a[NAME_BYTES], b[NAME_BYTES];
	const size_t longer = n > m ? n : m;

	if (longer >= NAME_BYTES)
		return false;
	snprintf(a, sizeof a, "%.*s", (int)n, typed);
	snprintf(b, sizeof b, "%.*s", (int)m, name);
	return mu_name_distance(a, b) % (2 * NAME_BYTES) <= (longer > 3 ? longer / 2 : 1);
}

bool mu_name_is_near(const char *typed, const char *name)
{
	static const char marks[] = "-_.";

	for (;;) {
		const size_t n = strcspn(typed, marks), m = strcspn(name, marks);

		if (!typed[n] && !name[m])
			return is_word_near(typed, name, n, m);
		if (!typed[n]) /* an abbreviation, or two words in one */
			return is_word_near(typed, name, n, m) ||
			       is_word_near(typed, name, n, strlen(name));
		if (!name[m])
			return is_word_near(typed, name, strlen(typed), m);
		if (!is_word_near(typed, name, n, m))
			return false;
		typed += n + 1;
		name += m + 1;
	}
}

size_t mu_option_word(const struct mu_option *option, const char *text)
{
	size_t i = 0;

	while (i < option->n_words && !(option->words[i] && strcmp(option->words[i], text) == 0))
		i++;
	return i;
}

static char plain(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

bool mu_option_same(const char *word, const char *typed)
{
	while (*word && plain(*word) == plain(*typed)) {
		word++;
		typed++;
	}
	return *word == *typed;
}

bool mu_option_is_switch(const struct mu_option *option)
{
	return option->type == MU_OPTION_FLAG || option->toggle ||
	       (mu_option_word(option, "0") < option->n_words &&
		mu_option_word(option, "1") < option->n_words);
}

/* The next name of "a|b"; false after the last. */
static bool next_name(const char **names, char name[NAME_BYTES])
{
	size_t n;

	if (!*names)
		return false;
	n = strcspn(*names, "|");
	snprintf(name, NAME_BYTES, "%.*s", (int)n, *names);
	*names = (*names)[n] ? *names + n + 1 : NULL;
	return true;
}

/* Is one of the names the typed one, or does one begin with it? */
static bool has(const char *names, const char *typed, bool whole)
{
	char name[NAME_BYTES];

	while (next_name(&names, name))
		if (whole ? strcmp(name, typed) == 0 : strncmp(name, typed, strlen(typed)) == 0)
			return true;
	return false;
}

bool mu_option_names(const char *names, const char *name)
{
	return has(names, name, true);
}

/* What may stand for an option, in the order in which it is looked for. */
enum kind { NAME, ALIAS, NAME_BEGIN, OLD_NAME_BEGIN, ALIAS_BEGIN, KINDS };

static bool matches(const struct mu_option *option, const char *typed, enum kind kind)
{
	const bool alias = kind == ALIAS || kind == ALIAS_BEGIN;

	if ((kind == NAME_BEGIN && option->now) || (kind == OLD_NAME_BEGIN && !option->now) ||
	    (kind >= NAME_BEGIN && option->whole))
		return false;
	return has(alias ? option->aliases : option->name, typed, kind < NAME_BEGIN);
}

/* Sets *option to the last match. */
static size_t count(const struct mu_options *o, const char *typed, enum kind kind,
		    const struct mu_option **option)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		if (matches(&o->table[i], typed, kind)) {
			*option = &o->table[i];
			n++;
		}
	return n;
}

/* The kind of the first match; KINDS: none. */
static enum kind find_kind(const struct mu_options *o, const char *typed,
			   const struct mu_option **option, size_t *n)
{
	enum kind kind = NAME;

	while (kind < KINDS && (*n = count(o, typed, kind, option)) == 0)
		kind++;
	return kind;
}

/* The option that other programs call so; NULL: none. */
static const struct mu_option *find_similar(const struct mu_options *o, const char *typed)
{
	for (size_t i = 0; i < o->n; i++)
		if (has(o->table[i].similar, typed, true))
			return &o->table[i];
	return NULL;
}

/*
 * The option that has this value, as "--lenet" for --network lenet: "lenet!" in its list of similar
 * names, or a word that no other option has. *value: as it is written. NULL: none.
 */
static const struct mu_option *find_value(const struct mu_options *o, const char *typed,
					  char value[NAME_BYTES])
{
	const struct mu_option *found = NULL;
	char name[NAME_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++) {
		const struct mu_option *option = &o->table[i];
		const char *list = option->similar;

		while (next_name(&list, name)) {
			char *mark = strchr(name, '!');

			if (!mark)
				continue;
			*mark = '\0';
			if (mu_option_same(name, typed)) {
				snprintf(value, NAME_BYTES, "%s", name);
				return option;
			}
		}
		for (size_t k = 0; !option->now && k < option->n_words; k++)
			if (option->words[k] && mu_option_same(option->words[k], typed)) {
				snprintf(value, NAME_BYTES, "%s", option->words[k]);
				found = option;
				n++;
			}
	}
	return n == 1 ? found : NULL;
}

/* Edits that turn the typed name into the beginning of one of the names. */
static size_t edits(const char *typed, const char *names)
{
	size_t least = NAME_BYTES;
	char name[NAME_BYTES];

	while (next_name(&names, name)) {
		const size_t d = mu_name_is_near(typed, name)
					 ? mu_name_distance(typed, name) / (2 * NAME_BYTES)
					 : NAME_BYTES;

		least = d < least ? d : least;
	}
	return least;
}

/* The nearest option, by names, aliases and what other programs call it; NULL: none is near. Among
 * those in use, or among the earlier ones that others replace. */
static const struct mu_option *nearest(const struct mu_options *o, const char *typed, bool earlier)
{
	const size_t third = strlen(typed) / 3;
	const struct mu_option *best = NULL;
	size_t least = (third < MOST_EDITS ? third : MOST_EDITS) + 1;

	for (size_t i = 0; i < o->n; i++) {
		const struct mu_option *option = &o->table[i];
		const char *const lists[] = {option->name, option->aliases, option->similar};

		if ((option->now != NULL) != earlier)
			continue;
		for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
			const size_t d = edits(typed, lists[k]);

			if (d < least) {
				best = option;
				least = d;
			}
		}
	}
	return best;
}

/* The option whose whole name is needed; NULL: none begins so. */
static const struct mu_option *find_cut_short(const struct mu_options *o, const char *typed)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->table[i].whole && has(o->table[i].name, typed, false))
			return &o->table[i];
	return NULL;
}

static enum mu_status refuse_unknown(const struct mu_options *o, const char *typed)
{
	enum mu_status st = MU_OK;
	char value[NAME_BYTES], text[LIST_BYTES];
	const struct mu_option *option;
	char lower[NAME_BYTES] = "";

	if (o->explain && o->explain(o, typed, text, sizeof text))
		MU_FAIL(MU_ERR_USAGE, "--%s %s", typed, text);
	option = find_value(o, typed, value);
	if (option)
		MU_FAIL(MU_ERR_USAGE, "unknown option --%s: write --%s %s", typed, option->name,
			value);
	option = find_similar(o, typed);
	if (option)
		MU_FAIL(MU_ERR_USAGE, "unknown option --%s; --%s is for that (--help%s lists it)",
			typed, option->name, option->advanced ? "-all" : "");
	option = find_cut_short(o, typed);
	if (option)
		MU_FAIL(MU_ERR_USAGE,
			"unknown option --%s: write the whole name --%s, which may not be cut "
			"short",
			typed, option->name);
	for (size_t i = 0; typed[i] && i + 1 < sizeof lower; i++)
		lower[i] = (char)tolower((unsigned char)typed[i]);
	option = nearest(o, lower, false);
	if (option)
		MU_FAIL(MU_ERR_USAGE,
			"unknown option --%s; the nearest known one is --%s (--help%s lists it)",
			typed, option->name, option->advanced ? "-all" : "");
	option = nearest(o, lower, true);
	if (option)
		MU_FAIL(MU_ERR_USAGE,
			"unknown option --%s; the nearest known one is --%s, for which there is "
			"%.*s",
			typed, option->name, (int)strcspn(option->now, " ="), option->now);
	MU_FAIL(MU_ERR_USAGE, "unknown option --%s (--help lists them)", typed);
out:
	return st;
}

enum mu_status mu_options_refuse_letter(const struct mu_options *o, const char *typed)
{
	enum mu_status st = MU_OK;
	const struct mu_option *option = find_similar(o, typed + 1);
	const bool letter = typed[2] == '\0';

	if (letter && option)
		MU_FAIL(MU_ERR_USAGE, "unknown option %s; --%s is for that (--help%s lists it)",
			typed, option->name, option->advanced ? "-all" : "");
	if (letter)
		MU_FAIL(MU_ERR_USAGE, "unknown option %s (--help lists them)", typed);
	MU_FAIL(MU_ERR_USAGE, "\"%s\": an option begins with two dashes: -%s", typed, typed);
out:
	return st;
}

/* Several options begin so. */
static enum mu_status refuse_ambiguous(const struct mu_options *o, const char *typed,
				       enum kind kind)
{
	enum mu_status st = MU_OK;
	char list[LIST_BYTES] = "";
	size_t used = 0;

	for (size_t i = 0; i < o->n && used < sizeof list; i++)
		if (matches(&o->table[i], typed, kind))
			used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s",
						 used ? ", " : "", o->table[i].name);
	MU_FAIL(MU_ERR_USAGE, "--%s is ambiguous: it may be %s", typed, list);
out:
	return st;
}

enum mu_status mu_options_find(const struct mu_options *o, const char *name,
			       struct mu_option_found *found)
{
	enum mu_status st = MU_OK;
	const struct mu_option *option = NULL;
	const bool no = strncmp(name, "no-", 3) == 0;
	size_t n = 0;
	enum kind kind = find_kind(o, name, &option, &n);

	found->negated = kind == KINDS && no;
	if (found->negated) {
		kind = find_kind(o, name + 3, &option, &n);
		if (n == 1 && !mu_option_is_switch(option) &&
		    mu_option_word(option, "none") < option->n_words)
			MU_FAIL(MU_ERR_USAGE, "unknown option --%s: write --%s none", name,
				option->name);
		if (n == 1 && !mu_option_is_switch(option))
			MU_FAIL(MU_ERR_USAGE, "--%s: --%s is not a switch, it takes a value: "
				"leave it out for the default",
				name, option->name);
	}
	if (n > 1 && find_similar(o, name))
		MU_TRY(refuse_unknown(o, name));
	if (n > 1)
		MU_TRY(refuse_ambiguous(o, found->negated ? name + 3 : name, kind));
	if (n == 0)
		MU_TRY(refuse_unknown(o, name));
	found->option = option;
out:
	return st;
}
