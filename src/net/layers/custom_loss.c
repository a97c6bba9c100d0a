/* SPDX-License-Identifier: Apache-2.0 */
/* A user's loss in a net: its layer as any of a user's, and its row. */
#include "layer.h"

#include "device/custom.h"

static const char *title(const void *attr)
{
	return ((const struct mu_custom_loss *)attr)->loss->name;
}

static const struct mu_loss *own_loss(const void *attr)
{
	return ((const struct mu_custom_loss *)attr)->loss;
}

static int shape(struct net_draft *d)
{
	const struct mu_custom_loss *l;
	const size_t classes = d->net->config.classes;
	struct mu_shape in = *d->in;

	if (mu_layer_custom_shape(d) != 0)
		return -1;
	l = d->layer->attr;
	if (d->layer->n_params > 0)
		return mu_layer_fail(d->net, "is a loss, which has no parameters");
	if (l->loss->targets(&d->out) !=
	    (l->of_classes ? mu_shape_positions(&d->out) : mu_shape_sample(&d->out)))
		return mu_layer_fail(d->net,
				     "has %zu targets a sample by its row; a loss of classes has "
				     "one at each position, another one for each output",
				     l->loss->targets(&d->out));
	if (!l->of_classes)
		return 0;
	in.dims[0] = d->out.dims[0];
	if (!mu_shape_equal(&d->out, &in))
		return mu_layer_fail(d->net, "is a loss of classes, whose output must have the "
					     "shape of the input");
	if (classes < 2 || mu_shape_channels(&in) != classes)
		return mu_layer_fail(d->net,
				     "needs an input of %zu classes, 2 at least, not of "
				     "%zu",
				     classes, mu_shape_channels(&in));
	return 0;
}

const struct mu_layer_kind mu_layer_custom_loss = {
	.op = MU_OP_CUSTOM_LOSS,
	.attr_nbytes = sizeof(struct mu_custom_loss),
	.traits = MU_LAYER_NAMES_ITSELF,
	.shape = shape,
	.title = title,
	.own_loss = own_loss,
};

void mu_net_custom_loss(struct mu_net *net, int in, const struct mu_loss *loss,
			const struct mu_custom *layer)
{
	const struct mu_layer_ops *ops = layer->ops;
	const struct mu_custom_loss attr = {*layer, loss, loss && loss->of_classes};

	if (mu_loss_lacks(loss)) {
		mu_net_fail(net, "loss %s: its struct mu_loss needs %s",
			    loss && loss->name ? loss->name : "of your own", mu_loss_lacks(loss));
		return;
	}
	if (!ops || !ops->name || !*ops->name || !ops->forward || !ops->backward) {
		mu_net_fail(net,
			    "loss %s: its struct mu_layer_ops needs a name, forward and "
			    "backward",
			    loss->name);
		return;
	}
	if (mu_layer_custom_check(net, layer))
		mu_net_add_one(net, &mu_layer_custom_loss, in, &attr, loss->name);
}
