/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HDF5 data files. Images are first collected in an unnamed file in the same folder, because
 * a contiguous array must be created with its final size. The small arrays are kept in memory. */
#include <muster/records.h>
#include <muster/storage.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data_file.h"
#include "storage/arrays/h5.h"

enum { PIECE_BYTES = 4 << 20, ALIGN_FROM = MU_DATA_ALIGN };

struct mu_data_writer {
	struct mu_data_file_config
		config;               /* names and creator are the caller's until create ends */
	char *path;                   /* as the user gave it; owned */
	char *creator, **class_names; /* owned */
	struct mu_replace replace;
	FILE *images;  /* an unnamed file */
	size_t nbytes; /* of the images */
	uint32_t crc;  /* of the images */
	size_t sample; /* bytes of a raw image, 0: encoded */
	size_t n, capacity, label_width;
	uint64_t *offsets, *ids; /* offsets: ends of the images; owned */
	float *labels;           /* owned */
};

/* ---- begin ---- */

static enum mu_status copy_names(struct mu_data_writer *w)
{
	enum mu_status st = MU_OK;
	const struct mu_data_file_config *c = &w->config;

	w->creator = strdup(c->creator ? c->creator : "unknown");
	if (c->class_names && c->classes)
		w->class_names = calloc(c->classes, sizeof *w->class_names);
	if (!w->creator || (c->class_names && c->classes && !w->class_names))
		MU_FAIL(MU_ERR_MEMORY, "no memory for names");
	for (size_t i = 0; w->class_names && i < c->classes; i++) {
		w->class_names[i] = strdup(c->class_names[i]);
		if (!w->class_names[i])
			MU_FAIL(MU_ERR_MEMORY, "no memory for class names");
	}
out:
	return st;
}

static enum mu_status open_images(struct mu_data_writer *w, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_replace unnamed = {0};

	MU_TRY(mu_replace_begin(&unnamed, path));
	w->images = fopen(unnamed.written, "w+be");
	if (!w->images)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
out:
	mu_replace_release(&unnamed); /* removes its name */
	return st;
}

enum mu_status mu_data_file_create(struct mu_data_writer **out, const char *path,
				   const struct mu_data_file_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_data_writer *w = NULL;
	char text[MU_SAMPLE_TEXT];
	const struct mu_picture p = mu_sample_picture(&config->shape);

	MU_TRY(MU_ALLOC(w, 1, "data file"));
	w->config = *config;
	if (config->kind == MU_RECORD_RAW &&
	    (config->shape.ndims != 4 || __builtin_mul_overflow(p.c, p.h, &w->sample) ||
	     __builtin_mul_overflow(w->sample, p.w, &w->sample) || w->sample == 0))
		MU_FAIL(MU_ERR_ARGUMENT, "%s: raw images of shape %s cannot be", path,
			mu_sample_text(&config->shape, ", ", text, sizeof text));
	MU_TRY(copy_names(w));
	MU_TRY(open_images(w, path));
	MU_TRY(mu_replace_begin(&w->replace, path));
	w->path = w->replace.path;
out:
	if (st != MU_OK) {
		mu_data_file_finish(w, false);
		w = NULL;
	}
	*out = w;
	return st;
}

/* ---- records ---- */

/* Grow *array to n numbers of nbytes each. */
static enum mu_status grow(void **array, size_t n, size_t nbytes)
{
	enum mu_status st = MU_OK;
	void *bytes = realloc(*array, n * nbytes);

	if (!bytes)
		MU_FAIL(MU_ERR_MEMORY, "no memory for %zu records", n);
	*array = bytes;
out:
	return st;
}

static enum mu_status make_room(struct mu_data_writer *w)
{
	enum mu_status st = MU_OK;
	size_t n = w->capacity ? 2 * w->capacity : 1024;

	if (w->n < w->capacity)
		goto out;
	MU_TRY(grow((void **)&w->offsets, n, sizeof *w->offsets));
	MU_TRY(grow((void **)&w->ids, n, sizeof *w->ids));
	MU_TRY(grow((void **)&w->labels, n * w->label_width, sizeof *w->labels));
	w->capacity = n;
out:
	return st;
}

enum mu_status mu_data_file_write(struct mu_data_writer *w, const struct mu_record *record)
{
	enum mu_status st = MU_OK;
	unsigned long long id = record->id;

	if (w->n == 0)
		w->label_width = record->n_labels;
	if (record->n_labels != w->label_width || w->label_width == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: record of id %llu has %zu labels, the first one %zu; an HDF5 data "
			"file needs as many for all, at least one",
			w->path, id, record->n_labels, w->label_width);
	if (w->sample && record->n != w->sample)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: record of id %llu has %zu bytes; expected %zu",
			w->path, id, record->n, w->sample);
	MU_TRY(make_room(w));
	if (record->n && fwrite(record->data, 1, record->n, w->images) != record->n)
		MU_FAIL(MU_ERR_IO, "%s: images cannot be written: %s", w->path, strerror(errno));
	w->crc = (uint32_t)crc32_z(w->crc, record->data, record->n);
	w->nbytes += record->n;
	w->offsets[w->n] = w->nbytes;
	w->ids[w->n] = record->id;
	memcpy(w->labels + w->n * w->label_width, record->labels,
	       w->label_width * sizeof *w->labels);
	w->n++;
out:
	return st;
}

/* ---- attributes ---- */

static enum mu_status set_attribute(const struct mu_data_writer *w, hid_t place, const char *name,
				    hid_t type, const void *value)
{
	enum mu_status st = MU_OK;
	hid_t space = -1, attribute = -1;

	MU_H5_TRY(w->path, space = H5Screate(H5S_SCALAR));
	MU_H5_TRY(w->path,
		  attribute = H5Acreate2(place, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
	MU_H5_TRY(w->path, H5Awrite(attribute, type, value));
out:
	mu_h5_close_attribute(attribute);
	mu_h5_close_space(space);
	return st;
}

static enum mu_status set_text(const struct mu_data_writer *w, hid_t place, const char *name,
			       const char *text)
{
	enum mu_status st = MU_OK;
	hid_t type = -1;

	MU_H5_TRY(w->path, type = H5Tcopy(H5T_C_S1));
	MU_H5_TRY(w->path, H5Tset_size(type, strlen(text) + 1));
	MU_TRY(set_attribute(w, place, name, type, text));
out:
	mu_h5_close_type(type);
	return st;
}

static enum mu_status set_file_attributes(const struct mu_data_writer *w, hid_t file)
{
	enum mu_status st = MU_OK;
	int version = MU_DATA_VERSION;
	uint64_t n = w->n;

	MU_TRY(set_text(w, file, "format", MU_DATA_FORMAT));
	MU_TRY(set_attribute(w, file, "version", H5T_STD_I32LE, &version));
	MU_TRY(set_text(w, file, "kind", w->sample ? "raw" : "encoded"));
	MU_TRY(set_attribute(w, file, "count", H5T_STD_U64LE, &n));
	MU_TRY(set_text(w, file, "creator", w->creator));
	MU_TRY(set_text(w, file, "checksum", MU_DATA_CHECKSUM_HELP));
out:
	return st;
}

/* ---- arrays ---- */

struct new_array {
	const char *name, *units;
	hid_t type;
	int ndims;
	hsize_t dims[4];
	const void *data; /* NULL: written later, at *at of the file */
	size_t nbytes;
	uint32_t crc; /* if data is NULL */
	haddr_t *at;
};

static enum mu_status put_array(const struct mu_data_writer *w, hid_t file,
				const struct new_array *a)
{
	enum mu_status st = MU_OK;
	hid_t list = -1, space = -1, set = -1;
	char text[32];
	uint32_t crc = a->data ? (uint32_t)crc32_z(0, a->data, a->nbytes) : a->crc;

	MU_H5_TRY(w->path, list = H5Pcreate(H5P_DATASET_CREATE));
	MU_H5_TRY(w->path, H5Pset_obj_track_times(list, false));
	MU_H5_TRY(w->path, H5Pset_layout(list, H5D_CONTIGUOUS));
	MU_H5_TRY(w->path, H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
	MU_H5_TRY(w->path, H5Pset_fill_time(list, H5D_FILL_TIME_NEVER));
	MU_H5_TRY(w->path, space = H5Screate_simple(a->ndims, a->dims, NULL));
	MU_H5_TRY(w->path,
		  set = H5Dcreate2(file, a->name, a->type, space, H5P_DEFAULT, list, H5P_DEFAULT));
	snprintf(text, sizeof text, "crc32:%08x", crc);
	MU_TRY(set_text(w, set, "units", a->units));
	MU_TRY(set_text(w, set, "checksum", text));
	if (a->data)
		MU_H5_TRY(w->path, H5Dwrite(set, a->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->data));
	else
		*a->at = H5Dget_offset(set);
out:
	mu_h5_close_set(set);
	mu_h5_close_space(space);
	mu_h5_close_list(list);
	return st;
}

static enum mu_status put_images(const struct mu_data_writer *w, hid_t file, haddr_t *at)
{
	const struct mu_picture p = mu_sample_picture(&w->config.shape);
	struct new_array images = {
		.name = "images",
		.units = w->sample ? "1 (pixel values from 0 to 255)" : "bytes",
		.type = H5T_STD_U8LE,
		.ndims = w->sample ? 4 : 1,
		.dims = {w->sample ? w->n : w->nbytes, p.h, p.w, p.c},
		.nbytes = w->nbytes,
		.crc = w->crc,
		.at = at,
	};

	return put_array(w, file, &images);
}

/* The file stores where images start; the writer, where they end. */
static enum mu_status put_offsets(const struct mu_data_writer *w, hid_t file)
{
	enum mu_status st = MU_OK;
	uint64_t *begins = NULL;
	struct new_array offsets = {.name = "offsets",
				    .units = "bytes",
				    .type = H5T_STD_U64LE,
				    .ndims = 1,
				    .dims = {w->n + 1}};

	MU_TRY(MU_ALLOC(begins, w->n + 1, "offsets"));
	memcpy(begins + 1, w->offsets, w->n * sizeof *begins);
	offsets.data = begins;
	offsets.nbytes = (w->n + 1) * sizeof *begins;
	MU_TRY(put_array(w, file, &offsets));
out:
	mu_free(begins);
	return st;
}

static enum mu_status put_labels(const struct mu_data_writer *w, hid_t file)
{
	enum mu_status st = MU_OK;
	struct new_array labels = {
		.name = "labels",
		.units = "1 (number of a class, or a value)",
		.type = H5T_IEEE_F32LE,
		.ndims = 2,
		.dims = {w->n, w->label_width},
		.data = w->labels,
		.nbytes = w->n * w->label_width * sizeof *w->labels,
	};
	struct new_array ids = {
		.name = "ids",
		.units = "1",
		.type = H5T_STD_U64LE,
		.ndims = 1,
		.dims = {w->n},
		.data = w->ids,
		.nbytes = w->n * sizeof *w->ids,
	};

	MU_TRY(put_array(w, file, &labels));
	MU_TRY(put_array(w, file, &ids));
out:
	return st;
}

static enum mu_status put_classes(const struct mu_data_writer *w, hid_t file)
{
	enum mu_status st = MU_OK;
	size_t n = w->config.classes, room = 1;
	char *text = NULL;
	struct new_array names = {
		.name = "classes", .units = "text", .type = -1, .ndims = 1, .dims = {n}};

	if (!w->class_names)
		goto out;
	for (size_t i = 0; i < n; i++)
		if (strlen(w->class_names[i]) + 1 > room)
			room = strlen(w->class_names[i]) + 1;
	MU_TRY(MU_ALLOC(text, n * room, "class names"));
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * room, w->class_names[i], strlen(w->class_names[i]));
	MU_H5_TRY(w->path, names.type = H5Tcopy(H5T_C_S1));
	MU_H5_TRY(w->path, H5Tset_size(names.type, room));
	names.data = text;
	names.nbytes = n * room;
	MU_TRY(put_array(w, file, &names));
out:
	mu_h5_close_type(names.type);
	mu_free(text);
	return st;
}

/* ---- end ---- */

static enum mu_status put_arrays(struct mu_data_writer *w, haddr_t *at)
{
	enum mu_status st = MU_OK;
	hid_t list = -1, create = -1, file = -1, done;

	MU_TRY(mu_h5_access_list(w->path, &list));
	/* From this format on HDF5's metadata have checksums, which its reader checks first. */
	MU_H5_TRY(w->path, H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_LATEST));
	MU_H5_TRY(w->path, H5Pset_alignment(list, ALIGN_FROM, MU_DATA_ALIGN));
	MU_H5_TRY(w->path, create = H5Pcreate(H5P_FILE_CREATE));
	MU_H5_TRY(w->path, H5Pset_obj_track_times(create, false));
	MU_H5_TRY(w->path, file = H5Fcreate(w->replace.written, H5F_ACC_TRUNC, create, list));
	MU_TRY(set_file_attributes(w, file));
	if (!w->sample)
		MU_TRY(put_offsets(w, file));
	MU_TRY(put_labels(w, file));
	MU_TRY(put_classes(w, file));
	MU_TRY(put_images(w, file, at));
	if (*at == HADDR_UNDEF)
		MU_FAIL(MU_ERR_IO, "%s: HDF5 allocated no space for the images", w->path);
	done = file;
	file = -1; /* closed, whatever the result */
	MU_TRY(mu_h5_close_written(w->path, done));
out:
	mu_h5_give_up(file);
	mu_h5_close_list(create);
	mu_h5_close_list(list);
	return st;
}

/* Copy the images to their place in the file, at byte `at`. */
static enum mu_status copy_images(struct mu_data_writer *w, size_t at)
{
	enum mu_status st = MU_OK;
	uint8_t *piece = NULL;
	FILE *file = fopen(w->replace.written, "r+be");
	size_t n;

	if (!file || fseeko(file, (off_t)at, SEEK_SET) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be opened: %s", w->path,
			strerror(errno));
	MU_TRY(MU_ALLOC(piece, PIECE_BYTES, "images"));
	if (fflush(w->images) != 0 || fseeko(w->images, 0, SEEK_SET) != 0)
		MU_FAIL(MU_ERR_IO, "%s: images cannot be written: %s", w->path, strerror(errno));
	for (size_t left = w->nbytes; left > 0; left -= n) {
		n = left < PIECE_BYTES ? left : PIECE_BYTES;
		if (fread(piece, 1, n, w->images) != n || fwrite(piece, 1, n, file) != n)
			MU_FAIL(MU_ERR_IO, "%s: images cannot be copied: %s", w->path,
				strerror(errno));
	}
out:
	if (file && fclose(file) != 0 && st == MU_OK)
		st = mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "%s: cannot be written: %s",
				    w->path, strerror(errno));
	mu_free(piece);
	return st;
}

static void free_writer(struct mu_data_writer *w)
{
	if (w->images)
		fclose(w->images);
	for (size_t i = 0; w->class_names && i < w->config.classes; i++)
		free(w->class_names[i]);
	free(w->class_names);
	free(w->creator);
	free(w->offsets);
	free(w->ids);
	free(w->labels);
	mu_replace_release(&w->replace);
	mu_free(w);
}

enum mu_status mu_data_file_finish(struct mu_data_writer *w, bool commit)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	haddr_t at = HADDR_UNDEF;

	if (!w)
		return MU_OK;
	mu_h5_quiet_begin(&quiet);
	if (!commit)
		goto out;
	if (w->n == 0 || w->nbytes == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: no images to write", w->path);
	MU_TRY(put_arrays(w, &at));
	MU_TRY(copy_images(w, at));
	MU_TRY(mu_replace_commit(&w->replace));
out:
	free_writer(w);
	mu_h5_quiet_end(&quiet);
	return st;
}
