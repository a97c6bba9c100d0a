/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder: fields by the numbers of onnx.proto. */
#include "model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/check.h"

/* ---- fields ---- */

struct bytes {
	const unsigned char *at, *end;
};

/* One field: its number, and a number or bytes. */
struct field {
	int number;
	uint64_t value;
	struct bytes of;
};

static uint64_t take_varint(struct bytes *b)
{
	uint64_t value = 0;

	for (int shift = 0; b->at < b->end && shift < 64; shift += 7) {
		value |= (uint64_t)(*b->at & 127) << shift;
		if (!(*b->at++ & 128))
			return value;
	}
	CHECK(b->at < b->end); /* a varint ends */
	return value;
}

static bool take(struct bytes *b, struct field *f)
{
	uint64_t key, n;

	if (b->at >= b->end)
		return false;
	key = take_varint(b);
	*f = (struct field){.number = (int)(key >> 3)};
	switch (key & 7) {
	case 0: f->value = take_varint(b); return true;
	case 2: n = take_varint(b); break;
	case 5: n = 4; break;
	default: CHECK_TEXT("a field of another type", ""); return false;
	}
	if (!CHECK(n <= (uint64_t)(b->end - b->at)))
		return false;
	f->of = (struct bytes){b->at, b->at + n};
	b->at += n;
	return true;
}

static size_t length(const struct field *f)
{
	return (size_t)(f->of.end - f->of.at);
}

/* ---- the model as text ---- */

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->n += (size_t)vsnprintf(t->of + t->n, TEXT - t->n, format, args);
	va_end(args);
	if (!CHECK(t->n < TEXT))
		t->n = TEXT - 1;
}

static void add_text(struct text *t, const char *before, const struct field *f)
{
	add(t, "%s%.*s", before, (int)length(f), (const char *)f->of.at);
}

static void add_attribute(struct text *t, struct bytes b)
{
	struct field f;
	float value;
	bool many = false;

	while (take(&b, &f)) {
		if (f.number == 1)
			add_text(t, " ", &f);
		else if (f.number == 2 && CHECK(length(&f) == sizeof value)) {
			memcpy(&value, f.of.at, sizeof value);
			add(t, "=%g", (double)value);
		} else if (f.number == 3)
			add(t, "=%" PRId64, (int64_t)f.value);
		else if (f.number == 4)
			add_text(t, "=", &f);
		else if (f.number == 8) {
			add(t, "%s%" PRId64, many ? "," : "=", (int64_t)f.value);
			many = true;
		}
	}
}

/* "Conv(input, a_weight) x:1 group=1" */
static void add_node(struct text *t, struct bytes b)
{
	struct text inputs = {.n = 0}, outputs = {.n = 0}, attributes = {.n = 0};
	struct field f;

	while (take(&b, &f)) {
		if (f.number == 1)
			add_text(&inputs, inputs.n ? ", " : "", &f);
		else if (f.number == 2)
			add_text(&outputs, " ", &f);
		else if (f.number == 4)
			add_text(t, "", &f);
		else if (f.number == 5)
			add_attribute(&attributes, f.of);
	}
	add(t, "(%s)%s%s\n", inputs.of, outputs.of, attributes.of);
}

/* Of a tensor: " 1 batch 3 28 28", the first is the type. */
static void add_type(struct text *t, struct bytes b)
{
	struct field f;

	while (take(&b, &f)) {
		if (length(&f) == 0)
			add(t, " %" PRIu64, f.value);
		else if (f.number == 2 && b.at >= b.end && memchr("b", *f.of.at, 1))
			add_text(t, " ", &f);
		else
			add_type(t, f.of);
	}
}

static void read_place(struct array *a, struct bytes b)
{
	struct field key, value;
	char text[32] = "";

	if (!CHECK(take(&b, &key) && take(&b, &value)))
		return;
	snprintf(text, sizeof text, "%.*s", (int)length(&value), (const char *)value.of.at);
	if (memcmp(key.of.at, "location", 8) == 0)
		snprintf(a->place, sizeof a->place, "%s", text);
	else if (memcmp(key.of.at, "offset", 6) == 0)
		a->offset = strtoul(text, NULL, 10);
	else if (memcmp(key.of.at, "length", 6) == 0)
		a->length = strtoul(text, NULL, 10);
}

static void read_array(struct array *a, struct bytes b)
{
	struct field f;

	*a = (struct array){.ndims = 0};
	while (take(&b, &f)) {
		if (f.number == 1 && a->ndims < 8)
			a->dims[a->ndims++] = (size_t)f.value;
		else if (f.number == 8)
			snprintf(a->name, sizeof a->name, "%.*s", (int)length(&f),
				 (const char *)f.of.at);
		else if (f.number == 9) {
			a->raw = f.of.at;
			a->nbytes = length(&f);
		} else if (f.number == 13)
			read_place(a, f.of);
		else if (f.number == 14)
			a->outside = f.value == 1;
	}
}

static void read_graph(struct model *m, struct bytes b)
{
	struct field f;

	while (take(&b, &f)) {
		if (f.number == 1)
			add_node(&m->text, f.of);
		else if (f.number == 5 && CHECK(m->n_arrays < ARRAYS))
			read_array(&m->arrays[m->n_arrays++], f.of);
		else if (f.number == 11 || f.number == 12) {
			struct bytes end = f.of;
			struct field name, type;

			if (!CHECK(take(&end, &name) && take(&end, &type)))
				return;
			add_text(&m->text, "", &name);
			add_type(&m->text, type.of);
			add(&m->text, "\n");
		}
	}
}

bool model_read(struct model *m, FILE *file)
{
	struct field f;
	struct bytes all;

	memset(m, 0, sizeof *m);
	m->nbytes = (size_t)ftell(file);
	m->bytes = malloc(m->nbytes);
	rewind(file);
	if (!CHECK(m->bytes && fread(m->bytes, 1, m->nbytes, file) == m->nbytes))
		return false;
	all = (struct bytes){(unsigned char *)m->bytes, (unsigned char *)m->bytes + m->nbytes};
	while (take(&all, &f)) {
		if (f.number == 1)
			add(&m->text, "ir %" PRIu64 "\n", f.value);
		else if (f.number == 2)
			add_text(&m->text, "by ", &f), add(&m->text, "\n");
		else if (f.number == 7)
			read_graph(m, f.of);
		else if (f.number == 8) {
			struct field opset;

			while (take(&f.of, &opset))
				if (opset.number == 2)
					add(&m->text, "opset %" PRIu64 "\n", opset.value);
		} else if (f.number == 14) {
			struct field note;

			while (take(&f.of, &note))
				add_text(&m->text, note.number == 1 ? "" : ": ", &note);
			add(&m->text, "\n");
		}
	}
	return true;
}

const struct array *model_array(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->n_arrays; i++)
		if (strcmp(m->arrays[i].name, name) == 0)
			return &m->arrays[i];
	return NULL;
}
