/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a run and its plans. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include <muster/input.h>
#include <muster/net.h>

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

/* MU_ERR_USAGE: --time-block cannot cut the sequences of this network. */
enum mu_status mu_engine_check_block(const struct conf *v, const struct mu_net *net);

#endif
