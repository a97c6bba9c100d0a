/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a glyph to the path of a pen: see digits.h. The constants are tuned so that the set looks
 * written by many hands, stays readable, and is clearly easier for a convolutional net than for a
 * plain one: after 2 epochs (sgd, lr 0.05, momentum 0.9, batch 64) lenet reaches 0.992, mlp 0.958.
 */
#include "digits.h"

#include <assert.h>
#include <math.h>

struct vector {
	float x, y;
};

enum {
	STEPS_MIN = 3,
	STEPS_MAX = 10, /* per curve between two nodes: 15 curves at most fit in a path */
	LATTICE = 4,    /* control points of the elastic distortion, in each direction */
};

static const float node_deviation = 0.022f;    /* of each node, of the unit square */
static const float lattice_deviation = 0.095f; /* of each control point of the elastic distortion */
static const float end_deviation = 0.05f;      /* overshoot (or lack) of the ends of strokes */
static const float slant = 0.30f, slant_mean = 0.08f;
static const float half_turn_max = 0.13f; /* tangent of half the angle of rotation: 15 degrees */
static const float gap_frequency = 0.12f;
static const float margin = 1.5f; /* pixels that the pen's path keeps from the border */

float digits_uniform(struct digits_draws *d, float low, float high)
{
	return low + (high - low) * mu_random_uniform(&d->key, d->next++);
}

float digits_normal(struct digits_draws *d, float deviation)
{
	float sum = -1.5f;

	for (int i = 0; i < 3; i++)
		sum += mu_random_uniform(&d->key, d->next++);
	return 2 * deviation * sum; /* the variance of a uniform draw is 1/12 */
}

static float distance(struct vector a, struct vector b)
{
	float dx = b.x - a.x, dy = b.y - a.y;

	return sqrtf(dx * dx + dy * dy);
}

/* Move p along the line from `from` to p by `by` of its length. */
static struct vector extend(struct vector from, struct vector p, float by)
{
	return (struct vector){p.x + by * (p.x - from.x), p.y + by * (p.y - from.y)};
}

/* ---- nodes ---- */

static bool ends_stroke(const struct digits_glyph *g, int i)
{
	return i + 1 == g->n || g->node[i + 1].kind == DIGITS_START;
}

static void place_nodes(struct vector *p, const struct digits_glyph *g, struct digits_draws *d)
{
	for (int i = 0; i < g->n; i++) {
		p[i].x = 0.01f * g->node[i].x + digits_normal(d, node_deviation);
		p[i].y = 0.01f * g->node[i].y + digits_normal(d, node_deviation);
	}
	for (int i = 0; i < g->n; i++) {
		int from = g->node[i].kind == DIGITS_START ? i + 1 : i - 1;

		if (g->node[i].kind == DIGITS_START || ends_stroke(g, i)) {
			float length = distance(p[from], p[i]) + 1e-3f;

			p[i] = extend(p[from], p[i], digits_normal(d, end_deviation) / length);
		}
	}
}

/* ---- curves: cubic, through the nodes, tangents of the parabola through three neighbours ---- */

static struct vector slope(struct vector a, struct vector b)
{
	float length = distance(a, b) + 1e-6f;

	return (struct vector){(b.x - a.x) / length, (b.y - a.y) / length};
}

/* Tangent at b of the parabola through a, b, c, with the length of the chords as parameter. */
static struct vector tangent(struct vector a, struct vector b, struct vector c)
{
	float before = distance(a, b) + 1e-6f, after = distance(b, c) + 1e-6f;
	float weight = after / (before + after);
	struct vector in = slope(a, b), out = slope(b, c);

	return (struct vector){weight * in.x + (1 - weight) * out.x,
			       weight * in.y + (1 - weight) * out.y};
}

static bool is_smooth(const struct digits_glyph *g, int i)
{
	return g->node[i].kind == DIGITS_SMOOTH && !ends_stroke(g, i);
}

/* Tangents at the two ends of the curve from node i to node i + 1. */
static void find_tangents(const struct digits_glyph *g, const struct vector *p, int i,
			  struct vector t[2])
{
	struct vector chord = slope(p[i], p[i + 1]);
	bool smooth[2] = {is_smooth(g, i), is_smooth(g, i + 1)};

	for (int k = 0; k < 2; k++)
		t[k] = smooth[k] ? tangent(p[i + k - 1], p[i + k], p[i + k + 1]) : chord;
	/* A free end bends as a parabola does. */
	for (int k = 0; k < 2; k++) {
		if (!smooth[k] && smooth[1 - k]) {
			t[k].x = 2 * chord.x - t[1 - k].x;
			t[k].y = 2 * chord.y - t[1 - k].y;
		}
	}
}

static void add_point(struct digits_path *path, float x, float y, bool lifted)
{
	assert(path->n < DIGITS_POINTS_MAX);
	path->point[path->n++] = (struct digits_point){.x = x, .y = y, .lifted = lifted};
}

/* The curve from node i to the next, without its first point: Hermite's form of a cubic. */
static void add_curve(struct digits_path *path, const struct digits_glyph *g,
		      const struct vector *p, int i)
{
	struct vector a = p[i], b = p[i + 1], t[2];
	float length = distance(a, b);
	int steps = (int)(length * 25);

	find_tangents(g, p, i, t);
	steps = steps < STEPS_MIN ? STEPS_MIN : steps > STEPS_MAX ? STEPS_MAX : steps;
	for (int k = 1; k <= steps; k++) {
		float u = (float)k / (float)steps, v = 1 - u;
		float wa = v * v * (1 + 2 * u), wb = u * u * (1 + 2 * v);
		float ta = length * u * v * v, tb = -length * u * u * v;

		add_point(path, wa * a.x + wb * b.x + ta * t[0].x + tb * t[1].x,
			  wa * a.y + wb * b.y + ta * t[0].y + tb * t[1].y, false);
	}
}

static void trace_glyph(struct digits_path *path, const struct digits_glyph *g,
			const struct vector *p)
{
	path->n = 0;
	for (int i = 0; i < g->n; i++) {
		if (g->node[i].kind == DIGITS_START)
			add_point(path, p[i].x, p[i].y, true);
		if (!ends_stroke(g, i))
			add_curve(path, g, p, i);
	}
}

/* ---- distortion ---- */

/* Bernstein's polynomials of degree 3. */
static void bernstein(float u, float w[LATTICE])
{
	float v = 1 - u;

	w[0] = v * v * v;
	w[1] = 3 * u * v * v;
	w[2] = 3 * u * u * v;
	w[3] = u * u * u;
}

/*
 * Smooth displacement by a lattice of control points: T. Sederberg, S. Parry, "Free-form
 * deformation of solid geometric models", SIGGRAPH 1986, in the plane.
 */
static void distort_elastic(struct digits_path *path, struct digits_draws *d)
{
	struct vector shift[LATTICE][LATTICE];

	for (int i = 0; i < LATTICE * LATTICE; i++) {
		shift[i / LATTICE][i % LATTICE].x = digits_normal(d, lattice_deviation);
		shift[i / LATTICE][i % LATTICE].y = digits_normal(d, lattice_deviation);
	}
	for (int k = 0; k < path->n; k++) {
		struct digits_point *p = &path->point[k];
		struct vector sum = {p->x, p->y};
		float wx[LATTICE], wy[LATTICE];

		bernstein(p->x, wx);
		bernstein(p->y, wy);
		for (int i = 0; i < LATTICE; i++) {
			for (int j = 0; j < LATTICE; j++) {
				sum.x += wy[i] * wx[j] * shift[i][j].x;
				sum.y += wy[i] * wx[j] * shift[i][j].y;
			}
		}
		p->x = sum.x;
		p->y = sum.y;
	}
}

/* Narrow or widen, slant, turn. */
static void distort_affine(struct digits_path *path, struct digits_draws *d)
{
	float width = digits_uniform(d, 0.75f, 1.25f);
	float shear = slant_mean + digits_uniform(d, -slant, slant);
	float t = digits_uniform(d, -half_turn_max, half_turn_max);
	/* Sine and cosine by the tangent of half the angle: no library function. */
	float c = (1 - t * t) / (1 + t * t), s = 2 * t / (1 + t * t);

	for (int k = 0; k < path->n; k++) {
		struct digits_point *p = &path->point[k];
		float y = p->y - 0.5f, x = width * (p->x - 0.5f) - shear * y;

		p->x = c * x - s * y;
		p->y = s * x + c * y;
	}
}

/* ---- place and pen ---- */

struct box {
	struct vector low, high;
};

static struct box find_box(const struct digits_path *path)
{
	struct box b = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};

	for (int k = 0; k < path->n; k++) {
		const struct digits_point *p = &path->point[k];

		b.low.x = p->x < b.low.x ? p->x : b.low.x;
		b.low.y = p->y < b.low.y ? p->y : b.low.y;
		b.high.x = p->x > b.high.x ? p->x : b.high.x;
		b.high.y = p->y > b.high.y ? p->y : b.high.y;
	}
	return b;
}

/* Where an extent from low to high, scaled, begins: near the middle, inside the image. */
static float place(float extent, float shift, float radius)
{
	float least = margin + radius, most = DIGITS_SIDE - margin - radius - extent;
	float at = (DIGITS_SIDE - extent) / 2 + shift;

	at = at > most ? most : at;
	return at < least ? least : at;
}

/*
 * Scale to the size that MNIST's digits have, about, and put near the middle.
 * radius: of the pen, pixels
 */
static void put_on_paper(struct digits_path *path, struct digits_draws *d, float radius)
{
	struct box b = find_box(path);
	float w = b.high.x - b.low.x, h = b.high.y - b.low.y;
	float largest = w > h ? w : h;
	float room = DIGITS_SIDE - 2 * (margin + radius);
	float size = digits_uniform(d, 14, 20);
	float scale = (size < room ? size : room) / largest;
	struct vector at;

	at.x = place(scale * w, digits_normal(d, 2.6f), radius);
	at.y = place(scale * h, digits_normal(d, 2.6f), radius);
	for (int k = 0; k < path->n; k++) {
		struct digits_point *p = &path->point[k];

		p->x = at.x + scale * (p->x - b.low.x);
		p->y = at.y + scale * (p->y - b.low.y);
	}
}

/* Pressure changes smoothly along the way; now and then the pen leaves the paper for a moment. */
static void press(struct digits_path *path, struct digits_draws *d, float radius)
{
	float trend = digits_uniform(d, -0.3f, 0.3f), middle = digits_uniform(d, -0.3f, 0.3f);
	int gap = -1;

	if (digits_uniform(d, 0, 1) < gap_frequency)
		gap = (int)digits_uniform(d, 0, (float)path->n);
	for (int k = 0; k < path->n; k++) {
		float u = 2 * (float)k / (float)path->n - 1;

		path->point[k].radius = radius * (1 + trend * u + middle * (0.5f - u * u));
		path->point[k].lifted |= k == gap;
	}
}

void digits_path(struct digits_path *path, struct digits_draws *d, int label)
{
	struct vector nodes[DIGITS_NODES_MAX];
	int variants;
	const struct digits_glyph *g = digits_glyphs(label, &variants);
	float radius;

	g += (int)digits_uniform(d, 0, (float)variants);
	radius = digits_uniform(d, 0.65f, 1.75f);
	place_nodes(nodes, g, d);
	trace_glyph(path, g, nodes);
	distort_elastic(path, d);
	distort_affine(path, d);
	put_on_paper(path, d, radius);
	press(path, d, radius);
}
