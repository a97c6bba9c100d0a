/* SPDX-License-Identifier: Apache-2.0 */
/* PNG images written through libpng's simplified interface, which returns errors instead of
 * jumping.
 */
#include "image.h"

#include <string.h>

#include <png.h>

/* As libjpeg does it: Rec. 601, in 1/65536. */
static uint8_t luma(const uint8_t *p)
{
	return (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
}

enum mu_status data_png_encode(const struct data_pixels *in, const struct data_encoding *how,
			       struct data_buffer *out, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	png_image image = {.version = PNG_IMAGE_VERSION,
			   .width = (png_uint_32)in->w,
			   .height = (png_uint_32)in->h,
			   .format = how->grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
	png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
	uint8_t *grey = NULL;

	if (how->grey) {
		MU_TRY(MU_ALLOC(grey, in->w * in->h, "grey image"));
		for (size_t i = 0; i < in->w * in->h; i++)
			grey[i] = luma(in->rgb + 3 * i);
	}
	MU_TRY(data_buffer_grow(out, 0, size));
	if (!png_image_write_to_memory(&image, out->bytes, &size, 0, grey ? grey : in->rgb, 0,
				       NULL))
		MU_FAIL(MU_ERR_IO, "a PNG image of %zu x %zu pixels cannot be made: %s", in->w,
			in->h, image.message);
	*nbytes = size;
out:
	png_image_free(&image);
	mu_free(grey);
	return st;
}
