/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network whose layers are on several devices, of a rank or of a team of ranks (parallel.h).
 * plan.c: the stages and their plans. staged.c: the engine. batch.c: the micro-batches of a batch.
 * results.c: loss, metrics, probabilities. ranks.c: messages between ranks.
 *
 * With --time-block a micro-batch is a block of steps of all samples. One network of that many
 * steps computes sequences of all lengths: missing steps of the last block and missing samples of a
 * short last batch are filled with 0, and their labels with the ignored label.
 *
 * All ranks of a team have the plans of all stages, which define the messages, but memory only for
 * their own stages.
 */
#ifndef ENGINE_STAGED_H
#define ENGINE_STAGED_H

#include "engine/threads.h"
#include "engine/accumulate.h"
#include "engine/engine.h"

/* Counters of each stage (threads.h): forwards, backwards, and layers of the last micro-batch with
 * complete gradients. */
enum { ENGINE_FORWARDS, ENGINE_BACKWARDS, ENGINE_LAYERS, ENGINE_STAGE_COUNTERS };

/* Between two stages values pass in one direction, gradients in the other. */
enum { ENGINE_VALUES, ENGINE_GRADIENTS, ENGINE_WAYS };

struct engine_border {
	size_t from, to; /* stages */
	struct engine_way {
		struct mu_passage *passage; /* NULL: not between two ranks, or not of this rank */
		bool sends;
		int peer;             /* number of the other worker */
		size_t begun, passed; /* micro-batches of the current batch */
	} ways[ENGINE_WAYS];
};

/* A slot holds one micro-batch from its forward to its backward. Its plans, by group of the input
 * (one group with time blocks), share the memory of the last group's. */
struct engine_slot {
	struct engine_plans *plans;
};

struct engine_stage {
	size_t n_slots;
	struct engine_slot *slots;
};

/* The position of a device in its tasks. */
struct engine_place {
	size_t task;
	size_t done; /* layers of the task */
	bool begun;
};

struct engine_staged {
	struct mu_stages stages;
	size_t n_micro, micro; /* micro-batches of a full batch, and samples of each */
	size_t steps;          /* of a block; 0: a micro-batch has whole samples */
	size_t n_groups;       /* of plans */
	struct engine_border *borders;
	size_t n_borders;
	MPI_Comm comm;         /* of the workers, for borders; MPI_COMM_NULL: no teams */
	struct mu_plan *whole; /* all layers of a micro-batch, without memory: layers and keys */
	struct engine_stage *of;
	struct mu_stage_order *train, *infer;
	float *gradients;     /* the store's */
	float *partial;       /* of one micro-batch, before it is added; NULL if there is one */
	float *probabilities; /* of the batch, in inference; NULL: of one plan, or blocks */
	struct mu_prediction *predictions; /* with --predict, of sequences; NULL: not kept */
	float *labels;        /* of blocks: (n_micro, micro, steps) */
	double *losses;       /* of the micro-batches */
	struct mu_metrics *measured; /* the same */

	/* While plans are made: the function to call for every slot of a stage. */
	struct engine_stage_work {
		enum mu_status (*fn)(struct mu_engine *e, size_t stage, size_t slot);
		size_t stage;
	} work;

	/* The current batch. */
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

/* After the networks are built: stages, and plans of full batches, without memory. */
enum mu_status mu_engine_staged_open(struct mu_engine *e, size_t batch);
/* Plans of short last steps and for validation; memory for all plans. */
enum mu_status mu_engine_staged_plan(struct mu_engine *e);
enum mu_status mu_engine_staged_allocate(struct mu_engine *e);
void mu_engine_staged_close(struct mu_engine *e);
double mu_engine_staged_arena(const struct mu_engine *e);
enum mu_status mu_engine_staged_bind(struct mu_engine *e);
void mu_engine_staged_report(const struct mu_engine *e);
/* For --summary: print the stages of a plan of one micro-batch, and their borders. */
enum mu_status mu_engine_staged_print(const struct engine_device_list *list, const struct conf *v,
				      const struct mu_plan *plan, FILE *stream);

/* The rank of the team that has the stage; is it this rank? */
size_t mu_engine_staged_member(const struct mu_engine *e, size_t stage);
bool mu_engine_staged_is_here(const struct mu_engine *e, size_t stage);

/* ranks.c: for teams only; otherwise nothing happens. _open: collective over workers. */

enum mu_status mu_engine_borders_open(struct mu_engine *e);
void mu_engine_borders_close(struct mu_engine *e);
/* Equal on two ranks if the messages have equal lengths on both. */
uint64_t mu_engine_borders_hash(const struct mu_engine *e);
/* The counter of the messages that have arrived across a border in one direction. */
size_t mu_engine_border_counter(const struct mu_engine *e, size_t border, int way);
/* A batch: begin; make progress, on the thread that calls MPI; have all messages left? _awaited:
 * the ranks that this rank waits for. */
enum mu_status mu_engine_borders_begin(struct mu_engine *e);
enum mu_status mu_engine_borders_move(struct mu_engine *e);
bool mu_engine_borders_have_left(const struct mu_engine *e);
mu_awaited_fn mu_engine_borders_awaited; /* context: the engine */
/* Of forward or backward number k of a stage: unpack its messages before it, pack after it. */
enum mu_status mu_engine_borders_receive(struct mu_engine *e, size_t stage, size_t k, int way);
enum mu_status mu_engine_borders_send(struct mu_engine *e, size_t stage, size_t k, int way);

/* batch.c: the current batch. */

struct mu_plan *mu_engine_staged_plan_of(const struct engine_staged *s, size_t stage, size_t k);
/* The micro-batch of backward number i. */
size_t mu_engine_staged_micro(const struct engine_staged *s, size_t i);
enum mu_status mu_engine_staged_begin_forward(struct mu_engine *e, size_t stage, size_t k);
/* Keep the results of a micro-batch, on the last stage. */
enum mu_status mu_engine_staged_keep(struct mu_engine *e, size_t k);

/* staged.c */

size_t mu_engine_staged_counter(size_t stage, int which);

/* results.c: slots of struct mu_engine_ops. Ranks without the last stage have no loss, and measure
 * nothing. */

double mu_engine_staged_loss(const struct mu_engine *e);
void mu_engine_staged_measure(const struct mu_engine *e, struct mu_metrics *m);
enum mu_status mu_engine_staged_probabilities(const struct mu_engine *e, float *out);
void mu_engine_staged_predictions(const struct mu_engine *e, struct mu_prediction *out);
enum mu_status mu_engine_staged_overflowed(const struct mu_engine *e, bool *overflowed);
const char *mu_engine_staged_find_nonfinite(struct mu_engine *e);

#endif
