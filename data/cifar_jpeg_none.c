/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of a build without libjpeg: says so before any work. */
#include "cifar_pack.h"

static enum mu_status refuse(void)
{
	return mu_trace_start(MU_ERR_UNSUPPORTED, __FILE__, __LINE__,
			      "this build has no libjpeg and so cannot read JPEG images: install "
			      "it (Debian: libjpeg62-turbo-dev) and configure again");
}

enum mu_status pack_jpeg_new(struct pack_jpeg **out)
{
	*out = NULL;
	return refuse();
}

void pack_jpeg_free(struct pack_jpeg *jpeg)
{
	(void)jpeg;
}

enum mu_status pack_jpeg_decode(struct pack_jpeg *jpeg, const char *path, const uint8_t *bytes,
				size_t nbytes, struct pack_pixels *out)
{
	(void)jpeg, (void)path, (void)bytes, (void)nbytes;
	*out = (struct pack_pixels){0};
	return refuse();
}
