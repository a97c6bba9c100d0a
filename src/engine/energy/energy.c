/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of a job: sums over its workers, and what is in them. See energy.h. */
#include "energy.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

#include "device/op.h"
#include "engine/engine.h"

#define POLL_SECONDS 10.0

/* What workers count, summed over them. */
struct found {
	long nodes[ENGINE_COUNTER_KINDS]; /* nodes with such counters; of GPUs their number */
	long dark_gpus;                   /* without a counter */
	long any;                         /* workers with a counter */
};

/* A GPU that several workers share is counted by the first. */
struct seen {
	int node;
	char gpu[32];
};

static bool is_first(const struct seen *all, size_t mine)
{
	for (size_t i = 0; i < mine; i++)
		if (all[i].node == all[mine].node && strcmp(all[i].gpu, all[mine].gpu) == 0)
			return false;
	return true;
}

/* The GPUs of all workers, most of a worker each. */
static enum mu_status add_gpus(struct mu_engine *e, long most, struct found *found)
{
	enum mu_status st = MU_OK;
	struct engine_energy *g = &e->energy;
	struct seen *mine = NULL, *all = NULL;
	const size_t room = (size_t)most;
	int n = 0;

	MU_TRY(mu_peers_agree(e->members, MU_ALLOC(mine, room, "GPUs of a worker")));
	for (size_t i = 0; i < e->devices.list.n; i++) {
		struct mu_device *d = &e->devices.of[i].device;

		mine[i].node = e->members->topology.my_node;
		if (d->ops->energy)
			d->ops->identify(d, mine[i].gpu, sizeof mine[i].gpu);
	}
	MU_TRY(mu_peers_gather(e->members, mine, room * sizeof *mine, (void **)&all, &n));
	if (mu_engine_counters_are_whole())
		goto out;
	for (size_t i = 0; i < e->devices.list.n; i++) {
		struct mu_device *d = &e->devices.of[i].device;
		const size_t before = g->counters.n;

		if (!d->ops->energy || !is_first(all, (size_t)e->members->index * room + i))
			continue;
		if (*mine[i].gpu)
			mu_engine_counters_add_gpu(&g->counters, d);
		if (g->counters.n > before)
			found->nodes[ENGINE_COUNTER_GPU]++;
		else
			found->dark_gpus++;
	}
out:
	mu_free(mine);
	mu_free(all);
	return st;
}

static size_t put(char *text, size_t nbytes, size_t n, const char *what)
{
	return n < nbytes ? n + (size_t)snprintf(text + n, nbytes - n, "%s%s", n ? ", " : "", what)
			  : n;
}

/* "packages, DRAM of 2 of 2 nodes (RAPL), 4 GPUs (NVML)". */
static void describe(struct engine_energy *g, const struct found *f, int nodes)
{
	const long whole = f->nodes[ENGINE_COUNTER_NODE], rapl = f->nodes[ENGINE_COUNTER_PACKAGE],
		   dram = f->nodes[ENGINE_COUNTER_DRAM], gpus = f->nodes[ENGINE_COUNTER_GPU];
	char part[64];
	size_t n = 0, m = 0;

	if (whole > 0) {
		snprintf(part, sizeof part, "%ld of %d nodes (pm_counters)", whole, nodes);
		n = put(g->of, sizeof g->of, n, part);
	}
	if (rapl > 0) {
		snprintf(part, sizeof part, "packages%s of %ld of %d nodes (RAPL)",
			 dram == rapl ? ", DRAM" : "", rapl, nodes);
		n = put(g->of, sizeof g->of, n, part);
	}
	if (gpus > 0) {
		snprintf(part, sizeof part, "%ld GPU%s (NVML)", gpus, MU_S(gpus));
		put(g->of, sizeof g->of, n, part);
	}
	if (whole + rapl < nodes)
		m = put(g->not_of, sizeof g->not_of, m,
			whole + rapl > 0 ? "the other nodes" : "CPUs");
	if (rapl > 0 && dram < rapl)
		m = put(g->not_of, sizeof g->not_of, m, "DRAM");
	if (f->dark_gpus > 0)
		m = put(g->not_of, sizeof g->not_of, m, gpus > 0 ? "the other GPUs" : "GPUs");
	put(g->not_of, sizeof g->not_of, m, "fans, disks, network");
}

enum mu_status mu_engine_energy_open(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_energy *g = &e->energy;
	const struct mu_members *m = e->members;
	struct found found = {.any = 0};
	long most = (long)e->devices.list.n;

	if (m->topology.node_worker == 0)
		st = mu_engine_counters_of_node(&g->counters, e->devices.list.n);
	else
		st = MU_ALLOC(g->counters.of, e->devices.list.n, "counters of energy");
	MU_TRY(mu_peers_agree(m, st));
	for (size_t i = 0; i < g->counters.n; i++)
		found.nodes[g->counters.of[i].kind] = 1;
	MU_TRY(mu_peers_reduce(m, &most, 1, MPI_MAX));
	MU_TRY(add_gpus(e, most, &found));
	found.any = g->counters.n > 0;
	MU_TRY(mu_peers_reduce(m, (long *)&found, sizeof found / sizeof(long), MPI_SUM));
	g->known = found.any > 0;
	describe(g, &found, m->topology.num_nodes);
	if (*g->counters.denied && mu_members_lead(m) && m->generation == 0)
		mu_log_info("energy: %s: it is not counted (an administrator can let users read "
			    "it)",
			    g->counters.denied);
	g->polled = mu_now();
out:
	return st;
}

void mu_engine_energy_close(struct engine_energy *g)
{
	mu_engine_counters_close(&g->counters);
}

static void look(struct engine_energy *g)
{
	g->mine += mu_engine_counters_read(&g->counters);
	g->polled = mu_now();
}

void mu_engine_energy_poll(struct engine_energy *g)
{
	if (g->known && mu_now() - g->polled >= POLL_SECONDS)
		look(g);
}

void mu_engine_energy_begin(struct engine_energy *g, enum engine_energy_span span)
{
	if (!g->known)
		return;
	look(g);
	g->began[span] = g->mine;
}

enum mu_status mu_engine_energy_sum(struct engine_energy *g, const struct mu_members *m,
				    enum engine_energy_span span, double *joules)
{
	enum mu_status st = MU_OK;
	double sums[2];

	*joules = NAN;
	if (!g->known)
		goto out;
	look(g);
	sums[0] = g->mine - g->summed;
	sums[1] = g->mine - g->began[span];
	g->summed = g->mine;
	MU_TRY(mu_peers_sum(m, sums, 2));
	g->job += sums[0];
	*joules = sums[1];
out:
	return st;
}

double mu_engine_energy_read(struct engine_energy *g)
{
	if (g->known)
		look(g);
	return g->mine;
}

void mu_engine_energy_aside(struct engine_energy *g, double joules)
{
	for (int i = 0; i < ENGINE_ENERGY_SPANS; i++)
		g->began[i] += joules;
}
