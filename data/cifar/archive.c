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
		mu_left_out_add(&job->left_out, MU_LEFT_OTHER, name);
	return pack_is_image(name);
}

static void hide(void *context, const char *name)
{
	struct pack_job *job = context;

	mu_left_out_add(&job->left_out, MU_LEFT_HIDDEN, name);
}

static enum mu_status take(void *context, const char *name, const uint8_t *bytes, size_t nbytes,
			   double done)
{
	return pack_job_add(context, name, bytes, nbytes, done);
}

enum mu_status pack_read_tar(struct pack_job *job, const char *path)
{
	return data_tar_read(path, &(struct data_tar_visitor){
					   .context = job,
					   .wants = wants,
					   .hidden = hide,
					   .take = take,
				   });
}
