/* SPDX-License-Identifier: Apache-2.0 */
/* The random operation of test_campaign. */
#ifndef MUSTER_RANDOM_OP_H
#define MUSTER_RANDOM_OP_H

#include "device/joint.h"
#include "op_cases.h"
#include "random_draw.h"

/* An operation with random shapes and attributes. It refers to itself: not to be copied. */
struct random_case {
	struct op_case c;
	union {
		struct mu_convolution convolution;
		struct mu_deconvolution deconvolution;
		struct mu_upsampling upsampling;
		struct mu_pad pad;
		struct mu_group_norm group_norm;
		struct mu_fully_connected dense;
		struct mu_activation activation;
		struct mu_pooling pooling;
		struct mu_dropout dropout;
		struct mu_batch_norm norm;
		struct mu_lrn lrn;
		struct mu_embedding embedding;
		struct mu_lstm lstm;
		struct mu_layer_norm layer_norm;
		struct mu_attention attention;
		struct mu_positions positions;
		struct mu_step step;
		struct mu_shape reshaped;
		struct mu_element_loss element_loss;
		struct mu_region_loss region_loss;
		struct mu_joint joint;
	} attr;
	union {
		struct mu_element_loss element_loss;
		struct mu_region_loss region_loss;
	} heads[OP_MAX_TENSORS];
	struct mu_activation fused;
	char name[400]; /* what it is, in full */
};

void random_case_init(struct random_case *r, struct draw *d);

#endif
