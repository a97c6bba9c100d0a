/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 data files, read. HDF5 is used at the opening only: it gives the small arrays and the byte
 * at which the images begin, and everything is checked there. Images are read by position.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data_file.h"
#include "file.h"
#include "h5.h"
#include "record_io.h"
#include "records.h"

enum { TEXT_BYTES = 256, NAME_BYTES = 4096, CRC_PIECE = 1 << 30 };

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

/* An array of the file: what HDF5 says of it. */
struct array {
	const char *name;
	hid_t set, type;
	int ndims;
	hsize_t dims[H5S_MAX_RANK];
	size_t n;    /* numbers */
	size_t item; /* bytes of one */
};

/* What an array must be. */
struct wanted {
	const char *name, *text; /* text: for messages */
	H5T_class_t class;
	size_t item;  /* bytes; 0: any */
	int ndims[2]; /* one of these */
};

static const struct wanted want_images = {
	"images", "uint8, (bytes) or (n, h, w, c)", H5T_INTEGER, 1, {1, 4}};
static const struct wanted want_offsets = {"offsets", "uint64, (n + 1)", H5T_INTEGER, 8, {1, 1}};
static const struct wanted want_labels = {
	"labels", "float32, (n, label_width)", H5T_FLOAT, 4, {2, 1}};
static const struct wanted want_ids = {"ids", "uint64, (n)", H5T_INTEGER, 8, {1, 1}};
static const struct wanted want_classes = {
	"classes", "texts of fixed length, (classes)", H5T_STRING, 0, {1, 1}};

/* ---- attributes ---- */

/* A text attribute of a file or an array; *found = false if there is none. */
static enum mu_status get_text(const struct data_file *d, hid_t place, const char *name,
			       char text[TEXT_BYTES], bool *found)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	hid_t attribute = -1, type = -1, ours = -1, space = -1;
	htri_t there;

	MU_H5_TRY(path, there = H5Aexists(place, name));
	*found = there > 0;
	if (!there)
		goto out;
	MU_H5_TRY(path, attribute = H5Aopen(place, name, H5P_DEFAULT));
	MU_H5_TRY(path, type = H5Aget_type(attribute));
	MU_H5_TRY(path, space = H5Aget_space(attribute));
	if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
	    H5Tget_size(type) >= TEXT_BYTES || H5Sget_simple_extent_npoints(space) != 1)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: attribute \"%s\" is not one text of fixed length below %d bytes", path,
			name, TEXT_BYTES);
	MU_H5_TRY(path, ours = H5Tcopy(H5T_C_S1));
	MU_H5_TRY(path, H5Tset_size(ours, TEXT_BYTES));
	MU_H5_TRY(path, H5Tset_cset(ours, H5Tget_cset(type)));
	MU_H5_TRY(path, H5Aread(attribute, ours, text));
	text[TEXT_BYTES - 1] = '\0';
out:
	mu_h5_close_space(space);
	mu_h5_close_type(ours);
	mu_h5_close_type(type);
	mu_h5_close_attribute(attribute);
	return st;
}

static enum mu_status check_format(const struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	char text[TEXT_BYTES] = "";
	hid_t attribute = -1, space = -1;
	bool found;
	int version = 0;

	MU_TRY(get_text(d, file, "format", text, &found));
	if (!found || strcmp(text, MU_DATA_FORMAT) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is an HDF5 file, but no data file: its attribute \"format\" is %s%s; "
			"expected " MU_DATA_FORMAT,
			path, found ? "" : "missing", text);
	if (H5Aexists(file, "version") <= 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no attribute \"version\"; expected %d", path,
			MU_DATA_VERSION);
	MU_H5_TRY(path, attribute = H5Aopen(file, "version", H5P_DEFAULT));
	MU_H5_TRY(path, space = H5Aget_space(attribute));
	if (H5Sget_simple_extent_npoints(space) != 1)
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"version\" is not one number", path);
	MU_H5_TRY(path, H5Aread(attribute, H5T_NATIVE_INT, &version));
	if (version != MU_DATA_VERSION)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: is of version %d; this program reads version %d",
			path, version, MU_DATA_VERSION);
out:
	mu_h5_close_space(space);
	mu_h5_close_attribute(attribute);
	return st;
}

/* ---- arrays ---- */

static void close_array(struct array *a)
{
	mu_h5_close_type(a->type);
	mu_h5_close_set(a->set);
	a->set = a->type = -1;
}

/* All its bytes lie in the file, which is checked before memory is asked for. */
static enum mu_status check_stored(const struct data_file *d, const struct array *a)
{
	enum mu_status st = MU_OK;
	size_t nbytes;

	if (__builtin_mul_overflow(a->n, a->item, &nbytes) || nbytes > d->file.nbytes ||
	    H5Dget_storage_size(a->set) < nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" claims %zu numbers of %zu bytes, which are not all in "
			"the file of %zu bytes (truncated, never written, or compressed)",
			d->file.path, a->name, a->n, a->item, d->file.nbytes);
out:
	return st;
}

static enum mu_status open_array(const struct data_file *d, hid_t file, struct array *a,
				 const struct wanted *want)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	hid_t space = -1;

	*a = (struct array){.name = want->name, .set = -1, .type = -1, .n = 1};
	if (H5Lexists(file, want->name, H5P_DEFAULT) <= 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no array \"%s\"; expected %s", path, want->name,
			want->text);
	MU_H5_TRY(path, a->set = H5Dopen2(file, want->name, H5P_DEFAULT));
	MU_H5_TRY(path, a->type = H5Dget_type(a->set));
	MU_H5_TRY(path, space = H5Dget_space(a->set));
	MU_H5_TRY(path, a->ndims = H5Sget_simple_extent_dims(space, a->dims, NULL));
	a->item = H5Tget_size(a->type);
	if (H5Tget_class(a->type) != want->class || (want->item && a->item != want->item) ||
	    (a->ndims != want->ndims[0] && a->ndims != want->ndims[1]))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" has %d dimensions and numbers of %zu bytes; expected %s",
			path, want->name, a->ndims, a->item, want->text);
	for (int i = 0; i < a->ndims; i++)
		if (__builtin_mul_overflow(a->n, a->dims[i], &a->n))
			MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" is larger than any file", path,
				want->name);
	MU_TRY(check_stored(d, a));
out:
	mu_h5_close_space(space);
	return st;
}

static uint32_t crc_of(uint32_t crc, const void *data, size_t nbytes)
{
	for (size_t at = 0; at < nbytes; at += CRC_PIECE) {
		size_t piece = nbytes - at < CRC_PIECE ? nbytes - at : CRC_PIECE;

		crc = (uint32_t)crc32(crc, (const Bytef *)data + at, (uInt)piece);
	}
	return crc;
}

/* The checksum that an array has for an attribute. */
static enum mu_status get_checksum(const struct data_file *d, const struct array *a, bool *found,
				   uint32_t *out)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES] = "";
	unsigned crc = 0;
	char after;

	MU_TRY(get_text(d, a->set, "checksum", text, found));
	if (*found && sscanf(text, "crc32:%8x%c", &crc, &after) != 1)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the checksum of array \"%s\" is \"%.40s\"; expected crc32: and 8 "
			"hexadecimal digits",
			d->file.path, a->name, text);
	*out = crc;
out:
	return st;
}

/* Read an array whole, as `type` has it in memory. */
static enum mu_status read_array(const struct data_file *d, struct array *a, hid_t type, void **out)
{
	enum mu_status st = MU_OK;
	bool found;
	uint32_t want, crc;

	MU_TRY(mu_alloc(out, a->n * a->item, a->name));
	if (a->n)
		MU_H5_TRY(d->file.path, H5Dread(a->set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out));
	MU_TRY(get_checksum(d, a, &found, &want));
	crc = crc_of(0, *out, a->n * a->item);
	if (found && crc != want)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" is damaged: its checksum is %08x; expected %08x",
			d->file.path, a->name, crc, want);
out:
	return st;
}

/* ---- the arrays of a data file ---- */

static enum mu_status take_images(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	struct array a = {.set = -1, .type = -1};
	hid_t list = -1;
	haddr_t at;

	MU_TRY(open_array(d, file, &a, &want_images));
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
	MU_TRY(get_checksum(d, &a, &r->info.has_checksum, &r->info.checksum));
	if (a.ndims == 1)
		goto out;
	d->n = a.dims[0];
	d->sample = a.n / a.dims[0];
	r->info.kind = MU_RECORD_RAW;
	memcpy(r->info.shape, (size_t[3]){a.dims[3], a.dims[1], a.dims[2]}, sizeof r->info.shape);
out:
	mu_h5_close_list(list);
	close_array(&a);
	return st;
}

static enum mu_status take_offsets(struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	struct array a = {.set = -1, .type = -1};

	MU_TRY(open_array(d, file, &a, &want_offsets));
	if (a.n < 2)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"offsets\" has %zu numbers; one more than there are images is "
			"expected, at least 2",
			d->file.path, a.n);
	d->n = a.n - 1;
	MU_TRY(read_array(d, &a, H5T_NATIVE_UINT64, (void **)&d->offsets));
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
	close_array(&a);
	return st;
}

static enum mu_status take_labels(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	struct array labels = {.set = -1, .type = -1}, ids = labels;

	MU_TRY(open_array(d, file, &labels, &want_labels));
	MU_TRY(open_array(d, file, &ids, &want_ids));
	d->label_width = labels.ndims == 2 ? labels.dims[1] : 1;
	if (labels.dims[0] != d->n || ids.n != d->n || d->label_width == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: %zu images, but %zu rows of %zu labels and %zu ids; all must be as "
			"many, with at least one label each",
			d->file.path, d->n, (size_t)labels.dims[0], d->label_width, ids.n);
	MU_TRY(read_array(d, &labels, H5T_NATIVE_FLOAT, (void **)&d->labels));
	MU_TRY(read_array(d, &ids, H5T_NATIVE_UINT64, (void **)&d->ids));
	r->info.n = d->n;
	r->info.label_width = d->label_width;
out:
	close_array(&labels);
	close_array(&ids);
	return st;
}

static enum mu_status take_classes(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;
	const char *path = d->file.path;
	struct array a = {.set = -1, .type = -1};
	hid_t ours = -1;

	if (H5Lexists(file, "classes", H5P_DEFAULT) <= 0)
		goto out;
	MU_TRY(open_array(d, file, &a, &want_classes));
	if (H5Tis_variable_str(a.type) != 0 || a.item > NAME_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"classes\" is not %s", path, want_classes.text);
	a.item++; /* a zero behind names that fill their room */
	MU_TRY(MU_ALLOC(d->class_names, a.n, "class names"));
	MU_TRY(MU_ALLOC(d->names, a.n * a.item, "class names"));
	MU_H5_TRY(path, ours = H5Tcopy(H5T_C_S1));
	MU_H5_TRY(path, H5Tset_size(ours, a.item));
	MU_H5_TRY(path, H5Tset_cset(ours, H5Tget_cset(a.type)));
	if (a.n)
		MU_H5_TRY(path, H5Dread(a.set, ours, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->names));
	for (size_t i = 0; i < a.n; i++) {
		d->class_names[i] = d->names + i * a.item;
		d->names[(i + 1) * a.item - 1] = '\0';
	}
	r->info.classes = a.n;
	r->info.class_names = d->class_names;
out:
	mu_h5_close_type(ours);
	close_array(&a);
	return st;
}

/* As the config wants them; one label without that below the number of class names. */
static enum mu_status check_labels(const struct mu_records *r, const struct data_file *d)
{
	enum mu_status st = MU_OK;
	size_t classes = d->label_width == 1 ? r->info.classes : 0;

	for (size_t i = 0; i < d->n; i++) {
		const float *labels = d->labels + i * d->label_width;

		MU_TRY(mu_records_check_labels(r, i, labels, d->label_width));
		if (classes && !(*labels >= 0 && *labels < (float)classes))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: record %zu (id %llu) has label %g; the file names %zu classes",
				d->file.path, i, (unsigned long long)d->ids[i], (double)*labels,
				classes);
	}
out:
	return st;
}

/* ---- the kind of file ---- */

static bool holds(const struct mu_records_probe *probe)
{
	static const uint8_t magic[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
	size_t n = strlen(probe->path);

	return (probe->n >= sizeof magic && memcmp(probe->head, magic, sizeof magic) == 0) ||
	       (!probe->folder && n > 3 && strcmp(probe->path + n - 3, ".h5") == 0);
}

static enum mu_status take_arrays(struct mu_records *r, struct data_file *d, hid_t file)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_format(d, file));
	MU_TRY(take_images(r, d, file));
	if (!d->sample)
		MU_TRY(take_offsets(d, file));
	MU_TRY(take_labels(r, d, file));
	MU_TRY(take_classes(r, d, file));
	MU_TRY(check_labels(r, d));
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
	if (H5Fis_hdf5(path) <= 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: is not an HDF5 file", path);
	MU_TRY(mu_h5_access_list(path, &list));
	file = H5Fopen(path, H5F_ACC_RDONLY, list);
	if (file < 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: damaged HDF5 file: %s", path, mu_h5_message(message));
	MU_TRY(take_arrays(r, d, file));
out:
	if (file >= 0)
		H5Fclose(file);
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

const struct mu_records_ops mu_records_data_file = {
	.files = "HDF5 data files (.h5)",
	.holds = holds,
	.open = open_file,
	.close = close_file,
	.read = read_record,
	.where = where,
	.unchanged = unchanged,
};
