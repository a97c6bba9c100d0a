/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * An epoch of images in tar files: the samples of the same images in a .rec file, bit for bit, in
 * whatever order and by however many threads; and each sample once where the second half of an
 * epoch is read by other workers than the first.
 */
#include <string.h>

#include "../lib/pipeline_data.h"
#include "../lib/tar_data.h"

enum { FILES = 3, LABEL_BYTES = 16 };

/* The images of a .rec file, in FILES tar files. */
static void write_tars(const char *rec)
{
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	char name[64], text[LABEL_BYTES];

	if (!CHECK(mu_records_open(&r, path_of(rec), NULL) == MU_OK))
		return;
	mu_records_info(r, &info);
	for (size_t k = 0; k < FILES; k++) {
		for (size_t i = info.n * k / FILES; i < info.n * (k + 1) / FILES; i++) {
			CHECK(mu_records_read(r, i, &buffer, &record) == MU_OK);
			snprintf(name, sizeof name, "%03zu.%s", i, i % 10 ? "jpg" : "png");
			tar_add(name, record.data, record.n, '0');
			snprintf(name, sizeof name, "%03zu.cls", i);
			snprintf(text, sizeof text, "%g\n", (double)record.labels[0]);
			tar_text(name, text);
		}
		tar_end();
		snprintf(name, sizeof name, "x-%zu.tar", k);
		tar_save(path_of(name));
	}
	mu_record_buffer_release(&buffer);
	mu_records_close(r);
}

/* Two sets of the same images: the same epochs. */
static void compare(const struct mu_input_config *like, int threads)
{
	static float data[2][BATCH * SAMPLE];
	float labels[2][BATCH];
	uint32_t ids[2][BATCH];
	struct mu_input_config config = *like;
	struct mu_input_batch got[2];
	struct mu_input in[2];
	char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s", path_of("x.rec"));
	for (int k = 0; k < 2; k++) {
		config.paths = k == 0 ? path : path_of("x-{0..2}.tar");
		config.threads = k == 0 ? 0 : threads;
		if (!CHECK(mu_input_open(&in[k], &config) == MU_OK)) {
			mu_trace_print(stderr, config.paths);
			return;
		}
		got[k] = (struct mu_input_batch){
			.data = data[k], .labels = labels[k], .ids = ids[k]};
	}
	CHECK(in[0].n == in[1].n && in[0].steps == in[1].steps);
	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		for (int k = 0; k < 2; k++)
			CHECK(mu_input_epoch(&in[k], epoch) == MU_OK);
		for (size_t step = 0; step < in[0].steps; step++) {
			for (int k = 0; k < 2; k++)
				CHECK(mu_input_read(&in[k], step, &got[k]) == MU_OK);
			CHECK(got[0].count == got[1].count);
			CHECK(memcmp(ids[0], ids[1], got[0].count * sizeof ids[0][0]) == 0);
			CHECK(memcmp(labels[0], labels[1], got[0].count * sizeof(float)) == 0);
			CHECK(memcmp(data[0], data[1], got[0].count * SAMPLE * sizeof(float)) == 0);
		}
	}
	for (int k = 0; k < 2; k++)
		mu_input_close(&in[k]);
}

/* The first half of the steps of an epoch (from 0), or those from `from` on, by all workers;
 * returns the half. */
static size_t read_steps(int workers, size_t batch, size_t from, int *seen)
{
	static float data[BATCH * SAMPLE];
	float labels[BATCH];
	uint32_t ids[BATCH];
	struct mu_input_batch got = {.data = data, .labels = labels, .ids = ids};
	struct mu_input_config config = base_config("x-{0..2}.tar");
	size_t steps = 0;

	config.num_workers = workers;
	config.batch = batch;
	for (config.worker = 0; config.worker < workers; config.worker++) {
		struct mu_input in;

		if (!CHECK(mu_input_open(&in, &config) == MU_OK))
			return 0;
		CHECK(mu_input_epoch(&in, 5) == MU_OK);
		steps = in.steps / 2;
		for (size_t step = from; step < (from ? in.steps : steps); step++) {
			CHECK(mu_input_read(&in, step, &got) == MU_OK);
			for (size_t i = 0; i < got.count; i++) {
				CHECK(got.labels[i] == label_of(got.ids[i]));
				seen[got.ids[i]]++;
			}
		}
		mu_input_close(&in);
	}
	return steps;
}

/* Two workers with batches of 6 read the first half, three with batches of 4 the rest. */
static void test_other_workers(void)
{
	int seen[RECORDS] = {0};
	const size_t half = read_steps(2, 6, 0, seen);
	size_t some = 0;

	for (size_t i = 0; i < RECORDS; i++)
		some += seen[i] == 1;
	CHECK(half > 0 && some == 12 * half);
	read_steps(3, 4, half, seen);
	for (size_t i = 0; i < RECORDS; i++)
		CHECK(seen[i] == 1);
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	write_rec("x.rec", RECORDS, false);
	write_tars("x.rec");
	for (int threads = 0; threads < 4; threads++) {
		struct mu_input_config config = base_config("x.rec");

		compare(&config, threads);
		config.shuffle_chunk = 32;
		compare(&config, threads);
		config.shuffle = false;
		compare(&config, threads);
		config.held_out = 0.2;
		compare(&config, threads);
	}
	test_other_workers();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
