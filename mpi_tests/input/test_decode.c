/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Decoding: any window of a JPEG has the very pixels of the whole, at every scale and subsampling;
 * what a reduced picture is; grey, CMYK, PNG of all kinds; and every kind of damage is told in one
 * clear error, after which the decoder works on.
 */
#include <muster/image.h>

#include <stdlib.h>
#include <string.h>

#include "../lib/check.h"
#include "../lib/image_files.h"

static struct mu_image_decoder *decoder;

static uint32_t pixel_at(const struct mu_image *image, size_t y, size_t x)
{
	return image->pixels[(y - image->top) * image->w + x - image->left] & 0xffffff;
}

static bool decode(const uint8_t *data, size_t n, const struct mu_image_window *window,
		   struct mu_image *image)
{
	size_t h, w;

	return CHECK(mu_image_begin(decoder, data, n, &h, &w) == MU_OK) &&
	       CHECK(mu_image_decode(decoder, window, image) == MU_OK) &&
	       CHECK(image->shrink == window->shrink && image->top <= window->top &&
		     image->left <= window->left &&
		     image->top + image->h >= window->top + window->h &&
		     image->left + image->w >= window->left + window->w);
}

static size_t draw(const struct mu_random *key, uint64_t element, size_t n)
{
	return (size_t)mu_random_below(key, element, n);
}

/* ---- windows ---- */

static void check_windows(const struct image_file *f, const uint8_t *data, size_t n, size_t shrink)
{
	struct mu_image whole = {0}, part = {0};
	struct mu_image_window all = {.h = (f->h + shrink - 1) / shrink,
				      .w = (f->w + shrink - 1) / shrink,
				      .shrink = shrink};
	size_t wrong = 0;

	for (size_t i = 0; i < 30 && decode(data, n, &all, &whole); i++) {
		struct mu_random key = {.seed = f->h, .purpose = MU_RANDOM_TEST, .sample = i};
		struct mu_image_window window = {.shrink = shrink};

		window.top = draw(&key, 0, all.h);
		window.h = 1 + draw(&key, 1, all.h - window.top);
		window.left = draw(&key, 2, all.w);
		window.w = 1 + draw(&key, 3, all.w - window.left);
		if (!decode(data, n, &window, &part))
			break;
		for (size_t y = window.top; y < window.top + window.h; y++)
			for (size_t x = window.left; x < window.left + window.w; x++)
				wrong += pixel_at(&part, y, x) != pixel_at(&whole, y, x);
	}
	if (!CHECK(wrong == 0))
		fprintf(stderr, "%zu x %zu, %dx%d, progressive %d, shrink %zu: %zu pixels\n", f->h,
			f->w, f->across, f->down, f->progressive, shrink, wrong);
	mu_image_release(&whole);
	mu_image_release(&part);
}

static void test_windows(void)
{
	static const size_t sizes[][2] = {{75, 100}, {64, 48}, {33, 170}, {8, 8}, {1, 1}, {129, 5}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (int kind = 0; kind < 10; kind++) {
			struct image_file f = {.h = sizes[i][0],
					       .w = sizes[i][1],
					       .across = 1 + kind % 2,
					       .down = 1 + kind / 2 % 2,
					       .progressive = kind / 4 % 2,
					       .ink = kind >= 8 ? IMAGE_GREY : IMAGE_RGB,
					       .seed = (unsigned)i};
			size_t n;
			uint8_t *data;

			if (kind >= 8)
				f.across = f.down = 1;
			data = image_file_jpeg(&f, &n);
			for (size_t shrink = 1; CHECK(data) && shrink <= 8; shrink *= 2)
				check_windows(&f, data, n, shrink);
			free(data);
		}
	}
}

/* ---- orientation ---- */

/* The same file with the orientation behind its first marker; to be freed. */
static uint8_t *note_orientation(const uint8_t *data, size_t n, int orientation, size_t *n_out)
{
	static const uint8_t segment[] = "\xff\xe1\0\x22"
					 "Exif\0\0"
					 "MM\0\x2a\0\0\0\x08"
					 "\0\x01"
					 "\x01\x12\0\x03\0\0\0\x01\0\0\0\0"
					 "\0\0\0";
	enum { AT = 29, SOI = 2, N = sizeof segment - 1 }; /* AT: the low byte of the value */
	uint8_t *copy = malloc(n + N);

	memcpy(copy, data, SOI);
	memcpy(copy + SOI, segment, N);
	copy[SOI + AT] = (uint8_t)orientation;
	memcpy(copy + SOI + N, data + SOI, n - SOI);
	*n_out = n + N;
	return copy;
}

/* Pixel (y, x) of the upright picture, of h x w pixels as stored: the table of image.h. */
static uint32_t upright_pixel(const struct mu_image *stored, int orientation, size_t y, size_t x)
{
	const size_t h = stored->h, w = stored->w;
	const size_t i[] = {0, y, y, h - 1 - y, h - 1 - y, x, h - 1 - x, h - 1 - x, x};
	const size_t j[] = {0, x, w - 1 - x, w - 1 - x, x, y, y, w - 1 - y, w - 1 - y};

	return pixel_at(stored, i[orientation], j[orientation]);
}

static void check_upright(const uint8_t *data, size_t n, const struct mu_image *stored,
			  int orientation)
{
	struct mu_image part = {0};
	const bool turns = orientation >= 5;
	const size_t h = turns ? stored->w : stored->h, w = turns ? stored->h : stored->w;
	size_t wrong = 0;

	for (size_t i = 0; i < 20; i++) {
		struct mu_random key = {.seed = h, .purpose = MU_RANDOM_TEST, .sample = i};
		struct mu_image_window window = {.shrink = stored->shrink};

		window.top = i ? draw(&key, 0, h) : 0;
		window.h = i ? 1 + draw(&key, 1, h - window.top) : h;
		window.left = i ? draw(&key, 2, w) : 0;
		window.w = i ? 1 + draw(&key, 3, w - window.left) : w;
		if (!decode(data, n, &window, &part))
			break;
		for (size_t y = window.top; y < window.top + window.h; y++)
			for (size_t x = window.left; x < window.left + window.w; x++)
				wrong += pixel_at(&part, y, x) !=
					 upright_pixel(stored, orientation, y, x);
	}
	if (!CHECK(wrong == 0))
		fprintf(stderr, "orientation %d, shrink %zu: %zu pixels\n", orientation,
			stored->shrink, wrong);
	mu_image_release(&part);
}

static void test_upright(void)
{
	struct image_file f = {.h = 41, .w = 70, .across = 2, .down = 2, .seed = 4};
	struct mu_image stored = {0}, part = {0};
	size_t n, n_noted, h, w;
	uint8_t *data = image_file_jpeg(&f, &n);

	for (int orientation = 1; CHECK(data) && orientation <= 8; orientation++) {
		uint8_t *noted = note_orientation(data, n, orientation, &n_noted);

		for (size_t s = 1; s <= 8; s *= 2) {
			struct mu_image_window all = {
				.h = (f.h + s - 1) / s, .w = (f.w + s - 1) / s, .shrink = s};

			if (decode(data, n, &all, &stored))
				check_upright(noted, n_noted, &stored, orientation);
		}
		mu_image_decoder_upright(decoder, false);
		CHECK(mu_image_begin(decoder, noted, n_noted, &h, &w) == MU_OK && h == f.h);
		mu_image_decoder_upright(decoder, true);
		/* A window is of the upright picture. */
		CHECK(mu_image_begin(decoder, noted, n_noted, &h, &w) == MU_OK);
		CHECK(mu_image_decode(decoder,
				      &(struct mu_image_window){.h = h + 1, .w = w, .shrink = 1},
				      &part) == MU_ERR_ARGUMENT);
		CHECK_HAS(mu_trace_message(), h == 70 ? "of 70 x 41" : "of 41 x 70");
		mu_trace_clear();
		free(noted);
	}
	mu_image_release(&stored);
	mu_image_release(&part);
	free(data);
}

/* ---- values ---- */

/* Largest difference of a pixel's channel from the picture that was encoded. */
static int worst(const struct image_file *f, const struct mu_image *image)
{
	int most = 0;

	for (size_t y = 0; y < f->h; y++) {
		for (size_t x = 0; x < f->w; x++) {
			for (int c = 0; c < 3; c++) {
				int want = image_file_value(f, y, x, f->ink == IMAGE_GREY ? 0 : c);
				int got = (int)(pixel_at(image, y, x) >> 8 * c & 255);

				/* As ink on paper; Adobe's way, which libjpeg writes: inverted. */
				if (f->ink == IMAGE_CMYK)
					want = want * image_file_value(f, y, x, 3) / 255;
				most = abs(got - want) > most ? abs(got - want) : most;
			}
		}
	}
	return most;
}

/* Cut a segment out. */
static bool cut_marker(uint8_t *data, size_t *n, uint8_t marker)
{
	for (size_t at = 2; at + 4 <= *n && data[at] == 0xff;) {
		const size_t length = 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);

		if (data[at + 1] == marker) {
			memmove(data + at, data + at + length, *n - at - length);
			*n -= length;
			return true;
		}
		at += length;
	}
	return false;
}

static void test_colours(void)
{
	struct image_file f = {.h = 40, .w = 50, .across = 1, .down = 1, .smooth = true};
	const struct mu_image_window all = {.h = 40, .w = 50, .shrink = 1};
	struct mu_image image = {0};

	for (f.ink = IMAGE_RGB; f.ink <= IMAGE_CMYK; f.ink++) {
		size_t n;
		uint8_t *data = image_file_jpeg(&f, &n);

		if (CHECK(data) && decode(data, n, &all, &image)) {
			CHECK(worst(&f, &image) <= 12);
			CHECK(mu_image_traits(decoder) == (f.ink == IMAGE_GREY   ? MU_IMAGE_GREY
							   : f.ink == IMAGE_CMYK ? MU_IMAGE_INK
										 : 0));
		}
		/* Without Adobe's marker the inks are the same. */
		if (data && f.ink == IMAGE_CMYK && CHECK(cut_marker(data, &n, 0xee)) &&
		    decode(data, n, &all, &image))
			CHECK(worst(&f, &image) <= 12);
		free(data);
	}
	mu_image_release(&image);
}

/* A pixel of a reduced picture is about the mean of those that it stands for. */
static void check_reduced(const uint8_t *data, size_t n, size_t shrink)
{
	const struct mu_image_window all = {.h = 64, .w = 96, .shrink = 1};
	const struct mu_image_window less = {.h = 64 / shrink, .w = 96 / shrink, .shrink = shrink};
	struct mu_image whole = {0}, image = {0};
	double most = 0;

	if (!decode(data, n, &all, &whole) || !decode(data, n, &less, &image))
		goto out;
	CHECK(image.h == less.h && image.w == less.w);
	for (size_t i = 0; i < image.h * image.w; i++) {
		double mean = 0, square = (double)(shrink * shrink);

		for (size_t k = 0; k < shrink * shrink; k++)
			mean += (pixel_at(&whole, i / image.w * shrink + k / shrink,
					  i % image.w * shrink + k % shrink) &
				 255) /
				square;
		most = fmax(most, fabs((image.pixels[i] & 255) - mean));
	}
	CHECK(most < 8);
out:
	mu_image_release(&whole);
	mu_image_release(&image);
}

static void test_reduced(void)
{
	const struct image_file f = {.h = 64, .w = 96, .across = 1, .down = 1, .smooth = true};
	size_t n, n_png;
	uint8_t *jpeg = image_file_jpeg(&f, &n), *png = image_file_png(&f, 8, false, &n_png);

	for (size_t shrink = 2; shrink <= 8; shrink *= 2) {
		check_reduced(jpeg, n, shrink);
		check_reduced(png, n_png, shrink);
	}
	free(jpeg);
	free(png);
}

static void test_png(void)
{
	const struct mu_image_window all = {.h = 21, .w = 37, .shrink = 1};
	struct mu_image image = {0};

	for (int kind = 0; kind < 16; kind++) {
		const struct image_file f = {.h = 21,
					     .w = 37,
					     .ink = kind & 1 ? IMAGE_GREY : IMAGE_RGB,
					     .progressive = kind & 2};
		size_t n;
		uint8_t *data = image_file_png(&f, kind & 4 ? 16 : 8, kind & 8, &n);

		if (CHECK(data) && decode(data, n, &all, &image))
			CHECK(worst(&f, &image) == 0);
		free(data);
	}
	mu_image_release(&image);
}

/* ---- damage ---- */

static void check_refused(const uint8_t *data, size_t n, const char *part)
{
	const struct mu_image_window corner = {.h = 1, .w = 1, .shrink = 1};
	struct mu_image image = {0};
	struct mu_image_window all = corner;
	enum mu_status st = mu_image_begin(decoder, data, n, &all.h, &all.w);

	if (st == MU_OK)
		st = mu_image_decode(decoder, &all, &image);
	CHECK(st == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), part);
	mu_trace_clear();
	mu_image_release(&image);
}

/* The frame header's height and width. */
static void claim(uint8_t *data, size_t n, size_t h, size_t w)
{
	for (size_t i = 0; i + 9 < n; i++) {
		if (data[i] == 0xff && data[i + 1] == 0xc0) {
			data[i + 5] = (uint8_t)(h >> 8);
			data[i + 6] = (uint8_t)h;
			data[i + 7] = (uint8_t)(w >> 8);
			data[i + 8] = (uint8_t)w;
			return;
		}
	}
	CHECK(false); /* there is no frame header */
}

static void test_damage(void)
{
	const struct image_file f = {.h = 48, .w = 64, .across = 2, .down = 2};
	const struct mu_image_window all = {.h = 48, .w = 64, .shrink = 1};
	struct mu_image image = {0};
	size_t n, n_png;
	uint8_t *data = image_file_jpeg(&f, &n), *png = image_file_png(&f, 8, false, &n_png);

	check_refused(data, 0, "neither a JPEG nor a PNG image: 0 bytes");
	check_refused((const uint8_t *)"GIF89a..", 8, "8 bytes, the first 47 49 46 38");
	for (size_t cut = 3; cut + 2 < n; cut += n / 17)
		check_refused(data, cut, "JPEG image of ");
	for (size_t cut = 8; cut + 12 < n_png; cut += n_png / 17)
		check_refused(png, cut, "PNG image of ");
	claim(data, n, 16385, 16384);
	check_refused(data, n, "16385 x 16384 pixels (height x width); from 1 to 268435456");
	claim(data, n, 8193, 8192);
	check_refused(data, n, "8193 x 8192 are needed at once; at most 67108864 are possible");
	claim(data, n, 480, 64); /* more rows than there are */
	check_refused(data, n, "JPEG image of 480 x 64 pixels");
	claim(data, n, 0, 64);
	check_refused(data, n, "JPEG image of");
	claim(data, n, 48, 64);
	png[n_png / 2] ^= 0x40;
	check_refused(png, n_png, "PNG image of 48 x 64 pixels");
	CHECK(decode(data, n, &all, &image)); /* as if nothing had been */
	mu_image_release(&image);
	free(data);
	free(png);
}

/* Take the segments of Huffman tables out of a JPEG file; its bytes then. */
static size_t cut_tables(uint8_t *data, size_t n)
{
	size_t to = 2, from = 2;

	while (from + 4 < n && data[from + 1] != 0xda) {
		size_t nbytes = 2 + ((size_t)data[from + 2] << 8) + data[from + 3];

		if (data[from + 1] != 0xc4) {
			memmove(data + to, data + from, nbytes);
			to += nbytes;
		}
		from += nbytes;
	}
	memmove(data + to, data + from, n - from);
	return to + n - from;
}

/* A file without tables means the usual ones, whatever the file before it had. */
static void test_without_tables(void)
{
	const struct image_file usual = {.h = 40, .w = 56, .across = 2, .down = 2, .seed = 1},
				own = {.h = 40, .w = 56, .across = 2, .down = 2, .optimal = true};
	const struct mu_image_window all = {.h = 40, .w = 56, .shrink = 1};
	struct mu_image want = {0}, before = {0}, got = {0};
	size_t n, n_own, n_cut;
	uint8_t *data = image_file_jpeg(&usual, &n), *other = image_file_jpeg(&own, &n_own);

	if (CHECK(data && other) && decode(data, n, &all, &want) &&
	    decode(other, n_own, &all, &before)) {
		n_cut = cut_tables(data, n);
		CHECK(n_cut + 100 < n);
		if (decode(data, n_cut, &all, &got))
			CHECK(memcmp(got.pixels, want.pixels, 4 * want.h * want.w) == 0);
	}
	mu_image_release(&want);
	mu_image_release(&before);
	mu_image_release(&got);
	free(data);
	free(other);
}

/* Changed bytes give a picture or an error, nothing else. */
static void test_noise(void)
{
	struct mu_image image = {0};
	int good = 0, bad = 0;

	for (size_t i = 0; i < 3000; i++) {
		const struct mu_random key = {.seed = 1, .purpose = MU_RANDOM_TEST, .sample = i};
		const struct image_file f = {
			.h = 40, .w = 40, .across = 2, .down = 1, .progressive = i % 2};
		struct mu_image_window window = {.shrink = (size_t)1 << draw(&key, 0, 4)};
		size_t n, h, w;
		uint8_t *data = i % 4 ? image_file_jpeg(&f, &n) : image_file_png(&f, 8, false, &n);

		for (uint64_t k = 0; k < 3; k++)
			data[draw(&key, 1 + k, n)] = (uint8_t)draw(&key, 10 + k, 256);
		window.h = window.w = 1;
		if (mu_image_begin(decoder, data, n, &h, &w) == MU_OK &&
		    (window.top = (h - 1) / window.shrink, window.left = (w - 1) / window.shrink,
		     mu_image_decode(decoder, &window, &image) == MU_OK))
			good++;
		else
			bad++;
		mu_trace_clear();
		free(data);
	}
	CHECK(good > 100 && bad > 100);
	mu_image_release(&image);
}

int main(void)
{
	char text[128];

	CHECK(mu_image_decoder_new(&decoder) == MU_OK);
	mu_image_decoder_version(text, sizeof text);
	CHECK_HAS(text, "libjpeg-turbo ");
	CHECK_HAS(text, "libpng ");
	test_windows();
	test_upright();
	test_colours();
	test_reduced();
	test_png();
	test_damage();
	test_without_tables();
	test_noise();
	mu_image_decoder_free(decoder);
	return check_failures() ? 1 : 0;
}
