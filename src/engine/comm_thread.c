/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --comm-thread: progress on messages while the training thread computes. Large messages progress
 * only in MPI calls, and a long layer makes none; a thread on a spare core makes them instead.
 *
 * One lock protects MPI and the store. The training thread holds it except while it computes; then
 * the other thread polls the store. So no two MPI calls overlap (MPI_THREAD_SERIALIZED), other code
 * that calls MPI is not affected, and sums keep their order: the bits are the same.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#include "engine/engine.h"

/* Between polls. At 10 Gbit/s 60 kB arrive in this time; the buffers of TCP hold them. */
#define NAP_NANOSECONDS 50000L

struct engine_comm_thread {
	struct mu_kv *kv;
	struct mu_places *places; /* cores to run on: all cores of the process at start */
	pthread_t thread;
	pthread_mutex_t mpi;
	atomic_bool quit, failed;
	enum mu_status st; /* once failed is set */
	struct mu_trace *trace;
};

/* ---- the thread ---- */

static enum mu_status poll_once(struct engine_comm_thread *p)
{
	enum mu_status st;

	if (pthread_mutex_trylock(&p->mpi) != 0) /* the training thread has it, and polls */
		return MU_OK;
	st = mu_kv_poll(p->kv);
	pthread_mutex_unlock(&p->mpi);
	return st;
}

static void *work(void *argument)
{
	struct engine_comm_thread *p = argument;
	const struct timespec nap = {0, NAP_NANOSECONDS};

	mu_places_restore(p->places);
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	while (!atomic_load(&p->quit)) {
		p->st = poll_once(p);
		if (p->st != MU_OK) {
			p->trace = mu_trace_detach();
			atomic_store(&p->failed, true);
			break;
		}
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* ---- the training thread ---- */

enum mu_status mu_engine_comm_thread_check(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (!v->comm_thread)
		goto out;
	if (!mu_comm_serialized())
		MU_FAIL(MU_ERR_USAGE, "--comm-thread 1: this MPI allows calls of the main thread "
				      "only; an MPI with MPI_THREAD_SERIALIZED is needed");
out:
	return st;
}

enum mu_status mu_engine_comm_thread_open(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_comm_thread *p = NULL;

	if (!e->conf->comm_thread)
		goto out;
	MU_TRY(MU_ALLOC(p, 1, "communication thread"));
	p->kv = e->kv;
	p->places = e->places;
	pthread_mutex_init(&p->mpi, NULL);
	pthread_mutex_lock(&p->mpi);
	if (pthread_create(&p->thread, NULL, work, p) != 0) {
		mu_free(p);
		MU_FAIL(MU_ERR_MEMORY, "the system cannot create a thread for --comm-thread 1");
	}
	e->comm_thread = p;
	e->places = NULL;
out:
	return st;
}

void mu_engine_comm_thread_close(struct mu_engine *e)
{
	struct engine_comm_thread *p = e->comm_thread;

	if (p) {
		atomic_store(&p->quit, true);
		pthread_join(p->thread, NULL);
		pthread_mutex_unlock(&p->mpi);
		pthread_mutex_destroy(&p->mpi);
		if (p->trace) {
			mu_trace_attach(p->trace);
			mu_trace_clear();
		}
		mu_free(p);
	}
	mu_free(e->places);
	e->comm_thread = NULL;
}

/* Called once: the caller ends with the error. */
static enum mu_status raise_error(struct engine_comm_thread *p)
{
	enum mu_status st = MU_OK;

	if (!atomic_load(&p->failed))
		goto out;
	st = p->st;
	mu_trace_attach(p->trace);
	p->trace = NULL;
	MU_TRY(st);
out:
	return st;
}

void mu_engine_comm_thread_resume(struct mu_engine *e)
{
	if (e->comm_thread)
		pthread_mutex_unlock(&e->comm_thread->mpi);
}

enum mu_status mu_engine_comm_thread_pause(struct mu_engine *e, enum mu_status st)
{
	if (!e->comm_thread)
		return st;
	mu_clock_start(MU_CLOCK_PUSH); /* a wait for the other thread counts as communication */
	pthread_mutex_lock(&e->comm_thread->mpi);
	mu_clock_stop(MU_CLOCK_PUSH);
	return st == MU_OK ? raise_error(e->comm_thread) : st;
}

enum mu_status mu_engine_forward(struct mu_engine *e, size_t layer)
{
	mu_engine_comm_thread_resume(e);
	return mu_engine_comm_thread_pause(e, e->ops->forward(e, layer));
}

enum mu_status mu_engine_backward(struct mu_engine *e, size_t *ready)
{
	mu_engine_comm_thread_resume(e);
	return mu_engine_comm_thread_pause(e, e->ops->backward(e, ready));
}

enum mu_status mu_engine_poll(struct mu_engine *e)
{
	return e->comm_thread ? raise_error(e->comm_thread) : mu_kv_poll(e->kv);
}

void mu_engine_comm_thread_report(const struct mu_engine *e)
{
	const struct mu_topology *t = &e->members->topology;
	int threads = t->node_num_workers * (e->n_threads + 1);

	if (!e->conf->comm_thread)
		return;
	mu_log_detail("a thread of communication in every worker, beside %d that compute%s",
		      e->n_threads, e->n_threads == 1 ? "s" : "");
	if (threads > t->node_cores)
		mu_log_warn("--comm-thread 1: %d threads of workers share the %d core%s of %s: "
			    "without a core of its own it costs more than it saves",
			    threads, t->node_cores, MU_S(t->node_cores), t->host);
}
