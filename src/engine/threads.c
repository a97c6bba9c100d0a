/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a rank's devices; see threads.h. */
#include "threads.h"

#include <pthread.h>
#include <string.h>

struct member {
	struct mu_team *team;
	size_t number;
	pthread_t thread;
	bool has_thread;
	enum mu_status st; /* of the job that it ended last */
	struct mu_trace *trace;
	size_t left[TEAM_TASKS];
};

struct mu_team {
	const struct mu_topology *topology;
	size_t n;
	struct member *members;
	pthread_mutex_t lock;
	pthread_cond_t work; /* a job has begun, or the threads are to end */
	pthread_cond_t news; /* a member has told something, or the team was stopped */
	bool made;           /* the three above */
	mu_team_job_fn *fn;
	void *context;
	uint64_t jobs; /* begun so far */
	size_t active; /* threads that have not ended the job */
	size_t *counters, n_counters;
	bool stopped, quit;
};

/* Member 0 may be napping. */
static void wake_first(const struct mu_team *team)
{
	mu_wake(team->topology, team->topology->rank);
}

/* With the lock. */
static size_t most_left(const struct mu_team *team, enum mu_team_task task)
{
	size_t most = 0;

	for (size_t i = 0; i < team->n; i++)
		if (team->members[i].left[task] > most)
			most = team->members[i].left[task];
	return most;
}

/* ---- a member's thread ---- */

/* False: there is no more work. */
static bool wait_for_job(struct mu_team *team, uint64_t done, mu_team_job_fn **fn, void **context)
{
	bool more;

	pthread_mutex_lock(&team->lock);
	while (team->jobs == done && !team->quit)
		pthread_cond_wait(&team->work, &team->lock);
	more = !team->quit;
	*fn = team->fn;
	*context = team->context;
	pthread_mutex_unlock(&team->lock);
	return more;
}

static void end_job(struct mu_team *team, struct member *m, enum mu_status st)
{
	struct mu_trace *trace = st != MU_OK ? mu_trace_detach() : NULL;

	pthread_mutex_lock(&team->lock);
	m->st = st;
	m->trace = trace;
	if (st != MU_OK) {
		team->stopped = true;
		pthread_cond_broadcast(&team->news);
	}
	team->active--;
	pthread_mutex_unlock(&team->lock);
	wake_first(team);
}

static void *run_member(void *argument)
{
	struct member *m = argument;
	struct mu_team *team = m->team;
	mu_team_job_fn *fn;
	void *context;

	for (uint64_t done = 0; wait_for_job(team, done, &fn, &context); done++)
		end_job(team, m, fn(context, m->number));
	return NULL;
}

/* ---- life ---- */

static enum mu_status start_threads(struct mu_team *team)
{
	enum mu_status st = MU_OK;

	for (size_t i = 1; i < team->n; i++) {
		struct member *m = &team->members[i];
		int error = pthread_create(&m->thread, NULL, run_member, m);

		if (error != 0)
			MU_FAIL(MU_ERR_UNSUPPORTED, "no thread for device %zu of %zu: %s", i,
				team->n, strerror(error));
		m->has_thread = true;
	}
out:
	return st;
}

enum mu_status mu_team_new(struct mu_team **out, size_t n, const struct mu_topology *topology)
{
	enum mu_status st = MU_OK;
	struct mu_team *team = NULL;

	*out = NULL;
	MU_TRY(MU_ALLOC(team, 1, "devices' threads"));
	team->topology = topology;
	team->n = n;
	MU_TRY(MU_ALLOC(team->members, n, "devices' threads"));
	for (size_t i = 0; i < n; i++)
		team->members[i] = (struct member){.team = team, .number = i};
	if (pthread_mutex_init(&team->lock, NULL) != 0 ||
	    pthread_cond_init(&team->work, NULL) != 0 || pthread_cond_init(&team->news, NULL) != 0)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the lock of the devices' threads");
	team->made = true;
	MU_TRY(start_threads(team));
	*out = team;
	team = NULL;
out:
	mu_team_free(team);
	return st;
}

void mu_team_free(struct mu_team *team)
{
	if (!team)
		return;
	if (team->made) {
		mu_team_stop(team);
		pthread_mutex_lock(&team->lock);
		team->quit = true;
		pthread_cond_broadcast(&team->work);
		pthread_mutex_unlock(&team->lock);
		for (size_t i = 1; i < team->n; i++)
			if (team->members[i].has_thread)
				pthread_join(team->members[i].thread, NULL);
		pthread_cond_destroy(&team->news);
		pthread_cond_destroy(&team->work);
		pthread_mutex_destroy(&team->lock);
	}
	for (size_t i = 1; team->members && i < team->n; i++)
		mu_free(team->members[i].trace);
	mu_free(team->counters);
	mu_free(team->members);
	mu_free(team);
}

/* ---- jobs ---- */

void mu_team_begin(struct mu_team *team, mu_team_job_fn *fn, void *context)
{
	pthread_mutex_lock(&team->lock);
	team->fn = fn;
	team->context = context;
	team->jobs++;
	team->active = team->n - 1;
	pthread_cond_broadcast(&team->work);
	pthread_mutex_unlock(&team->lock);
}

bool mu_team_ended(struct mu_team *team)
{
	bool ended;

	pthread_mutex_lock(&team->lock);
	ended = team->active == 0;
	pthread_mutex_unlock(&team->lock);
	return ended;
}

enum mu_status mu_team_result(struct mu_team *team)
{
	enum mu_status st = MU_OK;

	pthread_mutex_lock(&team->lock);
	for (size_t i = 1; i < team->n && st == MU_OK; i++) {
		struct member *m = &team->members[i];

		st = m->st;
		mu_trace_attach(m->trace);
		m->trace = NULL;
	}
	pthread_mutex_unlock(&team->lock);
	return st;
}

void mu_team_stop(struct mu_team *team)
{
	pthread_mutex_lock(&team->lock);
	team->stopped = true;
	pthread_cond_broadcast(&team->news);
	pthread_mutex_unlock(&team->lock);
}

bool mu_team_stopped(struct mu_team *team)
{
	bool stopped;

	pthread_mutex_lock(&team->lock);
	stopped = team->stopped;
	pthread_mutex_unlock(&team->lock);
	return stopped;
}

size_t mu_team_tell(struct mu_team *team, size_t member, enum mu_team_task task, size_t left)
{
	size_t before, most;

	pthread_mutex_lock(&team->lock);
	before = most_left(team, task);
	team->members[member].left[task] = left;
	most = most_left(team, task);
	if (most != before)
		pthread_cond_broadcast(&team->news);
	pthread_mutex_unlock(&team->lock);
	if (member > 0 && most != before)
		wake_first(team);
	return most;
}

size_t mu_team_left(struct mu_team *team, enum mu_team_task task)
{
	size_t most;

	pthread_mutex_lock(&team->lock);
	most = most_left(team, task);
	pthread_mutex_unlock(&team->lock);
	return most;
}

bool mu_team_wait(struct mu_team *team, enum mu_team_task task, size_t most)
{
	bool there;

	pthread_mutex_lock(&team->lock);
	while (most_left(team, task) > most && !team->stopped)
		pthread_cond_wait(&team->news, &team->lock);
	there = !team->stopped;
	pthread_mutex_unlock(&team->lock);
	return there;
}

/* ---- counters ---- */

enum mu_status mu_team_counters(struct mu_team *team, size_t n)
{
	team->n_counters = n;
	return MU_ALLOC(team->counters, n, "counters of stages");
}

void mu_team_reset(struct mu_team *team)
{
	pthread_mutex_lock(&team->lock);
	memset(team->counters, 0, team->n_counters * sizeof *team->counters);
	pthread_mutex_unlock(&team->lock);
}

void mu_team_count(struct mu_team *team, size_t member, size_t i)
{
	pthread_mutex_lock(&team->lock);
	team->counters[i]++;
	pthread_cond_broadcast(&team->news);
	pthread_mutex_unlock(&team->lock);
	if (member > 0)
		wake_first(team);
}

size_t mu_team_counted(struct mu_team *team, size_t i)
{
	size_t count;

	pthread_mutex_lock(&team->lock);
	count = team->counters[i];
	pthread_mutex_unlock(&team->lock);
	return count;
}

bool mu_team_await(struct mu_team *team, size_t i, size_t least)
{
	bool there;

	pthread_mutex_lock(&team->lock);
	while (team->counters[i] < least && !team->stopped)
		pthread_cond_wait(&team->news, &team->lock);
	there = !team->stopped;
	pthread_mutex_unlock(&team->lock);
	return there;
}
