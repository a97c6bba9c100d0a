/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * JPEG images beside libjpeg with its defaults, which decodes all of the picture, as Pillow does:
 * the very same pixels, of whole pictures and of windows, at every scale, size, quality,
 * subsampling, progressive, with restart markers and other Huffman tables; damaged files are
 * refused where libjpeg guesses.
 */
#define _GNU_SOURCE /* memmem */

#include <muster/image.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "../lib/check.h"
#include "../lib/image_files.h"

static struct mu_image_decoder *decoder;

static size_t draw(const struct mu_random *key, uint64_t element, size_t n)
{
	return (size_t)mu_random_below(key, element, n);
}

struct encoded {
	const uint8_t *data;
	size_t n;
};

static enum mu_status decode(const struct encoded *file, const struct mu_image_window *window,
			     struct mu_image *image)
{
	size_t h, w;
	enum mu_status st = mu_image_begin(decoder, file->data, file->n, &h, &w);

	return st == MU_OK ? mu_image_decode(decoder, window, image) : st;
}

/* ---- the reference ---- */

struct reference {
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr errors;
	jmp_buf escape;
	bool guessed; /* libjpeg has gone on after damage */
};

static void leave(j_common_ptr d)
{
	longjmp(((struct reference *)d->client_data)->escape, 1);
}

static void note(j_common_ptr d, int level)
{
	struct reference *r = d->client_data;
	const int code = d->err->msg_code;

	r->guessed |= level < 0 && (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
				    code == JWRN_JPEG_EOF || code == JWRN_MUST_RESYNC);
}

static void keep_quiet(j_common_ptr d)
{
	(void)d;
}

static void read_all(struct reference *r, size_t shrink, struct mu_image *image)
{
	struct jpeg_decompress_struct *d = &r->d;

	d->scale_num = 1;
	d->scale_denom = (unsigned)shrink;
	d->out_color_space = JCS_EXT_RGBX;
	jpeg_start_decompress(d);
	if (!CHECK(mu_image_resize(image, d->output_height, d->output_width) == MU_OK))
		longjmp(r->escape, 1);
	image->shrink = shrink;
	while (d->output_scanline < d->output_height) {
		JSAMPROW row = (JSAMPROW)(image->pixels + d->output_scanline * image->w);

		jpeg_read_scanlines(d, &row, 1);
	}
}

/* All of the picture. False: libjpeg has found damage. */
static bool refer(const struct encoded *file, size_t shrink, struct mu_image *image)
{
	struct reference r = {.guessed = false};
	volatile bool whole = false;

	r.d.err = jpeg_std_error(&r.errors);
	r.errors.error_exit = leave;
	r.errors.emit_message = note;
	r.errors.output_message = keep_quiet;
	r.d.client_data = &r;
	jpeg_create_decompress(&r.d);
	if (!setjmp(r.escape)) {
		jpeg_mem_src(&r.d, file->data, (unsigned long)file->n);
		jpeg_read_header(&r.d, TRUE);
		read_all(&r, shrink, image);
		whole = !r.guessed;
	}
	jpeg_destroy_decompress(&r.d);
	return whole;
}

/* Pixels of the window that differ; both images hold it. */
static size_t count_wrong(const struct mu_image *a, const struct mu_image *b,
			  const struct mu_image_window *window)
{
	size_t wrong = 0;

	for (size_t y = window->top; y < window->top + window->h; y++) {
		const uint32_t *p = a->pixels + (y - a->top) * a->w;
		const uint32_t *q = b->pixels + (y - b->top) * b->w;

		for (size_t x = window->left; x < window->left + window->w; x++)
			wrong += ((p[x - a->left] ^ q[x - b->left]) & 0xffffff) != 0;
	}
	return wrong;
}

static void tell(const struct image_file *f, const struct mu_image_window *window)
{
	fprintf(stderr,
		"%zu x %zu, %dx%d, ink %d, quality %d, restart %d, optimal %d, smooth %d: window "
		"%zu x %zu at (%zu, %zu), shrunk by %zu\n",
		f->h, f->w, f->across, f->down, (int)f->ink, f->quality, f->restart, f->optimal,
		f->smooth, window->h, window->w, window->top, window->left, window->shrink);
}

/* ---- equal pixels ---- */

static bool check_window(const struct image_file *f, const struct encoded *file,
			 const struct mu_image_window *window, const struct mu_image *reference)
{
	struct mu_image image = {0};
	bool good = CHECK(decode(file, window, &image) == MU_OK) &&
		    CHECK(count_wrong(&image, reference, window) == 0);

	if (!good)
		tell(f, window);
	mu_trace_clear();
	mu_image_release(&image);
	return good;
}

static void check_file(const struct image_file *f)
{
	struct encoded file;
	uint8_t *data = image_file_jpeg(f, &file.n);

	file.data = data;
	for (size_t shrink = 1; CHECK(data) && shrink <= 8; shrink *= 2) {
		const struct mu_image_window all = {.h = (f->h + shrink - 1) / shrink,
						    .w = (f->w + shrink - 1) / shrink,
						    .shrink = shrink};
		const struct mu_random key = {.seed = f->h * 1000 + f->w,
					      .purpose = MU_RANDOM_TEST,
					      .sample = f->seed * 8 + shrink};
		struct mu_image_window part = all;
		struct mu_image reference = {0};
		bool good;

		part.top = draw(&key, 0, all.h);
		part.h = 1 + draw(&key, 1, all.h - part.top);
		part.left = draw(&key, 2, all.w);
		part.w = 1 + draw(&key, 3, all.w - part.left);
		good = CHECK(refer(&file, shrink, &reference)) &&
		       check_window(f, &file, &all, &reference) &&
		       check_window(f, &file, &part, &reference);
		mu_image_release(&reference);
		if (!good)
			break;
	}
	free(data);
}

/* Every size from 1 x 1 to 33 x 17, of each subsampling. */
static void test_sizes(void)
{
	struct image_file f = {.quality = 95};

	for (f.h = 1; f.h <= 33; f.h++) {
		for (f.w = 1; f.w <= 17; f.w++) {
			for (int kind = 0; kind < 5; kind++) {
				f.across = kind < 4 ? 1 + kind % 2 : 1;
				f.down = kind < 4 ? 1 + kind / 2 : 1;
				f.ink = kind < 4 ? IMAGE_RGB : IMAGE_GREY;
				f.smooth = (f.h + f.w) % 2;
				f.seed++;
				check_file(&f);
			}
		}
	}
}

/* Larger ones, of all qualities, with all that an encoder may choose. */
static void test_kinds(void)
{
	static const int qualities[] = {1, 5, 20, 50, 75, 85, 92, 96, 98, 100};
	static const int restarts[] = {0, 0, 1, 2, 7, 1000};

	for (uint64_t i = 0; i < 800; i++) {
		const struct mu_random key = {.seed = 2, .purpose = MU_RANDOM_TEST, .sample = i};
		struct image_file f = {
			.h = 1 + draw(&key, 0, 150),
			.w = 1 + draw(&key, 1, 600),
			.across = 1 + (int)draw(&key, 2, 2),
			.down = 1 + (int)draw(&key, 3, 2),
			.ink = draw(&key, 4, 8) == 0 ? IMAGE_GREY : IMAGE_RGB,
			.quality = qualities[draw(&key, 5, sizeof qualities / sizeof *qualities)],
			.restart = restarts[draw(&key, 6, sizeof restarts / sizeof *restarts)],
			.optimal = draw(&key, 7, 2),
			.smooth = draw(&key, 8, 2),
			.progressive = draw(&key, 9, 4) == 0,
			.seed = (unsigned)i,
		};

		check_file(&f);
	}
}

/* ---- damage ---- */

/* Returns whether the picture is good. */
static bool check_verdict(const struct encoded *file, const struct mu_image_window *all)
{
	struct mu_image image = {0}, reference = {0};
	const enum mu_status st = decode(file, all, &image);
	const bool whole = refer(file, 1, &reference);

	/* A changed size is another window. */
	if (st != MU_ERR_ARGUMENT && reference.h == all->h && reference.w == all->w)
		CHECK((st == MU_OK) == whole);
	CHECK(st == MU_OK || st == MU_ERR_FORMAT || st == MU_ERR_ARGUMENT);
	if (st == MU_OK && whole)
		CHECK(count_wrong(&image, &reference, all) == 0);
	mu_trace_clear();
	mu_image_release(&image);
	mu_image_release(&reference);
	return st == MU_OK;
}

enum { MAGIC = 3 }; /* bytes that say what a file is */

/* Truncated at every byte, and bits changed anywhere. */
static void test_damage(void)
{
	size_t good = 0, bad = 0;

	for (int kind = 0; kind < 8; kind++) {
		const struct image_file f = {.h = 40,
					     .w = 50,
					     .across = 1 + kind % 2,
					     .down = 1 + kind / 2 % 2,
					     .restart = kind / 4 * 3};
		const struct mu_image_window all = {.h = 40, .w = 50, .shrink = 1};
		struct encoded file;
		uint8_t *data = image_file_jpeg(&f, &file.n);
		size_t n = file.n;

		file.data = data;
		for (file.n = 0; file.n < n; file.n += 1 + file.n / 256)
			*(check_verdict(&file, &all) ? &good : &bad) += 1;
		file.n = n;
		for (uint64_t i = 0; i < 3000; i++) {
			const struct mu_random key = {
				.seed = 3, .purpose = MU_RANDOM_TEST, .sample = i};
			size_t at = MAGIC + draw(&key, 0, n - MAGIC);
			uint8_t was = data[at];

			data[at] ^= (uint8_t)(1 << draw(&key, 1, 8));
			*(check_verdict(&file, &all) ? &good : &bad) += 1;
			data[at] = was;
		}
		free(data);
	}
	CHECK(good > 1000 && bad > 1000);
}

/* A file without tables is not read with those of the file before it. */
static void test_no_tables(void)
{
	static const uint8_t quant[] = {0xff, 0xdb, 0x00, 0x43};
	const struct image_file f = {.h = 40, .w = 50, .across = 1, .down = 1};
	const struct mu_image_window all = {.h = 40, .w = 50, .shrink = 1};
	struct mu_image image = {0};
	struct encoded file;
	uint8_t *data = image_file_jpeg(&f, &file.n), *at;

	file.data = data;
	CHECK(decode(&file, &all, &image) == MU_OK);
	while ((at = memmem(data, file.n, quant, sizeof quant))) {
		file.n -= 2 + 0x43;
		memmove(at, at + 2 + 0x43, file.n - (size_t)(at - data));
	}
	CHECK(decode(&file, &all, &image) == MU_ERR_FORMAT);
	CHECK(strstr(mu_trace_message(), "Quantization table 0x00 was not defined"));
	mu_trace_clear();
	mu_image_release(&image);
	free(data);
}

int main(void)
{
	CHECK(mu_image_decoder_new(&decoder) == MU_OK);
	test_sizes();
	test_kinds();
	test_damage();
	test_no_tables();
	mu_image_decoder_free(decoder);
	return check_failures() ? 1 : 0;
}
