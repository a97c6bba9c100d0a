/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 4 */
/*
 * The order of a server's answers when all parts of a step wait for it: with priority the first
 * keys' first, else in the order in which workers pushed them. The bits are the same. The server is
 * stopped by a signal while the workers push.
 */
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "../lib/store_job.h"

enum { STEPS = 3, N_KEYS = 12 };

static int server_pid;
static uint64_t hash;

static char server_state(void)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)server_pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

/* Once it sleeps, and so has answered all: stopped in the middle of a message it would block a
 * queue in shared memory, behind which lie those of the other workers. */
static void stop_server(void)
{
	const struct timespec moment = {0, 4000000};

	for (int asleep = 0; asleep < 5;) {
		nanosleep(&moment, NULL);
		asleep = server_state() == 'S' ? asleep + 1 : 0;
	}
	CHECK(kill(server_pid, SIGSTOP) == 0);
}

static void push_while_stopped(struct job *j, const struct model *m, size_t step)
{
	must(mu_kv_step_begin(j->kv, 3));
	must(mu_barrier(members.peers));
	if (j->worker == 0)
		stop_server();
	must(mu_barrier(members.peers));
	fill(m, mu_kv_gradients(j->kv), step, j->worker);
	for (size_t k = N_KEYS; k-- > 0;)
		must(mu_kv_push_ready(j->kv, k));
	must(mu_barrier(members.peers));
	if (j->worker == 0)
		CHECK(kill(server_pid, SIGCONT) == 0);
	must(mu_kv_step_end(j->kv));
}

static void worker(struct job *j, const struct model *m)
{
	must(mu_kv_weights_init(j->kv));
	for (size_t step = 1; step <= STEPS; step++)
		push_while_stopped(j, m, step);
	hash = hash_floats(mu_kv_weights(j->kv), mu_kv_n(j->kv));
	must(mu_kv_finish(j->kv));
}

/*
 * The answers to worker 0 in a server's log: how often a bucket came after one of earlier keys
 * (which has a higher number), and how many answers there are.
 */
static int count_steps_back(const char *path, int *n)
{
	FILE *file = fopen(path, "r");
	char line[1024];
	int back = 0, before = -1;

	*n = 0;
	while (file && fgets(line, sizeof line, file)) {
		const char *at = strstr(line, "pull of bucket ");

		if (!at || !strstr(line, "to worker 0 "))
			continue;
		back += atoi(at + strlen("pull of bucket ")) < before;
		before = atoi(at + strlen("pull of bucket "));
		++*n;
	}
	if (file)
		fclose(file);
	return back;
}

/* The log of the server goes to a file. */
static void run(struct job *j, const struct model *m, const char *path)
{
	const bool serves = members.role == MU_ROLE_SERVER;
	const int before = dup(STDERR_FILENO);
	int to = serves ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;

	if (serves && CHECK(to >= 0))
		dup2(to, STDERR_FILENO);
	job_run(j, m, worker);
	dup2(before, STDERR_FILENO);
	close(before);
	if (to >= 0)
		close(to);
}

static void test_order(const struct model *m, const char *folder, enum mu_kv_node node)
{
	uint64_t hashes[2];
	char path[SCRATCH_BYTES + 16];

	snprintf(path, sizeof path, "%s/log", folder);
	for (int priority = 0; priority < 2; priority++) {
		struct job j = {.config = exact};
		int back, n;

		j.config.type = "dist_sync";
		j.config.bucket_bytes = 4096;
		j.config.node_reduce = node;
		j.config.verbose = MU_VERBOSE_MESSAGES;
		j.config.priority = priority;
		run(&j, m, path);
		hashes[priority] = hash;
		if (members.role != MU_ROLE_SERVER)
			continue;
		back = count_steps_back(path, &n);
		CHECK(n == STEPS * N_KEYS);
		/* Up to STEPS * (N_KEYS - 1). Messages do not all come at the same moment. */
		if (!CHECK(priority ? back >= STEPS * N_KEYS * 2 / 3 : back <= STEPS * N_KEYS / 3))
			fprintf(stderr, "    %d with priority %d\n", back, priority);
	}
	CHECK(hashes[0] == hashes[1]);
}

int main(int argc, char **argv)
{
	struct model m = {.name = "equal keys"};
	char folder[SCRATCH_BYTES] = "";
	long failures;

	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	must(mu_comm_rank(world, &rank, &size));
	must(mu_members_init(&members, world, 1, MU_PLACEMENT_SPREAD));
	for (size_t k = 0; k < N_KEYS; k++)
		model_add(&m, 1000);
	if (rank == members.server_ranks[0])
		CHECK(scratch_make(folder));
	server_pid = getpid();
	must(mu_bcast(&server_pid, sizeof server_pid, members.server_ranks[0], world));
	test_order(&m, folder, MU_KV_NODE_AUTO);
	test_order(&m, folder, MU_KV_NODE_NONE);
	if (rank == members.server_ranks[0])
		scratch_remove(folder);
	failures = check_failures();
	must(mu_allreduce_long(&failures, 1, MPI_SUM, world));
	mu_members_release(&members);
	return mu_world_close(&world, failures ? 1 : 0);
}
