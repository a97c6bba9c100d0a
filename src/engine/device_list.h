/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a worker has, and which part of its batch each gets. */
#ifndef ENGINE_DEVICE_LIST_H
#define ENGINE_DEVICE_LIST_H

#include <muster/device.h>
#include <muster/parallel.h>

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
	bool split; /* the devices have the layers of one batch, instead of samples each */
	size_t ranks; /* that have such devices each, in a team: teams.c */
	bool automatic; /* --gpus auto: one device, whose index depends on the worker */
};

/* MU_ERR_USAGE for what cannot be. */
enum mu_status mu_engine_device_list_read(struct engine_device_list *list, const struct conf *v);
/* --gpus auto: workers of a node take its GPUs in turn. Where there are none opening says why. */
void mu_engine_device_list_place(struct engine_device_list *list, int node_worker);
/*
 * Of `count` samples of a worker, device i has those from first(i) up to, not including,
 * first(i + 1): with W(i) the loads of the devices before it, first(i) is count W(i) / W(n),
 * rounded down.
 */
size_t mu_engine_device_first(const struct engine_device_list *list, size_t i, size_t count);
/* MU_ERR_USAGE if a device has none of a whole batch, or a batch cannot be cut into micro-batches.
 */
enum mu_status mu_engine_device_list_check(const struct engine_device_list *list,
					   const struct conf *v, size_t batch);
/* Devices that a worker's samples are dealt to. */
size_t mu_engine_device_shares(const struct engine_device_list *list);
/* A worker's batch as its devices share it, into text: "16", or "12,4"; returns text. */
const char *mu_engine_device_batches(const struct engine_device_list *list, size_t batch,
				     char *text, size_t nbytes);
/* Samples that are in the plan of the first device. */
size_t mu_engine_device_batch(const struct engine_device_list *list, const struct conf *v,
			      size_t batch);
/* The stages of a network, for a split list: "devices" of them are ranks' times list->n and their
 * own numbers. */
enum mu_status mu_engine_device_stages(const struct engine_device_list *list, const struct conf *v,
				       const struct mu_plan *plan, struct mu_stages *stages);
/* --conv-algo, --dtype and --dtype-fallback, on an open device. */
enum mu_status mu_engine_device_set(struct mu_device *device, const struct conf *v);
/* "cpu:1" into text; returns text. */
const char *mu_engine_device_name(const struct engine_device_list *list, size_t i, char *text,
				  size_t nbytes);

#endif
