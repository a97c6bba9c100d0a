/* SPDX-License-Identifier: Apache-2.0 */
/* Files of pictures for the tests of the threads of the input, and how they are read. */
#ifndef MUSTER_PIPELINE_DATA_H
#define MUSTER_PIPELINE_DATA_H

#include <muster/input.h>
#include <muster/pictures.h>
#include <muster/records.h>
#include <muster/storage.h>

#include <stdlib.h>

#include "check.h"
#include "image_files.h"
#include "scratch.h"

enum { RECORDS = 203, BATCH = 8, SIDE = 12, SAMPLE = 3 * SIDE * SIDE, RAW = 16, BAD = 77 };

static char folder[SCRATCH_BYTES];

static const char *path_of(const char *name)
{
	static char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static float label_of(size_t i)
{
	return (float)(i * 7 % 10);
}

/* Images of several sizes; bad: record BAD is cut short. */
static void write_rec(const char *name, size_t records, bool bad)
{
	struct mu_recordio_writer *w;
	struct mu_record_buffer buffer = {0};

	if (!CHECK(mu_recordio_create(&w, path_of(name), NULL) == MU_OK))
		return;
	for (size_t i = 0; i < records; i++) {
		const struct image_file f = {.h = 14 + i % 9,
					     .w = 30 - i % 13,
					     .across = 2,
					     .down = 2,
					     .seed = (unsigned)i};
		struct mu_record record = {.id = 1000 + i, .n_labels = 1};
		float label = label_of(i);
		const uint8_t *payload;
		uint8_t *jpeg;
		size_t n;

		jpeg = i % 10 ? image_file_jpeg(&f, &record.n)
			      : image_file_png(&f, 8, false, &record.n);
		if (bad && i == BAD)
			record.n = 300;
		record.data = jpeg;
		record.labels = &label;
		CHECK(mu_record_pack(&record, &buffer, &payload, &n) == MU_OK);
		CHECK(mu_recordio_write(w, i, payload, n) == MU_OK);
		free(jpeg);
	}
	CHECK(mu_recordio_finish(w, true) == MU_OK);
	mu_record_buffer_release(&buffer);
}

static inline void write_h5(const char *name)
{
	const struct mu_data_file_config config = {
		.kind = MU_RECORD_RAW, .shape = MU_SAMPLE(3, RAW, RAW), .creator = "test"};
	static uint8_t pixels[3 * RAW * RAW];
	struct mu_data_writer *w;

	if (!CHECK(mu_data_file_create(&w, path_of(name), &config) == MU_OK))
		return;
	for (size_t i = 0; i < RECORDS; i++) {
		float label = label_of(i);
		struct mu_record record = {.data = pixels,
					   .n = sizeof pixels,
					   .id = i,
					   .n_labels = 1,
					   .labels = &label};

		for (size_t j = 0; j < sizeof pixels; j++)
			pixels[j] = (uint8_t)(i * 31 + j * 7);
		CHECK(mu_data_file_write(w, &record) == MU_OK);
	}
	CHECK(mu_data_file_finish(w, true) == MU_OK);
}

static struct mu_picture_settings settings;

static struct mu_input_config base_config(const char *name)
{
	settings = (struct mu_picture_settings){
		.net_shape = MU_SAMPLE(3, SIDE, SIDE),
		.std = {1, 2, 3},
		.augment = {.pad = 2, .fill = 50, .random_crop = true, .random_mirror = true},
	};
	return (struct mu_input_config){
		.reader = "records",
		.paths = path_of(name),
		.settings = &settings,
		.shape = MU_SAMPLE(3, SIDE, SIDE),
		.classes = 10,
		.batch = BATCH,
		.num_workers = 1,
		.shuffle = true,
		.seed = 4,
		.threads = 2,
		.prefetch = 3,
	};
}

#endif
