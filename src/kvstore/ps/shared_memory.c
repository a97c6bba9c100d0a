/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that ranks of a node share, and the notes in it. See shared_memory.h.
 *
 * A worker's memory: results, if it holds them; gradients; a pipe to every other rank's server end
 * on the node; three counters per bucket (nodes.h). If all workers have equal results, the node's
 * first worker holds them.
 */
#include <errno.h>
#include <string.h>

#include "shared_memory.h"

enum mu_status mu_kv_node_find(enum mu_kv_node *node, const char *name)
{
	static const char *const names[] = {
		[MU_KV_NODE_AUTO] = "auto", [MU_KV_NODE_SHM] = "shm",   [MU_KV_NODE_MPI] = "mpi",
		[MU_KV_NODE_NONE] = "none", [MU_KV_NODE_NCCL] = "nccl",
	};
	enum mu_status st = MU_OK;
	size_t i = 0;

	while (i < sizeof names / sizeof *names && strcmp(name, names[i]) != 0)
		i++;
	if (i == sizeof names / sizeof *names)
		MU_FAIL(MU_ERR_USAGE,
			"node-reduce '%s' is not known: auto, shm, mpi, none and nccl are", name);
	*node = (enum mu_kv_node)i;
out:
	return st;
}

/* Offsets in the memory of a worker, in bytes. */
struct segment {
	size_t gradients, pipes;
};

static size_t round_up(size_t nbytes)
{
	return (nbytes + 4095) / 4096 * 4096;
}

static int slot_of(const struct mu_kv *kv, int rank)
{
	return kv->members->topology.slot_of[rank];
}

static struct segment lay_out(const struct mu_kv *kv, int w)
{
	struct segment s = {0};

	if (kv->own_weights || w == kv->members->topology.first_worker)
		s.gradients = round_up(kv->model.plan.n * sizeof(float));
	s.pipes = s.gradients + round_up(kv->model.n_gradients * sizeof(float));
	return s;
}

static size_t count_parts(const struct mu_kv *kv, int s)
{
	size_t n = 0;

	for (size_t p = 0; p < kv->model.plan.n_parts; p++)
		n += kv->model.plan.parts[p].server == s;
	return n;
}

static size_t align(size_t nbytes)
{
	return (nbytes + MU_ALIGN - 1) / MU_ALIGN * MU_ALIGN;
}

static size_t pipe_bytes(size_t n_parts)
{
	return align(sizeof(struct mu_kv_pipe) + 2 * n_parts * sizeof(uint64_t) +
		     (n_parts + 1) * sizeof(uint32_t));
}

static size_t counter_bytes(const struct mu_kv *kv)
{
	return align(kv->model.plan.n_buckets * sizeof(uint64_t));
}

/* Do they share memory, on different ranks? */
static bool has_pipe(const struct mu_kv *kv, int w, int s)
{
	return slot_of(kv, mu_kv_server_rank(kv, s)) >= 0 &&
	       mu_kv_server_rank(kv, s) != mu_kv_worker_rank(kv, (size_t)w);
}

/* Bytes of worker w's pipes to the server ends before this one. */
static size_t pipes_before(const struct mu_kv *kv, int w, int end)
{
	size_t n = 0;

	for (int s = 0; s < end; s++)
		n += has_pipe(kv, w, s) ? pipe_bytes(count_parts(kv, s)) : 0;
	return n;
}

static char *memory_of(const struct mu_kv *kv, int w)
{
	return mu_window_of(kv->arrays.window, slot_of(kv, mu_kv_worker_rank(kv, (size_t)w)));
}

static float *results_of(const struct mu_kv *kv, int w)
{
	void *at = memory_of(kv, kv->own_weights ? w : kv->members->topology.first_worker);

	return at;
}

static float *gradients_of(const struct mu_kv *kv, int w)
{
	void *at = memory_of(kv, w) + lay_out(kv, w).gradients;

	return at;
}

static enum mu_status add_array(struct mu_kv *kv, float **out, size_t n, const char *what)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, n, what));
	kv->arrays.owned[kv->arrays.n_owned++] = *out;
out:
	return st;
}

/* The arrays that are not in shared memory. */
static enum mu_status add_missing_arrays(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	if (!kv->arrays.gradients)
		MU_TRY(add_array(kv, &kv->arrays.gradients, kv->model.n_gradients, "gradients"));
	if (!kv->arrays.results)
		MU_TRY(add_array(kv, &kv->arrays.results, kv->model.plan.n,
				 "weights, or sums of gradients"));
	kv->arrays.weights = kv->arrays.results;
	if (kv->kind.workers_update && !kv->kind.on_gpus && !kv->rules.replaces)
		MU_TRY(add_array(kv, &kv->arrays.weights, kv->model.plan.n, "weights"));
out:
	return st;
}

/* There is no shared memory of nbytes per worker. A warning comes from one rank of the node. */
static enum mu_status report_no_room(const struct mu_kv *kv, enum mu_kv_node node, size_t nbytes)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = &kv->members->topology;

	errno = ENOSPC; /* also where another rank found it: see mu_trace_is_final */
	if (node == MU_KV_NODE_SHM)
		MU_FAIL(MU_ERR_IO,
			"/dev/shm of %s has no room for %.1f MB of every worker; make it larger, "
			"or let the ranks send messages (node-reduce auto, mpi or none)",
			t->host, (double)nbytes * 1e-6);
	if (t->node_rank == 0)
		mu_log_warn("/dev/shm of %s has no room for %.1f MB of every worker: the ranks of "
			    "this node send messages, which is slower",
			    t->host, (double)nbytes * 1e-6);
out:
	return st;
}

bool mu_kv_shares_memory(const struct mu_kv *kv, enum mu_kv_node node)
{
	const struct mu_members *m = kv->members;
	const bool by_gpus =
		kv->kind.on_gpus && (!kv->kind.below || kv->nodes.reduces[m->topology.my_node]);

	return node != MU_KV_NODE_MPI && node != MU_KV_NODE_NONE && !kv->kind.one_worker &&
	       !by_gpus;
}

static enum mu_status open_window(struct mu_kv *kv, enum mu_kv_node node)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;
	const int first = kv->members->topology.first_worker;
	const bool worker = m->role == MU_ROLE_WORKER;
	size_t nbytes = 0;

	if (!mu_kv_shares_memory(kv, node) || first < 0 || m->topology.node_size == 1)
		goto out;
	if (worker)
		nbytes = lay_out(kv, m->index).pipes +
			 pipes_before(kv, m->index, kv->ends.n_servers) + 3 * counter_bytes(kv);
	MU_TRY(mu_window_open(&kv->arrays.window, &m->topology, nbytes));
	if (!kv->arrays.window) {
		MU_TRY(report_no_room(kv, node, lay_out(kv, first).pipes));
		goto out;
	}
	if (worker)
		kv->arrays.gradients = gradients_of(kv, m->index);
	if (worker || !kv->own_weights)
		kv->arrays.results = results_of(kv, worker ? m->index : first);
out:
	return st;
}

enum mu_status mu_kv_arrays_open(struct mu_kv *kv, enum mu_kv_node node)
{
	enum mu_status st = MU_OK;

	MU_TRY(open_window(kv, node));
	if (kv->members->role == MU_ROLE_WORKER)
		MU_TRY(add_missing_arrays(kv));
out:
	return st;
}

void mu_kv_arrays_close(struct mu_kv *kv)
{
	if (!mu_memory_is_kept()) /* messages use it */
		mu_window_close(kv->arrays.window);
	for (size_t i = 0; i < kv->arrays.n_owned; i++)
		mu_free(kv->arrays.owned[i]);
}

void mu_kv_shm_find(const struct mu_kv *kv, int w, int s, struct mu_kv_shm *shm)
{
	const int here = mu_kv_worker_rank(kv, (size_t)w);
	char *at;

	*shm = (struct mu_kv_shm){.pipe = NULL};
	if (!kv->arrays.window || slot_of(kv, here) < 0 || !has_pipe(kv, w, s))
		return;
	shm->n_parts = count_parts(kv, s);
	shm->gradients = gradients_of(kv, w);
	shm->results = results_of(kv, w);
	at = memory_of(kv, w) + lay_out(kv, w).pipes + pipes_before(kv, w, s);
	shm->pipe = (void *)at;
	at += sizeof *shm->pipe;
	shm->returned = (void *)at;
	at += shm->n_parts * sizeof *shm->returned;
	shm->taken = (void *)at;
	at += shm->n_parts * sizeof *shm->taken;
	shm->ring = (void *)at;
}

void mu_kv_shm_neighbour(const struct mu_kv *kv, int w, struct mu_kv_neighbour *n)
{
	char *at =
		memory_of(kv, w) + lay_out(kv, w).pipes + pipes_before(kv, w, kv->ends.n_servers);

	n->gradients = gradients_of(kv, w);
	n->pushed = (void *)at;
	n->back = (void *)(at + counter_bytes(kv));
	n->summed = (void *)(at + 2 * counter_bytes(kv));
}

/* ---- notes ---- */

static void write_note(struct mu_kv_shm *shm, uint32_t note)
{
	shm->ring[shm->notes % (shm->n_parts + 1)] = note;
	atomic_store_explicit(&shm->pipe->n_notes, ++shm->notes, memory_order_release);
}

void mu_kv_shm_send_order(struct mu_kv_shm *shm, const struct wire_order *order)
{
	shm->pipe->order = *order;
	shm->answers++;
	write_note(shm, NOTE_ORDER);
}

void mu_kv_shm_send_part(struct mu_kv_shm *shm, size_t part)
{
	write_note(shm, (uint32_t)part);
	/* Sequentially consistent, as the loads of mu_kv_shm_is_last. */
	atomic_store(&shm->pipe->progress, ++shm->progress);
}

bool mu_kv_shm_is_last(const struct mu_kv_shm *shm)
{
	for (size_t i = 0; i < shm->n_others; i++)
		if (atomic_load(&shm->others[i]->progress) < shm->progress)
			return false;
	return true;
}

bool mu_kv_shm_is_answered(const struct mu_kv_shm *shm)
{
	return atomic_load_explicit(&shm->pipe->n_answers, memory_order_acquire) == shm->answers;
}

bool mu_kv_shm_is_returned(const struct mu_kv_shm *shm, size_t part, uint64_t n)
{
	return atomic_load_explicit(&shm->returned[part], memory_order_acquire) >= n;
}

bool mu_kv_shm_is_taken(const struct mu_kv_shm *shm, size_t part, uint64_t n)
{
	return atomic_load_explicit(&shm->taken[part], memory_order_acquire) >= n;
}

bool mu_kv_shm_next_note(struct mu_kv_shm *shm, uint32_t *note)
{
	if (atomic_load_explicit(&shm->pipe->n_notes, memory_order_acquire) == shm->notes)
		return false;
	*note = shm->ring[shm->notes++ % (shm->n_parts + 1)];
	return true;
}

void mu_kv_shm_take(struct mu_kv_shm *shm, size_t part)
{
	atomic_fetch_add_explicit(&shm->taken[part], 1, memory_order_release);
}

void mu_kv_shm_return(struct mu_kv_shm *shm, size_t part)
{
	atomic_fetch_add_explicit(&shm->returned[part], 1, memory_order_release);
}

void mu_kv_shm_answer(struct mu_kv_shm *shm, const struct wire_answer *answer)
{
	shm->pipe->answer = *answer;
	atomic_store_explicit(&shm->pipe->n_answers, ++shm->answers, memory_order_release);
}
