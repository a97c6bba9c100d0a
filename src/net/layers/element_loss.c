/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by element: mean squared and absolute error, Huber's, binary cross-entropy. Another one is
 * a form (muster/device.h), its two formulas on the devices, and a row here. */
#include "layer.h"

#include "net/onnx/onnx.h"

enum { LOSS, CORRECT };

static int shape(struct net_draft *d)
{
	struct mu_element_loss *l = d->layer->attr;

	if (l->form == MU_ELEMENT_HUBER && l->delta == 0)
		l->delta = 1;
	if ((unsigned)l->form >= MU_ELEMENT_N)
		return mu_layer_fail(d->net, "has no form %d", (int)l->form);
	return 0;
}

/* ---- sums and metrics ---- */

/* A target counts as met if it and the probability are on the same side of one half. */
static void measure_shares(struct mu_metrics *m, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;

	for (size_t i = 0; i < b->count; i++)
		m->sums[LOSS] += b->predictions[i].loss;
	for (size_t i = 0; i < b->count * r->targets; i++)
		m->sums[CORRECT] += (r->output[i] >= 0.5f) == (b->labels[i] >= 0.5f);
}

/* ---- a whole validation ---- */

/* A column for each output that has no positions. */
static void size_of_shares(struct mu_tally *t, const struct mu_shape *output)
{
	t->keeps_pairs = true;
	t->columns = mu_shape_positions(output) == 1 ? mu_shape_channels(output) : 1;
}

static void tally_shares(struct mu_tally *t, const struct mu_loss_results *r)
{
	for (size_t i = 0; i < r->batch->count * r->targets; i++)
		mu_tally_pair(t, r->output[i], r->batch->labels[i]);
}

/* ---- metrics ---- */

static double correct(const struct mu_metrics *m)
{
	return mu_loss_mean(m, CORRECT);
}

static const struct mu_metric squared_metrics[] = {
	MU_METRIC_OF_LOSS("mse"),
	MU_METRIC_OF_ERRORS("rmse", mu_metric_root),
	MU_METRIC_OF_ERRORS("mae", mu_metric_absolute),
	MU_METRIC_BY_TALLY("r2", NULL, mu_tally_r2),
	{.name = NULL},
};

static const struct mu_metric absolute_metrics[] = {
	MU_METRIC_OF_LOSS("mae"),
	MU_METRIC_OF_ERRORS("mse", mu_metric_squared),
	MU_METRIC_OF_ERRORS("rmse", mu_metric_root),
	MU_METRIC_BY_TALLY("r2", NULL, mu_tally_r2),
	{.name = NULL},
};

static const struct mu_metric huber_metrics[] = {
	MU_METRIC_OF_LOSS("huber"),
	MU_METRICS_OF_VALUES,
	{.name = NULL},
};

static const struct mu_metric logistic_metrics[] = {
	MU_METRIC_OF_LOSS("bce"),
	{.name = "binary-accuracy",
	 .printed = "binary-accuracy",
	 .column = "acc",
	 .better = 1,
	 .use = MU_METRIC_ALWAYS,
	 .value = correct},
	MU_METRIC_BY_TALLY("auc", NULL, mu_tally_area),
	{.name = NULL},
};

/* ---- losses ---- */

struct huber {
	double delta;
};

static const struct mu_option huber_settings[] = {
	{MU_SETTING("huber-delta", REAL, struct huber, delta), .initial = "1", .min = 1e-6,
	 .max = 1e6, .record = MU_RECORD_TRAINING,
	 .help = "D  errors up to D count squared, larger ones by their size"},
	{.name = NULL},
};

static const struct mu_loss *const losses[MU_ELEMENT_N + 1];

/* The form is the place of the loss in the list. */
static void add(struct mu_net *net, int in, const struct mu_loss *loss, const void *settings)
{
	const struct huber *huber = settings;
	struct mu_element_loss attr = {.form = 0};

	while (losses[attr.form] != loss)
		attr.form++;
	if (attr.form == MU_ELEMENT_HUBER)
		attr.delta = (float)huber->delta;
	mu_net_element_loss(net, in, &attr, loss->name);
}

static const struct mu_loss squared_loss = {
	.name = "mse",
	.similar = "l2|squared|mean-squared-error|regression",
	.help = "mean squared error",
	MU_LOSS_OF_VALUES,
	.add = add,
	.metrics = squared_metrics,
};
static const struct mu_loss absolute_loss = {
	.name = "mae",
	.similar = "l1|absolute|mean-absolute-error",
	.help = "mean absolute error",
	MU_LOSS_OF_VALUES,
	.add = add,
	.metrics = absolute_metrics,
};
static const struct mu_loss huber_loss = {
	.name = "huber",
	.similar = "smooth-l1|smoothl1",
	.help = "Huber's loss",
	.settings = huber_settings,
	.settings_nbytes = sizeof(struct huber),
	MU_LOSS_OF_VALUES,
	.add = add,
	.metrics = huber_metrics,
};
static const struct mu_loss logistic_loss = {
	.name = "bce",
	.similar = "logistic|sigmoid|binary-crossentropy|binary-cross-entropy|bce-with-logits",
	.help = "binary cross-entropy of each output",
	.add = add,
	.output = MU_OUTPUT_VALUES,
	.mean = MU_MEAN_OF_TARGETS,
	.reads_output = true,
	.targets = mu_shape_sample,
	.sums = {"loss", "correct"},
	.measure = measure_shares,
	.tally_size = size_of_shares,
	.tally = tally_shares,
	.metrics = logistic_metrics,
};

static const struct mu_loss *const losses[MU_ELEMENT_N + 1] = {
	[MU_ELEMENT_SQUARED] = &squared_loss,
	[MU_ELEMENT_ABSOLUTE] = &absolute_loss,
	[MU_ELEMENT_HUBER] = &huber_loss,
	[MU_ELEMENT_LOGISTIC] = &logistic_loss,
	[MU_ELEMENT_N] = NULL,
};

static size_t which(const void *attr)
{
	return ((const struct mu_element_loss *)attr)->form;
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_element_loss *l = o->layer->attr;

	mu_onnx_node(o, l->form == MU_ELEMENT_LOGISTIC ? "Sigmoid" : "Identity", mu_onnx_in(o, 0));
}

const struct mu_layer_kind mu_layer_element_loss = {
	.op = MU_OP_ELEMENT_LOSS,
	.attr_nbytes = sizeof(struct mu_element_loss),
	.traits = MU_LAYER_INPUT_UNUSED, /* not stepwise: a mean over all elements of a sample */
	.shape = shape,
	.losses = losses,
	.which_loss = which,
	.onnx = onnx,
};

void mu_net_element_loss(struct mu_net *net, int in, const struct mu_element_loss *l,
			 const char *name)
{
	mu_net_add_one(net, &mu_layer_element_loss, in, l, name);
}
