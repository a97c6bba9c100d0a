/* SPDX-License-Identifier: Apache-2.0 */
/* @np 4 @np-full 2 3 4 5 */
/*
 * The bound of staleness: nobody starts a step too early, and all start as soon as they may.
 * Workers write on a page that all ranks see what they have begun and pushed. A word that ends the
 * bound, rules with norms, the figures, and what is refused.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <muster/notice.h>

#include "../lib/store_job.h"

enum { MAX_WORKERS = 8, STEPS = 8, PATIENCE = 60 /* seconds */ };

struct board {
	_Atomic int begun[MAX_WORKERS];   /* the step that a worker is in */
	_Atomic int pushing[MAX_WORKERS]; /* the last step whose last push it has begun */
};

static struct model odd, tiny;
static struct board *board;
static int bound;      /* k */
static bool ends_soon; /* the last worker takes two steps only */

static int steps_of(const struct job *j, int worker)
{
	return ends_soon && worker == j->n_workers - 1 && worker > 0 ? 2 : STEPS;
}

/* Worker 0 is slow: it pushes step s when all others have begun the last step that they may. */
static void dawdle(const struct job *j, int s)
{
	double start = mu_now();

	for (int v = 1; v < j->n_workers; v++) {
		int last = s + bound < steps_of(j, v) ? s + bound : steps_of(j, v);

		while (board->begun[v] < last && mu_now() - start < PATIENCE)
			sched_yield();
		CHECK(board->begun[v] >= last);
	}
	usleep(30000); /* for steps that they may not */
}

static void push(const struct job *j, const struct model *m, int s)
{
	must(mu_kv_step_begin(j->kv, 2));
	for (size_t k = m->n_keys; k-- > 0;) {
		if (k == 0) {
			if (j->worker == 0)
				dawdle(j, s);
			board->pushing[j->worker] = s;
		}
		must(mu_kv_push_ready(j->kv, k));
	}
}

/* Step s + 1 starts with any key, also with one whose server has all pushes of it. */
static void check_start(const struct job *j, const struct model *m, int s)
{
	must(mu_kv_pull_end(j->kv, s % 2 ? 0 : m->n_keys - 1));
	for (int v = 0; v < j->n_workers; v++)
		CHECK(board->pushing[v] >=
		      (s - bound < steps_of(j, v) ? s - bound : steps_of(j, v)));
	board->begun[j->worker] = s + 1;
}

/* Every push adds 1: weights hold all that the bound says. */
static void check_weights(const struct job *j, const struct model *m, int s)
{
	const float *w = mu_kv_weights(j->kv);
	float least = (float)s, most = (float)s;
	size_t wrong = 0;

	for (int v = 0; v < j->n_workers; v++) {
		if (v == j->worker)
			continue;
		most += (float)steps_of(j, v);
		if (s > bound)
			least += (float)(s - bound < steps_of(j, v) ? s - bound : steps_of(j, v));
	}
	for (size_t k = 0; k < m->n_keys; k++)
		must(mu_kv_pull_end(j->kv, k));
	for (size_t i = 0; i < mu_kv_n(j->kv); i++)
		wrong += w[i] < least || w[i] > most;
	CHECK(wrong == 0);
}

static void check_figures(const struct job *j)
{
	struct mu_kv_staleness stale;
	double sum = 0, pushes = 0;
	/* Worker 0 for the one that finishes late; who takes more steps than k for worker 0. */
	bool waits = ends_soon && j->n_workers == 2;

	mu_kv_staleness(j->kv, &stale);
	for (size_t i = 0; i < MU_KV_STALENESS_BINS; i++)
		sum += stale.counts[i];
	for (int v = 0; v < j->n_workers; v++) {
		pushes += steps_of(j, v);
		waits |= v > 0 && steps_of(j, v) > bound;
	}
	CHECK(sum == stale.pushes && stale.pushes >= pushes);
	/* Others are at most k steps behind what was pulled, and k + 1 ahead when it is used. */
	CHECK(stale.max <= (j->n_workers - 1) * (2 * bound + 1));
	CHECK(waits == (stale.held_back > 0) && waits == (stale.held_back_seconds > 0));
}

/* Of two workers, the one that ends soon finishes when the other waits for it and nothing else. */
static void finish_late(const struct job *j)
{
	double start = mu_now();

	if (j->n_workers != 2 || steps_of(j, j->worker) == STEPS)
		return;
	while (board->pushing[0] < 2 + bound + 1 && mu_now() - start < PATIENCE)
		sched_yield();
	CHECK(board->pushing[0] >= 2 + bound + 1);
	usleep(300000);
}

static void bound_worker(struct job *j, const struct model *m)
{
	size_t n = mu_kv_n(j->kv);

	board->begun[j->worker] = 1;
	board->pushing[j->worker] = 0;
	must(mu_kv_weights_init(j->kv)); /* all weights 0 */
	must(mu_barrier(members.peers));
	for (size_t i = 0; i < n; i++)
		mu_kv_gradients(j->kv)[i] = 1;
	for (int s = 1; s <= steps_of(j, j->worker); s++) {
		push(j, m, s);
		check_start(j, m, s);
		check_weights(j, m, s);
		if (s % 2)
			must(mu_kv_step_end(j->kv));
	}
	finish_late(j);
	must(mu_kv_finish(j->kv));
	check_figures(j);
}

/* ---- a word that is said, as at a signal: nobody waits for who may take no more steps ---- */

enum { WORD = 7 };
static int speaker; /* the worker that says it */
static bool told;

static uint64_t say(void *context)
{
	const struct job *j = context;

	return told && j->worker == speaker ? WORD : 0;
}

/* All others end before worker 0 has pushed its second step: the bound would keep them from it. */
static void let_all_end(const struct job *j)
{
	double start = mu_now();

	for (int v = 1; v < j->n_workers; v++) {
		while (board->begun[v] <= STEPS && mu_now() - start < PATIENCE)
			sched_yield();
		CHECK(board->begun[v] > STEPS);
	}
}

static void word_worker(struct job *j, const struct model *m)
{
	mu_kv_say(j->kv, say, j);
	board->begun[j->worker] = 1;
	must(mu_kv_weights_init(j->kv));
	must(mu_barrier(members.peers));
	for (int s = 1; s <= STEPS; s++) {
		/* Another one than worker 0 says it when the bound is about to hold it. */
		told = s >= (speaker == 0 ? 2 : bound + 2);
		must(mu_kv_step_begin(j->kv, 2));
		for (size_t k = m->n_keys; k-- > 0;) {
			if (k == 0 && s == 2 && j->worker == 0)
				let_all_end(j);
			must(mu_kv_push_ready(j->kv, k));
		}
		for (size_t k = 0; k < m->n_keys; k++)
			must(mu_kv_pull_end(j->kv, k));
		board->begun[j->worker] = s + 1;
	}
	must(mu_kv_step_end(j->kv));
	CHECK(mu_kv_notice(j->kv) == WORD);
	must(mu_kv_finish(j->kv));
}

static struct job job_of(const char *type, const char *rule)
{
	return (struct job){.config = {.type = type,
				       .optim = {.name = rule},
				       .schedule = {.lr = 1, .factor = 1},
				       .bounded = true,
				       .max_staleness = (size_t)bound}};
}

static void test_bound(const struct model *m, const char *type, size_t bucket_bytes)
{
	static const int bounds[] = {0, 1, 3};

	for (size_t i = 0; i < 6; i++) {
		struct job j;

		bound = bounds[i / 2];
		ends_soon = i % 2;
		j = job_of(type, "sum");
		j.config.bucket_bytes = bucket_bytes;
		j.config.node_reduce = (i + i / 2) % 2 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO;
		job_run(&j, m, bound_worker);
	}
}

static void test_word(const struct model *m)
{
	for (int i = 0; i < 4; i++) {
		struct job j;

		bound = i / 2;
		speaker = i % 2 ? members.num_workers - 1 : 0;
		j = job_of("dist_async", "sum");
		job_run(&j, m, word_worker);
	}
}

/* Steps in which keys come in any order; also of a rule that updates a push as a whole. */
static void steps_worker(struct job *j, const struct model *m)
{
	must(mu_kv_weights_init(j->kv));
	for (size_t step = 1; step <= STEPS; step++) {
		fill(m, mu_kv_gradients(j->kv), step, j->worker);
		push_pull(j, m->n_keys, 2, step);
	}
	must(mu_kv_step_end(j->kv));
	must(mu_barrier(members.peers));
	must(mu_kv_fetch(j->kv));
	CHECK(mu_kv_progress(j->kv) == 2.0 * STEPS * j->n_workers);
	must(mu_kv_finish(j->kv));
}

static void early_worker(struct job *j, const struct model *m)
{
	must(mu_kv_weights_init(j->kv));
	must(mu_kv_step_begin(j->kv, 1));
	must(mu_kv_push_ready(j->kv, m->n_keys - 1));
	for (size_t k = m->n_keys - 1; k-- > 0;) {
		if (k == 0) {
			CHECK(mu_kv_pull_end(j->kv, m->n_keys - 1) == MU_ERR_ARGUMENT);
			CHECK_HAS(mu_trace_message(), "bound of staleness");
			mu_trace_clear();
		}
		must(mu_kv_push_ready(j->kv, k));
	}
	must(mu_kv_finish(j->kv));
}

static void test_refused(const char *type, const char *says)
{
	struct job j = job_of(type, "sum");

	j.config.members = &members;
	j.config.slices = members.role == MU_ROLE_WORKER ? odd.slices : NULL;
	j.config.n_slices = members.role == MU_ROLE_WORKER ? odd.n_keys : 0;
	CHECK(mu_kv_new(&j.kv, &j.config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), says);
	mu_trace_clear();
}

static void open_board(void)
{
	int file;

	if (rank == 0) {
		file = open("board", O_RDWR | O_CREAT, 0600);
		CHECK(file >= 0 && ftruncate(file, sizeof *board) == 0);
		close(file);
	}
	must(mu_barrier(world));
	file = open("board", O_RDWR);
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (!CHECK(board != MAP_FAILED))
		mu_world_abort(1);
	close(file);
	must(mu_barrier(world));
	if (rank == 0)
		unlink("board");
}

static void once(void)
{
	model_odd(&odd);
	model_tiny(&tiny);
	open_board();
}

static void each(void)
{
	struct job steps, early;

	bound = 1;
	if (members.num_servers == 0) {
		test_refused("dist_allreduce", "dist_async");
		return;
	}
	test_refused("dist_sync", "dist_async");
	if (members.num_servers > 2)
		return;
	steps = job_of("dist_async", "sgd");
	steps.config.optim.clip_global_norm = 0.5;
	if (members.num_servers == 1)
		job_run(&steps, &odd, steps_worker);
	steps = job_of("dist_async", "sgd");
	steps.config.max_staleness = SIZE_MAX; /* as good as none */
	job_run(&steps, &odd, steps_worker);
	early = job_of("dist_async", "sum");
	job_run(&early, &odd, early_worker);
	test_bound(&odd, "dist_async", 16384);
	test_word(&odd);
	test_bound(&tiny, "dist_device_async", 16384); /* a second server holds nothing */
	test_bound(&tiny, "dist_async", 64);           /* two servers hold a key each */
}

int main(int argc, char **argv)
{
	int status = run_tests(argc, argv, once, each);

	munmap(board, sizeof *board);
	return status;
}
