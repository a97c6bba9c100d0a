/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 5 */
/* mu_kv_verify: silent while workers agree; names the one whose copy has another bit. */
#include <string.h>

#include "../lib/store_job.h"

static void flip(float *w, size_t n)
{
	uint32_t bits;

	memcpy(&bits, &w[n / 3], sizeof bits);
	bits ^= 1;
	memcpy(&w[n / 3], &bits, sizeof bits);
}

/* Worker `odd` has another bit: an error for all; worker 0 tells who it is. */
static void find_odd(struct job *j, int odd)
{
	float *w = mu_kv_weights(j->kv);
	char name[160], text[2048];
	enum mu_status st;

	if (j->worker == odd)
		flip(w, mu_kv_n(j->kv));
	st = mu_kv_verify(j->kv, "epoch 7, after step 40");
	CHECK(st == (j->worker == 0 ? MU_ERR_NUMERIC : MU_ERR_PEER));
	snprintf(text, sizeof text, "%s", mu_trace_message());
	mu_trace_clear();
	if (j->worker == 0) {
		const struct mu_members *m = j->config.members;

		CHECK(strstr(text, "epoch 7, after step 40"));
		for (int i = 0; i < m->num_workers; i++) {
			mu_members_name(m, m->worker_ranks[i], name, sizeof name);
			CHECK(!strstr(text, name) == (m->num_workers > 2 && i != odd));
		}
	}
	if (j->worker == odd)
		flip(w, mu_kv_n(j->kv));
}

static void worker(struct job *j, const struct model *m)
{
	float *g = mu_kv_gradients(j->kv);

	memset(mu_kv_weights(j->kv), 0, mu_kv_n(j->kv) * sizeof(float));
	must(mu_kv_weights_init(j->kv));
	for (uint64_t step = 0; step < BIT_STEPS; step++) {
		fill(m, g, step, j->worker);
		push_pull(j, m->n_keys, 3, step);
		must(mu_kv_verify(j->kv, "a step"));
	}
	for (int odd = 0; j->n_workers > 1 && odd < j->n_workers; odd++)
		find_odd(j, odd);
	must(mu_kv_verify(j->kv, "the end"));
	must(mu_kv_finish(j->kv));
}

static void once(void)
{
}

static void each(void)
{
	static const char *const types[] = {"dist_sync", "dist_sharded", "dist_allreduce"};
	struct model m;

	model_odd(&m);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct job j = {.config = exact};

		if ((members.num_servers > 0) != (i == 0))
			continue;
		j.config.type = types[i];
		j.config.node_reduce = MU_KV_NODE_NONE; /* in shared memory there is one copy */
		job_run(&j, &m, worker);
	}
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
