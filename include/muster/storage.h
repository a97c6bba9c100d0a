/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage: files. IDX (the MNIST format), HDF5 files of named arrays, atomic replacement. Errors
 * name the file, the value found and the value expected. Not collective.
 *
 * HDF5 closes nothing at exit if the process calls one of these functions before HDF5 itself
 * (H5dont_atexit: its handler crashes after a full disk). Close your own HDF5 files.
 */
#ifndef MUSTER_STORAGE_H
#define MUSTER_STORAGE_H

#include <muster/base.h>

MU_BEGIN_C

/*
 * ---- atomic replacement of a file: write under a temporary name in the same folder, then rename.
 * At any time the name refers to the complete old file or the complete new one, also if the job is
 * killed. ----
 */

struct mu_replace {
	char *path;      /* owned */
	char *temporary; /* name of the new file; owned; NULL if there is nothing to remove */
	char *written;   /* what to open for writing; owned */
	FILE *stream;    /* the new file, open for writing; owned; NULL without _open */
	int fd;          /* of the new file, while temporary is not NULL; -1: closed */
};

/*
 * Create an empty file of a temporary name. In a folder where others may write, its name can become
 * a link to any file before it is opened again. So the descriptor is kept until the rename: callers
 * open `written`, which leads to the descriptor's file (this process only), and _commit fails
 * if the name is another file's by then. MU_ERR_IO: path is a device or a pipe, the temporary name
 * is taken, or the file cannot be created.
 */
enum mu_status mu_replace_begin(struct mu_replace *r, const char *path);
/* The same, and create the file, to be written through r->stream. MU_ERR_IO on failure. */
enum mu_status mu_replace_open(struct mu_replace *r, const char *path);
/* Is path one of the files of a list, "a;b", under whatever name? */
bool mu_replace_is_among(const char *path, const char *list);
/* Sync the complete temporary file and rename it. Closes r->stream; MU_ERR_IO if data could not be
 * written, which some file systems tell when the file is closed. */
enum mu_status mu_replace_commit(struct mu_replace *r);
/* Free; without a commit, close and remove the temporary file. */
void mu_replace_release(struct mu_replace *r);

/* Open a plain file for reading. MU_ERR_IO: it cannot be opened, or is a device or a pipe, for
 * which a rank would wait. */
enum mu_status mu_stream_open(FILE **out, const char *path);
/* The first bytes of a plain file; fewer than nbytes of a shorter one, 0 if it cannot be opened. */
size_t mu_stream_head(const char *path, void *head, size_t nbytes);
/* Are there two such files, and are they one, under whatever names? */
bool mu_file_is_same(const char *a, const char *b);
/* Open a plain file for writing at its end; it is made, or emptied unless it is kept. MU_ERR_IO as
 * above. */
enum mu_status mu_stream_append(FILE **out, const char *path, bool keep);

/* Create a folder and its missing parents. MU_ERR_IO: a folder cannot be created, is a file, or the
 * last one is not writable. */
enum mu_status mu_folder_make(const char *path);

/* ---- IDX: big-endian magic 0 0 type ndims, ndims sizes, data. Only type 0x08 (unsigned byte).
 * Plain or gzip. ---- */

struct mu_idx {
	int ndims;
	size_t dims[4];
	uint8_t *data; /* dims[0] * dims[1] * ... bytes; owned */
};

/*
 * path as given, or path with ".gz" appended. ndims: the expected number. MU_ERR_IO, MU_ERR_FORMAT.
 */
enum mu_status mu_idx_read(struct mu_idx *idx, const char *path, int ndims);
/* The same without the data: idx->data is NULL. */
enum mu_status mu_idx_read_header(struct mu_idx *idx, const char *path, int ndims);
void mu_idx_release(struct mu_idx *idx);
/* Written under a temporary name and renamed; gzip if path ends in ".gz" (without a time stamp, so
 * equal data give equal bytes). */
enum mu_status mu_idx_write(const char *path, const struct mu_idx *idx);

/* ---- HDF5: a file of named float32 arrays, in order ---- */

struct mu_array_file;

/* Does this build have HDF5? If not, the functions below fail with MU_ERR_UNSUPPORTED. */
bool mu_array_file_supported(void);
/* "1.10.8 (parallel)" or "not built in" */
const char *mu_array_file_version(void);
/* Create under a temporary name in the same folder; mu_array_file_close with commit = true syncs
 * and renames the file. */
enum mu_status mu_array_file_create(struct mu_array_file **out, const char *path);
enum mu_status mu_array_file_open(struct mu_array_file **out, const char *path);
/* Open only if the metadata have checksums, as in all files of this library, so that HDF5 never
 * reads damaged metadata. */
enum mu_status mu_array_file_open_checked(struct mu_array_file **out, const char *path);
/* Does an array or a group of this name exist? */
enum mu_status mu_array_file_has(struct mu_array_file *f, const char *name, bool *found);
/* Write array "group/name", e.g. "arg/convolution0_weight"; contiguous, float32. */
enum mu_status mu_array_file_write(struct mu_array_file *f, const char *name, int ndims,
				   const size_t *dims, const float *data);
/*
 * dims must match the file: MU_ERR_FORMAT names both. If the array has a checksum, it is checked.
 */
enum mu_status mu_array_file_read(struct mu_array_file *f, const char *name, int ndims,
				  const size_t *dims, float *data);
/* Has the file, of any name, HDF5's first bytes? MU_ERR_IO: it cannot be read. */
enum mu_status mu_array_file_is(const char *path, bool *is);
enum mu_status mu_array_file_set_text(struct mu_array_file *f, const char *attribute,
				      const char *text);
enum mu_status mu_array_file_has_text(struct mu_array_file *f, const char *attribute, bool *found);
enum mu_status mu_array_file_get_text(struct mu_array_file *f, const char *attribute, char *text,
				      size_t nbytes);
/* The same; "" if the file has no such text, or one that is longer. */
enum mu_status mu_array_file_find_text(struct mu_array_file *f, const char *attribute, char *text,
				       size_t nbytes);
/* The same, of any length, to be freed by mu_free; NULL if there is none. */
enum mu_status mu_array_file_read_text(struct mu_array_file *f, const char *attribute, char **text);
/* Room that mu_array_file_get_text needs. */
enum mu_status mu_array_file_text_bytes(struct mu_array_file *f, const char *attribute,
					size_t *nbytes);
enum mu_status mu_array_file_close(struct mu_array_file *f, bool commit);

/*
 * Arrays whose contents are written directly into the file by pwrite, by one or several processes
 * and any thread. _define creates a contiguous float32 array and returns its offset; the i-th array
 * defined has checksum i. _detach closes the file, which keeps its temporary name, and frees f
 * whatever it returns; *checksums is the offset of the uint32 checksums of all defined arrays.
 * After all data is written the caller calls mu_replace_commit, or only mu_replace_release to give
 * up.
 */
enum mu_status mu_array_file_define(struct mu_array_file *f, const char *name, int ndims,
				    const size_t *dims, uint64_t *offset);
enum mu_status mu_array_file_detach(struct mu_array_file *f, struct mu_replace *replace,
				    uint64_t *checksums);
/* Call fn for every float32 array, groups in the order of their names; name is the full path. An
 * error of fn ends the iteration and is returned. */
typedef enum mu_status mu_array_fn(void *context, const char *name, int ndims, const size_t *dims);
enum mu_status mu_array_file_each(struct mu_array_file *f, mu_array_fn *fn, void *context);
/* The arrays that it passes over, for their numbers are no floats. */
struct mu_array_others {
	size_t n;
	char first[256]; /* its name, to be shown */
};
enum mu_status mu_array_file_others(struct mu_array_file *f, struct mu_array_others *others);
/* Read all arrays that were saved with checksums: MU_ERR_FORMAT if one is damaged or missing. */
enum mu_status mu_array_file_verify(struct mu_array_file *f);
/* CRC-32 (zlib's crc32) of data, continued from `before` (0: start). */
uint32_t mu_checksum(uint32_t before, const void *data, size_t nbytes);

/*
 * ---- MXNet's .params files: arrays with names such as "arg:fc1_weight". Reads dense arrays of
 * float32, float64 and float16, as written by MXNet 0.7 to 1.9. The contents are checked when the
 * file is opened; errors (MU_ERR_FORMAT) name the byte. ----
 */

enum { MU_PARAMS_NDIMS = 8 };

struct mu_params_array {
	char name[200];
	int ndims;
	size_t dims[MU_PARAMS_NDIMS];
};

struct mu_params;

enum mu_status mu_params_open(struct mu_params **out, const char *path);
void mu_params_close(struct mu_params *p);
size_t mu_params_n(const struct mu_params *p);
const struct mu_params_array *mu_params_array(const struct mu_params *p, size_t i);
size_t mu_params_elements(const struct mu_params_array *array);
/* Read array i as float32, mu_params_elements numbers. */
enum mu_status mu_params_read(const struct mu_params *p, size_t i, float *data);
/* Write a file in the format of MXNet 0.12 and later. fn fills data with the numbers of an array;
 * it is called once for each array, in order. Written under a temporary name and renamed. */
typedef enum mu_status mu_params_fn(void *context, const struct mu_params_array *array,
				    float *data);
enum mu_status mu_params_write(const char *path, size_t n, const struct mu_params_array *arrays,
			       mu_params_fn *fn, void *context);

/*
 * ---- safetensors (huggingface.co/docs/safetensors): a header of JSON with the name, type, shape
 * and place of each array, then their numbers. Everything is checked when the file is opened: no
 * array may leave the file, overlap another or leave a hole. ----
 */

struct mu_safetensors;

/* path: a file, an index of several that lie beside it (.json), or a folder with model.safetensors
 * or model.safetensors.index.json. MU_ERR_FORMAT names what is wrong. */
enum mu_status mu_safetensors_open(struct mu_safetensors **out, const char *path);
void mu_safetensors_close(struct mu_safetensors *s);
size_t mu_safetensors_n(const struct mu_safetensors *s);
/* Array i; ndims may be 0, of one number. */
const struct mu_params_array *mu_safetensors_array(const struct mu_safetensors *s, size_t i);
/* Read array i as float32. MU_ERR_UNSUPPORTED unless it has F32, F16, BF16 or F64. */
enum mu_status mu_safetensors_read(const struct mu_safetensors *s, size_t i, float *data);
/* Write float32 arrays as mu_params_write does, with the metadata that PyTorch expects. */
enum mu_status mu_safetensors_write(const char *path, size_t n,
				    const struct mu_params_array *arrays, mu_params_fn *fn,
				    void *context);

/*
 * ---- settings in a JSON file, such as a model's config.json. Members of objects inside have names
 * such as "size.height"; values are a number, true, false, null, {} (an object without members), a
 * text in quotes, or an array such as [16,16]; at most 255 letters of each. ----
 */
typedef enum mu_status mu_setting_fn(void *context, const char *name, const char *value);
/* Call fn for every member; its error ends that. *there: false: no such file. MU_ERR_FORMAT: no
 * JSON object, or one with two members of a name. */
enum mu_status mu_settings_each(const char *path, mu_setting_fn *fn, void *context, bool *there);
/* The same for what is in one member alone: of an array the elements, by their numbers from 0 on;
 * of an object its members, without the object's name. A text comes whole and without quotes. It is
 * no error if the file or the member is not there. */
enum mu_status mu_settings_within(const char *path, const char *member, mu_setting_fn *fn,
				  void *context);

MU_END_C

#endif
