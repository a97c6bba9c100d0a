/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split: a net whose layers lie on several devices of a rank (parallel.h), known to the files about
 * devices only. split.c makes the stages and their plans; split_step.c works through a batch,
 * behind the functions of devices.c and with the same meaning.
 */
#ifndef TRAIN_SPLIT_H
#define TRAIN_SPLIT_H

#include "team.h"
#include "train.h"

/* Of each stage, in the team: see split_step.c. */
enum { TRAIN_STAGE_COUNTERS = 3 };

/* A slot holds one micro-batch from its forward to its backward: a part of the net, by group of the
 * input, all in the memory of the last group's. */
struct train_slot {
	struct train_plans *plans;
};

struct train_stage {
	size_t n_slots;
	struct train_slot *slots;
};

/* The place of a device in its tasks. */
struct train_place {
	size_t task;
	size_t done; /* layers of it */
	bool begun;
};

struct train_split {
	struct mu_stages stages;
	size_t n_micro, micro; /* micro-batches of a full batch, and samples of each */
	struct mu_plan *whole; /* of one of them, on the first device: layers and keys; dry */
	struct train_stage *of;
	struct mu_stage_order *train, *infer;
	float *gradients;     /* the store's */
	float *partial;       /* of one micro-batch, before it is added; NULL with one */
	float *probabilities; /* of the whole batch; NULL with one micro-batch */
	double *losses;       /* of the micro-batches */

	/* While plans are made: what is to be done for every slot of a stage. */
	struct train_stage_work {
		enum mu_status (*fn)(struct train_run *run, size_t stage, size_t slot);
		size_t stage;
	} work;

	/* The present batch. */
	enum mu_phase phase;
	size_t group;
	struct mu_batch batch;
	size_t total, n_now; /* samples, also those that do not count; micro-batches */
	bool under_way;
	struct train_place place; /* of the first device */
	struct mu_waiter waiter;
};

/* split.c */

/* Once the nets are there: stages, and parts for full batches, without memory. */
enum mu_status mu_train_split_open(struct train_run *run, size_t batch);
/* The other parts, of short last steps and for validation; and memory for all. */
enum mu_status mu_train_split_plan(struct train_run *run);
enum mu_status mu_train_split_allocate(struct train_run *run);
void mu_train_split_close(struct train_run *run);
double mu_train_split_arena(const struct train_run *run);
enum mu_status mu_train_split_bind(struct train_run *run);
void mu_train_split_report(const struct train_run *run);
/* For --summary: the stages of a plan of one micro-batch, and what passes between them. */
enum mu_status mu_train_split_print(const struct train_device_list *list,
				    const struct train_options *v, const struct mu_plan *plan,
				    FILE *stream);

/* split_step.c: see devices.c's of the same names. */

float *mu_train_split_begin(struct train_run *run, enum mu_phase phase, size_t group,
			    const struct mu_batch *batch);
void mu_train_split_count(struct train_run *run, size_t count);
enum mu_status mu_train_split_forward(struct train_run *run, size_t l);
enum mu_status mu_train_split_backward(struct train_run *run, size_t *ready);
enum mu_status mu_train_split_leave(struct train_run *run);
double mu_train_split_loss(const struct train_run *run);
void mu_train_split_measure(const struct train_run *run, struct mu_metrics *m);
void mu_train_split_probabilities(const struct train_run *run, float *out);
enum mu_status mu_train_split_overflowed(const struct train_run *run, bool *overflowed);
const char *mu_train_split_find_nonfinite(struct train_run *run);

#endif
