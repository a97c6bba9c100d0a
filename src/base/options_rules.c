/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator of rules about options. */
#include "options.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 256, VALUE_DIGITS = 6 };

/* An option or a fact; both NULL: neither has the name. */
struct subject {
	const struct mu_option *option;
	const struct mu_option_fact *fact;
};

/* The next name of "a|b"; false after the last. */
static bool next_name(const char **names, char name[TEXT_BYTES])
{
	size_t n;

	if (!*names)
		return false;
	n = strcspn(*names, "|");
	snprintf(name, TEXT_BYTES, "%.*s", (int)n, *names);
	*names = (*names)[n] ? *names + n + 1 : NULL;
	return true;
}

static struct subject find(const struct mu_options *o, const struct mu_option_rules *r,
			   const char *name)
{
	struct subject s = {0};

	for (size_t i = 0; i < o->n; i++)
		if (strcmp(o->table[i].name, name) == 0)
			s.option = &o->table[i];
	for (size_t i = 0; i < r->n_facts; i++)
		if (strcmp(r->facts[i].name, name) == 0)
			s.fact = &r->facts[i];
	return s;
}

static double number_of(const struct mu_options *o, const struct mu_option *option)
{
	const void *value = (const char *)o->values + option->offset;

	return option->type == MU_OPTION_INT ? (double)*(const long *)value
					     : *(const double *)value;
}

static bool is_number(const struct mu_option *option)
{
	return option->type == MU_OPTION_INT || option->type == MU_OPTION_REAL;
}

/* Given on the command line; what is settled from other options, too. */
static bool is_set(const struct mu_options *o, const struct mu_option *option)
{
	const void *value = (const char *)o->values + option->offset;

	if (option->type == MU_OPTION_FLAG)
		return *(const bool *)value;
	if (option->type == MU_OPTION_STRING && !option->initial)
		return *(const char *const *)value != NULL;
	return o->given[option - o->table];
}

static bool is_among(const char *words, const char *text)
{
	char word[TEXT_BYTES];

	while (next_name(&words, word))
		if (strcmp(word, text) == 0)
			return true;
	return false;
}

/* NULL, "+": is it set? ">0": above 0. "!a|b": none of these words. "a|b": one of them. */
static bool has_value(const struct mu_options *o, const struct mu_option *option,
		      const char *values)
{
	char number[TEXT_BYTES];
	const char *text;

	if (!values || *values == '+')
		return is_set(o, option);
	if (*values == '>')
		return number_of(o, option) > strtod(values + 1, NULL);
	if (is_number(option))
		return number_of(o, option) == strtod(values, NULL);
	text = mu_option_text(o, option, VALUE_DIGITS, number, sizeof number);
	return *values == '!' ? !is_among(values + 1, text) : is_among(values, text);
}

/* Does one of the names hold? *found: which. */
static bool holds(const struct mu_options *o, const struct mu_option_rules *r, const char *names,
		  const char *values, struct subject *found)
{
	char name[TEXT_BYTES];

	while (next_name(&names, name)) {
		*found = find(o, r, name);
		if (found->fact ? *(const bool *)((const char *)o->values + found->fact->offset)
				: found->option && has_value(o, found->option, values))
			return true;
	}
	return false;
}

/* "--kv-store dist_sync"; a fact as the first of its options that is set. "": a fact of none. */
static void show(const struct mu_options *o, const struct mu_option_rules *r, struct subject s,
		 bool with_value, char text[TEXT_BYTES])
{
	const char *shown = s.fact ? s.fact->shown : NULL;
	char name[TEXT_BYTES], value[TEXT_BYTES] = "";

	text[0] = '\0';
	if (s.fact && s.fact->shown_at)
		memcpy(&shown, (const char *)o->values + s.fact->shown_at, sizeof shown);
	while (s.fact && next_name(&shown, name)) {
		s.option = find(o, r, name).option;
		if (is_set(o, s.option))
			break;
	}
	if (!s.option)
		return;
	if (s.option->now && !o->given[s.option - o->table])
		mu_option_now(s.option,
			      mu_option_text(o, s.option, VALUE_DIGITS, value, sizeof value), text,
			      TEXT_BYTES);
	else if (with_value && s.option->type != MU_OPTION_FLAG &&
		 *(shown = mu_option_text(o, s.option, VALUE_DIGITS, value, sizeof value)))
		snprintf(text, TEXT_BYTES, "--%s %.150s", s.option->name, shown);
	else
		snprintf(text, TEXT_BYTES, "--%s", s.option->name);
}

/* What an option is to be: "--gc-type 2bit or 1bit", "--sync-period K above 1". */
static void show_need(const struct mu_option *option, const char *values, char *text, size_t nbytes)
{
	const char *end = strstr(option->help, "  ");
	const int metavar =
		option->type != MU_OPTION_FLAG && end ? (int)(end - option->help) : 0;
	size_t n = (size_t)snprintf(text, nbytes, "--%s", option->name);
	char word[TEXT_BYTES];

	if (!values || *values == '>')
		n += (size_t)snprintf(text + n, nbytes - n, "%s%.*s", metavar ? " " : "", metavar,
				      option->help);
	if (values && *values == '>')
		snprintf(text + n, nbytes - n, " above %s", values + 1);
	else if (values && *values != '!')
		for (const char *sep = " "; n < nbytes && next_name(&values, word); sep = " or ")
			n += (size_t)snprintf(text + n, nbytes - n, "%s%s", sep, word);
}

static void list_needs(const struct mu_options *o, const struct mu_option_rules *r,
		       const struct mu_option_rule *rule, char text[TEXT_BYTES])
{
	const char *names = rule->other;
	char name[TEXT_BYTES];
	size_t n = 0;

	text[0] = '\0';
	while (n < TEXT_BYTES && next_name(&names, name)) {
		const struct mu_option *option = find(o, r, name).option;

		n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%s", n ? " or " : "");
		if (option && n < TEXT_BYTES)
			show_need(option, rule->other_values, text + n, TEXT_BYTES - n);
		n = strlen(text);
	}
}

static enum mu_status refuse(const struct mu_options *o, const struct mu_option_rules *r,
			     const struct mu_option_rule *rule, struct subject subject,
			     struct subject other)
{
	enum mu_status st = MU_OK;
	char left[TEXT_BYTES], right[TEXT_BYTES];
	const char *why = rule->why ? rule->why : "", *colon = rule->why ? ": " : "";

	show(o, r, subject, rule->values != NULL, left);
	if (!rule->other)
		MU_FAIL(MU_ERR_USAGE, "%s: %s", left, why);
	if (rule->relation == MU_OPTION_NEEDS && !other.fact) {
		list_needs(o, r, rule, right);
		MU_FAIL(MU_ERR_USAGE, "%s needs %s%s%s", left, right, colon, why);
	}
	show(o, r, other, true, right);
	MU_FAIL(MU_ERR_USAGE, "%s%s%s%s%s", left, *right ? " with " : "", right, colon, why);
out:
	return st;
}

enum mu_status mu_option_rule_check(const struct mu_options *o, const struct mu_option_rules *r,
				    const struct mu_option_rule *rule)
{
	struct subject subject, other = {0};
	bool broken;

	if (!holds(o, r, rule->option, rule->values, &subject))
		return MU_OK;
	broken = !rule->other || holds(o, r, rule->other, rule->other_values, &other) ==
					 (rule->relation == MU_OPTION_EXCLUDES);
	return broken ? refuse(o, r, rule, subject, other) : MU_OK;
}

/* Given, and other than the default. */
static bool is_asked(const struct mu_options *o, const struct mu_option *option)
{
	const char *initial = option->initial;
	char number[TEXT_BYTES];

	if (!is_set(o, option) || !initial)
		return is_set(o, option);
	return is_number(option) ? number_of(o, option) != strtod(initial, NULL)
				 : strcmp(mu_option_text(o, option, 0, number, sizeof number),
					  initial) != 0;
}

bool mu_option_rule_void(const struct mu_options *o, const struct mu_option_rules *r,
			 const struct mu_option_rule *rule, char *text, size_t nbytes)
{
	struct subject option, other = {0};
	const char *names = rule->option;
	char name[TEXT_BYTES], shown[TEXT_BYTES] = "";
	size_t n = 0, found = 0;
	bool needs;

	if (holds(o, r, rule->other, rule->other_values, &other) ==
	    (rule->relation == MU_OPTION_NEEDS))
		return false;
	while (next_name(&names, name) && n < nbytes) {
		option = find(o, r, name);
		if (!option.option || !(rule->values ? has_value(o, option.option, rule->values)
						     : is_asked(o, option.option)))
			continue;
		show(o, r, option, true, shown);
		n += (size_t)snprintf(text + n, nbytes - n, "%s%s", found++ ? ", " : "", shown);
	}
	needs = rule->relation == MU_OPTION_NEEDS && !other.fact;
	if (needs)
		list_needs(o, r, rule, shown);
	else
		show(o, r, other, true, shown);
	if (n < nbytes)
		snprintf(text + n, nbytes - n, " ha%s no effect%s%s%s%s",
			 found == 1 ? "s" : "ve",
			 !*shown ? "" : needs ? " without " : " with ",
			 shown, rule->why ? ": " : "", rule->why ? rule->why : "");
	return found > 0;
}

enum mu_status mu_option_rules_check(const struct mu_options *o, const struct mu_option_rules *r)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < r->n; i++)
		MU_TRY(mu_option_rule_check(o, r, &r->of[i]));
out:
	return st;
}
