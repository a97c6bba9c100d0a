/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of weights and states to memory: training waits for nothing else. */
#include "snapshot.h"

/* Keys [first, end), which this worker saves, in the device's layout. */
struct share {
	size_t first, end;
	struct mu_kv_snapshot states;
};

static enum mu_status copy_share(const struct mu_engine *e, struct share *share, int n_states,
				 bool alone)
{
	enum mu_status st = MU_OK;
	size_t n_slices, n;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	struct mu_kv_snapshot *s = &share->states;

	mu_kv_snapshot_share(e->kv, false, &share->first, &share->end);
	if (alone) {
		share->first = 0;
		share->end = n_slices;
	}
	s->from = share->first < n_slices ? slices[share->first].at : mu_kv_n(e->kv);
	s->to = share->end < n_slices ? slices[share->end].at : mu_kv_n(e->kv);
	n = s->to - s->from;
	MU_TRY(MU_ALLOC(s->weights, n + 1, "weights of a checkpoint"));
	for (int i = 0; i < n_states; i++)
		MU_TRY(MU_ALLOC(s->arrays[i], n + 1, "states of a checkpoint"));
	MU_TRY(mu_kv_snapshot_save(e->kv, s, alone));
out:
	return st;
}

static void release_share(struct share *share)
{
	mu_free(share->states.weights);
	for (int i = 0; i < MU_KV_MAX_STATES; i++)
		mu_free(share->states.arrays[i]);
}

static bool is_mine(const struct mu_engine *e, const struct share *share,
		    const struct checkpoint_array *array)
{
	if (array->of == CHECKPOINT_ARRAY_OWN)
		return array->worker == e->members->index;
	return array->key >= share->first && array->key < share->end;
}

static enum mu_status to_plain(const struct mu_engine *e, const struct checkpoint_arrays *arrays,
			       const struct checkpoint_array *array, const struct share *share,
			       float *plain)
{
	size_t n;
	const size_t at = mu_plan_slices(e->plan, &n)[array->key].at;
	const float *part = share->states.weights;

	if (array->of == CHECKPOINT_ARRAY_OWN)
		return mu_plan_slice_to_plain(e->plan, array->key,
					      arrays->own.arrays[array->which].data, plain);
	if (array->of == CHECKPOINT_ARRAY_STATE)
		part = share->states.arrays[array->which];
	return mu_plan_key_to_plain(e->plan, array->key, part + (at - share->states.from), plain);
}

static enum mu_status make_room(struct checkpoint_snapshot *s, size_t n, size_t n_pieces)
{
	enum mu_status st = MU_OK;

	if (s->plain && n <= s->n_plain && n_pieces <= s->n_pieces)
		goto out;
	mu_checkpoint_snapshot_release(s);
	MU_TRY(MU_ALLOC(s->plain, n + 1, "a checkpoint's copy"));
	MU_TRY(MU_ALLOC(s->pieces, n_pieces + 1, "pieces of a checkpoint"));
out:
	s->n_plain = n;
	s->n_pieces = n_pieces;
	return st;
}

static enum mu_status copy_pieces(struct checkpoint_snapshot *s, const struct mu_engine *e,
				  const struct checkpoint_arrays *arrays, const struct share *share)
{
	enum mu_status st = MU_OK;
	size_t n_slices, n = 0, n_pieces = 0;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);

	for (size_t i = 0; i < arrays->n; i++)
		if (is_mine(e, share, &arrays->all[i])) {
			n += slices[arrays->all[i].key].n;
			n_pieces++;
		}
	MU_TRY(make_room(s, n, n_pieces));
	n = n_pieces = 0;
	for (size_t i = 0; i < arrays->n; i++) {
		const struct checkpoint_array *array = &arrays->all[i];
		const size_t n_array = slices[array->key].n;

		if (!is_mine(e, share, array))
			continue;
		MU_TRY(to_plain(e, arrays, array, share, s->plain + n));
		s->pieces[n_pieces++] = (struct checkpoint_piece){
			.weights = array->of == CHECKPOINT_ARRAY_WEIGHTS ? slices[array->key].name
									 : NULL,
			.data = s->plain + n,
			.nbytes = n_array * sizeof(float),
			.offset = i,
		};
		n += n_array;
	}
out:
	return st;
}

enum mu_status mu_checkpoint_snapshot_copy(struct checkpoint_snapshot *s, const struct mu_engine *e,
					   const struct checkpoint_arrays *arrays,
					   struct checkpoint_position *at, bool alone)
{
	enum mu_status st = MU_OK;
	struct share share = {.first = 0};

	MU_TRY(copy_share(e, &share, arrays->n_states, alone));
	at->updates = share.states.updates;
	at->last_lr = share.states.last_lr;
	at->progress = share.states.progress;
	MU_TRY(copy_pieces(s, e, arrays, &share));
out:
	release_share(&share);
	return st;
}

void mu_checkpoint_snapshot_release(struct checkpoint_snapshot *s)
{
	mu_free(s->plain);
	mu_free(s->pieces);
	*s = (struct checkpoint_snapshot){.plain = NULL};
}
