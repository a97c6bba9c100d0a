/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Windows of token files: each has its place once in an epoch, whatever the number of workers, and
 * its labels are the next tokens; the vocabulary; what can be wrong with the files.
 */
#include <muster/input.h>
#include <muster/tokens.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

enum { T = 4, BATCH = 2, WINDOWS = 8 };

static char folder[SCRATCH_BYTES];

static const char *path_of(const char *name)
{
	static char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* n tokens from `first` on. */
static void write_file(const char *name, uint32_t first, size_t n)
{
	uint32_t ids[100];

	for (size_t i = 0; i < n; i++)
		ids[i] = first + (uint32_t)i;
	CHECK(mu_token_file_write(path_of(name), ids, n) == MU_OK);
}

static struct mu_token_settings settings;

static struct mu_input_config config_of(void)
{
	settings.window = T;
	return (struct mu_input_config){.reader = "tokens",
					.dir = folder,
					.settings = &settings,
					.batch = BATCH,
					.num_workers = 1,
					.shuffle = true,
					.seed = 3};
}

/* Mark the windows of an epoch of one worker. */
static void read_epoch(struct mu_input *in, uint32_t epoch, int *seen)
{
	/* 25 tokens from 0 on, 1 and 10 from 50 on */
	static const float starts[WINDOWS] = {0, 4, 8, 12, 16, 20, 50, 54};
	float data[BATCH * T], labels[BATCH * T];
	uint32_t ids[BATCH];
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};

	CHECK(mu_input_epoch(in, epoch) == MU_OK);
	for (size_t step = 0; step < in->steps; step++) {
		CHECK(mu_input_read(in, step, &batch) == MU_OK);
		for (size_t i = 0; i < batch.count * T; i++) {
			const uint32_t id = ids[i / T];

			if (!CHECK(id < WINDOWS))
				return;
			seen[id] += i % T == 0;
			CHECK(data[i] == starts[id] + (float)(i % T));
			CHECK(labels[i] == data[i] + 1);
		}
	}
}

static void test_windows(void)
{
	struct mu_input_config config = config_of();
	struct mu_input in;
	char text[4096];

	for (int workers = 1; workers <= 3; workers++) {
		int seen[WINDOWS] = {0};

		config.num_workers = workers;
		for (config.worker = 0; config.worker < workers; config.worker++) {
			if (!CHECK(mu_input_open(&in, &config) == MU_OK))
				return;
			CHECK(in.n == WINDOWS && in.classes == 60);
			CHECK(mu_input_field(&in, MU_FIELD_INPUT)->number == MU_NUMBER_INT32);
			CHECK(mu_input_width(&in) == T);
			CHECK(mu_shape_equal(mu_input_shape(&in),
					     &(struct mu_shape)MU_SAMPLE(1, T, 1)));
			in.ops->describe(&in, text, sizeof text);
			CHECK_HAS(text, "36 tokens of ");
			CHECK_HAS(text, "train_0.bin and 2 more, windows of 4");
			in.ops->name_record(&in, 7, text, sizeof text);
			CHECK_HAS(text, "train_2.bin, token 4");
			read_epoch(&in, 0, seen);
			read_epoch(&in, 1, seen);
			mu_input_close(&in);
		}
		for (int i = 0; i < WINDOWS; i++)
			CHECK(seen[i] == 2);
	}
}

/* Opening fails with a message that has these parts. */
static void check_wrong(const struct mu_input_config *config, const char *a, const char *b)
{
	struct mu_input in;

	if (!CHECK(mu_input_open(&in, config) != MU_OK))
		mu_input_close(&in);
	CHECK_HAS(mu_trace_message(), a);
	CHECK_HAS(mu_trace_message(), b);
	mu_trace_clear();
}

static void test_vocabulary(void)
{
	struct mu_input_config config = config_of();
	float data[BATCH * T], labels[BATCH * T];
	uint32_t ids[BATCH];
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
	struct mu_token_counts *counts = NULL;
	struct mu_tokenizer *t = NULL;
	struct mu_input in;

	config.classes = 64; /* filled up */
	if (CHECK(mu_input_open(&in, &config) == MU_OK))
		CHECK(in.classes == 64);
	mu_input_close(&in);
	config.classes = 59;
	check_wrong(&config, "train_0.bin: the vocabulary has 60 tokens", "59 classes");
	/* The tokenizer.json beside the files says how many there are. */
	CHECK(mu_token_counts_new(&counts) == MU_OK);
	CHECK(mu_token_counts_train(counts, 257, 2, &t) == MU_OK);
	CHECK(mu_tokenizer_write(t, path_of("tokenizer.json")) == MU_OK);
	mu_tokenizer_free(t);
	mu_token_counts_free(counts);
	config.classes = 0;
	write_file("train_3.bin", 256, 6);
	if (CHECK(mu_input_open(&in, &config) == MU_OK)) {
		enum mu_status st = MU_OK;

		CHECK(in.classes == 257 && in.n == WINDOWS + 1);
		for (size_t step = 0; step < in.steps && st == MU_OK; step++)
			st = mu_input_read(&in, step, &batch);
		CHECK(st == MU_ERR_FORMAT);
		CHECK_HAS(mu_trace_message(), "train_3.bin: token 257, at place 1, is not below");
		mu_trace_clear();
	}
	mu_input_close(&in);
	remove(path_of("train_3.bin"));
	remove(path_of("tokenizer.json"));
}

static void test_wrong_files(void)
{
	const struct mu_reader *reader = NULL;
	struct mu_input_config config = config_of();
	FILE *f;

	CHECK(mu_input_detect(folder, &reader) == MU_OK && reader &&
	      strcmp(reader->name, "tokens") == 0);
	config.part = MU_INPUT_VALIDATE;
	check_wrong(&config, "holds no val*.bin", "without validation, name the files");
	config.part = MU_INPUT_TRAIN;
	settings.window = 25;
	check_wrong(&config, "train_0.bin: has 36 tokens", "a window of 25 and the token after it");
	settings.window = T;
	f = fopen(path_of("train_1.bin"), "r+b");
	if (CHECK(f != NULL)) {
		fputc('x', f);
		fclose(f);
	}
	check_wrong(&config, "train_1.bin: has no header of a token file: it begins with ",
		    "If it holds tokens alone, as nanoGPT writes them");
	remove(path_of("train_1.bin"));
	remove(path_of("train_2.bin"));
	/* "train.bin" is CIFAR-100's, or one of tokens. */
	write_file("train.bin", 0, 25);
	remove(path_of("train_0.bin"));
	CHECK(mu_input_detect(folder, &reader) == MU_OK && reader &&
	      strcmp(reader->name, "tokens") == 0);
	f = fopen(path_of("train.bin"), "wb");
	if (f)
		fclose(f);
	CHECK(mu_input_detect(folder, &reader) == MU_OK && reader &&
	      strcmp(reader->name, "cifar") == 0);
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	write_file("train_0.bin", 0, 25);
	write_file("train_1.bin", 30, 1);
	write_file("train_2.bin", 50, 10);
	test_windows();
	test_vocabulary();
	test_wrong_files();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
