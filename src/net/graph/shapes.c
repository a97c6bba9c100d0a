/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of shapes that rows of layers share. */
#include "net/layers/layer.h"

#include <string.h>

struct mu_shape mu_layer_vector(size_t n)
{
	return (struct mu_shape){1, {n}};
}

struct mu_shape mu_layer_matrix(size_t rows, size_t columns)
{
	return (struct mu_shape){2, {rows, columns}};
}

const char *mu_layer_sizes(const int *sizes, int n, char text[LAYER_SIZES])
{
	*text = '\0';
	for (int i = 0; i < n; i++) {
		const size_t at = strlen(text);

		snprintf(text + at, LAYER_SIZES - at, "%s%d", i ? " x " : "", sizes[i]);
	}
	return text;
}

/* An axis without a kernel is as the one before it. */
static void copy_axis(const struct layer_window *w, int i)
{
	w->kernel[i] = w->kernel[i - 1];
	w->stride[i] = w->stride[i - 1];
	w->pad[i] = w->pad[i - 1];
	if (w->dilate)
		w->dilate[i] = w->dilate[i - 1];
}

int mu_layer_window(struct net_draft *d, const struct layer_window *w)
{
	const int n = d->in->ndims - 2;
	int size[MU_MAX_SPACE], in[MU_MAX_SPACE], least[MU_MAX_SPACE]; /* size: dilation included */
	char a[LAYER_SIZES], b[LAYER_SIZES], c[LAYER_SIZES], e[LAYER_SIZES];
	bool is_window = true, fits = true;

	for (int i = 0; i < n; i++) {
		if (i > 0 && w->kernel[i] == 0)
			copy_axis(w, i);
		w->stride[i] = w->stride[i] ? w->stride[i] : 1;
		is_window &= w->kernel[i] >= 1 && w->stride[i] >= 1 && w->pad[i] >= 0;
	}
	if (!is_window)
		return mu_layer_fail(d->net,
				     "has kernel %s, stride %s, padding %s; kernel and stride must "
				     "be at least 1, padding 0",
				     mu_layer_sizes(w->kernel, n, a),
				     mu_layer_sizes(w->stride, n, b),
				     mu_layer_sizes(w->pad, n, c));
	for (int i = 0; i < n; i++) {
		long span;

		size[i] = (w->dilate ? w->dilate[i] : 1) * (w->kernel[i] - 1) + 1;
		span = (long)d->in->dims[2 + i] + 2L * w->pad[i] - size[i];
		in[i] = (int)d->in->dims[2 + i];
		least[i] = size[i] - 2 * w->pad[i];
		fits &= span >= 0;
		d->out.dims[2 + i] =
			(size_t)((span + (w->ceil ? w->stride[i] - 1 : 0)) / w->stride[i]) + 1;
	}
	return fits ? 0
		    : mu_layer_fail(d->net,
				    "has an input of %s, and its window of %s with padding %s "
				    "needs at least %s: a larger image is needed",
				    mu_layer_sizes(in, n, a), mu_layer_sizes(size, n, b),
				    mu_layer_sizes(w->pad, n, c), mu_layer_sizes(least, n, e));
}
