/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * mu_input_look: each changed byte of a sample or a label gives another hash, of every kind of
 * data; equal data give the same one, in whatever kind of record file. Of large files a part is
 * hashed, and the times of the files tell the rest.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <muster/input.h>
#include <muster/pictures.h>
#include <muster/text.h>
#include <muster/tokens.h>

#include "../lib/record_data.h"

enum { N = 6, SIDE = 4, PIXELS = SIDE * SIDE, CIFAR = 1 + 3 * 32 * 32 };
enum { MANY = 300000, WINDOW = 5000 };

static void write_idx(void)
{
	static const uint8_t images[16] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
	static const uint8_t labels[8] = {0, 0, 8, 1, 0, 0, 0, N};
	uint8_t file[16 + N * PIXELS];

	memcpy(file, images, sizeof images);
	data_noise(file + 16, N * PIXELS, 1);
	data_put("train-images-idx3-ubyte", file, sizeof file);
	memcpy(file, labels, sizeof labels);
	memset(file + 8, 1, N);
	data_put("train-labels-idx1-ubyte", file, 8 + N);
}

static void write_cifar(void)
{
	static uint8_t file[N * CIFAR];

	data_noise(file, sizeof file, 2);
	for (size_t i = 0; i < N; i++)
		file[i * CIFAR] = (uint8_t)i;
	data_put("data_batch_1.bin", file, sizeof file);
}

static void write_rec(const char *name, size_t n)
{
	struct mu_recordio_writer *w;
	struct mu_record_buffer buffer = {0};
	uint8_t bytes[PIXELS];
	const uint8_t *payload;
	size_t nbytes;

	if (!CHECK(mu_recordio_create(&w, data_path(name), NULL) == MU_OK))
		return;
	for (size_t i = 0; i < n; i++) {
		const float label = (float)(i % 5);
		const struct mu_record record = {
			.data = bytes, .n = PIXELS, .id = i, .n_labels = 1, .labels = &label};

		data_noise(bytes, PIXELS, (uint32_t)i);
		CHECK(mu_record_pack(&record, &buffer, &payload, &nbytes) == MU_OK);
		CHECK(mu_recordio_write(w, i, payload, nbytes) == MU_OK);
	}
	CHECK(mu_recordio_finish(w, true) == MU_OK);
	mu_record_buffer_release(&buffer);
}

/* The records of write_rec. */
static void write_folder(void)
{
	uint8_t bytes[PIXELS];
	char name[32];

	for (size_t i = 0; i < N; i++) {
		snprintf(name, sizeof name, "classes/%zu", i % 5);
		mkdir(data_path("classes"), 0700);
		mkdir(data_path(name), 0700);
		data_noise(bytes, PIXELS, (uint32_t)i);
		snprintf(name, sizeof name, "classes/%zu/%zu.png", i % 5, i);
		data_put(name, bytes, PIXELS);
	}
}

static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};

/* Tokens of 4 bytes each; this code runs on machines that write the lowest byte first. */
static void write_wide(const char *name, const uint32_t *ids, size_t n)
{
	static uint8_t file[1024 + 4 * WINDOW + 4];
	const int32_t head[3] = {20240520, 2, (int32_t)n};

	memcpy(file, head, sizeof head);
	memcpy(file + 1024, ids, 4 * n);
	data_put(name, file, 1024 + 4 * n);
}

static void write_all(void)
{

	write_idx();
	write_cifar();
	write_rec("a.rec", N);
	write_folder();
	data_text("text", "to be or not to be\nthat is the question\n");
	CHECK(mu_token_file_write(data_path("train_tokens.bin"), tokens, 13) == MU_OK);
	write_wide("train_wide.bin", tokens, 13);
}

static struct mu_input_config config_of(const char *reader, const char *file)
{
	static const size_t lengths[] = {8};
	static const struct mu_picture_settings pictures = {.net_shape = MU_SAMPLE(3, SIDE, SIDE),
							    .std = {1, 1, 1}};
	static const struct mu_token_settings windows = {4};
	static const struct mu_text_settings text = {.lengths = lengths, .n_lengths = 1};
	static char path[DATA_PATH];

	snprintf(path, sizeof path, "%s", data_path(file));
	return (struct mu_input_config){
		.reader = reader,
		.dir = data_folder,
		.paths = *file ? path : NULL,
		.shape = {0},
		.settings = strcmp(reader, "tokens") == 0 ? (const void *)&windows
			    : strcmp(reader, "text") == 0 ? (const void *)&text
			    : strcmp(reader, "cifar") == 0 || strcmp(reader, "records") == 0
				    ? &pictures
				    : NULL,
		.classes = strcmp(reader, "tokens") == 0    ? 100
			   : strcmp(reader, "records") == 0 ? 10
							    : 0,
		.batch = 1,
		.num_workers = 1};
}

/* Zero if it cannot be opened. */
static struct mu_input_contents look(const struct mu_input_config *config)
{
	struct mu_input_contents c = {0};
	struct mu_input in;

	if (mu_input_open(&in, config) == MU_OK) {
		CHECK(in.contents.n == 0);
		CHECK(mu_input_look(&in) == MU_OK);
		c = in.contents;
		mu_input_close(&in);
	}
	mu_trace_clear();
	return c;
}

static void flip(const char *name, long at)
{
	FILE *f = fopen(data_path(name), "r+b");
	int byte;

	if (!CHECK(f))
		return;
	CHECK(fseek(f, at, SEEK_SET) == 0);
	byte = fgetc(f);
	CHECK(fseek(f, at, SEEK_SET) == 0);
	CHECK(fputc(byte ^ 1, f) != EOF);
	fclose(f);
}

/* Bytes `from` up to `to` of a file are a sample, or a label. */
static const struct kind {
	const char *reader, *paths, *file;
	long from, to;
} kinds[] = {
	{"idx", "", "train-images-idx3-ubyte", 16, 16 + N * PIXELS},
	{"idx", "", "train-labels-idx1-ubyte", 8, 8 + N},
	{"cifar", "", "data_batch_1.bin", 0, 40},
	{"cifar", "", "data_batch_1.bin", N * CIFAR - 9, N * CIFAR},
	{"records", "data_batch_1.bin", "data_batch_1.bin", N * CIFAR - 9, N * CIFAR},
	{"records", "train-images-idx3-ubyte", "train-images-idx3-ubyte", 16, 40},
	{"records", "a.rec", "a.rec", 12, 16},     /* the label of the first record */
	{"records", "a.rec", "a.rec", 32, 32 + PIXELS},
	{"records", "classes", "classes/2/2.png", 0, PIXELS},
	{"text", "text", "text", 0, 2},
	{"tokens", "train_tokens.bin", "train_tokens.bin", 1024, 1024 + 2 * 13},
	{"tokens", "train_wide.bin", "train_wide.bin", 1024, 1024 + 4 * 13},
};

static void test_bytes(const struct kind *k)
{
	const struct mu_input_config config = config_of(k->reader, k->paths);
	const struct mu_input_contents before = look(&config);
	struct mu_input_contents after;
	int failures = check_failures();

	CHECK(before.n > 0 && before.hashed == before.n);
	for (long at = k->from; at < k->to; at++) {
		flip(k->file, at);
		after = look(&config);
		/* A label may be none now, or the text have another word. */
		CHECK(after.n == 0 || after.records != before.records);
		flip(k->file, at);
	}
	after = look(&config);
	CHECK(after.records == before.records && after.listing == before.listing);
	if (check_failures() > failures)
		fprintf(stderr, "of %s in %s\n", k->reader, k->file);
}

/* The order of files, a part of the records, and the same records in another kind of file. */
static void test_order(void)
{
	struct mu_input_config config = config_of("records", "a.rec");
	const struct mu_input_contents all = look(&config);
	struct mu_input_contents one, other;
	char paths[2 * DATA_PATH];

	config.num_examples = N - 1;
	CHECK(look(&config).records != all.records);
	config.num_examples = 0;
	config.held_out = 0.5;
	one = look(&config);
	config.part = MU_INPUT_VALIDATE;
	other = look(&config);
	CHECK(one.n == N / 2 && other.n == N / 2 && one.records != other.records);

	write_rec("b.rec", 2);
	config = config_of("records", "a.rec");
	snprintf(paths, sizeof paths, "%s;%s", data_path("a.rec"), data_path("b.rec"));
	config.paths = paths;
	one = look(&config);
	snprintf(paths, sizeof paths, "%s;%s", data_path("b.rec"), data_path("a.rec"));
	other = look(&config);
	CHECK(one.n == N + 2 && one.records != other.records);

	config = config_of("records", "classes"); /* whose order is another: 5 is of class 0 */
	config.num_examples = 1;
	one = look(&config);
	config = config_of("records", "a.rec");
	config.num_examples = 1;
	CHECK(one.n == 1 && look(&config).records == one.records);
	CHECK(rename(data_path("classes/4"), data_path("classes/6")) == 0);
	config = config_of("records", "classes");
	other = look(&config);
	CHECK(rename(data_path("classes/6/4.png"), data_path("classes/6/7.png")) == 0);
	one = look(&config);
	CHECK(one.records == other.records && one.listing != other.listing);
}

/* Of many records a part is hashed. */
static void test_many(void)
{
	const struct mu_input_config config = config_of("records", "many.rec");
	const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
	struct mu_input_contents before, after;
	struct stat status;

	write_rec("many.rec", MANY);
	CHECK(stat(data_path("many.rec"), &status) == 0);
	before = look(&config);
	CHECK(before.n == MANY && before.hashed == 4096);
	flip("many.rec", 32); /* of the first one, which is hashed */
	after = look(&config);
	CHECK(after.records != before.records && after.listing == before.listing);
	flip("many.rec", 32);
	flip("many.rec", status.st_size - 1);
	CHECK(utimensat(AT_FDCWD, data_path("many.rec"), times, 0) == 0);
	after = look(&config);
	CHECK(after.records == before.records && after.times != before.times);
}

/* The same tokens in another width, in windows longer than a piece that is read. */
static void test_widths(void)
{
	static uint32_t ids[WINDOW + 1];
	struct mu_input_config narrow = config_of("tokens", "train_n.bin"), wide = narrow;
	char paths[DATA_PATH];
	struct mu_input_contents one, other;

	for (size_t i = 0; i <= WINDOW; i++)
		ids[i] = (uint32_t)(i * i % 65536);
	CHECK(mu_token_file_write(data_path("train_n.bin"), ids, WINDOW + 1) == MU_OK);
	write_wide("train_w.bin", ids, WINDOW + 1);
	snprintf(paths, sizeof paths, "%s", data_path("train_n.bin"));
	narrow.paths = paths;
	narrow.settings = &(struct mu_token_settings){WINDOW};
	narrow.classes = 0;
	wide = narrow;
	one = look(&narrow);
	wide.paths = data_path("train_w.bin");
	other = look(&wide);
	CHECK(one.n == 1 && one.records == other.records && one.listing == other.listing);
	ids[WINDOW] += 65536;
	write_wide("train_w.bin", ids, WINDOW + 1);
	other = look(&wide);
	CHECK(other.n == 1 && one.records != other.records);
}

static void clean(void)
{
	char name[48];

	for (int c = 0; c < 7; c++) {
		for (int i = 0; i < 8; i++) {
			snprintf(name, sizeof name, "classes/%d/%d.png", c, i);
			unlink(data_path(name));
		}
		snprintf(name, sizeof name, "classes/%d", c);
		rmdir(data_path(name));
	}
	rmdir(data_path("classes"));
	scratch_remove(data_folder);
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	write_all();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		test_bytes(&kinds[i]);
	test_order();
	test_many();
	test_widths();
	clean();
	return check_failures() ? 1 : 0;
}
