/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a run and its plans. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include <muster/input.h>
#include <muster/net.h>

#include "conf/options.h"

struct mu_engine;

/*
 * model.c: the network and its plans. _new: the devices, the network and its plans for training,
 * without memory. _plan, once the data are open: also the plans of this worker's part of the last
 * step and for validation, all on the same flat arrays; then they get memory. Both estimate what
 * the workers of this node need before it is allocated: MU_ERR_MEMORY with the batch that would
 * fit. Not collective.
 */
enum mu_status mu_engine_model_new(struct mu_engine *e, const struct mu_net_config *model,
				   const struct mu_input_config *data);
enum mu_status mu_engine_model_plan(struct mu_engine *e);

/* Can --time-block cut this net's sequences? */
enum mu_status mu_engine_check_block(const struct conf *v, const struct mu_net *net);

#endif
