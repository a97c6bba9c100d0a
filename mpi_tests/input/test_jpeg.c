/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Our own JPEG decoder beside libjpeg: the very same pixels, of whole pictures and of windows, at
 * every scale, size, quality, subsampling, with restart markers and other Huffman tables; what it
 * is not made for it leaves alone; and damaged files get the same verdict with it as without.
 */
#define _GNU_SOURCE /* memmem */

#include <muster/image.h>

#include <stdlib.h>
#include <string.h>

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

static enum mu_status decode(const struct encoded *file, enum mu_jpeg_choice choice,
			     const struct mu_image_window *window, struct mu_image *image)
{
	size_t h, w;
	enum mu_status st;

	mu_image_decoder_choose(decoder, choice);
	st = mu_image_begin(decoder, file->data, file->n, &h, &w);
	return st == MU_OK ? mu_image_decode(decoder, window, image) : st;
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
			 const struct mu_image_window *window)
{
	struct mu_image own = {0}, library = {0};
	bool good = CHECK(decode(file, MU_JPEG_OWN, window, &own) == MU_OK) &&
		    CHECK(decode(file, MU_JPEG_LIBRARY, window, &library) == MU_OK) &&
		    CHECK(count_wrong(&own, &library, window) == 0);

	if (!good)
		tell(f, window);
	mu_trace_clear();
	mu_image_release(&own);
	mu_image_release(&library);
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

		part.top = draw(&key, 0, all.h);
		part.h = 1 + draw(&key, 1, all.h - part.top);
		part.left = draw(&key, 2, all.w);
		part.w = 1 + draw(&key, 3, all.w - part.left);
		if (!check_window(f, &file, &all) || !check_window(f, &file, &part))
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
			.seed = (unsigned)i,
		};

		check_file(&f);
	}
}

/* ---- files for libjpeg ---- */

static void check_left_alone(const struct image_file *f)
{
	const struct mu_image_window all = {.h = f->h, .w = f->w, .shrink = 1};
	struct mu_image image = {0};
	struct encoded file;
	uint8_t *data = image_file_jpeg(f, &file.n);

	file.data = data;
	CHECK(decode(&file, MU_JPEG_OWN, &all, &image) == MU_ERR_UNSUPPORTED);
	mu_trace_clear();
	CHECK(decode(&file, MU_JPEG_FASTEST, &all, &image) == MU_OK);
	mu_image_release(&image);
	free(data);
}

static void test_others(void)
{
	struct image_file f = {.h = 40, .w = 50, .across = 2, .down = 2, .progressive = true};

	check_left_alone(&f);
	f = (struct image_file){.h = 40, .w = 50, .across = 1, .down = 1, .ink = IMAGE_CMYK};
	check_left_alone(&f);
	f = (struct image_file){.h = 40, .w = 50, .across = 4, .down = 1};
	check_left_alone(&f);
}

/* ---- damage ---- */

/* With our own decoder in front, the status, the message and the pixels are libjpeg's. Returns
 * whether the picture is good. */
static bool check_same(const struct encoded *file, const struct mu_image_window *window)
{
	struct mu_image both = {0}, library = {0};
	enum mu_status st = decode(file, MU_JPEG_LIBRARY, window, &library), own;
	char message[256];

	snprintf(message, sizeof message, "%s", mu_trace_message());
	mu_trace_clear();
	own = decode(file, MU_JPEG_FASTEST, window, &both);
	CHECK(own == st);
	if (own == MU_OK && st == MU_OK)
		CHECK(count_wrong(&both, &library, window) == 0);
	else
		CHECK(strcmp(message, mu_trace_message()) == 0);
	mu_trace_clear();
	mu_image_release(&both);
	mu_image_release(&library);
	return st == MU_OK;
}

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
			*(check_same(&file, &all) ? &good : &bad) += 1;
		file.n = n;
		for (uint64_t i = 0; i < 3000; i++) {
			const struct mu_random key = {
				.seed = 3, .purpose = MU_RANDOM_TEST, .sample = i};
			size_t at = draw(&key, 0, n);
			uint8_t was = data[at];

			data[at] ^= (uint8_t)(1 << draw(&key, 1, 8));
			*(check_same(&file, &all) ? &good : &bad) += 1;
			data[at] = was;
		}
		free(data);
	}
	CHECK(good > 1000 && bad > 1000);
}

/* Symbols that no baseline file has: libjpeg takes 0x10 for the end of a block, as 0x00 is. */
static void test_symbols(void)
{
	static const uint8_t first[] = {0x01, 0x02, 0x03, 0x00, 0x04, 0x11};
	static const uint8_t bad[] = {0x0b, 0x0f, 0x10, 0xe0};
	const struct image_file f = {.h = 40, .w = 50, .across = 1, .down = 1};
	const struct mu_image_window all = {.h = 40, .w = 50, .shrink = 1};
	struct mu_image image = {0};
	struct encoded file;
	uint8_t *data = image_file_jpeg(&f, &file.n), *symbols;

	file.data = data;
	symbols = memmem(data, file.n, first, sizeof first); /* of AC's table for luma */
	if (!CHECK(symbols))
		return;
	symbols[3] = 0x10;
	CHECK(decode(&file, MU_JPEG_OWN, &all, &image) == MU_ERR_UNSUPPORTED);
	mu_trace_clear();
	CHECK(check_same(&file, &all));
	symbols[3] = 0;
	for (size_t i = 0; i < sizeof bad; i++) {
		symbols[0] = bad[i];
		check_same(&file, &all);
	}
	mu_image_release(&image);
	free(data);
}

/* ---- pictures with one head, which is read once ---- */

/* Not with the other decoder in turn, as above: libjpeg would read every head. */
static void check_head(struct mu_image_decoder *one, const struct encoded *file, bool late)
{
	struct mu_image own = {0}, library = {0};
	struct mu_image_window all = {.shrink = 1};
	enum mu_status st = mu_image_begin(decoder, file->data, file->n, &all.h, &all.w), is;
	struct mu_image_window same = all;
	char message[256];

	if (st == MU_OK)
		st = mu_image_decode(decoder, &all, &library);
	snprintf(message, sizeof message, "%s", mu_trace_message());
	mu_trace_clear();
	mu_image_decoder_choose(one, MU_JPEG_FASTEST);
	is = mu_image_begin(one, file->data, file->n, &same.h, &same.w);
	CHECK(is != MU_OK || (same.h == all.h && same.w == all.w));
	if (late)
		mu_image_decoder_choose(one, MU_JPEG_LIBRARY);
	if (is == MU_OK)
		is = mu_image_decode(one, &same, &own);
	CHECK(is == st);
	if (is == MU_OK && st == MU_OK)
		CHECK(count_wrong(&own, &library, &all) == 0);
	else
		CHECK(strcmp(message, mu_trace_message()) == 0);
	mu_trace_clear();
	mu_image_release(&own);
	mu_image_release(&library);
}

/* Pictures of few kinds in any order, whole and cut short, some of them only begun. */
static void test_heads(void)
{
	struct mu_image_decoder *one;
	size_t h, w;

	mu_image_decoder_choose(decoder, MU_JPEG_LIBRARY);
	if (!CHECK(mu_image_decoder_new(&one) == MU_OK))
		return;
	for (uint64_t i = 0; i < 1500; i++) {
		const struct mu_random key = {.seed = 5, .purpose = MU_RANDOM_TEST, .sample = i};
		size_t kind = i % 50 < 40 ? i / 50 % 4 : draw(&key, 0, 6);
		const struct image_file f = {.h = kind == 1 ? 33 : 32,
					     .w = 32,
					     .across = kind == 2 ? 1 : 2,
					     .down = kind == 2 ? 1 : 2,
					     .quality = kind == 3 ? 50 : 90,
					     .optimal = kind == 4,
					     .progressive = kind == 5,
					     .seed = (unsigned)i};
		struct encoded file;
		uint8_t *data = image_file_jpeg(&f, &file.n);

		file.data = data;
		if (draw(&key, 1, 8) == 0)
			file.n -= draw(&key, 2, file.n);
		if (draw(&key, 3, 8) == 0) {
			mu_image_decoder_choose(one, MU_JPEG_FASTEST);
			if (mu_image_begin(one, file.data, file.n, &h, &w) != MU_OK)
				mu_trace_clear();
		}
		check_head(one, &file, draw(&key, 4, 8) == 0);
		free(data);
	}
	mu_image_decoder_free(one);
}

int main(void)
{
	CHECK(mu_image_decoder_new(&decoder) == MU_OK);
	test_sizes();
	test_kinds();
	test_others();
	test_damage();
	test_symbols();
	test_heads();
	mu_image_decoder_free(decoder);
	return check_failures() ? 1 : 0;
}
