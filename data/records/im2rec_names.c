/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the classes of lists: a class is named as the folder of its images. */
#include "im2rec.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 1 << 16 };

static bool is_class(float label)
{
	return label >= 0 && label < MOST_NAMES && label == (float)(size_t)label;
}

/* The folder of an image: name and bytes; 0: none that names a class. */
static const char *find_folder(const char *path, size_t *n)
{
	const char *end = strrchr(path, '/'), *begin = end;

	while (begin && begin > path && begin[-1] != '/')
		begin--;
	*n = begin && *begin != '.' ? (size_t)(end - begin) : 0;
	return begin;
}

static enum mu_status grow(struct im2rec_names *c, size_t n)
{
	enum mu_status st = MU_OK;
	char **grown;

	if (n <= c->n)
		goto out;
	grown = realloc(c->name, n * sizeof *grown);
	if (!grown)
		MU_FAIL(MU_ERR_MEMORY, "no memory for %zu names", n);
	for (c->name = grown; c->n < n; c->n++)
		c->name[c->n] = NULL;
out:
	return st;
}

static enum mu_status add_line(struct im2rec_names *c, const struct mu_image_list_line *line)
{
	enum mu_status st = MU_OK;
	size_t label, n;
	const char *folder = find_folder(line->path, &n);

	c->folders = c->folders || n > 0;
	if (n == 0 && !*c->outside)
		snprintf(c->outside, sizeof c->outside, "%s", line->path);
	c->none = c->none || n == 0 || line->n_labels != 1 || !is_class(line->labels[0]);
	if (c->none)
		goto out;
	label = (size_t)line->labels[0];
	MU_TRY(grow(c, label + 1));
	if (!c->name[label]) {
		c->name[label] = strndup(folder, n);
		if (!c->name[label])
			MU_FAIL(MU_ERR_MEMORY, "no memory for the name of a class");
	} else if (strlen(c->name[label]) != n || strncmp(c->name[label], folder, n) != 0) {
		c->none = true;
		snprintf(c->why, sizeof c->why, "label %zu has images in folders %.60s and %.*s",
			 label, c->name[label], (int)(n < 60 ? n : 60), folder);
	}
out:
	return st;
}

enum mu_status im2rec_names_add(struct im2rec_names *c, const char *list)
{
	enum mu_status st = MU_OK;
	struct mu_image_list lines = {0};

	MU_TRY(mu_image_list_read(&lines, list));
	for (size_t i = 0; i < lines.n; i++)
		MU_TRY(add_line(c, &lines.line[i]));
out:
	mu_image_list_release(&lines);
	return st;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names are there, and no two the same. */
enum mu_status im2rec_names_check(struct im2rec_names *c)
{
	enum mu_status st = MU_OK;
	char **sorted = NULL;

	for (size_t i = 0; i < c->n && !c->none; i++) {
		if (c->name[i])
			continue;
		c->none = true;
		snprintf(c->why, sizeof c->why, "no list has an image of class %zu", i);
	}
	if (c->none && !*c->why && c->folders && *c->outside)
		snprintf(c->why, sizeof c->why, "image %.100s lies in no folder that names a class",
			 c->outside);
	if (c->none || c->n == 0)
		goto out;
	MU_TRY(MU_ALLOC(sorted, c->n, "names of classes"));
	memcpy(sorted, c->name, c->n * sizeof *sorted);
	qsort(sorted, c->n, sizeof *sorted, compare_names);
	for (size_t i = 1; i < c->n && !c->none; i++) {
		if (strcmp(sorted[i - 1], sorted[i]) != 0)
			continue;
		c->none = true;
		/* With one folder for all there is nothing to name. */
		if (strcmp(sorted[0], sorted[c->n - 1]) != 0)
			snprintf(c->why, sizeof c->why, "several classes have a folder named %.60s",
				 sorted[i]);
	}
out:
	mu_free(sorted);
	return st;
}

void im2rec_names_release(struct im2rec_names *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->name[i]);
	free(c->name);
	*c = (struct im2rec_names){0};
}
