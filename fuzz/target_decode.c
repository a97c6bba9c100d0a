/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG and PNG images. The first bytes choose the shape and the augmentation, so that all sizes of
 * windows are met. The corpus: such bytes, then images of mpi_tests/image_files.c.
 */
#include "fuzz.h"

#include <muster/image.h>

enum { CHOICE = 4, SIDE_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static float out[3 * SIDE_MAX * SIDE_MAX];
	const float mean[3] = {0, 0, 0}, std[3] = {1, 1, 1};
	struct mu_image_worker worker = {0};
	struct mu_augment augment = {0};
	size_t shape[3];

	if (n < CHOICE)
		return 0;
	augment.resize = data[0] % 128;
	augment.random_resized_crop = data[1] & 1;
	augment.min_area = augment.random_resized_crop ? 0.1 : 0;
	augment.random_crop = !augment.random_resized_crop;
	augment.max_rotate_angle = data[1] & 2 ? 30 : 0;
	augment.pad = data[1] >> 4;
	augment.random_mirror = true;
	shape[0] = data[1] & 4 ? 1 : 3;
	shape[1] = 1 + data[2] % SIDE_MAX;
	shape[2] = 1 + data[3] % SIDE_MAX;
	for (uint64_t i = 0; i < 2; i++) {
		struct mu_augment_task task = {&augment, shape, mean, std, {.sample = i}};

		if (mu_augment_file(&task, data + CHOICE, n - CHOICE, &worker, out) == MU_OK) {
			for (size_t k = 0; k < shape[0] * shape[1] * shape[2]; k++)
				if (!(out[k] >= -0.001f && out[k] <= 255.001f))
					__builtin_trap();
		}
		mu_trace_clear();
	}
	mu_image_worker_release(&worker);
	return 0;
}
