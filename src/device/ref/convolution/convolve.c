/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of convolutions: see convolve.h. */
#include "device/ref/convolution/convolve.h"

void mu_ref_convolve_sizes(struct convolve *c, size_t n, size_t channels, size_t filters,
			   int groups)
{
	c->n = (long)n;
	c->channels = (long)channels;
	c->filters = (long)filters;
	c->group_channels = c->channels / (groups ? groups : 1);
	c->group_filters = c->filters / (groups ? groups : 1);
	c->in_area = mu_window_area(c->w.in);
	c->out_area = mu_window_area(c->w.out);
	c->taps = mu_window_area(c->w.kernel);
}

size_t mu_ref_convolve_scratch(const struct convolve *c)
{
	return (size_t)(c->in_area > c->out_area ? c->in_area : c->out_area) * sizeof(double);
}

/* ---- one weight and one plane ---- */

/* A kernel's position: output o of an axis reads input o * stride + shift. */
struct tap {
	long shift[MU_MAX_SPACE];
	long begin[MU_MAX_SPACE], end[MU_MAX_SPACE]; /* outputs whose input is inside the image */
};

/* Number t of the kernel's positions. */
static struct tap tap_at(const struct convolve *c, long t)
{
	const struct mu_window *w = &c->w;
	struct tap tap;

	for (int d = MU_MAX_SPACE; d-- > 0; t /= w->kernel[d]) {
		const long shift = t % w->kernel[d] * w->dilate[d] - w->pad[d];
		const long room = w->in[d] - shift; /* o * stride must be below it */

		tap.shift[d] = shift;
		tap.begin[d] = shift < 0 ? (-shift + w->stride[d] - 1) / w->stride[d] : 0;
		tap.end[d] = room > 0 ? (room + w->stride[d] - 1) / w->stride[d] : 0;
		if (tap.end[d] > w->out[d])
			tap.end[d] = w->out[d];
	}
	return tap;
}

/* Offset of the input row of output row (z, y); add column x * stride to it. */
static long input_row(const struct mu_window *w, const struct tap *t, long z, long y)
{
	const long plane = z * w->stride[0] + t->shift[0], row = y * w->stride[1] + t->shift[1];

	return (plane * w->in[1] + row) * w->in[2] + t->shift[2];
}

static long output_row(const struct mu_window *w, long z, long y)
{
	return (z * w->out[1] + y) * w->out[2];
}

/* The rows of outputs whose input is inside the image. */
#define EACH_ROW(t, z, y) \
	for (long z = (t)->begin[0]; z < (t)->end[0]; z++) \
		for (long y = (t)->begin[1]; y < (t)->end[1]; y++)

/* out += v * in */
static void add_output(const struct mu_window *w, const struct tap *t, double v, const float *in,
		       double *out)
{
	EACH_ROW(t, z, y)
	{
		const long from = input_row(w, t, z, y), to = output_row(w, z, y);

		for (long x = t->begin[2]; x < t->end[2]; x++)
			out[to + x] += v * (double)in[from + x * w->stride[2]];
	}
}

/* d_in += v * d_out */
static void add_input(const struct mu_window *w, const struct tap *t, double v, const float *d_out,
		      double *d_in)
{
	EACH_ROW(t, z, y)
	{
		const long to = input_row(w, t, z, y), from = output_row(w, z, y);

		for (long x = t->begin[2]; x < t->end[2]; x++)
			d_in[to + x * w->stride[2]] += v * (double)d_out[from + x];
	}
}

/* Sum of in * d_out: a sample's contribution to the weight's gradient. */
static double weight_sum(const struct mu_window *w, const struct tap *t, const float *in,
			 const float *d_out)
{
	double sum = 0;

	EACH_ROW(t, z, y)
	{
		const long row = input_row(w, t, z, y), to = output_row(w, z, y);

		for (long x = t->begin[2]; x < t->end[2]; x++)
			sum += (double)in[row + x * w->stride[2]] * (double)d_out[to + x];
	}
	return sum;
}

/* ---- the whole operation ---- */

static void begin_plane(const struct convolve *c, long area, long channel)
{
	const double first = c->bias ? (double)c->bias[channel] : 0;

	for (long k = 0; k < area; k++)
		c->sums[k] = first;
}

static void end_plane(const struct convolve *c, long area, float *plane)
{
	for (long k = 0; k < area; k++)
		plane[k] = (float)c->sums[k];
}

void mu_ref_convolve(const struct convolve *c, const float *in, float *out)
{
	for (long s = 0; s < c->n; s++)
		for (long f = 0; f < c->filters; f++) {
			const long first = f / c->group_filters * c->group_channels;
			const float *from = in + (s * c->channels + first) * c->in_area;

			begin_plane(c, c->out_area, f);
			for (long k = 0; k < c->group_channels * c->taps; k++) {
				const struct tap t = tap_at(c, k % c->taps);
				const long at = f * c->group_channels * c->taps + k;

				add_output(&c->w, &t, (double)c->weight[at],
					   from + k / c->taps * c->in_area, c->sums);
			}
			end_plane(c, c->out_area, out + (s * c->filters + f) * c->out_area);
		}
}

static void input_plane(const struct convolve *c, const float *d_sample, long channel)
{
	const long group = channel / c->group_channels, own = channel % c->group_channels;

	for (long f = group * c->group_filters; f < (group + 1) * c->group_filters; f++)
		for (long k = 0; k < c->taps; k++) {
			const struct tap t = tap_at(c, k);
			const long at = (f * c->group_channels + own) * c->taps + k;

			add_input(&c->w, &t, (double)c->weight[at], d_sample + f * c->out_area,
				  c->sums);
		}
}

void mu_ref_convolve_data(const struct convolve *c, const float *d_out, float *d_in)
{
	for (long s = 0; s < c->n; s++)
		for (long channel = 0; channel < c->channels; channel++) {
			begin_plane(c, c->in_area, channel);
			input_plane(c, d_out + s * c->filters * c->out_area, channel);
			end_plane(c, c->in_area, d_in + (s * c->channels + channel) * c->in_area);
		}
}

static double weight_gradient(const struct convolve *c, const struct tap *t, const float *in,
			      const float *d_out)
{
	double sum = 0;

	for (long s = 0; s < c->n; s++)
		sum += weight_sum(&c->w, t, in + s * c->channels * c->in_area,
				  d_out + s * c->filters * c->out_area);
	return sum;
}

void mu_ref_convolve_weight(const struct convolve *c, const float *in, const float *d_out,
			    float *d_weight)
{
	for (long k = 0; k < c->filters * c->group_channels * c->taps; k++) {
		const struct tap t = tap_at(c, k % c->taps);
		const long f = k / c->taps / c->group_channels;
		const long channel = f / c->group_filters * c->group_channels +
				     k / c->taps % c->group_channels;

		d_weight[k] = (float)weight_gradient(c, &t, in + channel * c->in_area,
						     d_out + f * c->out_area);
	}
}

void mu_ref_channel_sums(const struct mu_shape *shape, const float *d, float *d_bias)
{
	const size_t n = shape->dims[0], channels = shape->dims[1];
	const size_t area = mu_shape_positions(shape);

	for (size_t f = 0; f < channels; f++) {
		double sum = 0;

		for (size_t s = 0; s < n; s++)
			for (size_t k = 0; k < area; k++)
				sum += (double)d[(s * channels + f) * area + k];
		d_bias[f] = (float)sum;
	}
}
