/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Convolutions in half precision by engines of cuDNN's that a table names, each phase by another
 * one: gradients as near to ref's in float32 as by cuDNN's own choice. A number that no engine has
 * is direct. With bias and activation, with stride, with groups, with a batch-norm behind. cuDNN
 * lists from two to more than 40 of them (on an H100). Of images and volumes.
 */
#include "one_step.h"

enum { BATCH = 4, MOST_VALUES = 8 * 3 * 6 * 6, CLASSES = 3, LAYERS = 4, LAST_ENGINE = 39 };

static const struct mu_shape samples_of[] = {MU_SAMPLE(8, 6, 6), MU_SAMPLE(8, 3, 6, 6)};

static const char *const layers[LAYERS] = {"biased", "strided", "grouped", "normed"};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution biased = {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}};
	const struct mu_convolution strided = {
		.filters = 16, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .no_bias = true};
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
	.name = "engines", .shape = MU_SAMPLE(8, 6, 6), .classes = CLASSES, .build = build};

/* What is trained, in which numbers. */
struct wanted {
	struct mu_shape sample;
	enum mu_dtype dtype;
};

/* A step of training. engines: of the phases; NULL: the device chooses. */
static bool run(struct one_step *r, const char *device, const struct wanted *w, const int *engines)
{
	const struct mu_net_config config = {.shape = w->sample, .classes = CLASSES};
	static const float labels[BATCH] = {0, 1, 2, 0};
	struct mu_convolution_choice choices[LAYERS];
	float samples[BATCH * MOST_VALUES];
	const size_t n = BATCH * mu_shape_sample(&w->sample);

	if (!one_step_open(r, device, w->dtype))
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
	if (!one_step_plan(r, &network, &config, BATCH))
		return false;
	r->device.choices = NULL;
	r->device.n_choices = 0;
	for (size_t i = 0; i < n; i++)
		samples[i] = (float)((i * 37 + i / 7 * 11) % 9) / 4 - 1;
	return one_step_run(r, samples, n, labels);
}

static bool ran(struct one_step *r, const char *device, const struct wanted *w, const int *engines)
{
	if (CHECK(run(r, device, w, engines)))
		return true;
	mu_trace_print(stderr, device);
	mu_trace_clear();
	return false;
}

/* The convolutions are done as asked, or directly where there is no such engine: most are as asked,
 * but for the last one. */
static void check_engines(const struct one_step *r, const int *engines)
{
	size_t found = 0, as_asked = 0;

	for (size_t l = 0; l < mu_plan_layers(r->plan); l++)
		for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++) {
			const int got = (int)mu_plan_convolution(r->plan, l,
								 (enum mu_convolution_phase)phase);

			if (got == MU_CONVOLUTION_AUTO)
				continue;
			found++;
			if (got == MU_CONVOLUTION_ENGINE + engines[phase])
				as_asked++;
			else if (CHECK(got == MU_CONVOLUTION_DIRECT))
				printf("layer %zu, phase %d: no engine %d\n", l, phase,
				       engines[phase]);
		}
	/* The first one has no gradient of its input. */
	CHECK(found == LAYERS * MU_CONVOLUTION_PHASES - 1);
	CHECK(engines[0] == LAST_ENGINE || 3 * as_asked >= 2 * found);
}

static void compare(const struct wanted *w)
{
	const struct wanted exact = {w->sample, MU_FLOAT32};
	static const int asked[][MU_CONVOLUTION_PHASES] = {
		{0, 0, 0}, {1, 0, 1}, {0, 1, 0}, {LAST_ENGINE, LAST_ENGINE, LAST_ENGINE}};
	struct one_step ref, usual, r;
	bool both = ran(&ref, "ref", &exact, NULL);

	both = ran(&usual, "gpu:0", w, NULL) && both;
	for (size_t i = 0; both && i < sizeof asked / sizeof *asked; i++) {
		if (ran(&r, "gpu:0", w, asked[i])) {
			check_engines(&r, asked[i]);
			for (size_t k = 0; k < ref.n_slices; k++)
				CHECK(one_step_distance(&r, &ref, &ref.slices[k]) <=
				      1.5 * one_step_distance(&usual, &ref, &ref.slices[k]) +
					      0.001);
		}
		one_step_release(&r);
	}
	one_step_release(&usual);
	one_step_release(&ref);
}

int main(void)
{
	if (!one_step_has_gpu())
		return CHECK_SKIPPED;
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_WARN});
	for (size_t i = 0; i < sizeof samples_of / sizeof *samples_of; i++) {
		compare(&(struct wanted){samples_of[i], MU_FLOAT16});
		compare(&(struct wanted){samples_of[i], MU_BFLOAT16});
	}
	return check_failures() ? 1 : 0;
}
