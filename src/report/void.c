/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that do nothing in this run: one line for each row of mu_conf_void_rules that applies,
 * and for what the run is too short for.
 * The rules of conf refuse what contradicts; here is what has nothing to work on, which is known
 * once data, network and devices are open. A fact that is not known stays false: no line is wrong.
 */
#include "report.h"

#include <muster/base.h>

#include "comm/job_comment.h"
#include "conf/conf.h"
#include "conf/rules.h"

enum { LINE_BYTES = 2048 };

/* A run has one mode: options that ask for others. --predict implies --evaluate. */
static void warn_of_modes(const struct mu_options *o, const struct conf *v)
{
	const enum conf_mode mode = mu_conf_mode(v);
	const char *own = mu_conf_mode_option(v, mode), *other;

	for (unsigned i = mode + 1; mode != CONF_MODE_PREDICT && i < CONF_MODE_N; i++) {
		other = mu_conf_mode_option(v, (enum conf_mode)i);
		if (other && mu_options_given(o, other))
			mu_log_warn("--%s has no effect with --%s: a run does one of them", other,
				    own);
	}
	if (v->check && !mu_conf_mode_has(v, CONF_MODE_HAS_JOB))
		mu_log_warn("--check has no effect with --%s: there is no job to check", own);
}

static void find_modes(struct conf_void *f)
{
	const struct conf *v = &f->conf;

	f->unread = !mu_conf_mode_has(v, CONF_MODE_HAS_JOB);
	f->no_training_data = f->unread || (v->evaluate && !v->benchmark);
	f->untrained = !mu_conf_mode_has(v, CONF_MODE_TRAINS);
	f->no_updates = !mu_conf_mode_has(v, CONF_MODE_HAS_UPDATES);
	f->unsaved = f->untrained && !v->facts.goes_on &&
		     !mu_conf_mode_has(v, CONF_MODE_READS_PREFIX);
	f->undrawn = !mu_conf_mode_has(v, CONF_MODE_DRAWS) &&
		     (f->unread || (!v->benchmark && !v->skip_mismatch));
	f->given_weights = v->load && !v->skip_mismatch;
}

/* Validations of a run from its start. */
static size_t count_validations(const struct conf *v, size_t steps)
{
	const size_t epochs = (size_t)v->num_epochs, every = (size_t)v->validate_every;
	const size_t inside = v->validate_steps > 0 ? (steps - 1) / (size_t)v->validate_steps : 0;

	return (epochs + every - 1) / every + epochs * inside;
}

static void find_data(const struct mu_engine *e, struct conf_void *f)
{
	const struct conf *v = e->conf;
	const struct mu_input *in = e->train;

	f->no_energy = !f->untrained && !e->energy.known;
	f->no_queue = !f->untrained && !mu_comm_job_number();
	f->no_threads = !in->ops->threads || in->about.in_memory;
	f->no_bad_records = !in->ops->bad_records;
	f->few_samples = in->n < (size_t)v->num_examples;
	f->few_validation = e->validate && e->validate->n < (size_t)v->max_val_samples;
	f->few_validations = e->validate && e->steps > 0 && !f->conf.facts.goes_on &&
			     count_validations(v, e->steps) <= (size_t)v->early_stopping;
	f->few_steps = e->steps > 0 && e->steps < (size_t)v->num_batches;
}

static void find_network(const struct mu_engine *e, struct conf_void *f)
{
	struct mu_plan_convolutions c;
	const struct mu_slice *slices;
	size_t n;

	mu_plan_convolutions(e->plan, &c);
	f->no_convolutions = c.n[MU_CONVOLUTION_FORWARD] == 0;
	f->no_attention = !mu_net_attends(e->net);
	slices = mu_plan_slices(e->plan, &n);
	f->no_gammas = true;
	for (size_t k = 0; k < n; k++)
		f->no_gammas &= !mu_stem(slices[k].name, "_gamma");
}

/* Rates that change too late, validations and checkpoints that never come. */
static void warn_of_steps(const struct conf *v, size_t steps)
{
	const struct conf_schedule *s = &v->schedule;
	const double end = (double)v->num_epochs;
	const size_t period = (size_t)v->update_period;
	const size_t saved = ((size_t)v->save_steps + period - 1) / period * period;
	struct mu_schedule parsed = {.lr = 1};

	if (period > steps)
		mu_log_warn("--update-period %zu: an epoch has %zu step%s and ends with an update, "
			    "so that this is --update-period %zu",
			    period, steps, MU_S(steps), steps);
	if ((size_t)v->validate_steps >= steps)
		mu_log_warn("--validate-steps %ld: an epoch has %zu step%s, so that there is no "
			    "validation inside it",
			    v->validate_steps, steps, MU_S(steps));
	if (v->save_steps > 0 && saved >= steps)
		mu_log_warn("--save-every %ldsteps: an epoch has %zu step%s, so that there is no "
			    "checkpoint inside it",
			    v->save_steps, steps, MU_S(steps));
	if (s->kind == CONF_SCHEDULE_FACTOR && s->factor_epoch >= end)
		mu_log_warn("--lr-factor-epoch %g: the run ends after epoch %ld, before the rate "
			    "changes",
			    s->factor_epoch, v->num_epochs);
	if (s->warmup_epochs > end || (size_t)s->warmup_steps > steps * (size_t)v->num_epochs)
		mu_log_warn("--warmup-%s %g: the run ends before the warm-up, so that the rate "
			    "does not reach --lr",
			    s->warmup_epochs > 0 ? "epochs" : "steps",
			    s->warmup_epochs > 0 ? s->warmup_epochs : (double)s->warmup_steps);
	if (!s->step_epochs || mu_schedule_parse(&parsed, s->step_epochs, 1) != MU_OK)
		return;
	if (parsed.n_steps > 0 && parsed.steps[parsed.n_steps - 1] >= end)
		mu_log_warn("--lr-step-epochs %s: the run ends after epoch %ld, before the rate "
			    "changes at %g",
			    s->step_epochs, v->num_epochs, parsed.steps[parsed.n_steps - 1]);
}

static void tell(const struct mu_options *o, const struct mu_option_rule *rule)
{
	char line[LINE_BYTES];

	if (mu_option_rule_void(o, &mu_conf_void_rules, rule, line, sizeof line))
		mu_log_warn("%s", line);
}

static void tell_of_training(const struct mu_options *o)
{
	char names[LINE_BYTES] = "";
	const struct mu_option_rule rule = {.option = names,
					    .relation = MU_OPTION_EXCLUDES,
					    .other = "no_training_data",
					    .why = "no training data are read"};

	for (size_t i = 0, n = 0; i < o->n && n < sizeof names; i++)
		if (o->table[i].trains)
			n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? "|" : "",
					      o->table[i].name);
	tell(o, &rule);
}

static void tell_of_reader(struct mu_options *o, const struct mu_input *in)
{
	struct mu_option_rule rule = {.relation = MU_OPTION_EXCLUDES, .other = "idle"};

	((struct conf_void *)o->values)->idle = true;
	for (const struct mu_option *row = in->ops->settings; in->ops->idle && row->name; row++) {
		rule.option = row->name;
		rule.why = in->ops->idle(in, row->name);
		if (rule.why)
			tell(o, &rule);
	}
}

void mu_report_void(const struct conf *conf, const struct mu_options *options,
		    const struct report_view *view)
{
	const struct mu_engine *e = view ? view->engine : NULL;
	struct mu_options o = *options;
	struct conf_void v = {.conf = *conf};

	o.values = &v;
	/* A site's defaults are nobody's mistake. */
	if (conf->interface == conf->site.interface)
		v.conf.interface = NULL;
	v.conf.job_comment &= mu_options_given(options, "job-comment");
	warn_of_modes(options, conf);
	find_modes(&v);
	if (e) {
		v.no_gpus = !e->list->kind->memory;
		v.one_device = e->list->n == 1;
		v.one_rank = e->members->size == 1;
		v.one_worker = mu_members_alone(e->members);
		v.given_weights |= view->saved && *view->saved;
		find_data(e, &v);
		if (e->plan)
			find_network(e, &v);
	}
	for (size_t i = 0; i < mu_conf_void_rules.n; i++)
		tell(&o, &mu_conf_void_rules.of[i]);
	tell_of_training(&o);
	if (e)
		tell_of_reader(&o, e->train);
	if (e && e->steps > 0 && !v.untrained)
		warn_of_steps(conf, e->steps);
}
