/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: the devices of a rank and the plans of a network on them. It computes the loss and the
 * gradients of a batch; the training loop and the store use the gradients.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <muster/comm.h>
#include <muster/input.h>
#include <muster/kvstore.h>

#include "net/plan.h"
#include "comm_thread.h"
#include "conv_table.h"
#include "devices.h"
#include "engine/energy/energy.h"
#include "engine/stages/teams.h"
#include "gpus.h"
#include "model.h"

struct mu_engine;

/*
 * An engine computes on one device (one.c), on devices that share the samples of a batch
 * (shared.c), or on stages of layers (stages/staged.c). In the order of a run:
 */
struct mu_engine_ops {
	/* Plans for full batches, without memory; open sets e->plan. open_others may be NULL. */
	enum mu_status (*open)(struct mu_engine *e, size_t batch);
	enum mu_status (*open_others)(struct mu_engine *e);
	/* Plans for short last steps and validation; memory for all plans. */
	enum mu_status (*plan)(struct mu_engine *e);
	enum mu_status (*allocate)(struct mu_engine *e);
	void (*close)(struct mu_engine *e);
	/* Bytes of activations: of all plans; of plans for full batches. */
	double (*arena)(const struct mu_engine *e);
	double (*activations)(const struct mu_engine *e);
	/* Equal on two workers if messages between their devices have equal lengths; NULL: 0. */
	uint64_t (*hash)(const struct mu_engine *e);
	enum mu_status (*bind)(struct mu_engine *e); /* bind plans to the store's flat arrays */

	/*
	 * A batch. begin divides batch->count samples of a group, at least 1, among the devices,
	 * and returns the array that the caller fills with them before forward; batch->labels and
	 * batch->ids must be filled, too. count: only the first `count` samples count.
	 *
	 * forward is called for every layer in order, once its weights are there; after the last
	 * layer loss and metrics are available. backward is called until *ready is 0; *ready is the
	 * number of layers at first. The gradients of layers from *ready on are in the store's
	 * array, summed over the devices. Waits for other devices make progress on the store's
	 * messages.
	 */
	float *(*begin)(struct mu_engine *e, enum mu_phase phase, size_t group,
			const struct mu_batch *batch);
	void (*count)(struct mu_engine *e, size_t count);
	enum mu_status (*forward)(struct mu_engine *e, size_t l);
	enum mu_status (*backward)(struct mu_engine *e, size_t *ready);

	double (*loss)(const struct mu_engine *e);
	void (*measure)(const struct mu_engine *e, struct mu_metrics *m);
	/* Of the samples of the batch, in order: (samples, classes, space...). */
	enum mu_status (*probabilities)(const struct mu_engine *e, float *out);
	/* The same of each label, in order: (samples, labels). Not of blocks of steps. */
	void (*predictions)(const struct mu_engine *e, struct mu_prediction *out);
	/* After backward of a batch with a loss scale: as mu_plan_overflowed, of all devices. */
	enum mu_status (*overflowed)(const struct mu_engine *e, bool *overflowed);
	/* After forward: submit all of backward, then wait for forward's results. NULL: not
	 * supported. */
	enum mu_status (*backward_begin)(struct mu_engine *e);
	/* Instead of backward: skip the batch. NULL: nothing to do. */
	enum mu_status (*skip)(struct mu_engine *e);
	/* As mu_plan_find_nonfinite; after forward and skip. */
	const char *(*find_nonfinite)(struct mu_engine *e);

	void (*describe)(const struct mu_engine *e); /* lines of the log */
	/* The stages of a plan, as --summary prints them; NULL: there are none. */
	enum mu_status (*print)(const struct engine_device_list *list, const struct conf *v,
				const struct mu_plan *plan, FILE *stream);
	bool shares_batch; /* devices have samples each: later batches can be sent to them */
};
extern const struct mu_engine_ops mu_engine_one, mu_engine_shared, mu_engine_staged;
/* model.c: the engine of these devices. */
const struct mu_engine_ops *mu_engine_ops_of(const struct engine_device_list *list);

/* The first block is set by the caller, who also frees it. */
struct mu_engine {
	const struct mu_engine_ops *ops; /* from mu_engine_model_new on */
	const struct conf *conf;
	const struct engine_device_list *list; /* of the options */
	const struct mu_members *members;
	const struct mu_kv_type *store;
	const struct mu_network *network;
	uint64_t network_bytes;          /* hash of a user's network's file; 0: one of the table */
	const struct mu_input *train;    /* number and shape of the samples of a step */
	const struct mu_input *validate; /* NULL: no validation */
	size_t steps;                    /* batches of a worker per epoch */
	struct mu_kv *kv;                /* set by the caller before ops->bind */

	int n_threads;
	struct mu_places *places; /* --comm-thread: cores of this process before it was pinned */
	struct engine_team team;
	struct engine_devices devices;
	struct engine_conv *conv;
	struct engine_staged *split; /* NULL: every device has all layers */
	struct mu_net **nets;        /* by group of the input, n_groups of them */
	size_t n_groups;             /* 1 without groups */
	struct mu_net *block_net;    /* of --time-block: a network of that many steps; else NULL */
	struct mu_net *net;          /* the last of nets */
	struct mu_plan
		*plan; /* of the first device and a full batch: layers and keys of all plans */
	struct engine_energy energy;
	struct mu_tally *tally; /* of a validation, while it counts; NULL: none is needed */
	bool early_backward; /* submitted before the loss is known; set by gpus.c */
	struct engine_comm_thread *comm_thread; /* NULL without --comm-thread */
	char without_nccl
		[512]; /* why MPI sums between GPUs; empty: NCCL does, or options say MPI */
};

/* Not collective. */
void mu_engine_close(struct mu_engine *e);
/* Teams of ranks: open the messages between their ranks. Collective over workers. */
enum mu_status mu_engine_link(struct mu_engine *e);
/* Equal on two workers if their devices have the same layout of shared arrays. */
uint64_t mu_engine_hash(const struct mu_engine *e);
/* Classes of a prediction. */
size_t mu_engine_classes(const struct mu_engine *e);
/* Steps of an update: --update-period, but an epoch ends one; and updates of an epoch. */
size_t mu_engine_update_period(const struct mu_engine *e);
size_t mu_engine_updates(const struct mu_engine *e);
enum mu_status mu_engine_skip(struct mu_engine *e);
/* After forward, before loss and measure: nothing, without early_backward. */
enum mu_status mu_engine_backward_begin(struct mu_engine *e);

/*
 * deal.c. While a training batch is in progress, a later one can be sent to devices with their own
 * memory (_sends_ahead): _room sets the arrays for the samples, _send begins to copy them to the
 * devices, with the labels and ids of batch. A later begin with the same count uses them.
 */
bool mu_engine_sends_ahead(const struct mu_engine *e);
void mu_engine_room(const struct mu_engine *e, size_t group, size_t count,
		    struct mu_input_batch *samples);
enum mu_status mu_engine_send(const struct mu_engine *e, size_t group, const struct mu_batch *batch,
			      bool as_bytes);

#endif
