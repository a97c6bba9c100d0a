/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of transformers: shapes and parameters. See device.h for each. */
#include "net/layers/layer.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* NULL after an error: the input of a layer that has attributes, with `ndims` dimensions (0: any).
 */
static const struct mu_shape *input_of(struct mu_net *net, int in, const char *layer, int ndims,
				       const void *attr)
{
	char text[96];

	if (net->st == MU_OK && !attr)
		mu_net_fail(net, "%s: attr is NULL", layer);
	if (!mu_net_can_read(net, in))
		return NULL;
	if (ndims && net->tensors[in].shape.ndims != ndims)
		mu_net_fail(net, "%s needs an input (n, c, h, w), not %s", layer,
			    mu_shape_text(&net->tensors[in].shape, text, sizeof text));
	return net->st == MU_OK ? &net->tensors[in].shape : NULL;
}

int mu_net_layer_norm(struct mu_net *net, int in, const struct mu_layer_norm *attr,
		      const char *name)
{
	const char *layer = name ? name : "layernorm";
	const struct mu_shape *s = input_of(net, in, layer, 0, attr);
	struct mu_shape channels;
	int t;

	if (!s)
		return -1;
	if (!(attr->eps > 0))
		return mu_net_fail(net, "%s: eps %g; it must be above 0", layer,
				   (double)attr->eps);
	channels = (struct mu_shape){1, {s->dims[1]}};
	t = mu_net_add(net, &(struct net_spec){&mu_layer_layer_norm, name, attr, sizeof *attr, 1, &in,
					       *s});
	if (t < 0 || mu_net_add_param(net, "gamma", channels, 0) != MU_OK ||
	    (!attr->rms && mu_net_add_param(net, "beta", channels, 0) != MU_OK))
		return -1;
	return t;
}

/* The reason why there can be no such attention; NULL: there can. */
static const char *attention_fault(const struct mu_attention *a, const struct mu_shape *in)
{
	const int kv = a->kv_heads ? a->kv_heads : a->heads;
	const size_t parts = (size_t)(a->heads + 2 * kv);

	if (a->heads < 1 || kv < 1 || a->heads % kv != 0)
		return "heads must be at least 1, and a multiple of kv_heads";
	if (in->dims[3] != 1)
		return "the last dimension of the input must be 1";
	if (in->dims[1] % parts != 0)
		return "the channels of the input must be a multiple of heads + 2 kv_heads";
	if (!(a->rotary >= 0) || (a->rotary > 0 && in->dims[1] / parts % 2 != 0))
		return "rotary needs an even number of channels per head";
	if (!(a->dropout >= 0 && a->dropout < 1))
		return "dropout must be at least 0 and below 1";
	return NULL;
}

int mu_net_attention(struct mu_net *net, int in, const struct mu_attention *attr, const char *name)
{
	const char *layer = name ? name : "attention", *fault;
	const struct mu_shape *s = input_of(net, in, layer, 4, attr);
	struct mu_attention_sizes sizes;
	struct mu_shape out;
	char text[96];

	if (!s)
		return -1;
	fault = attention_fault(attr, s);
	if (fault)
		return mu_net_fail(net, "%s: %d heads, %d kv_heads, an input of %s: %s", layer,
				   attr->heads, attr->kv_heads ? attr->kv_heads : attr->heads,
				   mu_shape_text(s, text, sizeof text), fault);
	sizes = mu_attention_sizes(attr, s);
	out = *s;
	out.dims[1] = sizes.heads * sizes.d;
	return mu_net_add(net, &(struct net_spec){&mu_layer_attention, name, attr, sizeof *attr, 1, &in,
						  out});
}

int mu_net_heads(const struct mu_net *net)
{
	for (int i = 0; i < net->n_layers; i++)
		if (net->layers[i].kind == &mu_layer_attention)
			return ((const struct mu_attention *)net->layers[i].attr)->heads;
	return 0;
}

int mu_net_positions(struct mu_net *net, int in, const struct mu_positions *attr, const char *name)
{
	const char *layer = name ? name : "positions";
	const struct mu_shape *s = input_of(net, in, layer, 4, attr);
	struct mu_shape out, weight, token;
	int t;

	if (!s)
		return -1;
	out = *s;
	out.dims[2] = s->dims[2] * s->dims[3] + (attr->token ? 1 : 0);
	out.dims[3] = 1;
	if (attr->most_steps < 0 || (attr->most_steps && (size_t)attr->most_steps < out.dims[2]))
		return mu_net_fail(net, "%s: a sequence of %zu steps; there are %d positions",
				   layer, out.dims[2], attr->most_steps);
	weight = (struct mu_shape){
		2, {attr->most_steps ? (size_t)attr->most_steps : out.dims[2], s->dims[1]}};
	token = (struct mu_shape){1, {s->dims[1]}};
	t = mu_net_add(net, &(struct net_spec){&mu_layer_positions, name, attr, sizeof *attr, 1, &in,
					       out});
	if (t < 0 || mu_net_add_param(net, "weight", weight, 0) != MU_OK ||
	    (attr->token && mu_net_add_param(net, "token", token, 0) != MU_OK))
		return -1;
	return t;
}

int mu_net_step(struct mu_net *net, int in, int step, const char *name)
{
	const char *layer = name ? name : "step";
	const struct mu_step attr = {step};
	const struct mu_shape *s = input_of(net, in, layer, 4, &attr);
	struct mu_shape out;

	if (!s)
		return -1;
	if (s->dims[3] != 1 || step < 0 || (size_t)step >= s->dims[2])
		return mu_net_fail(net, "%s: step %d of %zu x %zu", layer, step, s->dims[2],
				   s->dims[3]);
	out = (struct mu_shape){2, {0, s->dims[1]}};
	return mu_net_add(net,
			  &(struct net_spec){&mu_layer_step, name, &attr, sizeof attr, 1, &in, out});
}

/* The weight of an embedding with this name; NULL: there is none. */
static const struct net_param *find_table(const struct mu_net *net, const char *weight)
{
	for (int l = 0; l + 1 < net->n_layers; l++)
		if (mu_layer_has(net->layers[l].kind, MU_LAYER_HAS_TABLE) &&
		    strcmp(net->layers[l].params[0].name, weight) == 0)
			return &net->layers[l].params[0];
	return NULL;
}

void mu_net_tie(struct mu_net *net, const char *weight)
{
	struct net_layer *last = net->n_layers > 0 ? &net->layers[net->n_layers - 1] : NULL;
	const struct net_param *table;
	struct net_param *own;
	char *name;

	if (net->st != MU_OK)
		return;
	table = find_table(net, weight);
	if (!last || !table || !mu_layer_has(last->kind, MU_LAYER_MAY_SHARE) ||
	    last->params[0].shape.dims[0] != table->shape.dims[0] ||
	    mu_shape_n(&last->params[0].shape) != mu_shape_n(&table->shape)) {
		mu_net_fail(net,
			    "the weight of %s cannot be %s: a convolution or a fully connected "
			    "layer can have that of an embedding with as many rows and elements",
			    last ? last->name : "no layer", weight);
		return;
	}
	own = &last->params[0];
	name = strdup(weight);
	if (!name) {
		mu_net_fail(net, "no memory for a name");
		return;
	}
	free(own->name);
	own->name = name;
	own->tied = true;
}

void mu_net_scale_initial(struct mu_net *net, float factor)
{
	if (net->st == MU_OK && net->n_layers > 0 && net->layers[net->n_layers - 1].n_params > 0)
		net->layers[net->n_layers - 1].params[0].scale = factor;
}
