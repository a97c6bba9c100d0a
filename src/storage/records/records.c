/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled images from files of any kind: detects the kind, checks labels. See records.h. */
#include "records.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/file.h"
#include "storage/rows/rows.h"

enum { FILES_BYTES = 512 };

/* Probed in this order. */
static const struct mu_records_ops *const kinds[] = {
	&mu_records_recordio, &mu_records_tar,	&mu_records_data_file, &mu_records_image_files,
	&mu_records_folder,   &mu_records_idx,	&mu_records_cifar,
};

enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

/* ---- finding out the kind ---- */

static enum mu_status look(struct mu_records_probe *probe, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_file f;
	struct stat status;

	mu_file_init(&f);
	*probe = (struct mu_records_probe){.path = path};
	if (stat(path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	probe->folder = S_ISDIR(status.st_mode);
	if (probe->folder)
		goto out;
	MU_TRY(mu_file_open(&f, path));
	if (f.nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected records", path);
	probe->nbytes = f.nbytes;
	probe->n = f.nbytes < sizeof probe->head ? f.nbytes : sizeof probe->head;
	MU_TRY(mu_file_read(&f, 0, probe->head, probe->n));
out:
	mu_file_close(&f);
	return st;
}

static enum mu_status find_kind(const struct mu_records_ops **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_records_probe probe;
	char known[FILES_BYTES] = "";
	int used = 0;

	MU_TRY(look(&probe, path));
	for (size_t i = 0; i < NUM_KINDS; i++) {
		*out = kinds[i];
		if (kinds[i]->holds(&probe))
			goto out;
		used += snprintf(known + used, sizeof known - (size_t)used, "%s%s", i ? "; " : "",
				 kinds[i]->files);
	}
	MU_FAIL(MU_ERR_FORMAT,
		"%s: holds no records that are known: %zu bytes, the first are %02x %02x %02x "
		"%02x%s. Known: %s",
		path, probe.nbytes, probe.head[0], probe.head[1], probe.head[2], probe.head[3],
		mu_rows_advice(path), known);
out:
	return st;
}

/* ---- the calls ---- */

enum mu_status mu_records_open(struct mu_records **out, const char *paths,
			       const struct mu_records_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_path_list list = {0};
	struct mu_records *r = NULL;
	const struct mu_records_ops *ops = NULL;

	MU_TRY(mu_path_list_split(&list, paths, "the path of a file or folder of records"));
	MU_TRY(find_kind(&ops, list.path[0]));
	if (list.n > 1 && !ops->several)
		MU_FAIL(MU_ERR_USAGE,
			"%s: %zu paths, and the first is of %s: only RecordIO, tar and CIFAR files "
			"can be several as one",
			paths, list.n, ops->files);
	if (config && config->indexes && *config->indexes && ops != &mu_records_recordio)
		MU_FAIL(MU_ERR_USAGE,
			"%s is of %s, and %s is to be its index: only RecordIO files have one",
			paths, ops->files, config->indexes);
	MU_TRY(MU_ALLOC(r, 1, "records"));
	r->ops = ops;
	if (config)
		r->config = *config;
	MU_TRY(ops->open(r, paths));
	if (r->config.classes && !r->info.class_names)
		r->info.classes = r->config.classes;
out:
	mu_path_list_release(&list);
	if (st != MU_OK) {
		mu_records_close(r);
		r = NULL;
	}
	*out = r;
	return st;
}

void mu_records_close(struct mu_records *r)
{
	if (!r)
		return;
	if (r->impl)
		r->ops->close(r);
	mu_free(r);
}

void mu_records_info(const struct mu_records *r, struct mu_records_info *info)
{
	*info = r->info;
}

enum mu_status mu_records_unchanged(const struct mu_records *r)
{
	return r->ops->unchanged ? r->ops->unchanged(r) : MU_OK;
}

enum mu_status mu_records_check_sum(const struct mu_records *r, uint32_t crc)
{
	enum mu_status st = MU_OK;

	if (r->info.has_checksum && crc != r->info.checksum)
		MU_FAIL(MU_ERR_FORMAT,
			"the images are damaged: their checksum is %08x; expected %08x", crc,
			r->info.checksum);
out:
	return st;
}

void mu_records_hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	if (r->ops->hash_files)
		r->ops->hash_files(r, listing, times);
}

size_t mu_records_bound(const struct mu_records *r, size_t i)
{
	return r->ops->bound ? r->ops->bound(r, i) : mu_shape_sample(&r->info.shape);
}

enum mu_status mu_records_read(const struct mu_records *r, size_t i,
			       struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;

	*out = (struct mu_record){0};
	if (i >= r->info.n)
		MU_FAIL(MU_ERR_ARGUMENT, "record %zu was asked for; there are %zu", i, r->info.n);
	MU_TRY(r->ops->read(r, i, buffer, out));
	MU_TRY(mu_records_check_labels(r, i, out->labels, out->n_labels));
out:
	return st;
}
