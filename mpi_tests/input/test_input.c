/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Input: every record once in an epoch over any number of workers, equal steps, the short last
 * step, shuffling, both readers and their errors. The test is all workers one after another: they
 * do not talk.
 */
#include <muster/input.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

enum {
	PATH_BYTES = 2 * SCRATCH_BYTES,
	RECORDS = 1003,
	TESTS = 13,
	H = 3,
	W = 6,
	SAMPLE = H * W,
	CLASSES = 10,
	BATCH_MAX = 256,
};

static char folder[SCRATCH_BYTES];

/* Pixel j of record i, and its label. */
static uint8_t pixel(size_t i, size_t j)
{
	return (uint8_t)(i * 31 + j * 7 + i / 8);
}

static uint8_t label_of(size_t i)
{
	return (uint8_t)(i * 3 % CLASSES);
}

static const char *path_of(const char *name)
{
	static char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_images(const char *name, size_t n)
{
	static uint8_t pixels[RECORDS * SAMPLE];
	struct mu_idx idx = {.ndims = 3, .dims = {n, H, W}, .data = pixels};

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < SAMPLE; j++)
			pixels[i * SAMPLE + j] = pixel(i, j);
	}
	CHECK(mu_idx_write(path_of(name), &idx) == MU_OK);
}

/* bad: number of a record with a label out of range, RECORDS = none. */
static void write_labels(const char *name, size_t n, size_t bad)
{
	static uint8_t labels[RECORDS];
	struct mu_idx idx = {.ndims = 1, .dims = {n}, .data = labels};

	for (size_t i = 0; i < n; i++)
		labels[i] = i == bad ? CLASSES : label_of(i);
	CHECK(mu_idx_write(path_of(name), &idx) == MU_OK);
}

static struct mu_input_config base_config(void)
{
	return (struct mu_input_config){
		.reader = "idx",
		.dir = folder,
		.classes = CLASSES,
		.batch = 16,
		.num_workers = 1,
		.shuffle = true,
		.seed = 7,
	};
}

/* How many samples there are in a step. */
static size_t read_step(struct mu_input *in, size_t step, float *data, float *labels, uint32_t *ids)
{
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};

	CHECK(mu_input_read(in, step, &batch) == MU_OK);
	return batch.count;
}

/* Read a whole epoch of one worker; counts in seen, ids in order into ids, returns how many. */
static size_t read_epoch(const struct mu_input_config *config, uint32_t epoch, int *seen,
			 uint32_t *ids)
{
	static float data[BATCH_MAX * SAMPLE], labels[BATCH_MAX];
	struct mu_input in;
	size_t n = 0, workers = (size_t)config->num_workers, all = workers * config->batch, bad = 0;

	if (!CHECK(mu_input_open(&in, config) == MU_OK))
		return 0;
	CHECK(in.n_fields == 2 && in.fields[0].role == MU_FIELD_INPUT);
	CHECK(strcmp(mu_input_field(&in, MU_FIELD_INPUT)->name, "data") == 0);
	CHECK(in.fields[0].number == MU_NUMBER_FLOAT32); /* bytes were not asked for */
	CHECK(strcmp(mu_input_field(&in, MU_FIELD_TARGET)->name, "label") == 0);
	CHECK(mu_input_width(&in) == 1);
	CHECK(mu_input_field(&in, MU_FIELD_MASK)->shape.ndims == 0);
	CHECK(mu_shape_equal(mu_input_shape(&in), &(struct mu_shape)MU_SAMPLE(1, H, W)) &&
	      in.classes == CLASSES);
	CHECK(in.steps == (in.n + all - 1) / all);
	CHECK(mu_input_epoch(&in, epoch) == MU_OK);
	for (size_t t = 0; t < in.steps; t++) {
		size_t left = in.n - t * all, m = left < all ? left : all;
		size_t r = (size_t)config->worker;
		size_t count = read_step(&in, t, data, labels, ids + n);

		CHECK(count == mu_input_count(&in, t));
		CHECK(count == m * (r + 1) / workers - m * r / workers);
		for (size_t i = 0; i < count; i++) {
			size_t record = ids[n + i];

			if (!CHECK(record < in.n))
				continue;
			seen[record]++;
			bad += labels[i] != (float)label_of(record);
			for (size_t j = 0; j < SAMPLE; j++)
				bad += data[i * SAMPLE + j] != (float)pixel(record, j) / 255.0f;
		}
		n += count;
	}
	CHECK(bad == 0);
	CHECK(mu_input_count(&in, in.steps) == 0); /* beyond the end */
	mu_input_close(&in);
	return n;
}

/* All workers of one epoch together take every record once. */
static void check_epoch(struct mu_input_config config, size_t n, uint32_t epoch)
{
	int seen[RECORDS] = {0};
	uint32_t ids[RECORDS];
	size_t total = 0, wrong = 0;

	for (config.worker = 0; config.worker < config.num_workers; config.worker++)
		total += read_epoch(&config, epoch, seen, ids);
	for (size_t i = 0; i < RECORDS; i++)
		wrong += seen[i] != (i < n);
	CHECK(total == n && wrong == 0);
	if (total != n || wrong)
		fprintf(stderr, "    %d workers, batch %zu, %zu records: %zu seen\n",
			config.num_workers, config.batch, n, total);
}

static void test_every_record_once(void)
{
	static const int workers[] = {1, 2, 3, 4, 7};
	static const size_t batches[] = {1, 16, 64}, examples[] = {0, 1000, 501};

	for (size_t w = 0; w < sizeof workers / sizeof *workers; w++) {
		for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
			for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
				struct mu_input_config config = base_config();
				size_t n = examples[e] ? examples[e] : RECORDS;

				config.num_workers = workers[w];
				config.batch = batches[b];
				config.num_examples = examples[e];
				check_epoch(config, n, 1);
				config.shuffle = false;
				check_epoch(config, n, 1);
			}
		}
	}
}

/*
 * Validation may be smaller than one step; its parts differ by one at most, and a worker may get
 * none.
 */
static void test_validation(void)
{
	static const int workers[] = {1, 2, 3, 4, 7, 20};

	for (size_t w = 0; w < sizeof workers / sizeof *workers; w++) {
		struct mu_input_config config = base_config();

		config.part = MU_INPUT_VALIDATE;
		config.shuffle = false;
		config.num_workers = workers[w];
		check_epoch(config, TESTS, 0);
	}
}

static void test_order(void)
{
	struct mu_input_config config = base_config();
	int seen[RECORDS];
	uint32_t whole[2][RECORDS], again[RECORDS], other[RECORDS], part[RECORDS];
	size_t n, same = 0, all = 3 * config.batch;

	config.batch *= 3;
	CHECK(read_epoch(&config, 0, seen, whole[0]) == RECORDS);
	CHECK(read_epoch(&config, 1, seen, whole[1]) == RECORDS);
	CHECK(read_epoch(&config, 0, seen, again) == RECORDS);
	CHECK(memcmp(whole[0], again, sizeof again) == 0);
	for (size_t i = 0; i < RECORDS; i++)
		same += whole[0][i] == whole[1][i];
	CHECK(same < 10); /* one is expected */
	config.seed++;
	CHECK(read_epoch(&config, 0, seen, other) == RECORDS);
	CHECK(memcmp(whole[0], other, sizeof other) != 0);
	config.seed--;

	/*
	 * Three workers of batch b take from each step what one worker of batch 3 b takes, in rank
	 * order.
	 */
	config.num_workers = 3;
	config.batch /= 3;
	for (config.worker = 0; config.worker < 3; config.worker++) {
		n = read_epoch(&config, 1, seen, part);
		for (size_t i = 0; i < RECORDS / all * config.batch; i++)
			CHECK(part[i] ==
			      whole[1][i / 16 * all + (size_t)config.worker * 16 + i % 16]);
		CHECK(n >= RECORDS / all * config.batch);
	}
	config.worker = 0;
	config.shuffle = false;
	read_epoch(&config, 0, seen, part);
	for (size_t i = 0; i < 16; i++)
		CHECK(part[i] == i && part[16 + i] == all + i);
}

static void test_all_pixels(void)
{
	/*
	 * In an image of 256 pixels, whose conversion is done in blocks, and in one of 255 with a
	 * rest.
	 */
	static const size_t widths[] = {256, 255};
	uint8_t pixels[256], label = 3;
	float data[256], labels[1];
	uint32_t ids[1];

	for (int i = 0; i < 256; i++)
		pixels[i] = (uint8_t)i;
	for (size_t k = 0; k < 2; k++) {
		struct mu_idx images = {.ndims = 3, .dims = {1, 1, widths[k]}, .data = pixels};
		struct mu_idx one = {.ndims = 1, .dims = {1}, .data = &label};
		struct mu_input_config config = base_config();
		struct mu_input in;

		config.batch = 1;
		CHECK(mu_idx_write(path_of("train-images-idx3-ubyte"), &images) == MU_OK);
		CHECK(mu_idx_write(path_of("train-labels-idx1-ubyte"), &one) == MU_OK);
		if (!CHECK(mu_input_open(&in, &config) == MU_OK))
			continue;
		CHECK(read_step(&in, 0, data, labels, ids) == 1);
		for (size_t i = 0; i < widths[k]; i++)
			CHECK(data[i] == (float)i / 255.0f);
		CHECK(labels[0] == 3 && ids[0] == 0);
		mu_input_close(&in);
	}
	unlink(path_of("train-images-idx3-ubyte"));
	unlink(path_of("train-labels-idx1-ubyte"));
}

/* Opening must fail with this status and a message that holds the parts. */
static void check_refused(const struct mu_input_config *config, enum mu_status want,
			  const char *part1, const char *part2)
{
	struct mu_input in;

	mu_trace_clear();
	CHECK(mu_input_open(&in, config) == want);
	CHECK_HAS(mu_trace_message(), part1);
	CHECK_HAS(mu_trace_message(), part2);
	CHECK(in.order == NULL && in.impl == NULL);
	mu_trace_clear();
}

static void test_refused_options(void)
{
	struct mu_input_config config = base_config();

	config.reader = "id";
	check_refused(&config, MU_ERR_USAGE, "unknown reader \"id\"",
		      "cifar, idx, records, synthetic");
	config = base_config();
	config.dir = NULL;
	check_refused(&config, MU_ERR_USAGE, "no data folder", "train-images-idx3-ubyte");
	config.dir = "/no/such/folder";
	check_refused(&config, MU_ERR_IO, "/no/such/folder/train-images-idx3-ubyte", ".gz");
	config = base_config();
	config.num_workers = 4;
	config.batch = 250;
	check_epoch(config, RECORDS, 0); /* 4 x 250 of 1003 is the most */
	config.batch = 251;
	check_refused(&config, MU_ERR_USAGE,
		      "batch larger than a worker's part of 1003 training records over 4 workers",
		      "250");
	config.num_examples = 3;
	check_refused(&config, MU_ERR_USAGE, "3 training records", "4 workers");
	config = base_config();
	config.batch = 0;
	check_refused(&config, MU_ERR_ARGUMENT, "batch 0", "at least 1");
	config = base_config();
	config.worker = 1;
	check_refused(&config, MU_ERR_ARGUMENT, "worker 1 of 1", "");
}

static void test_refused_files(void)
{
	struct mu_input_config config = base_config();

	write_labels("train-labels-idx1-ubyte.gz", RECORDS, 77);
	check_refused(&config, MU_ERR_FORMAT, "train-labels-idx1-ubyte",
		      "record 77 has label 10; labels must be from 0 to 9");
	write_labels("train-labels-idx1-ubyte.gz", RECORDS - 1, RECORDS);
	check_refused(&config, MU_ERR_FORMAT, "holds 1003 records", "holds 1002");
	unlink(path_of("train-labels-idx1-ubyte.gz"));
	check_refused(&config, MU_ERR_IO, "train-labels-idx1-ubyte", "no such file");
	write_images("train-labels-idx1-ubyte.gz", 2); /* images in the place of labels */
	check_refused(&config, MU_ERR_FORMAT, "train-labels-idx1-ubyte.gz", "wrong magic number");
	write_images("t10k-images-idx3-ubyte", 0);
	write_labels("t10k-labels-idx1-ubyte", 0, RECORDS);
	config.part = MU_INPUT_VALIDATE;
	check_refused(&config, MU_ERR_FORMAT, "no records", "idx");
}

static struct mu_input_config synthetic_config(void)
{
	return (struct mu_input_config){
		.reader = "synthetic",
		.shape = MU_SAMPLE(2, 5, 5),
		.classes = 4,
		.batch = 8,
		.num_workers = 3,
		.worker = 1,
		.seed = 1,
	};
}

static void test_synthetic(void)
{
	enum { BATCH = 8, PIXELS = 50 };
	static float data[2][BATCH * PIXELS];
	float labels[2][BATCH];
	uint32_t ids[BATCH];
	struct mu_input_config config = synthetic_config();
	struct mu_input in;
	double sum = 0;

	if (!CHECK(mu_input_open(&in, &config) == MU_OK))
		return;
	CHECK(in.steps == 500 && in.n == 500 * 3 * BATCH);
	CHECK(read_step(&in, 0, data[0], labels[0], ids) == BATCH);
	CHECK(ids[0] == BATCH); /* worker 1 */
	CHECK(read_step(&in, 499, data[1], labels[1], ids) == BATCH);
	CHECK(memcmp(data[0], data[1], sizeof data[0]) == 0); /* the same batch in every step */
	CHECK(memcmp(labels[0], labels[1], sizeof labels[0]) == 0);
	for (size_t i = 0; i < BATCH * PIXELS; i++) {
		CHECK(data[0][i] >= -1 && data[0][i] <= 1);
		sum += data[0][i];
	}
	CHECK_NEAR(sum / (BATCH * PIXELS), 0, 0.15);
	for (size_t i = 0; i < BATCH; i++)
		CHECK(labels[0][i] >= 0 && labels[0][i] < 4 &&
		      labels[0][i] == floorf(labels[0][i]));
	mu_input_close(&in);

	config.num_examples = 100; /* 4 full steps of 24 and 4 left over for 3 workers */
	if (!CHECK(mu_input_open(&in, &config) == MU_OK))
		return;
	CHECK(in.n == 100 && in.steps == 5 && mu_input_count(&in, 4) == 1);
	mu_input_close(&in);
	config.shape.dims[2] = 0;
	check_refused(&config, MU_ERR_ARGUMENT, "(2, 0, 5)", "at least 1");
}

/* As bytes, images have the same values; others are not bytes. */
static void test_synthetic_bytes(void)
{
	enum { BATCH = 8, MOST = 100 };
	static float data[BATCH * MOST], labels[BATCH];
	static uint8_t bytes[BATCH * MOST];
	uint32_t ids[BATCH];

	for (size_t channels = 1; channels <= 4; channels++)
		for (int numbers = 0; numbers < 2; numbers++) {
			struct mu_input_batch batch = {
				.data = data, .bytes = bytes, .labels = labels, .ids = ids};
			struct mu_input_config config = synthetic_config();
			const bool images = channels <= 3 && !numbers;
			const size_t n = BATCH * channels * 25;
			float *wanted = calloc(n, sizeof *wanted);
			struct mu_input in;

			config.shape.dims[1] = channels;
			config.settings = &(struct mu_synthetic_settings){
				numbers ? MU_NUMBER_INT32 : MU_NUMBER_FLOAT32};
			if (CHECK(wanted && mu_input_open(&in, &config) == MU_OK)) {
				read_step(&in, 0, wanted, labels, ids);
				mu_input_close(&in);
			}
			config.bytes = true;
			if (CHECK(wanted && mu_input_open(&in, &config) == MU_OK)) {
				CHECK(mu_input_read(&in, 0, &batch) == MU_OK);
				CHECK(mu_input_has_bytes(&in) == images &&
				      batch.are_bytes == images);
				for (size_t i = 0; i < n && images; i++)
					data[i] = ((float)bytes[i] - in.fields[0].mean[0]) /
						  in.fields[0].std[0];
				CHECK(memcmp(data, wanted, n * sizeof *data) == 0);
				batch.bytes = NULL; /* floats are needed all the same */
				CHECK(mu_input_read(&in, 0, &batch) == MU_OK && !batch.are_bytes);
				CHECK(memcmp(data, wanted, n * sizeof *data) == 0);
				mu_input_close(&in);
			}
			free(wanted);
		}
}

/* Counts the records of a part. */
static size_t count_part(struct mu_input_config config, enum mu_input_part part, int *seen)
{
	enum { PIXELS = 50 };
	static float data[8 * PIXELS];
	float labels[8];
	uint32_t ids[8];
	struct mu_input in;
	size_t n = 0;

	config.part = part;
	config.shuffle = part == MU_INPUT_TRAIN;
	for (config.worker = 0; config.worker < config.num_workers; config.worker++) {
		if (!CHECK(mu_input_open(&in, &config) == MU_OK))
			return 0;
		CHECK(mu_input_epoch(&in, 3) == MU_OK);
		for (size_t t = 0; t < in.steps; t++) {
			const size_t count = read_step(&in, t, data, labels, ids);

			for (size_t i = 0; i < count; i++)
				seen[ids[i] % 100]++;
			n += count;
		}
		mu_input_close(&in);
	}
	return n;
}

/* Every record is of one part, and of the same with another seed and number of workers. */
static void test_held_out(void)
{
	int held[2][100] = {{0}}, others[100] = {0}, wrong = 0;
	struct mu_input_config config = synthetic_config();

	config.num_examples = 100;
	config.held_out = 0.174;
	config.num_workers = 3;
	CHECK(count_part(config, MU_INPUT_VALIDATE, held[0]) == 17);
	CHECK(count_part(config, MU_INPUT_TRAIN, others) == 83);
	config.seed += 5;
	config.num_workers = 1;
	CHECK(count_part(config, MU_INPUT_VALIDATE, held[1]) == 17);
	for (int i = 0; i < 100; i++)
		wrong += held[0][i] + others[i] != 1 || held[0][i] != held[1][i];
	CHECK(wrong == 0);
	for (int i = wrong = 0; i < 17; i++)
		wrong += !held[0][i];
	CHECK(wrong > 0); /* not the first ones */
	config.worker = 0;
	config.held_out = 0.001;
	check_refused(&config, MU_ERR_USAGE, "0.001", "is 0 of 100 records; both parts need some");
	config = base_config();
	config.held_out = 0.1;
	check_refused(&config, MU_ERR_UNSUPPORTED, "idx files have a part for validation", "");
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_all_pixels();
	write_images("train-images-idx3-ubyte", RECORDS);
	write_labels("train-labels-idx1-ubyte.gz", RECORDS, RECORDS);
	write_images("t10k-images-idx3-ubyte", TESTS);
	write_labels("t10k-labels-idx1-ubyte", TESTS, RECORDS);
	test_every_record_once();
	test_validation();
	test_order();
	test_refused_options();
	test_refused_files();
	test_synthetic();
	test_synthetic_bytes();
	test_held_out();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
