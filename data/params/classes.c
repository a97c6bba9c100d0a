/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of a model's classes, in the order of the labels: "id2label" and "label2id" of
 * transformers' config.json, "label_names" of timm's. A file of parameters holds them as a
 * checkpoint does, a line each: data whose classes have other names or another order are refused.
 * transformers calls classes LABEL_0, LABEL_1, ... that nobody has named: these say nothing.
 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

enum { LABELS_MAX = 9 }; /* digits of a number */

/* Names by one member of config.json. */
struct names {
	const char *member;
	bool by_name; /* its members are the names, their values the numbers */
	size_t classes, n;
	char **of; /* NULL: not named; owned */
};

static enum mu_status add_name(void *context, const char *member, const char *value)
{
	enum mu_status st = MU_OK;
	struct names *n = context;
	const char *name = n->by_name ? member : value, *number = n->by_name ? value : member;
	const size_t digits = strspn(number, "0123456789");
	const size_t class = strtoul(number, NULL, 10);

	if (digits == 0 || digits > LABELS_MAX || number[digits] || class >= n->classes)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has class \"%.60s\" in \"%s\", and its arrays have %zu "
			"classes, 0 to %zu: they are not of one model",
			number, n->member, n->classes, n->classes - 1);
	if (n->of[class])
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has two names of class %zu in \"%s\": \"%.60s\" and "
			"\"%.60s\"",
			class, n->member, n->of[class], name);
	MU_TRY(MU_ALLOC(n->of[class], strlen(name) + 1, "names of classes"));
	strcpy(n->of[class], name);
	n->n++;
out:
	return st;
}

static void forget(struct names *n)
{
	for (size_t i = 0; n->of && i < n->classes; i++)
		mu_free(n->of[i]);
	mu_free(n->of);
	n->of = NULL;
}

static bool is_default(const char *name, size_t class)
{
	char text[32];

	snprintf(text, sizeof text, "LABEL_%zu", class);
	return strcmp(name, text) == 0;
}

/* Nothing is left of names that say nothing. */
static enum mu_status read_names(struct names *n, const char *path)
{
	enum mu_status st = MU_OK;
	bool known = false;

	MU_TRY(MU_ALLOC(n->of, n->classes, "names of classes"));
	MU_TRY(mu_settings_within(path, n->member, add_name, n));
	/* Of classes with the same name, "label2id" has one. */
	if (n->n > 0 && n->n != n->classes && !n->by_name)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %zu member%s of \"%s\", and its arrays have %zu "
			"classes: they are not of one model",
			n->n, MU_S(n->n), n->member, n->classes);
	for (size_t i = 0; i < n->classes; i++)
		known |= n->of[i] && !is_default(n->of[i], i);
	if (!known)
		forget(n);
out:
	return st;
}

static enum mu_status compare(const struct names *by_id, const struct names *by_label)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < by_id->classes; i++)
		if (by_label->of[i] && strcmp(by_id->of[i], by_label->of[i]) != 0)
			MU_FAIL(MU_ERR_FORMAT,
				"its config.json calls class %zu \"%.60s\" in \"%s\" and \"%.60s\" "
				"in \"%s\": take the wrong one out of the file",
				i, by_id->of[i], by_id->member, by_label->of[i], by_label->member);
out:
	return st;
}

/* All names as one text. */
static enum mu_status join_names(struct model_config *c, const struct names *n)
{
	enum mu_status st = MU_OK;
	size_t nbytes = 1;
	char *at;

	for (size_t i = 0; i < n->classes; i++) {
		if (!n->of[i])
			MU_FAIL(MU_ERR_FORMAT, "its config.json has no name of class %zu in \"%s\"",
				i, n->member);
		if (strchr(n->of[i], '\n')) {
			model_note(c,
				   "config.json has a line break in the name of class %zu: the "
				   "names of classes are left out",
				   i);
			goto out;
		}
		nbytes += strlen(n->of[i]) + 1;
	}
	MU_TRY(MU_ALLOC(c->class_names, nbytes, "names of classes"));
	at = c->class_names;
	for (size_t i = 0; i < n->classes; i++)
		at += sprintf(at, "%s\n", n->of[i]);
out:
	return st;
}

enum mu_status model_classes_read(struct model_config *c, const char *place, size_t classes)
{
	enum mu_status st = MU_OK;
	struct names all[] = {
		{.member = "id2label", .classes = classes},
		{.member = "label_names", .classes = classes},
		{.member = "label2id", .by_name = true, .classes = classes},
	};
	enum { N = sizeof all / sizeof *all };
	const struct names *first = NULL;
	char path[MODEL_PATH];

	if (classes == 0) /* there is nothing that they could be names of */
		return MU_OK;
	model_path(place, "config.json", path);
	for (int i = 0; i < N; i++) {
		MU_TRY(read_names(&all[i], path));
		if (first && all[i].of)
			MU_TRY(compare(first, &all[i]));
		else if (all[i].of)
			first = &all[i];
	}
	if (first)
		MU_TRY(join_names(c, first));
out:
	for (int i = 0; i < N; i++)
		forget(&all[i]);
	return st;
}

/* ---- writing ---- */

/* The next of names, in place; NULL: there are no more. */
static char *next_name(char **at)
{
	char *name = *at, *end = strchr(name, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return name;
}

/* Does a class before this one have its name? */
static bool is_repeated(const char *names, const char *name)
{
	for (const char *p = names; p < name; p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return true;
	return false;
}

void model_classes_write(struct mu_json *j, char *names)
{
	char *at = names, *name, number[24];
	size_t i = 0;

	mu_json_open(j, "id2label", '{');
	while ((name = next_name(&at))) {
		snprintf(number, sizeof number, "%zu", i++);
		mu_json_text(j, number, name);
	}
	mu_json_close(j, '}');
	mu_json_open(j, "label2id", '{');
	i = 0;
	for (const char *p = names; p < at; p += strlen(p) + 1, i++)
		if (!is_repeated(names, p))
			mu_json_number(j, p, (double)i);
	mu_json_close(j, '}');
}
