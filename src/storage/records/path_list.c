/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of paths, "a.rec;b.rec", with the braces of shells: "train-{000..127}.tar" is 128 paths,
 * "{a,b}.rec" two. A path that is there as it stands, braces and all, is that file.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "records.h"

enum { PATH_BYTES = 4096, MOST_PATHS = 1 << 20, MOST_BRACES = 16 };

/* The paths so far, each ended by a zero. */
struct paths {
	char *text; /* owned */
	size_t used, capacity, n;
	const char *all; /* the list, for messages */
};

/* A pair of braces in a text: its end, and what is between: alternatives or a range. */
struct braces {
	const char *open, *close; /* of the characters { and } */
	bool list;                /* has a comma of its own */
	long from, to, step;      /* else a range, of numbers or letters */
	int width;                /* digits, with zeros before; 0: as they are */
	bool letters;
};

static enum mu_status append(struct paths *p, const char *path)
{
	enum mu_status st = MU_OK;
	const size_t n = strlen(path) + 1;
	char *grown;

	if (p->n == MOST_PATHS)
		MU_FAIL(MU_ERR_USAGE, "\"%.200s\": more than %d paths", p->all, MOST_PATHS);
	if (p->used + n > p->capacity) {
		grown = realloc(p->text, 2 * p->capacity + n);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu paths", p->n);
		p->text = grown;
		p->capacity = 2 * p->capacity + n;
	}
	memcpy(p->text + p->used, path, n);
	p->used += n;
	p->n++;
out:
	return st;
}

/* "7", "-3" or "007" before `end`, of at most nine digits. */
static bool parse_number(const char *text, const char *end, long *out, int *width)
{
	const size_t sign = *text == '-', n = (size_t)(end - text);

	if (n == sign || n > sign + 9 || strspn(text + sign, "0123456789") < n - sign)
		return false;
	*out = strtol(text, NULL, 10);
	if (n > sign + 1 && text[sign] == '0' && *width < (int)n)
		*width = (int)n;
	return true;
}

/* "000..127", "a..f", "0..10..2". */
static bool parse_range(struct braces *b)
{
	const char *a = b->open + 1, *a_end = strstr(a, ".."), *c, *c_end;
	int width = 0;
	long step;

	if (!a_end || a_end > b->close)
		return false;
	c = a_end + 2;
	c_end = strstr(c, "..");
	b->step = 1;
	if (c_end && c_end < b->close) {
		if (!parse_number(c_end + 2, b->close, &step, &width) || step == 0)
			return false;
		b->step = labs(step);
	} else {
		c_end = b->close;
	}
	b->width = 0;
	b->letters = a_end - a == 1 && c_end - c == 1 && (*a < '0' || *a > '9');
	if (b->letters) {
		b->from = *a;
		b->to = *c;
		return ((*a >= 'a' && *a <= 'z') || (*a >= 'A' && *a <= 'Z')) &&
		       ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'));
	}
	if (!parse_number(a, a_end, &b->from, &b->width) ||
	    !parse_number(c, c_end, &b->to, &b->width))
		return false;
	if (b->width > 0 && b->width < (int)(c_end - c))
		b->width = (int)(c_end - c);
	return true;
}

/* The first pair from `text` on that is a list or a range. */
static bool find_braces(const char *text, struct braces *b)
{
	for (b->open = strchr(text, '{'); b->open; b->open = strchr(b->open + 1, '{')) {
		int depth = 0;

		b->list = false;
		for (b->close = b->open; *b->close; b->close++) {
			depth += *b->close == '{';
			depth -= *b->close == '}';
			b->list |= depth == 1 && *b->close == ',';
			if (depth == 0)
				break;
		}
		if (*b->close && (b->list || parse_range(b)))
			return true;
	}
	return false;
}

/* One part of a path is chosen; the next braces lie after `done` characters of it. */
struct choice {
	struct paths *paths;
	const char *text;
	const struct braces *b;
	int depth;
};

static enum mu_status expand(struct paths *p, const char *text, size_t done, int depth);

static enum mu_status choose(const struct choice *c, const char *part, size_t n)
{
	enum mu_status st = MU_OK;
	const size_t before = (size_t)(c->b->open - c->text);
	char path[PATH_BYTES];

	if (snprintf(path, PATH_BYTES, "%.*s%.*s%s", (int)before, c->text, (int)n, part,
		     c->b->close + 1) >= PATH_BYTES)
		MU_FAIL(MU_ERR_USAGE, "%.60s...: the path is longer than %d bytes", path,
			PATH_BYTES - 1);
	MU_TRY(expand(c->paths, path, before, c->depth + 1));
out:
	return st;
}

static enum mu_status choose_each(const struct choice *c)
{
	enum mu_status st = MU_OK;
	const char *part = c->b->open + 1;
	int depth = 0;

	for (const char *at = part; at <= c->b->close; at++) {
		if ((*at == ',' && depth == 0) || at == c->b->close) {
			MU_TRY(choose(c, part, (size_t)(at - part)));
			part = at + 1;
		}
		depth += *at == '{';
		depth -= *at == '}';
	}
out:
	return st;
}

static enum mu_status choose_range(const struct choice *c)
{
	enum mu_status st = MU_OK;
	const struct braces *b = c->b;
	const long step = b->from <= b->to ? b->step : -b->step;
	char part[32];

	for (long i = b->from; step > 0 ? i <= b->to : i >= b->to; i += step) {
		const int n = b->letters ? snprintf(part, sizeof part, "%c", (char)i)
					 : snprintf(part, sizeof part, "%0*ld", b->width, i);

		MU_TRY(choose(c, part, (size_t)n));
	}
out:
	return st;
}

static enum mu_status expand(struct paths *p, const char *text, size_t done, int depth)
{
	enum mu_status st = MU_OK;
	struct braces b;
	const struct choice c = {p, text, &b, depth};

	if (!find_braces(text + done, &b) || access(text, F_OK) == 0) {
		MU_TRY(append(p, text));
		goto out;
	}
	if (depth == MOST_BRACES)
		MU_FAIL(MU_ERR_USAGE, "\"%.200s\": more than %d pairs of braces in a path", p->all,
			MOST_BRACES);
	MU_TRY(b.list ? choose_each(&c) : choose_range(&c));
out:
	return st;
}

/* The block of a list: the addresses, then the texts. */
static enum mu_status take(struct mu_path_list *list, const struct paths *p)
{
	enum mu_status st = MU_OK;
	char *text;

	MU_TRY(mu_alloc((void **)&list->path, p->n * sizeof *list->path + p->used, "paths"));
	text = (char *)(list->path + p->n);
	memcpy(text, p->text, p->used);
	for (; list->n < p->n; text += strlen(text) + 1)
		list->path[list->n++] = text;
out:
	return st;
}

enum mu_status mu_path_list_split(struct mu_path_list *list, const char *paths, const char *what)
{
	enum mu_status st = MU_OK;
	struct paths p = {.all = paths};
	char *text = strdup(paths);

	*list = (struct mu_path_list){0};
	if (!text)
		MU_FAIL(MU_ERR_MEMORY, "no memory for paths");
	for (char *path = text, *end; path; path = end) {
		end = strchr(path, ';');
		if (end)
			*end++ = '\0';
		MU_TRY(expand(&p, path, 0, 0));
	}
	MU_TRY(take(list, &p));
	for (size_t i = 0; i < list->n; i++)
		if (!*list->path[i])
			MU_FAIL(MU_ERR_USAGE, "\"%s\": path %zu of %zu is empty; expected %s",
				paths, i + 1, list->n, what);
out:
	free(text);
	free(p.text);
	return st;
}

void mu_path_list_release(struct mu_path_list *list)
{
	mu_free(list->path);
	*list = (struct mu_path_list){0};
}
