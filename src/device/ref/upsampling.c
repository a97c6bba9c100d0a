/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upsampling: y at output o is the sum over the two neighbours of o along each axis of the product
 * of their weights times x. backward gives each neighbour its share.
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

/* Sizes in three axes, of which images have the last two. */
struct sizes {
	long in[MU_MAX_SPACE], out[MU_MAX_SPACE];
};

static struct sizes sizes_of(const struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape, *out = &op->outputs[0]->shape;
	const int first = MU_MAX_DIMS - in->ndims;
	struct sizes s;

	for (int d = 0; d < MU_MAX_SPACE; d++) {
		s.in[d] = d < first ? 1 : (long)in->dims[2 + d - first];
		s.out[d] = d < first ? 1 : (long)out->dims[2 + d - first];
	}
	return s;
}

static long area(const long *n)
{
	return n[0] * n[1] * n[2];
}

/* The neighbours of an output along an axis, and their weights, of which the second may be 0. */
struct neighbours {
	long at[2];
	double weight[2];
};

static struct neighbours neighbours_of(const struct mu_upsampling *a, long o, long in, long out)
{
	double from;

	if (!a->linear)
		return (struct neighbours){{o * in / out, 0}, {1, 0}};
	if (a->align_corners)
		from = out > 1 ? (double)(o * (in - 1)) / (double)(out - 1) : 0;
	else
		from = fmax(((double)o + 0.5) * (double)in / (double)out - 0.5, 0);
	{
		const long low = (long)from < in - 1 ? (long)from : in - 1;
		const double rest = from - (double)low;

		return (struct neighbours){{low, low + 1 < in ? low + 1 : low}, {1 - rest, rest}};
	}
}

/* What output o of a plane is made of. */
struct corners {
	long at[8];
	double weight[8];
};

static struct corners corners_of(const struct mu_op *op, const struct sizes *s, long o)
{
	struct neighbours n[MU_MAX_SPACE];
	struct corners c;

	for (int d = MU_MAX_SPACE; d-- > 0; o /= s->out[d])
		n[d] = neighbours_of(op->attr, o % s->out[d], s->in[d], s->out[d]);
	for (int k = 0; k < 8; k++) {
		const int z = k >> 2, y = k >> 1 & 1, x = k & 1;

		c.at[k] = (n[0].at[z] * s->in[1] + n[1].at[y]) * s->in[2] + n[2].at[x];
		c.weight[k] = n[0].weight[z] * n[1].weight[y] * n[2].weight[x];
	}
	return c;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_upsampling *a = op->attr;
	struct mu_shape want = op->inputs[0]->shape;

	MU_TRY(mu_ref_need_space(op));
	for (int i = 0; i + 2 < want.ndims; i++)
		want.dims[2 + i] = a->size[i] ? (size_t)a->size[i]
					      : want.dims[2 + i] *
							(size_t)(a->scale[i] ? a->scale[i] : 1);
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &want));
	op->scratch_nbytes = mu_shape_positions(&op->inputs[0]->shape) * sizeof(double);
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct sizes s = sizes_of(op);
	const size_t planes = op->inputs[0]->shape.dims[0] * op->inputs[0]->shape.dims[1];
	const float *x = op->inputs[0]->data;
	float *y = op->outputs[0]->data;

	for (size_t p = 0; p < planes; p++, x += area(s.in))
		for (long o = 0; o < area(s.out); o++) {
			const struct corners c = corners_of(op, &s, o);
			double sum = 0;

			for (int k = 0; k < 8; k++)
				if (c.weight[k] != 0)
					sum += c.weight[k] * (double)x[c.at[k]];
			*y++ = (float)sum;
		}
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct sizes s = sizes_of(op);
	const size_t planes = op->inputs[0]->shape.dims[0] * op->inputs[0]->shape.dims[1];
	const float *dy = op->outputs[0]->grad;
	float *dx = op->inputs[0]->grad;
	double *sums = op->scratch;

	for (size_t p = 0; p < planes && op->inputs[0]->needs_grad; p++, dx += area(s.in)) {
		memset(sums, 0, op->scratch_nbytes);
		for (long o = 0; o < area(s.out); o++, dy++) {
			const struct corners c = corners_of(op, &s, o);

			for (int k = 0; k < 8; k++)
				if (c.weight[k] != 0)
					sums[c.at[k]] += c.weight[k] * (double)*dy;
		}
		for (long k = 0; k < area(s.in); k++)
			dx[k] = (float)sums[k];
	}
}

const struct mu_ref_kind mu_ref_upsampling = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
