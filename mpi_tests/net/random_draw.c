/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations: shapes small enough for ref, attributes that kernels get wrong. */
#include "random_draw.h"

#include <stdio.h>
#include <string.h>

void draw_init(struct draw *d, uint64_t seed, uint64_t number)
{
	*d = (struct draw){
		.key = {.seed = seed, .purpose = MU_RANDOM_TEST, .sample = number & 0xffffffff}};
}

int draw_int(struct draw *d, int low, int high)
{
	return low + (int)mu_random_below(&d->key, d->next++, (uint64_t)(high - low + 1));
}

bool draw_chance(struct draw *d, int percent)
{
	return draw_int(d, 0, 99) < percent;
}

int draw_channels(struct draw *d, int most)
{
	static const int channels[] = {1,  2,  3,  4,  5,  7,  8,  15, 16, 16, 17,
				       20, 24, 31, 32, 32, 33, 40, 48, 64, 65, 80};
	int n = sizeof channels / sizeof *channels;

	while (channels[n - 1] > most)
		n--;
	return channels[draw_int(d, 0, n - 1)];
}

enum mu_activation_kind draw_activation(struct draw *d)
{
	return (enum mu_activation_kind)draw_int(d, MU_ACTIVATION_RELU, MU_ACTIVATION_SIGMOID);
}

/* ---- attributes ---- */

/* A square kernel of odd size, or any. */
static void draw_kernel(struct draw *d, int most, int kernel[2])
{
	if (draw_chance(d, 50)) {
		kernel[0] = kernel[1] = 1 + 2 * draw_int(d, 0, most / 2);
		return;
	}
	kernel[0] = draw_int(d, 1, most);
	kernel[1] = draw_int(d, 1, most);
}

static void draw_pair(struct draw *d, int low, int high, int pair[2])
{
	pair[0] = pair[1] = draw_int(d, low, high);
	if (draw_chance(d, 40))
		pair[1] = draw_int(d, low, high);
}

int draw_pooled(const struct mu_pooling *a, int i, int size)
{
	int stride = a->stride[i] ? a->stride[i] : 1, rest = size + 2 * a->pad[i] - a->kernel[i];

	if (a->global)
		return 1;
	return rest < 0 ? 0 : (rest + (a->ceil ? stride - 1 : 0)) / stride + 1;
}

static bool fits(const struct mu_pooling *a, int i, int size)
{
	int out = draw_pooled(a, i, size), stride = a->stride[i] ? a->stride[i] : 1;

	return a->global ||
	       (out > 0 && a->pad[i] < a->kernel[i] && (out - 1) * stride - a->pad[i] < size);
}

struct mu_pooling draw_pooling(struct draw *d, int h, int w)
{
	struct mu_pooling a;

	do {
		a = (struct mu_pooling){.average = draw_chance(d, 50),
					.global = draw_chance(d, 10),
					.ceil = draw_chance(d, 40)};
		draw_kernel(d, 5, a.kernel);
		draw_pair(d, 0, 4, a.stride);
		if (draw_chance(d, 60))
			draw_pair(d, 0, 4, a.pad);
	} while (!fits(&a, 0, h) || !fits(&a, 1, w));
	return a;
}

struct mu_upsampling draw_upsampling(struct draw *d)
{
	struct mu_upsampling a = {.linear = draw_chance(d, 60)};

	a.align_corners = a.linear && draw_chance(d, 40);
	draw_pair(d, 0, 3, a.scale);
	for (int i = 0; i < 2; i++)
		a.size[i] = a.scale[i] == 0 ? draw_int(d, 0, 9) : 0;
	return a;
}

/* Something is left of the input. */
struct mu_pad draw_pad(struct draw *d, int h, int w)
{
	const int sizes[2] = {h, w};
	struct mu_pad a = {.value = 0.5f * (float)draw_int(d, -1, 1)};

	for (int i = 0; i < 2; i++) {
		a.before[i] = draw_int(d, sizes[i] > 1 ? -1 : 0, 3);
		a.after[i] = draw_int(d, sizes[i] > 2 ? -1 : 0, 3);
	}
	return a;
}

/* Groups that divide the channels: one of them, all, or as many as there are twos. */
struct mu_group_norm draw_group_norm(struct draw *d, int channels)
{
	const int halves = channels % 2 == 0 ? channels / 2 : 1;
	const int groups[] = {0, 1, halves};

	return (struct mu_group_norm){.eps = 1e-2f, .groups = groups[draw_int(d, 0, 2)]};
}

static struct mu_deconvolution draw_deconvolution(struct draw *d, struct mu_shape *in)
{
	struct mu_deconvolution a = {.filters = draw_channels(d, 48),
				     .no_bias = draw_chance(d, 50)};

	in->dims[1] = (size_t)draw_channels(d, 48);
	if (draw_chance(d, 20)) {
		a.groups = draw_int(d, 2, 3);
		a.filters = a.groups * draw_channels(d, 17);
		in->dims[1] = (size_t)(a.groups * draw_channels(d, 17));
	}
	for (int i = 0; i < 2; i++) {
		a.kernel[i] = draw_int(d, 1, 4);
		a.stride[i] = draw_int(d, 1, 3);
		a.pad[i] = draw_int(d, 0, (a.kernel[i] - 1) / 2);
		a.extra[i] = draw_int(d, 0, a.stride[i] - 1);
	}
	return a;
}

struct mu_lrn draw_lrn(struct draw *d)
{
	return (struct mu_lrn){.size = 1 + 2 * draw_int(d, 0, 5),
			       .alpha = 0.125f * (float)draw_int(d, 1, 8),
			       .beta = 0.25f * (float)draw_int(d, 2, 4),
			       .k = (float)draw_int(d, 1, 2)};
}

/* Sometimes of more steps than a block of queries has. */
static struct mu_attention draw_attention(struct draw *d, struct mu_shape *in)
{
	const int kv = draw_int(d, 1, 3), group = draw_int(d, 1, 3);
	struct mu_attention a = {.heads = kv * group, .causal = draw_chance(d, 60)};

	a.kv_heads = group == 1 && draw_chance(d, 50) ? 0 : kv;
	if (draw_chance(d, 40))
		a.rotary = 10000;
	if (draw_chance(d, 30))
		a.dropout = 0.25f;
	in->dims[1] = (size_t)((a.heads + 2 * kv) * 2 * draw_int(d, 1, 6));
	in->dims[2] = (size_t)draw_int(d, 1, draw_chance(d, 20) ? 140 : 12);
	in->dims[3] = 1;
	return a;
}

static void draw_groups(struct draw *d, struct mu_convolution *a, size_t *channels)
{
	int kind = draw_int(d, 0, 9);

	a->filters = draw_channels(d, 80);
	*channels = (size_t)draw_channels(d, 80);
	if (kind < 2) { /* depthwise */
		a->groups = (int)*channels;
		a->filters = a->groups * draw_int(d, 1, 2);
	} else if (kind < 4) {
		a->groups = draw_int(d, 2, 4);
		*channels = (size_t)(a->groups * draw_channels(d, 20));
		a->filters = a->groups * draw_channels(d, 20);
	}
}

static size_t reached(const struct mu_convolution *a, int i)
{
	return (size_t)((a->dilate[i] ? a->dilate[i] : 1) * (a->kernel[i] - 1) + 1);
}

static void draw_convolution(struct draw *d, struct mu_convolution *a, struct mu_shape *in)
{
	do {
		*a = (struct mu_convolution){.no_bias = draw_chance(d, 50)};
		draw_groups(d, a, &in->dims[1]);
		draw_kernel(d, draw_chance(d, 20) ? 9 : 5, a->kernel);
		draw_pair(d, 0, draw_chance(d, 20) ? 5 : 2, a->stride);
		if (draw_chance(d, 25))
			draw_pair(d, 0, 3, a->dilate);
		if (draw_chance(d, 60))
			draw_pair(d, 0, draw_chance(d, 30) ? 6 : 2, a->pad);
	} while (in->dims[2] + 2 * (size_t)a->pad[0] < reached(a, 0) ||
		 in->dims[3] + 2 * (size_t)a->pad[1] < reached(a, 1));
}

static struct mu_batch_norm draw_norm(struct draw *d)
{
	static const float eps[] = {1e-3f, 1e-2f, 2e-5f};

	return (struct mu_batch_norm){
		.eps = eps[draw_int(d, 0, 2)], .momentum = 0.9f, .fix_gamma = draw_chance(d, 30)};
}

/* ---- what it is, for messages ---- */

static void describe_attributes(const struct random_case *r, char *text, size_t nbytes)
{
	const struct mu_convolution *a = &r->attr.convolution;
	const struct mu_pooling *p = &r->attr.pooling;
	const struct mu_lrn *l = &r->attr.lrn;

	*text = 0;
	if (r->c.kind == MU_OP_CONVOLUTION)
		snprintf(text, nbytes,
			 "filters %d kernel %dx%d stride %dx%d pad %dx%d dilate %dx%d groups %d "
			 "no_bias %d",
			 a->filters, a->kernel[0], a->kernel[1], a->stride[0], a->stride[1],
			 a->pad[0], a->pad[1], a->dilate[0], a->dilate[1], a->groups, a->no_bias);
	else if (r->c.kind == MU_OP_POOLING)
		snprintf(text, nbytes,
			 "average %d global %d ceil %d kernel %dx%d stride %dx%d pad %dx%d",
			 p->average, p->global, p->ceil, p->kernel[0], p->kernel[1], p->stride[0],
			 p->stride[1], p->pad[0], p->pad[1]);
	else if (r->c.kind == MU_OP_LRN)
		snprintf(text, nbytes, "size %d alpha %g beta %g k %g", l->size, (double)l->alpha,
			 (double)l->beta, (double)l->k);
	else if (r->c.kind == MU_OP_BATCH_NORM)
		snprintf(text, nbytes, "eps %g fix_gamma %d", (double)r->attr.norm.eps,
			 r->attr.norm.fix_gamma);
	else if (r->c.kind == MU_OP_LSTM)
		snprintf(text, nbytes, "units %d", r->attr.lstm.units);
	else if (r->c.kind == MU_OP_FULLY_CONNECTED)
		snprintf(text, nbytes, "units %d no_bias %d", r->attr.dense.units,
			 r->attr.dense.no_bias);
}

static void describe(struct random_case *r)
{
	char shape[80], attributes[200];
	size_t n;

	describe_attributes(r, attributes, sizeof attributes);
	snprintf(r->name, sizeof r->name, "%s %s frozen %u fused %d in place %d, inputs",
		 mu_op_kind_name(r->c.kind), attributes, r->c.frozen,
		 r->c.fused ? (int)r->fused.kind : -1, r->c.in_place);
	for (int i = 0; i < OP_MAX_TENSORS && r->c.in[i].ndims; i++) {
		n = strlen(r->name);
		snprintf(r->name + n, sizeof r->name - n, " %s",
			 mu_shape_text(&r->c.in[i], shape, sizeof shape));
	}
	r->c.name = r->name;
}

/* ---- a case ---- */

static const enum mu_op_kind kinds[] = {
	MU_OP_CONVOLUTION, MU_OP_CONVOLUTION, MU_OP_CONVOLUTION,     MU_OP_CONVOLUTION,
	MU_OP_CONVOLUTION, MU_OP_CONVOLUTION, MU_OP_CONVOLUTION,     MU_OP_POOLING,
	MU_OP_POOLING,     MU_OP_POOLING,     MU_OP_POOLING,         MU_OP_LRN,
	MU_OP_BATCH_NORM,  MU_OP_BATCH_NORM,  MU_OP_FULLY_CONNECTED, MU_OP_CONCAT,
	MU_OP_CONCAT,      MU_OP_SUM,         MU_OP_ACTIVATION,      MU_OP_SPLIT,
	MU_OP_DROPOUT,     MU_OP_FLATTEN,     MU_OP_LSTM,            MU_OP_LAYER_NORM,
	MU_OP_SMOOTH,      MU_OP_ATTENTION,   MU_OP_ATTENTION,       MU_OP_POSITIONS,
	MU_OP_STEP,        MU_OP_PRODUCT,     MU_OP_DECONVOLUTION,   MU_OP_UPSAMPLING,
	MU_OP_UPSAMPLING,  MU_OP_PAD,         MU_OP_GROUP_NORM,      MU_OP_GROUP_NORM,
};

/* Further inputs of a sum, a product and a concat, outputs of a split. */
static void draw_several(struct random_case *r, struct draw *d)
{
	int n = r->c.kind == MU_OP_PRODUCT ? 2 : draw_int(d, 2, OP_MAX_TENSORS);

	if (r->c.kind == MU_OP_SPLIT) {
		r->c.n_outputs = n;
		r->c.in_place = draw_chance(d, 50);
		return;
	}
	for (int i = 1; i < n; i++) {
		r->c.in[i] = r->c.in[0];
		if (r->c.kind == MU_OP_CONCAT)
			r->c.in[i].dims[1] = (size_t)draw_channels(d, 80);
	}
	if (draw_chance(d, 20))
		r->c.frozen = 1u << draw_int(d, 1, n - 1);
}

static void draw_attributes(struct random_case *r, struct draw *d)
{
	struct mu_shape *in = &r->c.in[0];

	r->c.attr = &r->attr;
	switch (r->c.kind) {
	case MU_OP_CONVOLUTION: draw_convolution(d, &r->attr.convolution, in); break;
	case MU_OP_FULLY_CONNECTED:
		r->attr.dense =
			(struct mu_fully_connected){draw_channels(d, 80), draw_chance(d, 50)};
		break;
	case MU_OP_POOLING:
		r->attr.pooling = draw_pooling(d, (int)in->dims[2], (int)in->dims[3]);
		break;
	case MU_OP_BATCH_NORM: r->attr.norm = draw_norm(d); break;
	case MU_OP_DECONVOLUTION: r->attr.deconvolution = draw_deconvolution(d, in); break;
	case MU_OP_UPSAMPLING: r->attr.upsampling = draw_upsampling(d); break;
	case MU_OP_PAD: r->attr.pad = draw_pad(d, (int)in->dims[2], (int)in->dims[3]); break;
	case MU_OP_GROUP_NORM:
		r->attr.group_norm = draw_group_norm(d, (int)in->dims[1]);
		in->dims[3]++; /* more than one value */
		break;
	case MU_OP_LRN: r->attr.lrn = draw_lrn(d); break;
	case MU_OP_LSTM:
		r->attr.lstm.units = draw_channels(d, 48);
		in->dims[3] = 1;
		break;
	case MU_OP_LAYER_NORM:
		r->attr.layer_norm = (struct mu_layer_norm){1e-5f, draw_chance(d, 30)};
		break;
	case MU_OP_SMOOTH:
		r->attr.activation.kind = (enum mu_activation_kind)draw_int(
			d, MU_ACTIVATION_GELU, MU_ACTIVATION_SILU);
		break;
	case MU_OP_ATTENTION: r->attr.attention = draw_attention(d, in); break;
	case MU_OP_POSITIONS:
		r->attr.positions.token = draw_chance(d, 50);
		if (draw_chance(d, 30))
			r->attr.positions.most_steps =
				(int)(in->dims[2] * in->dims[3]) + draw_int(d, 1, 9);
		break;
	case MU_OP_STEP:
		in->dims[3] = 1;
		r->attr.step.step = draw_int(d, 0, (int)in->dims[2] - 1);
		break;
	case MU_OP_DROPOUT: r->attr.dropout.p = 0.25f * (float)draw_int(d, 0, 3); break;
	case MU_OP_ACTIVATION:
		r->attr.activation.kind = draw_activation(d);
		r->c.in_place = draw_chance(d, 50);
		break;
	default: draw_several(r, d);
	}
}

void random_case_init(struct random_case *r, struct draw *d)
{
	enum mu_op_kind kind = kinds[draw_int(d, 0, (int)(sizeof kinds / sizeof *kinds) - 1)];
	size_t n = (size_t)draw_int(d, 1, 4), c = (size_t)draw_channels(d, 80);
	int most = draw_chance(d, 20) ? 20 : 9;

	*r = (struct random_case){.c = {.kind = kind, .index = draw_int(d, 0, 60)}};
	r->c.in[0] = (struct mu_shape){
		4, {n, c, (size_t)draw_int(d, 1, most), (size_t)draw_int(d, 1, most)}};
	if (draw_chance(d, 15))
		r->c.frozen = 1;
	if (kind == MU_OP_FLATTEN)
		r->c.attr = NULL;
	else
		draw_attributes(r, d);
	if ((kind == MU_OP_CONVOLUTION || kind == MU_OP_FULLY_CONNECTED ||
	     kind == MU_OP_BATCH_NORM) &&
	    draw_chance(d, 30)) {
		r->fused.kind =
			kind == MU_OP_BATCH_NORM ? MU_ACTIVATION_RELU : draw_activation(d);
		r->c.fused = &r->fused;
	}
	describe(r);
}
