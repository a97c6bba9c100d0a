/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG images in a build without libjpeg: reports that before any work. */
#include "image.h"

static enum mu_status refuse(void)
{
	return mu_trace_start(MU_ERR_UNSUPPORTED, __FILE__, __LINE__,
			      "this build has no libjpeg and so has no JPEG images: install "
			      "it (Debian: libjpeg62-turbo-dev) and configure again");
}

enum mu_status data_jpeg_new(struct data_jpeg **out)
{
	*out = NULL;
	return refuse();
}

void data_jpeg_free(struct data_jpeg *jpeg)
{
	(void)jpeg;
}

enum mu_status data_jpeg_decode(struct data_jpeg *jpeg, const char *path, const uint8_t *bytes,
				size_t nbytes, struct data_pixels *out)
{
	(void)jpeg, (void)path, (void)bytes, (void)nbytes;
	*out = (struct data_pixels){0};
	return refuse();
}

enum mu_status data_jpeg_encode(const struct data_pixels *in, const struct data_encoding *how,
				struct data_buffer *out, size_t *nbytes)
{
	(void)in, (void)how, (void)out;
	*nbytes = 0;
	return refuse();
}
