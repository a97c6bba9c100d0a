/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files through libarchive: see tar.h. */
#include "tar.h"

#include <muster/records.h>
#include <muster/storage.h>

#include <string.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#include "image.h"

enum { READ_BYTES = 1 << 16 };

struct tar {
	struct archive *archive;
	const char *path;
	const struct data_tar_visitor *visitor;
	double nbytes; /* of the file as it lies there */
	size_t n;      /* files taken */
	struct data_buffer file;
};

static const char *reason(struct archive *archive)
{
	const char *text = archive_error_string(archive);

	return text ? text : "unknown reason";
}

/* ---- reading ---- */

/* The contents of an entry into tar->file. */
static enum mu_status read_entry(struct tar *tar, const char *name, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	la_ssize_t n;

	*nbytes = 0;
	do {
		MU_TRY(data_buffer_grow(&tar->file, *nbytes, *nbytes + READ_BYTES));
		n = archive_read_data(tar->archive, tar->file.bytes + *nbytes, READ_BYTES);
		if (n < 0)
			MU_FAIL(MU_ERR_FORMAT, "%s: %s cannot be read: %s", tar->path, name,
				reason(tar->archive));
		*nbytes += (size_t)n;
	} while (n > 0);
out:
	return st;
}

static enum mu_status add_entry(struct tar *tar, struct archive_entry *entry)
{
	enum mu_status st = MU_OK;
	const struct data_tar_visitor *v = tar->visitor;
	const char *name = archive_entry_pathname(entry);
	bool folder = archive_entry_filetype(entry) == AE_IFDIR;
	size_t nbytes;
	double done;

	if (!name)
		name = archive_entry_pathname_utf8(entry);
	if (!name)
		MU_FAIL(MU_ERR_FORMAT, "%s: the name of an entry cannot be read: %s", tar->path,
			reason(tar->archive));
	if (mu_left_hidden(name)) {
		if (v->hidden)
			v->hidden(v->context, name);
		goto out;
	}
	if (!v->wants(v->context, name, folder) || folder)
		goto out;
	if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
		MU_FAIL(MU_ERR_FORMAT, "%s: %s is a link or a device, not a file", tar->path, name);
	MU_TRY(read_entry(tar, name, &nbytes));
	done = tar->nbytes > 0 ? (double)archive_filter_bytes(tar->archive, -1) / tar->nbytes : 0;
	MU_TRY(v->take(v->context, name, tar->file.bytes, nbytes, done));
	tar->n++;
out:
	return st;
}

static enum mu_status open_tar(struct tar *tar)
{
	enum mu_status st = MU_OK;
	struct stat status = {.st_mode = S_IFREG};

	if (stat(tar->path, &status) == 0)
		tar->nbytes = (double)status.st_size;
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is not a plain file", tar->path);
	tar->archive = archive_read_new();
	if (!tar->archive)
		MU_FAIL(MU_ERR_MEMORY, "no memory for libarchive");
	archive_read_support_filter_all(tar->archive);
	archive_read_support_format_tar(tar->archive);
	if (archive_read_open_filename(tar->archive, tar->path, READ_BYTES) != ARCHIVE_OK)
		MU_FAIL(MU_ERR_FORMAT, "%s: is neither a folder nor a tar file: %s", tar->path,
			reason(tar->archive));
out:
	return st;
}

enum mu_status data_tar_read(const char *path, const struct data_tar_visitor *visitor)
{
	enum mu_status st = MU_OK;
	struct tar tar = {.path = path, .visitor = visitor};
	struct archive_entry *entry;

	MU_TRY(open_tar(&tar));
	for (;;) {
		int code = archive_read_next_header(tar.archive, &entry);

		if (code == ARCHIVE_EOF)
			break;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: is no tar file, or is damaged after %zu "
				"images: %s",
				path, tar.n, reason(tar.archive));
		MU_TRY(add_entry(&tar, entry));
	}
out:
	archive_read_free(tar.archive);
	data_buffer_release(&tar.file);
	return st;
}

/* ---- writing ---- */

struct data_tar_writer {
	struct archive *archive;
	struct archive_entry *entry;
	struct mu_replace replace;
};

enum mu_status data_tar_create(struct data_tar_writer **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct data_tar_writer *w = NULL;

	MU_TRY(MU_ALLOC(w, 1, "tar file"));
	MU_TRY(mu_replace_begin(&w->replace, path));
	w->archive = archive_write_new();
	w->entry = archive_entry_new();
	if (!w->archive || !w->entry)
		MU_FAIL(MU_ERR_MEMORY, "no memory for libarchive");
	/* The filter that the end of the name stands for; ".tar" has none. */
	if (archive_write_set_format_filter_by_ext_def(w->archive, path, ".tar") < ARCHIVE_WARN)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: libarchive cannot write it: %s", path,
			reason(w->archive));
	archive_write_set_filter_option(w->archive, "gzip", "timestamp", NULL);
	if (archive_write_open_filename(w->archive, w->replace.written) != ARCHIVE_OK)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path, reason(w->archive));
out:
	if (st != MU_OK) {
		data_tar_finish(w, false);
		w = NULL;
	}
	*out = w;
	return st;
}

enum mu_status data_tar_write(struct data_tar_writer *w, const char *name, const uint8_t *bytes,
			      size_t nbytes)
{
	enum mu_status st = MU_OK;

	archive_entry_clear(w->entry);
	archive_entry_set_pathname(w->entry, name);
	archive_entry_set_filetype(w->entry, bytes ? AE_IFREG : AE_IFDIR);
	archive_entry_set_perm(w->entry, bytes ? 0644 : 0755);
	archive_entry_set_mtime(w->entry, 0, 0);
	archive_entry_set_size(w->entry, bytes ? (la_int64_t)nbytes : 0);
	if (archive_write_header(w->archive, w->entry) != ARCHIVE_OK ||
	    (bytes && archive_write_data(w->archive, bytes, nbytes) != (la_ssize_t)nbytes))
		MU_FAIL(MU_ERR_IO, "%s: %s cannot be written: %s", w->replace.path, name,
			reason(w->archive));
out:
	return st;
}

enum mu_status data_tar_finish(struct data_tar_writer *w, bool commit)
{
	enum mu_status st = MU_OK;

	if (!w || !commit)
		goto out;
	if (archive_write_close(w->archive) != ARCHIVE_OK)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", w->replace.path,
			reason(w->archive));
	MU_TRY(mu_replace_commit(&w->replace));
out:
	if (w) {
		archive_write_free(w->archive);
		archive_entry_free(w->entry);
		mu_replace_release(&w->replace);
		mu_free(w);
	}
	return st;
}
