/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG or PNG, whichever an image is, read as the trainer reads them. */
#include "image.h"

bool data_is_grey(const struct data_pixels *in)
{
	for (size_t i = 0; i < in->w * in->h; i++) {
		const uint8_t *p = in->rgb + 3 * i;

		if (p[0] != p[1] || p[1] != p[2])
			return false;
	}
	return true;
}

/* The whole picture into codec->image. */
static enum mu_status decode(struct data_codec *codec, const uint8_t *bytes, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_image_window all = {.shrink = 1};

	if (!codec->decoder)
		MU_TRY(mu_image_decoder_new(&codec->decoder));
	MU_TRY(mu_image_begin(codec->decoder, bytes, nbytes, &all.h, &all.w));
	MU_TRY(mu_image_decode(codec->decoder, &all, &codec->image));
out:
	return st;
}

static void copy_pixels(uint8_t *out, const struct mu_image *image)
{
	for (size_t i = 0; i < image->h * image->w; i++, out += 3)
		for (int c = 0; c < 3; c++)
			out[c] = (uint8_t)(image->pixels[i] >> 8 * c);
}

enum mu_status data_decode(struct data_codec *codec, const char *path, const uint8_t *bytes,
			   size_t nbytes, struct data_pixels *out)
{
	enum mu_status st = decode(codec, bytes, nbytes);
	const struct mu_image *image = &codec->image;

	if (st != MU_OK)
		MU_FAIL(st, "%s: %s", path, mu_trace_message());
	MU_TRY(data_buffer_grow(&codec->pixels, 0, 3 * image->h * image->w));
	copy_pixels(codec->pixels.bytes, image);
	*out = (struct data_pixels){codec->pixels.bytes, image->w, image->h};
out:
	return st;
}

enum mu_status data_encode(const struct data_pixels *in, const struct data_encoding *how,
			   struct data_buffer *out, size_t *nbytes)
{
	return how->png ? data_png_encode(in, how, out, nbytes)
			: data_jpeg_encode(in, how, out, nbytes);
}

void data_codec_release(struct data_codec *codec)
{
	mu_image_decoder_free(codec->decoder);
	mu_image_release(&codec->image);
	data_buffer_release(&codec->pixels);
	*codec = (struct data_codec){0};
}
