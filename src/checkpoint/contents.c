/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds besides the identity: arrays and position. See contents.h. */
#include "contents.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* ---- arrays ---- */

static void add_worker(struct checkpoint_arrays *a, int worker, size_t n_slices)
{
	for (size_t i = 0; i < a->own.n; i++)
		for (size_t k = 0; k < n_slices; k++)
			a->all[a->n++] = (struct checkpoint_array){.of = CHECKPOINT_ARRAY_OWN,
								   .which = (int)i,
								   .worker = worker,
								   .key = k};
}

enum mu_status mu_checkpoint_arrays_make(const struct mu_engine *e, struct checkpoint_arrays *a,
					 bool own)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);

	*a = (struct checkpoint_arrays){.workers = e->members->num_workers};
	a->n_states = mu_kv_state_names(e->kv, a->states);
	if (own)
		mu_kv_own(e->kv, &a->own);
	MU_TRY(MU_ALLOC(a->all,
			(1 + (size_t)a->n_states + a->own.n * (size_t)a->workers) * n_slices,
			"table of a checkpoint"));
	for (size_t k = 0; k < n_slices; k++)
		a->all[a->n++] =
			(struct checkpoint_array){.of = CHECKPOINT_ARRAY_WEIGHTS, .key = k};
	for (int i = 0; i < a->n_states; i++)
		for (size_t k = 0; k < n_slices; k++)
			if (slices[k].rule == MU_SLICE_LEARN)
				a->all[a->n++] = (struct checkpoint_array){
					.of = CHECKPOINT_ARRAY_STATE, .which = i, .key = k};
	for (int w = 0; w < a->workers; w++)
		add_worker(a, w, n_slices);
out:
	return st;
}

void mu_checkpoint_arrays_release(struct checkpoint_arrays *a)
{
	mu_free(a->all);
	*a = (struct checkpoint_arrays){.n = 0};
}

void mu_checkpoint_weights_name(const struct mu_slice *slice, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%s/%s", slice->rule == MU_SLICE_AVERAGE ? "aux" : "arg",
		 slice->name);
}

void mu_checkpoint_array_name(const struct mu_engine *e, const struct checkpoint_arrays *a,
			      const struct checkpoint_array *array, char *text, size_t nbytes)
{
	size_t n;
	const struct mu_slice *slice = &mu_plan_slices(e->plan, &n)[array->key];

	if (array->of == CHECKPOINT_ARRAY_WEIGHTS)
		mu_checkpoint_weights_name(slice, text, nbytes);
	else if (array->of == CHECKPOINT_ARRAY_STATE)
		snprintf(text, nbytes, "%s/%s/%s", e->conf->sync_period > 1 ? "block" : "state",
			 a->states[array->which], slice->name);
	else
		snprintf(text, nbytes, "worker-%d/%s/%s", array->worker,
			 a->own.arrays[array->which].name, slice->name);
}

/* ---- positions ---- */

enum mu_status mu_checkpoint_position_write(const struct checkpoint_position *at,
					    const struct mu_loss *loss, struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	char text[CHECKPOINT_SUMS];

	snprintf(text, sizeof text, "%zu", at->epoch);
	MU_TRY(mu_array_file_set_text(file, "epoch", text));
	snprintf(text, sizeof text, "%zu", at->step);
	MU_TRY(mu_array_file_set_text(file, "step", text));
	snprintf(text, sizeof text,
		 "window %zu, %zu workers, %zu samples a step, %.17g samples, %llu updates, last "
		 "lr %.17g",
		 at->window_first, at->workers, at->batch, at->progress,
		 (unsigned long long)at->updates, at->last_lr);
	MU_TRY(mu_array_file_set_text(file, "position", text));
	mu_metrics_print(&at->total, loss, text, sizeof text);
	MU_TRY(mu_array_file_set_text(file, "metrics_epoch", text));
	mu_metrics_print(&at->window, loss, text, sizeof text);
	MU_TRY(mu_array_file_set_text(file, "metrics_window", text));
	snprintf(text, sizeof text, "best %.17g, rate %.17g", at->plateau.best, at->plateau.rate);
	MU_TRY(mu_array_file_set_text(file, "plateau", text));
	snprintf(text, sizeof text, "%s %.17g, epoch %zu, %zu validations since, pending %d",
		 at->best.metric, at->best.value, at->best.epoch, at->best.since,
		 at->best.pending);
	MU_TRY(mu_array_file_set_text(file, "best", text));
	snprintf(text, sizeof text, "%.17g, %zu good batches since, %zu left out",
		 at->loss_scale.scale, at->loss_scale.good, at->loss_scale.left_out);
	MU_TRY(mu_array_file_set_text(file, "loss_scale", text));
out:
	return st;
}

static enum mu_status read_loss_scale(struct checkpoint_loss_scale *s, struct mu_array_file *file,
				      const char *path)
{
	enum mu_status st = MU_OK;
	char text[128];

	MU_TRY(mu_array_file_get_text(file, "loss_scale", text, sizeof text));
	if (sscanf(text, "%lf, %zu good batches since, %zu left out", &s->scale, &s->good,
		   &s->left_out) != 3 ||
	    !(s->scale >= 0) || !isfinite(s->scale))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"loss_scale\" is invalid: \"%s\"", path,
			text);
out:
	return st;
}

static enum mu_status read_best(struct checkpoint_best *b, struct mu_array_file *file,
				const char *path)
{
	enum mu_status st = MU_OK;
	char text[128];
	int pending;

	MU_TRY(mu_array_file_get_text(file, "best", text, sizeof text));
	if (sscanf(text, "%31s %lf, epoch %zu, %zu validations since, pending %d", b->metric,
		   &b->value, &b->epoch, &b->since, &pending) != 5 ||
	    !isfinite(b->value))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"best\" is invalid: \"%s\"", path, text);
	b->pending = pending != 0;
out:
	return st;
}

enum mu_status mu_checkpoint_position_read(struct checkpoint_position *at,
					   const struct mu_loss *loss, struct mu_array_file *file,
					   const char *path)
{
	enum mu_status st = MU_OK;
	unsigned long long updates;
	char text[CHECKPOINT_SUMS];

	MU_TRY(mu_array_file_get_text(file, "epoch", text, sizeof text));
	at->epoch = strtoul(text, NULL, 10);
	MU_TRY(mu_array_file_get_text(file, "step", text, sizeof text));
	at->step = strtoul(text, NULL, 10);
	MU_TRY(mu_array_file_get_text(file, "position", text, sizeof text));
	if (sscanf(text,
		   "window %zu, %zu workers, %zu samples a step, %lf samples, %llu updates, last "
		   "lr %lf",
		   &at->window_first, &at->workers, &at->batch, &at->progress, &updates,
		   &at->last_lr) != 6 ||
	    at->workers == 0 || at->workers > INT_MAX || !(at->progress >= 0) ||
	    !isfinite(at->progress))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"position\" is invalid: \"%s\"", path, text);
	at->updates = updates;
	MU_TRY(read_loss_scale(&at->loss_scale, file, path));
	MU_TRY(read_best(&at->best, file, path));
	MU_TRY(mu_array_file_get_text(file, "metrics_epoch", text, sizeof text));
	if (!mu_metrics_scan(&at->total, loss, text))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"metrics_epoch\": \"%s\"", path, text);
	MU_TRY(mu_array_file_get_text(file, "metrics_window", text, sizeof text));
	if (!mu_metrics_scan(&at->window, loss, text))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"metrics_window\": \"%s\"", path, text);
	MU_TRY(mu_array_file_get_text(file, "plateau", text, sizeof text));
	if (sscanf(text, "best %lf, rate %lf", &at->plateau.best, &at->plateau.rate) != 2)
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"plateau\": \"%s\"", path, text);
out:
	return st;
}

enum mu_status mu_checkpoint_plain_buffer(const struct mu_plan *plan, float **out)
{
	size_t n_slices, largest = 0;
	const struct mu_slice *slices = mu_plan_slices(plan, &n_slices);

	for (size_t k = 0; k < n_slices; k++)
		if (slices[k].n > largest)
			largest = slices[k].n;
	return mu_alloc((void **)out, largest * sizeof **out, "a checkpoint's arrays");
}
