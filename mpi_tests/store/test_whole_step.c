/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 1 2 3 6 */
/*
 * Rules that need norms over whole keys or the whole model: equal bits whatever the store, the
 * number of servers, the cut into buckets and the threads that share an update; calls that such a
 * rule does not allow; and what dcasgd makes of the weights that a worker has pulled.
 */
#include "../lib/store_job.h"

static struct model odd, tiny;

static const struct {
	const char *rule;
	double clip;
} cases[] = {{"lars", 0}, {"lamb", 0}, {"sgd", 0.5}, {"adam", 0.1}, {"lamb", 0.2}, {"lars", 1e9}};

enum { CASES = sizeof cases / sizeof *cases };

static struct mu_kv_config config_of(size_t i)
{
	struct mu_kv_config config = exact;

	must(mu_optim_defaults(&config.optim, cases[i].rule));
	config.optim.wd = 0.01;
	config.optim.clip_global_norm = cases[i].clip;
	return config;
}

enum { PARTS = 3 };

static size_t shared; /* times that work was */

/* As threads may do it: the last part first. */
static enum mu_status share(void *context, mu_part_fn *part, void *of)
{
	(void)context;
	for (size_t i = PARTS; i-- > 0;)
		part(of, i);
	shared++;
	return MU_OK;
}

static void test_bits(const struct model *m, size_t i, const char *type)
{
	static const size_t buckets[] = {0, 1, 1000};
	struct mu_kv_config config = config_of(i);
	uint64_t expected = hash_of_store(m, &config, "local", &alone, members.num_workers);

	for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++) {
		uint64_t hash;

		config.bucket_bytes = buckets[b];
		config.message_bytes = b == 2 ? 10000 : 0;
		config.share = (struct mu_share){.n = b > 0 ? PARTS : 0, .run = share};
		hash = hash_of_store(m, &config, type, &members, 1);
		if (!CHECK(members.role == MU_ROLE_SERVER || hash == expected))
			fprintf(stderr, "... %s: %s, clip %g, %s, bucket %zu\n", type,
				cases[i].rule, cases[i].clip, m->name, buckets[b]);
	}
	if (members.num_workers == 1 && members.num_servers == 1) {
		uint64_t hash = hash_of_store(m, &config, "dist_async", &members, 1);

		CHECK(hash == 0 || hash == expected);
	}
}

/* The limit has an effect, and a limit that is far away has none. */
static void test_limit(void)
{
	struct mu_kv_config config = exact;
	uint64_t plain = hash_of_store(&odd, &config, "local", &alone, 1);

	config.optim.clip_global_norm = 0.5;
	CHECK(hash_of_store(&odd, &config, "local", &alone, 1) != plain);
	config.optim.clip_global_norm = 1e9;
	CHECK(hash_of_store(&odd, &config, "local", &alone, 1) == plain);
}

/* A bucket cannot be had before the step is whole: an error, not a hang. */
static void test_order(void)
{
	struct job j = {.config = config_of(1)};

	j.config.bucket_bytes = 1000;
	job_open(&j, &odd, "local", &alone);
	must(mu_kv_weights_init(j.kv));
	must(mu_kv_step_begin(j.kv, 1));
	must(mu_kv_push_ready(j.kv, odd.n_keys - 1));
	CHECK(mu_kv_pull_end(j.kv, odd.n_keys - 1) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "before all keys of the step are pushed");
	mu_trace_clear();
	mu_kv_free(j.kv);
}

/* A step without samples changes nothing, and no server waits for another in it. */
static void empty_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv);
	size_t n = mu_kv_n(j->kv);
	uint64_t before;

	if (j->worker == 0)
		fill(m, w, 999, 0);
	must(mu_kv_weights_init(j->kv));
	before = hash_floats(w, n);
	fill(m, mu_kv_gradients(j->kv), 1, 0);
	push_pull(j, m->n_keys, 0, 1);
	CHECK(hash_floats(w, n) == before);
	push_pull(j, m->n_keys, j->worker == 0 ? 3 : 0, 1);
	CHECK(hash_floats(w, n) != before);
	must(mu_kv_finish(j->kv));
}

/* ---- dist_async ---- */

static void test_refused(void)
{
	struct mu_kv_config config = config_of(0);
	struct mu_kv *kv = NULL;
	bool worker = members.role == MU_ROLE_WORKER;

	config.type = "dist_async";
	config.members = &members;
	config.slices = worker ? odd.slices : NULL;
	config.n_slices = worker ? odd.n_keys : 0;
	CHECK(mu_kv_new(&kv, &config) == MU_ERR_USAGE && !kv);
	CHECK_HAS(mu_trace_message(), "use dist_sync, or one server");
	mu_trace_clear();
}

enum { TURNS = 9 };

/* The clipped norm is that of one push, whatever the others do. */
static void clip_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv), *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	double change = 0;

	must(mu_kv_weights_init(j->kv));
	for (size_t i = 0; i < n; i++)
		g[i] = 0;
	for (int turn = 0; turn < TURNS; turn++) {
		if (turn % j->n_workers == j->worker) {
			g[0] = 30 * (float)(1 + j->worker);
			g[16] = 40 * (float)(1 + j->worker);
			push_pull(j, m->n_keys, 1, 1);
			change = (turn + 1) * 0.5;
			CHECK_NEAR(w[0], -0.6 * change, 1e-6);
			CHECK_NEAR(w[16], -0.8 * change, 1e-6);
		}
		must(mu_barrier(members.peers));
	}
	must(mu_kv_finish(j->kv));
}

/* Workers by turns, so that each gradient is as many updates late as there are other workers. */
static void delay_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv), *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	double pulled[8], weight = 1, momentum = 0;

	for (size_t i = 0; j->worker == 0 && i < n; i++)
		w[i] = 1;
	must(mu_kv_weights_init(j->kv));
	for (int i = 0; i < 8; i++)
		pulled[i] = 1;
	for (int turn = 0; turn < TURNS; turn++) {
		int who = turn % j->n_workers;
		double d = turn + 1;

		momentum = 0.5 * momentum - 0.01 * (d + 0.25 * d * d * (weight - pulled[who]));
		weight += momentum;
		pulled[who] = weight;
		if (who == j->worker) {
			for (size_t i = 0; i < n; i++)
				g[i] = (float)(2 * d);
			push_pull(j, m->n_keys, 2, 1);
			CHECK_NEAR(w[0], weight, 1e-6);
			CHECK_NEAR(w[n - 16], weight, 1e-6);
		}
		must(mu_barrier(members.peers));
	}
	must(mu_kv_finish(j->kv));
}

static void test_async(void)
{
	struct job clip = {.config = {.type = "dist_async",
				      .optim = {.name = "sgd", .clip_global_norm = 0.5},
				      .schedule = {.lr = 1, .factor = 1}}};
	struct job delay = {.config = {.type = "dist_async",
				       .optim = {.name = "dcasgd", .mom = 0.5, .lamda = 0.25},
				       .schedule = {.lr = 0.01, .factor = 1}}};

	if (members.num_servers > 1)
		test_refused();
	else
		job_run(&clip, &tiny, clip_worker);
	job_run(&delay, &odd, delay_worker);
}

static void once(void)
{
	model_odd(&odd);
	model_tiny(&tiny);
	test_limit();
	test_order();
}

/* Between a step's pushes and its pulls workers may meet in a collective of their own. */
static void meeting_workers(struct job *j, const struct model *m)
{
	long wrong = 0;

	if (j->worker == 0)
		fill(m, mu_kv_weights(j->kv), 999, 0);
	must(mu_kv_weights_init(j->kv));
	fill(m, mu_kv_gradients(j->kv), 1, 0);
	for (int step = 0; step < 8; step++) {
		long n = 1;

		must(mu_kv_step_begin(j->kv, 1));
		for (size_t k = m->n_keys; k-- > 0;)
			must(mu_kv_push_ready(j->kv, k));
		must(mu_allreduce_long(&n, 1, MPI_SUM, members.peers));
		wrong += n != j->n_workers;
	}
	CHECK(wrong == 0);
	must(mu_kv_finish(j->kv));
}

static void test_type(const char *type)
{
	for (size_t i = 0; i < CASES; i++) {
		struct job empty = {.config = config_of(i)};
		struct job meeting = {.config = config_of(i)};

		test_bits(&odd, i, type);
		test_bits(&tiny, i, type);
		empty.config.type = type;
		job_run(&empty, &odd, empty_worker);
		meeting.config.type = type;
		job_run(&meeting, &odd, meeting_workers);
	}
}

static void each(void)
{
	if (members.num_servers == 0) {
		test_type("dist_sharded");
		test_type("dist_allreduce");
		CHECK(shared > 0);
		return;
	}
	test_type("dist_sync");
	test_async();
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
