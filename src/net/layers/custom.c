/* SPDX-License-Identifier: Apache-2.0 */
/* A user's layer in a net: the layer defines its shapes, the net keeps a copy of its attributes. */
#include "layer.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "device/custom.h"

static const char *title(const void *attr)
{
	return ((const struct mu_custom *)attr)->ops->name;
}

/* The copy of the caller's attributes follows the layer's struct, which begins with a struct
 * mu_custom, in one block. */
static enum mu_status keep_settings(struct net_layer *l)
{
	enum mu_status st = MU_OK;
	const size_t at = (l->kind->attr_nbytes + alignof(max_align_t) - 1) /
			  alignof(max_align_t) * alignof(max_align_t);
	struct mu_custom *kept = l->attr;

	kept = realloc(kept, at + kept->attr_nbytes);
	if (!kept)
		MU_FAIL(MU_ERR_MEMORY, "no memory for layer %s", l->name);
	l->attr = kept;
	if (kept->attr_nbytes > 0)
		kept->attr = memcpy((char *)kept + at, kept->attr, kept->attr_nbytes);
	else
		kept->attr = NULL;
out:
	return st;
}

int mu_layer_custom_shape(struct net_draft *d)
{
	const struct mu_custom *custom;
	struct mu_layer layer = {.name = d->layer->name, .n_inputs = d->layer->n_inputs};

	d->net->st = keep_settings(d->layer);
	if (d->net->st != MU_OK)
		return -1;
	custom = d->layer->attr;
	layer.attr = custom->attr;
	for (int i = 0; i < d->layer->n_inputs; i++) { /* for a batch of 1 */
		layer.inputs[i].shape = d->net->tensors[d->layer->inputs[i]].shape;
		layer.inputs[i].shape.dims[0] = 1;
	}
	if (mu_layer_shape(&layer, custom->ops) != MU_OK)
		return mu_net_fail(d->net, "%s", mu_trace_message());
	d->out = layer.output.shape;
	d->out.dims[0] = 0;
	for (int p = 0; p < layer.n_params && d->net->st == MU_OK; p++) {
		mu_net_add_param(d->net, layer.params[p].suffix, layer.params[p].shape, 0);
		d->layer->params[p].initial = layer.params[p].initial;
	}
	return 0;
}

const struct mu_layer_kind mu_layer_custom = {
	.op = MU_OP_CUSTOM,
	.attr_nbytes = sizeof(struct mu_custom),
	.traits = MU_LAYER_OVERWRITES_GRAD | MU_LAYER_NAMES_ITSELF,
	.shape = mu_layer_custom_shape,
	.title = title,
};

bool mu_layer_custom_check(struct mu_net *net, const struct mu_custom *custom)
{
	const struct mu_layer_ops *ops = custom->ops;

	if (custom->attr_nbytes > 0 && !custom->attr)
		mu_net_fail(net, "layer %s: %zu bytes of attributes, but no attributes", ops->name,
			    custom->attr_nbytes);
	return net->st == MU_OK;
}

int mu_net_custom(struct mu_net *net, int n, const int *ins, const struct mu_custom *custom,
		  const char *name)
{
	const struct mu_layer_ops *ops = custom->ops;

	if (!ops || !ops->name || !*ops->name || !ops->shape || !ops->forward || !ops->backward)
		return mu_net_fail(net, "a layer of your own needs a name, shape, forward and "
					"backward in its struct mu_layer_ops");
	if (!mu_layer_custom_check(net, custom))
		return -1;
	if (n < 1 || n > MU_MAX_LAYER_INPUTS)
		return mu_net_fail(net, "layer %s with %d inputs; 1 to %d are possible", ops->name,
				   n, MU_MAX_LAYER_INPUTS);
	return mu_net_add(net, &(struct net_spec){&mu_layer_custom, name, custom, n, ins});
}
