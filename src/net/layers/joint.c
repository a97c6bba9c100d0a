/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several losses of a net as one layer, the last. Each head is looked at as the loss of a net of
 * its own, which has the head's input and nothing else: that has its attributes and settings, and
 * says what is wrong with them.
 */
#include "layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/joint.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
enum { HEAD_NAME = 16 };

static int shape(struct net_draft *d)
{
	const struct mu_joint *joint = d->layer->attr;

	d->out = (struct mu_shape){2, {0, mu_joint_part(joint, joint->n).output}};
	return 0;
}

static const struct mu_loss *own_loss(const void *attr)
{
	return ((const struct mu_joint *)attr)->loss;
}

const struct mu_layer_kind mu_layer_joint = {
	.op = MU_OP_JOINT,
	.attr_nbytes = sizeof(struct mu_joint),
	.traits = MU_LAYER_INPUT_UNUSED,
	.shape = shape,
	.own_loss = own_loss,
};

/* ---- heads ---- */

/* The name of a head, its input and its weight. */
static bool check_head(struct mu_net *net, const struct mu_head *heads, int i)
{
	const struct mu_head *h = &heads[i];
	const size_t n = h->name ? strlen(h->name) : 0;

	if (!mu_net_can_read(net, h->in))
		return false;
	if (n == 0 || n >= HEAD_NAME || strspn(h->name, NAME_LETTERS) != n)
		mu_net_fail(net,
			    "head %d: a name of at most %d letters, digits, '-' and '_' is needed, "
			    "such as class",
			    i, HEAD_NAME - 1);
	else if (!h->loss)
		mu_net_fail(net, "head %s has no loss: softmax, for example", h->name);
	else if (!(h->weight >= 0) || !isfinite(h->weight))
		mu_net_fail(net, "head %s has weight %g; it must be 0 or above", h->name,
			    h->weight);
	for (int k = 0; k < i && net->st == MU_OK; k++)
		if (strcmp(heads[k].name, h->name) == 0)
			mu_net_fail(net, "two heads are called %s", h->name);
	return net->st == MU_OK;
}

/* A net of the head's input and its loss. */
static enum mu_status look(struct mu_net **out, const struct mu_net *net, const struct mu_head *h)
{
	enum mu_status st = MU_OK;
	const struct mu_network none = {.name = net->config.network};
	struct mu_net *own = calloc(1, sizeof *own);

	*out = own;
	if (!own)
		MU_FAIL(MU_ERR_MEMORY, "no memory for network %s", net->config.network);
	own->config = (struct mu_net_config){.network = net->config.network,
					     .shape = net->tensors[h->in].shape,
					     .classes = mu_shape_channels(
						     &net->tensors[h->in].shape),
					     .options = h->settings};
	st = mu_loss_find(&own->objective, h->loss);
	if (st == MU_OK)
		st = mu_net_settings_read(own, &none);
	if (st != MU_OK)
		mu_trace_prefix("head %s: ", h->name);
	MU_TRY(st);
	mu_net_prefix(own, "%s_", h->name);
	own->objective->add(own, mu_net_input(own), own->objective,
			    own->config.objective_settings);
	if (own->st != MU_OK) {
		mu_trace_prefix("head %s: ", h->name);
		/* of the head, and no option of a run */
		mu_trace_replace("(setting ", "(its setting ");
	}
	MU_TRY(own->st);
	if (own->layers[0].kind->own_loss)
		MU_FAIL(MU_ERR_USAGE, "network %s: head %s: %s is a loss of a file; heads have the "
			"library's",
			net->config.network, h->name, own->objective->name);
out:
	return st;
}

static enum mu_status add_head(struct mu_joint *joint, struct mu_net *net, const struct mu_head *h)
{
	enum mu_status st = MU_OK;
	const size_t i = joint->n;
	const struct mu_net *own;

	snprintf(net->heads->names[i], HEAD_NAME, "%s", h->name);
	MU_TRY(look(&net->heads->of[i], net, h));
	own = net->heads->of[i];
	joint->heads[joint->n++] = (struct mu_joint_head){
		.name = net->heads->names[i],
		.kind = own->layers[0].kind->op,
		.attr = own->layers[0].attr,
		.of_classes = mu_net_loss(own)->of_classes,
		.smooths = mu_net_loss(own)->smooths,
		.weight = h->weight,
		.use_ignore = own->use_ignore,
		.ignore_label = own->ignore_label,
		.class_weights = own->class_weights,
		.shape = own->config.shape,
		.loss = mu_net_loss(own),
	};
out:
	return st;
}

static enum mu_status add_heads(struct mu_joint *joint, struct mu_net *net, int n,
				const struct mu_head *heads)
{
	enum mu_status st = MU_OK;
	double weights = 0;

	for (int i = 0; i < n && check_head(net, heads, i); i++) {
		MU_TRY(add_head(joint, net, &heads[i]));
		weights += heads[i].weight;
	}
	MU_TRY(net->st);
	if (!(weights > 0))
		MU_FAIL(MU_ERR_USAGE,
			"network %s: all its heads have weight 0: nothing would be trained",
			net->config.network);
	MU_TRY(mu_joint_row(&net->heads->row, joint));
	joint->loss = net->heads->row;
out:
	return st;
}

void mu_net_losses(struct mu_net *net, int n, const struct mu_head *heads)
{
	struct mu_joint joint = {.n = 0};
	int inputs[MU_MAX_HEADS];

	if (net->st != MU_OK)
		return;
	if (n < 1 || n > MU_MAX_HEADS || net->heads) {
		mu_net_fail(net, "mu_net_losses is called once, with 1 to %d heads",
			    MU_MAX_HEADS);
		return;
	}
	net->heads = calloc(1, sizeof *net->heads);
	if (!net->heads) {
		mu_net_fail(net, "no memory for heads");
		return;
	}
	net->st = add_heads(&joint, net, n, heads);
	for (int i = 0; i < n; i++)
		inputs[i] = heads[i].in;
	if (net->st == MU_OK)
		mu_net_add(net, &(struct net_spec){&mu_layer_joint, NULL, &joint, n, inputs});
}
