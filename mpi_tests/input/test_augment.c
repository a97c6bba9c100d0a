/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Pictures after decoding: every step of geometry against the formula of a place, sampling against
 * a plain interpolation, draws by their ranges, and the whole way against the single steps.
 */
#include <muster/image.h>

#include <stdlib.h>
#include <string.h>

#include "../lib/check.h"

enum { H = 23, W = 31, MOST = 64 };

static uint32_t pixel_of(size_t y, size_t x)
{
	return (uint32_t)((y * 7 + x * 3) % 256 | (y * x % 256) << 8 |
			  (y * 5 + x * 11) % 256 << 16);
}

static void make_picture(struct mu_image *image, size_t h, size_t w)
{
	CHECK(mu_image_resize(image, h, w) == MU_OK);
	for (size_t i = 0; i < h * w; i++)
		image->pixels[i] = pixel_of(i / w, i % w) | 0xab000000u;
}

/* ---- sampling, the plain way ---- */

static double channel(const struct mu_image *image, double y, double x, int c)
{
	double most_y = (double)image->h - 1, most_x = (double)image->w - 1;

	y = y < 0 ? 0 : y > most_y ? most_y : y;
	x = x < 0 ? 0 : x > most_x ? most_x : x;
	return image->pixels[(size_t)y * image->w + (size_t)x] >> 8 * c & 255;
}

static double expected(const struct mu_image *image, const struct mu_geometry *g, size_t i,
		       size_t j, int c, double fill)
{
	double v = (double)i + 0.5, u = (double)j + 0.5;
	double y = g->m[0][0] * v + g->m[0][1] * u + g->m[0][2];
	double x = g->m[1][0] * v + g->m[1][1] * u + g->m[1][2];
	double fy, fx, above, below;

	if (v < g->top || v >= g->bottom || u < g->left || u >= g->right || y < 0 || x < 0 ||
	    y > (double)g->source_h || x > (double)g->source_w)
		return fill;
	y -= 0.5;
	x -= 0.5;
	fy = y - floor(y);
	fx = x - floor(x);
	above = channel(image, floor(y), floor(x), c) * (1 - fx) +
		channel(image, floor(y), floor(x) + 1, c) * fx;
	below = channel(image, floor(y) + 1, floor(x), c) * (1 - fx) +
		channel(image, floor(y) + 1, floor(x) + 1, c) * fx;
	return above * (1 - fy) + below * fy;
}

static size_t wrong_values(const struct mu_image *image, const struct mu_geometry *g,
			   struct mu_image_values values)
{
	static float out[3 * MOST * MOST + 1];
	struct mu_image_scratch scratch = {0};
	size_t n = g->h * g->w, wrong = 0;

	out[3 * n] = -7;
	CHECK(mu_image_sample(image, g, &values, &scratch, out) == MU_OK);
	CHECK(out[3 * n] == -7);
	for (size_t k = 0; k < 3 * n; k++) {
		size_t c = k / n;
		double want = expected(image, g, k % n / g->w, k % g->w, (int)c, values.fill);

		want = (want - (double)values.mean[c]) / (double)values.std[c];
		wrong += fabs((double)out[k] - want) < 1e-3 ? 0 : 1;
	}
	mu_image_scratch_release(&scratch);
	return wrong;
}

static size_t wrong_samples(const struct mu_image *image, const struct mu_geometry *g)
{
	const struct mu_image_values values = {.fill = 77, .mean = {10, 20, 30}};
	struct mu_image_values divided = values, plain = values;

	memcpy(divided.std, (float[]){2, 3, 0.5f}, sizeof divided.std);
	memcpy(plain.std, (float[]){1, 1, 1}, sizeof plain.std);
	return wrong_values(image, g, divided) + wrong_values(image, g, plain);
}

/* Pixels that only move: rows shorter and longer than vectors, more or less of them beside the
 * picture. */
static void test_moves(void)
{
	struct mu_image image = {0};
	struct mu_geometry g;

	make_picture(&image, H, W);
	for (size_t k = 0; k < 6 * MOST; k++) {
		size_t w = 1 + k % MOST, pad = k % 23 + (w > W ? (w - W + 1) / 2 : 0);

		mu_geometry_start(&g, H, W);
		mu_geometry_pad(&g, pad);
		mu_geometry_crop(&g, k % (H + 2 * pad - 4), k * 7 % (W + 2 * pad - w + 1), 5, w);
		if (k % 2)
			mu_geometry_mirror(&g);
		CHECK(wrong_samples(&image, &g) == 0);
	}
	mu_image_release(&image);
}

static void test_sampling(void)
{
	struct mu_image image = {0};
	const struct mu_affine affine = {.angle = 25, .shear = 0.2, .scale = 1.1, .aspect = 1.2};
	const struct mu_affine turned = {.angle = 90, .scale = 1, .aspect = 1};
	struct mu_geometry g;

	make_picture(&image, H, W);
	for (int mirror = 0; mirror < 2; mirror++) {
		for (size_t h = 1; h < 45; h += 6) {
			mu_geometry_start(&g, H, W);
			mu_geometry_resize(&g, h, 2 * h);
			if (mirror)
				mu_geometry_mirror(&g);
			CHECK(wrong_samples(&image, &g) == 0);
			mu_geometry_start(&g, H, W);
			mu_geometry_pad(&g, 4);
			mu_geometry_crop(&g, h % 9, h % 7, H, W);
			if (mirror)
				mu_geometry_mirror(&g);
			CHECK(wrong_samples(&image, &g) == 0);
			mu_geometry_start(&g, H, W);
			mu_geometry_affine(&g, h % 2 ? &affine : &turned);
			mu_geometry_pad(&g, h % 5);
			mu_geometry_crop(&g, h % 3, 1, H, W - 2);
			if (mirror)
				mu_geometry_mirror(&g);
			CHECK(wrong_samples(&image, &g) == 0);
		}
	}
	make_picture(&image, 1, 1);
	mu_geometry_start(&g, 1, 1);
	mu_geometry_resize(&g, 5, 4);
	CHECK(wrong_samples(&image, &g) == 0);
	mu_geometry_crop(&g, 2, 1, 1, 1);
	CHECK(wrong_samples(&image, &g) == 0);
	mu_image_release(&image);
}

/* ---- geometry ---- */

static void check_place(const struct mu_geometry *g, double y, double x, double want_y,
			double want_x)
{
	CHECK_NEAR(g->m[0][0] * y + g->m[0][1] * x + g->m[0][2], want_y, 1e-9);
	CHECK_NEAR(g->m[1][0] * y + g->m[1][1] * x + g->m[1][2], want_x, 1e-9);
}

static void test_geometry(void)
{
	const struct mu_affine affine = {.angle = 30, .shear = 0.1, .scale = 1.5, .aspect = 0.8};
	double a = cos(acos(-1) / 6), b = 0.5, hs = 2 * 1.5 / 1.8, ws = 0.8 * hs;
	double x = 17, y = -6; /* from the centre of the source */
	struct mu_geometry g;

	mu_geometry_start(&g, 375, 500);
	mu_geometry_resize_shorter(&g, 256);
	CHECK(g.h == 256 && g.w == 341);
	check_place(&g, 10, 20, 10 * 375.0 / 256, 20 * 500.0 / 341);
	mu_geometry_start(&g, 500, 375);
	mu_geometry_resize_shorter(&g, 256);
	CHECK(g.h == 341 && g.w == 256);
	mu_geometry_crop(&g, 5, 6, 224, 224);
	CHECK(g.h == 224 && g.w == 224);
	check_place(&g, 1, 2, 6 * 500.0 / 341, 8 * 375.0 / 256);
	mu_geometry_mirror(&g);
	check_place(&g, 1, 2, 6 * 500.0 / 341, 228 * 375.0 / 256);

	mu_geometry_start(&g, 32, 32);
	mu_geometry_pad(&g, 4);
	CHECK(g.h == 40 && g.w == 40 && g.top == 4 && g.bottom == 36 && g.left == 4);
	mu_geometry_crop(&g, 3, 8, 28, 28);
	CHECK(g.top == 1 && g.bottom == 33 && g.left == -4 && g.right == 28);
	mu_geometry_mirror(&g);
	CHECK(g.left == 0 && g.right == 32);
	check_place(&g, 0.5, 0.5, -0.5, 31.5);

	mu_geometry_start(&g, 100, 80);
	mu_geometry_affine(&g, &affine);
	CHECK(g.h == 150 && g.w == 120);
	check_place(&g, 75, 60, 50, 40);
	check_place(&g, 75 + -b * ws * x + a * ws * y,
		    60 + (hs * a - 0.1 * b * ws) * x + (hs * b + 0.1 * a * ws) * y, 50 + y, 40 + x);
}

static void test_window(void)
{
	struct mu_geometry g;
	struct mu_image_window w;

	mu_geometry_start(&g, 1500, 2000);
	mu_geometry_resize_shorter(&g, 256);
	mu_geometry_crop(&g, 0, 100, 224, 224);
	mu_geometry_window(&g, 8, &w); /* 5.9 pixels for one: 4 are joined */
	CHECK(w.shrink == 4 && w.top == 0 && w.h == 328 && w.left == 146 && w.w == 329);
	mu_geometry_window(&g, 2, &w);
	CHECK(w.shrink == 2);
	mu_geometry_start(&g, 512, 512);
	mu_geometry_resize_shorter(&g, 256);
	mu_geometry_window(&g, 8, &w);
	CHECK(w.shrink == 2 && w.h == 256 && w.w == 256);
	mu_geometry_start(&g, 511, 511);
	mu_geometry_resize_shorter(&g, 256);
	mu_geometry_window(&g, 8, &w);
	CHECK(w.shrink == 1 && w.h == 511);
	mu_geometry_start(&g, 32, 32);
	mu_geometry_pad(&g, 4);
	mu_geometry_crop(&g, 8, 0, 28, 28);
	mu_geometry_window(&g, 8, &w); /* one more than is needed, where there is one */
	CHECK(w.shrink == 1 && w.top == 4 && w.h == 28 && w.left == 0 && w.w == 25);
}

/* ---- draws ---- */

static struct mu_random key_of(size_t i)
{
	return (struct mu_random){.seed = 9, .purpose = MU_RANDOM_AUGMENT, .sample = i};
}

/* Every place of the crop, and both sides, equally often. */
static void test_crop_draws(void)
{
	enum { DRAWS = 20000, PLACES = 9 };
	const struct mu_augment a = {.random_crop = true, .random_mirror = true, .pad = 4};
	const struct mu_shape shape = MU_SAMPLE(3, 32, 32);
	int tops[PLACES] = {0}, lefts[PLACES] = {0}, mirrored = 0;

	for (size_t i = 0; i < DRAWS; i++) {
		struct mu_random key = key_of(i);
		struct mu_geometry g;
		double left;

		CHECK(mu_augment_geometry(&a, &key, &shape, 32, 32, &g) == MU_OK);
		CHECK(g.h == 32 && g.w == 32);
		mirrored += g.m[1][1] < 0;
		left = g.m[1][1] < 0 ? g.m[1][2] - 32 : g.m[1][2];
		if (CHECK(fabs(g.m[0][2]) <= 4 && fabs(left) <= 4)) {
			tops[(int)(g.m[0][2] + 4)]++;
			lefts[(int)(left + 4)]++;
		}
	}
	CHECK(abs(mirrored - DRAWS / 2) < 400);
	for (int i = 0; i < PLACES; i++)
		CHECK(abs(tops[i] - DRAWS / PLACES) < 300 && abs(lefts[i] - DRAWS / PLACES) < 300);
}

static void test_fixed_crops(void)
{
	const struct mu_shape shape = MU_SAMPLE(3, 24, 20);
	struct mu_random key = key_of(0);
	struct mu_augment a = {0};
	struct mu_geometry g;

	CHECK(mu_augment_is_none(&a));
	CHECK(mu_augment_geometry(&a, &key, &shape, 31, 41, &g) == MU_OK);
	check_place(&g, 0, 0, 3, 10); /* the middle, half a pixel up and left */
	/* Too small: enlarged to 24 rows, of 12 / 24 each, and so to 48 columns. */
	CHECK(mu_augment_geometry(&a, &key, &shape, 12, 24, &g) == MU_OK);
	check_place(&g, 0, 0, 0, 7);
	check_place(&g, 24, 20, 12, 17);
	CHECK(mu_augment_geometry(&a, &key, &shape, 1, 1, &g) == MU_OK);
	CHECK(g.h == 24 && g.w == 20);
	a.min_crop = a.max_crop = 30;
	CHECK(mu_augment_geometry(&a, &key, &shape, 31, 40, &g) == MU_OK);
	check_place(&g, 0, 0, 0, 5);
	check_place(&g, 24, 20, 30, 35);
	CHECK(mu_augment_geometry(&a, &key, &shape, 29, 40, &g) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), "29 x 40 pixels");
	mu_trace_clear();
}

static void test_resized_crop(void)
{
	const struct mu_augment a = {.random_resized_crop = true,
				     .min_area = 0.08,
				     .min_aspect = 0.75,
				     .max_aspect = 4.0 / 3};
	const struct mu_shape shape = MU_SAMPLE(3, 10, 10);
	double least = 1, most = 0, mean = 0;

	for (size_t i = 0; i < 2000; i++) {
		struct mu_random key = key_of(i);
		struct mu_geometry g;
		double area, aspect;

		CHECK(mu_augment_geometry(&a, &key, &shape, 300, 400, &g) == MU_OK);
		area = 100 * g.m[0][0] * g.m[1][1] / 120000;
		aspect = g.m[1][1] / g.m[0][0];
		CHECK(aspect > 0.74 && aspect < 1.35);
		CHECK(g.m[0][2] >= 0 && g.m[0][2] + 10 * g.m[0][0] <= 300.001);
		CHECK(g.m[1][2] >= 0 && g.m[1][2] + 10 * g.m[1][1] <= 400.001);
		least = fmin(least, area);
		most = fmax(most, area);
		mean += area / 2000;
	}
	CHECK(least > 0.079 && least < 0.1 && most > 0.8 && most <= 1);
	CHECK_NEAR(mean, 0.5, 0.06); /* the largest areas fit less often */
}

static void check_refused(struct mu_augment a, const char *part)
{
	const struct mu_shape shape = MU_SAMPLE(3, 24, 20);

	CHECK(mu_augment_check(&a, &shape) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), part);
	mu_trace_clear();
}

static void test_check(void)
{
	check_refused((struct mu_augment){.min_crop = 5, .max_crop = 4}, "min-crop-size 5");
	check_refused((struct mu_augment){.max_crop = 4}, "needs setting min-crop-size");
	check_refused((struct mu_augment){.random_resized_crop = true, .random_crop = true},
		      "random-resized-crop 1");
	check_refused((struct mu_augment){.min_scale = 1.2}, "min-random-scale 1.2");
	check_refused((struct mu_augment){.max_area = 0.5}, "min-random-area 1");
	check_refused((struct mu_augment){.max_aspect = 1}, "below 1");
	check_refused((struct mu_augment){.min_aspect = 1.5, .max_aspect = 1},
		      "min-random-aspect-ratio 1.5");
}

/* ---- all of it ---- */

/* The steps one after another, with the functions tested above. */
static void test_whole_way(void)
{
	enum { SIDE = 16, N = SIDE * SIDE };
	static float out[3 * N], want[3 * N], grey[N];
	const struct mu_augment a = {.resize = 20,
				     .max_rotate_angle = 10,
				     .pad = 2,
				     .fill = 90,
				     .random_crop = true,
				     .brightness = 0.3,
				     .contrast = 0.2,
				     .saturation = 0.5,
				     .max_h = 20,
				     .max_s = 30,
				     .max_l = 10,
				     .pca_noise = 0.1,
				     .random_mirror = true};
	const struct mu_shape shapes[] = {MU_SAMPLE(3, SIDE, SIDE), MU_SAMPLE(1, SIDE, SIDE)};
	const float mean[3] = {10, 20, 30}, std[3] = {2, 3, 4};
	const struct mu_image_values plain = {.fill = 90, .std = {1, 1, 1}};
	struct mu_image_worker worker = {0};

	CHECK(!mu_augment_is_none(&a));
	for (size_t i = 0; i < 40; i++) {
		const struct mu_shape *shape = &shapes[i % 2];
		struct mu_augment_task task = {
			.augment = &a, .shape = shape, .mean = mean, .std = std, .key = key_of(i)};
		struct mu_geometry g;
		size_t wrong = 0;

		make_picture(&worker.image, H, W);
		CHECK(mu_augment_image(&task, &worker, out) == MU_OK);
		CHECK(mu_augment_geometry(&a, &task.key, shape, H, W, &g) == MU_OK);
		CHECK(mu_image_sample(&worker.image, &g, &plain, &worker.scratch, want) == MU_OK);
		mu_augment_colour(&a, &task.key, want, N);
		mu_image_grey(grey, want, N);
		for (size_t k = 0; k < mu_shape_sample(shape); k++) {
			float v = i % 2 ? grey[k] : want[k];

			wrong += fabsf(out[k] - (v - mean[k / N]) / std[k / N]) < 1e-4f ? 0 : 1;
		}
		CHECK(wrong == 0);
	}
	mu_image_worker_release(&worker);
}

static void test_bytes(void)
{
	static const uint8_t planes[6] = {1, 2, 3, 4, 5, 6};
	struct mu_image image = {0};

	CHECK(mu_image_from_bytes(&image, planes, &(struct mu_shape)MU_SAMPLE(3, 1, 2), false) ==
	      MU_OK);
	CHECK((image.pixels[1] & 0xffffff) == (2 | 4 << 8 | 6 << 16));
	CHECK(mu_image_from_bytes(&image, planes, &(struct mu_shape)MU_SAMPLE(3, 2, 1), true) ==
	      MU_OK);
	CHECK((image.pixels[1] & 0xffffff) == (4 | 5 << 8 | 6 << 16));
	CHECK(mu_image_from_bytes(&image, planes, &(struct mu_shape)MU_SAMPLE(1, 2, 3), true) ==
	      MU_OK);
	CHECK((image.pixels[5] & 0xffffff) == (6 | 6 << 8 | 6 << 16));
	CHECK(mu_image_from_bytes(&image, planes, &(struct mu_shape)MU_SAMPLE(2, 1, 3), true) ==
	      MU_ERR_UNSUPPORTED);
	mu_trace_clear();
	mu_image_release(&image);
}

static void test_fixed(void)
{
	const struct mu_shape image = MU_SAMPLE(3, 32, 32), smaller = MU_SAMPLE(3, 28, 32);
	const struct mu_shape several = {0};
	const struct mu_augment random = {.random_crop = true};

	CHECK(mu_augment_crop_is_fixed(&random, &image, &image));
	CHECK(!mu_augment_crop_is_fixed(&random, &image, &smaller));
	CHECK(!mu_augment_crop_is_fixed(&random, &several, &image));
	CHECK(!mu_augment_crop_is_fixed(&(struct mu_augment){.random_crop = false}, &image,
					&image));
	CHECK(!mu_augment_crop_is_fixed(&(struct mu_augment){.random_crop = true, .pad = 4}, &image,
					&image));
	CHECK(!mu_augment_crop_is_fixed(&(struct mu_augment){.random_crop = true, .resize = 36},
					&image, &image));
}

int main(void)
{
	test_fixed();
	test_bytes();
	test_sampling();
	test_moves();
	test_geometry();
	test_window();
	test_crop_draws();
	test_fixed_crops();
	test_resized_crop();
	test_check();
	test_whole_way();
	return check_failures() ? 1 : 0;
}
