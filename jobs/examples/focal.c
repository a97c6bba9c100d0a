/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loss of your own: the focal loss of classes, for classes of which some are rare (Lin et al.,
 * Focal loss for dense object detection, 2017, equation 4). With p = softmax(x), and q = p[t] of
 * the target t, at each position:
 *
 *	loss = -(1 - q)^g ln q      dx[k] = ((1 - q)^g - g (1 - q)^(g - 1) q ln q) (p[k] - [k = t])
 *
 * and the mean over the positions of a sample.
 *
 *	cc -O3 -shared -fPIC $(pkg-config --cflags muster) focal.c -o focal.so
 *	trainer --network resnet --objective ./focal.so --focal-gamma 2 --data-dir DIR
 *
 * What the functions are given and must do: struct mu_custom_loss in <muster/device.h>; the row:
 * <muster/metrics.h>. `trainer --help ./focal.so` lists its setting, checkpoints record it.
 */
#include <math.h>

#include <muster/metrics.h>

struct settings {
	double gamma;
};

static const struct mu_option settings[] = {
	{MU_SETTING("focal-gamma", REAL, struct settings, gamma), .initial = "2", .min = 0,
	 .max = 16, .record = MU_RECORD_TRAINING,
	 .help = "G  the less a sample counts the surer it is; 0: cross-entropy"},
	{.name = NULL},
};

/* Of position i of the batch. Returns ln p[t]. */
static double log_softmax(const struct mu_layer *layer, size_t i, float *p)
{
	const struct mu_shape *s = &layer->inputs[0].shape;
	const size_t area = mu_shape_positions(s), classes = mu_shape_channels(s);
	const size_t at = i / area * classes * area + i % area;
	const float *x = layer->inputs[0].data + at;
	const size_t t = (size_t)layer->batch->labels[i];
	double largest = (double)x[0], sum = 0;

	for (size_t k = 1; k < classes; k++)
		largest = fmax(largest, (double)x[k * area]);
	for (size_t k = 0; k < classes; k++)
		sum += exp((double)x[k * area] - largest);
	for (size_t k = 0; p && k < classes; k++)
		p[at + k * area] = (float)(exp((double)x[k * area] - largest) / sum);
	return (double)x[t * area] - largest - log(sum);
}

static enum mu_status forward(struct mu_layer *layer)
{
	const double g = ((const struct settings *)layer->attr)->gamma;
	const struct mu_batch *b = layer->batch;
	const size_t area = mu_shape_positions(&layer->inputs[0].shape);

	for (size_t i = 0; i < b->count * area; i++) {
		const double ln = log_softmax(layer, i, layer->output.data);

		layer->losses[i / area] -= pow(-expm1(ln), g) * ln / (double)area;
	}
	return MU_OK;
}

static enum mu_status backward(struct mu_layer *layer)
{
	const double g = ((const struct settings *)layer->attr)->gamma;
	const struct mu_batch *b = layer->batch;
	const struct mu_shape *s = &layer->inputs[0].shape;
	const size_t area = mu_shape_positions(s), classes = mu_shape_channels(s);
	float *dx = layer->inputs[0].grad;

	for (size_t i = 0; dx && i < b->count * area; i++) {
		const size_t at = i / area * classes * area + i % area, t = (size_t)b->labels[i];
		const double ln = log_softmax(layer, i, NULL), q = exp(ln), rest = -expm1(ln);
		const double slope = pow(rest, g) - (rest > 0 ? g * pow(rest, g - 1) * q * ln : 0);

		for (size_t k = 0; k < classes; k++) {
			const double p = (double)layer->output.data[at + k * area];

			dx[at + k * area] = (float)(slope * (p - (k == t)) / (double)area);
		}
	}
	return MU_OK;
}

static const struct mu_layer_ops layer = {
	.name = "focal", .forward = forward, .backward = backward};

static void add(struct mu_net *net, int in, const struct mu_loss *loss, const void *values)
{
	mu_net_custom_loss(net, in, loss,
			   &(struct mu_custom){&layer, values, sizeof(struct settings)});
}

static const struct mu_metric metrics[] = {
	MU_METRIC_OF_LOSS("focal"), /* its mean; lower is better */
	MU_METRICS_OF_CLASSES,      /* accuracy, ce, recall, iou, dice-score */
	{.name = NULL},
};

static const struct mu_loss focal = {
	.name = "focal",
	.help = "focal loss of classes",
	.settings = settings,
	.settings_nbytes = sizeof(struct settings),
	.add = add,
	MU_LOSS_OF_CLASSES,
	.metrics = metrics,
};

MU_LOSS_EXPORT(focal);
