/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model file whose last layer makes values that are not finite, for test_on_nan.sh and
 * test_reload.sh, or never ends, for test_device_fault.sh. The environment says when:
 * MU_SPOIL="RANK EPOCH FIRST LAST loss|gradient|once|signal|hang", steps FIRST to LAST; once: a
 * loss, the first time only, and the file MU_SPOIL_FILE is cut; signal: the same, and SIGTERM.
 */
#define _POSIX_C_SOURCE 200809L /* setenv, truncate */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include <muster/net.h>

static bool is_time(const struct mu_layer *layer, const char *what)
{
	const char *text = getenv("MU_SPOIL");
	char where[16];
	int rank, spoilt;
	unsigned long epoch, first, last;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return layer->phase == MU_PHASE_TRAIN && text &&
	       sscanf(text, "%d %lu %lu %lu %15s", &spoilt, &epoch, &first, &last, where) == 5 &&
	       rank == spoilt && layer->batch->epoch == epoch && layer->batch->step >= first &&
	       layer->batch->step <= last && strcmp(where, what) == 0;
}

static enum mu_status shape(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}

static enum mu_status forward(struct mu_layer *layer)
{
	const size_t n = mu_shape_n(&layer->output.shape);

	memcpy(layer->output.data, layer->inputs[0].data, n * sizeof(float));
	if (is_time(layer, "loss"))
		layer->output.data[n - 1] = NAN;
	if (is_time(layer, "once") || is_time(layer, "signal")) {
		layer->output.data[n - 1] = NAN;
		if (getenv("MU_SPOIL_FILE") && truncate(getenv("MU_SPOIL_FILE"), 1000) != 0)
			printf("no file was cut\n");
		if (is_time(layer, "signal"))
			kill(getpid(), SIGTERM);
		setenv("MU_SPOIL", "", 1); /* this file may be loaded anew */
	}
	if (is_time(layer, "hang"))
		printf("the layer hangs\n"), fflush(stdout);
	while (is_time(layer, "hang"))
		;
	return MU_OK;
}

static enum mu_status backward(struct mu_layer *layer)
{
	const size_t n = mu_shape_n(&layer->output.shape);

	memcpy(layer->inputs[0].grad, layer->output.grad, n * sizeof(float));
	if (is_time(layer, "gradient"))
		layer->inputs[0].grad[n - 1] = INFINITY;
	return MU_OK;
}

static const struct mu_layer_ops spoil = {
	.name = "spoil", .shape = shape, .forward = forward, .backward = backward};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	int x;

	x = mu_net_input(net);
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 16}, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &spoil}, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network spoil_net = {
	.name = "spoil-net",
	.help = "for tests",
	.shape = MU_SAMPLE(1, 28, 28),
	.classes = 10,
	.build = build,
};

MU_NETWORK_EXPORT(spoil_net);
