/* SPDX-License-Identifier: Apache-2.0 */
/* Images and labels from IDX files under their MNIST names, kept in memory as bytes. */
#include <string.h>
#include <unistd.h>

#include "reader.h"

struct idx_pair {
	struct mu_idx images; /* (n, h, w) */
	struct mu_idx labels; /* (n) */
};

enum { BLOCK = 16 };

typedef enum mu_status read_fn(struct mu_idx *idx, const char *path, int ndims);

static enum mu_status read_file(struct mu_idx *idx, const char *dir, const char *name, int ndims,
				read_fn *read)
{
	enum mu_status st = MU_OK;
	size_t nbytes = strlen(dir) + strlen(name) + 2;
	char *path = NULL;

	MU_TRY(MU_ALLOC(path, nbytes, "file name"));
	snprintf(path, nbytes, "%s/%s", dir, name);
	MU_TRY(read(idx, path, ndims));
out:
	mu_free(path);
	return st;
}

/* At least 2, or a network would have nothing to tell apart. */
static size_t count_classes(const struct idx_pair *pair)
{
	size_t classes = 2;

	for (size_t i = 0; i < pair->labels.dims[0]; i++)
		if (pair->labels.data[i] >= classes)
			classes = (size_t)pair->labels.data[i] + 1;
	return classes;
}

static enum mu_status check_pair(const struct mu_input *in, const struct idx_pair *pair,
				 const char *images, const char *labels)
{
	enum mu_status st = MU_OK;
	const char *dir = in->config.dir;
	const size_t *dims = pair->images.dims;

	if (pair->labels.dims[0] != dims[0])
		MU_FAIL(MU_ERR_FORMAT,
			"%s: %s holds %zu records, but %s holds %zu; there must be one label for "
			"each image",
			dir, images, dims[0], labels, pair->labels.dims[0]);
	if (dims[0] > 0 && dims[1] * dims[2] == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s/%s: images of %zu x %zu pixels are empty", dir, images,
			dims[1], dims[2]);
	for (size_t i = 0; i < dims[0]; i++) {
		if (pair->labels.data[i] >= in->classes)
			MU_FAIL(MU_ERR_FORMAT,
				"%s/%s: record %zu has label %d; labels must be from 0 to %zu, for "
				"a network of %zu classes (number of classes)",
				dir, labels, i, pair->labels.data[i], in->classes - 1, in->classes);
	}
out:
	return st;
}

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

	MU_TRY(read_file(&images, dir, names[MU_INPUT_TRAIN][0], 3, mu_idx_read_header));
	*n = images.dims[0];
	mu_idx_release(&images);
out:
	return st;
}

static enum mu_status open_idx(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const char *const *name = names[in->config.part];
	struct idx_pair *pair;

	if (!in->config.dir || !*in->config.dir)
		MU_FAIL(MU_ERR_USAGE,
			"no data folder given: the idx reader needs one that holds %s and %s",
			name[0], name[1]);
	MU_TRY(MU_ALLOC(pair, 1, "idx reader"));
	in->impl = pair;
	MU_TRY(read_file(&pair->images, in->config.dir, name[0], 3, mu_idx_read));
	MU_TRY(read_file(&pair->labels, in->config.dir, name[1], 1, mu_idx_read));
	in->classes = in->config.classes ? in->config.classes : count_classes(pair);
	MU_TRY(check_pair(in, pair, name[0], name[1]));
	in->n = pair->images.dims[0];
	in->mean[0] = 0;
	in->std[0] = 255;
	mu_input_declare(
		in, &(struct mu_field){"data", MU_FIELD_INPUT, MU_NUMBER_BYTE,
				       MU_SAMPLE(1, pair->images.dims[1], pair->images.dims[2])});
	mu_input_declare(
		in, &(struct mu_field){"label", MU_FIELD_TARGET, MU_NUMBER_INT32, MU_SAMPLE(1)});
out:
	return st;
}

static void close_idx(struct mu_input *in)
{
	struct idx_pair *pair = in->impl;

	if (!pair)
		return;
	mu_idx_release(&pair->images);
	mu_idx_release(&pair->labels);
	mu_free(pair);
	in->impl = NULL;
}

/* In blocks of a fixed size, which compilers vectorise also at -O2. */
static void scale(float *restrict out, const uint8_t *restrict pixels, size_t n)
{
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK) {
		for (size_t j = 0; j < BLOCK; j++)
			out[i + j] = (float)pixels[i + j] / 255;
	}
	for (; i < n; i++)
		out[i] = (float)pixels[i] / 255;
}

static enum mu_status read_idx(const struct mu_input *in, struct mu_input_thread *thread,
			       size_t record, float *data, float *labels)
{
	const struct idx_pair *pair = in->impl;
	size_t n = mu_shape_sample(mu_input_shape(in));

	if (thread && thread->bytes) {
		memcpy(thread->bytes, pair->images.data + record * n, n);
		thread->are_bytes = true;
	} else {
		scale(data, pair->images.data + record * n, n);
	}
	labels[0] = pair->labels.data[record];
	return MU_OK;
}

static void describe_idx(const struct mu_input *in, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "IDX files in %s; a value is pixel / 255", in->config.dir);
}

static enum mu_status hash_idx(const struct mu_input *in, struct mu_input_thread *thread,
			       size_t record, uint64_t *h)
{
	const struct idx_pair *pair = in->impl;
	const size_t n = mu_shape_sample(mu_input_shape(in));

	(void)thread;
	*h = mu_hash_block(*h, pair->images.data + record * n, n);
	*h = mu_hash_block(*h, pair->labels.data + record, 1);
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
	.close = close_idx,
	.describe = describe_idx,
	.read = read_idx,
	.hash = hash_idx,
};
