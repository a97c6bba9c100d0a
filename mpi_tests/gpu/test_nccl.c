/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 2 3 @gpu */
/*
 * The stores of GPUs on GPUs: exact sums on every GPU, the updates and states of the store `local`,
 * on the GPUs, on the CPU or on servers, checkpoints, and two workers that have the same GPU.
 * Factors are powers of two, so that no product is rounded, joined with a sum or not. Needs a GPU,
 * and a build with NCCL.
 */
#include <muster/gpus.h>

#include "device/op.h"
#include "../lib/store_job.h"

static const char *const types[] = {"nccl_allreduce", "nccl", "dist_allreduce", "dist_sharded",
				    "device"};
enum { N_TYPES = 5, MAX_GPUS = 16, STEPS = 5 };

/* Sums inside nodes, and messages. */
static const char *const by_servers[] = {"dist_sync", "dist_device_sync", "dist_async"};
enum { N_BY_SERVERS = 3 };

static const struct mu_device_ops *gpu; /* the kind */
static struct model lenet, odd, one, tiny;

/* The GPUs of this rank, and the host's arrays that their gradients stand for. */
struct rig {
	size_t n, first, n_all;
	struct mu_device devices[MAX_GPUS];
	struct mu_kv_device of[MAX_GPUS];
	float *weights[MAX_GPUS], *gradients[MAX_GPUS]; /* on the GPUs */
	float *seen;                                    /* weights of a GPU */
};

/* Worker w of n has GPUs w, w + n, ...; share: all have the first one. */
static void rig_open(struct rig *r, bool share)
{
	char why[256], name[32];
	const size_t n_gpus = (size_t)gpu->count(why, sizeof why);
	const size_t me = (size_t)members.index, n_workers = (size_t)members.num_workers;

	*r = (struct rig){.n_all = n_gpus < MAX_GPUS ? n_gpus : MAX_GPUS};
	for (size_t g = share ? 0 : me; g < r->n_all; g += n_workers) {
		snprintf(name, sizeof name, "gpu:%zu", g);
		must(mu_device_open(&r->devices[r->n++], name, 1));
		if (share)
			break;
	}
	for (size_t k = 0; k < me; k++)
		r->first += (r->n_all - k + n_workers - 1) / n_workers;
}

/* Before the store is closed: it must outlive nothing of it. */
static void rig_leave(struct rig *r)
{
	for (size_t i = 0; i < r->n; i++) {
		gpu->memory->unmirror(&r->devices[i], r->weights[i]);
		gpu->memory->unmirror(&r->devices[i], r->gradients[i]);
	}
}

static void rig_close(struct rig *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (i > 0)
			mu_free(r->of[i].gradients);
		mu_device_close(&r->devices[i]);
	}
	mu_free(r->seen);
}

/* Arrays, and the store's devices. */
static enum mu_status rig_join(struct rig *r, struct mu_kv *kv)
{
	const size_t n = mu_kv_n(kv);

	must(MU_ALLOC(r->seen, n, "weights"));
	for (size_t i = 0; i < r->n; i++) {
		r->of[i].device = &r->devices[i];
		r->of[i].gradients = mu_kv_gradients(kv);
		if (i > 0)
			must(MU_ALLOC(r->of[i].gradients, n, "gradients"));
		must(gpu->memory->mirror(&r->devices[i], &r->weights[i], mu_kv_weights(kv), n));
		must(gpu->memory->mirror(&r->devices[i], &r->gradients[i], r->of[i].gradients, n));
	}
	return mu_kv_set_devices(kv, r->of, r->n);
}

/* What element i of GPU `which` is in a step: sums over GPUs are exact. */
static float gradient(size_t which, size_t i, size_t step)
{
	return (float)(i % 13) + (float)which + (float)step;
}

static void set_gradients(struct rig *r, const struct model *m, size_t n, size_t step)
{
	for (size_t d = 0; d < r->n; d++) {
		memset(r->seen, 0, n * sizeof *r->seen);
		for (size_t k = 0; k < m->n_keys; k++)
			for (size_t i = 0; i < m->slices[k].n; i++)
				r->seen[m->slices[k].at + i] =
					gradient(r->first + d, m->slices[k].at + i, step);
		must(gpu->memory->upload(&r->devices[d], r->gradients[d], r->seen,
					 n * sizeof *r->seen));
		/* The array of the host is written again for the next GPU. */
		{
			uint64_t mark;
			bool reached;

			must(gpu->memory->mark(&r->devices[d], &mark));
			must(gpu->memory->reach(&r->devices[d], mark, true, &reached));
		}
	}
}

/* The weights of a GPU, behind all it was given. */
static void see(struct rig *r, size_t d, size_t n)
{
	uint64_t mark;
	bool reached;

	must(gpu->memory->download(&r->devices[d], r->seen, r->weights[d], n * sizeof *r->seen));
	must(gpu->memory->mark(&r->devices[d], &mark));
	must(gpu->memory->reach(&r->devices[d], mark, true, &reached));
}

static void begin_weights(const struct model *m, float *w)
{
	for (size_t k = 0; k < m->n_keys; k++)
		for (size_t i = 0; i < m->slices[k].n; i++)
			w[m->slices[k].at + i] = (float)(i % 17);
}

/* What the store `local` makes of the sums: weights, and the states behind them. */
static void expected(const struct model *m, const struct mu_kv_config *config, size_t n_all,
		     struct job *j)
{
	float *g;

	*j = (struct job){.config = *config};
	j->config.node_reduce = MU_KV_NODE_AUTO;
	job_open(j, m, "local", &alone);
	begin_weights(m, mu_kv_weights(j->kv));
	must(mu_kv_weights_init(j->kv));
	g = mu_kv_gradients(j->kv);
	for (size_t step = 1; step <= STEPS; step++) {
		for (size_t k = 0; k < m->n_keys; k++)
			for (size_t i = m->slices[k].at; i < m->slices[k].at + m->slices[k].n;
			     i++) {
				g[i] = 0;
				for (size_t d = 0; d < n_all; d++)
					g[i] += gradient(d, i, step);
			}
		push_pull(j, m->n_keys, 8 * (size_t)members.num_workers, step);
	}
	must(mu_kv_step_end(j->kv));
}

static size_t differ(const float *a, const float *b, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += a[i] != b[i];
	return wrong;
}

/* This worker's share of the states is that of the store `local`, which has the same layout. */
static void check_states(struct job *j, struct job *other, const struct model *m)
{
	const char *names[MU_KV_MAX_STATES];
	const int n_states = mu_kv_state_names(j->kv, names);
	const size_t n = mu_kv_n(j->kv);
	struct mu_kv_snapshot mine = {.from = 0}, theirs = {.from = 0, .to = n};
	size_t first, end;

	mu_kv_snapshot_share(j->kv, false, &first, &end);
	mine.from = first < m->n_keys ? m->slices[first].at : n;
	mine.to = end < m->n_keys ? m->slices[end].at : n;
	must(MU_ALLOC(mine.weights, n, "weights"));
	must(MU_ALLOC(theirs.weights, n, "weights"));
	for (int i = 0; i < n_states; i++) {
		must(MU_ALLOC(mine.arrays[i], n, "states"));
		must(MU_ALLOC(theirs.arrays[i], n, "states"));
	}
	must(mu_kv_snapshot_save(j->kv, &mine, false));
	must(mu_kv_snapshot_save(other->kv, &theirs, false));
	CHECK(mine.updates == STEPS && mine.progress == theirs.progress);
	CHECK(mine.last_lr == theirs.last_lr);
	CHECK(differ(mine.weights, theirs.weights + mine.from, mine.to - mine.from) == 0);
	for (int i = 0; i < n_states; i++) {
		CHECK(differ(mine.arrays[i], theirs.arrays[i] + mine.from, mine.to - mine.from) ==
		      0);
		mu_free(mine.arrays[i]);
		mu_free(theirs.arrays[i]);
	}
	mu_free(mine.weights);
	mu_free(theirs.weights);
}

/* What a checkpoint holds comes back to the GPUs. */
static void save_and_load(struct job *j, size_t n, struct mu_kv_snapshot *x)
{
	const char *names[MU_KV_MAX_STATES];
	const int n_states = mu_kv_state_names(j->kv, names);

	x->to = n;
	must(MU_ALLOC(x->weights, n, "weights"));
	for (int i = 0; i < n_states; i++)
		must(MU_ALLOC(x->arrays[i], n, "states"));
	must(mu_kv_snapshot_save(j->kv, x, false));
	must(mu_kv_snapshot_load(j->kv, x));
	for (int i = 0; i < n_states; i++)
		mu_free(x->arrays[i]);
	mu_free(x->weights);
}

/* Every GPU has them at the end, and every host. */
static void check_end(struct job *j, struct job *local, const struct model *m, struct rig *r)
{
	const size_t n = mu_kv_n(j->kv);
	const float *w = mu_kv_weights(local->kv);
	struct mu_kv_type is;

	must(mu_kv_type_check(j->config.type, &is));
	must(mu_kv_step_end(j->kv));
	if (!is.synchronous) {
		must(mu_kv_meet(j->kv));
		must(mu_kv_fetch(j->kv));
	}
	for (size_t d = 0; d < r->n; d++) {
		see(r, d, n);
		CHECK(differ(r->seen, w, n) == 0);
	}
	if (is.synchronous) {
		must(mu_kv_verify(j->kv, "at the end"));
		check_states(j, local, m);
	}
	CHECK(differ(mu_kv_weights(j->kv), w, n) == 0);
}

static void test_training(const struct model *m, const char *type,
			  const struct mu_kv_config *config)
{
	struct job j = {.config = *config}, local;
	struct rig r;
	struct mu_kv_snapshot saved = {.from = 0};
	const size_t before = (size_t)check_failures();
	const bool by_nodes = members.num_servers > 0 || config->node_reduce == MU_KV_NODE_NCCL;
	size_t n;

	j.config.on_gpus = true;
	job_open(&j, m, type, &members);
	if (!j.is_worker) {
		must(mu_kv_serve(j.kv));
		mu_kv_free(j.kv);
		return;
	}
	rig_open(&r, false);
	expected(m, config, r.n_all, &local);
	n = mu_kv_n(j.kv);
	must(rig_join(&r, j.kv));
	if (j.worker == 0)
		begin_weights(m, mu_kv_weights(j.kv));
	must(mu_kv_weights_init(j.kv));
	for (size_t step = 1; step <= STEPS; step++) {
		set_gradients(&r, m, n, step);
		push_pull(&j, m->n_keys, 8, step);
		if (step == 2 && !by_nodes) /* else servers have the states */
			save_and_load(&j, n, &saved);
	}
	check_end(&j, &local, m, &r);
	must(mu_kv_finish(j.kv));
	must(mu_kv_finish(local.kv));
	rig_leave(&r);
	mu_kv_free(j.kv);
	mu_kv_free(local.kv);
	rig_close(&r);
	if ((size_t)check_failures() > before)
		fprintf(stderr, "... rank %d of %d: %s, %s, %s\n", rank, size, m->name, type,
			config->optim.name);
}

/* NCCL takes a GPU once. */
static void test_same_gpu(const struct model *m, const char *type)
{
	struct job j = {.config = exact};
	struct rig r;

	rig_open(&r, true);
	j.config.on_gpus = true;
	job_open(&j, m, type, &members);
	CHECK(rig_join(&r, j.kv) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "workers 0 and 1 have the same GPU");
	mu_trace_clear();
	rig_leave(&r);
	mu_kv_free(j.kv);
	rig_close(&r);
}

static void once(void)
{
	model_lenet(&lenet);
	model_odd(&odd);
	model_one(&one);
	model_tiny(&tiny);
}

/* Are there GPUs enough for the workers? */
static bool has_gpus(const char *type)
{
	char why[256];
	const int n = gpu->count(why, sizeof why), n_workers = members.num_workers;

	if (n_workers > n && rank == 0)
		printf("%s: %d GPUs for %d workers: sums are not tested\n", type, n, n_workers);
	return n_workers <= n;
}

/* Small buckets, so that their parts have homes on all GPUs. */
static void each_by_nodes(const struct mu_kv_config *sum, const struct mu_kv_config *halves,
			  const struct mu_kv_config *norms)
{
	struct mu_kv_config config[] = {*sum, *halves, *norms};

	for (size_t i = 0; i < 3; i++)
		config[i].node_reduce = MU_KV_NODE_NCCL;
	config[0].bucket_bytes = 20000;
	if (members.num_servers == 0) {
		test_training(&lenet, "dist_sharded", &config[0]);
		test_training(&tiny, "dist_sharded", &config[1]);
		test_training(&odd, "dist_sharded", &config[2]);
	}
	for (size_t t = 0; members.num_servers > 0 && t < N_BY_SERVERS; t++) {
		test_training(&lenet, by_servers[t], &config[0]);
		test_training(&one, by_servers[t], sum);
		if (t == N_BY_SERVERS - 1) /* its updates depend on who pushes first */
			break;
		test_training(&tiny, by_servers[t], &config[1]);
		test_training(&odd, by_servers[t], halves);
		test_training(&odd, by_servers[t], &config[2]);
	}
}

static void each(void)
{
	const struct mu_kv_config sum = {.optim = {.name = "sum"},
					 .schedule = {.lr = 1, .factor = 1}};
	const struct mu_kv_config halves = {.optim = {.name = "sgd", .mom = 0.5},
					    .schedule = {.lr = 0.25, .factor = 1}};
	const struct mu_kv_config norms = {
		.optim = {.name = "sgd", .mom = 0.9, .clip_global_norm = 1},
		.schedule = {.lr = 0.1, .factor = 1}};

	if (has_gpus("stores of nodes"))
		each_by_nodes(&sum, &halves, &norms);
	if (members.num_servers > 0 || members.topology.num_nodes > 1)
		return;
	for (size_t t = 0; t < (size > 1 ? N_TYPES - 1 : N_TYPES); t++) {
		if (size > 1)
			test_same_gpu(&odd, types[t]);
		if (!has_gpus(types[t]))
			continue;
		test_training(&lenet, types[t], &sum);
		test_training(&one, types[t], &sum);
		test_training(&tiny, types[t], &halves);
		test_training(&odd, types[t], &halves);
		test_training(&odd, types[t], &norms);
	}
}

/* The reason to skip; NULL: there is none. */
static const char *missing(char *why, size_t nbytes)
{
	struct mu_kv_type is;

	for (size_t i = 0; mu_device_table[i]; i++)
		if (mu_device_table[i]->memory)
			gpu = mu_device_table[i];
	if (mu_kv_type_check("nccl", &is) != MU_OK) {
		snprintf(why, nbytes, "%s", mu_trace_message());
		mu_trace_clear();
		return why;
	}
	if (!gpu)
		return "this build has no device gpu";
	return gpu->count(why, nbytes) > 0 ? NULL : why;
}

int main(int argc, char **argv)
{
	char why[512];
	const char *reason = missing(why, sizeof why);

	if (reason) {
		printf("skipped, for want of a GPU: %s\n", reason);
		return CHECK_SKIPPED;
	}
	return run_tests(argc, argv, once, each);
}
