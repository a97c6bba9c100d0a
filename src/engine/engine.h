/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: the devices of a rank and the plans of a network on them. It makes of a batch a loss and
 * gradients; what becomes of gradients is the training loop's and the store's.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <muster/comm.h>
#include <muster/device.h>
#include <muster/input.h>
#include <muster/kvstore.h>
#include <muster/net.h>

#include "comm_thread.h"
#include "conv_table.h"
#include "devices.h"
#include "engine/stages/teams.h"
#include "gpus.h"
#include "model.h"

struct mu_engine;

/*
 * Where a batch becomes gradients: on one device (one.c), on devices that share its samples
 * (shared.c), or on stages of layers (stages/staged.c). In the order of a run:
 */
struct mu_engine_ops {
	/* Plans for full batches without memory; e->plan is set. open_others may be NULL. */
	enum mu_status (*open)(struct mu_engine *e, size_t batch);
	enum mu_status (*open_others)(struct mu_engine *e);
	/* The plans of short last steps and of validation; memory for all. */
	enum mu_status (*plan)(struct mu_engine *e);
	enum mu_status (*allocate)(struct mu_engine *e);
	void (*close)(struct mu_engine *e);
	/* Bytes of activations: of all plans, and of those for full batches. */
	double (*arena)(const struct mu_engine *e);
	double (*activations)(const struct mu_engine *e);
	/* Equal on two workers if what passes between devices has the same length; NULL: 0. */
	uint64_t (*hash)(const struct mu_engine *e);
	enum mu_status (*bind)(struct mu_engine *e); /* set the flat arrays of the store */

	/*
	 * A batch. begin deals batch->count samples of a group, at least 1, and returns where the
	 * caller puts them before forward; batch->labels and batch->ids are filled by then.
	 * count: only the first so many samples count.
	 *
	 * forward, for every layer in turn once its weights are there: after the last layer loss
	 * and metrics are there. backward, with *ready the number of layers at first, until *ready
	 * is 0: the gradients of layers from *ready on are in the store's array, summed over the
	 * devices. Waits for other devices let the store's messages move on.
	 */
	float *(*begin)(struct mu_engine *e, enum mu_phase phase, size_t group,
			const struct mu_batch *batch);
	void (*count)(struct mu_engine *e, size_t count);
	enum mu_status (*forward)(struct mu_engine *e, size_t l);
	enum mu_status (*backward)(struct mu_engine *e, size_t *ready);

	double (*loss)(const struct mu_engine *e);
	void (*measure)(const struct mu_engine *e, struct mu_metrics *m);
	/* Of the batch's samples, in their order: (samples, classes). */
	void (*probabilities)(const struct mu_engine *e, float *out);
	/* After backward of a batch with a loss scale: as mu_plan_overflowed, of all devices. */
	enum mu_status (*overflowed)(const struct mu_engine *e, bool *overflowed);
	/* Instead of backward: the batch is skipped. NULL: nothing to do. */
	enum mu_status (*skip)(struct mu_engine *e);
	/* As mu_plan_find_nonfinite; after forward and skip. */
	const char *(*find_nonfinite)(struct mu_engine *e);

	void (*describe)(const struct mu_engine *e); /* lines of the log */
	bool shares_batch; /* devices have samples each: batches can go to them ahead */
};
extern const struct mu_engine_ops mu_engine_one, mu_engine_shared, mu_engine_staged;

/* What set-up hands over is not the engine's to free: the first block. */
struct mu_engine {
	const struct mu_engine_ops *ops; /* from mu_engine_model_new on */
	const struct conf *conf;
	const struct engine_device_list *list; /* as the options name them */
	const struct mu_topology *topology;
	const struct mu_kv_type *store;
	const struct mu_network *network;
	const struct mu_input *train;    /* the samples of a step: how many, of which shape */
	const struct mu_input *validate; /* NULL: there is no validation */
	size_t steps;                    /* batches of a worker per epoch */
	struct mu_kv *kv;                /* from mu_engine_devices_bind on */

	int n_threads;
	struct mu_places *places; /* --comm-thread: cores of this process before it was pinned */
	struct engine_team team;
	struct engine_devices devices;
	struct engine_conv *conv;
	struct engine_staged *split; /* NULL: every device has all layers */
	struct mu_net **nets;        /* by group of the input, n_groups of them */
	size_t n_groups;             /* 1 without groups */
	struct mu_net *block_net;    /* of --time-block: of so many steps; else NULL */
	struct mu_net *net;          /* the last of nets */
	struct mu_plan *plan; /* its first device's of a full batch: layers and keys of all */
	struct engine_comm_thread *comm_thread; /* NULL without --comm-thread */
	char without_nccl[512]; /* why sums between GPUs go by MPI; empty: they do not, or shall */
};

/* Frees what the engine made. Not collective. */
void mu_engine_close(struct mu_engine *e);
/* Teams of ranks: the ways of what passes between them. Collective over workers. */
enum mu_status mu_engine_link(struct mu_engine *e);
/* Equal on two workers if their devices lay out alike what they share. */
uint64_t mu_engine_hash(const struct mu_engine *e);
/* Classes of a prediction. */
size_t mu_engine_classes(const struct mu_engine *e);
enum mu_status mu_engine_skip(struct mu_engine *e);

/*
 * deal.c. For a later batch of the training, while this one is under way, on devices with memory of
 * their own (_sends_ahead): _room says where samples are put, _send begins to bring them to the
 * devices, with labels and ids of batch. begin, with the same count, finds them there.
 */
bool mu_engine_sends_ahead(const struct mu_engine *e);
void mu_engine_room(const struct mu_engine *e, size_t group, size_t count,
		    struct mu_input_batch *samples);
enum mu_status mu_engine_send(const struct mu_engine *e, size_t group, const struct mu_batch *batch,
			      bool as_bytes);

#endif
