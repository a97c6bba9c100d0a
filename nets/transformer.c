/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of transformers: see transformer.h. */
#include "transformer.h"

#include <math.h>
#include <string.h>

const struct mu_option_rule mu_transformer_rules[] = {
	{.option = "dropout", .values = "1", .why = "it must be below 1"},
	{.option = NULL},
};

enum mu_status mu_transformer_choose(const struct mu_net_config *config,
				     const struct mu_transformer_preset *presets,
				     size_t n_presets, struct mu_transformer *s)
{
	enum mu_status st = MU_OK;
	const struct mu_transformer_settings *own = config->settings;

	for (size_t i = 0; i < n_presets; i++)
		if (strcmp(presets[i].name, config->network) == 0) {
			s->layers = presets[i].layers;
			s->hidden = presets[i].hidden;
			s->heads = presets[i].heads;
		}
	if (config->num_layers)
		s->layers = (int)config->num_layers;
	if (own->hidden)
		s->hidden = (int)own->hidden;
	if (own->heads)
		s->heads = (int)own->heads;
	if (own->norm_eps > 0)
		s->eps = (float)own->norm_eps;
	if (own->dropout > 0)
		s->dropout = (float)own->dropout;
	if (s->hidden % s->heads != 0)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: %d heads do not divide a width of %d (setting num-heads, "
			"setting num-hidden)",
			config->network, s->heads, s->hidden);
out:
	return st;
}

/* A product at every step. */
static int linear(struct mu_net *net, int x, int units, const char *name)
{
	const struct mu_convolution a = {.filters = units, .kernel = {1, 1}};

	return mu_net_convolution(net, x, &a, name);
}

/* The last product of a branch y, which is added to x. */
static int add_branch(struct mu_net *net, const struct mu_transformer *s, int x, int y,
		      const char *name)
{
	y = linear(net, y, s->hidden, name);
	mu_net_scale_initial(net, (float)(1 / sqrt(2.0 * s->layers)));
	if (s->dropout > 0)
		y = mu_net_dropout(net, y, s->dropout, NULL);
	return mu_net_sum(net, 2, (const int[]){x, y}, NULL);
}

static int block(struct mu_net *net, int x, const struct mu_transformer *s)
{
	const struct mu_layer_norm norm = {.eps = s->eps};
	const struct mu_attention attention = {
		.heads = s->heads, .causal = s->causal, .dropout = s->dropout};
	int y = mu_net_layer_norm(net, x, &norm, "ln1");

	y = linear(net, y, 3 * s->hidden, "qkv");
	y = mu_net_attention(net, y, &attention, "attention");
	x = add_branch(net, s, x, y, "proj");
	y = mu_net_layer_norm(net, x, &norm, "ln2");
	y = linear(net, y, 4 * s->hidden, "fc");
	y = mu_net_activation(net, y, s->activation, "act");
	return add_branch(net, s, x, y, "out");
}

int mu_transformer_blocks(struct mu_net *net, int x, const struct mu_transformer *s)
{
	const struct mu_layer_norm norm = {.eps = s->eps};

	mu_net_set_depth(net, s->layers);
	mu_net_report(net, "num-heads", s->heads);
	if (s->dropout > 0)
		x = mu_net_dropout(net, x, s->dropout, NULL);
	for (int i = 0; i < s->layers; i++) {
		mu_net_group(net, "block%d", i);
		mu_net_prefix(net, "h%d_", i);
		x = block(net, x, s);
	}
	mu_net_prefix(net, "%s", "");
	mu_net_group(net, "head");
	return mu_net_layer_norm(net, x, &norm, "lnf");
}
