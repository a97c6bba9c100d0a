/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of bytes in files of known names, kept in memory as they are (storage/rows): MNIST's in
 * IDX files, whose values are pixel / 255, and CIFAR's, with mean, std and augmentation.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/tokens.h>

#include "reader.h"
#include "storage/rows/rows.h"

enum { SIDE = 32, CHANNELS = 3, BLOCK = 16, PATH_BYTES = 4096 };

struct kind {
	const char *name;
	const char *folder; /* folder in the published archive */
	const char *train;  /* NULL: data_batch_1.bin and so on */
	const char *validate;
	size_t labels; /* bytes before the image; the last one is the label */
	size_t classes;
};

static const struct kind kinds[] = {
	{"CIFAR-10", "cifar-10-batches-bin", NULL, "test_batch.bin", 1, 10},
	{"CIFAR-100", "cifar-100-binary", "train.bin", "test.bin", 2, 100},
};

enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

struct pictures {
	struct mu_rows_parts parts;
	const struct kind *kind; /* of CIFAR's files */
	char dir[PATH_BYTES];    /* folder of the files */
};

/* ---- CIFAR: finding the files ---- */

/* The largest N of the files data_batch_N.bin in a folder, 0 if there is none. */
static int last_batch(const char *dir)
{
	DIR *stream = opendir(dir);
	int last = 0;

	if (!stream)
		return 0;
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
		char name[32];
		int number;

		if (sscanf(entry->d_name, "data_batch_%6d.bin", &number) != 1 || number <= last)
			continue;
		snprintf(name, sizeof name, "data_batch_%d.bin", number);
		if (strcmp(name, entry->d_name) == 0)
			last = number;
	}
	closedir(stream);
	return last;
}

/* Path of file i = 1, 2, ... of a part. A path that is too long names no file. */
static void name_file(char path[PATH_BYTES], const struct kind *kind, const char *dir,
		      enum mu_input_part part, int i)
{
	const char *name = part == MU_INPUT_VALIDATE ? kind->validate : kind->train;
	int n;

	if (name)
		n = snprintf(path, PATH_BYTES, "%s/%s", dir, name);
	else
		n = snprintf(path, PATH_BYTES, "%s/data_batch_%d.bin", dir, i);
	if (n >= PATH_BYTES)
		*path = '\0';
}

/* Files of tokens may have the same name, and then val.bin beside them in place of test.bin. */
static bool is_tokens(const char *path, const char *dir)
{
	char val[PATH_BYTES], test[PATH_BYTES];

	if (mu_token_file_is(path))
		return true;
	return snprintf(val, sizeof val, "%s/val.bin", dir) < PATH_BYTES &&
	       snprintf(test, sizeof test, "%s/test.bin", dir) < PATH_BYTES &&
	       !strstr(path, "data_batch") && access(val, F_OK) == 0 && access(test, F_OK) != 0;
}

/* Path of a file of this kind in the folder; false if there is none. */
static bool find_file(char path[PATH_BYTES], const struct kind *kind, const char *dir)
{
	name_file(path, kind, dir, MU_INPUT_TRAIN, kind->train ? 1 : last_batch(dir));
	if (access(path, F_OK) == 0 && !is_tokens(path, dir))
		return true;
	name_file(path, kind, dir, MU_INPUT_VALIDATE, 1);
	return access(path, F_OK) == 0;
}

/* Look for all kinds, in the folder and in the archives' folders; returns their number and stores
 * the last one. */
static size_t find_sets(const char *dir, struct pictures *c, char *found, size_t nbytes)
{
	size_t n = 0, used = 0;
	char path[PATH_BYTES], place[PATH_BYTES];

	*found = '\0';
	for (int i = 0; i < 2 * NUM_KINDS; i++) {
		const struct kind *kind = &kinds[i / 2];

		int length = snprintf(place, sizeof place, "%s%s%s", dir, i % 2 ? "/" : "",
				      i % 2 ? kind->folder : "");

		if (length >= PATH_BYTES || !find_file(path, kind, place))
			continue;
		if (used < nbytes)
			used += (size_t)snprintf(found + used, nbytes - used, "%s%s", n ? ", " : "",
						 path);
		c->kind = kind;
		memcpy(c->dir, place, sizeof place);
		n++;
	}
	return n;
}

static size_t find_cifar(const char *dir, char *found, size_t nbytes)
{
	struct pictures c;

	return find_sets(dir, &c, found, nbytes);
}

static size_t count_bytes(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? (size_t)status.st_size : 0;
}

/* If number 1 is missing, the error names it. */
static int count_files(const struct pictures *c, enum mu_input_part part)
{
	const int last = part == MU_INPUT_TRAIN && !c->kind->train ? last_batch(c->dir) : 1;

	return last > 1 ? last : 1;
}

static enum mu_status count_cifar(const char *dir, size_t *n)
{
	struct pictures c = {.kind = NULL};
	char path[2 * PATH_BYTES];

	*n = 0;
	if (find_sets(dir, &c, path, sizeof path) != 1)
		return MU_OK;
	for (int i = 1; i <= count_files(&c, MU_INPUT_TRAIN); i++) {
		name_file(path, c.kind, c.dir, MU_INPUT_TRAIN, i);
		*n += count_bytes(path) / (c.kind->labels + CHANNELS * SIDE * SIDE);
	}
	return MU_OK;
}

/* ---- opening ---- */

static enum mu_status check_labels(const struct mu_input *in, const struct mu_rows *target)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < target->n; i++) {
		const int label = target->memory[target->at + i * target->stride];

		if ((size_t)label >= in->classes)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: record %zu has label %d; labels must be from 0 to %zu, for a "
				"network of %zu classes (number of classes)",
				target->name, i, label, in->classes - 1, in->classes);
	}
out:
	return st;
}

static const struct mu_shape stored = MU_SAMPLE(CHANNELS, SIDE, SIDE);

/* Without dimensions: the whole image. */
static enum mu_status set_shape(struct mu_input *in, const struct kind *kind)
{
	enum mu_status st = MU_OK;
	const struct mu_shape shape = in->config.shape.ndims > 0 ? in->config.shape : stored;
	const struct mu_picture p = mu_sample_picture(&shape);
	char text[MU_SAMPLE_TEXT];

	in->about.stored = stored;
	if (shape.ndims != 4 || p.c != CHANNELS || p.h - 1 >= SIDE || p.w - 1 >= SIDE)
		MU_FAIL(MU_ERR_USAGE,
			"image shape %s with %s files: their images are 3,32,32; a shape must be "
			"3,H,W with H and W from 1 to 32",
			mu_sample_text(&shape, ",", text, sizeof text), kind->name);
	MU_TRY(mu_input_declare_images(in, &shape));
	mu_input_declare_labels(in, MU_NUMBER_INT32, 1);
out:
	return st;
}

static enum mu_status open_cifar(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const char *dir = in->config.dir;
	char path[2 * PATH_BYTES];
	struct pictures *c;
	size_t n, labels;

	if (!dir || !*dir)
		MU_FAIL(MU_ERR_USAGE, "no data folder given: the cifar reader needs one with %s",
			mu_reader_cifar.files);
	MU_TRY(MU_ALLOC(c, 1, "cifar reader"));
	in->impl = c;
	n = find_sets(dir, c, path, sizeof path);
	if (n != 1)
		MU_FAIL(MU_ERR_IO,
			"%s: must hold one CIFAR data set, and there are %zu%s%s; "
			"looked for %s",
			dir, n, n ? ": " : "", path, mu_reader_cifar.files);
	in->classes = in->config.classes ? in->config.classes : c->kind->classes;
	MU_TRY(set_shape(in, c->kind));
	MU_TRY(mu_rows_parts_new(&c->parts, (size_t)count_files(c, in->config.part)));
	labels = c->kind->labels;
	for (size_t i = 0; i < c->parts.n; i++) {
		name_file(path, c->kind, c->dir, in->config.part, (int)i + 1);
		MU_TRY(mu_rows_open_cifar(&c->parts.of[i], path, c->kind->name, &labels));
		MU_TRY(check_labels(in, &c->parts.of[i].target));
		in->n += c->parts.of[i].data.n;
	}
out:
	return st;
}

/* ---- IDX ---- */

static const char *const names[2][2] = {
	[MU_INPUT_TRAIN] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	[MU_INPUT_VALIDATE] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

static size_t find_idx(const char *dir, char *found, size_t nbytes)
{
	static const char *const endings[] = {"", ".gz"};

	for (size_t i = 0; i < 8; i++) {
		int n = snprintf(found, nbytes, "%s/%s%s", dir, names[i / 4][i / 2 % 2],
				 endings[i % 2]);

		if (n > 0 && (size_t)n < nbytes && access(found, F_OK) == 0)
			return 1;
	}
	*found = '\0';
	return 0;
}

static enum mu_status count_idx(const char *dir, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_idx images;
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", dir, names[MU_INPUT_TRAIN][0]);
	MU_TRY(mu_idx_read_header(&images, path, 3));
	*n = images.dims[0];
	mu_idx_release(&images);
out:
	return st;
}

/* At least 2, or a network would have nothing to tell apart. */
static size_t count_classes(const struct mu_rows *target)
{
	size_t classes = 2;

	for (size_t i = 0; i < target->n; i++)
		if (target->memory[i] >= classes)
			classes = (size_t)target->memory[i] + 1;
	return classes;
}

static enum mu_status open_idx(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const char *const *name = names[in->config.part], *dir = in->config.dir;
	char paths[2][PATH_BYTES];
	const struct mu_rows *images, *labels;
	struct mu_picture p;
	struct mu_field *data;
	struct pictures *c;

	if (!dir || !*dir)
		MU_FAIL(MU_ERR_USAGE,
			"no data folder given: the idx reader needs one that holds %s and %s",
			name[0], name[1]);
	MU_TRY(MU_ALLOC(c, 1, "idx reader"));
	in->impl = c;
	for (int k = 0; k < 2; k++)
		if (snprintf(paths[k], PATH_BYTES, "%s/%s", dir, name[k]) >= PATH_BYTES)
			MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", dir,
				PATH_BYTES - 1);
	MU_TRY(mu_rows_parts_new(&c->parts, 1));
	MU_TRY(mu_rows_open_idx(c->parts.of, paths[0], paths[1]));
	images = &c->parts.of->data;
	labels = &c->parts.of->target;
	p = mu_sample_picture(&images->shape);
	in->classes = in->config.classes ? in->config.classes : count_classes(labels);
	if (labels->n != images->n)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: %s holds %zu records, but %s holds %zu; there must be one label for "
			"each image",
			dir, name[0], images->n, name[1], labels->n);
	if (images->n > 0 && p.h * p.w == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: images of %zu x %zu pixels are empty", images->name,
			p.h, p.w);
	MU_TRY(check_labels(in, labels));
	in->n = images->n;
	data = mu_input_declare_data(in, MU_NUMBER_BYTE, &images->shape);
	data->std[0] = 255;
	mu_input_declare_labels(in, MU_NUMBER_INT32, 1);
out:
	return st;
}

/* ---- samples ---- */

static void close_pictures(struct mu_input *in)
{
	struct pictures *c = in->impl;

	if (!c)
		return;
	mu_rows_parts_close(&c->parts);
	mu_free(c);
	in->impl = NULL;
}

/* A block, whose size compilers know, so that it becomes vector loops also at -O2. */
MU_LOOP
static void scale_pixels(float *restrict out, const uint8_t *restrict pixels, size_t n, float mean,
			 float std)
{
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK)
		for (size_t j = 0; j < BLOCK; j++)
			out[i + j] = ((float)pixels[i + j] - mean) / std;
	for (; i < n; i++)
		out[i] = ((float)pixels[i] - mean) / std;
}

static struct mu_picture stored_picture(const struct mu_input *in)
{
	const struct pictures *c = in->impl;

	return mu_sample_picture(&c->parts.of->data.shape);
}

/* The middle of a picture, from its upper left pixel: as numbers. */
static void cut(const struct mu_input *in, const uint8_t *corner, float *out)
{
	const struct mu_field *data = mu_input_field(in, MU_FIELD_INPUT);
	const struct mu_picture p = mu_sample_picture(&data->shape), from = stored_picture(in);

	for (size_t k = 0; k < p.c; k++, corner += from.h * from.w, out += p.h * p.w) {
		const float mean = data->mean[k], std = data->std[k];

		if (p.w == from.w)
			scale_pixels(out, corner, p.h * p.w, mean, std);
		for (size_t y = 0; p.w < from.w && y < p.h; y++)
			scale_pixels(out + y * p.w, corner + y * from.w, p.w, mean, std);
	}
}

/* As bytes. */
static void cut_bytes(const struct mu_input *in, const uint8_t *corner, uint8_t *out)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in)),
				from = stored_picture(in);

	for (size_t k = 0; k < p.c; k++)
		for (size_t y = 0; y < p.h; y++, out += p.w)
			memcpy(out, corner + k * from.h * from.w + y * from.w, p.w);
}

static enum mu_status read_picture(const struct mu_input *in, struct mu_input_thread *thread,
				   size_t record, float *data, float *label)
{
	enum mu_status st = MU_OK;
	const struct pictures *c = in->impl;
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in)),
				from = stored_picture(in);
	uint8_t number;
	const uint8_t *image = mu_rows_pixels(&c->parts, record, &number);
	const uint8_t *corner = image + (from.h - p.h) / 2 * from.w + (from.w - p.w) / 2;
	const struct mu_picture_settings *s = mu_input_pictures(in);
	struct mu_augment_task task;

	*label = number;
	if (s && !mu_augment_is_none(&s->augment)) {
		task = mu_input_task(in, thread, record);
		MU_TRY(mu_image_from_bytes(&thread->image.image, image, &in->about.stored, false));
		MU_TRY(mu_augment_image(&task, &thread->image, data));
	} else if (thread && thread->bytes) {
		cut_bytes(in, corner, thread->bytes);
		thread->are_bytes = true;
	} else {
		cut(in, corner, data);
	}
out:
	return st;
}

static void describe_idx(const struct mu_input *in, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "IDX files in %s; a value is pixel / 255", in->config.dir);
}

static void describe_cifar(const struct mu_input *in, char *text, size_t nbytes)
{
	const struct pictures *c = in->impl;
	const struct mu_picture_settings *s = in->settings;
	const float *mean = s->mean, *std = s->std;

	snprintf(text, nbytes,
		 "%s files in %s%s; a value is (pixel - mean) / std, mean %g,%g,%g, std %g,%g,%g",
		 c->kind->name, c->dir,
		 mu_shape_positions(mu_input_shape(in)) < SIDE * SIDE &&
				 mu_augment_is_none(&s->augment)
			 ? ", the middle of every image"
			 : "",
		 (double)mean[0], (double)mean[1], (double)mean[2], (double)std[0], (double)std[1],
		 (double)std[2]);
}

/* CIFAR's labels lie before the pixels, and are hashed with them. */
static enum mu_status hash_picture(const struct mu_input *in, struct mu_input_thread *thread,
				   size_t record, uint64_t *h)
{
	const struct pictures *c = in->impl;
	const struct mu_rows_pair *part = mu_rows_part(&c->parts, &record);

	(void)thread;
	*h = mu_hash_block(*h, part->data.memory + record * part->data.stride, part->data.stride);
	if (!part->target.within)
		*h = mu_hash_block(*h, part->target.memory + record, 1);
	return MU_OK;
}

const struct mu_reader mu_reader_idx = {
	.name = "idx",
	.help = "images and labels in IDX files (the MNIST format), plain or gzip",
	.files = "train-images-idx3-ubyte and MNIST's three others, plain or .gz",
	.knows_classes = true,
	.find = find_idx,
	.count = count_idx,
	.open = open_idx,
	.close = close_pictures,
	.describe = describe_idx,
	.read = read_picture,
	.hash = hash_picture,
};

const struct mu_reader mu_reader_cifar = {
	.name = "cifar",
	.help = "colour images of 32 x 32 pixels in CIFAR-10's or CIFAR-100's binary files",
	.files = "data_batch_1.bin, ... and test_batch.bin, also in cifar-10-batches-bin, or "
		 "train.bin and test.bin, also in cifar-100-binary",
	MU_PICTURE_SETTINGS,
	.knows_classes = true,
	.find = find_cifar,
	.count = count_cifar,
	.open = open_cifar,
	.close = close_pictures,
	.describe = describe_cifar,
	.read = read_picture,
	.hash = hash_picture,
};
