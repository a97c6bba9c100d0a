/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations: shapes small enough for ref. */
#include "random_op.h"

#include <stdio.h>
#include <string.h>

/* ---- attributes ---- */

static bool is_volume(const struct mu_shape *s)
{
	return s->ndims == MU_MAX_DIMS;
}

/* So many, or less where windows have a depth, too. */
static int most_of(const struct mu_shape *in, int most)
{
	return is_volume(in) ? most / 2 : most;
}

static struct mu_deconvolution draw_deconvolution(struct draw *d, struct mu_shape *in)
{
	const int most = most_of(in, 48);
	struct mu_deconvolution a = {.filters = draw_channels(d, most),
				     .no_bias = draw_chance(d, 50)};

	in->dims[1] = (size_t)draw_channels(d, most);
	if (draw_chance(d, 20)) {
		a.groups = draw_int(d, 2, 3);
		a.filters = a.groups * draw_channels(d, 17);
		in->dims[1] = (size_t)(a.groups * draw_channels(d, 17));
	}
	if (draw_chance(d, 20))
		draw_each(d, 1, 3, in, a.dilate);
	for (int i = 0; i + 2 < in->ndims; i++) {
		a.kernel[i] = draw_int(d, 1, is_volume(in) ? 3 : 4);
		a.stride[i] = draw_int(d, 1, 3);
		a.pad[i] = draw_int(d, 0, (a.kernel[i] - 1) / 2);
		a.extra[i] = draw_int(d, 0, a.stride[i] - 1);
	}
	return a;
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

static void draw_groups(struct draw *d, struct mu_convolution *a, struct mu_shape *in)
{
	const int kind = draw_int(d, 0, 9), most = most_of(in, 80);

	a->filters = draw_channels(d, most);
	in->dims[1] = (size_t)draw_channels(d, most);
	if (kind < 2) { /* depthwise */
		a->groups = (int)in->dims[1];
		a->filters = a->groups * draw_int(d, 1, 2);
	} else if (kind < 4) {
		a->groups = draw_int(d, 2, 4);
		a->filters = a->groups * draw_channels(d, most / 4);
		in->dims[1] = (size_t)(a->groups * draw_channels(d, most / 4));
	}
}

static bool reaches(const struct mu_convolution *a, const struct mu_shape *in)
{
	bool all = true;

	for (int i = 0; i + 2 < in->ndims; i++)
		all &= (int)in->dims[2 + i] + 2 * a->pad[i] >
		       (a->dilate[i] ? a->dilate[i] : 1) * (a->kernel[i] - 1);
	return all;
}

static void draw_convolution(struct draw *d, struct mu_convolution *a, struct mu_shape *in)
{
	const int most = is_volume(in) ? 3 : 5, far = is_volume(in) ? 5 : 9;

	do {
		*a = (struct mu_convolution){.no_bias = draw_chance(d, 50)};
		draw_groups(d, a, in);
		draw_kernel(d, draw_chance(d, 20) ? far : most, in, a->kernel);
		draw_each(d, 0, draw_chance(d, 20) ? 5 : 2, in, a->stride);
		if (draw_chance(d, 25))
			draw_each(d, 0, 3, in, a->dilate);
		if (draw_chance(d, 60))
			draw_each(d, 0, draw_chance(d, 30) ? 6 : 2, in, a->pad);
	} while (!reaches(a, in));
}

static struct mu_batch_norm draw_norm(struct draw *d)
{
	static const float eps[] = {1e-3f, 1e-2f, 2e-5f};

	return (struct mu_batch_norm){
		.eps = eps[draw_int(d, 0, 2)], .momentum = 0.9f, .fix_gamma = draw_chance(d, 30)};
}

/* ---- what it is, for messages ---- */

static void append(char *text, size_t nbytes, const char *word, const int *v, int n)
{
	size_t at = strlen(text);

	for (int i = 0; i < n && at < nbytes; i++)
		at += (size_t)snprintf(text + at, nbytes - at, "%s%d", i ? "x" : word, v[i]);
}

static void describe_convolution(const struct random_case *r, char *text, size_t nbytes)
{
	const int axes = r->c.in[0].ndims - 2;
	const struct mu_convolution *a = &r->attr.convolution;
	const struct mu_deconvolution *t = &r->attr.deconvolution;
	const bool turned = r->c.kind == MU_OP_DECONVOLUTION;

	snprintf(text, nbytes, "filters %d groups %d no_bias %d", turned ? t->filters : a->filters,
		 turned ? t->groups : a->groups, turned ? t->no_bias : a->no_bias);
	append(text, nbytes, " kernel ", turned ? t->kernel : a->kernel, axes);
	append(text, nbytes, " stride ", turned ? t->stride : a->stride, axes);
	append(text, nbytes, " pad ", turned ? t->pad : a->pad, axes);
	append(text, nbytes, " dilate ", turned ? t->dilate : a->dilate, axes);
	if (turned)
		append(text, nbytes, " extra ", t->extra, axes);
}

static void describe_windows(const struct random_case *r, char *text, size_t nbytes)
{
	const int axes = r->c.in[0].ndims - 2;
	const struct mu_pooling *p = &r->attr.pooling;
	const struct mu_upsampling *u = &r->attr.upsampling;
	const struct mu_pad *a = &r->attr.pad;

	if (r->c.kind == MU_OP_POOLING) {
		snprintf(text, nbytes, "average %d global %d ceil %d", p->average, p->global,
			 p->ceil);
		append(text, nbytes, " kernel ", p->kernel, axes);
		append(text, nbytes, " stride ", p->stride, axes);
		append(text, nbytes, " pad ", p->pad, axes);
	} else if (r->c.kind == MU_OP_UPSAMPLING) {
		snprintf(text, nbytes, "linear %d corners %d", u->linear, u->align_corners);
		append(text, nbytes, " scale ", u->scale, axes);
		append(text, nbytes, " size ", u->size, axes);
	} else {
		snprintf(text, nbytes, "value %g", (double)a->value);
		append(text, nbytes, " before ", a->before, axes);
		append(text, nbytes, " after ", a->after, axes);
	}
}

static void describe_heads(const struct random_case *r, char *text, size_t nbytes)
{
	size_t at = 0;

	for (size_t i = 0; i < r->attr.joint.n; i++) {
		const struct mu_joint_head *h = &r->attr.joint.heads[i];

		at += (size_t)snprintf(text + at, nbytes - at, "%s%s weight %g", i ? ", " : "",
				       mu_op_kind_name(h->kind), h->weight);
	}
}

static void describe_attributes(const struct random_case *r, char *text, size_t nbytes)
{
	const struct mu_lrn *l = &r->attr.lrn;

	*text = 0;
	switch (r->c.kind) {
	case MU_OP_CONVOLUTION:
	case MU_OP_DECONVOLUTION: describe_convolution(r, text, nbytes); break;
	case MU_OP_POOLING:
	case MU_OP_UPSAMPLING:
	case MU_OP_PAD: describe_windows(r, text, nbytes); break;
	case MU_OP_LRN:
		snprintf(text, nbytes, "size %d alpha %g beta %g k %g", l->size, (double)l->alpha,
			 (double)l->beta, (double)l->k);
		break;
	case MU_OP_BATCH_NORM:
		snprintf(text, nbytes, "eps %g fix_gamma %d restored %d", (double)r->attr.norm.eps,
			 r->attr.norm.fix_gamma, r->c.restored);
		break;
	case MU_OP_GROUP_NORM:
		snprintf(text, nbytes, "groups %d", r->attr.group_norm.groups);
		break;
	case MU_OP_LSTM: snprintf(text, nbytes, "units %d", r->attr.lstm.units); break;
	case MU_OP_FULLY_CONNECTED:
		snprintf(text, nbytes, "units %d no_bias %d", r->attr.dense.units,
			 r->attr.dense.no_bias);
		break;
	case MU_OP_ACTIVATION:
	case MU_OP_SMOOTH:
		snprintf(text, nbytes, "kind %d parameter %g", (int)r->attr.activation.kind,
			 (double)r->attr.activation.parameter);
		break;
	case MU_OP_ELEMENT_LOSS:
		snprintf(text, nbytes, "form %d delta %g", (int)r->attr.element_loss.form,
			 (double)r->attr.element_loss.delta);
		break;
	case MU_OP_JOINT: describe_heads(r, text, nbytes); break;
	default: break;
	}
}

static void describe(struct random_case *r)
{
	char shape[80], attributes[200];
	size_t n;

	describe_attributes(r, attributes, sizeof attributes);
	snprintf(r->name, sizeof r->name,
		 "%s %s frozen %u fused %d in place %d count %d ignore %d, inputs",
		 mu_op_kind_name(r->c.kind), attributes, r->c.frozen,
		 r->c.fused ? (int)r->fused.kind : -1, r->c.in_place, (int)r->c.count,
		 r->c.use_ignore);
	for (int i = 0; i < OP_MAX_TENSORS && r->c.in[i].ndims; i++) {
		n = strlen(r->name);
		snprintf(r->name + n, sizeof r->name - n, " %s",
			 mu_shape_text(&r->c.in[i], shape, sizeof shape));
	}
	r->c.name = r->name;
}

/* ---- losses ---- */

static void draw_counted(struct random_case *r, struct draw *d)
{
	const size_t n = r->c.in[0].dims[0];

	if (draw_chance(d, 30))
		r->c.count = (size_t)draw_int(d, 1, (int)n);
	else if (draw_chance(d, 10))
		r->c.count = OP_NO_ROWS;
}

/* Without axes of space in some cases. */
static struct mu_shape draw_scores(struct draw *d, const struct mu_shape *in, int least)
{
	struct mu_shape s = *in;

	s.dims[1] = (size_t)(least - 1 + draw_channels(d, 65));
	if (draw_chance(d, 30))
		s = (struct mu_shape){2, {s.dims[0], s.dims[1]}};
	return s;
}

static void draw_softmax(struct random_case *r, struct draw *d)
{
	r->c.in[0] = draw_scores(d, &r->c.in[0], 2);
	r->c.attr = NULL;
	r->c.use_ignore = draw_chance(d, 30);
	r->c.weighted = draw_chance(d, 30);
	r->c.smoothing = draw_chance(d, 30) ? 0.125f * (float)draw_int(d, 1, 7) : 0;
}

static struct mu_region_loss draw_region_loss(struct draw *d)
{
	return (struct mu_region_loss){draw_chance(d, 50) ? 1 : 1e-3f};
}

/* An input of a head, small enough for ref: of classes, or of values. */
static void draw_head(struct random_case *r, struct draw *d, const struct mu_shape *in)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	static const float weights[] = {1, 2, 0.5f, 1, 3, 1.5f, 1};
	struct mu_joint *joint = &r->attr.joint;
	const size_t i = joint->n++;
	struct mu_joint_head *h = &joint->heads[i];

	*h = (struct mu_joint_head){.name = names[i], .weight = 0.25 * draw_int(d, 0, 8)};
	h->of_classes = draw_chance(d, 60);
	h->kind = MU_OP_ELEMENT_LOSS;
	if (h->of_classes)
		h->kind = draw_chance(d, 50) ? MU_OP_SOFTMAX : MU_OP_REGION_LOSS;
	h->shape = draw_scores(d, in, h->of_classes ? 2 : 1);
	if (h->kind == MU_OP_REGION_LOSS)
		h->shape = *in;
	if (h->of_classes)
		h->shape.dims[1] = (size_t)draw_int(d, 2, 7);
	for (int k = 2; k < h->shape.ndims; k++)
		h->shape.dims[k] = (size_t)draw_int(d, 1, 4);
	if (h->kind == MU_OP_ELEMENT_LOSS) {
		r->heads[i].element_loss = draw_element_loss(d);
		h->attr = &r->heads[i].element_loss;
	} else if (h->kind == MU_OP_REGION_LOSS) {
		r->heads[i].region_loss = draw_region_loss(d);
		h->attr = &r->heads[i].region_loss;
	} else if (draw_chance(d, 30)) {
		h->class_weights = weights;
	}
	h->use_ignore = h->of_classes && draw_chance(d, 30);
	h->ignore_label = 1;
	r->c.in[i] = h->shape;
	h->shape.dims[0] = 0;
}

static void draw_joint(struct random_case *r, struct draw *d)
{
	const struct mu_shape in = r->c.in[0];
	const int n = draw_int(d, 1, OP_MAX_TENSORS);

	r->attr.joint = (struct mu_joint){.n = 0};
	for (int i = 0; i < n; i++)
		draw_head(r, d, &in);
	r->c.frozen = draw_chance(d, 20) ? 1u << draw_int(d, 0, n - 1) : 0;
}

/* ---- a case ---- */

static const enum mu_op_kind kinds[] = {
	MU_OP_CONVOLUTION,  MU_OP_CONVOLUTION, MU_OP_CONVOLUTION,     MU_OP_CONVOLUTION,
	MU_OP_CONVOLUTION,  MU_OP_CONVOLUTION, MU_OP_CONVOLUTION,     MU_OP_POOLING,
	MU_OP_POOLING,      MU_OP_POOLING,     MU_OP_POOLING,         MU_OP_LRN,
	MU_OP_BATCH_NORM,   MU_OP_BATCH_NORM,  MU_OP_FULLY_CONNECTED, MU_OP_CONCAT,
	MU_OP_CONCAT,       MU_OP_SUM,         MU_OP_ACTIVATION,      MU_OP_SPLIT,
	MU_OP_DROPOUT,      MU_OP_FLATTEN,     MU_OP_LSTM,            MU_OP_LAYER_NORM,
	MU_OP_SMOOTH,       MU_OP_SMOOTH,      MU_OP_ATTENTION,       MU_OP_ATTENTION,
	MU_OP_POSITIONS,    MU_OP_STEP,        MU_OP_PRODUCT,         MU_OP_DECONVOLUTION,
	MU_OP_UPSAMPLING,   MU_OP_UPSAMPLING,  MU_OP_PAD,             MU_OP_GROUP_NORM,
	MU_OP_GROUP_NORM,   MU_OP_EMBEDDING,   MU_OP_DECONVOLUTION,   MU_OP_SOFTMAX,
	MU_OP_ELEMENT_LOSS, MU_OP_REGION_LOSS, MU_OP_JOINT,           MU_OP_JOINT,
};

/* Of pictures and sequences only. */
static bool is_flat(enum mu_op_kind kind)
{
	return kind == MU_OP_LRN || kind == MU_OP_LSTM || kind == MU_OP_ATTENTION ||
	       kind == MU_OP_POSITIONS || kind == MU_OP_STEP || kind == MU_OP_EMBEDDING;
}

static struct mu_shape draw_input(struct draw *d, enum mu_op_kind kind)
{
	const bool volume = draw_chance(d, 40) && !is_flat(kind);
	const int most = volume ? (draw_chance(d, 20) ? 9 : 5) : draw_chance(d, 20) ? 20 : 9;
	struct mu_shape in = {volume ? 5 : 4, {(size_t)draw_int(d, 1, 4)}};

	in.dims[1] = (size_t)draw_channels(d, 80);
	for (int i = 2; i < in.ndims; i++)
		in.dims[i] = (size_t)draw_int(d, 1, most);
	return in;
}

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

static void draw_of_steps(struct random_case *r, struct draw *d)
{
	struct mu_shape *in = &r->c.in[0];

	switch (r->c.kind) {
	case MU_OP_EMBEDDING:
		r->attr.embedding = (struct mu_embedding){draw_int(d, 5, 9), draw_channels(d, 80)};
		in->dims[1] = 1;
		r->c.frozen = 1;
		break;
	case MU_OP_LSTM:
		r->attr.lstm.units = draw_channels(d, 48);
		in->dims[3] = 1;
		break;
	case MU_OP_ATTENTION: r->attr.attention = draw_attention(d, in); break;
	case MU_OP_POSITIONS:
		r->attr.positions.token = draw_chance(d, 50);
		if (draw_chance(d, 30))
			r->attr.positions.most_steps =
				(int)(in->dims[2] * in->dims[3]) + draw_int(d, 1, 9);
		break;
	default:
		in->dims[3] = 1;
		r->attr.step.step = draw_int(d, 0, (int)in->dims[2] - 1);
	}
}

static void draw_loss(struct random_case *r, struct draw *d)
{
	switch (r->c.kind) {
	case MU_OP_SOFTMAX: draw_softmax(r, d); break;
	case MU_OP_ELEMENT_LOSS:
		r->attr.element_loss = draw_element_loss(d);
		r->c.in[0] = draw_scores(d, &r->c.in[0], 1);
		break;
	case MU_OP_REGION_LOSS:
		r->attr.region_loss = draw_region_loss(d);
		r->c.in[0].dims[1]++; /* two classes at least */
		r->c.use_ignore = draw_chance(d, 30);
		break;
	default: draw_joint(r, d);
	}
	draw_counted(r, d);
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
	case MU_OP_POOLING: r->attr.pooling = draw_pooling(d, in); break;
	case MU_OP_BATCH_NORM:
		r->attr.norm = draw_norm(d);
		r->c.restored = draw_chance(d, 30);
		break;
	case MU_OP_DECONVOLUTION: r->attr.deconvolution = draw_deconvolution(d, in); break;
	case MU_OP_UPSAMPLING: r->attr.upsampling = draw_upsampling(d, in); break;
	case MU_OP_PAD: r->attr.pad = draw_pad(d, in); break;
	case MU_OP_GROUP_NORM:
		r->attr.group_norm = draw_group_norm(d, (int)in->dims[1]);
		in->dims[in->ndims - 1]++; /* more than one value */
		break;
	case MU_OP_LRN: r->attr.lrn = draw_lrn(d); break;
	case MU_OP_LAYER_NORM:
		r->attr.layer_norm = (struct mu_layer_norm){1e-5f, draw_chance(d, 30)};
		break;
	case MU_OP_SMOOTH: r->attr.activation = draw_smooth(d); break;
	case MU_OP_FLATTEN:
		r->attr.reshaped = draw_reshaped(d, in);
		r->c.attr = draw_chance(d, 50) ? &r->attr : NULL;
		break;
	case MU_OP_DROPOUT: r->attr.dropout.p = 0.25f * (float)draw_int(d, 0, 3); break;
	case MU_OP_ACTIVATION:
		r->attr.activation.kind = draw_activation(d);
		r->c.in_place = draw_chance(d, 50);
		break;
	case MU_OP_SUM:
	case MU_OP_PRODUCT:
	case MU_OP_CONCAT:
	case MU_OP_SPLIT: draw_several(r, d); break;
	default:
		if (op_case_is_loss(&r->c))
			draw_loss(r, d);
		else
			draw_of_steps(r, d);
	}
}

/* An activation that the operation does, too. */
static void draw_fused(struct random_case *r, struct draw *d)
{
	switch (r->c.kind) {
	case MU_OP_CONVOLUTION:
	case MU_OP_FULLY_CONNECTED: r->fused.kind = draw_activation(d); break;
	case MU_OP_SUM:
	case MU_OP_BATCH_NORM: r->fused.kind = MU_ACTIVATION_RELU; break;
	default: return;
	}
	if (draw_chance(d, 30))
		r->c.fused = &r->fused;
}

void random_case_init(struct random_case *r, struct draw *d)
{
	enum mu_op_kind kind = kinds[draw_int(d, 0, (int)(sizeof kinds / sizeof *kinds) - 1)];

	*r = (struct random_case){.c = {.kind = kind, .index = draw_int(d, 0, 60)}};
	r->c.in[0] = draw_input(d, kind);
	if (draw_chance(d, 15))
		r->c.frozen = 1;
	draw_attributes(r, d);
	draw_fused(r, d);
	describe(r);
}
