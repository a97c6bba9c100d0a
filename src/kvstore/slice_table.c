/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a job: worker 0's table of slices, sent to every rank.
 */
#include <string.h>

#include "kv.h"

/* A slice in a message; names are in a message of their own. */
struct wire_slice {
	uint64_t at, n, n_padded, name, rule, fixed, has_lr_mult, has_wd_mult;
	double momentum, lr_mult, wd_mult;
};

/* A rank's summary of its model. Servers have none. */
struct summary {
	uint64_t is_worker, hash, n_slices, n;
};

static struct summary summarise(const struct mu_kv *kv, const struct mu_kv_config *config)
{
	const struct mu_slice *slices = config->slices;
	const size_t n_slices = config->n_slices;
	struct summary s = {0};
	uint64_t h = MU_HASH_START;

	if (kv->members->role != MU_ROLE_WORKER)
		return s;
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_slice *slice = &slices[k];
		uint64_t sizes[4] = {slice->at, slice->n, slice->n_padded, (uint64_t)slice->rule};

		h = mu_hash(h, slice->name, strlen(slice->name) + 1);
		h = mu_hash(h, sizes, sizeof sizes);
		h = mu_hash(h, &slice->momentum, sizeof slice->momentum);
		h = mu_hash(h, &slice->fixed, sizeof slice->fixed);
		if (slice->has_lr_mult)
			h = mu_hash(h, &slice->lr_mult, sizeof slice->lr_mult);
		h = mu_hash(h, &slice->has_wd_mult, sizeof slice->has_wd_mult);
		if (slice->has_wd_mult)
			h = mu_hash(h, &slice->wd_mult, sizeof slice->wd_mult);
		s.n += slice->n;
	}
	if (config->lives)
		h = mu_hash(h, config->lives, n_slices * sizeof *config->lives);
	s.is_worker = 1;
	s.hash = h;
	s.n_slices = n_slices;
	return s;
}

/* Every rank compares all summaries, so all get the same answer. */
static enum mu_status compare(const struct mu_kv *kv, const struct summary *mine)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;
	const struct summary *first;
	struct summary *all = NULL;

	MU_TRY(MU_ALLOC(all, (size_t)m->size, "summaries of the model"));
	MU_TRY(mu_allgather(mine, all, sizeof *mine, kv->comm));
	first = &all[mu_kv_worker_rank(kv, 0)];
	for (int w = 1; w < kv->ends.n_workers; w++) {
		const struct summary *other = &all[mu_worker_rank(m, w)];

		if (other->hash != first->hash)
			MU_FAIL(MU_ERR_USAGE,
				"worker %d (rank %d) has another model than worker 0 (rank %d): "
				"%llu keys with %llu elements, there %llu keys with %llu; start "
				"every rank with the same options",
				w, mu_worker_rank(m, w), mu_worker_rank(m, 0),
				(unsigned long long)other->n_slices, (unsigned long long)other->n,
				(unsigned long long)first->n_slices, (unsigned long long)first->n);
	}
out:
	mu_free(all);
	return st;
}

static void pack(struct wire_slice *table, char *names, const struct mu_slice *slices,
		 size_t n_slices)
{
	uint64_t at = 0;

	for (size_t k = 0; k < n_slices; k++) {
		size_t n = strlen(slices[k].name) + 1;

		table[k] = (struct wire_slice){
			.at = slices[k].at,
			.n = slices[k].n,
			.n_padded = slices[k].n_padded,
			.name = at,
			.rule = (uint64_t)slices[k].rule,
			.fixed = slices[k].fixed,
			.has_lr_mult = slices[k].has_lr_mult,
			.has_wd_mult = slices[k].has_wd_mult,
			.momentum = (double)slices[k].momentum,
			.lr_mult = slices[k].lr_mult,
			.wd_mult = slices[k].wd_mult,
		};
		memcpy(names + at, slices[k].name, n);
		at += n;
	}
}

static void unpack(struct mu_kv *kv, const struct wire_slice *table)
{
	for (size_t k = 0; k < kv->model.n_slices; k++)
		kv->model.slices[k] = (struct mu_slice){
			.name = kv->model.names + table[k].name,
			.at = table[k].at,
			.n = table[k].n,
			.n_padded = table[k].n_padded,
			.rule = (enum mu_slice_rule)table[k].rule,
			.momentum = (float)table[k].momentum,
			.fixed = table[k].fixed,
			.has_lr_mult = table[k].has_lr_mult,
			.has_wd_mult = table[k].has_wd_mult,
			.lr_mult = table[k].lr_mult,
			.wd_mult = table[k].wd_mult,
		};
}

enum mu_status mu_kv_model_share(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_slice *slices = config->slices;
	const size_t n_slices = config->n_slices;
	const int root = mu_kv_worker_rank(kv, 0);
	struct summary mine = summarise(kv, config);
	uint64_t sizes[2] = {n_slices, 0};
	struct wire_slice *table = NULL;

	MU_TRY(compare(kv, &mine));
	if (kv->members->rank == root) {
		for (size_t k = 0; k < n_slices; k++)
			sizes[1] += strlen(slices[k].name) + 1;
	}
	MU_TRY(mu_bcast(sizes, sizeof sizes, root, kv->comm));
	kv->model.n_slices = sizes[0];
	MU_TRY(MU_ALLOC(table, sizes[0] + 1, "table of keys"));
	MU_TRY(MU_ALLOC(kv->model.slices, sizes[0] + 1, "keys"));
	MU_TRY(MU_ALLOC(kv->model.names, sizes[1] + 1, "names of keys"));
	if (kv->members->rank == root)
		pack(table, kv->model.names, slices, n_slices);
	MU_TRY(mu_bcast(table, sizes[0] * sizeof *table, root, kv->comm));
	MU_TRY(mu_bcast(kv->model.names, sizes[1], root, kv->comm));
	unpack(kv, table);
out:
	mu_free(table);
	return st;
}
