/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files in a build without libarchive. */
#include "tar.h"

static enum mu_status refuse(const char *path)
{
	return mu_trace_start(
		MU_ERR_UNSUPPORTED, __FILE__, __LINE__,
		"%s: is not a folder, and this build cannot use tar files, for it has "
		"no libarchive: install it (Debian: libarchive-dev) and configure "
		"again",
		path);
}

enum mu_status data_tar_read(const char *path, const struct data_tar_visitor *visitor)
{
	(void)visitor;
	return refuse(path);
}

enum mu_status data_tar_create(struct data_tar_writer **out, const char *path)
{
	*out = NULL;
	return refuse(path);
}

enum mu_status data_tar_write(struct data_tar_writer *w, const char *name, const uint8_t *bytes,
			      size_t nbytes)
{
	(void)w, (void)bytes, (void)nbytes;
	return refuse(name);
}

enum mu_status data_tar_finish(struct data_tar_writer *w, bool commit)
{
	(void)w, (void)commit;
	return MU_OK;
}
