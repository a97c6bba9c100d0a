/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel: a net on several devices, of one rank or of a team of ranks. The net is cut into
 * stages: runs of consecutive layers (parts of a plan, net.h), each on one device. The samples of a
 * step pass through the stages in micro-batches, so that the devices work concurrently:
 *
 *	stage 0   F0 F1 B0 F2 B1 ...    Fk: forward of micro-batch k, Bk: its backward
 *	stage 1      F0 B0 F1 B1 ...
 *
 * Once the pipeline is filled each stage alternates between one forward and one backward (1F1B;
 * PipeDream: Narayanan et al., 2019, but without its older weights: all micro-batches of a step
 * make one update). Stage s of S holds at most S - s micro-batches at a time, whatever their
 * number, and memory for as many. Gradients are added in the order of the micro-batches, on one
 * device as on several, so the bits do not depend on the stages.
 *
 * Micro-batches can also be time blocks: blocks of the steps of sequences, each with all samples
 * (mu_plan_join). Then a stage runs all forwards in the order of the blocks, then all backwards in
 * reverse order: a wavefront, in which a layer processes a block as soon as it has finished the
 * previous block and the layer before it has finished this one. A stage holds all blocks at a time.
 * Gradients of weights, on which no other stage depends, are computed when a device has nothing
 * else to do (Wk; zero bubble pipeline parallelism: Qi et al., 2023).
 *
 *	stage 0   F0 F1 F2 F3       B3 B2 B1 B0 W3 W2 W1 W0
 *	stage 1      F0 F1 F2 F3 B3 B2 B1 B0 W3 W2 W1 W0
 *
 * Keys, flat arrays and stores do not depend on stages: a cut net has the same checkpoint as the
 * whole net.
 */
#ifndef MUSTER_PARALLEL_H
#define MUSTER_PARALLEL_H

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/plan.h>

MU_BEGIN_C

/* ---- groups of layers and their devices, or ranks of a team ---- */

enum { MU_MAX_GROUPS = 512, MU_MAX_STAGES = 256, MU_PLACE_NAME = 32 };

/* "embed=cpu:0,lstm0-3=cpu:0,lstm4-7=cpu:1,decode=cpu:1", where lstm0-3 means four groups. With
 * ranks: numbers such as 0 and 1 instead of cpu:0 and cpu:1. */
struct mu_group_map {
	const char *option, *kind, *cuts; /* for errors: "group2dev", "device", "model-parallel" */
	size_t n, n_devices;
	struct mu_group_place {
		char name[MU_PLACE_NAME];
		size_t device; /* index of devices[] */
	} of[MU_MAX_GROUPS];
	char devices[MU_MAX_STAGES][MU_PLACE_NAME]; /* or ranks, in the order of their names */
};

/* MU_ERR_USAGE: text that cannot be parsed, a group that is named twice. */
enum mu_status mu_group_map_read(struct mu_group_map *map, const char *text, bool ranks);

/* ---- stages ---- */

struct mu_stage {
	size_t first, n; /* layers of the plan */
	size_t device;
	double size; /* from mu_stages_of_blocks: share of the work; 0: unknown */
};

struct mu_stages {
	size_t n;
	bool blocks; /* micro-batches are time blocks */
	struct mu_stage of[MU_MAX_STAGES];
};

/*
 * Assign layers to stages by their groups. A device may have several stages. MU_ERR_USAGE: a net
 * without groups, a group that the net lacks (the message names the nearest one), a group without a
 * device.
 */
enum mu_status mu_stages_of_groups(struct mu_stages *stages, const struct mu_plan *plan,
				   const struct mu_group_map *map);
/*
 * n stages on devices 0 .. n - 1 such that the largest stage is as small as possible. The size of a
 * layer is 3/4 of its share of the net's multiply-adds plus 1/4 of its share of the parameters.
 * Among equally good cuts, the one that the fewest bytes cross. MU_ERR_USAGE: fewer layers with
 * parameters than stages.
 */
enum mu_status mu_stages_balanced(struct mu_stages *stages, const struct mu_plan *plan, size_t n);
/*
 * For time blocks: as _balanced, or with two stages per device in turn (0 .. n - 1, 0 .. n - 1), so
 * that the second device starts sooner (interleaved stages: Narayanan et al., 2021). Chooses the
 * cut with the shortest simulated step of a few blocks, in the order defined below; a local search
 * that moves two cuts at a time. MU_ERR_USAGE: fewer layers with multiply-adds than n.
 */
enum mu_status mu_stages_of_blocks(struct mu_stages *stages, const struct mu_plan *plan, size_t n);

/* Tensors that pass from stage to stage in a step, and their bytes, forward plus backward. */
struct mu_stage_border {
	size_t from, to, tensors;
	double nbytes;
};
/* *borders: a new array, freed by mu_free. The plan is of one micro-batch; a step has n_micro of
 * them. */
enum mu_status mu_stages_borders(const struct mu_stages *stages, const struct mu_plan *plan,
				 size_t n_micro, struct mu_stage_border **borders, size_t *n);

/* ---- borders between ranks ---- */

/*
 * A passage: messages across a border in one direction, from one rank to another. Every step sends
 * one message per micro-batch, in order, each from its own buffer to its own buffer. The kind of a
 * message defines its length; both ranks know the kinds of each step. Requests are persistent; the
 * receives of a step are started when it begins.
 *
 *	mu_passage_begin(p, kinds, n);      on both ranks, after the last step is complete
 *	... fill mu_passage_buffer(p, k);   the sender
 *	mu_passage_send(p);                 the sender, n times
 *	mu_passage_test(p, &passed);        both: progress; number of messages passed
 *	... read mu_passage_buffer(p, k);   the receiver, for k < passed, until the next step
 */
struct mu_passage;

struct mu_passage_config {
	MPI_Comm comm; /* mu_comm_dup; no other messages between the two ranks use this tag */
	int peer, tag;
	bool sends;
	size_t n_micro, n_kinds;
	const size_t *nbytes; /* of a message of each kind; 0: no message */
};

/* Not collective. */
enum mu_status mu_passage_new(struct mu_passage **out, const struct mu_passage_config *config);
void mu_passage_free(struct mu_passage *p);
/* Begin a step of n micro-batches. kinds is read until the end of the step. */
enum mu_status mu_passage_begin(struct mu_passage *p, const size_t *kinds, size_t n);
void *mu_passage_buffer(const struct mu_passage *p, size_t micro);
/* Send the buffer of the next micro-batch. */
enum mu_status mu_passage_send(struct mu_passage *p);
/* *passed: messages of this step that have arrived, or whose buffer is free again. */
enum mu_status mu_passage_test(struct mu_passage *p, size_t *passed);

/* ---- the order of the work ---- */

enum mu_stage_work {
	MU_STAGE_FORWARD,
	MU_STAGE_BACKWARD,
	MU_STAGE_WEIGHTS, /* time blocks only: gradients of weights that backward deferred */
	MU_STAGE_WORKS
};

struct mu_stage_task {
	size_t stage;
	size_t micro; /* for blocks, except in forward, counted from the last one */
	enum mu_stage_work work;
};

/* Order of the tasks of each device. All devices' orders come from one simulation, so there is no
 * deadlock. */
struct mu_stage_order {
	size_t n_devices;
	size_t *first;               /* n_devices + 1 of them */
	struct mu_stage_task *tasks; /* device d: first[d] .. first[d + 1] */
	double time; /* simulated time of a step, by the sizes of stages; unknown sizes: 1 */
};

/* Micro-batches that a stage holds at a time, of n_micro. */
size_t mu_stage_slots(const struct mu_stages *stages, size_t stage, size_t n_micro);
/* train: with backward. Micro-batch k uses slot k % mu_stage_slots of a stage. */
enum mu_status mu_stage_order_new(struct mu_stage_order **out, const struct mu_stages *stages,
				  size_t n_devices, size_t n_micro, bool train);
void mu_stage_order_free(struct mu_stage_order *schedule);

MU_END_C

#endif
