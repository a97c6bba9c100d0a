/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Shapes of tensors and samples: counts, axes, texts, and texts that are none. */
#include <muster/shape.h>

#include <string.h>

#include "../lib/check.h"

static const struct mu_shape volume = MU_SAMPLE(2, 3, 4, 5), picture = MU_SAMPLE(3, 28, 20),
			     row = MU_SAMPLE(1, 9, 1), vector = MU_SAMPLE(7), none = {0};

static void test_counts(void)
{
	const struct mu_shape batch = {4, {6, 3, 28, 20}}, matrix = {2, {6, 5}};

	CHECK(volume.ndims == 5 && picture.ndims == 4 && vector.ndims == 2);
	CHECK(mu_shape_n(&batch) == 10080 && mu_shape_n(&matrix) == 30);
	CHECK(mu_shape_sample(&batch) == 1680 && mu_shape_sample(&matrix) == 5);
	CHECK(mu_shape_sample(&volume) == 120 && mu_shape_sample(&picture) == 1680);
	CHECK(mu_shape_sample(&vector) == 7 && mu_shape_sample(&none) == 0);
	CHECK(mu_shape_channels(&volume) == 2 && mu_shape_channels(&none) == 1);
	CHECK(mu_shape_positions(&volume) == 60 && mu_shape_positions(&vector) == 1);
	CHECK(mu_shape_space(&volume, 2) == 5 && mu_shape_space(&picture, 0) == 28);
	CHECK(mu_shape_space(&picture, 2) == 1 && mu_shape_space(&vector, 0) == 1);
}

static void test_equal(void)
{
	const struct mu_shape sequence = mu_sample_sequence(9);
	struct mu_shape other = picture;

	CHECK(mu_shape_equal(&row, &sequence) && mu_shape_equal(&picture, &other));
	other.dims[4] = 1; /* is not there */
	CHECK(mu_shape_equal(&picture, &other));
	other.dims[3] = 21;
	CHECK(!mu_shape_equal(&picture, &other) && !mu_shape_equal(&none, &vector));
}

static void test_pictures(void)
{
	struct mu_picture p = mu_sample_picture(&picture);

	CHECK(p.c == 3 && p.h == 28 && p.w == 20);
	p = mu_sample_picture(&vector);
	CHECK(p.c == 7 && p.h == 1 && p.w == 1);
	p = mu_sample_picture(&none);
	CHECK(p.c == 0 && p.h == 0 && p.w == 0);
}

static void test_texts(void)
{
	static const char *const wrong[] = {"",      "1,28,28,", ",28",     "1,-28,28", "1,0,28",
					    "1 ,28", "1,28x",    "1,28 ",   "280000",   "1,2,3,4,5",
					    "a",     "1;28;28",  "1,,28",   "-1",       "0x1"};
	static const char *const right[] = {"3,28,20", " 3, 28, 20", "3,028,00020", "+3,28,20"};
	struct mu_shape parsed, most = {5, {0, 99999, 99999, 99999, 99999}};
	char text[MU_SAMPLE_TEXT];

	CHECK(strcmp(mu_shape_text(&picture, text, sizeof text), "(n, 3, 28, 20)") == 0);
	CHECK(strcmp(mu_sample_text(&volume, " x ", text, sizeof text), "2 x 3 x 4 x 5") == 0);
	CHECK(strcmp(mu_sample_text(&none, ",", text, sizeof text), "") == 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (!CHECK(!mu_sample_parse(&parsed, wrong[i])))
			fprintf(stderr, "    \"%s\"\n", wrong[i]);
	for (size_t i = 0; i < sizeof right / sizeof *right; i++)
		CHECK(mu_sample_parse(&parsed, right[i]) && mu_shape_equal(&parsed, &picture));
	CHECK(mu_sample_parse(&parsed, "7") && mu_shape_equal(&parsed, &vector));
	CHECK(mu_sample_parse(&parsed, "2,3,4,5") && mu_shape_equal(&parsed, &volume));
	mu_sample_text(&most, ",", text, sizeof text);
	CHECK(!mu_sample_parse(&parsed, text)); /* more elements than a size_t counts */
}

int main(void)
{
	test_counts();
	test_equal();
	test_pictures();
	test_texts();
	return check_failures() ? 1 : 0;
}
