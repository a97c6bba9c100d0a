/* SPDX-License-Identifier: Apache-2.0 */
/* The network of an engine, its plans, and an estimate of their memory. */
#include "engine/stages/staged.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

#include "conf/conf.h"
#include "conf/text.h"
#include "device/joint.h"
#include "lives.h"

/* Memory of larger batches is first estimated from a plan of this size. */
enum { SMALL_BATCH = 64, HEADS_TEXT = 256 };

static double batch_bytes(const struct mu_input_config *data)
{
	return (double)mu_shape_sample(&data->shape) * (double)data->batch * sizeof(float);
}

/* For messages: why there is less memory than the machine has. */
static const char *by_limit(void)
{
	return mu_memory_bytes() == mu_memory_limit("") ? ", by the limit of its control group"
							: "";
}

static enum mu_status store_memory(const struct conf *v, const struct mu_plan *plan,
				   const struct mu_members *roles, struct mu_kv_memory *memory)
{
	enum mu_status st = MU_OK;
	struct mu_kv_life *lives = NULL;
	struct mu_kv_config config = {
		.type = v->kv_store,
		.members = roles,
		.bucket_bytes = (size_t)v->bucket_bytes,
		.optim = v->optim,
		/* Of GPUs only their arrays on the host are counted. */
		.node_reduce = v->node_reduce == MU_KV_NODE_NCCL ? MU_KV_NODE_AUTO : v->node_reduce,
	};

	mu_conf_store_config(v, &config);
	MU_TRY(mu_engine_lives(v, plan, &lives));
	config.lives = lives;
	config.slices = mu_plan_slices(plan, &config.n_slices);
	MU_TRY(mu_kv_memory(&config, memory));
out:
	mu_free(lives);
	return st;
}

enum mu_status mu_engine_memory(const struct conf *v, const struct mu_plan *plan,
				const struct mu_members *roles, double copies,
				struct engine_memory *worker, struct engine_memory *server)
{
	enum mu_status st = MU_OK;
	const char *names[MU_MAX_STATES];
	const double all = (double)mu_plan_n(plan) * sizeof(float);
	const double n_states = mu_optim_states(&v->optim, names);
	const int n_ends = roles->num_servers > 0 ? roles->num_servers : roles->num_workers;
	const double share = all / n_ends;
	const bool updates = v->facts.sums_elsewhere, all_states = updates || v->sync_period > 1;
	const double states = all_states ? all : v->store.has_servers ? 0 : share;
	struct mu_kv_memory held;

	MU_TRY(store_memory(v, plan, roles, &held));
	*worker = (struct engine_memory){all, (double)held.gradients * copies + (double)held.led,
					 n_states * states};
	*server = (struct engine_memory){share + (double)held.copies, (double)held.arrived,
					 n_states * share};
	if (v->store.has_servers)
		goto out;
	worker->gradients += (double)(held.arrived + held.sums);
	if (updates && v->store.distributed)
		worker->gradients += all;
out:
	return st;
}

/*
 * Estimate the memory of the workers of this node. Memory is written when it is allocated, so
 * without this check the system would end the process. Activations, prefetched samples and random
 * data grow with the batch; weights, gradients (per device), their sum and the optimiser's states
 * do not. A device with its own memory checks its activations itself.
 */
static enum mu_status check_memory(const struct mu_engine *e, const struct mu_input_config *data,
				   double activations, const struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	double have = mu_memory_bytes() / e->members->topology.node_num_workers;
	const bool split = e->devices.list.split;
	double gradients = split ? 1 + (e->conf->micro_batches > 1 || e->block_net)
				 : (double)e->devices.list.n;
	double fixed, growing = e->devices.list.kind->memory ? 0 : activations, fits;
	struct engine_memory worker, server;

	gradients += e->conf->update_period > 1;
	MU_TRY(mu_engine_memory(e->conf, plan, e->members, gradients, &worker, &server));
	fixed = worker.weights + worker.gradients + worker.optimizer;
	growing += (double)mu_input_prefetch_bytes(e->train) +
		   (double)(e->validate ? mu_input_prefetch_bytes(e->validate) : 0);
	if (e->conf->benchmark)
		growing += batch_bytes(data);
	if (e->devices.list.n > 1 || split) /* e->devices.samples */
		growing += batch_bytes(data);
	if (have <= 0 || fixed + growing <= have)
		return MU_OK;
	fits = floor((double)data->batch * (0.9 * have - fixed) / growing);
	if (fits < 1)
		MU_FAIL(MU_ERR_MEMORY,
			"network %s needs about %.1f GB for weights and %.1f GB for a batch of "
			"%zu; "
			"a worker has %.1f GB here%s: no batch fits",
			e->conf->network_name, fixed / 1e9, growing / 1e9, data->batch, have / 1e9,
			by_limit());
	MU_FAIL(MU_ERR_MEMORY,
		"network %s needs about %.1f GB for weights and %.1f GB for a batch of %zu; a "
		"worker has %.1f GB here%s: a batch of about %.0f would fit",
		e->conf->network_name, fixed / 1e9, growing / 1e9, data->batch, have / 1e9,
		by_limit(), fits);
out:
	return st;
}

/* Check before planning: for very large tensors oneDNN may find no kernels. */
static enum mu_status check_large_batch(struct mu_engine *e, const struct mu_input_config *data)
{
	enum mu_status st = MU_OK;
	struct mu_plan *small = NULL;
	/* A lower bound: at least one micro-batch is in memory. */
	const size_t held = data->batch / (size_t)e->conf->micro_batches;

	if (held <= SMALL_BATCH)
		return MU_OK;
	MU_TRY(mu_plan_new_dry(&small, e->net, &e->devices.of[0].device, SMALL_BATCH,
			       MU_PHASE_TRAIN, NULL));
	MU_TRY(check_memory(e, data,
			    (double)mu_plan_arena_bytes(small) * (double)held / SMALL_BATCH,
			    small));
out:
	mu_plan_free(small);
	return st;
}

enum mu_status mu_engine_check_block(const struct conf *v, const struct mu_net *net)
{
	enum mu_status st = MU_OK;
	const size_t longest = mu_net_labels(net), steps = (size_t)v->time_block;

	if (steps == 0)
		goto out;
	MU_TRY(mu_net_check_blocks(net));
	if (steps > longest)
		MU_FAIL(MU_ERR_USAGE,
			"a block of %zu steps is longer than the longest sequence, of %zu", steps,
			longest);
out:
	if (st != MU_OK)
		mu_trace_prefix("--time-block: ");
	return st;
}

/* Number 0 of a text is no word, but fills sequences up: it is not to be predicted. */
static enum mu_status new_net(const struct mu_engine *e, struct mu_net **net,
			      const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_net_new_from(net, e->network, config));
	if (!mu_conf_reads_text(e->conf))
		goto out;
	if (!mu_net_may_ignore(*net))
		MU_FAIL(MU_ERR_USAGE,
			"network %s: its loss is %s; a text needs one of classes that leaves out "
			"what fills sequences up, such as softmax",
			e->network->name, mu_net_loss(*net)->help);
	mu_net_ignore_label(*net, 0);
out:
	return st;
}

/* --time-block: one network of that many steps, for all lengths. */
static enum mu_status make_block_net(struct mu_engine *e, struct mu_net_config config)
{
	enum mu_status st = MU_OK;

	if (e->conf->time_block == 0)
		goto out;
	MU_TRY(mu_engine_check_block(e->conf, e->net));
	config.shape = mu_sample_sequence((size_t)e->conf->time_block);
	MU_TRY(new_net(e, &e->block_net, &config));
out:
	return st;
}

/* One network for each length of sequences; all have the same parameters. */
static enum mu_status make_nets(struct mu_engine *e, const struct mu_net_config *model)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = e->train;
	struct mu_net_config all = *model;

	all.longest = in->groups ? in->groups[in->n_groups - 1].length
				 : mu_shape_space(mu_input_shape(in), 0);
	e->n_groups = in->groups ? in->n_groups : 1;
	MU_TRY(MU_ALLOC(e->nets, e->n_groups, "networks"));
	for (size_t g = 0; g < e->n_groups; g++) {
		struct mu_net_config config = all;

		if (in->groups)
			config.shape = mu_sample_sequence(in->groups[g].length);
		MU_TRY(new_net(e, &e->nets[g], &config));
	}
	e->net = e->nets[e->n_groups - 1];
	MU_TRY(make_block_net(e, all));
out:
	return st;
}

/* The only place that chooses. */
const struct mu_engine_ops *mu_engine_ops_of(const struct engine_device_list *list)
{
	if (list->split)
		return &mu_engine_staged;
	return list->n > 1 ? &mu_engine_shared : &mu_engine_one;
}

enum mu_status mu_engine_model_new(struct mu_engine *e, const struct mu_net_config *model,
				   const struct mu_input_config *data)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_devices_open(e, data->batch));
	e->ops = mu_engine_ops_of(&e->devices.list);
	MU_TRY(make_nets(e, model));
	MU_TRY(check_large_batch(e, data));
	MU_TRY(e->ops->open(e, data->batch));
	MU_TRY(mu_engine_conv_check(e, &model->shape));
	if (e->ops->open_others)
		MU_TRY(e->ops->open_others(e));
	MU_TRY(check_memory(e, data, e->ops->arena(e), e->plan));
out:
	return st;
}

/* Is target number k that of another head than the one of its name, of n letters? */
static bool is_of_another(const struct mu_joint *joint, const char *name, size_t n, size_t k)
{
	for (size_t i = 0; joint && i < joint->n; i++) {
		const struct mu_joint_part part = mu_joint_part(joint, i);

		if (strlen(joint->heads[i].name) == n &&
		    strncmp(joint->heads[i].name, name, n) == 0)
			return k < part.target || k >= part.target + part.targets;
	}
	return false;
}

/* Targets that have names of heads have their order. */
static enum mu_status check_names(const struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct mu_loss *loss = mu_net_loss(e->net);
	const char *names = e->train->about.target_columns;
	char heads[HEADS_TEXT];
	size_t n = 0;

	for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		n++;
	if (n != mu_input_width(e->train)) /* a name in quotes has a comma */
		goto out;
	n = 0;
	for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL, n++)
		if (is_of_another(loss->joint, p, strcspn(p, ","), n))
			MU_FAIL(MU_ERR_USAGE,
				"network %s has targets in this order: %s; --label-columns %s is "
				"another order",
				e->conf->network_name, mu_loss_heads(loss, heads, sizeof heads),
				names);
out:
	return st;
}

enum mu_status mu_engine_model_plan(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *data = &e->train->config;
	const size_t batch = data->batch;
	char heads[HEADS_TEXT];

	MU_TRY(check_names(e));
	if (mu_net_labels(e->net) != mu_input_width(e->train) && mu_net_loss(e->net)->joint)
		MU_FAIL(MU_ERR_USAGE,
			"network %s has %zu target%s a sample, in this order: %s; %s has %zu",
			e->conf->network_name, mu_net_labels(e->net),
			MU_S(mu_net_labels(e->net)),
			mu_loss_heads(mu_net_loss(e->net), heads, sizeof heads),
			e->conf->data_dir ? e->conf->data_dir : e->conf->data_train,
			mu_input_width(e->train));
	if (mu_net_labels(e->net) != mu_input_width(e->train) && !mu_net_loss(e->net)->of_classes)
		MU_FAIL(MU_ERR_USAGE,
			"network %s has %zu outputs, one for each target (number of classes); %s "
			"has %zu a sample",
			e->conf->network_name, mu_net_labels(e->net),
			e->conf->data_dir ? e->conf->data_dir : e->conf->data_train,
			mu_input_width(e->train));
	if (mu_net_labels(e->net) != mu_input_width(e->train))
		MU_FAIL(MU_ERR_USAGE,
			"network %s needs %zu labels a sample, one for each position of its last "
			"layer; %s has %zu",
			e->conf->network_name, mu_net_labels(e->net),
			e->conf->data_dir ? e->conf->data_dir : e->conf->data_train,
			mu_input_width(e->train));
	MU_TRY(e->ops->plan(e));
	MU_TRY(check_memory(e, data, e->ops->arena(e), e->plan));
	MU_TRY(e->ops->allocate(e));
	if (e->devices.list.n > 1 || e->devices.list.split)
		MU_TRY(MU_ALLOC(e->devices.samples,
				batch * mu_shape_sample(mu_input_shape(e->train)),
				"samples of a batch"));
	if (mu_input_has_bytes(e->train) && e->devices.list.n > 1)
		MU_TRY(MU_ALLOC(e->devices.bytes, batch * mu_input_sample(e->train, 0),
				"samples of a batch"));
out:
	return st;
}
