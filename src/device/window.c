/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <stdio.h>
#include <string.h>

static long one_or(int value)
{
	return value ? value : 1;
}

static struct mu_window begin(const struct mu_shape *in)
{
	const int axes = in->ndims > 2 ? in->ndims - 2 : 0;
	struct mu_window w = {.first = MU_MAX_SPACE - axes};

	for (int d = 0; d < MU_MAX_SPACE; d++) {
		w.in[d] = d < w.first ? 1 : (long)in->dims[2 + d - w.first];
		w.out[d] = w.kernel[d] = w.stride[d] = w.dilate[d] = 1;
	}
	return w;
}

/* floor(rest / stride) + 1, or with `ceil` rounded up. */
static void set_out(struct mu_window *w, bool ceil)
{
	for (int d = w->first; d < MU_MAX_SPACE; d++) {
		const long rest = w->in[d] + 2 * w->pad[d] - mu_window_span(w, d);

		w->out[d] = 0;
		if (rest >= 0 && w->stride[d] > 0)
			w->out[d] = (rest + (ceil ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
	}
}

struct mu_window mu_window_of_convolution(const struct mu_convolution *a, const struct mu_shape *in)
{
	struct mu_window w = begin(in);

	for (int d = w.first, i = 0; d < MU_MAX_SPACE; d++, i++) {
		w.kernel[d] = a->kernel[i];
		w.stride[d] = one_or(a->stride[i]);
		w.pad[d] = a->pad[i];
		w.dilate[d] = one_or(a->dilate[i]);
	}
	set_out(&w, false);
	return w;
}

struct mu_window mu_window_of_deconvolution(const struct mu_deconvolution *a,
					    const struct mu_shape *in)
{
	struct mu_window w = begin(in);

	for (int d = w.first, i = 0; d < MU_MAX_SPACE; d++, i++) {
		w.kernel[d] = a->kernel[i];
		w.stride[d] = one_or(a->stride[i]);
		w.pad[d] = a->pad[i];
		w.dilate[d] = one_or(a->dilate[i]);
		w.out[d] = w.in[d];
		w.in[d] = (w.out[d] - 1) * w.stride[d] - 2 * w.pad[d] + mu_window_span(&w, d) +
			  a->extra[i];
	}
	return w;
}

struct mu_window mu_window_of_pooling(const struct mu_pooling *a, const struct mu_shape *in)
{
	struct mu_window w = begin(in);

	for (int d = w.first, i = 0; d < MU_MAX_SPACE; d++, i++) {
		w.kernel[d] = a->global ? w.in[d] : a->kernel[i];
		w.stride[d] = a->global ? 1 : one_or(a->stride[i]);
		w.pad[d] = a->global ? 0 : a->pad[i];
	}
	set_out(&w, a->ceil && !a->global);
	return w;
}

long mu_window_area(const long *sizes)
{
	return sizes[0] * sizes[1] * sizes[2];
}

const char *mu_window_text(const struct mu_window *w, const long *sizes, char text[MU_WINDOW_TEXT])
{
	*text = '\0';
	for (int d = w->first; d < MU_MAX_SPACE; d++) {
		const size_t at = strlen(text);

		snprintf(text + at, MU_WINDOW_TEXT - at, "%s%ld", d > w->first ? "x" : "",
			 sizes[d]);
	}
	return text;
}
