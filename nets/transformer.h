/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of transformers, for gpt2.c and vit.c. */
#ifndef NETS_TRANSFORMER_H
#define NETS_TRANSFORMER_H

#include <muster/net.h>

struct mu_transformer {
	int layers, hidden, heads;
	float dropout, eps;
	bool causal;
	enum mu_activation_kind activation;
};

/* A network that exists in several sizes. */
struct mu_transformer_preset {
	const char *name;
	int layers, hidden, heads;
};

/* The sizes of the network's preset; those that the configuration names replace them. MU_ERR_USAGE:
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
