/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a run and its plans. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include <muster/input.h>

#include "net/plan.h"
#include "conf/options.h"

struct mu_engine;

/*
 * model.c: the network and its plans. _new opens the devices, builds the network and plans
 * training, without memory. _plan, after the data are opened, plans the short last step and
 * validation, and allocates memory for all plans; they share the flat arrays. Both first estimate
 * the memory that the workers of this node need: MU_ERR_MEMORY with the batch that would fit. Not
 * collective.
 */
enum mu_status mu_engine_model_new(struct mu_engine *e, const struct mu_net_config *model,
				   const struct mu_input_config *data);
enum mu_status mu_engine_model_plan(struct mu_engine *e);

/* Bytes that a rank holds for the length of a run. */
struct engine_memory {
	double weights, gradients, optimizer;
};

/*
 * Of a worker with `copies` of the gradients, and of a server (0 without one). A server end, on a
 * server or in a worker, holds its share of the model, the states of the optimizer, and what
 * mu_kv_memory says. Where workers update they have all states, and the sums.
 */
enum mu_status mu_engine_memory(const struct conf *v, const struct mu_plan *plan,
				const struct mu_members *roles, double copies,
				struct engine_memory *worker, struct engine_memory *server);

/* MU_ERR_USAGE: --time-block cannot cut the sequences of this network. */
enum mu_status mu_engine_check_block(const struct conf *v, const struct mu_net *net);

#endif
