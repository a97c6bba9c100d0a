/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG images through libjpeg, with its default arithmetic, as most programs have it. libjpeg
 * leaves an error by a long jump; no function here that is left so owns anything.
 */
#include "cifar_pack.h"

#include <setjmp.h>

#include <jpeglib.h>

enum { SIDE_MAX = 16384 };

struct pack_jpeg {
	struct jpeg_decompress_struct decoder;
	struct jpeg_error_mgr errors;
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX]; /* of the first error or warning, "" = none */
	struct pack_buffer pixels;
};

static struct pack_jpeg *owner_of(j_common_ptr decoder)
{
	return decoder->client_data;
}

static void keep_message(j_common_ptr decoder)
{
	struct pack_jpeg *jpeg = owner_of(decoder);

	if (!*jpeg->message)
		decoder->err->format_message(decoder, jpeg->message);
}

static void on_error(j_common_ptr decoder)
{
	keep_message(decoder);
	longjmp(owner_of(decoder)->escape, 1);
}

/* Level -1: a warning, that the data is corrupt; the others are remarks. */
static void on_message(j_common_ptr decoder, int level)
{
	if (level < 0)
		keep_message(decoder);
}

static bool create(struct pack_jpeg *jpeg)
{
	if (setjmp(jpeg->escape))
		return false;
	jpeg_create_decompress(&jpeg->decoder);
	return true;
}

enum mu_status pack_jpeg_new(struct pack_jpeg **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, 1, "JPEG decoder"));
	(*out)->decoder.err = jpeg_std_error(&(*out)->errors);
	(*out)->errors.error_exit = on_error;
	(*out)->errors.emit_message = on_message;
	(*out)->decoder.client_data = *out;
	if (!create(*out))
		MU_FAIL(MU_ERR_UNSUPPORTED, "libjpeg cannot be used: %s", (*out)->message);
out:
	return st;
}

void pack_jpeg_free(struct pack_jpeg *jpeg)
{
	if (!jpeg)
		return;
	jpeg_destroy_decompress(&jpeg->decoder);
	pack_buffer_release(&jpeg->pixels);
	mu_free(jpeg);
}

/* The three steps are false when libjpeg found an error. */
static bool read_header(struct pack_jpeg *jpeg, const uint8_t *bytes, size_t nbytes)
{
	if (setjmp(jpeg->escape))
		return false;
	jpeg_mem_src(&jpeg->decoder, bytes, nbytes);
	jpeg_read_header(&jpeg->decoder, TRUE);
	return true;
}

static bool read_pixels(struct pack_jpeg *jpeg)
{
	struct jpeg_decompress_struct *decoder = &jpeg->decoder;
	JSAMPROW row;

	if (setjmp(jpeg->escape))
		return false;
	decoder->out_color_space = JCS_RGB;
	jpeg_start_decompress(decoder);
	while (decoder->output_scanline < decoder->output_height) {
		row = jpeg->pixels.bytes +
		      (size_t)decoder->output_scanline * decoder->output_width * 3;
		jpeg_read_scanlines(decoder, &row, 1);
	}
	jpeg_finish_decompress(decoder);
	return true;
}

static enum mu_status check_header(const struct pack_jpeg *jpeg, const char *path)
{
	enum mu_status st = MU_OK;
	const struct jpeg_decompress_struct *decoder = &jpeg->decoder;

	if (decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK)
		MU_FAIL(MU_ERR_FORMAT, "%s: a CMYK image; convert it to RGB", path);
	if (decoder->image_width > SIDE_MAX || decoder->image_height > SIDE_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: the image has %u x %u pixels; at most %d x %d are possible", path,
			decoder->image_width, decoder->image_height, SIDE_MAX, SIDE_MAX);
out:
	return st;
}

enum mu_status pack_jpeg_decode(struct pack_jpeg *jpeg, const char *path, const uint8_t *bytes,
				size_t nbytes, struct pack_pixels *out)
{
	enum mu_status st = MU_OK;

	*jpeg->message = '\0';
	if (nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty", path);
	if (!read_header(jpeg, bytes, nbytes))
		MU_FAIL(MU_ERR_FORMAT, "%s: no JPEG image: %s", path, jpeg->message);
	MU_TRY(check_header(jpeg, path));
	out->w = jpeg->decoder.image_width;
	out->h = jpeg->decoder.image_height;
	MU_TRY(pack_buffer_grow(&jpeg->pixels, 0, out->w * out->h * 3));
	/* A warning is as bad: libjpeg fills up with grey what it cannot decode. */
	if (!read_pixels(jpeg) || *jpeg->message)
		MU_FAIL(MU_ERR_FORMAT, "%s: a corrupt image: %s", path, jpeg->message);
	out->rgb = jpeg->pixels.bytes;
out:
	jpeg_abort_decompress(&jpeg->decoder);
	return st;
}
