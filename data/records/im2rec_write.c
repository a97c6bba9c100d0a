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
	size_t packed; /* lists */
	struct data_progress progress;
	struct im2rec_names names;
	char base[PATH_BYTES]; /* of the names of lists that are parts of one set */
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

/* What the images and lines of a list had and the file has not. */
static void tell_losses(struct packer *p, const char *list)
{
	struct data_traits traits = {.n = {0}};
	size_t n = 0;

	for (size_t i = 0; i < p->threads; i++) {
		data_traits_add(&traits, &p->makers[i].codec.traits);
		p->makers[i].codec.traits = (struct data_traits){.n = {0}};
	}
	data_traits_tell(&traits, p->v->color == 1 ? ~0u : ~(unsigned)MU_IMAGE_GREY, "im2rec");
	for (size_t i = 0; i < p->list.n && !p->v->pack_label; i++)
		n += p->list.line[i].n_labels > 1;
	if (n > 0)
		fprintf(stderr,
			"im2rec: %s: %zu line%s several labels, of which the first is packed; "
			"--pack-label packs all\n",
			mu_shown(list), n, n == 1 ? " has" : "s have");
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
	if (p->list.n == 0) {
		printf("im2rec: %s is empty: nothing is packed\n", mu_shown(list));
		goto out;
	}
	if (snprintf(path, sizeof path, "%.*s.%s", stem, list, p->v->format) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", list);
	MU_TRY(data_sink_open(&p->sink, path, &config));
	data_progress_begin(&p->progress, "im2rec");
	MU_TRY(write_all(p));
	st = data_sink_finish(p->sink, true);
	p->sink = NULL;
	MU_TRY(st);
	data_progress_end(&p->progress);
	p->packed++;
	tell_losses(p, list);
	printf("im2rec: %zu image%s of %s in %s, %.1f s", p->written, MU_S(p->written),
	       mu_shown(list), mu_shown(path), mu_now() - start);
	printf(p->bad ? ", %zu left out\n" : "\n", p->bad);
out:
	data_sink_finish(p->sink, false);
	p->sink = NULL;
	mu_image_list_release(&p->list);
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

static enum mu_status name_classes(struct packer *p, const char *list)
{
	return im2rec_names_add(&p->names, list);
}

/* Bytes of text without one of the endings that --list gives to a part of a set. */
static size_t cut_part(const char *text, size_t n)
{
	static const char *const parts[] = {"_train", "_val", "_test"};
	size_t digits = 0;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const size_t m = strlen(parts[i]);

		if (n > m && memcmp(text + n - m, parts[i], m) == 0) {
			n -= m;
			break;
		}
	}
	while (digits < n && text[n - 1 - digits] >= '0' && text[n - 1 - digits] <= '9')
		digits++;
	return digits > 0 && n > digits + 1 && text[n - 1 - digits] == '_' ? n - digits - 1 : n;
}

/* The same if the list is a part of the set of p->base. */
static enum mu_status name_part(struct packer *p, const char *list)
{
	const char *slash = strrchr(list, '/'), *file = slash ? slash + 1 : list;
	const size_t n = cut_part(file, mu_stem(file, ".lst"));

	if (n != strlen(p->base) || memcmp(file, p->base, n) != 0)
		return MU_OK;
	return name_classes(p, list);
}

/* One list may lack images of a class: look at all lists of its set, then at those alone that are
 * packed. */
static enum mu_status find_names(struct packer *p, const struct place *place)
{
	enum mu_status st = MU_OK;
	const size_t stem = mu_stem(place->name, ".lst");
	const size_t n = stem ? stem : strlen(place->name), base = cut_part(place->name, n);
	struct place set = {.name = p->base};
	size_t lists = 0;

	snprintf(p->base, sizeof p->base, "%.*s", (int)base, place->name);
	memcpy(set.dir, place->dir, sizeof set.dir);
	im2rec_names_release(&p->names);
	if (base < n) {
		MU_TRY(for_lists(p, &set, name_part, &lists));
		MU_TRY(im2rec_names_check(&p->names));
	}
	if (base == n || p->names.none) {
		im2rec_names_release(&p->names);
		MU_TRY(for_lists(p, place, name_classes, &lists));
		MU_TRY(im2rec_names_check(&p->names));
	}
	if (*p->names.why)
		fprintf(stderr, "im2rec: the names of classes are not kept: %s\n",
			mu_shown(p->names.why));
out:
	return st;
}

static enum mu_status pack_place(struct packer *p, const struct place *place, size_t *found)
{
	enum mu_status st = MU_OK;

	MU_TRY(find_names(p, place));
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
	if (p->packed == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s/%s*.lst: no list holds a line; expected one per image",
			place.dir, place.name);
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
	im2rec_names_release(&p.names);
	mu_free(p.makers);
	mu_free(p.slots);
	return st;
}
