/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run's results depend on, as texts: attributes of its checkpoints, compared when a run goes
 * on from one. Paths, logging, saving and the number of epochs do not belong to it.
 */
#include "checkpoint.h"

#include "conf/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { SAMPLES = 64 };

/* The labels of some records tell data sets of one size apart. A bad record has none. */
static uint64_t hash_labels(const struct mu_engine *e, uint64_t h, float *data, float *labels)
{
	const struct mu_input *in = e->train;
	size_t n = in->n < SAMPLES ? in->n : SAMPLES;

	for (size_t i = 0; i < n; i++) {
		struct mu_trace *before = mu_trace_detach();

		memset(labels, 0, in->config.label_width * sizeof *labels);
		if (in->ops->read(in, in->thread, in->n / n * i, data, labels) != MU_OK)
			mu_trace_clear();
		mu_trace_attach(before);
		h = mu_hash(h, labels, in->config.label_width * sizeof *labels);
	}
	return h;
}

/* Random data has as many samples as the job wants: their number is not a part of it. */
static enum mu_status hash_data(const struct mu_engine *e, uint64_t *h)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = e->train;
	const uint64_t sizes[2] = {e->conf->benchmark ? 0 : in->n, in->classes};
	float *data = NULL, *labels = NULL;

	*h = mu_hash(MU_HASH_START, in->ops->name, strlen(in->ops->name));
	*h = mu_hash(*h, sizes, sizeof sizes);
	if (e->conf->benchmark)
		goto out;
	MU_TRY(MU_ALLOC(data, in->shape[0] * in->shape[1] * in->shape[2], "a sample"));
	MU_TRY(MU_ALLOC(labels, in->config.label_width, "labels of a sample"));
	*h = hash_labels(e, *h, data, labels);
out:
	mu_free(data);
	mu_free(labels);
	return st;
}

__attribute__((format(printf, 4, 5))) static void add(struct checkpoint_record *r, const char *name,
						      enum checkpoint_record_kind kind,
						      const char *format, ...)
{
	struct checkpoint_record_item *item = &r->of[r->n];
	va_list args;

	if (r->n == CHECKPOINT_RECORD_MAX) {
		r->full = true;
		return;
	}
	r->n++;
	item->name = name;
	item->kind = kind;
	va_start(args, format);
	vsnprintf(item->text, sizeof item->text, format, args);
	va_end(args);
}

/* Settings of the rule's own, "beta1 0.9, beta2 0.999"; momentum and decay have places of theirs.
 */
static void describe_rule(const struct conf *v, char *text, size_t nbytes)
{
	const struct mu_optim_config *c = &v->optim;
	const struct mu_rule *rule;
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; (rule = mu_rule_table[i]) && strcmp(rule->name, c->name) != 0; i++)
		;
	for (const struct mu_setting *s = rule ? rule->settings : NULL; s && s->name; s++) {
		double value;

		if (!s->offset || strcmp(s->name, "mom") == 0 || n >= nbytes)
			continue;
		memcpy(&value, (const char *)c + s->offset, sizeof value);
		n += (size_t)snprintf(text + n, nbytes - n, "%s %.17g, ", s->name, value);
	}
	if (n < nbytes)
		snprintf(text + n, nbytes - n,
			 "clip-gradient %.17g, clip-global-norm %.17g, wd-gamma %d%s%s",
			 c->clip_gradient, c->clip_global_norm, c->wd_gamma,
			 c->centered ? ", centered" : "", c->decoupled ? ", decoupled" : "");
}

/* A list may be longer than an attribute: its hash tells it from others that begin alike. */
static void add_list(struct checkpoint_record *r, const char *name, const char *list)
{
	if (!list || strlen(list) < sizeof r->of->text)
		add(r, name, CHECKPOINT_RECORD_TOLD, "%s", list ? list : "none");
	else
		add(r, name, CHECKPOINT_RECORD_TOLD, "%.128s... %016" PRIx64, list,
		    mu_hash(MU_HASH_START, list, strlen(list)));
}

static void add_optimizer(const struct mu_engine *e, struct checkpoint_record *r)
{
	const struct conf *v = e->conf;
	const struct conf_schedule *s = &v->schedule;
	char settings[sizeof r->of->text];

	describe_rule(v, settings, sizeof settings);
	add(r, "optimizer", CHECKPOINT_RECORD_TRAINING, "%s", v->optim.name);
	add(r, "mom", CHECKPOINT_RECORD_TRAINING, "%.17g", v->optim.mom);
	add(r, "wd", CHECKPOINT_RECORD_TRAINING, "%.17g", v->optim.wd);
	add(r, "optimizer-settings", CHECKPOINT_RECORD_TRAINING, "%s", settings);
	add(r, "lr", CHECKPOINT_RECORD_TOLD, "%.17g", mu_conf_base_lr(v, e->team.n));
	add_list(r, "fixed", v->fixed);
	add_list(r, "lr-mult", v->lr_mult);
	add_list(r, "wd-mult", v->wd_mult);
	add(r, "lr-schedule", CHECKPOINT_RECORD_TOLD, "%s %s %g %g %g %g %s %g %g",
	    mu_conf_schedule_words[s->kind], s->step_epochs ? s->step_epochs : "-", s->factor,
	    s->factor_epoch, s->power, s->final_lr, mu_conf_warmup_words[s->warmup_strategy],
	    s->warmup_epochs, s->warmup_begin_lr);
}

/* Which samples a step has, and what becomes of them. */
static void add_data(const struct mu_engine *e, struct checkpoint_record *r)
{
	const struct conf *v = e->conf;
	char text[1024];

	if (v->shuffle == CONF_SHUFFLE_CHUNK)
		add(r, "shuffle", CHECKPOINT_RECORD_TOLD, "chunk of %ld", v->shuffle_chunk);
	else
		add(r, "shuffle", CHECKPOINT_RECORD_TOLD, "%s", mu_conf_shuffle_words[v->shuffle]);
	add(r, "num-batches", CHECKPOINT_RECORD_TOLD, "%ld", v->num_batches);
	if (e->train->ops->colour_images) {
		mu_augment_describe(&e->train->config.augment, text, sizeof text);
		add_list(r, "augmentation", text);
	}
	if (e->train->groups)
		add_list(r, "buckets", v->text.buckets);
}

static void add_job(const struct mu_engine *e, struct checkpoint_record *r)
{
	const struct conf *v = e->conf;
	const struct mu_topology *t = e->topology;

	add(r, "kv-store", CHECKPOINT_RECORD_TOLD, "%s", v->kv_store);
	add(r, "workers", CHECKPOINT_RECORD_TOLD, "%d", t->num_workers);
	add(r, "servers", CHECKPOINT_RECORD_TOLD, "%d", t->num_servers);
	add(r, "nodes", CHECKPOINT_RECORD_TOLD, "%d", t->num_nodes);
	add(r, "batch-size", CHECKPOINT_RECORD_TOLD, "%zu", e->train->config.batch);
	add(r, "threads", CHECKPOINT_RECORD_TOLD, "%d", e->n_threads);
	if (v->gpus && *v->gpus)
		add(r, "devices", CHECKPOINT_RECORD_TOLD, "gpu:%s", v->gpus);
	else
		add(r, "devices", CHECKPOINT_RECORD_TOLD, "%s", v->devices ? v->devices : "cpu");
	add(r, "update-period", CHECKPOINT_RECORD_TOLD, "%ld", v->update_period);
	add(r, "micro-batches", CHECKPOINT_RECORD_TOLD, "%ld", v->micro_batches);
	add(r, "time-block", CHECKPOINT_RECORD_TOLD, "%ld", v->time_block);
	add(r, "sync-period", CHECKPOINT_RECORD_TOLD, "%ld", v->sync_period);
	add(r, "block-momentum", CHECKPOINT_RECORD_TOLD, "%g", v->block_momentum);
	add(r, "block-lr", CHECKPOINT_RECORD_TOLD, "%g", v->block_lr);
	add(r, "block-nesterov", CHECKPOINT_RECORD_TOLD, "%ld", v->block_nesterov);
	add(r, "gc-type", CHECKPOINT_RECORD_TOLD, "%s",
	    v->compression.type ? v->compression.type : "none");
	add(r, "gc-threshold", CHECKPOINT_RECORD_TOLD, "%g", v->compression.threshold);
	add(r, "gc-ratio", CHECKPOINT_RECORD_TOLD, "%g", v->compression.ratio);
	add(r, "gc-pull", CHECKPOINT_RECORD_TOLD, "%ld", v->gc_pull);
	add(r, "label-smoothing", CHECKPOINT_RECORD_TOLD, "%g", v->label_smoothing);
	add(r, "loss-scale", CHECKPOINT_RECORD_TOLD, "%s",
	    v->loss_scale ? v->loss_scale : "by --dtype");
	add(r, "conv-algo", CHECKPOINT_RECORD_TOLD, "%s", mu_conf_conv_words[v->conv_algo]);
	if (*e->conv->text)
		add(r, "conv-table", CHECKPOINT_RECORD_TOLD, "%016" PRIx64, e->conv->hash);
	else
		add(r, "conv-table", CHECKPOINT_RECORD_TOLD, "none");
	add_data(e, r);
	add(r, "dropout", CHECKPOINT_RECORD_TOLD, "%g",
	    v->text.dropout_given ? v->text.dropout : -1);
}

enum mu_status mu_checkpoint_record_make(const struct mu_engine *e, struct checkpoint_record *r)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	const size_t *shape = e->train->shape;
	uint64_t data;
	char text[64];

	MU_TRY(hash_data(e, &data));
	r->n = 0;
	r->full = false;
	r->trains = !v->evaluate;
	add(r, "network", CHECKPOINT_RECORD_IDENTITY, "%s", v->network_name);
	add(r, "num-layers", CHECKPOINT_RECORD_IDENTITY, "%ld", v->num_layers);
	if (e->train->vocabulary) {
		mu_conf_vocabulary_text(e->train->vocabulary, text, sizeof text);
		add(r, "vocabulary", CHECKPOINT_RECORD_IDENTITY, "%s", text);
	}
	add(r, "image-shape", CHECKPOINT_RECORD_IDENTITY, "%zu,%zu,%zu", shape[0], shape[1],
	    shape[2]);
	add(r, "num-classes", CHECKPOINT_RECORD_IDENTITY, "%zu", e->train->classes);
	add(r, "structure", CHECKPOINT_RECORD_IDENTITY, "%016" PRIx64,
	    mu_plan_structure_hash(e->plan));
	add(r, "dtype", CHECKPOINT_RECORD_TRAINING, "%s", mu_dtype_name(v->dtype));
	add(r, "seed", CHECKPOINT_RECORD_TRAINING, "%ld", v->seed);
	add(r, "data", CHECKPOINT_RECORD_TRAINING, "%016" PRIx64, data);
	add_optimizer(e, r);
	add_job(e, r);
	if (r->full)
		MU_FAIL(MU_ERR_ARGUMENT, "more than %d settings are recorded",
			CHECKPOINT_RECORD_MAX);
out:
	return st;
}

enum mu_status mu_checkpoint_record_write(const struct checkpoint_record *r,
					  struct mu_array_file *file)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < r->n; i++)
		MU_TRY(mu_array_file_set_text(file, r->of[i].name, r->of[i].text));
out:
	return st;
}

/* Is it in "a,b,c", or is that "all"? */
static bool is_overridden(const char *list, const char *name)
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

enum mu_status mu_checkpoint_record_check_override(const struct checkpoint_record *r,
						   const char *override)
{
	enum mu_status st = MU_OK;
	char known[512] = "all";
	size_t n = strlen(known);

	if (!override || strcmp(override, "all") == 0)
		goto out;
	for (size_t i = 0; i < r->n && n < sizeof known; i++)
		if (r->of[i].kind != CHECKPOINT_RECORD_TOLD)
			n += (size_t)snprintf(known + n, sizeof known - n, ",%s", r->of[i].name);
	for (const char *p = override; p; p = strchr(p, ',')) {
		char name[64];

		p += *p == ',';
		snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
		if (!is_overridden(known, name) || strcmp(name, "all") == 0)
			MU_FAIL(MU_ERR_USAGE, "--override %s: \"%s\" is not one of %s", override,
				name, known);
	}
out:
	return st;
}

enum mu_status mu_checkpoint_record_compare(const struct checkpoint_record *r,
					    struct mu_array_file *file, const char *path,
					    const char *override, bool *foreign, char *differs,
					    size_t nbytes)
{
	enum mu_status st = MU_OK;
	char text[sizeof r->of->text];
	size_t n = 0;

	differs[0] = '\0';
	for (size_t i = 0; i < r->n; i++) {
		const struct checkpoint_record_item *item = &r->of[i];
		const bool identity = item->kind == CHECKPOINT_RECORD_IDENTITY ||
				      (item->kind == CHECKPOINT_RECORD_TRAINING && r->trains);
		bool there = true;

		/* A version that did not know the setting has saved the file. */
		if (!identity)
			MU_TRY(mu_array_file_has_text(file, item->name, &there));
		if (!there)
			continue;
		MU_TRY(mu_array_file_get_text(file, item->name, text, sizeof text));
		if (strcmp(text, item->text) == 0)
			continue;
		*foreign = identity && !is_overridden(override, item->name);
		if (*foreign)
			MU_FAIL(MU_ERR_FORMAT,
				"%s was saved with %s %s, and this run has %s; --override %s goes "
				"on all the same",
				path, item->name, text, item->text, item->name);
		if (n < nbytes)
			n += (size_t)snprintf(differs + n, nbytes - n, "%s%s %s (was %s)",
					      n ? ", " : "", item->name, item->text, text);
	}
out:
	return st;
}
