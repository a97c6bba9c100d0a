/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a run and its plans. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include <muster/input.h>
#include <muster/net.h>

#include "conf/options.h"

struct train_run;

/*
 * model.c: the network and its plans. _new: the devices, the network and its plans for training,
 * without memory. _plan, once the data are open: also the plans of this worker's part of the last
 * step and for validation, all on the same flat arrays; then they get memory. Both estimate what
 * the workers of this node need before it is allocated: MU_ERR_MEMORY with the batch that would
 * fit. Not collective.
 */
enum mu_status mu_engine_model_new(struct train_run *run, const struct mu_net_config *model,
				   const struct mu_input_config *data);
enum mu_status mu_engine_model_plan(struct train_run *run);

/* The shape of a sample, as --image-shape says or usual for the network; and the network. */
enum mu_status mu_train_find_shape(const struct conf *v, const struct mu_network *network,
				   size_t *shape);
/* Can --time-block cut this net's sequences? */
enum mu_status mu_engine_check_block(const struct conf *v, const struct mu_net *net);
struct mu_net_config mu_train_describe_model(const struct conf *v, const size_t *shape,
					     size_t classes);

#endif
