/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a finished net, for all devices:
 *  1. A flatten before a fully connected layer is removed: that layer reads (n, c, h, w) directly.
 *  2. activation, then maximum pooling -> maximum pooling, then activation: all activations here
 *     are monotonic, so the result is the same to the bit, with fewer elements to activate. (If two
 *     values differ before the activation but not after it, the gradient goes to the larger one
 *     instead of the first one.)
 *  3. A tensor with several readers gets a split layer, so that every tensor has one reader and one
 *     gradient.
 */
#include "net/layers/layer.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

void mu_net_count_consumers(struct mu_net *net)
{
	for (int t = 0; t < net->n_tensors; t++)
		net->tensors[t].n_consumers = 0;
	for (int l = 0; l < net->n_layers; l++) {
		for (int i = 0; i < net->layers[l].n_inputs; i++)
			net->tensors[net->layers[l].inputs[i]].n_consumers++;
		for (int i = 0; i < net->layers[l].n_outputs; i++)
			net->tensors[net->layers[l].outputs[i]].producer = l;
	}
}

static void remove_layer(struct mu_net *net, int l)
{
	struct net_layer *layer = &net->layers[l];

	free(layer->name);
	free(layer->attr);
	free(layer->inputs);
	free(layer->outputs);
	memmove(layer, layer + 1, (size_t)(net->n_layers - l - 1) * sizeof *layer);
	net->n_layers--;
	mu_net_count_consumers(net);
}

/* Does every reader of tensor t read any shape? */
static bool needs_no_shape(const struct mu_net *net, int t)
{
	for (int l = 0; l < net->n_layers; l++)
		for (int i = 0; i < net->layers[l].n_inputs; i++)
			if (net->layers[l].inputs[i] == t &&
			    !mu_layer_has(net->layers[l].kind, MU_LAYER_READS_ANY_SHAPE))
				return false;
	return true;
}

static void drop_flattens(struct mu_net *net)
{
	for (int l = net->n_layers; l-- > 0;) {
		int from, to;

		if (!mu_layer_has(net->layers[l].kind, MU_LAYER_IS_RESHAPE))
			continue;
		from = net->layers[l].outputs[0];
		to = net->layers[l].inputs[0];
		if (!needs_no_shape(net, from))
			continue;
		for (int k = l + 1; k < net->n_layers; k++)
			for (int i = 0; i < net->layers[k].n_inputs; i++)
				if (net->layers[k].inputs[i] == from)
					net->layers[k].inputs[i] = to;
		remove_layer(net, l);
	}
}

static void pool_first(struct mu_net *net)
{
	for (int l = 0; l + 1 < net->n_layers; l++) {
		struct net_layer act = net->layers[l], pool = net->layers[l + 1];
		const struct mu_layer_kind *kind = pool.kind;
		int middle;

		if (!mu_layer_has(act.kind, MU_LAYER_IS_ACTIVATION) || !kind->commutes ||
		    !kind->commutes(pool.attr))
			continue;
		middle = act.outputs[0];
		if (pool.inputs[0] != middle || net->tensors[middle].n_consumers != 1)
			continue;
		pool.inputs[0] = act.inputs[0];
		act.outputs[0] = pool.outputs[0];
		pool.outputs[0] = middle;
		act.inputs[0] = middle;
		net->tensors[middle].shape = net->tensors[act.outputs[0]].shape;
		net->layers[l] = pool;
		net->layers[l + 1] = act;
	}
	mu_net_count_consumers(net);
}

/* Insert an empty layer at position l. */
static enum mu_status open_gap(struct mu_net *net, int l)
{
	enum mu_status st = MU_OK;
	struct net_layer *grown = realloc(net->layers, ((size_t)net->n_layers + 1) * sizeof *grown);

	if (!grown)
		MU_FAIL(MU_ERR_MEMORY, "no memory for network %s", net->config.network);
	net->layers = grown;
	memmove(grown + l + 1, grown + l, (size_t)(net->n_layers - l) * sizeof *grown);
	memset(grown + l, 0, sizeof *grown);
	net->n_layers++;
out:
	return st;
}

/* Insert a split after the producer of t; reader number i then reads output i. */
static enum mu_status split_tensor(struct mu_net *net, int t)
{
	enum mu_status st = MU_OK;
	int n = net->tensors[t].n_consumers, at = net->tensors[t].producer + 1, reader = 0;
	struct net_tensor *grown;
	struct net_layer *split;
	char name[64];

	MU_TRY(open_gap(net, at));
	split = &net->layers[at];
	*split = (struct net_layer){.kind = &mu_layer_split, .n_inputs = 1, .n_outputs = n};
	snprintf(name, sizeof name, "split%d", net->named[MU_OP_SPLIT]++);
	split->name = strdup(name);
	split->inputs = malloc(sizeof(int));
	split->outputs = malloc((size_t)n * sizeof(int));
	grown = realloc(net->tensors, (size_t)(net->n_tensors + n) * sizeof *grown);
	if (grown)
		net->tensors = grown;
	if (!split->name || !split->inputs || !split->outputs || !grown)
		MU_FAIL(MU_ERR_MEMORY, "no memory for network %s", net->config.network);
	split->inputs[0] = t;
	for (int i = 0; i < n; i++) {
		net->tensors[net->n_tensors] = (struct net_tensor){.shape = net->tensors[t].shape};
		split->outputs[i] = net->n_tensors++;
	}
	for (int l = at + 1; l < net->n_layers; l++)
		for (int i = 0; i < net->layers[l].n_inputs; i++)
			if (net->layers[l].inputs[i] == t) {
				if (reader == 0) /* one tensor crosses between groups, not n */
					memcpy(split->group, net->layers[l].group,
					       sizeof split->group);
				net->layers[l].inputs[i] = split->outputs[reader++];
			}
	mu_net_count_consumers(net);
out:
	return st;
}

enum mu_status mu_net_rewrite(struct mu_net *net)
{
	enum mu_status st = MU_OK;
	int n_tensors;

	drop_flattens(net);
	pool_first(net);
	n_tensors = net->n_tensors;
	for (int t = 0; t < n_tensors; t++)
		if (net->tensors[t].n_consumers > 1)
			MU_TRY(split_tensor(net, t));
out:
	return st;
}
