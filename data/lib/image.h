/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images for the tools of data/: read by the library's decoder (codec.c), written by libjpeg
 * (jpeg.c) and libpng (png.c), scaled (scale.c); growing buffers (buffer.c). A build without one of
 * the libraries has *_none.c instead, whose functions return MU_ERR_UNSUPPORTED.
 */
#ifndef MUSTER_DATA_IMAGE_H
#define MUSTER_DATA_IMAGE_H

#include <muster/image.h>

/* ---- memory that grows ---- */

struct data_buffer {
	uint8_t *bytes; /* owned */
	size_t capacity;
};

/* Grow to nbytes; keeps the first `used` bytes. */
enum mu_status data_buffer_grow(struct data_buffer *b, size_t used, size_t nbytes);
/* Read a whole image file. Errors: unreadable, not a regular file, empty. */
enum mu_status data_buffer_read(struct data_buffer *out, const char *path, size_t *nbytes);
void data_buffer_release(struct data_buffer *b);

/* ---- pixels ---- */

enum { DATA_SIDE_MAX = 16384, DATA_TRAITS = 4 };

struct data_pixels {
	const uint8_t *rgb; /* (h, w, 3) */
	size_t w, h;
};

/* Are red, green and blue the same everywhere? */
bool data_is_grey(const struct data_pixels *in);

/* ---- JPEG ---- */

/* The decoder of cifar_pack, for which a warning of libjpeg is an error. */
struct data_jpeg;

enum mu_status data_jpeg_new(struct data_jpeg **out);
void data_jpeg_free(struct data_jpeg *jpeg);
/* Grey images become colour images. Errors name the path: corrupt, truncated, CMYK, too large. The
 * pixels are valid until the next image is decoded. */
enum mu_status data_jpeg_decode(struct data_jpeg *jpeg, const char *path, const uint8_t *bytes,
				size_t nbytes, struct data_pixels *out);

/* File format of written pixels. */
struct data_encoding {
	bool png;    /* else JPEG */
	bool grey;   /* one channel, the luma of Rec. 601 */
	int quality; /* of JPEG, 1 to 100 */
};

enum mu_status data_jpeg_encode(const struct data_pixels *in, const struct data_encoding *how,
				struct data_buffer *out, size_t *nbytes);

/* ---- PNG ---- */

enum mu_status data_png_encode(const struct data_pixels *in, const struct data_encoding *how,
			       struct data_buffer *out, size_t *nbytes);

/* ---- both ---- */

/* Images with a trait (mu_image_trait): their number, and the least of their paths. */
struct data_traits {
	size_t n[DATA_TRAITS];
	char first[DATA_TRAITS][64];
};

struct data_codec {
	struct mu_image_decoder *decoder; /* created for the first image */
	struct mu_image image;
	struct data_buffer pixels;
	struct data_traits traits; /* of all images so far */
	/* An image above MU_IMAGE_MAX_PIXELS is decoded at 1/2, 1/4 or 1/8 if its shorter edge then
	 * has at least this many pixels; 0: it is an error. */
	size_t edge;
	size_t h, w; /* of the last image, whole */
};

/* {0} is a codec without images. Uses the trainer's decoder, muster/image.h, so it reads the same
 * files to the same pixels. Errors name the path. */
enum mu_status data_decode(struct data_codec *codec, const char *path, const uint8_t *bytes,
			   size_t nbytes, struct data_pixels *out);
enum mu_status data_encode(const struct data_pixels *in, const struct data_encoding *how,
			   struct data_buffer *out, size_t *nbytes);
void data_codec_release(struct data_codec *codec);
void data_traits_add(struct data_traits *to, const struct data_traits *from);
/* Print a line for each of the traits of `which` that an image has: what became of it in pixels of
 * three channels of 8 bits. */
void data_traits_tell(const struct data_traits *traits, unsigned which, const char *tool);

/* ---- scaling ---- */

/*
 * A part of an image, from (top, left) of h x w pixels, scaled to height x width, (height, width,
 * 3).
 */
struct data_window {
	const struct data_pixels *in;
	size_t top, left, h, w;
};

enum mu_status data_scale(uint8_t *out, size_t height, size_t width,
			  const struct data_window *window);

#endif
