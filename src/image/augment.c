/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation: the steps and their random draws. Every draw has its own number, so that omitting a
 * step does not change the others. */
#include <math.h>

#include <muster/image.h>

enum {
	DRAW_SHEAR,
	DRAW_ANGLE,
	DRAW_SCALE,
	DRAW_ASPECT,
	DRAW_CROP_SIZE,
	DRAW_CROP_TOP,
	DRAW_CROP_LEFT,
	DRAW_MIRROR,
	DRAW_BRIGHTNESS,
	DRAW_CONTRAST,
	DRAW_SATURATION,
	DRAW_ORDER,
	DRAW_HUE,      /* and 5 more, two for each */
	DRAW_PCA = 20, /* and 2 more */
	DRAW_TRY = 32, /* 8 for each try of random_resized_crop */
	TRIES = 10,
};

/* ---- rules ---- */

static double or_one(double value)
{
	return value > 0 ? value : 1;
}

static bool has_affine(const struct mu_augment *a)
{
	return a->max_rotate_angle > 0 || a->max_shear > 0 || or_one(a->min_scale) != 1 ||
	       or_one(a->max_scale) != 1 || (!a->random_resized_crop && a->max_aspect > 0);
}

static bool has_colour(const struct mu_augment *a)
{
	return a->brightness > 0 || a->contrast > 0 || a->saturation > 0 ||
	       a->max_h + a->max_s + a->max_l > 0 || a->pca_noise > 0;
}

static double least_aspect(const struct mu_augment *a)
{
	return a->min_aspect > 0 ? a->min_aspect : 1 - a->max_aspect;
}

static double most_aspect(const struct mu_augment *a)
{
	return a->min_aspect > 0 ? a->max_aspect : 1 + a->max_aspect;
}

static enum mu_status check_sizes(const struct mu_augment *a, const struct mu_shape *shape)
{
	enum mu_status st = MU_OK;
	const struct mu_picture p = mu_sample_picture(shape);
	char text[MU_SAMPLE_TEXT];

	mu_sample_text(shape, ",", text, sizeof text);
	if (shape->ndims != 4)
		MU_FAIL(MU_ERR_USAGE, "image shape %s: images have three numbers, C,H,W", text);
	if (p.c != 1 && p.c != 3)
		MU_FAIL(MU_ERR_USAGE, "image shape %s: images have 1 channel or 3", text);
	if (p.h == 0 || p.w == 0 || p.h > MU_IMAGE_MAX_PIXELS / p.w)
		MU_FAIL(MU_ERR_USAGE, "image shape %s: from 1 to %zu pixels are possible", text,
			MU_IMAGE_MAX_PIXELS);
	if (a->min_crop > a->max_crop)
		MU_FAIL(MU_ERR_USAGE,
			"setting min-crop-size %ld is more than setting max-crop-size %ld",
			a->min_crop, a->max_crop);
	if (a->max_crop > 0 && a->min_crop == 0)
		MU_FAIL(MU_ERR_USAGE, "setting max-crop-size %ld needs setting min-crop-size",
			a->max_crop);
	if (a->random_resized_crop && (a->random_crop || a->max_crop > 0))
		MU_FAIL(MU_ERR_USAGE, "setting random-resized-crop 1 takes the place of setting "
				      "random-crop 1, setting min-crop-size and setting "
				      "max-crop-size: give one of them");
out:
	return st;
}

enum mu_status mu_augment_check(const struct mu_augment *a, const struct mu_shape *shape)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_sizes(a, shape));
	if (or_one(a->min_scale) > or_one(a->max_scale))
		MU_FAIL(MU_ERR_USAGE,
			"setting min-random-scale %g is more than setting max-random-scale %g",
			or_one(a->min_scale), or_one(a->max_scale));
	if (or_one(a->min_area) > or_one(a->max_area))
		MU_FAIL(MU_ERR_USAGE,
			"setting min-random-area %g is more than setting max-random-area %g",
			or_one(a->min_area), or_one(a->max_area));
	if (a->min_aspect > a->max_aspect)
		MU_FAIL(MU_ERR_USAGE,
			"setting min-random-aspect-ratio %g is more than setting "
			"max-random-aspect-ratio %g",
			a->min_aspect, a->max_aspect);
	if (least_aspect(a) <= 0)
		MU_FAIL(MU_ERR_USAGE,
			"setting max-random-aspect-ratio %g without setting "
			"min-random-aspect-ratio: ratios "
			"are from 1 - %g to 1 + %g, so it must be below 1",
			a->max_aspect, a->max_aspect, a->max_aspect);
out:
	return st;
}

bool mu_augment_crop_is_fixed(const struct mu_augment *a, const struct mu_shape *stored,
			      const struct mu_shape *shape)
{
	const struct mu_picture from = mu_sample_picture(stored), to = mu_sample_picture(shape);

	return a->random_crop && a->pad == 0 && a->resize == 0 && a->max_crop == 0 &&
	       !has_affine(a) && from.h == to.h && from.w == to.w;
}

bool mu_augment_is_none(const struct mu_augment *a)
{
	return a->resize == 0 && !has_affine(a) && a->pad == 0 && !a->random_resized_crop &&
	       a->max_crop == 0 && !a->random_crop && !has_colour(a) && !a->random_mirror;
}

bool mu_augment_keeps_bytes(const struct mu_augment *a, const struct mu_shape *shape)
{
	return mu_shape_channels(shape) == 3 && !has_colour(a) && a->fill >= 0 && a->fill <= 255;
}

/* ---- draws ---- */

static double between(const struct mu_random *key, uint64_t element, double low, double high)
{
	return low < high ? low + (high - low) * (double)mu_random_uniform(key, element) : low;
}

/* A random integer in [0, most]. */
static size_t up_to(const struct mu_random *key, uint64_t element, size_t most)
{
	return most > 0 ? (size_t)mu_random_below(key, element, most + 1) : 0;
}

/* ---- geometry ---- */

static void turn(const struct mu_augment *a, const struct mu_random *key, struct mu_geometry *g)
{
	struct mu_affine affine = {
		.shear = between(key, DRAW_SHEAR, -a->max_shear, a->max_shear),
		.angle = (double)up_to(key, DRAW_ANGLE, 2 * (size_t)a->max_rotate_angle) -
			 (double)a->max_rotate_angle,
		.scale = between(key, DRAW_SCALE, or_one(a->min_scale), or_one(a->max_scale)),
		.aspect = 1,
	};

	if (!a->random_resized_crop && a->max_aspect > 0)
		affine.aspect = between(key, DRAW_ASPECT, least_aspect(a), most_aspect(a));
	mu_geometry_affine(g, &affine);
}

/* At a random place, or at the centre. */
static void crop(struct mu_geometry *g, size_t h, size_t w, const struct mu_random *key)
{
	size_t top = g->h - h, left = g->w - w;

	top = key ? up_to(key, DRAW_CROP_TOP, top) : top / 2;
	left = key ? up_to(key, DRAW_CROP_LEFT, left) : left / 2;
	mu_geometry_crop(g, top, left, h, w);
}

/* False if no trial fits. */
static bool crop_and_resize(const struct mu_augment *a, const struct mu_random *key,
			    const struct mu_picture *to, struct mu_geometry *g)
{
	double all = (double)g->h * (double)g->w;

	for (uint64_t i = 0; i < TRIES; i++) {
		uint64_t element = DRAW_TRY + 8 * i;
		double area = all * between(key, element, or_one(a->min_area), or_one(a->max_area));
		double aspect = between(key, element + 1, least_aspect(a), most_aspect(a));
		double w = round(sqrt(area * aspect)), h = round(sqrt(area / aspect)), other = w;
		size_t top, left;

		if (mu_random_uniform(key, element + 2) < 0.5f) {
			w = h;
			h = other;
		}
		if (w < 1 || h < 1 || w > (double)g->w || h > (double)g->h)
			continue;
		top = up_to(key, element + 3, g->h - (size_t)h);
		left = up_to(key, element + 4, g->w - (size_t)w);
		mu_geometry_crop(g, top, left, (size_t)h, (size_t)w);
		mu_geometry_resize(g, to->h, to->w);
		return true;
	}
	return false;
}

static enum mu_status crop_square(const struct mu_augment *a, const struct mu_random *key,
				  const struct mu_picture *to, struct mu_geometry *g)
{
	enum mu_status st = MU_OK;
	const size_t most = (size_t)a->max_crop, least = (size_t)a->min_crop;
	const size_t n = least + up_to(key, DRAW_CROP_SIZE, most - least);

	if (g->h < most || g->w < most)
		MU_FAIL(MU_ERR_FORMAT,
			"image of %zu x %zu pixels after resize and padding; setting "
			"max-crop-size %zu needs so many at each side",
			g->h, g->w, most);
	crop(g, n, n, a->random_crop ? key : NULL);
	mu_geometry_resize(g, to->h, to->w);
out:
	return st;
}

/* Enlarge a picture that is too small, as little as necessary. */
static void enlarge(struct mu_geometry *g, size_t h, size_t w)
{
	if (g->h < h)
		mu_geometry_resize(g, h, h * g->w / g->h > 0 ? h * g->w / g->h : 1);
	if (g->w < w)
		mu_geometry_resize(g, w * g->h / g->w, w);
}

enum mu_status mu_augment_geometry(const struct mu_augment *a, const struct mu_random *key,
				   const struct mu_shape *shape, size_t h, size_t w,
				   struct mu_geometry *g)
{
	enum mu_status st = MU_OK;
	const struct mu_picture to = mu_sample_picture(shape);

	mu_geometry_start(g, h, w);
	if (a->resize > 0)
		mu_geometry_resize_shorter(g, (size_t)a->resize);
	if (has_affine(a))
		turn(a, key, g);
	if (a->pad > 0)
		mu_geometry_pad(g, (size_t)a->pad);
	if (!a->random_resized_crop && a->max_crop > 0) {
		MU_TRY(crop_square(a, key, &to, g));
	} else if (!a->random_resized_crop || !crop_and_resize(a, key, &to, g)) {
		enlarge(g, to.h, to.w);
		crop(g, to.h, to.w, a->random_crop ? key : NULL);
	}
	if (a->random_mirror && mu_random_uniform(key, DRAW_MIRROR) < 0.5f)
		mu_geometry_mirror(g);
out:
	return st;
}

/* ---- colour ---- */

static void jitter(const struct mu_augment *a, const struct mu_random *key, float *rgb, size_t n)
{
	static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	void (*const steps[3])(float *rgb, size_t n, float amount) = {
		mu_image_brightness, mu_image_contrast, mu_image_saturation};
	const double most[3] = {a->brightness, a->contrast, a->saturation};
	const int *order = orders[up_to(key, DRAW_ORDER, 5)];

	for (int i = 0; i < 3; i++) {
		int step = order[i];

		if (most[step] > 0)
			steps[step](rgb, n,
				    (float)between(key, DRAW_BRIGHTNESS + (uint64_t)step,
						   1 - most[step], 1 + most[step]));
	}
}

static float shift(const struct mu_random *key, uint64_t element, long most)
{
	double u1 = between(key, element, -1, 1), u2 = between(key, element + 1, -1, 1);

	return (float)round((u1 + 4 * u2) / 5 * (double)most);
}

void mu_augment_colour(const struct mu_augment *a, const struct mu_random *key, float *rgb,
		       size_t n)
{
	if (a->brightness > 0 || a->contrast > 0 || a->saturation > 0)
		jitter(a, key, rgb, n);
	if (a->max_h + a->max_s + a->max_l > 0)
		mu_image_hsl(rgb, n, shift(key, DRAW_HUE, a->max_h),
			     shift(key, DRAW_HUE + 2, a->max_s),
			     shift(key, DRAW_HUE + 4, a->max_l));
	if (a->pca_noise > 0) {
		float weight[3];

		for (uint64_t i = 0; i < 3; i++)
			weight[i] = (float)a->pca_noise * mu_random_normal(key, DRAW_PCA + i);
		mu_image_pca(rgb, n, weight);
	}
}

/* ---- all of it ---- */

void mu_image_worker_release(struct mu_image_worker *worker)
{
	mu_image_decoder_free(worker->decoder);
	mu_image_release(&worker->image);
	mu_image_scratch_release(&worker->scratch);
	mu_free(worker->planes);
	*worker = (struct mu_image_worker){0};
}

static enum mu_status grow_planes(struct mu_image_worker *worker, size_t n)
{
	enum mu_status st = MU_OK;

	if (worker->planes_capacity >= n)
		goto out;
	mu_free(worker->planes);
	worker->planes_capacity = 0;
	MU_TRY(MU_ALLOC(worker->planes, n, "planes of a picture"));
	worker->planes_capacity = n;
out:
	return st;
}

/* Sampling is linear: the lower bits are sampled as a picture of their own. low: space for it. */
static enum mu_status sample_deep(struct mu_image_worker *worker, const struct mu_geometry *g,
				  const struct mu_image_values *values, float *low, float *rgb)
{
	enum mu_status st = MU_OK;
	struct mu_image lower = worker->image;

	MU_TRY(mu_image_sample(&worker->image, g, values, &worker->scratch, rgb));
	lower.pixels = worker->image.low;
	MU_TRY(mu_image_sample(&lower, g, values, &worker->scratch, low));
	for (size_t i = 0; i < 3 * g->h * g->w; i++)
		rgb[i] = (256 * rgb[i] + low[i]) / 257;
out:
	return st;
}

/* Sample directly into out if there is no step in between, else sample plain values first. */
static enum mu_status finish(const struct mu_augment_task *task, const struct mu_geometry *g,
			     struct mu_image_worker *worker, float *out)
{
	enum mu_status st = MU_OK;
	size_t n = g->h * g->w;
	const size_t channels = mu_shape_channels(task->shape);
	const bool deep = worker->image.low, grey = channels == 1;
	const bool direct = !grey && !deep && !has_colour(task->augment);
	struct mu_image_values values = {.fill = (float)task->augment->fill, .std = {1, 1, 1}};
	float *rgb = out;

	if (task->bytes && !deep)
		MU_TRY(mu_image_move(&worker->image, g, (uint8_t)task->augment->fill,
				     &worker->scratch, task->bytes, task->are_bytes));
	if (task->bytes && *task->are_bytes)
		goto out;
	MU_TRY(grow_planes(worker, 3 * n * (size_t)(grey + deep)));
	if (grey)
		rgb = worker->planes;
	for (int c = 0; direct && c < 3; c++) {
		values.mean[c] = task->mean[c];
		values.std[c] = task->std[c];
	}
	if (deep)
		MU_TRY(sample_deep(worker, g, &values, worker->planes + (grey ? 3 * n : 0), rgb));
	else
		MU_TRY(mu_image_sample(&worker->image, g, &values, &worker->scratch, rgb));
	if (direct)
		goto out;
	mu_augment_colour(task->augment, &task->key, rgb, n);
	if (grey)
		mu_image_grey(out, rgb, n);
	for (size_t c = 0; c < channels; c++)
		mu_image_normalise(out + c * n, n, task->mean[c], task->std[c]);
out:
	return st;
}

enum mu_status mu_augment_image(const struct mu_augment_task *task, struct mu_image_worker *worker,
				float *out)
{
	enum mu_status st = MU_OK;
	struct mu_geometry g;

	worker->h = worker->image.h;
	worker->w = worker->image.w;
	MU_TRY(mu_augment_geometry(task->augment, &task->key, task->shape, worker->h, worker->w,
				   &g));
	MU_TRY(finish(task, &g, worker, out));
out:
	return st;
}

enum mu_status mu_augment_file(const struct mu_augment_task *task, const uint8_t *data, size_t n,
			       struct mu_image_worker *worker, float *out)
{
	enum mu_status st = MU_OK;
	struct mu_image_window window;
	struct mu_geometry g;
	size_t h, w;

	if (!worker->decoder)
		MU_TRY(mu_image_decoder_new(&worker->decoder));
	mu_image_decoder_upright(worker->decoder, !task->augment->as_stored);
	MU_TRY(mu_image_begin(worker->decoder, data, n, &h, &w));
	worker->h = h;
	worker->w = w;
	MU_TRY(mu_augment_geometry(task->augment, &task->key, task->shape, h, w, &g));
	mu_geometry_window(&g, 8, &window);
	MU_TRY(mu_image_decode(worker->decoder, &window, &worker->image));
	MU_TRY(finish(task, &g, worker, out));
out:
	return st;
}
