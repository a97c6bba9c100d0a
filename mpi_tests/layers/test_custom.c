/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Layers of a user's own, through the public interface: gradients against finite differences, every
 * device against ref, plans that share arrays, errors of the layer. The layers are PReLU of
 * jobs/examples/prelu.c, which is linked in, and the gate of custom_gate.c; the loss is that of
 * jobs/examples/focal.c.
 */
#include <stdlib.h>

#include <muster/base.h>
#include <muster/metrics.h>

#include "../lib/check.h"
#include "custom_gate.h"
#include "net/plan.h"

/* As that file's MU_NETWORK_EXPORT defines it; MU_LOSS_EXPORT of jobs/examples/focal.c. */
extern const struct mu_network_export mu_network_export;
extern const struct mu_loss_export mu_loss_export;

/* ---- a net in training ---- */

struct training {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	size_t batch, features;
	float *weights, *gradients;
	float labels[64];
};

static bool start(struct training *t, const struct mu_network *network,
		  const struct mu_shape *shape, const char *device)
{
	struct mu_net_config config = {.classes = network->classes};
	struct mu_random random = {.seed = 3, .purpose = MU_RANDOM_TEST};
	struct mu_batch *b;

	config.shape = *shape;
	*t = (struct training){.batch = 6, .features = mu_shape_sample(shape)};
	if (mu_device_open(&t->device, device, 1) != MU_OK ||
	    mu_net_new_from(&t->net, network, &config) != MU_OK ||
	    mu_plan_new(&t->plan, t->net, &t->device, t->batch, MU_PHASE_TRAIN, NULL) != MU_OK ||
	    MU_ALLOC(t->weights, mu_plan_n(t->plan), "weights") != MU_OK ||
	    MU_ALLOC(t->gradients, mu_plan_n(t->plan), "gradients") != MU_OK ||
	    mu_plan_init_weights(t->plan, "default", 7, t->weights) != MU_OK ||
	    mu_plan_bind(t->plan, t->weights, t->gradients) != MU_OK) {
		mu_trace_print(stderr, "test_custom");
		return false;
	}
	for (size_t i = 0; i < t->batch * t->features; i++)
		mu_plan_input(t->plan)[i] = 2 * mu_random_uniform(&random, i) - 1;
	for (size_t i = 0; i < t->batch * mu_net_labels(t->net); i++)
		t->labels[i] = (float)(i % network->classes);
	b = mu_plan_batch(t->plan);
	b->labels = t->labels;
	b->count = t->batch - 1; /* the last row has no loss */
	return true;
}

static void stop(struct training *t)
{
	mu_plan_free(t->plan);
	mu_net_free(t->net);
	mu_device_close(&t->device);
	mu_free(t->weights);
	mu_free(t->gradients);
}

static double forward(struct training *t)
{
	for (size_t l = 0; l < mu_plan_layers(t->plan); l++)
		CHECK(mu_plan_forward(t->plan, l) == MU_OK);
	return mu_plan_batch(t->plan)->loss;
}

static void backward(struct training *t)
{
	for (size_t l = mu_plan_layers(t->plan); l-- > 0;)
		CHECK(mu_plan_backward(t->plan, l) == MU_OK);
}

/*
 * The gradient of every array from `first` on, at 24 elements at most, against central differences.
 * The loss carries float32's error, about 1e-6, so that differences with this step are good to some
 * 1e-3. Arrays before `first` reach so many maxima and rectifiers that some change over within any
 * step.
 */
static void test_gradients(const struct mu_network *network, const struct mu_shape *shape,
			   const char *first, const char *device)
{
	const double h = 1.0 / 1024;
	struct training t;
	const struct mu_slice *slices;
	size_t n;
	size_t k = 0;
	double largest = 0;

	if (!CHECK(start(&t, network, shape, device)))
		return;
	mu_plan_batch(t.plan)->count = 2;
	forward(&t);
	backward(&t);
	slices = mu_plan_slices(t.plan, &n);
	while (k + 1 < n && strcmp(slices[k].name, first) != 0)
		k++;
	CHECK_TEXT(slices[k].name, first);
	for (; k < n; k++)
		for (size_t i = 0; i < slices[k].n_padded; i += slices[k].n_padded / 24 + 1) {
			float *w = &t.weights[slices[k].at + i], old = *w;
			double gradient = (double)t.gradients[slices[k].at + i], up, down;

			*w = old + (float)h;
			up = forward(&t);
			*w = old - (float)h;
			down = forward(&t);
			*w = old;
			if (slices[k].n == slices[k].n_padded && /* else i may be padding */
			    !CHECK_NEAR(gradient, (up - down) / (2 * h),
					2e-3 * (1 + fabs(gradient))))
				fprintf(stderr, "    %s: element %zu of %s\n", network->name, i,
					slices[k].name);
			largest = fmax(largest, fabs(gradient));
		}
	CHECK(largest > 0.1); /* else nothing was tested */
	stop(&t);
}

/* Losses of ten steps agree to 1e-4: float32 sums in another order, amplified by ten updates. */
static void test_steps(const struct mu_network *network, const char *device, float rate)
{
	struct training a, b;
	double first = 0, last = 0;

	if (!CHECK(start(&a, network, &network->shape, "ref")) ||
	    !CHECK(start(&b, network, &network->shape, device)))
		return;
	for (int i = 0; i < 10; i++) {
		struct training *both[2] = {&a, &b};
		double loss[2];

		for (int k = 0; k < 2; k++) {
			loss[k] = forward(both[k]);
			backward(both[k]);
			for (size_t j = 0; j < mu_plan_n(both[k]->plan); j++)
				both[k]->weights[j] -= rate * both[k]->gradients[j];
		}
		CHECK_NEAR(loss[1], loss[0], 1e-4);
		last = loss[1];
		if (i == 0)
			first = last;
	}
	CHECK(last < 0.9 * first);
	stop(&a);
	stop(&b);
}

/* ---- a loss ---- */

static double gamma_of_next; /* below 0: softmax instead; focal.c's struct settings */

static enum mu_status build_focal(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution conv = {.filters = (int)config->classes, .kernel = {2, 2}};
	const int x = mu_net_convolution(net, mu_net_input(net), &conv, "conv");
	const struct mu_loss *loss = mu_loss_export.loss;

	if (gamma_of_next < 0)
		mu_net_softmax(net, x, "softmax");
	else
		loss->add(net, x, loss, &gamma_of_next);
	return MU_OK;
}

static const struct mu_network focal = {
	.name = "focal-net", .shape = MU_SAMPLE(3, 3, 4), .classes = 4, .build = build_focal};

/* With G 0 it is the cross-entropy, of which focal.c has the mean over positions. */
static void test_loss(const char *device)
{
	static const double gammas[] = {0, 1, 2.5};
	struct training t;
	double found, wanted;

	gamma_of_next = -1;
	if (!CHECK(start(&t, &focal, &focal.shape, device)))
		return;
	wanted = forward(&t) / (double)mu_net_labels(t.net);
	stop(&t);
	for (size_t i = 0; i < sizeof gammas / sizeof *gammas; i++) {
		gamma_of_next = gammas[i];
		test_gradients(&focal, &focal.shape, "conv_weight", device);
		test_steps(&focal, device, 0.2f);
	}
	gamma_of_next = 0;
	if (!CHECK(start(&t, &focal, &focal.shape, device)))
		return;
	found = forward(&t);
	CHECK_NEAR(found, wanted, 1e-6);
	CHECK(mu_net_loss(t.net) == mu_loss_export.loss);
	mu_plan_batch(t.plan)->loss_scale = 8;
	backward(&t);
	found = (double)t.gradients[0];
	forward(&t);
	mu_plan_batch(t.plan)->loss_scale = 1;
	backward(&t);
	CHECK_NEAR(found, (double)t.gradients[0], 1e-6); /* of weights: unscaled again */
	stop(&t);
}

/* Plans of another batch and phase on the same arrays find the same probabilities. */
static void test_shared_arrays(const char *device)
{
	struct training t;
	struct mu_plan *plans[2] = {NULL, NULL};

	if (!CHECK(start(&t, &custom_gates, &custom_gates.shape, device)))
		return;
	forward(&t);
	CHECK(mu_plan_new(&plans[0], t.net, &t.device, 6, MU_PHASE_INFER, t.plan) == MU_OK);
	CHECK(mu_plan_new(&plans[1], t.net, &t.device, 3, MU_PHASE_TRAIN, t.plan) == MU_OK);
	for (int p = 0; p < 2; p++) {
		size_t batch = mu_plan_batch_size(plans[p]);

		CHECK(mu_plan_hash(plans[p]) == mu_plan_hash(t.plan));
		CHECK(mu_plan_bind(plans[p], t.weights, p ? t.gradients : NULL) == MU_OK);
		memcpy(mu_plan_input(plans[p]), mu_plan_input(t.plan),
		       batch * t.features * sizeof(float));
		mu_plan_batch(plans[p])->labels = t.labels;
		mu_plan_batch(plans[p])->count = batch;
		for (size_t l = 0; l < mu_plan_layers(plans[p]); l++)
			CHECK(mu_plan_forward(plans[p], l) == MU_OK);
		for (size_t i = 0; i < batch * custom_gates.classes; i++)
			CHECK_NEAR(mu_plan_probabilities(plans[p])[i],
				   mu_plan_probabilities(t.plan)[i], 1e-5);
		mu_plan_free(plans[p]);
	}
	stop(&t);
}

/* Names, initial values, the summary. */
static void test_names(void)
{
	static const char *const names[] = {"gate0_weight",        "gate0_offset",
					    "convolution0_weight", "convolution0_bias",
					    "convolution1_weight", "convolution1_bias",
					    "gate1_weight",        "gate1_offset"};
	struct training t;
	const struct mu_slice *slices;
	char text[4096] = "";
	FILE *stream = tmpfile();
	size_t n;

	if (!CHECK(start(&t, &custom_gates, &custom_gates.shape, "ref")) || !CHECK(stream != NULL))
		return;
	slices = mu_plan_slices(t.plan, &n);
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		CHECK_TEXT(slices[k].name, names[k]);
	CHECK(t.weights[slices[7].at] == 0.5f && t.weights[slices[7].at + 15] == 0.5f);
	CHECK(t.weights[slices[6].at] != t.weights[slices[6].at + 1]);
	CHECK(t.weights[slices[3].at] == 0);
	CHECK(mu_plan_summary(t.plan, stream) == MU_OK);
	rewind(stream);
	CHECK(fread(text, 1, sizeof text - 1, stream) > 0);
	CHECK_HAS(text, "gate1                                gate                   (16, 6, 6)");
	fclose(stream);
	stop(&t);
}

/* ---- errors ---- */

enum fault {
	NO_FAULT,
	NO_FORWARD,
	NO_INPUTS,
	BAD_INPUT,
	SAME_NAME,
	THREE_DIMENSIONS,
	OTHER_BATCH,
	EMPTY_OUTPUT,
	FIVE_PARAMS,
	NO_SUFFIX,
	SAME_SUFFIX,
	SHAPE_SAYS,
	SHAPE_FAILS,
	BY_BATCH,
	FORWARD_FAILS,
	BACKWARD_SAYS,
};

static enum mu_status faulty_shape(struct mu_layer *layer)
{
	enum mu_status st = MU_OK;
	enum fault fault = *(const enum fault *)layer->attr;

	layer->output.shape = layer->inputs[0].shape;
	layer->n_params = fault == FIVE_PARAMS ? MU_MAX_PARAMS + 1 : 2;
	for (int p = 0; p < 2; p++) {
		layer->params[p].suffix = p == 0 || fault == SAME_SUFFIX ? "one" : "two";
		layer->params[p].shape = (struct mu_shape){1, {3}};
	}
	if (fault == NO_SUFFIX)
		layer->params[1].suffix = NULL;
	if (fault == THREE_DIMENSIONS)
		layer->output.shape.ndims = 3;
	if (fault == OTHER_BATCH)
		layer->output.shape.dims[0]++;
	if (fault == EMPTY_OUTPUT)
		layer->output.shape.dims[1] = 0;
	if (fault == BY_BATCH)
		layer->params[1].shape.dims[0] = layer->inputs[0].shape.dims[0];
	if (fault == SHAPE_FAILS)
		return MU_ERR_UNSUPPORTED;
	if (fault == SHAPE_SAYS)
		MU_FAIL(MU_ERR_ARGUMENT, "%s wants something else", layer->name);
out:
	return st;
}

static enum mu_status faulty_forward(struct mu_layer *layer)
{
	return *(const enum fault *)layer->attr == FORWARD_FAILS ? MU_ERR_NUMERIC : MU_OK;
}

static enum mu_status faulty_backward(struct mu_layer *layer)
{
	enum mu_status st = MU_OK;

	MU_FAIL(MU_ERR_DEVICE, "%s says why", layer->name);
out:
	return st;
}

static enum fault fault; /* of the next net */

static enum mu_status build_faulty(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_layer_ops ops = {.name = "faulty"};
	static const struct mu_layer_ops whole = {.name = "faulty",
						  .shape = faulty_shape,
						  .forward = faulty_forward,
						  .backward = faulty_backward};
	const struct mu_custom custom = {.ops = fault == NO_FORWARD ? &ops : &whole,
					 .attr = &fault,
					 .attr_nbytes = sizeof fault};
	int x = mu_net_input(net), in = fault == BAD_INPUT ? 7 : x;

	x = mu_net_custom(net, fault == NO_INPUTS ? 0 : 1, &in, &custom, "here");
	if (fault == SAME_NAME)
		x = mu_net_custom(net, 1, &x, &custom, "here");
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network faulty = {
	.name = "faulty-net", .shape = MU_SAMPLE(1, 2, 2), .classes = 2, .build = build_faulty};

static const struct {
	enum fault fault;
	const char *words;
} of_building[] = {
	{NO_FORWARD, "needs a name, shape, forward and backward"},
	{NO_INPUTS, "faulty with 0 inputs; 1 to 4"},
	{BAD_INPUT, "reads tensor 7; there are 0 to 0"},
	{SAME_NAME, "two layers with parameters are called here"},
	{THREE_DIMENSIONS, "output of 3 dimensions"},
	{OTHER_BATCH, "output (2, 1, 2, 2)"},
	{EMPTY_OUTPUT, "output (1, 0, 2, 2)"},
	{FIVE_PARAMS, "5 parameters; at most 4"},
	{NO_SUFFIX, "parameter 1 of layer faulty has no suffix"},
	{SAME_SUFFIX, "two parameters of layer faulty have suffix one"},
	{SHAPE_SAYS, "network faulty-net: here wants something else"},
	{SHAPE_FAILS, "here: the shape of layer faulty returned"},
};

static void check_running(const char *device, enum fault which, enum mu_status expected,
			  const char *words)
{
	struct training t;
	enum mu_status st;

	fault = which;
	if (!CHECK(start(&t, &faulty, &faulty.shape, device)))
		return;
	fault = NO_FAULT; /* the net has a copy */
	st = mu_plan_forward(t.plan, 0);
	if (which == BACKWARD_SAYS && CHECK(st == MU_OK)) {
		forward(&t);
		for (size_t l = mu_plan_layers(t.plan); l-- > 0 && st == MU_OK;)
			st = mu_plan_backward(t.plan, l);
	}
	CHECK(st == expected);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
	stop(&t);
}

static void test_errors(void)
{
	struct mu_net_config config = {.shape = MU_SAMPLE(1, 2, 2), .classes = 2};

	for (size_t i = 0; i < sizeof of_building / sizeof *of_building; i++) {
		struct mu_net *net = NULL;

		fault = of_building[i].fault;
		CHECK(mu_net_new_from(&net, &faulty, &config) == MU_ERR_USAGE);
		CHECK_HAS(mu_trace_message(), of_building[i].words);
		CHECK(net == NULL);
		mu_trace_clear();
	}
	for (size_t d = 0; mu_device_table[d]; d++) {
		const char *device = mu_device_table[d]->name;
		struct training t;

		if (!CHECK_IS_HERE(mu_device_table[d]))
			continue;
		check_running(device, FORWARD_FAILS, MU_ERR_NUMERIC,
			      "here: the forward of layer faulty returned");
		check_running(device, BACKWARD_SAYS, MU_ERR_DEVICE, "here says why");
		fault = BY_BATCH;
		CHECK(!start(&t, &faulty, &faulty.shape, device));
		CHECK_HAS(mu_trace_message(), "depend on the batch");
		mu_trace_clear();
		stop(&t);
	}
}

/* ---- the binary interface ---- */

/* Sizes where pointers have 8 bytes. One that changes: raise MU_ABI in net.h and mend it here. */
static void test_abi(void)
{
	static const struct {
		const char *name;
		size_t found, expected;
	} sizes[] = {
		{"mu_shape", sizeof(struct mu_shape), 48},
		{"mu_convolution", sizeof(struct mu_convolution), 60},
		{"mu_fully_connected", sizeof(struct mu_fully_connected), 8},
		{"mu_pooling", sizeof(struct mu_pooling), 40},
		{"mu_batch_norm", sizeof(struct mu_batch_norm), 12},
		{"mu_lrn", sizeof(struct mu_lrn), 16},
		{"mu_embedding", sizeof(struct mu_embedding), 8},
		{"mu_lstm", sizeof(struct mu_lstm), 4},
		{"mu_layer_norm", sizeof(struct mu_layer_norm), 8},
		{"mu_attention", sizeof(struct mu_attention), 20},
		{"mu_positions", sizeof(struct mu_positions), 8},
		{"mu_batch", sizeof(struct mu_batch), 104},
		{"mu_layer_array", sizeof(struct mu_layer_array), 80},
		{"mu_layer", sizeof(struct mu_layer), 784},
		{"mu_layer_ops", sizeof(struct mu_layer_ops), 32},
		{"mu_custom", sizeof(struct mu_custom), 24},
		{"mu_head", sizeof(struct mu_head), 40},
		{"mu_loss", sizeof(struct mu_loss), 536},
		{"mu_metric", sizeof(struct mu_metric), 72},
		{"mu_loss_results", sizeof(struct mu_loss_results), 40},
		{"mu_metrics", sizeof(struct mu_metrics), 408},
		{"mu_tally", sizeof(struct mu_tally), 112},
		{"mu_net_config", sizeof(struct mu_net_config), 120},
		{"mu_network", sizeof(struct mu_network), 176},
		{"mu_network_export", sizeof(struct mu_network_export), 16},
	};

	CHECK(MU_ABI == 13);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (!CHECK(sizeof(void *) != 8 || sizes[i].found == sizes[i].expected))
			fprintf(stderr, "    struct %s has %zu bytes\n", sizes[i].name,
				sizes[i].found);
}

int main(void)
{
	static const struct mu_shape small = MU_SAMPLE(1, 16, 16);

	test_abi();
	test_names();
	test_errors();
	for (size_t d = 0; mu_device_table[d]; d++) {
		const char *device = mu_device_table[d]->name;

		if (!CHECK_IS_HERE(mu_device_table[d]))
			continue;
		test_gradients(&custom_gates, &custom_gates.shape, "gate0_weight", device);
		test_gradients(mu_network_export.network, &small, "prelu0_slope", device);
		test_steps(&custom_gates, device, 0.01f);
		test_steps(mu_network_export.network, device, 0.01f);
		test_shared_arrays(device);
		test_loss(device);
	}
	return check_failures() ? 1 : 0;
}
