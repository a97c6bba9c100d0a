/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the cases of test_campaign: everything follows from the seed and the case's number. */
#ifndef MUSTER_RANDOM_DRAW_H
#define MUSTER_RANDOM_DRAW_H

#include <muster/base.h>

#include "device/op.h"
#include "op_cases.h"

/* A stream of draws. */
struct draw {
	struct mu_random key;
	uint64_t next;
};

void draw_init(struct draw *d, uint64_t seed, uint64_t number);
/* An integer from low to high, both included. */
int draw_int(struct draw *d, int low, int high);
/* true in `percent` of a hundred. */
bool draw_chance(struct draw *d, int percent);
/* Channels, multiples of 16 and others, at most `most`. */
int draw_channels(struct draw *d, int most);
enum mu_activation_kind draw_activation(struct draw *d);
/* A pooling that leaves no window without an element, on an image of h x w. */
struct mu_pooling draw_pooling(struct draw *d, int h, int w);
/* Output size of a pooling along dimension i. */
int draw_pooled(const struct mu_pooling *a, int i, int size);
struct mu_upsampling draw_upsampling(struct draw *d);
struct mu_pad draw_pad(struct draw *d, int h, int w);
struct mu_group_norm draw_group_norm(struct draw *d, int channels);
struct mu_lrn draw_lrn(struct draw *d);

/* An operation with random shapes and attributes. */
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
		struct mu_lstm lstm;
		struct mu_layer_norm layer_norm;
		struct mu_attention attention;
		struct mu_positions positions;
		struct mu_step step;
	} attr;
	struct mu_activation fused;
	char name[320]; /* what it is, in full */
};

void random_case_init(struct random_case *r, struct draw *d);

#endif
