/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of winograd.h for vectors of LANES floats. winograd_kernels.c includes it for each
 * instruction set, with NAME, TARGET (the compiler's name of the set), ROWS (rows of a product's
 * block in registers), DEPTH (of the sums between loads of such a block: a panel of b of this depth
 * stays in the first cache), FUSED (a number times a vector plus a vector, rounded once).
 *
 * Transforms work on vectors of channels: columns first, then rows.
 */

typedef float NAME(vector) __attribute__((vector_size(LANES * 4)));
typedef int NAME(numbers) __attribute__((vector_size(LANES * 4)));
#define vec NAME(vector)
#define load NAME(load)
#define store NAME(store)

TARGET MU_INLINE vec load(const float *p)
{
	vec v;

	memcpy(&v, p, sizeof v);
	return v;
}

TARGET MU_INLINE void store(float *p, vec v)
{
	memcpy(p, &v, sizeof v);
}

/* ---- 1-dimensional transforms, to[0], to[step], ... ---- */

/* Of 6 inputs: B' d in Lavin and Gray. */
TARGET MU_INLINE void NAME(input)(const vec *d, vec *to, size_t step)
{
	vec even_a = d[4] - B2 * d[2], odd_a = d[3] - B2 * d[1];
	vec even_b = d[4] - A2 * d[2], odd_b = d[3] - A2 * d[1];

	to[0] = d[4] - (A2 + B2) * d[2] + A2 * B2 * d[0];
	to[step] = even_a + A * odd_a;
	to[2 * step] = even_a - A * odd_a;
	to[3 * step] = even_b + B * odd_b;
	to[4 * step] = even_b - B * odd_b;
	to[5 * step] = d[5] - (A2 + B2) * d[3] + A2 * B2 * d[1];
}

/* To 4 outputs: A' m. */
TARGET MU_INLINE void NAME(output)(const vec *m, vec *to, size_t step)
{
	vec sum_a = m[1] + m[2], diff_a = A * (m[1] - m[2]);
	vec sum_b = m[3] + m[4], diff_b = B * (m[3] - m[4]);

	to[0] = m[0] + sum_a + sum_b;
	to[step] = diff_a + diff_b;
	to[2 * step] = A2 * sum_a + B2 * sum_b;
	to[3 * step] = m[5] + A2 * diff_a + B2 * diff_b;
}

/* At the points a, -a, b, -b: the sums and differences of even and odd terms. */
TARGET MU_INLINE void NAME(pairs)(vec even_a, vec odd_a, vec even_b, vec odd_b, vec *to,
				  size_t step)
{
	to[step] = even_a + odd_a;
	to[2 * step] = even_a - odd_a;
	to[3 * step] = even_b + odd_b;
	to[4 * step] = even_b - odd_b;
}

/* Of 4 gradients of outputs: A y. */
TARGET MU_INLINE void NAME(gradient)(const vec *y, vec *to, size_t step)
{
	vec even_a = y[0] + A2 * y[2], odd_a = A * (y[1] + A2 * y[3]);
	vec even_b = y[0] + B2 * y[2], odd_b = B * (y[1] + B2 * y[3]);

	to[0] = y[0];
	NAME(pairs)(even_a, odd_a, even_b, odd_b, to, step);
	to[5 * step] = y[3];
}

/* Of 3 weights: G g. */
TARGET MU_INLINE void NAME(weight)(const vec *g, vec *to, size_t step)
{
	vec even_a = NA * g[0] + NA * A2 * g[2], odd_a = NA * A * g[1];
	vec even_b = NB * g[0] + NB * B2 * g[2], odd_b = NB * B * g[1];

	to[0] = 1 / (A2 * B2) * g[0];
	NAME(pairs)(even_a, odd_a, even_b, odd_b, to, step);
	to[5 * step] = g[2];
}

/* To gradients of 3 weights: G' u. */
TARGET MU_INLINE void NAME(weight_gradient)(const vec *u, vec *to, size_t step)
{
	vec sum_a = NA * (u[1] + u[2]), diff_a = NA * A * (u[1] - u[2]);
	vec sum_b = NB * (u[3] + u[4]), diff_b = NB * B * (u[3] - u[4]);

	to[0] = 1 / (A2 * B2) * u[0] + sum_a + sum_b;
	to[step] = diff_a + diff_b;
	to[2 * step] = u[5] + A2 * sum_a + B2 * sum_b;
}

/* ---- tiles ---- */

/* Where a tile begins in an image, and its pixels y0 to y1, x0 to x1 that lie inside. */
struct NAME(tile) {
	float *at;
	int y0, y1, x0, x1;
	size_t row, pixel;
};

TARGET MU_INLINE struct NAME(tile)
	NAME(find)(const struct winograd_image *image, const struct winograd_tiles *t, size_t i,
		   int side)
{
	size_t number = t->first + i, within = number % t->per_image;
	bool input = side == 6;
	int y = (int)(within / t->columns) * 4 - (input ? t->pad[0] : 0);
	int x = (int)(within % t->columns) * 4 - (input ? t->pad[1] : 0);
	int bottom = image->size[0] - y, right = image->size[1] - x;

	return (struct NAME(tile)){
		.at = image->data + (ptrdiff_t)(number / t->per_image * image->image) +
		      y * (ptrdiff_t)image->row + x * (ptrdiff_t)image->pixel,
		.y0 = y < 0 ? -y : 0,
		.y1 = bottom < side ? bottom : side,
		.x0 = x < 0 ? -x : 0,
		.x1 = right < side ? right : side,
		.row = image->row,
		.pixel = image->pixel,
	};
}

/* The vector at `offset` of each pixel: in place, or copied with zeros outside the image. */
TARGET MU_INLINE const float *NAME(pixels)(struct NAME(tile) *t, size_t offset, int side,
					   float *copy)
{
	const float *at = t->at + offset;

	if (t->y0 == 0 && t->x0 == 0 && t->y1 == side && t->x1 == side)
		return at;
	for (int y = t->y0; y < t->y1; y++)
		for (int x = t->x0; x < t->x1; x++)
			store(copy + (y * side + x) * LANES,
			      load(at + (size_t)y * t->row + (size_t)x * t->pixel));
	return copy;
}

TARGET MU_INLINE void NAME(read_tile)(const float *in, size_t row, size_t pixel, float *to,
				      size_t step)
{
	vec d[6], m[6][6];

	for (size_t x = 0; x < 6; x++) {
		for (size_t y = 0; y < 6; y++)
			d[y] = load(in + y * row + x * pixel);
		NAME(input)(d, &m[0][x], 6);
	}
	for (size_t y = 0; y < 6; y++) {
		NAME(input)(m[y], d, 1);
		for (size_t x = 0; x < 6; x++)
			store(to + (y * 6 + x) * step, d[x]);
	}
}

TARGET static void NAME(read_input)(const struct winograd_image *image,
				    const struct winograd_tiles *t,
				    const struct winograd_points *to)
{
	float copy[36 * LANES] = {0};

	for (size_t i = 0; i < t->n; i++) {
		struct NAME(tile) tile = NAME(find)(image, t, i, 6);
		float *row = to->data + i * to->columns;

		memset(copy, 0, sizeof copy);
		for (size_t c = 0; c < to->columns; c += LANES) {
			const float *in = NAME(pixels)(&tile, c / LANES * image->vector, 6, copy);
			bool is_copy = in == copy;

			NAME(read_tile)(in, is_copy ? 6 * LANES : tile.row,
					is_copy ? LANES : tile.pixel, row + c, to->step);
		}
	}
}

/* Returns the sum. */
TARGET MU_INLINE vec NAME(read_gradient)(const float *in, size_t row, size_t pixel, float *to,
					 size_t step)
{
	vec y[6], m[6][4], sum = {0};

	for (size_t x = 0; x < 4; x++) {
		for (size_t i = 0; i < 4; i++)
			y[i] = load(in + i * row + x * pixel);
		sum += (y[0] + y[1]) + (y[2] + y[3]);
		NAME(gradient)(y, &m[0][x], 4);
	}
	for (size_t i = 0; i < 6; i++) {
		NAME(gradient)(m[i], y, 1);
		for (size_t x = 0; x < 6; x++)
			store(to + (i * 6 + x) * step, y[x]);
	}
	return sum;
}

TARGET static void NAME(read_output)(const struct winograd_image *image,
				     const struct winograd_tiles *t,
				     const struct winograd_points *to, float *sums)
{
	float copy[16 * LANES];

	for (size_t i = 0; i < t->n; i++) {
		struct NAME(tile) tile = NAME(find)(image, t, i, 4);
		float *row = to->data + i * to->columns;

		memset(copy, 0, sizeof copy);
		for (size_t c = 0; c < to->columns; c += LANES) {
			const float *in = NAME(pixels)(&tile, c / LANES * image->vector, 4, copy);
			bool is_copy = in == copy;

			store(sums + c, load(sums + c) +
						NAME(read_gradient)(
							in, is_copy ? 4 * LANES : tile.row,
							is_copy ? LANES : tile.pixel, row + c,
							to->step));
		}
	}
}

TARGET MU_INLINE void NAME(write_tile)(const float *from, size_t step, const struct NAME(tile) *t,
				       size_t offset, const vec *bias, bool relu)
{
	vec m[6], columns[4][6], y[4];

	for (size_t x = 0; x < 6; x++) {
		for (size_t i = 0; i < 6; i++)
			m[i] = load(from + (i * 6 + x) * step);
		NAME(output)(m, &columns[0][x], 6);
	}
	for (int i = 0; i < t->y1; i++) {
		float *row = t->at + offset + (size_t)i * t->row;

		NAME(output)(columns[i], y, 1);
		for (int x = 0; x < 4; x++) {
			y[x] += *bias;
			if (relu)
				y[x] = (vec)((NAME(numbers))y[x] & (y[x] > 0));
		}
		for (int x = 0; x < t->x1; x++)
			store(row + (size_t)x * t->pixel, y[x]);
	}
}

TARGET static void NAME(write_output)(const struct winograd_points *from,
				      const struct winograd_tiles *t,
				      const struct winograd_image *to,
				      const struct winograd_after *after)
{
	const vec none = {0};

	for (size_t i = 0; i < t->n; i++) {
		struct NAME(tile) tile = NAME(find)(to, t, i, 4);

		for (size_t c = 0; c < from->columns; c += LANES) {
			vec bias = after->bias ? load(after->bias + c) : none;

			NAME(write_tile)(from->data + i * from->columns + c, from->step, &tile,
					 c / LANES * to->vector, &bias, after->relu);
		}
	}
}

/* ---- weights ---- */

TARGET static void NAME(read_weights)(const struct winograd_weights *w,
				      const struct winograd_points *to, size_t first, size_t end)
{
	float taps[9][LANES];

	for (size_t v = first; v < end; v++) {
		size_t panel = v - v % WINOGRAD_PANEL, left = to->columns / LANES - panel;
		size_t width = left < WINOGRAD_PANEL ? left : WINOGRAD_PANEL;
		float *at = to->data + (panel * to->rows + v - panel) * LANES;

		for (size_t c = 0; c < to->rows; c++, at += width * LANES) {
			vec g[3], m[6][3], u[6];

			for (size_t l = 0; l < LANES; l++) {
				const float *p = w->data + (v * LANES + l) * w->out + c * w->in;

				for (size_t k = 0; k < 9; k++)
					taps[k][l] = p[w->turned ? 8 - k : k];
			}
			for (size_t x = 0; x < 3; x++) {
				for (size_t y = 0; y < 3; y++)
					g[y] = load(taps[y * 3 + x]);
				NAME(weight)(g, &m[0][x], 3);
			}
			for (size_t y = 0; y < 6; y++) {
				NAME(weight)(m[y], u, 1);
				for (size_t x = 0; x < 6; x++)
					store(at + (y * 6 + x) * to->step, u[x]);
			}
		}
	}
}

TARGET MU_INLINE void NAME(add_weights)(const struct winograd_points *u, size_t row, size_t column,
					float *to, size_t step)
{
	const float *from = u->data + row * u->columns + column;
	vec d[6], m[3][6], g[3];

	for (size_t x = 0; x < 6; x++) {
		for (size_t y = 0; y < 6; y++)
			d[y] = load(from + (y * 6 + x) * u->step);
		NAME(weight_gradient)(d, &m[0][x], 6);
	}
	for (size_t y = 0; y < 3; y++) {
		NAME(weight_gradient)(m[y], g, 1);
		for (size_t x = 0; x < 3; x++) {
			float *sum = to + (y * 3 + x) * step;

			store(sum, load(sum) + g[x]);
		}
	}
}

/* ---- products ---- */

/* c (rows, vectors) = a (rows, depth) b (depth, vectors), or added to c. */
struct NAME(product) {
	const float *a, *b;
	float *c;
	size_t a_row, a_step, b_step, c_row, depth;
	bool adds;
};

/* One block, in registers. FUSED: from GCC 13 on, the block of a single sum would multiply and add
 * apart, and which rows are in that block depends on the number of threads. */
TARGET MU_INLINE void NAME(block)(const struct NAME(product) *p, const size_t rows,
				  const size_t vectors)
{
	vec sums[ROWS][WINOGRAD_PANEL], right[WINOGRAD_PANEL];
	const float *a = p->a, *b = p->b;
	const size_t a_row = p->a_row, a_step = p->a_step, b_step = p->b_step;

	UNROLL for (size_t i = 0; i < rows; i++)
		UNROLL for (size_t j = 0; j < vectors; j++)
			sums[i][j] = p->adds ? load(p->c + i * p->c_row + j * LANES) : (vec){0};
	for (size_t k = p->depth; k > 0; k--, a += a_step, b += b_step) {
		UNROLL for (size_t j = 0; j < vectors; j++)
			right[j] = load(b + j * LANES);
		UNROLL for (size_t i = 0; i < rows; i++)
			UNROLL for (size_t j = 0; j < vectors; j++)
				sums[i][j] = FUSED(a[i * a_row], right[j], sums[i][j]);
	}
	UNROLL for (size_t i = 0; i < rows; i++)
		UNROLL for (size_t j = 0; j < vectors; j++)
			store(p->c + i * p->c_row + j * LANES, sums[i][j]);
}

/* All full blocks of rows; returns the rows that are left. */
TARGET MU_INLINE size_t NAME(blocks)(struct NAME(product) *p, size_t left, const size_t rows,
				     size_t vectors)
{
	for (; left >= rows; left -= rows) {
		if (vectors == WINOGRAD_PANEL)
			NAME(block)(p, rows, WINOGRAD_PANEL);
		else
			NAME(block)(p, rows, 1);
		p->a += rows * p->a_row;
		p->c += rows * p->c_row;
	}
	return left;
}

TARGET static void NAME(product)(struct NAME(product) p, size_t rows, size_t vectors)
{
	rows = NAME(blocks)(&p, rows, ROWS, vectors);
	rows = NAME(blocks)(&p, rows, 4, vectors);
	rows = NAME(blocks)(&p, rows, 2, vectors);
	NAME(blocks)(&p, rows, 1, vectors);
}

TARGET static void NAME(multiply)(const struct winograd_points *v, const struct winograd_points *u,
				  const struct winograd_points *m)
{
	const size_t wide = WINOGRAD_PANEL * LANES;

	for (size_t i = 0; i < WINOGRAD_POINTS; i++)
		for (size_t column = 0; column < u->columns; column += wide) {
			size_t left = u->columns - column, width = left < wide ? left : wide;

			for (size_t k = 0; k < u->rows; k += DEPTH) {
				struct NAME(product) p = {
					.a = v->data + i * v->step + k,
					.b = u->data + i * u->step + column * u->rows + k * width,
					.c = m->data + i * m->step + column,
					.a_row = v->columns,
					.a_step = 1,
					.b_step = width,
					.c_row = m->columns,
					.depth = u->rows - k < DEPTH ? u->rows - k : DEPTH,
					.adds = k > 0,
				};

				NAME(product)(p, v->rows, width / LANES);
			}
		}
}

TARGET static void NAME(multiply_weights)(const struct winograd_points *v,
					  const struct winograd_points *m,
					  const struct winograd_points *u, size_t first,
					  const struct winograd_sums *to)
{
	const size_t wide = WINOGRAD_PANEL * LANES;

	for (size_t i = 0; i < WINOGRAD_POINTS; i++)
		for (size_t column = 0; column < m->columns; column += wide) {
			size_t left = m->columns - column, width = left < wide ? left : wide;
			struct NAME(product) p = {
				.a = v->data + i * v->step + first,
				.b = m->data + i * m->step + column,
				.c = u->data + i * u->step + column,
				.a_row = 1,
				.a_step = v->columns,
				.b_step = m->columns,
				.c_row = u->columns,
				.depth = v->rows,
			};

			NAME(product)(p, u->rows, width / LANES);
		}
	for (size_t row = 0; row < u->rows; row++)
		for (size_t column = 0; column < u->columns; column += LANES)
			NAME(add_weights)(u, row, column,
					  to->data + (first + row) * to->columns + column,
					  to->step);
}

static const struct winograd_kernels NAME(kernels) = {
	.lanes = LANES,
	.read_input = NAME(read_input),
	.read_output = NAME(read_output),
	.write_output = NAME(write_output),
	.read_weights = NAME(read_weights),
	.multiply = NAME(multiply),
	.multiply_weights = NAME(multiply_weights),
};

#undef vec
#undef load
#undef store
