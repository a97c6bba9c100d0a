/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public face of the store of keys: checks, sums of a rank's devices, and the transfers that a
 * call is made of.
 */
#include <stdlib.h>

#include "comm/store.h"
#include "serving.h"

#define BOUND_DEFAULT ((size_t)16384) /* 64 KiB: keys of this size are messages of their own */

/* Rank 0's environment decides for all, so that all cut alike. */
static enum mu_status read_bound(struct mu_keys *keys, size_t *bound)
{
	enum mu_status st = MU_OK;
	const char *text = getenv("MXNET_KVSTORE_BIGARRAY_BOUND");
	char *end = NULL;
	unsigned long long value;

	*bound = BOUND_DEFAULT;
	if (keys->members->index == 0 && text && *text) {
		value = strtoull(text, &end, 10);
		if (*end || *text == '-' || value == 0)
			mu_log_warn("MXNET_KVSTORE_BIGARRAY_BOUND=%s is not a number above 0: %zu "
				    "holds",
				    text, *bound);
		else
			*bound = (size_t)value;
		if (!*end && value > 0)
			mu_log_info("MXNET_KVSTORE_BIGARRAY_BOUND=%zu: keys of at least that many "
				    "elements are cut over all servers",
				    *bound);
	}
	MU_TRY(keys->ops->bcast(keys, bound, sizeof *bound));
out:
	return st;
}

static enum mu_status open_worker(struct mu_keys *keys, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	size_t bound;

	keys->ops = keys->kind.one_worker ? &mu_keys_local : &mu_keys_remote;
	keys->compression = MU_CODING_DENSE;
	keys->updaters = config->updaters;
	keys->n_updaters = config->n_updaters;
	MU_TRY(mu_owner_init(&keys->summer, config, &keys->pool, 1));
	MU_TRY(keys->ops->open(keys, config));
	MU_TRY(read_bound(keys, &bound));
	MU_TRY(mu_key_table_init(&keys->table, keys->n_owners, bound));
out:
	return st;
}

static enum mu_status build(struct mu_keys *keys, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = keys->members;
	const struct mu_keys_kind *kind = &keys->kind;

	keys->push_clock = kind->one_worker ? MU_CLOCK_UPDATE : MU_CLOCK_PUSH;
	/* Without servers every worker owns keys. */
	keys->owner_ranks = kind->has_servers ? m->server_ranks : m->worker_ranks;
	keys->n_owners = kind->has_servers ? m->num_servers : m->num_workers;
	if (m->role == MU_ROLE_SERVER || !(kind->has_servers || kind->one_worker))
		MU_TRY(mu_keys_server_open(keys, config));
	if (m->role == MU_ROLE_WORKER)
		MU_TRY(open_worker(keys, config));
out:
	return st;
}

static enum mu_status check_place(struct mu_keys **out, const char *call)
{
	enum mu_status st = MU_OK;

	if (!out)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: there is no place for the store: out is NULL", call);
out:
	return st;
}

enum mu_status mu_keys_new(struct mu_keys **out, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_keys *keys = NULL;
	char mine[128];

	if (out)
		*out = NULL;
	if (!config || !config->members)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_keys_new: the %s NULL",
			config ? "members of the config are" : "config is");
	MU_TRY(MU_ALLOC(keys, 1, "store of keys"));
	keys->members = config->members;
	keys->comm = MPI_COMM_NULL;
	MU_TRY(mu_store_comm(keys->members, true, &keys->comm));
	MU_TRY(mu_agree(check_place(out, "mu_keys_new"), keys->comm));
	MU_TRY(mu_agree(mu_keys_config_check(config, &keys->kind), keys->comm));
	MU_TRY(mu_keys_config_agree(keys, config));
	MU_TRY(mu_traffic_open(&keys->traffic, keys->members, keys->comm, config->verbose));
	MU_TRY(mu_agree(build(keys, config), keys->comm));
	if (mu_traffic_connections(&keys->traffic))
		mu_log_info("role: %s", mu_members_who(keys->members, mine, sizeof mine));
	*out = keys;
	keys = NULL;
out:
	mu_keys_free(keys);
	return st;
}

enum mu_status mu_keys_open(struct mu_keys **out, MPI_Comm comm, const char *type, int num_servers)
{
	enum mu_status st = MU_OK;
	struct mu_keys_config config = {.type = type};
	struct mu_members *m = NULL;
	struct mu_keys_kind kind;
	bool opened = false;

	if (out)
		*out = NULL;
	if (comm == MPI_COMM_NULL)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_keys_open: the communicator is MPI_COMM_NULL");
	MU_TRY(mu_agree(check_place(out, "mu_keys_open"), comm));
	MU_TRY(mu_agree(mu_keys_kind_find(type, &kind), comm));
	if (!kind.has_servers && num_servers == MU_SERVERS_DEFAULT)
		num_servers = 0;
	MU_TRY(MU_ALLOC(m, 1, "members of a store of keys"));
	MU_TRY(mu_members_init(m, comm, num_servers, MU_PLACEMENT_SPREAD));
	opened = true;
	config.members = m;
	MU_TRY(mu_keys_new(out, &config));
	(*out)->own_members = m;
	m = NULL;
out:
	if (m && opened)
		mu_members_release(m);
	mu_free(m);
	return st;
}

/* With an error on its way, that error ends the job; where members are dropped, nobody listens. */
static void warn_unfinished(struct mu_keys *keys)
{
	char who[128];

	if (!keys->ops->leave || *mu_trace_message() || mu_memory_is_kept())
		return;
	mu_log_warn("%s calls mu_keys_free of a %s store without mu_keys_finish: the store fails "
		    "on all ranks",
		    mu_members_who(keys->members, who, sizeof who), keys->kind.name);
	keys->ops->leave(keys);
}

void mu_keys_free(struct mu_keys *keys)
{
	if (!keys)
		return;
	mu_keys_requests_abandon(keys);
	if (keys->end) {
		if (!keys->finished)
			warn_unfinished(keys);
		keys->ops->close(keys);
	}
	mu_keys_server_close(keys);
	mu_owner_release(&keys->summer);
	mu_key_table_release(&keys->table);
	mu_pool_release(&keys->pool);
	mu_free(keys->call.transfers);
	mu_free(keys->call.scratch);
	mu_comm_close(&keys->comm);
	if (keys->own_members)
		mu_members_release(keys->own_members);
	mu_free(keys->own_members);
	mu_free(keys);
}

enum mu_status mu_keys_finish(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;

	if (keys && keys->finished)
		goto out;
	MU_TRY(mu_keys_check_alone(keys, "mu_keys_finish"));
	keys->finished = true;
	MU_TRY(keys->ops->finish(keys));
out:
	return st;
}

/* ---- calls on keys ---- */

/* The call of this name, behind the requests of its keys. */
static enum mu_status call(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			   enum mu_use use, const char *name)
{
	static const enum mu_direction directions[] = {
		[MU_USE_PUSH] = MU_PUSH, [MU_USE_PULL] = MU_PULL, [MU_USE_PUSHPULL] = MU_PUSHPULL};
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_check_worker(keys, name));
	MU_TRY(mu_keys_check_items(keys, n, items, name, use));
	if (keys->requests.left)
		MU_TRY(mu_keys_after_requests(keys, n, items, use));
	else if (use == MU_USE_ROWS)
		MU_TRY(mu_keys_exchange_rows(keys, n, items));
	else
		MU_TRY(mu_keys_exchange(keys, n, items, directions[use]));
out:
	return st;
}

enum mu_status mu_keys_push(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			    int priority)
{
	(void)priority;
	return call(keys, n, items, MU_USE_PUSH, "mu_keys_push");
}

enum mu_status mu_keys_pull(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			    int priority)
{
	(void)priority;
	return call(keys, n, items, MU_USE_PULL, "mu_keys_pull");
}

enum mu_status mu_keys_pushpull(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				int priority)
{
	(void)priority;
	return call(keys, n, items, MU_USE_PUSHPULL, "mu_keys_pushpull");
}

enum mu_status mu_keys_pull_rows(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				 int priority)
{
	(void)priority;
	return call(keys, n, items, MU_USE_ROWS, "mu_keys_pull_rows");
}

static enum mu_status begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			    enum mu_use use, struct mu_keys_request **out)
{
	static const char *const names[] = {[MU_USE_PUSH] = "mu_keys_push_begin",
					    [MU_USE_PULL] = "mu_keys_pull_begin",
					    [MU_USE_PUSHPULL] = "mu_keys_pushpull_begin",
					    [MU_USE_ROWS] = "mu_keys_pull_rows_begin"};
	enum mu_status st = MU_OK;

	if (!out)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: there is no place for the request: out is NULL",
			names[use]);
	*out = NULL;
	MU_TRY(mu_keys_check_worker(keys, names[use]));
	MU_TRY(mu_keys_check_items(keys, n, items, names[use], use));
	MU_TRY(mu_keys_request_begin(keys, n, items, use, out));
out:
	return st;
}

enum mu_status mu_keys_push_begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  int priority, struct mu_keys_request **out)
{
	(void)priority;
	return begin(keys, n, items, MU_USE_PUSH, out);
}

enum mu_status mu_keys_pull_begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  int priority, struct mu_keys_request **out)
{
	(void)priority;
	return begin(keys, n, items, MU_USE_PULL, out);
}

enum mu_status mu_keys_pushpull_begin(struct mu_keys *keys, size_t n,
				      const struct mu_kv_item *items, int priority,
				      struct mu_keys_request **out)
{
	(void)priority;
	return begin(keys, n, items, MU_USE_PUSHPULL, out);
}

enum mu_status mu_keys_pull_rows_begin(struct mu_keys *keys, size_t n,
				       const struct mu_kv_item *items, int priority,
				       struct mu_keys_request **out)
{
	(void)priority;
	return begin(keys, n, items, MU_USE_ROWS, out);
}

/* ---- new keys ---- */

/* The first values, on worker 0. */
static enum mu_status send_first(struct mu_keys *keys, size_t n, const struct mu_kv_item *items)
{
	enum mu_status st = MU_OK;

	mu_keys_begin(keys);
	for (size_t i = 0; i < n; i++) {
		struct mu_kv_item one = items[i];

		one.n_arrays = 1; /* devices start from the same values */
		MU_TRY(mu_keys_add_dense(keys, &one, MU_FIRST));
	}
	MU_TRY(keys->ops->call(keys, keys->call.n, keys->call.transfers));
out:
	mu_keys_end(keys);
	return st;
}

/* Owners make the keys, from this part on, and get their values: worker 0's part of an init. */
static enum mu_status make_first(struct mu_keys *keys, size_t first_part, size_t n,
				 const struct mu_kv_item *items)
{
	enum mu_status st = MU_OK;

	MU_TRY(keys->ops->make(keys, first_part));
	MU_TRY(send_first(keys, n, items));
out:
	return st;
}

enum mu_status mu_keys_init(struct mu_keys *keys, size_t n, const struct mu_kv_item *items)
{
	enum mu_status st = MU_OK;
	size_t first;

	MU_TRY(mu_keys_check_all(keys, "mu_keys_init"));
	MU_TRY(mu_keys_check_new(keys, n, items));
	first = keys->table.n_parts;
	for (size_t i = 0; i < n; i++)
		MU_TRY(mu_key_add(&keys->table, &items[i]));
	if (keys->members->index == 0)
		st = make_first(keys, first, n, items);
	MU_TRY(mu_keys_agree_first(keys, st, "mu_keys_init"));
out:
	return st;
}

enum mu_status mu_keys_broadcast(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				 int priority)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_init(keys, n, items));
	MU_TRY(mu_keys_pull(keys, n, items, priority));
out:
	return st;
}

/*
 * Each owner answers the rule in force, told again, after all that workers pushed before; and if it
 * has failed, by its error.
 */
enum mu_status mu_keys_barrier(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_check_all(keys, "mu_keys_barrier"));
	MU_TRY(keys->ops->rule(keys, &keys->rule));
out:
	return st;
}

enum mu_status mu_keys_set_compression(struct mu_keys *keys, const char *type, double threshold)
{
	enum mu_status st = MU_OK;
	enum mu_coding coding = MU_CODING_DENSE;

	MU_TRY(mu_keys_check_alone(keys, "mu_keys_set_compression"));
	MU_TRY(mu_keys_parse_compression(type, threshold, &coding));
	keys->compression = coding;
	keys->threshold = (float)threshold;
out:
	return st;
}

/* ---- queries ---- */

bool mu_keys_is_server(const struct mu_keys *keys)
{
	return keys && keys->members->role == MU_ROLE_SERVER;
}

int mu_keys_rank(const struct mu_keys *keys)
{
	return keys ? keys->members->index : -1;
}

int mu_keys_num_workers(const struct mu_keys *keys)
{
	return keys ? keys->members->num_workers : 0;
}

int mu_keys_num_servers(const struct mu_keys *keys)
{
	return keys ? keys->members->num_servers : 0;
}

const char *mu_keys_type(const struct mu_keys *keys)
{
	return keys ? keys->kind.name : NULL;
}

int mu_keys_number(const struct mu_keys *keys, const char *name)
{
	const struct mu_key *key = keys && name ? mu_key_find(&keys->table, 0, name) : NULL;

	return key ? key->number : -1;
}

const char *mu_keys_name(const struct mu_keys *keys, int number)
{
	const struct mu_key_table *t = keys ? &keys->table : NULL;

	if (!t || !t->named || number < 0 || (size_t)number >= t->n_keys)
		return NULL;
	return t->keys[number].name;
}

void mu_keys_layout(const struct mu_keys *keys, struct mu_keys_layout *layout)
{
	const struct mu_key_table none = {.n_keys = 0};

	if (layout)
		mu_key_table_layout(keys ? &keys->table : &none, layout);
}
