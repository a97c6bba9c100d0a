/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the cases of test_campaign: everything follows from the seed and the case's number. */
#ifndef MUSTER_RANDOM_DRAW_H
#define MUSTER_RANDOM_DRAW_H

#include <muster/base.h>

#include "device/op.h"

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
/* One whose gradient needs the input, with its parameter, if there is one. */
struct mu_activation draw_smooth(struct draw *d);

/* ---- of a tensor of this shape, with two or three axes of space ---- */

/* For each axis a number from low to high, often the same for all. */
void draw_each(struct draw *d, int low, int high, const struct mu_shape *in, int *v);
/* Sides of a window: odd and equal, or any, at most `most`. */
void draw_kernel(struct draw *d, int most, const struct mu_shape *in, int *kernel);
/* A pooling that leaves no window without an element. */
struct mu_pooling draw_pooling(struct draw *d, const struct mu_shape *in);
struct mu_shape draw_pooled(const struct mu_pooling *a, const struct mu_shape *in);
struct mu_upsampling draw_upsampling(struct draw *d, const struct mu_shape *in);
struct mu_shape draw_upsampled(const struct mu_upsampling *a, const struct mu_shape *in);
struct mu_pad draw_pad(struct draw *d, const struct mu_shape *in);
struct mu_shape draw_padded(const struct mu_pad *a, const struct mu_shape *in);
/* The same elements as (c, space...) of as many axes, or others. */
struct mu_shape draw_reshaped(struct draw *d, const struct mu_shape *in);
struct mu_group_norm draw_group_norm(struct draw *d, int channels);
struct mu_lrn draw_lrn(struct draw *d);
struct mu_element_loss draw_element_loss(struct draw *d);

#endif
