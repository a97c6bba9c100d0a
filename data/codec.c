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

/* Pixel (y, x) of a picture is number start + y down + x across of those stored. */
struct way {
	size_t h, w;
	ptrdiff_t start, down, across;
};

static struct way find_way(const struct mu_image *image, int orientation)
{
	/* Do rows become columns? Is the last row, the last column the first one of the picture? */
	static const struct {
		bool turn, last_row, last_column;
	} kinds[] = {
		[1] = {false, false, false}, [2] = {false, false, true}, [3] = {false, true, true},
		[4] = {false, true, false},  [5] = {true, false, false}, [6] = {true, true, false},
		[7] = {true, true, true},    [8] = {true, false, true},
	};
	bool turn = kinds[orientation].turn, last_row = kinds[orientation].last_row,
	     last_column = kinds[orientation].last_column;
	ptrdiff_t h = (ptrdiff_t)image->h, w = (ptrdiff_t)image->w;
	ptrdiff_t row = last_row ? -w : w, column = last_column ? -1 : 1;

	return (struct way){
		.h = turn ? image->w : image->h,
		.w = turn ? image->h : image->w,
		.start = (last_row ? (h - 1) * w : 0) + (last_column ? w - 1 : 0),
		.down = turn ? column : row,
		.across = turn ? row : column,
	};
}

static void take_pixels(uint8_t *out, const struct mu_image *image, const struct way *way)
{
	for (size_t y = 0; y < way->h; y++) {
		const uint32_t *pixel = image->pixels + way->start + (ptrdiff_t)y * way->down;

		for (size_t x = 0; x < way->w; x++, out += 3)
			for (int c = 0; c < 3; c++)
				out[c] = (uint8_t)(pixel[(ptrdiff_t)x * way->across] >> 8 * c);
	}
}

enum mu_status data_decode(struct data_codec *codec, const char *path, const uint8_t *bytes,
			   size_t nbytes, struct data_pixels *out)
{
	enum mu_status st = decode(codec, bytes, nbytes);
	const struct mu_image *image = &codec->image;
	struct way way;

	if (st != MU_OK)
		MU_FAIL(st, "%s: %s", path, mu_trace_message());
	way = find_way(image, codec->upright ? mu_image_orientation(bytes, nbytes) : 1);
	MU_TRY(data_buffer_grow(&codec->pixels, 0, 3 * way.h * way.w));
	take_pixels(codec->pixels.bytes, image, &way);
	*out = (struct data_pixels){codec->pixels.bytes, way.w, way.h};
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
