/* SPDX-License-Identifier: Apache-2.0 */
/* Options about training images: apply presets, and make the input's config. */
#include "conf.h"

#include <string.h>

#include <muster/base.h>

static const char *const names[] = {
	"exif-orientation",
	"resize",
	"pad-size",
	"fill-value",
	"random-crop",
	"random-mirror",
	"data-aug-level",
	"use-imagenet-data-augmentation",
	"random-resized-crop",
	"min-random-area",
	"max-random-area",
	"min-random-aspect-ratio",
	"max-random-aspect-ratio",
	"min-crop-size",
	"max-crop-size",
	"max-random-rotate-angle",
	"max-random-shear-ratio",
	"min-random-scale",
	"max-random-scale",
	"brightness",
	"contrast",
	"saturation",
	"max-random-h",
	"max-random-s",
	"max-random-l",
	"pca-noise",
};

static void set(long *value, long preset)
{
	if (*value < 0)
		*value = preset;
}

static void set_real(const struct mu_options *o, const char *name, double *value, double preset)
{
	if (!mu_options_given(o, name))
		*value = preset;
}

/* The values that MXNet's trainer sets for this option. */
static void set_imagenet(const struct mu_options *o, struct conf *v)
{
	struct conf_images *i = &v->images;

	set(&i->random_crop, 0);
	set(&i->random_resized_crop, 1);
	set(&i->random_mirror, 1);
	set_real(o, "min-random-area", &i->min_area, 0.08);
	set_real(o, "min-random-aspect-ratio", &i->min_aspect, 3.0 / 4);
	set_real(o, "max-random-aspect-ratio", &i->max_aspect, 4.0 / 3);
	set_real(o, "brightness", &i->brightness, 0.4);
	set_real(o, "contrast", &i->contrast, 0.4);
	set_real(o, "saturation", &i->saturation, 0.4);
	set_real(o, "pca-noise", &i->pca_noise, 0.1);
	if (!v->rgb_std)
		v->rgb_std = "58.393,57.12,57.375";
}

/* The levels of MXNet's example before version 1.3. */
static void set_level(const struct mu_options *o, struct conf_images *i)
{
	if (i->level >= 2) {
		set(&i->max_h, 36);
		set(&i->max_s, 50);
		set(&i->max_l, 50);
	}
	if (i->level >= 3) {
		set(&i->max_rotate_angle, 10);
		set_real(o, "max-random-shear-ratio", &i->max_shear, 0.1);
		set_real(o, "max-random-aspect-ratio", &i->max_aspect, 0.25);
	}
	/* The preset must not contradict a random resized crop. */
	set(&i->random_crop, i->level >= 1 && i->random_resized_crop <= 0);
	set(&i->random_mirror, i->level >= 1);
}

void mu_conf_images_settle(const struct mu_options *o, struct conf *v)
{
	struct conf_images *i = &v->images;

	for (size_t n = 0; n < sizeof names / sizeof *names && !i->given; n++)
		if (mu_options_given(o, names[n]))
			i->given = names[n];
	if (i->imagenet)
		set_imagenet(o, v);
	else
		set_level(o, i);
	set(&i->pad, i->random_crop ? i->usual_pad : 0);
	set(&i->random_resized_crop, 0);
	set(&i->min_crop, 0);
	set(&i->max_crop, 0);
	set(&i->max_rotate_angle, 0);
	set(&i->max_h, 0);
	set(&i->max_s, 0);
	set(&i->max_l, 0);
}

struct mu_augment mu_conf_images_augment(const struct conf_images *i, enum mu_input_part part)
{
	if (part == MU_INPUT_VALIDATE)
		return (struct mu_augment){.as_stored = !i->exif_orientation,
					   .resize = (size_t)i->resize};
	return (struct mu_augment){
		.as_stored = !i->exif_orientation,
		.resize = (size_t)i->resize,
		.max_rotate_angle = (size_t)i->max_rotate_angle,
		.max_shear = i->max_shear,
		.min_scale = i->min_scale,
		.max_scale = i->max_scale,
		.min_aspect = i->min_aspect,
		.max_aspect = i->max_aspect,
		.pad = (size_t)i->pad,
		.fill = (float)i->fill,
		.random_resized_crop = i->random_resized_crop != 0,
		.random_crop = i->random_crop != 0,
		.min_area = i->min_area,
		.max_area = i->max_area,
		.min_crop = (size_t)i->min_crop,
		.max_crop = (size_t)i->max_crop,
		.brightness = i->brightness,
		.contrast = i->contrast,
		.saturation = i->saturation,
		.max_h = (size_t)i->max_h,
		.max_s = (size_t)i->max_s,
		.max_l = (size_t)i->max_l,
		.pca_noise = i->pca_noise,
		.random_mirror = i->random_mirror != 0,
	};
}
