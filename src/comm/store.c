/* SPDX-License-Identifier: Apache-2.0 */
/* What both kinds of store do when they are made. See store.h. */
#include "store.h"

#include <limits.h>
#include <string.h>

enum mu_status mu_store_check_ranks(const char *type, unsigned facts, const struct mu_members *m)
{
	enum mu_status st = MU_OK;
	const bool has_servers = facts & MU_STORE_HAS_SERVERS;

	if ((facts & MU_STORE_ONE_WORKER) && m->num_workers > 1)
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' is for one worker, and there are %d: use dist_sync or "
			"another dist_ store",
			type, m->num_workers);
	if (has_servers && m->num_servers == 0)
		MU_FAIL(MU_ERR_USAGE, "kv-store '%s' needs at least one server", type);
	if (!has_servers && m->num_servers > 0)
		MU_FAIL(MU_ERR_USAGE, "kv-store '%s' has no servers, and %d are asked for", type,
			m->num_servers);
out:
	return st;
}

/* Both numbers are of the ranks' kinds: they are equal if all make the same. */
static enum mu_status check_kind(const struct mu_members *m, bool keys, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	long lowest[2] = {keys ? m->rank : m->size, keys ? m->size : m->rank};

	MU_TRY(mu_allreduce_long(lowest, 2, MPI_MIN, comm));
	if (lowest[0] < m->size && lowest[1] < m->size)
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_new on rank %ld, and mu_kv_new on rank %ld: all ranks make the "
			"store of keys, or all make the store of a model",
			lowest[0], lowest[1]);
out:
	return st;
}

enum mu_status mu_store_comm(const struct mu_members *m, bool keys, MPI_Comm *comm)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_comm_dup(m->comm, comm, "the other ranks' stores"));
	MU_TRY(check_kind(m, keys, *comm));
out:
	return st;
}

/* A rank that differs, its value, and rank 0's. */
struct difference {
	int rank;
	size_t setting;
	char value[MU_SETTING_BYTES];
};

/* This rank's first setting that differs from rank 0's; rank is INT_MAX if there is none. */
static struct difference find(const struct mu_store_settings *s, const void *config, int rank,
			      char (*first)[MU_SETTING_BYTES])
{
	struct difference d = {.rank = INT_MAX};

	for (size_t i = 0; i < s->n; i++) {
		memset(d.value, 0, sizeof d.value);
		s->describe(config, i, d.value);
		if (strcmp(d.value, first[i]) != 0) {
			d.rank = rank;
			d.setting = i;
			break;
		}
	}
	return d;
}

/* Two small collectives; a third only if a rank differs, so that every rank can tell which. */
enum mu_status mu_store_settings_agree(const struct mu_store_settings *settings, const void *config,
				       const struct mu_members *m, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	char first[MU_SETTINGS_MAX][MU_SETTING_BYTES] = {{0}};
	struct difference d;
	long lowest;

	for (size_t i = 0; m->rank == 0 && i < settings->n; i++)
		settings->describe(config, i, first[i]);
	MU_TRY(mu_bcast(first, settings->n * sizeof *first, 0, comm));
	d = find(settings, config, m->rank, first);
	lowest = d.rank;
	MU_TRY(mu_allreduce_long(&lowest, 1, MPI_MIN, comm));
	if (lowest == INT_MAX)
		goto out;
	MU_TRY(mu_bcast(&d, sizeof d, (int)lowest, comm));
	MU_FAIL(MU_ERR_ARGUMENT,
		"%s: %s is %s on rank %d, and %s on rank 0: it must be the same on all ranks",
		settings->call, settings->name(d.setting), d.value, d.rank, first[d.setting]);
out:
	return st;
}
