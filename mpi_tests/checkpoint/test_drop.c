/* SPDX-License-Identifier: Apache-2.0 */
/* @np 2 3 @np-full 2 3 5 */
/*
 * Members are dropped: in the middle of a step, with messages, a vote and an alarm on their way,
 * one rank closes all that it has while the others are elsewhere. Nothing it calls waits for them.
 * Afterwards all ranks train in the next generation, whose weights are right.
 */
#include <muster/keys.h>
#include <muster/parallel.h>

#include "../lib/check.h"
#include "../lib/store_job.h"

/* ---- calls of MPI that are collective, or wait ---- */

static int n_waits; /* in this rank, so far */

#define COUNTED(name, parameters, arguments) \
	int name parameters \
	{ \
		n_waits++; \
		return P##name arguments; \
	}
COUNTED(MPI_Comm_free, (MPI_Comm * comm), (comm))
COUNTED(MPI_Barrier, (MPI_Comm comm), (comm))
COUNTED(MPI_Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))
COUNTED(MPI_Wait, (MPI_Request * request, MPI_Status *status), (request, status))
COUNTED(MPI_Testall, (int n, MPI_Request requests[], int *done, MPI_Status statuses[]),
	(n, requests, done, statuses))
COUNTED(MPI_Iallreduce,
	(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
	 MPI_Request *request),
	(in, out, n, type, op, comm, request))
COUNTED(MPI_Ibcast,
	(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
	(data, n, type, root, comm, request))

/* ---- what a rank has ---- */

struct handles {
	struct job job;
	struct mu_keys *keys;
	struct mu_keys_request *request;
	struct mu_window *window;
	struct mu_vote vote;
	struct mu_passage *in;
	MPI_Comm own, half;
};

static struct model tiny;

static void open_keys(struct handles *h, const char *type)
{
	static float zeros[4];
	struct mu_array array = {zeros, 4, MU_FLOAT32};
	const struct mu_kv_item item = {.key = 3, .n_arrays = 1, .arrays = &array};
	const struct mu_keys_config config = {.type = type, .members = &members};

	must(mu_keys_new(&h->keys, &config));
	if (members.num_servers == 0)
		must(mu_keys_init(h->keys, 1, &item));
}

/* Of the workers: the servers of the other kind of store do not serve here. */
static void open_all(struct handles *h, const char *type)
{
	static const size_t nbytes[] = {12};

	h->job.config = exact;
	h->job.config.node_reduce = MU_KV_NODE_MPI;
	job_open(&h->job, &tiny, type, &members);
	if (members.num_servers == 0)
		must(mu_kv_weights_init(h->job.kv));
	open_keys(h, type);
	must(mu_window_open(&h->window, &members.topology, 100));
	must(mu_vote_open(&h->vote, &members));
	must(mu_comm_dup(members.comm, &h->own, "all ranks"));
	must(mu_comm_split(members.comm, rank % 2, rank, &h->half));
	must(mu_passage_new(&h->in, &(struct mu_passage_config){.comm = h->own,
								.peer = (rank + 1) % size,
								.n_micro = 1,
								.n_kinds = 1,
								.nbytes = nbytes}));
}

/* A step of this rank alone, which does not end. */
static void begin_alone(struct handles *h)
{
	static float ones[4] = {1, 1, 1, 1};
	static const size_t kinds[] = {0};
	struct mu_array array = {ones, 4, MU_FLOAT32};
	const struct mu_kv_item item = {.key = 3, .n_arrays = 1, .arrays = &array};

	if (members.num_servers == 0) {
		must(mu_kv_step_begin(h->job.kv, 1));
		for (size_t k = tiny.n_keys; k-- > 0;)
			must(mu_kv_push_ready(h->job.kv, k));
		must(mu_keys_pushpull_begin(h->keys, 1, &item, 0, &h->request));
	}
	must(mu_passage_begin(h->in, kinds, 1));
	must(mu_vote_begin(&h->vote, rank));
	mu_alarm_raise(&members, MU_ERR_IO, false);   /* the others are told */
	mu_alarm_raise(&members, MU_ERR_PEER, false); /* as if another rank had told this one */
}

static void drop_all(struct handles *h)
{
	const int before = n_waits;

	mu_members_drop(&members);
	mu_passage_free(h->in);
	mu_comm_close(&h->half);
	mu_comm_close(&h->own);
	mu_vote_close(&h->vote);
	mu_window_close(h->window);
	mu_keys_free(h->keys);
	mu_kv_free(h->job.kv);
	CHECK(mu_memory_is_kept());
	mu_members_release(&members);
	CHECK(!mu_memory_is_kept());
	if (h->request) { /* the caller's: it ends with an error */
		CHECK(mu_keys_request_end(h->request) == MU_ERR_ARGUMENT);
		mu_trace_clear();
	}
	CHECK(n_waits == before);
}

static void test_drop(const char *type, int servers)
{
	struct handles h = {.own = MPI_COMM_NULL, .half = MPI_COMM_NULL};
	struct job next = {.config = exact};
	float w[2] = {0};

	must(mu_members_init(&members, world, servers, MU_PLACEMENT_SPREAD));
	open_all(&h, type);
	if (rank == 1) {
		begin_alone(&h);
		drop_all(&h);
	}
	MPI_Barrier(world); /* the others call nothing of Muster until rank 1 is done */
	if (rank != 1)
		drop_all(&h);

	must(mu_members_init(&members, world, servers, MU_PLACEMENT_SPREAD));
	CHECK(mu_alarm_check(&members) == MU_OK);
	job_open(&next, &tiny, type, &members);
	if (next.is_worker) {
		must(mu_kv_weights_init(next.kv));
		for (size_t i = 0; i < 4; i++)
			mu_kv_gradients(next.kv)[i] = 1;
		push_pull(&next, tiny.n_keys, 1, 1);
		w[0] = mu_kv_weights(next.kv)[0];
		must(mu_kv_finish(next.kv));
		CHECK(fabsf(w[0] + 0.1F) < 1e-6F);
	} else {
		must(mu_kv_serve(next.kv));
	}
	mu_kv_free(next.kv);
	mu_members_release(&members);
}

int main(int argc, char **argv)
{
	long failures;

	model_tiny(&tiny);
	must(mu_world_open(&argc, &argv, &world));
	must(mu_comm_rank(world, &rank, &size));
	test_drop("dist_sharded", 0);
	test_drop("dist_allreduce", 0);
	if (size > 2)
		test_drop("dist_sync", 1);
	failures = check_failures();
	must(mu_allreduce_long(&failures, 1, MPI_SUM, world));
	return mu_world_close(&world, failures ? 1 : 0);
}
