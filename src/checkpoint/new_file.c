/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a save: worker 0 creates it with HDF5, under a temporary name, and sends all workers
 * the places of their arrays.
 */
#include "snapshot.h"

static enum mu_status write_own_counts(const struct checkpoint_arrays *arrays,
				       const struct mu_kv_own_counts *all,
				       struct mu_array_file *file)
{
	enum mu_status st = MU_OK;

	for (int w = 0; arrays->own.n > 0 && w < arrays->workers; w++) {
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
	struct checkpoint_identity *identity = NULL;
	char version[16];

	MU_TRY(MU_ALLOC(identity, 1, "identity of the run"));
	snprintf(version, sizeof version, "%d", CHECKPOINT_VERSION);
	MU_TRY(mu_array_file_set_text(file, "format", "muster checkpoint"));
	MU_TRY(mu_array_file_set_text(file, "version", version));
	MU_TRY(mu_checkpoint_identity_make(e, identity));
	MU_TRY(mu_checkpoint_identity_write(identity, file));
	MU_TRY(mu_checkpoint_description_write(e, file));
	MU_TRY(mu_checkpoint_position_write(at, mu_net_loss(e->net), file));
	if (*e->conv->text)
		MU_TRY(mu_array_file_set_text(file, TRAIN_CONV_ATTRIBUTE, e->conv->text));
out:
	mu_free(identity);
	return st;
}

/* Worker 0. places: of all arrays, then of the checksums. */
static enum mu_status create(struct checkpoint_new_file *f, const struct checkpoint_arrays *arrays,
			     const struct checkpoint_position *at,
			     const struct mu_kv_own_counts *counts, uint64_t *places)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	char name[CHECKPOINT_NAME];

	MU_TRY(mu_array_file_create(&file, f->path));
	MU_TRY(write_attributes(f->e, at, file));
	MU_TRY(write_own_counts(arrays, counts, file));
	f->n_bytes = 0;
	for (size_t i = 0; i < arrays->n; i++) {
		const struct mu_shape *shape = mu_plan_slice_shape(f->e->plan, arrays->all[i].key);

		f->n_bytes += mu_shape_n(shape) * sizeof(float);
		mu_checkpoint_array_name(f->e, arrays, &arrays->all[i], name, sizeof name);
		MU_TRY(mu_array_file_define(file, name, shape->ndims, shape->dims, &places[i]));
	}
	st = mu_array_file_detach(file, &f->replace, &places[arrays->n]);
	file = NULL;
	MU_TRY(st);
	snprintf(f->written, sizeof f->written, "%s", f->replace.temporary);
out:
	mu_array_file_close(file, false);
	return st;
}

enum mu_status mu_checkpoint_new_file_create(struct checkpoint_new_file *f,
					     const struct checkpoint_arrays *arrays,
					     const struct checkpoint_position *at,
					     struct checkpoint_snapshot *snapshot)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = f->e->members;
	struct mu_kv_own_counts *counts = NULL;
	uint64_t *places = NULL;
	int n;

	MU_TRY(MU_ALLOC(places, arrays->n + 1, "places in a checkpoint"));
	if (arrays->own.n > 0)
		MU_TRY(mu_peers_gather(m, &arrays->own.counts, sizeof *counts, (void **)&counts,
				       &n));
	st = m->index == 0 ? create(f, arrays, at, counts, places) : MU_OK;
	if (!f->alone) {
		MU_TRY(mu_peers_agree(m, st)); /* with the time limit: a host may be lost */
		MU_TRY(mu_peers_share(m, f->written, sizeof f->written));
		MU_TRY(mu_peers_share(m, places, (arrays->n + 1) * sizeof *places));
	}
	MU_TRY(st);
	for (size_t p = 0; p < snapshot->n_pieces; p++) {
		const size_t i = snapshot->pieces[p].offset;

		snapshot->pieces[p].offset = places[i];
		snapshot->pieces[p].checksum = places[arrays->n] + i * sizeof(uint32_t);
	}
out:
	mu_free(counts);
	mu_free(places);
	return st;
}
