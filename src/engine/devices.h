/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a rank and their work on a batch. */
#ifndef ENGINE_DEVICES_H
#define ENGINE_DEVICES_H

#include <muster/comm.h>
#include <muster/input.h>
#include <muster/metrics.h>
#include <muster/net.h>

#include "device_list.h"

struct mu_engine;
struct mu_team;

/* ---- shared.c: the devices of this rank ---- */

/*
 * A device works on its part of each of the worker's batches, on a thread of its own; the first one
 * on the thread that calls, which alone calls MPI. All read the store's weights. The first device's
 * gradients are the store's array; those of the others are added to it in the order of the devices
 * (device_sum.c), so the bits depend on the devices and nothing else.
 */
struct engine_device {
	size_t number; /* in the list */
	struct mu_device device;
	size_t batch; /* its part of a full batch */
	/*
	 * By group of the input (see input.h), in the memory of the last group's first: of a full
	 * batch; of its part of the short last step, NULL if that is none or all; for validation.
	 */
	struct engine_plans {
		struct mu_plan *full, *tail, *infer;
	} * plans;
	float *gradients;    /* flat array */
	struct mu_plan *now; /* of the present batch; NULL: it has no samples */
	size_t first, n;     /* its samples of the worker's */
	size_t unsummed;     /* backward: layers that it has not summed yet */
};

struct engine_devices {
	struct engine_device_list list;
	struct engine_device *of; /* list.n of them */
	struct mu_team *team;     /* their threads, NULL for one device */
	struct mu_places *places; /* cores of the calling thread before */
	uint8_t *bytes;           /* samples of a later batch as bytes; NULL for one device */
	float *samples;           /* a worker's batch, for the devices to take from; NULL for one */
	size_t sample;            /* elements of each of the present batch */
	size_t *homes;            /* of every key: the device that sums it; NULL for one */
	size_t layer, left; /* backward: layers that the first device has not begun, not done */
	struct mu_waiter waiter; /* for the other devices, in backward */
};

/* Make the threads, and open the devices for batches of this many samples. Not collective. */
enum mu_status mu_engine_devices_open(struct mu_engine *e, size_t batch);
void mu_engine_devices_close(struct mu_engine *e);
/* Call fn for every device, on its own thread, all at the same time. */
typedef enum mu_status engine_device_fn(struct mu_engine *e, struct engine_device *d);
enum mu_status mu_engine_devices_run(struct mu_engine *e, engine_device_fn *fn);
/* Their threads, for work of the calling one's between jobs. */
void mu_engine_devices_share(struct mu_engine *e, struct mu_share *share);
/* Bytes of all the devices' activations. */
double mu_engine_devices_arena(const struct mu_engine *e);
/* Teams of ranks: the ways of what passes between them. Collective over workers. */
enum mu_status mu_engine_devices_link(struct mu_engine *e);
/* A number that is equal on two workers if their devices lay out alike what they share. */
uint64_t mu_engine_devices_hash(const struct mu_engine *e);
/* Set the flat arrays, once the store is there. */
enum mu_status mu_engine_devices_bind(struct mu_engine *e);

/*
 * A batch. _begin deals batch->count samples of a group out, at least 1, and says where the caller
 * puts them before _forward; batch->labels and batch->ids are filled by then too.
 *
 * _forward for every layer in turn, once its weights are there: the first device works on it, and
 * the others may; after the last layer all have ended, and loss and metrics are there. _backward,
 * with *ready the number of layers at first, until *ready is 0: the gradients of layers from *ready
 * on are in the store's array, summed over the devices. What waits for other devices lets the
 * store's messages move on.
 */
float *mu_engine_devices_begin(struct mu_engine *e, enum mu_phase phase, size_t group,
			       const struct mu_batch *batch);
/* Only the first so many samples of the batch count. Before _forward. */
void mu_engine_devices_count(struct mu_engine *e, size_t count);
enum mu_status mu_engine_devices_forward(struct mu_engine *e, size_t l);
enum mu_status mu_engine_devices_backward(struct mu_engine *e, size_t *ready);
double mu_engine_devices_loss(const struct mu_engine *e);
void mu_engine_devices_measure(const struct mu_engine *e, struct mu_metrics *m);
/* Of the batch's samples, in their order: (samples, classes). */
size_t mu_engine_devices_classes(const struct mu_engine *e);
void mu_engine_devices_probabilities(const struct mu_engine *e, float *out);
/* After _backward of a batch with a loss scale: as mu_plan_overflowed, of all devices. */
enum mu_status mu_engine_devices_overflowed(const struct mu_engine *e, bool *overflowed);
/* Instead of _backward: the batch is left out. */
enum mu_status mu_engine_devices_skip(struct mu_engine *e);
/* As mu_plan_find_nonfinite; after _forward, and _leave. */
const char *mu_engine_devices_find_nonfinite(struct mu_engine *e);

/* ---- deal.c ---- */

/*
 * For a later batch of the training, while this one is under way, on devices with memory of their
 * own (_send_ahead): _room says where samples are put, _send begins to bring them to the devices,
 * with labels and ids of batch. mu_engine_devices_begin, with the same count, finds them there.
 */
bool mu_engine_devices_send_ahead(const struct mu_engine *e);
void mu_engine_devices_room(const struct mu_engine *e, size_t group, size_t count,
			    struct mu_input_batch *samples);
enum mu_status mu_engine_devices_send(const struct mu_engine *e, size_t group,
				      const struct mu_batch *batch, bool as_bytes);
/* Of several devices one takes its samples, if they were not sent. */
void mu_engine_devices_copy_samples(const struct mu_engine *e, const struct engine_device *d);

/* For stages/plan.c: the devices' way to say which of them has failed, and to wait for the others,
 * while messages move on with poll. */
enum mu_status mu_engine_device_named(const struct mu_engine *e, const struct engine_device *d,
				      enum mu_status st);
enum mu_status mu_engine_devices_join(struct mu_engine *e, bool poll);

/*
 * device_sum.c, for shared.c. Choose each key's home: the first device, or with on_devices the one
 * that has the least to sum so far, the largest keys first.
 */
enum mu_status mu_engine_homes(struct mu_engine *e, bool on_devices);
bool mu_engine_is_home(const struct mu_engine *e, size_t device);
/* Sum the keys whose home is d, of the layers from d->unsummed down to `to`. */
void mu_engine_sum_layers(struct mu_engine *e, struct engine_device *d, size_t to);

#endif
