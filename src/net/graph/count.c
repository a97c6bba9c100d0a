/* SPDX-License-Identifier: Apache-2.0 */
/* Size of a net: parameters and multiply-adds. */
#include "graph.h"

/* Of attention: for each step and all that it sees, a product with keys and one with values. */
static double attention_macs(const struct net_layer *layer, const struct mu_shape *out)
{
	const struct mu_attention *a = layer->attr;
	const double steps = (double)out->dims[2];

	return 2 * (double)out->dims[1] * steps * (a->causal ? (steps + 1) / 2 : steps);
}

/* Each weight is used once per output pixel by a convolution, once by a fully connected layer, once
 * per step by an LSTM. */
double mu_net_layer_macs(const struct mu_net *net, const struct net_layer *layer)
{
	const struct mu_shape *out = &net->tensors[layer->outputs[0]].shape;

	if (layer->kind == MU_OP_FULLY_CONNECTED)
		return (double)mu_shape_n(&layer->params[0].shape);
	if (layer->kind == MU_OP_CONVOLUTION)
		return (double)mu_shape_n(&layer->params[0].shape) *
		       (double)(out->dims[2] * out->dims[3]);
	if (layer->kind == MU_OP_ATTENTION)
		return attention_macs(layer, out);
	if (layer->kind == MU_OP_LSTM)
		return (double)(mu_shape_n(&layer->params[0].shape) +
				mu_shape_n(&layer->params[2].shape)) *
		       (double)out->dims[2];
	return 0;
}

void mu_net_counts(const struct mu_net *net, struct mu_net_counts *counts)
{
	*counts = (struct mu_net_counts){.layers = (size_t)net->n_layers};
	for (int l = 0; l < net->n_layers; l++) {
		const struct net_layer *layer = &net->layers[l];

		counts->macs += mu_net_layer_macs(net, layer);
		for (int p = 0; p < layer->n_params; p++) {
			size_t n = mu_shape_n(&layer->params[p].shape);

			if (layer->params[p].tied)
				continue;
			if (layer->params[p].aux) {
				counts->aux += n;
			} else {
				counts->params += n;
				counts->arrays++;
			}
		}
	}
}
