/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/*
 * The column `record` of the options table: a checkpoint holds the value of each option that has
 * one, and of no other, and a resumed run with another value is refused or warned as it says.
 */
#include "conf/rules.h"

#include <muster/storage.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"

enum { LINE_BYTES = 2 * SCRATCH_BYTES };

/* A text is the only data that all recorded options are about. */
static bool write_text(const char *folder)
{
	char path[LINE_BYTES];
	FILE *file;

	snprintf(path, sizeof path, "%s/words.txt", folder);
	file = fopen(path, "w");
	for (int i = 0; file && i < 32; i++)
		fprintf(file, "w%d w%d w%d w%d w%d w%d\n", i % 3, i % 5, i % 7, i % 2, i % 4, i);
	return file && fclose(file) == 0;
}

static enum mu_status train(const char *folder, int epochs, const char *more)
{
	char line[3 * LINE_BYTES];

	mu_trace_clear();
	snprintf(line, sizeof line,
		 "trainer --network lstm --num-hidden 4 --num-embed 4 --num-layers 1 --batch-size "
		 "4 --data-train %s/words.txt --buckets 8 --num-batches 1 --lr 0.1 --mom 0.8 "
		 "--label-smoothing "
		 "0.2 --dropout 0.25 --num-epochs %d --model-prefix %s/P %s",
		 folder, epochs, folder, more);
	return fit_run(MPI_COMM_WORLD, line);
}

static void check_columns(struct mu_array_file *file)
{
	size_t n = 0;

	for (size_t i = 0; i < mu_conf_n_options; i++) {
		const struct mu_option *option = &mu_conf_options[i];
		bool there = false;

		if (strcmp(option->name, "version") == 0) /* the format's version is an attribute */
			continue;
		CHECK(mu_array_file_has_text(file, option->name, &there) == MU_OK);
		if (!CHECK(there == (option->record != MU_UNRECORDED)))
			fprintf(stderr, "    --%s is %srecorded\n", option->name,
				there ? "" : "not ");
		n += there;
	}
	CHECK(n > 30);
}

/* As files of earlier versions have them. */
static void check_values(struct mu_array_file *file)
{
	static const struct {
		const char *name, *text;
	} values[] = {
		{"network", "lstm"},
		{"dtype", "float32"},
		{"optimizer", "sgd"},
		{"mom", "0.80000000000000004"},
		{"lr", "0.10000000000000001"},
		{"label-smoothing", "0.2"},
		{"num-batches", "1"},
		{"fixed", "none"},
		{"kv-store", "device"},
		{"devices", "cpu"},
		{"conv-algo", "auto"},
		{"loss-scale", "by --dtype"},
		{"shuffle", "1"},
		{"buckets", "8"},
		{"dropout", "0.25"},
		{"lr-schedule", "constant - 0.1 1 2 0 linear 0 0"},
	};
	char text[256];

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		CHECK(mu_array_file_get_text(file, values[i].name, text, sizeof text) == MU_OK);
		CHECK_TEXT(text, values[i].text);
	}
}

/* A run that resumes with another value. */
static void check_kinds(const char *folder)
{
	static const struct {
		const char *more, *refused; /* NULL: done */
	} runs[] = {
		{"--resume auto --num-layers 2", "was saved with num-layers 1"}, /* identity */
		{"--resume auto --seed 8", "--override"},                        /* training */
		{"--resume auto --mom 0.80000000000000016", "--override"},
		{"--resume auto --label-smoothing 0.3", NULL}, /* told */
		{"--resume auto --load-epoch 0 --seed 8 --override seed", NULL},
	};

	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		const enum mu_status st = train(folder, 2 + (int)i, runs[i].more);

		if (!CHECK(st == (runs[i].refused ? MU_ERR_FORMAT : MU_OK)))
			fprintf(stderr, "    %s: %s\n", runs[i].more, mu_trace_message());
		if (runs[i].refused)
			CHECK_HAS(mu_trace_message(), runs[i].refused);
	}
}

int main(int argc, char *argv[])
{
	char folder[SCRATCH_BYTES], path[LINE_BYTES];
	struct mu_array_file *file = NULL;

	MPI_Init(&argc, &argv);
	if (!mu_array_file_supported()) {
		printf("skipped: this build has no HDF5\n");
		MPI_Finalize();
		return CHECK_SKIPPED;
	}
	if (CHECK(scratch_make(folder))) {
		CHECK(write_text(folder));
		CHECK(train(folder, 1, "") == MU_OK);
		snprintf(path, sizeof path, "%s/P-0001.h5", folder);
		if (CHECK(mu_array_file_open(&file, path) == MU_OK)) {
			check_columns(file);
			check_values(file);
			mu_array_file_close(file, false);
		}
		check_kinds(folder);
		scratch_remove(folder);
	}
	MPI_Finalize();
	return check_failures() ? 1 : 0;
}
