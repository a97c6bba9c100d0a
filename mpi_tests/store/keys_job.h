/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the store of keys share: a store with its role, and programs of calls whose
 * results are known. For test programs of one file.
 */
#ifndef MUSTER_KEYS_JOB_H
#define MUSTER_KEYS_JOB_H

#include <stdlib.h>

#include <muster/keys.h>
#include <muster/kvstore.h>

#include "../lib/check.h"

static MPI_Comm world;
static int rank, size;
static struct mu_members members; /* of the present number of servers */
static struct mu_members alone;   /* this rank is the one worker */

static inline void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "a test of keys");
		mu_world_abort(1);
	}
}

/* The call fails, and its message has this part. */
static inline bool check_fails(enum mu_status st, enum mu_status expected, const char *part,
			       int line)
{
	bool ok =
		check_text(mu_status_name(st), mu_status_name(expected), "status", line, "call") &&
		check_has(mu_trace_message(), part, "message", line, "call");

	mu_trace_clear();
	return ok;
}

#define fails(call, expected, part) check_fails((call), (expected), (part), __LINE__)

/* Run a store: the worker's part is given, servers serve. */
static inline void keys_run(const char *type, const struct mu_members *m,
			    const struct mu_keys_config *more,
			    void (*worker)(struct mu_keys *, void *), void *context)
{
	struct mu_keys_config config = *more;
	struct mu_keys *store = NULL;

	config.type = type;
	config.members = m;
	must(mu_keys_new(&store, &config));
	if (m->role == MU_ROLE_SERVER) {
		must(mu_keys_serve(store));
	} else {
		worker(store, context);
		must(mu_keys_finish(store));
	}
	mu_keys_free(store);
}

/* One key with one array. */
static inline struct mu_kv_item item_of(int key, struct mu_array *array)
{
	return (struct mu_kv_item){.key = key, .n_arrays = 1, .arrays = array};
}

static inline struct mu_array floats(float *data, size_t n)
{
	return (struct mu_array){data, n, MU_FLOAT32};
}

/* All tests of one program, for every number of servers; the exit status. */
static inline int run_tests(int argc, char **argv, void (*once)(void), void (*each)(void))
{
	MPI_Comm self = MPI_COMM_NULL;
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	must(mu_members_init(&alone, self, 0, MU_PLACEMENT_SPREAD));
	once();
	for (int servers = 1; servers <= 3 && servers < size; servers++) {
		must(mu_members_init(&members, world, servers, MU_PLACEMENT_SPREAD));
		each();
		mu_members_release(&members);
	}
	mu_members_release(&alone);
	MPI_Comm_free(&self);
	failed = check_failures();
	must(mu_allreduce_long(&failed, 1, MPI_SUM, world));
	return mu_world_close(&world, failed ? 1 : 0);
}

#endif
