/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce of one float32 array among the ranks of a node: our stores without servers beside
 * MPI_Allreduce, in turn, in one run. Prints one JSON line per size, from worker 0.
 *
 *	mpirun -np 2 bench_allreduce [ROUNDS [FRESH [MIN_BYTES [MAX_BYTES]]]]
 *
 * A time is the median over ROUNDS (default 9) of the slowest rank's mean of some calls; "mpi" is
 * the better of two buffers and MPI_IN_PLACE. FRESH 1: every rank writes its array anew before
 * each call, as backward does, and only the call is timed; 0: the array stays as it is, as other
 * benchmarks have it.
 *
 * "sharded" is dist_sharded without an optimiser: each rank sums its part, and the sums lie where
 * all ranks of the node read them. "allreduce" is dist_allreduce: every rank has the sums in an
 * array of its own, too.
 */
#include <stdlib.h>
#include <string.h>

#include <muster/kvstore.h>

#define MAX_ROUNDS 101
#define BYTES_PER_ROUND 5e7
#define MAX_CALLS 200

enum { MPI_TWO, MPI_ONE, SHARDED, ALLREDUCE, N_WAYS };

struct bench {
	struct mu_members members;
	size_t n; /* elements */
	size_t rounds;
	bool fresh;
	float *in, *out; /* for MPI */
	struct mu_kv *stores[N_WAYS];
};

static void must(enum mu_status st)
{
	if (st != MU_OK) {
		mu_trace_print(stderr, "bench_allreduce");
		mu_world_abort(1);
	}
}

static void open_store(struct bench *b, int way, const char *type)
{
	struct mu_slice slice = {.name = "a_weight", .n = b->n, .n_padded = b->n};
	struct mu_kv_config config = {
		.type = type,
		.members = &b->members,
		.slices = &slice,
		.n_slices = 1,
		.optim = {.name = "none"},
		.schedule = {.lr = 1, .factor = 1},
	};

	must(mu_kv_node_find(&config.node_reduce, "shm"));
	must(mu_kv_new(&b->stores[way], &config));
	must(mu_kv_weights_init(b->stores[way]));
}

static void call(struct bench *b, int way)
{
	const int n = mu_count(b->n);

	if (way == MPI_TWO) {
		MPI_Allreduce(b->in, b->out, n, MPI_FLOAT, MPI_SUM, b->members.comm);
	} else if (way == MPI_ONE) {
		MPI_Allreduce(MPI_IN_PLACE, b->in, n, MPI_FLOAT, MPI_SUM, b->members.comm);
	} else {
		must(mu_kv_step_begin(b->stores[way], 1));
		must(mu_kv_push_ready(b->stores[way], 0));
		must(mu_kv_step_end(b->stores[way]));
	}
}

/* Integers, so that sums are exact. */
static void fill(struct bench *b, int way)
{
	float *x = way < SHARDED ? b->in : mu_kv_gradients(b->stores[way]);

	for (size_t i = 0; i < b->n; i++)
		x[i] = (float)(i % 1000 + (size_t)b->members.rank);
}

static void check(struct bench *b, int way)
{
	const size_t size = (size_t)b->members.size;
	const float *x = way == MPI_ONE   ? b->in
			 : way == MPI_TWO ? b->out
					  : mu_kv_weights(b->stores[way]);

	for (size_t i = 0; i < b->n; i++) {
		if (x[i] == (float)(i % 1000 * size + size * (size - 1) / 2))
			continue;
		fprintf(stderr, "bench_allreduce: way %d: element %zu is %g\n", way, i,
			(double)x[i]);
		mu_world_abort(1);
	}
}

static double slowest(struct bench *b, double seconds)
{
	must(mu_allreduce_double(&seconds, 1, MPI_MAX, b->members.comm));
	return seconds;
}

/* Seconds of a call. */
static double measure(struct bench *b, int way)
{
	const double bytes = (double)(b->n * sizeof(float));
	size_t n = BYTES_PER_ROUND / bytes < MAX_CALLS ? (size_t)(BYTES_PER_ROUND / bytes) + 1
						       : MAX_CALLS;
	double start, seconds = 0;

	MPI_Barrier(b->members.comm);
	start = mu_now();
	for (size_t i = 0; i < n; i++) {
		if (b->fresh) {
			fill(b, way);
			MPI_Barrier(b->members.comm);
			start = mu_now();
		}
		call(b, way);
		if (b->fresh)
			seconds += mu_now() - start;
	}
	if (!b->fresh)
		seconds = mu_now() - start;
	return slowest(b, seconds / (double)n);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static void run_size(struct bench *b)
{
	double times[N_WAYS][MAX_ROUNDS], mpi;

	must(MU_ALLOC(b->in, b->n, "array"));
	must(MU_ALLOC(b->out, b->n, "array"));
	open_store(b, SHARDED, "dist_sharded");
	open_store(b, ALLREDUCE, "dist_allreduce");
	for (int way = 0; way < N_WAYS; way++) {
		fill(b, way);
		call(b, way);
		check(b, way);
	}
	memset(b->in, 0, b->n * sizeof *b->in); /* sums in place stay finite */
	for (size_t r = 0; r < b->rounds; r++)
		for (int way = 0; way < N_WAYS; way++)
			times[way][r] = measure(b, way);
	for (int way = 0; way < N_WAYS; way++)
		qsort(times[way], b->rounds, sizeof(double), compare);

	const size_t middle = b->rounds / 2;

	mpi = times[MPI_ONE][middle] < times[MPI_TWO][middle] ? times[MPI_ONE][middle]
							      : times[MPI_TWO][middle];
	if (b->members.rank == 0)
		printf("{\"bench\":\"allreduce\",\"ranks\":%d,\"fresh\":%d,\"bytes\":%zu,"
		       "\"mpi_us\":%.1f,\"sharded_us\":%.1f,\"sharded_min_us\":%.1f,"
		       "\"allreduce_us\":%.1f,\"allreduce_min_us\":%.1f,\"ratio_sharded\":%.2f,"
		       "\"ratio_allreduce\":%.2f}\n",
		       b->members.size, b->fresh, b->n * sizeof(float), 1e6 * mpi,
		       1e6 * times[SHARDED][middle], 1e6 * times[SHARDED][0],
		       1e6 * times[ALLREDUCE][middle], 1e6 * times[ALLREDUCE][0],
		       mpi / times[SHARDED][middle], mpi / times[ALLREDUCE][middle]);
	fflush(stdout);
	for (int way = SHARDED; way < N_WAYS; way++) {
		must(mu_kv_finish(b->stores[way]));
		mu_kv_free(b->stores[way]);
	}
	mu_free(b->in);
	mu_free(b->out);
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	MPI_Comm world;
	int n_threads;

	if (argc == 2 && mu_options_is_option(argv[1])) { /* --help */
		printf("usage: mpirun -np N bench_allreduce [ROUNDS [FRESH [MIN_BYTES "
		       "[MAX_BYTES]]]]\n");
		return 0;
	}
	must(mu_world_open(&argc, &argv, &world));
	must(mu_members_init(&b.members, world, 0, MU_PLACEMENT_SPREAD));
	must(mu_members_place(&b.members, 0, &n_threads));
	b.rounds = argc > 1 ? (size_t)atol(argv[1]) : 9;
	b.rounds = b.rounds < 1 ? 1 : b.rounds > MAX_ROUNDS ? MAX_ROUNDS : b.rounds;
	b.fresh = argc > 2 && atoi(argv[2]) != 0;

	const size_t least = argc > 3 ? (size_t)atol(argv[3]) : (size_t)256 << 10;
	const size_t most = argc > 4 ? (size_t)atol(argv[4]) : (size_t)64 << 20;

	for (size_t nbytes = least; nbytes <= most; nbytes *= 4) {
		b.n = mu_pad(nbytes / sizeof(float));
		run_size(&b);
	}
	mu_members_release(&b.members);
	return mu_world_close(&world, mu_streams_end("bench_allreduce", 0));
}
