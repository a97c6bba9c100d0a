/* SPDX-License-Identifier: Apache-2.0 */
/* Colours: each function changes planes of red, green and blue in place. */
#include <math.h>

#include <muster/image.h>

static const float grey_of[3] = {0.299f, 0.587f, 0.114f};

static float limit(float v, float most)
{
	return v < 0 ? 0 : v > most ? most : v;
}

MU_LOOP static void scale_values(float *values, size_t n, float amount, float rest)
{
	for (size_t i = 0; i < n; i++) {
		float v = amount * values[i] + rest;

		v = v < 0 ? 0 : v;
		values[i] = v > 255 ? 255 : v;
	}
}

MU_LOOP static void grey_values(float *restrict grey, const float *restrict red,
				const float *restrict green, const float *restrict blue, size_t n)
{
	for (size_t i = 0; i < n; i++)
		grey[i] = grey_of[0] * red[i] + grey_of[1] * green[i] + grey_of[2] * blue[i];
}

void mu_image_grey(float *grey, const float *rgb, size_t n)
{
	grey_values(grey, rgb, rgb + n, rgb + 2 * n, n);
}

void mu_image_brightness(float *rgb, size_t n, float amount)
{
	scale_values(rgb, 3 * n, amount, 0);
}

void mu_image_contrast(float *rgb, size_t n, float amount)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += grey_of[0] * rgb[i] + grey_of[1] * rgb[i + n] + grey_of[2] * rgb[i + 2 * n];
	scale_values(rgb, 3 * n, amount, (1 - amount) * (float)(sum / (double)n));
}

MU_LOOP static void saturate(float *restrict red, float *restrict green, float *restrict blue,
			     size_t n, float amount)
{
	for (size_t i = 0; i < n; i++) {
		float rest = (1 - amount) *
			     (grey_of[0] * red[i] + grey_of[1] * green[i] + grey_of[2] * blue[i]);

		red[i] = amount * red[i] + rest;
		green[i] = amount * green[i] + rest;
		blue[i] = amount * blue[i] + rest;
	}
}

void mu_image_saturation(float *rgb, size_t n, float amount)
{
	saturate(rgb, rgb + n, rgb + 2 * n, n, amount);
	scale_values(rgb, 3 * n, 1, 0);
}

/* hsl: hue 0 to 180, saturation and lightness 0 to 255. */
static void to_hsl(const float rgb[3], float hsl[3])
{
	float most = fmaxf(rgb[0], fmaxf(rgb[1], rgb[2])) / 255;
	float least = fminf(rgb[0], fminf(rgb[1], rgb[2])) / 255;
	float range = most - least, sum = most + least, hue = 0;

	hsl[1] = 0;
	hsl[2] = sum / 2 * 255;
	if (range > 0) {
		hsl[1] = range / (sum < 1 ? sum : 2 - sum) * 255;
		if (most * 255 <= rgb[0])
			hue = (rgb[1] - rgb[2]) / 255 / range;
		else if (most * 255 <= rgb[1])
			hue = 2 + (rgb[2] - rgb[0]) / 255 / range;
		else
			hue = 4 + (rgb[0] - rgb[1]) / 255 / range;
	}
	hsl[0] = (hue < 0 ? hue + 6 : hue) * 30;
}

static void from_hsl(const float hsl[3], float rgb[3])
{
	float l = hsl[2] / 255, s = hsl[1] / 255;
	float chroma = (1 - fabsf(2 * l - 1)) * s, least = l - chroma / 2;

	for (int c = 0; c < 3; c++) {
		/* Distance of the hue from red, green or blue, in sixths of the circle. */
		float away = fabsf(hsl[0] / 30 - 2 * (float)c);

		away = away > 3 ? 6 - away : away;
		rgb[c] = limit(least + chroma * limit(2 - away, 1), 1) * 255;
	}
}

void mu_image_hsl(float *rgb, size_t n, float hue, float saturation, float lightness)
{
	for (size_t i = 0; i < n; i++) {
		float pixel[3] = {rgb[i], rgb[i + n], rgb[i + 2 * n]}, hsl[3];

		to_hsl(pixel, hsl);
		hsl[0] = limit(hsl[0] + hue, 180);
		hsl[1] = limit(hsl[1] + saturation, 255);
		hsl[2] = limit(hsl[2] + lightness, 255);
		from_hsl(hsl, pixel);
		for (size_t c = 0; c < 3; c++)
			rgb[i + c * n] = pixel[c];
	}
}

void mu_image_pca(float *rgb, size_t n, const float weight[3])
{
	/* Eigenvalues of the covariance of red, green, blue over ImageNet's pixels, for values of 0
	 * to 255. */
	static const float values[3] = {55.46f, 4.794f, 1.148f};
	static const float vectors[3][3] = {
		{-0.5675f, 0.7192f, 0.4009f},
		{-0.5808f, -0.0045f, -0.8140f},
		{-0.5836f, -0.6948f, 0.4203f},
	};

	for (size_t c = 0; c < 3; c++) {
		float add = 0;

		for (int i = 0; i < 3; i++)
			add += vectors[c][i] * values[i] * weight[i];
		scale_values(rgb + c * n, n, 1, add);
	}
}

MU_LOOP static void shift_and_divide(float *values, size_t n, float mean, float std)
{
	for (size_t i = 0; i < n; i++)
		values[i] = (values[i] - mean) / std;
}

void mu_image_normalise(float *values, size_t n, float mean, float std)
{
	shift_and_divide(values, n, mean, std);
}
