/* SPDX-License-Identifier: Apache-2.0 */
/* Cores: number of threads of a rank, and the cores that they run on. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cores.h"

enum mu_status mu_cores_mine(struct cores *mine)
{
	enum mu_status st = MU_OK;

	memset(mine, 0, sizeof *mine);
	if (sched_getaffinity(0, sizeof *mine, (cpu_set_t *)(void *)mine) != 0)
		MU_FAIL(MU_ERR_UNSUPPORTED, "sched_getaffinity: %s", strerror(errno));
out:
	return st;
}

enum mu_status mu_cores_bind(const struct cores *mine)
{
	enum mu_status st = MU_OK;

	if (sched_setaffinity(0, sizeof *mine, (const cpu_set_t *)(const void *)mine) != 0)
		MU_FAIL(MU_ERR_UNSUPPORTED, "sched_setaffinity: %s", strerror(errno));
out:
	return st;
}

int mu_cores_count(const struct cores *c)
{
	int n = 0;

	for (int i = 0; i < CORES_LONGS; i++)
		n += __builtin_popcountl((unsigned long)c->bits[i]);
	return n;
}

enum mu_status mu_cores_union(struct cores *c, MPI_Comm comm)
{
	return mu_allreduce_long(c->bits, CORES_LONGS, MPI_BOR, comm);
}

struct cores mu_cores_run(const struct cores *c, int skip, int n)
{
	struct cores run = {{0}};

	for (int i = 0; i < CORES_MAX && n > 0; i++) {
		unsigned long bit = 1UL << (i % 64);

		if (!((unsigned long)c->bits[i / 64] & bit))
			continue;
		if (skip > 0) {
			skip--;
		} else {
			run.bits[i / 64] |= (long)bit;
			n--;
		}
	}
	return run;
}

/* An environment variable as a number (the first one of a list); 0 if it is not set. */
static enum mu_status environment_number(const char *name, int *n)
{
	enum mu_status st = MU_OK;
	const char *text = getenv(name);
	char *end = NULL;
	long value;

	*n = 0;
	if (!text || !*text)
		goto out;
	value = strtol(text, &end, 10);
	if (end == text || (*end != '\0' && *end != ',') || value < 1 || value > CORES_MAX)
		MU_FAIL(MU_ERR_USAGE, "%s is '%s': a number from 1 to %d is needed", name, text,
			CORES_MAX);
	*n = (int)value;
out:
	return st;
}

/* OMP_THREAD_LIMIT: the most threads that OpenMP runs. A value that is not a number has no effect
 * on OpenMP either. */
static int limited(int n)
{
	const char *text = getenv("OMP_THREAD_LIMIT");
	char *end = NULL;
	const long limit = text ? strtol(text, &end, 10) : 0;

	return end && end > text && *end == '\0' && limit > 0 && limit < n ? (int)limit : n;
}

/* asked and promised: 0 if not set. */
struct wishes {
	int asked, promised, spare;
};

static int choose_threads(const struct mu_members *m, const struct cores *mine,
			  const struct wishes *w)
{
	const struct mu_topology *t = &m->topology;
	int n;

	if (m->role != MU_ROLE_WORKER)
		return 1;
	if (w->asked > 0)
		return limited(w->asked);
	n = t->bound ? mu_cores_count(mine) : t->node_cores / t->node_num_workers;
	if (!t->bound && w->promised > 0 && w->promised < n)
		n = w->promised;
	n -= w->spare;
	return n > 1 ? limited(n) : 1;
}

/*
 * OpenMP binds the main thread when it is loaded (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY), to
 * the first of its places: one core of those that this process may use. Declared here, and weak,
 * since a build without oneDNN has no OpenMP.
 */
int omp_get_num_places(void) __attribute__((weak));
int omp_get_place_num_procs(int place) __attribute__((weak));
void omp_get_place_proc_ids(int place, int *ids) __attribute__((weak));

void mu_place_unbind(void)
{
	struct cores all = {{0}};
	int ids[CORES_MAX];

	if (!omp_get_num_places || !omp_get_place_num_procs || !omp_get_place_proc_ids)
		return;
	for (int p = 0; p < omp_get_num_places(); p++) {
		const int n = omp_get_place_num_procs(p);

		if (n > CORES_MAX)
			return;
		omp_get_place_proc_ids(p, ids);
		for (int i = 0; i < n; i++)
			if (ids[i] >= 0 && ids[i] < CORES_MAX)
				all.bits[ids[i] / 64] |= (long)(1UL << (ids[i] % 64));
	}
	if (mu_cores_count(&all) > 0 && mu_cores_bind(&all) != MU_OK)
		mu_trace_clear(); /* fewer threads than there could be */
}

/*
 * Workers are pinned only if together they fill the node. If cores are left free on purpose,
 * another job that also leaves cores free may run there, and both would be pinned to the same
 * cores.
 */
enum mu_status mu_members_place(const struct mu_members *m, int spare_cores, int *n_threads)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = &m->topology;
	struct cores mine;
	struct cores all;
	long wish[2]; /* most threads of a worker of this node; has the launcher bound a rank? */
	long n_free;  /* cores without a thread of a worker */
	struct wishes w = {.spare = spare_cores};

	*n_threads = 1;
	st = environment_number("OMP_NUM_THREADS", &w.asked);
	if (st == MU_OK)
		st = environment_number("SLURM_CPUS_PER_TASK", &w.promised);
	if (st == MU_OK)
		st = mu_cores_mine(&mine);
	MU_TRY(mu_agree(st, t->node)); /* the environment may be wrong on one rank only */
	*n_threads = choose_threads(m, &mine, &w);
	all = mine;
	wish[0] = m->role == MU_ROLE_WORKER ? *n_threads : 0;
	wish[1] = t->bound;
	MU_TRY(mu_cores_union(&all, t->node));
	MU_TRY(mu_allreduce_long(wish, 2, MPI_MAX, t->node));
	n_free = mu_cores_count(&all) - (wish[0] + spare_cores) * t->node_num_workers;
	if (m->role == MU_ROLE_WORKER && !wish[1] && n_free >= 0 && n_free < t->node_num_workers) {
		struct cores run = mu_cores_run(&all, (int)wish[0] * t->node_worker, (int)wish[0]);

		MU_TRY(mu_cores_bind(&run));
	}
out:
	return st;
}

enum mu_status mu_place_group(int g, int n_groups, int n_threads, int *mine)
{
	enum mu_status st = MU_OK;
	int first = n_threads * g / n_groups, next = n_threads * (g + 1) / n_groups;
	struct cores all, own;

	*mine = next > first ? next - first : 1;
	MU_TRY(mu_cores_mine(&all));
	if (n_threads < n_groups || mu_cores_count(&all) != n_threads)
		goto out;
	own = mu_cores_run(&all, first, *mine);
	MU_TRY(mu_cores_bind(&own));
out:
	return st;
}

struct mu_places {
	struct cores cores;
};

enum mu_status mu_places_save(struct mu_places **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, 1, "cores of a thread"));
	MU_TRY(mu_cores_mine(&(*out)->cores));
out:
	return st;
}

void mu_places_restore(struct mu_places *places)
{
	if (places && mu_cores_bind(&places->cores) != MU_OK)
		mu_trace_clear(); /* the cores were allowed before: ignore the error */
	mu_free(places);
}
