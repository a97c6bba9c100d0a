/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all kinds of layers, for plans. */
#include "net/layers/layer.h"

static const struct mu_layer_kind *const kinds[MU_OP_N] = {
#define KIND(OP, row, name, cpu, cuda) [MU_OP_##OP] = &mu_layer_##row,
#include "device/kinds.def"
#undef KIND
};

const struct mu_layer_kind *mu_layer_kind(enum mu_op_kind op)
{
	return kinds[op];
}

bool mu_layer_is_stepwise(const struct mu_layer_kind *kind, const void *attr)
{
	return kind->traits & MU_LAYER_STEPWISE || (kind->is_stepwise && kind->is_stepwise(attr));
}

bool mu_op_has(const struct mu_op *op, enum mu_layer_trait trait)
{
	return mu_layer_has(kinds[op->kind], trait);
}

const struct mu_loss *mu_op_loss(const struct mu_op *op)
{
	return mu_layer_loss(kinds[op->kind], op->attr);
}
