/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG or PNG, whichever an image is. */
#include <muster/records.h>

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

enum mu_status data_decode(struct data_codec *codec, const char *path, const uint8_t *bytes,
			   size_t nbytes, struct data_pixels *out)
{
	enum mu_status st = MU_OK;
	enum mu_record_encoding encoding = mu_record_encoding(bytes, nbytes);

	if (encoding == MU_RECORD_PNG) {
		MU_TRY(data_png_decode(path, bytes, nbytes, &codec->pixels, out));
		goto out;
	}
	if (encoding != MU_RECORD_JPEG)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: neither a JPEG nor a PNG image: %zu bytes, the first are %02x %02x "
			"%02x",
			path, nbytes, nbytes > 0 ? bytes[0] : 0, nbytes > 1 ? bytes[1] : 0,
			nbytes > 2 ? bytes[2] : 0);
	if (!codec->jpeg)
		MU_TRY(data_jpeg_new(&codec->jpeg));
	MU_TRY(data_jpeg_decode(codec->jpeg, path, bytes, nbytes, out));
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
	data_jpeg_free(codec->jpeg);
	data_buffer_release(&codec->pixels);
	*codec = (struct data_codec){0};
}
