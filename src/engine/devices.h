/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a rank and their work on a batch. */
#ifndef ENGINE_DEVICES_H
#define ENGINE_DEVICES_H

#include <muster/comm.h>
#include <muster/input.h>
#include <muster/metrics.h>

#include "net/plan.h"
#include "device_list.h"

struct mu_engine;
struct engine_threads;

/* ---- devices.c: the devices of this rank ---- */

/*
 * Each device processes its part of a worker's batch on its own thread; the first device on the
 * calling thread, the only one that calls MPI. All read the store's weights. The first device's
 * gradients are the store's array; the gradients of the others are added to it in the order of the
 * devices (device_sum.c), so the bits depend only on the devices.
 */
struct engine_device {
	size_t number; /* in the list */
	struct mu_device device;
	size_t batch; /* its part of a full batch */
	/*
	 * By group of the input (see input.h); all use the memory of the last group's `full`.
	 * full: of a full batch. tail: of the device's part of the short last step, NULL if it is
	 * empty or equal to a full batch. infer: for validation.
	 */
	struct engine_plans {
		struct mu_plan *full, *tail, *infer;
	} * plans;
	float *gradients;    /* flat array */
	struct mu_plan *now; /* of the current batch; NULL: the device has no samples */
	size_t first, n;     /* its samples of the worker's batch */
	size_t unsummed;     /* backward: layers not summed yet */
};

struct engine_devices {
	struct engine_device_list list;
	struct engine_device *of;       /* list.n of them */
	struct engine_threads *threads; /* their threads, NULL for one device */
	struct mu_places *places;       /* cores of the calling thread before it was pinned */
	uint8_t *bytes;                 /* a worker's later batch as bytes; NULL for one device */
	float *samples;          /* a worker's batch, which devices copy from; NULL for one */
	size_t sample;           /* elements of a sample of the current batch */
	size_t *homes;           /* by key: the device that sums it; NULL for one device */
	size_t layer, left;      /* backward: layers of the first device not begun; not done */
	struct mu_waiter waiter; /* for the other devices, in backward */
};

/* "cpu: oneDNN 2.6.3, 2 threads, bfloat16" into text; returns text. */
const char *mu_engine_device_text(const struct mu_device *device, char *text, size_t nbytes);
/* Start the threads, and open the devices for batches of `batch` samples. Not collective. */
enum mu_status mu_engine_devices_open(struct mu_engine *e, size_t batch);
void mu_engine_devices_close(struct mu_engine *e);
/* Call fn for every device, each on its own thread, in parallel. */
typedef enum mu_status engine_device_fn(struct mu_engine *e, struct engine_device *d);
enum mu_status mu_engine_devices_run(struct mu_engine *e, engine_device_fn *fn);
/* Set *share to run work of the calling thread on their threads, between jobs. */
void mu_engine_devices_share(struct mu_engine *e, struct mu_share *share);
/* Add the device's name to the message of an error; wait until the other devices have ended their
 * job. poll: make progress on messages. */
enum mu_status mu_engine_device_named(const struct mu_engine *e, const struct engine_device *d,
				      enum mu_status st);
enum mu_status mu_engine_devices_join(struct mu_engine *e, bool poll);

/*
 * device_sum.c, for shared.c. Choose each key's home: the first device; with on_devices, largest
 * keys first, the device with the fewest elements so far.
 */
enum mu_status mu_engine_homes(struct mu_engine *e, bool on_devices);
bool mu_engine_is_home(const struct mu_engine *e, size_t device);
/* Sum the keys whose home is d, of the layers from d->unsummed down to `to`. */
void mu_engine_sum_layers(struct mu_engine *e, struct engine_device *d, size_t to);

#endif
