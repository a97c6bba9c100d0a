/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints (kvstore.h): the state of a store. A worker that updates by itself holds it; servers
 * send it in messages (states.c).
 */
#include <string.h>

#include "kvstore/ps/dist.h"

int mu_kv_state_names(const struct mu_kv *kv, const char *names[MU_KV_MAX_STATES])
{
	for (int i = 0; i < kv->saved.n_names; i++)
		names[i] = kv->saved.names[i];
	return kv->saved.n_names;
}

/* The worker that saves key k: by the position of the middle of the key. */
static size_t share_of(const struct mu_kv *kv, size_t k)
{
	const struct mu_slice *slice = &kv->model.slices[k];
	double middle = (double)slice->at + (double)slice->n_padded / 2;
	size_t n = (size_t)kv->ends.n_workers;
	size_t share = (size_t)(middle / (double)kv->model.plan.n * (double)n);

	return share < n ? share : n - 1;
}

void mu_kv_snapshot_share(const struct mu_kv *kv, bool load, size_t *first, size_t *end)
{
	const size_t mine = (size_t)kv->members->index;

	*first = 0;
	*end = kv->model.n_slices;
	if (load && (kv->update.optim || kv->ops->states))
		return;
	while (*first < kv->model.n_slices && share_of(kv, *first) < mine)
		++*first;
	*end = *first;
	while (*end < kv->model.n_slices && share_of(kv, *end) == mine)
		++*end;
}

/* The worker updates by itself. */
static void copy_states(struct mu_kv *kv, struct mu_kv_snapshot *x, bool load)
{
	const char *name;
	size_t n;

	if (load)
		mu_optim_set_counts(kv->update.optim, x->updates, x->last_lr);
	else
		mu_optim_counts(kv->update.optim, &x->updates, &x->last_lr);
	for (int i = 0; i < kv->saved.n_names && x->to > x->from; i++) {
		float *held = mu_optim_state(kv->update.optim, i, &name, &n) + x->from;

		memcpy(load ? held : x->arrays[i], load ? x->arrays[i] : held,
		       (x->to - x->from) * sizeof *held);
	}
}

enum mu_status mu_kv_snapshot_save(struct mu_kv *kv, struct mu_kv_snapshot *states, bool alone)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_snapshot_save"));
	MU_TRY(mu_kv_step_end(kv));
	states->updates = 0;
	states->last_lr = 0;
	states->progress = kv->rates.progress;
	if (kv->ops->collect)
		MU_TRY(kv->ops->collect(kv));
	if (states->to > states->from)
		memcpy(states->weights, kv->arrays.weights + states->from,
		       (states->to - states->from) * sizeof *states->weights);
	if (kv->update.optim) {
		copy_states(kv, states, false);
		goto out;
	}
	kv->saved.states = states;
	if (kv->ops->states)
		MU_TRY(kv->ops->states(kv, false));
	else
		MU_TRY(mu_kv_worker_states(kv, WIRE_SAVE, !alone));
out:
	kv->saved.states = NULL;
	return st;
}

enum mu_status mu_kv_snapshot_load(struct mu_kv *kv, struct mu_kv_snapshot *states)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_snapshot_load"));
	kv->saved.states = states;
	if (kv->update.optim)
		copy_states(kv, states, true);
	else if (kv->ops->states)
		MU_TRY(kv->ops->states(kv, true));
	else
		MU_TRY(mu_kv_worker_states(kv, WIRE_LOAD, true));
	if (kv->ops->loaded)
		MU_TRY(kv->ops->loaded(kv));
out:
	kv->saved.states = NULL;
	return st;
}

void mu_kv_own(const struct mu_kv *kv, struct mu_kv_own *own)
{
	*own = (struct mu_kv_own){.n = 0};
	if (kv->ends.replica)
		mu_kv_replica_own(kv, own);
	if (kv->ends.worker && kv->ends.worker->coded.residual)
		own->arrays[own->n++] =
			(struct mu_kv_own_array){"residual", kv->ends.worker->coded.residual};
	if (kv->ends.server && kv->ends.server->coded.residual)
		own->arrays[own->n++] = (struct mu_kv_own_array){"residual_of_sums",
								 kv->ends.server->coded.residual};
}

void mu_kv_own_set_counts(struct mu_kv *kv, const struct mu_kv_own_counts *counts)
{
	if (kv->ends.replica)
		mu_kv_replica_set_counts(kv, counts);
}
