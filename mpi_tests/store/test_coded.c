/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 5 */
/*
 * Compression in stores of a model: what a step does against its plain formula, that nothing is
 * lost, and equal bits whatever the servers, the buckets and the messages.
 */
#include "../lib/store_job.h"

#include <muster/compress.h>

static struct model mixed;

static const struct mu_compression codings[] = {
	{"2bit", 0.5, 0, false}, {"2bit", 0.5, 0, true},   {"1bit", 0, 0, false},
	{"1bit", 0, 0, true},    {"fp16", 0, 0, true},     {"bf16", 0, 0, false},
	{"bf16", 0, 0, true},    {"topk", 0, 0.02, false}, {"topk", 0, 0.02, true},
};
enum { N_CODINGS = sizeof codings / sizeof *codings, STEPS = 6 };

/* Keys of all kinds: long ones with and without padding, short ones, a running average. */
static void make_mixed(struct model *m)
{
	static const size_t sizes[] = {5000, 20, 1024, 1023, 20000, 64, 3001, 1600};

	*m = (struct model){.name = "mixed"};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		model_add(m, sizes[i]);
	m->slices[7].rule = MU_SLICE_AVERAGE;
	m->slices[7].momentum = 0.5f;
	m->slices[6].n_padded = 3001; /* what follows belongs to no key */
}

/* ---- the formula: one worker, the rule sum ---- */

struct plain {
	struct mu_coder push, pull;
	float *rest, *exact, *held; /* held: what workers have */
};

static void code_block(const struct mu_coder *coder, size_t n, float *values, float *said)
{
	static unsigned char codes[8 * MU_COMPRESS_BLOCK];

	if (!coder->codec) {
		memcpy(said, values, n * sizeof *said);
		memset(values, 0, n * sizeof *values);
		return;
	}
	mu_compress(coder, n, values, codes);
	mu_decompress(coder, n, codes, said);
}

static bool is_coded(const struct mu_coder *coder, const struct mu_slice *s)
{
	return coder->codec && s->rule == MU_SLICE_LEARN && s->n >= MU_COMPRESS_BLOCK &&
	       (mu_compress_keeps_zero(coder) || s->n == s->n_padded);
}

/* What a worker's codes say of elements [at, at + n) of key s. */
static void say(const struct plain *p, const struct mu_slice *s, size_t at, size_t n,
		const float *gradients, float *rest, float *said)
{
	const struct mu_coder none = {.codec = NULL};

	for (size_t i = at; i < at + n; i++)
		rest[i] += gradients[i];
	code_block(is_coded(&p->push, s) ? &p->push : &none, n, rest + at, said);
}

/* Elements [at, at + n) of key s, within a block; gradients of all workers, n_model apart. */
static void plain_block(struct plain *p, const struct mu_slice *s, size_t at, size_t n,
			const float *gradients, size_t n_model)
{
	float sum[MU_COMPRESS_BLOCK] = {0}, said[MU_COMPRESS_BLOCK], way[MU_COMPRESS_BLOCK];

	for (int node = 0; node < members.topology.num_nodes; node++) { /* the order of sums */
		float part[MU_COMPRESS_BLOCK] = {0};

		for (int w = 0; w < members.num_workers; w++) {
			if (members.topology.node_of[members.worker_ranks[w]] != node)
				continue;
			say(p, s, at, n, gradients + (size_t)w * n_model,
			    p->rest + (size_t)w * n_model, said);
			for (size_t i = 0; i < n; i++)
				part[i] += said[i];
		}
		for (size_t i = 0; i < n; i++)
			sum[i] += part[i];
	}
	for (size_t i = 0; i < n; i++) {
		p->exact[at + i] += sum[i];
		way[i] = p->exact[at + i] - p->held[at + i];
	}
	if (!is_coded(&p->pull, s)) {
		memcpy(p->held + at, p->exact + at, n * sizeof *p->held);
		return;
	}
	code_block(&p->pull, n, way, said);
	for (size_t i = 0; i < n; i++)
		p->held[at + i] += said[i];
}

static void plain_step(struct plain *p, const struct model *m, const float *gradients,
		       size_t n_model)
{
	for (size_t k = 0; k < m->n_keys; k++) {
		const struct mu_slice *s = &m->slices[k];
		size_t end = s->at + s->n_padded;

		for (size_t at = s->at, n; s->rule == MU_SLICE_LEARN && at < end; at += n) {
			n = MU_COMPRESS_BLOCK - at % MU_COMPRESS_BLOCK;
			n = end - at < n ? end - at : n;
			plain_block(p, s, at, n, gradients, n_model);
		}
	}
}

/* Numbers whose sums are exact, so that the order of workers and nodes does not matter. */
static float whole(uint64_t step, int worker, size_t i)
{
	return (float)((int)((i * 7 + step * 5 + (size_t)worker * 3) % 13) - 6) / 8;
}

static void fill_whole(const struct model *m, float *g, uint64_t step, int worker)
{
	for (size_t k = 0; k < m->n_keys; k++)
		for (size_t i = m->slices[k].at; i < m->slices[k].at + m->slices[k].n; i++)
			g[i] = whole(step, worker, i);
}

static void formula_worker(struct job *j, const struct model *m)
{
	float *w = mu_kv_weights(j->kv), *g = mu_kv_gradients(j->kv);
	const size_t n = mu_kv_n(j->kv), n_all = n * (size_t)j->n_workers;
	struct plain p = {.rest = calloc(n_all, sizeof *p.rest),
			  .exact = calloc(n, sizeof *p.exact),
			  .held = calloc(n, sizeof *p.held)};
	float *all = calloc(n_all, sizeof *all);
	size_t wrong = 0;

	must(mu_compress_open(&j->config.compression, &p.push, &p.pull));
	must(mu_kv_weights_init(j->kv));
	for (uint64_t step = 1; step <= STEPS && p.rest && p.exact && p.held && all; step++) {
		for (int i = 0; i < j->n_workers; i++)
			fill_whole(m, all + (size_t)i * n, step, i);
		plain_step(&p, m, all, n);
		fill_whole(m, g, step, j->worker);
		push_pull(j, m->n_keys, 3, step);
		for (size_t k = 0; k < m->n_keys; k++)
			for (size_t i = m->slices[k].at; i < m->slices[k].at + m->slices[k].n; i++)
				wrong += m->slices[k].rule == MU_SLICE_LEARN && w[i] != p.held[i];
	}
	CHECK(wrong == 0);
	must(mu_kv_finish(j->kv));
	free(p.rest);
	free(p.exact);
	free(p.held);
	free(all);
}

static void test_formula(const struct mu_compression *c, const char *type, enum mu_kv_node node)
{
	struct job j = {.config = {.type = type,
				   .optim = {.name = "sum"},
				   .schedule = {.lr = 1, .factor = 1},
				   .compression = *c,
				   .bucket_bytes = 10000,
				   .node_reduce = node}};
	int before = check_failures();

	job_run(&j, &mixed, formula_worker);
	if (check_failures() > before)
		fprintf(stderr, "... rank %d of %d: %s, %s%s, %d servers, node %d\n", rank, size,
			type, c->type, c->pull ? " both ways" : "", members.num_servers, (int)node);
}

/* ---- equal bits ---- */

static uint64_t hash_of(const char *type, const struct mu_compression *c, size_t bucket,
			size_t message, enum mu_kv_node node)
{
	struct mu_kv_config config = exact;

	config.compression = *c;
	config.bucket_bytes = bucket;
	config.message_bytes = message;
	config.node_reduce = node;
	return hash_of_store(&mixed, &config, type, &members, 1);
}

/* Of the run with the fewest servers, by number of workers and coding. */
static uint64_t first_hash[8][N_CODINGS];

static void test_bits(const char *type)
{
	static const size_t buckets[] = {0, 1, 9000, 1 << 30}, messages[] = {0, 5000, 0, 30000};

	for (size_t c = 0; c < N_CODINGS; c++)
		for (size_t b = 0; b < 4; b++) {
			const uint64_t hash = hash_of(type, &codings[c], buckets[b], messages[b],
						      b % 2 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO);
			uint64_t *first = &first_hash[members.num_workers][c];

			if (members.role == MU_ROLE_SERVER)
				continue;
			if (*first == 0)
				*first = hash;
			if (!CHECK(hash == *first))
				fprintf(stderr, "... rank %d of %d: %s, %s%s, bucket %zu\n", rank,
					size, type, codings[c].type,
					codings[c].pull ? " both ways" : "", buckets[b]);
		}
}

/* dist_sync and dist_sharded have one formula; they meet here when they have as many workers. */
static void share_hashes(void)
{
	for (int w = 0; w < 8; w++)
		for (size_t c = 0; c < N_CODINGS; c++) {
			uint64_t hash = first_hash[w][c];

			must(mu_bcast(&hash, sizeof hash, 0, world));
			CHECK(hash == 0 || first_hash[w][c] == 0 || hash == first_hash[w][c]);
		}
}

/* ---- dist_async of one worker is dist_sync of one; rules that need norms; local SGD ---- */

static void test_async(void)
{
	for (size_t c = 0; members.num_workers == 1 && c < N_CODINGS; c++) {
		uint64_t sync = hash_of("dist_sync", &codings[c], 0, 0, MU_KV_NODE_AUTO);

		CHECK(sync == hash_of("dist_async", &codings[c], 9000, 0, MU_KV_NODE_AUTO));
		CHECK(sync == hash_of("dist_async", &codings[c], 0, 5000, MU_KV_NODE_NONE));
	}
	for (size_t c = 0; members.num_workers > 1 && c < N_CODINGS; c++)
		hash_of("dist_async", &codings[c], 0, 0, c % 2 ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO);
}

static void test_others(const char *type)
{
	struct mu_kv_config config = exact;
	uint64_t norms[2], local[2];

	for (int i = 0; i < 2; i++) {
		config = exact;
		config.compression = codings[i];
		config.bucket_bytes = i ? 9000 : 0;
		config.compression = codings[1];
		config.node_reduce = i ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO;
		config.optim = (struct mu_optim_config){
			.name = "lars", .mom = 0.9, .lars_eta = 0.001, .wd = 0.01};
		norms[i] = hash_of_store(&mixed, &config, type, &members, 1);
		config.optim = exact.optim;
		config.local_sgd.period = 2;
		local[i] = hash_of_store(&mixed, &config, type, &members, 1);
	}
	CHECK(norms[0] == norms[1] && local[0] == local[1]);
}

/* ---- a run that is taken up again: weights and the rest are all there is, without momentum ----
 */

struct saved {
	float *weights, *rest;
};

static float *find_rest(const struct mu_kv *kv)
{
	struct mu_kv_own own;

	mu_kv_own(kv, &own);
	for (size_t i = 0; i < own.n; i++)
		if (strcmp(own.arrays[i].name, "residual") == 0)
			return own.arrays[i].data;
	return NULL;
}

/* Steps [from, to] on saved weights and rests, which come from before them and are of after them.
 */
static void run_steps(const struct mu_compression *c, const char *type, struct saved *saved,
		      uint64_t from, uint64_t to)
{
	struct job j = {.config = {.type = type,
				   .optim = {.name = "sum"},
				   .schedule = {.lr = 1, .factor = 1},
				   .compression = *c}};
	const size_t nbytes = sizeof(float) * 40000;
	float *rest;

	job_open(&j, &mixed, type, &members);
	if (!j.is_worker) {
		must(mu_kv_serve(j.kv));
		mu_kv_free(j.kv);
		return;
	}
	rest = find_rest(j.kv);
	CHECK(rest && mu_kv_n(j.kv) * sizeof(float) <= nbytes);
	if (j.worker == 0)
		memcpy(mu_kv_weights(j.kv), saved->weights, mu_kv_n(j.kv) * sizeof(float));
	must(mu_kv_weights_init(j.kv));
	memcpy(rest, saved->rest, mu_kv_n(j.kv) * sizeof(float));
	for (uint64_t step = from; step <= to; step++) {
		fill(&mixed, mu_kv_gradients(j.kv), step, j.worker);
		push_pull(&j, mixed.n_keys, 3, 1);
	}
	memcpy(saved->weights, mu_kv_weights(j.kv), mu_kv_n(j.kv) * sizeof(float));
	memcpy(saved->rest, rest, mu_kv_n(j.kv) * sizeof(float));
	must(mu_kv_finish(j.kv));
	mu_kv_free(j.kv);
}

static void test_resume(const struct mu_compression *c, const char *type)
{
	static float a[2][40000], b[2][40000];
	struct saved once = {a[0], a[1]}, twice = {b[0], b[1]};

	memset(a, 0, sizeof a);
	memset(b, 0, sizeof b);
	run_steps(c, type, &once, 1, 5);
	run_steps(c, type, &twice, 1, 2);
	run_steps(c, type, &twice, 3, 5);
	CHECK(members.role == MU_ROLE_SERVER || memcmp(a, b, sizeof a) == 0);
}

/* ---- layout, errors ---- */

static void test_layout(void)
{
	struct mu_kv_layout layout;
	struct job j = {.config = exact};
	const size_t whole_bytes = 4 * (32 + 1024 + 64 + 1600); /* padding travels with its key */
	const size_t coded = 5008 / 4 + 1024 / 4 + 20000 / 4 + (3001 + 15) / 16 * 4;

	j.config.compression = codings[0];
	job_open(&j, &mixed, members.num_servers ? "dist_sync" : "dist_sharded", &members);
	mu_kv_layout(j.kv, &layout);
	CHECK(layout.bytes_pulled == layout.bytes);
	CHECK(layout.bytes_pushed == whole_bytes + coded);
	mu_kv_free(j.kv);
}

static void refused(struct mu_kv_config config, enum mu_status expected, const char *text)
{
	struct mu_kv *kv = NULL;

	config.members = &members;
	config.slices = members.role == MU_ROLE_WORKER ? mixed.slices : NULL;
	config.n_slices = members.role == MU_ROLE_WORKER ? mixed.n_keys : 0;
	CHECK(mu_kv_new(&kv, &config) == expected && !kv);
	CHECK_HAS(mu_trace_message(), text);
	mu_trace_clear();
	mu_kv_free(kv);
}

static void test_errors(const char *type)
{
	struct mu_kv_config config = exact;

	config.type = type;
	config.compression = (struct mu_compression){"3bit", 1, 0, false};
	refused(config, MU_ERR_USAGE, "'3bit' is not known: none, 2bit, 1bit,");
	config.compression = (struct mu_compression){"2bit", 0, 0, false};
	refused(config, MU_ERR_USAGE, "above 0");
	config.compression = (struct mu_compression){"2bit", rank == size - 1 ? 0.5 : 1, 0, false};
	refused(config, MU_ERR_ARGUMENT, "compression.threshold is 0.5 on rank");
	if (members.num_workers == 1 && members.num_servers == 0) {
		config.type = "device";
		config.compression = codings[0];
		refused(config, MU_ERR_USAGE, "where nothing goes between ranks");
	}
}

static void once(void)
{
	make_mixed(&mixed);
}

static void each(void)
{
	const char *type = members.num_servers ? "dist_sync" : "dist_sharded";

	for (size_t c = 0; c < N_CODINGS; c++) {
		test_formula(&codings[c], type, MU_KV_NODE_AUTO);
		test_formula(&codings[c], type, MU_KV_NODE_NONE);
		if (members.num_servers == 0 && !codings[c].pull)
			test_formula(&codings[c], "dist_allreduce", MU_KV_NODE_AUTO);
	}
	test_bits(type);
	if (members.num_servers > 0)
		test_async();
	test_others(type);
	if (members.num_servers == 0)
		test_others("dist_allreduce");
	test_resume(&codings[0], type);
	test_resume(&codings[7], type);
	test_layout();
	test_errors(type);
	share_hashes();
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
