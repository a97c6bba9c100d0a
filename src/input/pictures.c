/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by readers of images: their settings, as options, and the augmentation. */
#include <math.h>
#include <string.h>

#include "reader.h"

/* ---- the options ---- */

/* The means of ImageNet, as in MXNet. */
#define USUAL_MEAN "123.68,116.779,103.939"
#define USUAL_STD "1,1,1"

#define ROW(name_, type_, member) \
	.name = name_, .type = MU_OPTION_##type_, \
	.offset = offsetof(struct mu_picture_settings, member)
#define INT(name_, member)    ROW(name_, INT, member)
#define SWITCH(name_, member) ROW(name_, INT, member), .toggle = true
#define REAL(name_, member)   ROW(name_, REAL, member)
#define TEXT(name_, member)   ROW(name_, STRING, member)
#define RANGE(min_, max_)     .min = min_, .max = max_
#define AUTO		      .initial = "-1", .automatic = true
#define OF_DATA		      .group = "data", .advanced = true, .record = MU_RECORD_TOLD
#define OF_ALL		      .group = "training images", .advanced = true, .record = MU_RECORD_TOLD
#define USUAL		      .group = "training images", .advanced = true, .trains = true
#define RARE \
	.group = "training images: MXNet's further words", .expert = true, .trains = true

const struct mu_option mu_picture_options[] = {
	{TEXT("data-train-idx", data_train_idx), .group = "for experts", .expert = true,
	 .help = "FILE  index of the .rec file (the .idx file of the same name)"},
	{TEXT("data-val-idx", data_val_idx), .group = "for experts", .expert = true,
	 .help = "FILE  index of the .rec file for validation"},
	{TEXT("rgb-mean", rgb_mean), .similar = "mean", .initial = USUAL_MEAN, OF_DATA,
	 .help = "R,G,B  subtracted from the pixels of colour images; or one number"},
	{TEXT("rgb-std", rgb_std), .similar = "std", .initial = USUAL_STD, OF_DATA,
	 .help = "R,G,B  divisors of the pixels after that; or one number"},
	{INT("resize", augment.resize), .initial = "0", RANGE(0, 1e5), OF_ALL,
	 .help = "N  scale the shorter edge of images to N pixels first (0: no)"},
	{SWITCH("exif-orientation", exif_orientation), .initial = "1", RANGE(0, 1), OF_ALL,
	 .help = "rotate JPEG images to their EXIF orientation, validation images too"},
	{INT("pad-size", augment.pad), AUTO, RANGE(-1, 1e5), USUAL,
	 .help = "N  pad training images by N pixels on each side (-1: by the network)"},
	{INT("fill-value", augment.fill), .initial = "127", RANGE(0, 255), RARE,
	 .help = "N  value of pixels outside an image"},
	{SWITCH("random-crop", augment.random_crop), AUTO, RANGE(-1, 1), USUAL,
	 .help = "crop at a random place, not in the middle (default: by --data-aug-level)"},
	{SWITCH("random-mirror", augment.random_mirror), AUTO, RANGE(-1, 1), USUAL,
	 .similar = "hflip|horizontal-flip|flip",
	 .help = "mirror an image with probability 1/2 (default: by --data-aug-level)"},
	{INT("data-aug-level", level), .initial = "1", RANGE(0, 3), RARE,
	 .help = "N  0: none; 1: random crop and mirror; 2: also h, s, l by 36, 50, 50; 3: also "
		 "rotate, shear, aspect by 10, 0.1, 0.25"},
	{SWITCH("use-imagenet-data-augmentation", imagenet), .initial = "0", RANGE(0, 1), RARE,
	 .help = "crop a random area from 0.08 up and aspect ratio 3/4 to 4/3, mirror, colour "
		 "jitter of 0.4, PCA noise of 0.1"},
	{SWITCH("random-resized-crop", augment.random_resized_crop), .initial = "-1", RANGE(-1, 1),
	 USUAL, .help = "crop a random area and aspect ratio, and scale it to the shape"},
	{REAL("min-random-area", augment.min_area), RANGE(0, 1), USUAL,
	 .help = "X  least area of --random-resized-crop, as a fraction of the image (1)"},
	{REAL("max-random-area", augment.max_area), RANGE(0, 1), USUAL,
	 .help = "X  greatest area of --random-resized-crop (1)"},
	{REAL("min-random-aspect-ratio", augment.min_aspect), RANGE(0, 1000), USUAL,
	 .help = "X  least width to height (without it ratios are from 1 - max to 1 + max)"},
	{REAL("max-random-aspect-ratio", augment.max_aspect), RANGE(0, 1000), USUAL,
	 .help = "X  greatest width to height (0: no change)"},
	{INT("min-crop-size", augment.min_crop), .initial = "-1", RANGE(-1, 1e5), RARE,
	 .help = "N  least side of a square to crop and scale to the shape (-1: none)"},
	{INT("max-crop-size", augment.max_crop), .initial = "-1", RANGE(-1, 1e5), RARE,
	 .help = "N  greatest side of the square"},
	{INT("max-random-rotate-angle", augment.max_rotate_angle), .initial = "-1", RANGE(-1, 180),
	 RARE, .help = "N  rotate by up to N degrees, either way"},
	{REAL("max-random-shear-ratio", augment.max_shear), RANGE(0, 100), RARE,
	 .help = "X  shear by up to X, either way"},
	{REAL("min-random-scale", augment.min_scale), RANGE(0, 1000), RARE,
	 .help = "X  least scale of an image (1)"},
	{REAL("max-random-scale", augment.max_scale), RANGE(0, 1000), RARE,
	 .help = "X  greatest scale of an image (1)"},
	{REAL("brightness", augment.brightness), RANGE(0, 1), USUAL,
	 .help = "X  multiply pixels by a factor from 1 - X to 1 + X"},
	{REAL("contrast", augment.contrast), RANGE(0, 1), USUAL,
	 .help = "X  the same for the difference from the image's mean grey"},
	{REAL("saturation", augment.saturation), RANGE(0, 1), USUAL,
	 .help = "X  the same for the difference from each pixel's grey"},
	{INT("max-random-h", augment.max_h), .initial = "-1", RANGE(-1, 180), RARE,
	 .help = "N  add up to N to the hue (of 180), either way"},
	{INT("max-random-s", augment.max_s), .initial = "-1", RANGE(-1, 255), RARE,
	 .help = "N  add up to N to the saturation (of 255), either way"},
	{INT("max-random-l", augment.max_l), .initial = "-1", RANGE(-1, 255), RARE,
	 .help = "N  add up to N to the lightness (of 255), either way"},
	{REAL("pca-noise", augment.pca_noise), .similar = "lighting", RANGE(0, 100), USUAL,
	 .help = "X  standard deviation of noise along the principal components of colour"},
	{.name = NULL},
};

const struct mu_option_rule mu_picture_rules[] = {
	{.option = "data-train-idx", .relation = MU_OPTION_NEEDS, .other = "data-train"},
	{.option = "data-val-idx", .relation = MU_OPTION_NEEDS, .other = "data-val"},
	{.option = "use-imagenet-data-augmentation", .values = "1", .relation = MU_OPTION_EXCLUDES,
	 .other = "data-aug-level", .why = "use one of them"},
	{.option = "min-random-area|max-random-area", .relation = MU_OPTION_NEEDS,
	 .other = "random-resized-crop", .other_values = "1",
	 .why = "a crop of fixed size has no random area"},
	{.option = NULL},
};

/* ---- presets ---- */

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
static void set_imagenet(const struct mu_options *o, struct mu_picture_settings *s)
{
	struct mu_augment *a = &s->augment;

	set(&a->random_crop, 0);
	set(&a->random_resized_crop, 1);
	set(&a->random_mirror, 1);
	set_real(o, "min-random-area", &a->min_area, 0.08);
	set_real(o, "min-random-aspect-ratio", &a->min_aspect, 3.0 / 4);
	set_real(o, "max-random-aspect-ratio", &a->max_aspect, 4.0 / 3);
	set_real(o, "brightness", &a->brightness, 0.4);
	set_real(o, "contrast", &a->contrast, 0.4);
	set_real(o, "saturation", &a->saturation, 0.4);
	set_real(o, "pca-noise", &a->pca_noise, 0.1);
	if (!mu_options_given(o, "rgb-std"))
		s->rgb_std = "58.393,57.12,57.375";
}

/* The levels of MXNet's example before version 1.3. */
static void set_level(const struct mu_options *o, long level, struct mu_augment *a)
{
	if (level >= 2) {
		set(&a->max_h, 36);
		set(&a->max_s, 50);
		set(&a->max_l, 50);
	}
	if (level >= 3) {
		set(&a->max_rotate_angle, 10);
		set_real(o, "max-random-shear-ratio", &a->max_shear, 0.1);
		set_real(o, "max-random-aspect-ratio", &a->max_aspect, 0.25);
	}
	/* The preset must not contradict a random resized crop. */
	set(&a->random_crop, level >= 1 && a->random_resized_crop <= 0);
	set(&a->random_mirror, level >= 1);
}

/* "123.68,116.779,103.939", or one number for all channels. */
static enum mu_status parse_rgb(const char *name, const char *text, float out[3])
{
	enum mu_status st = MU_OK;
	char rest;

	if (sscanf(text, "%f%c", &out[0], &rest) == 1)
		out[1] = out[2] = out[0];
	else if (sscanf(text, "%f,%f,%f%c", &out[0], &out[1], &out[2], &rest) != 3)
		out[0] = NAN;
	if (!isfinite(out[0]) || !isfinite(out[1]) || !isfinite(out[2]))
		MU_FAIL(MU_ERR_USAGE,
			"%s %s: three numbers are needed, such as " USUAL_MEAN
			", or one for all channels",
			name, text);
out:
	return st;
}

static enum mu_status set_rgb(const struct mu_options *o, struct mu_picture_settings *s)
{
	enum mu_status st = MU_OK;
	const float *mean = s->mean, *std = s->std;

	MU_TRY(parse_rgb("rgb-mean", s->rgb_mean, s->mean));
	MU_TRY(parse_rgb("rgb-std", s->rgb_std, s->std));
	for (int i = 0; i < 3; i++)
		if (std[i] <= 0)
			MU_FAIL(MU_ERR_USAGE, "rgb-std %s: the numbers must be above 0",
				s->rgb_std);
	/* Small ones beside a mean of pixels are right: dark images of 16 bits. */
	if (std[0] < 1 && std[1] < 1 && std[2] < 1 &&
	    (!mu_options_given(o, "rgb-mean") || (mean[0] <= 1 && mean[1] <= 1 && mean[2] <= 1)))
		MU_FAIL(MU_ERR_USAGE,
			"rgb-std %s: pixels are from 0 to 255; %g of values from 0 to 1 is %g "
			"here, as for the mean",
			s->rgb_std, (double)std[0], 255 * (double)std[0]);
out:
	return st;
}

enum mu_status mu_picture_settle(void *settings, const struct mu_options *o, long pad)
{
	struct mu_picture_settings *s = settings;
	struct mu_augment *a = &s->augment;
	long *const off[] = {&a->random_resized_crop, &a->min_crop, &a->max_crop,
			     &a->max_rotate_angle, &a->max_h, &a->max_s, &a->max_l};

	if (s->imagenet)
		set_imagenet(o, s);
	else
		set_level(o, s->level, a);
	set(&a->pad, a->random_crop ? pad : 0);
	for (size_t i = 0; i < sizeof off / sizeof *off; i++)
		set(off[i], 0);
	a->as_stored = !s->exif_orientation;
	return set_rgb(o, s);
}

/* ---- what has no effect ---- */

/* Does a step show what is outside of an image, apart from the padding? */
static bool shows_outside(const struct mu_augment *a)
{
	return a->max_rotate_angle > 0 || a->max_shear > 0 || a->min_scale > 0 ||
	       a->max_scale > 0 || a->max_aspect > 0;
}

/* Does the crop of the middle cut off what the padding adds? Not where an image is too small. */
static bool is_cut_off(const struct mu_input *in, const struct mu_augment *a)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	struct mu_picture from = mu_sample_picture(&in->about.stored);

	if (a->resize > 0)
		from.h = from.w = (size_t)a->resize;
	return a->pad > 0 && !a->random_crop && !a->random_resized_crop && a->max_crop == 0 &&
	       !shows_outside(a) && from.h >= p.h && from.w >= p.w;
}

const char *mu_picture_idle(const struct mu_input *in, const char *setting)
{
	const struct mu_augment *a = &mu_input_pictures(in)->augment;
	const bool cut_off = is_cut_off(in, a);

	if (strcmp(setting, "exif-orientation") == 0 && in->ops == &mu_reader_cifar)
		return "these images are no JPEG files";
	if (strcmp(setting, "pad-size") == 0 && cut_off)
		return "the middle of an image is taken, without what is around it: random-crop 1 "
		       "takes other parts";
	if (strcmp(setting, "fill-value") == 0 && (a->pad == 0 || cut_off) && !shows_outside(a))
		return "no step shows what is outside of an image: pad-size and "
		       "max-random-rotate-angle do";
	return NULL;
}

/* ---- for readers ---- */

const struct mu_picture_settings *mu_input_pictures(const struct mu_input *in)
{
	return in->ops->colour_images ? in->settings : NULL;
}

struct mu_augment_task mu_input_task(const struct mu_input *in, struct mu_input_thread *thread,
				     size_t record)
{
	const struct mu_picture_settings *s = in->settings;

	return (struct mu_augment_task){
		.augment = &s->augment,
		.shape = mu_input_shape(in),
		.mean = s->mean,
		.std = s->std,
		.key = {.seed = in->config.seed,
			.purpose = MU_RANDOM_AUGMENT,
			.epoch = in->epoch,
			.sample = record},
		.bytes = thread ? thread->bytes : NULL,
		.are_bytes = thread ? &thread->are_bytes : NULL,
	};
}

enum mu_status mu_input_declare_images(struct mu_input *in, const struct mu_shape *shape)
{
	enum mu_status st = MU_OK;
	struct mu_picture_settings *s = in->settings;
	struct mu_field *data = mu_input_declare_data(in, MU_NUMBER_BYTE, shape);

	if (in->config.part == MU_INPUT_VALIDATE)
		s->augment = (struct mu_augment){.as_stored = s->augment.as_stored,
						 .resize = s->augment.resize};
	memcpy(data->mean, s->mean, sizeof data->mean);
	memcpy(data->std, s->std, sizeof data->std);
	for (size_t i = 0; i < 3; i++)
		if (!isfinite(s->mean[i]) || !isfinite(s->std[i]) || s->std[i] <= 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s input: mean %g and std %g of channel %zu; both must be finite "
				"and std above 0",
				in->ops->name, (double)s->mean[i], (double)s->std[i], i);
	MU_TRY(mu_augment_check(&s->augment, shape));
	if (!in->config.bytes || !mu_augment_keeps_bytes(&s->augment, shape))
		data->number = MU_NUMBER_FLOAT32;
out:
	return st;
}
