/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of JSON (RFC 8259): all of a text becomes one array of values. base.h writes JSON.
 * What another reader may read in another way is refused: names that stand twice in one object,
 * texts that are not UTF-8, more after the end; so is what is nested more than 64 deep.
 */
#ifndef MUSTER_JSON_H
#define MUSTER_JSON_H

#include <muster/base.h>

MU_BEGIN_C

enum mu_json_type {
	MU_JSON_NULL,
	MU_JSON_FALSE,
	MU_JSON_TRUE,
	MU_JSON_NUMBER,
	MU_JSON_TEXT,
	MU_JSON_ARRAY,
	MU_JSON_OBJECT,
};

/* Names and texts lie in the text that was read, are UTF-8 and end in a zero byte; the numbers of
 * bytes tell them from texts with a zero byte inside. */
struct mu_json_value {
	const char *name; /* of a member of an object; else NULL */
	const char *text; /* of a text; of a number as it is written, without a zero byte */
	uint32_t name_bytes, text_bytes;
	uint32_t n;    /* elements of an array, members of an object */
	uint32_t size; /* values with those inside: the next element is value + size */
	uint32_t line; /* where it begins, from 1 on */
	enum mu_json_type type;
};

/* {0} is empty. */
struct mu_json_document {
	struct mu_json_value *values; /* the first is the whole; its elements follow */
	size_t n, room;
};

/*
 * Read text, nbytes of it and a zero byte after them; it is overwritten, and must stay as long as
 * the document. MU_ERR_FORMAT names path, line, column (in bytes) and what is wrong there.
 */
enum mu_status mu_json_read(struct mu_json_document *d, const char *path, char *text,
			    size_t nbytes);
void mu_json_release(struct mu_json_document *d);

/* The elements of an array or an object: for (v = mu_json_first(a), i = 0; i < a->n; i++, v =
 * mu_json_next(v)). */
const struct mu_json_value *mu_json_first(const struct mu_json_value *value);
const struct mu_json_value *mu_json_next(const struct mu_json_value *value);
/* The member of an object; NULL: there is none, or value is NULL or no object. */
const struct mu_json_value *mu_json_member(const struct mu_json_value *value, const char *name);
bool mu_json_is_text(const struct mu_json_value *value, const char *text);
/* Of a number. */
double mu_json_double(const struct mu_json_value *value);
/* An integer from 0 to max and below 2^53; false: it is something else, or value is NULL. */
bool mu_json_integer(const struct mu_json_value *value, uint64_t max, uint64_t *out);

MU_END_C

#endif
