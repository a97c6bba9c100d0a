/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of networks: their rows, and values from a text. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 128 };

size_t mu_network_settings(const struct mu_network *network)
{
	size_t n = 0;

	while (network->settings && network->settings[n].name)
		n++;
	return n;
}

const struct mu_option *mu_network_setting(const struct mu_network *network, const char *name)
{
	for (size_t i = 0; i < mu_network_settings(network); i++)
		if (strcmp(network->settings[i].name, name) == 0)
			return &network->settings[i];
	return NULL;
}

static enum mu_status check_rules(const struct mu_network *network, const struct mu_options *o)
{
	enum mu_status st = MU_OK;
	const struct mu_option_rules none = {.n = 0};

	for (const struct mu_option_rule *r = network->rules; r && r->option; r++)
		MU_TRY(mu_option_rule_check(o, &none, r));
out:
	return st;
}

/* "a=1 b=2". The values stay in the text, which is cut into words. */
static enum mu_status parse(struct mu_options *o, char *text)
{
	enum mu_status st = MU_OK;
	char *save = NULL, word[WORD_BYTES];

	for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		char *value = strchr(p, '=');

		if (value)
			*value++ = '\0';
		snprintf(word, sizeof word, "%s", p);
		MU_TRY(mu_options_set(o, word, value));
	}
out:
	return st;
}

enum mu_status mu_net_settings_read(struct mu_net *net, const struct mu_network *network)
{
	enum mu_status st = MU_OK;
	const char *text = net->config.options ? net->config.options : "";
	struct mu_options o = {0};

	if (net->config.settings)
		goto out;
	if (network->settings_nbytes > sizeof net->settings)
		MU_FAIL(MU_ERR_USAGE, "its settings have %zu bytes; at most %zu are possible",
			network->settings_nbytes, sizeof net->settings);
	net->options = strdup(text);
	if (!net->options)
		MU_FAIL(MU_ERR_MEMORY, "no memory for settings");
	MU_TRY(mu_options_init(&o, network->settings, mu_network_settings(network),
			       net->settings));
	MU_TRY(parse(&o, net->options));
	MU_TRY(check_rules(network, &o));
	net->config.settings = net->settings;
out:
	mu_options_release(&o);
	if (st != MU_OK)
		mu_trace_prefix("network %s: ", network->name);
	return st;
}
