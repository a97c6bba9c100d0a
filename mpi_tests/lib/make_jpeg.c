/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper of test_cifar_pack.sh: writes JPEG images of noise, and shows what libjpeg makes of one.
 *
 *	make_jpeg write FILE WIDTH HEIGHT rgb|grey|cmyk SEED [ORIENTATION]
 *	make_jpeg read FILE [TOP LEFT HEIGHT WIDTH]    to standard output: (3, h, w) bytes
 *
 * Errors of libjpeg end the program with its message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { SIDE_MAX = 512 };

/* Exif with one tag: big-endian where the orientation is odd, so that both kinds are met. */
static void write_orientation(struct jpeg_compress_struct *c, int orientation)
{
	static const JOCTET big[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\0\0\0\0\0\0\0";
	static const JOCTET little[] =
		"Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\0\0\0\0\0\0\0\0";
	JOCTET block[sizeof big - 1];

	memcpy(block, orientation % 2 ? big : little, sizeof block);
	block[orientation % 2 ? 25 : 24] = (JOCTET)orientation;
	jpeg_write_marker(c, JPEG_APP0 + 1, block, sizeof block);
}

static int write_jpeg(FILE *f, int argc, char **arg)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	static JSAMPLE row[SIDE_MAX * 4];
	unsigned state = (unsigned)atoi(arg[3]) * 2654435761u + 1;
	int grey = strcmp(arg[2], "grey") == 0, cmyk = strcmp(arg[2], "cmyk") == 0;

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_stdio_dest(&c, f);
	c.image_width = (JDIMENSION)atoi(arg[0]);
	c.image_height = (JDIMENSION)atoi(arg[1]);
	c.input_components = grey ? 1 : cmyk ? 4 : 3;
	c.in_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
	if (c.image_width > SIDE_MAX)
		return 2;
	jpeg_set_defaults(&c);
	jpeg_start_compress(&c, TRUE);
	if (argc == 5)
		write_orientation(&c, atoi(arg[4]));
	while (c.next_scanline < c.image_height) {
		JSAMPROW rows[1] = {row};

		for (size_t i = 0; i < sizeof row; i++) {
			state = state * 1664525u + 1013904223u;
			row[i] = (JSAMPLE)(state >> 24);
		}
		jpeg_write_scanlines(&c, rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	return 0;
}

static int read_jpeg(FILE *f, int argc, char **arg)
{
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr errors;
	static JSAMPLE image[SIDE_MAX][SIDE_MAX][3];
	unsigned window[4];

	d.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&d);
	jpeg_stdio_src(&d, f);
	jpeg_read_header(&d, TRUE);
	d.out_color_space = JCS_RGB;
	jpeg_start_decompress(&d);
	if (d.output_width > SIDE_MAX || d.output_height > SIDE_MAX)
		return 2;
	while (d.output_scanline < d.output_height) {
		JSAMPROW rows[1] = {image[d.output_scanline][0]};

		jpeg_read_scanlines(&d, rows, 1);
	}
	jpeg_finish_decompress(&d);
	memcpy(window, (unsigned[4]){0, 0, d.output_height, d.output_width}, sizeof window);
	for (int i = 0; i < 4 && argc == 4; i++)
		window[i] = (unsigned)atoi(arg[i]);
	for (size_t c = 0; c < 3; c++) {
		for (size_t y = 0; y < window[2]; y++)
			for (size_t x = 0; x < window[3]; x++)
				putchar(image[window[0] + y][window[1] + x][c]);
	}
	jpeg_destroy_decompress(&d);
	return 0;
}

int main(int argc, char **argv)
{
	int writing = (argc == 7 || argc == 8) && strcmp(argv[1], "write") == 0, st;
	FILE *f;

	if (!writing && !((argc == 3 || argc == 7) && strcmp(argv[1], "read") == 0)) {
		fprintf(stderr, "make_jpeg: wrong use, see the source\n");
		return 2;
	}
	f = fopen(argv[2], writing ? "wb" : "rb");
	if (!f) {
		perror(argv[2]);
		return 1;
	}
	st = writing ? write_jpeg(f, argc - 3, argv + 3) : read_jpeg(f, argc - 3, argv + 3);
	return fclose(f) == 0 ? st : 1;
}
