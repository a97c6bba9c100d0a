/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 7 */
/*
 * Whole training runs through mu_train on a small data set made here: N workers of batch b train
 * the same model as one worker of batch N b; the same run twice gives the same bits; so do other
 * numbers of servers; dist_async learns.
 */
#include <muster/base.h>
#include <muster/comm.h>
#include <muster/storage.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"

struct job {
	MPI_Comm comm;
	const char *store, *optimizer, *model;
	int servers, batch;
};

static enum mu_status run(const struct job *job, const char *folder)
{
	char line[4 * SCRATCH_BYTES];

	snprintf(line, sizeof line,
		 "trainer --network lenet --data-dir %s --overwrite --model-prefix %s/%s "
		 "--num-epochs 2 --lr 0.01 --disp-batches 1000 --kv-store %s --optimizer %s "
		 "--batch-size %d --num-servers %d",
		 folder, folder, job->model, job->store, job->optimizer, job->batch,
		 job->servers ? job->servers : -1);
	return fit_run(job->comm, line);
}

/* Largest difference between arrays of two models; they are in plain order in the files. */
static double difference(const char *folder, const char *a, const char *b)
{
	static const struct fit_array arrays[] = {
		{"arg/convolution0_weight", 4, {20, 1, 5, 5}},
		{"arg/convolution1_weight", 4, {50, 20, 5, 5}},
		{"arg/convolution1_bias", 1, {50}},
		{"arg/fullyconnected0_weight", 2, {500, 800}},
		{"arg/fullyconnected1_bias", 1, {10}},
	};
	static float x[400000], y[400000];
	const char *names[2] = {a, b};
	float *values[2] = {x, y};
	double worst = 0;

	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		size_t n = 1;

		for (int d = 0; d < arrays[i].ndims; d++)
			n *= arrays[i].dims[d];
		for (int f = 0; f < 2; f++) {
			char path[2 * SCRATCH_BYTES];

			snprintf(path, sizeof path, "%s/%s-0002.h5", folder, names[f]);
			if (!fit_read_array(path, &arrays[i], values[f]))
				return INFINITY;
		}
		for (size_t k = 0; k < n; k++)
			worst = fmax(worst, fabs((double)x[k] - (double)y[k]));
	}
	return worst;
}

/* A model file for mlp in which one bias is NaN; everything else is zero. */
static void write_spoilt(const char *folder)
{
	static const struct {
		const char *name;
		int ndims;
		size_t dims[2];
	} arrays[] = {
		{"arg/fc1_weight", 2, {128, 784}}, {"arg/fc1_bias", 1, {128}},
		{"arg/fc2_weight", 2, {64, 128}},  {"arg/fc2_bias", 1, {64}},
		{"arg/fc3_weight", 2, {10, 64}},   {"arg/fc3_bias", 1, {10}},
	};
	static float values[128 * 784];
	struct mu_array_file *file = NULL;
	char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/spoilt-0001.h5", folder);
	CHECK(mu_array_file_create(&file, path) == MU_OK);
	CHECK(mu_array_file_set_text(file, "network", "mlp") == MU_OK);
	CHECK(mu_array_file_set_text(file, "num_layers", "0") == MU_OK);
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		values[0] = i == 1 ? NAN : 0;
		CHECK(mu_array_file_write(file, arrays[i].name, arrays[i].ndims, arrays[i].dims,
					  values) == MU_OK);
	}
	CHECK(mu_array_file_close(file, true) == MU_OK);
}

/* relu on oneDNN makes 0 of NaN, so the loss does not show it; the end of the epoch must. */
static void test_hidden(MPI_Comm world, const char *folder)
{
	char line[4 * SCRATCH_BYTES];

	write_spoilt(folder);
	snprintf(line, sizeof line,
		 "trainer --network mlp --data-dir %s --model-prefix %s/spoilt --load-epoch 1 "
		 "--num-epochs 2 --lr 0.01 --batch-size 20",
		 folder, folder);
	CHECK(fit_run(world, line) == MU_ERR_NUMERIC);
	CHECK_HAS(mu_trace_message(), "not finite");
	mu_trace_clear();
}

static void test_one(MPI_Comm world, const char *folder)
{
	struct job job = {world, "local", "sgd", "a", 0, 12};

	CHECK(run(&job, folder) == MU_OK);
	job.model = "b";
	CHECK(run(&job, folder) == MU_OK);
	CHECK(difference(folder, "a", "b") == 0);
	job.batch = 13;
	CHECK(run(&job, folder) == MU_OK);
	CHECK(difference(folder, "a", "b") > 1e-6);
	test_hidden(world, folder);
}

/*
 * Tolerance: sums of gradients in another order differ in the last bits of float32, and a few steps
 * carry that along. (Many steps at a high rate do not stay close: where two values of a pooling
 * window nearly tie, rounding decides.)
 */
static void test_several(MPI_Comm world, const char *folder, int rank, int size)
{
	int workers = size - 1;
	struct job job = {world, "dist_sync", "sgd", "sync", 1, 16}, one;
	MPI_Comm alone;

	CHECK(run(&job, folder) == MU_OK);
	job.model = "again";
	CHECK(run(&job, folder) == MU_OK);
	MPI_Comm_split(world, rank == 0 ? 0 : MPI_UNDEFINED, 0, &alone);
	if (rank == 0) {
		one = (struct job){alone, "local", "sgd", "one", 0, 16 * workers};
		CHECK(run(&one, folder) == MU_OK);
		CHECK(difference(folder, "sync", "again") == 0);
		CHECK_NEAR(difference(folder, "sync", "one"), 0, 2e-5);
		MPI_Comm_free(&alone);
	}
	CHECK(mu_barrier(world) == MU_OK);
	job = (struct job){world, "dist_async", "sgd", "async", 1, 16};
	CHECK(run(&job, folder) == MU_OK);
	if (rank == 0)
		CHECK(difference(folder, "async", "sync") > 0 || workers == 1);
}

int main(int argc, char **argv)
{
	char folder[SCRATCH_BYTES] = "";
	MPI_Comm world;
	long failures;
	int rank, size;

	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	if (!mu_array_file_supported()) {
		if (rank == 0)
			printf("skipped: this build has no HDF5\n");
		return mu_world_close(&world, CHECK_SKIPPED);
	}
	if (rank == 0) {
		CHECK(scratch_make(folder));
		fit_write_data(folder);
	}
	CHECK(mu_bcast(folder, sizeof folder, 0, world) == MU_OK);
	if (size == 1)
		test_one(world, folder);
	else
		test_several(world, folder, rank, size);
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	if (rank == 0)
		scratch_remove(folder);
	return mu_world_close(&world, failures ? 1 : 0);
}
