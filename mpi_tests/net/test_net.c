/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Networks and plans: parameter counts and names against the reference's, bad shapes, ten training
 * steps of mlp, and three of a residual network, on every device against ref (other networks:
 * test_golden, test_zoo), and that
 * sharing memory by lifetime changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "net/plan.h"

struct count {
	const char *network;
	size_t params, arrays;
	const char *names[8];
};

static const struct count counts[] = {
	{"mlp",
	 109386,
	 6,
	 {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "fc3_weight", "fc3_bias"}},
	{"lenet",
	 431080,
	 8,
	 {"convolution0_weight", "convolution0_bias", "convolution1_weight", "convolution1_bias",
	  "fullyconnected0_weight", "fullyconnected0_bias", "fullyconnected1_weight",
	  "fullyconnected1_bias"}},
};

static void test_counts(void)
{
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct mu_net_config config = {
			.network = counts[i].network, .shape = MU_SAMPLE(1, 28, 28), .classes = 10};
		struct mu_net_counts found;
		struct mu_device device;
		struct mu_plan *plan = NULL;
		struct mu_net *net = NULL;
		const struct mu_slice *slices;
		size_t n;

		CHECK(mu_net_new(&net, &config) == MU_OK);
		mu_net_counts(net, &found);
		CHECK(found.params == counts[i].params);
		CHECK(found.arrays == counts[i].arrays);
		CHECK(found.aux == 0);
		CHECK(mu_device_open(&device, "ref", 1) == MU_OK);
		CHECK(mu_plan_new(&plan, net, &device, 2, MU_PHASE_TRAIN, NULL) == MU_OK);
		slices = mu_plan_slices(plan, &n);
		CHECK(n == counts[i].arrays);
		for (size_t k = 0; k < n; k++) {
			CHECK_TEXT(slices[k].name, counts[i].names[k]);
			CHECK(slices[k].at % 16 == 0);
		}
		mu_plan_free(plan);
		mu_device_close(&device);
		mu_net_free(net);
	}
}

static void check_error(const char *network, size_t height, size_t classes, const char *words)
{
	struct mu_net_config config = {
		.network = network, .shape = MU_SAMPLE(1, height, 28), .classes = classes};
	struct mu_net *net = NULL;

	CHECK(mu_net_new(&net, &config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), words);
	CHECK(net == NULL);
	mu_trace_clear();
}

static void test_errors(void)
{
	check_error("lenex", 28, 10, "mlp");
	check_error("lenet", 4, 10, "larger image");
	check_error("lenet", 28, 1, "at least 2");
}

/* A net in training: everything that ten steps need. */
struct training {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights, *gradients;
	float labels[16];
	size_t features; /* of a sample */
};

/* The smallest residual network with units whose sums are restored from the sum before. */
static struct mu_net_config config_of(const char *network)
{
	struct mu_net_config config = {
		.network = network, .shape = MU_SAMPLE(1, 28, 28), .classes = 10};

	if (strcmp(network, "resnet-v1") == 0) {
		config.num_layers = 14;
		config.shape = (struct mu_shape)MU_SAMPLE(3, 32, 32);
	}
	return config;
}

static bool start(struct training *t, const char *network, const char *device, size_t batch)
{
	struct mu_net_config config = config_of(network);

	*t = (struct training){.features = mu_shape_sample(&config.shape)};
	if (mu_device_open(&t->device, device, 1) != MU_OK ||
	    mu_net_new(&t->net, &config) != MU_OK ||
	    mu_plan_new(&t->plan, t->net, &t->device, batch, MU_PHASE_TRAIN, NULL) != MU_OK ||
	    MU_ALLOC(t->weights, mu_plan_n(t->plan), "weights") != MU_OK ||
	    MU_ALLOC(t->gradients, mu_plan_n(t->plan), "gradients") != MU_OK ||
	    mu_plan_init_weights(t->plan, "default", 7, t->weights) != MU_OK ||
	    mu_plan_bind(t->plan, t->weights, t->gradients) != MU_OK) {
		mu_trace_print(stderr, "test_net");
		return false;
	}
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

/* One step of plain gradient descent on a fixed random batch; returns the mean loss. */
static double step(struct training *t, size_t batch, double lr)
{
	struct mu_random random = {.seed = 3, .purpose = MU_RANDOM_TEST};
	struct mu_batch *b = mu_plan_batch(t->plan);

	for (size_t i = 0; i < batch * t->features; i++)
		mu_plan_input(t->plan)[i] = 2 * mu_random_uniform(&random, i) - 1;
	for (size_t i = 0; i < batch; i++)
		t->labels[i] = (float)(i % 10);
	b->labels = t->labels;
	b->count = batch;
	for (size_t l = 0; l < mu_plan_layers(t->plan); l++)
		CHECK(mu_plan_forward(t->plan, l) == MU_OK);
	for (size_t l = mu_plan_layers(t->plan); l-- > 0;)
		CHECK(mu_plan_backward(t->plan, l) == MU_OK);
	for (size_t i = 0; i < mu_plan_n(t->plan); i++)
		t->weights[i] -= (float)lr / (float)batch * t->gradients[i];
	return b->loss / (double)batch;
}

/* Losses agree to 1e-4 over some steps: float32 sums in another order, amplified by updates. */
static void test_steps(const char *network, const char *device, int steps, size_t batch)
{
	struct training a, b;
	double first = 0, last = 0;

	if (!CHECK(start(&a, network, "ref", batch)) || !CHECK(start(&b, network, device, batch)))
		return;
	for (int i = 0; i < steps; i++) {
		double expected = step(&a, batch, 0.05);

		last = step(&b, batch, 0.05);
		CHECK_NEAR(last, expected, 1e-4);
		if (i == 0)
			first = last;
	}
	CHECK(last < 0.7 * first);
	stop(&a);
	stop(&b);
}

/* Slices go to plain order and back without change, and padding is zero. */
static void test_slices(const char *device)
{
	struct training t;
	size_t n;
	const struct mu_slice *slices;
	float *plain, *back;

	if (!CHECK(start(&t, "lenet", device, 3)))
		return;
	step(&t, 3, 0.1);
	slices = mu_plan_slices(t.plan, &n);
	plain = calloc(mu_plan_n(t.plan), sizeof *plain);
	back = malloc(mu_plan_n(t.plan) * sizeof *back);
	memset(back, 0xff, mu_plan_n(t.plan) * sizeof *back);
	for (size_t k = 0; k < n; k++) {
		CHECK(mu_plan_slice_to_plain(t.plan, k, t.weights, plain) == MU_OK);
		CHECK(mu_plan_slice_from_plain(t.plan, k, plain, back) == MU_OK);
		CHECK(memcmp(back + slices[k].at, t.weights + slices[k].at,
			     slices[k].n_padded * sizeof(float)) == 0);
	}
	free(plain);
	free(back);
	stop(&t);
}

/* The short plan and the inference plan work on the arrays of the full one, and find the same
 * probabilities. */
static void test_shared_arrays(const char *device)
{
	struct training t;
	struct mu_plan *infer = NULL, *tail = NULL, *plans[2];

	if (!CHECK(start(&t, "lenet", device, 8)))
		return;
	step(&t, 8, 0);
	CHECK(mu_plan_new(&infer, t.net, &t.device, 8, MU_PHASE_INFER, t.plan) == MU_OK);
	CHECK(mu_plan_new(&tail, t.net, &t.device, 3, MU_PHASE_TRAIN, t.plan) == MU_OK);
	CHECK(mu_plan_hash(infer) == mu_plan_hash(t.plan));
	CHECK(mu_plan_hash(tail) == mu_plan_hash(t.plan));
	CHECK(mu_plan_bind(infer, t.weights, NULL) == MU_OK);
	CHECK(mu_plan_bind(tail, t.weights, t.gradients) == MU_OK);
	plans[0] = infer;
	plans[1] = tail;
	for (int p = 0; p < 2; p++) {
		memcpy(mu_plan_input(plans[p]), mu_plan_input(t.plan),
		       mu_plan_batch_size(plans[p]) * 784 * sizeof(float));
		mu_plan_batch(plans[p])->labels = t.labels;
		mu_plan_batch(plans[p])->count = mu_plan_batch_size(plans[p]);
		for (size_t l = 0; l < mu_plan_layers(plans[p]); l++)
			CHECK(mu_plan_forward(plans[p], l) == MU_OK);
		for (size_t i = 0; i < mu_plan_batch_size(plans[p]) * 10; i++)
			CHECK_NEAR(mu_plan_probabilities(plans[p])[i],
				   mu_plan_probabilities(t.plan)[i], 1e-5);
	}
	mu_plan_free(infer);
	mu_plan_free(tail);
	stop(&t);
}

static void test_nonfinite(const char *device)
{
	struct training t;
	const struct mu_slice *slices;
	size_t n;

	if (!CHECK(start(&t, "lenet", device, 2)))
		return;
	CHECK(mu_plan_find_nonfinite(t.plan) == NULL);
	slices = mu_plan_slices(t.plan, &n);
	t.weights[slices[2].at] = NAN;
	CHECK_TEXT(mu_plan_find_nonfinite(t.plan), "convolution1_weight");
	stop(&t);
}

/* Deviation and largest size of lenet's second convolution, (50, 20, 5, 5): fan in 500, out 1250.
 */
static void check_initializer(const struct training *t, const char *name, double deviation,
			      double largest)
{
	size_t n;
	const struct mu_slice *s = &mu_plan_slices(t->plan, &n)[2];
	float *plain = malloc(s->n * sizeof *plain);
	double squares = 0, most = 0;

	CHECK(mu_plan_init_weights(t->plan, name, 5, t->weights) == MU_OK);
	CHECK(mu_plan_slice_to_plain(t->plan, 2, t->weights, plain) == MU_OK);
	for (size_t i = 0; i < s->n; i++) {
		squares += (double)plain[i] * (double)plain[i];
		most = fmax(most, fabs((double)plain[i]));
	}
	CHECK_NEAR(sqrt(squares / (double)s->n), deviation, 0.03 * deviation);
	CHECK(most <= largest);
	free(plain);
}

static void test_initializers(void)
{
	struct training t;

	if (!CHECK(start(&t, "lenet", "ref", 1)))
		return;
	check_initializer(&t, "default", sqrt(2.0 / 500), 1);
	check_initializer(&t, "xavier", sqrt(1.0 / 875), sqrt(3.0 / 875));
	check_initializer(&t, "msra", sqrt(2.0 / (1 + 0.0625) / 875), 1);
	check_initializer(&t, "normal", 0.01, 0.1);
	check_initializer(&t, "uniform", 0.07 / sqrt(3.0), 0.07001);
	check_initializer(&t, "orthogonal", 1.414 / sqrt(500.0), 1);
	check_initializer(&t, "one", 1, 1);
	check_initializer(&t, "zero", 0, 0);
	CHECK(mu_plan_init_weights(t.plan, "xavia", 5, t.weights) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "orthogonal");
	mu_trace_clear();
	/* However many threads draw them. */
	CHECK(mu_plan_init_weights(t.plan, "default", 5, t.gradients) == MU_OK);
	for (t.device.n_threads = 2; t.device.n_threads < 9; t.device.n_threads++) {
		CHECK(mu_plan_init_weights(t.plan, "default", 5, t.weights) == MU_OK);
		CHECK(memcmp(t.weights, t.gradients, mu_plan_n(t.plan) * sizeof(float)) == 0);
	}
	stop(&t);
}

int main(void)
{
	test_counts();
	test_errors();
	test_initializers();
	for (size_t d = 0; mu_device_table[d]; d++) {
		const char *device = mu_device_table[d]->name;

		if (!CHECK_IS_HERE(mu_device_table[d]))
			continue;
		test_steps("mlp", device, 10, 6);
		test_steps("resnet-v1", device, 3, 2);
		test_slices(device);
		test_shared_arrays(device);
		test_nonfinite(device);
	}
	return check_failures() ? 1 : 0;
}
