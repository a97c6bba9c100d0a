/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage: files. IDX (the MNIST format), HDF5 files of named arrays, atomic replacement. Errors
 * name the file, what was found and what was expected. Not collective.
 */
#ifndef MUSTER_STORAGE_H
#define MUSTER_STORAGE_H

#include <muster/base.h>

/*
 * ---- atomic replacement of a file: write under a temporary name in the same folder, then rename.
 * A reader, or a job that is killed at any time, meets the old file or the new one, never a part.
 * ----
 */

struct mu_replace {
	char *path;      /* owned */
	char *temporary; /* the name to write to; owned; NULL when there is nothing to remove */
	FILE *stream;    /* the temporary file, open for writing; owned; NULL without _open */
};

/* Choose the temporary name; creates nothing. */
enum mu_status mu_replace_begin(struct mu_replace *r, const char *path);
/* The same, and creates it, to be written through r->stream. MU_ERR_IO if that cannot be. */
enum mu_status mu_replace_open(struct mu_replace *r, const char *path);
/*
 * The temporary file is complete: bring it to the disk and rename it. r->stream is closed, and what
 * could not be written through it is MU_ERR_IO.
 */
enum mu_status mu_replace_commit(struct mu_replace *r);
/* Free; without a commit also close and remove the temporary file. */
void mu_replace_release(struct mu_replace *r);

/* Make a folder, and those that it lies in, where they are not there. MU_ERR_IO: one cannot be
 * made, is a file, or the last one cannot be written to. */
enum mu_status mu_folder_make(const char *path);

/* ---- IDX: big-endian magic 0 0 type ndims, ndims sizes, data. Only type 0x08 (unsigned byte).
 * Plain or gzip. ---- */

struct mu_idx {
	int ndims;
	size_t dims[4];
	uint8_t *data; /* dims[0] * dims[1] * ... bytes; owned */
};

/* path as given, or path with ".gz" appended. MU_ERR_IO, MU_ERR_FORMAT. ndims: what it must have.
 */
enum mu_status mu_idx_read(struct mu_idx *idx, const char *path, int ndims);
void mu_idx_release(struct mu_idx *idx);
/* Written to a temporary name and renamed; gzip if path ends in ".gz" (same bytes for the same
 * data: no time stamp). */
enum mu_status mu_idx_write(const char *path, const struct mu_idx *idx);

/* ---- HDF5: a file of named float32 arrays, in order ---- */

struct mu_array_file;

/* true if this build has HDF5; without, the functions below fail with MU_ERR_UNSUPPORTED. */
bool mu_array_file_supported(void);
/* "1.10.8 (parallel)" or "not built in" */
const char *mu_array_file_version(void);
/* Created under a temporary name in the same folder; mu_array_file_close with commit = true syncs
 * and renames it. */
enum mu_status mu_array_file_create(struct mu_array_file **out, const char *path);
enum mu_status mu_array_file_open(struct mu_array_file **out, const char *path);
/* The same for files whose metadata must have checksums, which all that this library writes have: a
 * damaged one is never given to HDF5. */
enum mu_status mu_array_file_open_checked(struct mu_array_file **out, const char *path);
/* Is there an array, or a group, of this name? */
enum mu_status mu_array_file_has(struct mu_array_file *f, const char *name, bool *found);
/* group/name, e.g. "arg/convolution0_weight"; dims as given. Contiguous, float32. */
enum mu_status mu_array_file_write(struct mu_array_file *f, const char *name, int ndims,
				   const size_t *dims, const float *data);
/* dims must be what the file has: MU_ERR_FORMAT names both. An array with a checksum is compared
 * with it. */
enum mu_status mu_array_file_read(struct mu_array_file *f, const char *name, int ndims,
				  const size_t *dims, float *data);
enum mu_status mu_array_file_set_text(struct mu_array_file *f, const char *attribute,
				      const char *text);
enum mu_status mu_array_file_has_text(struct mu_array_file *f, const char *attribute, bool *found);
enum mu_status mu_array_file_get_text(struct mu_array_file *f, const char *attribute, char *text,
				      size_t nbytes);
enum mu_status mu_array_file_close(struct mu_array_file *f, bool commit);

/*
 * Arrays whose contents others write, with pwrite, into the file itself: this process or several,
 * any thread. _define makes a contiguous float32 array and tells its place; the i-th one defined
 * has checksum i. _detach closes the file, which keeps its temporary name, and frees f whatever it
 * returns; at *checksums there is room for the uint32 checksums of all arrays defined. Once all is
 * written the caller calls mu_replace_commit, or, to give up, mu_replace_release alone.
 */
enum mu_status mu_array_file_define(struct mu_array_file *f, const char *name, int ndims,
				    const size_t *dims, uint64_t *offset);
enum mu_status mu_array_file_detach(struct mu_array_file *f, struct mu_replace *replace,
				    uint64_t *checksums);
/*
 * Call fn for every float32 array, groups in the order of their names; the name is the whole one.
 * An error of fn ends it, and is returned.
 */
typedef enum mu_status mu_array_fn(void *context, const char *name, int ndims, const size_t *dims);
enum mu_status mu_array_file_each(struct mu_array_file *f, mu_array_fn *fn, void *context);
/* Read all arrays that were saved with checksums: MU_ERR_FORMAT if one is damaged or missing. */
enum mu_status mu_array_file_verify(struct mu_array_file *f);
/* CRC-32, as zlib's crc32, of what came before (0: nothing) and data. */
uint32_t mu_checksum(uint32_t before, const void *data, size_t nbytes);

/*
 * ---- MXNet's .params files: arrays with names such as "arg:fc1_weight". Read are dense arrays of
 * float32, float64 and float16, as MXNet 0.7 to 1.9 writes them; what is in a file is tested when
 * it is opened, and errors (MU_ERR_FORMAT) name the byte. ----
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
/* Array i as float32, mu_params_elements of them. */
enum mu_status mu_params_read(const struct mu_params *p, size_t i, float *data);
/*
 * Write such a file, as MXNet from 0.12 on; fn puts an array's numbers into data, and is called
 * once for each in their order. Written to a temporary name and renamed.
 */
typedef enum mu_status mu_params_fn(void *context, const struct mu_params_array *array,
				    float *data);
enum mu_status mu_params_write(const char *path, size_t n, const struct mu_params_array *arrays,
			       mu_params_fn *fn, void *context);

#endif
