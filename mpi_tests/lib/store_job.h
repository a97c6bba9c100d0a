/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of stores share: models, a store with its role, a step, training with gradients
 * whose sums depend on their order. For test programs of one file.
 */
#ifndef MUSTER_STORE_JOB_H
#define MUSTER_STORE_JOB_H

#include <stdlib.h>

#include <muster/kvstore.h>

#include "check.h"

#define MAX_KEYS 64

static MPI_Comm world;
static int rank, size;
static struct mu_members members; /* of the present number of servers */
static struct mu_members alone;   /* this rank is the one worker */

/* A model of n_keys keys with the given sizes. */
struct model {
	const char *name;
	size_t n_keys;
	struct mu_slice slices[MAX_KEYS];
	char names[MAX_KEYS][64];
};

static inline void model_add(struct model *m, size_t n)
{
	struct mu_slice *s = &m->slices[m->n_keys];
	const struct mu_slice *before = m->n_keys > 0 ? s - 1 : NULL;

	snprintf(m->names[m->n_keys], sizeof m->names[0], "layer%zu_%s", m->n_keys,
		 m->n_keys % 2 ? "bias" : "weight");
	*s = (struct mu_slice){
		.name = m->names[m->n_keys],
		.at = before ? before->at + before->n_padded : 0,
		.n = n,
		.n_padded = mu_pad(n),
	};
	m->n_keys++;
}

static inline void model_lenet(struct model *m)
{
	static const size_t sizes[] = {500, 20, 25000, 50, 400000, 500, 5000, 10};

	*m = (struct model){.name = "lenet"};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		model_add(m, sizes[i]);
}

static inline void model_odd(struct model *m)
{
	*m = (struct model){.name = "odd"};
	for (size_t i = 0; i < 40; i++)
		model_add(m, 1 + i * i * 37 % 4099);
}

static inline void model_one(struct model *m)
{
	*m = (struct model){.name = "one huge key"};
	model_add(m, 700001);
}

static inline void model_tiny(struct model *m)
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

static inline void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "a test of stores");
		mu_world_abort(1);
	}
}

static inline void job_open(struct job *j, const struct model *m, const char *type,
			    const struct mu_members *who)
{
	j->is_worker = who->role == MU_ROLE_WORKER;
	j->worker = who->index;
	j->n_workers = who->num_workers;
	j->config.type = type;
	j->config.members = who;
	j->config.slices = j->is_worker ? m->slices : NULL;
	j->config.n_slices = j->is_worker ? m->n_keys : 0;
	must(mu_kv_new(&j->kv, &j->config));
}

/* Run a store to its end: the worker's part is given, servers serve. */
static inline void job_run(struct job *j, const struct model *m,
			   void (*worker)(struct job *, const struct model *))
{
	job_open(j, m, j->config.type, &members);
	if (j->is_worker)
		worker(j, m);
	else
		must(mu_kv_serve(j->kv));
	mu_kv_free(j->kv);
}

/* Changes of all keys' weights so far. */
static inline uint64_t count_changes(const struct job *j, size_t n_keys)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n_keys; i++)
		sum += mu_kv_versions(j->kv)[i];
	return sum;
}

/* Push all keys, in an order that changes with the step and the worker, and pull them. */
static inline void push_pull(struct job *j, size_t n_keys, size_t count, size_t step)
{
	const uint64_t changes = count_changes(j, n_keys);

	must(mu_kv_step_begin(j->kv, count));
	for (size_t i = 0; i < n_keys; i++)
		must(mu_kv_push_ready(j->kv,
				      step % 3 == 2 ? (i * 7 + step) % n_keys : n_keys - 1 - i));
	for (size_t i = 0; i < n_keys; i++)
		must(mu_kv_pull_end(j->kv, i));
	if (step % 2)
		must(mu_kv_step_end(j->kv));
	CHECK(count_changes(j, n_keys) == changes + n_keys);
}

static inline uint64_t hash_floats(const float *w, size_t n)
{
	const unsigned char *p = (const unsigned char *)w;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n * sizeof *w; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static inline float draw(uint64_t step, int worker, size_t i)
{
	const struct mu_random key = {
		.seed = 7, .purpose = MU_RANDOM_TEST, .epoch = (uint32_t)worker, .sample = step};

	return mu_random_normal(&key, i); /* sums of three depend on their order */
}

static const struct mu_kv_config exact = {
	.optim = {.name = "sgd", .mom = 0.9, .wd = 0.01},
	.schedule = {.lr = 0.1, .factor = 0.3, .n_steps = 1, .steps = {20}},
};

enum { BIT_STEPS = 4 };

/* Gradients of all workers: parts [w * n, (w + 1) * n) of all. Padding stays zero. */
static inline void fill(const struct model *m, float *g, uint64_t step, int worker)
{
	for (size_t k = 0; k < m->n_keys; k++) {
		for (size_t i = 0; i < m->slices[k].n; i++)
			g[m->slices[k].at + i] = draw(step, worker, m->slices[k].at + i);
	}
}

/*
 * Gradients of all workers, summed as a synchronous store does: those of a node in the order of
 * workers, then the nodes. more, node: scratch of n elements each. Returns the samples behind it.
 */
static inline size_t fill_sum(const struct model *m, float *g, float *more, float *node, size_t n,
			      uint64_t step)
{
	bool first_node = true;
	size_t count = 0;

	for (int k = 0; k < members.topology.num_nodes; k++) {
		bool first = true;

		for (int i = 0; i < members.num_workers; i++) {
			if (members.topology.node_of[members.worker_ranks[i]] != k)
				continue;
			fill(m, more, step, i);
			for (size_t e = 0; e < n; e++)
				node[e] = first ? more[e] : node[e] + more[e];
			first = false;
			count += 3 + (size_t)i;
		}
		for (size_t e = 0; !first && e < n; e++)
			g[e] = first_node ? node[e] : g[e] + node[e];
		first_node = first_node && first;
	}
	return count;
}

/*
 * The hash of the weights after some steps; if n_sum is more than 1, all workers' gradients are
 * summed here before each push.
 */
static inline uint64_t train(struct job *j, const struct model *m, int n_sum)
{
	float *w = mu_kv_weights(j->kv);
	float *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	float *more = calloc(n, sizeof *more), *node = calloc(n, sizeof *node);
	size_t dirty = 0;

	if (j->worker == 0)
		fill(m, w, 999, 0);
	must(mu_kv_weights_init(j->kv));
	for (size_t step = 1; step <= BIT_STEPS && more && node; step++) {
		size_t count = 3 + (size_t)j->worker;

		if (n_sum > 1)
			count = fill_sum(m, g, more, node, n, step);
		else
			fill(m, g, step, j->worker);
		push_pull(j, m->n_keys, count, step);
	}
	for (size_t k = 0; k < m->n_keys; k++) {
		for (size_t i = m->slices[k].n; i < m->slices[k].n_padded; i++)
			dirty += w[m->slices[k].at + i] != 0;
	}
	CHECK(dirty == 0);
	must(mu_kv_finish(j->kv));
	free(more);
	free(node);
	return hash_floats(w, n);
}

/* The hash on workers, 0 on servers. */
static inline uint64_t hash_of_store(const struct model *m, const struct mu_kv_config *config,
				     const char *type, const struct mu_members *who, int n_sum)
{
	struct job j = {.config = *config};
	uint64_t hash = 0;

	job_open(&j, m, type, who);
	if (j.is_worker)
		hash = train(&j, m, n_sum);
	else
		must(mu_kv_serve(j.kv));
	mu_kv_free(j.kv);
	return hash;
}

/* All tests of one program, for every number of servers, 0 too; the exit status. */
static inline int run_tests(int argc, char **argv, void (*once)(void), void (*each)(void))
{
	MPI_Comm self = MPI_COMM_NULL;
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	must(mu_members_init(&alone, self, 0, MU_PLACEMENT_SPREAD));
	once();
	for (int servers = 0; servers <= 3 && servers < size; servers++) {
		must(mu_members_init(&members, world, servers, MU_PLACEMENT_SPREAD));
		each();
		mu_members_release(&members);
	}
	mu_members_release(&alone);
	MPI_Comm_free(&self);
	failed = check_failures();
	must(mu_allreduce_long(&failed, 1, MPI_SUM, world));
	return mu_world_close(&world, failed ? 1 : 0);
}

#endif
