/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys: a parameter store for arrays that are named by numbers or by strings. MXNet's KVStore for C
 * programs: calls have MXNet's names and, where MXNet defines one, its meaning.
 *
 * Use it for a training loop of your own. The trainer uses the other store (kvstore.h), which knows
 * the whole model and pushes every key once per step.
 *
 * ---- example ----
 *
 * Every worker adds its gradient to key 0 and gets the sum of all workers:
 *
 *	struct mu_keys *keys = NULL;
 *	float x[100] = {0};
 *	struct mu_array array = {x, 100, MU_FLOAT32};
 *	struct mu_kv_item item = mu_kv_item_of(0, &array);
 *
 *	mu_keys_open(&keys, MPI_COMM_WORLD, "dist_sync", MU_SERVERS_DEFAULT);
 *	if (mu_keys_is_server(keys)) {
 *		mu_keys_serve(keys);                   returns when all workers have finished
 *	} else {
 *		mu_keys_init(keys, 1, &item);          once per key, with worker 0's values
 *		mu_keys_push(keys, 1, &item, 0);       a gradient
 *		mu_keys_pull(keys, 1, &item, 0);       the new value
 *		mu_keys_finish(keys);
 *	}
 *	mu_keys_free(keys);
 *
 * jobs/examples/keys.c is the whole program. Compile and run it with
 *
 *	mpicc keys.c -o keys $(pkg-config --cflags --libs muster-keys)
 *	mpirun -np 4 ./keys
 *
 * ---- life cycle ----
 *
 *	all ranks      mu_keys_open or mu_keys_new
 *	servers        mu_keys_serve, until all workers have finished
 *	workers        mu_keys_set_optimizer or mu_keys_set_updater (optional), mu_keys_init,
 *	               then push, pull and mu_keys_init in any order; mu_keys_finish
 *	all ranks      mu_keys_free
 *
 * Several stores may be used in turns. All workers make the collective calls of all stores in one
 * order. In a store without servers every worker owns some of the keys, and answers for the keys of
 * all its stores in the waits of any call below. Nobody answers in a barrier of your own or in
 * mu_keys_open: wait for other workers in mu_keys_barrier. A server answers for all its stores in
 * mu_keys_serve, which it calls once for each of them, in any order.
 *
 * A worker that calls mu_keys_free without mu_keys_finish (and without an error on its way) warns,
 * and the store fails on all other ranks: MU_ERR_ARGUMENT names this worker.
 *
 * ---- keys and values ----
 *
 * A key is a number >= 0, or a name, with an array of fixed size and type. All keys of a store are
 * of the one sort or of the other: the first mu_keys_init decides. Named keys are numbered 0, 1, 2,
 * ... in the order of their init, which is the same on all workers. What a push does to the value
 * depends on the rule: an optimiser (mu_keys_set_optimizer), a function of the caller
 * (mu_keys_set_updater), or, with neither, the value is replaced by the sum: an all-reduce.
 *
 * Types. A float16 or bfloat16 key travels in its type, is summed and updated in float32, and is
 * rounded to its type after every update. With multi_precision the value is kept in float32 and
 * only pulled values are rounded. The sum over several devices of one rank is rounded to the type
 * before it travels.
 *
 * Placement. A key of fewer elements than a bound lies on the server that holds the fewest bytes. A
 * larger key is cut evenly over all servers, on multiples of 64 elements. The bound is 16384, so
 * that servers differ by about 64 KiB (float32); MXNET_KVSTORE_BIGARRAY_BOUND in worker 0's
 * environment changes it (MXNet's default is 1e6). The placement does not change the bits of
 * results.
 *
 * ---- synchronous stores: rounds ----
 *
 * local, device, dist_sync, dist_device_sync, dist_sharded, dist_allreduce. The k-th push of a key
 * by a worker belongs to round k of that key. A round closes when the k-th push of every worker has
 * arrived. Their arrays are summed in float32 in worker order (first over the devices of a worker,
 * in their order), and the value is updated once. Bits do not depend on timing.
 *
 * A pull waits for the caller's last round of the key and returns exactly the value after that
 * round: the next round cannot close before the caller pushes again. So these are all defined, also
 * when workers name keys in different orders:
 *
 *	push without pull
 *	several pushes, then a pull        the value after the last of these rounds
 *	pull without push                  the present value
 *	pull by some of the workers
 *
 * Servers always receive. Pushes that arrive early are kept, so a server's memory grows with the
 * lead of the fastest worker. Rounds that are incomplete when the workers finish are dropped. A
 * pull that waits for a worker that has finished is an error.
 *
 * ---- asynchronous stores ----
 *
 * dist_async, dist_device_async. Every push updates the value at once, in the order of arrival. A
 * pull returns the newest value, which holds all earlier pushes of the caller; after
 * mu_keys_barrier it also holds all pushes that any worker made before the barrier. A push without
 * an optimiser or an updater is an error.
 *
 * ---- errors ----
 *
 * MU_ERR_ARGUMENT on all workers, which names both calls: workers that make different collective
 * calls (but for mu_keys_finish).
 *
 * MU_ERR_ARGUMENT, with key, rank and both values, before anything is sent: a key that does not
 * exist or is initialised twice, another size or type, a buffer that is too small, a key that is
 * named twice in one call.
 *
 * An error on the rank that owns a key (an updater that fails) ends the calls of all waiting
 * workers and every later call, with the same message. After that, only mu_keys_finish and
 * mu_keys_free are allowed.
 *
 * ---- differences to MXNet ----
 *
 * A call takes several keys, each with one array per device of this rank. Calls return when they
 * are done, unless they end in _begin: see "requests". Priority is accepted and has no effect.
 */
#ifndef MUSTER_KEYS_H
#define MUSTER_KEYS_H

#include <string.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/optim.h>

MU_BEGIN_C

struct mu_keys;

/*
 * An update function of the caller: weights[i] <- f(weights[i], gradient[i]) for the elements
 * [from, from + n) of a key. It runs on the rank that holds the elements (a server, or this rank in
 * a store without servers), once per update for every part of the key on that rank. gradient is the
 * sum of a round, or one push in asynchronous stores. Both arrays are float32. An error (MU_FAIL)
 * fails the store: see "errors". A named key comes as its number: mu_keys_number.
 */
struct mu_kv_updater {
	const char *name;
	enum mu_status (*fn)(void *context, int key, size_t from, size_t n, const float *gradient,
			     float *weights);
	void *context;
};

/* What a type of store is; the same names as of the store of a model, but for those on GPUs. */
struct mu_keys_type {
	bool has_servers; /* some ranks are servers */
	bool distributed; /* for several workers */
	bool synchronous; /* one update of all workers' pushes: see "synchronous stores" above */
};
/* Unknown type: MU_ERR_USAGE with the list. Not collective. */
enum mu_status mu_keys_type_check(const char *type, struct mu_keys_type *is);

struct mu_keys_config {
	const char *type; /* "dist_sync", ...; whole words, see mu_keys_type_check */
	const struct mu_members *members;
	enum mu_verbose verbose; /* counts on rank 0 */
	/* What mu_keys_set_updater may name. Equal on all ranks; borrowed until mu_keys_free. */
	const struct mu_kv_updater *updaters;
	size_t n_updaters;
};

/*
 * Makes an empty store for the ranks of comm: the short way. num_servers ranks become servers; with
 * MU_SERVERS_DEFAULT one per node, a quarter at most (none in stores without servers); the others
 * are workers. All ranks pass the same type and number. MU_ERR_USAGE: an unknown type (the message
 * lists the known ones), or a type and a number of ranks that do not fit. Collective over comm.
 */
enum mu_status mu_keys_open(struct mu_keys **out, MPI_Comm comm, const char *type, int num_servers);
/*
 * The same with a topology of the caller's, updaters, and a log of messages.
 *
 * Collective over topology->world. Settings that differ between ranks are
 * MU_ERR_ARGUMENT on all ranks; a type that does not fit the topology is MU_ERR_USAGE.
 */
enum mu_status mu_keys_new(struct mu_keys **out, const struct mu_keys_config *config);
/* After mu_keys_finish or mu_keys_serve, or an error. NULL is allowed. Not collective. */
void mu_keys_free(struct mu_keys *keys);

/* Servers: answer until every worker has finished. */
enum mu_status mu_keys_serve(struct mu_keys *keys);
/*
 * Workers: the last call; waits for all workers. Servers then return from mu_keys_serve. A second
 * call returns MU_OK at once; any other call after it is MU_ERR_ARGUMENT. Collective over workers.
 */
enum mu_status mu_keys_finish(struct mu_keys *keys);

/* ---- values ---- */

struct mu_array {
	void *data;
	size_t n; /* elements */
	enum mu_dtype dtype;
};

enum { MU_KEY_NAME_MAX = 127 }; /* bytes of a key's name */

struct mu_kv_item {
	int key; /* without a name */
	/* One array per device of this rank. A push sends their sum, a pull fills all of them. */
	size_t n_arrays;
	const struct mu_array *arrays;
	/*
	 * For pushes of rows and mu_keys_pull_rows: the key is a matrix with rows of row_length
	 * elements. The one array holds the rows with these numbers, one after another, in this
	 * order. Numbers may be in any order and may repeat (a push adds them up). row_length = 0:
	 * the whole key.
	 */
	size_t row_length;
	size_t n_rows;
	const uint64_t *rows;
	/* The key's name, "conv1_weight"; then key is not used. NULL: the key is a number. */
	const char *name;
};

/* A whole key with one array: for C and C++. Set the name afterwards. */
static inline struct mu_kv_item mu_kv_item_of(int key, const struct mu_array *array)
{
	struct mu_kv_item item;

	memset(&item, 0, sizeof item);
	item.key = key;
	item.n_arrays = 1;
	item.arrays = array;
	return item;
}

/*
 * Makes new keys with worker 0's values. All workers pass the same keys, sizes and types in the
 * same order; this is checked. After the call every worker may push and pull them. Collective over
 * workers.
 */
enum mu_status mu_keys_init(struct mu_keys *keys, size_t n, const struct mu_kv_item *items);
/*
 * Returns when the arrays may be written again. With rows, absent rows count as zero; a push of no
 * rows still counts as this worker's push of the round. Not collective.
 */
enum mu_status mu_keys_push(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			    int priority);
/* Returns when the arrays are filled; they may be larger than the key. Not collective. */
enum mu_status mu_keys_pull(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			    int priority);
/* Push, then pull into the same arrays, in one exchange. Not for rows. Not collective. */
enum mu_status mu_keys_pushpull(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				int priority);
/* Pulls the rows that the items name. Not collective. */
enum mu_status mu_keys_pull_rows(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				 int priority);
/*
 * ---- requests ----
 *
 * The calls above without waiting, in MXNet's order: calls of one key happen in the order in which
 * they begin, calls of different keys do not wait for each other, not even those of one request,
 * and any number may be under way.
 * Until mu_keys_request_end the arrays and row numbers belong to the request: do not write or free
 * what it pushes, nor read, write or free what it pulls (the items may go). Two requests under way
 * must not pull into the same array. A blocking call of a key waits for that key's earlier
 * requests; collective calls, mu_keys_set_compression and mu_keys_finish complete all requests of
 * this worker first.
 *
 * MPI moves on within calls, so a program that computes for long calls mu_keys_request_test now and
 * then: a pull asks the owners whether its rounds have closed, and is copied in the call that finds
 * them closed. Wrong items are an error of the _begin, and nothing begins. All other errors are the
 * request's. None of these calls is collective.
 */
struct mu_keys_request;

enum mu_status mu_keys_push_begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  int priority, struct mu_keys_request **out);
enum mu_status mu_keys_pull_begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  int priority, struct mu_keys_request **out);
enum mu_status mu_keys_pushpull_begin(struct mu_keys *keys, size_t n,
				      const struct mu_kv_item *items, int priority,
				      struct mu_keys_request **out);
enum mu_status mu_keys_pull_rows_begin(struct mu_keys *keys, size_t n,
				       const struct mu_kv_item *items, int priority,
				       struct mu_keys_request **out);
/* Move all requests of the store on; *done: mu_keys_request_end will not wait. */
enum mu_status mu_keys_request_test(struct mu_keys_request *request, bool *done);
/*
 * Wait, free the request, and return how it went. NULL is allowed. Once for each request, as free:
 * a second call is undefined. mu_keys_free warns of requests that are left; they may be ended after
 * it, and one that was not done is MU_ERR_ARGUMENT then.
 */
enum mu_status mu_keys_request_end(struct mu_keys_request *request);

/* mu_keys_init, then mu_keys_pull into the same arrays. Collective over workers. */
enum mu_status mu_keys_broadcast(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				 int priority);
/*
 * Waits for all workers. In asynchronous stores it also waits until all pushes that workers made
 * before it have updated their values. Collective over workers.
 */
enum mu_status mu_keys_barrier(struct mu_keys *keys);

/* ---- rules ---- */

struct mu_kv_optimizer {
	struct mu_optim_config optim; /* weight decay applies to every key, see multipliers */
	/* Progress is the number of updates of the key. Rates are finite and not below 0. */
	struct mu_schedule schedule;
	double rescale;               /* of gradients, > 0: 1 / (samples of a round) */
	bool multi_precision;         /* 16-bit keys: keep the weights in float32 */
};

/*
 * Sets the optimiser for every worker's next and later pushes. All workers name the same rule; of
 * the rest worker 0's values count. A key keeps its states and its number of updates if the rule
 * stays the same, else both start again. Rules that need norms over whole keys or the whole model
 * (mu_optim_needs_norms) are MU_ERR_ARGUMENT: a key may be cut, and keys are updated one by one.
 * Collective over workers.
 */
enum mu_status mu_keys_set_optimizer(struct mu_keys *keys, const struct mu_kv_optimizer *optimizer);
/* Factors of the learning rate and of the weight decay for one key, finite and not below 0. */
struct mu_kv_multiplier {
	int key; /* without a name */
	double lr, wd;
	const char *name; /* of the key; NULL: it is a number */
};
/*
 * Sets the multipliers of n existing keys for later pushes; they stay when the optimiser is set
 * again. Keys without them have 1 and 1, whatever their names: biases, betas and gammas are decayed
 * unless wd is 0 for them (MXNet's Module tells its optimiser names, so that biases and betas are
 * not decayed). Worker 0's values count. MU_ERR_ARGUMENT, on the other
 * workers MU_ERR_PEER: a key that does not exist, or a value out of range; nothing is changed then.
 * Collective over workers.
 */
enum mu_status mu_keys_set_multipliers(struct mu_keys *keys, size_t n,
				       const struct mu_kv_multiplier *list);
/*
 * Sets the updater of this name from the config; NULL: neither updater nor optimiser. Collective
 * over workers.
 */
enum mu_status mu_keys_set_updater(struct mu_keys *keys, const char *name);
/*
 * Compresses what float32 keys push from now on. "none"; "2bit": an element becomes +threshold,
 * -threshold or 0, and the residual is added to the next push (error feedback); "1bit": +1 above
 * threshold, else -1. Rows and 16-bit keys are not compressed. With several arrays per item local
 * and device compress each array, with a residual of its own (the i-th array of a key is always the
 * i-th device), the other stores the sum of the arrays; as MXNet does. All workers call it with the
 * same arguments, after the same push of a key: a round of a synchronous store whose pushes are
 * compressed differently fails the store, MU_ERR_ARGUMENT. Not collective.
 */
enum mu_status mu_keys_set_compression(struct mu_keys *keys, const char *type, double threshold);

/* ---- queries: not collective; of a store that is NULL: false, -1, 0, NULL ---- */

bool mu_keys_is_server(const struct mu_keys *keys);
int mu_keys_rank(const struct mu_keys *keys); /* number of this worker, or of this server */
int mu_keys_num_workers(const struct mu_keys *keys);
int mu_keys_num_servers(const struct mu_keys *keys);
const char *mu_keys_type(const struct mu_keys *keys);
/* Of a named key, on workers: its number, -1 if there is none; its name, NULL if there is none. */
int mu_keys_number(const struct mu_keys *keys, const char *name);
const char *mu_keys_name(const struct mu_keys *keys, int number);

/* Where the values lie. On workers. */
struct mu_keys_layout {
	size_t n_keys;
	size_t bytes;                                    /* of all values */
	size_t bytes_per_owner_min, bytes_per_owner_max; /* owner: a server, or a worker without */
};
void mu_keys_layout(const struct mu_keys *keys, struct mu_keys_layout *layout);

/* ---- files ---- */

enum mu_keys_contents {
	MU_KEYS_WEIGHTS = 1, /* values of all keys, in the precision that their owners keep */
	MU_KEYS_STATES = 2,  /* states of the optimiser, and numbers of updates */
	MU_KEYS_OPTIMIZER = 4, /* the optimiser with its settings: MXNet's dump_optimizer */
};

/*
 * Save a sum of enum mu_keys_contents to one HDF5 file, and load what a file has. All complete
 * rounds of pushes before the call count. After a load the store goes on with the bits of the one
 * that saved, whatever the number of servers; multipliers and compression are not in the file.
 * Worker 0's arguments count, and worker 0 alone opens the file. It is written under a temporary
 * name, synced and renamed: after an error the old file is still there.
 *
 * A load finds its keys by name or number; the file may have more. MU_KEYS_OPTIMIZER sets the
 * file's optimiser as by mu_keys_set_optimizer; without it MU_KEYS_STATES needs an optimiser of the
 * file's rule. The file is read and checked as a whole before anything is changed. Errors are
 * worker 0's, and MU_ERR_PEER with its message on the others: MU_ERR_IO (no file, no room),
 * MU_ERR_FORMAT (another kind of file, damaged, a key that is not in it, another size),
 * MU_ERR_ARGUMENT (no optimiser, another rule), MU_ERR_UNSUPPORTED (a build without HDF5).
 * Collective over workers.
 */
enum mu_status mu_keys_save(struct mu_keys *keys, const char *path, unsigned contents);
enum mu_status mu_keys_load(struct mu_keys *keys, const char *path, unsigned contents);

/* ---- states of the optimiser, for files of your own ---- */

/*
 * One state of the optimiser for one key. A key always has at least one, which carries its number
 * of updates; if the rule has no states, name is "" and n is 0.
 */
struct mu_kv_state {
	int key;
	const char *name; /* "momentum" */
	uint64_t updates; /* of this key */
	size_t n;         /* elements: those of the key, in its order */
	float *data;
	const char *key_name; /* NULL: the key is a number */
};
typedef enum mu_status (*mu_kv_state_fn)(void *context, struct mu_kv_state *state);

/*
 * Save calls fn on worker 0 for every state, keys in the order of their init. Load calls it
 * likewise, and fn fills in data and updates. All complete rounds of pushes before the call count.
 * Without an optimiser: MU_ERR_ARGUMENT. The file format is the caller's. Collective over workers.
 */
enum mu_status mu_keys_states_save(struct mu_keys *keys, mu_kv_state_fn fn, void *context);
enum mu_status mu_keys_states_load(struct mu_keys *keys, mu_kv_state_fn fn, void *context);

MU_END_C

#endif
