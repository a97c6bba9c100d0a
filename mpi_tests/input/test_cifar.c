/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * CIFAR's binary files: which ones are found and read in which order, labels, pixels, the cut of
 * the middle, mean and std, every record once over several workers, and every kind of bad file. The
 * test is all workers one after another: they do not talk.
 */
#include <muster/input.h>
#include <muster/pictures.h>

#include <sys/stat.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

enum {
	PATH_BYTES = 2 * SCRATCH_BYTES,
	SIDE = 32,
	PLANE = SIDE * SIDE,
	IMAGE = 3 * PLANE,
	FILES = 11, /* so that number 10 must not come before number 2 */
	RECORDS = FILES * (FILES + 1) / 2,
	TESTS = 5,
	BATCH = 4,
};

static char folder[SCRATCH_BYTES];

/* Byte j of the image of record i, and its label. */
static uint8_t pixel(size_t i, size_t j)
{
	return (uint8_t)(i * 37 + j * 7 + j / 32 * 3 + j / 1024 * 101);
}

static uint8_t label_of(size_t i, size_t classes)
{
	return (uint8_t)(i * 7 % classes);
}

static const char *path_of(const char *name)
{
	static char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* Records first, ..., first + n - 1 of a data set of so many classes, 10 or 100. */
static void write_records(const char *name, size_t first, size_t n, size_t classes)
{
	FILE *f = fopen(path_of(name), "wb");
	uint8_t image[IMAGE];

	if (!CHECK(f))
		return;
	for (size_t i = first; i < first + n; i++) {
		for (size_t j = 0; j < IMAGE; j++)
			image[j] = pixel(i, j);
		if (classes == 100)
			putc(200, f); /* the coarse label, which is not looked at */
		putc(label_of(i, classes), f);
		CHECK(fwrite(image, 1, IMAGE, f) == IMAGE);
	}
	CHECK(fclose(f) == 0);
}

static void remove_file(const char *name)
{
	CHECK(remove(path_of(name)) == 0);
}

/* data_batch_i.bin holds i records. */
static void write_set(void)
{
	size_t first = 0;
	char name[32];

	for (size_t i = 1; i <= FILES; i++) {
		snprintf(name, sizeof name, "data_batch_%zu.bin", i);
		write_records(name, first, i, 10);
		first += i;
	}
	write_records("test_batch.bin", RECORDS, TESTS, 10);
}

static struct mu_picture_settings settings;

static struct mu_input_config base_config(void)
{
	settings = (struct mu_picture_settings){.mean = {123.68f, 116.779f, 103.939f},
						.std = {1, 1, 1}};
	return (struct mu_input_config){
		.reader = "cifar",
		.dir = folder,
		.settings = &settings,
		.batch = BATCH,
		.num_workers = 1,
		.seed = 5,
	};
}

/* Values of one sample that are not those of record i. */
static size_t wrong_values(const struct mu_input *in, size_t i, const float *data)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	size_t h = p.h, w = p.w, bad = 0;
	size_t top = (SIDE - h) / 2, left = (SIDE - w) / 2;

	for (size_t c = 0; c < 3; c++) {
		for (size_t y = 0; y < h; y++) {
			for (size_t x = 0; x < w; x++) {
				float v = pixel(i, c * PLANE + (top + y) * SIDE + left + x);

				bad += *data++ != (v - settings.mean[c]) / settings.std[c];
			}
		}
	}
	return bad;
}

/* Read an epoch of one worker: counts in seen; record 0 of the part is record `first` of the set.
 */
static size_t read_epoch(const struct mu_input_config *config, size_t first, int *seen)
{
	static float data[BATCH * IMAGE + 1];
	float labels[BATCH];
	uint32_t ids[BATCH];
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
	struct mu_input in;
	size_t n = 0, bad = 0;

	if (!CHECK(mu_input_open(&in, config) == MU_OK))
		return 0;
	for (size_t t = 0; t < in.steps; t++) {
		size_t sample = mu_shape_sample(mu_input_shape(&in));
		size_t count = mu_input_count(&in, t);

		data[count * sample] = -7; /* nothing is written beyond the last sample */
		CHECK(mu_input_read(&in, t, &batch) == MU_OK && batch.count == count);
		CHECK(data[count * sample] == -7);
		for (size_t i = 0; i < count; i++) {
			size_t record = first + ids[i];

			if (!CHECK(ids[i] < in.n))
				continue;
			seen[ids[i]]++;
			bad += !config->shuffle && config->num_workers == 1 && ids[i] != n + i;
			bad += labels[i] != (float)label_of(record, in.classes);
			bad += wrong_values(&in, record, data + i * sample) > 0;
		}
		n += count;
	}
	CHECK(bad == 0);
	mu_input_close(&in);
	return n;
}

/* All workers together take each of the n records once. */
static void check_epoch(struct mu_input_config config, size_t first, size_t n)
{
	int seen[RECORDS] = {0};
	size_t total = 0, wrong = 0;

	for (config.worker = 0; config.worker < config.num_workers; config.worker++)
		total += read_epoch(&config, first, seen);
	for (size_t i = 0; i < RECORDS; i++)
		wrong += seen[i] != (i < n);
	CHECK(total == n && wrong == 0);
}

static void test_records(void)
{
	struct mu_input_config config = base_config();
	struct mu_input in;
	char text[1024];

	if (!CHECK(mu_input_open(&in, &config) == MU_OK))
		return;
	CHECK(in.n == RECORDS && in.classes == 10);
	CHECK(mu_shape_equal(mu_input_shape(&in), &(struct mu_shape)MU_SAMPLE(3, SIDE, SIDE)));
	in.ops->describe(&in, text, sizeof text);
	CHECK_HAS(text, "CIFAR-10 files in ");
	CHECK_HAS(text, "mean 123.68,116.779,103.939, std 1,1,1");
	mu_input_close(&in);
	check_epoch(config, 0, RECORDS);
	config.num_examples = 13;
	check_epoch(config, 0, 13);
	config.num_examples = 0;
	config.part = MU_INPUT_VALIDATE;
	check_epoch(config, RECORDS, TESTS);
}

static void test_workers(void)
{
	for (int workers = 1; workers <= 7; workers++) {
		struct mu_input_config config = base_config();

		config.num_workers = workers;
		check_epoch(config, 0, RECORDS);
		config.shuffle = true;
		check_epoch(config, 0, RECORDS);
		config.part = MU_INPUT_VALIDATE;
		check_epoch(config, RECORDS, TESTS);
	}
}

static void test_values(void)
{
	static const size_t sides[][2] = {{28, 28}, {32, 32}, {5, 32}, {32, 5},
					  {17, 31}, {31, 16}, {1, 1},  {24, 15}};
	struct mu_input_config config = base_config();

	for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
		config.shape = (struct mu_shape)MU_SAMPLE(3, sides[i][0], sides[i][1]);
		check_epoch(config, 0, RECORDS);
	}
	memcpy(settings.mean, (float[3]){0, -1.5f, 300}, sizeof settings.mean);
	memcpy(settings.std, (float[3]){58.4f, 0.5f, 255}, sizeof settings.std);
	check_epoch(config, 0, RECORDS);
}

/* The folder is empty before and after. */
static void test_hundred_classes(void)
{
	struct mu_input_config config = base_config();
	const struct mu_reader *reader;
	struct mu_input in;

	config.batch = 2;
	CHECK(mkdir(path_of("cifar-100-binary"), 0777) == 0);
	write_records("cifar-100-binary/train.bin", 0, RECORDS, 100);
	write_records("cifar-100-binary/test.bin", RECORDS, TESTS, 100);
	CHECK(mu_input_detect(folder, &reader) == MU_OK && strcmp(reader->name, "cifar") == 0);
	if (!CHECK(mu_input_open(&in, &config) == MU_OK))
		return;
	CHECK(in.n == RECORDS && in.classes == 100);
	mu_input_close(&in);
	check_epoch(config, 0, RECORDS);
	config.part = MU_INPUT_VALIDATE;
	check_epoch(config, RECORDS, TESTS);
	config.dir = path_of("cifar-100-binary");
	check_epoch(config, RECORDS, TESTS);
	remove_file("cifar-100-binary/train.bin");
	remove_file("cifar-100-binary/test.bin");
	remove_file("cifar-100-binary");
}

/* A call must have failed with this status and a message that holds the parts. */
static void check_told(enum mu_status st, enum mu_status want, const char *part1, const char *part2)
{
	CHECK(st == want);
	CHECK_HAS(mu_trace_message(), part1);
	CHECK_HAS(mu_trace_message(), part2);
	mu_trace_clear();
}

static void check_refused(const struct mu_input_config *config, enum mu_status want,
			  const char *part1, const char *part2)
{
	struct mu_input in;

	check_told(mu_input_open(&in, config), want, part1, part2);
	CHECK(in.impl == NULL);
}

static void test_refused_options(void)
{
	struct mu_input_config config = base_config();

	config.shape = (struct mu_shape)MU_SAMPLE(1, 28, 28);
	check_refused(&config, MU_ERR_USAGE, "image shape 1,28,28", "3,H,W");
	config.shape = (struct mu_shape)MU_SAMPLE(3, 28, 33);
	check_refused(&config, MU_ERR_USAGE, "image shape 3,28,33", "1 to 32");
	config.shape = (struct mu_shape)MU_SAMPLE(3, 0, 28);
	check_refused(&config, MU_ERR_USAGE, "image shape 3,0,28", "1 to 32");
	config = base_config();
	settings.std[1] = 0;
	check_refused(&config, MU_ERR_ARGUMENT, "std 0 of channel 1", "above 0");
	config = base_config();
	settings.mean[2] = NAN;
	check_refused(&config, MU_ERR_ARGUMENT, "nan", "channel 2");
	config = base_config();
	config.dir = "";
	check_refused(&config, MU_ERR_USAGE, "no data folder", "data_batch_1.bin");
	config = base_config();
	config.classes = 9; /* number 7 of all is the first with label 9 */
	check_refused(&config, MU_ERR_FORMAT,
		      "data_batch_4.bin: record 1 has label 9; labels must be from 0 to 8", "");
	config.reader = "synthetic";
	config.classes = 0;
	check_refused(&config, MU_ERR_ARGUMENT, "0 classes", "at least 1");
}

static void test_refused_files(void)
{
	struct mu_input_config config = base_config();

	CHECK(truncate(path_of("data_batch_4.bin"), 4 * (IMAGE + 1) - 1) == 0);
	check_refused(&config, MU_ERR_FORMAT, "data_batch_4.bin: truncated", "12291 bytes");
	CHECK(truncate(path_of("data_batch_4.bin"), 0) == 0);
	check_refused(&config, MU_ERR_FORMAT, "data_batch_4.bin: the file is empty", "3073 bytes");
	remove_file("data_batch_4.bin");
	check_refused(&config, MU_ERR_IO, "data_batch_4.bin", "No such file");
	CHECK(mkdir(path_of("data_batch_4.bin"), 0777) == 0);
	check_refused(&config, MU_ERR_IO, "data_batch_4.bin", "is not a plain file");
	remove_file("data_batch_4.bin");
	write_records("data_batch_4.bin", 0, 31, 100); /* labels 200 at whole multiples */
	CHECK(truncate(path_of("data_batch_4.bin"), 2 * (IMAGE + 1)) == 0);
	check_refused(&config, MU_ERR_FORMAT,
		      "data_batch_4.bin: record 0 has label 200; labels must be from 0 to 9", "");
	write_records("data_batch_4.bin", 6, 4, 10);
	check_epoch(config, 0, RECORDS);
	config.part = MU_INPUT_VALIDATE;
	remove_file("test_batch.bin");
	check_refused(&config, MU_ERR_IO, "test_batch.bin", "No such file");
	config.part = MU_INPUT_TRAIN;
	check_epoch(config, 0, RECORDS);
}

/* The folder is empty before and after. */
static void test_detect(void)
{
	const struct mu_reader *reader;

	check_told(mu_input_detect(folder, &reader), MU_ERR_IO, "holds no data files",
		   "data_batch_1.bin");
	CHECK(reader == NULL);
	check_told(mu_input_detect("/no/such/folder", &reader), MU_ERR_IO, "/no/such/folder",
		   "train-images-idx3-ubyte");
	write_records("data_batch_x.bin", 0, 1, 10);
	check_told(mu_input_detect(folder, &reader), MU_ERR_IO, folder, "train.bin");
	check_told(mu_input_detect(path_of("data_batch_x.bin"), &reader), MU_ERR_IO,
		   "data_batch_x.bin: is not a folder", "train.bin");
	remove_file("data_batch_x.bin");
	write_records("t10k-labels-idx1-ubyte.gz", 0, 1, 10);
	CHECK(mu_input_detect(folder, &reader) == MU_OK && strcmp(reader->name, "idx") == 0);
	CHECK(mkdir(path_of("cifar-10-batches-bin"), 0777) == 0);
	CHECK(mu_input_detect(folder, &reader) == MU_OK && strcmp(reader->name, "idx") == 0);
	write_records("cifar-10-batches-bin/data_batch_3.bin", 0, 1, 10);
	check_told(mu_input_detect(folder, &reader), MU_ERR_USAGE, "holds 2 data sets",
		   "cifar-10-batches-bin/data_batch_3.bin");
	check_told(mu_input_detect(folder, &reader), MU_ERR_USAGE, "t10k-labels-idx1-ubyte.gz",
		   "looked for");
	remove_file("t10k-labels-idx1-ubyte.gz");
	CHECK(mu_input_detect(folder, &reader) == MU_OK && strcmp(reader->name, "cifar") == 0);
	write_records("test.bin", 0, 1, 100);
	check_told(mu_input_detect(folder, &reader), MU_ERR_USAGE, "holds 2 data sets", "test.bin");
	remove_file("test.bin");
	remove_file("cifar-10-batches-bin/data_batch_3.bin");
	remove_file("cifar-10-batches-bin");
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_detect();
	test_hundred_classes();
	write_set();
	test_records();
	test_workers();
	test_values();
	test_refused_options();
	test_refused_files();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
