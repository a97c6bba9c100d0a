/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rules and their settings. */
#include <stdio.h>
#include <string.h>

#include "rule.h"

const struct mu_rule *const mu_rule_table[] = {
	&mu_rule_sgd,    &mu_rule_nag,      &mu_rule_adam,    &mu_rule_adagrad, &mu_rule_ftrl,
	&mu_rule_signum, &mu_rule_adadelta, &mu_rule_rmsprop, &mu_rule_lars,    &mu_rule_lamb,
	&mu_rule_dcasgd, &mu_rule_test,     &mu_rule_sum,     &mu_rule_none,    NULL,
};

static const struct mu_rule *lookup(const char *name)
{
	for (size_t i = 0; name && mu_rule_table[i]; i++)
		if (strcmp(name, mu_rule_table[i]->name) == 0)
			return mu_rule_table[i];
	return NULL;
}

enum mu_status mu_rule_find(const struct mu_rule **rule, const char *name)
{
	enum mu_status st = MU_OK;
	char known[256];

	*rule = lookup(name);
	if (*rule)
		goto out;
	mu_rule_list(NULL, known, sizeof known);
	MU_FAIL(MU_ERR_USAGE, "optimizer '%s' is not known: %s are", name ? name : "", known);
out:
	return st;
}

const struct mu_setting *mu_rule_setting(const struct mu_rule *rule, const char *name)
{
	for (const struct mu_setting *s = rule->settings; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

void mu_rule_list(const char *setting, char *text, size_t nbytes)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; mu_rule_table[i] && n < nbytes; i++) {
		const struct mu_rule *rule = mu_rule_table[i];

		if (rule->internal || (setting && !mu_rule_setting(rule, setting)))
			continue;
		n += (size_t)snprintf(text + n, nbytes - n, "%s%s", n ? ", " : "", rule->name);
	}
}

enum mu_status mu_optim_defaults(struct mu_optim_config *config, const char *name)
{
	enum mu_status st = MU_OK;
	const struct mu_rule *rule;

	MU_TRY(mu_rule_find(&rule, name));
	*config = (struct mu_optim_config){.name = rule->name, .wd_gamma = true};
	for (const struct mu_setting *s = rule->settings; s->name; s++)
		if (s->offset)
			memcpy((char *)config + s->offset, &s->initial, sizeof s->initial);
out:
	return st;
}

int mu_optim_states(const struct mu_optim_config *config, const char *names[MU_MAX_STATES])
{
	const struct mu_rule *rule = lookup(config->name);
	int n = rule ? mu_rule_states(rule, config) : 0;

	for (int i = 0; i < n; i++)
		names[i] = rule->state_names[i];
	return n;
}

int mu_rule_states(const struct mu_rule *rule, const struct mu_optim_config *config)
{
	return rule->states ? rule->states(config) : rule->n_states;
}

bool mu_rule_clips_norm(const struct mu_rule *rule, const struct mu_optim_config *config)
{
	return config->clip_global_norm > 0 && mu_rule_setting(rule, "clip-global-norm");
}

bool mu_optim_replaces(const struct mu_optim_config *config, const struct mu_slice *slices,
		       size_t n_slices)
{
	const struct mu_rule *rule = lookup(config->name);

	for (size_t k = 0; k < n_slices; k++)
		if (slices[k].rule == MU_SLICE_AVERAGE || slices[k].fixed)
			return false;
	return rule && rule->replaces && !mu_rule_clips_norm(rule, config);
}

bool mu_optim_needs_norms(const struct mu_optim_config *config)
{
	const struct mu_rule *rule = lookup(config->name);

	return rule && (rule->measure || mu_rule_clips_norm(rule, config));
}
