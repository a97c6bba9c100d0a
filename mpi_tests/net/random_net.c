/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network drawn at random, of pictures or volumes: blocks of layers with branches, sums, readers
 * in several places, and one loss or several, small enough for ref.
 */
#include "random_net.h"

#include "random_draw.h"

/* A tensor while the network is drawn, and the shape of a sample of it. */
struct piece {
	int tensor;
	struct mu_shape s;
};

static int channels_of(const struct piece *x)
{
	return (int)x->s.dims[1];
}

static bool is_volume(const struct piece *x)
{
	return x->s.ndims == MU_MAX_DIMS;
}

/* Filters, fewer where a window has a depth, too. */
static int draw_filters(struct draw *d, const struct piece *x, int most)
{
	return draw_channels(d, is_volume(x) ? most / 2 : most);
}

/* Windows of {k, k} are {k, k, k} of a volume: some say so, and some leave it to the layer. */
static struct piece add_convolution(struct mu_net *net, struct draw *d, struct piece x, int filters)
{
	const int k = 1 + 2 * draw_int(d, 0, 1), depth = draw_chance(d, 50) ? k : 0;
	struct mu_convolution a = {.filters = filters,
				   .kernel = {k, k, depth},
				   .pad = {k / 2, k / 2, depth / 2},
				   .no_bias = draw_chance(d, 40)};

	if (draw_chance(d, 15) && filters == channels_of(&x))
		a.groups = filters;
	x.tensor = mu_net_convolution(net, x.tensor, &a, NULL);
	x.s.dims[1] = (size_t)filters;
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
	struct mu_activation a = {.kind = draw_activation(d)};

	if (draw_chance(d, 25))
		a = draw_smooth(d);
	if (draw_chance(d, 40))
		a.parameter = 0; /* its default */
	x.tensor = mu_net_activation_of(net, x.tensor, &a, NULL);
	return x;
}

static struct piece add_pooling(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_pooling a = draw_pooling(d, &x.s);

	x.tensor = mu_net_pooling(net, x.tensor, &a, NULL);
	x.s = draw_pooled(&a, &x.s);
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
		.average = draw_chance(d, 50), .kernel = {3, 3, 3}, .pad = {1, 1, 1}};
	int kind = draw_int(d, 0, 9);

	if (kind == 0)
		return x;
	if (kind < 3) {
		x.tensor = mu_net_pooling(net, x.tensor, &a, NULL);
		return x;
	}
	return add_unit(net, d, x, draw_filters(d, &x, 33));
}

static struct piece add_concat(struct mu_net *net, struct draw *d, struct piece x)
{
	int n = draw_int(d, 2, 4), parts[4], c = 0;

	for (int i = 0; i < n; i++) {
		struct piece path = add_path(net, d, x);

		parts[i] = path.tensor;
		c += channels_of(&path);
	}
	x.tensor = mu_net_concat(net, n, parts, NULL);
	x.s.dims[1] = (size_t)c;
	return x;
}

static struct piece add_residual(struct mu_net *net, struct draw *d, struct piece x)
{
	int n = draw_int(d, 2, 3), parts[3] = {x.tensor};

	for (int i = 1; i < n; i++)
		parts[i] = draw_chance(d, 10) ? x.tensor
					      : add_unit(net, d, x, channels_of(&x)).tensor;
	x.tensor = mu_net_sum(net, n, parts, NULL);
	return x;
}

/* It, times a branch of it between 0 and 1, or times itself. */
static struct piece add_product(struct mu_net *net, struct draw *d, struct piece x)
{
	struct piece gate = draw_chance(d, 80) ? add_unit(net, d, x, channels_of(&x)) : x;

	gate.tensor = mu_net_activation(net, gate.tensor, MU_ACTIVATION_SIGMOID, NULL);
	x.tensor = mu_net_product(net, draw_chance(d, 80) ? x.tensor : gate.tensor, gate.tensor,
				  NULL);
	return x;
}

/* What changes the axes of space, while they are small. */
static struct piece add_space(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_deconvolution twice = {.filters = draw_filters(d, &x, 33),
					       .kernel = {2, 3, 2},
					       .stride = {2, 2, 1},
					       .pad = {0, 1, 0},
					       .groups = 1};
	const struct mu_upsampling up = draw_upsampling(d, &x.s);
	const struct mu_pad pad = draw_pad(d, &x.s);

	if (is_volume(&x) && mu_shape_positions(&x.s) > 200)
		return x;
	switch (mu_shape_positions(&x.s) > 200 ? 2 : draw_int(d, 0, 2)) {
	case 0:
		x.tensor = mu_net_deconvolution(net, x.tensor, &twice, NULL);
		x.s.dims[1] = (size_t)twice.filters;
		x.s.dims[2] *= 2;
		x.s.dims[3] = 2 * x.s.dims[3] - 1;
		x.s.dims[4] += is_volume(&x);
		return x;
	case 1:
		x.tensor = mu_net_upsampling(net, x.tensor, &up, NULL);
		x.s = draw_upsampled(&up, &x.s);
		return x;
	default:
		x.tensor = mu_net_pad(net, x.tensor, &pad, NULL);
		x.s = draw_padded(&pad, &x.s);
		return x;
	}
}

/* The same elements in other axes, or means over some axes. */
static struct piece add_axes(struct mu_net *net, struct draw *d, struct piece x)
{
	const int n = x.s.ndims - 2;
	unsigned axes = 0;

	if (draw_chance(d, 60)) {
		x.s = draw_reshaped(d, &x.s);
		x.tensor = mu_net_reshape(net, x.tensor, &x.s, NULL);
		return x;
	}
	for (int i = 0; i < n; i++)
		if (draw_chance(d, 40)) {
			axes |= 1u << i;
			x.s.dims[2 + i] = 1;
		}
	if (axes == 0 || draw_chance(d, 20)) {
		axes |= MU_AXIS_CHANNELS;
		x.s.dims[1] = 1;
	}
	x.tensor = mu_net_mean(net, x.tensor, axes, NULL);
	return x;
}

static struct piece add_group_norm(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_group_norm a = draw_group_norm(d, channels_of(&x));
	const struct mu_layer_norm of_channels = {1e-2f, draw_chance(d, 50)};

	if (draw_chance(d, 30))
		x.tensor = mu_net_layer_norm(net, x.tensor, &of_channels, NULL);
	else if (mu_shape_positions(&x.s) > 1)
		x.tensor = mu_net_group_norm(net, x.tensor, &a, NULL);
	return x;
}

static struct piece add_lrn(struct mu_net *net, struct draw *d, struct piece x)
{
	const struct mu_lrn a = draw_lrn(d);

	if (!is_volume(&x))
		x.tensor = mu_net_lrn(net, x.tensor, &a, NULL);
	return x;
}

static struct piece add_block(struct mu_net *net, struct draw *d, struct piece x)
{
	switch (draw_int(d, 0, 17)) {
	case 0:
	case 1: return add_pooling(net, d, x);
	case 2: return add_lrn(net, d, x);
	case 3: x.tensor = mu_net_dropout(net, x.tensor, 0.25f, NULL); return x;
	case 4:
	case 5: return channels_of(&x) > 130 ? x : add_concat(net, d, x);
	case 6:
	case 7: return add_residual(net, d, x);
	case 8: return add_activation(net, d, x);
	case 9: return add_norm(net, d, x);
	case 10: return add_product(net, d, x);
	case 11:
	case 12: return add_space(net, d, x);
	case 13: return add_group_norm(net, d, x);
	case 14: return add_axes(net, d, x);
	default: return add_unit(net, d, x, draw_filters(d, &x, 64));
	}
}

/* ---- losses ---- */

/* Of each sample so many outputs. */
static int add_outputs(struct mu_net *net, struct draw *d, int x, int n)
{
	const struct mu_pooling global = {.average = draw_chance(d, 70), .global = true};
	const struct mu_fully_connected hidden = {.units = draw_channels(d, 64)},
					last = {.units = n};

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
	return mu_net_fully_connected(net, x, &last, NULL);
}

/* So many outputs of each position. */
static int add_positions(struct mu_net *net, struct draw *d, int x, int n)
{
	const struct mu_convolution last = {
		.filters = n, .kernel = {1, 1, 1}, .no_bias = draw_chance(d, 40)};

	return mu_net_convolution(net, x, &last, NULL);
}

enum loss { SOFTMAX, DICE, MSE, MAE, HUBER, BCE, N_LOSSES };
enum { MOST_HEADS = 3 };

static const struct {
	const char *name, *settings; /* settings: perhaps */
} losses[N_LOSSES] = {
	{"softmax", "class-weights=1,2.5,0.5,2 ignore-class=1"},
	{"dice", "dice-smooth=0.5 ignore-class=2"},
	{"mse", NULL},
	{"mae", NULL},
	{"huber", "huber-delta=0.25"},
	{"bce", NULL},
};

/* What a loss works on: classes, or some values. */
static int add_inputs(struct mu_net *net, struct draw *d, int x, enum loss loss)
{
	const bool of_classes = loss == SOFTMAX || loss == DICE;
	const int n = of_classes ? (int)RANDOM_CLASSES : draw_int(d, 1, 5);

	if (loss == DICE || draw_chance(d, 40))
		return add_positions(net, d, x, n);
	return add_outputs(net, d, x, n);
}

static void add_alone(struct mu_net *net, struct draw *d, int x, enum loss loss)
{
	static const enum mu_element_form forms[N_LOSSES] = {[MSE] = MU_ELEMENT_SQUARED,
							     [MAE] = MU_ELEMENT_ABSOLUTE,
							     [HUBER] = MU_ELEMENT_HUBER,
							     [BCE] = MU_ELEMENT_LOGISTIC};
	const struct mu_region_loss region = {.smooth = 0.5f};
	const struct mu_element_loss element = {.form = forms[loss],
						.delta = loss == HUBER ? 0.25f : 0};

	x = add_inputs(net, d, x, loss);
	switch (loss) {
	case SOFTMAX:
		mu_net_softmax(net, x, "softmax");
		if (draw_chance(d, 20))
			mu_net_class_weights(net, "1,2.5,0.5,2");
		break;
	case DICE: mu_net_region_loss(net, x, &region, "dice"); break;
	default: mu_net_element_loss(net, x, &element, losses[loss].name); return;
	}
	if (draw_chance(d, 20))
		mu_net_ignore_label(net, 1);
}

/* Several losses, of x and of what was drawn before it. */
static void add_heads(struct mu_net *net, struct draw *d, int x, int earlier)
{
	static const char *const names[MOST_HEADS] = {"first", "second", "third"};
	struct mu_head heads[MOST_HEADS];
	const int n = draw_int(d, 1, MOST_HEADS);

	for (int i = 0; i < n; i++) {
		const enum loss loss = (enum loss)draw_int(d, 0, N_LOSSES - 1);
		const int from = i > 0 && draw_chance(d, 40) ? earlier : x;

		heads[i] = (struct mu_head){
			.name = names[i],
			.in = add_inputs(net, d, from, loss),
			.loss = losses[loss].name,
			.settings = draw_chance(d, 50) ? losses[loss].settings : NULL,
			.weight = 0.25 * draw_int(d, i == 0, 8)};
	}
	mu_net_losses(net, n, heads);
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	struct draw d;
	int blocks, earlier;
	struct piece x = {.s = config->shape};

	draw_init(&d, (uint64_t)config->num_layers >> 32, (uint64_t)config->num_layers);
	d.next = 1000; /* the first draws were the caller's */
	earlier = x.tensor = mu_net_input(net);
	blocks = draw_int(&d, 1, 7);
	for (int i = 0; i < blocks; i++) {
		if (draw_chance(&d, 50))
			earlier = x.tensor;
		x = add_block(net, &d, x);
	}
	if (draw_chance(&d, 30))
		add_heads(net, &d, x.tensor, earlier);
	else if (draw_chance(&d, 50))
		add_alone(net, &d, x.tensor, SOFTMAX);
	else
		add_alone(net, &d, x.tensor, (enum loss)draw_int(&d, 0, N_LOSSES - 1));
	return MU_OK;
}

const struct mu_network random_network = {.name = "random",
					  .shape = MU_SAMPLE(3, 8, 8),
					  .classes = RANDOM_CLASSES,
					  .traits = MU_NETWORK_DEPTHS,
					  .build = build};
