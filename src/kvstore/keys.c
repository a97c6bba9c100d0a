/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of keys (src/keys) by the names of stores, and the old names of their calls, on a struct
 * mu_kv without a model.
 */
#include "keys/keys.h"
#include "kv.h"

enum mu_status mu_kv_keys_open(struct mu_kv *kv, const struct mu_kv_config *config)
{
	const struct mu_keys_config keys = {
		.type = kv->kind.name,
		.topology = kv->topology,
		.verbose = config->verbose,
		.updaters = config->updaters,
		.n_updaters = config->n_updaters,
	};
	const struct mu_keys_kind kind = {
		.has_servers = kv->kind.has_servers,
		.one_worker = kv->kind.one_worker,
		.synchronous = kv->kind.synchronous,
	};

	return mu_keys_new_on(&kv->keys, &keys, &kind, kv->comm, &kv->traffic);
}

void mu_kv_keys_layout(const struct mu_kv *kv, struct mu_kv_layout *layout)
{
	struct mu_keys_layout keys;

	mu_keys_layout(kv->keys, &keys);
	*layout = (struct mu_kv_layout){
		.n_keys = keys.n_keys,
		.bytes = keys.bytes,
		.bytes_per_server_min = keys.bytes_per_owner_min,
		.bytes_per_server_max = keys.bytes_per_owner_max,
	};
}

enum mu_status mu_keys_new(struct mu_keys **out, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_config as_kv = {
		.type = config->type,
		.topology = config->topology,
		.verbose = config->verbose,
		.updaters = config->updaters,
		.n_updaters = config->n_updaters,
	};
	struct mu_kv *kv = NULL;

	*out = NULL;
	MU_TRY(mu_kv_new(&kv, &as_kv));
	if (!kv->keys)
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_new on rank %d, and the workers have made the store of a model",
			kv->topology->rank);
	*out = kv->keys;
	mu_keys_keep_comm(kv->keys);
	kv->keys = NULL;
	kv->comm = MPI_COMM_NULL;
out:
	mu_kv_free(kv);
	return st;
}

enum mu_status mu_keys_open(struct mu_keys **out, MPI_Comm comm, const char *type, int num_servers)
{
	enum mu_status st = MU_OK;
	struct mu_keys_config config = {.type = type};
	struct mu_topology *t = NULL;
	struct mu_kv_type is;
	bool opened = false;

	*out = NULL;
	MU_TRY(mu_agree(mu_kv_type_check(type, &is), comm));
	if (!is.has_servers && num_servers == MU_SERVERS_DEFAULT)
		num_servers = 0;
	MU_TRY(MU_ALLOC(t, 1, "topology of a store of keys"));
	MU_TRY(mu_topology_init(t, comm, num_servers, MU_PLACEMENT_SPREAD));
	opened = true;
	config.topology = t;
	MU_TRY(mu_keys_new(out, &config));
	mu_keys_keep_topology(*out, t);
	t = NULL;
out:
	if (t && opened)
		mu_topology_release(t);
	mu_free(t);
	return st;
}

/* ---- old names ---- */

static enum mu_status check_keys(const struct mu_kv *kv, const char *call)
{
	enum mu_status st = MU_OK;

	if (!kv->keys)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s is for a store of keys, and this one has the %zu keys of a model: use "
			"mu_kv_step_begin, mu_kv_push_ready, mu_kv_pull_end",
			call, kv->n_slices);
out:
	return st;
}

/* The old name of a call: the same arguments after the store. */
#define OLD_NAME(old, new, parameters, arguments) \
	enum mu_status old parameters \
	{ \
		enum mu_status st = check_keys(kv, #old); \
\
		return st == MU_OK ? new arguments : st; \
	}
#define ITEMS (struct mu_kv * kv, size_t n, const struct mu_kv_item *items, int priority)
#define STATES (struct mu_kv * kv, mu_kv_state_fn fn, void *context)

OLD_NAME(mu_kv_init, mu_keys_init, (struct mu_kv * kv, size_t n, const struct mu_kv_item *items),
	 (kv->keys, n, items))
OLD_NAME(mu_kv_push, mu_keys_push, ITEMS, (kv->keys, n, items, priority))
OLD_NAME(mu_kv_pull, mu_keys_pull, ITEMS, (kv->keys, n, items, priority))
OLD_NAME(mu_kv_pushpull, mu_keys_pushpull, ITEMS, (kv->keys, n, items, priority))
OLD_NAME(mu_kv_pull_rows, mu_keys_pull_rows, ITEMS, (kv->keys, n, items, priority))
OLD_NAME(mu_kv_broadcast, mu_keys_broadcast, ITEMS, (kv->keys, n, items, priority))
OLD_NAME(mu_kv_set_optimizer, mu_keys_set_optimizer,
	 (struct mu_kv * kv, const struct mu_kv_optimizer *optimizer), (kv->keys, optimizer))
OLD_NAME(mu_kv_set_updater, mu_keys_set_updater, (struct mu_kv * kv, const char *name),
	 (kv->keys, name))
OLD_NAME(mu_kv_set_compression, mu_keys_set_compression,
	 (struct mu_kv * kv, const char *type, double threshold), (kv->keys, type, threshold))
OLD_NAME(mu_kv_barrier, mu_keys_barrier, (struct mu_kv * kv), (kv->keys))
OLD_NAME(mu_kv_states_save, mu_keys_states_save, STATES, (kv->keys, fn, context))
OLD_NAME(mu_kv_states_load, mu_keys_states_load, STATES, (kv->keys, fn, context))

int mu_kv_rank(const struct mu_kv *kv)
{
	return kv->topology->index;
}

int mu_kv_num_workers(const struct mu_kv *kv)
{
	return kv->topology->num_workers;
}

int mu_kv_num_servers(const struct mu_kv *kv)
{
	return kv->topology->num_servers;
}

const char *mu_kv_type(const struct mu_kv *kv)
{
	return kv->kind.name;
}
