/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a step of the store alone: push, sum, update, pull, beside some work that stands for
 * forward and backward. Prints one JSON line per run, from worker 0.
 *
 *	mpirun -np 3 bench_store TYPE SERVERS MODEL STEPS WORK_MS \
 *		[BUCKET_BYTES [NODE [RULE [GC [PULL]]]]]
 *
 * GC: none, 2bit, ... (threshold 0.5, ratio 0.01), as --gc-type; PULL: 0 or 1, as --gc-pull.
 *
 * NODE: auto, shm, mpi or none, as --node-reduce. RULE: sgd (with momentum), none (the sums), ...
 *
 * MODEL: mlp, lenet, or a number of elements, of one key, or as 3200000x16 of so many equal keys.
 * "link" is what mu_comm_link measures between the first and the last rank, bytes/s. "work" in the
 * answer is how long the work took beside the store, "alone" how long it takes when nobody else
 * runs: their ratio is what an idle server costs.
 */
#include <stdlib.h>
#include <string.h>

#include <muster/kvstore.h>

#define MAX_KEYS 64
#define MAX_STEPS 100000

struct times {
	double step[MAX_STEPS], wait[MAX_STEPS], work[MAX_STEPS];
};

static void must(enum mu_status st)
{
	if (st != MU_OK) {
		mu_trace_print(stderr, "bench_store");
		mu_world_abort(1);
	}
}

static size_t make_model(struct mu_slice *slices, const char *name)
{
	static const size_t mlp[] = {100352, 128, 8192, 64, 640, 10};
	static const size_t lenet[] = {500, 20, 25000, 50, 400000, 500, 5000, 10};
	const size_t *sizes = mlp;
	size_t n = sizeof mlp / sizeof *mlp;
	size_t one = (size_t)strtoull(name, NULL, 10), equal[MAX_KEYS];
	const char *cross = strchr(name, 'x');
	size_t at = 0;

	if (strcmp(name, "lenet") == 0) {
		sizes = lenet;
		n = sizeof lenet / sizeof *lenet;
	} else if (one > 0) {
		sizes = &one;
		n = 1;
	}
	if (one > 0 && cross) {
		n = (size_t)strtoull(cross + 1, NULL, 10);
		n = n < 1 ? 1 : n > MAX_KEYS ? MAX_KEYS : n;
		for (size_t k = 0; k < n; k++)
			equal[k] = one / n > 0 ? one / n : 1;
		sizes = equal;
	}
	for (size_t k = 0; k < n; k++) {
		slices[k] = (struct mu_slice){
			.name = "a_weight", .at = at, .n = sizes[k], .n_padded = mu_pad(sizes[k])};
		at += slices[k].n_padded;
	}
	return n;
}

/* Arithmetic that no other rank can speed up or slow down but by taking the core. */
static double work(size_t n)
{
	volatile double x = 1;

	for (size_t i = 0; i < n; i++)
		x = x * 0.999999 + 1e-6;
	return x;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof *values, compare);
	return values[n / 2];
}

/* Iterations that take this many seconds on a free core: the best of some tries. */
static size_t calibrate(double seconds)
{
	double best = 1e9;

	for (int i = 0; i < 20; i++) {
		double start = mu_now();

		work(1000000);
		if (mu_now() - start < best)
			best = mu_now() - start;
	}
	return (size_t)(seconds / best * 1000000);
}

static void run_worker(struct mu_kv *kv, struct times *t, size_t n_keys, size_t n_steps,
		       size_t n_work)
{
	must(mu_kv_weights_init(kv));
	for (size_t i = 0; i < n_steps; i++) {
		double start = mu_now();
		double pushed;

		work(n_work);
		t->work[i] = mu_now() - start;
		must(mu_kv_step_begin(kv, 64));
		for (size_t k = n_keys; k-- > 0;)
			must(mu_kv_push_ready(kv, k));
		pushed = mu_now();
		must(mu_kv_step_end(kv));
		t->wait[i] = mu_now() - pushed;
		t->step[i] = mu_now() - start;
	}
	must(mu_kv_finish(kv));
}

int main(int argc, char **argv)
{
	static struct times times;
	struct mu_slice slices[MAX_KEYS];
	struct mu_members m;
	struct mu_kv *kv = NULL;
	MPI_Comm world;
	int n_threads;

	if (argc < 6) {
		const bool help = argc == 2 && mu_options_is_option(argv[1]);

		fprintf(help ? stdout : stderr,
			"usage: mpirun -np N bench_store TYPE SERVERS MODEL STEPS WORK_MS "
			"[BUCKET_BYTES [NODE [RULE [GC [PULL]]]]]\n");
		return help ? 0 : 2;
	}
	must(mu_world_open(&argc, &argv, &world));
	must(mu_members_init(&m, world, atoi(argv[2]), MU_PLACEMENT_SPREAD));
	must(mu_members_place(&m, 0, &n_threads));

	size_t n_keys = make_model(slices, argv[3]);
	size_t n_steps = (size_t)atoi(argv[4]) < MAX_STEPS ? (size_t)atoi(argv[4]) : MAX_STEPS;
	double work_ms = atof(argv[5]), link;
	size_t n_work = m.rank == 0 ? calibrate(work_ms * 1e-3)
				    : 0; /* by one rank, while the others wait politely */
	struct mu_kv_config config = {
		.type = argv[1],
		.members = &m,
		.slices = slices,
		.n_slices = n_keys,
		.optim = {.name = argc > 8 ? argv[8] : "sgd", .mom = 0.9, .wd = 1e-4},
		.schedule = {.lr = 0.1, .factor = 1},
		.compression = {argc > 9 ? argv[9] : NULL, 0.5, 0.01, argc > 10 && atoi(argv[10])},
		.bucket_bytes = argc > 6 ? (size_t)atol(argv[6]) : 0,
	};

	must(mu_bcast(&n_work, sizeof n_work, 0, m.comm));
	must(mu_kv_node_find(&config.node_reduce, argc > 7 ? argv[7] : "auto"));
	must(mu_kv_new(&kv, &config));
	must(mu_comm_link(m.comm, &link));
	if (m.role == MU_ROLE_SERVER) {
		must(mu_kv_serve(kv));
	} else {
		run_worker(kv, &times, n_keys, n_steps, n_work);
		double seconds = 0;

		for (size_t i = 0; i < n_steps; i++)
			seconds += times.step[i];
		if (m.index == 0)
			printf("{\"store\":\"%s\",\"workers\":%d,\"servers\":%d,\"model\":\"%s\","
			       "\"steps\":%zu,"
			       "\"step_ms\":%.4f,\"step_mean_ms\":%.4f,\"wait_ms\":%.4f,\"work_"
			       "ms\":%.4f,"
			       "\"alone_ms\":%.4f,\"link\":%.0f,\"bound_ms\":%.4f}\n",
			       argv[1], m.num_workers, m.num_servers, argv[3], n_steps,
			       1e3 * median(times.step, n_steps), 1e3 * seconds / (double)n_steps,
			       1e3 * median(times.wait, n_steps), 1e3 * median(times.work, n_steps),
			       work_ms, link, 1e3 * mu_kv_bound(kv, link));
	}
	mu_kv_free(kv);
	mu_members_release(&m);
	return mu_world_close(&world, mu_streams_end("bench_store", 0));
}
