/* SPDX-License-Identifier: Apache-2.0 */
/* PNG images in a build without libpng. */
#include "image.h"

static enum mu_status refuse(void)
{
	return mu_trace_start(MU_ERR_UNSUPPORTED, __FILE__, __LINE__,
			      "this build has no libpng and so has no PNG images: install it "
			      "(Debian: libpng-dev) and configure again");
}

enum mu_status data_png_encode(const struct data_pixels *in, const struct data_encoding *how,
			       struct data_buffer *out, size_t *nbytes)
{
	(void)in, (void)how, (void)out;
	*nbytes = 0;
	return refuse();
}
