/* SPDX-License-Identifier: Apache-2.0 */
/* Instead of image/jpeg.c, without libjpeg-turbo. */
#include "decode.h"

const struct mu_image_format mu_image_format_jpeg = {
	.name = "JPEG",
	.magic = "\xff\xd8\xff",
	.n_magic = 3,
	.library = "no libjpeg-turbo",
};
