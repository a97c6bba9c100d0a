/* SPDX-License-Identifier: Apache-2.0 */
/* Saving checkpoints (checkpoint.h): what is saved, and when; the rest is save_stage.c's. */
#include "save_state.h"

#include <string.h>

/* ---- the copy to memory ---- */

/* What this worker holds of a snapshot: keys [first, end), in the device's layout. */
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
		return array->worker == e->topology->index;
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

/* The pieces of this worker, in plain order; where they go is not known yet. */
static enum mu_status copy(struct checkpoint_saver *s, const struct checkpoint_arrays *arrays,
			   const struct share *share)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = s->e;
	size_t n_slices, n = 0, n_pieces = 0;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);

	for (size_t i = 0; i < arrays->n; i++)
		if (is_mine(e, share, &arrays->all[i])) {
			n += slices[arrays->all[i].key].n;
			n_pieces++;
		}
	if (n > s->n_plain || n_pieces > s->n_pieces || !s->plain) {
		mu_free(s->plain);
		mu_free(s->pieces);
		s->plain = NULL;
		s->pieces = NULL;
		MU_TRY(MU_ALLOC(s->plain, n + 1, "a checkpoint's copy"));
		MU_TRY(MU_ALLOC(s->pieces, n_pieces + 1, "pieces of a checkpoint"));
	}
	s->n_plain = n;
	s->n_pieces = n = 0;
	for (size_t i = 0; i < arrays->n; i++) {
		const struct checkpoint_array *array = &arrays->all[i];
		const size_t n_array = slices[array->key].n;

		if (!is_mine(e, share, array))
			continue;
		MU_TRY(to_plain(e, arrays, array, share, s->plain + n));
		s->pieces[s->n_pieces++] =
			(struct checkpoint_piece){s->plain + n, n_array * sizeof(float), i, 0};
		n += n_array;
	}
out:
	return st;
}

/* ---- the file ---- */

static enum mu_status write_own_counts(const struct mu_engine *e,
				       const struct checkpoint_arrays *arrays,
				       const struct mu_kv_own_counts *all,
				       struct mu_array_file *file)
{
	enum mu_status st = MU_OK;

	for (int w = 0; arrays->own.n > 0 && w < e->topology->num_workers; w++) {
		char name[32], text[160];

		snprintf(name, sizeof name, "worker-%d", w);
		snprintf(text, sizeof text,
			 "%llu steps, %llu updates, %.17g samples, last lr %.17g",
			 (unsigned long long)all[w].steps, (unsigned long long)all[w].updates,
			 all[w].samples, all[w].last_lr);
		MU_TRY(mu_array_file_set_text(file, name, text));
	}
out:
	return st;
}

static enum mu_status write_attributes(const struct mu_engine *e,
				       const struct checkpoint_position *at,
				       struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	struct checkpoint_record *record = NULL;
	char version[16];

	MU_TRY(MU_ALLOC(record, 1, "record of the run"));
	snprintf(version, sizeof version, "%d", CHECKPOINT_VERSION);
	MU_TRY(mu_array_file_set_text(file, "format", "muster checkpoint"));
	MU_TRY(mu_array_file_set_text(file, "version", version));
	MU_TRY(mu_checkpoint_record_make(e, record));
	MU_TRY(mu_checkpoint_record_write(record, file));
	MU_TRY(mu_checkpoint_position_write(at, file));
	if (*e->conv->text)
		MU_TRY(mu_array_file_set_text(file, TRAIN_CONV_ATTRIBUTE, e->conv->text));
out:
	mu_free(record);
	return st;
}

/* Worker 0. places: of all arrays, and of the checksums behind them. */
static enum mu_status make_file(struct checkpoint_saver *s, const struct checkpoint_arrays *arrays,
				const struct checkpoint_position *at,
				const struct mu_kv_own_counts *counts, uint64_t *places)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = s->e;
	struct mu_array_file *file = NULL;
	char name[CHECKPOINT_NAME];

	MU_TRY(mu_array_file_create(&file, s->path));
	MU_TRY(write_attributes(e, at, file));
	MU_TRY(write_own_counts(e, arrays, counts, file));
	s->n_bytes = 0;
	for (size_t i = 0; i < arrays->n; i++) {
		const struct mu_shape *shape = mu_plan_slice_shape(e->plan, arrays->all[i].key);

		s->n_bytes += mu_shape_n(shape) * sizeof(float);
		mu_checkpoint_array_name(e, arrays, &arrays->all[i], name, sizeof name);
		MU_TRY(mu_array_file_define(file, name, shape->ndims, shape->dims, &places[i]));
	}
	st = mu_array_file_detach(file, &s->replace, &places[arrays->n]);
	file = NULL;
	MU_TRY(st);
	snprintf(s->written, sizeof s->written, "%s", s->replace.temporary);
out:
	mu_array_file_close(file, false);
	return st;
}

/* Where every array goes, on every worker. */
static enum mu_status place(struct checkpoint_saver *s, const struct checkpoint_arrays *arrays,
			    const struct checkpoint_position *at)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = s->e;
	MPI_Comm peers = e->topology->peers;
	struct mu_kv_own_counts *counts = NULL;
	uint64_t *places = NULL;

	MU_TRY(MU_ALLOC(places, arrays->n + 1, "places in a checkpoint"));
	if (arrays->own.n > 0) {
		MU_TRY(MU_ALLOC(counts, (size_t)e->topology->num_workers, "counts of workers"));
		MU_TRY(mu_allgather(&arrays->own.counts, counts, sizeof *counts, peers));
	}
	st = e->topology->index == 0 ? make_file(s, arrays, at, counts, places) : MU_OK;
	if (!s->alone) {
		MU_TRY(mu_agree(st, peers)); /* with the limit of waits: a host may be gone */
		MU_TRY(mu_bcast(s->written, sizeof s->written, 0, peers));
		MU_TRY(mu_bcast(places, (arrays->n + 1) * sizeof *places, 0, peers));
	}
	MU_TRY(st);
	for (size_t p = 0; p < s->n_pieces; p++) {
		const size_t i = s->pieces[p].offset;

		s->pieces[p].offset = places[i];
		s->pieces[p].checksum = places[arrays->n] + i * sizeof(uint32_t);
	}
out:
	mu_free(counts);
	mu_free(places);
	return st;
}

/* ---- the public face ---- */

enum mu_status mu_checkpoint_saver_open(struct checkpoint_saver **out, const struct mu_engine *e,
					struct checkpoint_rollback *back)
{
	enum mu_status st = MU_OK;
	struct checkpoint_saver *s = NULL;

	*out = NULL;
	if (!e->conf->model_prefix)
		goto out;
	MU_TRY(MU_ALLOC(s, 1, "saving of checkpoints"));
	*out = s;
	s->e = e;
	s->back = back;
	s->last = mu_now();
	if (e->topology->index == 0)
		mu_checkpoint_files_sweep(e->conf->model_prefix);
	MU_TRY(mu_vote_open(&s->vote, e->topology->peers));
out:
	return st;
}

void mu_checkpoint_saver_close(struct checkpoint_saver *s)
{
	if (!s)
		return;
	if (s->writer && mu_checkpoint_writer_end(s->writer) != MU_OK)
		mu_trace_clear(); /* another error ends the run */
	mu_replace_release(&s->replace);
	mu_vote_close(&s->vote);
	mu_free(s->plain);
	mu_free(s->pieces);
	mu_free(s);
}

enum mu_status mu_checkpoint_save(struct checkpoint_saver *s,
				  const struct checkpoint_position *position, bool alone)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = s->e;
	struct checkpoint_position at = *position;
	struct checkpoint_arrays arrays = {.n = 0};
	struct share share = {.first = 0};

	MU_TRY(mu_checkpoint_saver_finish(s));
	s->started = s->last = mu_now();
	s->alone = alone;
	mu_checkpoint_path(e->conf->model_prefix, at.epoch, at.step, s->path, sizeof s->path);
	MU_TRY(mu_kv_step_end(e->kv));
	MU_TRY(mu_checkpoint_arrays_make(e, &arrays, !alone));
	MU_TRY(copy_share(e, &share, arrays.n_states, alone));
	at.updates = share.states.updates;
	at.last_lr = share.states.last_lr;
	at.progress = share.states.progress;
	at.workers = (size_t)e->topology->num_workers;
	at.batch = e->team.n * e->train->config.batch;
	MU_TRY(copy(s, &arrays, &share));
	MU_TRY(place(s, &arrays, &at));
	MU_TRY(mu_checkpoint_saver_write(s));
	if (!e->conf->save_async)
		MU_TRY(mu_checkpoint_saver_finish(s));
	s->waited = mu_now() - s->started;
out:
	mu_checkpoint_arrays_release(&arrays);
	release_share(&share);
	return st;
}

/* --save-minutes, by worker 0's clock. */
static bool is_late(const struct checkpoint_saver *s)
{
	const double minutes = s->e->conf->save_minutes;

	return minutes > 0 && mu_now() - s->last >= 60 * minutes;
}

enum mu_status mu_checkpoint_saver_check_minutes(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	if (!s || s->e->conf->save_minutes <= 0)
		goto out;
	s->late = is_late(s);
	MU_TRY(mu_bcast(&s->late, sizeof s->late, 0, s->e->topology->peers));
out:
	return st;
}

bool mu_checkpoint_saver_due(struct checkpoint_saver *s, size_t done)
{
	const struct mu_engine *e = s ? s->e : NULL;

	if (!s || done >= e->steps)
		return false;
	if (!e->store->synchronous) {
		if (e->topology->index != 0)
			return false;
		s->late = is_late(s);
	}
	/* Batches of an update that is not complete are nowhere but in memory: wait for its end. */
	s->wanted |=
		s->late || (e->conf->save_steps > 0 && done % (size_t)e->conf->save_steps == 0);
	if (!s->wanted || done % (size_t)e->conf->update_period != 0)
		return false;
	/* Others may wait for this worker's updates before they vote: it must not wait for them. */
	if (!e->store->synchronous && s->stage != CHECKPOINT_SAVE_NONE && !s->alone)
		return false;
	s->late = s->wanted = false;
	return true;
}
