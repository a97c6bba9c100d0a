/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a worker, and the part of its batch that each has. */
#ifndef ENGINE_DEVICE_LIST_H
#define ENGINE_DEVICE_LIST_H

#include <muster/parallel.h>

#include "device/op.h"
#include "conf/options.h"

/* ---- device_list.c: --devices, --gpus and --work-load-list ---- */

enum { TRAIN_MAX_DEVICES = 256 };

/* The devices of every worker, in their order. */
struct engine_device_list {
	size_t n;
	const struct mu_device_ops *kind; /* of all */
	int indices[TRAIN_MAX_DEVICES];   /* 1 in "cpu:1" */
	size_t ends[TRAIN_MAX_DEVICES];   /* sums of the loads up to each, its own included */
	bool unequal;                     /* the loads are not all the same */
	bool split; /* the devices have layers, not samples */
	size_t ranks; /* of a team, each with these devices: teams.c */
	bool automatic; /* --gpus auto: one device, whose index depends on the worker */
};

/* MU_ERR_USAGE: lists that cannot be read, or do not match. */
enum mu_status mu_engine_device_list_read(struct engine_device_list *list, const struct conf *v);
/* --gpus auto: assign the GPUs of a node to its workers in turn. If there are none, opening the
 * device reports why. */
void mu_engine_device_list_place(struct engine_device_list *list, int node_worker);
/*
 * Of `count` samples of a worker, device i has [first(i), first(i + 1)). first(i) is
 * count W(i) / W(n), rounded down, where W(i) is the sum of the loads of the devices before it.
 */
size_t mu_engine_device_first(const struct engine_device_list *list, size_t i, size_t count);
/* MU_ERR_USAGE: a device has no sample of a full batch, or micro-batches do not divide a batch. */
enum mu_status mu_engine_device_list_check(const struct engine_device_list *list,
					   const struct conf *v, size_t batch);
/* Devices that share a worker's samples. */
size_t mu_engine_device_shares(const struct engine_device_list *list);
/* Samples of each device in a worker's batch, into text: "16", or "12,4"; returns text. */
const char *mu_engine_device_batches(const struct engine_device_list *list, size_t batch,
				     char *text, size_t nbytes);
/* Samples in the plan of the first device. */
size_t mu_engine_device_batch(const struct engine_device_list *list, const struct conf *v,
			      size_t batch);
/* The stages of a network, for a split list. The number of a stage's device is rank * list->n +
 * device. */
enum mu_status mu_engine_device_stages(const struct engine_device_list *list, const struct conf *v,
				       const struct mu_plan *plan, struct mu_stages *stages);
/* Apply --conv-algo, --attention-algo, --allow-tf32, --dtype and --dtype-fallback to an open
 * device. */
enum mu_status mu_engine_device_set(struct mu_device *device, const struct conf *v);
/* "cpu:1" into text; returns text. */
const char *mu_engine_device_name(const struct engine_device_list *list, size_t i, char *text,
				  size_t nbytes);

#endif
