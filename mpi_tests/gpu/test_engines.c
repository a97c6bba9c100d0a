/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Convolutions in half precision by engines of cuDNN's that a table names, each phase by another
 * one: gradients as near to ref's in float32 as by cuDNN's own choice. A number that no engine has
 * is direct. With bias and activation, with stride, with groups, with a batch-norm behind.
 */
#include <string.h>

#include <muster/base.h>
#include <muster/device.h>
#include <muster/net.h>

#include "../lib/check.h"

enum { BATCH = 4, CHANNELS = 8, SIDE = 6, CLASSES = 3, LAYERS = 4, NO_ENGINE = 39 };

static const char *const layers[LAYERS] = {"biased", "strided", "grouped", "normed"};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution biased = {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}};
	const struct mu_convolution strided = {.filters = 16,
					       .kernel = {3, 3},
					       .stride = {2, 2},
					       .pad = {1, 1},
					       .no_bias = true};
	const struct mu_convolution grouped = {
		.filters = 16, .kernel = {1, 1}, .groups = 2, .no_bias = true};
	const struct mu_convolution normed = {.filters = 8, .kernel = {1, 1}, .no_bias = true};
	const struct mu_batch_norm norm = {.eps = 1e-2f, .momentum = 0.9f};
	const struct mu_fully_connected scores = {.units = (int)config->classes};
	int x = mu_net_convolution(net, mu_net_input(net), &biased, layers[0]);

	x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	x = mu_net_convolution(net, x, &strided, layers[1]);
	x = mu_net_convolution(net, x, &grouped, layers[2]);
	x = mu_net_convolution(net, x, &normed, layers[3]);
	x = mu_net_batch_norm(net, x, &norm, NULL);
	x = mu_net_flatten(net, x, NULL);
	mu_net_softmax(net, mu_net_fully_connected(net, x, &scores, NULL), "softmax");
	return MU_OK;
}

static const struct mu_network network = {
	.name = "engines", .shape = {CHANNELS, SIDE, SIDE}, .classes = CLASSES, .build = build};

struct result {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights, *gradients;
};

/* A step of training. engines: of the phases; NULL: the device chooses. */
static bool run(struct result *r, const char *device, enum mu_dtype dtype, const int *engines)
{
	const struct mu_net_config config = {.shape = {CHANNELS, SIDE, SIDE}, .classes = CLASSES};
	static const float labels[BATCH] = {0, 1, 2, 0};
	struct mu_convolution_choice choices[LAYERS];
	struct mu_batch *batch;

	*r = (struct result){.net = NULL};
	if (mu_device_open(&r->device, device, 1) != MU_OK ||
	    mu_device_set_dtype(&r->device, dtype) != MU_OK)
		return false;
	for (int i = 0; i < LAYERS; i++) {
		snprintf(choices[i].layer, sizeof choices[i].layer, "%s", layers[i]);
		for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
			choices[i].algorithms[phase] = (enum mu_convolution_algorithm)(
				engines ? MU_CONVOLUTION_ENGINE + engines[phase]
					: (int)MU_CONVOLUTION_AUTO);
	}
	r->device.choices = choices;
	r->device.n_choices = LAYERS;
	if (mu_net_new_from(&r->net, &network, &config) != MU_OK ||
	    mu_plan_new(&r->plan, r->net, &r->device, BATCH, MU_PHASE_TRAIN, NULL) != MU_OK ||
	    MU_ALLOC(r->weights, mu_plan_n(r->plan), "weights") != MU_OK ||
	    MU_ALLOC(r->gradients, mu_plan_n(r->plan), "gradients") != MU_OK ||
	    mu_plan_init_weights(r->plan, "default", 3, r->weights) != MU_OK ||
	    mu_plan_bind(r->plan, r->weights, r->gradients) != MU_OK)
		return false;
	r->device.choices = NULL;
	r->device.n_choices = 0;
	batch = mu_plan_batch(r->plan);
	batch->count = BATCH;
	batch->labels = labels;
	for (size_t i = 0; i < (size_t)BATCH * CHANNELS * SIDE * SIDE; i++)
		mu_plan_input(r->plan)[i] = (float)((i * 37 + i / 7 * 11) % 9) / 4 - 1;
	for (size_t l = 0; l < mu_plan_layers(r->plan); l++)
		if (mu_plan_forward(r->plan, l) != MU_OK)
			return false;
	for (size_t l = mu_plan_layers(r->plan); l-- > 0;)
		if (mu_plan_backward(r->plan, l) != MU_OK)
			return false;
	return true;
}

static bool ran(struct result *r, const char *device, enum mu_dtype dtype, const int *engines)
{
	if (CHECK(run(r, device, dtype, engines)))
		return true;
	mu_trace_print(stderr, device);
	mu_trace_clear();
	return false;
}

static void release(struct result *r)
{
	mu_plan_free(r->plan);
	mu_free(r->weights);
	mu_free(r->gradients);
	mu_net_free(r->net);
	mu_device_close(&r->device);
}

/* Of all gradients of a slice. */
static double distance(const struct result *a, const struct result *b, const struct mu_slice *s)
{
	double difference = 0, size = 0;

	for (size_t i = s->at; i < s->at + s->n; i++) {
		const double d = (double)a->gradients[i] - (double)b->gradients[i];

		difference += d * d;
		size += (double)b->gradients[i] * (double)b->gradients[i];
	}
	return sqrt(difference / fmax(size, 1e-4));
}

/* All four convolutions are done as asked, if `there`, else directly. */
static void check_engines(const struct result *r, const int *engines, bool there)
{
	size_t found = 0;

	for (size_t l = 0; l < mu_plan_layers(r->plan); l++)
		for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++) {
			const int got = (int)mu_plan_convolution(r->plan, l,
								 (enum mu_convolution_phase)phase);

			if (got == MU_CONVOLUTION_AUTO)
				continue;
			found++;
			CHECK(got == (there ? MU_CONVOLUTION_ENGINE + engines[phase]
					    : (int)MU_CONVOLUTION_DIRECT));
		}
	/* The first one has no gradient of its input. */
	CHECK(found == LAYERS * MU_CONVOLUTION_PHASES - 1);
}

static void compare(enum mu_dtype dtype)
{
	static const int asked[][MU_CONVOLUTION_PHASES] = {
		{0, 0, 0}, {1, 0, 1}, {0, 1, 0}, {NO_ENGINE, NO_ENGINE, NO_ENGINE}};
	struct result ref, usual, r;
	const struct mu_slice *slices;
	size_t n;
	bool both = ran(&ref, "ref", MU_FLOAT32, NULL);

	both = ran(&usual, "gpu:0", dtype, NULL) && both;
	for (size_t i = 0; both && i < sizeof asked / sizeof *asked; i++) {
		if (ran(&r, "gpu:0", dtype, asked[i])) {
			check_engines(&r, asked[i], asked[i][0] != NO_ENGINE);
			slices = mu_plan_slices(ref.plan, &n);
			for (size_t k = 0; k < n; k++)
				CHECK(distance(&r, &ref, &slices[k]) <=
				      1.5 * distance(&usual, &ref, &slices[k]) + 0.001);
		}
		release(&r);
	}
	release(&usual);
	release(&ref);
}

int main(void)
{
	const struct mu_device_ops *const *device = mu_device_table;
	char why[256];

	while (*device && strcmp((*device)->name, "gpu") != 0)
		device++;
	if (!*device || !mu_device_is_here(*device, why, sizeof why)) {
		printf("skipped: %s\n", *device ? why : "this build has no device gpu");
		return CHECK_SKIPPED;
	}
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_WARN});
	compare(MU_FLOAT16);
	compare(MU_BFLOAT16);
	return check_failures() ? 1 : 0;
}
