/* SPDX-License-Identifier: Apache-2.0 */
/* Images of classes inside a tar file: see tar_source.h. */
#include "tar_source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tar.h"

/* "set/ant/1.jpg": parent "set", class "ant", file "1.jpg". */
struct name {
	char *path;               /* owned */
	size_t class_at, class_n; /* part of path */
};

struct names {
	struct name *name; /* owned */
	size_t n, capacity;
};

struct data_tar_source {
	char *path; /* owned */
	struct names images, folders;
	struct mu_left_out left_out;
	const char **classes; /* sorted; owned, with their texts */
	size_t n_classes;
	enum mu_status st; /* of a visit */
	size_t parent_n;   /* length of what all images lie in */
	enum mu_status (*take)(void *context, const struct mu_record *record, const char *where,
			       double done);
	void *context;
};

static bool is_image(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
		       strcasecmp(dot, ".png") == 0);
}

/* ---- names ---- */

/* The part of path before `end` that follows the last '/' there. */
static struct name cut(char *path, size_t end)
{
	size_t at = end;

	while (at > 0 && path[at - 1] != '/')
		at--;
	/* "./1.jpg" lies in no folder. */
	if (end - at == 1 && path[at] == '.')
		at = end;
	return (struct name){path, at, end - at};
}

/* The class of an image; of a folder its own name. */
static struct name cut_class(char *path, bool folder)
{
	size_t end = strlen(path);

	while (folder && end > 0 && path[end - 1] == '/')
		end--;
	if (!folder) {
		const char *slash = strrchr(path, '/');

		end = slash ? (size_t)(slash - path) : 0;
	}
	return cut(path, end);
}

static enum mu_status append(struct names *names, const char *path, bool folder)
{
	enum mu_status st = MU_OK;
	size_t capacity = names->capacity ? 2 * names->capacity : 1024;
	struct name *grown;
	char *copy;

	if (names->n == names->capacity) {
		grown = realloc(names->name, capacity * sizeof *grown);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu names", capacity);
		names->name = grown;
		names->capacity = capacity;
	}
	copy = strdup(path);
	if (!copy)
		MU_FAIL(MU_ERR_MEMORY, "no memory for name %zu", names->n);
	names->name[names->n++] = cut_class(copy, folder);
out:
	return st;
}

static void release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i].path);
	free(names->name);
}

/* Classes as strcmp orders them, then files. */
static int compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	size_t n = x->class_n < y->class_n ? x->class_n : y->class_n;
	int order = memcmp(x->path + x->class_at, y->path + y->class_at, n);

	if (order == 0)
		order = (x->class_n > y->class_n) - (x->class_n < y->class_n);
	if (order == 0)
		order = strcmp(x->path + x->class_at + x->class_n,
			       y->path + y->class_at + y->class_n);
	return order;
}

static bool same_class(const struct name *a, const char *b)
{
	return strlen(b) == a->class_n && memcmp(a->path + a->class_at, b, a->class_n) == 0;
}

/* ---- the first pass ---- */

static bool list_entry(void *context, const char *name, bool folder)
{
	struct data_tar_source *s = context;

	if (s->st == MU_OK && folder)
		s->st = append(&s->folders, name, true);
	else if (s->st == MU_OK && is_image(name))
		s->st = append(&s->images, name, false);
	else
		mu_left_out_add(&s->left_out, MU_LEFT_OTHER, name);
	return false;
}

static void hide(void *context, const char *name)
{
	struct data_tar_source *s = context;

	mu_left_out_add(&s->left_out, MU_LEFT_HIDDEN, name);
}

static enum mu_status check_images(struct data_tar_source *s)
{
	enum mu_status st = MU_OK;
	const struct name *first = s->images.name;

	if (s->images.n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no .jpg, .jpeg or .png files", s->path);
	s->parent_n = first->class_at;
	for (size_t i = 0; i < s->images.n; i++) {
		const struct name *name = &s->images.name[i];

		if (name->class_n == 0)
			MU_FAIL(MU_ERR_FORMAT, "%s: %s lies in no folder; expected CLASS/FILE",
				s->path, name->path);
		if (name->class_at != s->parent_n ||
		    memcmp(name->path, first->path, s->parent_n) != 0)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: %s and %s do not lie in folders side by side; expected one "
				"set of CLASS/FILE",
				s->path, first->path, name->path);
	}
out:
	return st;
}

static enum mu_status add_class(struct data_tar_source *s, const struct name *name)
{
	enum mu_status st = MU_OK;

	if (s->n_classes && same_class(name, s->classes[s->n_classes - 1]))
		goto out;
	s->classes[s->n_classes] = strndup(name->path + name->class_at, name->class_n);
	if (!s->classes[s->n_classes])
		MU_FAIL(MU_ERR_MEMORY, "no memory for class names");
	s->n_classes++;
out:
	return st;
}

static int compare_class(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

static void count_empty(struct data_tar_source *s)
{
	size_t image = 0; /* sorted, as the classes are */

	for (size_t i = 0; i < s->n_classes; i++) {
		if (image == s->images.n || !same_class(&s->images.name[image], s->classes[i]))
			mu_left_out_add(&s->left_out, MU_LEFT_EMPTY, s->classes[i]);
		while (image < s->images.n && same_class(&s->images.name[image], s->classes[i]))
			image++;
	}
}

/* The classes of images, and folders beside them, which are classes without images. */
static enum mu_status list_classes(struct data_tar_source *s)
{
	enum mu_status st = MU_OK;
	const char *parent = s->images.name[0].path;
	struct names all = {0};

	MU_TRY(mu_alloc((void **)&all.name, (s->images.n + s->folders.n) * sizeof *all.name,
			"class names"));
	for (size_t i = 0; i < s->images.n; i++)
		all.name[all.n++] = s->images.name[i];
	for (size_t i = 0; i < s->folders.n; i++) {
		const struct name *f = &s->folders.name[i];

		if (f->class_n && f->class_at == s->parent_n &&
		    memcmp(f->path, parent, s->parent_n) == 0)
			all.name[all.n++] = *f;
	}
	qsort(all.name, all.n, sizeof *all.name, compare_names);
	MU_TRY(mu_alloc((void **)&s->classes, all.n * sizeof *s->classes, "class names"));
	for (size_t i = 0; i < all.n; i++)
		MU_TRY(add_class(s, &all.name[i]));
	count_empty(s);
out:
	mu_free(all.name);
	return st;
}

enum mu_status data_tar_source_open(struct data_tar_source **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct data_tar_source *s = NULL;

	MU_TRY(MU_ALLOC(s, 1, "tar file"));
	s->path = strdup(path);
	if (!s->path)
		MU_FAIL(MU_ERR_MEMORY, "no memory for a path");
	MU_TRY(data_tar_read(path, &(struct data_tar_visitor){
					   .context = s,
					   .wants = list_entry,
					   .hidden = hide,
				   }));
	MU_TRY(s->st);
	MU_TRY(check_images(s));
	qsort(s->images.name, s->images.n, sizeof *s->images.name, compare_names);
	MU_TRY(list_classes(s));
out:
	if (st != MU_OK) {
		data_tar_source_close(s);
		s = NULL;
	}
	*out = s;
	return st;
}

void data_tar_source_close(struct data_tar_source *s)
{
	if (!s)
		return;
	release(&s->images);
	release(&s->folders);
	for (size_t i = 0; i < s->n_classes; i++) {
		char *text;

		memcpy(&text, &s->classes[i], sizeof text);
		free(text);
	}
	mu_free(s->classes);
	free(s->path);
	mu_free(s);
}

void data_tar_source_info(const struct data_tar_source *s, struct mu_records_info *info)
{
	*info = (struct mu_records_info){
		.n = s->images.n,
		.kind = MU_RECORD_ENCODED,
		.classes = s->n_classes,
		.label_width = 1,
		.format = "tar file",
		.class_names = s->classes,
		.left_out = s->left_out,
	};
}

/* ---- the second pass ---- */

static bool wants_image(void *context, const char *name, bool folder)
{
	(void)context;
	return !folder && is_image(name);
}

static enum mu_status add_image(void *context, const char *path, const uint8_t *bytes,
				size_t nbytes, double done)
{
	enum mu_status st = MU_OK;
	struct data_tar_source *s = context;
	char *copy = strdup(path), *class = NULL;
	struct name name;
	const struct name *found;
	const char **place;
	float label;

	if (!copy)
		MU_FAIL(MU_ERR_MEMORY, "no memory for a name");
	name = cut_class(copy, false);
	found = bsearch(&name, s->images.name, s->images.n, sizeof *found, compare_names);
	class = strndup(copy + name.class_at, name.class_n);
	place = class ? bsearch(class, s->classes, s->n_classes, sizeof *place, compare_class)
		      : NULL;
	if (!found || !place)
		MU_FAIL(MU_ERR_IO, "%s: changed while it was read: %s is new", s->path, path);
	label = (float)(place - s->classes);
	MU_TRY(s->take(s->context,
		       &(struct mu_record){.data = bytes,
					   .n = nbytes,
					   .id = (uint64_t)(found - s->images.name),
					   .n_labels = 1,
					   .labels = &label},
		       path, done));
out:
	free(copy);
	free(class);
	return st;
}

enum mu_status data_tar_source_read(struct data_tar_source *s,
				    enum mu_status (*take)(void *context,
							   const struct mu_record *record,
							   const char *where, double done),
				    void *context)
{
	s->take = take;
	s->context = context;
	return data_tar_read(s->path, &(struct data_tar_visitor){
					      .context = s,
					      .wants = wants_image,
					      .take = add_image,
				      });
}
