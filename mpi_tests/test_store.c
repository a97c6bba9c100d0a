/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 2 3 4 7 */
/*
 * Stores: exact sums, equal bits over servers and bucket sizes, dist against local, schedules, staleness, errors. Loops over
 * the numbers of servers itself, from one start.
 */
#include <stdlib.h>

#include <muster/kvstore.h>

#include "check.h"

#define MAX_KEYS 64

static MPI_Comm world;
static int rank, size;
static struct mu_topology topology; /* of the present number of servers */
static struct mu_topology alone;    /* this rank is the one worker */

/* A model of n_keys keys with the given sizes. */
struct model {
	const char *name;
	size_t n_keys;
	struct mu_slice slices[MAX_KEYS];
	char names[MAX_KEYS][64];
};

static void model_add(struct model *m, size_t n)
{
	struct mu_slice *s = &m->slices[m->n_keys];
	const struct mu_slice *before = m->n_keys > 0 ? s - 1 : NULL;

	snprintf(m->names[m->n_keys], sizeof m->names[0], "layer%zu_%s", m->n_keys, m->n_keys % 2 ? "bias" : "weight");
	*s = (struct mu_slice){
		.name = m->names[m->n_keys],
		.at = before ? before->at + before->n_padded : 0,
		.n = n,
		.n_padded = mu_pad(n),
	};
	m->n_keys++;
}

static void model_lenet(struct model *m)
{
	static const size_t sizes[] = {500, 20, 25000, 50, 400000, 500, 5000, 10};

	*m = (struct model){.name = "lenet"};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		model_add(m, sizes[i]);
}

static void model_odd(struct model *m)
{
	*m = (struct model){.name = "odd"};
	for (size_t i = 0; i < 40; i++)
		model_add(m, 1 + i * i * 37 % 4099);
}

static void model_one(struct model *m)
{
	*m = (struct model){.name = "one huge key"};
	model_add(m, 700001);
}

static void model_tiny(struct model *m)
{
	*m = (struct model){.name = "tiny"};
	model_add(m, 1);
	model_add(m, 3);
}

/* One store on every rank, and what a worker does with it. */
struct job {
	struct mu_kv_config config;
	struct mu_kv *kv;
	bool is_worker;
	int worker, n_workers;
};

static void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "test_store");
		mu_world_abort(1);
	}
}

static void job_open(struct job *j, const struct model *m, const char *type, const struct mu_topology *t)
{
	j->is_worker = t->role == MU_ROLE_WORKER;
	j->worker = t->index;
	j->n_workers = t->num_workers;
	j->config.type = type;
	j->config.topology = t;
	j->config.slices = j->is_worker ? m->slices : NULL;
	j->config.n_slices = j->is_worker ? m->n_keys : 0;
	must(mu_kv_new(&j->kv, &j->config));
}

/* Run a store to its end: the worker's part is given, servers serve. */
static void job_run(struct job *j, const struct model *m, void (*worker)(struct job *, const struct model *))
{
	job_open(j, m, j->config.type, &topology);
	if (j->is_worker)
		worker(j, m);
	else
		must(mu_kv_serve(j->kv));
	mu_kv_free(j->kv);
}

/* Push all keys, in an order that changes with the step and the worker, and pull them. */
static void push_pull(struct job *j, size_t n_keys, size_t count, size_t step)
{
	must(mu_kv_step_begin(j->kv, count));
	for (size_t i = 0; i < n_keys; i++)
		must(mu_kv_push_ready(j->kv, step % 3 == 2 ? (i * 7 + step) % n_keys : n_keys - 1 - i));
	for (size_t i = 0; i < n_keys; i++)
		must(mu_kv_pull_end(j->kv, i));
	if (step % 2)
		must(mu_kv_step_end(j->kv));
}

/* ---- exact sums: small integers, so that a lost, doubled or misplaced message shows ---- */

static void sums_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv);
	float *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	size_t wrong = 0;
	float workers = (float)j->n_workers;
	float ranks = workers * (workers - 1) / 2;

	for (size_t i = 0; i < n; i++)
		w[i] = j->worker == 0 ? (float)(i % 17) : -1.0f;
	must(mu_kv_init(j->kv));
	for (size_t i = 0; i < n; i++)
		wrong += w[i] != (float)(i % 17);
	for (size_t step = 1; step <= 5; step++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(i % 13) + (float)j->worker + (float)step;
		/* One worker has no samples in some steps, and is counted all the same. */
		push_pull(j, m->n_keys, step % 2 && j->worker == 0 && j->n_workers > 1 ? 0 : 8, step);
		for (size_t i = 0; i < n; i++) {
			float steps = (float)step;
			float each = (float)(i % 13) * steps + steps * (steps + 1) / 2;

			wrong += w[i] != (float)(i % 17) + workers * each + steps * ranks;
		}
	}
	CHECK(wrong == 0);
	must(mu_kv_finish(j->kv));
}

static void test_sums(const struct model *m, const char *type, size_t bucket, size_t message)
{
	struct job j = {.config = {.type = type, .optim = {.name = "test"}, .schedule = {.lr = 1, .factor = 1},
				   .bucket_bytes = bucket, .message_bytes = message}};
	int before = check_failures();

	job_run(&j, m, sums_worker);
	if (check_failures() > before)
		fprintf(stderr, "... rank %d of %d: %s, %s, %d servers, bucket %zu, message %zu\n", rank, size, m->name,
			type, topology.num_servers, bucket, message);
}

/* ---- bits ---- */

static uint64_t hash_floats(const float *w, size_t n)
{
	const unsigned char *p = (const unsigned char *)w;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n * sizeof *w; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static float draw(uint64_t step, int worker, size_t i)
{
	const struct mu_random key = {.seed = 7, .purpose = MU_RANDOM_TEST, .epoch = (uint32_t)worker, .sample = step};

	return mu_random_normal(&key, i); /* sums of three depend on their order */
}

static const struct mu_kv_config exact = {
	.optim = {.name = "sgd", .mom = 0.9, .wd = 0.01},
	.schedule = {.lr = 0.1, .factor = 0.3, .n_steps = 1, .steps = {20}},
};

enum { BIT_STEPS = 4 };

/* Gradients of all workers: parts [w * n, (w + 1) * n) of all. Padding stays zero. */
static void fill(const struct model *m, float *g, uint64_t step, int worker)
{
	for (size_t k = 0; k < m->n_keys; k++) {
		for (size_t i = 0; i < m->slices[k].n; i++)
			g[m->slices[k].at + i] = draw(step, worker, m->slices[k].at + i);
	}
}

/* The hash of the weights after some steps; n_sum workers' gradients are summed here in worker order before each push. */
static uint64_t train(struct job *j, const struct model *m, int n_sum)
{
	float *w = mu_kv_weights(j->kv);
	float *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	float *more = calloc(n, sizeof *more);
	size_t dirty = 0;

	fill(m, w, 999, j->worker == 0 ? 0 : 5);
	must(mu_kv_init(j->kv));
	for (size_t step = 1; step <= BIT_STEPS && more; step++) {
		size_t count = 0;

		for (int i = 0; i < n_sum; i++) {
			fill(m, more, step, j->worker + i);
			for (size_t e = 0; e < n; e++)
				g[e] = i == 0 ? more[e] : g[e] + more[e];
			count += 3 + (size_t)(j->worker + i);
		}
		push_pull(j, m->n_keys, count, step);
	}
	for (size_t k = 0; k < m->n_keys; k++) {
		for (size_t i = m->slices[k].n; i < m->slices[k].n_padded; i++)
			dirty += w[m->slices[k].at + i] != 0;
	}
	CHECK(dirty == 0);
	must(mu_kv_finish(j->kv));
	free(more);
	return hash_floats(w, n);
}

/* The hash on workers, 0 on servers. */
static uint64_t hash_of_store(const struct model *m, const struct mu_kv_config *config, const char *type,
			      const struct mu_topology *t, int n_sum)
{
	struct job j = {.config = *config};
	uint64_t hash = 0;

	job_open(&j, m, type, t);
	if (j.is_worker)
		hash = train(&j, m, n_sum);
	else
		must(mu_kv_serve(j.kv));
	mu_kv_free(j.kv);
	return hash;
}

/* dist_sync gives the bits of local with the workers' gradients summed in their order, however the model is cut. */
static void test_bits(const struct model *m)
{
	static const size_t buckets[] = {0, 1, 1000, 1 << 30};
	struct mu_kv_config config = exact;
	/* The local store takes the place of worker 0 and sums for all. */
	uint64_t expected = hash_of_store(m, &exact, "local", &alone, topology.num_workers);

	for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++) {
		uint64_t hash;

		config.bucket_bytes = buckets[b];
		config.message_bytes = b == 2 ? 10000 : 0;
		hash = hash_of_store(m, &config, "dist_sync", &topology, 1);
		CHECK(hash == 0 || hash == expected);
	}
}

/* dist_async with one worker is local. */
static void test_async_alone(const struct model *m)
{
	static const char *const rules[] = {"sgd", "nag", "adam"};

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct mu_kv_config config = exact;
		uint64_t hash, expected;

		config.optim = (struct mu_optim_config){rules[i], 0.9, 0.01, 0.9, 0.999, 1e-8, 0, true};
		expected = hash_of_store(m, &config, "local", &alone, 1);
		hash = hash_of_store(m, &config, "dist_async", &topology, 1);
		CHECK(hash == 0 || hash == expected);
	}
}

/* ---- dist_async with several workers ---- */

/* Workers take different numbers of steps; the total is exact once all have met and pulled. */
static void async_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv);
	float *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	size_t wrong = 0;
	float total = 0;
	double pushes = 0;
	struct mu_kv_staleness stale;

	memset(w, 0, n * sizeof *w);
	must(mu_kv_init(j->kv));
	for (int step = 1; step <= 3 + j->worker; step++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(1 + j->worker);
		push_pull(j, m->n_keys, 4, (size_t)step);
	}
	must(mu_kv_step_end(j->kv));
	must(mu_barrier(topology.peers));
	must(mu_kv_pull(j->kv));
	for (int i = 0; i < j->n_workers; i++) {
		total += (float)((3 + i) * (1 + i));
		pushes += 3 + i;
	}
	for (size_t i = 0; i < n; i++)
		wrong += w[i] != total;
	CHECK(wrong == 0);
	CHECK(mu_kv_progress(j->kv) == 4 * pushes);
	must(mu_kv_finish(j->kv));
	mu_kv_staleness(j->kv, &stale);
	CHECK(stale.pushes >= pushes); /* each counts on every server that holds anything */
	CHECK(stale.mean <= stale.max && stale.max <= pushes);
	CHECK(j->n_workers > 1 || stale.max == 0);
}

static void test_async(const struct model *m)
{
	struct job j = {.config = {.type = "dist_async", .optim = {.name = "test"}, .schedule = {.lr = 1, .factor = 1}}};

	job_run(&j, m, async_worker);
}

/* Two workers by turns: each push is behind by exactly one of the other's. */
static void staleness_worker(struct job *j, const struct model *m)
{
	struct mu_kv_staleness stale = {0};

	must(mu_kv_init(j->kv));
	for (int turn = 0; turn < 8; turn++) {
		if (turn % 2 == j->worker) {
			push_pull(j, m->n_keys, 1, 1);
			CHECK(mu_kv_progress(j->kv) == turn + 1);
		}
		must(mu_barrier(topology.peers));
	}
	must(mu_kv_finish(j->kv));
	mu_kv_staleness(j->kv, &stale);
	CHECK(stale.pushes == 8 && stale.max == 1);
	CHECK_NEAR(stale.mean, 7.0 / 8, 1e-12);
}

static void test_staleness(const struct model *m)
{
	struct job j = {.config = {.type = "dist_async", .optim = {.name = "test"}, .schedule = {.lr = 1, .factor = 1}}};

	job_run(&j, m, staleness_worker);
}

/* ---- schedule, none, zero counts, errors ---- */

static void schedule_worker(struct job *j, const struct model *m)
{
	int n = j->n_workers;

	must(mu_kv_init(j->kv));
	for (int step = 0; step < 4; step++) {
		push_pull(j, m->n_keys, 10, 1);
		/* The boundary lies at two rounds' samples: the third round is the first with the lower rate. */
		CHECK(mu_kv_lr(j->kv) == (step < 2 ? 0.5 : 0.5 * 0.1));
		CHECK(mu_kv_progress(j->kv) == (step + 1) * 10.0 * n);
	}
	must(mu_kv_finish(j->kv));
}

static void test_schedule(const struct model *m, const char *type)
{
	struct job j = {.config = {.type = type, .optim = {.name = "sgd"},
				   .schedule = {.lr = 0.5, .factor = 0.1, .n_steps = 1}}};

	j.config.schedule.steps[0] = 20.0 * topology.num_workers;
	job_run(&j, m, schedule_worker);
}

/* Without a rule the store is an all-reduce; a round of no samples leaves the weights. */
static void none_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv);
	float *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	size_t wrong = 0;

	must(mu_kv_init(j->kv));
	for (int step = 1; step <= 3; step++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(step * (j->worker + 1));
		push_pull(j, m->n_keys, step == 3 ? 0 : 1, 1);
		for (size_t i = 0; i < n; i++)
			wrong += w[i] != (float)((step == 3 ? 2 : step) * j->n_workers * (j->n_workers + 1) / 2);
	}
	CHECK(wrong == 0);
	must(mu_kv_finish(j->kv));
}

static void test_none(const struct model *m)
{
	struct job j = {.config = {.type = "dist_sync", .optim = {.name = "none"}, .schedule = {.lr = 1, .factor = 1}}};

	job_run(&j, m, none_worker);
}

static void test_types(void)
{
	bool servers, distributed;

	CHECK(mu_kv_type_check("dist_sync", &servers, &distributed) == MU_OK && servers && distributed);
	CHECK(mu_kv_type_check("local", &servers, &distributed) == MU_OK && !servers && !distributed);
	CHECK(mu_kv_type_check("dist_syn", &servers, &distributed) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "'dist_syn' is not known: local, device, dist_sync, dist_async are");
	mu_trace_clear();
	CHECK(mu_kv_type_check("dist_allreduce", &servers, &distributed) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "not in this version");
	mu_trace_clear();
	CHECK(mu_kv_type_check(NULL, &servers, &distributed) == MU_ERR_USAGE);
	mu_trace_clear();
}

static void test_errors(const struct model *m)
{
	struct mu_kv_config config = {.type = "dist_sync", .topology = &topology, .optim = {.name = "sgd"}};
	struct mu_kv *kv = NULL;
	struct model other = *m;
	bool last = topology.role == MU_ROLE_WORKER && topology.index == topology.num_workers - 1;

	/* The last worker has another model: every rank is told which. */
	if (last)
		other.slices[0].name = "another";
	config.slices = other.slices;
	config.n_slices = other.n_keys;
	CHECK(mu_kv_new(&kv, &config) == MU_ERR_USAGE && !kv);
	CHECK_HAS(mu_trace_message(), "has another model than worker 0");
	mu_trace_clear();
	/* An unknown rule: the server says so, the workers hear that it did. */
	config.slices = m->slices;
	config.optim.name = "sgdd";
	CHECK(mu_kv_new(&kv, &config) == (topology.role == MU_ROLE_SERVER ? MU_ERR_USAGE : MU_ERR_PEER));
	mu_trace_clear();
	config.type = "local";
	CHECK(mu_kv_new(&kv, &config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "use dist_sync or dist_async");
	mu_trace_clear();
}

/* Calls out of order are errors, not hangs. */
static void test_order(const struct model *m)
{
	struct job j = {.config = exact};

	job_open(&j, m, "local", &alone);
	must(mu_kv_init(j.kv));
	CHECK(mu_kv_push_ready(j.kv, 0) == MU_ERR_ARGUMENT);
	CHECK(mu_kv_pull_end(j.kv, 0) == MU_OK);
	must(mu_kv_step_begin(j.kv, 1));
	must(mu_kv_push_ready(j.kv, 1));
	CHECK(mu_kv_push_ready(j.kv, 1) == MU_ERR_ARGUMENT);
	CHECK(mu_kv_push_ready(j.kv, m->n_keys) == MU_ERR_ARGUMENT);
	CHECK(mu_kv_pull_end(j.kv, 0) == MU_ERR_ARGUMENT);
	CHECK(mu_kv_step_end(j.kv) == MU_ERR_ARGUMENT);
	CHECK(mu_kv_serve(j.kv) == MU_ERR_ARGUMENT);
	mu_trace_clear();
	mu_kv_free(j.kv);
}

static void test_layout(const struct model *m)
{
	struct mu_kv_layout layout;
	struct job j = {.config = exact};
	size_t servers = (size_t)topology.num_servers;

	job_open(&j, m, "dist_sync", &topology);
	mu_kv_layout(j.kv, &layout);
	CHECK(layout.n_keys == m->n_keys && layout.n_buckets >= 2);
	CHECK(layout.bytes_per_server_max - layout.bytes_per_server_min <= layout.n_buckets * 256);
	CHECK(layout.bytes_per_server_max * servers >= layout.bytes);
	mu_kv_free(j.kv);
}

int main(int argc, char **argv)
{
	static struct model lenet, odd, one, tiny;
	MPI_Comm self = MPI_COMM_NULL;
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	must(mu_topology_init(&alone, self, 0));
	model_lenet(&lenet);
	model_odd(&odd);
	model_one(&one);
	model_tiny(&tiny);
	test_types();
	test_order(&odd);
	for (int servers = 1; servers <= 3 && servers < size; servers++) {
		must(mu_topology_init(&topology, world, servers));
		test_sums(&lenet, "dist_sync", 0, 0);
		test_sums(&lenet, "dist_sync", 0, 40000);
		test_sums(&one, "dist_sync", 0, 100000);
		test_sums(&odd, "dist_sync", 1, 0);
		test_sums(&odd, "dist_sync", 1 << 30, 1);
		test_sums(&tiny, "dist_sync", 0, 0);
		test_bits(&odd);
		test_bits(&tiny);
		test_async(&odd);
		test_async(&tiny);
		test_schedule(&odd, "dist_sync");
		test_none(&odd);
		test_layout(&lenet);
		if (topology.num_workers == 1) {
			test_async_alone(&odd);
			test_schedule(&odd, "dist_async");
			test_sums(&lenet, "dist_async", 0, 0);
		} else {
			test_errors(&odd);
		}
		if (topology.num_workers == 2 && servers == 1)
			test_staleness(&odd);
		mu_topology_release(&topology);
	}
	if (size == 1) {
		must(mu_topology_init(&topology, world, 0));
		test_sums(&odd, "local", 0, 0);
		mu_topology_release(&topology);
	}
	mu_topology_release(&alone);
	MPI_Comm_free(&self);
	failed = check_failures();
	must(mu_allreduce_long(&failed, 1, MPI_SUM, world));
	mu_world_close(&world);
	return failed ? 1 : 0;
}
