/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Llama (Touvron et al., LLaMA: open and efficient foundation language models, 2023; Llama 2, 2023;
 * grouped keys: Ainslie et al., GQA, 2023): blocks of attention with rotary positions and of gated
 * layers, each after a root mean square norm, without biases. Weights begin as normal numbers of
 * deviation 0.02. The default is small, 4 blocks of 128; every size is a setting.
 */
#include "transformer.h"

enum { LAYERS = 4, HIDDEN = 128, HEADS = 4, POSITIONS = 2048, THETA = 10000, MOST_UNITS = 1 << 28 };

struct settings {
	struct mu_transformer_settings blocks; /* no dropout */
	long kv_heads, head_dim, inner, positions, tied;
	double theta;
};

static const struct mu_option settings[] = {
	MU_TRANSFORMER_SIZES,
	{MU_SETTING("num-kv-heads", INT, struct settings, kv_heads), .automatic = true,
	 .similar = "kv-heads|n-kv-heads|num-key-value-heads", .initial = "0", .max = 1e6,
	 .record = MU_RECORD_NEEDED,
	 .help = "N  heads of keys and values, each for as many heads (0: one for each head)"},
	{MU_SETTING("head-dim", INT, struct settings, head_dim), .automatic = true,
	 .initial = "0", .max = 65536, .record = MU_RECORD_SHAPES,
	 .help = "N  channels of a head (0: the width divided by the heads)"},
	{MU_SETTING("intermediate-size", INT, struct settings, inner), .automatic = true,
	 .similar = "n-inner|ffn-dim|ffn-hidden-size|num-inner", .initial = "0", .max = 1e6,
	 .record = MU_RECORD_SHAPES,
	 .help = "N  units of a gated layer (0: 8/3 of the width, up to a multiple of 32)"},
	{MU_SETTING("num-positions", INT, struct settings, positions), .automatic = true,
	 .similar = "n-positions|max-position-embeddings|n-ctx", .initial = "0", .max = 1e9,
	 .record = MU_RECORD_TOLD,
	 .help = "N  most steps that it is for, at least the longest sequence (0: 2048, or that)"},
	{MU_SETTING("rope-theta", REAL, struct settings, theta), .automatic = true,
	 .similar = "rotary-base|rope-base|rotary-emb-base", .initial = "0", .max = 1e9,
	 .record = MU_RECORD_UNSEEN,
	 .help = "X  base of the angles of rotary positions (0: 10000)"},
	{MU_SETTING("rms-norm-eps", REAL, struct settings, blocks.norm_eps), .automatic = true,
	 .similar = "layer-norm-eps|norm-eps|norm-epsilon|layernorm-epsilon", .initial = "0",
	 .max = 1, .record = MU_RECORD_UNSEEN,
	 .help = "X  added to the mean square in norms, as the model that is loaded has it (0: "
		 "1e-5)"},
	{MU_SETTING("tie-weights", INT, struct settings, tied), .toggle = true,
	 .similar = "tie-word-embeddings|tie-embeddings|untie-embeddings-and-output-weights",
	 .initial = "0", .max = 1, .record = MU_RECORD_SHAPES,
	 .help = "the output has the weights of the embedding; without, its own, and it can be on "
		 "another device"},
	{.name = NULL},
};

struct sizes {
	int layers, hidden, heads, kv_heads, head_dim, inner;
	float eps, theta;
};

static enum mu_status choose(const struct mu_net_config *config, struct sizes *s)
{
	enum mu_status st = MU_OK;
	const struct settings *own = config->settings;

	s->layers = config->num_layers ? (int)config->num_layers : LAYERS;
	s->hidden = own->blocks.hidden ? (int)own->blocks.hidden : HIDDEN;
	s->heads = own->blocks.heads ? (int)own->blocks.heads : HEADS;
	s->kv_heads = own->kv_heads ? (int)own->kv_heads : s->heads;
	s->head_dim = own->head_dim ? (int)own->head_dim : s->hidden / s->heads;
	s->inner = own->inner ? (int)own->inner : (s->hidden * 8 / 3 + 31) / 32 * 32;
	s->eps = own->blocks.norm_eps > 0 ? (float)own->blocks.norm_eps : 1e-5f;
	s->theta = own->theta > 0 ? (float)own->theta : (float)THETA;
	if (!own->head_dim && s->hidden % s->heads != 0)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: %d heads do not divide a width of %d (setting num-heads, "
			"setting num-hidden), and no number of channels is given for a head "
			"(setting head-dim)",
			config->network, s->heads, s->hidden);
	if (s->heads % s->kv_heads != 0)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: %d heads of keys do not divide %d heads (setting "
			"num-kv-heads, setting num-heads)",
			config->network, s->kv_heads, s->heads);
	if (s->head_dim % 2 != 0)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: heads of %d channels (setting head-dim); rotary positions "
			"turn pairs: an even number is needed",
			config->network, s->head_dim);
	if ((double)(s->heads + 2 * s->kv_heads) * s->head_dim > MOST_UNITS)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: %d heads and %d of keys, of %d channels each, are more than "
			"%d channels (setting num-heads, setting head-dim)",
			config->network, s->heads, s->kv_heads, s->head_dim, MOST_UNITS);
out:
	return st;
}

/* A product at every step. */
static int linear(struct mu_net *net, int x, int units, const char *name)
{
	const struct mu_convolution a = {.filters = units, .kernel = {1, 1}, .no_bias = true};

	return mu_net_convolution(net, x, &a, name);
}

/* x + attention(norm(x)), then x + down(silu(gate(y)) up(y)) with y = norm(x). */
static int block(struct mu_net *net, int x, const struct sizes *s)
{
	const struct mu_layer_norm norm = {.eps = s->eps, .rms = true};
	const struct mu_attention attention = {.heads = s->heads,
					       .kv_heads = s->kv_heads,
					       .causal = true,
					       .rotary = s->theta};
	int y = mu_net_layer_norm(net, x, &norm, "norm1"), up;

	y = linear(net, y, (s->heads + 2 * s->kv_heads) * s->head_dim, "qkv");
	y = mu_net_attention(net, y, &attention, "attention");
	y = linear(net, y, s->hidden, "proj");
	x = mu_net_sum(net, 2, (const int[]){x, y}, NULL);
	y = mu_net_layer_norm(net, x, &norm, "norm2");
	up = linear(net, y, s->inner, "up");
	y = linear(net, y, s->inner, "gate");
	y = mu_net_activation(net, y, MU_ACTIVATION_SILU, "act");
	y = mu_net_product(net, y, up, "gated");
	y = linear(net, y, s->hidden, "down");
	return mu_net_sum(net, 2, (const int[]){x, y}, NULL);
}

static int blocks(struct mu_net *net, int x, const struct sizes *s)
{
	mu_net_set_depth(net, s->layers);
	for (int i = 0; i < s->layers; i++) {
		mu_net_group(net, "block%d", i);
		mu_net_prefix(net, "h%d_", i);
		x = block(net, x, s);
	}
	mu_net_prefix(net, "%s", "");
	mu_net_group(net, "head");
	return mu_net_layer_norm(net, x, &(struct mu_layer_norm){.eps = s->eps, .rms = true},
				 "norm");
}

/* What was chosen and no array shows. */
static void report(struct mu_net *net, const struct settings *own, const struct sizes *s,
		   long longest)
{
	mu_net_report(net, "num-heads", s->heads);
	mu_net_report(net, "num-kv-heads", s->kv_heads);
	mu_net_report(net, "head-dim", s->head_dim);
	if (own->theta <= 0)
		mu_net_report(net, "rope-theta", THETA);
	if (own->positions == 0 && longest > POSITIONS)
		mu_net_report(net, "num-positions", longest);
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	const struct settings *own = config->settings;
	const int steps = (int)mu_shape_space(&config->shape, 0);
	struct mu_embedding tokens = {.inputs = (int)config->classes};
	struct sizes s;
	int x;

	MU_TRY(choose(config, &s));
	if (own->positions > 0 && own->positions < steps)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: sequences of %d tokens (sequence length), and %ld positions "
			"(setting num-positions)",
			config->network, steps, own->positions);
	tokens.units = s.hidden;
	report(net, own, &s, config->longest ? (long)config->longest : steps);
	x = mu_net_input(net);
	mu_net_group(net, "embed");
	x = mu_net_embedding(net, x, &tokens, "tokens");
	x = blocks(net, x, &s);
	x = linear(net, x, (int)config->classes, "head");
	if (own->tied)
		mu_net_tie(net, "tokens_weight");
	mu_net_objective(net, x);
out:
	return st;
}

const struct mu_network mu_network_llama = {
	.name = "llama",
	.help = "Llama, transformer of text: 4 blocks of 128, 4 heads; sizes are settings",
	.shape = MU_SAMPLE(1, 256, 1),
	.classes = 32000,
	.objective = "softmax",
	.training = {.lr = 0.001, .batch = 16},
	.traits = MU_NETWORK_DEPTHS | MU_NETWORK_SEQUENCES,
	.settings = settings,
	.settings_nbytes = sizeof(struct settings),
	.initializer = "normal-0.02",
	.build = build,
};
