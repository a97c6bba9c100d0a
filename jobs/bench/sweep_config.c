/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration and its experiments: see sweep.h. */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

enum { WHERE_BYTES = 1024, TEXT_BYTES = 8192, MOST_EXPERIMENTS = 100000, DEPTH = 16 };

/* ---- ${name} ---- */

/* The text of a name; NULL: there is none. */
static const char *look_up(const json_t *experiment, const char *name, char *number, size_t nbytes)
{
	const json_t *value = json_object_get(experiment, name);

	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_integer(value)) {
		snprintf(number, nbytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return number;
	}
	if (getenv(name))
		return getenv(name);
	return strcmp(name, "BENCH_ROOT") == 0 ? "." : NULL;
}

/* One pass over a text: from -> to, of TEXT_BYTES. */
static enum mu_status expand_once(const json_t *experiment, const char *key, const char *from,
				  char *to, const char *where)
{
	enum mu_status st = MU_OK;
	char name[WHERE_BYTES], number[32];
	size_t used = 0;

	while (*from) {
		const char *end = strncmp(from, "${", 2) == 0 ? strchr(from, '}') : NULL;
		const char *piece = from;
		size_t n = 1;

		if (end) {
			snprintf(name, sizeof name, "%.*s", (int)(end - from - 2), from + 2);
			piece = look_up(experiment, name, number, sizeof number);
			if (!piece)
				MU_FAIL(MU_ERR_USAGE,
					"%s: \"%s\": ${%s}: neither a parameter nor set in the "
					"environment",
					where, key, name);
			n = strlen(piece);
		}
		if (used + n >= TEXT_BYTES)
			MU_FAIL(MU_ERR_USAGE, "%s: \"%s\": longer than %d bytes", where, key,
				TEXT_BYTES - 1);
		memcpy(to + used, piece, n);
		used += n;
		from = end ? end + 1 : from + 1;
	}
	to[used] = '\0';
out:
	return st;
}

static enum mu_status expand_one(json_t *experiment, const struct sweep_parameter *p,
				 const char *where)
{
	enum mu_status st = MU_OK;
	char now[TEXT_BYTES], next[TEXT_BYTES];
	json_t *old = json_object_get(experiment, p->name), *value = NULL, *text = NULL;

	if (!json_is_string(old) || p->type == SWEEP_WITHOUT_EFFECT)
		goto out;
	if (strlen(json_string_value(old)) >= sizeof now)
		MU_FAIL(MU_ERR_USAGE, "%s: \"%s\": longer than %d bytes", where, p->name,
			TEXT_BYTES - 1);
	strcpy(now, json_string_value(old));
	for (int depth = 0; strstr(now, "${"); depth++) {
		MU_TRY(expand_once(experiment, p->name, now, next, where));
		if (depth == DEPTH || strcmp(now, next) == 0)
			MU_FAIL(MU_ERR_USAGE, "%s: \"%s\": \"%s\" never ends, or lacks a \"}\"",
				where, p->name, json_string_value(old));
		strcpy(now, next);
	}
	text = json_string(now);
	MU_TRY(sweep_parameter_take(p, text, where, &value));
	json_object_set_new(experiment, p->name, value);
out:
	json_decref(text);
	return st;
}

enum mu_status sweep_expand(json_t *experiment, const char *where)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < sweep_parameter_count; i++)
		MU_TRY(expand_one(experiment, &sweep_parameters[i], where));
out:
	return st;
}

/* ---- one experiment ---- */

/* FNV-1a of what makes it this experiment. */
static unsigned long hash(const json_t *experiment)
{
	unsigned long h = 2166136261u;

	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const struct sweep_parameter *p = &sweep_parameters[i];
		char *text = p->identity ? json_dumps(json_object_get(experiment, p->name),
						      JSON_ENCODE_ANY)
					 : NULL;

		for (const char *c = text; c && *c; c++)
			h = ((h ^ (unsigned char)*c) * 16777619u) & 0xffffffffu;
		h = ((h ^ '\n') * 16777619u) & 0xffffffffu;
		free(text);
	}
	return h;
}

static enum mu_status settle(json_t *experiment, const char *where)
{
	enum mu_status st = MU_OK;
	char id[32];

	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const struct sweep_parameter *p = &sweep_parameters[i];
		json_t *text, *value = NULL;

		if (json_object_get(experiment, p->name) || p->type == SWEEP_WITHOUT_EFFECT ||
		    p->type == SWEEP_GIVEN_TEXT)
			continue;
		if (!p->initial)
			MU_FAIL(MU_ERR_USAGE, "%s: \"%s\" is missing", where, p->name);
		text = json_string(p->initial);
		st = sweep_parameter_take(p, text, where, &value);
		json_decref(text);
		MU_TRY(st);
		json_object_set_new(experiment, p->name, value);
	}
	if (!*sweep_text(experiment, "exp.id")) {
		snprintf(id, sizeof id, "%08lx", hash(experiment));
		json_object_set_new(experiment, "exp.id", json_string(id));
	}
	MU_TRY(sweep_expand(experiment, where));
	MU_TRY(sweep_job_settle(experiment, where));
out:
	return st;
}

/* ---- the file ---- */

/* All values of an object of parameters are right, by themselves. */
static enum mu_status take_object(json_t *from, bool lists, const char *where, json_t *to)
{
	enum mu_status st = MU_OK;
	const char *name;
	json_t *value, *item;
	size_t i;

	json_object_foreach(from, name, value)
	{
		const struct sweep_parameter *p = NULL;
		json_t *list = lists ? json_array() : NULL, *taken = NULL;

		if (lists)
			json_object_set_new(to, name, list);
		MU_TRY(sweep_parameter_find(&p, name, where));
		if (lists && !(json_is_array(value) && json_array_size(value) > 0))
			MU_FAIL(MU_ERR_USAGE,
				"%s: \"%s\" in \"variables\": a list of one or more values is "
				"needed",
				where, name);
		if (!lists) {
			MU_TRY(sweep_parameter_take(p, value, where, &taken));
			json_object_set_new(to, name, taken);
		}
		json_array_foreach(lists ? value : NULL, i, item)
		{
			MU_TRY(sweep_parameter_take(p, item, where, &taken));
			json_array_append_new(list, taken);
		}
	}
out:
	return st;
}

static enum mu_status part_of(const json_t *root, const char *name, const char *where, json_t **out)
{
	enum mu_status st = MU_OK;

	*out = json_object_get(root, name);
	if (*out && !json_is_object(*out))
		MU_FAIL(MU_ERR_USAGE, "%s: \"%s\" must be an object, {...}", where, name);
out:
	return st;
}

/* Parameters and variables; nothing else, and nothing twice. */
static enum mu_status check_root(json_t *root, const char *where)
{
	enum mu_status st = MU_OK;
	const char *name;
	json_t *parameters, *variables, *value;

	if (!json_is_object(root))
		MU_FAIL(MU_ERR_USAGE,
			"%s: an object with \"parameters\" and \"variables\" is needed", where);
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "parameters") != 0 && strcmp(name, "variables") != 0)
			MU_FAIL(MU_ERR_USAGE,
				"%s: \"%s\" is not known here; the nearest name is \"%s\"", where,
				name,
				mu_name_distance(name, "parameters") <
						mu_name_distance(name, "variables")
					? "parameters"
					: "variables");
	}
	MU_TRY(part_of(root, "parameters", where, &parameters));
	MU_TRY(part_of(root, "variables", where, &variables));
	json_object_foreach(variables, name, value)
	{
		if (json_object_get(parameters, name))
			MU_FAIL(MU_ERR_USAGE,
				"%s: \"%s\" stands in \"parameters\" and in \"variables\": which "
				"is meant?",
				where, name);
	}
out:
	return st;
}

/* How many experiments; 0: too many. */
static size_t product(json_t *variables)
{
	const char *name;
	json_t *list;
	size_t n = 1;

	json_object_foreach(variables, name, list)
	{
		n *= json_array_size(list);
		if (n > MOST_EXPERIMENTS)
			return 0;
	}
	return n;
}

/* Experiment number i of n of the product. */
static json_t *combine(const json_t *parameters, json_t *variables, size_t i, size_t n)
{
	json_t *experiment = json_deep_copy(parameters), *list;
	const char *name;

	json_object_foreach(variables, name, list)
	{
		n /= json_array_size(list);
		json_object_set_new(experiment, name, json_copy(json_array_get(list, i / n)));
		i %= n;
	}
	return experiment;
}

static enum mu_status make_experiments(const json_t *parameters, json_t *variables,
				       const char *path, json_t *experiments)
{
	enum mu_status st = MU_OK;
	const size_t n = product(variables);
	json_t *logs = json_object(), *other;
	char where[WHERE_BYTES];

	if (n == 0)
		MU_FAIL(MU_ERR_USAGE, "%s: more than %d experiments", path, MOST_EXPERIMENTS);
	for (size_t i = 0; i < n; i++) {
		json_t *experiment = combine(parameters, variables, i, n);
		const char *log;

		json_array_append_new(experiments, experiment);
		snprintf(where, sizeof where, n > 1 ? "%.900s, experiment %zu" : "%.900s", path,
			 i + 1);
		MU_TRY(settle(experiment, where));
		log = sweep_text(experiment, "exp.log_file");
		other = json_object_get(logs, log);
		if (other)
			MU_FAIL(MU_ERR_USAGE,
				"%s: experiments %d and %zu have one log, %s: \"exp.log_file\" "
				"must hold ${exp.id}, or all names of \"variables\"",
				path, (int)json_integer_value(other), i + 1, log);
		json_object_set_new(logs, log, json_integer((json_int_t)i + 1));
	}
out:
	json_decref(logs);
	return st;
}

enum mu_status sweep_config_read(const char *path, json_t **experiments)
{
	enum mu_status st = MU_OK;
	FILE *file = NULL;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	json_t *root = NULL, *parameters = json_object(), *variables = json_object();

	*experiments = json_array();
	MU_TRY(mu_stream_open(&file, path));
	n = getdelim(&text, &room, '\0', file); /* all of it: JSON has no zero byte */
	if (n < 0)
		MU_FAIL(MU_ERR_USAGE, "%s: is empty, or cannot be read", path);
	st = sweep_json_read(path, text, (size_t)n, &root);
	if (st == MU_ERR_FORMAT)
		st = MU_ERR_USAGE; /* a configuration is the user's command */
	MU_TRY(st);
	MU_TRY(check_root(root, path));
	MU_TRY(take_object(json_object_get(root, "parameters"), false, path, parameters));
	MU_TRY(take_object(json_object_get(root, "variables"), true, path, variables));
	MU_TRY(make_experiments(parameters, variables, path, *experiments));
out:
	json_decref(root);
	json_decref(parameters);
	json_decref(variables);
	free(text);
	if (file)
		fclose(file);
	return st;
}
