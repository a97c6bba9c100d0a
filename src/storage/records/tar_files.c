/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and their classes in tar files, as WebDataset has them, several as one. All headers are
 * read when the files are opened (tar_scan.c); a record is then a range of a file. Records stand in
 * the order of the files, and their ids are their numbers.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "record_io.h"
#include "tar.h"

enum {
	PIECE_BYTES = 1 << 20, /* that are read at once, of records one after another */
	WHERE_BYTES = 600,
	NAME_BYTES = 84, /* of a name in a message */
};

struct part {
	struct mu_file file;
	uint64_t number; /* of all tar files of this process: whose bytes a buffer holds */
	size_t first;    /* its first record in the whole */
};

struct tar_files {
	struct mu_path_list paths;
	struct part *part; /* paths.n; owned */
	size_t n_parts;    /* open */
	struct mu_tar_samples samples;
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

static enum mu_status open_part(struct mu_records *r, const char *path)
{
	enum mu_status st = MU_OK;
	static atomic_ullong numbers;
	struct tar_files *f = r->impl;
	struct part *part = &f->part[f->n_parts++];

	part->number = atomic_fetch_add(&numbers, 1);
	MU_TRY(mu_file_open(&part->file, path));
	MU_TRY(check_packing(&part->file));
	part->first = f->samples.n;
	MU_TRY(mu_tar_scan(&f->samples, r, &part->file));
out:
	return st;
}

static enum mu_status open_files(struct mu_records *r, const char *paths)
{
	enum mu_status st = MU_OK;
	struct tar_files *f;
	char where[WHERE_BYTES];

	MU_TRY(MU_ALLOC(f, 1, "tar files"));
	r->impl = f;
	f->samples.labelled = f->samples.unlabelled = SIZE_MAX;
	MU_TRY(mu_path_list_split(&f->paths, paths, "the path of a .tar file"));
	MU_TRY(MU_ALLOC(f->part, f->paths.n, "tar files"));
	mu_file_allow(f->paths.n);
	for (size_t i = 0; i < f->paths.n; i++)
		MU_TRY(open_part(r, f->paths.path[i]));
	r->info.n = f->samples.n;
	r->info.kind = MU_RECORD_ENCODED;
	r->info.label_width = 1;
	r->info.format = "tar file";
	r->info.unlabelled = f->samples.labelled == SIZE_MAX;
	if (!r->info.unlabelled && f->samples.unlabelled != SIZE_MAX)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no class (.cls), and other samples have one",
			mu_records_where(r, f->samples.unlabelled, where, sizeof where));
out:
	return st;
}

static void close_files(struct mu_records *r)
{
	struct tar_files *f = r->impl;

	for (size_t i = 0; i < f->n_parts; i++)
		if (f->part[i].file.path)
			mu_file_close(&f->part[i].file);
	mu_free(f->part);
	free(f->samples.sample);
	mu_path_list_release(&f->paths);
	mu_free(f);
}

/* The file of record i. */
static const struct part *find_part(const struct tar_files *f, size_t i)
{
	size_t low = 0, high = f->n_parts;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (f->part[middle].first <= i)
			low = middle;
		else
			high = middle;
	}
	return &f->part[low];
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct tar_files *f = r->impl;
	const struct part *part = find_part(f, i);
	char name[NAME_BYTES];

	mu_tar_name_before(&part->file, f->samples.sample[i].at, name, sizeof name);
	snprintf(text, nbytes, "%s, record %zu (member %s) at byte %llu", part->file.path,
		 i - part->first, name, (unsigned long long)f->samples.sample[i].at - MU_TAR_BLOCK);
}

/* From record i on, bytes that are read at once: its own, and those of the records after it that
 * are asked for next, as far as they lie in this file and in a piece. */
static size_t piece_bytes(const struct tar_files *f, const struct part *part, size_t i,
			  size_t ahead)
{
	const struct mu_tar_sample *s = &f->samples.sample[i];
	const size_t end = part + 1 < f->part + f->n_parts ? part[1].first : f->samples.n;
	size_t n = s->n;

	for (size_t k = 1; k <= ahead && k < end - i; k++) {
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
	const struct tar_files *f = r->impl;
	const struct part *part = find_part(f, i);
	const struct mu_tar_sample *s = &f->samples.sample[i];
	const size_t end = buffer->piece.at + buffer->piece.n;
	size_t n;

	if (buffer->piece.n == 0 || buffer->piece.of != part->number || s->at < buffer->piece.at ||
	    s->at + s->n > end) {
		n = piece_bytes(f, part, i, buffer->ahead);
		MU_TRY(mu_record_buffer_grow(buffer, 0, n));
		MU_TRY(mu_file_read(&part->file, s->at, buffer->bytes, n));
		buffer->piece.of = part->number;
		buffer->piece.at = s->at;
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
	const struct tar_files *f = r->impl;

	return f->samples.sample[i].n;
}

static enum mu_status unchanged(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	const struct tar_files *f = r->impl;

	for (size_t i = 0; i < f->n_parts; i++)
		MU_TRY(mu_file_unchanged(&f->part[i].file));
out:
	return st;
}

/* Sizes and labels, not places: the same in one file and in several. */
static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct tar_files *f = r->impl;

	for (size_t i = 0; i < f->samples.n; i++) {
		*listing = mu_hash_block(*listing, &f->samples.sample[i].n,
					 sizeof f->samples.sample[i].n);
		*listing = mu_hash_block(*listing, &f->samples.sample[i].label, sizeof(float));
	}
	for (size_t i = 0; i < f->n_parts; i++)
		mu_file_hash_time(&f->part[i].file, times);
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
