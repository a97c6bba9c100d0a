/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network drawn at random: blocks of layers with branches, sums, readers in several places, small
 * enough for ref.
 */
#include "random_net.h"

#include "random_draw.h"

/* A tensor while the network is drawn. */
struct piece {
	int tensor, c, h, w;
};

static struct piece add_convolution(struct mu_net *net, struct draw *d, struct piece x, int filters)
{
	int kernel = 1 + 2 * draw_int(d, 0, 1);
	struct mu_convolution a = {.filters = filters,
				   .kernel = {kernel, kernel},
				   .pad = {kernel / 2, kernel / 2},
				   .no_bias = draw_chance(d, 40)};

	if (draw_chance(d, 15) && filters == x.c)
		a.groups = x.c;
	x.tensor = mu_net_convolution(net, x.tensor, &a, NULL);
	x.c = filters;
	return x;
}

static struct piece add_norm(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_batch_norm a = {
		.eps = 1e-2f, .momentum = 0.9f, .fix_gamma = draw_chance(d, 20)};

	x.tensor = mu_net_batch_norm(net, x.tensor, &a, NULL);
	return x;
}

static struct piece add_activation(struct mu_net *net, struct draw *d, struct piece x)
{
	x.tensor = mu_net_activation(net, x.tensor, draw_activation(d), NULL);
	return x;
}

static struct piece add_pooling(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_pooling a = draw_pooling(d, x.h, x.w);

	x.tensor = mu_net_pooling(net, x.tensor, &a, NULL);
	x.h = draw_pooled(&a, 0, x.h);
	x.w = draw_pooled(&a, 1, x.w);
	return x;
}

/* Convolution, and perhaps batch-norm and activation, in one of the usual orders. */
static struct piece add_unit(struct mu_net *net, struct draw *d, struct piece x, int filters)
{
	bool before = draw_chance(d, 30), norm = draw_chance(d, 50);

	if (before && norm)
		x = add_norm(net, d, x);
	if (before)
		x = add_activation(net, d, x);
	x = add_convolution(net, d, x, filters);
	if (!before && norm)
		x = add_norm(net, d, x);
	if (!before && draw_chance(d, 80))
		x = add_activation(net, d, x);
	return x;
}

/* One path of a concat: a unit, a pooling that keeps the size, or the input itself. */
static struct piece add_path(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_pooling a = {
		.average = draw_chance(d, 50), .kernel = {3, 3}, .pad = {1, 1}};
	int kind = draw_int(d, 0, 9);

	if (kind == 0)
		return x;
	if (kind < 3) {
		x.tensor = mu_net_pooling(net, x.tensor, &a, NULL);
		return x;
	}
	return add_unit(net, d, x, draw_channels(d, 33));
}

static struct piece add_concat(struct mu_net *net, struct draw *d, struct piece x)
{
	int n = draw_int(d, 2, 4), parts[4], c = 0;

	for (int i = 0; i < n; i++) {
		struct piece path = add_path(net, d, x);

		parts[i] = path.tensor;
		c += path.c;
	}
	x.tensor = mu_net_concat(net, n, parts, NULL);
	x.c = c;
	return x;
}

static struct piece add_residual(struct mu_net *net, struct draw *d, struct piece x)
{
	int n = draw_int(d, 2, 3), parts[3] = {x.tensor};

	for (int i = 1; i < n; i++)
		parts[i] = draw_chance(d, 10) ? x.tensor : add_unit(net, d, x, x.c).tensor;
	x.tensor = mu_net_sum(net, n, parts, NULL);
	return x;
}

/* It, times a branch of it between 0 and 1, or times itself. */
static struct piece add_product(struct mu_net *net, struct draw *d, struct piece x)
{
	struct piece gate = draw_chance(d, 80) ? add_unit(net, d, x, x.c) : x;

	gate.tensor = mu_net_activation(net, gate.tensor, MU_ACTIVATION_SIGMOID, NULL);
	x.tensor = mu_net_product(net, draw_chance(d, 80) ? x.tensor : gate.tensor, gate.tensor,
				  NULL);
	return x;
}

/* What changes the axes of space, while they are small. */
static struct piece add_space(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_deconvolution twice = {
		.filters = draw_channels(d, 33), .kernel = {2, 3}, .stride = {2, 2}, .pad = {0, 1}};
	const struct mu_upsampling up = draw_upsampling(d);
	const struct mu_pad pad = draw_pad(d, x.h, x.w);

	switch (x.h * x.w > 200 ? 2 : draw_int(d, 0, 2)) {
	case 0:
		x.tensor = mu_net_deconvolution(net, x.tensor, &twice, NULL);
		x = (struct piece){x.tensor, twice.filters, 2 * x.h, 2 * x.w - 1};
		return x;
	case 1:
		x.tensor = mu_net_upsampling(net, x.tensor, &up, NULL);
		x.h = up.size[0] ? up.size[0] : x.h * (up.scale[0] ? up.scale[0] : 1);
		x.w = up.size[1] ? up.size[1] : x.w * (up.scale[1] ? up.scale[1] : 1);
		return x;
	default:
		x.tensor = mu_net_pad(net, x.tensor, &pad, NULL);
		x.h += pad.before[0] + pad.after[0];
		x.w += pad.before[1] + pad.after[1];
		return x;
	}
}

static struct piece add_group_norm(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_group_norm a = draw_group_norm(d, x.c);

	if (x.h * x.w > 1)
		x.tensor = mu_net_group_norm(net, x.tensor, &a, NULL);
	return x;
}

static struct piece add_block(struct mu_net *net, struct draw *d, struct piece x)
{
	switch (draw_int(d, 0, 15)) {
	case 0:
	case 1: return add_pooling(net, d, x);
	case 2: {
		const struct mu_lrn a = draw_lrn(d);

		x.tensor = mu_net_lrn(net, x.tensor, &a, NULL);
		return x;
	}
	case 3: x.tensor = mu_net_dropout(net, x.tensor, 0.25f, NULL); return x;
	case 4:
	case 5: return x.c > 130 ? x : add_concat(net, d, x);
	case 6:
	case 7: return add_residual(net, d, x);
	case 8: return add_activation(net, d, x);
	case 9: return add_norm(net, d, x);
	case 10: return add_product(net, d, x);
	case 11:
	case 12: return add_space(net, d, x);
	case 13: return add_group_norm(net, d, x);
	default: return add_unit(net, d, x, draw_channels(d, 64));
	}
}

static void add_head(struct mu_net *net, struct draw *d, int x, int classes)
{
	const struct mu_pooling global = {.average = draw_chance(d, 70), .global = true};
	const struct mu_fully_connected hidden = {.units = draw_channels(d, 64)},
					last = {.units = classes};

	if (draw_chance(d, 50))
		x = mu_net_pooling(net, x, &global, NULL);
	if (draw_chance(d, 70))
		x = mu_net_flatten(net, x, NULL);
	if (draw_chance(d, 40)) {
		x = mu_net_fully_connected(net, x, &hidden, NULL);
		if (draw_chance(d, 30))
			x = mu_net_batch_norm(
				net, x, &(struct mu_batch_norm){.eps = 1e-2f, .momentum = 0.9f},
				NULL);
		x = mu_net_activation(net, x, draw_activation(d), NULL);
		if (draw_chance(d, 50))
			x = mu_net_dropout(net, x, 0.5f, NULL);
	}
	x = mu_net_fully_connected(net, x, &last, NULL);
	mu_net_softmax(net, x, "softmax");
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	struct draw d;
	int blocks;
	const struct mu_picture in = mu_sample_picture(&config->shape);
	struct piece x = {.c = (int)in.c, .h = (int)in.h, .w = (int)in.w};

	draw_init(&d, (uint64_t)config->num_layers >> 32, (uint64_t)config->num_layers);
	d.next = 1000; /* the first draws were the caller's */
	x.tensor = mu_net_input(net);
	blocks = draw_int(&d, 1, 7);
	for (int i = 0; i < blocks; i++)
		x = add_block(net, &d, x);
	add_head(net, &d, x.tensor, (int)config->classes);
	return MU_OK;
}

const struct mu_network random_network = {.name = "random",
					  .shape = MU_SAMPLE(3, 8, 8),
					  .classes = 4,
					  .traits = MU_NETWORK_DEPTHS,
					  .build = build};
