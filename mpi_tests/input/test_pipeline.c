/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Batches of images from a .rec file and from an .h5 file: every record once per epoch over all
 * workers, the same samples however many threads and workers there are and whether steps are read
 * in order or not, order of chunks, bad records, memory, refused settings. The test is all workers
 * one after another: they do not talk.
 */
#include <unistd.h>

#include "../lib/pipeline_data.h"

/* What every record becomes in an epoch, and in which order the records come. */
struct epoch {
	float data[RECORDS][SAMPLE], labels[RECORDS];
	uint32_t order[RECORDS];
	int seen[RECORDS];
	size_t n;
};

static void read_worker(struct epoch *e, const struct mu_input_config *config, uint32_t epoch)
{
	static float data[BATCH * SAMPLE], labels[BATCH];
	uint32_t ids[BATCH];
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
	struct mu_input in;

	if (!CHECK(mu_input_open(&in, config) == MU_OK)) {
		mu_trace_print(stderr, "open");
		return;
	}
	CHECK(mu_input_epoch(&in, epoch) == MU_OK);
	for (size_t t = 0; t < in.steps; t++) {
		CHECK(mu_input_wait(&in, t, 100));
		if (!CHECK(mu_input_read(&in, t, &batch) == MU_OK))
			break;
		CHECK(batch.count == mu_input_count(&in, t));
		for (size_t i = 0; i < batch.count; i++) {
			memcpy(e->data[ids[i]], data + i * SAMPLE, sizeof e->data[0]);
			e->labels[ids[i]] = labels[i];
			e->seen[ids[i]]++;
			if (CHECK(e->n < RECORDS))
				e->order[e->n++] = ids[i];
		}
	}
	mu_input_close(&in);
}

static struct epoch *read_epoch(struct mu_input_config config, uint32_t epoch)
{
	struct epoch *e = calloc(1, sizeof *e);

	for (config.worker = 0; e && config.worker < config.num_workers; config.worker++)
		read_worker(e, &config, epoch);
	CHECK(e && e->n == RECORDS);
	return e;
}

/* ---- every record once, the same for all ---- */

static void check_same(const struct epoch *a, const struct epoch *b)
{
	size_t wrong = 0;

	CHECK(memcmp(a->data, b->data, sizeof a->data) == 0);
	for (size_t i = 0; i < RECORDS; i++)
		wrong += b->seen[i] != 1 || b->labels[i] != label_of(i);
	CHECK(wrong == 0);
}

static void test_epochs(const char *name)
{
	static const int workers[] = {1, 3}, threads[] = {0, 1, 5};
	struct mu_input_config config = base_config(name);
	struct epoch *first, *other;

	config.threads = 0;
	first = read_epoch(config, 0);
	for (size_t i = 0; i < 6; i++) {
		config.num_workers = workers[i % 2];
		config.threads = threads[i / 2];
		config.prefetch = 1 + i;
		other = read_epoch(config, 0);
		check_same(first, other);
		if (config.num_workers == 1)
			CHECK(memcmp(first->order, other->order, sizeof first->order) == 0);
		free(other);
	}
	other = read_epoch(config, 1);
	CHECK(memcmp(first->order, other->order, sizeof first->order) != 0);
	CHECK(memcmp(first->data, other->data, sizeof first->data) != 0);
	for (size_t i = 0; i < RECORDS; i++)
		CHECK(other->seen[i] == 1);
	free(other);
	free(first);
}

/* Without augmentation a sample is the middle of its picture. */
static void test_values(void)
{
	struct mu_input_config config = base_config("raw.h5");
	struct epoch *e;
	size_t wrong = 0;

	settings.augment = (struct mu_augment){0};
	e = read_epoch(config, 0);
	for (size_t k = 0; k < RECORDS * SAMPLE; k++) {
		size_t i = k / SAMPLE, c = k % SAMPLE / (SIDE * SIDE), y = k / SIDE % SIDE + 2;
		size_t x = k % SIDE + 2, j = (y * RAW + x) * 3 + c;

		wrong += e->data[i][k % SAMPLE] !=
			 (float)(uint8_t)(i * 31 + j * 7) / settings.std[c];
	}
	CHECK(wrong == 0);
	free(e);
}

/* Runs of 10 records stay together, in another order each time. */
static void test_chunks(void)
{
	struct mu_input_config config = base_config("raw.h5");
	struct epoch *e;
	size_t moved = 0, inner = 0;

	config.shuffle_chunk = 10;
	e = read_epoch(config, 0);
	for (size_t i = 0; i < RECORDS;) {
		size_t chunk = e->order[i] / 10, m = chunk == RECORDS / 10 ? RECORDS % 10 : 10;

		moved += chunk != i / 10;
		for (size_t j = 0; j < m; j++, i++) {
			CHECK(e->order[i] / 10 == chunk && e->seen[e->order[i]] == 1);
			inner += e->order[i] % 10 != j;
		}
	}
	CHECK(moved > 10 && inner > 100);
	free(e);
}

/* Steps in any order, read and lent, and an epoch begun anew in the middle of one. */
static void test_jumps(void)
{
	static float data[2][BATCH * SAMPLE];
	float labels[2][BATCH];
	uint32_t ids[2][BATCH];
	struct mu_input_config config = base_config("images.rec");
	struct mu_input_batch got[2];
	struct mu_input plain, threaded;

	CHECK(mu_input_open(&threaded, &config) == MU_OK);
	CHECK(mu_input_prefetch_bytes(&threaded) ==
	      3 * BATCH * ((SAMPLE + 1) * sizeof(float) + sizeof(uint32_t)));
	config.threads = 0;
	CHECK(mu_input_open(&plain, &config) == MU_OK);
	CHECK(mu_input_prefetch_bytes(&plain) == 0);
	for (size_t i = 0; i < 80; i++) {
		size_t step = i % 7 < 3 ? i % 7 : i % 7 < 5 ? i / 4 : i * 11 % plain.steps;

		for (int k = 0; k < 2; k++) {
			struct mu_input *in = k ? &plain : &threaded;

			if (i % 13 == 5)
				CHECK(mu_input_epoch(in, (uint32_t)i) == MU_OK);
			got[k] = (struct mu_input_batch){
				.data = data[k], .labels = labels[k], .ids = ids[k]};
			CHECK((i / 3 % 2 ? mu_input_borrow : mu_input_read)(in, step, &got[k]) ==
			      MU_OK);
		}
		CHECK((got[0].data == data[0]) == (i / 3 % 2 == 0) && got[1].data == data[1]);
		CHECK(got[0].count == got[1].count);
		CHECK(memcmp(got[0].ids, ids[1], got[0].count * sizeof ids[0][0]) == 0);
		CHECK(memcmp(got[0].labels, labels[1], got[0].count * sizeof(float)) == 0);
		CHECK(memcmp(got[0].data, data[1], got[0].count * SAMPLE * sizeof(float)) == 0);
	}
	CHECK(mu_input_borrow(&threaded, threaded.steps, got) == MU_OK && got->count == 0);
	CHECK(mu_input_read(&threaded, threaded.steps, got) == MU_OK && got->count == 0);
	mu_input_close(&plain);
	mu_input_close(&threaded);
}

/* Bytes of memory that this process uses now. */
static double resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long all = 0, pages = 0;

	if (f) {
		CHECK(fscanf(f, "%lu %lu", &all, &pages) == 2);
		fclose(f);
	}
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* A file of many times the batches that are kept ready takes no more memory than they do. */
static void test_memory(void)
{
	enum { LARGE = 64, MANY = 2000, MEGABYTES = 4 };
	static uint8_t pixels[3 * LARGE * LARGE];
	const struct mu_data_file_config file = {
		.kind = MU_RECORD_RAW, .shape = MU_SAMPLE(3, LARGE, LARGE), .creator = "test"};
	struct mu_input_config config = base_config("large.h5");
	static float data[BATCH * 3 * LARGE * LARGE], labels[BATCH];
	uint32_t ids[BATCH];
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
	struct mu_data_writer *w;
	struct mu_input in;
	double before;

	if (!CHECK(mu_data_file_create(&w, path_of("large.h5"), &file) == MU_OK))
		return;
	for (size_t i = 0; i < MANY; i++) {
		struct mu_record record = {
			.data = pixels, .n = sizeof pixels, .n_labels = 1, .labels = &(float){0}};

		pixels[i] = 1;
		CHECK(mu_data_file_write(w, &record) == MU_OK);
	}
	CHECK(mu_data_file_finish(w, true) == MU_OK);
	memset(data, 0, sizeof data);
	config.shape = (struct mu_shape)MU_SAMPLE(3, LARGE, LARGE);
	before = resident();
	CHECK(mu_input_open(&in, &config) == MU_OK);
	CHECK(mu_input_prefetch_bytes(&in) < MEGABYTES << 20);
	for (size_t t = 0; t < in.steps; t++)
		CHECK(mu_input_read(&in, t, &batch) == MU_OK);
#ifndef MU_SANITIZED /* which keeps what is freed */
	CHECK(MANY * sizeof pixels > 5 * (MEGABYTES << 20));
	CHECK(resident() - before < MEGABYTES << 20);
#endif
	(void)before;
	mu_input_close(&in);
	unlink(path_of("large.h5"));
}

/* ---- what is wrong ---- */

/* Behind the samples that count there are copies of them, or nothing. */
static void check_filled(const struct mu_input_batch *batch, size_t all)
{
	for (size_t i = batch->count; i < all; i++) {
		const float *sample = batch->data + i * SAMPLE;
		size_t same = 0, zeros = 0;

		for (size_t j = 0; j < batch->count; j++)
			same += memcmp(sample, batch->data + j * SAMPLE, SAMPLE * sizeof *sample) ==
				0;
		for (size_t k = 0; k < SAMPLE; k++)
			zeros += sample[k] == 0;
		CHECK(batch->count ? same > 0 : zeros == SAMPLE);
	}
}

/* Every good record once; *n is their number. */
static enum mu_status read_all(struct mu_input *in, size_t *n)
{
	static float data[BATCH * SAMPLE], labels[BATCH];
	uint32_t ids[BATCH];
	int seen[RECORDS] = {0};
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
	enum mu_status st = mu_input_epoch(in, 0);

	*n = 0;
	for (size_t t = 0; st == MU_OK && t < in->steps; t++) {
		for (size_t k = 0; k < BATCH * SAMPLE; k++)
			data[k] = -1000;
		st = mu_input_read(in, t, &batch);
		for (size_t i = 0; st == MU_OK && i < batch.count; i++)
			CHECK(ids[i] != BAD && labels[i] == label_of(ids[i]) && !seen[ids[i]]++);
		if (st == MU_OK)
			check_filled(&batch, mu_input_count(in, t));
		*n += batch.count;
	}
	return st;
}

static void test_bad_record(void)
{
	struct mu_input_config config = base_config("bad.rec");
	struct mu_input in;
	size_t n;

	write_rec("bad.rec", RECORDS, true);
	for (config.threads = 0; config.threads < 4; config.threads += 3) {
		config.skip_bad_records = false;
		CHECK(mu_input_open(&in, &config) == MU_OK);
		CHECK(read_all(&in, &n) == MU_ERR_FORMAT);
		CHECK_HAS(mu_trace_message(), "bad.rec, record 77");
		CHECK_HAS(mu_trace_message(), "id 1077");
		CHECK_HAS(mu_trace_message(), "JPEG image of ");
		mu_trace_clear();
		mu_input_close(&in);
		config.skip_bad_records = true;
		for (config.batch = 1; config.batch <= BATCH; config.batch += BATCH - 1) {
			CHECK(mu_input_open(&in, &config) == MU_OK);
			CHECK(read_all(&in, &n) == MU_OK && n == RECORDS - 1 && in.n_bad == 1);
			mu_input_close(&in);
		}
		config.batch = BATCH;
	}
}

static void check_refused(const struct mu_input_config *config, enum mu_status want,
			  const char *part)
{
	struct mu_input in;

	CHECK(mu_input_open(&in, config) == want);
	CHECK_HAS(mu_trace_message(), part);
	mu_trace_clear();
}

static void test_refused(void)
{
	struct mu_input_config config = base_config("images.rec");

	config.num_workers = 30;
	check_refused(&config, MU_ERR_USAGE, "the largest possible is 6");
	config = base_config("images.rec");
	config.classes = 0;
	check_refused(&config, MU_ERR_USAGE,
		      "does not say how many classes there are: number of classes is needed");
	config = base_config("images.rec");
	config.shape.dims[1] = 4;
	check_refused(&config, MU_ERR_USAGE, "1 channel or 3");
	config = base_config("images.rec");
	settings.augment.random_resized_crop = true;
	check_refused(&config, MU_ERR_USAGE, "random-resized-crop");
	config = base_config("images.rec");
	config.prefetch = 0;
	check_refused(&config, MU_ERR_ARGUMENT, "prefetch");
	config = base_config("images.rec");
	config.prefetch = (size_t)1 << 50;
	check_refused(&config, MU_ERR_MEMORY, "prefetch buffer 1125899906842624 needs");
	config = base_config("none.rec");
	check_refused(&config, MU_ERR_IO, "none.rec");
}

/* A file that is replaced or cut while it is in use. */
static void test_changed_file(void)
{
	struct mu_input_config config = base_config("short.rec");
	struct mu_input in;
	size_t n;

	write_rec("short.rec", 50, false);
	CHECK(mu_input_open(&in, &config) == MU_OK);
	CHECK(truncate(path_of("short.rec"), 1 << 20) == 0); /* all records are still there */
	CHECK(mu_input_epoch(&in, 1) == MU_ERR_IO);
	mu_trace_clear();
	mu_input_close(&in);
	write_rec("short.rec", 50, false);
	CHECK(mu_input_open(&in, &config) == MU_OK);
	CHECK(mu_input_epoch(&in, 0) == MU_OK);
	CHECK(truncate(path_of("short.rec"), 5000) == 0);
	CHECK(read_all(&in, &n) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "short.rec");
	mu_trace_clear();
	mu_input_close(&in);
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_ERROR});
	write_rec("images.rec", RECORDS, false);
	test_epochs("images.rec");
	test_jumps();
	if (mu_array_file_supported()) {
		write_h5("raw.h5");
		test_epochs("raw.h5");
		test_values();
		test_chunks();
		test_memory();
	}
	test_bad_record();
	test_refused();
	test_changed_file();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
