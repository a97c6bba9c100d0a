/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: what the store of a model (kvstore) and the store of keys (keys) have in common: what a
 * name says, ranks that fit it, a communicator, and the agreement on settings.
 */
#ifndef MUSTER_COMM_STORE_H
#define MUSTER_COMM_STORE_H

#include <muster/comm.h>

/* Facts about a store: the rows of stores.def. */
enum mu_store_facts {
	MU_STORE_HAS_SERVERS = 1,      /* some ranks are servers */
	MU_STORE_HOSTED = 2,           /* no server ranks: every worker holds a server end */
	MU_STORE_ONE_WORKER = 4,       /* no messages between ranks */
	MU_STORE_OWN_WEIGHTS = 8,      /* the weights of workers differ */
	MU_STORE_WORKERS_UPDATE = 16,  /* workers get sums of gradients and update the model */
	MU_STORE_SYNCHRONOUS = 32,     /* the gradients of all workers make one update */
	MU_STORE_SUMS_ON_DEVICES = 64, /* the gradients of a rank's devices; else on the CPU */
	MU_STORE_ON_GPUS = 128,        /* the arrays are on GPUs */
};

/* Does a store with these facts fit workers and servers? MU_ERR_USAGE. The same on every rank. */
enum mu_status mu_store_check_ranks(const char *type, unsigned facts, const struct mu_members *m);

/*
 * The communicator of a new store, of keys or of a model: MU_ERR_ARGUMENT on all ranks if they do
 * not make the same kind. Collective over m->comm.
 */
enum mu_status mu_store_comm(const struct mu_members *m, bool keys, MPI_Comm *comm);

/* The settings of a store, each as text: n of them, the same number on every rank. */
enum { MU_SETTING_BYTES = 32, MU_SETTINGS_MAX = 64 };
struct mu_store_settings {
	const char *call; /* for the message */
	size_t n;
	const char *(*name)(size_t i);
	void (*describe)(const void *config, size_t i, char text[MU_SETTING_BYTES]);
};

/*
 * Are they the same on all ranks? Else MU_ERR_ARGUMENT on all, with the first rank that differs
 * from rank 0, and both values. Collective over comm.
 */
enum mu_status mu_store_settings_agree(const struct mu_store_settings *settings, const void *config,
				       const struct mu_members *m, MPI_Comm comm);

#endif
