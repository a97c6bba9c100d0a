/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a sum: the workers of a node in their order, then the nodes in the order of their
 * lowest rank. So the bits do not depend on where a node's sum is computed: other nodes that reduce
 * (nodes.h) send theirs.
 */
#include <string.h>

#include "dist.h"

/* From this size of the model on, in elements, sums bypass the caches. */
#define STREAM_MIN ((size_t)1 << 20)

/* Workers sorted by node; of a node that sends its sum, one. first: by node, the index of its first
 * worker; then their number. */
static void sort_workers(struct mu_kv_sum *sum, const struct mu_kv *kv)
{
	const struct mu_members *m = kv->members;
	const struct mu_kv_nodes *nodes = &kv->nodes;

	for (int node = 0; node < m->topology.num_nodes; node++) {
		const bool ready =
			nodes->reduces[node] && (nodes->by_gpus || node != m->topology.my_node);
		const size_t first = nodes->first[node];
		const size_t end = nodes->first[node + 1];

		if (first == end) /* servers only */
			continue;
		sum->first[sum->n_nodes++] = sum->n_workers;
		if (ready)
			sum->workers[sum->n_workers++] =
				mu_kv_group_of(kv, nodes->workers[first], m->index).workers[0];
		for (size_t i = first; i < end && !ready; i++)
			sum->workers[sum->n_workers++] = nodes->workers[i];
	}
	sum->first[sum->n_nodes] = sum->n_workers;
}

enum mu_status mu_kv_sum_init(struct mu_kv_sum *sum, const struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const size_t n = (size_t)kv->ends.n_workers;

	MU_TRY(MU_ALLOC(sum->workers, n, "workers in the order of sums"));
	MU_TRY(MU_ALLOC(sum->first, n + 1, "nodes in the order of sums"));
	MU_TRY(MU_ALLOC(sum->sources, n, "gradients to sum"));
	MU_TRY(MU_ALLOC(sum->partials, n, "sums of nodes"));
	sort_workers(sum, kv);
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

/* out: for the last addition; does not overlap gradients. Returns where the sum is. */
static const float *sum_block(struct mu_kv_server *s, size_t p, size_t from, size_t n, float *out)
{
	struct mu_kv_sum *sum = &s->sum;
	const bool one = sum->n_nodes == 1;

	for (size_t i = 0; i < sum->n_workers; i++)
		sum->sources[i] = mu_kv_inbox(s, p, sum->workers[i]) + from;
	for (size_t g = 0; g < sum->n_nodes; g++)
		sum->partials[g] =
			add(one ? out : sum->blocks + g * MU_KV_BLOCK, sum->sources + sum->first[g],
			    sum->first[g + 1] - sum->first[g], n);
	return add(out, sum->partials, sum->n_nodes, n);
}

const float *mu_kv_sum_block(struct mu_kv_server *s, size_t p, size_t from, size_t n)
{
	return sum_block(s, p, from, n, s->sum.blocks + s->sum.n_nodes * MU_KV_BLOCK);
}

static bool is_inbox(const struct mu_kv_server *s, size_t p, const float *out)
{
	for (size_t w = 0; w < s->from.n_workers; w++)
		if (mu_kv_inbox(s, p, w) == out)
			return true;
	return false;
}

void mu_kv_sum_part(struct mu_kv_server *s, size_t p, float *out)
{
	const size_t n_part = s->held.parts[p].n;
	const bool streams = s->kv->model.plan.n >= STREAM_MIN;
	const bool direct = !streams && !is_inbox(s, p, out);

	for (size_t from = 0; from < n_part; from += MU_KV_BLOCK) {
		size_t n = n_part - from < MU_KV_BLOCK ? n_part - from : MU_KV_BLOCK;
		const float *sum = direct ? sum_block(s, p, from, n, out + from)
					  : mu_kv_sum_block(s, p, from, n);

		if (streams)
			mu_stream_copy(out + from, sum, n);
		else if (sum != out + from)
			memcpy(out + from, sum, n * sizeof *sum);
	}
	mu_stream_end();
}
