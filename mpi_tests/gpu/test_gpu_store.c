/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 */
/*
 * What the stores of GPUs (nccl, nccl_allreduce) do without a GPU: shards, and errors. What needs
 * one is in test_nccl.
 */
#include <muster/gpus.h>

#include "../lib/store_job.h"

static const char *const types[] = {"nccl", "nccl_allreduce"};
enum { N_TYPES = 2 };

static struct model odd;

/* ---- shards ---- */

/* Of a bucket of n elements over n_gpus GPUs: in their order, without a gap, as equal as can be. */
static void check_shards(size_t n, size_t n_gpus)
{
	const size_t each = n / (n_gpus * 64) * 64;
	size_t at = 0;

	for (size_t g = 0; g < n_gpus; g++) {
		struct mu_kv_shard s = mu_kv_shard(n, g, n_gpus);

		CHECK(s.at == at && s.at % MU_KV_SHARD_GRAIN == 0);
		CHECK(g + 1 == n_gpus || s.n == each);
		at += s.n;
	}
	CHECK(at == n);
	CHECK(mu_kv_shard(n, n_gpus - 1, n_gpus).n < each + n_gpus * 64);
}

static void test_shards(void)
{
	static const size_t sizes[] = {0, 16, 48, 64, 80, 128, 192, 1008, 16384, 16400, 1000000};
	struct mu_kv_shard last = mu_kv_shard(1008, 2, 3);

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t n_gpus = 1; n_gpus <= 9; n_gpus++)
			check_shards(sizes[i], n_gpus);
	/* 1008 = 3 x 320 + 48 */
	CHECK(last.at == 640 && last.n == 368);
	CHECK(mu_kv_shard(128, 0, 3).n == 0 && mu_kv_shard(128, 2, 3).n == 128);
}

/* ---- errors ---- */

/* A build without NCCL has no such store. */
static bool has_nccl(void)
{
	struct mu_kv_type is;
	bool has = mu_kv_type_check("nccl", &is) == MU_OK;

	mu_trace_clear();
	return has;
}

static void test_without_nccl(void)
{
	struct mu_kv_type is;

	for (size_t i = 0; i < N_TYPES; i++) {
		CHECK(mu_kv_type_check(types[i], &is) == MU_ERR_USAGE);
		CHECK_HAS(mu_trace_message(), "this build has no CUDA with NCCL");
		CHECK_HAS(mu_trace_message(), "it has local, device, dist_sync");
		mu_trace_clear();
	}
}

static void test_types(void)
{
	struct mu_kv_type is;

	for (size_t i = 0; i < N_TYPES; i++) {
		CHECK(mu_kv_type_check(types[i], &is) == MU_OK);
		CHECK(is.on_gpus && is.synchronous && is.distributed && is.sums_on_devices);
		CHECK(!is.has_servers);
	}
	CHECK(mu_kv_type_check("dist_sharded", &is) == MU_OK && !is.on_gpus);
	CHECK(mu_kv_type_check("device", &is) == MU_OK && !is.on_gpus);
}

static void expect_refused(const struct mu_kv_config *config, const char *text)
{
	struct mu_kv *kv = NULL;

	CHECK(mu_kv_new(&kv, config) == MU_ERR_USAGE && !kv);
	CHECK_HAS(mu_trace_message(), text);
	mu_trace_clear();
}

static struct mu_kv_config config_of(const char *type)
{
	struct mu_kv_config config = exact;

	config.type = type;
	config.slices = odd.slices;
	config.n_slices = odd.n_keys;
	config.members = &members;
	return config;
}

/* What needs a store whose sums the CPUs make. */
static void expect_cpu_settings_refused(struct mu_kv_config config)
{
	config.compression = (struct mu_compression){.type = "fp16"};
	expect_refused(&config, "where NCCL sums between GPUs");
	config.compression = (struct mu_compression){.type = NULL};
	config.local_sgd.period = 2;
	expect_refused(&config, "local SGD");
}

/* That, ranks on several nodes, and a bound. */
static void test_settings(const char *type)
{
	struct mu_members two = members;
	struct mu_kv_config config = config_of(type);

	expect_cpu_settings_refused(config);
	config.bounded = true;
	expect_refused(&config, "bound of staleness");
	config.bounded = false;
	config.members = &two;
	two.topology.num_nodes = 2;
	expect_refused(&config, "the ranks are on 2 nodes");
}

/* A store that has its arrays on GPUs because it is told to. */
static void test_on_gpus(void)
{
	struct mu_kv_config config = config_of("dist_allreduce");

	config.on_gpus = true;
	expect_cpu_settings_refused(config);
}

/* The store opens without a GPU, and says what is missing when it is to work. */
static void test_devices(const char *type)
{
	struct job j = {.config = exact};
	struct mu_device device;
	struct mu_kv_device use = {.device = &device};

	must(mu_device_open(&device, "ref", 1));
	job_open(&j, &odd, type, &members);
	use.gradients = mu_kv_gradients(j.kv);
	CHECK(mu_kv_bound(j.kv, 1e9) == 0 && mu_kv_bound_split(j.kv, 1e9) == 0);
	CHECK(mu_kv_weights_init(j.kv) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "mu_kv_set_devices comes before");
	mu_trace_clear();
	CHECK(mu_kv_step_begin(j.kv, 1) == MU_ERR_ARGUMENT);
	mu_trace_clear();
	CHECK(mu_kv_set_devices(j.kv, &use, 0) == MU_ERR_ARGUMENT);
	mu_trace_clear();
	CHECK(mu_kv_set_devices(j.kv, &use, 1) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "ref:0 is none");
	mu_trace_clear();
	mu_kv_free(j.kv);
	mu_device_close(&device);
}

/* Other stores take no devices. */
static void test_others(const char *type)
{
	struct job j = {.config = exact};

	job_open(&j, &odd, type, &members);
	CHECK(mu_kv_set_devices(j.kv, NULL, 0) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "whose arrays are the host's");
	mu_trace_clear();
	mu_kv_free(j.kv);
}

static void once(void)
{
	model_odd(&odd);
	test_shards();
	if (has_nccl())
		test_types();
	else
		test_without_nccl();
}

static void each(void)
{
	if (members.num_servers > 0)
		return;
	test_others("dist_allreduce");
	if (has_nccl())
		test_on_gpus();
	for (size_t i = 0; i < N_TYPES && has_nccl(); i++) {
		test_settings(types[i]);
		test_devices(types[i]);
	}
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
