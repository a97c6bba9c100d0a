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

/* What set-up hands over is not the engine's to free: the first block. */
struct mu_engine {
	const struct conf *conf;
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

#endif
