/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of a run with the checkpoint that it resumes from: the identity (identity.c), what the
 * numbers of its data stand for, and what follows from differences. */
#include "contents.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/text.h"

/* Is the name in the list "a,b,c", or the list "all"? */
bool mu_checkpoint_identity_overrides(const char *list, const char *name)
{
	const size_t n = strlen(name);

	if (!list)
		return false;
	if (strcmp(list, "all") == 0)
		return true;
	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
			return true;
	}
	return false;
}

enum mu_status mu_checkpoint_identity_check_override(const struct checkpoint_identity *r,
						     const char *override)
{
	enum mu_status st = MU_OK;
	char known[1024] = "all," CHECKPOINT_CLASS_NAMES;
	size_t n = strlen(known);

	if (!override || strcmp(override, "all") == 0)
		goto out;
	for (size_t i = 0; i < r->n && n < sizeof known; i++)
		if (r->of[i].kind != MU_RECORD_TOLD)
			n += (size_t)snprintf(known + n, sizeof known - n, ",%s", r->of[i].name);
	if (n < sizeof known)
		snprintf(known + n, sizeof known - n, "," CHECKPOINT_TOKENIZER);
	for (const char *p = override; p; p = strchr(p, ',')) {
		char name[64];

		p += *p == ',';
		snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
		if (!mu_checkpoint_identity_overrides(known, name) || strcmp(name, "all") == 0)
			MU_FAIL(MU_ERR_USAGE, "--override %s: \"%s\" is not one of %s", override,
				name, known);
	}
out:
	return st;
}

static bool is(const struct checkpoint_identity_item *item, const char *name)
{
	return strcmp(item->name, name) == 0;
}

/* Must this run have the file's value, unless it is overridden? */
static bool is_identity(const struct checkpoint_identity *r,
			const struct checkpoint_identity_item *item)
{
	return item->kind == MU_RECORD_IDENTITY || (item->kind == MU_RECORD_TRAINING && r->trains);
}

static bool is_overridden(const struct checkpoint_identity_item *item, const char *override)
{
	return mu_checkpoint_identity_overrides(override, item->name) ||
	       (is(item, CHECKPOINT_DATA_CONTENTS) &&
		mu_checkpoint_identity_overrides(override, "data"));
}

/* A value in place, as people read it. */
static void show(const char *name, char *value, size_t nbytes)
{
	char *text = strcmp(name, "lr-schedule") == 0 ? strdup(value) : NULL;

	if (text)
		mu_checkpoint_schedule_text(text, value, nbytes);
	else
		mu_text_shorten(value);
	free(text);
}

/* A value that differs. */
static enum mu_status note(const struct checkpoint_identity *r,
			   const struct checkpoint_identity_item *item, char *text,
			   const struct checkpoint_comparison *c, struct checkpoint_difference *d)
{
	enum mu_status st = MU_OK;
	char mine[sizeof item->text];
	const size_t n = strlen(d->text);

	d->files |= is(item, CHECKPOINT_DATA_FILES);
	d->validation |= is(item, CHECKPOINT_DATA_VALIDATION);
	/* Another number of nodes says more than the places of the ranks. */
	if (is(item, CHECKPOINT_DATA_FILES) || (is(item, CHECKPOINT_PLACEMENT) && d->counts))
		goto out;
	d->counts |= is(item, "workers") || is(item, "servers") || is(item, "nodes");
	snprintf(mine, sizeof mine, "%s", item->text);
	show(item->name, mine, sizeof mine);
	show(item->name, text, sizeof item->text);
	d->foreign = is_identity(r, item) && !is_overridden(item, c->override);
	if (d->foreign && is(item, CHECKPOINT_DATA_CONTENTS))
		MU_FAIL(MU_ERR_FORMAT,
			"%s was saved with other training data: their contents were %s and are "
			"%s; --override data resumes anyway",
			c->path, text, mine);
	if (d->foreign)
		MU_FAIL(MU_ERR_FORMAT,
			"%s was saved with %s %s, and this run has %s; --override %s resumes "
			"anyway",
			c->path, item->name, text, mine, item->name);
	snprintf(d->text + n, sizeof d->text - n, "%s%s %s (was %s)", n ? ", " : "", item->name,
		 mine, text);
out:
	return st;
}

/* ---- arrays: where theirs have other shapes, no --override helps ---- */

struct fitting {
	const struct mu_plan *plan;
	size_t n; /* arrays of the plan that the file has, in the same shape */
};

static enum mu_status match(void *context, const char *name, int ndims, const size_t *dims)
{
	struct fitting *f = context;
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(f->plan, &n);
	char mine[CHECKPOINT_NAME];

	for (size_t k = 0; k < n; k++) {
		const struct mu_shape *shape = mu_plan_slice_shape(f->plan, k);

		mu_checkpoint_weights_name(&slices[k], mine, sizeof mine);
		if (strcmp(mine, name) == 0 && ndims == shape->ndims &&
		    memcmp(dims, shape->dims, (size_t)ndims * sizeof *dims) == 0)
			f->n++;
	}
	return MU_OK;
}

/* Do arrays depend on it: a setting of the network whose record says so, or one of these? */
static bool shapes_arrays(const struct conf *v, const char *name)
{
	static const char *const others[] = {"network",    "objective",   "num-layers",
					     "vocabulary", "image-shape", "num-classes"};
	const struct mu_network *network = v->owner.network;

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(others[i], name) == 0)
			return true;
	for (size_t i = 0; i < mu_conf_owned(network, NULL, NULL); i++) {
		const struct mu_option *row = mu_conf_owned_row(network, NULL, NULL, i);

		if (strcmp(row->name, name) == 0)
			return row->record == MU_RECORD_SHAPES || row->record == MU_RECORD_IDENTITY;
	}
	return false;
}

/* Does what follows it here follow from it, too: the arrays of another network are others? */
static bool decides(const char *name)
{
	return strcmp(name, "network") == 0 || strcmp(name, "objective") == 0 ||
	       strcmp(name, "vocabulary") == 0;
}

/* Where the two differ in that: "num-hidden 16, num-embed 4" and "32, 8". */
struct differing {
	char theirs[512], mine[512];
};

static enum mu_status list_settings(const struct checkpoint_identity *r,
				    const struct checkpoint_comparison *c, struct differing *s)
{
	enum mu_status st = MU_OK;
	char text[sizeof r->of->text], mine[sizeof r->of->text];

	*s = (struct differing){.theirs = ""};
	for (size_t i = 0; i < r->n; i++) {
		const struct checkpoint_identity_item *item = &r->of[i];
		const size_t n = strlen(s->theirs), m = strlen(s->mine);
		const char *comma = n ? ", " : "";

		if (!shapes_arrays(r->conf, item->name))
			continue;
		MU_TRY(mu_array_file_find_text(c->file, item->name, text, sizeof text));
		if (!*text || strcmp(text, item->text) == 0)
			continue;
		snprintf(mine, sizeof mine, "%s", item->text);
		mu_text_shorten(mine);
		mu_text_shorten(text);
		snprintf(s->theirs + n, sizeof s->theirs - n, "%s%s %s", comma, item->name, text);
		snprintf(s->mine + m, sizeof s->mine - m, "%s%s", comma, mine);
		if (decides(item->name))
			break;
	}
out:
	return st;
}

/* *fit: a run of another structure can have the file's arrays, by --override. */
static enum mu_status check_arrays(const struct checkpoint_identity *r,
				   const struct checkpoint_comparison *c, bool *fit)
{
	enum mu_status st = MU_OK;
	struct fitting f = {.plan = c->plan};
	struct differing s;
	char structure[64], mine[64];
	size_t n;

	*fit = true;
	snprintf(mine, sizeof mine, "%016" PRIx64, mu_plan_structure_hash(c->plan));
	MU_TRY(mu_array_file_find_text(c->file, CHECKPOINT_STRUCTURE, structure, sizeof structure));
	if (strcmp(structure, mine) == 0)
		goto out;
	MU_TRY(mu_array_file_each(c->file, match, &f));
	mu_plan_slices(c->plan, &n);
	*fit = f.n == n;
	if (*fit)
		goto out;
	MU_TRY(list_settings(r, c, &s));
	if (!*s.theirs)
		MU_FAIL(MU_ERR_FORMAT,
			"%s was saved by another form of network %s, with other arrays: --load and "
			"--skip-mismatch begin a new run with those that fit",
			c->path, r->conf->network_name);
	MU_FAIL(MU_ERR_FORMAT,
		"%s was saved with %s, and this run has %s, so that arrays have other shapes: "
		"resume with the former; --load and --skip-mismatch begin a new run",
		c->path, s.theirs, s.mine);
out:
	return st;
}

enum mu_status mu_checkpoint_identity_compare(const struct checkpoint_identity *r,
					      const struct checkpoint_comparison *c,
					      struct checkpoint_difference *d)
{
	enum mu_status st = MU_OK;
	char text[sizeof r->of->text];
	bool validates = false, validated, fit;

	*d = (struct checkpoint_difference){.foreign = false};
	st = check_arrays(r, c, &fit);
	d->foreign = !fit;
	MU_TRY(st);
	for (size_t i = 0; i < r->n; i++) {
		const struct checkpoint_identity_item *item = &r->of[i];
		bool there = true;

		/* The file may be of a version without the setting. */
		if (!is_identity(r, item) || is(item, CHECKPOINT_DATA_CONTENTS) ||
		    item->before)
			MU_TRY(mu_array_file_has_text(c->file, item->name, &there));
		validates |= is(item, CHECKPOINT_DATA_VALIDATION);
		d->unknown |= !there && is(item, CHECKPOINT_DATA_VALIDATION) && d->compared;
		d->compared |= there && is(item, CHECKPOINT_DATA_CONTENTS);
		if (!there && !(is_identity(r, item) && item->before))
			continue;
		if (there)
			MU_TRY(mu_array_file_get_text(c->file, item->name, text, sizeof text));
		else
			snprintf(text, sizeof text, "%s", item->before);
		if (strcmp(text, item->text) != 0)
			MU_TRY(note(r, item, text, c, d));
	}
	d->validation |= d->unknown;
	MU_TRY(mu_array_file_has_text(c->file, CHECKPOINT_DATA_VALIDATION, &validated));
	d->parts = validated != validates;
out:
	return st;
}

enum mu_status mu_checkpoint_words_check(const struct mu_engine *e, struct mu_array_file *file,
					 const char *path, bool *foreign)
{
	enum mu_status st = MU_OK;
	const char *override = e->conf->override;

	if (!mu_checkpoint_identity_overrides(override, CHECKPOINT_CLASS_NAMES))
		st = mu_checkpoint_classes_check(e, file, path,
						 "; --override class-names resumes anyway");
	if (st == MU_OK && !mu_checkpoint_identity_overrides(override, CHECKPOINT_TOKENIZER))
		st = mu_checkpoint_tokenizer_check(e, file, path);
	*foreign = st == MU_ERR_USAGE; /* else the file is damaged */
	return st;
}

void mu_checkpoint_files_report(const struct mu_engine *e, const char *path,
				const struct checkpoint_difference *d)
{
	const struct mu_input_contents *t = &e->train->contents,
				       none = {.n = 0},
				       *v = e->validate ? &e->validate->contents : &none;

	/* One hash has the files of both: those of validation may be all that differs. */
	if (d->validation || d->parts) {
		if (t->hashed < t->n)
			mu_log_warn("the files of the training data may have other times, names, "
				    "sizes or labels than when %s was saved: %zu of their %zu "
				    "record%s were compared",
				    path, t->hashed, t->n, MU_S(t->n));
	} else if (t->hashed == t->n && v->hashed == v->n)
		mu_log_info("the files of the data have other times, names or sizes than when %s "
			    "was saved: all of their %zu record%s were compared",
			    path, t->n + v->n, MU_S(t->n + v->n));
	else
		mu_log_warn("the files of the data have other times, names, sizes or labels than "
			    "when %s was saved: %zu of their %zu record%s were compared",
			    path, t->hashed + v->hashed, t->n + v->n, MU_S(t->n + v->n));
}

void mu_checkpoint_best_forget(struct checkpoint_position *at, const char *path,
			       const struct checkpoint_difference *d)
{
	if (at->best.epoch > 0 && d->unknown)
		mu_log_warn("%s was saved without validation data: the best epoch so far, %zu, may "
			    "be the best on others, and is forgotten",
			    path, at->best.epoch);
	else if (at->best.epoch > 0)
		mu_log_warn("the validation data are others: the best epoch so far, %zu, is "
			    "forgotten",
			    at->best.epoch);
	at->best = (struct checkpoint_best){.pending = at->best.pending};
	at->plateau.best = INFINITY;
}

enum mu_status mu_checkpoint_objective(const struct checkpoint_description *d, const struct conf *v,
				       const struct mu_network *network,
				       const struct mu_loss **loss)
{
	enum mu_status st = MU_OK;
	const char *recorded = d->of[CHECKPOINT_OBJECTIVE];
	const bool taken = network && network->objective && *recorded &&
			   strcmp(network->name, d->network) == 0;

	*loss = NULL;
	if (!v->objective && taken && mu_loss_find(loss, recorded) != MU_OK) {
		mu_trace_clear();
		MU_FAIL(MU_ERR_USAGE,
			"%s: its objective is one of your own, %s: name its file, --objective "
			"FILE.so",
			d->path, recorded);
	}
	MU_TRY(mu_conf_objective(loss, network,
				 !v->objective && taken ? recorded : v->objective));
out:
	return st;
}
