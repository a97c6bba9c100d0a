/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for sweeps: read by Muster's reader, kept and written by jansson. */
#include "sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <muster/json.h>

/* A number without point and exponent that 64 bits hold is an integer. */
static json_t *build_number(const struct mu_json_value *v)
{
	const char *const end = v->text + v->text_bytes;
	char *stop;
	json_int_t whole;

	errno = 0;
	whole = strtoll(v->text, &stop, 10);
	return stop == end && errno == 0 ? json_integer(whole) : json_real(mu_json_double(v));
}

/* Texts of sweeps end at a zero byte. */
static enum mu_status check_text(const char *path, const struct mu_json_value *v, const char *text,
				 size_t nbytes)
{
	enum mu_status st = MU_OK;

	if (text && memchr(text, '\0', nbytes))
		MU_FAIL(MU_ERR_FORMAT, "%s, line %u: a text with a zero byte", path, v->line);
out:
	return st;
}

/* A new reference, of elements too; nothing if there is an error. */
static enum mu_status build(const char *path, const struct mu_json_value *v, json_t **out)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *element = mu_json_first(v);
	json_t *made = NULL, *inner;

	MU_TRY(check_text(path, v, v->name, v->name_bytes));
	switch (v->type) {
	case MU_JSON_NULL: made = json_null(); break;
	case MU_JSON_FALSE: made = json_false(); break;
	case MU_JSON_TRUE: made = json_true(); break;
	case MU_JSON_NUMBER: made = build_number(v); break;
	case MU_JSON_TEXT:
		MU_TRY(check_text(path, v, v->text, v->text_bytes));
		made = json_string(v->text);
		break;
	case MU_JSON_ARRAY: made = json_array(); break;
	case MU_JSON_OBJECT: made = json_object(); break;
	}
	for (uint32_t i = 0; i < v->n; i++, element = mu_json_next(element)) {
		MU_TRY(build(path, element, &inner));
		if (v->type == MU_JSON_ARRAY)
			json_array_append_new(made, inner);
		else
			json_object_set_new(made, element->name, inner);
	}
	*out = made;
	made = NULL;
out:
	json_decref(made);
	return st;
}

enum mu_status sweep_json_read(const char *path, char *text, size_t nbytes, json_t **out)
{
	enum mu_status st = MU_OK;
	struct mu_json_document json = {0};

	MU_TRY(mu_json_read(&json, path, text, nbytes));
	MU_TRY(build(path, json.values, out));
out:
	mu_json_release(&json);
	return st;
}
