/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures in memory. */
#include <muster/image.h>

enum mu_status mu_image_resize(struct mu_image *image, size_t h, size_t w)
{
	enum mu_status st = MU_OK;

	if (h * w > image->capacity) {
		mu_free(image->pixels);
		image->pixels = NULL;
		image->capacity = 0;
		MU_TRY(MU_ALLOC(image->pixels, h * w, "picture"));
		image->capacity = h * w;
	}
	image->h = h;
	image->w = w;
	image->top = image->left = 0;
	image->shrink = 1;
	mu_free(image->low);
	image->low = NULL;
out:
	return st;
}

enum mu_status mu_image_deepen(struct mu_image *image)
{
	return image->low ? MU_OK : MU_ALLOC(image->low, image->h * image->w, "lower bits");
}

void mu_image_release(struct mu_image *image)
{
	mu_free(image->pixels);
	mu_free(image->low);
	*image = (struct mu_image){0};
}

MU_LOOP static void join_planes(uint32_t *restrict out, const uint8_t *red, const uint8_t *green,
				const uint8_t *blue, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = red[i] | (uint32_t)green[i] << 8 | (uint32_t)blue[i] << 16;
}

/* Four bytes are one load: each pixel except the last is loaded with one byte of the next. */
static void join_bytes(uint32_t *restrict out, const uint8_t *restrict bytes, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++, bytes += 3)
		out[i] = (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
			  (uint32_t)bytes[3] << 24) &
			 0xffffff;
	out[n - 1] = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
}

enum mu_status mu_image_from_bytes(struct mu_image *image, const uint8_t *bytes,
				   const struct mu_shape *shape, bool interleaved)
{
	enum mu_status st = MU_OK;
	const struct mu_picture p = mu_sample_picture(shape);
	const size_t n = p.h * p.w;
	char text[MU_SAMPLE_TEXT];

	if ((p.c != 1 && p.c != 3) || n == 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"raw images of shape (%s); there must be 1 or 3 channels",
			mu_sample_text(shape, ", ", text, sizeof text));
	MU_TRY(mu_image_resize(image, p.h, p.w));
	if (p.c == 1)
		join_planes(image->pixels, bytes, bytes, bytes, n);
	else if (!interleaved)
		join_planes(image->pixels, bytes, bytes + n, bytes + 2 * n, n);
	else
		join_bytes(image->pixels, bytes, n);
out:
	return st;
}
