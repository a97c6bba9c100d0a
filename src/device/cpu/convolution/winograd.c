/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's algorithm of our own, where oneDNN has none: plans and steps of its three phases. The
 * kernels, and how they work, are in winograd.h.
 *
 * Forward and the data gradient share blocks of tiles among the threads. The weight gradient is
 * made in parts, each of a fixed range of tiles whatever the threads, with partial sums of its own
 * that the last step adds up in order; with more threads than parts, columns are shared as well.
 */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "winograd.h"

/* Partial sums of weight gradients. */
#define MAX_PARTS 8
#define MAX_PART_BYTES ((size_t)16 << 20)

/* A convolution, or the data gradient as one. */
struct pass {
	const struct winograd_kernels *kernels;
	struct winograd_image in, out;
	struct winograd_tiles tiles; /* all */
	struct winograd_weights weights;
	struct winograd_points points; /* of the weights */
	struct winograd_after after;
	size_t n_blocks;
	int from, to, weight, bias, prepared, scratch; /* memories */
	size_t scratch_each;                           /* floats of a thread */
};

/* The weight gradient. in: the input. out: the output's gradients. */
struct weight_pass {
	const struct winograd_kernels *kernels;
	struct winograd_image in, out;
	struct winograd_tiles tiles; /* all */
	size_t channels, filters;
	size_t n_parts, n_columns; /* ranges of tiles, of columns */
	int x, y, weight, bias, sums, scratch;
	size_t scratch_each;
};

struct winograd {
	struct pass passes[2]; /* forward, data */
	struct weight_pass weights;
};

static struct winograd *plans(const struct mu_op *op)
{
	return ((struct cpu_op *)op->impl)->own;
}

/* ---- which convolutions ---- */

static size_t tiles_along(size_t pixels)
{
	return (pixels + 3) / 4;
}

/* Tiles of outputs like this one. */
static struct winograd_tiles tiles_of(const struct mu_shape *out)
{
	size_t columns = tiles_along(out->dims[3]);
	size_t per_image = columns * tiles_along(out->dims[2]);

	return (struct winograd_tiles){
		.columns = columns, .per_image = per_image, .n = per_image * out->dims[0]};
}

static bool has_kernel(const struct cpu_plan *p)
{
	const struct mu_op *op = p->op;
	const struct mu_convolution *a = op->attr;
	bool has = a->groups <= 1 && p->dtype == dnnl_f32 && !mu_dnnl_has_winograd() &&
		   mu_cpu_winograd_kernels(8) && op->inputs[0]->shape.dims[1] % 16 == 0 &&
		   a->filters % 16 == 0;

	for (int i = 0; i < 2; i++)
		has = has && a->kernel[i] == 3 && a->stride[i] <= 1 && a->dilate[i] <= 1 &&
		      a->pad[i] <= 2;
	return has;
}

/*
 * The fixed rule of MU_CONVOLUTION_AUTO: where at least 3/5 of the tiles' pixels are pixels of the
 * output, and enough tiles and channels pay for the transforms. Measured at batch 128 with AVX2,
 * times direct's speed, forward and backward: 1.4 and 1.0 with 16 channels and filters, 1.7 and 1.6
 * with 32, 2.3 with 64.
 */
static bool pays(const struct cpu_plan *p, enum mu_convolution_phase phase)
{
	const struct mu_shape *in = &p->op->inputs[0]->shape, *out = &p->op->outputs[0]->shape;
	size_t n = tiles_of(out).n, pixels = out->dims[0] * out->dims[2] * out->dims[3];

	return n >= 32 && pixels * 5 >= n * 16 * 3 &&
	       (phase == MU_CONVOLUTION_FORWARD || in->dims[1] + out->dims[1] >= 64);
}

static bool does(const struct cpu_plan *p, enum mu_convolution_phase phase)
{
	switch (p->algorithms[phase]) {
	case MU_CONVOLUTION_WINOGRAD: return has_kernel(p);
	case MU_CONVOLUTION_AUTO: return has_kernel(p) && pays(p, phase);
	default: return false;
	}
}

/* ---- layouts ---- */

/* An image in this layout, for vectors of n floats; false if it does not fit. */
static bool find_image(struct winograd_image *image, const struct cpu_md *md, size_t lanes)
{
	bool blocked =
		md->n_blocks == 1 && md->blocked[0] == 1 && md->blocks[0] == (dnnl_dim_t)lanes;

	*image = (struct winograd_image){
		.image = (size_t)md->strides[0],
		.vector = blocked ? (size_t)md->strides[1] : lanes,
		.row = (size_t)md->strides[2],
		.pixel = (size_t)md->strides[3],
		.size = {(int)md->dims[2], (int)md->dims[3]},
	};
	return blocked || mu_dnnl_channels_last(md);
}

static const struct winograd_kernels *find_images(const struct cpu_md *x, const struct cpu_md *y,
						  struct winograd_image images[2])
{
	for (size_t lanes = 16; lanes >= 8; lanes /= 2) {
		const struct winograd_kernels *kernels = mu_cpu_winograd_kernels(lanes);

		if (kernels && find_image(&images[0], x, lanes) && find_image(&images[1], y, lanes))
			return kernels;
	}
	return NULL;
}

static bool fits(const struct cpu_md *x, const struct cpu_md *y)
{
	struct winograd_image images[2];

	return find_images(x, y, images) != NULL;
}

/* Matrices for each point; the step keeps 36 rows of the same number out of one set of the cache.
 */
static struct winograd_points points_of(size_t rows, size_t columns)
{
	return (struct winograd_points){
		.step = rows * columns + 16, .rows = rows, .columns = columns};
}

static size_t points_n(const struct winograd_points *points)
{
	return WINOGRAD_POINTS * points->step;
}

/* ---- forward, and the data gradient ---- */

static void prepare(struct mu_op *op, struct cpu_part part, struct pass *s)
{
	size_t n = s->points.columns / s->kernels->lanes;

	s->weights.data = mu_cpu_pointer(op, s->weight);
	s->points.data = mu_cpu_pointer(op, s->prepared);
	s->kernels->read_weights(&s->weights, &s->points, part.index * n / part.n,
				 (part.index + 1) * n / part.n);
}

static void convolve(struct mu_op *op, struct cpu_part part, const struct pass *s)
{
	const struct winograd_kernels *k = s->kernels;
	struct winograd_image in = s->in, out = s->out;
	struct winograd_points u = s->points;
	struct winograd_after after = s->after;
	float *scratch = (float *)mu_cpu_pointer(op, s->scratch) + part.index * s->scratch_each;
	size_t end = (part.index + 1) * s->n_blocks / part.n;

	in.data = mu_cpu_pointer(op, s->from);
	out.data = mu_cpu_pointer(op, s->to);
	u.data = mu_cpu_pointer(op, s->prepared);
	if (s->bias >= 0)
		after.bias = mu_cpu_pointer(op, s->bias);
	for (size_t b = part.index * s->n_blocks / part.n; b < end; b++) {
		struct winograd_tiles t = s->tiles;
		struct winograd_points v, m;

		t.first = b * s->tiles.n / s->n_blocks;
		t.n = (b + 1) * s->tiles.n / s->n_blocks - t.first;
		v = points_of(t.n, u.rows);
		v.data = scratch;
		m = points_of(t.n, u.columns);
		m.data = scratch + points_n(&v);
		k->read_input(&in, &t, &v);
		k->multiply(&v, &u, &m);
		k->write_output(&m, &t, &out, &after);
	}
}

static void prepare_forward(struct mu_op *op, struct cpu_part part)
{
	prepare(op, part, &plans(op)->passes[0]);
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	convolve(op, part, &plans(op)->passes[0]);
}

static void prepare_data(struct mu_op *op, struct cpu_part part)
{
	prepare(op, part, &plans(op)->passes[1]);
}

static void data_gradient(struct mu_op *op, struct cpu_part part)
{
	convolve(op, part, &plans(op)->passes[1]);
}

/* Everything of a pass that both directions have; from, to, weight, bias, weights' strides are set.
 */
static void plan_pass(struct cpu_plan *p, struct pass *s, bool is_data)
{
	const struct cpu_md *to = mu_cpu_md(p, s->to);
	size_t channels = (size_t)mu_cpu_md(p, s->from)->dims[1], filters = (size_t)to->dims[1];
	size_t n_threads = p->cpu->n_threads, before = p->program->scratch_nbytes, n;
	struct winograd_points v, m;

	s->points = points_of(channels, filters);
	n = (s->tiles.n + WINOGRAD_TILES - 1) / WINOGRAD_TILES;
	s->n_blocks = (n + n_threads - 1) / n_threads * n_threads;
	n = (s->tiles.n + s->n_blocks - 1) / s->n_blocks;
	v = points_of(n, channels);
	m = points_of(n, filters);
	s->scratch_each = points_n(&v) + points_n(&m);
	s->prepared = mu_cpu_floats(p, points_n(&s->points));
	s->scratch = mu_cpu_floats(p, n_threads * s->scratch_each);
	p->program->scratch_nbytes = before;
	mu_cpu_share(p, is_data ? prepare_data : prepare_forward,
		     points_n(&s->points) * sizeof(float));
	mu_cpu_share(p, is_data ? data_gradient : forward,
		     s->tiles.n * WINOGRAD_POINTS * channels * sizeof(float));
}

/* ---- the weight gradient ---- */

/* Partial sums: weights (9, channels, filters), then bias. */
static size_t sums_n(const struct weight_pass *w)
{
	return 9 * w->channels * w->filters + w->filters;
}

/* Filters of a range of columns, in sixteens. */
static size_t column_start(const struct weight_pass *w, size_t range)
{
	return range * (w->filters / 16) / w->n_columns * 16;
}

/* The sums of a range of tiles, of columns first to first + n. */
struct weight_part {
	struct winograd_tiles tiles;
	size_t first, n;
	float *sums, *scratch;
};

static void add_tiles(const struct weight_pass *w, const struct winograd_image *in,
		      const struct winograd_image *out, const struct weight_part *part)
{
	const struct winograd_kernels *k = w->kernels;
	struct winograd_tiles t = part->tiles;
	struct winograd_points v = points_of(t.n, w->channels), m = points_of(t.n, part->n), u;
	struct winograd_sums sums = {part->sums + part->first, w->channels * w->filters,
				     w->filters};

	v.data = part->scratch;
	m.data = v.data + points_n(&v);
	k->read_input(in, &t, &v);
	k->read_output(out, &t, &m, part->sums + 9 * sums.step + part->first);
	for (size_t c = 0; c < w->channels; c += WINOGRAD_CHUNK) {
		size_t left = w->channels - c;

		u = points_of(left < WINOGRAD_CHUNK ? left : WINOGRAD_CHUNK, part->n);
		u.data = m.data + points_n(&m);
		k->multiply_weights(&v, &m, &u, c, &sums);
	}
}

static void run_part(const struct weight_pass *w, const struct winograd_image *in,
		     const struct winograd_image *out, struct weight_part *part)
{
	struct winograd_image columns = *out;
	size_t end = part->tiles.first + part->tiles.n;

	columns.data += part->first / w->kernels->lanes * out->vector;
	for (size_t row = 0; row < sums_n(w) / w->filters; row++)
		memset(part->sums + row * w->filters + part->first, 0, part->n * sizeof(float));
	while (part->tiles.first < end) {
		size_t left = end - part->tiles.first;

		part->tiles.n = left < WINOGRAD_TILES ? left : WINOGRAD_TILES;
		add_tiles(w, in, &columns, part);
		part->tiles.first += part->tiles.n;
	}
}

static void weight_gradient(struct mu_op *op, struct cpu_part part)
{
	const struct weight_pass *w = &plans(op)->weights;
	struct winograd_image in = w->in, out = w->out;
	size_t n = w->n_parts * w->n_columns, end = (part.index + 1) * n / part.n;

	in.data = mu_cpu_pointer(op, w->x);
	out.data = mu_cpu_pointer(op, w->y);
	for (size_t i = part.index * n / part.n; i < end; i++) {
		size_t range = i / w->n_columns, columns = i % w->n_columns;
		struct weight_part each = {.tiles = w->tiles, .first = column_start(w, columns)};

		each.tiles.first = range * w->tiles.n / w->n_parts;
		each.tiles.n = (range + 1) * w->tiles.n / w->n_parts - each.tiles.first;
		each.n = column_start(w, columns + 1) - each.first;
		each.sums = (float *)mu_cpu_pointer(op, w->sums) + range * sums_n(w);
		each.scratch =
			(float *)mu_cpu_pointer(op, w->scratch) + part.index * w->scratch_each;
		run_part(w, &in, &out, &each);
	}
}

/* Sixteen numbers of each part, added up in order. */
MU_LOOP static void add_parts(const float *restrict sums, size_t step, size_t n, float *restrict to)
{
	for (size_t l = 0; l < 16; l++)
		to[l] = sums[l];
	for (size_t i = 1; i < n; i++)
		for (size_t l = 0; l < 16; l++)
			to[l] += sums[i * step + l];
}

/* The sums of all parts, sixteen filters at a time, as weights (filters, channels, 9). */
static void write_weights(struct mu_op *op, struct cpu_part part)
{
	const struct weight_pass *w = &plans(op)->weights;
	const float *sums = mu_cpu_pointer(op, w->sums);
	float *weight = mu_cpu_pointer(op, w->weight), taps[9][16];
	size_t channels = w->channels, filters = w->filters, step = sums_n(w);
	size_t end = (part.index + 1) * (filters / 16) / part.n * 16;

	for (size_t k = part.index * (filters / 16) / part.n * 16; k < end; k += 16) {
		for (size_t c = 0; c < channels; c++) {
			float *to = weight + (k * channels + c) * 9;

			for (size_t i = 0; i < 9; i++)
				add_parts(sums + (i * channels + c) * filters + k, step, w->n_parts,
					  taps[i]);
			for (size_t l = 0; l < 16; l++)
				for (size_t i = 0; i < 9; i++)
					to[l * channels * 9 + i] = taps[i][l];
		}
		if (w->bias >= 0)
			add_parts(sums + 9 * channels * filters + k, step, w->n_parts,
				  (float *)mu_cpu_pointer(op, w->bias) + k);
	}
}

static void plan_weights(struct cpu_plan *p, struct weight_pass *w)
{
	size_t n_threads = p->cpu->n_threads, before = p->program->scratch_nbytes, widest;
	size_t bytes = sums_n(w) * sizeof(float), n = w->tiles.n / (2 * WINOGRAD_TILES);
	struct winograd_points v, m, u;

	if (n > MAX_PART_BYTES / bytes)
		n = MAX_PART_BYTES / bytes;
	w->n_parts = n < 1 ? 1 : n < MAX_PARTS ? n : MAX_PARTS;
	w->n_columns = (n_threads + w->n_parts - 1) / w->n_parts;
	if (w->n_columns > w->filters / 16)
		w->n_columns = w->filters / 16;
	widest = (w->filters / 16 + w->n_columns - 1) / w->n_columns * 16;
	v = points_of(WINOGRAD_TILES, w->channels);
	m = points_of(WINOGRAD_TILES, widest);
	u = points_of(WINOGRAD_CHUNK, widest);
	w->scratch_each = points_n(&v) + points_n(&m) + points_n(&u);
	w->sums = mu_cpu_floats(p, w->n_parts * sums_n(w));
	w->scratch = mu_cpu_floats(p, n_threads * w->scratch_each);
	p->program->scratch_nbytes = before;
	mu_cpu_share(p, weight_gradient,
		     w->tiles.n * WINOGRAD_POINTS * w->channels * sizeof(float));
	mu_cpu_share(p, write_weights, w->n_parts * bytes);
}

/* ---- plans ---- */

static struct winograd_weights strides_of(size_t in, size_t out, bool turned)
{
	return (struct winograd_weights){.in = in, .out = out, .turned = turned};
}

/* The plan of all phases, made with the first. */
static enum mu_status own_plan(struct cpu_plan *p, struct winograd **out)
{
	enum mu_status st = MU_OK;

	if (!p->impl->own)
		p->impl->own = calloc(1, sizeof **out);
	*out = p->impl->own;
	if (!*out)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", p->op->name);
out:
	return st;
}

static enum mu_status plan(struct cpu_plan *p, enum mu_convolution_phase phase,
			   const struct cpu_convolution *c)
{
	enum mu_status st = MU_OK;
	const struct mu_op *op = p->op;
	const struct mu_convolution *a = op->attr;
	const struct mu_activation *activation = op->fusion.activation;
	size_t channels = op->inputs[0]->shape.dims[1], filters = (size_t)a->filters;
	struct winograd_image images[2];
	const struct winograd_kernels *kernels =
		find_images(mu_cpu_md(p, c->x), mu_cpu_md(p, c->y), images);
	bool is_data = phase == MU_CONVOLUTION_DATA;
	struct winograd_tiles tiles =
		tiles_of(is_data ? &op->inputs[0]->shape : &op->outputs[0]->shape);
	struct winograd *w;

	MU_TRY(own_plan(p, &w));
	for (int i = 0; i < 2; i++)
		tiles.pad[i] = is_data ? 2 - a->pad[i] : a->pad[i];
	if (phase == MU_CONVOLUTION_WEIGHTS) {
		w->weights = (struct weight_pass){kernels,        images[0], images[1],
						  tiles,          channels,  filters,
						  .x = c->x,      .y = c->y, .weight = c->weight,
						  .bias = c->bias};
		plan_weights(p, &w->weights);
		goto out;
	}
	w->passes[is_data] = (struct pass){
		.kernels = kernels,
		.in = images[is_data],
		.out = images[!is_data],
		.tiles = tiles,
		.weights = is_data ? strides_of(channels * 9, 9, true)
				   : strides_of(9, channels * 9, false),
		.from = is_data ? c->y : c->x,
		.to = is_data ? c->x : c->y,
		.weight = c->weight,
		.bias = is_data ? -1 : c->bias,
		.after.relu = !is_data && activation && activation->kind == MU_ACTIVATION_RELU,
	};
	plan_pass(p, &w->passes[is_data], is_data);
	if (!is_data && activation && activation->kind != MU_ACTIVATION_RELU)
		MU_TRY(mu_cpu_plan_activation_forward(p, activation));
out:
	return st;
}

const struct cpu_own_convolution mu_cpu_winograd = {
	.algorithm = MU_CONVOLUTION_WINOGRAD,
	.weights = dnnl_abcd,
	.does = does,
	.fits = fits,
	.plan = plan,
};
