/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Norms over whole keys for rules that need them, joined among the ranks that own pieces of the
 * model. Sums are integers, so the order of the owners does not matter.
 */
#include <string.h>

#include "kv.h"

enum mu_status mu_kv_norms_init(struct mu_kv_norms *norms, const struct mu_optim *optim,
				MPI_Comm owners, int n_owners)
{
	enum mu_status st = MU_OK;

	*norms = (struct mu_kv_norms){.rounds = mu_optim_rounds(optim),
				      .n_words = mu_optim_words(optim),
				      .n_pieces = mu_optim_pieces(optim),
				      .owners = owners,
				      .n_owners = n_owners};
	if (norms->rounds == 0)
		goto out;
	MU_TRY(MU_ALLOC(norms->sums, norms->n_words + 1, "sums of squares"));
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

enum mu_status mu_kv_norms_measure(struct mu_kv_norms *norms, struct mu_optim *optim,
				   mu_kv_find_fn *find, const void *context)
{
	enum mu_status st = MU_OK;

	for (int round = 0; round < norms->rounds; round++) {
		memset(norms->sums, 0, norms->n_words * sizeof *norms->sums);
		for (size_t p = 0; p < norms->n_pieces; p++) {
			const float *weights, *gradients;

			find(context, p, &weights, &gradients);
			mu_optim_measure(optim, round, p, weights, gradients, norms->sums);
		}
		MU_TRY(join(norms));
		mu_optim_norms_set(optim, round, norms->sums);
	}
out:
	return st;
}
