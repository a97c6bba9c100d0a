/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mubench: benchmarks. mubench run and mubench report are sweeps of training jobs (sweep.h).
 * Without such a word, and started by mpirun, round trips of a store of keys: for arrays of 1 KiB
 * to 256 MiB, one key each, and for many small keys in one call, seconds of a push and pull, beside
 * those of MPI_Allreduce among the same workers and of a copy in memory, measured in turns in the
 * same run.
 *
 *	mpirun -np 3 mubench --kv-store dist_sync --num-servers 1
 *
 * A figure is the median over rounds of the slowest worker; GB/s = bytes of the array / seconds /
 * 1e9.
 */
#include <stdlib.h>
#include <string.h>

#include <muster/keys.h>

#include "program.h"
#include "sweep_main.h"

struct values {
	const char *kv_store;
	long num_servers, min_bytes, max_bytes, num_keys, key_bytes, rounds;
	bool json, help;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "kv-store",
	 .type = MU_OPTION_STRING,
	 AT(kv_store),
	 .group = "store",
	 .help = "NAME  store (default: local for one rank, dist_sync for several)"},
	{.name = "num-servers",
	 .type = MU_OPTION_INT,
	 AT(num_servers),
	 .initial = "-1",
	 .min = -1,
	 .max = 1e6,
	 .group = "store",
	 .help = "S  ranks that own keys (-1: one per node)"},
	{.name = "min-bytes",
	 .type = MU_OPTION_INT,
	 AT(min_bytes),
	 .initial = "1024",
	 .min = 64,
	 .max = 1e12,
	 .group = "measurement",
	 .help = "N  smallest array; the next is four times as large"},
	{.name = "max-bytes",
	 .type = MU_OPTION_INT,
	 AT(max_bytes),
	 .initial = "268435456",
	 .min = 64,
	 .max = 1e12,
	 .group = "measurement",
	 .help = "N  largest array"},
	{.name = "num-keys",
	 .type = MU_OPTION_INT,
	 AT(num_keys),
	 .initial = "100",
	 .max = 1e6,
	 .group = "measurement",
	 .help = "N  small keys in one call, beside one key of as many bytes (0: none)"},
	{.name = "key-bytes",
	 .type = MU_OPTION_INT,
	 AT(key_bytes),
	 .initial = "4096",
	 .min = 4,
	 .max = 1e9,
	 .group = "measurement",
	 .help = "N  size of these"},
	{.name = "rounds",
	 .type = MU_OPTION_INT,
	 AT(rounds),
	 .initial = "0",
	 .max = 1e6,
	 .group = "measurement",
	 .help = "N  rounds of every size (0: as many as take about a second, 5 to 1000)"},
	{.name = "json",
	 .type = MU_OPTION_FLAG,
	 AT(json),
	 .group = "measurement",
	 .help = "a JSON line for every size instead of text"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "other", .help = "this text"},
};

struct job {
	struct values v;
	struct mu_members members;
	struct mu_keys *keys;
	float *gradients, *values, *copy; /* of the largest call */
	bool synchronous;
	int next_key;
};

/* What is timed: one call with n_keys keys of n elements each. */
struct load {
	size_t n_keys, n;
	struct mu_kv_item *push, *pull;
	struct mu_array *arrays;
	size_t rounds;
};

struct result {
	double store, allreduce, copy; /* seconds */
};

static size_t elements(const struct load *l)
{
	return l->n_keys * l->n;
}

/* New keys; both items of a key have parts of the job's arrays. */
static enum mu_status load_init(struct job *j, struct load *l, size_t n_keys, size_t nbytes)
{
	enum mu_status st = MU_OK;

	*l = (struct load){.n_keys = n_keys, .n = nbytes / sizeof(float)};
	MU_TRY(MU_ALLOC(l->push, n_keys, "items"));
	MU_TRY(MU_ALLOC(l->pull, n_keys, "items"));
	MU_TRY(MU_ALLOC(l->arrays, 2 * n_keys, "arrays"));
	for (size_t k = 0; k < n_keys; k++) {
		struct mu_array *a = &l->arrays[2 * k];

		a[0] = (struct mu_array){j->gradients + k * l->n, l->n, MU_FLOAT32};
		a[1] = (struct mu_array){j->values + k * l->n, l->n, MU_FLOAT32};
		l->push[k] = (struct mu_kv_item){.key = j->next_key, .n_arrays = 1, .arrays = a};
		l->pull[k] =
			(struct mu_kv_item){.key = j->next_key++, .n_arrays = 1, .arrays = a + 1};
	}
	MU_TRY(mu_keys_init(j->keys, n_keys, l->push));
out:
	return st;
}

static void load_release(struct load *l)
{
	mu_free(l->push);
	mu_free(l->pull);
	mu_free(l->arrays);
}

/* ---- one round of each ---- */

/*
 * The sum comes back into the array that is pushed, unless pushes accumulate (dist_async): there is
 * no difference in what travels.
 */
static enum mu_status by_store(struct job *j, struct load *l)
{
	return mu_keys_pushpull(j->keys, l->n_keys, l->push, 0);
}

static enum mu_status by_allreduce(struct job *j, struct load *l)
{
	return mu_allreduce_float(j->copy, j->values, elements(l), j->members.peers);
}

static enum mu_status by_copy(struct job *j, struct load *l)
{
	memcpy(j->values, j->copy, elements(l) * sizeof(float));
	return MU_OK;
}

typedef enum mu_status (*way_fn)(struct job *j, struct load *l);

/* Seconds of one round: the slowest worker's. */
static enum mu_status time_one(struct job *j, struct load *l, way_fn way, double *seconds)
{
	enum mu_status st = MU_OK;
	double start;

	MU_TRY(mu_barrier(j->members.peers));
	start = mu_now();
	MU_TRY(way(j, l));
	*seconds = mu_now() - start;
	MU_TRY(mu_keys_barrier(j->keys)); /* others may still pull what this worker owns */
	MU_TRY(mu_allreduce_double(seconds, 1, MPI_MAX, j->members.peers));
out:
	return st;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof *values, compare);
	return values[n / 2];
}

/* What came back must be the sum over workers of what went: ones, in a store without optimiser. */
static enum mu_status check_sums(const struct job *j, const struct load *l, float expected)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < elements(l); i++) {
		if (j->gradients[i] != expected)
			MU_FAIL(MU_ERR_NUMERIC,
				"element %zu of %zu keys of %zu elements is %g, not %g", i,
				l->n_keys, l->n, (double)j->gradients[i], (double)expected);
	}
out:
	return st;
}

static void fill(struct job *j, const struct load *l)
{
	for (size_t i = 0; i < elements(l); i++)
		j->gradients[i] = j->copy[i] = 1;
}

/* A round to warm up and to check, one to know how many rounds there is time for. */
static enum mu_status prepare(struct job *j, struct load *l)
{
	enum mu_status st = MU_OK;
	double once;

	fill(j, l);
	MU_TRY(by_store(j, l));
	if (j->synchronous)
		MU_TRY(check_sums(j, l, (float)j->members.num_workers));
	MU_TRY(mu_keys_barrier(j->keys));
	fill(j, l);
	MU_TRY(by_allreduce(j, l));
	MU_TRY(time_one(j, l, by_store, &once));
	l->rounds = j->v.rounds ? (size_t)j->v.rounds : (size_t)(1 / (3 * once));
	if (!j->v.rounds)
		l->rounds = l->rounds < 5 ? 5 : l->rounds > 1000 ? 1000 : l->rounds;
out:
	return st;
}

static enum mu_status measure(struct job *j, struct load *l, struct result *r)
{
	enum mu_status st = MU_OK;
	static const way_fn ways[] = {by_store, by_allreduce, by_copy};
	double *seconds[3] = {NULL};

	MU_TRY(prepare(j, l));
	for (size_t way = 0; way < 3; way++)
		MU_TRY(MU_ALLOC(seconds[way], l->rounds, "times"));
	for (size_t i = 0; i < l->rounds; i++) {
		/* Values would grow without end. */
		memset(j->gradients, 0, elements(l) * sizeof(float));
		for (size_t way = 0; way < 3; way++)
			MU_TRY(time_one(j, l, ways[way], &seconds[way][i]));
	}
	*r = (struct result){median(seconds[0], l->rounds), median(seconds[1], l->rounds),
			     median(seconds[2], l->rounds)};
out:
	for (size_t way = 0; way < 3; way++)
		mu_free(seconds[way]);
	return st;
}

static void report(const struct job *j, const struct load *l, const struct result *r)
{
	const double nbytes = (double)(elements(l) * sizeof(float));

	if (j->members.index != 0)
		return;
	if (j->v.json)
		printf("{\"store\":\"%s\",\"workers\":%d,\"servers\":%d,\"keys\":%zu,\"bytes\":%."
		       "0f,"
		       "\"rounds\":%zu,\"seconds\":%.4g,\"GBps\":%.4g,\"allreduce_seconds\":%.4g,"
		       "\"memcpy_seconds\":%.4g}\n",
		       mu_keys_type(j->keys), j->members.num_workers, j->members.num_servers,
		       l->n_keys, nbytes, l->rounds, r->store, nbytes / r->store / 1e9,
		       r->allreduce, r->copy);
	else
		printf("%6zu %11.0f %12.1f %8.3f %12.1f %12.1f %8zu\n", l->n_keys, nbytes,
		       1e6 * r->store, nbytes / r->store / 1e9, 1e6 * r->allreduce, 1e6 * r->copy,
		       l->rounds);
	fflush(stdout);
}

static enum mu_status run_load(struct job *j, size_t n_keys, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct result r;
	struct load l;

	MU_TRY(load_init(j, &l, n_keys, nbytes));
	MU_TRY(measure(j, &l, &r));
	report(j, &l, &r);
out:
	load_release(&l);
	return st;
}

static enum mu_status run_worker(struct job *j)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_optimizer add = {.optim = {.name = "test"}, .rescale = 1};
	const size_t keys = (size_t)j->v.num_keys, key = (size_t)j->v.key_bytes;
	const size_t most =
		(size_t)j->v.max_bytes > keys * key ? (size_t)j->v.max_bytes : keys * key;

	MU_TRY(mu_alloc((void **)&j->gradients, most, "gradients"));
	MU_TRY(mu_alloc((void **)&j->values, most, "values"));
	MU_TRY(mu_alloc((void **)&j->copy, most, "copies"));
	if (!j->synchronous)
		MU_TRY(mu_keys_set_optimizer(j->keys, &add));
	if (j->members.index == 0 && !j->v.json)
		printf("%s, %d worker%s, %d server%s\n%6s %11s %12s %8s %12s %12s %8s\n",
		       mu_keys_type(j->keys), j->members.num_workers, MU_S(j->members.num_workers),
		       j->members.num_servers, MU_S(j->members.num_servers), "keys", "bytes",
		       "store us", "GB/s", "allreduce us", "memcpy us", "rounds");
	for (size_t n = (size_t)j->v.min_bytes; n <= (size_t)j->v.max_bytes; n *= 4)
		MU_TRY(run_load(j, 1, n));
	if (keys > 0) {
		MU_TRY(run_load(j, 1, keys * key));
		MU_TRY(run_load(j, keys, key));
	}
	MU_TRY(mu_keys_finish(j->keys));
out:
	return st;
}

static enum mu_status run(void *context, MPI_Comm world)
{
	enum mu_status st = MU_OK;
	struct job *j = context;
	struct mu_keys_config config = {.type = j->v.kv_store, .members = &j->members};
	struct mu_keys_type is;
	int rank, size, threads;

	MU_TRY(mu_comm_rank(world, &rank, &size));
	if (!config.type)
		config.type = size > 1 ? "dist_sync" : "local";
	MU_TRY(mu_keys_type_check(config.type, &is));
	if (!is.has_servers && j->v.num_servers > 0)
		MU_FAIL(MU_ERR_USAGE, "--num-servers %ld: --kv-store %s has no servers",
			j->v.num_servers, config.type);
	if (j->v.min_bytes > j->v.max_bytes)
		MU_FAIL(MU_ERR_USAGE, "--min-bytes %ld is more than --max-bytes %ld",
			j->v.min_bytes, j->v.max_bytes);
	j->synchronous = is.synchronous;
	MU_TRY(mu_members_init(&j->members, world, is.has_servers ? (int)j->v.num_servers : 0,
			       MU_PLACEMENT_SPREAD));
	MU_TRY(mu_members_place(&j->members, 0, &threads));
	MU_TRY(mu_keys_new(&j->keys, &config));
	if (j->members.role == MU_ROLE_SERVER)
		MU_TRY(mu_keys_serve(j->keys));
	else
		MU_TRY(run_worker(j));
out:
	mu_keys_free(j->keys);
	mu_free(j->gradients);
	mu_free(j->values);
	mu_free(j->copy);
	if (j->members.size > 0)
		mu_members_release(&j->members);
	return st;
}

int main(int argc, char **argv)
{
	struct job j = {.v = {.help = false}};
	const struct bench_program program = {
		.name = "mubench",
		.about = "Time round trips of a store of keys, beside MPI_Allreduce and memcpy. "
			 "mubench run and mubench\nreport are about sweeps of training jobs: "
			 "mubench run --help.\n",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &j.v,
		.help = &j.v.help,
		.roles = &j.members,
		.run = run,
		.context = &j,
	};

	mu_streams_begin();
	if (argc > 1 && strcmp(argv[1], "run") == 0)
		return sweep_main_run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "report") == 0)
		return sweep_main_report(argc - 1, argv + 1);
	return bench_main(&program, argc, argv);
}
