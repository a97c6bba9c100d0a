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

/* ---- devices.c: the devices of this rank ---- */

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

/* "cpu: oneDNN 2.6.3, 2 threads, bfloat16" into text; returns text. */
const char *mu_engine_device_text(const struct mu_device *device, char *text, size_t nbytes);
/* Make the threads, and open the devices for batches of this many samples. Not collective. */
enum mu_status mu_engine_devices_open(struct mu_engine *e, size_t batch);
void mu_engine_devices_close(struct mu_engine *e);
/* Call fn for every device, on its own thread, all at the same time. */
typedef enum mu_status engine_device_fn(struct mu_engine *e, struct engine_device *d);
enum mu_status mu_engine_devices_run(struct mu_engine *e, engine_device_fn *fn);
/* Their threads, for work of the calling one's between jobs. */
void mu_engine_devices_share(struct mu_engine *e, struct mu_share *share);
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
