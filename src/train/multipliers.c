/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --fixed, --lr-mult, --wd-mult: keys that are not trained, and multipliers of the others: lists of
 * shell patterns for the names of keys; if several match, the last one applies.
 */
#include "multipliers.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_BYTES = 128, NEAREST = 4 };

/* "fc*_bias", or of a multiplier "fc*_bias=2". */
struct item {
	char pattern[PATTERN_BYTES];
	double value;
};

struct list {
	const char *option;
	size_t offset; /* of the text in struct conf */
	bool valued;   /* a multiplier, which is for learnable keys alone */
	void (*set)(struct mu_slice *slice, double value);
};

static void fix(struct mu_slice *slice, double value)
{
	(void)value;
	slice->fixed = true;
}

static void set_lr(struct mu_slice *slice, double value)
{
	slice->has_lr_mult = true;
	slice->lr_mult = value;
}

static void set_wd(struct mu_slice *slice, double value)
{
	slice->has_wd_mult = true;
	slice->wd_mult = value;
}

static const struct list lists[] = {
	{"fixed", offsetof(struct conf, fixed), false, fix},
	{"lr-mult", offsetof(struct conf, lr_mult), true, set_lr},
	{"wd-mult", offsetof(struct conf, wd_mult), true, set_wd},
	{.option = NULL},
};

/* ---- the lists ---- */

static enum mu_status take_value(const struct list *list, const char *text, size_t n,
				 struct item *item)
{
	enum mu_status st = MU_OK;
	char *equals = strchr(item->pattern, '='), *end = NULL;

	if (!list->valued)
		goto out;
	if (equals) {
		*equals = '\0';
		item->value = strtod(equals + 1, &end);
	}
	if (!equals || end == equals + 1 || *end || !(item->value >= 0 && item->value <= 1e6) ||
	    !*item->pattern)
		MU_FAIL(MU_ERR_USAGE,
			"--%s: \"%.*s\" is not PATTERN=X with X from 0 to 1e6, such as fc*=0.1",
			list->option, (int)n, text);
out:
	return st;
}

/* The first item of *text, which is advanced past it; NULL: no item is left. */
static enum mu_status take_item(const struct list *list, const char **text, struct item *item)
{
	enum mu_status st = MU_OK;
	const char *from = *text;
	const size_t n = strcspn(from, ",");

	if (n == 0 || n >= sizeof item->pattern)
		MU_FAIL(MU_ERR_USAGE,
			"--%s: patterns of 1 to %zu letters with commas between them are needed, "
			"such as %s",
			list->option, sizeof item->pattern - 1,
			list->valued ? "conv*=0.1,fc*=1" : "conv*,fc1_*");
	snprintf(item->pattern, sizeof item->pattern, "%.*s", (int)n, from);
	MU_TRY(take_value(list, from, n, item));
	*text = from[n] ? from + n + 1 : NULL;
out:
	return st;
}

static const char *text_of(const struct list *list, const struct conf *v)
{
	const char *text;

	memcpy(&text, (const char *)v + list->offset, sizeof text);
	return text;
}

enum mu_status mu_train_multipliers_check(const struct conf *v)
{
	enum mu_status st = MU_OK;
	struct item item;

	for (const struct list *l = lists; l->option; l++)
		for (const char *text = text_of(l, v); text;)
			MU_TRY(take_item(l, &text, &item));
out:
	return st;
}

/* ---- names ---- */

struct keys {
	struct mu_slice *of;
	size_t n;
};

static bool can_have(const struct list *list, const struct mu_slice *slice)
{
	return !list->valued || slice->rule == MU_SLICE_LEARN;
}

/* The names nearest to the given one, "a, b, c". */
static void list_nearest(const struct keys *keys, const struct list *list, const char *pattern,
			 char *text, size_t nbytes)
{
	const struct mu_slice *found[NEAREST] = {NULL};
	size_t distances[NEAREST], n_found = 0, used = 0;
	char plain[PATTERN_BYTES];

	snprintf(plain, sizeof plain, "%s", pattern);
	for (char *from = plain, *to = plain; (*to = *from); from++)
		to += *from != '*' && *from != '?';
	for (size_t k = 0; k < keys->n; k++) {
		const size_t d = mu_name_distance(plain, keys->of[k].name);
		size_t i = n_found;

		if (!can_have(list, &keys->of[k]))
			continue;
		for (; i > 0 && distances[i - 1] > d; i--)
			if (i < NEAREST) {
				found[i] = found[i - 1];
				distances[i] = distances[i - 1];
			}
		if (i == NEAREST)
			continue;
		found[i] = &keys->of[k];
		distances[i] = d;
		n_found += n_found < NEAREST;
	}
	text[0] = '\0';
	for (size_t i = 0; i < n_found && used < nbytes; i++)
		used += (size_t)snprintf(text + used, nbytes - used, "%s%s", i ? ", " : "",
					 found[i]->name);
}

static enum mu_status apply_item(const struct keys *keys, const struct list *list,
				 const struct item *item)
{
	enum mu_status st = MU_OK;
	char names[512];
	size_t matches = 0;

	for (size_t k = 0; k < keys->n; k++) {
		struct mu_slice *slice = &keys->of[k];

		if (!can_have(list, slice) || fnmatch(item->pattern, slice->name, 0) != 0)
			continue;
		list->set(slice, item->value);
		matches++;
	}
	if (matches > 0)
		goto out;
	list_nearest(keys, list, item->pattern, names, sizeof names);
	MU_FAIL(MU_ERR_USAGE, "--%s: no parameter's name matches \"%s\"; the nearest names are %s",
		list->option, item->pattern, names);
out:
	return st;
}

enum mu_status mu_train_multipliers_apply(const struct conf *v, const struct mu_plan *plan,
					  struct mu_slice **out)
{
	enum mu_status st = MU_OK;
	size_t n_fixed = 0;
	struct keys keys;
	const struct mu_slice *slices = mu_plan_slices(plan, &keys.n);
	struct item item;

	MU_TRY(MU_ALLOC(*out, keys.n + 1, "table of keys"));
	keys.of = *out;
	memcpy(keys.of, slices, keys.n * sizeof *slices);
	for (const struct list *l = lists; l->option; l++)
		for (const char *text = text_of(l, v); text;) {
			MU_TRY(take_item(l, &text, &item));
			MU_TRY(apply_item(&keys, l, &item));
		}
	for (size_t k = 0; k < keys.n; k++) {
		struct mu_slice *slice = &keys.of[k];

		/* Rules may divide by the rate, or change weights at rate 0: fix these. */
		slice->fixed = slice->fixed || (slice->has_lr_mult && slice->lr_mult == 0);
		n_fixed += slice->fixed;
	}
	if (n_fixed == keys.n)
		MU_FAIL(MU_ERR_USAGE,
			"--fixed %s%s%s: all arrays are fixed, and nothing is left to train",
			v->fixed ? v->fixed : "",
			v->lr_mult ? " --lr-mult " : "",
			v->lr_mult ? v->lr_mult : "");
out:
	return st;
}
