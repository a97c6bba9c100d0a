/* SPDX-License-Identifier: Apache-2.0 */
/* Description of an augmentation for the log. */
#include <stdarg.h>

#include <muster/image.h>

struct text {
	char *at;
	size_t left;
	bool begun;
};

static __attribute__((format(printf, 2, 3))) void add(struct text *t, const char *format, ...)
{
	va_list arguments;
	int n = snprintf(t->at, t->left, "%s", t->begun ? ", " : "");

	va_start(arguments, format);
	if ((size_t)n < t->left)
		n += vsnprintf(t->at + n, t->left - (size_t)n, format, arguments);
	va_end(arguments);
	n = (size_t)n < t->left ? n : (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
	t->begun = true;
}

static void add_geometry(const struct mu_augment *a, struct text *t)
{
	if (a->as_stored)
		add(t, "as stored, not turned upright");
	if (a->resize)
		add(t, "shorter edge to %ld", a->resize);
	if (a->max_rotate_angle)
		add(t, "turned by up to %ld degrees", a->max_rotate_angle);
	if (a->max_shear > 0)
		add(t, "sheared by up to %g", a->max_shear);
	if (a->min_scale > 0 || a->max_scale > 0)
		add(t, "scaled by %g to %g", a->min_scale > 0 ? a->min_scale : 1,
		    a->max_scale > 0 ? a->max_scale : 1);
	if (a->max_aspect > 0)
		add(t, "aspect %g to %g", a->min_aspect > 0 ? a->min_aspect : 1 - a->max_aspect,
		    a->min_aspect > 0 ? a->max_aspect : 1 + a->max_aspect);
	if (a->pad)
		add(t, "%ld pixels of %ld around", a->pad, a->fill);
	if (a->max_crop)
		add(t, "squares of %ld to %ld pixels", a->min_crop, a->max_crop);
	if (a->random_resized_crop)
		add(t, "random areas of %g to %g", a->min_area > 0 ? a->min_area : 1,
		    a->max_area > 0 ? a->max_area : 1);
	else
		add(t, a->random_crop ? "cut at random" : "the middle");
}

void mu_augment_describe(const struct mu_augment *a, char *text, size_t nbytes)
{
	struct text t = {.at = text, .left = nbytes};

	*text = '\0';
	add_geometry(a, &t);
	if (a->brightness > 0 || a->contrast > 0 || a->saturation > 0)
		add(&t, "brightness, contrast, saturation +-%g, %g, %g", a->brightness, a->contrast,
		    a->saturation);
	if (a->max_h + a->max_s + a->max_l > 0)
		add(&t, "hue, saturation, lightness +-%ld, %ld, %ld", a->max_h, a->max_s, a->max_l);
	if (a->pca_noise > 0)
		add(&t, "PCA noise of %g", a->pca_noise);
	if (a->random_mirror)
		add(&t, "mirrored at random");
}
