/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of JSON: see muster/json.h. Texts are decoded in place, which never lengthens them. */
#include <muster/json.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

enum { DEEPEST = 64 };

struct reader {
	struct mu_json_document *d;
	const char *path;
	char *at, *end; /* *end is 0 */
	int depth;
	size_t line; /* from 1 on; only blanks hold newlines */
	char *line_start;
	uint32_t *slots; /* n_slots of them: a hash table of an object's names */
	size_t n_slots;
};

static enum mu_status read_value(struct reader *r, size_t *index);

static enum mu_status fail(const struct reader *r, const char *what)
{
	return mu_trace_start(MU_ERR_FORMAT, __FILE__, __LINE__,
			      "%s, line %zu, column %zu: is no JSON: %s", r->path, r->line,
			      (size_t)(r->at - r->line_start) + 1, what);
}

static void skip_blanks(struct reader *r)
{
	for (; *r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'; r->at++)
		if (*r->at == '\n') {
			r->line++;
			r->line_start = r->at + 1;
		}
}

/* The address of a value may change when another one is added; its index does not. */
static enum mu_status add_value(struct reader *r, enum mu_json_type type, size_t *index)
{
	enum mu_status st = MU_OK;
	struct mu_json_document *d = r->d;
	struct mu_json_value *larger;

	if (d->n == UINT32_MAX)
		MU_TRY(fail(r, "it has too many values"));
	if (d->n == d->room) {
		const size_t room = d->room ? 2 * d->room : 64;

		MU_TRY(MU_ALLOC(larger, room, "values of JSON"));
		if (d->n > 0)
			memcpy(larger, d->values, d->n * sizeof *larger);
		mu_free(d->values);
		d->values = larger;
		d->room = room;
	}
	*index = d->n++;
	d->values[*index] = (struct mu_json_value){
		.type = type, .size = 1, .line = (uint32_t)r->line};
out:
	return st;
}

/* ---- texts ---- */

static bool read_hex(const char *p, uint32_t *code)
{
	*code = 0;
	for (int i = 0; i < 4; i++) {
		const char c = p[i];
		const int digit = c >= '0' && c <= '9'   ? c - '0'
				  : c >= 'a' && c <= 'f' ? c - 'a' + 10
				  : c >= 'A' && c <= 'F' ? c - 'A' + 10
							 : -1;

		if (digit < 0)
			return false;
		*code = *code << 4 | (uint32_t)digit;
	}
	return true;
}

/* r->at is after "\u". */
static enum mu_status read_code(struct reader *r, uint32_t *code)
{
	enum mu_status st = MU_OK;
	uint32_t low = 0;

	if (!read_hex(r->at, code))
		MU_TRY(fail(r, "\\u without four digits"));
	r->at += 4;
	if (*code < 0xd800 || *code >= 0xe000)
		goto out;
	if (*code >= 0xdc00 || r->at[0] != '\\' || r->at[1] != 'u' || !read_hex(r->at + 2, &low) ||
	    low < 0xdc00 || low >= 0xe000)
		MU_TRY(fail(r, "half of a surrogate pair"));
	r->at += 6;
	*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
out:
	return st;
}

static char *put_utf8(char *to, uint32_t code)
{
	static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (int i = n; i-- > 1; code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)(heads[n] | code);
	return to + n;
}

/* r->at is after the backslash. */
static enum mu_status read_escape(struct reader *r, char **to)
{
	enum mu_status st = MU_OK;
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *found = *r->at ? strchr(from, *r->at) : NULL;
	uint32_t code;

	if (*r->at == 'u') {
		r->at++;
		MU_TRY(read_code(r, &code));
		*to = put_utf8(*to, code);
		goto out;
	}
	if (!found)
		MU_TRY(fail(r, "an unknown character after a backslash"));
	*(*to)++ = into[found - from];
	r->at++;
out:
	return st;
}

/* r->at is at the quotation mark. */
static enum mu_status read_text(struct reader *r, const char **text, uint32_t *nbytes)
{
	enum mu_status st = MU_OK;
	char *to = ++r->at;
	uint32_t code;
	size_t n;

	*text = to;
	while (*r->at != '"') {
		if (*r->at == '\\') {
			r->at++;
			MU_TRY(read_escape(r, &to));
			continue;
		}
		if ((unsigned char)*r->at < 0x20)
			MU_TRY(fail(r, r->at == r->end ? "a text without end"
						       : "a control character in a text"));
		n = mu_utf8_read(r->at, (size_t)(r->end - r->at), &code);
		if (n == 0)
			MU_TRY(fail(r, "a text that is not UTF-8"));
		memmove(to, r->at, n);
		to += n;
		r->at += n;
	}
	*nbytes = (uint32_t)(to - *text);
	*to = '\0'; /* in place of the quotation mark, or before it */
	r->at++;
out:
	return st;
}

/* ---- the other values ---- */

static size_t count_digits(const char *p)
{
	size_t n = 0;

	while (p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

static enum mu_status read_number(struct reader *r, const char **text, uint32_t *nbytes)
{
	enum mu_status st = MU_OK;
	const char *p = r->at + (*r->at == '-');
	size_t n = count_digits(p);

	if (n == 0 || (n > 1 && *p == '0'))
		MU_TRY(fail(r, "a value is missing"));
	p += n;
	if (*p == '.') {
		n = count_digits(++p);
		if (n == 0)
			MU_TRY(fail(r, "a number without digits after the point"));
		p += n;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '+' || *p == '-';
		n = count_digits(p);
		if (n == 0)
			MU_TRY(fail(r, "a number without an exponent"));
		p += n;
	}
	*text = r->at;
	*nbytes = (uint32_t)(p - r->at);
	if (isinf(strtod(r->at, NULL)))
		MU_TRY(fail(r, "a number that is too large"));
	r->at += *nbytes;
out:
	return st;
}

static enum mu_status read_name(struct reader *r, const char **name, uint32_t *nbytes)
{
	enum mu_status st = MU_OK;

	skip_blanks(r);
	if (*r->at != '"')
		MU_TRY(fail(r, "a name in quotation marks is missing"));
	MU_TRY(read_text(r, name, nbytes));
	skip_blanks(r);
	if (*r->at != ':')
		MU_TRY(fail(r, "a colon is missing"));
	r->at++;
out:
	return st;
}

/* ---- names ---- */

static bool same_name(const struct mu_json_value *a, const struct mu_json_value *b)
{
	return a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0;
}

/* Open addressing; a slot holds a value's place after the object, 0: none. */
static enum mu_status clear_slots(struct reader *r, size_t n)
{
	enum mu_status st = MU_OK;

	if (n > r->n_slots) {
		mu_free(r->slots);
		r->n_slots = 0;
		MU_TRY(MU_ALLOC(r->slots, n, "names of JSON"));
		r->n_slots = n;
	}
	memset(r->slots, 0, n * sizeof *r->slots);
out:
	return st;
}

static enum mu_status check_names(struct reader *r, const struct mu_json_value *object)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v = mu_json_first(object);
	size_t n_slots = 2;

	while (n_slots < 2 * (size_t)object->n)
		n_slots *= 2;
	MU_TRY(clear_slots(r, n_slots));
	for (uint32_t i = 0; i < object->n; i++, v = mu_json_next(v)) {
		size_t slot = mu_hash(0, v->name, v->name_bytes) & (n_slots - 1);

		for (; r->slots[slot]; slot = (slot + 1) & (n_slots - 1))
			if (same_name(object + r->slots[slot], v))
				MU_FAIL(MU_ERR_FORMAT,
					"%s, line %u: has two members \"%.80s\"", r->path,
					v->line, v->name);
		r->slots[slot] = (uint32_t)(v - object);
	}
out:
	return st;
}

/* An array or an object, whose value there is already. r->at is at the bracket. */
static enum mu_status read_elements(struct reader *r, size_t index, bool object)
{
	enum mu_status st = MU_OK;
	const char end = object ? '}' : ']';
	const char *name = NULL;
	uint32_t name_bytes = 0, n = 0;
	size_t element;

	if (++r->depth > DEEPEST)
		MU_TRY(fail(r, "it is nested more than 64 deep"));
	r->at++;
	skip_blanks(r);
	while (*r->at != end) {
		if (n > 0 && *r->at++ != ',') {
			r->at--;
			MU_TRY(fail(r, object ? "a comma or } is missing"
					      : "a comma or ] is missing"));
		}
		if (object)
			MU_TRY(read_name(r, &name, &name_bytes));
		MU_TRY(read_value(r, &element));
		r->d->values[element].name = name;
		r->d->values[element].name_bytes = name_bytes;
		n++;
		skip_blanks(r);
	}
	r->at++;
	r->depth--;
	r->d->values[index].n = n;
	r->d->values[index].size = (uint32_t)(r->d->n - index);
	if (object && n > 1)
		MU_TRY(check_names(r, &r->d->values[index]));
out:
	return st;
}

static enum mu_status read_word(struct reader *r, const char *word)
{
	if (strncmp(r->at, word, strlen(word)) != 0)
		return fail(r, "a value is missing");
	r->at += strlen(word);
	return MU_OK;
}

static enum mu_status read_value(struct reader *r, size_t *index)
{
	enum mu_status st = MU_OK;
	enum mu_json_type type = MU_JSON_NUMBER;
	const char *text = NULL;
	uint32_t nbytes = 0;

	skip_blanks(r);
	switch (*r->at) {
	case '{': type = MU_JSON_OBJECT; break;
	case '[': type = MU_JSON_ARRAY; break;
	case '"': type = MU_JSON_TEXT; break;
	case 'n': type = MU_JSON_NULL; break;
	case 't': type = MU_JSON_TRUE; break;
	case 'f': type = MU_JSON_FALSE; break;
	}
	MU_TRY(add_value(r, type, index));
	switch (type) {
	case MU_JSON_OBJECT:
	case MU_JSON_ARRAY: MU_TRY(read_elements(r, *index, type == MU_JSON_OBJECT)); break;
	case MU_JSON_TEXT: MU_TRY(read_text(r, &text, &nbytes)); break;
	case MU_JSON_NULL: MU_TRY(read_word(r, "null")); break;
	case MU_JSON_TRUE: MU_TRY(read_word(r, "true")); break;
	case MU_JSON_FALSE: MU_TRY(read_word(r, "false")); break;
	case MU_JSON_NUMBER: MU_TRY(read_number(r, &text, &nbytes)); break;
	}
	r->d->values[*index].text = text;
	r->d->values[*index].text_bytes = nbytes;
out:
	return st;
}

enum mu_status mu_json_read(struct mu_json_document *d, const char *path, char *text, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct reader r = {.d = d,
			   .path = path,
			   .at = text,
			   .end = text + nbytes,
			   .line = 1,
			   .line_start = text};
	size_t index, mark;

	*d = (struct mu_json_document){0};
	if (nbytes >= UINT32_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: JSON of %zu bytes: less than 4 GiB can be read",
			path, nbytes);
	MU_TRY(mu_text_begin(path, text, nbytes, &mark));
	r.at += mark;
	r.line_start += mark;
	MU_TRY(read_value(&r, &index));
	skip_blanks(&r);
	if (r.at != r.end)
		MU_TRY(fail(&r, "there is more after its end"));
out:
	mu_free(r.slots);
	if (st != MU_OK)
		mu_json_release(d);
	return st;
}

void mu_json_release(struct mu_json_document *d)
{
	mu_free(d->values);
	*d = (struct mu_json_document){0};
}

const struct mu_json_value *mu_json_first(const struct mu_json_value *value)
{
	return value + 1;
}

const struct mu_json_value *mu_json_next(const struct mu_json_value *value)
{
	return value + value->size;
}

const struct mu_json_value *mu_json_member(const struct mu_json_value *value, const char *name)
{
	const size_t n = strlen(name);
	const struct mu_json_value *member;

	if (!value || value->type != MU_JSON_OBJECT)
		return NULL;
	member = mu_json_first(value);
	for (uint32_t i = 0; i < value->n; i++, member = mu_json_next(member))
		if (member->name_bytes == n && memcmp(member->name, name, n) == 0)
			return member;
	return NULL;
}

bool mu_json_is_text(const struct mu_json_value *value, const char *text)
{
	return value && value->type == MU_JSON_TEXT && value->text_bytes == strlen(text) &&
	       memcmp(value->text, text, value->text_bytes) == 0;
}

double mu_json_double(const struct mu_json_value *value)
{
	return strtod(value->text, NULL);
}

bool mu_json_integer(const struct mu_json_value *value, uint64_t max, uint64_t *out)
{
	double number;

	if (!value || value->type != MU_JSON_NUMBER)
		return false;
	number = mu_json_double(value);
	if (!(number >= 0) || number > (double)max || number >= 9007199254740992.0 /* 2^53 */)
		return false;
	*out = (uint64_t)number;
	return (double)*out == number;
}
