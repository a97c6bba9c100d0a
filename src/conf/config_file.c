/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --config FILE: options of a file, before those of the command line. A file has an option a line
 * ("name value" or "name = value", "#" begins a comment), or is the P-run.json of a run: then the
 * options that were given to that run, with the values that it had.
 */
#include "conf.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <muster/json.h>
#include <muster/storage.h>

enum { NAME_BYTES = 64, MOST_BYTES = 1 << 20 };

/* ---- arguments ---- */

static char **grow(char ***list, int n)
{
	char **grown = realloc(*list, ((size_t)n + 2) * sizeof *grown);

	if (grown) {
		*list = grown;
		grown[n] = grown[n + 1] = NULL;
	}
	return grown;
}

static enum mu_status append(struct conf_arguments *a, const char *name, const char *value)
{
	enum mu_status st = MU_OK;
	const size_t n = strlen(name) + (value ? strlen(value) : 0) + sizeof "--=";
	char *text = NULL;

	if (!grow(&a->argv, a->argc) || !grow(&a->places, a->argc))
		MU_FAIL(MU_ERR_MEMORY, "no memory for options");
	MU_TRY(MU_ALLOC(text, n, "argument"));
	if (value)
		snprintf(text, n, "--%s=%s", name, value);
	else
		snprintf(text, n, "%s", name);
	a->argv[a->argc++] = text;
out:
	return st;
}

enum mu_status mu_conf_arguments_add(struct conf_arguments *a, const char *word)
{
	return append(a, word, NULL);
}

void mu_conf_arguments_release(struct conf_arguments *a)
{
	for (int i = 0; i < a->argc; i++) {
		mu_free(a->argv[i]);
		mu_free(a->places[i]);
	}
	free(a->argv);
	free(a->places);
	if (a->recorded)
		mu_conf_arguments_release(a->recorded);
	if (a->site)
		mu_conf_arguments_release(a->site);
	mu_free(a->recorded);
	mu_free(a->site);
	*a = (struct conf_arguments){.argc = 0};
}

/* ---- one file ---- */

struct reader {
	struct conf_arguments *to;
	const char *path;
	size_t line;
};

/* A fixed one; NULL: it may be a setting of a network. */
static const struct mu_option *find_option(const char *name)
{
	for (size_t i = 0; i < mu_conf_n_options; i++)
		if (strcmp(mu_conf_options[i].name, name) == 0)
			return &mu_conf_options[i];
	return NULL;
}

/* An option of the file, as on a command line. */
static enum mu_status take(struct reader *r, char *name, const char *value)
{
	enum mu_status st = MU_OK;
	const struct mu_option *option;
	struct conf_arguments *a = r->to;
	const size_t n = strlen(r->path) + 32;

	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	if (strcmp(name, "config") == 0)
		MU_FAIL(MU_ERR_USAGE,
			"%s:%zu: config: a file cannot name another; use --config twice", r->path,
			r->line);
	option = find_option(name);
	if (option && option->type == MU_OPTION_FLAG && strcmp(value, "false") == 0)
		goto out;
	if ((option && option->type == MU_OPTION_FLAG && strcmp(value, "true") == 0) ||
	    (!*value && (!option || option->type == MU_OPTION_FLAG || option->toggle))) {
		char flag[NAME_BYTES + 2];

		snprintf(flag, sizeof flag, "--%s", name);
		MU_TRY(append(a, flag, NULL));
	} else {
		MU_TRY(append(a, name, value));
	}
	MU_TRY(MU_ALLOC(a->places[a->argc - 1], n, "place of an option"));
	snprintf(a->places[a->argc - 1], n, "%s:%zu", r->path, r->line);
out:
	return st;
}

/* ---- lines ---- */

static bool is_blank_or_comment(const char *text)
{
	text += strspn(text, " \t\r");
	return *text == '\0' || *text == '#';
}

/* The value without a comment and the blanks at its end. "#" begins one at the start of a word. */
static void cut(char *value)
{
	size_t n;

	for (char *c = value; *c; c++)
		if (*c == '#' && (c == value || strchr(" \t", c[-1])))
			*c = '\0';
	for (n = strlen(value); n > 0 && strchr(" \t\r\n", value[n - 1]);)
		value[--n] = '\0';
}

/* A value between quotation marks may hold blanks and "#"; the marks are not a part of it. */
static enum mu_status unquote(const struct reader *r, const char *name, char **value)
{
	enum mu_status st = MU_OK;
	char *end = strchr(*value + 1, **value);

	if (!end || !is_blank_or_comment(end + 1))
		MU_FAIL(MU_ERR_USAGE,
			"%s:%zu: %s: %s: a quotation mark (%c) begins the value, so another one "
			"must end it",
			r->path, r->line, name, *value, **value);
	*end = '\0';
	(*value)++;
out:
	return st;
}

static enum mu_status read_line(struct reader *r, char *line)
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES];
	size_t n;

	line += strspn(line, " \t");
	if (strncmp(line, "--", 2) == 0)
		line += 2;
	if (is_blank_or_comment(line))
		goto out;
	n = strcspn(line, " \t=\r");
	if (n == 0 || n >= sizeof name)
		MU_FAIL(MU_ERR_USAGE,
			"%s:%zu: \"%.60s\": write an option as \"name value\" or "
			"\"name = value\"",
			r->path, r->line, line);
	snprintf(name, sizeof name, "%.*s", (int)n, line);
	line += n;
	line += strspn(line, " \t");
	line += *line == '=';
	line += strspn(line, " \t");
	if (*line == '"' || *line == '\'')
		MU_TRY(unquote(r, name, &line));
	else
		cut(line);
	MU_TRY(take(r, name, line));
out:
	return st;
}

static enum mu_status read_lines(struct reader *r, char *text)
{
	enum mu_status st = MU_OK;

	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		r->line++;
		MU_TRY(read_line(r, line));
	}
out:
	return st;
}

/* ---- P-run.json ---- */

/* Is the option in the list of those that were given to the run? */
static bool is_given(const struct mu_json_value *list, const char *name)
{
	const struct mu_json_value *v = mu_json_first(list);

	for (uint32_t i = 0; i < list->n; i++, v = mu_json_next(v))
		if (strcmp(v->text, name) == 0)
			return true;
	return false;
}

/* Names that no option of the file has. */
static enum mu_status check_given(const struct reader *r, const struct mu_json_value *list,
				  const struct mu_json_value *options)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v;

	v = mu_json_first(list);
	for (uint32_t i = 0; i < list->n; i++, v = mu_json_next(v)) {
		if (v->type != MU_JSON_TEXT ||
		    (!find_option(v->text) && !mu_json_member(options, v->text)))
			MU_FAIL(MU_ERR_USAGE, "%s:%u: unknown option --%.*s", r->path, v->line,
				(int)v->text_bytes, v->text ? v->text : "");
	}
out:
	return st;
}

/* Is the option about one run alone, and not repeated? */
static bool is_of_one_run(const char *name)
{
	static const char *const names[] = {"config", "overwrite", "resume", "load-epoch",
					    "log",    "check",     NULL};

	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* The value as on a command line; NULL: it has none. copy is mu_free'd by the caller. */
static enum mu_status read_value(struct reader *r, const struct mu_json_value *v, char **copy)
{
	enum mu_status st = MU_OK;
	const char *text = v->type == MU_JSON_TRUE    ? "true"
			   : v->type == MU_JSON_FALSE ? "false"
						      : v->text;
	const size_t n = v->text ? v->text_bytes : text ? strlen(text) : 0;

	*copy = NULL;
	if (v->type == MU_JSON_NULL)
		goto out;
	if (!text || memchr(text, '\0', n))
		MU_FAIL(MU_ERR_FORMAT,
			"%s:%u: %s: a text without a zero byte, a number, true or false is needed",
			r->path, v->line, v->name);
	MU_TRY(MU_ALLOC(*copy, n + 1, "value of an option"));
	memcpy(*copy, text, n);
out:
	return st;
}

static enum mu_status read_member(struct reader *r, const struct mu_json_value *v,
				  const struct mu_json_value *given)
{
	enum mu_status st = MU_OK;
	const bool again = is_given(given, v->name);
	char name[NAME_BYTES], *value = NULL;

	if ((!again && !find_option(v->name)) || is_of_one_run(v->name))
		goto out;
	MU_TRY(read_value(r, v, &value));
	if (!value)
		goto out;
	snprintf(name, sizeof name, "%s", v->name);
	r->line = v->line;
	if (again)
		MU_TRY(take(r, name, value));
	else
		MU_TRY(append(r->to->recorded, name, value));
out:
	mu_free(value);
	return st;
}

static enum mu_status read_run(struct reader *r, char *text, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_json_document json = {0};
	const struct mu_json_value *options, *given, *v;

	MU_TRY(mu_json_read(&json, r->path, text, nbytes));
	if (!r->to->recorded)
		MU_TRY(MU_ALLOC(r->to->recorded, 1, "options of a run"));
	given = mu_json_member(json.values, "given");
	if (!given || given->type != MU_JSON_ARRAY)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has no list \"given\" of a run's options: P-run.json, as this version "
			"writes it, or lines \"name value\" are needed",
			r->path);
	options = mu_json_member(json.values, "options");
	if (!options || options->type != MU_JSON_OBJECT)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no \"options\"", r->path);
	MU_TRY(check_given(r, given, options));
	v = mu_json_first(options);
	for (uint32_t i = 0; i < options->n; i++, v = mu_json_next(v))
		MU_TRY(read_member(r, v, given));
out:
	mu_json_release(&json);
	return st;
}

/* ---- files ---- */

/* *begin: the text after a mark of its encoding; text: mu_free'd by the caller. */
static enum mu_status read_text(const char *path, char **text, size_t *n, char **begin)
{
	enum mu_status st = MU_OK;
	FILE *f = NULL;
	size_t mark;

	MU_TRY(mu_stream_open(&f, path));
	MU_TRY(MU_ALLOC(*text, MOST_BYTES + 1, "options of a file"));
	*n = fread(*text, 1, MOST_BYTES + 1, f);
	if (ferror(f))
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	MU_TRY(mu_text_begin(path, *text, *n, &mark));
	if (*n > MOST_BYTES || memchr(*text, '\0', *n))
		MU_FAIL(MU_ERR_FORMAT, "%s: not a file of options", path);
	(*text)[*n] = '\0';
	*begin = *text + mark;
out:
	if (f)
		fclose(f);
	return st;
}

static enum mu_status read_config(struct reader *r)
{
	enum mu_status st = MU_OK;
	char *text = NULL, *begin;
	size_t n;

	MU_TRY(read_text(r->path, &text, &n, &begin));
	MU_TRY(begin[strspn(begin, " \t\r\n")] == '{' ? read_run(r, text, n)
							 : read_lines(r, begin));
out:
	mu_free(text);
	if (st != MU_OK)
		mu_trace_prefix("--config ");
	return st;
}

enum mu_status mu_conf_lines_read(struct conf_arguments *a, const char *path)
{
	enum mu_status st = MU_OK;
	struct reader r = {.to = a, .path = path};
	char *text = NULL, *begin;
	size_t n;

	MU_TRY(read_text(path, &text, &n, &begin));
	MU_TRY(read_lines(&r, begin));
out:
	mu_free(text);
	return st;
}

/* Is it --config, or short for it? *value: in the same argument, or NULL. */
static bool is_config(const char *argument, const char **value)
{
	static const char name[] = "--config";
	const size_t n = strcspn(argument, "=");

	*value = argument[n] ? argument + n + 1 : NULL;
	return n >= sizeof "--conf" - 1 && n < sizeof name && strncmp(argument, name, n) == 0;
}

/* Each option of a file by itself; what: the kind of file, for messages. */
static enum mu_status check(struct mu_options *o, const struct conf_arguments *a, const char *what)
{
	enum mu_status st = MU_OK;

	for (int i = 1; a && i < a->argc; i++) {
		if (!a->places[i])
			continue;
		st = mu_options_parse(o, 2, (char *[]){NULL, a->argv[i]});
		if (st != MU_OK)
			mu_trace_prefix("%s %s: ", what, a->places[i]);
		MU_TRY(st);
	}
out:
	return st;
}

enum mu_status mu_conf_arguments_check(const struct conf_arguments *a)
{
	enum mu_status st = MU_OK;
	struct mu_options o = {0};
	struct conf v;

	MU_TRY(mu_conf_options_find(&o, &v, a->argc, a->argv));
	MU_TRY(check(&o, a->site, "site file"));
	MU_TRY(check(&o, a, "--config"));
out:
	mu_options_release(&o);
	return st;
}

enum mu_status mu_conf_arguments_read(struct conf_arguments *a, int argc, char *const argv[])
{
	enum mu_status st = MU_OK;

	*a = (struct conf_arguments){.argc = 0};
	MU_TRY(append(a, argc > 0 ? argv[0] : "trainer", NULL));
	for (int i = 1; i < argc; i++) {
		struct reader r = {.to = a};

		if (!is_config(argv[i], &r.path))
			continue;
		if (!r.path && i + 1 < argc)
			r.path = argv[i + 1];
		if (r.path)
			MU_TRY(read_config(&r));
	}
	for (int i = 1; i < argc; i++)
		MU_TRY(append(a, argv[i], NULL));
out:
	return st;
}
