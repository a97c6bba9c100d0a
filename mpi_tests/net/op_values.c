/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and input values of a case. */
#include "op_rig.h"

#include <math.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "device/joint.h"

static size_t one_or(int value)
{
	return value ? (size_t)value : 1;
}

static size_t features(const struct mu_shape *s)
{
	return mu_shape_n(s) / s->dims[0];
}

static struct mu_shape convolution_shape(const struct op_case *c)
{
	const struct mu_convolution *a = c->attr;
	struct mu_shape out = {c->in[0].ndims, {c->in[0].dims[0], (size_t)a->filters}};

	for (int d = 0; d + 2 < out.ndims; d++) {
		size_t reach = one_or(a->dilate[d]) * (size_t)(a->kernel[d] - 1) + 1;
		size_t padded = c->in[0].dims[2 + d] + 2 * (size_t)a->pad[d];

		out.dims[2 + d] = (padded - reach) / one_or(a->stride[d]) + 1;
	}
	return out;
}

static struct mu_shape pooling_shape(const struct op_case *c)
{
	const struct mu_pooling *a = c->attr;
	struct mu_shape out = c->in[0];

	for (int d = 0; d + 2 < out.ndims; d++) {
		size_t stride = one_or(a->stride[d]), rest;

		if (a->global) {
			out.dims[2 + d] = 1;
			continue;
		}
		rest = out.dims[2 + d] + 2 * (size_t)a->pad[d] - (size_t)a->kernel[d];
		out.dims[2 + d] = (a->ceil ? rest + stride - 1 : rest) / stride + 1;
	}
	return out;
}

static struct mu_shape attention_shape(const struct op_case *c)
{
	const struct mu_attention *a = c->attr;
	struct mu_shape out = c->in[0];
	const size_t heads = (size_t)a->heads, kv = a->kv_heads ? (size_t)a->kv_heads : heads;

	out.dims[1] = out.dims[1] / (heads + 2 * kv) * heads;
	return out;
}

static struct mu_shape deconvolution_shape(const struct op_case *c)
{
	const struct mu_deconvolution *a = c->attr;
	struct mu_shape out = c->in[0];

	out.dims[1] = (size_t)a->filters;
	for (int d = 0; d + 2 < out.ndims; d++)
		out.dims[2 + d] = (out.dims[2 + d] - 1) * one_or(a->stride[d]) +
				  one_or(a->dilate[d]) * (size_t)(a->kernel[d] - 1) +
				  (size_t)a->extra[d] + 1 - 2 * (size_t)a->pad[d];
	return out;
}

static struct mu_shape upsampling_shape(const struct op_case *c)
{
	const struct mu_upsampling *a = c->attr;
	struct mu_shape out = c->in[0];

	for (int d = 0; d + 2 < out.ndims; d++)
		out.dims[2 + d] =
			a->size[d] ? (size_t)a->size[d] : out.dims[2 + d] * one_or(a->scale[d]);
	return out;
}

static struct mu_shape pad_shape(const struct op_case *c)
{
	const struct mu_pad *a = c->attr;
	struct mu_shape out = c->in[0];

	for (int d = 0; d + 2 < out.ndims; d++)
		out.dims[2 + d] =
			(size_t)((int)out.dims[2 + d] + a->before[d] + a->after[d]);
	return out;
}

struct mu_shape op_output_shape(const struct op_case *c)
{
	struct mu_shape out = c->in[0];

	switch (c->kind) {
	case MU_OP_DECONVOLUTION: return deconvolution_shape(c);
	case MU_OP_UPSAMPLING: return upsampling_shape(c);
	case MU_OP_PAD: return pad_shape(c);
	case MU_OP_CONVOLUTION: return convolution_shape(c);
	case MU_OP_POOLING: return pooling_shape(c);
	case MU_OP_FULLY_CONNECTED:
		return (struct mu_shape){
			2,
			{out.dims[0], (size_t)((const struct mu_fully_connected *)c->attr)->units}};
	case MU_OP_EMBEDDING:
		out.dims[1] = (size_t)((const struct mu_embedding *)c->attr)->units;
		return out;
	case MU_OP_LSTM: out.dims[1] = (size_t)((const struct mu_lstm *)c->attr)->units; return out;
	case MU_OP_ATTENTION: return attention_shape(c);
	case MU_OP_POSITIONS:
		out.dims[2] = out.dims[2] * out.dims[3] +
			      (((const struct mu_positions *)c->attr)->token ? 1 : 0);
		out.dims[3] = 1;
		return out;
	case MU_OP_STEP: return (struct mu_shape){2, {out.dims[0], out.dims[1]}};
	case MU_OP_FLATTEN:
		if (!c->attr)
			return (struct mu_shape){2, {out.dims[0], features(&out)}};
		out = *(const struct mu_shape *)c->attr;
		out.dims[0] = c->in[0].dims[0];
		return out;
	case MU_OP_JOINT:
		out = (struct mu_shape){2, {out.dims[0], 0}};
		for (int i = 0; i < OP_MAX_TENSORS && c->in[i].ndims; i++)
			out.dims[1] += features(&c->in[i]);
		return out;
	case MU_OP_CONCAT:
		for (int i = 1; i < OP_MAX_TENSORS; i++)
			if (c->in[i].ndims)
				out.dims[1] += c->in[i].dims[1];
		return out;
	default: return out;
	}
}

struct mu_shape op_state_shape(const struct op_case *c)
{
	const struct mu_shape out = op_output_shape(c);

	return (struct mu_shape){3, {2, out.dims[0], out.dims[1]}};
}

int op_n_params(const struct op_case *c, struct mu_shape *shapes)
{
	if (c->kind == MU_OP_CONVOLUTION) {
		const struct mu_convolution *a = c->attr;
		size_t filters = (size_t)a->filters;

		shapes[0] = (struct mu_shape){c->in[0].ndims,
					      {filters, c->in[0].dims[1] / one_or(a->groups),
					       (size_t)a->kernel[0], (size_t)a->kernel[1],
					       (size_t)a->kernel[2]}};
		shapes[1] = (struct mu_shape){1, {filters}};
		return a->no_bias ? 1 : 2;
	}
	if (c->kind == MU_OP_FULLY_CONNECTED) {
		const struct mu_fully_connected *a = c->attr;

		shapes[0] = (struct mu_shape){2, {(size_t)a->units, features(&c->in[0])}};
		shapes[1] = (struct mu_shape){1, {(size_t)a->units}};
		return a->no_bias ? 1 : 2;
	}
	if (c->kind == MU_OP_DECONVOLUTION) {
		const struct mu_deconvolution *a = c->attr;

		shapes[0] = (struct mu_shape){c->in[0].ndims,
					      {c->in[0].dims[1],
					       (size_t)a->filters / one_or(a->groups),
					       (size_t)a->kernel[0], (size_t)a->kernel[1],
					       (size_t)a->kernel[2]}};
		shapes[1] = (struct mu_shape){1, {(size_t)a->filters}};
		return a->no_bias ? 1 : 2;
	}
	if (c->kind == MU_OP_BATCH_NORM || c->kind == MU_OP_GROUP_NORM) {
		shapes[0] = shapes[1] = (struct mu_shape){1, {c->in[0].dims[1]}};
		return 2;
	}
	if (c->kind == MU_OP_EMBEDDING) {
		const struct mu_embedding *a = c->attr;

		shapes[0] = (struct mu_shape){2, {(size_t)a->inputs, (size_t)a->units}};
		return 1;
	}
	if (c->kind == MU_OP_LAYER_NORM) {
		shapes[0] = shapes[1] = (struct mu_shape){1, {c->in[0].dims[1]}};
		return ((const struct mu_layer_norm *)c->attr)->rms ? 1 : 2;
	}
	if (c->kind == MU_OP_POSITIONS) {
		const struct mu_positions *a = c->attr;
		const struct mu_shape out = op_output_shape(c);

		shapes[0] = (struct mu_shape){
			2,
			{a->most_steps ? (size_t)a->most_steps : out.dims[2], out.dims[1]}};
		shapes[1] = (struct mu_shape){1, {out.dims[1]}};
		return a->token ? 2 : 1;
	}
	if (c->kind == MU_OP_LSTM) {
		size_t units = (size_t)((const struct mu_lstm *)c->attr)->units;

		shapes[0] = (struct mu_shape){2, {4 * units, c->in[0].dims[1]}};
		shapes[2] = (struct mu_shape){2, {4 * units, units}};
		shapes[1] = shapes[3] = (struct mu_shape){1, {4 * units}};
		return 4;
	}
	return 0;
}

/* ---- values ---- */

enum kind_of_values {
	UNIFORM,  /* in [-1, 1) */
	POSITIVE, /* in [0.5, 1.5) */
	NOT_ZERO, /* size in [0.1, 1.1), any sign */
	DISTINCT, /* any two differ by at least 1/20 */
	QUARTERS, /* multiples of 1/4 in [-1, 1] */
	ODD,      /* 1/32 + a multiple of 1/16, near [-1, 1] */
	NUMBERS,  /* 0 to 4 */
	FAR,      /* multiples of 16 in [-96, 96] */
};

static float draw(const struct mu_random *key, enum kind_of_values kind, size_t k)
{
	float u = mu_random_uniform(key, k);

	switch (kind) {
	case POSITIVE: return 0.5f + u;
	case NOT_ZERO: return u < 0.5f ? -0.1f - 2 * u : 2 * u - 0.9f;
	case QUARTERS: return 0.25f * (float)((int)(9 * u) - 4);
	case NUMBERS: return (float)(int)(5 * u);
	case FAR: return 16 * (float)((int)(13 * u) - 6);
	case ODD: return 0.03125f + 0.0625f * (float)((int)(32 * u) - 16);
	default: return 2 * u - 1;
	}
}

/* which: a number of its own for every array of a case. */
static enum mu_status fill(float **out, size_t n, enum kind_of_values kind, unsigned which)
{
	enum mu_status st = MU_OK;
	struct mu_random key = {.seed = 7, .purpose = MU_RANDOM_TEST, .sample = which};
	uint32_t *order = NULL;

	MU_TRY(MU_ALLOC(*out, n, "values"));
	for (size_t k = 0; k < n; k++)
		(*out)[k] = draw(&key, kind, k);
	if (kind == DISTINCT) {
		MU_TRY(MU_ALLOC(order, n, "values"));
		mu_random_permutation(&key, order, n);
		for (size_t k = 0; k < n; k++)
			(*out)[k] = 0.05f * ((float)order[k] - 0.5f * (float)n);
	}
out:
	mu_free(order);
	return st;
}

/*
 * Targets of a loss by element are odd multiples of 1/16 between 0 and 1, far enough from kinks.
 * Behind a fused relu: inputs and weights are multiples of 1/4 of size <= 1, the bias an odd
 * multiple of 1/32. So every sum has size >= 1/32, and one value moved by 1/64 does not change its
 * sign. All sums are exact in float. Of an output that is restored rounding must show.
 */
static enum kind_of_values input_kind(const struct op_case *c)
{
	if (c->fused && c->fused->kind == MU_ACTIVATION_RELU && !c->restored)
		return QUARTERS;
	if (c->kind == MU_OP_POOLING && !((const struct mu_pooling *)c->attr)->average)
		return DISTINCT;
	if (c->kind == MU_OP_ACTIVATION || c->kind == MU_OP_SMOOTH)
		return NOT_ZERO;
	if (c->kind == MU_OP_EMBEDDING)
		return NUMBERS;
	if (c->kind == MU_OP_ELEMENT_LOSS || c->kind == MU_OP_JOINT)
		return QUARTERS;
	return c->far ? FAR : UNIFORM;
}

static enum mu_status fill_params(struct op_values *values, const struct op_case *c)
{
	enum mu_status st = MU_OK;
	bool exact = input_kind(c) == QUARTERS;
	struct mu_shape shapes[MU_MAX_PARAMS];
	int n = op_n_params(c, shapes);

	for (int i = 0; i < n; i++) {
		enum kind_of_values kind = exact ? (i == 0 ? QUARTERS : ODD) : UNIFORM;

		MU_TRY(fill(&values->params[i], mu_shape_n(&shapes[i]), kind, 20 + (unsigned)i));
	}
	for (int i = 0; c->kind == MU_OP_BATCH_NORM && i < 2; i++)
		MU_TRY(fill(&values->aux[i], mu_shape_n(&shapes[i]), i ? POSITIVE : UNIFORM,
			    30 + (unsigned)i));
out:
	return st;
}

/* Target i of one sample of several losses. */
static float joint_target(const struct mu_joint *joint, size_t i)
{
	size_t k = 0;

	while (mu_joint_part(joint, k).target + mu_joint_part(joint, k).targets <= i)
		k++;
	return joint->heads[k].of_classes ? (float)(i % joint->heads[k].shape.dims[1])
					  : (float)((10 * i + 7) % 16) / 16;
}

static enum mu_status fill_batch(struct op_values *values, const struct op_case *c)
{
	enum mu_status st = MU_OK;
	size_t n = c->in[0].dims[0];
	const bool by_element = c->kind == MU_OP_ELEMENT_LOSS;
	const struct mu_joint *joint = c->kind == MU_OP_JOINT ? c->attr : NULL;
	const size_t each = joint ? mu_joint_part(joint, joint->n).target
				  : features(&c->in[0]) / (by_element ? 1 : c->in[0].dims[1]);
	size_t predictions = each * n;

	MU_TRY(MU_ALLOC(values->labels, predictions, "labels"));
	MU_TRY(MU_ALLOC(values->ids, n, "ids"));
	for (size_t i = 0; i < predictions; i++)
		values->labels[i] = joint        ? joint_target(joint, i % each)
				    : by_element ? (float)((10 * i + 7) % 16) / 16
					       : (float)((7 * i + 1) % c->in[0].dims[1]);
	for (size_t s = 0; s < n; s++)
		values->ids[s] = (uint32_t)(1000 + 3 * s);
out:
	return st;
}

enum mu_status op_values_init(struct op_values *values, const struct op_case *c)
{
	enum mu_status st = MU_OK;
	struct mu_shape out = op_output_shape(c);
	int n_outputs = c->n_outputs ? c->n_outputs : 1;

	*values = (struct op_values){.labels = NULL};
	for (int i = 0; i < OP_MAX_TENSORS && c->in[i].ndims; i++)
		MU_TRY(fill(&values->in[i], mu_shape_n(&c->in[i]), input_kind(c), (unsigned)i));
	for (int i = 0; i < n_outputs; i++)
		MU_TRY(fill(&values->out_grad[i], mu_shape_n(&out), UNIFORM, 10 + (unsigned)i));
	out = op_state_shape(c);
	if (c->states & OP_BEFORE)
		MU_TRY(fill(&values->state, mu_shape_n(&out), UNIFORM, 40));
	if (c->states & OP_AFTER)
		MU_TRY(fill(&values->state_grad, mu_shape_n(&out), UNIFORM, 41));
	MU_TRY(fill_params(values, c));
	MU_TRY(fill_batch(values, c));
out:
	return st;
}

void op_values_release(struct op_values *values)
{
	for (int i = 0; i < OP_MAX_TENSORS; i++) {
		mu_free(values->in[i]);
		mu_free(values->out_grad[i]);
	}
	for (int i = 0; i < MU_MAX_PARAMS; i++) {
		mu_free(values->params[i]);
		mu_free(values->aux[i]);
	}
	mu_free(values->state);
	mu_free(values->state_grad);
	mu_free(values->labels);
	mu_free(values->ids);
}

const float *op_class_weights(const struct op_case *c)
{
	static float weights[1024];

	for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
		weights[k] = 1 + (float)(k % 3) / 2;
	return c->weighted ? weights : NULL;
}

/* What softmax found out about row p of its output, of the scores x, which lie `step` apart. */
static void check_prediction(const struct op_case *c, const struct mu_prediction *found,
			     const float *x, const float *p, size_t step, size_t label)
{
	const size_t classes = c->in[0].dims[1];
	const double smoothing = (double)c->smoothing;
	const float *weights = op_class_weights(c);
	const double own = (double)x[label * step];
	double largest = -INFINITY, sum = 0, target = 0, total = 0, log_sum, q;
	uint32_t place = 0;

	for (size_t k = 0; k < classes; k++)
		largest = fmax(largest, (double)x[k * step]);
	for (size_t k = 0; k < classes; k++) {
		sum += exp((double)x[k * step] - largest);
		q = ((k == label ? 1 - smoothing : 0) + smoothing / (double)classes) *
		    (weights ? (double)weights[k] : 1);
		total += q;
		target += q * (double)x[k * step];
		place += p[k * step] > p[label * step] ||
			 (k < label && !(p[k * step] < p[label * step]));
	}
	log_sum = largest + log(sum);
	CHECK_NEAR(found->cross_entropy, log_sum - own, 1e-6 * (1 + fabs(largest)));
	CHECK_NEAR(found->loss, total * log_sum - target, 1e-6 * (1 + fabs(largest)));
	if (!CHECK(found->place == place))
		fprintf(stderr, "    %s: place %u, not %u\n", c->name, found->place, place);
}

void op_check_predictions(const struct op_rig *rig, const struct op_values *values)
{
	const struct op_case *c = rig->c;
	const struct mu_shape *shape = &c->in[0];
	const size_t steps = features(shape) / shape->dims[1];
	const struct mu_batch *b = &rig->batch;
	double loss = 0;

	for (size_t i = 0; c->kind == MU_OP_SOFTMAX && i < shape->dims[0] * steps; i++) {
		const struct mu_prediction *found = &b->predictions[i];
		const size_t at = i / steps * shape->dims[1] * steps + i % steps;

		loss += found->loss;
		if (i < b->count * steps && !(b->use_ignore && b->labels[i] == b->ignore_label))
			check_prediction(c, found, values->in[0] + at, rig->blocks[0].v + at, steps,
					 (size_t)b->labels[i]);
		else
			CHECK(found->loss == 0 && found->cross_entropy == 0 && found->place == 0);
	}
	CHECK(c->kind != MU_OP_SOFTMAX || b->loss == loss);
}

void op_check_label(struct mu_device *device, const struct op_case *c, float label,
		    const char *message)
{
	const struct op_rig_config config = {.c = c, .device = device, .phase = MU_PHASE_TRAIN};
	struct op_rig rig;
	struct op_values values;

	CHECK(op_values_init(&values, c) == MU_OK && op_rig_init(&rig, &config) == MU_OK);
	values.labels[1] = label;
	CHECK(op_rig_forward(&rig, &values) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), message);
	mu_trace_clear();
	op_rig_release(&rig);
	op_values_release(&values);
}
