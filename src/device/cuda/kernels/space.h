/* SPDX-License-Identifier: Apache-2.0 */
/* Upsampling, pad and crop: gathered in both directions. */
#ifndef DEVICE_CUDA_KERNELS_SPACE_H
#define DEVICE_CUDA_KERNELS_SPACE_H

#include "layer_norm.h"

/* ---- upsampling ---- */

/* The two neighbours of an output along an axis; `rest`: the weight of the second. */
struct neighbours {
	int low, high;
	double rest;
};

CUDA_FUNCTION struct neighbours neighbours_of(const struct cuda_upsample *a, int o, int in, int out)
{
	struct neighbours n = {0, 0, 0};
	double from;

	if (!a->linear) {
		n.low = n.high = (int)((long)o * in / out);
		return n;
	}
	if (a->corners)
		from = out > 1 ? (double)((long)o * (in - 1)) / (double)(out - 1) : 0;
	else
		from = fmax(((double)o + 0.5) * (double)in / (double)out - 0.5, 0.0);
	n.low = (int)from < in - 1 ? (int)from : in - 1;
	n.high = n.low + 1 < in ? n.low + 1 : n.low;
	n.rest = from - (double)n.low;
	return n;
}

/* The weight of input i for output o. */
CUDA_FUNCTION double weight_between(const struct cuda_upsample *a, int i, int o, int in, int out)
{
	const struct neighbours n = neighbours_of(a, o, in, out);

	return (n.low == i ? 1 - n.rest : 0) + (n.high == i ? n.rest : 0);
}

/* Outputs of which input i may be a neighbour: from first to end - 1. */
struct reach {
	int first, end;
};

CUDA_FUNCTION struct reach reach_of(const struct cuda_upsample *a, int i, int in, int out)
{
	const double by = a->corners ? in > 1 ? (double)(out - 1) / (double)(in - 1) : 0
				     : (double)out / (double)in;
	const double shift = a->corners ? 0 : 0.5;
	struct reach r;

	if (!a->linear) {
		r.first = (int)(((long)i * out + in - 1) / in);
		r.end = (int)(((long)(i + 1) * out + in - 1) / in);
		return r;
	}
	r.first = (int)(((double)(i - 1) + shift) * by - shift) - 1;
	r.end = (int)(((double)(i + 1) + shift) * by - shift) + 3;
	if (r.first < 0 || i == 0)
		r.first = 0;
	if (r.end > out || i == in - 1)
		r.end = out;
	return r;
}

/* What element i is: eight channels from k on, at a position of `area` of a sample. */
struct eight_channels {
	size_t k, position, sample;
};

CUDA_FUNCTION struct eight_channels eight_channels(const struct cuda_upsample *a, size_t i,
						   size_t area)
{
	const size_t groups = (a->channels + CUDA_EIGHT - 1) / CUDA_EIGHT;
	struct eight_channels e;

	e.k = (a->last ? i % groups : i / area % groups) * CUDA_EIGHT;
	e.position = a->last ? i / groups % area : i % area;
	e.sample = i / groups / area;
	return e;
}

/* v += weight times the eight channels at this position of x. */
CUDA_FUNCTION void add_eight(const struct cuda_upsample *a, const struct eight_channels *e,
			     size_t area, size_t position, float weight, float *v)
{
	const size_t step = a->last ? 1 : area;
	float x[CUDA_EIGHT];

	eight_of_row(x, a->x, a->type, row_begin(e->sample * area + position, a->channels, step),
		     e->k, a->channels, step);
	for (int j = 0; j < CUDA_EIGHT; j++)
		v[j] += weight * x[j];
}

CUDA_FUNCTION void set_eight_channels(const struct cuda_upsample *a, const struct eight_channels *e,
				      size_t area, const float *v)
{
	const size_t step = a->last ? 1 : area;

	set_eight_of_row(a->y, a->type,
			 row_begin(e->sample * area + e->position, a->channels, step), e->k,
			 a->channels, step, v);
}

CUDA_FUNCTION void upsample_at(const struct cuda_upsample *a, size_t i)
{
	const size_t area = (size_t)a->out[0] * (size_t)a->out[1] * (size_t)a->out[2];
	const size_t in_area = (size_t)a->in[0] * (size_t)a->in[1] * (size_t)a->in[2];
	const struct eight_channels e = eight_channels(a, i, area);
	const int o = (int)e.position;
	const struct neighbours z =
		neighbours_of(a, o / a->out[2] / a->out[1], a->in[0], a->out[0]);
	const struct neighbours y =
		neighbours_of(a, o / a->out[2] % a->out[1], a->in[1], a->out[1]);
	const struct neighbours x = neighbours_of(a, o % a->out[2], a->in[2], a->out[2]);
	float v[CUDA_EIGHT] = {0};

	for (int k = 0; k < 8; k++) {
		const double weight = (k & 4 ? z.rest : 1 - z.rest) *
				      (k & 2 ? y.rest : 1 - y.rest) *
				      (k & 1 ? x.rest : 1 - x.rest);
		const size_t at = ((size_t)(k & 4 ? z.high : z.low) * (size_t)a->in[1] +
				   (size_t)(k & 2 ? y.high : y.low)) *
					  (size_t)a->in[2] +
				  (size_t)(k & 1 ? x.high : x.low);

		if (weight != 0)
			add_eight(a, &e, in_area, at, (float)weight, v);
	}
	set_eight_channels(a, &e, area, v);
}

CUDA_FUNCTION void upsample_backward_at(const struct cuda_upsample *a, size_t i)
{
	const size_t area = (size_t)a->in[0] * (size_t)a->in[1] * (size_t)a->in[2];
	const size_t out_area = (size_t)a->out[0] * (size_t)a->out[1] * (size_t)a->out[2];
	const struct eight_channels e = eight_channels(a, i, area);
	const int p = (int)e.position;
	const int z = p / a->in[2] / a->in[1], y = p / a->in[2] % a->in[1], x = p % a->in[2];
	const struct reach of_z = reach_of(a, z, a->in[0], a->out[0]);
	const struct reach of_y = reach_of(a, y, a->in[1], a->out[1]);
	const struct reach of_x = reach_of(a, x, a->in[2], a->out[2]);
	float v[CUDA_EIGHT] = {0};

	for (int oz = of_z.first; oz < of_z.end; oz++) {
		const double by_z = weight_between(a, z, oz, a->in[0], a->out[0]);

		for (int oy = of_y.first; oy < of_y.end && by_z != 0; oy++) {
			const double by_y = by_z * weight_between(a, y, oy, a->in[1], a->out[1]);
			const size_t row = ((size_t)oz * (size_t)a->out[1] + (size_t)oy) *
					   (size_t)a->out[2];

			for (int ox = of_x.first; ox < of_x.end && by_y != 0; ox++) {
				const double weight =
					by_y * weight_between(a, x, ox, a->in[2], a->out[2]);

				if (weight != 0)
					add_eight(a, &e, out_area, row + (size_t)ox, (float)weight,
						  v);
			}
		}
	}
	set_eight_channels(a, &e, area, v);
}

/* ---- pad and crop ---- */

CUDA_FUNCTION void pad_at(const struct cuda_pad *a, size_t i)
{
	const uint32_t r = (uint32_t)i / a->inner, k = (uint32_t)i % a->inner;
	const uint32_t plane = r / (uint32_t)a->out[2];
	const int x = (int)(r % (uint32_t)a->out[2]) - a->before[2];
	const int y = (int)(plane % (uint32_t)a->out[1]) - a->before[1];
	const int z = (int)(plane / (uint32_t)a->out[1] % (uint32_t)a->out[0]) - a->before[0];
	const size_t outer = plane / (uint32_t)a->out[1] / (uint32_t)a->out[0];
	const int inside = x >= 0 && x < a->in[2] && y >= 0 && y < a->in[1] && z >= 0 &&
			   z < a->in[0];
	const size_t from = (((outer * (size_t)a->in[0] + (size_t)z) * (size_t)a->in[1] +
			      (size_t)y) * (size_t)a->in[2] + (size_t)x) * a->inner + k;
	float v[CUDA_EIGHT];

	if (a->width == 1) {
		set_number(a->y, a->type, i, inside ? number_at(a->x, a->type, from) : a->value);
		return;
	}
	if (inside)
		eight_at(v, a->x, a->type, from * CUDA_EIGHT, CUDA_EIGHT);
	else
		for (int j = 0; j < CUDA_EIGHT; j++)
			v[j] = a->value;
	set_eight(a->y, a->type, i * CUDA_EIGHT, CUDA_EIGHT, v);
}

#endif
