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

const struct mu_layer_kind mu_layer_custom = {
	.op = MU_OP_CUSTOM,
	.attr_nbytes = sizeof(struct mu_custom),
	.traits = MU_LAYER_OVERWRITES_GRAD | MU_LAYER_NAMES_ITSELF,
	.title = title,
};
