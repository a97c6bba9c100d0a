/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resuming from a checkpoint. Worker 0 chooses the file and checks all of it, then sends every rank
 * the position. Worker 0 loads the weights before the store distributes them; afterwards each
 * worker loads its share of the states.
 */
#include "contents.h"

#include <stdlib.h>
#include <string.h>

/* ---- which file ---- */

/* Worker 0's search for the file. */
struct search {
	const struct mu_engine *e;
	struct checkpoint_rollback *back;
	size_t examples; /* per epoch, of the whole job */
	struct checkpoint_identity *identity;
	struct checkpoint_resume *found;
};

/* A file of parameters only, such as other programs write: the network must be the same. */
static enum mu_status check_parameters(const struct conf *v, struct mu_array_file *file,
				       const char *path)
{
	enum mu_status st = MU_OK;
	char text[64];

	MU_TRY(mu_array_file_get_text(file, "network", text, sizeof text));
	if (strcmp(text, v->network_name) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s holds network %s, not %s", path, text, v->network_name);
	MU_TRY(mu_array_file_get_text(file, "num_layers", text, sizeof text));
	if (strtol(text, NULL, 10) != 0 && strtol(text, NULL, 10) != v->num_layers)
		MU_FAIL(MU_ERR_FORMAT, "%s was saved with --num-layers %s, not %ld", path, text,
			v->num_layers);
out:
	return st;
}

static enum mu_status check_version(struct mu_array_file *file, const char *path)
{
	enum mu_status st = MU_OK;
	char text[64];

	MU_TRY(mu_array_file_get_text(file, "format", text, sizeof text));
	if (strcmp(text, "muster checkpoint") != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: its format is \"%s\", not \"muster checkpoint\"", path,
			text);
	MU_TRY(mu_array_file_get_text(file, "version", text, sizeof text));
	if (strtol(text, NULL, 10) != CHECKPOINT_VERSION)
		MU_FAIL(MU_ERR_FORMAT,
			"%s is a checkpoint of version %s, and this program reads version %d: "
			"another version of it has written the file",
			path, text, CHECKPOINT_VERSION);
out:
	return st;
}

/* *foreign: the file is good, but of another run: it differs in what needs --override. */
static enum mu_status try_file(const struct search *s, const char *path, bool *foreign)
{
	enum mu_status st = MU_OK;
	struct checkpoint_resume *r = s->found;
	struct mu_array_file *file = NULL;
	struct checkpoint_comparison with = {
		.path = path, .override = s->e->conf->override, .plan = s->e->plan};
	struct checkpoint_difference d;

	*foreign = false;
	*r = (struct checkpoint_resume){.path = ""}; /* drop what a damaged file has set */
	MU_TRY(mu_array_file_open_checked(&file, path));
	with.file = file;
	MU_TRY(mu_array_file_has_text(file, "format", &r->whole));
	snprintf(r->path, sizeof r->path, "%s", path);
	if (!r->whole) {
		MU_TRY(check_parameters(s->e->conf, file, path));
		mu_log_warn("%s holds parameters alone: states of the optimizer begin anew", path);
		goto out;
	}
	MU_TRY(check_version(file, path));
	MU_TRY(mu_checkpoint_words_check(s->e, file, path, foreign));
	st = mu_checkpoint_identity_compare(s->identity, &with, &d);
	*foreign = d.foreign;
	MU_TRY(st);
	MU_TRY(mu_checkpoint_position_read(&r->at, mu_net_loss(s->e->net), file, path));
	MU_TRY(mu_array_file_verify(file));
	if (*d.text)
		mu_log_warn("not as when %s was saved: %s", path, d.text);
	if (d.files)
		mu_checkpoint_files_report(s->e, path, &d);
	if (d.validation && !s->e->conf->evaluate)
		mu_checkpoint_best_forget(&r->at, path, &d);
out:
	mu_array_file_close(file, false);
	return st;
}

/* --resume auto: the newest file that is complete, with a line for each damaged one. */
static enum mu_status try_all(const struct search *s)
{
	enum mu_status st = MU_OK;
	const char *prefix = s->e->conf->model_prefix;
	struct checkpoint_files files = {.n = 0};
	bool foreign;

	MU_TRY(mu_checkpoint_files_find(prefix, &files));
	mu_checkpoint_files_warn(&files);
	for (size_t i = 0; i < files.n; i++) {
		st = try_file(s, files.of[i].path, &foreign);
		if (st == MU_OK || foreign)
			goto out;
		mu_log_warn("left out, for it is damaged: %s", mu_trace_message());
		mu_trace_clear();
		st = MU_OK;
	}
	*s->found = (struct checkpoint_resume){.path = ""};
	mu_log_info("--resume auto: there is no checkpoint %s-*.h5 to resume from: training begins "
		    "anew",
		    prefix);
out:
	mu_checkpoint_files_release(&files);
	return st;
}

/* Does going back help? Without new checkpoints an error that comes again does not pass. */
static enum mu_status check_return(struct checkpoint_rollback *back)
{
	enum mu_status st = MU_OK;

	back->in_a_row = strcmp(back->from, back->path) == 0 ? back->in_a_row + 1 : 1;
	snprintf(back->from, sizeof back->from, "%s", back->path);
	if (back->skips && back->times > CHECKPOINT_MOST_BACK)
		MU_FAIL(MU_ERR_NUMERIC,
			"%s: training has gone back to a checkpoint %d times; a lower --lr may "
			"help",
			back->option, CHECKPOINT_MOST_BACK);
	if (back->skips && !*back->path)
		MU_FAIL(MU_ERR_NUMERIC,
			"%s: nothing has been saved yet to go back to; --save-steps K saves inside "
			"the first epoch",
			back->option);
	if (!back->skips && back->in_a_row > CHECKPOINT_MOST_IN_A_ROW)
		MU_FAIL(MU_ERR_NUMERIC,
			"%s: training has gone back to %s %d times in a row, and an error came "
			"each time: the warnings above name it",
			back->option, *back->path ? back->path : "its beginning",
			CHECKPOINT_MOST_IN_A_ROW);
out:
	return st;
}

/* --resume K of a file of parameters alone: it is after that epoch. */
static void place_parameters(const struct search *s)
{
	const long epoch = s->e->conf->load_epoch;

	if (s->found->whole || epoch == 0)
		return;
	s->found->at.epoch = (size_t)epoch;
	s->found->at.progress = (double)epoch * (double)s->examples;
}

/* Weights and states of the file; with skips, data from after the batch where the run ended. */
static enum mu_status go_back(const struct search *s)
{
	enum mu_status st = MU_OK;
	const struct checkpoint_rollback *back = s->back;
	struct checkpoint_position *at = &s->found->at;
	bool foreign;

	st = try_file(s, back->path, &foreign);
	if (st != MU_OK && !foreign && !back->skips && *back->before) {
		mu_log_warn("left out: %s", mu_trace_message());
		mu_trace_clear();
		st = try_file(s, back->before, &foreign);
	}
	MU_TRY(st);
	place_parameters(s);
	if (!back->skips)
		goto out;
	at->epoch = back->epoch;
	at->step = at->window_first = back->step;
	at->total = at->window = (struct mu_metrics){0};
	at->best.pending = false;
	at->batch = s->e->train->config.batch * s->e->team.n;
out:
	return st;
}

/* Worker 0. */
static enum mu_status choose(struct search *s)
{
	enum mu_status st = MU_OK;
	const struct conf *v = s->e->conf;
	char path[CHECKPOINT_PATH];
	bool foreign;

	MU_TRY(MU_ALLOC(s->identity, 1, "identity of the run"));
	MU_TRY(mu_checkpoint_identity_make(s->e, s->identity));
	MU_TRY(mu_checkpoint_identity_check_override(s->identity, v->override));
	if (s->back->times > 0)
		MU_TRY(check_return(s->back));
	if (s->back->times > 0 && *s->back->path) {
		MU_TRY(go_back(s));
	} else if (v->load_epoch > 0) {
		mu_checkpoint_path(v->model_prefix, (size_t)v->load_epoch, 0, path, sizeof path);
		MU_TRY(try_file(s, path, &foreign));
		place_parameters(s);
	} else if (v->resume_from == CONF_RESUME_AUTO) {
		MU_TRY(try_all(s));
	} else if (v->resume_from != CONF_RESUME_NONE) {
		MU_TRY(try_file(s, v->resume, &foreign));
	}
out:
	mu_free(s->identity);
	return st;
}

/* Steps of groups are shuffled: the samples of the first ones depend on the batch size. */
static enum mu_status check_position(const struct mu_engine *e, const struct checkpoint_resume *r)
{
	enum mu_status st = MU_OK;
	const size_t batch = e->train->config.batch * e->team.n;

	if (e->train->groups && r->at.step > 0 && r->at.batch != batch)
		MU_FAIL(MU_ERR_USAGE,
			"%s is from inside an epoch of a text, with %zu sequences a step over all "
			"workers, and this run has %zu: go on with %zu, or from the end of an "
			"epoch (--resume K)",
			r->path, r->at.batch, batch, r->at.batch);
out:
	return st;
}

/*
 * With another number of workers or another batch size: the step that begins at or before the first
 * sample that was not used, and where no update is incomplete.
 */
static void convert_position(const struct mu_engine *e, struct checkpoint_position *at)
{
	const size_t batch = e->train->config.batch * e->team.n;

	if (at->step > 0 && at->batch != batch) {
		at->step = at->step * at->batch / batch;
		at->window_first = at->step;
	}
	at->step -= at->step % (size_t)e->conf->update_period;
	if (at->window_first > at->step)
		at->window_first = at->step;
	if (at->step < e->steps)
		return;
	at->step = at->window_first = 0;
	at->total = at->window = (struct mu_metrics){0};
	at->epoch++;
}

/* Where the run continues. Epochs are counted from 1, as in the names of files. */
static void report(const struct checkpoint_resume *r, const struct conf *v)
{
	char where[96];

	if (v->evaluate)
		snprintf(where, sizeof where, "after epoch %zu", r->at.epoch);
	else if (r->at.step > 0)
		snprintf(where, sizeof where, "after step %zu in epoch %zu of %ld", r->at.step,
			 r->at.epoch + 1, v->num_epochs);
	else
		snprintf(where, sizeof where, "after epoch %zu of %ld", r->at.epoch,
			 v->num_epochs);
	mu_log_info("Resumed from \"%s\": %s, %.0f sample%s counted", r->path, where,
		    r->at.progress, MU_S(r->at.progress));
}

static enum mu_status find(struct search *s)
{
	enum mu_status st = MU_OK;
	const struct conf *v = s->e->conf;
	struct checkpoint_resume *r = s->found;

	MU_TRY(choose(s));
	if (!*r->path)
		goto out;
	if (!v->evaluate) {
		MU_TRY(check_position(s->e, r));
		convert_position(s->e, &r->at);
	}
	snprintf(s->back->path, sizeof s->back->path, "%s", r->path);
	if (r->at.epoch > (size_t)v->num_epochs && !v->evaluate)
		MU_FAIL(MU_ERR_USAGE, "%s is of epoch %zu, past --num-epochs %ld", r->path,
			r->at.epoch, v->num_epochs);
	if (r->at.epoch == (size_t)v->num_epochs && !v->evaluate)
		mu_log(MU_LOG_RESULT,
		       "%s has %s%ld epoch%s: nothing is left to train; --num-epochs N for more",
		       r->path, v->num_epochs > 1 ? "all " : "", v->num_epochs,
		       MU_S(v->num_epochs));
	else if (r->whole && (r->at.step > 0 || v->load_epoch == 0))
		report(r, v);
out:
	return st;
}

enum mu_status mu_checkpoint_resume_find(const struct mu_engine *e, size_t examples,
					 struct checkpoint_rollback *back,
					 struct checkpoint_resume **resume)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	const bool chooses = mu_members_lead(m);
	struct search s = {.e = e, .back = back, .examples = examples};

	MU_TRY(MU_ALLOC(*resume, 1, "position of a resumed run"));
	s.found = *resume;
	MU_TRY(mu_agree_late(chooses ? find(&s) : MU_OK, m->comm));
	MU_TRY(mu_members_follow(m, *resume, sizeof **resume));
out:
	return st;
}

/* ---- loading ---- */

struct loader {
	const struct mu_engine *e;
	const struct checkpoint_resume *from;
	struct mu_array_file *file;
	float *plain;
	struct checkpoint_arrays arrays;
};

static enum mu_status open_loader(struct loader *l)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_checkpoint_plain_buffer(l->e->plan, &l->plain));
	MU_TRY(mu_array_file_open_checked(&l->file, l->from->path));
	MU_TRY(mu_checkpoint_arrays_make(l->e, &l->arrays, true));
out:
	return st;
}

static void close_loader(struct loader *l)
{
	mu_array_file_close(l->file, false);
	mu_checkpoint_arrays_release(&l->arrays);
	mu_free(l->plain);
}

/* laid: where the slice begins. must: an error if the array is not in the file. */
static enum mu_status load_array(struct loader *l, const struct checkpoint_array *array,
				 float *laid, bool must)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *shape = mu_plan_slice_shape(l->e->plan, array->key);
	char name[CHECKPOINT_NAME];
	bool there = true;

	mu_checkpoint_array_name(l->e, &l->arrays, array, name, sizeof name);
	if (!must)
		MU_TRY(mu_array_file_has(l->file, name, &there));
	if (!there)
		goto out;
	MU_TRY(mu_array_file_read(l->file, name, shape->ndims, shape->dims, l->plain));
	MU_TRY(mu_plan_key_from_plain(l->e->plan, array->key, l->plain, laid));
out:
	return st;
}

enum mu_status mu_checkpoint_resume_weights(const struct mu_engine *e,
					    const struct checkpoint_resume *resume)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	float *weights = mu_kv_weights(e->kv);
	struct loader l = {.e = e, .from = resume};

	MU_TRY(open_loader(&l));
	for (size_t k = 0; k < n_slices; k++) {
		const struct checkpoint_array array = {.of = CHECKPOINT_ARRAY_WEIGHTS, .key = k};

		MU_TRY(load_array(&l, &array, weights + slices[k].at, true));
	}
	mu_log_detail("Loaded model %s", resume->path);
out:
	close_loader(&l);
	return st;
}

/* This worker's share of the store's states. */
static enum mu_status load_states(struct loader *l)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = l->e;
	size_t n_slices, first, end;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	struct mu_kv_snapshot s = {
		.updates = l->from->at.updates,
		.last_lr = l->from->at.last_lr,
	};

	mu_kv_snapshot_share(e->kv, true, &first, &end);
	s.from = first < n_slices ? slices[first].at : mu_kv_n(e->kv);
	s.to = end < n_slices ? slices[end].at : mu_kv_n(e->kv);
	for (int i = 0; i < l->arrays.n_states; i++) {
		MU_TRY(MU_ALLOC(s.arrays[i], s.to - s.from + 1, "states of a checkpoint"));
		if (strcmp(l->arrays.states[i], MU_KV_EXACT) == 0)
			memcpy(s.arrays[i], mu_kv_weights(e->kv) + s.from,
			       (s.to - s.from) * sizeof *s.arrays[i]);
	}
	for (size_t i = 0; i < l->arrays.n; i++) {
		const struct checkpoint_array *a = &l->arrays.all[i];

		if (a->of == CHECKPOINT_ARRAY_STATE && a->key >= first && a->key < end)
			MU_TRY(load_array(l, a, s.arrays[a->which] + (slices[a->key].at - s.from),
					  false));
	}
	MU_TRY(mu_kv_snapshot_load(e->kv, &s));
out:
	for (int i = 0; i < MU_KV_MAX_STATES; i++)
		mu_free(s.arrays[i]);
	return st;
}

/* The counts that worker `worker` had; same: there are as many workers as then. */
static enum mu_status load_counts(struct loader *l, int worker, bool same)
{
	enum mu_status st = MU_OK;
	struct mu_kv_own_counts counts;
	unsigned long long steps, updates;
	char name[32], text[160];
	bool there;

	snprintf(name, sizeof name, "worker-%d", worker);
	MU_TRY(mu_array_file_has_text(l->file, name, &there));
	if (!there)
		goto out;
	MU_TRY(mu_array_file_get_text(l->file, name, text, sizeof text));
	if (sscanf(text, "%llu steps, %llu updates, %lf samples, last lr %lf", &steps, &updates,
		   &counts.samples, &counts.last_lr) != 4)
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"%s\" is not what was saved: \"%s\"",
			l->from->path, name, text);
	counts.steps = same ? steps : 0;
	counts.samples = same ? counts.samples : 0;
	counts.updates = updates;
	mu_kv_own_set_counts(l->e->kv, &counts);
out:
	return st;
}

/*
 * This worker's own arrays. With another number of workers, worker w loads the states of worker w
 * modulo the former number; arrays of the steps since the last average, and residuals, are skipped.
 */
static enum mu_status load_own(struct loader *l)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = l->e;
	const int workers = (int)l->from->at.workers, mine = e->members->index;
	const bool same = workers == l->arrays.workers;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);

	if (l->arrays.own.n == 0)
		goto out;
	MU_TRY(load_counts(l, mine % workers, same));
	for (size_t i = 0; i < l->arrays.n; i++) {
		struct checkpoint_array a = l->arrays.all[i];
		const struct mu_kv_own_array *own = &l->arrays.own.arrays[a.which];

		if (a.of != CHECKPOINT_ARRAY_OWN || a.worker != mine ||
		    (!same && strncmp(own->name, "state/", 6) != 0))
			continue;
		a.worker = mine % workers;
		MU_TRY(load_array(l, &a, own->data + slices[a.key].at, false));
	}
out:
	return st;
}

enum mu_status mu_checkpoint_resume_states(const struct mu_engine *e,
					   const struct checkpoint_resume *resume)
{
	enum mu_status st = MU_OK;
	struct loader l = {.e = e, .from = resume};

	if (!resume->whole)
		return MU_OK;
	MU_TRY(open_loader(&l));
	MU_TRY(load_states(&l)); /* before the worker's own weights */
	MU_TRY(load_own(&l));
out:
	close_loader(&l);
	return st;
}
