/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and their classes in tar files, as WebDataset has them, several as one. All headers are
 * read when the files are opened (tar_scan.c); a record is then a range of a file. Records stand in
 * the order of the files, and their ids are their numbers.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "record_io.h"
#include "tar.h"

enum {
	PIECE_BYTES = 1 << 20, /* that are read at once, of records one after another */
	THREADS_MOST = 7,      /* that read headers, beside the caller */
	WHERE_BYTES = 600,
	NAME_BYTES = 84, /* of a name in a message */
};

struct part {
	struct mu_file file;
	uint64_t number; /* of all tar files of this process: whose bytes a buffer holds */
	size_t first;    /* its first record in the whole */
	struct mu_tar_samples samples;
	enum mu_status st; /* of opening it */
	char *message;     /* of that, owned, by free */
};

struct tar_files {
	struct mu_path_list paths;
	struct part *part;  /* paths.n; owned */
	atomic_size_t next; /* file to be opened */
	atomic_bool failed; /* one could not be */
};

/* ---- which files ---- */

static const struct {
	const char *end, *short_end; /* of names */
	const char *program;         /* unpacks them */
	uint8_t n, magic[6];
} packings[] = {
	{".tar.gz", ".tgz", "gzip", 2, {0x1f, 0x8b}},
	{".tar.xz", ".txz", "xz", 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
	{".tar.zst", ".tzst", "zstd", 4, {0x28, 0xb5, 0x2f, 0xfd}},
	{".tar.bz2", ".tbz2", "bzip2", 3, {'B', 'Z', 'h'}},
};

enum { NUM_PACKINGS = sizeof packings / sizeof *packings };

static bool holds(const struct mu_records_probe *probe)
{
	bool is = mu_stem(probe->path, ".tar") > 0;

	for (size_t i = 0; i < NUM_PACKINGS; i++)
		is |= mu_stem(probe->path, packings[i].end) > 0 ||
		      mu_stem(probe->path, packings[i].short_end) > 0;
	return is && !probe->folder;
}

static enum mu_status check_packing(const struct mu_file *f)
{
	enum mu_status st = MU_OK;
	uint8_t head[sizeof packings->magic] = {0};

	if (f->nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected a tar file", f->path);
	MU_TRY(mu_file_read(f, 0, head, f->nbytes < sizeof head ? f->nbytes : sizeof head));
	for (size_t i = 0; i < NUM_PACKINGS; i++)
		if (memcmp(head, packings[i].magic, packings[i].n) == 0)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s: is compressed (%s), and images are read from their places in "
				"the file: %s -dk %s makes a tar file that is read",
				f->path, packings[i].program, packings[i].program, f->path);
out:
	return st;
}

/* ---- the kind of file ---- */

static enum mu_status open_part(struct part *part, const char *path)
{
	enum mu_status st = MU_OK;
	static atomic_ullong numbers;

	part->number = atomic_fetch_add(&numbers, 1);
	MU_TRY(mu_file_open(&part->file, path));
	MU_TRY(check_packing(&part->file));
	MU_TRY(mu_tar_scan(&part->samples, &part->file));
out:
	return st;
}

/* One file after another, until there are none or one is wrong. Those before it were begun before
 * it, so that the first file that is wrong is the same whatever the threads do. */
static void *open_parts(void *argument)
{
	struct tar_files *f = argument;

	while (!atomic_load(&f->failed)) {
		const size_t i = atomic_fetch_add(&f->next, 1);
		struct part *part;

		if (i >= f->paths.n)
			break;
		part = &f->part[i];
		part->st = open_part(part, f->paths.path[i]);
		if (part->st == MU_OK)
			continue;
		part->message = strdup(mu_trace_message());
		mu_trace_clear();
		atomic_store(&f->failed, true);
	}
	return NULL;
}

/* Several at once: a file system takes its time for the first look at each header. Signals are
 * handled by the caller's thread only. */
static enum mu_status open_all(struct tar_files *f)
{
	enum mu_status st = MU_OK;
	pthread_t threads[THREADS_MOST];
	sigset_t all, before;
	size_t n = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (n < THREADS_MOST && n + 1 < f->paths.n &&
	       pthread_create(&threads[n], NULL, open_parts, f) == 0)
		n++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	open_parts(f);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	for (size_t i = 0; i < f->paths.n; i++)
		if (f->part[i].st != MU_OK)
			MU_FAIL(f->part[i].st, "%s", f->part[i].message ? f->part[i].message : "");
out:
	return st;
}

static void add_left_out(struct mu_left_out *all, const struct mu_left_out *part)
{
	for (int k = 0; k < MU_LEFT_KINDS; k++) {
		if (all->n[k] == 0)
			memcpy(all->first[k], part->first[k], sizeof all->first[k]);
		all->n[k] += part->n[k];
	}
}

static enum mu_status check_classes(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	const struct tar_files *f = r->impl;
	char where[WHERE_BYTES];

	for (size_t k = 0; k < f->paths.n && !r->info.unlabelled; k++) {
		const struct part *part = &f->part[k];
		const struct mu_tar_samples *s = &part->samples;

		if (s->n_lack > 0)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: has no class (.cls), and other samples have one",
				mu_records_where(r, part->first + s->lacks, where, sizeof where));
		for (size_t i = 0; i < s->n; i++)
			MU_TRY(mu_records_check_labels(r, part->first + i, &s->sample[i].label, 1));
	}
out:
	return st;
}

static enum mu_status open_files(struct mu_records *r, const char *paths)
{
	enum mu_status st = MU_OK;
	struct tar_files *f;
	size_t lack = 0;

	MU_TRY(MU_ALLOC(f, 1, "tar files"));
	r->impl = f;
	MU_TRY(mu_path_list_split(&f->paths, paths, "the path of a .tar file"));
	MU_TRY(MU_ALLOC(f->part, f->paths.n, "tar files"));
	for (size_t i = 0; i < f->paths.n; i++) {
		mu_file_init(&f->part[i].file);
		f->part[i].samples.may_lack = r->config.unlabelled;
	}
	mu_file_allow(f->paths.n);
	MU_TRY(open_all(f));
	for (size_t i = 0; i < f->paths.n; i++) {
		f->part[i].first = r->info.n;
		r->info.n += f->part[i].samples.n;
		lack += f->part[i].samples.n_lack;
		add_left_out(&r->info.left_out, &f->part[i].samples.left_out);
	}
	r->info.kind = MU_RECORD_ENCODED;
	r->info.label_width = 1;
	r->info.format = "tar file";
	r->info.unlabelled = lack == r->info.n;
	MU_TRY(check_classes(r));
out:
	return st;
}

static void close_files(struct mu_records *r)
{
	struct tar_files *f = r->impl;

	for (size_t i = 0; f->part && i < f->paths.n; i++) {
		mu_file_close(&f->part[i].file);
		free(f->part[i].samples.sample);
		free(f->part[i].message);
	}
	mu_free(f->part);
	mu_path_list_release(&f->paths);
	mu_free(f);
}

/* The file of record i; *local is its number there. */
static const struct part *find_part(const struct mu_records *r, size_t i, size_t *local)
{
	const struct tar_files *f = r->impl;
	size_t low = 0, high = f->paths.n;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (f->part[middle].first <= i)
			low = middle;
		else
			high = middle;
	}
	*local = i - f->part[low].first;
	return &f->part[low];
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	size_t local;
	const struct part *part = find_part(r, i, &local);
	const size_t at = (size_t)part->samples.sample[local].at;
	char name[NAME_BYTES];

	mu_tar_name_before(&part->file, at, name, sizeof name);
	snprintf(text, nbytes, "%s, record %zu (member %s) at byte %zu", part->file.path, local,
		 name, at - MU_TAR_BLOCK);
}

/* From record i of a file on, bytes that are read at once: its own, and those of the records after
 * it that are asked for next, as far as they lie in this file and in a piece. */
static size_t piece_bytes(const struct mu_tar_samples *samples, size_t i, size_t ahead)
{
	const struct mu_tar_sample *s = &samples->sample[i];
	size_t n = s->n;

	for (size_t k = 1; k <= ahead && k < samples->n - i; k++) {
		const uint64_t all = s[k].at + s[k].n - s->at;

		if (all > PIECE_BYTES)
			break;
		n = (size_t)all;
	}
	return n;
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;
	size_t local, n;
	const struct part *part = find_part(r, i, &local);
	const struct mu_tar_sample *s = &part->samples.sample[local];

	if (buffer->piece.n == 0 || buffer->piece.of != part->number || s->at < buffer->piece.at ||
	    s->at + s->n > buffer->piece.at + buffer->piece.n) {
		n = piece_bytes(&part->samples, local, buffer->ahead);
		MU_TRY(mu_record_buffer_grow(buffer, 0, n));
		MU_TRY(mu_file_read(&part->file, (size_t)s->at, buffer->bytes, n));
		buffer->piece.of = part->number;
		buffer->piece.at = (size_t)s->at;
		buffer->piece.n = n;
	}
	*out = (struct mu_record){.data = buffer->bytes + (s->at - buffer->piece.at),
				  .n = s->n,
				  .id = i,
				  .n_labels = 1,
				  .labels = &s->label};
out:
	return st;
}

static size_t bound(const struct mu_records *r, size_t i)
{
	size_t local;
	const struct part *part = find_part(r, i, &local);

	return part->samples.sample[local].n;
}

static enum mu_status unchanged(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	const struct tar_files *f = r->impl;

	for (size_t i = 0; i < f->paths.n; i++)
		MU_TRY(mu_file_unchanged(&f->part[i].file));
out:
	return st;
}

/* Sizes and labels, not places: the same in one file and in several. */
static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct tar_files *f = r->impl;

	for (size_t k = 0; k < f->paths.n; k++) {
		for (size_t i = 0; i < f->part[k].samples.n; i++) {
			const struct mu_tar_sample *s = &f->part[k].samples.sample[i];

			*listing = mu_hash_block(*listing, &s->n, sizeof s->n);
			*listing = mu_hash_block(*listing, &s->label, sizeof s->label);
		}
		mu_file_hash_time(&f->part[k].file, times);
	}
}

const struct mu_records_ops mu_records_tar = {
	.files = ".tar files (WebDataset)",
	.several = true,
	.holds = holds,
	.open = open_files,
	.close = close_files,
	.read = read_record,
	.bound = bound,
	.where = where,
	.unchanged = unchanged,
	.hash_files = hash_files,
};
