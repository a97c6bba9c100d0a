/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates on the GPUs. Each has the weights, and the sums, optimiser's states and element classes
 * of its pieces. The optimiser on the host counts updates and computes their constants. Its own
 * arrays of states are for checkpoints, and copied only then. They are not pinned: pieces share
 * pages, and a range that is pinned cannot be pinned again.
 */
#include "nccl.h"

#include <muster/base.h>

static struct mu_optim *optim_of(const struct mu_kv *kv)
{
	return kv->ends.nccl->optim ? kv->ends.nccl->optim : kv->update.optim;
}

/* A state of a piece on the host; NULL: there are no more states. */
static float *state_of(const struct mu_kv *kv, const struct nccl_piece *p, int state)
{
	const char *name;
	size_t n;
	float *held = mu_optim_state(optim_of(kv), state, &name, &n);

	return held ? held + p->local : NULL;
}

/* Buckets are the pieces of the optimiser. For shards see shard.c. */
static void assign_buckets(struct mu_kv *kv)
{
	const struct mu_nccl *n = kv->ends.nccl;

	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		for (size_t i = 0; i < n->n_gpus; i++) {
			const struct mu_kv_bucket *bucket = &kv->model.plan.buckets[b];
			const bool has = n->way == NCCL_ALL_REDUCE || mu_nccl_home(n, b) == i;

			*nccl_piece_of(n, b, i) = (struct nccl_piece){.at = bucket->at,
								      .n = has ? bucket->n : 0,
								      .number = b,
								      .local = bucket->at};
		}
}

/* ---- life ---- */

static enum mu_status open_classes(const struct mu_kv *kv, const struct nccl_gpu *g,
				   struct nccl_piece *p)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = g->device->ops->memory;
	const size_t n = p->n / MU_ELEMENT_RUN;
	unsigned char *classes = NULL;
	void *data = NULL;
	uint64_t mark;
	bool reached;

	MU_TRY(MU_ALLOC(classes, n, "classes of elements"));
	mu_optim_classes(optim_of(kv), p->number, classes);
	MU_TRY(memory->alloc(g->device, &data, n, "classes of elements"));
	p->classes = data;
	MU_TRY(memory->upload(g->device, data, classes, n));
	MU_TRY(memory->mark(g->device, &mark));
	MU_TRY(memory->reach(g->device, mark, true, &reached));
out:
	mu_free(classes);
	return st;
}

static enum mu_status open_piece(const struct mu_kv *kv, const struct nccl_gpu *g,
				 struct nccl_piece *p)
{
	enum mu_status st = MU_OK;
	void *data;

	for (int s = 0; state_of(kv, p, s); s++) {
		MU_TRY(g->device->ops->memory->alloc(g->device, &data, p->n * sizeof(float),
						     "states of the optimizer"));
		p->states[s] = data;
	}
	MU_TRY(open_classes(kv, g, p)); /* which waits for the zeroed states, too */
out:
	return st;
}

enum mu_status mu_nccl_updates_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	const struct mu_members *m = kv->members;
	char why[128] = "";

	if (n->way != NCCL_SHARDS)
		assign_buckets(kv);
	n->updates = mu_optim_is_by_element(optim_of(kv), why, sizeof why);
	if (m->index == 0)
		mu_log_detail("the optimizer works on %s%s",
			      n->updates ? "the GPUs" : "the CPU: ", why);
	for (size_t b = 0; n->updates && b < kv->model.plan.n_buckets; b++)
		for (size_t i = 0; i < n->n_gpus; i++)
			if (nccl_piece_of(n, b, i)->n > 0)
				MU_TRY(open_piece(kv, &n->gpus[i], nccl_piece_of(n, b, i)));
out:
	return st;
}

void mu_nccl_updates_close(struct mu_kv *kv)
{
	const struct mu_nccl *n = kv->ends.nccl;

	for (size_t p = 0; n->pieces && p < kv->model.plan.n_buckets * n->n_gpus; p++) {
		struct nccl_piece *piece = &n->pieces[p];
		struct mu_device *device = n->gpus[p % n->n_gpus].device;

		for (int s = 0; s < MU_MAX_STATES; s++)
			if (piece->states[s])
				device->ops->memory->free(device, piece->states[s]);
		if (piece->classes)
			device->ops->memory->free(device, piece->classes);
		piece->classes = NULL;
	}
}

/* ---- updates ---- */

static enum mu_status update_piece(struct mu_kv *kv, const struct nccl_gpu *g,
				   const struct nccl_piece *p)
{
	enum mu_status st = MU_OK;
	struct mu_element of[MU_ELEMENT_CLASSES];
	struct mu_device_update update = {
		.weights = g->weights + p->at,
		.gradients = g->gradients + p->at,
		.classes = p->classes,
		.of = of,
		.n = p->n,
	};

	update.n_classes = mu_optim_elements(optim_of(kv), p->number, of);
	for (int s = 0; s < MU_MAX_STATES; s++)
		update.states[s] = p->states[s];
	if (update.n_classes > 0)
		MU_TRY(g->device->ops->memory->update(g->device, g->stream, &update));
out:
	return st;
}

/* Several GPUs may have the same piece, which counts as one update. */
enum mu_status mu_nccl_updates_begin(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	bool begun = false;

	for (size_t i = 0; i < n->n_gpus; i++) {
		const struct nccl_piece *p = nccl_piece_of(n, bucket, i);

		if (p->n == 0)
			continue;
		if (!begun || n->way == NCCL_SHARDS)
			mu_optim_begin(optim_of(kv), p->number, kv->rates.lr, n->count);
		begun = true;
		MU_TRY(update_piece(kv, &n->gpus[i], p));
	}
out:
	return st;
}

/* ---- states ---- */

/* Of the GPUs that have the same piece the first one's states are copied to the host. */
static bool is_first(const struct mu_nccl *n, size_t gpu)
{
	return gpu == 0 || n->way != NCCL_ALL_REDUCE;
}

static enum mu_status copy_piece(struct mu_kv *kv, const struct nccl_gpu *g,
				 const struct nccl_piece *p, bool collect)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const size_t nbytes = p->n * sizeof(float);

	MU_TRY(mu_nccl_enter(g));
	for (int s = 0; s < MU_MAX_STATES && p->states[s]; s++) {
		if (collect)
			NCCL_CU(n, cuMemcpyDtoHAsync, state_of(kv, p, s),
				nccl_pointer(p->states[s]), nbytes, g->stream);
		else
			NCCL_CU(n, cuMemcpyHtoDAsync, nccl_pointer(p->states[s]),
				state_of(kv, p, s), nbytes, g->stream);
	}
out:
	return st;
}

static enum mu_status copy_states(struct mu_kv *kv, bool collect)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	for (size_t b = 0; n->updates && b < kv->model.plan.n_buckets; b++)
		for (size_t i = 0; i < n->n_gpus; i++)
			if (!collect || is_first(n, i))
				MU_TRY(copy_piece(kv, &n->gpus[i], nccl_piece_of(n, b, i),
						  collect));
	MU_TRY(mu_nccl_wait_idle(kv, "states of the optimizer on the GPUs"));
out:
	return st;
}

enum mu_status mu_nccl_states_spread(struct mu_kv *kv)
{
	return copy_states(kv, false);
}

enum mu_status mu_nccl_states_collect(struct mu_kv *kv)
{
	return copy_states(kv, true);
}
