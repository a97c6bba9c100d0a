/* SPDX-License-Identifier: Apache-2.0 */
/* --summary: the layers of a network, where it is cut, and what a rank holds of it. */
#include <muster/base.h>
#include <muster/comm.h>

#include "conf/conf.h"
#include "conf/text.h"
#include "engine/engine.h"
#include "modes.h"
#include "train/data.h"

/* ---- memory of a rank ---- */

static void print_rank(const char *role, int n, const struct engine_memory *m, double activations)
{
	if (n > 0)
		printf("%d %s%-*s %10.1f %10.1f %10.1f %12.1f %10.1f\n", n, role, n > 1 ? 12 : 13,
		       n > 1 ? "s" : "", m->weights / 1e6, m->gradients / 1e6, m->optimizer / 1e6,
		       activations / 1e6,
		       (m->weights + m->gradients + m->optimizer + activations) / 1e6);
}

static enum mu_status print_memory(const struct conf *v, const struct mu_members *roles,
				   const struct mu_plan *plan, size_t n_devices)
{
	enum mu_status st = MU_OK;
	const double activations = (double)mu_plan_arena_bytes(plan) * (double)n_devices;
	struct engine_memory worker, server;

	MU_TRY(mu_engine_memory(v, plan, roles, (double)n_devices, &worker, &server));
	printf("\n%-15s %10s %10s %10s %12s %10s\n", "MB of each of", "weights", "gradients",
	       "optimizer", "activations", "total");
	print_rank("worker", roles->num_workers, &worker, activations);
	print_rank("server", roles->num_servers, &server, 0);
	printf("%s with %s; libraries and batches of data take some 50 to 100 MB more\n",
	       v->kv_store, v->optim.name);
	if (roles->topology.num_nodes < roles->size && v->store.synchronous)
		printf("ranks of a node share one copy of the weights, and read each other's "
		       "gradients in place\n");
out:
	return st;
}

/* ---- the mode ---- */

/* Of a sample: as the images or tokens that the options name, or as the options say, or the
 * network's. */
static enum mu_status find_sample(const struct conf *v, const struct mu_network *network,
				  struct mu_shape *shape, size_t *classes)
{
	enum mu_status st = MU_OK;
	struct mu_input in = {.ops = NULL};
	union train_reader_settings settings;
	struct mu_input_config config = {
		.part = MU_INPUT_TRAIN,
		.dir = v->data_dir,
		.paths = v->data_train,
		.batch = 1,
		.num_workers = 1,
	};

	MU_TRY(mu_train_find_shape(v, network, shape));
	*classes = v->facts.of_values ? mu_train_outputs(v, NULL)
		   : v->num_classes   ? (size_t)v->num_classes
				      : network->classes;
	if (v->benchmark || mu_conf_reads_text(v) || (!v->data_dir && !v->data_train))
		goto out;
	MU_TRY(mu_train_choose_reader(v, network, &config));
	MU_TRY(mu_train_reader_set(v, network, NULL, &config, &settings));
	MU_TRY(mu_input_open(&in, &config));
	*shape = *mu_input_shape(&in);
	*classes = mu_train_outputs(v, &in);
	mu_input_close(&in);
out:
	return st;
}

enum mu_status mu_train_summary(const struct conf *v, const struct engine_device_list *devices,
				const struct mu_members *roles)
{
	enum mu_status st = MU_OK;
	struct mu_net_config model;
	struct mu_shape shape;
	size_t classes, batch; /* of the first device */
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
	MU_TRY(find_sample(v, network, &shape, &classes));
	model = mu_train_describe_model(v, &shape, classes);
	MU_TRY(mu_device_open(&device, devices->kind->name, 1));
	MU_TRY(mu_engine_device_set(&device, v));
	MU_TRY(mu_net_new_from(&net, network, &model));
	MU_TRY(mu_engine_check_block(v, net));
	MU_TRY(mu_plan_new_dry(&plan, net, &device, batch, MU_PHASE_TRAIN, NULL));
	MU_TRY(v->summary == CONF_SUMMARY_DOT ? mu_plan_dot(plan, stdout)
					      : mu_plan_summary(plan, stdout));
	ops = mu_engine_ops_of(devices);
	if (v->summary == CONF_SUMMARY_DOT)
		goto out;
	if (ops->print) /* each rank has its stages alone */
		MU_TRY(ops->print(devices, v, plan, stdout));
	else if (v->store.synchronous || v->store.distributed) /* settled: mu_conf_sums_up_job */
		MU_TRY(print_memory(v, roles, plan, devices->n));
out:
	mu_plan_free(plan);
	mu_net_free(net);
	mu_device_close(&device);
	return st;
}
