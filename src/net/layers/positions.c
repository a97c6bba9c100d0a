/* SPDX-License-Identifier: Apache-2.0 */
/* Learned positions: see struct mu_positions. */
#include "layer.h"

static int shape(struct net_draft *d)
{
	const struct mu_positions *a = d->layer->attr;
	const size_t steps = mu_shape_positions(d->in) + (a->token ? 1 : 0);
	const size_t most = a->most_steps ? (size_t)a->most_steps : steps;

	if (a->most_steps < 0 || most < steps)
		return mu_layer_fail(d->net, "has a sequence of %zu steps; there are %d positions",
				     steps, a->most_steps);
	d->out.dims[2] = steps;
	d->out.dims[3] = 1;
	mu_net_add_param(d->net, "weight", mu_layer_matrix(most, d->in->dims[1]), 0);
	if (a->token)
		mu_net_add_param(d->net, "token", mu_layer_vector(d->in->dims[1]), 0);
	return 0;
}

static bool has_no_token(const struct mu_op *op)
{
	return op->n_params == 1;
}

/* It counts the steps only. */
static size_t past(const struct mu_op *op, size_t most)
{
	(void)op;
	(void)most;
	return 0;
}

const struct mu_layer_kind mu_layer_positions = {
	.op = MU_OP_POSITIONS,
	.attr_nbytes = sizeof(struct mu_positions),
	.ndims = 4,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED,
	.shape = shape,
	.can_remember = has_no_token,
	.past = past,
};

int mu_net_positions(struct mu_net *net, int in, const struct mu_positions *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_positions, in, attr, name);
}
