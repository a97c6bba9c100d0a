/* SPDX-License-Identifier: Apache-2.0 */
/* Size of a net: parameters and multiply-adds. */
#include "net/layers/layer.h"

double mu_net_layer_macs(const struct mu_net *net, const struct net_layer *layer)
{
	const struct mu_layer_kind *kind = layer->kind;

	return kind->macs ? kind->macs(layer, &net->tensors[layer->outputs[0]].shape) : 0;
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
