/* SPDX-License-Identifier: Apache-2.0 */
/* A net of a network: its objective and settings, its build function, and the graph as plans need
 * it. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "net/layers/layer.h"

/* Files identify arrays by name. */
static enum mu_status check_names(const struct mu_net *net)
{
	enum mu_status st = MU_OK;

	for (int l = 0; l < net->n_layers; l++)
		for (int k = 0; k < l && net->layers[l].n_params > 0; k++)
			if (net->layers[k].n_params > 0 &&
			    strcmp(net->layers[k].name, net->layers[l].name) == 0)
				MU_FAIL(MU_ERR_USAGE,
					"network %s: two layers with parameters are called %s",
					net->config.network, net->layers[l].name);
out:
	return st;
}

static enum mu_status check_complete(const struct mu_net *net)
{
	enum mu_status st = MU_OK;

	if (net->n_layers == 0 || !mu_net_loss(net))
		MU_FAIL(MU_ERR_USAGE, "network %s: the last layer must be a loss, such as softmax",
			net->config.network);
	if (net->objective && !net->takes_objective)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: its row has an .objective, but its last layer, %s, is not "
			"that of mu_net_objective",
			net->config.network, net->layers[net->n_layers - 1].name);
	if ((net->use_ignore || net->class_weights) && !mu_net_may_ignore(net))
		MU_FAIL(MU_ERR_USAGE, "network %s: its loss, %s, ignores no label and has no "
			"weights of classes",
			net->config.network, mu_net_loss(net)->help);
	MU_TRY(check_names(net));
	for (int t = 0; t < net->n_tensors - 1; t++)
		if (net->tensors[t].n_consumers == 0)
			MU_FAIL(MU_ERR_USAGE, "network %s: no layer reads the output of %s",
				net->config.network,
				net->tensors[t].producer < 0
					? "the input"
					: net->layers[net->tensors[t].producer].name);
out:
	return st;
}

enum mu_status mu_net_new_from(struct mu_net **out, const struct mu_network *network,
			       const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_net *net = NULL;

	*out = NULL;
	if (config->classes == 0)
		MU_FAIL(MU_ERR_USAGE, "network %s: the number of classes is not set",
			network->name);
	if (config->num_layers < 0 && !(network->traits & MU_NETWORK_LINEAR))
		MU_FAIL(MU_ERR_USAGE, "num_layers %ld: network %s has hidden layers",
			config->num_layers, network->name);
	if (config->num_layers > 0 && !(network->traits & MU_NETWORK_DEPTHS))
		MU_FAIL(MU_ERR_USAGE, "num_layers %ld: network %s comes in one depth",
			config->num_layers, network->name);
	if (config->objective && !network->objective)
		MU_FAIL(MU_ERR_USAGE,
			"objective %s: network %s ends in a loss of its own, which its file "
			"chooses",
			config->objective, network->name);
	net = calloc(1, sizeof *net);
	if (!net)
		MU_FAIL(MU_ERR_MEMORY, "no memory for network %s", network->name);
	if (network->objective)
		MU_TRY(mu_loss_find(&net->objective,
				    config->objective ? config->objective : network->objective));
	net->config = *config;
	net->config.network = network->name;
	net->initializer = network->initializer;
	MU_TRY(mu_net_settings_read(net, network));
	MU_TRY(network->build(net, &net->config));
	MU_TRY(net->st);
	mu_net_count_consumers(net);
	MU_TRY(check_complete(net));
	MU_TRY(mu_net_rewrite(net));
	*out = net;
	net = NULL;
out:
	mu_net_free(net);
	return st;
}

enum mu_status mu_net_new(struct mu_net **out, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;

	*out = NULL;
	MU_TRY(mu_network_find(&network, config->network));
	MU_TRY(mu_net_new_from(out, network, config));
out:
	return st;
}
