/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 */
/*
 * Several stores of keys at once, used in turns, and the ends of stores: mu_keys_finish twice,
 * calls after it, and a worker that leaves without. With an argument, for test_watchdog.sh:
 * "forgotten", a store without servers of which worker 1 forgets mu_keys_finish;
 * "forgotten-servers", the same with a server.
 */
#include "keys_job.h"

enum { N = 60000 }; /* a message of its own on every owner */

struct store {
	struct mu_keys *keys;
	float *data;
	struct mu_array array;
	struct mu_kv_item item;
	float expected;
};

static void open_store(struct store *s, const char *type, const struct mu_members *m)
{
	const struct mu_keys_config config = {.type = type, .members = m};

	memset(s, 0, sizeof *s);
	must(mu_keys_new(&s->keys, &config));
	must(MU_ALLOC(s->data, N, "values of a test"));
	s->array = floats(s->data, N);
	s->item = item_of(1, &s->array);
}

static void close_store(struct store *s)
{
	mu_keys_free(s->keys);
	mu_free(s->data);
}

static void fill(struct store *s, size_t step)
{
	const int n = mu_keys_num_workers(s->keys);

	for (size_t i = 0; i < N; i++)
		s->data[i] = (float)(step + (size_t)mu_keys_rank(s->keys));
	s->expected = (float)((size_t)n * step + (size_t)(n * (n - 1) / 2));
}

static size_t count_wrong(const struct store *s)
{
	size_t wrong = 0;

	for (size_t i = 0; i < N; i++)
		wrong += s->data[i] != s->expected;
	return wrong;
}

/* Odd workers wait in b while others still need what they own in a. */
static void use_in_turns(struct store *a, struct store *b)
{
	size_t wrong = 0;

	must(mu_keys_init(a->keys, 1, &a->item));
	must(mu_keys_init(b->keys, 1, &b->item));
	for (size_t step = 0; step < 4; step++) {
		const bool odd = (size_t)mu_keys_rank(a->keys) % 2 != step % 2;

		fill(a, step);
		fill(b, step + 100);
		if (odd)
			must(mu_keys_push(a->keys, 1, &a->item, 0));
		else
			must(mu_keys_pushpull(a->keys, 1, &a->item, 0));
		must(mu_keys_pushpull(b->keys, 1, &b->item, 0));
		if (odd)
			must(mu_keys_pull(a->keys, 1, &a->item, 0));
		wrong += count_wrong(a) + count_wrong(b);
	}
	CHECK(wrong == 0);
}

static void finish_in_turns(struct store *a, struct store *b)
{
	must(mu_keys_finish(a->keys));
	must(mu_keys_pull(b->keys, 1, &b->item, 0));
	must(mu_keys_finish(b->keys));
	must(mu_keys_finish(a->keys));
	fails(mu_keys_pull(a->keys, 1, &a->item, 0), MU_ERR_ARGUMENT, "after mu_keys_finish");
	fails(mu_keys_barrier(a->keys), MU_ERR_ARGUMENT, "after mu_keys_finish");
}

static void in_turns(const char *type, const char *other, const struct mu_members *m)
{
	struct store a, b;

	open_store(&a, type, m);
	open_store(&b, other, m);
	if (m->role == MU_ROLE_SERVER) {
		must(mu_keys_serve(b.keys));
		must(mu_keys_serve(a.keys));
		must(mu_keys_serve(a.keys));
	} else {
		use_in_turns(&a, &b);
		finish_in_turns(&a, &b);
	}
	close_store(&a);
	close_store(&b);
}

/* ---- a worker that leaves ---- */

static float w[100];
static struct mu_array values = {w, 100, MU_FLOAT32};

/* Calls that wait for the worker that has left. */
static enum mu_status await_left(struct mu_keys *store, size_t i)
{
	static const struct mu_kv_optimizer sgd = {.optim = {.name = "sgd"}, .rescale = 1};
	const struct mu_kv_item old = item_of(1, &values), new = item_of(2, &values);

	switch (i) {
	case 0: return mu_keys_barrier(store);
	case 1: return mu_keys_init(store, 1, &new);
	case 2: return mu_keys_set_optimizer(store, &sgd);
	case 3: return mu_keys_pushpull(store, 1, &old, 0);
	case 4: return mu_keys_save(store, "left.h5", MU_KEYS_WEIGHTS);
	default: return mu_keys_finish(store);
	}
}

/* A worker frees the store without mu_keys_finish: all others are told, wherever they wait. */
static void left(const char *type, int servers)
{
	for (size_t i = 0; i < 6; i++) {
		const struct mu_kv_item key = item_of(1, &values);
		struct mu_keys_config config = {.type = type};
		struct mu_keys *store = NULL;
		struct mu_members m;
		char part[64];
		int leaver;

		must(mu_members_init(&m, world, servers, MU_PLACEMENT_SPREAD));
		leaver = i % 2 ? m.num_workers - 1 : 0;
		snprintf(part, sizeof part, "worker %d (rank %d, ", leaver, m.worker_ranks[leaver]);
		config.members = &m;
		must(mu_keys_new(&store, &config));
		if (m.role == MU_ROLE_SERVER) {
			fails(mu_keys_serve(store), MU_ERR_ARGUMENT, part);
		} else {
			must(mu_keys_init(store, 1, &key));
			must(mu_barrier(m.peers)); /* it leaves when all have made the key */
			if (m.index != leaver) {
				fails(await_left(store, i), MU_ERR_ARGUMENT,
				      "has freed the store of keys without mu_keys_finish");
				fails(mu_keys_finish(store), i < 5 ? MU_ERR_ARGUMENT : MU_OK,
				      i < 5 ? part : "");
			}
		}
		mu_keys_free(store);
		mu_members_drop(&m);
		mu_members_release(&m);
	}
}

static void once(void)
{
	struct mu_members flat;

	must(mu_comm_set_limits(world, &(struct mu_limits){.timeout = 10}));
	must(mu_members_init(&flat, world, 0, MU_PLACEMENT_SPREAD));
	in_turns("dist_allreduce", "dist_sharded", &flat);
	in_turns("dist_sharded", "dist_sharded", &flat);
	mu_members_release(&flat);
	if (size > 1)
		left("dist_sharded", 0);
	if (rank == 0)
		in_turns("local", "device", &alone);
}

static void each(void)
{
	in_turns("dist_sync", "dist_sync", &members);
	if (members.num_workers > 1)
		left("dist_sync", members.num_servers);
}

/* ---- for test_watchdog.sh ---- */

static int run_forgotten(int servers)
{
	struct mu_members m;
	struct store s;
	enum mu_status st = MU_OK;

	must(mu_world_open(&(int){0}, &(char **){NULL}, &world));
	MPI_Comm_rank(world, &rank);
	must(mu_comm_set_limits(world, &(struct mu_limits){.timeout = 1}));
	must(mu_members_init(&m, world, servers, MU_PLACEMENT_SPREAD));
	open_store(&s, servers ? "dist_sync" : "dist_sharded", &m);
	if (m.role == MU_ROLE_SERVER) {
		st = mu_keys_serve(s.keys);
	} else {
		must(mu_keys_init(s.keys, 1, &s.item));
		must(mu_keys_pushpull(s.keys, 1, &s.item, 0));
		if (m.index != 1)
			st = mu_keys_finish(s.keys);
	}
	if (st != MU_OK)
		mu_world_fail(st, "test_keys_turns", rank, "a rank");
	close_store(&s);
	mu_members_release(&m);
	return mu_world_close(&world, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run_forgotten(strcmp(argv[1], "forgotten-servers") == 0);
	setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "3000", 1);
	return run_tests(argc, argv, once, each);
}
