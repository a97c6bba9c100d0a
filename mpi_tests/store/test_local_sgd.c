/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 1 2 3 4 5 */
/*
 * Local SGD and block momentum against a plain simulation of all workers, in numbers that floats
 * hold exactly; equal bits of all stores; each worker's own steps are those of the store local;
 * what is refused.
 */
#include "../lib/store_job.h"

enum { MAX_WORKERS = 5, EXACT_STEPS = 7, RANDOM_STEPS = 7 };

static struct model odd;

/*
 * Samples of each worker in odd and in even steps: powers of two, whose sum over two steps is one
 * too. Worker 2 has none.
 */
static const size_t counts[MAX_WORKERS][2] = {{1, 1}, {2, 4}, {0, 0}, {4, 4}, {8, 8}};

static size_t count_of(const struct job *j, int worker, size_t step)
{
	return j->n_workers == 1 ? 2 : counts[worker][step % 2];
}

/* The mean gradient of an element. */
static double value_of(int worker, size_t step, size_t i)
{
	return (double)((i + 5 * step + 3 * (size_t)worker) % 7) - 3;
}

/* ---- the simulation, in double ---- */

struct replica {
	double *w, *m;
	double count, lr;
};

struct simulation {
	const struct mu_kv_config *config;
	const struct job *job;
	size_t n, steps;     /* elements; steps since the last average */
	double *average, *v; /* G, V */
	double progress;     /* at the last average */
	struct replica replicas[MAX_WORKERS];
};

static void simulation_init(struct simulation *s, const struct job *j, const float *w, size_t n)
{
	*s = (struct simulation){.config = &j->config, .job = j, .n = n};
	s->average = calloc(n, sizeof(double));
	s->v = calloc(n, sizeof(double));
	for (size_t i = 0; i < n; i++)
		s->average[i] = (double)w[i];
	for (int r = 0; r < j->n_workers; r++) {
		s->replicas[r].w = calloc(n, sizeof(double));
		s->replicas[r].m = calloc(n, sizeof(double));
		memcpy(s->replicas[r].w, s->average, n * sizeof(double));
	}
}

static void simulation_release(struct simulation *s)
{
	for (int r = 0; r < s->job->n_workers; r++) {
		free(s->replicas[r].w);
		free(s->replicas[r].m);
	}
	free(s->average);
	free(s->v);
}

static void simulate_update(const struct simulation *s, struct replica *r, int worker, size_t step)
{
	const struct mu_kv_config *c = s->config;

	for (size_t k = 0; k < odd.n_keys; k++) {
		const struct mu_slice *slice = &odd.slices[k];

		for (size_t i = slice->at; i < slice->at + slice->n; i++) {
			double g = value_of(worker, step, i), mom = (double)slice->momentum;

			if (slice->rule == MU_SLICE_AVERAGE) {
				r->w[i] = mom * r->w[i] + (1 - mom) * g;
				continue;
			}
			r->m[i] = c->optim.mom * r->m[i] - r->lr * g;
			r->w[i] += r->m[i];
		}
	}
}

/* Step `step` of all workers. */
static void simulate_step(struct simulation *s, size_t step)
{
	const struct mu_schedule *schedule = &s->config->schedule;

	for (int w = 0; w < s->job->n_workers; w++) {
		struct replica *r = &s->replicas[w];
		double own = (double)count_of(s->job, w, step);
		double before = s->progress + s->job->n_workers * r->count;

		r->lr = before >= schedule->steps[0] ? schedule->lr * schedule->factor
						     : schedule->lr;
		r->count += own;
		if (own > 0)
			simulate_update(s, r, w, step);
	}
	s->steps++;
}

static void average_element(struct simulation *s, size_t i, bool learns, double count)
{
	const struct mu_kv_local_sgd *l = &s->config->local_sgd;
	double d = 0;

	for (int w = 0; w < s->job->n_workers; w++)
		d += s->replicas[w].count * (s->replicas[w].w[i] - s->average[i]) / count;
	if (!learns) {
		s->average[i] += d;
		return;
	}
	d *= l->block_lr > 0 ? l->block_lr : 1;
	s->v[i] = l->block_momentum * s->v[i] + d;
	s->average[i] += l->nesterov ? d + l->block_momentum * s->v[i] : s->v[i];
}

static void simulate_average(struct simulation *s)
{
	double count = 0;

	for (int w = 0; w < s->job->n_workers; w++)
		count += s->replicas[w].count;
	for (size_t k = 0; k < odd.n_keys; k++)
		for (size_t i = 0; i < odd.slices[k].n; i++)
			average_element(s, odd.slices[k].at + i,
					odd.slices[k].rule == MU_SLICE_LEARN, count);
	for (int w = 0; w < s->job->n_workers; w++) {
		memcpy(s->replicas[w].w, s->average, s->n * sizeof(double));
		s->replicas[w].count = 0;
	}
	s->progress += count;
	s->steps = 0;
}

/* ---- exact ---- */

static void push_step(const struct job *j, size_t step)
{
	float *g = mu_kv_gradients(j->kv);
	double count = (double)count_of(j, j->worker, step);

	for (size_t k = 0; k < odd.n_keys; k++)
		for (size_t i = odd.slices[k].at; i < odd.slices[k].at + odd.slices[k].n; i++)
			g[i] = (float)(count * value_of(j->worker, step, i));
	/* The last of the order first or last: nothing is averaged before all are there. */
	must(mu_kv_step_begin(j->kv, (size_t)count));
	for (size_t i = 0; i < odd.n_keys; i++)
		must(mu_kv_push_ready(j->kv, step % 3 == 2 ? i : odd.n_keys - 1 - i));
	if (step % 2)
		must(mu_kv_step_end(j->kv));
	else
		for (size_t k = 0; k < odd.n_keys; k++)
			must(mu_kv_pull_end(j->kv, k));
}

static double difference(const float *w, const double *expected, size_t n)
{
	double worst = 0;

	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs((double)w[i] - expected[i]));
	return worst;
}

static void compare(const struct job *j, const struct simulation *s)
{
	const float *w = mu_kv_weights(j->kv);
	const struct replica *r = &s->replicas[j->worker];
	size_t wrong = 0;

	for (size_t i = 0; i < s->n; i++)
		wrong += (double)w[i] != r->w[i];
	CHECK(wrong == 0);
	CHECK(mu_kv_lr(j->kv) == r->lr);
	CHECK(mu_kv_progress(j->kv) == s->progress + s->job->n_workers * r->count);
}

/* Periods of 2 steps, the last average by a fetch. Its samples are those of an odd step: in all
 * no power of two, so that weights are compared before it only. */
static void exact_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv);
	size_t n = mu_kv_n(j->kv);
	struct simulation s;

	for (size_t k = 0; j->worker == 0 && k < m->n_keys; k++)
		for (size_t i = m->slices[k].at; i < m->slices[k].at + m->slices[k].n; i++)
			w[i] = (float)(i % 5);
	must(mu_kv_weights_init(j->kv));
	simulation_init(&s, j, w, n);
	for (size_t step = 1; step <= EXACT_STEPS; step++) {
		push_step(j, step);
		simulate_step(&s, step);
		if (s.steps == j->config.local_sgd.period) {
			must(mu_kv_step_end(j->kv));
			simulate_average(&s);
		}
		compare(j, &s);
	}
	must(mu_kv_fetch(j->kv));
	simulate_average(&s);
	CHECK(mu_kv_progress(j->kv) == s.progress);
	must(mu_kv_fetch(j->kv)); /* nothing was stepped */
	CHECK(difference(w, s.average, n) < 1e-5);
	must(mu_kv_finish(j->kv));
	simulation_release(&s);
}

/* Own momentum and block momentum by turns: both would take more bits than a float has. */
static const struct variant {
	double mom;
	struct mu_kv_local_sgd local_sgd;
} variants[] = {
	{0, {.period = 2}},
	{0.5, {.period = 2}},
	{0, {.period = 2, .block_momentum = 0.5, .block_lr = 1}},
	{0, {.period = 2, .block_momentum = 0.5, .block_lr = 0.5}},
	{0, {.period = 2, .block_momentum = 0.5, .nesterov = true}},
};

static void test_exact(const char *type)
{
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		struct job j = {
			.config = {
				.type = type,
				.optim = {.name = "sgd", .mom = variants[i].mom},
				.schedule = {.lr = 0.5, .factor = 0.5, .n_steps = 1, .steps = {24}},
				.local_sgd = variants[i].local_sgd,
				.bucket_bytes = 20000}};

		j.config.node_reduce = i % 2 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO;
		job_run(&j, &odd, exact_worker);
	}
}

/* ---- one step and an average: dist_sync's step ---- */

static void single_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv), *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	double *sum = calloc(n, sizeof *sum), *expected = calloc(n, sizeof *expected);
	float *one = calloc(n, sizeof *one);

	if (j->worker == 0)
		fill(m, w, 999, 0);
	must(mu_kv_weights_init(j->kv));
	for (size_t i = 0; i < n; i++)
		expected[i] = (double)w[i];
	for (size_t step = 1; step <= 3; step++) {
		double total = 0;

		memset(sum, 0, n * sizeof *sum);
		for (int v = 0; v < j->n_workers; v++) {
			fill(m, one, step, v);
			for (size_t i = 0; i < n; i++)
				sum[i] += (double)one[i];
			total += 3 + v;
		}
		for (size_t i = 0; i < n; i++)
			expected[i] -= 0.1 * (sum[i] / total + 0.01 * expected[i]);
		fill(m, g, step, j->worker);
		push_pull(j, m->n_keys, 3 + (size_t)j->worker, step);
		must(mu_kv_fetch(j->kv));
	}
	for (size_t k = 0; k < m->n_keys; k += 2) /* weights, which decay */
		for (size_t i = m->slices[k].at; i < m->slices[k].at + m->slices[k].n; i++)
			if (m->slices[k].rule == MU_SLICE_LEARN)
				CHECK_NEAR(w[i], expected[i], 2e-6);
	must(mu_kv_finish(j->kv));
	free(sum);
	free(expected);
	free(one);
}

static void test_single(const char *type)
{
	struct job j = {.config = {.type = type,
				   .optim = {.name = "sgd", .wd = 0.01},
				   .schedule = {.lr = 0.1, .factor = 1},
				   .local_sgd = {.period = 100}}};

	job_run(&j, &odd, single_worker);
}

/* ---- bits ---- */

static const struct mu_kv_config random_config = {
	.optim = {.name = "sgd", .mom = 0.9, .wd = 0.01},
	.schedule = {.lr = 0.1, .factor = 1},
	.local_sgd = {.period = 3, .block_momentum = 0.7, .block_lr = 0.9},
};

/* The hash of the weights after some steps and the average of finish. */
static uint64_t hash_of(const char *type, const struct mu_members *m, size_t bucket_bytes)
{
	struct job j = {.config = random_config};
	uint64_t hash = 0;

	j.config.bucket_bytes = bucket_bytes;
	j.config.node_reduce = bucket_bytes > 0 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO;
	job_open(&j, &odd, type, m);
	if (j.is_worker) {
		if (j.worker == 0)
			fill(&odd, mu_kv_weights(j.kv), 999, 0);
		must(mu_kv_weights_init(j.kv));
		for (size_t step = 1; step <= RANDOM_STEPS; step++) {
			fill(&odd, mu_kv_gradients(j.kv), step, j.worker);
			push_pull(&j, odd.n_keys, 3 + (size_t)j.worker, step);
		}
		must(mu_kv_finish(j.kv));
		hash = hash_floats(mu_kv_weights(j.kv), mu_kv_n(j.kv));
	} else {
		must(mu_kv_serve(j.kv));
	}
	mu_kv_free(j.kv);
	return hash;
}

/* The stores with servers, and those without of as many workers. */
static void test_bits(void)
{
	static const char *const types[] = {"dist_allreduce", "dist_sharded"};
	const int n = members.num_workers;
	MPI_Comm part = MPI_COMM_NULL;
	uint64_t hash = hash_of("dist_sync", &members, 0), expected = hash;

	must(mu_bcast(&expected, sizeof expected, members.worker_ranks[0], world));
	CHECK(members.role == MU_ROLE_SERVER || hash == expected);
	MPI_Comm_split(world, rank < n ? 0 : MPI_UNDEFINED, rank, &part);
	if (part != MPI_COMM_NULL) {
		struct mu_members few;

		must(mu_members_init(&few, part, 0, MU_PLACEMENT_SPREAD));
		/* Over several nodes these workers are others, and so is the order of the sum. */
		if (members.topology.num_nodes > 1)
			expected = hash_of(types[0], &few, 0);
		for (size_t i = 0; i < 4; i++)
			CHECK(hash_of(types[i / 2], &few, i % 2 ? 0 : 10000) == expected);
		mu_members_release(&few);
		MPI_Comm_free(&part);
	}
	must(mu_barrier(world));
}

/* ---- between averages ---- */

static uint64_t steps_alone(struct job *j, int worker)
{
	if (j->worker == 0)
		fill(&odd, mu_kv_weights(j->kv), 999, 0);
	must(mu_kv_weights_init(j->kv));
	for (size_t step = 1; step <= 4; step++) {
		fill(&odd, mu_kv_gradients(j->kv), step, worker);
		push_pull(j, odd.n_keys, 4, step);
	}
	must(mu_kv_step_end(j->kv));
	return hash_floats(mu_kv_weights(j->kv), mu_kv_n(j->kv));
}

/* A worker's own steps are those of local, rules that need norms too. */
static void test_own(const char *type)
{
	static const char *const rules[] = {"sgd", "adam", "lars", "lamb"};

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct job one = {.config = {.schedule = {.lr = 0.1, .factor = 1}}}, j;

		must(mu_optim_defaults(&one.config.optim, rules[i]));
		one.config.optim.clip_global_norm = i == 0 ? 0.5 : 0;
		j = one;
		j.config.local_sgd.period = 100;
		job_open(&j, &odd, type, &members);
		if (j.is_worker) {
			uint64_t own = steps_alone(&j, j.worker), common;

			job_open(&one, &odd, "local", &alone);
			CHECK(steps_alone(&one, j.worker) == own);
			mu_kv_free(one.kv);
			must(mu_kv_finish(j.kv)); /* averages */
			own = common = hash_floats(mu_kv_weights(j.kv), mu_kv_n(j.kv));
			must(mu_bcast(&common, sizeof common, 0, members.peers));
			CHECK(own == common);
		} else {
			must(mu_kv_serve(j.kv));
		}
		mu_kv_free(j.kv);
	}
}

/* ---- errors ---- */

static void early_worker(struct job *j, const struct model *m)
{
	must(mu_kv_weights_init(j->kv));
	must(mu_kv_step_begin(j->kv, 1));
	for (size_t k = m->n_keys; k-- > 1;)
		must(mu_kv_push_ready(j->kv, k));
	CHECK(mu_kv_pull_end(j->kv, m->n_keys - 1) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "local SGD");
	mu_trace_clear();
	must(mu_kv_push_ready(j->kv, 0));
	must(mu_kv_finish(j->kv));
}

static void test_refused(const char *type, struct mu_kv_local_sgd local_sgd, const char *says)
{
	struct mu_kv_config config = random_config;
	bool is_worker = members.role == MU_ROLE_WORKER;
	struct mu_kv *kv;

	config.type = type;
	config.members = &members;
	config.slices = is_worker ? odd.slices : NULL;
	config.n_slices = is_worker ? odd.n_keys : 0;
	config.local_sgd = local_sgd;
	CHECK(mu_kv_new(&kv, &config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), says);
	mu_trace_clear();
}

static void test_errors(const char *type)
{
	struct job early = {.config = random_config};

	early.config.type = type;
	job_run(&early, &odd, early_worker);
	test_refused(type, (struct mu_kv_local_sgd){.period = 2, .block_momentum = 1},
		     "momentum 1");
	test_refused(type, (struct mu_kv_local_sgd){.period = 2, .block_lr = -1}, "rate -1");
	test_refused(type, (struct mu_kv_local_sgd){.period = 1, .block_momentum = 0.5}, "period");
	if (members.num_servers > 0)
		test_refused("dist_async", (struct mu_kv_local_sgd){.period = 2}, "dist_allreduce");
	if (members.num_servers == 0 && members.num_workers == 1)
		test_refused("local", (struct mu_kv_local_sgd){.period = 2}, "dist_sync");
}

static void once(void)
{
	model_odd(&odd);
	for (size_t k = 4; k < odd.n_keys; k += 5) {
		odd.slices[k].rule = MU_SLICE_AVERAGE;
		odd.slices[k].momentum = 0.5f;
	}
}

static void each(void)
{
	const char *type = members.num_servers > 0 ? "dist_sync" : "dist_allreduce";

	if (members.num_servers > 2)
		return;
	test_errors(type);
	test_exact(type);
	test_single(type);
	test_own(type);
	if (members.num_servers == 0) {
		test_exact("dist_sharded");
	} else {
		test_exact("dist_device_sync");
		test_bits();
	}
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
