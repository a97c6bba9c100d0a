/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 2 @np-full 1 2 3 */
/*
 * Gradient accumulation: with --update-period K, K batches of b train what one batch of K b trains,
 * with one worker and with several, and auxiliary values of batch-norm are averaged over all
 * batches of an update. The epoch's last update is shorter, and in its last batch a worker has no
 * samples.
 */
#include <muster/base.h>
#include <muster/comm.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"

struct job {
	MPI_Comm comm;
	const char *folder, *network, *model, *more;
	int workers, batch, period, epochs;
};

static void run(const struct job *job)
{
	char line[4 * SCRATCH_BYTES];

	snprintf(
		line, sizeof line,
		"trainer --network %s --data-dir %s --overwrite --model-prefix %s/%s "
		"--num-epochs %d --lr 0.01 "
		"--disp-batches 1000 --batch-size %d --update-period %d %s",
		job->network, job->folder, job->folder, job->model, job->epochs, job->batch,
		job->period, job->more);
	CHECK(fit_run(job->comm, line) == MU_OK);
}

static bool read_model(const struct job *job, const struct fit_array *array, float *out)
{
	char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s-%04d.h5", job->folder, job->model, job->epochs);
	return fit_read_array(path, array, out);
}

/* Largest difference between the models of two jobs. */
static double difference(const struct job *a, const struct job *b)
{
	static const struct fit_array arrays[] = {
		{"arg/convolution0_weight", 4, {20, 1, 5, 5}},
		{"arg/convolution1_bias", 1, {50}},
		{"arg/fullyconnected0_weight", 2, {500, 800}},
		{"arg/fullyconnected1_bias", 1, {10}},
	};
	static float x[400000], y[400000];
	double worst = 0;

	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		size_t n = arrays[i].dims[0];

		for (int d = 1; d < arrays[i].ndims; d++)
			n *= arrays[i].dims[d];
		if (!read_model(a, &arrays[i], x) || !read_model(b, &arrays[i], y))
			return INFINITY;
		for (size_t k = 0; k < n; k++)
			worst = fmax(worst, fabs((double)x[k] - (double)y[k]));
	}
	return worst;
}

/*
 * Tolerance: gradients are summed in another order, which changes the last bits, and a few small
 * steps carry that along.
 */
static void test_weights(const struct job *like, int rank, int period)
{
	struct job parts = *like, again = *like, whole = *like, single = *like;

	parts.model = "parts";
	again.model = "again";
	parts.period = again.period = period;
	whole.model = "whole";
	whole.batch *= period;
	single.model = "single";
	run(&parts);
	run(&again);
	run(&whole);
	run(&single);
	if (rank != 0)
		return;
	CHECK(difference(&parts, &again) == 0);
	CHECK_NEAR(difference(&parts, &whole), 0, 2e-5);
	CHECK(difference(&parts, &single) > 1e-4);
}

/* Samples of a worker's batch: [first, first + n) of the data. */
struct range {
	size_t first, n;
};

static struct range find_range(const struct job *job, size_t step, size_t worker)
{
	size_t workers = (size_t)job->workers, all = workers * (size_t)job->batch;
	size_t start = step * all, m = FIT_TRAIN - start < all ? FIT_TRAIN - start : all;

	return (struct range){start + m * worker / workers,
			      m * (worker + 1) / workers - m * worker / workers};
}

/* sums[0], [1] += n times mean, n times biased variance of the pixels of n images. */
static void add_statistics(struct range r, double sums[2])
{
	uint8_t image[FIT_SIDE * FIT_SIDE];
	double sum = 0, squares = 0, n = (double)(r.n * sizeof image);

	for (size_t i = r.first; i < r.first + r.n; i++) {
		fit_draw(image, i, fit_label(i));
		for (size_t k = 0; k < sizeof image; k++) {
			sum += image[k] / 255.0;
			squares += image[k] / 255.0 * (image[k] / 255.0);
		}
	}
	if (r.n == 0)
		return;
	sums[0] += (double)r.n * sum / n;
	sums[1] += (double)r.n * (squares / n - sum / n * (sum / n));
}

/* moving <- 0.9 moving + 0.1 sum of n statistic / sum of n, over all batches of an update. */
static void expect_statistics(const struct job *job, double moving[2])
{
	size_t all = (size_t)job->workers * (size_t)job->batch;
	size_t steps = (FIT_TRAIN + all - 1) / all, count = 0;
	double sums[2] = {0, 0};

	for (size_t step = 0; step < steps; step++) {
		for (size_t w = 0; w < (size_t)job->workers; w++) {
			struct range r = find_range(job, step, w);

			add_statistics(r, sums);
			count += r.n;
		}
		if ((step + 1) % (size_t)job->period != 0 && step + 1 < steps)
			continue;
		for (int i = 0; i < 2; i++) {
			moving[i] = 0.9 * moving[i] + 0.1 * sums[i] / (double)count;
			sums[i] = 0;
		}
		count = 0;
	}
}

/* resnet's first batch-norm reads the images, so that its statistics can be told beforehand. */
static void test_statistics(const struct job *like, int rank, int period)
{
	struct fit_array mean = {"aux/bn_data_moving_mean", 1, {1}};
	struct fit_array variance = {"aux/bn_data_moving_var", 1, {1}};
	double expected[2] = {0, 1};
	struct job job = *like;
	float found[2];

	job.network = "resnet --num-layers 8 --shuffle 0";
	job.model = "norm";
	job.period = period;
	job.epochs = 1;
	run(&job);
	if (rank != 0 || !read_model(&job, &mean, &found[0]) ||
	    !read_model(&job, &variance, &found[1]))
		return;
	expect_statistics(&job, expected);
	CHECK_NEAR(found[0], expected[0], 1e-6);
	CHECK_NEAR(found[1], expected[1], 1e-6);
	CHECK(expected[0] > 0.01);
}

static void test_log(const struct job *like, int rank)
{
	char line[4 * SCRATCH_BYTES], path[2 * SCRATCH_BYTES];
	int all = 3 * like->workers;

	snprintf(path, sizeof path, "%s/log-%d", like->folder, rank);
	snprintf(line, sizeof line,
		 "trainer --network mlp --data-dir %s --num-epochs 1 --global-batch-size %d "
		 "--update-period 3 %s",
		 like->folder, 4 * all, like->more);
	CHECK(fit_run_logged(like->comm, line, path) == MU_OK);
	if (rank != 0)
		return;
	snprintf(line, sizeof line, "batch size 4 per device, 4 per worker, %d global (3 batches",
		 4 * all);
	CHECK(fit_log_has(path, line));
	snprintf(line, sizeof line, "gradients rescaled by 1/%d", 4 * all);
	CHECK(fit_log_has(path, line));
}

int main(int argc, char **argv)
{
	/* Batches that leave one sample for the last one. */
	static const int batches[] = {0, 15, 15, 10};
	char folder[SCRATCH_BYTES] = "";
	struct job job = {.folder = folder, .network = "lenet", .period = 1, .epochs = 2};
	MPI_Comm world;
	long failures;
	int rank, size;

	setenv("OMP_NUM_THREADS", "1", 1); /* small nets gain nothing from more */
	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	if (!mu_array_file_supported()) {
		if (rank == 0)
			printf("skipped: this build has no HDF5\n");
		return mu_world_close(&world, CHECK_SKIPPED);
	}
	job.comm = world;
	job.workers = size > 1 ? size - 1 : 1;
	job.more = size > 1 ? "--kv-store dist_sync --num-servers 1" : "--kv-store local";
	job.batch = batches[job.workers];
	if (rank == 0 && CHECK(scratch_make(folder)))
		fit_write_data(folder);
	CHECK(mu_bcast(folder, sizeof folder, 0, world) == MU_OK);
	test_weights(&job, rank, 2);
	test_weights(&job, rank, 4);
	test_statistics(&job, rank, 4);
	test_statistics(&job, rank, 1000); /* one update */
	test_log(&job, rank);
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	if (rank == 0)
		scratch_remove(folder);
	return mu_world_close(&world, failures ? 1 : 0);
}
