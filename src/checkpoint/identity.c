/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity: what the results of a run depend on, as texts. They are attributes of its
 * checkpoints and are compared when a run resumes. Which options belong to it, and how another
 * value is treated, is in the column `record` of the options table; settings that are no options,
 * and options whose effective value is computed, are added here.
 */
#include "contents.h"

#include "conf/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <muster/pictures.h>

enum { SAMPLES = 64 };

/* The labels of some records distinguish data sets of equal size. A bad record counts as zeros. */
static uint64_t hash_labels(const struct mu_engine *e, uint64_t h, float *data, float *labels)
{
	const struct mu_input *in = e->train;
	size_t n = in->n < SAMPLES ? in->n : SAMPLES;

	for (size_t i = 0; i < n; i++) {
		struct mu_trace *before = mu_trace_detach();

		memset(labels, 0, mu_input_width(in) * sizeof *labels);
		if (in->ops->read(in, in->thread, in->n / n * i, data, labels) != MU_OK)
			mu_trace_clear();
		mu_trace_attach(before);
		h = mu_hash(h, labels, mu_input_width(in) * sizeof *labels);
	}
	return h;
}

/* Random data: the job chooses the number of samples, so it is not part of the hash. */
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
	MU_TRY(MU_ALLOC(data, mu_shape_sample(mu_input_shape(in)), "a sample"));
	MU_TRY(MU_ALLOC(labels, mu_input_width(in), "labels of a sample"));
	*h = hash_labels(e, *h, data, labels);
out:
	mu_free(data);
	mu_free(labels);
	return st;
}

/* ---- the settings ---- */

/* The order of a file's attributes; options that are not here follow. */
static const char order[] =
	"network network-code objective num-layers vocabulary seq-len image-shape num-classes "
	"structure dtype seed val-split data data-contents data-validation data-files "
	"optimizer mom wd optimizer-settings lr fixed lr-mult wd-mult lr-schedule kv-store "
	"workers servers nodes placement batch-size threads devices computed-by update-period "
	"micro-batches time-block sync-period block-momentum block-lr block-nesterov gc-type "
	"gc-threshold gc-ratio gc-pull label-smoothing loss-scale conv-algo conv-table "
	"attention-algo allow-tf32 shuffle num-batches augmentation buckets dropout";

static size_t place_of(const char *name)
{
	const size_t n = strlen(name);
	const char *p = order;

	while ((p = strstr(p, name)) && ((p > order && p[-1] != ' ') || (p[n] && p[n] != ' ')))
		p++;
	return p ? (size_t)(p - order) : sizeof order;
}

/* The kind of an option is in its row. */
static const enum mu_option_record by_row = MU_UNRECORDED;

__attribute__((format(printf, 4, 5))) static void
add(struct checkpoint_identity *r, const char *name, enum mu_option_record kind,
    const char *format, ...)
{
	struct checkpoint_identity_item *item = &r->of[r->n];
	const struct mu_option *option;
	va_list args;

	if (kind == by_row)
		kind = mu_conf_option(r->conf, name)->record;
	if (kind == MU_UNRECORDED)
		return;
	if (r->n == CHECKPOINT_IDENTITY_MAX) {
		r->full = true;
		return;
	}
	r->n++;
	for (; item > r->of && place_of(item[-1].name) > place_of(name); item--)
		*item = item[-1];
	item->name = name;
	item->kind = kind == MU_RECORD_SHAPES                               ? MU_RECORD_TOLD
		     : kind == MU_RECORD_UNSEEN || kind == MU_RECORD_NEEDED ? MU_RECORD_IDENTITY
									    : kind;
	option = mu_conf_option(r->conf, name);
	/* Of files from before the setting: its default. */
	item->before = !option || !option->whole ? NULL
		       : option->initial         ? option->initial
						 : "none";
	va_start(args, format);
	vsnprintf(item->text, sizeof item->text, format, args);
	va_end(args);
}

/* A list longer than an attribute ends in a hash of all of it. */
static void add_list(struct checkpoint_identity *r, const char *name, enum mu_option_record kind,
		     const char *list)
{
	if (strlen(list) < sizeof r->of->text)
		add(r, name, kind, "%s", list);
	else
		add(r, name, kind, "%.128s... %016" PRIx64, list,
		    mu_hash(MU_HASH_START, list, strlen(list)));
}

/* Settings of the rule's own, "beta1 0.9, beta2 0.999"; momentum and decay are options here. */
static void describe_rule(const struct mu_optim_config *c, char *text, size_t nbytes)
{
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

static void add_optimizer(const struct mu_engine *e, struct checkpoint_identity *r)
{
	const struct conf *v = e->conf;
	const struct conf_schedule *s = &v->schedule;
	char settings[sizeof r->of->text], warmup[64];

	snprintf(warmup, sizeof warmup, "%g", s->warmup_epochs);
	if (s->warmup_steps > 0)
		snprintf(warmup, sizeof warmup, "%ldsteps", s->warmup_steps);
	describe_rule(&v->optim, settings, sizeof settings);
	add(r, "optimizer-settings", MU_RECORD_TRAINING, "%s", settings);
	add(r, "lr", by_row, "%.17g", mu_conf_base_lr(v, e->team.n));
	add(r, "lr-schedule", by_row, "%s %s %g %g %g %g %s %s %g", mu_conf_schedule_words[s->kind],
	    s->step_epochs ? s->step_epochs : "-", s->factor, s->factor_epoch, s->power,
	    s->final_lr, mu_conf_warmup_words[s->warmup_strategy], warmup, s->warmup_begin_lr);
	if (s->kind == CONF_SCHEDULE_POLY || s->kind == CONF_SCHEDULE_COSINE)
		add(r, "lr-schedule-epochs", MU_RECORD_TOLD, "%ld", v->num_epochs);
	add(r, "loss-scale", by_row, "%s", v->loss_scale ? v->loss_scale : "by --dtype");
}

/* Nothing without a look: the run neither saves nor resumes, or its data are random. */
static void add_contents(struct checkpoint_identity *r, const char *name,
			 enum mu_option_record kind, const struct mu_input *in)
{
	const struct mu_input_contents *c = &in->contents;

	if (c->n > 0)
		add(r, name, kind, "%016" PRIx64 " (%zu of %zu records)", c->records, c->hashed,
		    c->n);
}

static void add_files(struct checkpoint_identity *r, const struct mu_input *train,
		      const struct mu_input *validate)
{
	const struct mu_input_contents none = {.n = 0}, *t = &train->contents,
				       *v = validate ? &validate->contents : &none;
	const uint64_t all[4] = {t->listing, t->times, v->listing, v->times};

	if (t->n > 0)
		add(r, CHECKPOINT_DATA_FILES, MU_RECORD_TOLD, "%016" PRIx64,
		    mu_hash_block(MU_HASH_START, all, sizeof all));
}

static enum mu_status add_data(const struct mu_engine *e, struct checkpoint_identity *r)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = e->train;
	const struct conf *v = e->conf;
	const struct mu_picture_settings *pictures = mu_input_pictures(in);
	const bool tokens = strcmp(in->ops->name, "tokens") == 0;
	uint64_t hash;
	char text[1024];

	MU_TRY(hash_data(e, &hash));
	add(r, "data", MU_RECORD_TRAINING, "%016" PRIx64, hash);
	add_contents(r, CHECKPOINT_DATA_CONTENTS, MU_RECORD_TRAINING, in);
	if (e->validate)
		add_contents(r, CHECKPOINT_DATA_VALIDATION, MU_RECORD_TOLD, e->validate);
	add_files(r, in, e->validate);
	if (in->about.vocabulary) {
		mu_conf_vocabulary_text(in->about.vocabulary, text, sizeof text);
		add(r, "vocabulary", MU_RECORD_IDENTITY, "%s", text);
	}
	add(r, "image-shape", tokens ? MU_RECORD_TOLD : by_row, "%s",
	    mu_sample_text(mu_input_shape(in), ",", text, sizeof text));
	add(r, "num-classes", by_row, "%zu",
	    v->facts.of_values ? mu_engine_classes(e) : in->classes);
	add(r, "text", by_row, "%s",
	    !in->about.vocabulary                            ? "none"
	    : mu_vocabulary_characters(in->about.vocabulary) ? "characters"
							     : "words");
	if (tokens)
		add(r, "seq-len", MU_RECORD_IDENTITY, "%zu", mu_shape_space(mu_input_shape(in), 0));
	add(r, "batch-size", by_row, "%zu", in->config.batch);
	if (v->shuffle == CONF_SHUFFLE_CHUNK)
		add(r, "shuffle", by_row, "chunk of %ld", v->shuffle_chunk);
	if (pictures) {
		mu_augment_describe(&pictures->augment, text, sizeof text);
		add_list(r, "augmentation", MU_RECORD_TOLD, text);
	}
out:
	return st;
}

/* "cpu: oneDNN 2.6.3, avx2": other versions and instruction sets give other bits. Threads are an
 * item of their own. */
void mu_checkpoint_computed_by(const struct mu_engine *e, char *text, size_t nbytes)
{
	char *threads;

	mu_engine_device_text(&e->devices.of[0].device, text, nbytes);
	threads = strstr(text, " thread");
	while (threads && threads > text && *threads != ',')
		threads--;
	if (threads)
		*threads = '\0';
}

/* "2 on node 0, 1 on node 1": runs of ranks, in their order. Sums are taken node by node. */
static enum mu_status add_placement(const struct mu_members *m, struct checkpoint_identity *r)
{
	enum mu_status st = MU_OK;
	const size_t room = 40 * (size_t)m->size + 1;
	char *text = NULL;
	size_t n = 0;

	MU_TRY(MU_ALLOC(text, room, "placement of the ranks"));
	for (int first = 0, end; first < m->size; first = end) {
		for (end = first + 1;
		     end < m->size && m->topology.node_of[end] == m->topology.node_of[first]; end++)
			;
		n += (size_t)snprintf(text + n, room - n, "%s%d on node %d", n ? ", " : "",
				      end - first, m->topology.node_of[first]);
	}
	add_list(r, CHECKPOINT_PLACEMENT, MU_RECORD_TOLD, text);
out:
	mu_free(text);
	return st;
}

/* Files of before there were others are of the network's usual loss. */
static void add_objective(const struct mu_engine *e, struct checkpoint_identity *r)
{
	const char *name = mu_net_loss(e->net)->name;

	add(r, "objective", by_row, "%s", name);
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->of[i].name, "objective") == 0)
			r->of[i].before = e->network->objective ? e->network->objective : name;
}

/* Settings whose values the network chose. */
static void add_reported(const struct mu_engine *e, struct checkpoint_identity *r)
{
	for (size_t i = 0; i < mu_network_settings(e->network); i++) {
		const char *name = e->network->settings[i].name;
		const long *value = mu_net_reported(e->net, name);

		if (value)
			add(r, name, by_row, "%ld", *value);
	}
}

static enum mu_status add_job(const struct mu_engine *e, struct checkpoint_identity *r)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	const struct mu_members *m = e->members;
	char library[sizeof r->of->text];

	add(r, "network", by_row, "%s", v->network_name);
	if (e->network_bytes)
		add(r, "network-code", MU_RECORD_TOLD, "%016" PRIx64, e->network_bytes);
	add_objective(e, r);
	add(r, "num-layers", by_row, "%ld", mu_net_depth(e->net));
	add(r, CHECKPOINT_STRUCTURE, MU_RECORD_IDENTITY, "%016" PRIx64,
	    mu_plan_structure_hash(e->plan));
	add_reported(e, r);
	if (*e->conv->text)
		add(r, "conv-table", by_row, "%016" PRIx64, e->conv->hash);
	else
		add(r, "conv-table", by_row, "none");
	add(r, "workers", MU_RECORD_TOLD, "%d", m->num_workers);
	add(r, "servers", MU_RECORD_TOLD, "%d", m->num_servers);
	add(r, "nodes", MU_RECORD_TOLD, "%d", m->topology.num_nodes);
	MU_TRY(add_placement(m, r));
	add(r, "threads", MU_RECORD_TOLD, "%d", e->n_threads);
	if (v->gpus && *v->gpus)
		add(r, "devices", by_row, "gpu:%s", v->gpus);
	else
		add(r, "devices", by_row, "%s", v->devices ? v->devices : "cpu");
	mu_checkpoint_computed_by(e, library, sizeof library);
	add(r, "computed-by", MU_RECORD_TOLD, "%s", library);
out:
	return st;
}

static bool has(const struct checkpoint_identity *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->of[i].name, name) == 0)
			return true;
	return false;
}

/* Options whose values are recorded as they are, after those that were added otherwise. */
static void add_options(const struct mu_engine *e, struct checkpoint_identity *r)
{
	struct conf values = *e->conf;
	const struct mu_options o = {.values = &values};
	char number[64];

	for (size_t i = 0; i < values.owner.n; i++) {
		const struct mu_option *option = &values.owner.table[i];
		/* Reals that must be the same have all digits, others those of a message. */
		const int digits = option->record == MU_RECORD_TOLD ? 6 : 17;

		if (has(r, option->name) ||
		    (strcmp(option->name, "buckets") == 0 && !e->train->groups))
			continue;
		add_list(r, option->name, by_row,
			 mu_option_text(&o, option, digits, number, sizeof number));
	}
}

enum mu_status mu_checkpoint_identity_make(const struct mu_engine *e, struct checkpoint_identity *r)
{
	enum mu_status st = MU_OK;

	r->n = 0;
	r->full = false;
	r->conf = e->conf;
	r->trains = !e->conf->evaluate;
	MU_TRY(add_job(e, r));
	MU_TRY(add_data(e, r));
	add_optimizer(e, r);
	add_options(e, r);
	if (r->full)
		MU_FAIL(MU_ERR_ARGUMENT, "more than %d settings are recorded",
			CHECKPOINT_IDENTITY_MAX);
out:
	return st;
}

enum mu_status mu_checkpoint_identity_write(const struct checkpoint_identity *r,
					    struct mu_array_file *file)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < r->n; i++)
		MU_TRY(mu_array_file_set_text(file, r->of[i].name, r->of[i].text));
out:
	return st;
}
