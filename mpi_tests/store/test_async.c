/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 7 */
/*
 * dist_async: local with one worker, exact totals with several, staleness. Schedules of the stores
 * with servers.
 */
#include "../lib/store_job.h"

static struct model odd, tiny;

/* dist_async with one worker is local. */
static void test_alone(const struct model *m)
{
	static const char *const rules[] = {"sgd", "nag", "adam", "rmsprop"};

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct mu_kv_config config = exact;
		uint64_t hash, expected;

		must(mu_optim_defaults(&config.optim, rules[i]));
		config.optim.wd = 0.01;
		expected = hash_of_store(m, &config, "local", &alone, 1);
		hash = hash_of_store(m, &config, "dist_async", &members, 1);
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

	if (j->worker == 0)
		memset(w, 0, n * sizeof *w);
	must(mu_kv_weights_init(j->kv));
	for (int step = 1; step <= 3 + j->worker; step++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(1 + j->worker);
		push_pull(j, m->n_keys, 4, (size_t)step);
	}
	must(mu_kv_step_end(j->kv));
	must(mu_barrier(members.peers));
	must(mu_kv_fetch(j->kv));
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

/* Each worker has its own weights, also in memory that a node shares: worker 0's pull changes no
 * others. */
static void own_worker(struct job *j, const struct model *m)
{
	const float *w = mu_kv_weights(j->kv);
	const float mine = j->worker == 0 ? 1 : 0;
	size_t n = mu_kv_n(j->kv), wrong = 0;

	must(mu_kv_weights_init(j->kv));
	must(mu_barrier(members.peers));
	for (size_t i = 0; i < n; i++)
		mu_kv_gradients(j->kv)[i] = 1;
	if (j->worker == 0)
		push_pull(j, m->n_keys, 1, 1);
	must(mu_barrier(members.peers));
	for (size_t i = 0; i < n; i++)
		wrong += w[i] != mine;
	CHECK(wrong == 0);
	must(mu_barrier(members.peers));
	must(mu_kv_finish(j->kv));
}

/* What the start log says of copies on the servers. */
static void copies_worker(struct job *j, const struct model *m)
{
	struct mu_kv_layout layout;

	(void)m;
	mu_kv_layout(j->kv, &layout);
	CHECK(!layout.shares_memory || j->config.node_reduce == MU_KV_NODE_AUTO);
	if (!layout.shares_memory)
		CHECK(layout.bytes_copies == layout.bytes * (size_t)j->n_workers);
	else
		CHECK(members.topology.num_nodes > 1 || layout.bytes_copies == 0);
	must(mu_kv_weights_init(j->kv));
	must(mu_kv_finish(j->kv));
}

static void test_copies(const struct model *m)
{
	for (int i = 0; i < 2; i++) {
		struct job j = {
			.config = {.type = "dist_async",
				   .optim = {.name = "dcasgd"},
				   .schedule = {.lr = 1, .factor = 1},
				   .node_reduce = i == 0 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO}};

		job_run(&j, m, copies_worker);
	}
}

static void test_async(const struct model *m)
{
	struct job j = {.config = {.type = "dist_async",
				   .optim = {.name = "sum"},
				   .schedule = {.lr = 1, .factor = 1}}};
	struct job own = j;

	job_run(&j, m, async_worker);
	job_run(&own, m, own_worker);
}

/* Two workers by turns: each push is behind by exactly one of the other's. */
static void staleness_worker(struct job *j, const struct model *m)
{
	struct mu_kv_staleness stale = {0};

	must(mu_kv_weights_init(j->kv));
	for (int turn = 0; turn < 8; turn++) {
		if (turn % 2 == j->worker) {
			push_pull(j, m->n_keys, 1, 1);
			CHECK(mu_kv_progress(j->kv) == turn + 1);
		}
		must(mu_barrier(members.peers));
	}
	must(mu_kv_finish(j->kv));
	mu_kv_staleness(j->kv, &stale);
	CHECK(stale.pushes == 8 && stale.max == 1);
	CHECK_NEAR(stale.mean, 7.0 / 8, 1e-12);
	CHECK(stale.counts[0] == 1 && stale.counts[1] == 7 && stale.held_back == 0);
}

/* Worker 1 pushes more often than there are figures for, then worker 0 for the first time. */
static void bins_worker(struct job *j, const struct model *m)
{
	const int pushes = MU_KV_STALENESS_BINS + 5;
	struct mu_kv_staleness stale = {0};

	must(mu_kv_weights_init(j->kv));
	for (int i = 0; j->worker == 1 && i < pushes; i++)
		push_pull(j, m->n_keys, 1, 1);
	must(mu_barrier(members.peers));
	if (j->worker == 0)
		push_pull(j, m->n_keys, 1, 1);
	must(mu_kv_finish(j->kv));
	mu_kv_staleness(j->kv, &stale);
	CHECK(stale.counts[0] == pushes && stale.counts[MU_KV_STALENESS_BINS - 1] == 1);
	CHECK(stale.max == pushes && stale.pushes == pushes + 1);
}

static void test_staleness(const struct model *m)
{
	struct job j = {.config = {.type = "dist_async",
				   .optim = {.name = "sum"},
				   .schedule = {.lr = 1, .factor = 1}}};
	struct job bins = j;

	job_run(&j, m, staleness_worker);
	job_run(&bins, m, bins_worker);
}

/* ---- schedules ---- */

static void schedule_worker(struct job *j, const struct model *m)
{
	int n = j->n_workers;

	must(mu_kv_weights_init(j->kv));
	for (int step = 0; step < 4; step++) {
		push_pull(j, m->n_keys, 10, 1);
		/*
		 * The boundary lies at two rounds' samples: the third round is the first with the
		 * lower rate.
		 */
		CHECK(mu_kv_lr(j->kv) == (step < 2 ? 0.5 : 0.5 * 0.1));
		CHECK(mu_kv_progress(j->kv) == (step + 1) * 10.0 * n);
	}
	must(mu_kv_finish(j->kv));
}

static void test_schedule(const struct model *m, const char *type)
{
	struct job j = {.config = {.type = type,
				   .optim = {.name = "sgd"},
				   .schedule = {.lr = 0.5, .factor = 0.1, .n_steps = 1}}};

	j.config.schedule.steps[0] = 20.0 * members.num_workers;
	job_run(&j, m, schedule_worker);
}

static void once(void)
{
	model_odd(&odd);
	model_tiny(&tiny);
}

static void each(void)
{
	if (members.num_servers == 0)
		return;
	test_async(&odd);
	test_async(&tiny);
	test_copies(&odd);
	test_schedule(&odd, "dist_sync");
	if (members.num_workers == 1) {
		test_alone(&odd);
		test_schedule(&odd, "dist_async");
	}
	if (members.num_workers == 2 && members.num_servers == 1)
		test_staleness(&odd);
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
