/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with two outputs, each with a loss and a target of its own: a class, 0 or 1, by the
 * cross-entropy, and a value by half its squared error times --value-weight; the loss is their sum.
 * Targets are two columns, in this order. --predict writes the share of class 1 and the value.
 *
 *	cc -O3 -shared -fPIC $(pkg-config --cflags muster) two_heads.c -o two_heads.so
 *	trainer --network ./two_heads.so --data-train t.csv --label-columns class,value
 *
 * The loss reads both heads, concatenated: see focal.c and struct mu_custom_loss in
 * <muster/device.h>.
 */
#include <math.h>

#include <muster/metrics.h>

enum { NO, YES, VALUE, INPUTS, SHARE = 0, ESTIMATE, OUTPUTS };

struct settings {
	double weight;
};

static const struct mu_option settings[] = {
	{MU_SETTING("value-weight", REAL, struct settings, weight), .initial = "1", .min = 0,
	 .max = 1e6, .record = MU_RECORD_TRAINING, .help = "W  factor of the value's loss"},
	{.name = NULL},
};

static enum mu_status shape(struct mu_layer *layer)
{
	const size_t n = layer->inputs[0].shape.dims[0];

	layer->output.shape = (struct mu_shape){2, {n, OUTPUTS}};
	return MU_OK;
}

static enum mu_status forward(struct mu_layer *layer)
{
	const double weight = ((const struct settings *)layer->attr)->weight;

	for (size_t s = 0; s < layer->batch->count; s++) {
		const float *x = layer->inputs[0].data + s * INPUTS;
		const float *t = layer->batch->labels + s * OUTPUTS;
		float *y = layer->output.data + s * OUTPUTS;
		const double d = (double)x[YES] - (double)x[NO], wrong = t[SHARE] > 0 ? -d : d;
		const double e = (double)x[VALUE] - (double)t[ESTIMATE];

		y[SHARE] = (float)(1 / (1 + exp(-d)));
		y[ESTIMATE] = x[VALUE];
		layer->losses[s] = fmax(wrong, 0) + log1p(exp(-fabs(wrong))) + weight * e * e / 2;
	}
	return MU_OK;
}

static enum mu_status backward(struct mu_layer *layer)
{
	const double weight = ((const struct settings *)layer->attr)->weight;

	for (size_t s = 0; s < layer->batch->count; s++) {
		const float *y = layer->output.data + s * OUTPUTS;
		const float *t = layer->batch->labels + s * OUTPUTS;
		float *dx = layer->inputs[0].grad + s * INPUTS;

		if (!layer->inputs[0].grad)
			break;
		dx[YES] = y[SHARE] - (t[SHARE] > 0);
		dx[NO] = -dx[YES];
		dx[VALUE] = (float)(weight * ((double)y[ESTIMATE] - (double)t[ESTIMATE]));
	}
	return MU_OK;
}

static const struct mu_layer_ops layer = {
	.name = "two-heads", .shape = shape, .forward = forward, .backward = backward};

/* ---- what the log says of each head ---- */

enum { LOSS, CORRECT, SQUARED };

static void measure(struct mu_metrics *m, const struct mu_loss_results *r)
{
	for (size_t s = 0; s < r->batch->count; s++) {
		const float *y = r->output + s * OUTPUTS, *t = r->batch->labels + s * OUTPUTS;
		const double e = (double)y[ESTIMATE] - (double)t[ESTIMATE];

		m->sums[LOSS] += r->batch->predictions[s].loss;
		m->sums[CORRECT] += (y[SHARE] > 0.5f) == (t[SHARE] > 0);
		m->sums[SQUARED] += e * e;
	}
}

static double accuracy(const struct mu_metrics *m)
{
	return m->samples > 0 ? m->sums[CORRECT] / m->samples : 0;
}

static double squared(const struct mu_metrics *m)
{
	return m->samples > 0 ? m->sums[SQUARED] / m->samples : 0;
}

static const struct mu_metric metrics[] = {
	MU_METRIC_OF_LOSS("two-heads"),
	{.name = "class-accuracy", .printed = "class-accuracy", .better = 1,
	 .use = MU_METRIC_ALWAYS, .value = accuracy},
	{.name = "value-mse", .printed = "value-mse", .better = -1, .use = MU_METRIC_ALWAYS,
	 .value = squared},
	{.name = NULL},
};

static const struct mu_loss loss = {
	.name = "two-heads",
	.help = "a class and a value",
	.output = MU_OUTPUT_VALUES,
	.mean = MU_MEAN_OF_TARGETS,
	.reads_output = true,
	.sums = {"loss", "correct", "squared"},
	.targets = mu_shape_sample,
	.measure = measure,
	.metrics = metrics,
};

/* ---- the network ---- */

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected hidden = {.units = 16}, class = {.units = 2},
					value = {.units = 1};
	int x = mu_net_input(net), heads[2];

	x = mu_net_fully_connected(net, x, &hidden, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	heads[0] = mu_net_fully_connected(net, x, &class, "class");
	heads[1] = mu_net_fully_connected(net, x, &value, "value");
	x = mu_net_concat(net, 2, heads, NULL);
	mu_net_custom_loss(
		net, x, &loss,
		&(struct mu_custom){&layer, config->settings, sizeof(struct settings)});
	return MU_OK;
}

static const struct mu_network two_heads = {
	.name = "two-heads",
	.help = "a class and a value of each sample",
	.shape = MU_SAMPLE(2),
	.classes = 2,
	.settings = settings,
	.settings_nbytes = sizeof(struct settings),
	.build = build,
};

MU_NETWORK_EXPORT(two_heads);
