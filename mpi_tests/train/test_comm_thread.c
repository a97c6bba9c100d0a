/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 2 @np-full 1 2 3 */

/*
 * --comm-thread 1: the thread moves messages on, no two threads are inside MPI at a time, the bits
 * are those without it, and an error of the thread ends the run. MPI's calls are seen on their way
 * through this program (MPI's profiling interface).
 */
#include <pthread.h>
#include <stdatomic.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/storage.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"

static struct {
	pthread_t main;
	atomic_int inside;   /* threads that are inside MPI */
	atomic_int overlaps; /* calls that met another */
	atomic_int by_other; /* calls by another thread than main */
	atomic_bool fail;    /* calls by another thread fail */
	bool funneled;       /* MPI says so */
} seen;

static void enter(void)
{
	if (atomic_fetch_add(&seen.inside, 1) > 0)
		atomic_fetch_add(&seen.overlaps, 1);
	if (!pthread_equal(pthread_self(), seen.main))
		atomic_fetch_add(&seen.by_other, 1);
}

static int leave(int error)
{
	atomic_fetch_sub(&seen.inside, 1);
	if (atomic_load(&seen.fail) && !pthread_equal(pthread_self(), seen.main))
		return MPI_ERR_OTHER;
	return error;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
	enter();
	return leave(PMPI_Test(request, done, status));
}

int MPI_Testsome(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses)
{
	enter();
	return leave(PMPI_Testsome(n, requests, n_done, indices, statuses));
}

int MPI_Testall(int n, MPI_Request *requests, int *done, MPI_Status *statuses)
{
	enter();
	return leave(PMPI_Testall(n, requests, done, statuses));
}

int MPI_Startall(int n, MPI_Request *requests)
{
	enter();
	return leave(PMPI_Startall(n, requests));
}

int MPI_Query_thread(int *provided)
{
	int error = PMPI_Query_thread(provided);

	if (seen.funneled)
		*provided = MPI_THREAD_FUNNELED;
	return error;
}

struct job {
	MPI_Comm comm;
	const char *folder, *store, *more;
	int thread;
};

static enum mu_status run(const struct job *job)
{
	char line[4 * SCRATCH_BYTES];

	snprintf(line, sizeof line,
		 "trainer --network mlp --data-dir %s --overwrite --model-prefix %s/m%d "
		 "--num-epochs 2 --lr 0.01 --disp-batches 1000 --batch-size 13 --kv-store %s "
		 "--comm-thread %d --comm-timeout 20 %s",
		 job->folder, job->folder, job->thread, job->store, job->thread, job->more);
	return fit_run(job->comm, line);
}

static size_t read_model(const char *folder, int thread, char *data, size_t nbytes)
{
	char path[2 * SCRATCH_BYTES];
	FILE *file;
	size_t n = 0;

	snprintf(path, sizeof path, "%s/m%d-0002.h5", folder, thread);
	file = fopen(path, "rb");
	if (CHECK(file != NULL)) {
		n = fread(data, 1, nbytes, file);
		fclose(file);
	}
	return n;
}

static void test_bits(struct job *job, int rank)
{
	static char files[2][8 << 20];
	size_t n[2] = {0, 0};

	for (job->thread = 0; job->thread < 2; job->thread++) {
		atomic_store(&seen.by_other, 0);
		if (!CHECK(run(job) == MU_OK))
			mu_trace_print(stderr, job->store);
		CHECK(atomic_load(&seen.by_other) == 0 || job->thread);
		if (rank == 0)
			n[job->thread] = read_model(job->folder, job->thread, files[job->thread],
						    sizeof files[0]);
	}
	CHECK(atomic_load(&seen.overlaps) == 0);
	if (rank == 0 && !CHECK(n[0] > 0 && n[0] == n[1] && memcmp(files[0], files[1], n[0]) == 0))
		fprintf(stderr, "    with --kv-store %s %s\n", job->store, job->more);
}

static void test_stores(struct job *job, int rank)
{
	static const char *const stores[] = {"dist_sync", "dist_sharded", "dist_allreduce"};
	static const char *const more[] = {
		"--node-reduce auto",
		"--node-reduce none",
		"--node-reduce mpi --bucket-bytes 20000",
		"--node-reduce none --bucket-bytes 20000 --devices ref:0,ref:1 --update-period 2",
		"--node-reduce none --optimizer lars",
	};
	long by_other = 0;

	for (size_t s = 0; s < sizeof stores / sizeof *stores; s++)
		for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
			job->store = stores[s];
			job->more = more[i];
			test_bits(job, rank);
			by_other += i > 0 ? atomic_load(&seen.by_other) : 0;
		}
	/* Not in every job: a busy machine may not let the thread run in a short one. */
	CHECK(by_other > 0);
	job->store = "dist_async";
	job->more = "--node-reduce none";
	job->thread = 1;
	CHECK(run(job) == MU_OK);
	CHECK(atomic_load(&seen.overlaps) == 0);
}

/* What is asked for in vain: the same on all ranks. */
static void test_refused(struct job *job, int size)
{
	job->thread = 1;
	job->more = "";
	job->store = "local";
	if (size == 1) {
		CHECK(run(job) == MU_ERR_USAGE);
		CHECK_HAS(mu_trace_message(), "--comm-thread 1 with --kv-store local");
	}
	job->store = "dist_allreduce";
	seen.funneled = true;
	CHECK(run(job) == MU_ERR_USAGE);
	seen.funneled = false;
	CHECK(*mu_trace_message() == '\0' ||
	      strstr(mu_trace_message(), "MPI_THREAD_SERIALIZED") != NULL);
	mu_trace_clear();
}

/*
 * The threads' calls fail on all workers, in the first forward, which takes long enough: nothing is
 * sent by then that a store, which ends with it, would still have to receive.
 */
static void test_error(struct job *job)
{
	job->store = "dist_allreduce";
	job->more = "--node-reduce none --network lenet --devices ref --batch-size 50";
	atomic_store(&seen.fail, true);
	CHECK(run(job) == MU_ERR_MPI);
	atomic_store(&seen.fail, false);
	CHECK_HAS(mu_trace_message(), "MPI_Test");
	mu_trace_clear();
}

int main(int argc, char **argv)
{
	char folder[SCRATCH_BYTES] = "";
	struct job job = {.folder = folder};
	long failures;
	int rank, size;

	setenv("OMP_NUM_THREADS", "1", 1); /* bits and files depend on the number */
	seen.main = pthread_self();
	if (mu_world_open(&argc, &argv, &job.comm) != MU_OK)
		return 1;
	MPI_Comm_rank(job.comm, &rank);
	MPI_Comm_size(job.comm, &size);
	if (!mu_array_file_supported() || !mu_comm_serialized()) {
		if (rank == 0)
			printf("skipped: this needs HDF5, and MPI_THREAD_SERIALIZED\n");
		return mu_world_close(&job.comm, CHECK_SKIPPED);
	}
	if (rank == 0) {
		CHECK(scratch_make(folder));
		fit_write_data(folder);
	}
	CHECK(mu_bcast(folder, sizeof folder, 0, job.comm) == MU_OK);
	test_refused(&job, size);
	if (size > 1) {
		test_stores(&job, rank);
		test_error(&job);
	}
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, job.comm) == MU_OK);
	if (rank == 0)
		scratch_remove(folder);
	return mu_world_close(&job.comm, failures ? 1 : 0);
}
