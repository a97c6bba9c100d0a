/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 1 2 3 5 */

/*
 * Several devices in a rank train what one device does, up to rounding, whatever the parts of the
 * batch, and the same bits every time and with every store that sums the same gradients. Running
 * statistics of batch-norm are those of the devices' parts, weighted by samples. In the last step
 * of an epoch some devices have no samples, the first one too.
 */
#include <muster/base.h>
#include <muster/comm.h>
#include <muster/kvstore.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"

struct job {
	MPI_Comm comm;
	const char *folder, *network, *devices, *store, *more;
	int workers, batch, epochs;
};

/* Trains it; the model of epoch E becomes folder/NAME-000E.h5, what is logged folder/NAME-RANK. */
static void run(const struct job *job, const char *name)
{
	char line[4 * SCRATCH_BYTES], path[2 * SCRATCH_BYTES];
	int rank;

	MPI_Comm_rank(job->comm, &rank);
	snprintf(path, sizeof path, "%s/%s-%d", job->folder, name, rank);
	snprintf(line, sizeof line,
		 "trainer --network %s --data-dir %s --overwrite --model-prefix %s/%s "
		 "--num-epochs %d --lr 0.01 --batch-size %d --kv-store %s --devices %s %s",
		 job->network, job->folder, job->folder, name, job->epochs, job->batch, job->store,
		 job->devices, job->more);
	if (!CHECK(fit_run_logged(job->comm, line, path) == MU_OK))
		mu_trace_print(stderr, name);
}

static bool read_array(const struct job *job, const char *name, const struct fit_array *array,
		       float *out)
{
	char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s-%04d.h5", job->folder, name, job->epochs);
	return fit_read_array(path, array, out);
}

static const struct fit_array lenet[] = {
	{"arg/convolution0_weight", 4, {20, 1, 5, 5}},
	{"arg/convolution0_bias", 1, {20}},
	{"arg/convolution1_weight", 4, {50, 20, 5, 5}},
	{"arg/convolution1_bias", 1, {50}},
	{"arg/fullyconnected0_weight", 2, {500, 800}},
	{"arg/fullyconnected0_bias", 1, {500}},
	{"arg/fullyconnected1_weight", 2, {10, 500}},
	{"arg/fullyconnected1_bias", 1, {10}},
	{.name = NULL},
};
static const struct fit_array mlp[] = {
	{"arg/fc1_weight", 2, {128, 784}},
	{"arg/fc1_bias", 1, {128}},
	{"arg/fc2_weight", 2, {64, 128}},
	{"arg/fc2_bias", 1, {64}},
	{"arg/fc3_weight", 2, {10, 64}},
	{"arg/fc3_bias", 1, {10}},
	{.name = NULL},
};

/* Largest difference between two models. */
static double difference(const struct job *job, const char *a, const char *b)
{
	static float x[400000], y[400000];
	const struct fit_array *arrays = strcmp(job->network, "mlp") == 0 ? mlp : lenet;
	double worst = 0;

	for (const struct fit_array *array = arrays; array->name; array++) {
		size_t n = 1;

		for (int d = 0; d < array->ndims; d++)
			n *= array->dims[d];
		if (!read_array(job, a, array, x) || !read_array(job, b, array, y))
			return INFINITY;
		for (size_t i = 0; i < n; i++)
			worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
	}
	return worst;
}

static double logged(const struct job *job, const char *name, const char *what)
{
	char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s-0", job->folder, name);
	return fit_logged(path, what);
}

static bool log_has(const struct job *job, const char *name, const char *text)
{
	char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s-0", job->folder, name);
	return fit_log_has(path, text);
}

static bool is_first(const struct job *job)
{
	int rank;

	MPI_Comm_rank(job->comm, &rank);
	return rank == 0;
}

/*
 * Tolerance: gradients are summed in another order, which changes the last bits of float32, and the
 * steps carry that along: 1.2e-7 was seen. Few steps: after many, two values of a pooling window
 * nearly tie once, and rounding decides.
 */
static void compare(const struct job *job, const char *devices, const char *more)
{
	struct job one = *job, several = *job;
	static const char *const losses[] = {
		"Epoch[0] Train-cross-entropy", "Epoch[1] Train-cross-entropy",
		"Epoch[0] Validation-cross-entropy", "Epoch[1] Validation-cross-entropy"};
	char options[256];

	snprintf(options, sizeof options, "%s %s", job->more, more);
	several.devices = devices;
	several.more = options;
	run(&one, "one");
	run(&several, "several");
	run(&several, "again");
	if (!is_first(job))
		return;
	CHECK_NEAR(difference(job, "one", "several"), 0, 2e-6);
	CHECK(difference(job, "several", "again") == 0);
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
		CHECK_NEAR(logged(job, "one", losses[i]), logged(job, "several", losses[i]), 1e-5);
}

/* Where the sum is made is no matter. */
static void compare_stores(const struct job *job, const char *devices, const char *other)
{
	struct job a = *job, b = *job;

	a.devices = b.devices = devices;
	b.store = other;
	run(&a, "here");
	run(&b, "there");
	if (is_first(job))
		CHECK(difference(job, "here", "there") == 0);
}

/* ---- batch-norm ---- */

enum { PIXELS = FIT_SIDE * FIT_SIDE };

/* Images of very different brightness, so that it shows which of them share a batch. */
static void draw(uint8_t *image, size_t i)
{
	for (size_t k = 0; k < PIXELS; k++)
		image[k] = (uint8_t)(i * 37 % 199 + k % 53);
}

static void write_images(const char *folder, const char *part, size_t n)
{
	struct mu_idx images = {3, {n, FIT_SIDE, FIT_SIDE}, malloc(n * PIXELS)};
	char path[2 * SCRATCH_BYTES];

	for (size_t i = 0; i < n; i++)
		draw(images.data + i * PIXELS, i);
	snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, part);
	CHECK(mu_idx_write(path, &images) == MU_OK);
	mu_idx_release(&images);
}

/* sums[0], [1] += n times mean, n times biased variance of the pixels of images [first, end). */
static void add_statistics(size_t first, size_t end, double sums[2])
{
	uint8_t image[PIXELS];
	double sum = 0, squares = 0, n = (double)((end - first) * sizeof image);

	for (size_t i = first; i < end; i++) {
		draw(image, i);
		for (size_t k = 0; k < sizeof image; k++) {
			sum += image[k] / 255.0;
			squares += image[k] / 255.0 * (image[k] / 255.0);
		}
	}
	if (first == end)
		return;
	sums[0] += (double)(end - first) * sum / n;
	sums[1] += (double)(end - first) * (squares / n - sum / n * (sum / n));
}

/*
 * moving <- 0.9 moving + 0.1 sum of n statistic / sum of n, over all devices of all workers. ends:
 * the loads of the devices up to each.
 */
static void expect_statistics(const struct job *job, const size_t *ends, size_t n_devices,
			      double moving[2])
{
	size_t workers = (size_t)job->workers, all = workers * (size_t)job->batch, total;

	total = ends[n_devices - 1];
	for (size_t start = 0; start < FIT_TRAIN; start += all) {
		size_t m = FIT_TRAIN - start < all ? FIT_TRAIN - start : all;
		double sums[2] = {0, 0};

		for (size_t w = 0; w < workers; w++) {
			size_t from = start + m * w / workers;
			size_t n = start + m * (w + 1) / workers - from;

			for (size_t d = 0; d < n_devices; d++)
				add_statistics(from + (d ? n * ends[d - 1] / total : 0),
					       from + n * ends[d] / total, sums);
		}
		for (int i = 0; i < 2; i++)
			moving[i] = 0.9 * moving[i] + 0.1 * sums[i] / (double)m;
	}
}

/* resnet's first batch-norm reads the images, so that its statistics can be told beforehand. */
static void test_statistics(const struct job *like)
{
	static const struct {
		const char *devices, *loads;
		size_t n, ends[3];
	} cases[] = {
		{"cpu:0,cpu:1", "3,1", 2, {3, 4}},
		{"cpu:0,cpu:1,cpu:2", "1,5,2", 3, {1, 6, 8}},
	};
	struct fit_array mean = {"aux/bn_data_moving_mean", 1, {1}};
	struct fit_array variance = {"aux/bn_data_moving_var", 1, {1}};
	struct job job = *like;
	char more[128];
	float found[2];

	if (is_first(&job))
		write_images(job.folder, "train", FIT_TRAIN);
	CHECK(mu_barrier(job.comm) == MU_OK);
	job.network = "resnet --num-layers 8 --shuffle 0";
	job.epochs = 1;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double expected[2] = {0, 1}, whole[2] = {0, 1};

		snprintf(more, sizeof more, "%s --work-load-list %s", like->more, cases[i].loads);
		job.devices = cases[i].devices;
		job.more = more;
		run(&job, "norm");
		if (!is_first(&job) || !read_array(&job, "norm", &mean, &found[0]) ||
		    !read_array(&job, "norm", &variance, &found[1]))
			continue;
		expect_statistics(&job, cases[i].ends, cases[i].n, expected);
		CHECK_NEAR(found[0], expected[0], 1e-6);
		CHECK_NEAR(found[1], expected[1], 1e-6);
		expect_statistics(&job, cases[i].ends, 1, whole);
		CHECK(fabs(expected[1] - whole[1]) > 1e-4); /* or this would tell nothing */
	}
}

/* ---- runs ---- */

static void test_log(const struct job *like)
{
	struct job job = *like;
	char text[128];

	job.devices = "cpu:1,cpu:0,cpu:4";
	job.more = "--work-load-list 1,1,4 --batch-size 12 --num-batches 1";
	job.epochs = 1;
	run(&job, "log");
	if (is_first(&job)) {
		snprintf(text, sizeof text,
			 "batch size 2,2,8 per device, 12 per worker, 12 global");
		CHECK(log_has(&job, "log", text));
		CHECK(log_has(&job, "log", "device cpu:4, 8 of 12 samples: cpu"));
		CHECK(log_has(&job, "log", "gradients are summed on the devices"));
	}
}

#define FEW "--num-examples 106 " /* the last step has one sample for one worker */

static void test_one_worker(MPI_Comm world, const char *folder)
{
	struct job job = {world, folder, "lenet", "cpu", "local", FEW, 1, 15, 2};
	struct job ref = {world, folder, "mlp", "ref", "device", FEW, 1, 15, 2};

	compare(&job, "cpu:0,cpu:1", "");
	compare(&job, "cpu:0,cpu:1,cpu:2", "--work-load-list 2,1,4");
	compare_stores(&job, "cpu:0,cpu:1,cpu:2", "device");
	job.more = FEW "--update-period 4 --label-smoothing 0.1 --optimizer adam --epsilon 0.01";
	compare(&job, "cpu:3,cpu:1", "--work-load-list 1,2");
	compare(&ref, "ref:0,ref:1", "--work-load-list 1,4");
	compare(&ref, "ref:0,ref:1,ref:2", "");
	compare_stores(&ref, "ref:0,ref:1,ref:2", "local");
	job.store = "device";
	test_log(&job);
	job.more = "";
	test_statistics(&job); /* last: it changes the images */
}

static void test_async(const struct job *like)
{
	struct job job = *like;

	job.store = "dist_async";
	if (job.workers == 1) { /* more would differ from run to run */
		compare(&job, "cpu:0,cpu:1", "");
		compare_stores(&job, "cpu:0,cpu:1", "dist_device_async");
	} else {
		job.devices = "cpu:0,cpu:1";
		run(&job, "async");
	}
}

static void test_workers(MPI_Comm world, const char *folder, int size)
{
	struct job job = {world,    folder, "lenet", "cpu", "dist_sync", FEW "--num-servers 1",
			  size - 1, 15,     2};
	struct job flat = {world, folder, "lenet", "cpu", "dist_allreduce", FEW, size, 15, 2};

	compare(&job, "cpu:0,cpu:1", "--work-load-list 2,1");
	compare_stores(&job, "cpu:0,cpu:1,cpu:2", "dist_device_sync");
	/*
	 * There a worker updates a layer's weights just before it needs them, and the second
	 * device, with little to do, waits for them at every layer.
	 */
	compare(&flat, "cpu:0,cpu:1", "--work-load-list 14,1");
	compare_stores(&flat, "cpu:0,cpu:1,cpu:2", "dist_sharded");
	flat.more = FEW "--sync-period 3";
	compare(&flat, "cpu:0,cpu:1", "");
	test_async(&job);
	job.more = "--num-servers 1";
	test_statistics(&job); /* last: it changes the images */
}

int main(int argc, char **argv)
{
	char folder[SCRATCH_BYTES] = "";
	struct mu_device device;
	MPI_Comm world;
	long failures;
	int rank, size;

	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	if (!mu_array_file_supported() || mu_device_find(&device, "cpu") != MU_OK) {
		if (rank == 0)
			printf("skipped: this build has no HDF5, or no device cpu\n");
		return mu_world_close(&world, CHECK_SKIPPED);
	}
	if (rank == 0 && CHECK(scratch_make(folder)))
		fit_write_data(folder);
	CHECK(mu_bcast(folder, sizeof folder, 0, world) == MU_OK);
	if (size == 1)
		test_one_worker(world, folder);
	else
		test_workers(world, folder, size);
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	if (rank == 0)
		scratch_remove(folder);
	return mu_world_close(&world, failures ? 1 : 0);
}
