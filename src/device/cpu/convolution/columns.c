/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of convolutions as products of matrices, where channels lie last: where the number of
 * channels or of filters is not a multiple of 16. The input pixels below each output pixel are a
 * row of `columns`, (pixels, k), k = kernel height x width x channels, and the weights are
 * (filters, k):
 *
 *	data gradient    columns = dy (pixels, filters) weights, then added to their pixels
 *	weight gradient  dy' (filters, pixels) columns (pixels, k)
 *
 * Pixels are worked on in blocks, whole images or rows of one, so that columns stay in the second
 * cache; images are shared among the threads. The weight gradient is made in parts of a fixed
 * number of images, with sums of their own that the last step adds up in order: bits do not depend
 * on the number of threads.
 *
 * oneDNN's direct kernels are slower there: they work on filters by eights or sixteens, and on few
 * pixels at a time.
 */
#include "device/cpu/cpu.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#define BLOCK_FLOATS ((size_t)64 << 10) /* of columns in a block */
#define MAX_PARTS ((size_t)8)           /* sums of weight gradients */
#define MIN_PART_PIXELS ((size_t)128)
/* Bytes that pay for every thread: with one part, sgemm would run outside a parallel region, share
 * its work among the threads, and round by their number. */
#define FOR_ALL_THREADS SIZE_MAX

struct size {
	size_t height, width;
};

struct pass {
	int x, y, weight, bias, columns, sums; /* memories */
	size_t n_parts;
};

struct columns {
	struct size in, out, kernel, stride, pad;
	size_t images, channels, filters, k;
	size_t block; /* rows of output in a block: of one image, or all of several */
	struct pass data, weights;
	atomic_bool failed; /* sgemm had no memory */
};

/* Rows of output of one image, or all rows of some. */
struct block {
	size_t image, row, n_rows;
};

static struct columns *plan_of(const struct mu_op *op)
{
	return ((struct cpu_op *)op->impl)->own;
}

/* ---- columns and pixels ---- */

/* What row `row` of the kernel covers at pixel x of row y of the output: pixels `from` to `end` of
 * the input's row, of which the first is the kernel's pixel `skipped`. None: from == end. */
struct span {
	size_t row, from, end, skipped;
};

static struct span find_span(const struct columns *c, size_t y, size_t x, size_t row)
{
	size_t at = y * c->stride.height + row, left = x * c->stride.width;
	struct span s = {0};

	if (at < c->pad.height || at - c->pad.height >= c->in.height)
		return s;
	s.row = at - c->pad.height;
	s.skipped = left < c->pad.width ? c->pad.width - left : 0;
	s.from = left + s.skipped - c->pad.width;
	s.end = left + c->kernel.width < c->pad.width ? 0 : left + c->kernel.width - c->pad.width;
	if (s.end > c->in.width)
		s.end = c->in.width;
	return s.from < s.end ? s : (struct span){0};
}

static void read_pixel(const struct columns *c, const float *image, size_t y, size_t x, float *to)
{
	const size_t width = c->kernel.width * c->channels;

	for (size_t row = 0; row < c->kernel.height; row++, to += width) {
		struct span s = find_span(c, y, x, row);
		size_t n = (s.end - s.from) * c->channels;

		if (n < width)
			memset(to, 0, width * sizeof(float));
		memcpy(to + s.skipped * c->channels,
		       image + (s.row * c->in.width + s.from) * c->channels, n * sizeof(float));
	}
}

static void add_pixel(const struct columns *c, const float *from, size_t y, size_t x, float *image)
{
	const size_t width = c->kernel.width * c->channels;

	for (size_t row = 0; row < c->kernel.height; row++, from += width) {
		struct span s = find_span(c, y, x, row);

		mu_cpu_add(image + (s.row * c->in.width + s.from) * c->channels,
			   from + s.skipped * c->channels, (s.end - s.from) * c->channels);
	}
}

static void each_pixel(const struct columns *c, const struct block *b, float *columns,
		       float *images, bool reads)
{
	const size_t n = c->in.height * c->in.width * c->channels;

	for (size_t i = 0; i < b->n_rows; i++) {
		size_t row = b->image * c->out.height + b->row + i;
		float *image = images + row / c->out.height * n;

		for (size_t x = 0; x < c->out.width; x++, columns += c->k)
			if (reads)
				read_pixel(c, image, row % c->out.height, x, columns);
			else
				add_pixel(c, columns, row % c->out.height, x, image);
	}
}

/* ---- blocks ---- */

/* Images in a group, which one thread works on. */
static size_t group_images(const struct columns *c)
{
	return c->block < c->out.height ? 1 : c->block / c->out.height;
}

static size_t n_groups(const struct columns *c)
{
	return (c->images + group_images(c) - 1) / group_images(c);
}

/* What a thread works with. sums: of its part's weights, then of the bias. */
struct work {
	float *x, *y, *weight, *columns, *sums;
};

typedef void block_fn(struct columns *c, const struct block *b, const struct work *w);

static size_t block_floats(const struct columns *c)
{
	return c->block * c->out.width * c->k;
}

static struct work work_of(const struct mu_op *op, const struct pass *p, size_t thread)
{
	return (struct work){
		.x = mu_cpu_pointer(op, p->x),
		.y = mu_cpu_pointer(op, p->y),
		.weight = mu_cpu_pointer(op, p->weight),
		.columns = (float *)mu_cpu_pointer(op, p->columns) +
			   thread * block_floats(plan_of(op)),
	};
}

/* All blocks of the groups first to end. */
static void each_block(struct columns *c, size_t first, size_t end, block_fn *do_block,
		       const struct work *w)
{
	const size_t images = group_images(c);

	for (size_t g = first; g < end; g++) {
		size_t left = c->images - g * images;
		size_t rows = (left < images ? left : images) * c->out.height;

		for (size_t row = 0; row < rows; row += c->block) {
			size_t n = rows - row < c->block ? rows - row : c->block;
			const struct block b = {g * images, row, n};

			do_block(c, &b, w);
		}
	}
}

static float *output_of(const struct columns *c, const struct block *b, float *y)
{
	return y + (b->image * c->out.height + b->row) * c->out.width * c->filters;
}

/* ---- the data gradient ---- */

static void block_data(struct columns *c, const struct block *b, const struct work *w)
{
	const dnnl_dim_t n = (dnnl_dim_t)(b->n_rows * c->out.width), k = (dnnl_dim_t)c->k,
			 filters = (dnnl_dim_t)c->filters;

	if (dnnl_sgemm('N', 'N', n, k, filters, 1, output_of(c, b, w->y), filters, w->weight, k, 0,
		       w->columns, k) != dnnl_success)
		c->failed = true;
	each_pixel(c, b, w->columns, w->x, false);
}

static void data_gradient(struct mu_op *op, struct cpu_part part)
{
	struct columns *c = plan_of(op);
	const size_t groups = n_groups(c), image = c->in.height * c->in.width * c->channels;
	const size_t first = part.index * groups / part.n, end = (part.index + 1) * groups / part.n;
	const size_t from = first * group_images(c), to = end * group_images(c);
	const struct work w = work_of(op, &c->data, part.index);

	memset(w.x + from * image, 0,
	       ((to < c->images ? to : c->images) - from) * image * sizeof(float));
	each_block(c, first, end, block_data, &w);
}

/* ---- the weight gradient ---- */

static void block_weights(struct columns *c, const struct block *b, const struct work *w)
{
	const dnnl_dim_t n = (dnnl_dim_t)(b->n_rows * c->out.width), k = (dnnl_dim_t)c->k,
			 filters = (dnnl_dim_t)c->filters;
	float *y = output_of(c, b, w->y);

	each_pixel(c, b, w->columns, w->x, true);
	if (dnnl_sgemm('T', 'N', filters, k, n, 1, y, filters, w->columns, k, 1, w->sums, k) !=
	    dnnl_success)
		c->failed = true;
	for (dnnl_dim_t i = 0; i < n; i++)
		mu_cpu_add(w->sums + filters * k, y + i * filters, c->filters);
}

static size_t sums_n(const struct columns *c)
{
	return c->filters * (c->k + 1);
}

static void weight_gradient(struct mu_op *op, struct cpu_part part)
{
	struct columns *c = plan_of(op);
	const struct pass *p = &c->weights;
	const size_t groups = n_groups(c), end = (part.index + 1) * p->n_parts / part.n;
	struct work w = work_of(op, p, part.index);

	for (size_t i = part.index * p->n_parts / part.n; i < end; i++) {
		w.sums = (float *)mu_cpu_pointer(op, p->sums) + i * sums_n(c);
		memset(w.sums, 0, sums_n(c) * sizeof(float));
		each_block(c, i * groups / p->n_parts, (i + 1) * groups / p->n_parts, block_weights,
			   &w);
	}
}

/* The sums of all parts, of these filters' weights or of the bias. */
static void add_parts(const struct columns *c, const float *sums, float *to, size_t n)
{
	memcpy(to, sums, n * sizeof(float));
	for (size_t i = 1; i < c->weights.n_parts; i++)
		mu_cpu_add(to, sums + i * sums_n(c), n);
}

static void write_weights(struct mu_op *op, struct cpu_part part)
{
	const struct columns *c = plan_of(op);
	const struct pass *p = &c->weights;
	const float *sums = mu_cpu_pointer(op, p->sums);
	const size_t first = part.index * c->filters / part.n,
		     end = (part.index + 1) * c->filters / part.n;

	add_parts(c, sums + first * c->k, (float *)mu_cpu_pointer(op, p->weight) + first * c->k,
		  (end - first) * c->k);
	if (p->bias >= 0)
		add_parts(c, sums + c->filters * c->k + first,
			  (float *)mu_cpu_pointer(op, p->bias) + first, end - first);
}

/* Behind each of the two. */
static enum mu_status check(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	if (plan_of(op)->failed)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the products of %s's gradients", op->name);
out:
	return st;
}

/* ---- plans ---- */

/* On x86: that of AArch64 was not timed, and rounds by the number of threads. */
static bool has_kernel(const struct cpu_plan *p)
{
	const struct mu_convolution *a = p->op->attr;

	return mu_dnnl_has_avx2() && a->groups <= 1 && a->dilate[0] <= 1 && a->dilate[1] <= 1 &&
	       p->dtype == dnnl_f32 &&
	       (p->op->inputs[0]->shape.dims[1] % 16 != 0 || a->filters % 16 != 0);
}

static struct size size_of(const size_t *dims)
{
	return (struct size){dims[0], dims[1]};
}

static void describe(const struct mu_op *op, struct columns *c)
{
	const struct mu_convolution *a = op->attr;
	const size_t *in = op->inputs[0]->shape.dims, *out = op->outputs[0]->shape.dims;
	size_t row;

	*c = (struct columns){
		.in = size_of(in + 2),
		.out = size_of(out + 2),
		.kernel = {(size_t)a->kernel[0], (size_t)a->kernel[1]},
		.stride = {a->stride[0] > 0 ? (size_t)a->stride[0] : 1,
			   a->stride[1] > 0 ? (size_t)a->stride[1] : 1},
		.pad = {(size_t)a->pad[0], (size_t)a->pad[1]},
		.images = in[0],
		.channels = in[1],
		.filters = out[1],
	};
	c->k = c->kernel.height * c->kernel.width * c->channels;
	row = c->out.width * c->k;
	c->block = BLOCK_FLOATS < row ? 1 : BLOCK_FLOATS / row;
	if (c->block > c->out.height)
		c->block -= c->block % c->out.height;
	if (c->block > c->images * c->out.height)
		c->block = c->images * c->out.height;
}

/*
 * The fixed rule of MU_CONVOLUTION_AUTO, with groups enough for some threads. Measured of LeNet's
 * second convolution, 20 to 50 channels, times the speed of oneDNN 2.6.3's direct kernels for both
 * gradients: 1.5 with AVX2, 1.26 with AVX-512.
 */
static bool pays(const struct cpu_plan *p)
{
	struct columns c;

	describe(p->op, &c);
	return c.channels >= 8 && c.filters >= 8 && c.k > c.channels && c.k >= 128 &&
	       c.out.width * c.k <= BLOCK_FLOATS && n_groups(&c) >= MAX_PARTS;
}

static bool does(const struct cpu_plan *p, enum mu_convolution_phase phase)
{
	if (phase == MU_CONVOLUTION_FORWARD || !has_kernel(p))
		return false;
	return p->algorithms[phase] == MU_CONVOLUTION_GEMM ||
	       (p->algorithms[phase] == MU_CONVOLUTION_AUTO && pays(p));
}

static bool is_dense(const struct cpu_md *md)
{
	struct cpu_md last;

	mu_dnnl_tag(&last, 4, md->dims, dnnl_acdb);
	return mu_dnnl_equal(md, &last);
}

static bool fits(const struct cpu_md *x, const struct cpu_md *y)
{
	return is_dense(x) && is_dense(y);
}

static void plan_weights(struct cpu_plan *p, struct columns *c)
{
	const size_t pixels = c->images * c->out.height * c->out.width;
	size_t before = p->program->scratch_nbytes, n = pixels / MIN_PART_PIXELS;

	n = n < n_groups(c) ? n : n_groups(c);
	c->weights.n_parts = n < 1 ? 1 : n < MAX_PARTS ? n : MAX_PARTS;
	c->weights.sums = mu_cpu_floats(p, c->weights.n_parts * sums_n(c));
	c->weights.columns = mu_cpu_floats(p, p->cpu->n_threads * block_floats(c));
	p->program->scratch_nbytes = before;
	mu_cpu_share(p, weight_gradient, FOR_ALL_THREADS);
	mu_cpu_try_call(p, check);
	mu_cpu_share(p, write_weights, c->weights.n_parts * sums_n(c) * sizeof(float));
}

static void plan_data(struct cpu_plan *p, struct columns *c)
{
	size_t before = p->program->scratch_nbytes;

	c->data.columns = mu_cpu_floats(p, p->cpu->n_threads * block_floats(c));
	p->program->scratch_nbytes = before;
	mu_cpu_share(p, data_gradient, FOR_ALL_THREADS);
	mu_cpu_try_call(p, check);
}

/* Both phases' plan, made with the first. */
static enum mu_status plan(struct cpu_plan *p, enum mu_convolution_phase phase,
			   const struct cpu_convolution *m)
{
	enum mu_status st = MU_OK;
	const bool is_data = phase == MU_CONVOLUTION_DATA;
	const struct pass pass = {.x = m->x, .y = m->y, .weight = m->weight, .bias = m->bias};
	struct columns *c = p->impl->own;

	if (!c) {
		c = p->impl->own = malloc(sizeof *c);
		if (!c)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", p->op->name);
		describe(p->op, c);
	}
	*(is_data ? &c->data : &c->weights) = pass;
	if (is_data)
		plan_data(p, c);
	else
		plan_weights(p, c);
out:
	return st;
}

const struct cpu_own_convolution mu_cpu_columns = {
	.algorithm = MU_CONVOLUTION_GEMM,
	.weights = dnnl_acdb,
	.does = does,
	.fits = fits,
	.plan = plan,
};
