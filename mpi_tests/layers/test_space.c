/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Small networks of layers for images and volumes, on every device against ref: a step's loss and
 * gradients; the same bits when outputs are computed again for backward; on ref, gradients against
 * differences, and the plan's memory. Means over any axes, by hand.
 */
#include <string.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "net/plan.h"

enum { SAMPLES = 2, CLASSES = 3, FILTERS = 4 };

/* ---- layers ---- */

static int convolve(struct mu_net *net, int x, const char *name)
{
	const struct mu_convolution a = {.filters = FILTERS, .kernel = {3, 3, 3}, .pad = {1, 1, 1}};

	return mu_net_convolution(net, x, &a, name);
}

static int relu(struct mu_net *net, int x)
{
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
}

static int tanh_of(struct mu_net *net, int x)
{
	return mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
}

static int group_norm(struct mu_net *net, int x)
{
	x = mu_net_group_norm(net, x, &(struct mu_group_norm){1e-2f, 2}, NULL);
	return relu(net, x);
}

static int instance_norm(struct mu_net *net, int x)
{
	x = mu_net_group_norm(net, x, &(struct mu_group_norm){.eps = 1e-2f}, NULL);
	return convolve(net, tanh_of(net, x), NULL);
}

static int upsample(struct mu_net *net, int x)
{
	const struct mu_upsampling twice = {.scale = {2, 2, 2}};
	const struct mu_upsampling smooth = {.linear = true, .scale = {1, 2, 2}};

	x = relu(net, mu_net_upsampling(net, x, &twice, NULL));
	return convolve(net, tanh_of(net, mu_net_upsampling(net, x, &smooth, NULL)), NULL);
}

static int pad_and_crop(struct mu_net *net, int x)
{
	const struct mu_pad pad = {.before = {1, 0, 2}, .after = {0, 2, 1}, .value = 0.5f};
	const struct mu_crop crop = {.start = {0, 1, 1}, .size = {3, 3, 2}};

	x = convolve(net, tanh_of(net, mu_net_pad(net, x, &pad, NULL)), NULL);
	return convolve(net, relu(net, mu_net_crop(net, x, &crop, NULL)), NULL);
}

static int transposed(struct mu_net *net, int x)
{
	const struct mu_deconvolution a = {
		.filters = FILTERS, .kernel = {3, 2, 3}, .stride = {2, 2, 1}, .pad = {1, 0, 1}};

	x = tanh_of(net, mu_net_deconvolution(net, x, &a, NULL));
	return convolve(net, relu(net, mu_net_deconvolution(net, x, &a, NULL)), NULL);
}

static int usual(struct mu_net *net, int x)
{
	const struct mu_batch_norm norm = {.eps = 1e-2f, .momentum = 0.9f};
	const struct mu_pooling max = {.kernel = {2, 2, 2}, .stride = {2, 2, 2}};
	const struct mu_pooling average = {.average = true, .kernel = {3, 3, 3}, .pad = {1, 1, 1}};

	x = relu(net, mu_net_batch_norm(net, x, &norm, NULL));
	x = tanh_of(net, mu_net_pooling(net, x, &max, NULL));
	x = relu(net, convolve(net, x, NULL));
	return mu_net_pooling(net, x, &average, NULL);
}

static int gate(struct mu_net *net, int x)
{
	const int y = mu_net_activation(net, convolve(net, x, NULL), MU_ACTIVATION_SIGMOID, NULL);

	x = mu_net_product(net, x, y, NULL);
	return convolve(net, mu_net_product(net, x, x, NULL), NULL);
}

static int means(struct mu_net *net, int x)
{
	const int all = mu_net_mean(net, x, 1 | MU_AXIS_CHANNELS, NULL);
	const int both = mu_net_mean(net, x, 2, NULL);

	x = tanh_of(net, mu_net_mean(net, x, MU_AXIS_CHANNELS, NULL));
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 5}, NULL);
	return mu_net_concat(
		net, 3,
		(const int[]){x, mu_net_flatten(net, all, NULL), mu_net_flatten(net, both, NULL)},
		NULL);
}

/* Images and volumes have 30 positions. */
static int reshape(struct mu_net *net, int x)
{
	const struct mu_shape rows = MU_SAMPLE(6, 4, 5), deep = MU_SAMPLE(FILTERS, 2, 2, 5);

	x = relu(net, mu_net_reshape(net, convolve(net, x, NULL), &rows, NULL));
	return convolve(net, tanh_of(net, mu_net_reshape(net, convolve(net, x, NULL), &deep, NULL)),
			NULL);
}

static int smooth(struct mu_net *net, int x)
{
	static const struct mu_activation of[] = {
		{MU_ACTIVATION_ELU, 1.5f},         {MU_ACTIVATION_SOFTPLUS, 2},
		{MU_ACTIVATION_SCALED_TANH, 1.7f}, {MU_ACTIVATION_LEAKY_RELU, 0.2f},
		{MU_ACTIVATION_GELU_TANH, 0},      {MU_ACTIVATION_SILU, 0},
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		x = mu_net_activation_of(net, x, &of[i], NULL);
		x = i % 2 ? x : convolve(net, x, NULL);
	}
	return x;
}

static const struct {
	const char *name;
	int (*add)(struct mu_net *net, int x);
	size_t bytes[2]; /* of ref's plan for images, for volumes, at most */
} bodies[] = {
	{"group norm", group_norm, {4480, 4480}},
	{"instance norm", instance_norm, {5440, 5440}},
	{"upsampling", upsample, {36160, 132160}},
	{"pad and crop", pad_and_crop, {6784, 14016}},
	{"transposed", transposed, {58880, 42880}},
	{"convolution, norm, pooling", usual, {3968, 3840}},
	{"product", gate, {7552, 7552}},
	{"means", means, {5632, 5824}},
	{"reshape", reshape, {5248, 5248}},
	{"smooth activations", smooth, {12160, 12160}},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

/* config->num_layers is the number of the body, from 1. */
static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected scores = {.units = CLASSES};
	int x = tanh_of(net, convolve(net, mu_net_input(net), "first"));

	x = bodies[config->num_layers - 1].add(net, x);
	x = mu_net_fully_connected(net, x, &scores, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network network = {
	.name = "space", .classes = CLASSES, .traits = MU_NETWORK_DEPTHS, .build = build};

/* ---- a step ---- */

struct step {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights, *gradients, *plain; /* plain: gradients in plain order, one after another */
	float labels[128];
	size_t n; /* plain ones */
};

static enum mu_status start(struct step *s, const char *device, const struct mu_net_config *config,
			    const struct mu_network *of)
{
	enum mu_status st = MU_OK;
	const struct mu_random random = {.seed = 5, .purpose = MU_RANDOM_TEST};
	size_t n;

	*s = (struct step){.n = 0};
	MU_TRY(mu_device_open(&s->device, device, 2));
	MU_TRY(mu_net_new_from(&s->net, of, config));
	MU_TRY(mu_plan_new(&s->plan, s->net, &s->device, SAMPLES, MU_PHASE_TRAIN, NULL));
	n = mu_plan_n(s->plan);
	MU_TRY(MU_ALLOC(s->weights, n, "weights"));
	MU_TRY(MU_ALLOC(s->gradients, n, "gradients"));
	MU_TRY(MU_ALLOC(s->plain, n, "plain gradients"));
	MU_TRY(mu_plan_init_weights(s->plan, "xavier", 3, s->weights));
	MU_TRY(mu_plan_bind(s->plan, s->weights, s->gradients));
	for (size_t i = 0; i < SAMPLES * mu_shape_sample(&config->shape); i++)
		mu_plan_input(s->plan)[i] = 2 * mu_random_uniform(&random, i) - 1;
	for (size_t i = 0; i < sizeof s->labels / sizeof *s->labels; i++)
		s->labels[i] = (float)(i % CLASSES);
	*mu_plan_batch(s->plan) = (struct mu_batch){.labels = s->labels, .count = SAMPLES};
out:
	return st;
}

static void stop(struct step *s)
{
	mu_plan_free(s->plan);
	mu_net_free(s->net);
	mu_device_close(&s->device);
	mu_free(s->weights);
	mu_free(s->gradients);
	mu_free(s->plain);
}

static double forward(struct step *s)
{
	for (size_t l = 0; l < mu_plan_layers(s->plan); l++)
		CHECK(mu_plan_forward(s->plan, l) == MU_OK);
	return mu_plan_batch(s->plan)->loss;
}

static void backward(struct step *s)
{
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(s->plan, &n);

	for (size_t l = mu_plan_layers(s->plan); l-- > 0;)
		CHECK(mu_plan_backward(s->plan, l) == MU_OK);
	s->n = 0;
	for (size_t k = 0; k < n; s->n += slices[k++].n)
		CHECK(mu_plan_slice_to_plain(s->plan, k, s->gradients, s->plain + s->n) == MU_OK);
}

/* Twice, since a plan serves many steps. */
static bool run(struct step *s, const char *device, const struct mu_net_config *config)
{
	if (start(s, device, config, &network) != MU_OK) {
		mu_trace_print(stderr, "test_space");
		mu_trace_clear();
		stop(s);
		return false;
	}
	for (int i = 0; i < 2; i++) {
		forward(s);
		backward(s);
	}
	return true;
}

static double distance(const struct step *a, const struct step *b)
{
	const double loss = mu_plan_batch(b->plan)->loss;
	double worst = fabs(mu_plan_batch(a->plan)->loss - loss) / loss;

	for (size_t i = 0; i < a->n && CHECK(a->n == b->n); i++)
		worst = fmax(worst, fabs((double)a->plain[i] - (double)b->plain[i]) /
					    (1 + fabs((double)b->plain[i])));
	return worst;
}

/* Gradients of the first convolution on ref. float32's errors are some 1e-6 of the loss. */
static void check_differences(struct step *s)
{
	const double h = 1.0 / 1024;
	size_t n;
	const struct mu_slice *first = mu_plan_slices(s->plan, &n);

	for (size_t i = 0; i < first->n; i += first->n / 24 + 1) {
		float *w = &s->weights[first->at + i], old = *w;
		double up;

		*w = old + (float)h;
		up = forward(s);
		*w = old - (float)h;
		CHECK_NEAR((double)s->plain[i], (up - forward(s)) / (2 * h), 3e-3);
		*w = old;
	}
}

static void test_body(const char *device, int body, struct mu_shape shape)
{
	struct mu_net_config config = {.network = "space",
				       .shape = shape,
				       .classes = CLASSES,
				       .num_layers = body + 1,
				       .recompute = MU_RECOMPUTE_NONE};
	const bool is_ref = strcmp(device, "ref") == 0;
	struct step ref, none, again;
	size_t bytes;

	if (!CHECK(run(&ref, "ref", &config)) || !CHECK(run(&none, device, &config)))
		return;
	bytes = mu_plan_arena_bytes(none.plan);
	if (!CHECK(distance(&none, &ref) < 2e-5))
		fprintf(stderr, "    %s differs by %.1e\n", bodies[body].name,
			distance(&none, &ref));
	for (int level = 0; level < MU_RECOMPUTE_N; level++) {
		config.recompute = (enum mu_recompute)level;
		if (level == MU_RECOMPUTE_NONE || !CHECK(run(&again, device, &config)))
			continue;
		CHECK(distance(&again, &none) == 0);
		if (level == MU_RECOMPUTE_ALL)
			printf("%s, %d axes, %s: %zu bytes, %zu with all recomputed\n", device,
			       shape.ndims - 2, bodies[body].name, bytes,
			       mu_plan_arena_bytes(again.plan));
		stop(&again);
	}
	if (is_ref) {
		CHECK(bytes <= bodies[body].bytes[shape.ndims - 4]);
		check_differences(&none);
	}
	stop(&none);
	stop(&ref);
}

/* ---- means ---- */

/* The mean over the axes config->num_layers of a weight for each channel times the input. */
static enum mu_status build_mean(struct mu_net *net, const struct mu_net_config *config)
{
	const int c = (int)config->shape.dims[1];
	const struct mu_convolution weigh = {
		.filters = c, .kernel = {1, 1, 1}, .groups = c, .no_bias = true};
	int x = mu_net_input(net);

	if (config->shape.ndims > 2)
		x = mu_net_convolution(net, x, &weigh, NULL);
	else
		x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){c, true}, NULL);
	x = mu_net_mean(net, x, (unsigned)config->num_layers, NULL);
	mu_net_element_loss(net, x, &(struct mu_element_loss){MU_ELEMENT_SQUARED, 0}, "mse");
	return MU_OK;
}

static const struct mu_network mean_network = {
	.name = "mean", .classes = 1, .traits = MU_NETWORK_DEPTHS, .build = build_mean};

/* With weights of 1. Element i of a sample (3, 2, 3, 2) belongs to output to[i]. */
static void check_mean(struct step *s, const size_t *to, size_t n_out, size_t positions)
{
	const size_t n = 3 * positions, share = n / n_out;
	double y[128] = {0}, gradient[3] = {0};

	for (size_t i = 0; i < SAMPLES * n; i++)
		y[i / n * n_out + to[i % n]] += (double)mu_plan_input(s->plan)[i] / (double)share;
	for (size_t i = 0; i < SAMPLES * n; i++) {
		const size_t o = i / n * n_out + to[i % n];

		gradient[i % n / positions] += 2 * (y[o] - (double)s->labels[o]) / (double)n_out *
					       (double)mu_plan_input(s->plan)[i] / (double)share;
	}
	for (size_t o = 0; o < SAMPLES * n_out; o++)
		CHECK_NEAR((double)mu_plan_probabilities(s->plan)[o], y[o], 1e-6);
	for (size_t c = 0; c < 3; c++)
		CHECK_NEAR((double)s->plain[c], gradient[c], 1e-5);
}

static void test_mean(const char *device, unsigned axes)
{
	const struct mu_net_config config = {.network = "mean",
					     .shape = MU_SAMPLE(3, 2, 3, 2),
					     .classes = 1,
					     .num_layers = axes};
	const unsigned bit[4] = {MU_AXIS_CHANNELS, 1, 2, 4};
	size_t to[36], size[4], n_out = 1;
	float ones[3] = {1, 1, 1};
	struct step s;

	if (!CHECK(start(&s, device, &config, &mean_network) == MU_OK)) {
		mu_trace_print(stderr, "test_space");
		return;
	}
	for (int d = 0; d < 4; d++)
		n_out *= size[d] = axes & bit[d] ? 1 : config.shape.dims[1 + d];
	for (size_t i = 0; i < 36; i++) {
		const size_t at[4] = {i / 12, i / 6 % 2, i / 2 % 3, i % 2};

		to[i] = 0;
		for (int d = 0; d < 4; d++)
			to[i] = to[i] * size[d] + (size[d] > 1 ? at[d] : 0);
	}
	CHECK(mu_plan_slice_from_plain(s.plan, 0, ones, s.weights) == MU_OK);
	forward(&s);
	backward(&s);
	check_mean(&s, to, n_out, 12);
	stop(&s);
}

/* (3): one number of a sample. */
static void test_mean_of_vector(const char *device)
{
	const struct mu_net_config config = {.network = "mean",
					     .shape = MU_SAMPLE(3),
					     .classes = 1,
					     .num_layers = MU_AXIS_CHANNELS};
	float unit[9] = {[0] = 1, [4] = 1, [8] = 1};
	const float *y;
	struct step s;

	if (!CHECK(start(&s, device, &config, &mean_network) == MU_OK))
		return;
	CHECK(mu_plan_slice_from_plain(s.plan, 0, unit, s.weights) == MU_OK);
	forward(&s);
	y = mu_plan_probabilities(s.plan);
	for (int i = 0; i < SAMPLES; i++) {
		const float *x = mu_plan_input(s.plan) + 3 * i;

		CHECK_NEAR((double)y[i], ((double)x[0] + (double)x[1] + (double)x[2]) / 3, 1e-6);
	}
	stop(&s);
}

int main(void)
{
	for (size_t d = 0; mu_device_table[d]; d++) {
		const char *device = mu_device_table[d]->name;

		if (!CHECK_IS_HERE(mu_device_table[d]))
			continue;
		for (int body = 0; body < BODIES; body++) {
			test_body(device, body, (struct mu_shape)MU_SAMPLE(2, 6, 5));
			test_body(device, body, (struct mu_shape)MU_SAMPLE(2, 2, 3, 5));
		}
		for (unsigned axes = 1; axes < 16; axes++)
			test_mean(device, axes);
		test_mean_of_vector(device);
	}
	return check_failures() ? 1 : 0;
}
