/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry: each step maps points of the new picture to points of the one before, so that all steps
 * together are one matrix and the picture is interpolated once. */
#include <math.h>

#include <muster/image.h>

void mu_geometry_start(struct mu_geometry *g, size_t h, size_t w)
{
	*g = (struct mu_geometry){
		.h = h,
		.w = w,
		.source_h = h,
		.source_w = w,
		.m = {{1, 0, 0}, {0, 1, 0}},
		.bottom = (double)h,
		.right = (double)w,
	};
}

/* m <- m after step, where step maps points of the new picture to the old one. */
static void compose(struct mu_geometry *g, const double step[2][3])
{
	for (int i = 0; i < 2; i++) {
		double y = g->m[i][0], x = g->m[i][1];

		g->m[i][0] = y * step[0][0] + x * step[1][0];
		g->m[i][1] = y * step[0][1] + x * step[1][1];
		g->m[i][2] += y * step[0][2] + x * step[1][2];
	}
}

void mu_geometry_resize(struct mu_geometry *g, size_t h, size_t w)
{
	double y = (double)g->h / (double)h, x = (double)g->w / (double)w;

	if (h == g->h && w == g->w)
		return;
	compose(g, (const double[2][3]){{y, 0, 0}, {0, x, 0}});
	g->top /= y;
	g->bottom /= y;
	g->left /= x;
	g->right /= x;
	g->h = h;
	g->w = w;
}

void mu_geometry_resize_shorter(struct mu_geometry *g, size_t n)
{
	if (g->h > g->w)
		mu_geometry_resize(g, n * g->h / g->w, n);
	else
		mu_geometry_resize(g, n, n * g->w / g->h);
}

static void shift(struct mu_geometry *g, double y, double x)
{
	compose(g, (const double[2][3]){{1, 0, y}, {0, 1, x}});
	g->top -= y;
	g->bottom -= y;
	g->left -= x;
	g->right -= x;
}

void mu_geometry_pad(struct mu_geometry *g, size_t n)
{
	shift(g, -(double)n, -(double)n);
	g->h += 2 * n;
	g->w += 2 * n;
}

void mu_geometry_crop(struct mu_geometry *g, size_t top, size_t left, size_t h, size_t w)
{
	shift(g, (double)top, (double)left);
	g->h = h;
	g->w = w;
}

void mu_geometry_mirror(struct mu_geometry *g)
{
	double left = g->left;

	compose(g, (const double[2][3]){{1, 0, 0}, {0, -1, (double)g->w}});
	g->left = (double)g->w - g->right;
	g->right = (double)g->w - left;
}

static size_t scaled(size_t n, double scale)
{
	double m = (double)n * scale;

	return m >= 1 ? (size_t)m : 1;
}

void mu_geometry_affine(struct mu_geometry *g, const struct mu_affine *affine)
{
	const double radian = 0.017453292519943295;
	double a = cos(affine->angle * radian), b = sin(affine->angle * radian);
	double hs = 2 * affine->scale / (1 + affine->aspect), ws = affine->aspect * hs;
	/* x' = p x + q y, y' = r x + s y, and its inverse. */
	double p = hs * a - affine->shear * b * ws, q = hs * b + affine->shear * a * ws;
	double r = -b * ws, s = a * ws, determinant = p * s - q * r;
	double yy = p / determinant, yx = -r / determinant;
	double xy = -q / determinant, xx = s / determinant;
	size_t h = scaled(g->h, affine->scale), w = scaled(g->w, affine->scale);
	/* The centre is fixed. */
	double y = (double)g->h / 2 - yy * (double)h / 2 - yx * (double)w / 2;
	double x = (double)g->w / 2 - xy * (double)h / 2 - xx * (double)w / 2;

	compose(g, (const double[2][3]){{yy, yx, y}, {xy, xx, x}});
	g->h = h;
	g->w = w;
	g->top = g->left = 0;
	g->bottom = (double)h;
	g->right = (double)w;
}

/* Minimum and maximum of m[i] over the centres of the pixels. */
static void find_range(const struct mu_geometry *g, int i, double *low, double *high)
{
	const double *m = g->m[i];
	double y = m[0] * (double)(g->h - 1), x = m[1] * (double)(g->w - 1);

	*low = *high = m[0] / 2 + m[1] / 2 + m[2];
	*(y < 0 ? low : high) += y;
	*(x < 0 ? low : high) += x;
}

/* Pixels [*first, *first + *n) of `all` that interpolation between low and high reads. */
static void find_span(double low, double high, size_t all, size_t *first, size_t *n)
{
	double last = floor(high - 0.5) + 1, from = floor(low - 0.5);
	double end = (double)(all - 1);

	last = last < 0 ? 0 : last > end ? end : last;
	from = from < 0 ? 0 : from > last ? last : from;
	*first = (size_t)from;
	*n = (size_t)last - *first + 1;
}

void mu_geometry_window(const struct mu_geometry *g, size_t max_shrink,
			struct mu_image_window *window)
{
	double down = hypot(g->m[0][0], g->m[1][0]), across = hypot(g->m[0][1], g->m[1][1]);
	double step = down < across ? down : across, low, high;
	size_t s = 1;

	/* A tolerance, so that rounding does not decide. */
	while (2 * s <= max_shrink && step * 1.000001 >= 2 * (double)s)
		s *= 2;
	window->shrink = s;
	find_range(g, 0, &low, &high);
	find_span(low / (double)s, high / (double)s, (g->source_h + s - 1) / s, &window->top,
		  &window->h);
	find_range(g, 1, &low, &high);
	find_span(low / (double)s, high / (double)s, (g->source_w + s - 1) / s, &window->left,
		  &window->w);
}
