/* SPDX-License-Identifier: Apache-2.0 */
/* Instead of image/png.c, without libpng. */
#include "decode.h"

const struct mu_image_format mu_image_format_png = {
	.name = "PNG",
	.magic = "\x89PNG\r\n\x1a\n",
	.n_magic = 8,
	.library = "no libpng",
};
