/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing: the images of a list are made by several threads, some hundred at a time, and written in
 * the order of the list.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "im2rec.h"
#include "../lib/progress.h"
#include "sink.h"

enum { PATH_BYTES = 4096, PER_THREAD = 32, MESSAGE_BYTES = 1024 };

/* An image that a thread makes. */
struct slot {
	struct data_buffer bytes;
	size_t n;
	enum mu_status st;
	char message[MESSAGE_BYTES];
};

struct packer {
	const struct im2rec_values *v;
	const char *root;
	struct mu_image_list list;
	struct data_sink *sink;
	struct im2rec_maker *makers; /* one per thread; owned */
	size_t threads;
	struct slot *slots;       /* owned */
	size_t n_slots, first, n; /* slot i holds line first + i, i < n */
	atomic_size_t next;       /* next slot to fill */
	size_t written, bad;
	struct data_progress progress;
	struct class_names {
		char **name; /* of each label; owned; NULL: not seen */
		size_t n;
		bool none; /* labels and folders do not belong together one by one */
	} names;
};

struct worker {
	struct packer *packer;
	struct im2rec_maker *maker;
};

/* ---- making images ---- */

static void make(struct packer *p, struct im2rec_maker *maker, struct slot *slot,
		 const struct mu_image_list_line *line)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];

	if (snprintf(path, sizeof path, "%s/%s", p->root, line->path) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", line->path,
			PATH_BYTES - 1);
	MU_TRY(im2rec_make_image(maker, p->v, path, &slot->bytes, &slot->n));
out:
	slot->st = st;
	if (st == MU_OK)
		return;
	/* The trace belongs to this thread. */
	snprintf(slot->message, sizeof slot->message, "%s", mu_trace_message());
	mu_trace_clear();
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct packer *p = worker->packer;

	for (size_t i = atomic_fetch_add(&p->next, 1); i < p->n; i = atomic_fetch_add(&p->next, 1))
		make(p, worker->maker, &p->slots[i], &p->list.line[p->first + i]);
	return NULL;
}

/* Slots 0..n of the lines from `first` on. A thread that cannot be started is done without. */
static void make_slots(struct packer *p)
{
	pthread_t threads[1024];
	struct worker workers[1024];
	size_t started = 0;

	atomic_store(&p->next, 0);
	for (size_t i = 1; i < p->threads; i++) {
		workers[i] = (struct worker){p, &p->makers[i]};
		if (pthread_create(&threads[started], NULL, work, &workers[i]) == 0)
			started++;
	}
	workers[0] = (struct worker){p, &p->makers[0]};
	work(&workers[0]);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* ---- writing them ---- */

static enum mu_status write_slot(struct packer *p, const struct slot *slot,
				 const struct mu_image_list_line *line)
{
	enum mu_status st = MU_OK;
	struct mu_record record = {
		.data = slot->bytes.bytes,
		.n = slot->n,
		.id = line->id,
		.n_labels = p->v->pack_label ? line->n_labels : 1,
		.labels = line->labels,
	};

	if (slot->st != MU_OK && !p->v->skip_bad)
		MU_FAIL(slot->st, "%s", slot->message);
	if (slot->st != MU_OK) {
		data_progress_end(&p->progress);
		fprintf(stderr, "im2rec: left out: %s\n", slot->message);
		p->bad++;
		goto out;
	}
	MU_TRY(data_sink_add(p->sink, &record, line->path));
	p->written++;
out:
	return st;
}

static enum mu_status write_all(struct packer *p)
{
	enum mu_status st = MU_OK;
	size_t total = p->list.n;

	for (p->first = 0; p->first < total; p->first += p->n) {
		p->n = total - p->first < p->n_slots ? total - p->first : p->n_slots;
		make_slots(p);
		for (size_t i = 0; i < p->n; i++)
			MU_TRY(write_slot(p, &p->slots[i], &p->list.line[p->first + i]));
		data_progress_tell(&p->progress, p->written,
				   (double)(p->first + p->n) / (double)total);
	}
	if (p->written == 0)
		MU_FAIL(MU_ERR_FORMAT, "none of the %zu images could be read", total);
out:
	return st;
}

/* The images of one list to a file beside it. */
static enum mu_status pack(struct packer *p, const char *list)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];
	int stem = (int)strlen(list) - 4;
	struct data_sink_config config = {.creator = "im2rec",
					  .source = {.kind = MU_RECORD_ENCODED}};
	double start = mu_now();

	p->written = p->bad = 0;
	if (!p->names.none) {
		config.source.class_names = (const char *const *)p->names.name;
		config.source.classes = p->names.n;
	}
	MU_TRY(mu_image_list_read(&p->list, list));
	if (snprintf(path, sizeof path, "%.*s.%s", stem, list, p->v->format) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", list);
	MU_TRY(data_sink_open(&p->sink, path, &config));
	data_progress_begin(&p->progress, "im2rec");
	MU_TRY(write_all(p));
	st = data_sink_finish(p->sink, true);
	p->sink = NULL;
	MU_TRY(st);
	data_progress_end(&p->progress);
	printf("im2rec: %zu image%s of %s in %s, %.1f s", p->written, p->written == 1 ? "" : "s",
	       list, path, mu_now() - start);
	printf(p->bad ? ", %zu left out\n" : "\n", p->bad);
out:
	data_sink_finish(p->sink, false);
	p->sink = NULL;
	mu_image_list_release(&p->list);
	return st;
}

/* ---- names of classes ---- */

enum { MOST_NAMES = 1 << 16 };

static bool is_class(float label)
{
	return label >= 0 && label < MOST_NAMES && label == (float)(size_t)label;
}

/* A class is named as the folder of its images. */
static enum mu_status name_class(struct class_names *c, const struct mu_image_list_line *line)
{
	enum mu_status st = MU_OK;
	const char *end = strrchr(line->path, '/'), *begin = end;
	char **grown;
	size_t label, n;

	while (begin && begin > line->path && begin[-1] != '/')
		begin--;
	n = (size_t)(end - begin);
	c->none = c->none || n == 0 || *begin == '.' || line->n_labels != 1 ||
		  !is_class(line->labels[0]);
	if (c->none)
		goto out;
	label = (size_t)line->labels[0];
	if (label >= c->n) {
		grown = realloc(c->name, (label + 1) * sizeof *grown);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu names", label + 1);
		for (c->name = grown; c->n <= label; c->n++)
			c->name[c->n] = NULL;
	}
	if (!c->name[label])
		c->name[label] = strndup(begin, n);
	if (!c->name[label])
		MU_FAIL(MU_ERR_MEMORY, "no memory for the name of a class");
	c->none = strncmp(c->name[label], begin, n) != 0 || c->name[label][n] != '\0';
out:
	return st;
}

static enum mu_status name_classes(struct packer *p, const char *list)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_image_list_read(&p->list, list));
	for (size_t i = 0; i < p->list.n; i++)
		MU_TRY(name_class(&p->names, &p->list.line[i]));
out:
	mu_image_list_release(&p->list);
	return st;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All labels have a name, and no two the same. */
static enum mu_status check_names(struct class_names *c)
{
	enum mu_status st = MU_OK;
	char **sorted = NULL;

	for (size_t i = 0; i < c->n; i++)
		c->none = c->none || !c->name[i];
	if (c->none || c->n == 0)
		goto out;
	MU_TRY(MU_ALLOC(sorted, c->n, "names of classes"));
	memcpy(sorted, c->name, c->n * sizeof *sorted);
	qsort(sorted, c->n, sizeof *sorted, compare_names);
	for (size_t i = 1; i < c->n; i++)
		c->none = c->none || strcmp(sorted[i - 1], sorted[i]) == 0;
out:
	mu_free(sorted);
	return st;
}

/* ---- the lists ---- */

/* "dir" and "name" of a prefix "dir/name". */
struct place {
	char dir[PATH_BYTES];
	const char *name;
};

static enum mu_status find_place(struct place *place, const char *prefix)
{
	enum mu_status st = MU_OK;
	const char *slash = strrchr(prefix, '/');
	size_t n = slash ? (size_t)(slash - prefix) : 0;

	if (n >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", prefix);
	if (!slash)
		memcpy(place->dir, ".", sizeof ".");
	else
		snprintf(place->dir, PATH_BYTES, "%.*s", n ? (int)n : 1, prefix);
	place->name = slash ? slash + 1 : prefix;
out:
	return st;
}

static bool is_list(const char *file, const char *prefix)
{
	return strncmp(file, prefix, strlen(prefix)) == 0 && mu_stem(file, ".lst");
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Calls a function for each list at a place; *found counts them. */
static enum mu_status for_lists(struct packer *p, const struct place *place,
				enum mu_status (*fn)(struct packer *p, const char *list),
				size_t *found)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];
	struct dirent **entry = NULL;
	int n = scandir(place->dir, &entry, not_hidden, compare_entries);

	if (n < 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", place->dir,
			strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!is_list(entry[i]->d_name, place->name))
			continue;
		if (snprintf(path, sizeof path, "%s/%s", place->dir, entry[i]->d_name) >=
		    PATH_BYTES)
			MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", place->dir);
		MU_TRY(fn(p, path));
		++*found;
	}
out:
	for (int i = 0; i < n; i++)
		free(entry[i]);
	free(entry);
	return st;
}

/* All lists first: one alone may lack images of a class. */
static enum mu_status pack_place(struct packer *p, const struct place *place, size_t *found)
{
	enum mu_status st = MU_OK;
	size_t lists = 0;

	MU_TRY(for_lists(p, place, name_classes, &lists));
	MU_TRY(check_names(&p->names));
	MU_TRY(for_lists(p, place, pack, found));
out:
	return st;
}

/* A prefix that no list begins with may be a folder of lists, as for MXNet's tool. */
static enum mu_status pack_lists(struct packer *p, const char *prefix)
{
	enum mu_status st = MU_OK;
	struct place place, inside = {.name = ""};
	struct stat status;
	size_t found = 0;

	MU_TRY(find_place(&place, prefix));
	MU_TRY(pack_place(p, &place, &found));
	if (!found && *place.name && stat(prefix, &status) == 0 && S_ISDIR(status.st_mode)) {
		snprintf(inside.dir, sizeof inside.dir, "%s", prefix); /* stat took it */
		MU_TRY(pack_place(p, &inside, &found));
	}
	if (!found)
		MU_FAIL(MU_ERR_IO,
			"%s/%s*.lst: no such list; make one with --list --recursive %s ROOT",
			place.dir, place.name, prefix);
out:
	return st;
}

enum mu_status im2rec_pack_lists(const struct im2rec_values *v, const char *prefix,
				 const char *root)
{
	enum mu_status st = MU_OK;
	struct packer p = {.v = v, .root = root, .threads = (size_t)v->num_thread};

	p.n_slots = PER_THREAD * p.threads;
	MU_TRY(MU_ALLOC(p.makers, p.threads, "threads"));
	MU_TRY(MU_ALLOC(p.slots, p.n_slots, "images"));
	MU_TRY(pack_lists(&p, prefix));
out:
	for (size_t i = 0; p.makers && i < p.threads; i++)
		im2rec_maker_release(&p.makers[i]);
	for (size_t i = 0; p.slots && i < p.n_slots; i++)
		data_buffer_release(&p.slots[i].bytes);
	for (size_t i = 0; i < p.names.n; i++)
		free(p.names.name[i]);
	free(p.names.name);
	mu_free(p.makers);
	mu_free(p.slots);
	return st;
}
