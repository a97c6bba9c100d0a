/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Colours of pictures: every step against its formula, in double. */
#include <muster/image.h>

#include "../lib/check.h"

enum { PIXELS = 1000 };

static void make_colours(float *rgb)
{
	const struct mu_random key = {.seed = 3, .purpose = MU_RANDOM_TEST};

	for (size_t i = 0; i < 3 * PIXELS; i++)
		rgb[i] = 255 * mu_random_uniform(&key, i);
	for (size_t c = 0; c < 3; c++) {
		rgb[c * PIXELS] = 0;
		rgb[c * PIXELS + 1] = 255;
		rgb[c * PIXELS + 2] = 128; /* grey has no hue */
		rgb[c * PIXELS + 3] = c == 0 ? 255 : 0;
	}
}

static double into_range(double v, double most)
{
	return v < 0 ? 0 : v > most ? most : v;
}

static double grey_at(const float *rgb, size_t i)
{
	return 0.299 * (double)rgb[i] + 0.587 * (double)rgb[i + PIXELS] +
	       0.114 * (double)rgb[i + 2 * PIXELS];
}

static void test_jitter(void)
{
	static float in[3 * PIXELS], out[3][3 * PIXELS], grey[PIXELS];
	double mean = 0;

	make_colours(in);
	for (int k = 0; k < 3; k++)
		memcpy(out[k], in, sizeof in);
	mu_image_brightness(out[0], PIXELS, 1.3f);
	mu_image_contrast(out[1], PIXELS, 0.6f);
	mu_image_saturation(out[2], PIXELS, 1.4f);
	mu_image_grey(grey, in, PIXELS);
	for (size_t i = 0; i < PIXELS; i++)
		mean += grey_at(in, i) / PIXELS;
	for (size_t i = 0; i < 3 * PIXELS; i++) {
		double v = (double)in[i], g = grey_at(in, i % PIXELS);

		CHECK_NEAR((double)out[0][i], into_range(1.3 * v, 255), 1e-3);
		CHECK_NEAR((double)out[1][i], into_range(0.6 * v + 0.4 * mean, 255), 1e-3);
		CHECK_NEAR((double)out[2][i], into_range(1.4 * v - 0.4 * g, 255), 1e-3);
		CHECK_NEAR((double)grey[i % PIXELS], g, 1e-3);
	}
}

/* Another way to write the same conversion: J. Foley and others, "Computer Graphics", 1990,
 * figure 13.37. */
static double from_hls(double low, double high, double degrees)
{
	degrees = fmod(degrees + 360, 360);
	if (degrees < 60)
		return low + (high - low) * degrees / 60;
	if (degrees < 180)
		return high;
	return degrees < 240 ? low + (high - low) * (240 - degrees) / 60 : low;
}

static void shifted(const double rgb[3], double hue, double sat, double light, double out[3])
{
	double most = fmax(rgb[0], fmax(rgb[1], rgb[2])),
	       least = fmin(rgb[0], fmin(rgb[1], rgb[2]));
	double l = (most + least) / 2, d = most - least, s = 0, h = 0, high, low;

	if (d > 0) {
		s = l <= 0.5 ? d / (most + least) : d / (2 - most - least);
		h = most == rgb[0]   ? (rgb[1] - rgb[2]) / d
		    : most == rgb[1] ? 2 + (rgb[2] - rgb[0]) / d
				     : 4 + (rgb[0] - rgb[1]) / d;
	}
	h = fmod(h * 60 + 360, 360);
	h = 2 * into_range(h / 2 + hue, 180);
	l = into_range(l * 255 + light, 255) / 255;
	s = into_range(s * 255 + sat, 255) / 255;
	high = l <= 0.5 ? l * (1 + s) : l + s - l * s;
	low = 2 * l - high;
	out[0] = 255 * from_hls(low, high, h + 120);
	out[1] = 255 * from_hls(low, high, h);
	out[2] = 255 * from_hls(low, high, h - 120);
}

static void test_hsl(void)
{
	static const float shifts[][3] = {{0, 0, 0}, {17, 0, 0}, {-36, 50, -50}, {0, -30, 40}};
	static float in[3 * PIXELS], out[3 * PIXELS];

	for (size_t k = 0; k < sizeof shifts / sizeof *shifts; k++) {
		const float *s = shifts[k];
		size_t wrong = 0;

		make_colours(in);
		memcpy(out, in, sizeof in);
		mu_image_hsl(out, PIXELS, s[0], s[1], s[2]);
		for (size_t i = 0; i < PIXELS; i++) {
			double rgb[3], want[3];

			for (size_t c = 0; c < 3; c++)
				rgb[c] = (double)in[i + c * PIXELS] / 255;
			shifted(rgb, (double)s[0], (double)s[1], (double)s[2], want);
			for (size_t c = 0; c < 3; c++)
				wrong += fabs((double)out[i + c * PIXELS] - want[c]) < 0.02 ? 0 : 1;
		}
		CHECK(wrong == 0);
	}
}

static void test_pca(void)
{
	static float rgb[3 * PIXELS], in[3 * PIXELS];
	const float weight[3] = {0.1f, -0.2f, 0.3f};
	/* 0.1 x 55.46, -0.2 x 4.794, 0.3 x 1.148, times the rows of vectors, by hand */
	const double add[3] = {-3.698847, -3.497083, -2.425728};

	make_colours(in);
	memcpy(rgb, in, sizeof in);
	mu_image_pca(rgb, PIXELS, weight);
	for (size_t i = 0; i < 3 * PIXELS; i++)
		CHECK_NEAR((double)rgb[i], into_range((double)in[i] + add[i / PIXELS], 255), 1e-2);
}

int main(void)
{
	test_jitter();
	test_hsl();
	test_pca();
	return check_failures() ? 1 : 0;
}
