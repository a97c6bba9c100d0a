/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG images by libjpeg, with its default arithmetic, which most programs use. libjpeg reports an
 * error by a long jump; no function that it jumps out of owns anything. */
#include "image.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct data_jpeg {
	struct jpeg_decompress_struct decoder;
	struct jpeg_error_mgr errors;
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX]; /* of the first error or warning, "" = none */
	struct data_buffer pixels;
};

static struct data_jpeg *owner_of(j_common_ptr decoder)
{
	return decoder->client_data;
}

static void keep_message(j_common_ptr decoder)
{
	struct data_jpeg *jpeg = owner_of(decoder);

	if (!*jpeg->message)
		decoder->err->format_message(decoder, jpeg->message);
}

static void on_error(j_common_ptr decoder)
{
	keep_message(decoder);
	longjmp(owner_of(decoder)->escape, 1);
}

/* Level -1: a warning, corrupt data; other levels are remarks. */
static void on_message(j_common_ptr decoder, int level)
{
	if (level < 0)
		keep_message(decoder);
}

static bool create(struct data_jpeg *jpeg)
{
	if (setjmp(jpeg->escape))
		return false;
	jpeg_create_decompress(&jpeg->decoder);
	return true;
}

enum mu_status data_jpeg_new(struct data_jpeg **out)
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

void data_jpeg_free(struct data_jpeg *jpeg)
{
	if (!jpeg)
		return;
	jpeg_destroy_decompress(&jpeg->decoder);
	data_buffer_release(&jpeg->pixels);
	mu_free(jpeg);
}

/* The three steps are false when libjpeg found an error. */
static bool read_header(struct data_jpeg *jpeg, const uint8_t *bytes, size_t nbytes)
{
	if (setjmp(jpeg->escape))
		return false;
	jpeg_mem_src(&jpeg->decoder, bytes, nbytes);
	jpeg_read_header(&jpeg->decoder, TRUE);
	return true;
}

static bool read_pixels(struct data_jpeg *jpeg)
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

static enum mu_status check_header(const struct data_jpeg *jpeg, const char *path)
{
	enum mu_status st = MU_OK;
	const struct jpeg_decompress_struct *decoder = &jpeg->decoder;

	if (decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK)
		MU_FAIL(MU_ERR_FORMAT, "%s: a CMYK image; convert it to RGB", path);
	if (decoder->image_width > DATA_SIDE_MAX || decoder->image_height > DATA_SIDE_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: the image has %u x %u pixels; at most %d x %d are possible", path,
			decoder->image_width, decoder->image_height, DATA_SIDE_MAX, DATA_SIDE_MAX);
out:
	return st;
}

enum mu_status data_jpeg_decode(struct data_jpeg *jpeg, const char *path, const uint8_t *bytes,
				size_t nbytes, struct data_pixels *out)
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
	MU_TRY(data_buffer_grow(&jpeg->pixels, 0, out->w * out->h * 3));
	/* A warning is an error as well: libjpeg fills undecodable parts with grey. */
	if (!read_pixels(jpeg) || *jpeg->message)
		MU_FAIL(MU_ERR_FORMAT, "%s: a corrupt image: %s", path, jpeg->message);
	out->rgb = jpeg->pixels.bytes;
out:
	jpeg_abort_decompress(&jpeg->decoder);
	return st;
}

/* ---- writing ---- */

struct encoder {
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX];
	unsigned char *bytes; /* libjpeg's, freed by free */
	unsigned long nbytes;
};

static void on_write_error(j_common_ptr c)
{
	struct encoder *e = c->client_data;

	c->err->format_message(c, e->message);
	longjmp(e->escape, 1);
}

static bool write_pixels(struct encoder *e, const struct data_pixels *in,
			 const struct data_encoding *how)
{
	if (setjmp(e->escape))
		return false;
	jpeg_create_compress(&e->c);
	jpeg_mem_dest(&e->c, &e->bytes, &e->nbytes);
	e->c.image_width = (JDIMENSION)in->w;
	e->c.image_height = (JDIMENSION)in->h;
	e->c.input_components = 3;
	e->c.in_color_space = JCS_RGB;
	jpeg_set_defaults(&e->c);
	if (how->grey)
		jpeg_set_colorspace(&e->c, JCS_GRAYSCALE);
	jpeg_set_quality(&e->c, how->quality, TRUE);
	jpeg_start_compress(&e->c, TRUE);
	while (e->c.next_scanline < e->c.image_height) {
		const uint8_t *line = in->rgb + (size_t)e->c.next_scanline * in->w * 3;
		JSAMPROW row;

		memcpy(&row, &line, sizeof row); /* libjpeg reads it but has no const */
		jpeg_write_scanlines(&e->c, &row, 1);
	}
	jpeg_finish_compress(&e->c);
	return true;
}

enum mu_status data_jpeg_encode(const struct data_pixels *in, const struct data_encoding *how,
				struct data_buffer *out, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct encoder e = {.nbytes = 0};

	e.c.err = jpeg_std_error(&e.errors);
	e.errors.error_exit = on_write_error;
	e.c.client_data = &e;
	if (!write_pixels(&e, in, how))
		MU_FAIL(MU_ERR_IO, "a JPEG image of %zu x %zu pixels cannot be made: %s", in->w,
			in->h, e.message);
	MU_TRY(data_buffer_grow(out, 0, e.nbytes));
	memcpy(out->bytes, e.bytes, e.nbytes);
	*nbytes = e.nbytes;
out:
	jpeg_destroy_compress(&e.c);
	free(e.bytes);
	return st;
}
