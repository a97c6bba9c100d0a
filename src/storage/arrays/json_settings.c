/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a JSON file as names and texts: see storage.h. */
#include <muster/json.h>
#include <muster/storage.h>

#include <inttypes.h>
#include <sys/stat.h>

#include "storage/file.h"

enum { NAME = 256, VALUE = 256 };

struct walk {
	const char *path;
	mu_setting_fn *fn;
	void *context;
	char name[NAME];
};

static void put_value(const struct mu_json_value *v, FILE *out)
{
	const struct mu_json_value *element;

	switch (v->type) {
	case MU_JSON_NULL: fputs("null", out); break;
	case MU_JSON_FALSE: fputs("false", out); break;
	case MU_JSON_TRUE: fputs("true", out); break;
	case MU_JSON_NUMBER: fprintf(out, "%.15g", mu_json_double(v)); break;
	case MU_JSON_TEXT: fprintf(out, "\"%s\"", v->text); break;
	case MU_JSON_OBJECT: fputs("{}", out); break;
	case MU_JSON_ARRAY:
		element = mu_json_first(v);
		fputc('[', out);
		for (uint32_t i = 0; i < v->n; i++, element = mu_json_next(element)) {
			fputs(i > 0 ? "," : "", out);
			put_value(element, out);
		}
		fputc(']', out);
	}
}

/* What does not fit is cut. */
static enum mu_status format_value(const struct mu_json_value *v, const char *path,
				   char value[VALUE])
{
	enum mu_status st = MU_OK;
	FILE *out = fmemopen(value, VALUE, "w");

	if (!out)
		MU_FAIL(MU_ERR_MEMORY, "%s: no memory for a member", path);
	put_value(v, out);
	fclose(out);
	value[VALUE - 1] = '\0';
out:
	return st;
}

static enum mu_status visit(struct walk *w, const struct mu_json_value *object, size_t used);

/* A member whose name begins at w->name + used. */
static enum mu_status visit_member(struct walk *w, const struct mu_json_value *v, size_t used)
{
	enum mu_status st = MU_OK;
	char value[VALUE] = "";
	const int n = snprintf(w->name + used, NAME - used, "%s", v->name);

	if ((size_t)n >= NAME - used)
		MU_FAIL(MU_ERR_FORMAT, "%s: the name of member \"%.80s...\" is too long", w->path,
			w->name);
	if (v->type == MU_JSON_OBJECT && v->n > 0) {
		MU_TRY(visit(w, v, used + (size_t)n));
		goto out;
	}
	MU_TRY(format_value(v, w->path, value));
	MU_TRY(w->fn(w->context, w->name, value));
out:
	return st;
}

static enum mu_status visit(struct walk *w, const struct mu_json_value *object, size_t used)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v = mu_json_first(object);

	if (used > 0 && used < NAME - 1)
		w->name[used++] = '.';
	for (uint32_t i = 0; i < object->n; i++, v = mu_json_next(v))
		MU_TRY(visit_member(w, v, used));
out:
	return st;
}

/* The whole file; document and text are the caller's. No values: there is no such file. */
static enum mu_status read_file(struct mu_json_document *json, char **text, const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;
	size_t n;

	if (stat(path, &status) != 0)
		goto out;
	MU_TRY(mu_file_read_whole(text, &n, path));
	MU_TRY(mu_json_read(json, path, *text, n));
	if (json->values->type != MU_JSON_OBJECT)
		MU_FAIL(MU_ERR_FORMAT, "%s: is no object of settings", path);
out:
	return st;
}

enum mu_status mu_settings_each(const char *path, mu_setting_fn *fn, void *context, bool *there)
{
	enum mu_status st = MU_OK;
	struct walk w = {.path = path, .fn = fn, .context = context};
	struct mu_json_document json = {0};
	char *text = NULL;

	MU_TRY(read_file(&json, &text, path));
	*there = json.values != NULL;
	if (*there)
		MU_TRY(visit(&w, json.values, 0));
out:
	mu_json_release(&json);
	mu_free(text);
	return st;
}

enum mu_status mu_settings_within(const char *path, const char *member, mu_setting_fn *fn,
				  void *context)
{
	enum mu_status st = MU_OK;
	struct mu_json_document json = {0};
	const struct mu_json_value *whole, *v;
	char *text = NULL, number[24], value[VALUE];

	MU_TRY(read_file(&json, &text, path));
	whole = json.values ? mu_json_member(json.values, member) : NULL;
	if (!whole || (whole->type != MU_JSON_ARRAY && whole->type != MU_JSON_OBJECT))
		goto out;
	v = mu_json_first(whole);
	for (uint32_t i = 0; i < whole->n; i++, v = mu_json_next(v)) {
		snprintf(number, sizeof number, "%" PRIu32, i);
		if (v->type != MU_JSON_TEXT)
			MU_TRY(format_value(v, path, value));
		MU_TRY(fn(context, v->name ? v->name : number,
			  v->type == MU_JSON_TEXT ? v->text : value));
	}
out:
	mu_json_release(&json);
	mu_free(text);
	return st;
}
