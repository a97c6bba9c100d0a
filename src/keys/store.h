/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the store of keys on a worker. The public face (keys.c, exchange.c,
 * rule.c) checks a call and makes transfers of it, one per run of a key; an end of the store
 * carries them out: keys/local.c, or keys/worker.c, which sends them to owners on other ranks.
 */
#ifndef MUSTER_KEYS_STORE_H
#define MUSTER_KEYS_STORE_H

#include "comm/traffic.h"
#include "owner.h"

/* ---- the table of keys (keys/table.c), equal on all workers ---- */

struct mu_key {
	int number; /* the caller's; of a named key its index in the table */
	char *name; /* NULL: the key is a number */
	enum mu_dtype dtype;
	size_t n;
	size_t first_part, n_parts;
	float *residual; /* n_residuals * n: what compression has not sent yet of each array */
	size_t n_residuals;
	uint64_t call;   /* the last one that named this key */
	uint64_t pushed; /* this worker's pushes */
	uint64_t pass;   /* of the requests: the last one that marked this key */
};

/* A run of a key on one owner. */
struct mu_key_part {
	size_t key; /* index in the table */
	size_t from, n;
	int owner;
};

struct mu_key_table {
	struct mu_key *keys;
	struct mu_key_part *parts;
	size_t n_keys, max_keys, n_parts, max_parts;
	bool named;    /* keys have names */
	size_t *slots; /* hash table, by number or by name, of key + 1; 0 = free */
	size_t n_slots;
	size_t *loads; /* bytes on every owner */
	int n_owners;
	size_t bound; /* elements from which on a key is cut */
};

enum mu_status mu_key_table_init(struct mu_key_table *t, int n_owners, size_t bound);
void mu_key_table_release(struct mu_key_table *t);
/*
 * The key of this name, or, if that is NULL, of this number; NULL if there is none. Valid until the
 * next key is added.
 */
struct mu_key *mu_key_find(const struct mu_key_table *t, int number, const char *name);
/* A new key of the table's sort; the size is not 0. */
enum mu_status mu_key_add(struct mu_key_table *t, const struct mu_kv_item *item);

void mu_key_table_layout(const struct mu_key_table *t, struct mu_keys_layout *layout);
/* Room for one more element; *array keeps the n that it has. */
enum mu_status mu_keys_grow(void **array, size_t n, size_t *max, size_t nbytes, const char *what);

/* ---- ends ---- */

/* Slots that a worker of the kind has no use for are NULL. */
struct mu_keys_links;
struct mu_keys_ops {
	enum mu_status (*open)(struct mu_keys *keys, const struct mu_keys_config *config);
	void (*close)(struct mu_keys *keys);
	/* Parts of the table from this one on are new: owners make them. On worker 0 alone. */
	enum mu_status (*make)(struct mu_keys *keys, size_t first_part);
	/* When it returns the data may be written again and what was wanted is there. */
	enum mu_status (*call)(struct mu_keys *keys, size_t n, const struct mu_transfer *transfers);
	/*
	 * Pushes alone: they have begun, *sent is what they need until push_end; NULL: they are
	 * over. The data must not change until then.
	 */
	enum mu_status (*push_begin)(struct mu_keys *keys, size_t n,
				     const struct mu_transfer *transfers,
				     struct mu_keys_links **sent);
	/* Have they left? wait: they will have. */
	enum mu_status (*push_test)(struct mu_keys *keys, struct mu_keys_links *sent, bool wait,
				    bool *done);
	void (*push_end)(struct mu_keys *keys, struct mu_keys_links *sent);
	/*
	 * Collective over workers: when it returns every owner has all that workers pushed before,
	 * and has obeyed.
	 */
	enum mu_status (*rule)(struct mu_keys *keys, const struct mu_rule_order *order);
	/* Non-blocking collectives among the workers. */
	enum mu_status (*gather)(struct mu_keys *keys, const void *mine, void *all, size_t nbytes);
	enum mu_status (*bcast)(struct mu_keys *keys, void *data, size_t nbytes);
	enum mu_status (*finish)(struct mu_keys *keys);
	/* The store is freed without finish. NULL: nobody waits for this worker. */
	void (*leave)(struct mu_keys *keys);
};

extern const struct mu_keys_ops mu_keys_local;
extern const struct mu_keys_ops mu_keys_remote;

/* What a type of store says (kinds.c). */
struct mu_keys_kind {
	const char *name; /* static */
	bool has_servers;
	bool one_worker; /* nothing goes between ranks */
	bool synchronous;
};

/* MU_ERR_USAGE with the list: an unknown type, or one on GPUs. */
enum mu_status mu_keys_kind_find(const char *type, struct mu_keys_kind *kind);
/* Do the settings fit the members, and which kind do they ask for? Not collective. */
enum mu_status mu_keys_config_check(const struct mu_keys_config *config, struct mu_keys_kind *kind);
/* Are they the same on all ranks? Collective over keys->comm. */
enum mu_status mu_keys_config_agree(const struct mu_keys *keys,
				    const struct mu_keys_config *config);

/* The call that is built now. */
struct mu_keys_call {
	struct mu_transfer *transfers;
	size_t n, max;
	void **scratch; /* buffers of the pool that they use */
	size_t n_scratch, max_scratch;
};

/* Calls that do not wait. */
struct mu_keys_requests {
	struct mu_keys_request *left; /* that are not done, in the order of their begin */
	struct mu_keys_request *done; /* not freed yet */
	uint64_t pass;                /* over the requests */
	uint64_t n_parts_done;        /* so far */
};

struct mu_keys {
	struct mu_keys_kind kind;
	const struct mu_members *members;
	MPI_Comm comm; /* the store's own */
	struct mu_members *own_members; /* NULL: the caller's */
	struct mu_traffic traffic;
	enum mu_clock push_clock;      /* what a push counts as */
	const struct mu_keys_ops *ops; /* NULL on servers */
	struct mu_key_table table;
	struct mu_pool pool;
	struct mu_owner summer; /* its blocks: sums of devices */
	uint64_t calls;
	struct mu_rule_order rule; /* in force */
	const struct mu_kv_updater *updaters;
	size_t n_updaters;
	enum mu_coding compression; /* DENSE = none */
	float threshold;
	struct mu_keys_call call;
	struct mu_keys_requests requests;
	void *end; /* of the worker */
	bool finished;
	/* Who owns keys, as ranks of comm; they may be workers. */
	const int *owner_ranks;
	int n_owners;
	struct mu_keys_server *server; /* on an owner; NULL elsewhere and for local */
};

/* ---- between the files of the face ---- */

/* Is this rank a worker? */
enum mu_status mu_keys_check_worker(const struct mu_keys *keys, const char *call);
/*
 * How worker 0 fared with what it did for all; the others pass MU_OK. MU_OK everywhere, or its
 * error there and MU_ERR_PEER with its message on the others. Collective over workers.
 */
enum mu_status mu_keys_agree_first(struct mu_keys *keys, enum mu_status mine, const char *call);
/* ---- rules and states: rule.c ---- */

/* An order to use this optimiser; MU_RULE_BAD with the reason as its name if it is refused. */
void mu_rule_order_fill(struct mu_rule_order *order, const struct mu_kv_optimizer *optimizer);
/* Names of the states of a rule's optimiser; returns their number, 0 without an optimiser. */
int mu_keys_state_names(const struct mu_rule_order *order, const char *names[MU_MAX_STATES]);
/*
 * One of STATE_GET, STATE_PUT (of this number), UPDATES_GET, UPDATES_PUT, WEIGHTS_GET, WEIGHTS_PUT
 * for all parts of a key. data: float32 of the whole key, or one uint64_t. On one worker.
 */
enum mu_status mu_keys_move(struct mu_keys *keys, const struct mu_key *key, enum mu_coding coding,
			    size_t state, void *data);
/* An optimiser as text, with the name of its rule, and back: optimizer_text.c. */
enum { MU_OPTIMIZER_TEXT = 4096 };
void mu_optimizer_text(const struct mu_rule_order *order, char text[MU_OPTIMIZER_TEXT]);
/* The name lies in the text, which is changed. MU_ERR_FORMAT names the bad word. */
enum mu_status mu_optimizer_parse(char *text, struct mu_kv_optimizer *optimizer);

/* What an item says, against the table: check.c. */
enum mu_use { MU_USE_PUSH, MU_USE_PULL, MU_USE_PUSHPULL, MU_USE_ROWS };
enum mu_status mu_keys_check_items(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				   const char *call, enum mu_use use);
/* The same for new keys; the answer is the same on all workers. Collective over workers. */
enum mu_status mu_keys_check_new(struct mu_keys *keys, size_t n, const struct mu_kv_item *items);

/* Build a call (exchange.c): _begin, then transfers and buffers for them, then _end, always. */
void mu_keys_begin(struct mu_keys *keys);
enum mu_status mu_keys_transfer(struct mu_keys *keys, struct mu_transfer **out);
enum mu_status mu_keys_scratch(struct mu_keys *keys, void **out, size_t nbytes);
void mu_keys_end(struct mu_keys *keys);

enum mu_direction { MU_PUSH, MU_PULL, MU_PUSHPULL, MU_FIRST };
enum mu_status mu_keys_add_dense(struct mu_keys *keys, const struct mu_kv_item *item,
				 enum mu_direction direction);
/* The name and threshold of a compression. */
enum mu_status mu_keys_parse_compression(const char *type, double threshold,
					 enum mu_coding *coding);
/* Is what this key pushes compressed? Then a transfer's data become codes: keys/compress.c. */
bool mu_keys_compresses(const struct mu_keys *keys, const struct mu_key *key);
enum mu_status mu_keys_compress(struct mu_keys *keys, struct mu_transfer *x);
/* The same for array i of an item; the source has the whole key. */
enum mu_status mu_keys_compress_array(struct mu_keys *keys, struct mu_key *key, size_t i,
				      struct mu_source *source);

/* The transfers of a call of one direction; items are checked. Between _begin and _end. */
enum mu_status mu_keys_add_items(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				 enum mu_direction direction);
/* A whole call, of items that are checked; it waits. */
enum mu_status mu_keys_exchange(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				enum mu_direction direction);
enum mu_status mu_keys_exchange_rows(struct mu_keys *keys, size_t n,
				     const struct mu_kv_item *items);

/* ---- requests: request.c ---- */

/* mu_keys_check_worker of a call that completes all requests first. */
enum mu_status mu_keys_check_alone(struct mu_keys *keys, const char *call);
/* The same for a collective call: all workers make the same one. Collective over workers. */
enum mu_status mu_keys_check_all(struct mu_keys *keys, const char *call);
/* A request of items that are checked. */
enum mu_status mu_keys_request_begin(struct mu_keys *keys, size_t n,
				     const struct mu_kv_item *items, enum mu_use use,
				     struct mu_keys_request **out);
/* A call of items that are checked, behind the requests of its keys. */
enum mu_status mu_keys_after_requests(struct mu_keys *keys, size_t n,
				      const struct mu_kv_item *items, enum mu_use use);
enum mu_status mu_keys_requests_end(struct mu_keys *keys);
/* The store is freed: a warning if requests are left, which the caller may still end. */
void mu_keys_requests_abandon(struct mu_keys *keys);

/* *all: new memory with nbytes of each of the *n workers. Collective over workers. */
enum mu_status mu_keys_gather(struct mu_keys *keys, const void *mine, size_t nbytes, void **all,
			      int *n);

#endif
