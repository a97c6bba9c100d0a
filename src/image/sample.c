/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From pixels to planes of values. Three paths with equal results where they overlap: pixels that
 * are only moved are copied; upright pictures are interpolated between two rows, then along the
 * row; others pixel by pixel. A row of all three planes is contiguous while it is processed.
 */
#include <math.h>
#include <string.h>

#include <muster/image.h>

enum { CHANNELS = 3, VECTOR = 16 };

/* Where rows are two or three vectors long, a scalar remainder costs as much as all vectors. */
#define VECTOR_OF(type) type __attribute__((vector_size(VECTOR * sizeof(type))))

/* Shared by the loops below. */
struct sampling {
	const struct mu_image *image;
	const struct mu_geometry *g;
	const struct mu_image_values *values;
	double y[3], x[3]; /* maps to the image: the centre of pixel (i, j) of the result is at y[0]
			      (i + 0.5) + y[1] (j + 0.5) + y[2] */
	size_t top, bottom, left, right; /* range of the result; the rest is fill */
	int32_t *index;                  /* per column of the result: the pixel to its left */
	uint32_t *reversed;              /* or pixels in reverse order */
	float *weight;                   /* of the pixel to its right */
	float *row;                      /* a row of image, three planes */
	float fill[CHANNELS];
	bool divides; /* some values->std is not 1 */
};

void mu_image_scratch_release(struct mu_image_scratch *scratch)
{
	mu_free(scratch->floats);
	mu_free(scratch->index);
	*scratch = (struct mu_image_scratch){0};
}

static enum mu_status grow_scratch(struct sampling *s, struct mu_image_scratch *scratch)
{
	enum mu_status st = MU_OK;
	size_t weights = mu_pad(s->g->w), floats = weights + CHANNELS * s->image->w + 1;

	if (floats > scratch->floats_capacity) {
		mu_free(scratch->floats);
		scratch->floats_capacity = 0;
		MU_TRY(MU_ALLOC(scratch->floats, floats, "row of a picture"));
		scratch->floats_capacity = floats;
	}
	if (s->g->w > scratch->index_capacity) {
		mu_free(scratch->index);
		scratch->index_capacity = 0;
		MU_TRY(MU_ALLOC(scratch->index, s->g->w, "columns of a picture"));
		scratch->index_capacity = s->g->w;
	}
	s->index = scratch->index;
	s->reversed = (uint32_t *)scratch->index;
	s->weight = scratch->floats;
	s->row = scratch->floats + weights;
out:
	return st;
}

/* ---- loops over a row ---- */

/* Pixels [*from, *to) have their centres within [low, high). */
static void find_inside(double low, double high, size_t n, size_t *from, size_t *to)
{
	double first = ceil(low - 0.5), end = ceil(high - 0.5), all = (double)n;

	first = first < 0 ? 0 : first > all ? all : first;
	end = end < first ? first : end > all ? all : end;
	*from = (size_t)first;
	*to = (size_t)end;
}

static void fill_values(float *out, size_t n, float value)
{
	for (size_t i = 0; i < n; i++)
		out[i] = value;
}

/* Fill a row of one plane outside of columns [left, right): if these are most of it, by two vectors
 * that overlap them. */
MU_INLINE void fill_sides(float *row, size_t w, size_t left, size_t right, float value)
{
	VECTOR_OF(float) v = value - (VECTOR_OF(float)){0};

	if (w < VECTOR || left > VECTOR || w - right > VECTOR) {
		fill_values(row, left, value);
		fill_values(row + right, w - right, value);
	} else {
		memcpy(row, &v, sizeof v);
		memcpy(row + w - VECTOR, &v, sizeof v);
	}
}

/* A vector of values of each channel. */
MU_INLINE void take_pixels(const struct sampling *s, float *out, const uint32_t *pixels,
			   bool divides)
{
	size_t plane = s->g->h * s->g->w;
	VECTOR_OF(int32_t) all;

	memcpy(&all, pixels, sizeof all);
	for (int c = 0; c < CHANNELS; c++, out += plane) {
		VECTOR_OF(float) v;

		v = __builtin_convertvector(all & 255, VECTOR_OF(float)) - s->values->mean[c];
		if (divides)
			v = v / s->values->std[c];
		memcpy(out, &v, sizeof v);
		all = all >> 8;
	}
}

/* The last vector overlaps the one before. */
MU_INLINE void take_row(const struct sampling *s, float *out, const uint32_t *pixels, bool divides)
{
	size_t n = s->right - s->left, plane = s->g->h * s->g->w;
	const struct mu_image_values *v = s->values;

	for (size_t i = 0; i < n && n >= VECTOR; i += VECTOR) {
		size_t at = i + VECTOR <= n ? i : n - VECTOR;

		take_pixels(s, out + at, pixels + at, divides);
	}
	for (size_t c = 0; c < CHANNELS && n < VECTOR; c++)
		for (size_t i = 0; i < n; i++)
			out[c * plane + i] =
				((float)(int32_t)(pixels[i] >> 8 * c & 255) - v->mean[c]) /
				v->std[c];
}

MU_LOOP static void copy_row(const struct sampling *s, float *out, const uint32_t *pixels)
{
	if (s->divides)
		take_row(s, out, pixels, true);
	else
		take_row(s, out, pixels, false);
}

/* out = first[0], first[-1], ... */
MU_LOOP static void reverse_row(uint32_t *restrict out, const uint32_t *restrict first, size_t n)
{
	const uint32_t *restrict last = first - (n - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = last[n - 1 - i];
}

/* Interpolate between two rows of pixels; out: three planes of n. */
MU_LOOP static void blend_rows(float *restrict out, const uint32_t *restrict above,
			       const uint32_t *restrict below, size_t n, float weight)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t a = above[i], b = below[i];
		float red = (float)(int32_t)(a & 255), red2 = (float)(int32_t)(b & 255);
		float green = (float)(int32_t)(a >> 8 & 255),
		      green2 = (float)(int32_t)(b >> 8 & 255);
		float blue = (float)(int32_t)(a >> 16 & 255),
		      blue2 = (float)(int32_t)(b >> 16 & 255);

		out[i] = red + weight * (red2 - red);
		out[i + n] = green + weight * (green2 - green);
		out[i + 2 * n] = blue + weight * (blue2 - blue);
	}
}

/* Interpolate along a row of one plane, and normalise. */
MU_LOOP static void blend_columns(const struct sampling *s, float *restrict out,
				  const float *restrict row, const float rule[2])
{
	const int32_t *restrict index = s->index + s->left;
	const float *restrict weight = s->weight + s->left;
	float mean = rule[0], std = rule[1];
	bool divides = std != 1;

	for (size_t i = 0; i < s->right - s->left; i++) {
		float a = row[index[i]], b = row[index[i] + 1];

		out[i] = a + weight[i] * (b - a) - mean;
	}
	for (size_t i = 0; divides && i < s->right - s->left; i++)
		out[i] /= std;
}

/* ---- upright pictures ---- */

/* The pixel before a point, at most the last but one, and the weight of the next pixel. */
static size_t find_pixel(double place, size_t n, float *weight)
{
	double at = place - 0.5, before = floor(at);

	if (n < 2 || at <= 0) {
		*weight = 0;
		return 0;
	}
	if (before >= (double)(n - 1)) {
		*weight = 1;
		return n - 2;
	}
	*weight = (float)(at - before);
	return (size_t)before;
}

static double place_of(const double m[3], size_t i, size_t j)
{
	return m[0] * ((double)i + 0.5) + m[1] * ((double)j + 0.5) + m[2];
}

/* Is every pixel of the result a pixel of the image? */
static bool only_moves(const struct sampling *s)
{
	double x = place_of(s->x, s->top, s->left) - 0.5, y = place_of(s->y, s->top, s->left) - 0.5;
	double x2 = place_of(s->x, s->bottom - 1, s->right - 1) - 0.5;
	double y2 = place_of(s->y, s->bottom - 1, s->right - 1) - 0.5;

	return s->y[0] == 1 && fabs(s->x[1]) == 1 && x == floor(x) && y == floor(y) && x >= 0 &&
	       y >= 0 && x2 >= 0 && x < (double)s->image->w && x2 < (double)s->image->w &&
	       y2 < (double)s->image->h;
}

/* Row i, from left to right. */
static const uint32_t *moved_row(const struct sampling *s, size_t i)
{
	size_t y = (size_t)place_of(s->y, i, s->left), x = (size_t)place_of(s->x, i, s->left);
	const uint32_t *pixels = s->image->pixels + y * s->image->w + x;

	if (s->x[1] >= 0)
		return pixels;
	reverse_row(s->reversed, pixels, s->right - s->left);
	return s->reversed;
}

static void sample_moved(const struct sampling *s, size_t i, float *out)
{
	copy_row(s, out, moved_row(s, i));
}

MU_LOOP static void take_bytes(uint8_t *restrict out, const uint32_t *restrict pixels, size_t n,
			       int channel)
{
	for (size_t j = 0; j < n; j++)
		out[j] = (uint8_t)(pixels[j] >> 8 * channel);
}

static void sample_upright(const struct sampling *s, size_t i, float *out)
{
	size_t plane = s->g->h * s->g->w, w = s->image->w, h = s->image->h;
	float weight;
	size_t y = find_pixel(place_of(s->y, i, 0), h, &weight);
	const uint32_t *above = s->image->pixels + y * w;

	blend_rows(s->row, above, h > 1 ? above + w : above, w, weight);
	for (size_t c = 0; c < CHANNELS; c++) {
		const float rule[2] = {s->values->mean[c], s->values->std[c]};

		blend_columns(s, out + c * plane, s->row + c * w, rule);
	}
}

static void find_columns(struct sampling *s)
{
	for (size_t j = s->left; j < s->right; j++)
		s->index[j] = (int32_t)find_pixel(place_of(s->x, 0, j), s->image->w, &s->weight[j]);
}

/* ---- all others ---- */

static void sample_pixel(const struct sampling *s, double y, double x, float rgb[CHANNELS])
{
	const struct mu_image *image = s->image;
	float down, across;
	size_t i = find_pixel(y, image->h, &down), j = find_pixel(x, image->w, &across);
	const uint32_t *above = image->pixels + i * image->w + j;
	const uint32_t *below = image->h > 1 ? above + image->w : above;
	size_t next = image->w > 1;

	for (int c = 0; c < CHANNELS; c++) {
		float a = (float)(above[0] >> 8 * c & 255), b = (float)(above[next] >> 8 * c & 255);
		float a2 = (float)(below[0] >> 8 * c & 255),
		      b2 = (float)(below[next] >> 8 * c & 255);

		a += down * (a2 - a);
		b += down * (b2 - b);
		rgb[c] = a + across * (b - a);
	}
}

static void sample_turned(const struct sampling *s, size_t i, float *out)
{
	const struct mu_geometry *g = s->g;
	const struct mu_image_values *values = s->values;
	size_t plane = g->h * g->w;

	for (size_t j = s->left; j < s->right; j++) {
		double y = place_of(g->m[0], i, j), x = place_of(g->m[1], i, j);
		float rgb[CHANNELS] = {values->fill, values->fill, values->fill};

		if (y >= 0 && x >= 0 && y <= (double)g->source_h && x <= (double)g->source_w)
			sample_pixel(s, place_of(s->y, i, j), place_of(s->x, i, j), rgb);
		for (size_t c = 0; c < CHANNELS; c++)
			out[c * plane + j - s->left] = (rgb[c] - values->mean[c]) / values->std[c];
	}
}

/* ---- a picture ---- */

/* Places in the source become places in the part of it that there is, at its size. */
static void find_places(struct sampling *s)
{
	const struct mu_image *image = s->image;
	double shrink = (double)image->shrink;

	for (int i = 0; i < 3; i++) {
		s->y[i] = s->g->m[0][i] / shrink;
		s->x[i] = s->g->m[1][i] / shrink;
	}
	s->y[2] -= (double)image->top;
	s->x[2] -= (double)image->left;
	find_inside(s->g->top, s->g->bottom, s->g->h, &s->top, &s->bottom);
	find_inside(s->g->left, s->g->right, s->g->w, &s->left, &s->right);
}

static void find_fill(struct sampling *s)
{
	const struct mu_image_values *v = s->values;

	for (int c = 0; c < CHANNELS; c++) {
		s->fill[c] = (v->fill - v->mean[c]) / v->std[c];
		s->divides = s->divides || v->std[c] != 1;
	}
}

/* The columns beside the picture of one row, before those of the picture; or, without any of it,
 * all. */
MU_LOOP static void fill_row(const struct sampling *s, float *row, size_t left, size_t right)
{
	size_t w = s->g->w, plane = s->g->h * w;

	for (size_t c = 0; c < CHANNELS; c++, row += plane) {
		if (left == right)
			fill_values(row, w, s->fill[c]);
		else
			fill_sides(row, w, left, right, s->fill[c]);
	}
}

enum mu_status mu_image_sample(const struct mu_image *image, const struct mu_geometry *g,
			       const struct mu_image_values *values,
			       struct mu_image_scratch *scratch, float *out)
{
	enum mu_status st = MU_OK;
	struct sampling s = {.image = image, .g = g, .values = values};
	void (*sample_row)(const struct sampling *s, size_t i, float *out) = sample_turned;

	MU_TRY(grow_scratch(&s, scratch));
	find_places(&s);
	find_fill(&s);
	if (s.left == s.right || s.top == s.bottom) {
		s.top = s.bottom = 0;
	} else if (s.y[1] == 0 && s.x[0] == 0) {
		sample_row = only_moves(&s) ? sample_moved : sample_upright;
		if (sample_row == sample_upright)
			find_columns(&s);
	}
	for (size_t i = 0; i < g->h; i++) {
		float *row = out + i * g->w;

		if (i < s.top || i >= s.bottom) {
			fill_row(&s, row, 0, 0);
			continue;
		}
		if (s.right - s.left < g->w)
			fill_row(&s, row, s.left, s.right);
		sample_row(&s, i, row + s.left);
	}
out:
	return st;
}

enum mu_status mu_image_move(const struct mu_image *image, const struct mu_geometry *g,
			     uint8_t fill, struct mu_image_scratch *scratch, uint8_t *out,
			     bool *moved)
{
	enum mu_status st = MU_OK;
	struct sampling s = {.image = image, .g = g};
	const size_t plane = g->h * g->w;

	*moved = false;
	MU_TRY(grow_scratch(&s, scratch));
	find_places(&s);
	if (s.left == s.right || s.top == s.bottom)
		s.top = s.bottom = s.left = s.right = 0;
	else if (s.y[1] != 0 || s.x[0] != 0 || !only_moves(&s))
		goto out;
	*moved = true;
	if (s.bottom - s.top < g->h || s.right - s.left < g->w)
		memset(out, fill, CHANNELS * plane);
	for (size_t i = s.top; i < s.bottom; i++) {
		const uint32_t *pixels = moved_row(&s, i);

		for (int c = 0; c < CHANNELS; c++)
			take_bytes(out + (size_t)c * plane + i * g->w + s.left, pixels,
				   s.right - s.left, c);
	}
out:
	return st;
}
