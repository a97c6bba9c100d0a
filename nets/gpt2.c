/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPT-2 (Radford et al., Language models are unsupervised multitask learners, 2019): a token's row
 * of a table and its position's, blocks of attention, and an output whose product reads the table
 * again (untied: has weights of its own). Weights begin as normal numbers of deviation 0.02. By
 * default 124,439,808 parameters.
 */
#include "transformer.h"

enum { POSITIONS = 1024 };

static const struct mu_transformer_preset presets[] = {
	{"gpt2", 12, 768, 12},
	{"gpt2-355m", 24, 1024, 16},
	{"gpt2-774m", 36, 1280, 20},
	{"gpt2-1558m", 48, 1600, 25},
};

struct settings {
	struct mu_transformer_settings blocks;
	long positions, tied;
};

static const struct mu_option settings[] = {
	MU_TRANSFORMER_SETTINGS,
	{MU_SETTING("num-positions", INT, struct settings, positions),
	 .similar = "n-positions|max-position-embeddings|n-ctx", .initial = "0", .max = 65536,
	 .automatic = true, .record = MU_RECORD_SHAPES,
	 .help = "N  steps for which it learns a vector each, at least the longest sequence (0: "
		 "1024, or that)"},
	{MU_SETTING("tie-weights", INT, struct settings, tied), .toggle = true,
	 .similar = "tie-word-embeddings|tie-embeddings|untie-embeddings-and-output-weights",
	 .initial = "1", .max = 1, .record = MU_RECORD_SHAPES,
	 .help = "the output has the weights of the embedding; without, its own, and it can be on "
		 "another device"},
	{.name = NULL},
};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_transformer s = {
		.eps = 1e-5f, .causal = true, .activation = MU_ACTIVATION_GELU_TANH};
	const struct settings *own = config->settings;
	const int steps = (int)mu_shape_space(&config->shape, 0);
	const int longest = config->longest ? (int)config->longest : steps;
	const struct mu_positions positions = {
		.most_steps = own->positions	    ? (int)own->positions
			      : longest > POSITIONS ? longest
						    : POSITIONS};
	const struct mu_convolution head = {
		.filters = (int)config->classes, .kernel = {1, 1}, .no_bias = true};
	struct mu_embedding tokens = {.inputs = (int)config->classes};
	int x;

	MU_TRY(mu_transformer_choose(config, presets, sizeof presets / sizeof *presets, &s));
	if (positions.most_steps < steps)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: sequences of %d tokens (sequence length), and %d positions "
			"(setting num-positions)",
			config->network, steps, positions.most_steps);
	tokens.units = s.hidden;
	x = mu_net_input(net);
	mu_net_group(net, "embed");
	x = mu_net_embedding(net, x, &tokens, "wte");
	x = mu_net_positions(net, x, &positions, "wpe");
	x = mu_transformer_blocks(net, x, &s);
	x = mu_net_convolution(net, x, &head, "head");
	if (own->tied)
		mu_net_tie(net, "wte_weight");
	mu_net_objective(net, x);
	if (own->positions == 0 && longest > POSITIONS)
		mu_net_report(net, "num-positions", longest);
out:
	return st;
}

#define GPT2(variable, preset, text) \
	const struct mu_network variable = { \
		.name = preset, \
		.help = text, \
		.shape = MU_SAMPLE(1, POSITIONS, 1), \
		.classes = 50257, \
		.objective = "softmax", \
		.training = {.lr = 0.0003, .batch = 4}, \
		.traits = MU_NETWORK_DEPTHS | MU_NETWORK_SEQUENCES, \
		.settings = settings, \
		.settings_nbytes = sizeof(struct settings), \
		.rules = mu_transformer_rules, \
		.initializer = "normal-0.02", \
		.build = build, \
	}

GPT2(mu_network_gpt2, "gpt2", "transformer of text: 12 blocks of 768, 12 heads; 124M parameters");
GPT2(mu_network_gpt2_355m, "gpt2-355m", "24 blocks of 1024, 16 heads");
GPT2(mu_network_gpt2_774m, "gpt2-774m", "36 blocks of 1280, 20 heads");
GPT2(mu_network_gpt2_1558m, "gpt2-1558m", "48 blocks of 1600, 25 heads");
