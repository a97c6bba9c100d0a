/* SPDX-License-Identifier: Apache-2.0 */
/* The public layer calls: each checks the shape of its input, infers the shape of its output, and
 * names its parameters. */
#include "net/layers/layer.h"

#include <muster/base.h>

/* attr: what the caller says of a layer that cannot do without. */
static bool described(struct mu_net *net, int in, const void *attr)
{
	if (net->st == MU_OK && !attr)
		mu_net_fail(net, "attr of a layer that reads tensor %d is NULL", in);
	return mu_net_can_read(net, in);
}

static const struct mu_shape *shape_of(const struct mu_net *net, int t)
{
	return &net->tensors[t].shape;
}

static size_t features(const struct mu_shape *s)
{
	size_t n = 1;

	for (int i = 1; i < s->ndims; i++)
		n *= s->dims[i];
	return n;
}

static struct mu_shape vector(size_t n)
{
	return (struct mu_shape){1, {n}};
}

/* A layer whose shapes are being checked. */
struct place {
	struct mu_net *net;
	const struct mu_layer_kind *kind;
	const char *name; /* NULL: automatic */
	const struct mu_shape *in;
};

/* "convolution stage1_unit1_conv1" */
static const char *place_text(const struct place *at, char *text, size_t nbytes)
{
	const char *kind = mu_op_kind_name(at->kind->op);

	if (at->name)
		snprintf(text, nbytes, "%s %s%s", kind, at->net->prefix, at->name);
	else
		snprintf(text, nbytes, "%s%d", kind, at->net->named[at->kind->op]);
	return text;
}

int mu_net_fully_connected(struct mu_net *net, int in, const struct mu_fully_connected *attr,
			   const char *name)
{
	struct mu_shape out, weight;
	int t;

	if (!described(net, in, attr))
		return -1;
	if (attr->units < 1)
		return mu_net_fail(net, "fully connected: %d units; at least 1 is needed",
				   attr->units);
	out = (struct mu_shape){2, {0, (size_t)attr->units}};
	weight = (struct mu_shape){2, {(size_t)attr->units, features(shape_of(net, in))}};
	t = mu_net_add(net, &(struct net_spec){&mu_layer_fully_connected, name, attr, sizeof *attr, 1,
					       &in, out});
	if (t < 0 || mu_net_add_param(net, "weight", weight, 0) != MU_OK)
		return -1;
	if (!attr->no_bias &&
	    mu_net_add_param(net, "bias", vector((size_t)attr->units), 0) != MU_OK)
		return -1;
	return t;
}

int mu_net_activation(struct mu_net *net, int in, enum mu_activation_kind kind, const char *name)
{
	struct mu_activation a = {kind};

	if (!mu_net_can_read(net, in))
		return -1;
	if ((unsigned)kind > MU_ACTIVATION_SILU)
		return mu_net_fail(net, "activation: there is no kind %d", (int)kind);
	return mu_net_add(net, &(struct net_spec){mu_activation_is_smooth(kind) ? &mu_layer_smooth
										: &mu_layer_activation,
						  name, &a, sizeof a, 1, &in, *shape_of(net, in)});
}

int mu_net_flatten(struct mu_net *net, int in, const char *name)
{
	struct mu_shape out;

	if (!mu_net_can_read(net, in))
		return -1;
	out = (struct mu_shape){2, {0, features(shape_of(net, in))}};
	return mu_net_add(net, &(struct net_spec){&mu_layer_flatten, name, NULL, 0, 1, &in, out});
}

int mu_net_dropout(struct mu_net *net, int in, float p, const char *name)
{
	struct mu_dropout a = {p};

	if (!mu_net_can_read(net, in))
		return -1;
	if (!(p >= 0 && p < 1))
		return mu_net_fail(net, "dropout: probability %g is not in [0, 1)", (double)p);
	return mu_net_add(net, &(struct net_spec){&mu_layer_dropout, name, &a, sizeof a, 1, &in,
						  *shape_of(net, in)});
}

int mu_net_batch_norm(struct mu_net *net, int in, const struct mu_batch_norm *attr,
		      const char *name)
{
	struct mu_batch_norm a = attr ? *attr : (struct mu_batch_norm){0};
	struct mu_shape c;
	int t;

	if (!described(net, in, attr))
		return -1;
	if (!(a.eps > 0 && a.momentum > 0 && a.momentum < 1))
		return mu_net_fail(
			net, "batch-norm: eps %g must be above 0 and momentum %g between 0 and 1",
			(double)a.eps, (double)a.momentum);
	c = vector(shape_of(net, in)->dims[1]);
	t = mu_net_add(net, &(struct net_spec){&mu_layer_batch_norm, name, &a, sizeof a, 1, &in,
					       *shape_of(net, in)});
	if (t < 0 || mu_net_add_param(net, "gamma", c, 0) != MU_OK ||
	    mu_net_add_param(net, "beta", c, 0) != MU_OK ||
	    mu_net_add_param(net, "moving_mean", c, a.momentum) != MU_OK ||
	    mu_net_add_param(net, "moving_var", c, a.momentum) != MU_OK)
		return -1;
	return t;
}

int mu_net_sum(struct mu_net *net, int n, const int *ins, const char *name)
{
	char layer[160], a[96], b[96];

	for (int i = 0; i < n; i++) {
		if (!mu_net_can_read(net, ins[i]))
			return -1;
		if (!mu_shape_equal(shape_of(net, ins[0]), shape_of(net, ins[i])))
			return mu_net_fail(net, "%s needs inputs of one shape, not %s and %s",
					   place_text(&(struct place){net, &mu_layer_sum, name, NULL},
						      layer, sizeof layer),
					   mu_shape_text(shape_of(net, ins[0]), a, sizeof a),
					   mu_shape_text(shape_of(net, ins[i]), b, sizeof b));
	}
	if (n < 2)
		return mu_net_fail(net, "sum needs at least two inputs, not %d", n);
	return mu_net_add(
		net, &(struct net_spec){&mu_layer_sum, name, NULL, 0, n, ins, *shape_of(net, ins[0])});
}

int mu_net_concat(struct mu_net *net, int n, const int *ins, const char *name)
{
	struct mu_shape out = {0, {0}};
	char layer[160], a[96], b[96];

	for (int i = 0; i < n; i++) {
		struct mu_shape s;

		if (!mu_net_can_read(net, ins[i]))
			return -1;
		s = *shape_of(net, ins[i]);
		if (i == 0) {
			out = s;
			continue;
		}
		s.dims[1] = out.dims[1];
		if (!mu_shape_equal(&out, &s))
			return mu_net_fail(
				net,
				"%s needs inputs that differ in channels only, not %s "
				"and %s",
				place_text(&(struct place){net, &mu_layer_concat, name, NULL}, layer,
					   sizeof layer),
				mu_shape_text(&out, a, sizeof a),
				mu_shape_text(shape_of(net, ins[i]), b, sizeof b));
		out.dims[1] += shape_of(net, ins[i])->dims[1];
	}
	if (n < 2)
		return mu_net_fail(net, "concat needs at least two inputs, not %d", n);
	return mu_net_add(net, &(struct net_spec){&mu_layer_concat, name, NULL, 0, n, ins, out});
}

void mu_net_softmax(struct mu_net *net, int in, const char *name)
{
	const struct mu_shape *s;
	char layer[160], shape[96];

	if (!mu_net_can_read(net, in))
		return;
	s = shape_of(net, in);
	if ((s->ndims != 2 && s->ndims != 4) || s->dims[1] != net->config.classes) {
		mu_net_fail(net, "%s needs an input (n, %zu) or (n, %zu, h, w), not %s",
			    place_text(&(struct place){net, &mu_layer_softmax, name, s}, layer,
				       sizeof layer),
			    net->config.classes, net->config.classes,
			    mu_shape_text(s, shape, sizeof shape));
		return;
	}
	mu_net_add(net, &(struct net_spec){&mu_layer_softmax, name, NULL, 0, 1, &in, *s});
}
