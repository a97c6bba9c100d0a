/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by readers of images: the augmentation of their config. */
#include <math.h>

#include "reader.h"

struct mu_augment_task mu_input_task(const struct mu_input *in, struct mu_input_thread *thread,
				     size_t record)
{
	return (struct mu_augment_task){
		.augment = &in->config.augment,
		.shape = mu_input_shape(in),
		.mean = in->config.mean,
		.std = in->config.std,
		.key = {.seed = in->config.seed,
			.purpose = MU_RANDOM_AUGMENT,
			.epoch = in->epoch,
			.sample = record},
		.bytes = thread ? thread->bytes : NULL,
		.are_bytes = thread ? &thread->are_bytes : NULL,
	};
}

enum mu_status mu_input_check_images(const struct mu_input *in)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < 3; i++)
		if (!isfinite(in->config.mean[i]) || !isfinite(in->config.std[i]) ||
		    in->config.std[i] <= 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s input: mean %g and std %g of channel %zu; both must be finite "
				"and std above 0",
				in->ops->name, (double)in->config.mean[i],
				(double)in->config.std[i], i);
	MU_TRY(mu_augment_check(&in->config.augment, mu_input_shape(in)));
out:
	return st;
}
