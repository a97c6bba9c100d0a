/* SPDX-License-Identifier: Apache-2.0 */
/* --summary: the layers of a network, and where it is cut. */
#include <muster/base.h>

#include "engine/engine.h"
#include "modes.h"
#include "train/data.h"

enum mu_status mu_train_summary(const struct conf *v, const struct engine_device_list *devices)
{
	enum mu_status st = MU_OK;
	struct mu_net_config model;
	size_t shape[3], batch; /* of the first device */
	const struct mu_network *network;
	const struct mu_engine_ops *ops;
	struct mu_device device = {.ops = NULL};
	struct mu_net *net = NULL;
	struct mu_plan *plan = NULL;

	if (v->global_batch_size)
		MU_FAIL(MU_ERR_USAGE,
			"--summary with --global-batch-size %ld: how many workers share it is not "
			"known here; give --batch-size, of one worker",
			v->global_batch_size);
	batch = (size_t)v->batch_per_device * mu_engine_device_shares(devices);
	if (batch == 0)
		batch = (size_t)v->batch_size;
	MU_TRY(mu_engine_device_list_check(devices, v, batch));
	batch = mu_engine_device_batch(devices, v, batch);
	MU_TRY(mu_network_find(&network, v->network));
	MU_TRY(mu_train_find_shape(v, network, shape));
	model = mu_train_describe_model(v, shape,
					v->num_classes ? (size_t)v->num_classes : network->classes);
	MU_TRY(mu_device_open(&device, devices->kind->name, 1));
	MU_TRY(mu_engine_device_set(&device, v));
	MU_TRY(mu_net_new_from(&net, network, &model));
	MU_TRY(mu_engine_check_block(v, net));
	MU_TRY(mu_plan_new_dry(&plan, net, &device, batch, MU_PHASE_TRAIN, NULL));
	MU_TRY(v->summary == CONF_SUMMARY_DOT ? mu_plan_dot(plan, stdout)
					      : mu_plan_summary(plan, stdout));
	ops = mu_engine_ops_of(devices);
	if (ops->print && v->summary != CONF_SUMMARY_DOT)
		MU_TRY(ops->print(devices, v, plan, stdout));
out:
	mu_plan_free(plan);
	mu_net_free(net);
	mu_device_close(&device);
	return st;
}
