/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vision transformers (Dosovitskiy et al., An image is worth 16x16 words, 2021; sizes tiny and
 * small of Touvron et al., 2021): patches of 16 x 16 pixels, 4 x 4 of small images, and a token
 * whose last state is classified.
 */
#include "transformer.h"

static const struct mu_transformer_preset presets[] = {
	{"vit-tiny", 12, 192, 3},
	{"vit-small", 12, 384, 6},
	{"vit-base", 12, 768, 12},
};

static const struct mu_option settings[] = {
	MU_TRANSFORMER_SETTINGS,
	{.name = NULL},
};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_picture p = mu_sample_picture(&config->shape);
	const int patch = p.h <= MU_SMALL_IMAGE ? 4 : 16;
	struct mu_transformer s = {.eps = 1e-6f, .activation = MU_ACTIVATION_GELU};
	struct mu_convolution patches = {.kernel = {patch, patch}, .stride = {patch, patch}};
	const struct mu_fully_connected head = {.units = (int)config->classes};
	int x;

	MU_TRY(mu_transformer_choose(config, presets, sizeof presets / sizeof *presets, &s));
	if (p.h % (size_t)patch != 0 || p.w % (size_t)patch != 0)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: images of %zu x %zu are no whole patches of %d x %d: another "
			"image shape is needed",
			config->network, p.h, p.w, patch, patch);
	patches.filters = s.hidden;
	x = mu_net_input(net);
	mu_net_group(net, "embed");
	x = mu_net_convolution(net, x, &patches, "patch");
	x = mu_net_positions(net, x, &(struct mu_positions){.token = true}, "position");
	x = mu_transformer_blocks(net, x, &s);
	x = mu_net_step(net, x, 0, "first");
	x = mu_net_fully_connected(net, x, &head, "head");
	mu_net_objective(net, x);
out:
	return st;
}

#define VIT(variable, preset, text) \
	const struct mu_network variable = { \
		.name = preset, \
		.help = text, \
		.shape = MU_SAMPLE(3, 224, 224), \
		.classes = 1000, \
		.objective = "softmax", \
		.training = {.lr = 0.001, .batch = 64}, \
		.training_small = {.lr = 0.001, .batch = 128, .pad = 4}, \
		.traits = MU_NETWORK_DEPTHS, \
		.settings = settings, \
		.settings_nbytes = sizeof(struct mu_transformer_settings), \
		.rules = mu_transformer_rules, \
		.initializer = "normal-0.02", \
		.build = build, \
	}

VIT(mu_network_vit_tiny, "vit-tiny", "transformer of image patches: 12 blocks of 192, 3 heads");
VIT(mu_network_vit_small, "vit-small", "12 blocks of 384, 6 heads");
VIT(mu_network_vit_base, "vit-base", "12 blocks of 768, 12 heads");
