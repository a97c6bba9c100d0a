/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Pictures of 16 bits: all of them are decoded, halved and sampled. */
#include <muster/image.h>

#include <stdlib.h>

#include "../lib/check.h"
#include "../lib/image_files.h"

enum { H = 22, W = 38, SIDE = 16, N = SIDE * SIDE };

static bool decode(const struct image_file *f, int bits, bool alpha, size_t shrink,
		   struct mu_image *image)
{
	const struct mu_image_window all = {
		.h = f->h / shrink, .w = f->w / shrink, .shrink = shrink};
	struct mu_image_decoder *decoder = NULL;
	size_t n, h, w;
	uint8_t *data = image_file_png(f, bits, alpha, &n);
	bool good = CHECK(data && mu_image_decoder_new(&decoder) == MU_OK) &&
		    CHECK(mu_image_begin(decoder, data, n, &h, &w) == MU_OK) &&
		    CHECK(mu_image_decode(decoder, &all, image) == MU_OK) &&
		    CHECK(image->h == all.h && image->w == all.w && image->shrink == shrink);

	mu_image_decoder_free(decoder);
	free(data);
	return good;
}

/* Channel 0, 1 or 2 of a pixel. */
static uint32_t value_of(const struct mu_image *image, size_t i, int channel)
{
	return (image->pixels[i] >> 8 * channel & 255) << 8 |
	       (image->low[i] >> 8 * channel & 255);
}

/* Every kind of PNG, one picture after another in the same memory. */
static void test_png(void)
{
	struct mu_image image = {0};

	for (int kind = 0; kind < 16; kind++) {
		const struct image_file f = {.h = H,
					     .w = W,
					     .ink = kind & 1 ? IMAGE_GREY : IMAGE_RGB,
					     .progressive = kind & 2};
		size_t wrong = 0;

		if (!decode(&f, kind & 4 ? 16 : 8, kind & 8, 1, &image) ||
		    !CHECK(!image.low == !(kind & 4)))
			continue;
		for (size_t i = 0; image.low && i < 3 * f.h * f.w; i++) {
			const int c = (int)(i % 3);
			const uint8_t upper = image_file_value(&f, i / 3 / W, i / 3 % W,
							       f.ink == IMAGE_GREY ? 0 : c);

			wrong += value_of(&image, i / 3, c) !=
				 (uint32_t)(upper << 8 | image_file_low(upper));
		}
		CHECK(wrong == 0);
	}
	mu_image_release(&image);
}

/* A pixel of half the size is the mean of four, rounded. */
static void test_reduced(void)
{
	const struct image_file f = {.h = H, .w = W};
	struct mu_image whole = {0}, half = {0};
	size_t wrong = 0;

	if (!decode(&f, 16, false, 1, &whole) || !decode(&f, 16, false, 2, &half))
		goto out;
	for (size_t i = 0; i < 3 * half.h * half.w; i++) {
		const size_t to = i / 3, at = to / half.w * 2 * W + to % half.w * 2;
		const int c = (int)(i % 3);
		const uint32_t sum = value_of(&whole, at, c) + value_of(&whole, at + 1, c) +
				     value_of(&whole, at + W, c) + value_of(&whole, at + W + 1, c);

		wrong += value_of(&half, to, c) != (sum + 2) / 4;
	}
	CHECK(wrong == 0);
out:
	mu_image_release(&whole);
	mu_image_release(&half);
}

/* Sampling is linear: of the upper bits and of the lower ones as two pictures. */
static void test_sampling(void)
{
	static float out[3 * N], upper[3 * N], lower[3 * N];
	static uint8_t bytes[3 * N];
	const struct image_file f = {.h = H, .w = W};
	const struct mu_augment a = {.resize = 20, .fill = 90, .pad = 2, .random_crop = true};
	const struct mu_shape shapes[] = {MU_SAMPLE(3, SIDE, SIDE), MU_SAMPLE(1, SIDE, SIDE)};
	const float mean[3] = {10, 20, 30}, std[3] = {2, 3, 4};
	const struct mu_image_values plain = {.fill = 90, .std = {1, 1, 1}};
	struct mu_image_worker worker = {0};
	bool are_bytes = false;

	for (size_t i = 0; i < 4 && decode(&f, 16, false, 1, &worker.image); i++) {
		const bool grey = i % 2;
		struct mu_augment_task task = {
			.augment = &a,
			.shape = &shapes[grey],
			.mean = mean,
			.std = std,
			.key = {.seed = 1, .purpose = MU_RANDOM_AUGMENT, .sample = i},
			.bytes = bytes,
			.are_bytes = &are_bytes};
		struct mu_image low;
		struct mu_geometry g;
		size_t wrong = 0;

		CHECK(mu_augment_image(&task, &worker, out) == MU_OK && !are_bytes);
		CHECK(mu_augment_geometry(&a, &task.key, task.shape, H, W, &g) == MU_OK);
		CHECK(mu_image_sample(&worker.image, &g, &plain, &worker.scratch, upper) == MU_OK);
		low = worker.image;
		low.pixels = worker.image.low;
		CHECK(mu_image_sample(&low, &g, &plain, &worker.scratch, lower) == MU_OK);
		for (size_t k = 0; k < 3 * N; k++)
			upper[k] = (256 * upper[k] + lower[k]) / 257;
		mu_image_grey(lower, upper, N);
		for (size_t k = 0; k < mu_shape_sample(task.shape); k++) {
			const float v = grey ? lower[k] : upper[k];

			wrong += fabsf(out[k] - (v - mean[k / N]) / std[k / N]) < 1e-4f ? 0 : 1;
		}
		CHECK(wrong == 0);
	}
	mu_image_worker_release(&worker);
}

int main(void)
{
	test_png();
	test_reduced();
	test_sampling();
	return check_failures() ? 1 : 0;
}
