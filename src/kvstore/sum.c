/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one order of a sum: the workers of a node in their order, then the nodes in the order of
 * their lowest rank. So the bits are the same wherever a node's part of the sum is made.
 */
#include "dist.h"

/* Workers by node. first: by node its first worker among these; then their number. */
static void sort_workers(struct mu_kv_sum *sum, const struct mu_topology *t)
{
	size_t n = 0;

	for (int node = 0; node < t->num_nodes; node++) {
		const size_t before = n;

		for (int w = 0; w < t->num_workers; w++)
			if (t->node_of[t->worker_ranks[w]] == node)
				sum->workers[n++] = (size_t)w;
		if (n > before) /* a node may have servers only */
			sum->first[sum->n_nodes++] = before;
	}
	sum->first[sum->n_nodes] = n;
}

enum mu_status mu_kv_sum_init(struct mu_kv_sum *sum, const struct mu_topology *t)
{
	enum mu_status st = MU_OK;
	const size_t n = (size_t)t->num_workers;

	MU_TRY(MU_ALLOC(sum->workers, n, "workers in the order of sums"));
	MU_TRY(MU_ALLOC(sum->first, n + 1, "nodes in the order of sums"));
	MU_TRY(MU_ALLOC(sum->sources, n, "gradients to sum"));
	MU_TRY(MU_ALLOC(sum->partials, n, "sums of nodes"));
	sort_workers(sum, t);
	MU_TRY(MU_ALLOC(sum->blocks, (sum->n_nodes + 1) * MU_KV_BLOCK, "blocks of sums"));
out:
	return st;
}

void mu_kv_sum_release(struct mu_kv_sum *sum)
{
	mu_free(sum->workers);
	mu_free(sum->first);
	mu_free(sum->sources);
	mu_free(sum->partials);
	mu_free(sum->blocks);
}

static const float *add(float *out, const float **sources, size_t n_sources, size_t n)
{
	if (n_sources == 1)
		return sources[0];
	mu_optim_sum(out, sources, n_sources, n);
	return out;
}

const float *mu_kv_sum_block(struct mu_kv_server *s, size_t p, size_t from, size_t n)
{
	struct mu_kv_sum *sum = &s->sum;

	for (size_t i = 0; i < s->n_workers; i++)
		sum->sources[i] = mu_kv_inbox(s, p, sum->workers[i]) + from;
	for (size_t g = 0; g < sum->n_nodes; g++)
		sum->partials[g] = add(sum->blocks + g * MU_KV_BLOCK, sum->sources + sum->first[g],
				       sum->first[g + 1] - sum->first[g], n);
	return add(sum->blocks + sum->n_nodes * MU_KV_BLOCK, sum->partials, sum->n_nodes, n);
}
