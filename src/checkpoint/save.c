/* SPDX-License-Identifier: Apache-2.0 */
/* Saving checkpoints (checkpoint.h): what is saved, and when; the rest is save_stage.c's. */
#include "saver.h"

#include <string.h>

/* ---- the copy to memory ---- */

/* What this worker holds of a snapshot: keys [first, end), in the device's layout. */
struct share {
	size_t first, end;
	struct mu_kv_snapshot states;
};

static enum mu_status take_share(struct train_run *run, struct share *share, int n_states,
				 bool alone)
{
	enum mu_status st = MU_OK;
	size_t n_slices, n;
	const struct mu_slice *slices = mu_plan_slices(run->engine.plan, &n_slices);
	struct mu_kv_snapshot *s = &share->states;

	mu_kv_snapshot_share(run->kv, false, &share->first, &share->end);
	if (alone) {
		share->first = 0;
		share->end = n_slices;
	}
	s->from = share->first < n_slices ? slices[share->first].at : mu_kv_n(run->kv);
	s->to = share->end < n_slices ? slices[share->end].at : mu_kv_n(run->kv);
	n = s->to - s->from;
	MU_TRY(MU_ALLOC(s->weights, n + 1, "weights of a checkpoint"));
	for (int i = 0; i < n_states; i++)
		MU_TRY(MU_ALLOC(s->arrays[i], n + 1, "states of a checkpoint"));
	MU_TRY(mu_kv_snapshot_save(run->kv, s, alone));
out:
	return st;
}

static void release_share(struct share *share)
{
	mu_free(share->states.weights);
	for (int i = 0; i < MU_KV_MAX_STATES; i++)
		mu_free(share->states.arrays[i]);
}

static bool is_mine(const struct train_run *run, const struct share *share,
		    const struct checkpoint_array *array)
{
	if (array->of == TRAIN_ARRAY_OWN)
		return array->worker == run->topology.index;
	return array->key >= share->first && array->key < share->end;
}

static enum mu_status to_plain(struct train_run *run, const struct checkpoint_arrays *arrays,
			       const struct checkpoint_array *array, const struct share *share,
			       float *plain)
{
	size_t n;
	const size_t at = mu_plan_slices(run->engine.plan, &n)[array->key].at;
	const float *part = share->states.weights;

	if (array->of == TRAIN_ARRAY_OWN)
		return mu_plan_slice_to_plain(run->engine.plan, array->key,
					      arrays->own.arrays[array->which].data, plain);
	if (array->of == TRAIN_ARRAY_STATE)
		part = share->states.arrays[array->which];
	return mu_plan_key_to_plain(run->engine.plan, array->key, part + (at - share->states.from),
				    plain);
}

/* The pieces of this worker, in plain order; where they go is not known yet. */
static enum mu_status copy(struct train_run *run, struct checkpoint_saver *s,
			   const struct checkpoint_arrays *arrays, const struct share *share)
{
	enum mu_status st = MU_OK;
	size_t n_slices, n = 0, n_pieces = 0;
	const struct mu_slice *slices = mu_plan_slices(run->engine.plan, &n_slices);

	for (size_t i = 0; i < arrays->n; i++)
		if (is_mine(run, share, &arrays->all[i])) {
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

		if (!is_mine(run, share, array))
			continue;
		MU_TRY(to_plain(run, arrays, array, share, s->plain + n));
		s->pieces[s->n_pieces++] =
			(struct checkpoint_piece){s->plain + n, n_array * sizeof(float), i, 0};
		n += n_array;
	}
out:
	return st;
}

/* ---- the file ---- */

static enum mu_status write_own_counts(struct train_run *run,
				       const struct checkpoint_arrays *arrays,
				       const struct mu_kv_own_counts *all,
				       struct mu_array_file *file)
{
	enum mu_status st = MU_OK;

	for (int w = 0; arrays->own.n > 0 && w < run->topology.num_workers; w++) {
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

static enum mu_status write_attributes(struct train_run *run, const struct checkpoint_position *at,
				       struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	struct checkpoint_record *record = NULL;
	char version[16];

	MU_TRY(MU_ALLOC(record, 1, "record of the run"));
	snprintf(version, sizeof version, "%d", CHECKPOINT_VERSION);
	MU_TRY(mu_array_file_set_text(file, "format", "muster checkpoint"));
	MU_TRY(mu_array_file_set_text(file, "version", version));
	MU_TRY(mu_checkpoint_record_make(run, record));
	MU_TRY(mu_checkpoint_record_write(record, file));
	MU_TRY(mu_checkpoint_position_write(at, file));
	if (*run->engine.conv->text)
		MU_TRY(mu_array_file_set_text(file, TRAIN_CONV_ATTRIBUTE, run->engine.conv->text));
out:
	mu_free(record);
	return st;
}

/* Worker 0. places: of all arrays, and of the checksums behind them. */
static enum mu_status make_file(struct train_run *run, struct checkpoint_saver *s,
				const struct checkpoint_arrays *arrays,
				const struct checkpoint_position *at,
				const struct mu_kv_own_counts *counts, uint64_t *places)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	char name[CHECKPOINT_NAME];

	MU_TRY(mu_array_file_create(&file, s->path));
	MU_TRY(write_attributes(run, at, file));
	MU_TRY(write_own_counts(run, arrays, counts, file));
	s->n_bytes = 0;
	for (size_t i = 0; i < arrays->n; i++) {
		const struct mu_shape *shape =
			mu_plan_slice_shape(run->engine.plan, arrays->all[i].key);

		s->n_bytes += mu_shape_n(shape) * sizeof(float);
		mu_checkpoint_array_name(run, arrays, &arrays->all[i], name, sizeof name);
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
static enum mu_status place(struct train_run *run, struct checkpoint_saver *s,
			    const struct checkpoint_arrays *arrays,
			    const struct checkpoint_position *at)
{
	enum mu_status st = MU_OK;
	MPI_Comm peers = run->topology.peers;
	struct mu_kv_own_counts *counts = NULL;
	uint64_t *places = NULL;

	MU_TRY(MU_ALLOC(places, arrays->n + 1, "places in a checkpoint"));
	if (arrays->own.n > 0) {
		MU_TRY(MU_ALLOC(counts, (size_t)run->topology.num_workers, "counts of workers"));
		MU_TRY(mu_allgather(&arrays->own.counts, counts, sizeof *counts, peers));
	}
	st = run->topology.index == 0 ? make_file(run, s, arrays, at, counts, places) : MU_OK;
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

enum mu_status mu_checkpoint_save_open(struct train_run *run)
{
	enum mu_status st = MU_OK;
	struct checkpoint_saver *s = NULL;

	if (!run->options.model_prefix)
		goto out;
	MU_TRY(MU_ALLOC(s, 1, "saving of checkpoints"));
	s->run = run;
	s->last = mu_now();
	run->saver = s;
	if (run->topology.index == 0)
		mu_checkpoint_files_sweep(run->options.model_prefix);
	MU_TRY(mu_vote_open(&s->vote, run->topology.peers));
out:
	return st;
}

void mu_checkpoint_save_close(struct checkpoint_saver *s)
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

enum mu_status mu_checkpoint_save(struct train_run *run, const struct checkpoint_position *position,
				  bool alone)
{
	enum mu_status st = MU_OK;
	struct checkpoint_saver *s = run->saver;
	struct checkpoint_position at = *position;
	struct checkpoint_arrays arrays = {.n = 0};
	struct share share = {.first = 0};

	MU_TRY(mu_checkpoint_save_finish(run));
	s->started = s->last = mu_now();
	s->alone = alone;
	mu_checkpoint_path(run->options.model_prefix, at.epoch, at.step, s->path, sizeof s->path);
	MU_TRY(mu_kv_step_end(run->kv));
	MU_TRY(mu_checkpoint_arrays_make(run, &arrays, !alone));
	MU_TRY(take_share(run, &share, arrays.n_states, alone));
	at.updates = share.states.updates;
	at.last_lr = share.states.last_lr;
	at.progress = share.states.progress;
	at.workers = (size_t)run->topology.num_workers;
	at.batch = run->engine.team.n * run->train.config.batch;
	at.plateau = run->plateau;
	at.loss_scale = run->loss_scale;
	MU_TRY(copy(run, s, &arrays, &share));
	MU_TRY(place(run, s, &arrays, &at));
	MU_TRY(mu_checkpoint_saver_begin(s));
	if (!run->options.save_async)
		MU_TRY(mu_checkpoint_save_finish(run));
	s->waited = mu_now() - s->started;
out:
	mu_checkpoint_arrays_release(&arrays);
	release_share(&share);
	return st;
}

/* --save-minutes, by worker 0's clock. */
static bool is_late(const struct train_run *run)
{
	const double minutes = run->options.save_minutes;

	return minutes > 0 && mu_now() - run->saver->last >= 60 * minutes;
}

enum mu_status mu_checkpoint_save_look(struct train_run *run)
{
	enum mu_status st = MU_OK;

	if (!run->saver || run->options.save_minutes <= 0)
		goto out;
	run->saver->late = is_late(run);
	MU_TRY(mu_bcast(&run->saver->late, sizeof run->saver->late, 0, run->topology.peers));
out:
	return st;
}

bool mu_checkpoint_save_due(struct train_run *run, size_t done)
{
	struct checkpoint_saver *s = run->saver;
	const size_t period = (size_t)run->options.save_steps;

	if (!s || done >= run->steps)
		return false;
	if (!run->store.synchronous) {
		if (run->topology.index != 0)
			return false;
		s->late = is_late(run);
	}
	/* Batches of an update that is not complete are nowhere but in memory: wait for its end. */
	s->wanted |= s->late || (period > 0 && done % period == 0);
	if (!s->wanted || done % (size_t)run->options.update_period != 0)
		return false;
	/* Others may wait for this worker's updates before they vote: it must not wait for them. */
	if (!run->store.synchronous && s->stage != TRAIN_SAVE_NONE && !s->alone)
		return false;
	s->late = s->wanted = false;
	return true;
}
