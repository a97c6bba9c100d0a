/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model file for test_device_fault.sh: from step 2 on its first layer, which has no parameters,
 * fails on rank 0 in the thread of every device but the first, while that one waits for the sums of
 * rank 1, whose backward is late.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include <muster/base.h>
#include <muster/net.h>

enum { FAILS_MS = 100, LATE_MS = 400 };

static void nap(long ms)
{
	nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static int rank_of(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return rank;
}

static enum mu_status shape(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}

static enum mu_status pass(struct mu_layer *layer)
{
	memcpy(layer->output.data, layer->inputs[0].data,
	       mu_shape_n(&layer->output.shape) * sizeof(float));
	return MU_OK;
}

static enum mu_status fail(struct mu_layer *layer)
{
	enum mu_status st = MU_OK;

	MU_TRY(pass(layer));
	if (layer->phase != MU_PHASE_TRAIN || layer->batch->step < 2 || gettid() == getpid() ||
	    rank_of() != 0)
		goto out;
	nap(FAILS_MS);
	MU_FAIL(MU_ERR_ARGUMENT, "%s fails, as it is told to", layer->name);
out:
	return st;
}

static enum mu_status pass_back(struct mu_layer *layer)
{
	if (layer->inputs[0].grad)
		memcpy(layer->inputs[0].grad, layer->output.grad,
		       mu_shape_n(&layer->output.shape) * sizeof(float));
	return MU_OK;
}

static enum mu_status pass_late(struct mu_layer *layer)
{
	if (layer->batch->step > 0 && rank_of() == 1)
		nap(LATE_MS);
	return pass_back(layer);
}

static const struct mu_layer_ops fails = {
	.name = "fails", .shape = shape, .forward = fail, .backward = pass_back};
static const struct mu_layer_ops late = {
	.name = "late", .shape = shape, .forward = pass, .backward = pass_late};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected few = {.units = 16}, all = {.units = (int)config->classes};
	int x = mu_net_input(net);

	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &fails}, NULL);
	x = mu_net_fully_connected(net, x, &few, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_fully_connected(net, x, &all, NULL);
	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &late}, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network late_net = {.name = "late-net",
					   .help = "for tests",
					   .shape = MU_SAMPLE(1, 28, 28),
					   .classes = 10,
					   .build = build};

MU_NETWORK_EXPORT(late_net);
