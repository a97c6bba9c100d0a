/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a run, its plans, and the estimate whether they fit into memory. */
#include "train/batch.h"
#include "engine/stages/staged.h"

#include <math.h>

#include <muster/base.h>

/* Batches above this are looked at from a plan for so many samples first. */
enum { SMALL_BATCH = 64 };

static double batch_bytes(const struct mu_input_config *data)
{
	return (double)data->shape[0] * (double)data->shape[1] * (double)data->shape[2] *
	       (double)data->batch * sizeof(float);
}

/* For messages: why it is less than the machine has. */
static const char *by_limit(void)
{
	return mu_memory_bytes() == mu_memory_limit("") ? ", by the limit of its control group"
							: "";
}

/*
 * Memory is written when it is allocated, so the system would end the process rather than refuse:
 * what the workers of this node need is estimated before. Activations, samples that are read ahead
 * and random data grow with the batch; weights, gradients (each device has its own), their sum and
 * the optimiser's arrays do not. Activations of a device with memory of its own are its own matter.
 */
static enum mu_status check_memory(const struct train_run *run, const struct mu_input_config *data,
				   double activations, size_t n)
{
	enum mu_status st = MU_OK;
	double have = mu_memory_bytes() / run->topology.node_num_workers;
	const char *states[MU_MAX_STATES];
	const bool split = run->devices.list.split;
	double gradients =
		split ? 1 + (run->options.micro_batches > 1 || run->block_net)
		      : (double)run->devices.list.n;
	double models = 1 + gradients + mu_optim_states(&run->options.optim, states) +
			(run->options.update_period > 1);
	double fixed = models * (double)n * sizeof(float);
	double growing = run->devices.list.kind->memory ? 0 : activations, fits;

	growing += (double)mu_input_prefetch_bytes(&run->train) +
		   (double)mu_input_prefetch_bytes(&run->validate);
	if (run->options.benchmark)
		growing += batch_bytes(data);
	if (run->devices.list.n > 1 || split) /* where the devices take their samples from */
		growing += batch_bytes(data);
	if (have <= 0 || fixed + growing <= have)
		return MU_OK;
	fits = floor((double)data->batch * (0.9 * have - fixed) / growing);
	if (fits < 1)
		MU_FAIL(MU_ERR_MEMORY,
			"network %s needs about %.1f GB for weights and %.1f GB for a batch of "
			"%zu; "
			"a worker has %.1f GB here%s: no batch fits",
			run->options.network, fixed / 1e9, growing / 1e9, data->batch, have / 1e9,
			by_limit());
	MU_FAIL(MU_ERR_MEMORY,
		"network %s needs about %.1f GB for weights and %.1f GB for a batch of %zu; a "
		"worker has %.1f GB here%s: a batch of about %.0f would fit",
		run->options.network, fixed / 1e9, growing / 1e9, data->batch, have / 1e9,
		by_limit(), fits);
out:
	return st;
}

/* For tensors beyond all memory oneDNN may not even find kernels. */
static enum mu_status check_large_batch(struct train_run *run, const struct mu_input_config *data)
{
	enum mu_status st = MU_OK;
	struct mu_plan *small = NULL;
	/* At the least: of micro-batches one is in memory. */
	const size_t held = data->batch / (size_t)run->options.micro_batches;

	if (held <= SMALL_BATCH)
		return MU_OK;
	MU_TRY(mu_plan_new_dry(&small, run->net, &run->devices.of[0].device, SMALL_BATCH,
			       MU_PHASE_TRAIN, NULL));
	MU_TRY(check_memory(run, data,
			    (double)mu_plan_arena_bytes(small) * (double)held / SMALL_BATCH,
			    mu_plan_n(small)));
out:
	mu_plan_free(small);
	return st;
}

static enum mu_status plan_batch(struct train_run *run, struct engine_device *d)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(d->plans, run->n_groups, "plans"));
	MU_TRY(mu_plan_new_dry(&d->plans[run->n_groups - 1].full, run->net, &d->device, d->batch,
			       MU_PHASE_TRAIN, run->plan));
out:
	return st;
}

/* Like the first device's plan, for the devices share its weights. */
static enum mu_status plan_further(struct train_run *run, struct engine_device *d)
{
	return d->number > 0 ? plan_batch(run, d) : MU_OK;
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

/* --time-block: of so many steps, for all lengths. */
static enum mu_status make_block_net(struct train_run *run, struct mu_net_config config)
{
	enum mu_status st = MU_OK;

	if (run->options.time_block == 0)
		goto out;
	MU_TRY(mu_engine_check_block(&run->options, run->net));
	config.shape[1] = (size_t)run->options.time_block;
	MU_TRY(mu_net_new_from(&run->block_net, run->network, &config));
out:
	return st;
}

/* One for each length of sequences, all with the same parameters. */
static enum mu_status make_nets(struct train_run *run, const struct mu_net_config *model)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = &run->train;

	run->n_groups = in->groups ? in->n_groups : 1;
	MU_TRY(MU_ALLOC(run->nets, run->n_groups, "networks"));
	for (size_t g = 0; g < run->n_groups; g++) {
		struct mu_net_config config = *model;

		if (in->groups)
			config.shape[1] = in->groups[g].length;
		MU_TRY(mu_net_new_from(&run->nets[g], run->network, &config));
	}
	run->net = run->nets[run->n_groups - 1];
	MU_TRY(make_block_net(run, *model));
out:
	return st;
}

enum mu_status mu_engine_model_new(struct train_run *run, const struct mu_net_config *model,
				   const struct mu_input_config *data)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_devices_open(run, data->batch));
	MU_TRY(make_nets(run, model));
	MU_TRY(check_large_batch(run, data));
	if (run->devices.list.split) {
		MU_TRY(mu_engine_staged_open(run, data->batch));
		MU_TRY(mu_engine_conv_check(run, model->shape));
		MU_TRY(check_memory(run, data, mu_engine_devices_arena(run), mu_plan_n(run->plan)));
		goto out;
	}
	MU_TRY(plan_batch(run, &run->devices.of[0]));
	run->plan = run->devices.of[0].plans[run->n_groups - 1].full;
	MU_TRY(mu_engine_conv_check(run, model->shape));
	MU_TRY(mu_engine_devices_run(run, plan_further));
	MU_TRY(check_memory(run, data, mu_engine_devices_arena(run), mu_plan_n(run->plan)));
out:
	return st;
}

static bool has_records(const struct mu_input *in, size_t group)
{
	return in->groups ? in->groups[group].n > 0 : in->n > 0;
}

/* The plans of a group that there are not yet, with steps of `rest` samples beside full ones. */
static enum mu_status plan_group(struct train_run *run, struct engine_device *d, size_t group,
				 size_t rest)
{
	enum mu_status st = MU_OK;
	const struct engine_device_list *list = &run->devices.list;
	struct engine_plans *p = &d->plans[group];
	const struct mu_net *net = run->nets[group];
	size_t part = mu_engine_device_first(list, d->number + 1, rest) -
		      mu_engine_device_first(list, d->number, rest);

	if (!p->full && has_records(&run->train, group))
		MU_TRY(mu_plan_new_dry(&p->full, net, &d->device, d->batch, MU_PHASE_TRAIN,
				       run->plan));
	if (part > 0 && part != d->batch)
		MU_TRY(mu_plan_new_dry(&p->tail, net, &d->device, part, MU_PHASE_TRAIN, run->plan));
	if (run->has_validation && has_records(&run->validate, group))
		MU_TRY(mu_plan_new_dry(&p->infer, net, &d->device, d->batch, MU_PHASE_INFER,
				       run->plan));
out:
	return st;
}

/* The other groups' plans, those of short last steps, and for validation. */
static enum mu_status plan_others(struct train_run *run, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	const bool ends_early = !run->train.groups && run->steps < run->train.steps;

	for (size_t g = 0; g < run->n_groups; g++)
		MU_TRY(plan_group(run, d, g, ends_early ? 0 : mu_input_rest(&run->train, g)));
out:
	return st;
}

/* By the device's thread, whose cores then have the memory near. */
static enum mu_status allocate(struct train_run *run, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	struct mu_plan *largest = d->plans[run->n_groups - 1].full;

	MU_TRY(mu_plan_allocate(largest));
	for (size_t g = 0; g < run->n_groups; g++) {
		const struct engine_plans *p = &d->plans[g];
		struct mu_plan *others[] = {p->full, p->tail, p->infer};

		for (size_t i = 0; i < 3; i++)
			if (others[i] && others[i] != largest)
				MU_TRY(mu_plan_allocate_in(others[i], largest));
	}
out:
	return st;
}

enum mu_status mu_engine_model_plan(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *data = &run->train.config;
	size_t batch = data->batch, *shape = run->train.shape;

	if (mu_net_labels(run->net) != data->label_width)
		MU_FAIL(MU_ERR_USAGE,
			"network %s needs %zu labels a sample, one for each position of its last "
			"layer; %s has %zu",
			run->options.network, mu_net_labels(run->net),
			run->options.data_dir ? run->options.data_dir : run->options.data_train,
			data->label_width);
	MU_TRY(run->split ? mu_engine_staged_plan(run) : mu_engine_devices_run(run, plan_others));
	MU_TRY(check_memory(run, data, mu_engine_devices_arena(run), mu_plan_n(run->plan)));
	MU_TRY(run->split ? mu_engine_staged_allocate(run) : mu_engine_devices_run(run, allocate));
	if (run->devices.list.n > 1 || run->split)
		MU_TRY(MU_ALLOC(run->devices.samples, batch * shape[0] * shape[1] * shape[2],
				"samples of a batch"));
	MU_TRY(MU_ALLOC(run->labels, batch * data->label_width, "labels"));
	MU_TRY(MU_ALLOC(run->ids, batch, "sample ids"));
	MU_TRY(mu_train_batch_open(run));
out:
	return st;
}
