/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a sequence: see struct mu_step. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const int step = ((const struct mu_step *)d->layer->attr)->step;

	if (d->in->dims[3] != 1)
		return mu_layer_needs(d->net, "(n, c, steps, 1)", d->in);
	if (step < 0 || (size_t)step >= d->in->dims[2])
		return mu_layer_fail(d->net, "reads step %d; its input has steps 0 to %zu", step,
				     d->in->dims[2] - 1);
	d->out = mu_layer_matrix(0, d->in->dims[1]);
	return 0;
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_step *a = o->layer->attr;

	mu_onnx_int(o, "axis", 2);
	mu_onnx_node(o, "Gather", mu_onnx_in(o, 0), mu_onnx_whole_scalar(o, a->step));
	mu_onnx_reshape_to(o, o->value, o->out);
}

const struct mu_layer_kind mu_layer_step = {
	.op = MU_OP_STEP,
	.attr_nbytes = sizeof(struct mu_step),
	.ndims = 4,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_step(struct mu_net *net, int in, int step, const char *name)
{
	return mu_net_add_one(net, &mu_layer_step, in, &(struct mu_step){step}, name);
}
