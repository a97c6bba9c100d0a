/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Labelled images in files of every kind: what is written is read back, by number and by several
 * threads; several files are one; what is wrong is told with file and record.
 */
#include <muster/records.h>
#include <muster/storage.h>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/record_data.h"

enum { N = 60, LARGEST = 3000, H = 5, W = 4, C = 3, RAW = H * W * C, THREADS = 3, CLASSES = 7 };

static const char *const class_names[CLASSES] = {"ant", "bee", "cow", "dog", "eel", "fox", "gnu"};

/* ---- what the files hold ---- */

/* Record i: noise with the head of a JPEG file, or raw pixels; one label or two. */
static struct mu_record make_record(size_t i, bool raw, size_t n_labels)
{
	static uint8_t bytes[LARGEST + 3];
	static float labels[2];
	size_t n = raw ? RAW : 3 + i * 7919 % LARGEST;

	data_noise(bytes, n, (uint32_t)i);
	if (!raw)
		memcpy(bytes, "\xff\xd8\xff", 3);
	labels[0] = (float)(i % CLASSES);
	labels[1] = -0.5f * (float)i;
	return (struct mu_record){
		.data = bytes, .n = n, .id = 3 * i + 1, .n_labels = n_labels, .labels = labels};
}

static void check_record(const struct mu_record *got, size_t i, bool raw, size_t n_labels)
{
	struct mu_record want = make_record(i, raw, n_labels);

	CHECK(got->n == want.n && memcmp(got->data, want.data, want.n) == 0);
	CHECK(got->id == want.id && got->n_labels == n_labels);
	CHECK(memcmp(got->labels, want.labels, n_labels * sizeof *want.labels) == 0);
}

static void write_rec(const char *name, const char *index, size_t from, size_t to, size_t n_labels)
{
	struct mu_recordio_writer *w;
	struct mu_record_buffer buffer = {0};
	const uint8_t *payload;
	size_t n;

	if (!CHECK(mu_recordio_create(&w, data_path(name), index) == MU_OK))
		return;
	for (size_t i = from; i < to; i++) {
		struct mu_record record = make_record(i, false, n_labels);

		CHECK(mu_record_pack(&record, &buffer, &payload, &n) == MU_OK);
		CHECK(mu_recordio_write(w, record.id, payload, n) == MU_OK);
	}
	CHECK(mu_recordio_finish(w, true) == MU_OK);
	mu_record_buffer_release(&buffer);
}

static void write_h5(const char *name, bool raw, size_t n_labels, size_t n)
{
	struct mu_data_writer *w;
	struct mu_data_file_config config = {
		.kind = raw ? MU_RECORD_RAW : MU_RECORD_ENCODED,
		.shape = MU_SAMPLE(C, H, W),
		.class_names = class_names,
		.classes = CLASSES,
		.creator = "test_records",
	};

	if (!CHECK(mu_data_file_create(&w, data_path(name), &config) == MU_OK))
		return;
	for (size_t i = 0; i < n; i++) {
		struct mu_record record = make_record(i, raw, n_labels);

		CHECK(mu_data_file_write(w, &record) == MU_OK);
	}
	CHECK(mu_data_file_finish(w, true) == MU_OK);
}

/* ---- reading ---- */

static void check_all(const char *paths, const struct mu_records_config *config, bool raw,
		      size_t n_labels)
{
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;

	if (!CHECK(mu_records_open(&r, paths, config) == MU_OK)) {
		mu_trace_print(stderr, "test");
		return;
	}
	mu_records_info(r, &info);
	CHECK(info.n == N && info.label_width == n_labels);
	CHECK(info.kind == (raw ? MU_RECORD_RAW : MU_RECORD_ENCODED));
	CHECK(raw ? mu_shape_equal(&info.shape, &(struct mu_shape)MU_SAMPLE(C, H, W))
		  : info.shape.ndims == 0);
	for (size_t k = 0; k < N; k++) {
		size_t i = k * 7 % N;

		CHECK(mu_records_read(r, i, &buffer, &record) == MU_OK);
		check_record(&record, i, raw, n_labels);
	}
	CHECK_FAILS(mu_records_read(r, N, &buffer, &record), MU_ERR_ARGUMENT, "record 60",
		    "there are 60");
	CHECK(mu_records_unchanged(r) == MU_OK);
	mu_record_buffer_release(&buffer);
	mu_records_close(r);
}

static enum mu_status try_open(const char *paths, const struct mu_records_config *config)
{
	struct mu_records *r;
	enum mu_status st = mu_records_open(&r, paths, config);

	mu_records_close(r);
	return st;
}

static void test_rec(void)
{
	struct mu_records *r;
	char paths[4 * DATA_PATH], indexes[4 * DATA_PATH], text[1000];
	struct mu_records_config config = {0}, two = {.label_width = 2}, none = {.indexes = ""};

	write_rec("all.rec", data_path("all.idx"), 0, N, 1);
	check_all(data_path("all.rec"), NULL, false, 1);
	check_all(data_path("all.rec"), &none, false, 1);
	write_rec("a.rec", data_path("a.idx"), 0, 17, 2);
	write_rec("b.rec", NULL, 17, 18, 2);
	write_rec("c.rec", data_path("c-other.idx"), 18, N, 2);
	snprintf(paths, sizeof paths, "%s;%s;%s", data_path("a.rec"), data_path("b.rec"),
		 data_path("c.rec"));
	check_all(paths, NULL, false, 2);
	check_all(paths, &two, false, 2);
	snprintf(indexes, sizeof indexes, "%s;%s", data_path("a.idx"), data_path("c-other.idx"));
	config.indexes = indexes;
	CHECK_FAILS(try_open(paths, &config), MU_ERR_USAGE, "2 .idx files for 3 .rec files", "");
	if (CHECK(mu_records_open(&r, paths, NULL) == MU_OK)) {
		CHECK_HAS(mu_records_where(r, 16, text, sizeof text), "a.rec, record 16 (key 49)");
		CHECK_HAS(mu_records_where(r, 17, text, sizeof text),
			  "b.rec, record 0 (key 0) at byte 0");
		CHECK_HAS(mu_records_where(r, N - 1, text, sizeof text), "c.rec, record 41");
		mu_records_close(r);
	}
	CHECK_FAILS(try_open("a.rec;;c.rec", NULL), MU_ERR_USAGE, "path 2 of 3 is empty", ".rec");
	CHECK_FAILS(try_open("", NULL), MU_ERR_USAGE, "path 1 of 1 is empty", "");
	CHECK_FAILS(try_open(data_path("none.rec"), NULL), MU_ERR_IO, "none.rec", "No such file");
}

static void test_labels(void)
{
	struct mu_records_config five = {.classes = 5}, wide = {.label_width = 3};
	struct mu_records *r;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;

	write_rec("all.rec", NULL, 0, N, 1);
	if (CHECK(mu_records_open(&r, data_path("all.rec"), &five) == MU_OK)) {
		CHECK(mu_records_read(r, 4, &buffer, &record) == MU_OK);
		CHECK_FAILS(mu_records_read(r, 5, &buffer, &record), MU_ERR_FORMAT,
			    "all.rec, record 5",
			    "label 5; labels must be whole numbers from 0 to 4");
		mu_records_close(r);
	}
	CHECK_FAILS(try_open(data_path("all.rec"), &wide), MU_ERR_FORMAT, "has 1 labels",
		    "expected 3");
	mu_record_buffer_release(&buffer);
	if (!mu_array_file_supported())
		return;
	write_h5("x.h5", false, 1, N);
	CHECK_FAILS(try_open(data_path("x.h5"), &five), MU_ERR_FORMAT, "x.h5, record 5 (id 16)",
		    "label 5");
	write_h5("y.h5", false, 2, N);
	five.classes = CLASSES;
	CHECK_FAILS(try_open(data_path("y.h5"), &five), MU_ERR_FORMAT, "y.h5, record 1",
		    "label -0.5");
	unlink(data_path("x.h5"));
	unlink(data_path("y.h5"));
}

/* A record that holds no image header. */
static void test_no_image(void)
{
	struct mu_recordio_writer *w;

	CHECK(mu_recordio_create(&w, data_path("t.rec"), NULL) == MU_OK);
	CHECK(mu_recordio_write(w, 0, (const uint8_t *)"text", 4) == MU_OK);
	CHECK(mu_recordio_finish(w, true) == MU_OK);
	CHECK_FAILS(try_open(data_path("t.rec"), NULL), MU_ERR_FORMAT,
		    "t.rec, record 0 (key 0) at byte 0: has 4 bytes", "24");
	data_put("t.rec", "hello, this is no file of records", 32);
	CHECK_FAILS(try_open(data_path("t.rec"), NULL), MU_ERR_FORMAT, "no record at byte 0",
		    "expected the magic");
	data_put("t.txt", "hello, this is no file of records", 32);
	CHECK_FAILS(try_open(data_path("t.txt"), NULL), MU_ERR_FORMAT, "t.txt: holds no records",
		    "68 65 6c 6c");
	data_put("t.txt", "", 0);
	CHECK_FAILS(try_open(data_path("t.txt"), NULL), MU_ERR_FORMAT, "t.txt: the file is empty",
		    "");
	unlink(data_path("t.rec"));
	unlink(data_path("t.txt"));
}

/* ---- threads ---- */

struct reader {
	const struct mu_records *records;
	size_t first;
	int wrong;
};

static void *read_in_thread(void *argument)
{
	struct reader *reader = argument;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;

	for (size_t k = 0; k < 20 * N; k++) {
		size_t i = (reader->first + 11 * k) % N;

		if (mu_records_read(reader->records, i, &buffer, &record) != MU_OK ||
		    record.id != 3 * i + 1 || record.n != 3 + i * 7919 % LARGEST ||
		    record.labels[0] != (float)(i % CLASSES))
			reader->wrong++;
	}
	mu_record_buffer_release(&buffer);
	return NULL;
}

static void test_threads(const char *name)
{
	struct mu_records *r;
	struct reader readers[THREADS];
	pthread_t threads[THREADS];

	if (!CHECK(mu_records_open(&r, data_path(name), NULL) == MU_OK))
		return;
	for (size_t i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){r, i * 13, 0};
		CHECK(pthread_create(&threads[i], NULL, read_in_thread, &readers[i]) == 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK(readers[i].wrong == 0);
	}
	mu_records_close(r);
}

/* ---- folders, CIFAR, IDX ---- */

static void put_in_class(const char *class, const char *file, const char *text)
{
	char name[200];

	mkdir(data_path(class), 0700);
	snprintf(name, sizeof name, "%s/%s", class, file);
	data_put(name, text, strlen(text));
}

static void remove_class(const char *class)
{
	scratch_remove(data_path(class));
}

static void test_folder(void)
{
	static const struct {
		const char *text;
		float label;
	} want[] = {{"cat 10", 1}, {"cat 2", 1}, {"cat b", 1}, {"eel", 3}, {"ox", 4}};
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	struct mu_records_config four = {.classes = 4};
	char text[1000];

	mkdir(data_path("set"), 0700);
	CHECK_FAILS(try_open(data_path("set"), NULL), MU_ERR_IO, "set: no images",
		    "a folder of images per class");
	mkdir(data_path("set/ant"), 0700); /* a class without images stays a class */
	mkdir(data_path("set/dog"), 0700);
	put_in_class("set/cat", "2.jpg", "cat 2");
	put_in_class("set/cat", "10.PNG", "cat 10");
	put_in_class("set/cat", "b.jpeg", "cat b");
	put_in_class("set/cat", "b.txt", "no image");
	put_in_class("set/cat", "._2.jpg", "no image");
	put_in_class("set/ox", "1.jpg", "ox");
	put_in_class("set/eel", "1.jpg", "eel");
	put_in_class("set", "1.jpg", "in no class");
	if (CHECK(mu_records_open(&r, data_path("set"), NULL) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.n == 5 && info.classes == 5 && info.kind == MU_RECORD_ENCODED);
		CHECK_TEXT(info.class_names[2], "dog");
		for (size_t i = 0; i < 5; i++) {
			CHECK(mu_records_read(r, i, &buffer, &record) == MU_OK);
			CHECK(record.n == strlen(want[i].text) && record.id == i);
			CHECK(memcmp(record.data, want[i].text, record.n) == 0);
			CHECK(record.n_labels == 1 && record.labels[0] == want[i].label);
		}
		CHECK_HAS(mu_records_where(r, 3, text, sizeof text), "set/eel/1.jpg, record 3");
		data_put("set/eel/1.jpg", "", 0);
		CHECK_FAILS(mu_records_read(r, 3, &buffer, &record), MU_ERR_FORMAT,
			    "set/eel/1.jpg: the file is empty", "");
		unlink(data_path("set/eel/1.jpg"));
		CHECK_FAILS(mu_records_read(r, 3, &buffer, &record), MU_ERR_IO, "set/eel/1.jpg",
			    "No such file");
		mu_records_close(r);
	}
	CHECK_FAILS(try_open(data_path("set"), &four), MU_ERR_FORMAT, "set/ox/1.jpg", "label 4");
	mu_record_buffer_release(&buffer);
	remove_class("set/ant");
	remove_class("set/dog");
	remove_class("set/cat");
	remove_class("set/eel");
	remove_class("set/ox");
	remove_class("set");
}

/* n records of `labels` label bytes; the last label of record i is i. */
static void put_cifar(const char *name, size_t first, size_t n, size_t labels)
{
	size_t record = labels + 3072;
	uint8_t *bytes = malloc(n * record);

	data_noise(bytes, n * record, (uint32_t)first);
	for (size_t i = 0; i < n; i++)
		bytes[i * record + labels - 1] = (uint8_t)(first + i);
	data_put(name, bytes, n * record);
	free(bytes);
}

static void test_cifar(void)
{
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	struct mu_records_config four = {.classes = 4};
	char paths[2 * DATA_PATH];
	uint8_t file[3 * 3073];

	put_cifar("data_batch_1.bin", 0, 3, 1);
	put_cifar("data_batch_2.bin", 3, 2, 1);
	snprintf(paths, sizeof paths, "%s;%s", data_path("data_batch_1.bin"),
		 data_path("data_batch_2.bin"));
	data_get("data_batch_1.bin", file, sizeof file);
	if (CHECK(mu_records_open(&r, paths, NULL) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.n == 5 &&
		      mu_shape_equal(&info.shape, &(struct mu_shape)MU_SAMPLE(3, 32, 32)));
		CHECK_TEXT(info.format, "CIFAR-10");
		for (size_t i = 0; i < 5; i++) {
			CHECK(mu_records_read(r, i, &buffer, &record) == MU_OK);
			CHECK(record.labels[0] == (float)i && record.id == i && record.n == 3072);
		}
		CHECK(mu_records_read(r, 2, &buffer, &record) == MU_OK);
		for (size_t j = 0; j < 3072; j++)
			CHECK(record.data[j] == file[2 * 3073 + 1 + j % 3 * 1024 + j / 3]);
		mu_records_close(r);
	}
	CHECK_FAILS(try_open(paths, &four), MU_ERR_FORMAT, "data_batch_2.bin, record 1", "label 4");
	put_cifar("train.bin", 0, 3, 2);
	if (CHECK(mu_records_open(&r, data_path("train.bin"), NULL) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK_TEXT(info.format, "CIFAR-100");
		CHECK(mu_records_read(r, 2, &buffer, &record) == MU_OK && record.labels[0] == 2);
		mu_records_close(r);
	}
	CHECK(truncate(data_path("train.bin"), 5000) == 0);
	CHECK_FAILS(try_open(data_path("train.bin"), NULL), MU_ERR_FORMAT, "train.bin: truncated",
		    "5000 bytes");
	mu_record_buffer_release(&buffer);
	unlink(data_path("train.bin"));
	unlink(data_path("data_batch_1.bin"));
	unlink(data_path("data_batch_2.bin"));
}

static void test_idx(void)
{
	uint8_t pixels[24], labels[] = {2, 0, 1};
	struct mu_idx images = {.ndims = 3, .dims = {2, 3, 4}, .data = pixels};
	struct mu_idx numbers = {.ndims = 1, .dims = {2}, .data = labels};
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	struct mu_records_config two = {.classes = 2};

	data_noise(pixels, sizeof pixels, 1);
	CHECK(mu_idx_write(data_path("t-images-idx3-ubyte"), &images) == MU_OK);
	CHECK(mu_idx_write(data_path("t-labels-idx1-ubyte.gz"), &numbers) == MU_OK);
	if (CHECK(mu_records_open(&r, data_path("t-images-idx3-ubyte"), NULL) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.n == 2 &&
		      mu_shape_equal(&info.shape, &(struct mu_shape)MU_SAMPLE(1, 3, 4)));
		CHECK(mu_records_read(r, 0, &buffer, &record) == MU_OK);
		CHECK(record.n == 12 && memcmp(record.data, pixels, 12) == 0);
		CHECK(record.labels[0] == 2 && record.n_labels == 1 && record.id == 0);
		mu_records_close(r);
	}
	CHECK_FAILS(try_open(data_path("t-images-idx3-ubyte"), &two), MU_ERR_FORMAT, "record 0",
		    "label 2");
	numbers.dims[0] = 3;
	CHECK(mu_idx_write(data_path("t-labels-idx1-ubyte.gz"), &numbers) == MU_OK);
	CHECK_FAILS(try_open(data_path("t-images-idx3-ubyte"), NULL), MU_ERR_FORMAT, "2 images",
		    "3 labels");
	CHECK(rename(data_path("t-images-idx3-ubyte"), data_path("some")) == 0);
	CHECK_FAILS(try_open(data_path("some"), NULL), MU_ERR_USAGE, "labels are not known",
		    "images-idx3");
	unlink(data_path("some"));
	unlink(data_path("t-labels-idx1-ubyte.gz"));
}

/* ---- HDF5 ---- */

static void test_h5(void)
{
	struct mu_records *r;
	struct mu_records_info info;
	char text[1000];

	write_h5("x.h5", false, 1, N);
	check_all(data_path("x.h5"), NULL, false, 1);
	test_threads("x.h5");
	if (CHECK(mu_records_open(&r, data_path("x.h5"), NULL) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.classes == CLASSES && info.has_checksum && info.checksum != 0);
		CHECK_TEXT(info.class_names[6], "gnu");
		CHECK_HAS(mu_records_where(r, 2, text, sizeof text),
			  "x.h5, record 2 (id 7) at byte");
		mu_records_close(r);
	}
	write_h5("y.h5", true, 2, N);
	check_all(data_path("y.h5"), NULL, true, 2);
}

static void test_h5_writer(void)
{
	struct mu_data_writer *w;
	struct mu_data_file_config config = {.kind = MU_RECORD_RAW, .shape = MU_SAMPLE(C, H, W)};
	struct mu_record record = make_record(0, true, 1), wide = make_record(1, true, 2);
	static uint8_t first[1 << 16], second[1 << 16];
	size_t n;

	CHECK(mu_data_file_create(&w, data_path("z.h5"), &config) == MU_OK);
	CHECK(mu_data_file_write(w, &record) == MU_OK);
	CHECK_FAILS(mu_data_file_write(w, &wide), MU_ERR_ARGUMENT, "id 4 has 2 labels",
		    "the first one 1");
	record.n--;
	CHECK_FAILS(mu_data_file_write(w, &record), MU_ERR_ARGUMENT, "59 bytes", "expected 60");
	CHECK(mu_data_file_finish(w, false) == MU_OK);
	CHECK(access(data_path("z.h5"), F_OK) != 0);
	CHECK(mu_data_file_create(&w, data_path("z.h5"), &config) == MU_OK);
	CHECK_FAILS(mu_data_file_finish(w, true), MU_ERR_ARGUMENT, "z.h5: no images", "");
	config.shape.dims[2] = 0;
	CHECK_FAILS(mu_data_file_create(&w, data_path("z.h5"), &config), MU_ERR_ARGUMENT,
		    "shape 3, 0, 4", "");
	CHECK_FAILS(mu_data_file_create(&w, data_path("no/z.h5"), &(struct mu_data_file_config){0}),
		    MU_ERR_IO, "no/z.h5", "cannot be written");
	/* Equal records, a second later: equal bytes. */
	write_h5("y.h5", true, 1, 20);
	n = data_get("y.h5", first, sizeof first);
	sleep(1);
	write_h5("y.h5", true, 1, 20);
	CHECK(n > 1000 && data_get("y.h5", second, sizeof second) == n);
	CHECK(memcmp(first, second, n) == 0);
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	test_rec();
	test_threads("all.rec");
	test_labels();
	test_no_image();
	test_folder();
	test_cifar();
	test_idx();
	if (mu_array_file_supported()) {
		test_h5();
		test_h5_writer();
	}
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
