/* SPDX-License-Identifier: Apache-2.0 */
/* The middle square of an image as a record's planes. */
#include "cifar_pack.h"

enum mu_status pack_scale(uint8_t *out, size_t size, const struct data_pixels *in)
{
	enum mu_status st = MU_OK;
	size_t side = in->w < in->h ? in->w : in->h, n = size * size;
	struct data_window window = {in, (in->h - side) / 2, (in->w - side) / 2, side, side};
	uint8_t *scaled = NULL;

	MU_TRY(MU_ALLOC(scaled, 3 * n, "scaled image"));
	MU_TRY(data_scale(scaled, size, size, &window));
	for (size_t i = 0; i < n; i++) {
		for (size_t c = 0; c < 3; c++)
			out[c * n + i] = scaled[3 * i + c];
	}
out:
	mu_free(scaled);
	return st;
}
