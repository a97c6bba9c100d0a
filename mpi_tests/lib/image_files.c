/* SPDX-License-Identifier: Apache-2.0 */
/* See image_files.h. */
#include "image_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

uint8_t image_file_value(const struct image_file *f, size_t y, size_t x, int c)
{
	unsigned state = f->seed * 2654435761u + (unsigned)y * 40503u + (unsigned)x * 9176u;

	if (f->smooth)
		return (uint8_t)(127.5 + 120 * sin((double)y / 9 + c) * cos((double)x / 7 - c));
	state = (state + (unsigned)c) * 1664525u + 1013904223u;
	return (uint8_t)((state ^ state >> 15) * 2246822519u >> 24);
}

static int channels_of(const struct image_file *f)
{
	return f->ink == IMAGE_GREY ? 1 : f->ink == IMAGE_CMYK ? 4 : 3;
}

static void fill_row(const struct image_file *f, size_t y, uint8_t *row)
{
	int channels = channels_of(f);

	for (size_t i = 0; i < f->w * (size_t)channels; i++)
		row[i] = image_file_value(f, y, i / (size_t)channels, (int)(i % (size_t)channels));
}

uint8_t *image_file_jpeg(const struct image_file *f, size_t *n)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	unsigned char *out = NULL;
	unsigned long size = 0;
	uint8_t *row = malloc(f->w * 4);

	if (!row)
		return NULL;
	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &out, &size);
	c.image_width = (JDIMENSION)f->w;
	c.image_height = (JDIMENSION)f->h;
	c.input_components = channels_of(f);
	c.in_color_space = f->ink == IMAGE_GREY   ? JCS_GRAYSCALE
			   : f->ink == IMAGE_CMYK ? JCS_CMYK
						  : JCS_RGB;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, f->quality ? f->quality : 90, TRUE);
	c.restart_interval = (unsigned)f->restart;
	c.optimize_coding = f->optimal;
	c.comp_info[0].h_samp_factor = f->across;
	c.comp_info[0].v_samp_factor = f->down;
	if (f->progressive)
		jpeg_simple_progression(&c);
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < c.image_height) {
		JSAMPROW rows[1] = {row};

		fill_row(f, c.next_scanline, row);
		jpeg_write_scanlines(&c, rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	free(row);
	*n = size;
	return out;
}

struct growing {
	uint8_t *bytes;
	size_t n, capacity;
};

static void append(png_structp png, png_bytep data, size_t n)
{
	struct growing *g = png_get_io_ptr(png);

	if (g->n + n > g->capacity) {
		g->capacity = 2 * (g->n + n);
		g->bytes = realloc(g->bytes, g->capacity);
		if (!g->bytes)
			png_error(png, "no memory");
	}
	memcpy(g->bytes + g->n, data, n);
	g->n += n;
}

static void put_pixels(const struct image_file *f, size_t y, int bits, bool alpha, uint8_t *row)
{
	int channels = channels_of(f);

	for (size_t x = 0; x < f->w; x++) {
		for (int c = 0; c < channels + alpha; c++) {
			const uint8_t upper = c < channels ? image_file_value(f, y, x, c) : 128;

			*row++ = upper;
			if (bits == 16)
				*row++ = image_file_low(upper);
		}
	}
}

uint8_t *image_file_png(const struct image_file *f, int bits, bool alpha, size_t *n)
{
	struct growing g = {0};
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	uint8_t *row = malloc(f->w * 8);
	int type = f->ink == IMAGE_GREY ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;

	png_set_write_fn(png, &g, append, NULL);
	png_set_IHDR(png, info, (png_uint_32)f->w, (png_uint_32)f->h, bits,
		     alpha ? type | PNG_COLOR_MASK_ALPHA : type,
		     f->progressive ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	for (int pass = png_set_interlace_handling(png); pass > 0; pass--) {
		for (size_t y = 0; y < f->h; y++) {
			put_pixels(f, y, bits, alpha, row);
			png_write_row(png, row);
		}
	}
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	free(row);
	*n = g.n;
	return g.bytes;
}
