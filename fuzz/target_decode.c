/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG and PNG images, and the orientation of the former. The first bytes choose the shape and the
 * augmentation, so that all sizes of windows are met; then all of the picture. The corpus: such
 * bytes, then images of mpi_tests/lib/image_files.c.
 */
#include "fuzz.h"

#include <muster/image.h>

enum { CHOICE = 4, SIDE_MAX = 64, PIXELS_MAX = 1 << 20 };

/* All of the picture, so that all rows are read. */
static void decode_all(struct mu_image_decoder *decoder, const uint8_t *data, size_t n,
		       size_t shrink)
{
	struct mu_image image = {0};
	struct mu_image_window all = {.shrink = shrink};

	if (mu_image_begin(decoder, data, n, &all.h, &all.w) == MU_OK &&
	    all.h * all.w <= PIXELS_MAX) {
		all.h = (all.h + shrink - 1) / shrink;
		all.w = (all.w + shrink - 1) / shrink;
		if (mu_image_decode(decoder, &all, &image) == MU_OK &&
		    (image.h < all.h || image.w < all.w))
			__builtin_trap();
	}
	mu_trace_clear();
	mu_image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static float out[3 * SIDE_MAX * SIDE_MAX];
	const float mean[3] = {0, 0, 0}, std[3] = {1, 1, 1};
	struct mu_image_worker worker = {0};
	struct mu_augment augment = {0};
	struct mu_shape shape;

	if (n < CHOICE)
		return 0;
	augment.resize = data[0] % 128;
	augment.random_resized_crop = data[1] & 1;
	augment.min_area = augment.random_resized_crop ? 0.1 : 0;
	augment.random_crop = !augment.random_resized_crop;
	augment.max_rotate_angle = data[1] & 2 ? 30 : 0;
	augment.pad = data[1] >> 4;
	augment.random_mirror = true;
	shape = (struct mu_shape)MU_SAMPLE(data[1] & 4 ? 1 : 3, 1 + data[2] % SIDE_MAX,
					   1 + data[3] % SIDE_MAX);
	for (uint64_t i = 0; i < 2; i++) {
		struct mu_augment_task task = {.augment = &augment,
					       .shape = &shape,
					       .mean = mean,
					       .std = std,
					       .key = {.sample = i}};

		if (mu_augment_file(&task, data + CHOICE, n - CHOICE, &worker, out) == MU_OK) {
			for (size_t k = 0; k < mu_shape_sample(&shape); k++)
				if (!(out[k] >= -0.001f && out[k] <= 255.001f))
					__builtin_trap();
		}
		mu_trace_clear();
	}
	if ((unsigned)mu_image_orientation(data + CHOICE, n - CHOICE) - 1 >= 8)
		__builtin_trap();
	if (worker.decoder)
		decode_all(worker.decoder, data + CHOICE, n - CHOICE, (size_t)1 << (data[0] >> 6));
	mu_image_worker_release(&worker);
	return 0;
}
