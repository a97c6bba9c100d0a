/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preprocessor_config.json of a model: which pixels it reads. Theirs is (factor * pixel - mean)
 * / std, after images are resized and cropped; here (pixel - mean) / std, so that both are divided
 * by the factor.
 */
#include "names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 128 };

enum how {
	TYPE,
	HARMLESS,
	ONE_OF,
	ROUNDING,
	FLAG,
	FACTOR,
	MEAN,
	STD,
	SIDES,
	SHORTER,
	HEIGHT,
	WIDTH
};

struct pixels {
	struct model_config *c;
	const char *types; /* of the processor */
	bool resize, crop, rescale, normalize, resample;
	bool shorter_size; /* "size", a number, is that of the shorter side */
	double factor, mean[3], std[3];
	double shorter, size[2], cropped[2]; /* height, width; 0: not told */
};

/* Processors of transformers, and what their members are where the file lacks them. resample: true:
 * bilinear. A file without a type is of the first. */
#define COMMON .resize = true, .rescale = true, .normalize = true, .factor = 1 / 255.0
static const struct pixels processors[] = {
	{COMMON,
	 .types = "|\"ViTImageProcessor\"|\"ViTImageProcessorFast\"|\"ViTFeatureExtractor\"|",
	 .resample = true, .mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}, .size = {224, 224},
	 .cropped = {224, 224}},
	{COMMON,
	 .types = "|\"DeiTImageProcessor\"|\"DeiTImageProcessorFast\"|\"DeiTFeatureExtractor\"|",
	 .crop = true, .mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}, .size = {256, 256},
	 .cropped = {224, 224}},
	{COMMON,
	 .types = "|\"CLIPImageProcessor\"|\"CLIPImageProcessorFast\"|\"CLIPFeatureExtractor\"|",
	 .crop = true, .shorter_size = true, .mean = {0.48145466, 0.4578275, 0.40821073},
	 .std = {0.26862954, 0.26130258, 0.27577711}, .shorter = 224, .cropped = {224, 224}},
};
static const char type_names[] = "|image_processor_type|feature_extractor_type|";

static const struct member {
	const char *names;
	enum how how;
	const char *words;
	size_t offset; /* in struct pixels */
} members[] = {
	{type_names, TYPE, NULL, 0},
	{"|do_resize|", FLAG, NULL, offsetof(struct pixels, resize)},
	{"|do_center_crop|", FLAG, NULL, offsetof(struct pixels, crop)},
	{"|do_rescale|", FLAG, NULL, offsetof(struct pixels, rescale)},
	{"|do_normalize|", FLAG, NULL, offsetof(struct pixels, normalize)},
	{"|do_convert_rgb|", ONE_OF, "|true|null|", 0},
	{"|do_pad|do_grayscale|", ONE_OF, "|false|null|", 0},
	{"|rescale_factor|", FACTOR, NULL, 0},
	{"|image_mean|", MEAN, NULL, 0},
	{"|image_std|", STD, NULL, 0},
	{"|size|", SIDES, NULL, offsetof(struct pixels, size)},
	{"|crop_size|", SIDES, NULL, offsetof(struct pixels, cropped)},
	{"|size.shortest_edge|", SHORTER, NULL, 0},
	{"|size.height|", HEIGHT, NULL, offsetof(struct pixels, size)},
	{"|size.width|", WIDTH, NULL, offsetof(struct pixels, size)},
	{"|crop_size.height|", HEIGHT, NULL, offsetof(struct pixels, cropped)},
	{"|crop_size.width|", WIDTH, NULL, offsetof(struct pixels, cropped)},
	{"|resample|", ROUNDING, "|2|", 0}, /* bilinear */
	{"|_valid_processor_keys|processor_class|return_tensors|data_format|input_data_format|"
	 "device|default_to_square|",
	 HARMLESS, NULL, 0},
};

static bool three(const char *value, double out[3])
{
	char rest = 0, more;

	return sscanf(value, "[%lf,%lf,%lf%c%c", &out[0], &out[1], &out[2], &rest, &more) == 4 &&
	       rest == ']';
}

/* false: the value has no meaning. */
static bool read_value(struct pixels *p, const struct member *m, const char *value)
{
	char *const at = (char *)p + m->offset, *end;
	const double number = strtod(value, &end);
	const bool positive = *value && !*end && number > 0 && number < 1e6;
	bool flag = strcmp(value, "true") == 0;

	if (strcmp(value, "null") == 0 && m->how >= FACTOR)
		return true; /* as if it were not there */
	switch (m->how) {
	case TYPE: return model_is_one_of(p->types, value);
	case HARMLESS:
	case ONE_OF: return true;
	case ROUNDING: p->resample = true; return true;
	case FLAG:
		memcpy(at, &flag, sizeof flag);
		return flag || strcmp(value, "false") == 0 || strcmp(value, "null") == 0;
	case FACTOR: p->factor = number; return positive;
	case MEAN: return three(value, p->mean);
	case STD: return three(value, p->std);
	case SHORTER:
		p->shorter = number;
		p->size[0] = p->size[1] = 0;
		return positive;
	case SIDES: /* of old files */
		if (at == (char *)p->size && p->shorter_size)
			p->shorter = number;
		else
			((double *)at)[0] = ((double *)at)[1] = number;
		return positive;
	case HEIGHT:
	case WIDTH:
		if (at == (char *)p->size)
			p->shorter = 0;
		((double *)at)[m->how == WIDTH] = number;
		return positive;
	}
	return false;
}

static enum mu_status read_member(void *context, const char *name, const char *value)
{
	enum mu_status st = MU_OK;
	struct pixels *p = context;
	const struct member *m = members, *const end = members + sizeof members / sizeof *members;

	while (m < end && !model_is_one_of(m->names, name))
		m++;
	if (m == end)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its preprocessor_config.json has \"%s\": %.60s, which is not known: it "
			"may "
			"change what the model reads; take it out of the file if it does not",
			name, value);
	if (!read_value(p, m, value) || (m->how == ONE_OF && !model_is_one_of(m->words, value)))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its preprocessor_config.json has \"%s\": %s, which is not done here; "
			"without the file, give trainer what it means",
			name, value);
	if (m->how == ROUNDING && !model_is_one_of(m->words, value))
		model_note(p->c,
			   "preprocessor_config.json has \"%s\": %s; here images are resized by "
			   "bilinear interpolation (2)",
			   name, value);
out:
	return st;
}

/* What of the images' geometry is otherwise here. */
static void set_geometry(struct model_config *c, const struct pixels *p)
{
	const double *crop = p->crop ? p->cropped : p->size;
	const double height = (double)c->height, width = (double)c->width;

	if (p->resize)
		c->resize = p->shorter > 0            ? p->shorter
			    : p->size[0] < p->size[1] ? p->size[0]
						      : p->size[1];
	if (crop[0] > 0 && c->height > 0 && (crop[0] != height || crop[1] != width)) {
		model_note(c,
			   "preprocessor_config.json makes images of %g x %g, and the model reads "
			   "%zu x %zu: these are made here",
			   crop[0], crop[1], c->height, c->width);
		c->resize = height < width ? height : width;
	}
	if (p->crop && !p->resize)
		model_note(c, "images smaller than the crop are enlarged here, and filled up with "
			      "zeros by preprocessor_config.json");
	if (p->resize && p->shorter == 0)
		model_note(c, "images that are not square are cropped here, and squeezed by "
			      "preprocessor_config.json");
}

/* Which processor it is, whatever the order of the members. */
static enum mu_status find_processor(void *context, const char *name, const char *value)
{
	struct pixels *p = context;

	for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
		if (model_is_one_of(type_names, name) &&
		    model_is_one_of(processors[i].types, value))
			*p = processors[i];
	return MU_OK;
}

/* What of the members together cannot be done here. */
static enum mu_status check_pixels(const struct pixels *p, const double std[3])
{
	enum mu_status st = MU_OK;
	char factor[48] = "\"do_rescale\": false";

	if (p->rescale)
		snprintf(factor, sizeof factor, "\"rescale_factor\": %g", p->factor);
	for (int i = 0; i < 3; i++)
		if (!(std[i] > 0))
			MU_FAIL(MU_ERR_FORMAT,
				"its preprocessor_config.json divides by %g (\"image_std\")",
				p->std[i]);
	if (std[0] < 1 && std[1] < 1 && std[2] < 1)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its preprocessor_config.json has %s, so that pixels are divided by %g: "
			"those of files are from 0 to 255; a rescale_factor of 1/255 is usual",
			factor, std[0]);
	for (int i = 0; p->crop && p->resize && i < 2; i++) {
		const double side = p->shorter > 0 ? p->shorter : p->size[i];

		if (side > 0 && p->cropped[i] > side)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"its preprocessor_config.json crops %g pixels (\"crop_size\") out "
				"of images of %g (\"size\"): others fill the edge with zeros, "
				"which is not done here",
				p->cropped[i], side);
	}
out:
	return st;
}

static enum mu_status read_file(struct pixels *p, struct model_config *c, const char *place,
				bool *there)
{
	enum mu_status st = MU_OK;
	char path[MODEL_PATH];

	*p = processors[0];
	model_path(place, "preprocessor_config.json", path);
	MU_TRY(mu_settings_each(path, find_processor, p, there));
	p->c = c;
	MU_TRY(mu_settings_each(path, read_member, p, there));
	if (!*there)
		goto out;
	if (!p->rescale)
		p->factor = 1;
	c->pixels = true;
	for (int i = 0; i < 3; i++) {
		c->mean[i] = p->normalize ? p->mean[i] / p->factor : 0;
		c->std[i] = p->normalize ? p->std[i] / p->factor : 1 / p->factor;
	}
	MU_TRY(check_pixels(p, c->std));
out:
	return st;
}

enum mu_status model_images_read(struct model_config *c, const char *place)
{
	enum mu_status st = MU_OK;
	struct pixels p;
	bool there;

	MU_TRY(read_file(&p, c, place, &there));
	if (!there)
		goto out;
	if (!p.resample && p.resize)
		model_note(c, "preprocessor_config.json has no \"resample\", which means bicubic "
			      "(3); here images are resized by bilinear interpolation (2)");
	if (p.resize)
		model_note(c, "preprocessor_config.json resizes images with a filter; trainer "
			      "halves them and interpolates between the nearest pixels, so that "
			      "values differ a little: im2rec --resize filters, too");
	set_geometry(c, &p);
out:
	return st;
}

/* ---- writing ---- */

static void put_three(struct mu_json *j, const char *name, const float v[3])
{
	mu_json_open(j, name, '[');
	for (int i = 0; i < 3; i++)
		mu_json_number(j, NULL, (double)v[i] / 255);
	mu_json_close(j, ']');
}

static void put_all(struct mu_json *j, const float mean[3], const float std[3], double resize,
		    const size_t side[2])
{
	mu_json_open(j, NULL, '{');
	mu_json_text(j, "image_processor_type", "CLIPImageProcessor");
	mu_json_bool(j, "do_convert_rgb", true);
	mu_json_bool(j, "do_resize", resize > 0);
	mu_json_open(j, "size", '{');
	mu_json_number(j, "shortest_edge", resize > 0 ? resize : (double)side[0]);
	mu_json_close(j, '}');
	mu_json_number(j, "resample", 2);
	mu_json_bool(j, "do_center_crop", true);
	mu_json_open(j, "crop_size", '{');
	mu_json_number(j, "height", (double)side[0]);
	mu_json_number(j, "width", (double)side[1]);
	mu_json_close(j, '}');
	mu_json_bool(j, "do_rescale", true);
	mu_json_number(j, "rescale_factor", 1 / 255.0);
	mu_json_bool(j, "do_normalize", true);
	put_three(j, "image_mean", mean);
	put_three(j, "image_std", std);
	mu_json_close(j, '}');
}

/* Those of images, as the trainer makes them. *there: the file says so. */
static enum mu_status read_pixels(struct mu_array_file *in, float mean[3], float std[3],
				  double *resize, bool *there)
{
	enum mu_status st = MU_OK;
	char text[4][TEXT_BYTES];

	MU_TRY(mu_array_file_find_text(in, "input", text[0], TEXT_BYTES));
	MU_TRY(mu_array_file_find_text(in, "rgb-mean", text[1], TEXT_BYTES));
	MU_TRY(mu_array_file_find_text(in, "rgb-std", text[2], TEXT_BYTES));
	MU_TRY(mu_array_file_find_text(in, "resize", text[3], TEXT_BYTES));
	*resize = strtod(text[3], NULL);
	*there = strcmp(text[0], "images") == 0 &&
		 sscanf(text[1], "%f,%f,%f", &mean[0], &mean[1], &mean[2]) == 3 &&
		 sscanf(text[2], "%f,%f,%f", &std[0], &std[1], &std[2]) == 3;
out:
	return st;
}

/* What the trainer makes of images. */
struct made {
	float mean[3], std[3];
	double resize;
	size_t side[2];
};

static enum mu_status compare_three(const char *what, const double *theirs, const float *ours)
{
	enum mu_status st = MU_OK;

	for (int i = 0; i < 3; i++)
		if (fabs(theirs[i] - (double)ours[i]) > 1e-3)
			MU_FAIL(MU_ERR_FORMAT,
				"its %s is %g, and the model's %g, of pixels up to 255", what,
				theirs[i], (double)ours[i]);
out:
	return st;
}

static enum mu_status compare(const struct pixels *p, const struct made *m)
{
	enum mu_status st = MU_OK;
	const double *crop = p->crop ? p->cropped : p->size;
	const double shorter = p->shorter > 0 ? p->shorter : fmin(p->size[0], p->size[1]);

	MU_TRY(compare_three("mean (\"image_mean\")", p->c->mean, m->mean));
	MU_TRY(compare_three("deviation (\"image_std\")", p->c->std, m->std));
	if (crop[0] > 0 && (crop[0] != (double)m->side[0] || crop[1] != (double)m->side[1]))
		MU_FAIL(MU_ERR_FORMAT, "it makes images of %g x %g, and the model reads %zu x %zu",
			crop[0], crop[1], m->side[0], m->side[1]);
	if (p->resize && m->resize > 0 && shorter != m->resize)
		MU_FAIL(MU_ERR_FORMAT,
			"it resizes the shorter side to %g, and the model was trained with %g",
			shorter, m->resize);
out:
	return st;
}

/* A file that is there already must make the same pixels. That images may be squeezed by it, which
 * are cropped here, was told where the model came from. */
enum mu_status model_images_check(struct mu_array_file *in, const char *to, size_t height,
				  size_t width)
{
	enum mu_status st = MU_OK;
	struct made made = {.side = {height, width}};
	struct model_config c = {0};
	struct pixels p;
	char path[MODEL_PATH];
	bool there;

	MU_TRY(read_pixels(in, made.mean, made.std, &made.resize, &there));
	if (!there)
		goto out;
	model_path(to, "preprocessor_config.json", path);
	st = read_file(&p, &c, to, &there);
	if (st == MU_OK && there)
		st = compare(&p, &made);
	if (st != MU_OK)
		mu_trace_prefix("%s is there already, of another model; remove it, and muconvert "
				"writes the right one: ",
				path);
out:
	return st;
}

enum mu_status model_images_write(struct mu_array_file *in, const char *to, size_t height,
				  size_t width)
{
	enum mu_status st = MU_OK;
	struct mu_replace file = {0};
	struct mu_json j = {.flat = 2};
	char path[MODEL_PATH];
	float mean[3], std[3];
	double resize;
	bool there;

	model_path(to, "preprocessor_config.json", path);
	MU_TRY(read_pixels(in, mean, std, &resize, &there));
	if (!there || access(path, F_OK) == 0)
		goto out;
	MU_TRY(mu_replace_open(&file, path));
	j.file = file.stream;
	put_all(&j, mean, std, resize, (const size_t[]){height, width});
	MU_TRY(mu_replace_commit(&file));
	printf("muconvert: what it reads of images in %s\n", mu_shown(path));
out:
	mu_replace_release(&file);
	return st;
}
