/* SPDX-License-Identifier: Apache-2.0 */
/* PNG by libpng. Values are used as stored: no gamma correction, no background behind transparent
 * pixels. The whole picture is decoded. libpng's errors jump back into try. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "decode.h"

enum { MESSAGE_BYTES = 128 };

struct png {
	png_structp png;
	png_infop info;
	jmp_buf escape;
	char message[MESSAGE_BYTES];
	const uint8_t *data;
	size_t n, at;
	struct mu_image *image;
	png_bytepp rows;
	size_t rows_capacity;
	uint64_t *deep; /* of 16 bits: pixels of four numbers; else NULL */
	enum mu_status st; /* of errors outside libpng */
};

static PNG_NORETURN void leave(png_structp png, png_const_charp text)
{
	struct png *p = png_get_error_ptr(png);

	snprintf(p->message, sizeof p->message, "%s", text);
	longjmp(p->escape, 1);
}

static void keep_quiet(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void feed(png_structp png, png_bytep out, size_t n)
{
	struct png *p = png_get_io_ptr(png);

	if (n > p->n - p->at)
		png_error(png, "premature end of the file");
	memcpy(out, p->data + p->at, n);
	p->at += n;
}

/* False after an error of libpng: see p->message. */
static bool try(struct png *p, void (*work)(struct png *))
{
	if (setjmp(p->escape))
		return false;
	work(p);
	return true;
}

static enum mu_status open_png(void **state)
{
	struct png *p;
	enum mu_status st = MU_ALLOC(p, 1, "PNG decoder");

	*state = p;
	return st;
}

static void forget(struct png *p)
{
	png_destroy_read_struct(&p->png, &p->info, NULL);
}

static void close_png(void *state)
{
	struct png *p = state;

	forget(p);
	mu_free(p->rows);
	mu_free(p);
}

static void read_head(struct png *p)
{
	p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, leave, keep_quiet);
	p->info = p->png ? png_create_info_struct(p->png) : NULL;
	if (!p->info) {
		snprintf(p->message, sizeof p->message, "libpng cannot begin");
		longjmp(p->escape, 1);
	}
	png_set_read_fn(p->png, p, feed);
	png_set_user_limits(p->png, (png_uint_32)MU_IMAGE_MAX_PIXELS,
			    (png_uint_32)MU_IMAGE_MAX_PIXELS);
	png_set_crc_action(p->png, PNG_CRC_ERROR_QUIT, PNG_CRC_QUIET_USE);
	png_read_info(p->png, p->info);
}

static enum mu_status begin_png(void *state, const uint8_t *data, size_t n, size_t *h, size_t *w)
{
	enum mu_status st = MU_OK;
	struct png *p = state;

	forget(p); /* of an image that was not decoded */
	p->data = data;
	p->n = n;
	p->at = 0;
	if (!try(p, read_head))
		MU_FAIL(MU_ERR_FORMAT, "PNG image of %zu bytes: %s", n, p->message);
	*h = png_get_image_height(p->png, p->info);
	*w = png_get_image_width(p->png, p->info);
out:
	return st;
}

static unsigned traits_of_png(void *state)
{
	const struct png *p = state;
	const int colour = png_get_color_type(p->png, p->info);
	unsigned traits = 0;

	if (!(colour & PNG_COLOR_MASK_COLOR))
		traits |= MU_IMAGE_GREY;
	if (png_get_bit_depth(p->png, p->info) == 16)
		traits |= MU_IMAGE_DEEP;
	if (colour & PNG_COLOR_MASK_ALPHA || png_get_valid(p->png, p->info, PNG_INFO_tRNS))
		traits |= MU_IMAGE_ALPHA;
	return traits;
}

/* Convert every kind to red, green, blue and one more, 8 or 16 bits each. */
static void read_picture(struct png *p)
{
	const struct mu_image *image = p->image;
	const size_t each = p->deep ? sizeof *p->deep : sizeof *image->pixels;

	png_set_expand(p->png);
	png_set_gray_to_rgb(p->png);
	png_set_add_alpha(p->png, p->deep ? 65535 : 255, PNG_FILLER_AFTER);
	png_set_interlace_handling(p->png);
	png_read_update_info(p->png, p->info);
	if (png_get_rowbytes(p->png, p->info) != image->w * each)
		png_error(p->png, "rows of unknown size");
	for (size_t y = 0; y < image->h; y++)
		p->rows[y] = p->deep ? (png_bytep)(p->deep + y * image->w)
				     : (png_bytep)(image->pixels + y * image->w);
	png_read_image(p->png, p->rows);
}

/* Numbers of 16 bits have the upper 8 first. */
static void part(const struct png *p)
{
	const struct mu_image *image = p->image;

	for (size_t i = 0; i < image->h * image->w; i++) {
		const uint8_t *b = (const uint8_t *)(p->deep + i);

		image->pixels[i] = b[0] | (uint32_t)b[2] << 8 | (uint32_t)b[4] << 16;
		image->low[i] = b[1] | (uint32_t)b[3] << 8 | (uint32_t)b[5] << 16;
	}
}

static enum mu_status decode_png(void *state, const struct mu_image_window *window,
				 struct mu_image *image)
{
	enum mu_status st = MU_OK;
	struct png *p = state;

	if (p->rows_capacity < window->h) {
		mu_free(p->rows);
		p->rows_capacity = 0;
		MU_TRY(MU_ALLOC(p->rows, window->h, "rows of a PNG image"));
		p->rows_capacity = window->h;
	}
	MU_TRY(mu_image_resize(image, window->h, window->w));
	p->image = image;
	if (png_get_bit_depth(p->png, p->info) == 16) {
		MU_TRY(mu_image_deepen(image));
		MU_TRY(MU_ALLOC(p->deep, window->h * window->w, "picture of 16 bits"));
	}
	if (!try(p, read_picture))
		MU_FAIL(MU_ERR_FORMAT, "PNG image of %zu x %zu pixels in %zu bytes: %s", image->h,
			image->w, p->n, p->message);
	if (p->deep)
		part(p);
out:
	mu_free(p->deep);
	p->deep = NULL;
	forget(p);
	return st;
}

/* max_shrink is 0, so that every window it is given is the whole picture. */
const struct mu_image_format mu_image_format_png = {
	.name = "PNG",
	.magic = "\x89PNG\r\n\x1a\n",
	.n_magic = 8,
	.library = "libpng " PNG_LIBPNG_VER_STRING,
	.open = open_png,
	.close = close_png,
	.begin = begin_png,
	.traits = traits_of_png,
	.decode = decode_png,
};
