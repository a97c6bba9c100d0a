/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A language model: an embedding of 200, 8 LSTM layers of 400, and at every step a prediction of
 * the next word. Dropout of a half in front of every LSTM but the first, and in front of the
 * prediction (Zaremba et al., Recurrent neural network regularization, 2014). As MXNet's
 * example/model-parallel-lstm: 601 V + 9,945,600 parameters with a vocabulary of V.
 */
#include <muster/net.h>

enum { LAYERS = 8, HIDDEN = 400, EMBED = 200 };

struct settings {
	long hidden, embed;
	double dropout; /* negative: a half */
};

static const struct mu_option settings[] = {
	{MU_SETTING("num-hidden", INT, struct settings, hidden),
	 .similar = "n-embd|hidden-size|d-model", .initial = "0", .max = 1e6, .automatic = true,
	 .record = MU_RECORD_SHAPES, .help = "N  units of each layer (0: 400)"},
	{MU_SETTING("num-embed", INT, struct settings, embed), .initial = "0", .max = 1e6,
	 .automatic = true, .record = MU_RECORD_SHAPES,
	 .help = "N  size of a word's embedding (0: 200)"},
	{MU_SETTING("dropout", REAL, struct settings, dropout), .initial = "-1", .max = 1,
	 .automatic = true, .record = MU_RECORD_TOLD,
	 .help = "P  probability that a value between layers is dropped in training (0.5)"},
	{.name = NULL},
};

static const struct mu_option_rule rules[] = {
	{.option = "dropout", .values = "1", .why = "it must be below 1"},
	{.option = NULL},
};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct settings *s = config->settings;
	const int hidden = s->hidden ? (int)s->hidden : HIDDEN;
	const int layers = config->num_layers ? (int)config->num_layers : LAYERS;
	const float dropout = s->dropout >= 0 ? (float)s->dropout : 0.5f;
	const struct mu_embedding embed = {.inputs = (int)config->classes,
					   .units = s->embed ? (int)s->embed : EMBED};
	const struct mu_convolution decode = {.filters = (int)config->classes, .kernel = {1, 1}};
	char name[32];
	int x;

	x = mu_net_input(net);
	mu_net_group(net, "embed");
	x = mu_net_embedding(net, x, &embed, "embed");
	for (int i = 0; i < layers; i++) {
		mu_net_group(net, "lstm%d", i);
		if (i > 0 && dropout > 0)
			x = mu_net_dropout(net, x, dropout, NULL);
		snprintf(name, sizeof name, "lstm%d", i);
		x = mu_net_lstm(net, x, &(struct mu_lstm){.units = hidden}, name);
	}
	mu_net_group(net, "decode");
	if (dropout > 0)
		x = mu_net_dropout(net, x, dropout, NULL);
	x = mu_net_convolution(net, x, &decode, "decode");
	mu_net_objective(net, x);
	return MU_OK;
}

const struct mu_network mu_network_lstm = {
	.name = "lstm",
	.help = "language model: embedding 200, 8 LSTM layers of 400",
	.shape = MU_SAMPLE(1, 32, 1),
	.classes = 10000,
	.objective = "softmax",
	/* Measured on the Penn Treebank's validation text: doc/train.md. */
	.training = {.lr = 0.03, .batch = 32},
	.traits = MU_NETWORK_DEPTHS | MU_NETWORK_SEQUENCES,
	.settings = settings,
	.settings_nbytes = sizeof(struct settings),
	.rules = rules,
	.initializer = "uniform-0.1",
	.build = build,
};
