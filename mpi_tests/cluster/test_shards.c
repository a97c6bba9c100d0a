/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 2 3 4 7 */
/* @tier full */
/*
 * Shards of gradients: the bits of dist_sharded without them, whatever the rule, the buckets, and
 * how ranks of a node exchange data; less memory; what is refused.
 */
#include "../lib/store_job.h"

static struct model lenet, odd, one, tiny, deep;
static struct mu_kv_life lives[MAX_KEYS];

enum { WIDTH = 30000 };

/* 16 equal layers of two keys. Gaps behind keys are no padding of theirs. */
static void model_deep(struct model *m)
{
	*m = (struct model){.name = "deep"};
	for (size_t i = 0; i < 32; i++)
		model_add(m, i % 2 ? 30 : WIDTH);
	for (size_t i = 0; i < 32; i++)
		m->slices[i].n_padded = m->slices[i].n;
}

/* Two keys a layer. tied: the first key is written first with the last layer. */
static void live(const struct model *m, bool tied)
{
	for (size_t k = 0; k < m->n_keys; k++)
		lives[k].from = lives[k].to = (m->n_keys - 1 - k) / 2;
	if (tied)
		lives[0].from = 0;
}

static const struct {
	const char *rule;
	double clip;
} cases[] = {{"sgd", 0}, {"adam", 0}, {"sgd", 0.5}, {"lamb", 0.2}, {"lars", 0}, {"sum", 0}};

enum { CASES = sizeof cases / sizeof *cases };

static struct mu_kv_config config_of(size_t i)
{
	struct mu_kv_config config = exact;

	if (i > 0)
		must(mu_optim_defaults(&config.optim, cases[i].rule));
	config.optim.wd = i > 0 ? 0.01 : config.optim.wd;
	config.optim.clip_global_norm = cases[i].clip;
	config.type = "dist_sharded";
	return config;
}

/* ---- a worker ---- */

static float *key_gradients(const struct job *j, const struct model *m, size_t k)
{
	const size_t *places = mu_kv_gradient_places(j->kv);

	return mu_kv_gradients(j->kv) + (places ? places[k] : m->slices[k].at);
}

/* Sums of three depend on their order. */
static float gradient(uint64_t step, int worker, size_t i)
{
	static float draws[4093];

	for (size_t d = 0; draws[0] == 0 && d < 4093; d++)
		draws[4092 - d] = draw(1, 0, d);
	return draws[(i * 7 + step * 1013 + (size_t)worker * 331) % 4093];
}

/* The gradients of a step, layer after layer. Workers are at different layers at a time. */
static void backward(struct job *j, const struct model *m, uint64_t step)
{
	for (size_t t = 0; t <= lives[0].to; t++) {
		for (size_t k = m->n_keys; k-- > 0;) {
			float *g = key_gradients(j, m, k);

			if (lives[k].from > t || lives[k].to < t)
				continue;
			must(mu_kv_gradients_begin(j->kv, k));
			for (size_t i = 0; i < m->slices[k].n; i++)
				g[i] = gradient(step, j->worker, m->slices[k].at + i);
		}
		for (size_t k = m->n_keys; k-- > 0;)
			if (lives[k].to == t)
				must(mu_kv_push_ready(j->kv, k));
		if (t % 5 == (size_t)j->worker % 5)
			must(mu_kv_poll(j->kv));
	}
}

/* The hash of the weights after some steps; *layout, unless it is NULL. */
static uint64_t hash_of(const struct model *m, struct mu_kv_config config,
			struct mu_kv_layout *layout)
{
	struct job j = {.config = config};
	uint64_t hash;

	job_open(&j, m, config.type, &members);
	if (j.worker == 0)
		fill(m, mu_kv_weights(j.kv), 999, 0);
	must(mu_kv_weights_init(j.kv));
	for (uint64_t step = 1; step <= BIT_STEPS; step++) {
		must(mu_kv_step_begin(j.kv, 3 + (size_t)j.worker));
		backward(&j, m, step);
		for (size_t k = 0; step % 2 && k < m->n_keys; k++)
			must(mu_kv_pull_end(j.kv, k));
	}
	must(mu_kv_finish(j.kv));
	hash = hash_floats(mu_kv_weights(j.kv), mu_kv_n(j.kv));
	if (layout)
		mu_kv_layout(j.kv, layout);
	mu_kv_free(j.kv);
	return hash;
}

static void test_bits(const struct model *m, size_t i, bool tied)
{
	static const size_t buckets[] = {0, 1, 1000, 200000};
	static const enum mu_kv_node nodes[] = {MU_KV_NODE_AUTO, MU_KV_NODE_NONE, MU_KV_NODE_MPI};
	struct mu_kv_config config = config_of(i);
	uint64_t expected;

	live(m, tied);
	expected = hash_of(m, config, NULL);
	config.lives = lives;
	for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++)
		for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
			config.bucket_bytes = buckets[b];
			config.message_bytes = b == 2 ? 10000 : 0;
			config.node_reduce = nodes[k];
			if (!CHECK(hash_of(m, config, NULL) == expected))
				fprintf(stderr, "... %s: %s, clip %g, bucket %zu, node %d%s\n",
					m->name, cases[i].rule, cases[i].clip, buckets[b],
					(int)nodes[k], tied ? ", tied" : "");
		}
}

/* ---- memory ---- */

/* Slots of three layers, where all others are equal; what arrives as many; sums of a part. */
static void test_memory(size_t i)
{
	const size_t layer = (WIDTH + 64) * sizeof(float), part = 16 * layer / (size_t)size + 4096;
	struct mu_kv_config config = config_of(i);
	struct mu_kv_layout whole, sharded;
	size_t sources = (size_t)members.topology.num_nodes - 1;

	live(&deep, false);
	config.bucket_bytes = layer;
	hash_of(&deep, config, &whole);
	config.lives = lives;
	hash_of(&deep, config, &sharded);
	CHECK(whole.memory.gradients >= 16 * WIDTH * sizeof(float));
	CHECK(sharded.memory.gradients <= 4 * layer);
	if (sharded.shares_memory)
		CHECK(sharded.memory.arrived <= sources * (4 * layer / (size_t)size + 4096));
	CHECK(sharded.memory.sums <= (cases[i].clip > 0 ? part : 0));
}

/* ---- errors ---- */

static void refused(struct mu_kv_config config, const char *text)
{
	struct mu_kv *kv = NULL;

	config.members = &members;
	config.slices = odd.slices;
	config.n_slices = odd.n_keys;
	config.lives = lives;
	CHECK(mu_kv_new(&kv, &config) == MU_ERR_USAGE && !kv);
	if (!CHECK(strstr(mu_trace_message(), text)))
		mu_trace_print(stderr, text);
	mu_trace_clear();
}

static void test_refused(void)
{
	struct mu_kv_config config = config_of(0);

	live(&odd, false);
	config.type = "dist_allreduce";
	refused(config, "they are for dist_sharded");
	config.type = "dist_sharded";
	config.local_sgd.period = 2;
	refused(config, "local SGD");
	config.local_sgd.period = 0;
	config.compression.type = "fp16";
	refused(config, "compression");
}

/* A key that has the memory of one that is not pushed; a push without begin. */
static void test_order(void)
{
	struct job j = {.config = config_of(0)};

	live(&deep, false);
	j.config.lives = lives;
	j.config.bucket_bytes = 1;
	job_open(&j, &deep, "dist_sharded", &members);
	must(mu_kv_weights_init(j.kv));
	CHECK(mu_kv_gradients_begin(j.kv, 0) == MU_ERR_ARGUMENT);
	mu_trace_clear();
	must(mu_kv_step_begin(j.kv, 1));
	CHECK(mu_kv_push_ready(j.kv, 31) == MU_ERR_ARGUMENT);
	CHECK(strstr(mu_trace_message(), "without mu_kv_gradients_begin"));
	mu_trace_clear();
	CHECK(mu_kv_gradients_begin(j.kv, 0) == MU_ERR_ARGUMENT);
	CHECK(strstr(mu_trace_message(), "which has the same memory, is pushed"));
	mu_trace_clear();
	backward(&j, &deep, 1);
	must(mu_kv_finish(j.kv));
	mu_kv_free(j.kv);
}

static void once(void)
{
	model_lenet(&lenet);
	model_odd(&odd);
	model_one(&one);
	model_tiny(&tiny);
	model_deep(&deep);
}

static void each(void)
{
	if (members.num_servers > 0)
		return;
	for (size_t i = 0; i < CASES; i++) {
		test_bits(&deep, i, i % 2);
		test_bits(&odd, i, false);
	}
	test_bits(&lenet, 2, true);
	test_bits(&one, 1, false);
	test_bits(&tiny, 3, false);
	test_memory(0);
	test_memory(2);
	test_order();
	test_refused();
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
