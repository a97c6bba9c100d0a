/* SPDX-License-Identifier: Apache-2.0 */
/* PNG images through libpng's simplified interface, which returns errors instead of jumping. */
#include "image.h"

#include <string.h>

#include <png.h>

enum mu_status data_png_decode(const char *path, const uint8_t *bytes, size_t nbytes,
			       struct data_buffer *pixels, struct data_pixels *out)
{
	enum mu_status st = MU_OK;
	png_image image = {.version = PNG_IMAGE_VERSION};
	png_color black = {0, 0, 0};

	if (!png_image_begin_read_from_memory(&image, bytes, nbytes))
		MU_FAIL(MU_ERR_FORMAT, "%s: no PNG image: %s", path, image.message);
	if (image.width > DATA_SIDE_MAX || image.height > DATA_SIDE_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: the image has %u x %u pixels; at most %d x %d are possible", path,
			image.width, image.height, DATA_SIDE_MAX, DATA_SIDE_MAX);
	image.format = PNG_FORMAT_RGB;
	MU_TRY(data_buffer_grow(pixels, 0, PNG_IMAGE_SIZE(image)));
	if (!png_image_finish_read(&image, &black, pixels->bytes, 0, NULL) ||
	    PNG_IMAGE_FAILED(image))
		MU_FAIL(MU_ERR_FORMAT, "%s: a corrupt image: %s", path, image.message);
	*out = (struct data_pixels){pixels->bytes, image.width, image.height};
out:
	png_image_free(&image);
	return st;
}

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
