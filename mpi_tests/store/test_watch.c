/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 */
/*
 * The watch over waits: a rank that sleeps is named, one that computes is not taken for lost, and
 * one rank tells. With an argument, for test_watchdog.sh: "keys", a store of keys whose worker 1
 * stops itself for ever; "asks", one whose worker 1 never makes the push that a request of worker 0
 * needs; "finish", a store whose workers finish at different times; "setup", a
 * meeting to which a rank of another node comes late.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "keys_job.h"

/* For ranks that move: a rank that looks at them may be off its core for longer than a shorter one,
 * and a wait knows a gap in its own polls only from 0.5 s (GAP_SECONDS of wait.c). */
#define LIMIT 0.8

static void sleep_seconds(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&t, NULL);
}

/* Until another rank says so, without a wait that has limits. */
static void sleep_until_told(double seconds)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int told = 0;

	(void)seconds;
	MPI_Irecv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, world, &request);
	while (!told) {
		sleep_seconds(0.05);
		MPI_Test(&request, &told, MPI_STATUS_IGNORE);
	}
}

static void compute(double seconds)
{
	const double end = mu_now() + seconds;
	volatile double x = 1;

	while (mu_now() < end)
		x = x * 1.0000001;
}

static void set_limits(double warn, double timeout)
{
	must(mu_comm_set_limits(world, &(struct mu_limits){warn, timeout, 0}));
}

/* Sums over the ranks, for checks that need all of them. */
static long total(long mine)
{
	must(mu_allreduce_long(&mine, 1, MPI_SUM, world));
	return mine;
}

static void test_limits(void)
{
	fails(mu_comm_set_limits(world, &(struct mu_limits){-1, 3, 0}), MU_ERR_ARGUMENT,
	      "0 or more");
	fails(mu_comm_set_limits(world, &(struct mu_limits){1, 0.0 / 0.0, 0}), MU_ERR_ARGUMENT,
	      "0 or more");
	fails(mu_comm_set_limits(world, &(struct mu_limits){1, 3, -1}), MU_ERR_ARGUMENT,
	      "0 or more");
}

/* The last rank keeps the others waiting at a barrier, as `work` does; who gives up? It is told. */
static long give_up(void (*work)(double), double seconds, double timeout, const char *part)
{
	struct mu_members m;
	enum mu_status st = MU_OK;
	long n;

	set_limits(0, timeout);
	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	if (rank == size - 1)
		work(seconds);
	else
		st = mu_barrier(m.peers);
	if (rank == size - 1) /* the others have begun it: it ends for who still waits */
		st = mu_barrier(m.peers);
	CHECK(st == MU_OK || (st == MU_ERR_TIMEOUT && rank != size - 1));
	if (st != MU_OK) {
		CHECK_HAS(mu_trace_message(), part);
		CHECK_HAS(mu_trace_message(), "communication timeout");
		MPI_Send(NULL, 0, MPI_INT, size - 1, 0, world);
	}
	mu_trace_clear();
	set_limits(0, 0);
	n = total(st == MU_ERR_TIMEOUT);
	mu_members_release(&m);
	return n;
}

static void test_timeout(void)
{
	char part[128];

	snprintf(part, sizeof part, "a barrier: nothing from worker %d (rank %d, ", size - 1,
		 size - 1);
	CHECK(give_up(sleep_until_told, 0, 0.3, part) == 1);
	/* Without an end. */
	CHECK(give_up(sleep_seconds, 0.2, 0, part) == 0);
	/* A rank that computes moves. */
	CHECK(give_up(compute, 2 * LIMIT, LIMIT, part) == 0);
}

/* Others and a server wait for a worker that computes. */
static void test_slow_worker(void)
{
	static const struct mu_slice slice = {.name = "a_weight", .n = 640, .n_padded = 640};
	struct mu_kv_config config = {.type = "dist_sync",
				      .members = &members,
				      .slices = &slice,
				      .n_slices = 1,
				      .optim = {.name = "sgd"}};
	struct mu_kv *kv = NULL;

	set_limits(0, LIMIT);
	must(mu_members_init(&members, world, 1, MU_PLACEMENT_SPREAD));
	set_limits(0, 0);
	if (members.role == MU_ROLE_SERVER)
		config.n_slices = 0;
	must(mu_kv_new(&kv, &config));
	if (members.role == MU_ROLE_WORKER) {
		must(mu_kv_weights_init(kv));
		for (int step = 0; step < 2; step++) {
			must(mu_kv_step_begin(kv, 1));
			if (members.index == members.num_workers - 1)
				compute(2 * LIMIT);
			must(mu_kv_push_ready(kv, 0));
			must(mu_kv_step_end(kv));
		}
		must(mu_kv_finish(kv));
	} else {
		must(mu_kv_serve(kv));
	}
	mu_kv_free(kv);
	mu_members_release(&members);
}

static void await_nobody(const void *context, struct mu_awaited *a)
{
	(void)context;
	a->n = 0;
}

/* Poll in a wait of no end for so long; MU_OK if nobody was to blame. */
static enum mu_status look(const struct mu_members *m, double seconds)
{
	const double end = mu_now() + seconds;
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, m);
	while (st == MU_OK && mu_now() < end) {
		mu_waiter_nap(&waiter);
		st = mu_waiter_check(&waiter, await_nobody, NULL);
	}
	return st;
}

/* Until a signal has stopped the process. */
static void await_stop(long pid)
{
	char path[64], state = '?';

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	while (state != 'T') {
		FILE *file = fopen(path, "r");

		if (!CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1))
			state = 'T';
		if (file)
			fclose(file);
		sleep_seconds(0.01);
	}
}

/* A rank that is stopped twice for less than the limit, and seen so, ran in between. */
static void test_stopped_twice(void)
{
	const double limit = 1.5;
	struct mu_members m;
	long pid = (long)getpid();

	set_limits(0, limit);
	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	must(mu_bcast(&pid, sizeof pid, size - 1, world));
	must(mu_barrier(world));
	for (int i = 0; i < 2; i++) {
		if (rank == size - 1) {
			raise(SIGSTOP);
			compute(limit);
		}
		if (rank != 0)
			continue;
		await_stop(pid);
		CHECK(look(&m, 0.5) == MU_OK);
		kill((pid_t)pid, SIGCONT);
	}
	mu_trace_clear();
	set_limits(0, 0);
	must(mu_barrier(world));
	mu_members_release(&m);
}

/* Reads of this process so far; -1 if the kernel does not tell. */
static long count_reads(void)
{
	FILE *file = fopen("/proc/self/io", "r");
	char line[128];
	long n = -1;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "syscr: %ld", &n) == 1)
			break;
	if (file)
		fclose(file);
	return n;
}

/* Looking at others takes longer than a short wait: most do without. */
static void test_short_waits(void)
{
	enum { WAITS = 400 };
	struct mu_members m;
	long before;

	set_limits(1000, 1000);
	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	before = count_reads();
	for (int i = 0; i < WAITS; i++) {
		if (rank == i % size)
			compute(1e-4);
		must(mu_barrier(m.comm));
	}
	CHECK(count_reads() - before < WAITS / 8);
	set_limits(0, 0);
	mu_members_release(&m);
}

static bool is_warned(void)
{
	char path[64];
	struct stat info;

	for (int r = 0; r < size - 1; r++) {
		snprintf(path, sizeof path, "warnings.%d", r);
		if (stat(path, &info) == 0 && info.st_size > 0)
			return true;
	}
	return false;
}

static void sleep_until_warned(void)
{
	while (!is_warned())
		sleep_seconds(0.05);
}

static void test_warning(void)
{
	struct mu_members m;
	FILE *stream;
	const char *scale = getenv("MU_TIMEOUT_SCALE"); /* of slow machines */
	char text[4096] = "", part[128];
	long n;

	snprintf(part, sizeof part, "warnings.%d", rank);
	stream = fopen(part, "w+");
	set_limits(0.3, 0);
	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	mu_log_configure(&(struct mu_log_config){.stream = stream, .level = MU_LOG_INFO});
	if (rank == size - 1)
		sleep_until_warned();
	must(mu_barrier(m.comm));
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO});
	set_limits(0, 0);
	rewind(stream);
	n = fread(text, 1, sizeof text - 1, stream) > 0;
	fclose(stream);
	if (n > 0) {
		snprintf(part, sizeof part, "warning: worker %d has waited ", rank);
		if (CHECK_HAS(text, part)) /* the warnings came after 0.3 s, and again */
			CHECK(atof(strstr(text, part) + strlen(part)) <
			      2 * (scale ? atof(scale) : 1));
		snprintf(part, sizeof part, " s for a barrier: nothing from worker %d (rank %d, ",
			 size - 1, size - 1);
		CHECK_HAS(text, part);
	}
	CHECK(total(n) >= 1);
	mu_members_release(&m);
}

/* ---- for test_watchdog.sh ---- */

static float values[16];

/* Worker 1 stops when worker 0 has pushed: a server that is asked for nothing waits for no key. */
static void stop_one(struct mu_keys *keys, void *context)
{
	struct mu_array array = floats(values, 16);
	const struct mu_kv_item item = item_of(7, &array);
	enum mu_status st;

	(void)context;
	must(mu_keys_init(keys, 1, &item));
	if (mu_keys_rank(keys) == 1) {
		sleep_until_told(0);
		raise(SIGSTOP);
	}
	st = mu_keys_push(keys, 1, &item, 0);
	MPI_Send(NULL, 0, MPI_INT, 1, 0, world);
	if (st == MU_OK)
		st = mu_keys_pull(keys, 1, &item, 0);
	mu_world_fail(st, "test_watch", rank, "a worker");
}

/* Worker 0 asks the owner again and again whether the round has closed: that is no progress. */
static int run_asks(void)
{
	struct mu_keys_config config = {.type = "dist_sync", .members = &members};
	struct mu_array array = floats(values, 8), out = floats(values + 8, 8);
	struct mu_kv_item item = item_of(7, &array), into = item_of(7, &out);
	struct mu_keys_request *r[2];
	struct mu_keys *keys = NULL;
	enum mu_status st;

	set_limits(0.3, 1);
	must(mu_members_init(&members, world, 1, MU_PLACEMENT_SPREAD));
	must(mu_keys_new(&keys, &config));
	if (members.role == MU_ROLE_SERVER) {
		st = mu_keys_serve(keys);
	} else {
		must(mu_keys_init(keys, 1, &item));
		if (members.index == 0) {
			must(mu_keys_push(keys, 1, &item, 0));
			must(mu_keys_pull_begin(keys, 1, &into, 0, &r[0]));
			must(mu_keys_push_begin(keys, 1, &item, 0, &r[1]));
			st = mu_keys_request_end(r[1]);
		} else {
			st = mu_keys_barrier(keys);
		}
	}
	mu_world_fail(st, "test_watch", rank, "asks");
	return 1;
}

/* Worker 0 has nothing more to do, the last one for longer than the limit; nobody sees it. */
static int run_finish(void)
{
	static const struct mu_slice slice = {.name = "a_weight", .n = 640, .n_padded = 640};
	struct mu_kv_config config = {
		.type = "dist_async", .members = &members, .optim = {.name = "sgd"}};
	struct mu_kv *kv = NULL;

	set_limits(0, 0.5);
	must(mu_members_init(&members, world, 1, MU_PLACEMENT_SPREAD));
	set_limits(0, 0);
	if (members.role == MU_ROLE_WORKER) {
		config.slices = &slice;
		config.n_slices = 1;
	}
	must(mu_kv_new(&kv, &config));
	if (members.role == MU_ROLE_WORKER) {
		must(mu_kv_weights_init(kv));
		if (members.index > 0)
			sleep_seconds(4);
		must(mu_kv_finish(kv));
	} else {
		must(mu_kv_serve(kv));
	}
	mu_kv_free(kv);
	mu_members_release(&members);
	return mu_world_close(&world, check_failures() ? 1 : 0);
}

/* On two nodes: worker 1 is late at a meeting of set-up, which has a limit of its own: with one (of
 * rank 0 alone, for worker 1 waits for it afterwards) it comes after rank 0 has given up. */
static int run_setup(void)
{
	for (int limited = 0; limited < 2; limited++) {
		const double limit = limited && rank == 0 ? 0.5 : 0;
		struct mu_members m;
		enum mu_status st;

		must(mu_comm_set_limits(world, &(struct mu_limits){0, 0.2, limit}));
		must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
		set_limits(0, 0);
		if (rank == 1 && limited)
			sleep_until_told(0);
		else if (rank == 1)
			sleep_seconds(7);
		st = mu_meet(m.comm);
		if (rank == 0 && limited)
			MPI_Send(NULL, 0, MPI_INT, 1, 0, world);
		CHECK(st == (limit > 0 ? MU_ERR_TIMEOUT : MU_OK));
		if (st != MU_OK)
			CHECK_HAS(mu_trace_message(), "all to come: nothing from worker 1");
		if (st != MU_OK)
			CHECK_HAS(mu_trace_message(), "; the limit is 0.5 s (set-up timeout)");
		mu_trace_clear();
		must(mu_barrier(world));
		mu_members_release(&m);
	}
	return mu_world_close(&world, check_failures() ? 1 : 0);
}

static int run_keys(void)
{
	struct mu_keys_config config = {.type = "dist_sync", .members = &members};
	struct mu_keys *keys = NULL;
	enum mu_status st;

	set_limits(0.3, 1);
	must(mu_members_init(&members, world, 1, MU_PLACEMENT_SPREAD));
	must(mu_keys_new(&keys, &config));
	if (members.role == MU_ROLE_WORKER)
		stop_one(keys, NULL);
	st = mu_keys_serve(keys);
	mu_world_fail(st, "test_watch", rank, "a server");
	return 1;
}

int main(int argc, char **argv)
{
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	if (argc > 1 && strcmp(argv[1], "keys") == 0)
		return run_keys();
	if (argc > 1 && strcmp(argv[1], "asks") == 0)
		return run_asks();
	if (argc > 1 && strcmp(argv[1], "finish") == 0)
		return run_finish();
	if (argc > 1 && strcmp(argv[1], "setup") == 0)
		return run_setup();
	test_limits();
	if (size > 1) {
		test_timeout();
		test_stopped_twice();
		test_short_waits();
		test_warning();
		test_slow_worker();
	}
	set_limits(MU_WARN_SECONDS, MU_TIMEOUT_SECONDS);
	failed = total(check_failures());
	return mu_world_close(&world, failed ? 1 : 0);
}
