/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 5 */
/*
 * Records in memory that the ranks of a node share: every worker reads the same samples as without
 * that, of all workers' shares, and no longer from the file. Files that are in memory anyway, and
 * memory for which there is no room.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/input.h>
#include <muster/pictures.h>

#include "../lib/check.h"
#include "../lib/scratch.h"
#include "../lib/store_job.h"

enum { RECORDS = 37, BATCH = 3, PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS };

static char folder[SCRATCH_BYTES], path[2 * SCRATCH_BYTES];

/* A file of CIFAR-10's format. The second time: other pixels, the same size and time of change. */
static void write_file(unsigned add)
{
	static unsigned char bytes[RECORDS * RECORD];
	struct stat before = {0};
	int fd;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i % RECORD ? i * i % 251 + add : i / RECORD % 10);
	stat(path, &before);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	CHECK(write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
	if (before.st_size > 0)
		CHECK(futimens(fd, (const struct timespec[]){before.st_atim, before.st_mtim}) == 0);
	close(fd);
}

static struct mu_input_config config_of(int worker)
{
	static const struct mu_picture_settings settings = {.std = {1, 1, 1}};

	return (struct mu_input_config){
		.reader = "records",
		.paths = path,
		.settings = &settings,
		.classes = 10,
		.label_width = 1,
		.batch = BATCH,
		.worker = worker,
		.num_workers = members.num_workers,
		.shuffle = true,
		.seed = 7,
		.threads = worker % 2, /* with and without threads */
		.prefetch = 2,
	};
}

/* The hash of all samples, labels and numbers of an epoch. */
static uint64_t hash_epoch(struct mu_input *in, uint32_t epoch)
{
	static float data[BATCH * PIXELS];
	float labels[BATCH];
	uint32_t ids[BATCH];
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = ids};
	uint64_t hash = 0;

	must(mu_input_epoch(in, epoch));
	for (size_t t = 0; t < in->steps; t++) {
		must(mu_input_read(in, t, &batch));
		hash = hash * 31 + hash_floats(data, batch.count * PIXELS);
		hash = hash * 31 + hash_floats(labels, batch.count);
		for (size_t i = 0; i < batch.count; i++)
			hash = hash * 31 + ids[i];
	}
	return hash;
}

static void test_same(void)
{
	const bool worker = members.role == MU_ROLE_WORKER;
	struct mu_input_config config = config_of(members.index);
	struct mu_input in = {.n = 0};
	uint64_t expected[2] = {0}, changed = 0;
	size_t bytes = 0;

	if (rank == 0)
		write_file(0);
	must(mu_barrier(world));
	if (worker) {
		must(mu_input_open(&in, &config));
		for (uint32_t e = 0; e < 2; e++)
			expected[e] = hash_epoch(&in, e);
		mu_input_close(&in);
		must(mu_input_open(&in, &config));
	}
	must(mu_input_cache(worker ? &in : NULL, &members.topology, &bytes));
	CHECK(bytes >= (size_t)RECORDS * PIXELS);
	must(mu_barrier(world));
	if (rank == 0)
		write_file(3);
	must(mu_barrier(world));
	for (uint32_t e = 0; worker && e < 2; e++)
		CHECK(hash_epoch(&in, e) == expected[e]);
	mu_input_close(&in);
	if (worker) { /* the file did change */
		must(mu_input_open(&in, &config));
		changed = hash_epoch(&in, 0);
		CHECK(changed != expected[0]);
		mu_input_close(&in);
	}
	must(mu_barrier(world));
	if (rank == 0)
		unlink(path);
}

static void test_refused(void)
{
	const bool worker = members.role == MU_ROLE_WORKER;
	const struct mu_input_config config = {.reader = "synthetic",
					       .shape = MU_SAMPLE(1, 4, 4),
					       .classes = 2,
					       .batch = 1,
					       .worker = members.index,
					       .num_workers = members.num_workers,
					       .num_examples = 16};
	struct mu_input in;
	size_t bytes;

	if (worker)
		must(mu_input_open(&in, &config));
	CHECK(mu_input_cache(worker ? &in : NULL, &members.topology, &bytes) ==
	      (worker ? MU_ERR_USAGE : MU_ERR_PEER));
	if (worker)
		CHECK_HAS(mu_trace_message(), "not for synthetic data");
	mu_trace_clear();
	if (worker)
		mu_input_close(&in);
}

static void once(void)
{
	if (rank == 0)
		CHECK(scratch_make(folder));
	must(mu_bcast(folder, sizeof folder, 0, world));
	snprintf(path, sizeof path, "%s/data_batch_1.bin", folder);
}

static void each(void)
{
	test_same();
	test_refused();
	must(mu_barrier(world));
	if (rank == 0 && members.num_servers + 1 >= (size < 4 ? size : 4))
		scratch_remove(folder);
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
