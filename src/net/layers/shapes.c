/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of shapes that rows of layers share. */
#include "layer.h"

size_t mu_layer_features(const struct mu_shape *s)
{
	size_t n = 1;

	for (int i = 1; i < s->ndims; i++)
		n *= s->dims[i];
	return n;
}

struct mu_shape mu_layer_vector(size_t n)
{
	return (struct mu_shape){1, {n}};
}

struct mu_shape mu_layer_matrix(size_t rows, size_t columns)
{
	return (struct mu_shape){2, {rows, columns}};
}

int mu_layer_window(struct net_draft *d, const struct layer_window *w)
{
	const size_t *size = d->in->dims + 2;
	int k[2]; /* dilation included */

	for (int i = 0; i < 2; i++) {
		w->stride[i] = w->stride[i] ? w->stride[i] : 1;
		k[i] = (w->dilate ? w->dilate[i] : 1) * (w->kernel[i] - 1) + 1;
	}
	for (int i = 0; i < 2; i++)
		if (w->kernel[i] < 1 || w->stride[i] < 1 || w->pad[i] < 0)
			return mu_layer_fail(d->net,
					     "has kernel %d x %d, stride %d x %d, padding %d x %d; "
					     "kernel and stride must be at least 1, padding 0",
					     w->kernel[0], w->kernel[1], w->stride[0], w->stride[1],
					     w->pad[0], w->pad[1]);
	for (int i = 0; i < 2; i++) {
		const long span = (long)size[i] + 2L * w->pad[i] - k[i];

		if (span < 0)
			return mu_layer_fail(
				d->net,
				"has an input of %zu x %zu, and its window of %d x %d with padding "
				"%d x %d needs at least %d x %d: a larger image is needed",
				size[0], size[1], k[0], k[1], w->pad[0], w->pad[1],
				k[0] - 2 * w->pad[0], k[1] - 2 * w->pad[1]);
		d->out.dims[2 + i] =
			(size_t)((span + (w->ceil ? w->stride[i] - 1 : 0)) / w->stride[i]) + 1;
	}
	return 0;
}
