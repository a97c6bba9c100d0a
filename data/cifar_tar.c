/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a tar file, packed or not, one after another, through libarchive. */
#include "cifar_pack.h"

#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

enum { READ_BYTES = 1 << 16 };

struct tar {
	struct archive *archive;
	const char *path;
	double nbytes; /* of the file as it lies there */
	struct pack_buffer file;
};

static const char *reason(struct archive *archive)
{
	const char *text = archive_error_string(archive);

	return text ? text : "unknown reason";
}

/* The contents of an entry into tar->file. */
static enum mu_status read_entry(struct tar *tar, const char *name, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	la_ssize_t n;

	*nbytes = 0;
	do {
		MU_TRY(pack_buffer_grow(&tar->file, *nbytes, *nbytes + READ_BYTES));
		n = archive_read_data(tar->archive, tar->file.bytes + *nbytes, READ_BYTES);
		if (n < 0)
			MU_FAIL(MU_ERR_FORMAT, "%s: %s cannot be read: %s", tar->path, name,
				reason(tar->archive));
		*nbytes += (size_t)n;
	} while (n > 0);
out:
	return st;
}

static enum mu_status take_entry(struct pack_job *job, struct tar *tar, struct archive_entry *entry)
{
	enum mu_status st = MU_OK;
	const char *name = archive_entry_pathname(entry);
	size_t nbytes;
	double done;

	if (!name)
		name = archive_entry_pathname_utf8(entry);
	if (!name)
		MU_FAIL(MU_ERR_FORMAT, "%s: the name of an entry cannot be read: %s", tar->path,
			reason(tar->archive));
	if (archive_entry_filetype(entry) == AE_IFDIR)
		goto out;
	if (!pack_is_image(name)) {
		job->n_others++;
		goto out;
	}
	if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
		MU_FAIL(MU_ERR_FORMAT, "%s: %s is a link or a device, not a file", tar->path, name);
	MU_TRY(read_entry(tar, name, &nbytes));
	done = tar->nbytes > 0 ? (double)archive_filter_bytes(tar->archive, -1) / tar->nbytes : 0;
	MU_TRY(pack_job_add(job, name, tar->file.bytes, nbytes, done));
out:
	return st;
}

static enum mu_status open_tar(struct tar *tar)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(tar->path, &status) == 0)
		tar->nbytes = (double)status.st_size;
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

enum mu_status pack_read_tar(struct pack_job *job, const char *path)
{
	enum mu_status st = MU_OK;
	struct tar tar = {.path = path};
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
				path, job->set.n, reason(tar.archive));
		MU_TRY(take_entry(job, &tar, entry));
	}
out:
	archive_read_free(tar.archive);
	pack_buffer_release(&tar.file);
	return st;
}
