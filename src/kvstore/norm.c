/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Norms of whole keys, for rules that need them, over the ranks that own pieces of the model. Sums
 * are of integers, so the order of the owners does not matter.
 */
#include <string.h>

#include "kv.h"

enum mu_status mu_kv_norms_init(struct mu_kv_norms *norms, const struct mu_optim *optim,
				const struct mu_members *m)
{
	enum mu_status st = MU_OK;
	int n_owners = 1, rank;

	if (m)
		MU_TRY(mu_comm_rank(m->peers, &rank, &n_owners));
	*norms = (struct mu_kv_norms){.rounds = mu_optim_rounds(optim),
				      .share = norms->share,
				      .n_words = mu_optim_words(optim),
				      .n_pieces = mu_optim_pieces(optim),
				      .owners = m ? m->peers : MPI_COMM_NULL,
				      .n_owners = n_owners};
	if (norms->rounds == 0)
		goto out;
	MU_TRY(MU_ALLOC(norms->sums, norms->n_words + 1, "sums of squares"));
	MU_TRY(MU_ALLOC(norms->parts, mu_share_parts(&norms->share) * norms->n_words + 1,
			"sums of squares"));
	if (n_owners > 1)
		MU_TRY(MU_ALLOC(norms->all, (size_t)n_owners * norms->n_words + 1,
				"sums of squares of all servers"));
out:
	return st;
}

void mu_kv_norms_release(struct mu_kv_norms *norms)
{
	mu_free(norms->sums);
	mu_free(norms->all);
	mu_free(norms->parts);
	*norms = (struct mu_kv_norms){.rounds = 0};
}

static enum mu_status join(struct mu_kv_norms *norms)
{
	enum mu_status st = MU_OK;
	const size_t n = norms->n_words;

	if (norms->n_owners == 1)
		goto out;
	MU_TRY(mu_allgather(norms->sums, norms->all, n * sizeof *norms->all, norms->owners));
	for (size_t i = 0; i < n; i++) {
		norms->sums[i] = norms->all[i];
		for (size_t owner = 1; owner < (size_t)norms->n_owners; owner++)
			norms->sums[i] += norms->all[owner * n + i];
	}
out:
	return st;
}

struct round {
	const struct mu_kv_norms *norms;
	struct mu_optim *optim;
	mu_kv_find_fn *find;
	const void *context;
	int number;
};

/* Every n-th piece. */
static void measure_part(void *of, size_t i)
{
	const struct round *r = of;
	const struct mu_kv_norms *norms = r->norms;
	uint64_t *sums = norms->parts + i * norms->n_words;

	memset(sums, 0, norms->n_words * sizeof *sums);
	for (size_t p = i; p < norms->n_pieces; p += mu_share_parts(&norms->share)) {
		const float *weights, *gradients;

		r->find(r->context, p, &weights, &gradients);
		mu_optim_measure(r->optim, r->number, p, weights, gradients, sums);
	}
}

enum mu_status mu_kv_norms_measure(struct mu_kv_norms *norms, struct mu_optim *optim,
				   mu_kv_find_fn *find, const void *context)
{
	enum mu_status st = MU_OK;
	struct round round = {norms, optim, find, context, 0};

	for (; round.number < norms->rounds; round.number++) {
		MU_TRY(mu_share_run(&norms->share, measure_part, &round));
		memset(norms->sums, 0, norms->n_words * sizeof *norms->sums);
		for (size_t i = 0; i < mu_share_parts(&norms->share) * norms->n_words; i++)
			norms->sums[i % norms->n_words] += norms->parts[i];
		MU_TRY(join(norms));
		mu_optim_norms_set(optim, round.number, norms->sums);
	}
out:
	return st;
}
