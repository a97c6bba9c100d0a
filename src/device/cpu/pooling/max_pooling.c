/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maximum pooling of our own, of images, for layouts in which the channels of a pixel lie together
 * (nhwc, and blocks of 16 channels): with oneDNN's it takes a sixth of LeNet's step. Forward keeps
 * the position of the maximum in its window; backward writes every input gradient once where
 * windows do not overlap.
 */
#include "device/cpu/cpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#define LANES 8

/* One image, or one block of 16 channels of it, is a plane of h x w pixels of `width` floats. */
struct max_pooling {
	size_t planes, width;
	int in[2], out[2], kernel[2], stride[2], pad[2];
	bool disjoint; /* windows do not overlap and leave no input pixel out */
};

/* The part of a window that lies inside the input, in one dimension. */
struct span {
	int first, end;
};

static struct span inside(const struct max_pooling *m, int dim, int o)
{
	int start = o * m->stride[dim] - m->pad[dim];
	int first = start < 0 ? -start : 0;
	int end = m->in[dim] - start < m->kernel[dim] ? m->in[dim] - start : m->kernel[dim];

	return (struct span){first, end};
}

/* Pixel (y, x) of the window of output (oy, ox): its first float within the plane. */
static size_t pixel(const struct max_pooling *m, int oy, int ox, int y, int x)
{
	int row = oy * m->stride[0] - m->pad[0] + y, column = ox * m->stride[1] - m->pad[1] + x;

	return ((size_t)row * (size_t)m->in[1] + (size_t)column) * m->width;
}

/* Channels go 8 at a time; the last 8 may overlap those before, which only repeats work. */
static size_t lane_start(size_t c, size_t width)
{
	return c + LANES <= width ? c : width - LANES;
}

/* Vectors of 8, a register of AVX2: gcc 12 takes plain loops apart into scalars here, and for AVX2
 * vectors of 16, too. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t numbers __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline void forward_window(const struct max_pooling *m, int oy, int ox, const float *in,
				  float *out, int32_t *where)
{
	struct span sy = inside(m, 0, oy), sx = inside(m, 1, ox);

	for (size_t c = 0; c < m->width; c += LANES) {
		size_t start = lane_start(c, m->width);
		int first = sy.first * m->kernel[1] + sx.first;
		numbers at = (numbers){0} + first;
		lanes best, v;

		memcpy(&best, in + pixel(m, oy, ox, sy.first, sx.first) + start, sizeof best);
		for (int y = sy.first; y < sy.end; y++)
			for (int x = sx.first; x < sx.end; x++) {
				numbers more;

				memcpy(&v, in + pixel(m, oy, ox, y, x) + start, sizeof v);
				more = v > best;
				best = (lanes)((more & (numbers)v) | (~more & (numbers)best));
				at = (more & (y * m->kernel[1] + x)) | (~more & at);
			}
		memcpy(out + start, &best, sizeof best);
		memcpy(where + start, &at, sizeof at);
	}
}

static inline void write_lanes(float *to, const float *out, const int32_t *where, int position,
			       size_t width)
{
	for (size_t c = 0; c < width; c += LANES) {
		size_t start = lane_start(c, width);
		numbers v, at;

		memcpy(&at, where + start, sizeof at);
		memcpy(&v, out + start, sizeof v);
		v &= at == position;
		memcpy(to + start, &v, sizeof v);
	}
}

static inline void backward_window(const struct max_pooling *m, int oy, int ox, const float *out,
				   const int32_t *where, float *in)
{
	struct span sy = inside(m, 0, oy), sx = inside(m, 1, ox);

	for (int y = sy.first; y < sy.end; y++)
		for (int x = sx.first; x < sx.end; x++) {
			float *to = in + pixel(m, oy, ox, y, x);
			int position = y * m->kernel[1] + x;

			if (m->disjoint)
				write_lanes(to, out, where, position, m->width);
			else
				for (size_t c = 0; c < m->width; c++)
					to[c] += where[c] == position ? out[c] : 0;
		}
}

static size_t in_plane(const struct max_pooling *m)
{
	return (size_t)m->in[0] * (size_t)m->in[1] * m->width;
}

static size_t out_plane(const struct max_pooling *m)
{
	return (size_t)m->out[0] * (size_t)m->out[1] * m->width;
}

MU_LOOP static void forward_plane(const struct max_pooling *m, const float *in, float *out,
				  int32_t *where)
{
	for (int oy = 0; oy < m->out[0]; oy++)
		for (int ox = 0; ox < m->out[1]; ox++) {
			forward_window(m, oy, ox, in, out, where);
			out += m->width;
			where += m->width;
		}
}

MU_LOOP static void backward_plane(const struct max_pooling *m, const float *out,
				   const int32_t *where, float *in)
{
	for (int oy = 0; oy < m->out[0]; oy++)
		for (int ox = 0; ox < m->out[1]; ox++) {
			backward_window(m, oy, ox, out, where, in);
			out += m->width;
			where += m->width;
		}
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct max_pooling *m = ((struct cpu_op *)op->impl)->own;
	size_t end = (part.index + 1) * m->planes / part.n;

	for (size_t p = part.index * m->planes / part.n; p < end; p++)
		forward_plane(m, op->inputs[0]->data + p * in_plane(m),
			      op->outputs[0]->data + p * out_plane(m),
			      (int32_t *)op->workspace + p * out_plane(m));
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct max_pooling *m = ((struct cpu_op *)op->impl)->own;
	size_t end = (part.index + 1) * m->planes / part.n;

	for (size_t p = part.index * m->planes / part.n; p < end; p++) {
		float *in = op->inputs[0]->grad + p * in_plane(m);

		if (!m->disjoint)
			memset(in, 0, in_plane(m) * sizeof(float));
		backward_plane(m, op->outputs[0]->grad + p * out_plane(m),
			       (int32_t *)op->workspace + p * out_plane(m), in);
	}
}

/* Planes and width of a layout whose channels lie together; false if they do not, or are too few.
 */
static bool find_planes(struct max_pooling *m, const struct mu_tensor *in, const struct cpu_md *md)
{
	struct cpu_md nhwc, blocked;
	size_t n = in->shape.dims[0], c = in->shape.dims[1];

	mu_cpu_tag(&nhwc, &in->shape, dnnl_nhwc);
	mu_cpu_tag(&blocked, &in->shape, dnnl_nChw16c);
	if (mu_dnnl_equal(md, &nhwc)) {
		m->planes = n;
		m->width = c;
	} else if (mu_dnnl_equal(md, &blocked)) {
		m->planes = n * ((c + 15) / 16);
		m->width = 16;
	}
	return m->width >= LANES;
}

/* The output has the input's layout; every window has at least one pixel. */
static bool usable(const struct max_pooling *m)
{
	for (int i = 0; i < 2; i++) {
		int last = (m->out[i] - 1) * m->stride[i] - m->pad[i];

		if (m->pad[i] >= m->kernel[i] || last >= m->in[i])
			return false;
	}
	return true;
}

bool mu_cpu_plan_max_pooling(struct cpu_plan *p, const struct cpu_md *src, enum mu_status *st)
{
	struct mu_op *op = p->op;
	const struct mu_pooling *a = op->attr;
	struct max_pooling m = {.disjoint = true}, *own;
	struct cpu_md dst;

	if (a->average || op->inputs[0]->shape.ndims != 4 || !find_planes(&m, op->inputs[0], src))
		return false;
	for (int i = 0; i < 2; i++) {
		m.in[i] = (int)op->inputs[0]->shape.dims[2 + i];
		m.out[i] = (int)op->outputs[0]->shape.dims[2 + i];
		m.kernel[i] = a->global ? m.in[i] : a->kernel[i];
		m.stride[i] = a->global || a->stride[i] == 0 ? 1 : a->stride[i];
		m.pad[i] = a->global ? 0 : a->pad[i];
		m.disjoint &= m.kernel[i] == m.stride[i] && m.pad[i] == 0 &&
			      m.out[i] * m.stride[i] == m.in[i];
	}
	if (!usable(&m))
		return false;
	own = malloc(sizeof *own);
	if (!own) {
		*st = mu_trace_start(MU_ERR_MEMORY, __FILE__, __LINE__,
				     "no memory for the plan of %s", op->name);
		return true;
	}
	*own = m;
	p->impl->own = own;
	mu_cpu_tag(&dst, &op->outputs[0]->shape,
		   m.width == op->inputs[0]->shape.dims[1] ? dnnl_nhwc : dnnl_nChw16c);
	*st = mu_cpu_set_tensor(op->outputs[0], &dst);
	op->workspace_nbytes = m.planes * out_plane(&m) * sizeof(int32_t);
	mu_cpu_share(p, forward, op->inputs[0]->nbytes);
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		mu_cpu_share(p, backward, op->inputs[0]->nbytes);
	return true;
}
