/* SPDX-License-Identifier: Apache-2.0 */
/* Reads HDF5 data files. HDF5 is used only when a file is opened: it returns the small arrays and
 * the offset of the images, and everything is checked there. Images are read by offset. */
#include <math.h>
#include <string.h>

#include "data_file.h"
#include "record_io.h"
#include "records.h"

enum { NAME_BYTES = 4096 };

static const uint8_t magic[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

struct data_file {
	struct mu_file file;
	size_t images_at, images_bytes; /* in the file */
	size_t n, label_width, sample;  /* sample: bytes of a raw image, 0: encoded */
	uint64_t *offsets;              /* n + 1, of encoded images; owned */
	uint64_t *ids;                  /* n; owned */
	float *labels;                  /* (n, label_width); owned */
	char *names;                    /* of the classes, zero-terminated; owned */
	const char **class_names;       /* into names; owned */
};

static const struct mu_data_wanted want_images = {
	"images", "uint8, (bytes) or (n, h, w, c)", H5T_INTEGER, 1, {1, 4}};
static const struct mu_data_wanted want_offsets = {
	"offsets", "uint64, (n + 1)", H5T_INTEGER, 8, {1, 1}};
static const struct mu_data_wanted want_labels = {
	"labels", "float32, (n, label_width)", H5T_FLOAT, 4, {2, 1}};
static const struct mu_data_wanted want_ids = {"ids", "uint64, (n)", H5T_INTEGER, 8, {1, 1}};
static const struct mu_data_wanted want_classes = {
	"classes", "texts of fixed length, (classes)", H5T_STRING, 0, {1, 1}};

/* ---- the arrays of a data file ---- */

static enum mu_status open_images(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	struct mu_data_array a = {.set = -1, .type = -1};
	hid_t list = -1;
	haddr_t at;

	MU_TRY(mu_data_array_open(&d->file, file, &a, &want_images));
	/* HDF5 converts other arrays; the bytes of this one are read as they are. */
	if (H5Tget_sign(a.type) != H5T_SGN_NONE || H5Tget_precision(a.type) != 8)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"images\" is of type %s%zu; expected %s (h5py: "
			"astype('uint8'))",
			path, H5Tget_sign(a.type) == H5T_SGN_NONE ? "uint" : "int",
			H5Tget_precision(a.type), want_images.text);
	MU_H5_TRY(path, list = H5Dget_create_plist(a.set));
	if (H5Pget_layout(list) != H5D_CONTIGUOUS || H5Pget_external_count(list) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"images\" is not contiguous (h5repack -l images:CONTI makes it "
			"so)",
			path);
	at = H5Dget_offset(a.set);
	if (a.n == 0 || at == HADDR_UNDEF || at > d->file.nbytes || a.n > d->file.nbytes - at)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the %zu bytes of array \"images\" are not in the file, which has %zu "
			"(truncated, or never written)",
			path, a.n, d->file.nbytes);
	d->images_at = at;
	d->images_bytes = a.n;
	MU_TRY(mu_data_array_checksum(&d->file, &a, &r->info.has_checksum, &r->info.checksum));
	if (a.ndims == 1)
		goto out;
	d->n = a.dims[0];
	d->sample = a.n / a.dims[0];
	r->info.kind = MU_RECORD_RAW;
	r->info.shape = (struct mu_shape)MU_SAMPLE(a.dims[3], a.dims[1], a.dims[2]);
out:
	mu_h5_close_list(list);
	mu_data_array_close(&a);
	return st;
}

static enum mu_status read_offsets(struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	struct mu_data_array a = {.set = -1, .type = -1};

	MU_TRY(mu_data_array_open(&d->file, file, &a, &want_offsets));
	if (a.n < 2)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"offsets\" has %zu numbers; one more than there are images is "
			"expected, at least 2",
			d->file.path, a.n);
	d->n = a.n - 1;
	MU_TRY(mu_data_array_read(&d->file, &a, H5T_NATIVE_UINT64, (void **)&d->offsets));
	for (size_t i = 0; i < d->n; i++)
		if (d->offsets[i] > d->offsets[i + 1])
			MU_FAIL(MU_ERR_FORMAT,
				"%s: record %zu begins at offset %llu of the images and the next "
				"at %llu; offsets must not fall",
				d->file.path, i, (unsigned long long)d->offsets[i],
				(unsigned long long)d->offsets[i + 1]);
	if (d->offsets[0] != 0 || d->offsets[d->n] != d->images_bytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the offsets run from %llu to %llu; the images have bytes 0 to %zu",
			d->file.path, (unsigned long long)d->offsets[0],
			(unsigned long long)d->offsets[d->n], d->images_bytes);
out:
	mu_data_array_close(&a);
	return st;
}

static enum mu_status read_labels(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	struct mu_data_array labels = {.set = -1, .type = -1}, ids = labels;

	MU_TRY(mu_data_array_open(&d->file, file, &labels, &want_labels));
	MU_TRY(mu_data_array_open(&d->file, file, &ids, &want_ids));
	d->label_width = labels.ndims == 2 ? labels.dims[1] : 1;
	if (labels.dims[0] != d->n || ids.n != d->n || d->label_width == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: %zu images, but %zu rows of %zu labels and %zu ids; all must be as "
			"many, with at least one label each",
			d->file.path, d->n, (size_t)labels.dims[0], d->label_width, ids.n);
	MU_TRY(mu_data_array_read(&d->file, &labels, H5T_NATIVE_FLOAT, (void **)&d->labels));
	MU_TRY(mu_data_array_read(&d->file, &ids, H5T_NATIVE_UINT64, (void **)&d->ids));
	r->info.n = d->n;
	r->info.label_width = d->label_width;
out:
	mu_data_array_close(&labels);
	mu_data_array_close(&ids);
	return st;
}

static enum mu_status read_classes(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	struct mu_data_array a = {.set = -1, .type = -1};
	void *stored = NULL;
	size_t room;

	if (H5Lexists(file, "classes", H5P_DEFAULT) <= 0)
		goto out;
	MU_TRY(mu_data_array_open(&d->file, file, &a, &want_classes));
	if (H5Tis_variable_str(a.type) != 0 || a.item > NAME_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"classes\" is not %s", path, want_classes.text);
	MU_TRY(mu_data_array_read(&d->file, &a, a.type, &stored));
	room = a.item + 1; /* a zero after names of full length */
	MU_TRY(MU_ALLOC(d->class_names, a.n, "class names"));
	MU_TRY(MU_ALLOC(d->names, a.n * room, "class names"));
	for (size_t i = 0; i < a.n; i++) {
		d->class_names[i] = d->names + i * room;
		memcpy(d->names + i * room, (const char *)stored + i * a.item, a.item);
	}
	r->info.classes = a.n;
	r->info.class_names = d->class_names;
out:
	mu_free(stored);
	mu_data_array_close(&a);
	return st;
}

/* Check against the config; a single label without a limit there must be below the number of class
 * names. */
static enum mu_status check_labels(const struct mu_records *r, const struct data_file *d)
{
	enum mu_status st = MU_OK;
	size_t classes = d->label_width == 1 ? r->info.classes : 0;

	for (size_t i = 0; i < d->n; i++) {
		const float *labels = d->labels + i * d->label_width;

		MU_TRY(mu_records_check_labels(r, i, labels, d->label_width));
		if (classes &&
		    (!(*labels >= 0 && *labels < (float)classes) || *labels != floorf(*labels)))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: record %zu (id %llu) has label %g; the file names %zu "
				"classes, "
				"so it must be a whole number below",
				d->file.path, i, (unsigned long long)d->ids[i], (double)*labels,
				classes);
	}
out:
	return st;
}

/* ---- the kind of file ---- */

static bool holds(const struct mu_records_probe *probe)
{
	return (probe->n >= sizeof magic && memcmp(probe->head, magic, sizeof magic) == 0) ||
	       (!probe->folder && mu_stem(probe->path, ".h5"));
}

static enum mu_status read_arrays(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_data_check_format(&d->file, file));
	MU_TRY(open_images(r, d, file));
	if (!d->sample)
		MU_TRY(read_offsets(d, file));
	MU_TRY(read_labels(r, d, file));
	MU_TRY(mu_data_check_images(&d->file, file, d->n, d->sample > 0));
	MU_TRY(read_classes(r, d, file));
	MU_TRY(check_labels(r, d));
out:
	return st;
}

/* HDF5 1.10 reads beyond its memory if metadata without checksums are damaged: allow only formats
 * with checksums. Byte 8 is the version of the superblock; from version 2 on it has one. */
static enum mu_status check_superblock(const struct data_file *d)
{
	enum mu_status st = MU_OK;
	uint8_t head[9] = {0};

	MU_TRY(mu_file_read(&d->file, 0, head, d->file.nbytes < 9 ? d->file.nbytes : 9));
	if (memcmp(head, magic, sizeof magic) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: is not an HDF5 file", d->file.path);
	if (head[8] < 2)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: is in HDF5's old file format (superblock %u), which has no checksums; "
			"h5repack -j 1 makes a new one of a file of im2rec or h5rec; of arrays of "
			"another program numpy.save('x.npy', h5py.File(FILE)['NAME'][:]) makes "
			"files that are read",
			d->file.path, head[8]);
out:
	return st;
}

static enum mu_status open_file(struct mu_records *r, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	struct data_file *d;
	char message[MU_H5_MESSAGE];
	hid_t list = -1, file = -1;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(MU_ALLOC(d, 1, "data file"));
	mu_file_init(&d->file);
	r->impl = d;
	r->info.format = "HDF5";
	MU_TRY(mu_file_open(&d->file, path));
	MU_TRY(check_superblock(d));
	MU_TRY(mu_h5_access_list(path, &list));
	file = H5Fopen(path, H5F_ACC_RDONLY, list);
	if (file < 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: damaged HDF5 file: %s", path, mu_h5_message(message));
	MU_TRY(read_arrays(r, d, file));
out:
	mu_h5_close_read(path, file);
	mu_h5_close_list(list);
	mu_h5_quiet_end(&quiet);
	return st;
}

static void close_file(struct mu_records *r)
{
	struct data_file *d = r->impl;

	mu_file_close(&d->file);
	mu_free(d->offsets);
	mu_free(d->ids);
	mu_free(d->labels);
	mu_free(d->names);
	mu_free(d->class_names);
	mu_free(d);
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;
	const struct data_file *d = r->impl;
	size_t at = d->sample ? i * d->sample : d->offsets[i];
	size_t n = d->sample ? d->sample : d->offsets[i + 1] - d->offsets[i];

	MU_TRY(mu_record_buffer_grow(buffer, 0, n));
	MU_TRY(mu_file_read(&d->file, d->images_at + at, buffer->bytes, n));
	*out = (struct mu_record){
		.data = buffer->bytes,
		.n = n,
		.id = d->ids[i],
		.n_labels = d->label_width,
		.labels = d->labels + i * d->label_width,
	};
out:
	return st;
}

static size_t bound(const struct mu_records *r, size_t i)
{
	const struct data_file *d = r->impl;

	return d->sample ? d->sample : d->offsets[i + 1] - d->offsets[i];
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct data_file *d = r->impl;
	size_t at = d->sample ? i * d->sample : d->offsets[i];

	snprintf(text, nbytes, "%s, record %zu (id %llu) at byte %zu", d->file.path, i,
		 (unsigned long long)d->ids[i], d->images_at + at);
}

static enum mu_status unchanged(const struct mu_records *r)
{
	const struct data_file *d = r->impl;

	return mu_file_unchanged(&d->file);
}

static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct data_file *d = r->impl;

	*listing = mu_hash_block(*listing, d->labels, d->n * d->label_width * sizeof *d->labels);
	if (d->offsets)
		*listing = mu_hash_block(*listing, d->offsets, d->n * sizeof *d->offsets);
	mu_file_hash_time(&d->file, times);
}

const struct mu_records_ops mu_records_data_file = {
	.files = "HDF5 data files (.h5)",
	.holds = holds,
	.open = open_file,
	.close = close_file,
	.read = read_record,
	.bound = bound,
	.where = where,
	.unchanged = unchanged,
	.hash_files = hash_files,
};
