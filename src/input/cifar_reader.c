/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CIFAR's binary files (A. Krizhevsky, "The CIFAR-10 dataset", section "Binary version"), kept in
 * memory unchanged. A record is its labels, one byte each, and a colour image of 3072 bytes, (3,
 * 32, 32). CIFAR-10 has one label; CIFAR-100 has a coarse one, which is not used, and a fine one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/tokens.h>

#include "reader.h"

enum {
	CHANNELS = 3,
	SIDE = 32,
	PLANE = SIDE * SIDE,
	IMAGE = CHANNELS * PLANE,
	BLOCK = 16,
	PATH_BYTES = 4096,
};

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

struct cifar {
	const struct kind *kind;
	char dir[PATH_BYTES]; /* folder of the files */
	size_t record;        /* bytes of a record */
	uint8_t *bytes;       /* all records; owned */
};

/* ---- finding the files ---- */

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
static size_t find_sets(const char *dir, struct cifar *c, char *found, size_t nbytes)
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
	struct cifar c;

	return find_sets(dir, &c, found, nbytes);
}

/* ---- reading them ---- */

/* Size of a file, which must be a multiple of a record. */
static enum mu_status measure(const struct cifar *c, const char *path, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is not a plain file", path);
	*nbytes = (size_t)status.st_size;
	if (*nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected %s records of %zu bytes",
			path, c->kind->name, c->record);
	if (*nbytes % c->record != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated, or no %s file: %zu bytes are not a multiple of the %zu "
			"bytes of a record",
			path, c->kind->name, *nbytes, c->record);
out:
	return st;
}

static enum mu_status read_file(uint8_t *out, const char *path, size_t nbytes)
{
	enum mu_status st = MU_OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
	for (size_t done = 0; done < nbytes;) {
		ssize_t n = read(fd, out + done, nbytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
		if (n == 0)
			MU_FAIL(MU_ERR_IO, "%s: became shorter while it was read", path);
		done += (size_t)n;
	}
out:
	if (fd >= 0)
		close(fd);
	return st;
}

static enum mu_status check_labels(const struct cifar *c, const uint8_t *bytes, size_t n,
				   const char *path, size_t classes)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < n; i++) {
		int label = bytes[i * c->record + c->kind->labels - 1];

		if ((size_t)label >= classes)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: record %zu has label %d; labels must be from 0 to %zu, for a "
				"network of %zu classes (number of classes)",
				path, i, label, classes - 1, classes);
	}
out:
	return st;
}

/* If number 1 is missing, the error names it. */
static int count_files(const struct cifar *c, enum mu_input_part part)
{
	const int last = part == MU_INPUT_TRAIN && !c->kind->train ? last_batch(c->dir) : 1;

	return last > 1 ? last : 1;
}

static enum mu_status count_cifar(const char *dir, size_t *n)
{
	enum mu_status st = MU_OK;
	struct cifar c = {0};
	char path[2 * PATH_BYTES];
	size_t nbytes = 0; /* gcc 14 for AArch64 does not see that MU_TRY sets it */

	*n = 0;
	if (find_sets(dir, &c, path, sizeof path) != 1)
		goto out;
	c.record = c.kind->labels + IMAGE;
	for (int i = 1; i <= count_files(&c, MU_INPUT_TRAIN); i++) {
		name_file(path, c.kind, c.dir, MU_INPUT_TRAIN, i);
		MU_TRY(measure(&c, path, &nbytes));
		*n += nbytes / c.record;
	}
out:
	return st;
}

/* Read all files, one after another; first their sizes, so that there is one allocation. */
static enum mu_status read_files(struct mu_input *in, struct cifar *c, int n_files)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];
	size_t nbytes, total = 0, at = 0;

	for (int i = 1; i <= n_files; i++) {
		name_file(path, c->kind, c->dir, in->config.part, i);
		MU_TRY(measure(c, path, &nbytes));
		total += nbytes;
	}
	MU_TRY(MU_ALLOC(c->bytes, total, "CIFAR records"));
	for (int i = 1; i <= n_files; i++) {
		name_file(path, c->kind, c->dir, in->config.part, i);
		MU_TRY(measure(c, path, &nbytes));
		if (nbytes > total - at)
			MU_FAIL(MU_ERR_IO, "%s: became longer while it was read", path);
		MU_TRY(read_file(c->bytes + at, path, nbytes));
		MU_TRY(check_labels(c, c->bytes + at, nbytes / c->record, path, in->classes));
		at += nbytes;
	}
	in->n = at / c->record;
out:
	return st;
}

/* ---- the reader ---- */

static const struct mu_shape stored = MU_SAMPLE(CHANNELS, SIDE, SIDE);

/* Without dimensions: the whole image. */
static enum mu_status set_shape(struct mu_input *in, struct cifar *c)
{
	enum mu_status st = MU_OK;
	const struct mu_shape shape = in->config.shape.ndims > 0 ? in->config.shape : stored;
	const struct mu_picture p = mu_sample_picture(&shape);
	char text[MU_SAMPLE_TEXT];

	in->stored = stored;
	if (shape.ndims != 4 || p.c != CHANNELS || p.h - 1 >= SIDE || p.w - 1 >= SIDE)
		MU_FAIL(MU_ERR_USAGE,
			"image shape %s with %s files: their images are 3,32,32; a shape must be "
			"3,H,W with H and W from 1 to 32",
			mu_sample_text(&shape, ",", text, sizeof text), c->kind->name);
	mu_input_declare(in, &(struct mu_field){"data", MU_FIELD_INPUT, MU_NUMBER_BYTE, shape});
	mu_input_declare(
		in, &(struct mu_field){"label", MU_FIELD_TARGET, MU_NUMBER_INT32, MU_SAMPLE(1)});
	MU_TRY(mu_input_check_images(in));
out:
	return st;
}

static enum mu_status open_cifar(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const char *dir = in->config.dir;
	char found[2 * PATH_BYTES];
	struct cifar *c;
	size_t n;

	if (!dir || !*dir)
		MU_FAIL(MU_ERR_USAGE, "no data folder given: the cifar reader needs one with %s",
			mu_reader_cifar.files);
	MU_TRY(MU_ALLOC(c, 1, "cifar reader"));
	in->impl = c;
	n = find_sets(dir, c, found, sizeof found);
	if (n != 1)
		MU_FAIL(MU_ERR_IO,
			"%s: must hold one CIFAR data set, and there are %zu%s%s; "
			"looked for %s",
			dir, n, n ? ": " : "", found, mu_reader_cifar.files);
	c->record = c->kind->labels + IMAGE;
	in->classes = in->config.classes ? in->config.classes : c->kind->classes;
	MU_TRY(set_shape(in, c));
	MU_TRY(read_files(in, c, count_files(c, in->config.part)));
out:
	return st;
}

static void close_cifar(struct mu_input *in)
{
	struct cifar *c = in->impl;

	if (!c)
		return;
	mu_free(c->bytes);
	mu_free(c);
	in->impl = NULL;
}

/* In blocks of a fixed size, which compilers vectorise also at -O2. The last block overlaps the one
 * before, so that it is a whole block. */
static void scale(float *restrict out, const uint8_t *restrict pixels, size_t n, float mean,
		  float std)
{
	if (n < BLOCK) {
		for (size_t i = 0; i < n; i++)
			out[i] = ((float)pixels[i] - mean) / std;
		return;
	}
	for (size_t i = 0; i < n; i += BLOCK) {
		size_t at = i + BLOCK <= n ? i : n - BLOCK;

		for (size_t j = 0; j < BLOCK; j++)
			out[at + j] = ((float)pixels[at + j] - mean) / std;
	}
}

/* One channel of a window, from its upper left pixel. */
static void cut(const struct mu_input *in, const uint8_t *corner, size_t channel, float *out)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	float mean = in->config.mean[channel], std = in->config.std[channel];

	if (p.w == SIDE) {
		scale(out, corner, p.h * SIDE, mean, std);
		return;
	}
	for (size_t y = 0; y < p.h; y++)
		scale(out + y * p.w, corner + y * SIDE, p.w, mean, std);
}

static void cut_middle(const struct mu_input *in, const uint8_t *image, float *data)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	size_t top = (SIDE - p.h) / 2, left = (SIDE - p.w) / 2;

	for (size_t i = 0; i < CHANNELS; i++)
		cut(in, image + i * PLANE + top * SIDE + left, i, data + i * p.h * p.w);
}

static void cut_bytes(const struct mu_input *in, const uint8_t *image, uint8_t *out)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	const uint8_t *corner = image + (SIDE - p.h) / 2 * SIDE + (SIDE - p.w) / 2;

	for (size_t i = 0; i < CHANNELS; i++)
		for (size_t y = 0; y < p.h; y++, out += p.w)
			memcpy(out, corner + i * PLANE + y * SIDE, p.w);
}

static enum mu_status read_cifar(const struct mu_input *in, struct mu_input_thread *thread,
				 size_t record, float *data, float *label)
{
	enum mu_status st = MU_OK;
	const struct cifar *c = in->impl;
	const uint8_t *image = c->bytes + record * c->record + c->kind->labels;
	struct mu_augment_task task = mu_input_task(in, thread, record);

	*label = image[-1];
	if (mu_augment_is_none(&in->config.augment)) {
		if (task.bytes) {
			cut_bytes(in, image, task.bytes);
			*task.are_bytes = true;
			return MU_OK;
		}
		cut_middle(in, image, data);
		return MU_OK;
	}
	MU_TRY(mu_image_from_bytes(&thread->image.image, image, &stored, false));
	MU_TRY(mu_augment_image(&task, &thread->image, data));
out:
	return st;
}

static void describe_cifar(const struct mu_input *in, char *text, size_t nbytes)
{
	const struct cifar *c = in->impl;
	const float *mean = in->config.mean, *std = in->config.std;

	snprintf(text, nbytes,
		 "%s files in %s%s; a value is (pixel - mean) / std, mean %g,%g,%g, std %g,%g,%g",
		 c->kind->name, c->dir,
		 mu_shape_positions(mu_input_shape(in)) < PLANE &&
				 mu_augment_is_none(&in->config.augment)
			 ? ", the middle of every image"
			 : "",
		 (double)mean[0], (double)mean[1], (double)mean[2], (double)std[0], (double)std[1],
		 (double)std[2]);
}

static enum mu_status hash_cifar(const struct mu_input *in, struct mu_input_thread *thread,
				 size_t record, uint64_t *h)
{
	const struct cifar *c = in->impl;

	(void)thread;
	*h = mu_hash_block(*h, c->bytes + record * c->record, c->record);
	return MU_OK;
}

const struct mu_reader mu_reader_cifar = {
	.name = "cifar",
	.help = "colour images of 32 x 32 pixels in CIFAR-10's or CIFAR-100's binary files",
	.files = "data_batch_1.bin, ... and test_batch.bin, also in cifar-10-batches-bin, or "
		 "train.bin and test.bin, also in cifar-100-binary",
	.colour_images = true,
	.knows_classes = true,
	.find = find_cifar,
	.count = count_cifar,
	.open = open_cifar,
	.close = close_cifar,
	.describe = describe_cifar,
	.read = read_cifar,
	.hash = hash_cifar,
};
