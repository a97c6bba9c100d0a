/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by region: Dice. */
#include "layer.h"

enum { LOSS, CORRECT, CROSS_ENTROPY };

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

/* ---- sums and metrics ---- */

static size_t targets(const struct mu_shape *output)
{
	return mu_shape_positions(output);
}

static void measure(struct mu_metrics *m, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;

	for (size_t i = 0; i < b->count * r->targets; i++) {
		m->sums[LOSS] += b->predictions[i].loss; /* of a sample: at its first position */
		if (b->use_ignore && b->labels[i] == b->ignore_label)
			continue;
		m->sums[CORRECT] += b->predictions[i].place == 0;
		m->sums[CROSS_ENTROPY] += (double)b->predictions[i].cross_entropy;
	}
}

static double dice(const struct mu_metrics *m)
{
	return m->samples > 0 ? m->sums[LOSS] / m->samples : 0;
}

static double accuracy(const struct mu_metrics *m)
{
	return m->counted > 0 ? m->sums[CORRECT] / m->counted : 0;
}

static double cross_entropy(const struct mu_metrics *m)
{
	return m->counted > 0 ? m->sums[CROSS_ENTROPY] / m->counted : 0;
}

static const struct mu_metric metrics[] = {
	{.name = "dice", .printed = "dice", .better = -1,
	 .use = MU_METRIC_IS_LOSS | MU_METRIC_ALWAYS | MU_METRIC_CHOSEN | MU_METRIC_BEST |
		MU_METRIC_OF_PLATEAU,
	 .value = dice},
	{.name = "accuracy", .printed = "accuracy", .column = "acc", .better = 1,
	 .use = MU_METRIC_ALWAYS, .value = accuracy},
	{.name = "ce", .other = "cross-entropy", .printed = "cross-entropy", .better = -1,
	 .use = MU_METRIC_CHOSEN, .value = cross_entropy},
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
	.targets = targets,
	.measure = measure,
	.tally_size = mu_loss_classes_size,
	.tally = mu_loss_classes_tally,
	.metrics = metrics,
};

static const struct mu_loss *const losses[] = {&loss, NULL};

const struct mu_layer_kind mu_layer_region_loss = {
	.op = MU_OP_REGION_LOSS,
	.attr_nbytes = sizeof(struct mu_region_loss),
	.traits = MU_LAYER_INPUT_UNUSED,
	.shape = shape,
	.losses = losses,
};

void mu_net_region_loss(struct mu_net *net, int in, const struct mu_region_loss *l,
			const char *name)
{
	mu_net_add_one(net, &mu_layer_region_loss, in, l, name);
}
