/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split: a net whose layers lie on several devices, of a rank or of a team of ranks (parallel.h),
 * known to the files about devices only. plan.c makes the stages and their plans; staged.c
 * works through a batch, behind the functions of shared.c and with the same meaning;
 * batch.c gives each micro-batch its part of it; results.c tells what came of it;
 * ranks.c moves what passes between ranks.
 *
 * With --time-block a micro-batch is a block of the steps of all samples. One net, of so many
 * steps, serves sequences of all lengths: steps that a last block has too many, and samples that a
 * short last batch lacks, are filled with 0, their labels with the one that is ignored.
 *
 * All ranks of a team have the plans of all stages, but memory for their own only: the others' say
 * what passes the borders.
 */
#ifndef TRAIN_SPLIT_H
#define TRAIN_SPLIT_H

#include "engine/threads.h"
#include "engine/accumulate.h"
#include "engine/engine.h"

/* Counters of each stage among the threads of a rank (threads.h): its forwards and backwards, and
 * layers of the last micro-batch's whose gradients are made. */
enum { TRAIN_FORWARDS, TRAIN_BACKWARDS, TRAIN_LAYERS, TRAIN_STAGE_COUNTERS };

/* What passes between two stages: values one way, gradients the other. */
enum { TRAIN_VALUES, TRAIN_GRADIENTS, TRAIN_WAYS };

struct engine_border {
	size_t from, to; /* stages */
	struct engine_way {
		struct mu_passage *passage; /* NULL: not between this rank and another */
		bool sends;
		int peer;             /* its number among the workers */
		size_t begun, passed; /* micro-batches of the present batch */
	} ways[TRAIN_WAYS];
};

/* A slot holds one micro-batch from its forward to its backward: a part of the net, by group of the
 * input (of blocks: one), all in the memory of the last group's. */
struct engine_slot {
	struct engine_plans *plans;
};

struct engine_stage {
	size_t n_slots;
	struct engine_slot *slots;
};

/* The place of a device in its tasks. */
struct engine_place {
	size_t task;
	size_t done; /* layers of it */
	bool begun;
};

struct engine_staged {
	struct mu_stages stages;
	size_t n_micro, micro; /* micro-batches of a full batch, and samples of each */
	size_t steps;          /* of a block; 0: a micro-batch has whole samples */
	size_t n_groups;       /* of plans */
	struct engine_border *borders;
	size_t n_borders;
	MPI_Comm comm;         /* of the workers, for what passes; MPI_COMM_NULL: no teams */
	struct mu_plan *whole; /* of one of them, on the first device: layers and keys; dry */
	struct engine_stage *of;
	struct mu_stage_order *train, *infer;
	float *gradients;      /* the store's */
	float *partial;        /* of one micro-batch, before it is added; NULL with one */
	float *probabilities;  /* of the whole batch; NULL with one micro-batch, and with blocks */
	float *labels;         /* of blocks: (n_micro, micro, steps) */
	const float **outputs; /* of blocks: the probabilities of each */
	double *losses;        /* of the micro-batches */

	/* While plans are made: what is to be done for every slot of a stage. */
	struct engine_stage_work {
		enum mu_status (*fn)(struct mu_engine *e, size_t stage, size_t slot);
		size_t stage;
	} work;

	/* The present batch. */
	enum mu_phase phase;
	size_t group;
	struct mu_batch batch;
	size_t total, n_now; /* samples, also those that do not count; micro-batches */
	size_t *kinds;       /* of messages of each micro-batch: see ranks.c */
	bool under_way;
	struct engine_place place; /* of the first device */
	struct mu_waiter waiter;
};

/* plan.c */

/* Once the nets are there: stages, and parts for full batches, without memory. */
enum mu_status mu_engine_staged_open(struct mu_engine *e, size_t batch);
/* The other parts, of short last steps and for validation; and memory for all. */
enum mu_status mu_engine_staged_plan(struct mu_engine *e);
enum mu_status mu_engine_staged_allocate(struct mu_engine *e);
void mu_engine_staged_close(struct mu_engine *e);
double mu_engine_staged_arena(const struct mu_engine *e);
enum mu_status mu_engine_staged_bind(struct mu_engine *e);
void mu_engine_staged_report(const struct mu_engine *e);
/* For --summary: the stages of a plan of one micro-batch, and what passes between them. */
enum mu_status mu_engine_staged_print(const struct engine_device_list *list, const struct conf *v,
				      const struct mu_plan *plan, FILE *stream);

/* The rank of a team that a stage is on; is it this one? */
size_t mu_engine_staged_member(const struct mu_engine *e, size_t stage);
bool mu_engine_staged_is_here(const struct mu_engine *e, size_t stage);

/* ranks.c: nothing is done without teams. _open: collective over workers. */

enum mu_status mu_engine_borders_open(struct mu_engine *e);
void mu_engine_borders_close(struct mu_engine *e);
/* A number that is equal on two ranks if what passes is as long on both. */
uint64_t mu_engine_borders_hash(const struct mu_engine *e);
/* The number of a border's counter, of what has come one way. */
size_t mu_engine_border_counter(const struct mu_engine *e, size_t border, int way);
/* A batch: begin; let messages move on, in the thread that calls MPI; has all that is to leave
 * done so? What a rank waits for here. */
enum mu_status mu_engine_borders_begin(struct mu_engine *e);
enum mu_status mu_engine_borders_move(struct mu_engine *e);
bool mu_engine_borders_have_left(const struct mu_engine *e);
mu_awaited_fn mu_engine_borders_awaited; /* the context is the run */
/* Beside forward or backward number k: take what has come for it, or give what is to leave. */
enum mu_status mu_engine_borders_receive(struct mu_engine *e, size_t stage, size_t k, int way);
enum mu_status mu_engine_borders_send(struct mu_engine *e, size_t stage, size_t k, int way);

/* batch.c: of the present batch. */

struct mu_plan *mu_engine_staged_plan_of(const struct engine_staged *s, size_t stage, size_t k);
/* The micro-batch that backward number i is of. */
size_t mu_engine_staged_micro(const struct engine_staged *s, size_t i);
enum mu_status mu_engine_staged_begin_forward(struct mu_engine *e, size_t stage, size_t k);
/* What came of it, from the last stage. */
void mu_engine_staged_keep(struct mu_engine *e, size_t k);

/* staged.c: see shared.c's of the same names. */

size_t mu_engine_staged_counter(size_t stage, int which);

/* results.c: the same. Ranks of a team without the last stage have no loss, and measure
 * nothing. */

double mu_engine_staged_loss(const struct mu_engine *e);
void mu_engine_staged_measure(const struct mu_engine *e, struct mu_metrics *m);
void mu_engine_staged_probabilities(const struct mu_engine *e, float *out);
enum mu_status mu_engine_staged_overflowed(const struct mu_engine *e, bool *overflowed);
const char *mu_engine_staged_find_nonfinite(struct mu_engine *e);

#endif
