/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the images under a folder. */
#include "im2rec.h"

#include <muster/storage.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, DEPTH_MAX = 64 };

struct image {
	char *path; /* below the root; owned */
	size_t label;
};

struct images {
	const struct im2rec_values *v;
	const char *root;
	struct image *image; /* owned */
	size_t n, capacity;
	size_t labels; /* folders with images so far */
	struct mu_left_out left_out;
};

/* ---- finding images ---- */

/* Is the end of the name one of exts, ".jpeg,.jpg,.png"? */
static bool has_end(const char *name, const char *exts)
{
	const char *dot = strrchr(name, '.');
	size_t n;

	if (!dot)
		return false;
	for (const char *e = exts; *e; e += n + (e[n] == ',')) {
		n = strcspn(e, ",");
		if (strlen(dot) == n && strncasecmp(dot, e, n) == 0)
			return true;
	}
	return false;
}

static enum mu_status append(struct images *all, const char *path)
{
	enum mu_status st = MU_OK;
	size_t capacity = all->capacity ? 2 * all->capacity : 1024;
	struct image *grown;

	if (strpbrk(path, "\t\n\r"))
		MU_FAIL(MU_ERR_FORMAT,
			"%s/%s: the name holds a tab or the end of a line, which part the fields "
			"of a list",
			all->root, path);
	if (all->n == all->capacity) {
		grown = realloc(all->image, capacity * sizeof *grown);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu names", capacity);
		all->image = grown;
		all->capacity = capacity;
	}
	all->image[all->n] = (struct image){strdup(path), all->labels};
	if (!all->image[all->n].path)
		MU_FAIL(MU_ERR_MEMORY, "no memory for name %zu", all->n);
	all->n++;
out:
	return st;
}

static enum mu_status join(char out[PATH_BYTES], const char *a, const char *b)
{
	enum mu_status st = MU_OK;

	if (snprintf(out, PATH_BYTES, "%s%s%s", a, *a && *b ? "/" : "", b) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", a, PATH_BYTES - 1);
out:
	return st;
}

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* By bytes, whatever the language of the user. */
static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static enum mu_status find(struct images *all, const char *below, int depth);

/* An entry that is no image and is not looked into, if it is one. */
static void count_left_out(struct images *all, const char *path, const char *name, bool folder)
{
	if (*name == '.')
		mu_left_out_add(&all->left_out, MU_LEFT_HIDDEN, path);
	else if (folder && !all->v->recursive)
		mu_left_out_add(&all->left_out, MU_LEFT_FOLDER, path);
	else if (!folder && !has_end(name, all->v->exts))
		mu_left_out_add(&all->left_out, MU_LEFT_OTHER, path);
}

/* The images of a folder, then what its folders hold; entries are sorted. */
static enum mu_status find_in(struct images *all, const char *below, int depth,
			      struct dirent **entry, int n)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES], whole[PATH_BYTES];
	struct stat status;
	size_t before = all->n;

	for (int folders = 0; folders < 2; folders++) {
		for (int i = 0; i < n; i++) {
			const char *name = entry[i]->d_name;

			MU_TRY(join(path, below, name));
			MU_TRY(join(whole, all->root, path));
			if (*name == '.') {
				if (!folders)
					count_left_out(all, path, name, false);
				continue;
			}
			if (stat(whole, &status) != 0)
				MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", whole,
					strerror(errno));
			if (S_ISDIR(status.st_mode) && folders && all->v->recursive)
				MU_TRY(find(all, path, depth + 1));
			if (!S_ISDIR(status.st_mode) && !folders && has_end(path, all->v->exts))
				MU_TRY(append(all, path));
			if (!folders)
				count_left_out(all, path, name, S_ISDIR(status.st_mode));
		}
		if (!folders && all->n > before && all->v->recursive)
			all->labels++;
	}
out:
	return st;
}

static enum mu_status find(struct images *all, const char *below, int depth)
{
	enum mu_status st = MU_OK;
	char whole[PATH_BYTES];
	struct dirent **entry = NULL;
	int n = 0;

	MU_TRY(join(whole, all->root, below));
	if (depth > DEPTH_MAX)
		MU_FAIL(MU_ERR_FORMAT, "%s: more than %d folders in one another", whole, DEPTH_MAX);
	n = scandir(whole, &entry, is_entry, compare_entries);
	if (n < 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", whole, strerror(errno));
	MU_TRY(find_in(all, below, depth, entry, n));
	if (n == 0 && depth > 0)
		mu_left_out_add(&all->left_out, MU_LEFT_EMPTY, below);
out:
	for (int i = 0; i < n; i++)
		free(entry[i]);
	free(entry);
	return st;
}

/* ---- writing lists ---- */

/* Images order[from..to) to prefix<chunk><part>.lst. */
struct part {
	const char *name;
	size_t from, to;
};

static enum mu_status write_list(const struct images *all, const uint32_t *order, const char *path,
				 const struct part *part)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};

	MU_TRY(mu_replace_open(&replace, path));
	for (size_t i = part->from; i < part->to; i++) {
		const struct image *image = &all->image[order[i]];

		fprintf(replace.stream, "%u\t%f\t%s\n", order[i], (double)image->label,
			image->path);
	}
	MU_TRY(mu_replace_commit(&replace));
	printf("im2rec: %zu image%s in %s\n", part->to - part->from,
	       MU_S(part->to - part->from), mu_shown(path));
out:
	mu_replace_release(&replace);
	return st;
}

/* One chunk, cut into test, validation and training part. */
static enum mu_status write_chunk(const struct images *all, const uint32_t *order, const char *stem,
				  size_t from, size_t to)
{
	enum mu_status st = MU_OK;
	const struct im2rec_values *v = all->v;
	size_t test = from + (size_t)((double)(to - from) * v->test_ratio);
	/* Shares that are all of it leave nothing, however they are rounded. */
	bool all_of_it = v->train_ratio + v->test_ratio >= 1;
	size_t train = all_of_it ? to : test + (size_t)((double)(to - from) * v->train_ratio);
	struct part parts[] = {{"", from, to},
			       {"_test", from, test},
			       {"_train", test, train},
			       {"_val", train, to}};
	bool wanted[] = {v->train_ratio >= 1, v->train_ratio < 1 && v->test_ratio > 0,
			 v->train_ratio < 1, v->train_ratio < 1 && train < to};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (!wanted[i])
			continue;
		if (snprintf(path, sizeof path, "%s%s.lst", stem, parts[i].name) >= PATH_BYTES)
			MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", stem);
		MU_TRY(write_list(all, order, path, &parts[i]));
	}
out:
	return st;
}

static enum mu_status write_lists(const struct images *all, const char *prefix)
{
	enum mu_status st = MU_OK;
	const struct im2rec_values *v = all->v;
	size_t chunks = (size_t)v->chunks, size = (all->n + chunks - 1) / chunks;
	struct mu_random key = {.seed = (uint64_t)v->seed, .purpose = MU_RANDOM_SHUFFLE};
	uint32_t *order = NULL;
	char stem[PATH_BYTES];

	MU_TRY(MU_ALLOC(order, all->n, "order of images"));
	if (v->shuffle)
		mu_random_permutation(&key, order, all->n);
	else
		for (size_t i = 0; i < all->n; i++)
			order[i] = (uint32_t)i;
	for (size_t i = 0; i < chunks; i++) {
		size_t from = i * size < all->n ? i * size : all->n;
		size_t to = from + size < all->n ? from + size : all->n;
		int n = chunks > 1 ? snprintf(stem, sizeof stem, "%s_%zu", prefix, i)
				   : snprintf(stem, sizeof stem, "%s", prefix);

		if (n >= PATH_BYTES)
			MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", prefix);
		MU_TRY(write_chunk(all, order, stem, from, to));
	}
out:
	mu_free(order);
	return st;
}

enum mu_status im2rec_make_lists(const struct im2rec_values *v, const char *prefix,
				 const char *root)
{
	enum mu_status st = MU_OK;
	struct images all = {.v = v, .root = root};
	char text[MU_LEFT_OUT_BYTES];

	MU_TRY(find(&all, "", 0));
	if (all.n == 0)
		MU_FAIL(MU_ERR_IO, "%s: no images: no names that end in %s%s", root, v->exts,
			v->recursive ? "" : "; --recursive looks into folders");
	if (all.n > UINT32_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: %zu images are too many", root, all.n);
	MU_TRY(write_lists(&all, prefix));
	if (*mu_left_out_text(&all.left_out, text, sizeof text))
		fprintf(stderr, "im2rec: left out: %s; images are files whose names end in %s\n",
			text, v->exts);
out:
	for (size_t i = 0; i < all.n; i++)
		free(all.image[i].path);
	free(all.image);
	return st;
}
