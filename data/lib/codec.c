/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG or PNG, whichever an image is, read as the trainer reads them. */
#include "image.h"

#include <string.h>

bool data_is_grey(const struct data_pixels *in)
{
	for (size_t i = 0; i < in->w * in->h; i++) {
		const uint8_t *p = in->rgb + 3 * i;

		if (p[0] != p[1] || p[1] != p[2])
			return false;
	}
	return true;
}

/* ---- traits ---- */

static void add_trait(struct data_traits *traits, int t, size_t n, const char *path)
{
	char *first = traits->first[t];

	if (n > 0 && (traits->n[t] == 0 || strncmp(path, first, sizeof traits->first[t] - 1) < 0))
		snprintf(first, sizeof traits->first[t], "%s", path);
	traits->n[t] += n;
}

void data_traits_add(struct data_traits *to, const struct data_traits *from)
{
	for (int t = 0; t < DATA_TRAITS; t++)
		add_trait(to, t, from->n[t], from->first[t]);
}

void data_traits_tell(const struct data_traits *traits, unsigned which, const char *tool)
{
	static const char *const texts[DATA_TRAITS] = {
		"grey: three equal channels in place of one",
		"CMYK: their colours as if printed on white",
		"of 16 bits: cut to the upper 8",
		"with transparency: it is dropped, and the colours below it are used",
	};

	for (int t = 0; t < DATA_TRAITS; t++)
		if (traits->n[t] > 0 && which & 1u << t)
			fprintf(stderr, "%s: %zu image%s %s (%s%s)\n", tool, traits->n[t],
				traits->n[t] == 1 ? " is" : "s are", texts[t],
				traits->n[t] == 1 ? "" : "the first is ",
				mu_shown(traits->first[t]));
}

/* ---- decoding ---- */

static size_t shrunk(size_t n, size_t shrink)
{
	return (n + shrink - 1) / shrink;
}

/* The least shrink at which the picture is not too large. */
static size_t find_shrink(const struct data_codec *codec)
{
	const size_t side = codec->h < codec->w ? codec->h : codec->w;

	for (size_t s = 1; s <= 8; s *= 2)
		if (s == 1 || (codec->edge > 0 && side / s >= codec->edge))
			if (shrunk(codec->h, s) <= MU_IMAGE_MAX_PIXELS / shrunk(codec->w, s))
				return s;
	return 1;
}

/* The whole picture into codec->image. */
static enum mu_status decode(struct data_codec *codec, const char *path, const uint8_t *bytes,
			     size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_image_window all;
	size_t s;

	if (!codec->decoder)
		MU_TRY(mu_image_decoder_new(&codec->decoder));
	MU_TRY(mu_image_begin(codec->decoder, bytes, nbytes, &codec->h, &codec->w));
	s = find_shrink(codec);
	all = (struct mu_image_window){
		.h = shrunk(codec->h, s), .w = shrunk(codec->w, s), .shrink = s};
	MU_TRY(mu_image_decode(codec->decoder, &all, &codec->image));
	for (int t = 0; t < DATA_TRAITS; t++)
		add_trait(&codec->traits, t, mu_image_traits(codec->decoder) >> t & 1, path);
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
	enum mu_status st = decode(codec, path, bytes, nbytes);
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
