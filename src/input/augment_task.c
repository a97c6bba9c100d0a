/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by readers of images: their settings, and the augmentation. */
#include <math.h>
#include <string.h>

#include "reader.h"

const struct mu_picture_settings *mu_input_pictures(const struct mu_input *in)
{
	return in->ops->colour_images ? in->settings : NULL;
}

struct mu_augment_task mu_input_task(const struct mu_input *in, struct mu_input_thread *thread,
				     size_t record)
{
	const struct mu_picture_settings *s = in->settings;

	return (struct mu_augment_task){
		.augment = &s->augment,
		.shape = mu_input_shape(in),
		.mean = s->mean,
		.std = s->std,
		.key = {.seed = in->config.seed,
			.purpose = MU_RANDOM_AUGMENT,
			.epoch = in->epoch,
			.sample = record},
		.bytes = thread ? thread->bytes : NULL,
		.are_bytes = thread ? &thread->are_bytes : NULL,
	};
}

enum mu_status mu_input_declare_images(struct mu_input *in, const struct mu_shape *shape)
{
	enum mu_status st = MU_OK;
	const struct mu_picture_settings *s = in->settings;
	struct mu_field *data = mu_input_declare_data(in, MU_NUMBER_BYTE, shape);

	memcpy(data->mean, s->mean, sizeof data->mean);
	memcpy(data->std, s->std, sizeof data->std);
	for (size_t i = 0; i < 3; i++)
		if (!isfinite(s->mean[i]) || !isfinite(s->std[i]) || s->std[i] <= 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s input: mean %g and std %g of channel %zu; both must be finite "
				"and std above 0",
				in->ops->name, (double)s->mean[i], (double)s->std[i], i);
	MU_TRY(mu_augment_check(&s->augment, shape));
	if (!in->config.bytes || !mu_augment_keeps_bytes(&s->augment, shape))
		data->number = MU_NUMBER_FLOAT32;
out:
	return st;
}
