/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy: the layer, its loss and metrics. MXNet's names and definitions. */
#include "layer.h"

#include <math.h>

#include "net/onnx/onnx.h"

enum { CORRECT, TOP_K, CROSS_ENTROPY, WEIGHT };

static int shape(struct net_draft *d)
{
	const size_t classes = d->net->config.classes;
	char form[96];

	if (classes < 2)
		return mu_layer_fail(d->net, "needs at least 2 classes, not %zu", classes);
	snprintf(form, sizeof form, "(n, %zu) or (n, %zu, %s)", classes, classes,
		 d->in->ndims == MU_MAX_DIMS ? "d, h, w" : "h, w");
	if (d->in->dims[1] != classes)
		return mu_layer_needs(d->net, form, d->in);
	return 0;
}

/* ---- loss ---- */

static double chance(size_t outputs, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "the log of %zu classes", outputs);
	return log((double)outputs);
}

static void measure(struct mu_metrics *m, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;

	for (size_t i = 0; i < b->count * r->targets; i++) {
		const struct mu_prediction *p = &b->predictions[i];

		if (b->use_ignore && b->labels[i] == b->ignore_label)
			continue;
		m->sums[CORRECT] += p->place == 0;
		m->sums[TOP_K] += p->place < r->k;
		if (b->class_weights) {
			const double weight = (double)b->class_weights[(size_t)b->labels[i]];

			m->sums[CROSS_ENTROPY] += weight * (double)p->cross_entropy;
			m->sums[WEIGHT] += weight;
		} else {
			m->sums[CROSS_ENTROPY] += (double)p->cross_entropy;
		}
	}
}

/* ---- metrics ---- */

static double accuracy(const struct mu_metrics *m)
{
	return mu_loss_mean(m, CORRECT);
}

static double top_k(const struct mu_metrics *m)
{
	return mu_loss_mean(m, TOP_K);
}

static double cross_entropy(const struct mu_metrics *m)
{
	return m->sums[WEIGHT] > 0 ? m->sums[CROSS_ENTROPY] / m->sums[WEIGHT]
				   : mu_loss_mean(m, CROSS_ENTROPY);
}

static double perplexity(const struct mu_metrics *m)
{
	return exp(cross_entropy(m));
}

/* What training minimises: the sum over a sample's targets, by weight. Of sequences NLL in MXNet's
 * examples of language models: of whole sequences, not of words. */
static double by_sample(const struct mu_metrics *m)
{
	return m->samples > 0 ? m->sums[CROSS_ENTROPY] / m->samples : 0;
}

static const struct mu_metric metrics[] = {
	{.name = "accuracy", .printed = "accuracy", .column = "acc", .better = 1,
	 .use = MU_METRIC_ALWAYS | MU_METRIC_BEST, .value = accuracy},
	{.name = "top-k", .printed = "top_k_accuracy_", .better = 1, .takes_k = true,
	 .value = top_k},
	{.name = "ce", .other = "cross-entropy", .printed = "cross-entropy", .better = -1,
	 .use = MU_METRIC_IS_LOSS | MU_METRIC_ALWAYS | MU_METRIC_CHOSEN, .value = cross_entropy},
	{.name = "nll", .other = "nll_loss", .printed = "nll-loss", .better = -1,
	 .use = MU_METRIC_CHOSEN, .value = cross_entropy},
	{.name = "perplexity", .printed = "perplexity", .column = "perpl", .better = -1,
	 .use = MU_METRIC_CHOSEN | MU_METRIC_OF_SEQUENCES | MU_METRIC_OF_TEXTS |
		MU_METRIC_BEST_OF_SEQUENCES | MU_METRIC_OF_PLATEAU,
	 .value = perplexity},
	{.name = "sentence-nll", .printed = "sentence-nll", .column = "nll", .better = -1,
	 .use = MU_METRIC_CHOSEN | MU_METRIC_OF_TEXTS, .value = by_sample},
	{.name = "loss-by-sample", .printed = "loss-by-sample", .column = "loss", .better = -1,
	 .use = MU_METRIC_CHOSEN | MU_METRIC_OF_WEIGHTS, .value = by_sample},
	MU_METRICS_OF_CONFUSION,
	MU_METRIC_BY_TALLY("auc", NULL, mu_tally_area),
	{.name = NULL},
};

struct softmax {
	const char *weights;
	long ignored; /* below 0: none */
};

static const struct mu_option settings[] = {
	{MU_SETTING("class-weights", STRING, struct softmax, weights), .record = MU_RECORD_TRAINING,
	 .help = "LIST  weight of each class in loss and gradient, 1,2.5,1: training minimises "
		 "loss-by-sample, ce is the mean by weight"},
	{MU_SETTING("ignore-class", INT, struct softmax, ignored), .initial = "-1", .min = -1,
	 .max = 1 << 24, .record = MU_RECORD_TRAINING,
	 .help = "C  targets of this class count nowhere, as unlabelled pixels (-1: none)"},
	{.name = NULL},
};

static void add(struct mu_net *net, int in, const struct mu_loss *loss, const void *values)
{
	const struct softmax *s = values;

	mu_net_softmax(net, in, loss->name);
	if (s->weights)
		mu_net_class_weights(net, s->weights);
	if (s->ignored >= 0)
		mu_net_ignore_label(net, (float)s->ignored);
}

static const struct mu_loss loss = {
	.name = "softmax",
	.similar = "ce|nll|cross-entropy|crossentropy|categorical-crossentropy|classes",
	.help = "softmax cross-entropy",
	.settings = settings,
	.settings_nbytes = sizeof(struct softmax),
	.add = add,
	.output = MU_OUTPUT_PROBABILITIES,
	.mean = MU_MEAN_OF_COUNTED,
	.of_classes = true,
	.smooths = true,
	.sums = {"correct", "top_k", "cross_entropy"},
	.again = "log_loss",
	.extra = "weight",
	.tally_size = mu_loss_size_classes,
	.tally = mu_loss_tally_classes,
	.targets = mu_shape_positions,
	.chance = chance,
	.measure = measure,
	.metrics = metrics,
};

/* ---- layer ---- */

static const struct mu_loss *const losses[] = {&loss, NULL};

static void onnx(struct onnx_layer *o)
{
	mu_onnx_int(o, "axis", 1);
	mu_onnx_node(o, "Softmax", mu_onnx_in(o, 0));
}

const struct mu_layer_kind mu_layer_softmax = {
	.op = MU_OP_SOFTMAX,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_WORKS_OVER,
	.shape = shape,
	.losses = losses,
	.onnx = onnx,
};

void mu_net_softmax(struct mu_net *net, int in, const char *name)
{
	mu_net_add_one(net, &mu_layer_softmax, in, NULL, name);
}
