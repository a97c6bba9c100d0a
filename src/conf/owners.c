/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of their owners: the settings of a network (struct mu_network), of an objective
 * (struct mu_loss) and of the reader of the data (struct mu_reader) are rows of the table while the
 * trainer runs these, after the fixed rows. Until an owner is known, the table has the settings of
 * all owners of its kind, so that other names are refused at once. A further kind is a row of
 * `kinds`.
 */
#include "conf.h"

#include <string.h>

#include <muster/metrics.h>
#include <muster/net.h>

enum { LIST_BYTES = 256 };

/* A value of any type. */
union slot {
	bool flag;
	long number;
	double real;
	const char *text;
	int word;
};

/* ---- owners ---- */

struct owner {
	const char *name, *help; /* name NULL: there is none */
	const char *whose;       /* the settings are, for messages */
	const struct mu_option *settings;
	const struct mu_option_rule *rules;
	size_t n;
};

static struct owner of_network(const struct mu_network *network)
{
	if (!network)
		return (struct owner){.name = NULL};
	return (struct owner){network->name,     network->help,  network->name,
			      network->settings, network->rules, mu_network_settings(network)};
}

static struct owner of_loss(const struct mu_loss *loss)
{
	if (!loss)
		return (struct owner){.name = NULL};
	return (struct owner){loss->name,     loss->help,  loss->name,
			      loss->settings, loss->rules, mu_loss_settings(loss)};
}

static struct owner of_reader(const struct mu_reader *reader)
{
	struct owner owner = {.name = NULL};

	if (!reader)
		return owner;
	owner = (struct owner){.name = reader->name,
			       .help = reader->help,
			       .whose = reader->whose ? reader->whose : reader->help,
			       .settings = reader->settings,
			       .rules = reader->rules};
	while (owner.settings && owner.settings[owner.n].name)
		owner.n++;
	return owner;
}

static struct owner network_at(size_t i)
{
	return of_network(mu_network_table[i]);
}

static struct owner objective_at(size_t i)
{
	return of_loss(mu_loss_at(i));
}

static struct owner reader_at(size_t i)
{
	return of_reader(mu_input_reader_at(i));
}

static const struct kind {
	const char *name, *group; /* for help; NULL: rows have groups of their own */
	size_t offset;            /* of its values in struct conf */
	struct owner (*at)(size_t i);
} kinds[CONF_OWNERS] = {
	[CONF_NETWORK] = {"network", "the network", offsetof(struct conf, owner.values),
			  network_at},
	[CONF_OBJECTIVE] = {"objective", "the objective",
			    offsetof(struct conf, owner.objective_values), objective_at},
	[CONF_READER] = {"reader", NULL, offsetof(struct conf, owner.reader_values), reader_at},
};

/* That of a run. */
static struct owner owner_of(const struct conf_owner *o, int kind)
{
	switch (kind) {
	case CONF_NETWORK: return of_network(o->network);
	case CONF_OBJECTIVE: return of_loss(o->objective);
	default: return of_reader(o->reader);
	}
}

/* ---- messages ---- */

/* Is it the first owner of its kind with these rows? gpt2 comes in several sizes. */
static bool is_first(const struct kind *kind, size_t i)
{
	const struct mu_option *rows = kind->at(i).settings;

	for (size_t k = 0; k < i; k++)
		if (kind->at(k).settings == rows)
			return false;
	return rows;
}

static const struct mu_option *find_row(const struct owner *owner, const char *name)
{
	for (size_t i = 0; i < owner->n; i++)
		if (strcmp(owner->settings[i].name, name) == 0)
			return &owner->settings[i];
	return NULL;
}

/* "is a setting of gpt2, not of resnet": for a name that this run's owners have not. */
static bool explain(const struct mu_options *o, const char *name, char *text, size_t nbytes)
{
	const struct conf_owner *run = &((const struct conf *)o->values)->owner;
	struct owner own, other;
	size_t used = 0;

	if (strncmp(name, "no-", 3) == 0)
		name += 3;
	*text = '\0';
	for (int k = 0; k < CONF_OWNERS && used == 0; k++) {
		own = owner_of(run, k);
		for (size_t i = 0; own.name && (other = kinds[k].at(i)).name && used < nbytes; i++)
			if (is_first(&kinds[k], i) && find_row(&other, name))
				used += (size_t)snprintf(text + used, nbytes - used, "%s%s",
							 used ? ", " : "is a setting of ",
							 other.whose);
		if (used > 0 && used < nbytes)
			snprintf(text + used, nbytes - used, ", not of %s",
				 k == CONF_READER ? own.help : own.name);
	}
	return used > 0;
}

/* ---- the table ---- */

struct joined {
	struct mu_option *of;
	size_t n;
	const char *group; /* of the rows that are added, for help; NULL: their own */
};

static void add(struct joined *t, const struct mu_option *row, size_t offset)
{
	struct mu_option *option = &t->of[t->n++];

	*option = *row;
	option->offset = offset;
	if (!t->group)
		return;
	option->group = t->group;
	option->advanced = option->whole = true;
}

/* Attributes of checkpoints that are no options. */
static const char reserved[] =
	"augmentation|best|checksum|class-names|columns|computed-by|data|data-contents|data-files|"
	"data-validation|epoch|format|input|network-code|network-file|nodes|"
	"optimizer-settings|placement|plateau|position|servers|step|structure|target-columns|"
	"tokenizer|version|vocabulary|vocabulary-words|workers";

static bool has(const struct joined *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->of[i].name, name) == 0 ||
		    mu_option_names(t->of[i].aliases, name))
			return true;
	return mu_option_names(reserved, name);
}

static enum mu_status add_owner(struct joined *t, const struct kind *kind,
				const struct owner *owner)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < owner->n; i++) {
		const struct mu_option *row = &owner->settings[i];

		if (has(t, row->name))
			MU_FAIL(MU_ERR_FORMAT,
				"%s %s: its setting %s has the name of an option of the "
				"trainer, of another setting or of what checkpoints hold: rename "
				"it",
				kind->name, owner->name, row->name);
		add(t, row, kind->offset + row->offset);
	}
out:
	return st;
}

/* A name of several owners has one row: these are compared with what is given, no more. */
static enum mu_status add_all(struct joined *t, const struct kind *kind)
{
	enum mu_status st = MU_OK;
	size_t slot = 0;
	struct owner owner;

	for (size_t i = 0; (owner = kind->at(i)).name; i++)
		for (size_t k = 0; k < owner.n; k++) {
			const struct mu_option *row = &owner.settings[k];

			if (has(t, row->name))
				continue;
			if (slot == MU_SETTINGS_BYTES / sizeof(union slot))
				MU_FAIL(MU_ERR_ARGUMENT, "settings of a %s: more than %zu",
					kind->name, slot);
			add(t, row, kind->offset + sizeof(union slot) * slot++);
		}
out:
	return st;
}

static size_t count_all(const struct kind *kind)
{
	struct owner owner;
	size_t n = 0;

	for (size_t i = 0; (owner = kind->at(i)).name; i++)
		n += owner.n;
	return n;
}

/* Are the rows of all owners of the kind added, as it is not known which one it is? Not where the
 * network has an objective of its own. */
static bool is_open(const struct conf_owner *owner, int kind)
{
	return kind != CONF_OBJECTIVE || !owner->network || owner->network->objective;
}

enum mu_status mu_conf_options_open(struct mu_options *o, struct conf *v,
				    const struct conf_owner *owner)
{
	enum mu_status st = MU_OK;
	struct joined t = {.n = mu_conf_n_options};
	size_t room = mu_conf_n_options;

	mu_options_release(o);
	*v = (struct conf){.owner = {.network = owner->network,
				     .objective = owner->objective,
				     .reader = owner->reader}};
	for (int k = 0; k < CONF_OWNERS; k++)
		room += count_all(&kinds[k]) + owner_of(&v->owner, k).n;
	MU_TRY(MU_ALLOC(t.of, room, "table of options"));
	memcpy(t.of, mu_conf_options, mu_conf_n_options * sizeof *t.of);
	for (int k = 0; k < CONF_OWNERS; k++) {
		const struct owner own = owner_of(&v->owner, k);

		t.group = kinds[k].group;
		if (own.name)
			MU_TRY(add_owner(&t, &kinds[k], &own));
		else if (is_open(&v->owner, k))
			MU_TRY(add_all(&t, &kinds[k]));
	}
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

size_t mu_conf_ignored(const struct conf *v, bool *ignores)
{
	const struct mu_option *row = v->owner.objective ? mu_conf_option(v, "ignore-class") : NULL;
	long value = -1;

	if (row && row->type == MU_OPTION_INT)
		memcpy(&value, (const char *)v + row->offset, sizeof value);
	*ignores = value >= 0;
	return *ignores ? (size_t)value : 0;
}

const void *mu_conf_reader_settings(const struct conf *v, const char *name)
{
	const struct mu_option *own = of_reader(v->owner.reader).settings;
	const struct mu_reader *reader;

	for (size_t i = 0; own && (reader = mu_input_reader_at(i)); i++)
		if (reader->settings == own && strcmp(reader->name, name) == 0)
			return v->owner.reader_values;
	return NULL;
}

enum mu_status mu_conf_reader_settle(const struct mu_options *o, struct conf *v, long pad)
{
	enum mu_status st = MU_OK;
	const struct mu_reader *reader = v->owner.reader;

	v->owner.given = NULL;
	for (size_t i = 0; i < of_reader(reader).n && !v->owner.given; i++)
		if (mu_options_given(o, reader->settings[i].name))
			v->owner.given = reader->settings[i].name;
	if (reader && reader->settle)
		st = reader->settle(v->owner.reader_values, o, pad);
	if (st != MU_OK)
		mu_trace_prefix("--");
	return st;
}

/* The rows of owners follow the fixed ones. */
size_t mu_conf_owned(const struct mu_network *network, const struct mu_loss *objective,
		     const struct mu_reader *reader)
{
	return of_network(network).n + of_loss(objective).n + of_reader(reader).n;
}

const struct mu_option *mu_conf_owned_row(const struct mu_network *network,
					  const struct mu_loss *objective,
					  const struct mu_reader *reader, size_t i)
{
	const size_t n = of_network(network).n, m = n + of_loss(objective).n;

	return i < n   ? &network->settings[i]
	       : i < m ? &objective->settings[i - n]
		       : &reader->settings[i - m];
}

enum mu_status mu_conf_owner_check(const struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct mu_option_rules none = {.n = 0};

	for (int k = 0; k < CONF_OWNERS; k++)
		for (const struct mu_option_rule *r = owner_of(&v->owner, k).rules; r && r->option;
		     r++)
			MU_TRY(mu_option_rule_check(o, &none, r));
out:
	return st;
}

/* ---- help ---- */

/* "settings of gpt2, gpt2-355m": all owners with these rows. */
static void name_group(const struct kind *kind, const struct owner *owner, char *text,
		       size_t nbytes)
{
	size_t used = (size_t)snprintf(text, nbytes, "settings of %s", owner->name);
	struct owner other;

	for (size_t i = 0; (other = kind->at(i)).name && used < nbytes; i++)
		if (strcmp(other.name, owner->name) != 0 && other.settings == owner->settings)
			used += (size_t)snprintf(text + used, nbytes - used, ", %s", other.name);
}

/* The settings of one owner, which is not in o. */
static enum mu_status print_settings(const struct kind *kind, const struct owner *owner,
				     FILE *stream)
{
	enum mu_status st = MU_OK;
	char group[LIST_BYTES];
	struct joined t = {.group = group};
	struct mu_options o = {0};

	name_group(kind, owner, group, sizeof group);
	MU_TRY(MU_ALLOC(t.of, owner->n + 1, "table of options"));
	MU_TRY(add_owner(&t, kind, owner));
	o.table = t.of;
	o.n = t.n;
	mu_options_help(&o, stream, true);
out:
	mu_free(t.of);
	return st;
}

enum mu_status mu_conf_help_owner(const char *name, FILE *stream)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network = NULL;
	const struct mu_loss *loss = NULL;
	const struct mu_reader *reader = NULL;
	struct owner owner;

	if (mu_loss_find(&loss, name) != MU_OK && mu_input_reader(name, &reader) != MU_OK) {
		mu_trace_clear();
		MU_TRY(mu_network_find(&network, name));
	}
	mu_trace_clear();
	owner = loss ? of_loss(loss) : reader ? of_reader(reader) : of_network(network);
	fprintf(stream, "%s: %s\n", owner.name, owner.help ? owner.help : "");
	if (owner.n == 0)
		fprintf(stream, "It has no settings of its own.\n");
	else
		MU_TRY(print_settings(&kinds[loss     ? CONF_OBJECTIVE
					     : reader ? CONF_READER
						      : CONF_NETWORK],
				      &owner, stream));
out:
	return st;
}

static enum mu_status print_all(const struct kind *kind, FILE *stream)
{
	enum mu_status st = MU_OK;
	struct owner owner;

	for (size_t i = 0; (owner = kind->at(i)).name; i++)
		if (is_first(kind, i)) {
			fprintf(stream, "\n");
			MU_TRY(print_settings(kind, &owner, stream));
		}
out:
	return st;
}

enum mu_status mu_conf_help(FILE *stream, bool all)
{
	enum mu_status st = MU_OK;
	struct joined t = {.n = 0};
	struct mu_options o = {0};
	struct owner owner;
	size_t n = 0;

	MU_TRY(MU_ALLOC(t.of, mu_conf_n_options + count_all(&kinds[CONF_READER]),
			"table of options"));
	/* The readers' rows beside those of the data. */
	while (strcmp(mu_conf_options[n].group, "optimiser") != 0)
		n++;
	memcpy(t.of, mu_conf_options, n * sizeof *t.of);
	t.n = n;
	MU_TRY(add_all(&t, &kinds[CONF_READER]));
	memcpy(t.of + t.n, mu_conf_options + n, (mu_conf_n_options - n) * sizeof *t.of);
	t.n += mu_conf_n_options - n;
	o.table = t.of;
	o.n = t.n;
	mu_options_help(&o, stream, all);
	for (int k = 0; all && k < CONF_READER; k++)
		MU_TRY(print_all(&kinds[k], stream));
	if (all)
		fprintf(stream, "\nobjectives (--help NAME prints one's settings)\n");
	for (size_t i = 0; all && (owner = objective_at(i)).name; i++)
		fprintf(stream, "  %-10s %s\n", owner.name, owner.help);
out:
	mu_free(t.of);
	return st;
}
