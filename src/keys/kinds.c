/* SPDX-License-Identifier: Apache-2.0 */
/* The types of stores of keys (comm/stores.def), and the settings that all ranks have in common. */
#include <stdio.h>
#include <string.h>

#include "comm/store.h"
#include "store.h"

struct row {
	const char *name;
	unsigned facts;
};

#define STORE(type, behaviour, forms, facts_) {.name = type, .facts = (facts_)},

static const struct row rows[] = {
#include "comm/stores.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* NULL: no store has this name. */
static const struct row *find(const char *type)
{
	for (size_t i = 0; type && i < N_ROWS; i++)
		if (strcmp(type, rows[i].name) == 0)
			return &rows[i];
	return NULL;
}

/* "local, dist_sync, ...": those of the host's arrays. */
static void list_names(char *text, size_t nbytes)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < N_ROWS && n < nbytes; i++)
		if (!(rows[i].facts & MU_STORE_ON_GPUS))
			n += (size_t)snprintf(text + n, nbytes - n, "%s%s", i ? ", " : "",
					      rows[i].name);
}

enum mu_status mu_keys_kind_find(const char *type, struct mu_keys_kind *kind)
{
	enum mu_status st = MU_OK;
	const struct row *row = find(type);
	char names[320];

	list_names(names, sizeof names);
	if (!row)
		MU_FAIL(MU_ERR_USAGE, "kv-store '%s' is not known: %s are", type ? type : "",
			names);
	if (row->facts & MU_STORE_ON_GPUS)
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' sums on GPUs, and the arrays of keys are the host's: %s are "
			"for keys",
			type, names);
	*kind = (struct mu_keys_kind){
		.name = row->name,
		.has_servers = row->facts & MU_STORE_HAS_SERVERS,
		.one_worker = row->facts & MU_STORE_ONE_WORKER,
		.synchronous = row->facts & MU_STORE_SYNCHRONOUS,
	};
out:
	return st;
}

enum mu_status mu_keys_type_check(const char *type, struct mu_keys_type *is)
{
	enum mu_status st = MU_OK;
	struct mu_keys_kind kind;

	if (!is)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_keys_type_check: the place for the answer is NULL");
	*is = (struct mu_keys_type){.has_servers = false};
	MU_TRY(mu_keys_kind_find(type, &kind));
	*is = (struct mu_keys_type){.has_servers = kind.has_servers,
				    .distributed = !kind.one_worker,
				    .synchronous = kind.synchronous};
out:
	return st;
}

enum mu_status mu_keys_config_check(const struct mu_keys_config *config, struct mu_keys_kind *kind)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_kind_find(config->type, kind));
	MU_TRY(mu_store_check_ranks(config->type, find(config->type)->facts, config->members));
out:
	return st;
}

/* ---- settings ---- */

static const char *name(size_t i)
{
	static const char *const names[] = {"type", "n_updaters"};

	return names[i];
}

static void describe(const void *config, size_t i, char text[MU_SETTING_BYTES])
{
	const struct mu_keys_config *c = config;

	if (i == 0)
		snprintf(text, MU_SETTING_BYTES, "%s", c->type);
	else
		snprintf(text, MU_SETTING_BYTES, "%zu", c->n_updaters);
}

enum mu_status mu_keys_config_agree(const struct mu_keys *keys, const struct mu_keys_config *config)
{
	const struct mu_store_settings all = {
		.call = "mu_keys_new", .n = 2, .name = name, .describe = describe};

	return mu_store_settings_agree(&all, config, keys->members, keys->comm);
}

enum mu_status mu_keys_gather(struct mu_keys *keys, const void *mine, size_t nbytes, void **all,
			      int *n)
{
	enum mu_status st = MU_OK;

	*n = keys->members->num_workers;
	MU_TRY(mu_alloc(all, (size_t)*n * nbytes, "values of all workers"));
	MU_TRY(keys->ops->gather(keys, mine, *all, nbytes));
out:
	return st;
}
