/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a tar file, as WebDataset has them: consecutive members whose names are equal up
 * to the first dot after the last slash, the key; what follows that dot is the extension. One
 * member is the image (.jpg, .jpeg, .png), one the class (.cls, an integer as a text), in any
 * order; members with other extensions are counted as left out.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tar.h"

enum {
	CLASS_BYTES = 64,     /* of the text of a class */
	CLASS_MOST = 1 << 24, /* what a float holds */
	SHOWN = 80,           /* characters of a name in a message */
	OTHER_BYTES = 24,
};

/* Where the name of a member stands, for those that stand twice. */
struct place {
	uint64_t hash;
	size_t head;
};

/* One file, and the sample whose members are being read. */
struct scan {
	struct mu_tar_samples *all;
	struct mu_tar tar;
	char *key; /* of the sample; owned */
	size_t key_n, key_capacity;
	bool any, image, class;
	char other[OTHER_BYTES]; /* the last extension that is not read; "": none */
	struct mu_tar_sample sample;
	size_t head;         /* of its first member */
	struct place *place; /* owned */
	size_t n_places, places_capacity;
	size_t n_members;
};

/* The key of a name is what stands before the first dot of its last part; what follows the dot is
 * the extension. */
static bool cut(const char *name, size_t *key_n, const char **extension)
{
	const char *slash = strrchr(name, '/'), *dot = strchr(slash ? slash : name, '.');

	if (!dot)
		return false;
	*key_n = (size_t)(dot - name);
	*extension = dot + 1;
	return true;
}

/* "__index__" and what lies in it, which WebDataset keeps for itself. */
static bool is_reserved(const char *name)
{
	const size_t n = strcspn(name, "/");

	return n >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + n - 2, "__", 2) == 0;
}

static bool is_image(const char *extension)
{
	return strcasecmp(extension, "jpg") == 0 || strcasecmp(extension, "jpeg") == 0 ||
	       strcasecmp(extension, "png") == 0;
}

static enum mu_status append_sample(struct mu_tar_samples *f, const struct mu_tar_sample *sample)
{
	enum mu_status st = MU_OK;
	const size_t capacity = f->capacity ? 2 * f->capacity : 1024;
	struct mu_tar_sample *grown;

	if (f->n == f->capacity) {
		grown = realloc(f->sample, capacity * sizeof *grown);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the places of %zu images", capacity);
		f->sample = grown;
		f->capacity = capacity;
	}
	f->sample[f->n++] = *sample;
out:
	return st;
}

/* All its members are read. */
static enum mu_status end_sample(struct scan *s)
{
	enum mu_status st = MU_OK;
	struct mu_tar_samples *f = s->all;
	const char *path = s->tar.f->path;
	const int n = s->key_n < SHOWN ? (int)s->key_n : SHOWN;

	if (!s->any || (!s->image && !s->class)) /* nothing of it is read */
		goto out;
	if (!s->image)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: sample \"%.*s\" at byte %zu has a class and no image: expected a "
			"member %.*s.jpg, .jpeg or .png next to it%s%s%s",
			path, n, s->key, s->head, n, s->key, *s->other ? "; its ." : "", s->other,
			*s->other ? " is not read" : "");
	if (!s->class && !f->may_lack)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: sample \"%.*s\" at byte %zu has no class: expected a member %.*s.cls, "
			"with its number, next to its image (of a folder of images for each class "
			"h5rec makes a .rec file)",
			path, n, s->key, s->head, n, s->key);
	if (!s->class && f->n_lack++ == 0)
		f->lacks = f->n;
	MU_TRY(append_sample(f, &s->sample));
out:
	return st;
}

static enum mu_status begin_sample(struct scan *s, const struct mu_tar_member *m, size_t key_n)
{
	enum mu_status st = MU_OK;

	MU_TRY(end_sample(s));
	if (key_n + 1 > s->key_capacity) {
		mu_free(s->key);
		s->key_capacity = 0;
		MU_TRY(MU_ALLOC(s->key, 2 * key_n + 2, "name in a tar file"));
		s->key_capacity = 2 * key_n + 2;
	}
	memcpy(s->key, m->name, key_n);
	s->key_n = key_n;
	s->any = true;
	s->image = s->class = false;
	*s->other = '\0';
	s->sample = (struct mu_tar_sample){0};
	s->head = m->head;
out:
	return st;
}

static enum mu_status take_image(struct scan *s, const struct mu_tar_member *m)
{
	enum mu_status st = MU_OK;

	if (s->image)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: member \"%.*s\" at byte %zu: is a second image of its sample, which "
			"can have one",
			s->tar.f->path, SHOWN, m->name, m->head);
	if (m->nbytes == 0 || m->nbytes > UINT32_MAX)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: member \"%.*s\" at byte %zu: has %zu bytes; expected an image",
			s->tar.f->path, SHOWN, m->name, m->head, m->nbytes);
	s->sample.at = m->at;
	s->sample.n = (uint32_t)m->nbytes;
	s->image = true;
out:
	return st;
}

/* "7" with blanks around. */
static bool parse_class(const char *text, float *out)
{
	static const char blanks[] = " \t\r\n\v\f";
	char *end;
	long value;

	text += strspn(text, blanks);
	if (text[strspn(text, "+-")] < '0' || text[strspn(text, "+-")] > '9')
		return false;
	value = strtol(text, &end, 10);
	*out = (float)value;
	return end[strspn(end, blanks)] == '\0' && labs(value) <= CLASS_MOST;
}

static enum mu_status take_class(struct scan *s, const struct mu_tar_member *m)
{
	enum mu_status st = MU_OK;
	const size_t n = m->nbytes < CLASS_BYTES ? m->nbytes : CLASS_BYTES;
	char text[CLASS_BYTES + 1] = "", name[SHOWN + 1];
	const uint8_t *bytes;
	int line; /* characters of the first */

	snprintf(name, sizeof name, "%s", m->name);
	MU_TRY(mu_tar_look(&s->tar, m->at, n, &bytes));
	memcpy(text, bytes, n);
	line = (int)strcspn(text, "\r\n");
	if (m->nbytes > CLASS_BYTES || strlen(text) != n || !parse_class(text, &s->sample.label))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: member \"%s\" at byte %zu: is \"%.*s\"; expected the number of a "
			"class, an integer up to %d",
			s->tar.f->path, name, m->head, line < 20 ? line : 20, text, CLASS_MOST);
	s->class = true;
out:
	return st;
}

/* ---- names that stand twice ---- */

static enum mu_status append_place(struct scan *s, const struct mu_tar_member *m, size_t key_n)
{
	enum mu_status st = MU_OK;
	const size_t capacity = s->places_capacity ? 2 * s->places_capacity : 1024;
	struct place *grown;
	uint64_t h = mu_hash(MU_HASH_START, m->name, key_n);

	if (s->n_places == s->places_capacity) {
		grown = realloc(s->place, capacity * sizeof *grown);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the names of %zu members", capacity);
		s->place = grown;
		s->places_capacity = capacity;
	}
	for (const char *c = m->name + key_n; *c; c++) {
		const char lower = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;

		h = mu_hash(h, &lower, 1);
	}
	s->place[s->n_places++] = (struct place){h, m->head};
out:
	return st;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
				  : (x->head > y->head) - (x->head < y->head);
}

/* Are they equal but for the case of the extension? */
static bool same_names(const char *a, const char *b)
{
	size_t a_n = 0, b_n = 0;
	const char *a_end = "", *b_end = "";

	return cut(a, &a_n, &a_end) && cut(b, &b_n, &b_end) && a_n == b_n &&
	       memcmp(a, b, a_n) == 0 && strcasecmp(a_end, b_end) == 0;
}

/* Have the members of two equal hashes one name? */
static enum mu_status compare_names(struct scan *s, const struct place *place, bool *same,
				    struct mu_tar *again)
{
	enum mu_status st = MU_OK;
	struct mu_tar_member a, b;
	bool found;

	s->tar.next = place[-1].head;
	again->next = place->head;
	MU_TRY(mu_tar_next(&s->tar, &a, &found));
	MU_TRY(mu_tar_next(again, &b, &found));
	*same = same_names(a.name, b.name);
out:
	return st;
}

static enum mu_status check_twice(struct scan *s)
{
	enum mu_status st = MU_OK;
	struct mu_tar again = {.f = s->tar.f};
	const struct place *first = NULL;
	bool same;

	if (s->n_places)
		qsort(s->place, s->n_places, sizeof *s->place, compare_places);
	for (size_t i = 1; i < s->n_places; i++) {
		const struct place *p = &s->place[i];

		if (p->hash != p[-1].hash || (first && first->head < p->head))
			continue;
		MU_TRY(compare_names(s, p, &same, &again));
		first = same ? p : first;
	}
	if (first) {
		MU_TRY(compare_names(s, first, &same, &again));
		MU_FAIL(MU_ERR_FORMAT,
			"%s: member \"%.*s\" at byte %zu: is there before, at byte %zu: a sample "
			"can have one member of a kind (tar, appending, keeps the old one, too)",
			s->tar.f->path, SHOWN, again.name, first->head, first[-1].head);
	}
out:
	mu_tar_release(&again);
	return st;
}

/* ---- the scan of a file ---- */

static enum mu_status take_member(struct scan *s, const struct mu_tar_member *m)
{
	enum mu_status st = MU_OK;
	struct mu_left_out *left = &s->all->left_out;
	const char *extension = "";
	size_t key_n = 0;
	bool image, class;

	s->n_members++;
	if (m->type == MU_TAR_FOLDER)
		goto out;
	if (mu_left_hidden(m->name)) {
		mu_left_out_add(left, MU_LEFT_HIDDEN, m->name);
		goto out;
	}
	if (is_reserved(m->name) || !cut(m->name, &key_n, &extension)) {
		mu_left_out_add(left, MU_LEFT_OTHER, m->name);
		goto out;
	}
	image = is_image(extension);
	class = strcasecmp(extension, "cls") == 0;
	if (m->type != MU_TAR_FILE && (image || class))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: member \"%.*s\" at byte %zu: is a link or a device, which has no "
			"contents here: let tar write it with its options dereference and "
			"hard-dereference",
			s->tar.f->path, SHOWN, m->name, m->head);
	if (m->type == MU_TAR_FILE)
		MU_TRY(append_place(s, m, key_n));
	if (!s->any || key_n != s->key_n || memcmp(m->name, s->key, key_n) != 0)
		MU_TRY(begin_sample(s, m, key_n));
	if (image) {
		MU_TRY(take_image(s, m));
	} else if (class) {
		MU_TRY(take_class(s, m));
	} else {
		mu_left_out_add(left, MU_LEFT_OTHER, m->name);
		snprintf(s->other, sizeof s->other, "%s", extension);
	}
out:
	return st;
}

enum mu_status mu_tar_scan(struct mu_tar_samples *all, const struct mu_file *f)
{
	enum mu_status st = MU_OK;
	struct scan s = {.all = all, .tar = {.f = f}};
	struct mu_tar_member m;
	bool found = true;

	while (found) {
		MU_TRY(mu_tar_next(&s.tar, &m, &found));
		if (found)
			MU_TRY(take_member(&s, &m));
	}
	MU_TRY(end_sample(&s));
	MU_TRY(check_twice(&s));
	if (all->n == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: holds no samples: %zu members, and expected 1.jpg, "
			"1.cls and so on",
			f->path, s.n_members);
out:
	mu_tar_release(&s.tar);
	mu_free(s.key);
	free(s.place);
	return st;
}
