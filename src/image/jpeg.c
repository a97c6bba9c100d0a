/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG by libjpeg-turbo with its defaults (the "slow" integer transform, smooth upsampling of
 * chroma), restricted to what is needed: the inverse transform at 1/2, 1/4 or 1/8, only for blocks
 * that the window touches, and nothing below the window. Only the entropy decoder must process
 * everything before. libjpeg's errors jump back into try.
 */
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

#include "decode.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

enum {
	/* Pixels at the sides of a region whose colours are computed without their neighbours. */
	MARGIN = 2,
	MAX_SCANS = 200, /* a progressive file has about 10; each costs a pass over the image */
	ROWS = 8,        /* per call */
};

struct jpeg {
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX + 1];
	bool created;
	const uint8_t *data;
	size_t n;
	struct mu_image_window window;
	struct mu_image *image;
	enum mu_status st; /* of errors outside libjpeg */
};

static void leave(j_common_ptr d)
{
	struct jpeg *j = d->client_data;

	d->err->format_message(d, j->message);
	longjmp(j->escape, 1);
}

/* libjpeg continues after damage with guessed data. Other warnings, such as stray bytes between
 * segments, which images in well-known data sets have, are harmless. */
static void warn(j_common_ptr d, int level)
{
	if (level >= 0)
		return;
	switch (d->err->msg_code) {
	case JWRN_ARITH_BAD_CODE:
	case JWRN_HIT_MARKER:
	case JWRN_HUFF_BAD_CODE:
	case JWRN_JPEG_EOF:
	case JWRN_MUST_RESYNC: leave(d); break;
	default: break;
	}
}

static void keep_quiet(j_common_ptr d)
{
	(void)d;
}

static void watch_scans(j_common_ptr common)
{
	struct jpeg *j = common->client_data;

	if (j->d.input_scan_number <= MAX_SCANS)
		return;
	snprintf(j->message, sizeof j->message, "more than %d scans", MAX_SCANS);
	longjmp(j->escape, 1);
}

/* False after an error of libjpeg: see j->message. */
static bool try(struct jpeg *j, void (*work)(struct jpeg *))
{
	if (setjmp(j->escape))
		return false;
	work(j);
	return true;
}

static void create(struct jpeg *j)
{
	jpeg_create_decompress(&j->d);
}

static void close_jpeg(void *state)
{
	struct jpeg *j = state;

	if (j->created)
		jpeg_destroy_decompress(&j->d);
	mu_free(j);
}

static enum mu_status open_jpeg(void **state)
{
	enum mu_status st = MU_OK;
	struct jpeg *j;

	MU_TRY(MU_ALLOC(j, 1, "JPEG decoder"));
	*state = j;
	j->d.err = jpeg_std_error(&j->errors);
	j->errors.error_exit = leave;
	j->errors.emit_message = warn;
	j->errors.output_message = keep_quiet;
	j->d.client_data = j;
	if (!try(j, create))
		MU_FAIL(MU_ERR_UNSUPPORTED, "libjpeg cannot begin: %s", j->message);
	j->created = true;
	j->progress.progress_monitor = watch_scans;
	j->d.progress = &j->progress;
out:
	return st;
}

static void read_head(struct jpeg *j)
{
	jpeg_destroy_decompress(&j->d); /* with its tables, which a file may omit */
	jpeg_create_decompress(&j->d);
	j->d.progress = &j->progress;
	jpeg_mem_src(&j->d, j->data, (unsigned long)j->n);
	jpeg_read_header(&j->d, TRUE);
}

/* Colours that the file calls cyan, magenta, yellow, black. Adobe's programs store 255 minus the
 * amounts; files that lost Adobe's marker are read likewise, as by OpenCV and Pillow. */
static void colour_of_ink(struct jpeg *j)
{
	uint32_t *pixels = j->image->pixels;

	for (size_t i = 0; i < j->image->h * j->image->w; i++) {
		uint32_t light = pixels[i], black = light >> 24, pixel = 0;

		for (int c = 0; c < 24; c += 8)
			pixel |= ((light >> c & 255) * black + 127) / 255 << c;
		pixels[i] = pixel;
	}
}

/* Columns: a margin at both sides, within the picture, then whole blocks. */
static void crop_columns(struct jpeg *j)
{
	const struct mu_image_window *window = &j->window;
	JDIMENSION all = j->d.output_width, left = 0,
		   right = (JDIMENSION)(window->left + window->w);
	JDIMENSION width;

	if (window->left > MARGIN)
		left = (JDIMENSION)window->left - MARGIN;
	right = all - right > MARGIN ? right + MARGIN : all;
	width = right - left;
	if (width < all)
		jpeg_crop_scanline(&j->d, &left, &width);
	j->image->left = width < all ? left : 0;
}

static void read_rows(struct jpeg *j)
{
	struct mu_image *image = j->image;
	JSAMPROW rows[ROWS];

	for (size_t y = 0; y < image->h;) {
		size_t n = image->h - y < ROWS ? image->h - y : ROWS;

		for (size_t i = 0; i < n; i++)
			rows[i] = (JSAMPROW)(image->pixels + (y + i) * image->w);
		n = jpeg_read_scanlines(&j->d, rows, (JDIMENSION)n);
		if (n == 0) { /* a bug of ours: the window is in the picture */
			snprintf(j->message, sizeof j->message, "has fewer rows");
			longjmp(j->escape, 1);
		}
		y += n;
	}
}

static void decode_window(struct jpeg *j)
{
	const struct mu_image_window *window = &j->window;
	bool ink = j->d.jpeg_color_space == JCS_CMYK || j->d.jpeg_color_space == JCS_YCCK;
	size_t left;

	j->d.scale_num = 1;
	j->d.scale_denom = (unsigned)window->shrink;
	j->d.out_color_space = ink ? JCS_CMYK : JCS_EXT_RGBX;
	jpeg_start_decompress(&j->d);
	crop_columns(j);
	left = j->image->left;
	j->st = mu_image_resize(j->image, window->h, j->d.output_width);
	if (j->st != MU_OK)
		return;
	j->image->top = window->top;
	j->image->left = left;
	j->image->shrink = window->shrink;
	if (window->top > 0)
		jpeg_skip_scanlines(&j->d, (JDIMENSION)window->top);
	read_rows(j);
	if (ink)
		colour_of_ink(j);
}

static enum mu_status begin_jpeg(void *state, const uint8_t *data, size_t n, size_t *h, size_t *w)
{
	enum mu_status st = MU_OK;
	struct jpeg *j = state;

	j->data = data;
	j->n = n;
	if (!try(j, read_head))
		MU_FAIL(MU_ERR_FORMAT, "JPEG image of %zu bytes: %s", n, j->message);
	*h = j->d.image_height;
	*w = j->d.image_width;
out:
	return st;
}

static unsigned traits_of_jpeg(void *state)
{
	const struct jpeg *j = state;

	return j->d.num_components == 1   ? MU_IMAGE_GREY
	       : j->d.num_components == 4 ? MU_IMAGE_INK
					  : 0;
}

static enum mu_status decode_jpeg(void *state, const struct mu_image_window *window,
				  struct mu_image *image)
{
	enum mu_status st = MU_OK;
	struct jpeg *j = state;

	j->window = *window;
	j->image = image;
	j->st = MU_OK;
	if (!try(j, decode_window))
		MU_FAIL(MU_ERR_FORMAT, "JPEG image of %zu x %zu pixels in %zu bytes: %s",
			(size_t)j->d.image_height, (size_t)j->d.image_width, j->n, j->message);
	MU_TRY(j->st);
out:
	jpeg_abort_decompress(&j->d);
	return st;
}

const struct mu_image_format mu_image_format_jpeg = {
	.name = "JPEG",
	.magic = "\xff\xd8\xff",
	.n_magic = 3,
	.max_shrink = 8,
	.library = "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION),
	.open = open_jpeg,
	.close = close_jpeg,
	.begin = begin_jpeg,
	.traits = traits_of_jpeg,
	.decode = decode_jpeg,
};
