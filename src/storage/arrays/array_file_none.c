/* SPDX-License-Identifier: Apache-2.0 */
/* Files of named arrays in a build without HDF5: every function returns an error. Built instead of
 * array_file.c. */
#include <muster/storage.h>

static enum mu_status refuse(const char *what)
{
	enum mu_status st = MU_OK;

	MU_FAIL(MU_ERR_UNSUPPORTED,
		"%s: this build has no HDF5; configure with --with-hdf5=DIR, or install parallel "
		"HDF5",
		what);
out:
	return st;
}

bool mu_array_file_supported(void)
{
	return false;
}

const char *mu_array_file_version(void)
{
	return "not built in";
}

enum mu_status mu_array_file_create(struct mu_array_file **out, const char *path)
{
	*out = NULL;
	return refuse(path);
}

enum mu_status mu_array_file_open(struct mu_array_file **out, const char *path)
{
	*out = NULL;
	return refuse(path);
}

enum mu_status mu_array_file_write(struct mu_array_file *f, const char *name, int ndims,
				   const size_t *dims, const float *data)
{
	(void)f;
	(void)ndims;
	(void)dims;
	(void)data;
	return refuse(name);
}

enum mu_status mu_array_file_read(struct mu_array_file *f, const char *name, int ndims,
				  const size_t *dims, float *data)
{
	(void)f;
	(void)ndims;
	(void)dims;
	(void)data;
	return refuse(name);
}

enum mu_status mu_array_file_set_text(struct mu_array_file *f, const char *attribute,
				      const char *text)
{
	(void)f;
	(void)text;
	return refuse(attribute);
}

enum mu_status mu_array_file_has_text(struct mu_array_file *f, const char *attribute, bool *found)
{
	(void)f;
	*found = false;
	return refuse(attribute);
}

enum mu_status mu_array_file_text_bytes(struct mu_array_file *f, const char *attribute,
					size_t *nbytes)
{
	(void)f;
	*nbytes = 0;
	return refuse(attribute);
}

enum mu_status mu_array_file_get_text(struct mu_array_file *f, const char *attribute, char *text,
				      size_t nbytes)
{
	(void)f;
	if (nbytes > 0)
		*text = '\0';
	return refuse(attribute);
}

enum mu_status mu_array_file_close(struct mu_array_file *f, bool commit)
{
	(void)f;
	(void)commit;
	return MU_OK; /* create and open never return one */
}

enum mu_status mu_array_file_open_checked(struct mu_array_file **out, const char *path)
{
	return mu_array_file_open(out, path);
}

enum mu_status mu_array_file_has(struct mu_array_file *f, const char *name, bool *found)
{
	(void)f;
	*found = false;
	return refuse(name);
}

enum mu_status mu_array_file_define(struct mu_array_file *f, const char *name, int ndims,
				    const size_t *dims, uint64_t *offset)
{
	(void)f;
	(void)ndims;
	(void)dims;
	*offset = 0;
	return refuse(name);
}

enum mu_status mu_array_file_detach(struct mu_array_file *f, struct mu_replace *replace,
				    uint64_t *checksums)
{
	(void)f;
	*replace = (struct mu_replace){0};
	*checksums = 0;
	return refuse("file");
}

uint32_t mu_checksum(uint32_t before, const void *data, size_t nbytes)
{
	(void)data;
	(void)nbytes;
	return before; /* no file is ever written */
}

enum mu_status mu_array_file_others(struct mu_array_file *f, struct mu_array_others *others)
{
	(void)f;
	(void)others;
	return refuse("file");
}

enum mu_status mu_array_file_each(struct mu_array_file *f, mu_array_fn *fn, void *context)
{
	(void)f;
	(void)fn;
	(void)context;
	return refuse("file");
}

enum mu_status mu_array_file_verify(struct mu_array_file *f)
{
	(void)f;
	return refuse("file");
}
