/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 7 */
/*
 * Synchronous stores: exact sums, equal bits over servers and bucket sizes and against local,
 * layout, errors.
 */
#include "../lib/store_job.h"

static struct model lenet, odd, one, tiny, large;

/* Larger than caches: its sums may be stored past them. */
static void model_large(struct model *m)
{
	*m = (struct model){.name = "large"};
	model_add(m, (1 << 20) + 4001);
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

	for (size_t i = 0; j->worker == 0 && i < n; i++)
		w[i] = (float)(i % 17);
	must(mu_kv_weights_init(j->kv));
	for (size_t i = 0; i < n; i++)
		wrong += w[i] != (float)(i % 17);
	for (size_t step = 1; step <= 5; step++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(i % 13) + (float)j->worker + (float)step;
		/* One worker has no samples in some steps, and is counted all the same. */
		push_pull(j, m->n_keys, step % 2 && j->worker == 0 && j->n_workers > 1 ? 0 : 8,
			  step);
		for (size_t i = 0; i < n; i++) {
			float steps = (float)step;
			float each = (float)(i % 13) * steps + steps * (steps + 1) / 2;

			wrong += w[i] != (float)(i % 17) + workers * each + steps * ranks;
		}
	}
	CHECK(wrong == 0);
	must(mu_kv_finish(j->kv));
}

static void test_sums_by(const struct model *m, const char *type, size_t bucket, size_t message,
			 enum mu_kv_node node)
{
	struct job j = {.config = {.type = type,
				   .optim = {.name = "sum"},
				   .schedule = {.lr = 1, .factor = 1},
				   .bucket_bytes = bucket,
				   .message_bytes = message,
				   .node_reduce = node}};
	int before = check_failures();

	job_run(&j, m, sums_worker);
	if (check_failures() > before)
		fprintf(stderr,
			"... rank %d of %d: %s, %s, %d servers, bucket %zu, message %zu, "
			"node %d\n",
			rank, size, m->name, type, members.num_servers, bucket, message, (int)node);
}

static void test_sums(const struct model *m, const char *type, size_t bucket, size_t message)
{
	test_sums_by(m, type, bucket, message, MU_KV_NODE_AUTO);
	test_sums_by(m, type, bucket, message, MU_KV_NODE_NONE);
}

/* ---- bits ---- */

/*
 * A synchronous store gives the bits of local with the workers' gradients summed in their order,
 * however the model is cut.
 */
static void test_bits(const struct model *m, const char *type)
{
	static const size_t buckets[] = {0, 1, 1000, 1 << 30};
	struct mu_kv_config config = exact;
	/* The local store takes the place of worker 0 and sums for all. */
	uint64_t expected = hash_of_store(m, &exact, "local", &alone, members.num_workers);

	for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++) {
		uint64_t hash;

		config.bucket_bytes = buckets[b];
		config.message_bytes = b == 2 ? 10000 : 0;
		config.node_reduce = b % 2 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO;
		hash = hash_of_store(m, &config, type, &members, 1);
		CHECK(members.role == MU_ROLE_SERVER || hash == expected);
	}
}

/* ---- no rule, zero counts, errors ---- */

/* Without a rule the store is an all-reduce; a round of no samples leaves the weights. */
static void none_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv);
	float *g = mu_kv_gradients(j->kv);
	size_t n = mu_kv_n(j->kv);
	size_t wrong = 0;

	must(mu_kv_weights_init(j->kv));
	for (int step = 1; step <= 3; step++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(step * (j->worker + 1));
		push_pull(j, m->n_keys, step == 3 ? 0 : 1, 1);
		for (size_t i = 0; i < n; i++)
			wrong += w[i] != (float)((step == 3 ? 2 : step) * j->n_workers *
						 (j->n_workers + 1) / 2);
	}
	CHECK(wrong == 0);
	must(mu_kv_finish(j->kv));
}

static void test_none(const struct model *m, const char *type)
{
	static const enum mu_kv_node nodes[] = {MU_KV_NODE_AUTO, MU_KV_NODE_NONE};

	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct job j = {.config = {.type = type,
					   .optim = {.name = "none"},
					   .schedule = {.lr = 1, .factor = 1},
					   .node_reduce = nodes[i]}};

		job_run(&j, m, none_worker);
	}
}

static void test_types(void)
{
	static const char *const on_devices[] = {"device",
						 "dist_device_sync",
						 "dist_sync_device",
						 "dist_device_async",
						 "dist_async_device",
						 "dist_sharded",
						 "dist_allreduce"};
	static const char *const on_cpu[] = {"local", "dist_sync", "dist_async"};
	struct mu_kv_type is;

	for (size_t i = 0; i < sizeof on_devices / sizeof *on_devices; i++)
		CHECK(mu_kv_type_check(on_devices[i], &is) == MU_OK && is.sums_on_devices);
	for (size_t i = 0; i < sizeof on_cpu / sizeof *on_cpu; i++)
		CHECK(mu_kv_type_check(on_cpu[i], &is) == MU_OK && !is.sums_on_devices);

	CHECK(mu_kv_type_check("dist_sync", &is) == MU_OK && is.has_servers && is.distributed &&
	      is.synchronous);
	CHECK(mu_kv_type_check("local", &is) == MU_OK && !is.has_servers && !is.distributed);
	CHECK(mu_kv_type_check("dist_async_device", &is) == MU_OK && !is.synchronous);
	CHECK(mu_kv_type_check("dist_sharded", &is) == MU_OK && !is.has_servers && is.distributed &&
	      is.synchronous);
	CHECK(mu_kv_type_check("dist_syn", &is) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "'dist_syn' is not known: local, device, dist_sync, ");
	mu_trace_clear();
	CHECK(mu_kv_type_check(NULL, &is) == MU_ERR_USAGE);
	mu_trace_clear();
}

static void test_errors(const struct model *m)
{
	struct mu_kv_config config = {
		.type = "dist_sync", .members = &members, .optim = {.name = "sgd"}};
	struct mu_kv *kv = NULL;
	struct model other = *m;
	bool last = members.role == MU_ROLE_WORKER && members.index == members.num_workers - 1;

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
	CHECK(mu_kv_new(&kv, &config) ==
	      (members.role == MU_ROLE_SERVER ? MU_ERR_USAGE : MU_ERR_PEER));
	mu_trace_clear();
	config.type = "local";
	CHECK(mu_kv_new(&kv, &config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "use dist_sync or another dist_ store");
	mu_trace_clear();
}

/* Calls out of order are errors, not hangs. */
static void test_order(const struct model *m)
{
	struct job j = {.config = exact};

	job_open(&j, m, "local", &alone);
	must(mu_kv_weights_init(j.kv));
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

static void test_layout(const struct model *m, const char *type)
{
	struct mu_kv_layout layout;
	struct job j = {.config = exact};
	size_t servers = (size_t)(members.num_servers ? members.num_servers : size);

	job_open(&j, m, type, &members);
	mu_kv_layout(j.kv, &layout);
	CHECK(layout.n_keys == m->n_keys && layout.n_buckets >= 2);
	CHECK(layout.bytes_per_server_max - layout.bytes_per_server_min <= layout.n_buckets * 256);
	CHECK(layout.bytes_per_server_max * servers >= layout.bytes);
	mu_kv_free(j.kv);
}

static void once(void)
{
	struct mu_kv_config config = exact;
	uint64_t hash;

	model_lenet(&lenet);
	model_odd(&odd);
	model_one(&one);
	model_tiny(&tiny);
	model_large(&large);
	test_types();
	test_order(&odd);
	members = alone;
	hash = hash_of_store(&odd, &config, "local", &alone, 2);
	config.bucket_bytes = 3000;
	CHECK(hash == hash_of_store(&odd, &config, "local", &alone, 2));
	CHECK(hash == hash_of_store(&odd, &config, "device", &alone, 2));
	if (size == 1) {
		members = alone;
		test_sums(&odd, "local", 0, 0);
	}
}

static void test_without_servers(const char *type)
{
	test_sums(&lenet, type, 0, 0);
	test_sums(&one, type, 0, 100000);
	test_sums(&odd, type, 1, 0);
	test_sums(&odd, type, 1 << 30, 1);
	test_sums(&tiny, type, 0, 0);
	test_bits(&odd, type);
	test_bits(&tiny, type);
	test_none(&odd, type);
	test_none(&large, type);
	test_layout(&lenet, type);
}

static void each(void)
{
	if (members.num_servers == 0) {
		test_without_servers("dist_sharded");
		test_without_servers("dist_allreduce");
		return;
	}
	test_sums(&lenet, "dist_sync", 0, 0);
	test_sums(&lenet, "dist_sync", 0, 40000);
	test_sums(&one, "dist_sync", 0, 100000);
	test_sums(&odd, "dist_sync", 1, 0);
	test_sums(&odd, "dist_sync", 1 << 30, 1);
	test_sums(&tiny, "dist_sync", 0, 0);
	test_bits(&odd, "dist_sync");
	test_bits(&tiny, "dist_sync");
	test_none(&odd, "dist_sync");
	test_none(&large, "dist_sync");
	test_layout(&lenet, "dist_sync");
	if (members.num_workers > 1)
		test_errors(&odd);
	else
		test_sums(&lenet, "dist_async", 0, 0);
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
