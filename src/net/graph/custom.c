/* SPDX-License-Identifier: Apache-2.0 */
/* A user's layer in a net: the layer defines its shapes, the net keeps a copy of its attributes. */
#include "net/layers/layer.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "device/custom.h"

static bool is_whole(const struct mu_custom *custom)
{
	const struct mu_layer_ops *ops = custom->ops;

	return ops && ops->name && *ops->name && ops->shape && ops->forward && ops->backward;
}

/* The first error of the arguments. */
static int check(struct mu_net *net, int n, const int *ins, const struct mu_custom *custom)
{
	if (!is_whole(custom))
		return mu_net_fail(net, "a layer of your own needs a name, shape, forward and "
					"backward in its struct mu_layer_ops");
	if (custom->attr_nbytes > 0 && !custom->attr)
		return mu_net_fail(net, "layer %s: %zu bytes of attributes, but no attributes",
				   custom->ops->name, custom->attr_nbytes);
	if (n < 1 || n > MU_MAX_LAYER_INPUTS)
		return mu_net_fail(net, "layer %s with %d inputs; 1 to %d are possible",
				   custom->ops->name, n, MU_MAX_LAYER_INPUTS);
	for (int i = 0; i < n; i++)
		if (ins[i] < 0 || ins[i] >= net->n_tensors)
			return mu_net_fail(net,
					   "layer %s reads tensor %d; there are 0 to %d so far",
					   custom->ops->name, ins[i], net->n_tensors - 1);
	return 0;
}

/* The layer's shapes for a batch of 1. */
static int find_shapes(struct mu_net *net, const int *ins, const struct mu_custom *custom,
		       struct mu_layer *layer)
{
	for (int i = 0; i < layer->n_inputs; i++) {
		layer->inputs[i].shape = net->tensors[ins[i]].shape;
		layer->inputs[i].shape.dims[0] = 1;
	}
	if (mu_layer_shape(layer, custom->ops) != MU_OK)
		return mu_net_fail(net, "%s", mu_trace_message());
	return 0;
}

/* The copy of the caller's attributes follows the layer's struct mu_custom in one block. */
static enum mu_status keep_settings(struct net_layer *layer, const struct mu_custom *custom)
{
	enum mu_status st = MU_OK;
	size_t at = (sizeof *custom + alignof(max_align_t) - 1) / alignof(max_align_t) *
		    alignof(max_align_t);
	struct mu_custom *kept = realloc(layer->attr, at + custom->attr_nbytes);

	if (!kept)
		MU_FAIL(MU_ERR_MEMORY, "no memory for layer %s", layer->name);
	layer->attr = kept;
	kept->attr = NULL;
	if (custom->attr_nbytes > 0)
		kept->attr = memcpy((char *)kept + at, custom->attr, custom->attr_nbytes);
out:
	return st;
}

int mu_net_custom(struct mu_net *net, int n, const int *ins, const struct mu_custom *custom,
		  const char *name)
{
	struct mu_layer layer = {.name = name, .n_inputs = n};
	struct net_layer *added;
	int t;

	if (net->st != MU_OK || check(net, n, ins, custom) != 0)
		return -1;
	layer.attr = custom->attr_nbytes > 0 ? custom->attr : NULL;
	if (!name)
		layer.name = custom->ops->name;
	if (find_shapes(net, ins, custom, &layer) != 0)
		return -1;
	layer.output.shape.dims[0] = 0;
	t = mu_net_add(net, &(struct net_spec){&mu_layer_custom, name, custom, sizeof *custom, n, ins,
					       layer.output.shape});
	if (t < 0)
		return -1;
	added = &net->layers[net->n_layers - 1];
	net->st = keep_settings(added, custom);
	for (int p = 0; p < layer.n_params && net->st == MU_OK; p++) {
		net->st = mu_net_add_param(net, layer.params[p].suffix, layer.params[p].shape, 0);
		added->params[p].initial = layer.params[p].initial;
	}
	return net->st == MU_OK ? t : -1;
}
