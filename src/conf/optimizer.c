/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options about the optimiser and the learning rate: which belong together, and the defaults that
 * depend on other options. A rule declares its settings (mu_setting), by the names of the options.
 */
#include "conf.h"

#include <stdlib.h>
#include <string.h>

/* Is the option a setting of any rule? */
static bool is_setting(const char *name)
{
	for (size_t i = 0; mu_rule_table[i]; i++)
		if (mu_rule_setting(mu_rule_table[i], name))
			return true;
	return false;
}

static enum mu_status check_settings(const struct mu_options *o, const struct mu_rule *rule)
{
	enum mu_status st = MU_OK;
	char others[256];

	for (size_t i = 0; i < o->n; i++) {
		const char *name = o->table[i].name;

		if (!o->given[i] || !is_setting(name) || mu_rule_setting(rule, name))
			continue;
		mu_rule_list(name, others, sizeof others);
		MU_FAIL(MU_ERR_USAGE, "--%s with --optimizer %s, which has no such setting: %s",
			name, rule->name, others);
	}
out:
	return st;
}

/*
 * Where networks need other settings than a rule's own. ftrl: 0.01 and 1, of MXNet and the paper,
 * are for models that are linear in their weights; with them no network learns.
 */
static const struct {
	const char *rule, *setting;
	double value;
} of_networks[] = {{"ftrl", "lamda1", 0}, {"ftrl", "beta", 1e-4}};

static double initial(const struct mu_rule *rule, const struct mu_setting *s)
{
	for (size_t i = 0; i < sizeof of_networks / sizeof *of_networks; i++)
		if (strcmp(of_networks[i].rule, rule->name) == 0 &&
		    strcmp(of_networks[i].setting, s->name) == 0)
			return of_networks[i].value;
	return s->initial;
}

/* The defaults for settings that the user has not set. */
static void fill_settings(const struct mu_options *o, const struct mu_rule *rule, struct conf *v)
{
	for (const struct mu_setting *s = rule->settings; s->name; s++) {
		const double value = initial(rule, s);

		if (s->offset && !mu_options_given(o, s->name))
			memcpy((char *)&v->optim + s->offset, &value, sizeof value);
	}
	v->optim.name = rule->name;
	v->optim.wd_gamma = v->wd_gamma != 0;
	v->optim.centered = v->centered != 0;
	v->optim.decoupled = v->adam_decay == CONF_DECAY_DECOUPLED;
}

enum mu_status mu_conf_optimizer_settle(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct mu_rule *rule;
	char known[256];

	MU_TRY(mu_rule_find(&rule, v->optimizer));
	mu_rule_list(NULL, known, sizeof known);
	if (rule->internal)
		MU_FAIL(MU_ERR_USAGE,
			"optimizer '%s' is for programs that use a store alone: %s train",
			v->optimizer, known);
	MU_TRY(check_settings(o, rule));
	v->facts.lacks_rate = !mu_rule_setting(rule, "lr");
	fill_settings(o, rule, v);
	MU_TRY(mu_optim_check(&v->optim));
	if (!mu_rule_setting(rule, "lr-schedule") &&
	    (v->schedule.kind != CONF_SCHEDULE_CONSTANT || v->schedule.warmup_epochs > 0 ||
	     v->schedule.warmup_steps > 0))
		MU_FAIL(MU_ERR_USAGE,
			"--optimizer %s with a learning rate that changes (--lr-schedule %s, "
			"--warmup-epochs %g, --warmup-steps %ld): this optimiser %s",
			rule->name, mu_conf_schedule_words[v->schedule.kind],
			v->schedule.warmup_epochs, v->schedule.warmup_steps,
			mu_rule_setting(rule, "lr") ? "needs a constant one" : "has none");
out:
	return st;
}

/* --lr-step-epochs pow2 is MXNet's name for schedule poly of power 2. */
static enum mu_status settle_power(const struct mu_options *o, struct conf_schedule *s)
{
	enum mu_status st = MU_OK;
	char *end = NULL;

	if (mu_options_given(o, "lr-power") || (s->kind && s->kind != CONF_SCHEDULE_POLY))
		MU_FAIL(MU_ERR_USAGE,
			"--lr-step-epochs %s means --lr-schedule poly with this power, and "
			"another %s is set",
			s->step_epochs,
			mu_options_given(o, "lr-power") ? "--lr-power" : "schedule");
	s->power = strtod(s->step_epochs + 3, &end);
	if (end == s->step_epochs + 3 || *end || !(s->power > 0 && s->power <= 1000))
		MU_FAIL(MU_ERR_USAGE,
			"--lr-step-epochs %s: pow and a number above 0, at most 1000, is needed, "
			"such as pow2",
			s->step_epochs);
	s->kind = CONF_SCHEDULE_POLY;
	s->step_epochs = NULL;
out:
	return st;
}

static enum mu_status check_values(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct conf_schedule *s = &v->schedule;
	struct mu_schedule parsed = {.lr = 1};

	if (s->step_epochs && mu_schedule_parse(&parsed, s->step_epochs, 1) != MU_OK)
		MU_FAIL(MU_ERR_USAGE, "--lr-step-epochs: %s", mu_trace_message());
out:
	return st;
}

enum mu_status mu_conf_schedule_settle(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	struct conf_schedule *s = &v->schedule;

	if (s->step_epochs && strncmp(s->step_epochs, "pow", 3) == 0)
		MU_TRY(settle_power(o, s));
	if (!s->kind)
		s->kind = s->step_epochs ? CONF_SCHEDULE_MULTIFACTOR : CONF_SCHEDULE_CONSTANT;
	if (!mu_options_given(o, "final-lr"))
		s->final_lr = s->kind == CONF_SCHEDULE_FACTOR ? 1e-8 : 0;
	MU_TRY(check_values(v));
out:
	return st;
}

double mu_conf_base_lr(const struct conf *v, size_t workers)
{
	return v->lr * (v->schedule.scale_with_workers ? (double)workers : 1);
}

double mu_conf_warmup(const struct conf *v, double samples_per_epoch, size_t updates, size_t each)
{
	const size_t n = (size_t)v->schedule.warmup_steps;

	if (n == 0)
		return v->schedule.warmup_epochs * samples_per_epoch;
	return (double)(n / updates) * samples_per_epoch + (double)(n % updates * each);
}

enum mu_status mu_conf_schedule(const struct conf *v, double lr, double samples_per_epoch,
				double warmup, struct mu_schedule *s)
{
	enum mu_status st = MU_OK;
	static const enum mu_schedule_kind kinds[CONF_SCHEDULE_N] = {
		[CONF_SCHEDULE_CONSTANT] = MU_SCHEDULE_MULTIFACTOR,
		[CONF_SCHEDULE_MULTIFACTOR] = MU_SCHEDULE_MULTIFACTOR,
		[CONF_SCHEDULE_FACTOR] = MU_SCHEDULE_FACTOR,
		[CONF_SCHEDULE_POLY] = MU_SCHEDULE_POLY,
		[CONF_SCHEDULE_COSINE] = MU_SCHEDULE_COSINE,
		[CONF_SCHEDULE_PLATEAU] = MU_SCHEDULE_MULTIFACTOR,
	};
	const struct conf_schedule *t = &v->schedule;

	*s = (struct mu_schedule){
		.kind = kinds[t->kind],
		.lr = lr,
		.factor = t->factor,
		.step = t->factor_epoch * samples_per_epoch,
		.length = (double)v->num_epochs * samples_per_epoch,
		.power = t->power,
		.final_lr = t->final_lr,
		.warmup = warmup,
		.warmup_begin_lr = t->warmup_begin_lr,
		.warmup_constant = t->warmup_strategy == CONF_WARMUP_CONSTANT,
	};
	if (t->warmup_steps > 0 && warmup >= s->length &&
	    (t->kind == CONF_SCHEDULE_POLY || t->kind == CONF_SCHEDULE_COSINE))
		MU_FAIL(MU_ERR_USAGE,
			"--warmup-steps %ld: they are %.0f samples, and training has %.0f: nothing "
			"is left for --lr-schedule %s",
			t->warmup_steps, warmup, s->length, mu_conf_schedule_words[t->kind]);
	MU_TRY(mu_schedule_parse(s, t->step_epochs, samples_per_epoch));
out:
	return st;
}
