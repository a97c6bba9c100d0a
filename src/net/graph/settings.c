/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of networks and of their objectives: their rows, and values from a text. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include <muster/metrics.h>

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

/* Who has settings: the network, its objective. */
struct part {
	const struct mu_option *rows;
	size_t n, nbytes, at; /* of struct mu_net, where the values go */
	const struct mu_option_rule *rules;
	const void **values; /* in the configuration */
};

static enum mu_status check_rules(const struct part *part, const struct mu_options *o)
{
	enum mu_status st = MU_OK;
	const struct mu_option_rules none = {.n = 0};

	for (const struct mu_option_rule *r = part->rules; r && r->option; r++)
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

/* Values of both parts, by one table: a caller that sets some by name need not know whose they
 * are. */
static enum mu_status read_parts(struct mu_net *net, const struct part parts[2],
				 struct mu_options *o, struct mu_option *table)
{
	enum mu_status st = MU_OK;
	size_t n = 0;

	for (int p = 0; p < 2; p++) {
		if (parts[p].nbytes > MU_SETTINGS_BYTES)
			MU_FAIL(MU_ERR_USAGE, "its settings have %zu bytes; at most %d are "
				"possible",
				parts[p].nbytes, MU_SETTINGS_BYTES);
		for (size_t i = 0; i < parts[p].n; i++) {
			table[n] = parts[p].rows[i];
			table[n++].offset += parts[p].at;
		}
	}
	MU_TRY(mu_options_init(o, table, n, net));
	MU_TRY(parse(o, net->options));
	for (int p = 0; p < 2; p++)
		if (!*parts[p].values) {
			MU_TRY(check_rules(&parts[p], o));
			*parts[p].values = (const char *)net + parts[p].at;
		}
out:
	return st;
}

enum mu_status mu_net_settings_read(struct mu_net *net, const struct mu_network *network)
{
	enum mu_status st = MU_OK;
	const struct mu_loss *loss = net->objective;
	const struct part parts[2] = {
		{network->settings, mu_network_settings(network), network->settings_nbytes,
		 offsetof(struct mu_net, settings), network->rules, &net->config.settings},
		{loss ? loss->settings : NULL, loss ? mu_loss_settings(loss) : 0,
		 loss ? loss->settings_nbytes : 0, offsetof(struct mu_net, objective_settings),
		 loss ? loss->rules : NULL, &net->config.objective_settings},
	};
	struct mu_options o = {0};
	struct mu_option *table = NULL;

	if (net->config.settings && net->config.objective_settings)
		goto out;
	net->options = strdup(net->config.options ? net->config.options : "");
	if (!net->options)
		MU_FAIL(MU_ERR_MEMORY, "no memory for settings");
	MU_TRY(MU_ALLOC(table, parts[0].n + parts[1].n + 1, "settings"));
	MU_TRY(read_parts(net, parts, &o, table));
out:
	mu_options_release(&o);
	mu_free(table);
	if (st != MU_OK)
		mu_trace_prefix("network %s: ", network->name);
	return st;
}
