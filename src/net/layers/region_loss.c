/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by region: Dice. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_region_loss *l = d->layer->attr;
	const size_t classes = d->net->config.classes;
	char form[96];

	if (classes < 2)
		return mu_layer_fail(d->net, "needs at least 2 classes, not %zu", classes);
	if (!(l->smooth > 0))
		return mu_layer_fail(d->net, "has smooth %g; it must be above 0",
				     (double)l->smooth);
	snprintf(form, sizeof form, "(n, %zu, h, w) or (n, %zu, d, h, w)", classes, classes);
	if (d->in->ndims < 3 || d->in->dims[1] != classes)
		return mu_layer_needs(d->net, form, d->in);
	return 0;
}

static const struct mu_metric metrics[] = {
	MU_METRIC_OF_LOSS("dice"),
	MU_METRICS_OF_CLASSES,
	{.name = NULL},
};

/* ---- loss ---- */

struct region {
	double smooth;
	long ignored; /* below 0: none */
};

static const struct mu_option settings[] = {
	{MU_SETTING("dice-smooth", REAL, struct region, smooth), .initial = "1e-5", .min = 1e-12,
	 .max = 1e6, .record = MU_RECORD_TRAINING,
	 .help = "X  added above and below the fraction: a class that a sample lacks"},
	{MU_SETTING("ignore-class", INT, struct region, ignored), .initial = "-1", .min = -1,
	 .max = 1 << 24, .record = MU_RECORD_TRAINING,
	 .help = "C  positions of this class are in no sum (-1: none)"},
	{.name = NULL},
};

static void add(struct mu_net *net, int in, const struct mu_loss *loss, const void *values)
{
	const struct region *s = values;

	mu_net_region_loss(net, in, &(struct mu_region_loss){(float)s->smooth}, loss->name);
	if (s->ignored >= 0)
		mu_net_ignore_label(net, (float)s->ignored);
}

static const struct mu_loss loss = {
	.name = "dice",
	.similar = "dice-loss|soft-dice|region",
	.help = "Dice of the regions of classes, 1 - overlap",
	.settings = settings,
	.settings_nbytes = sizeof(struct region),
	.add = add,
	.output = MU_OUTPUT_PROBABILITIES,
	.mean = MU_MEAN_OF_COUNTED,
	.of_classes = true,
	.sums = {"dice", "correct", "cross_entropy"},
	.targets = mu_shape_positions,
	.measure = mu_loss_measure_classes,
	.tally_size = mu_loss_size_classes,
	.tally = mu_loss_tally_classes,
	.metrics = metrics,
};

static const struct mu_loss *const losses[] = {&loss, NULL};

static void onnx(struct onnx_layer *o)
{
	mu_onnx_int(o, "axis", 1);
	mu_onnx_node(o, "Softmax", mu_onnx_in(o, 0));
}

const struct mu_layer_kind mu_layer_region_loss = {
	.op = MU_OP_REGION_LOSS,
	.attr_nbytes = sizeof(struct mu_region_loss),
	.traits = MU_LAYER_INPUT_UNUSED,
	.shape = shape,
	.losses = losses,
	.onnx = onnx,
};

void mu_net_region_loss(struct mu_net *net, int in, const struct mu_region_loss *l,
			const char *name)
{
	mu_net_add_one(net, &mu_layer_region_loss, in, l, name);
}
