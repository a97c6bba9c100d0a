/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of transformers, for gpt2.c and vit.c; settings of theirs and of llama.c. */
#ifndef NETS_TRANSFORMER_H
#define NETS_TRANSFORMER_H

#include <muster/net.h>

struct mu_transformer {
	int layers, hidden, heads;
	float dropout, eps;
	bool causal;
	enum mu_activation_kind activation;
};

/* What the user may set; the struct of a network's settings begins with it. */
struct mu_transformer_settings {
	long hidden, heads; /* 0: the preset's */
	double norm_eps;    /* 0: the network's */
	double dropout;     /* negative: none */
};

#define MU_TRANSFORMER_SETTING(name, type, member) \
	MU_SETTING(name, type, struct mu_transformer_settings, member), .automatic = true
#define MU_TRANSFORMER_SIZES \
	{MU_TRANSFORMER_SETTING("num-hidden", INT, hidden), \
	 .similar = "n-embd|hidden-size|d-model", .initial = "0", .max = 1e6, \
	 .record = MU_RECORD_SHAPES, \
	 .help = "N  width of the blocks (0: the network's default)"}, \
	{MU_TRANSFORMER_SETTING("num-heads", INT, heads), \
	 .similar = "heads|n-head|num-attention-heads", .initial = "0", .max = 1e6, \
	 .record = MU_RECORD_NEEDED, \
	 .help = "N  heads of attention (0: the network's default)"}
#define MU_TRANSFORMER_SETTINGS \
	MU_TRANSFORMER_SIZES, \
	{MU_TRANSFORMER_SETTING("layer-norm-eps", REAL, norm_eps), \
	 .similar = "layer-norm-epsilon|norm-eps|norm-epsilon|layernorm-epsilon", \
	 .initial = "0", .max = 1, .record = MU_RECORD_UNSEEN, \
	 .help = "X  added to the variance in layer norms, as the model that is loaded has it " \
		 "(0: the network's own)"}, \
	{MU_TRANSFORMER_SETTING("dropout", REAL, dropout), .initial = "-1", .max = 1, \
	 .record = MU_RECORD_TOLD, \
	 .help = "P  probability that a value between layers is dropped in training (0)"}

extern const struct mu_option_rule mu_transformer_rules[];

/* A network that exists in several sizes. */
struct mu_transformer_preset {
	const char *name;
	int layers, hidden, heads;
};

/* The sizes of the network's preset; those of its settings replace them. MU_ERR_USAGE:
 * heads that do not divide the width. */
enum mu_status mu_transformer_choose(const struct mu_net_config *config,
				     const struct mu_transformer_preset *presets,
				     size_t n_presets, struct mu_transformer *s);
/*
 * Groups block0, block1, ...: x + attention(norm(x)), then x + layers(norm(x)) with an inner layer
 * of four times the width; then a last norm, "lnf". Weights before a sum begin smaller by sqrt(2
 * layers), so that the sum of all does not grow with the depth (Radford et al., 2019).
 */
int mu_transformer_blocks(struct mu_net *net, int x, const struct mu_transformer *s);

#endif
