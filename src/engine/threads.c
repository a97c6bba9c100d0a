/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a rank's devices. */
#include "threads.h"

#include <pthread.h>
#include <string.h>

struct member {
	struct engine_threads *t;
	size_t number;
	pthread_t thread;
	bool has_thread;
	enum mu_status st; /* of its last job */
	struct mu_trace *trace;
	size_t left[ENGINE_TASKS];
};

struct engine_threads {
	const struct mu_members *job;
	size_t n;
	struct member *members;
	pthread_mutex_t lock;
	pthread_cond_t work; /* a job has begun, or quit is set */
	pthread_cond_t news; /* left or a counter has changed, or stopped is set */
	bool made;           /* the three above exist */
	engine_threads_job_fn *fn;
	void *context;
	uint64_t jobs; /* begun so far */
	size_t active; /* threads that have not ended the job */
	size_t *counters, n_counters;
	bool stopped, quit;
};

/* Member 0 may nap. */
static void wake_first(const struct engine_threads *t)
{
	mu_wake(t->job, t->job->rank);
}

/* The caller has the lock. */
static size_t most_left(const struct engine_threads *t, enum engine_threads_task task)
{
	size_t most = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->members[i].left[task] > most)
			most = t->members[i].left[task];
	return most;
}

/* ---- a member's thread ---- */

/* False: quit. */
static bool wait_for_job(struct engine_threads *t, uint64_t done, engine_threads_job_fn **fn,
			 void **context)
{
	bool more;

	pthread_mutex_lock(&t->lock);
	while (t->jobs == done && !t->quit)
		pthread_cond_wait(&t->work, &t->lock);
	more = !t->quit;
	*fn = t->fn;
	*context = t->context;
	pthread_mutex_unlock(&t->lock);
	return more;
}

static void end_job(struct engine_threads *t, struct member *m, enum mu_status st)
{
	struct mu_trace *trace = st != MU_OK ? mu_trace_detach() : NULL;

	pthread_mutex_lock(&t->lock);
	m->st = st;
	m->trace = trace;
	if (st != MU_OK) {
		t->stopped = true;
		pthread_cond_broadcast(&t->news);
	}
	t->active--;
	pthread_mutex_unlock(&t->lock);
	wake_first(t);
}

static void *run_member(void *argument)
{
	struct member *m = argument;
	struct engine_threads *t = m->t;
	engine_threads_job_fn *fn;
	void *context;

	for (uint64_t done = 0; wait_for_job(t, done, &fn, &context); done++)
		end_job(t, m, fn(context, m->number));
	return NULL;
}

/* ---- life ---- */

static enum mu_status start_threads(struct engine_threads *t)
{
	enum mu_status st = MU_OK;

	for (size_t i = 1; i < t->n; i++) {
		struct member *m = &t->members[i];
		int error = pthread_create(&m->thread, NULL, run_member, m);

		if (error != 0)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"cannot create the thread of device %zu of %zu: %s", i, t->n,
				strerror(error));
		m->has_thread = true;
	}
out:
	return st;
}

enum mu_status mu_engine_threads_new(struct engine_threads **out, size_t n,
				     const struct mu_members *m)
{
	enum mu_status st = MU_OK;
	struct engine_threads *t = NULL;

	*out = NULL;
	MU_TRY(MU_ALLOC(t, 1, "devices' threads"));
	t->job = m;
	t->n = n;
	MU_TRY(MU_ALLOC(t->members, n, "devices' threads"));
	for (size_t i = 0; i < n; i++)
		t->members[i] = (struct member){.t = t, .number = i};
	if (pthread_mutex_init(&t->lock, NULL) != 0 || pthread_cond_init(&t->work, NULL) != 0 ||
	    pthread_cond_init(&t->news, NULL) != 0)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the lock of the devices' threads");
	t->made = true;
	MU_TRY(start_threads(t));
	*out = t;
	t = NULL;
out:
	mu_engine_threads_free(t);
	return st;
}

void mu_engine_threads_free(struct engine_threads *t)
{
	if (!t)
		return;
	if (t->made) {
		mu_engine_threads_stop(t);
		pthread_mutex_lock(&t->lock);
		t->quit = true;
		pthread_cond_broadcast(&t->work);
		pthread_mutex_unlock(&t->lock);
		for (size_t i = 1; i < t->n; i++)
			if (t->members[i].has_thread)
				pthread_join(t->members[i].thread, NULL);
		pthread_cond_destroy(&t->news);
		pthread_cond_destroy(&t->work);
		pthread_mutex_destroy(&t->lock);
	}
	for (size_t i = 1; t->members && i < t->n; i++)
		mu_free(t->members[i].trace);
	mu_free(t->counters);
	mu_free(t->members);
	mu_free(t);
}

/* ---- jobs ---- */

void mu_engine_threads_begin(struct engine_threads *t, engine_threads_job_fn *fn, void *context)
{
	pthread_mutex_lock(&t->lock);
	t->fn = fn;
	t->context = context;
	t->jobs++;
	t->active = t->n - 1;
	pthread_cond_broadcast(&t->work);
	pthread_mutex_unlock(&t->lock);
}

bool mu_engine_threads_ended(struct engine_threads *t)
{
	bool ended;

	pthread_mutex_lock(&t->lock);
	ended = t->active == 0;
	pthread_mutex_unlock(&t->lock);
	return ended;
}

enum mu_status mu_engine_threads_result(struct engine_threads *t)
{
	enum mu_status st = MU_OK;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 1; i < t->n && st == MU_OK; i++) {
		struct member *m = &t->members[i];

		st = m->st;
		mu_trace_attach(m->trace);
		m->trace = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	return st;
}

void mu_engine_threads_stop(struct engine_threads *t)
{
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
}

bool mu_engine_threads_stopped(struct engine_threads *t)
{
	bool stopped;

	pthread_mutex_lock(&t->lock);
	stopped = t->stopped;
	pthread_mutex_unlock(&t->lock);
	return stopped;
}

size_t mu_engine_threads_set_left(struct engine_threads *t, size_t member,
				  enum engine_threads_task task, size_t left)
{
	size_t before, most;

	pthread_mutex_lock(&t->lock);
	before = most_left(t, task);
	t->members[member].left[task] = left;
	most = most_left(t, task);
	if (most != before)
		pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
	if (member > 0 && most != before)
		wake_first(t);
	return most;
}

size_t mu_engine_threads_left(struct engine_threads *t, enum engine_threads_task task)
{
	size_t most;

	pthread_mutex_lock(&t->lock);
	most = most_left(t, task);
	pthread_mutex_unlock(&t->lock);
	return most;
}

bool mu_engine_threads_wait_left(struct engine_threads *t, enum engine_threads_task task,
				 size_t most)
{
	bool there;

	pthread_mutex_lock(&t->lock);
	while (most_left(t, task) > most && !t->stopped)
		pthread_cond_wait(&t->news, &t->lock);
	there = !t->stopped;
	pthread_mutex_unlock(&t->lock);
	return there;
}

/* ---- counters ---- */

enum mu_status mu_engine_threads_counters(struct engine_threads *t, size_t n)
{
	t->n_counters = n;
	return MU_ALLOC(t->counters, n, "counters of stages");
}

void mu_engine_threads_reset(struct engine_threads *t)
{
	pthread_mutex_lock(&t->lock);
	memset(t->counters, 0, t->n_counters * sizeof *t->counters);
	pthread_mutex_unlock(&t->lock);
}

void mu_engine_threads_increment(struct engine_threads *t, size_t member, size_t i)
{
	pthread_mutex_lock(&t->lock);
	t->counters[i]++;
	pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
	if (member > 0)
		wake_first(t);
}

size_t mu_engine_threads_count(struct engine_threads *t, size_t i)
{
	size_t count;

	pthread_mutex_lock(&t->lock);
	count = t->counters[i];
	pthread_mutex_unlock(&t->lock);
	return count;
}

bool mu_engine_threads_wait_count(struct engine_threads *t, size_t i, size_t least)
{
	bool there;

	pthread_mutex_lock(&t->lock);
	while (t->counters[i] < least && !t->stopped)
		pthread_cond_wait(&t->news, &t->lock);
	there = !t->stopped;
	pthread_mutex_unlock(&t->lock);
	return there;
}
