/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy: what a job uses, by counters of its nodes and GPUs. Of each node its first worker reads
 * Cray's counter of the whole node (pm_counters), or else those of Linux's powercap (RAPL:
 * packages, and DRAM where it is counted); each worker those of its GPUs, unless the node's counter
 * has them.
 * Counters are of whole nodes, packages and GPUs: what other jobs use there is in them. A node
 * without workers is not measured. Where no worker has a counter, nothing here does anything.
 *
 * RAPL's counters begin anew after some hundred seconds at full power, so that they are read every
 * 10 s at least, between steps. Sums over the workers are made where those of metrics are.
 */
#ifndef ENGINE_ENERGY_H
#define ENGINE_ENERGY_H

#include <muster/comm.h>
#include <muster/device.h>

enum engine_counter_kind {
	ENGINE_COUNTER_NODE,
	ENGINE_COUNTER_PACKAGE,
	ENGINE_COUNTER_DRAM,
	ENGINE_COUNTER_GPU,
	ENGINE_COUNTER_KINDS
};

/* ---- counters.c: of this rank. Not collective ---- */

struct engine_counter {
	enum engine_counter_kind kind;
	struct mu_device *device; /* of a GPU; else the file below */
	char path[192];
	int fd;       /* of the file, kept open: a step allocates nothing */
	double range; /* J at which it begins anew; 0: it does not */
	double last;  /* J that it showed last */
};

struct engine_counters {
	size_t n;
	struct engine_counter *of;
	char denied[256]; /* why a counter that is there cannot be read; "": none is */
};

/* Those of the node, in the folders of /sys, or of what MUSTER_SYSFS names (for tests). room: for
 * so many more. */
enum mu_status mu_engine_counters_of_node(struct engine_counters *c, size_t room);
/* Has this node a counter of all of it? Any rank may ask. */
bool mu_engine_counters_are_whole(void);
void mu_engine_counters_add_gpu(struct engine_counters *c, struct mu_device *device);
/* J since the last call, or since they were found. A counter that can no longer be read is warned
 * of, and left out from there on. */
double mu_engine_counters_read(struct engine_counters *c);
void mu_engine_counters_close(struct engine_counters *c);

/* ---- energy.c. _open and _sum: collective over workers ---- */

enum engine_energy_span { ENGINE_ENERGY_WINDOW, ENGINE_ENERGY_EPOCH, ENGINE_ENERGY_SPANS };

struct engine_energy {
	bool known;    /* some worker has a counter */
	double job;    /* J of all workers' counters, from the start to the last sum */
	double before; /* worker 0: J of the runs that this one goes on from; set by the caller */
	char of[160];  /* worker 0: "packages, DRAM of 2 of 2 nodes (RAPL), 4 GPUs (NVML)" */
	char not_of[128]; /* what is not measured */
	double began[ENGINE_ENERGY_SPANS];
	double mine, summed; /* J of this worker's counters so far; of these in `job` */
	double polled;       /* time of the last reading */
	struct engine_counters counters;
};

struct mu_engine;

/* Finds the counters; e->devices are open. */
enum mu_status mu_engine_energy_open(struct mu_engine *e);
void mu_engine_energy_close(struct engine_energy *g);
/* Between steps: reads the counters, if the last time was 10 s ago. */
void mu_engine_energy_poll(struct engine_energy *g);
void mu_engine_energy_begin(struct engine_energy *g, enum engine_energy_span span);
/* *joules: of the job since the span began; NAN: not known. Sets g->job. */
enum mu_status mu_engine_energy_sum(struct engine_energy *g, const struct mu_members *m,
				    enum engine_energy_span span, double *joules);
/* J of this worker's counters since the start; J of them that no span counts. */
double mu_engine_energy_read(struct engine_energy *g);
void mu_engine_energy_aside(struct engine_energy *g, double joules);

#endif
