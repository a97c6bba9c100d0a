/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of their owners: the settings of a network (struct mu_network) are rows of the table
 * while the trainer runs that network, after the fixed rows. Until the network is known, the table
 * has the settings of all networks of Muster, so that other names are refused at once.
 */
#include "conf.h"

#include <stdlib.h>
#include <string.h>

#include <muster/net.h>

enum { SLOT = 16, LIST_BYTES = 256 };

_Static_assert(sizeof(double) <= SLOT && sizeof(char *) <= SLOT, "values of all types fit");

/* ---- messages ---- */

/* Is it the first network of the table with these rows? gpt2 comes in several sizes. */
static bool is_first(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (mu_network_table[k]->settings == mu_network_table[i]->settings)
			return false;
	return mu_network_table[i]->settings;
}

/* "is a setting of gpt2, not of resnet": for a name that this run's network has not. */
static bool explain(const struct mu_options *o, const char *name, char *text, size_t nbytes)
{
	const struct mu_network *own = ((const struct conf *)o->values)->owner.network;
	size_t used = 0;

	if (strncmp(name, "no-", 3) == 0)
		name += 3;
	*text = '\0';
	for (size_t i = 0; own && mu_network_table[i] && used < nbytes; i++)
		if (is_first(i) && mu_network_setting(mu_network_table[i], name))
			used += (size_t)snprintf(text + used, nbytes - used, "%s%s",
						 used ? ", " : "is a setting of ",
						 mu_network_table[i]->name);
	if (used > 0 && used < nbytes)
		snprintf(text + used, nbytes - used, ", not of %s", own->name);
	return used > 0;
}

/* ---- the table ---- */

struct joined {
	struct mu_option *of;
	size_t n;
	const char *owner; /* of the rows that are added, for help */
};

static void add(struct joined *t, const struct mu_option *row, size_t offset)
{
	struct mu_option *option = &t->of[t->n++];

	*option = *row;
	option->offset = offset;
	option->group = t->owner;
	option->advanced = option->whole = true;
}

/* Attributes of checkpoints that are no options. */
static const char reserved[] =
	"augmentation|best|checksum|class-names|computed-by|data|data-contents|data-files|"
	"data-validation|epoch|format|input|network-code|network-file|nodes|optimizer-settings|"
	"placement|plateau|position|servers|step|structure|tokenizer|version|vocabulary|"
	"vocabulary-words|workers";

static bool has(const struct joined *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->of[i].name, name) == 0 ||
		    mu_option_names(t->of[i].aliases, name))
			return true;
	return mu_option_names(reserved, name);
}

static enum mu_status add_network(struct joined *t, const struct mu_network *network)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < mu_network_settings(network); i++) {
		const struct mu_option *row = &network->settings[i];

		if (has(t, row->name))
			MU_FAIL(MU_ERR_FORMAT,
				"network %s: its setting %s has the name of an option of the "
				"trainer, of another setting or of what checkpoints hold: rename "
				"it",
				network->name, row->name);
		add(t, row, offsetof(struct conf, owner.values) + row->offset);
	}
out:
	return st;
}

/* A name of several networks has one row: these are compared with what is given, no more. */
static void add_all(struct joined *t)
{
	size_t slot = 0;

	for (size_t i = 0; mu_network_table[i]; i++)
		for (size_t k = 0; k < mu_network_settings(mu_network_table[i]); k++) {
			const struct mu_option *row = &mu_network_table[i]->settings[k];

			if (!has(t, row->name) && (slot + 1) * SLOT <= MU_SETTINGS_BYTES)
				add(t, row, offsetof(struct conf, owner.values) + SLOT * slot++);
		}
}

static size_t count_all(void)
{
	size_t n = 0;

	for (size_t i = 0; mu_network_table[i]; i++)
		n += mu_network_settings(mu_network_table[i]);
	return n;
}

enum mu_status mu_conf_options_open(struct mu_options *o, struct conf *v,
				    const struct mu_network *network)
{
	enum mu_status st = MU_OK;
	struct joined t = {.owner = "the network"};
	const size_t own = network ? mu_network_settings(network) : count_all();

	mu_options_release(o);
	*v = (struct conf){.owner.network = network};
	MU_TRY(MU_ALLOC(t.of, mu_conf_n_options + own, "table of options"));
	memcpy(t.of, mu_conf_options, mu_conf_n_options * sizeof *t.of);
	t.n = mu_conf_n_options;
	if (network)
		MU_TRY(add_network(&t, network));
	else
		add_all(&t);
	v->owner.table = t.of;
	v->owner.n = t.n;
	MU_TRY(mu_options_init(o, t.of, t.n, v));
	o->own = t.of;
	t.of = NULL;
	o->explain = explain;
out:
	mu_free(t.of);
	return st;
}

enum mu_status mu_conf_network(const struct mu_network **network, const char *name)
{
	enum mu_status st = mu_network_find(network, name);

	if (st != MU_OK)
		mu_trace_prefix("--"); /* the message begins with "network NAME" */
	return st;
}

bool mu_conf_asks(const struct conf *v)
{
	return v->help || v->help_all || v->version || v->info;
}

static bool is_file(const char *name)
{
	return strchr(name, '/') || mu_stem(name, ".so");
}

enum mu_status mu_conf_options_find(struct mu_options *o, struct conf *v, int argc,
				    char *const argv[])
{
	enum mu_status st = MU_OK;
	const struct mu_network *network = NULL;

	MU_TRY(mu_conf_options_open(o, v, NULL));
	mu_options_scan(o, argc, argv);
	/* An error of a network's own file comes before those of its options. */
	if (v->network && is_file(v->network) && !mu_conf_asks(v))
		MU_TRY(mu_conf_network(&network, v->network));
	else if (v->network && mu_network_find(&network, v->network) != MU_OK)
		mu_trace_clear();
	MU_TRY(mu_conf_options_open(o, v, network));
out:
	return st;
}

enum mu_status mu_conf_options_parse(struct mu_options *o, struct conf *v, int argc,
				     char *const argv[])
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_conf_options_find(o, v, argc, argv));
	MU_TRY(mu_options_parse(o, argc, argv));
out:
	return st;
}

/* ---- values ---- */

const struct mu_option *mu_conf_option(const struct conf *v, const char *name)
{
	for (size_t i = 0; i < v->owner.n; i++)
		if (strcmp(v->owner.table[i].name, name) == 0)
			return &v->owner.table[i];
	return NULL;
}

long mu_conf_setting(const struct conf *v, const char *name)
{
	const struct mu_option *row =
		v->owner.network ? mu_network_setting(v->owner.network, name) : NULL;
	long value = 0;

	if (row && row->type == MU_OPTION_INT)
		memcpy(&value, v->owner.values + row->offset, sizeof value);
	return value;
}

enum mu_status mu_conf_owner_check(const struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network = v->owner.network;
	const struct mu_option_rules none = {.n = 0};

	for (const struct mu_option_rule *r = network->rules; r && r->option; r++)
		MU_TRY(mu_option_rule_check(o, &none, r));
out:
	return st;
}

/* ---- help ---- */

/* "settings of gpt2, gpt2-355m": all networks with these rows. */
static void name_group(const struct mu_network *network, char *text, size_t nbytes)
{
	size_t used = (size_t)snprintf(text, nbytes, "settings of %s", network->name);

	for (size_t i = 0; mu_network_table[i] && used < nbytes; i++)
		if (mu_network_table[i] != network &&
		    mu_network_table[i]->settings == network->settings)
			used += (size_t)snprintf(text + used, nbytes - used, ", %s",
						 mu_network_table[i]->name);
}

/* The settings of one network, which is not in o. */
static enum mu_status print_settings(const struct mu_network *network, FILE *stream)
{
	enum mu_status st = MU_OK;
	char group[LIST_BYTES];
	struct joined t = {.owner = group};
	struct mu_options o = {0};

	name_group(network, group, sizeof group);
	MU_TRY(MU_ALLOC(t.of, mu_network_settings(network) + 1, "table of options"));
	MU_TRY(add_network(&t, network));
	o.table = t.of;
	o.n = t.n;
	mu_options_help(&o, stream, true);
out:
	mu_free(t.of);
	return st;
}

enum mu_status mu_conf_help_network(const char *name, FILE *stream)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;

	MU_TRY(mu_network_find(&network, name));
	fprintf(stream, "%s: %s\n", network->name, network->help ? network->help : "");
	if (mu_network_settings(network) == 0)
		fprintf(stream, "It has no settings of its own.\n");
	else
		MU_TRY(print_settings(network, stream));
out:
	return st;
}

enum mu_status mu_conf_help(FILE *stream, bool all)
{
	enum mu_status st = MU_OK;
	const struct mu_options fixed = {.table = mu_conf_options, .n = mu_conf_n_options};

	mu_options_help(&fixed, stream, all);
	for (size_t i = 0; all && mu_network_table[i]; i++)
		if (is_first(i)) {
			fprintf(stream, "\n");
			MU_TRY(print_settings(mu_network_table[i], stream));
		}
out:
	return st;
}
