/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Batch-norms that get the sums of their input from the convolution before them (float16 on a GPU):
 * mean and variance against those of the exact output, where the mean is up to 200 deviations; and
 * the gradients of a step against ref's in float32, which up to 8 deviations are as near as with
 * sums of a pass of their own. Residual blocks, whose batch-norms also add the gradients of the
 * block after them: the same gradients.
 */
#include "one_step.h"

enum { BATCH = 6, CHANNELS = 16, FILTERS = 24, SIDE = 5, AREA = SIDE * SIDE, CLASSES = 4 };

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution first = {
		.filters = FILTERS, .kernel = {1, 1}, .no_bias = true};
	const struct mu_convolution second = {.filters = 8,
					      .kernel = {3, 3},
					      .stride = {2, 2},
					      .pad = {1, 1},
					      .no_bias = true};
	const struct mu_batch_norm norm = {.eps = 1e-5f, .momentum = 0.9f};
	const struct mu_fully_connected scores = {.units = (int)config->classes};
	int x = mu_net_convolution(net, mu_net_input(net), &first, "first");

	x = mu_net_batch_norm(net, x, &norm, "norm");
	x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	x = mu_net_convolution(net, x, &second, "second");
	x = mu_net_batch_norm(net, x, &norm, NULL);
	x = mu_net_flatten(net, x, NULL);
	mu_net_softmax(net, mu_net_fully_connected(net, x, &scores, NULL), "softmax");
	return MU_OK;
}

static const struct mu_network network = {.name = "fused",
					  .shape = MU_SAMPLE(CHANNELS, SIDE, SIDE),
					  .classes = CLASSES,
					  .build = build};

/* Blocks whose second addend is the block's input, and every third time a convolution of it. */
static enum mu_status build_blocks(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution attr = {
		.filters = FILTERS, .kernel = {3, 3}, .pad = {1, 1}, .no_bias = true};
	const struct mu_batch_norm norm = {.eps = 1e-2f, .momentum = 0.9f};
	const struct mu_fully_connected scores = {.units = (int)config->classes};
	int x = mu_net_convolution(net, mu_net_input(net), &attr, NULL);

	for (int block = 0; block < 5; block++) {
		int y = mu_net_convolution(net, x, &attr, NULL), sum[2] = {0, x};

		y = mu_net_batch_norm(net, y, &norm, NULL);
		y = mu_net_activation(net, y, MU_ACTIVATION_RELU, NULL);
		if (block % 3 == 1)
			sum[1] = mu_net_batch_norm(net, mu_net_convolution(net, x, &attr, NULL),
						   &norm, NULL);
		y = mu_net_convolution(net, y, &attr, NULL);
		sum[0] = mu_net_batch_norm(net, y, &norm, NULL);
		x = mu_net_sum(net, 2, sum, NULL);
		x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	}
	x = mu_net_flatten(net, x, NULL);
	mu_net_softmax(net, mu_net_fully_connected(net, x, &scores, NULL), "softmax");
	return MU_OK;
}

static const struct mu_network blocks = {.name = "blocks",
					 .shape = MU_SAMPLE(CHANNELS, SIDE, SIDE),
					 .classes = CLASSES,
					 .build = build_blocks};

/* What float16 holds exactly. */
static float sample_at(size_t i, float offset)
{
	return offset + (float)((i * 37 + i / 7 * 11) % 9) / 4 - 1;
}

static float weight_at(size_t i)
{
	return (float)((i * 29 + i / 5 * 3) % 17) / 64 - 0.0625f;
}

struct step {
	const struct mu_network *network;
	const char *device;
	enum mu_dtype dtype;
	enum mu_convolution_algorithm algorithm;
	float offset; /* of the samples */
};

/* Parameters of convolutions in float16's numbers, the others as a net begins. */
static void set_weights(struct one_step *r)
{
	for (size_t k = 0; k < r->n_slices; k++)
		for (size_t i = 0; strstr(r->slices[k].name, "_weight") && i < r->slices[k].n; i++)
			r->weights[r->slices[k].at + i] = weight_at(i);
}

static bool run(struct one_step *r, const struct step *s)
{
	const struct mu_net_config config = {.shape = MU_SAMPLE(CHANNELS, SIDE, SIDE),
					     .classes = CLASSES};
	static const float labels[BATCH] = {0, 1, 2, 3, 0, 1};
	float samples[BATCH * CHANNELS * AREA];
	const size_t n = sizeof samples / sizeof *samples;

	if (!one_step_open(r, s->device, s->dtype))
		return false;
	r->device.algorithm = s->algorithm;
	if (!one_step_plan(r, s->network, &config, BATCH))
		return false;
	if (s->network == &network)
		set_weights(r);
	for (size_t i = 0; i < n; i++)
		samples[i] = sample_at(i, s->offset);
	return one_step_run(r, samples, n, labels);
}

static const float *gradient_of(const struct one_step *r, const char *name)
{
	for (size_t k = 0; k < r->n_slices; k++)
		if (strcmp(r->slices[k].name, name) == 0)
			return r->gradients + r->slices[k].at;
	CHECK(!name);
	return r->gradients;
}

/*
 * Of the first convolution's output: the auxiliary gradients are BATCH times the statistics. The
 * variance is a difference of float32 sums of 150 numbers, each off by up to 75 half units of the
 * last place.
 */
static void check_statistics(const struct one_step *r, float offset)
{
	const float *mean = gradient_of(r, "norm_moving_mean");
	const float *variance = gradient_of(r, "norm_moving_var");

	for (size_t f = 0; f < FILTERS; f++) {
		double sum = 0, squares = 0;

		for (size_t i = 0; i < (size_t)BATCH * AREA; i++) {
			const size_t at = i / AREA * CHANNELS * AREA + i % AREA;
			double y = 0;

			for (size_t c = 0; c < CHANNELS; c++)
				y += (double)weight_at(f * CHANNELS + c) *
				     (double)sample_at(at + c * AREA, offset);
			sum += y;
			squares += y * y;
		}
		sum /= BATCH * AREA;
		squares = squares / (BATCH * AREA) - sum * sum;
		if (!CHECK_NEAR((double)mean[f] / BATCH, sum, 1e-6 * (1 + fabs(sum))) ||
		    !CHECK_NEAR((double)variance[f] / BATCH, squares,
				0x1p-18 * (sum * sum + squares)))
			break;
	}
}

static void compare(float offset, bool gradients)
{
	const struct step steps[] = {
		{&network, "ref", MU_FLOAT32, MU_CONVOLUTION_AUTO, offset},
		{&network, "gpu:0", MU_FLOAT16, MU_CONVOLUTION_AUTO, offset},
		{&network, "gpu:0", MU_FLOAT16, MU_CONVOLUTION_DIRECT, offset},
	};
	struct one_step r[3];
	bool ran = true;

	for (int i = 0; i < 3; i++)
		if (!CHECK(run(&r[i], &steps[i]))) {
			mu_trace_print(stderr, steps[i].device);
			mu_trace_clear();
			ran = false;
		}
	for (size_t k = 0; ran && gradients && k < r[0].n_slices; k++) {
		const double with = one_step_distance(&r[1], &r[0], &r[0].slices[k]);
		const double apart = one_step_distance(&r[2], &r[0], &r[0].slices[k]);

		printf("offset %g, %s: %.5f from ref, %.5f with sums of their own\n",
		       (double)offset, r[0].slices[k].name, with, apart);
		CHECK(with <= 1.5 * apart + 0.001);
	}
	if (ran)
		check_statistics(&r[1], offset);
	for (int i = 0; i < 3; i++)
		one_step_release(&r[i]);
}

/* Weights are those that a net begins with. */
static void compare_blocks(enum mu_dtype dtype, double allowed)
{
	const struct step steps[] = {{&blocks, "ref", MU_FLOAT32, MU_CONVOLUTION_AUTO, 0},
				     {&blocks, "gpu:0", dtype, MU_CONVOLUTION_AUTO, 0}};
	struct one_step r[2];
	bool ran = true;
	double most = 0;

	for (int i = 0; i < 2; i++)
		if (!CHECK(run(&r[i], &steps[i]))) {
			mu_trace_print(stderr, steps[i].device);
			mu_trace_clear();
			ran = false;
		}
	for (size_t k = 0; ran && k < r[0].n_slices; k++)
		most = fmax(most, one_step_distance(&r[1], &r[0], &r[0].slices[k]));
	printf("blocks, %s: gradients up to %.5f from ref\n", mu_dtype_name(dtype), most);
	CHECK(most <= allowed);
	for (int i = 0; i < 2; i++)
		one_step_release(&r[i]);
}

int main(void)
{
	if (!one_step_has_gpu())
		return CHECK_SKIPPED;
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_WARN});
	compare(0, true);
	compare(1, true);
	compare(2, true);
	compare(60, false);
	compare_blocks(MU_FLOAT16, 0.2);
	compare_blocks(MU_BFLOAT16, 0.7);
	return check_failures() ? 1 : 0;
}
