/* SPDX-License-Identifier: Apache-2.0 */
/* The images of a tar file. */
#include "cifar_pack.h"
#include "../lib/tar.h"

static bool wants(void *context, const char *name, bool folder)
{
	struct pack_job *job = context;

	if (folder)
		return false;
	if (!pack_is_image(name))
		job->n_others++;
	return pack_is_image(name);
}

static enum mu_status take(void *context, const char *name, const uint8_t *bytes, size_t nbytes,
			   double done)
{
	return pack_job_add(context, name, bytes, nbytes, done);
}

enum mu_status pack_read_tar(struct pack_job *job, const char *path)
{
	return data_tar_read(path, &(struct data_tar_visitor){job, wants, take});
}
