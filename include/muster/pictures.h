/* SPDX-License-Identifier: Apache-2.0 */
/* pictures: settings of the readers of colour images, "cifar" and "records"
 * (mu_input_config.settings). */
#ifndef MUSTER_PICTURES_H
#define MUSTER_PICTURES_H

#include <muster/image.h>

MU_BEGIN_C

struct mu_input;

struct mu_picture_settings {
	/* Of the options of records, records_reader.c: .idx files of each part, NULL: those beside
	 * the .rec files. */
	const char *data_train_idx, *data_val_idx;
	/* records: used in place of the config's shape for encoded images, which vary in size, if
	 * that has no dimensions. */
	struct mu_shape net_shape;
	float mean[3], std[3]; /* a value is (pixel - mean) / std, per channel; std > 0 */
	struct mu_augment augment; /* {0}: crop the centre */
};

/* Those of an open input; NULL: its reader is another. */
const struct mu_picture_settings *mu_input_pictures(const struct mu_input *in);

MU_END_C

#endif
