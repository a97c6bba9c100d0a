/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of sequences: shapes and parameters. See struct mu_embedding and struct mu_lstm. */
#include "net/layers/layer.h"

#include <muster/base.h>

/* The input must be (n, c, h, w) with these dimensions; 0 is any. NULL after an error. */
static const struct mu_shape *input_of(struct mu_net *net, int in, const char *layer,
				       const char *form, const size_t dims[MU_MAX_DIMS],
				       const void *attr)
{
	const struct mu_shape *s;
	bool fits;
	char text[96];

	if (net->st == MU_OK && !attr)
		mu_net_fail(net, "%s: attr is NULL", layer);
	if (!mu_net_can_read(net, in))
		return NULL;
	s = &net->tensors[in].shape;
	fits = s->ndims == 4;
	for (int i = 1; i < s->ndims; i++)
		fits &= dims[i] == 0 || s->dims[i] == dims[i];
	if (fits)
		return s;
	mu_net_fail(net, "%s needs an input %s, not %s", layer, form,
		    mu_shape_text(s, text, sizeof text));
	return NULL;
}

int mu_net_embedding(struct mu_net *net, int in, const struct mu_embedding *attr, const char *name)
{
	static const size_t dims[MU_MAX_DIMS] = {0, 1, 0, 0};
	const struct mu_shape *s =
		input_of(net, in, name ? name : "embedding", "(n, 1, h, w) of whole numbers", dims,
			 attr);
	struct mu_shape out, weight;
	int t;

	if (!s)
		return -1;
	if (attr->inputs < 1 || attr->units < 1)
		return mu_net_fail(net, "embedding of %d numbers in %d units; both must be at "
					"least 1",
				   attr->inputs, attr->units);
	out = *s;
	out.dims[1] = (size_t)attr->units;
	weight = (struct mu_shape){2, {(size_t)attr->inputs, (size_t)attr->units}};
	t = mu_net_add(net, &(struct net_spec){&mu_layer_embedding, name, attr, sizeof *attr, 1, &in,
					       out});
	if (t < 0 || mu_net_add_param(net, "weight", weight, 0) != MU_OK)
		return -1;
	return t;
}

int mu_net_lstm(struct mu_net *net, int in, const struct mu_lstm *attr, const char *name)
{
	static const size_t dims[MU_MAX_DIMS] = {0, 0, 0, 1};
	const struct mu_shape *s =
		input_of(net, in, name ? name : "lstm", "(n, c, steps, 1)", dims, attr);
	size_t units = attr ? (size_t)attr->units : 0;
	struct mu_shape out, from_input, from_before, bias;
	int t;

	if (!s)
		return -1;
	if (attr->units < 1)
		return mu_net_fail(net, "lstm of %d units; at least 1 is needed", attr->units);
	out = *s;
	out.dims[1] = units;
	from_input = (struct mu_shape){2, {4 * units, s->dims[1]}};
	from_before = (struct mu_shape){2, {4 * units, units}};
	bias = (struct mu_shape){1, {4 * units}};
	t = mu_net_add(net, &(struct net_spec){&mu_layer_lstm, name, attr, sizeof *attr, 1, &in, out});
	if (t < 0 || mu_net_add_param(net, "i2h_weight", from_input, 0) != MU_OK ||
	    mu_net_add_param(net, "i2h_bias", bias, 0) != MU_OK ||
	    mu_net_add_param(net, "h2h_weight", from_before, 0) != MU_OK ||
	    mu_net_add_param(net, "h2h_bias", bias, 0) != MU_OK)
		return -1;
	return t;
}
