/* SPDX-License-Identifier: Apache-2.0 */
/* pictures: settings of the readers of colour images, "cifar" and "records"
 * (mu_input_config.settings). */
#ifndef MUSTER_PICTURES_H
#define MUSTER_PICTURES_H

#include <muster/image.h>

MU_BEGIN_C

struct mu_input;

struct mu_picture_settings {
	/* Options, pictures.c; so are the members of augment. Texts are the caller's. */
	const char *data_train_idx, *data_val_idx; /* .idx files of each part, NULL: those beside
						      the .rec files */
	const char *rgb_mean, *rgb_std;
	long exif_orientation, level, imagenet;
	struct mu_augment augment; /* of training; validation images are resized only. {0}: crop
				      the centre */
	/* What is read: options are settled into it. */
	float mean[3], std[3]; /* a value is (pixel - mean) / std, per channel; std > 0 */
	/* records: used in place of the config's shape for encoded images, which vary in size, if
	 * that has no dimensions. */
	struct mu_shape net_shape;
};

/* Those of an open input; NULL: its reader is another. */
const struct mu_picture_settings *mu_input_pictures(const struct mu_input *in);

MU_END_C

#endif
