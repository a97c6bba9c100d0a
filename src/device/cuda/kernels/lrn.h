/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation. */
#ifndef DEVICE_CUDA_KERNELS_LRN_H
#define DEVICE_CUDA_KERNELS_LRN_H

#include "numbers.h"

/* First and one past the last channel of the window around channel c. */
CUDA_FUNCTION void lrn_window(size_t c, size_t channels, int size, size_t *from, size_t *to)
{
	size_t half = (size_t)size / 2;

	*from = c > half ? c - half : 0;
	*to = c + half + 1 < channels ? c + half + 1 : channels;
}

CUDA_FUNCTION void lrn_at(const struct cuda_lrn *a, size_t i)
{
	size_t c = i / a->area % a->channels, from, to;
	const float *pixel = a->x + (i - c * a->area); /* channel 0 */
	float sum = 0, scale;

	lrn_window(c, a->channels, a->size, &from, &to);
	for (size_t k = from; k < to; k++)
		sum += pixel[k * a->area] * pixel[k * a->area];
	scale = a->k + a->alpha / (float)a->size * sum;
	if (a->scale)
		a->scale[i] = scale;
	a->y[i] = a->x[i] * powf(scale, -a->beta);
}

CUDA_FUNCTION void lrn_backward_at(const struct cuda_lrn_backward *a, size_t i)
{
	size_t c = i / a->area % a->channels, first = i - c * a->area, from, to;
	float sum = 0;

	lrn_window(c, a->channels, a->size, &from, &to);
	for (size_t k = from; k < to; k++) {
		size_t e = first + k * a->area;

		sum += a->dy[e] * a->x[e] * powf(a->scale[e], -a->beta - 1);
	}
	a->dx[i] = a->dy[i] * powf(a->scale[i], -a->beta) -
		   2 * a->alpha * a->beta / (float)a->size * a->x[i] * sum;
}

#endif
