/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of the records of a RecordIO file: by a scan of their heads, or from an index. */
#include "record_io.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 4096 };

/* A piece of the file in memory, so that small records do not cost a read each. */
struct window {
	const struct mu_file *f;
	size_t at, n;
	uint8_t bytes[WINDOW_BYTES];
};

/* ---- heads ---- */

size_t mu_recordio_stored(size_t length)
{
	return MU_RECORDIO_HEAD + (length + 3) / 4 * 4;
}

enum mu_status mu_recordio_head(struct mu_recordio_head *out, const uint8_t head[MU_RECORDIO_HEAD],
				const struct mu_file *f, size_t at, size_t limit, bool first)
{
	enum mu_status st = MU_OK;
	uint32_t magic = mu_get_u32(head), word = mu_get_u32(head + 4);
	bool begins;

	out->part = (enum mu_recordio_part)(word >> 29);
	out->length = word & MU_RECORDIO_PAYLOAD_MAX;
	out->last = out->part == MU_RECORDIO_WHOLE || out->part == MU_RECORDIO_LAST;
	begins = out->part == MU_RECORDIO_WHOLE || out->part == MU_RECORDIO_FIRST;
	if (magic != MU_RECORDIO_MAGIC)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: no record at byte %zu: found %02x %02x %02x %02x; expected the magic "
			"0a 23 d7 ce%s",
			f->path, at, head[0], head[1], head[2], head[3], mu_file_changed_text(f));
	if (word >> 29 > MU_RECORDIO_LAST || begins != first)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the record part at byte %zu is of kind %u; expected %s%s", f->path, at,
			word >> 29, first ? "0 or 1, the begin of a record" : "2 or 3, more of one",
			mu_file_changed_text(f));
	if (!out->last && out->length % 4 != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the record part at byte %zu has %zu bytes; one that another follows "
			"must have a multiple of 4",
			f->path, at, out->length);
	if (mu_recordio_stored(out->length) > limit - at)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the record at byte %zu claims %zu bytes; only %zu follow up to the "
			"%s%s",
			f->path, at, out->length, limit - at - MU_RECORDIO_HEAD,
			limit == f->nbytes ? "end of the file" : "next record",
			mu_file_changed_text(f));
out:
	return st;
}

static enum mu_status read_head(struct mu_recordio_head *out, struct window *w, size_t at,
				bool first)
{
	enum mu_status st = MU_OK;
	size_t end = w->f->nbytes;

	if (end - at < MU_RECORDIO_HEAD)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated: %zu bytes at byte %zu; a record has at least %d",
			w->f->path, end - at, at, MU_RECORDIO_HEAD);
	if (at < w->at || at + MU_RECORDIO_HEAD > w->at + w->n) {
		w->at = at;
		w->n = end - at < WINDOW_BYTES ? end - at : WINDOW_BYTES;
		MU_TRY(mu_file_read(w->f, at, w->bytes, w->n));
	}
	MU_TRY(mu_recordio_head(out, w->bytes + (at - w->at), w->f, at, end, first));
out:
	return st;
}

/* Advance *at to the end of the record. */
static enum mu_status skip_record(struct window *w, size_t *at)
{
	enum mu_status st = MU_OK;
	struct mu_recordio_head head = {.last = false};

	for (bool first = true; !head.last; first = false) {
		MU_TRY(read_head(&head, w, *at, first));
		*at += mu_recordio_stored(head.length);
	}
out:
	return st;
}

/* ---- places ---- */

static enum mu_status append(struct mu_recordio_places *p, uint64_t key, size_t at)
{
	enum mu_status st = MU_OK;
	size_t capacity = p->capacity ? 2 * p->capacity : 1024;
	struct mu_recordio_place *place;

	if (p->n == p->capacity) {
		place = realloc(p->place, capacity * sizeof *place);
		if (!place)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the places of %zu records", capacity);
		p->place = place;
		p->capacity = capacity;
	}
	p->place[p->n++] = (struct mu_recordio_place){key, at};
out:
	return st;
}

static enum mu_status append_end(struct mu_recordio_places *p, const struct mu_file *f)
{
	enum mu_status st = MU_OK;

	MU_TRY(append(p, 0, f->nbytes));
	p->n--;
out:
	return st;
}

static enum mu_status check_size(const struct mu_file *f)
{
	enum mu_status st = MU_OK;

	if (f->nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected RecordIO records", f->path);
	if (f->nbytes % 4 != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated, or no RecordIO file: %zu bytes are not a multiple of 4",
			f->path, f->nbytes);
out:
	return st;
}

enum mu_status mu_recordio_scan(struct mu_recordio_places *p, const struct mu_file *f)
{
	enum mu_status st = MU_OK;
	struct window w = {.f = f};

	MU_TRY(check_size(f));
	for (size_t at = 0; at < f->nbytes;) {
		MU_TRY(append(p, p->n, at));
		MU_TRY(skip_record(&w, &at));
	}
	MU_TRY(append_end(p, f));
out:
	return st;
}

/* ---- the index ---- */

/* Parse a decimal number at *text; false if there is none or it does not fit. */
static bool parse_number(const char **text, uint64_t *out)
{
	const char *c = *text;

	*out = 0;
	while (*c >= '0' && *c <= '9') {
		if (__builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(*c - '0'), out))
			return false;
		c++;
	}
	if (c == *text)
		return false;
	*text = c;
	return true;
}

static bool parse_line(const char *line, struct mu_recordio_place *out)
{
	uint64_t at;

	if (!parse_number(&line, &out->key) || (*line != '\t' && *line != ' '))
		return false;
	line += strspn(line, "\t ");
	if (!parse_number(&line, &at))
		return false;
	line += strspn(line, "\t \r");
	out->at = at;
	return *line == '\0';
}

static enum mu_status parse(struct mu_recordio_places *p, const struct mu_file *f,
			    const char *index, char *text)
{
	enum mu_status st = MU_OK;
	struct mu_recordio_place place;
	size_t number = 1;

	for (char *line = text, *end; *line; line = end, number++) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (line[strspn(line, "\t \r")] == '\0')
			continue;
		if (!parse_line(line, &place))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: line %zu is \"%.40s\"; expected a key, a tab and the byte of "
				"a record",
				index, number, line);
		if (place.at % 4 != 0 || place.at >= f->nbytes)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: line %zu has a record at byte %zu; %s has %zu bytes, and "
				"records begin at multiples of 4",
				index, number, place.at, f->path, f->nbytes);
		MU_TRY(append(p, place.key, place.at));
	}
out:
	return st;
}

static int compare_places(const void *a, const void *b)
{
	const struct mu_recordio_place *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Checks that do not read every head. */
static enum mu_status check_places(const struct mu_recordio_places *p, const struct mu_file *f,
				   const char *index)
{
	enum mu_status st = MU_OK;
	struct window w = {.f = f};
	size_t end;

	if (p->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: names no record of %s, which has %zu bytes", index,
			f->path, f->nbytes);
	for (size_t i = 1; i < p->n; i++)
		if (p->place[i].at == p->place[i - 1].at)
			MU_FAIL(MU_ERR_FORMAT, "%s: keys %llu and %llu are both at byte %zu", index,
				(unsigned long long)p->place[i - 1].key,
				(unsigned long long)p->place[i].key, p->place[i].at);
	end = p->place[p->n - 1].at;
	MU_TRY(skip_record(&w, &end));
	if (p->place[0].at != 0 || end != f->nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: its records are bytes %zu to %zu of %s, which has %zu bytes; the "
			"index is of another file or not of all of it (rec2idx makes one)",
			index, p->place[0].at, end, f->path, f->nbytes);
out:
	return st;
}

enum mu_status mu_recordio_load(struct mu_recordio_places *p, const struct mu_file *f,
				const char *index)
{
	enum mu_status st = MU_OK;
	char *text = NULL;
	size_t n;

	MU_TRY(check_size(f));
	MU_TRY(mu_file_read_text(&text, &n, index));
	MU_TRY(parse(p, f, index, text));
	if (p->n)
		qsort(p->place, p->n, sizeof *p->place, compare_places);
	MU_TRY(check_places(p, f, index));
	MU_TRY(append_end(p, f));
out:
	mu_free(text);
	return st;
}
