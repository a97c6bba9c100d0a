/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: see struct mu_attention. */
#include "layer.h"

#include <math.h>

#include "net/onnx/onnx.h"

/* The reason why there can be no such attention; NULL: there can. */
static const char *fault(const struct mu_attention *a, const struct mu_shape *in)
{
	const int kv = a->kv_heads ? a->kv_heads : a->heads;
	const size_t parts = (size_t)(a->heads + 2 * kv);

	if (a->heads < 1 || kv < 1 || a->heads % kv != 0)
		return "heads must be at least 1, and a multiple of kv_heads";
	if (in->dims[3] != 1)
		return "the last dimension of the input must be 1";
	if (in->dims[1] % parts != 0)
		return "the channels of the input must be a multiple of heads + 2 kv_heads";
	if (!(a->rotary >= 0) || (a->rotary > 0 && in->dims[1] / parts % 2 != 0))
		return "rotary needs an even number of channels per head";
	if (!(a->dropout >= 0 && a->dropout < 1))
		return "dropout must be at least 0 and below 1";
	return NULL;
}

static int shape(struct net_draft *d)
{
	const struct mu_attention *a = d->layer->attr;
	const char *why = fault(a, d->in);
	struct mu_attention_sizes sizes;
	char text[96];

	if (why)
		return mu_layer_fail(d->net, "has %d heads, %d kv_heads, an input of %s: %s",
				     a->heads, a->kv_heads ? a->kv_heads : a->heads,
				     mu_shape_text(d->in, text, sizeof text), why);
	sizes = mu_attention_sizes(a, d->in);
	d->out.dims[1] = sizes.heads * sizes.d;
	return 0;
}

/* For each step and all that it sees, a product with keys and one with values. */
static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	const struct mu_attention *a = l->attr;
	const double steps = (double)out->dims[2];

	return 2 * (double)out->dims[1] * steps * (a->causal ? (steps + 1) / 2 : steps);
}

static bool is_causal(const struct mu_op *op)
{
	return ((const struct mu_attention *)op->attr)->causal;
}

/* Keys and values of `most` steps, and scores. */
static size_t past(const struct mu_op *op, size_t most)
{
	const struct mu_attention_sizes s = mu_attention_sizes(op->attr, &op->inputs[0]->shape);

	return most * (s.n * 2 * s.kv * s.d + 2);
}

/* ---- ONNX ---- */

/* An array of rows and columns that is the same in all layers: its numbers, where it is new. */
static float *add_shared(struct onnx_layer *o, const char *name, size_t rows, size_t columns)
{
	float *values;

	if (mu_onnx_find(o->onnx, name))
		return NULL;
	values = mu_onnx_room(o, rows * columns);
	mu_onnx_add_array(o->onnx, &(struct onnx_array){.name = name,
							.type = ONNX_FLOAT,
							.ndims = 2,
							.dims = {rows, columns},
							.data = values});
	return values;
}

/* cos and sin of the angles of (d / 2, steps). */
static const char *angles(struct onnx_layer *o, const char *function, double (*of)(double))
{
	const struct mu_attention *a = o->layer->attr;
	const struct mu_attention_sizes s = mu_attention_sizes(a, o->in);
	const size_t half = s.d / 2;
	const char *name = mu_onnx_name(o->onnx, "%s_%.9g_%zu_%zu", function, (double)a->rotary,
					half, s.steps);
	float *values = add_shared(o, name, half, s.steps);

	for (size_t i = 0; i < half && values; i++)
		for (size_t t = 0; t < s.steps; t++)
			values[i * s.steps + t] =
				(float)of((double)t * pow((double)a->rotary,
							  -2 * (double)i / (double)s.d));
	return name;
}

/* Of x (n, heads, d, steps). */
static const char *rotate(struct onnx_layer *o, const char *x)
{
	const struct mu_attention_sizes s = mu_attention_sizes(o->layer->attr, o->in);
	const long halves[] = {(long)s.d / 2, (long)s.d / 2};
	const char *cosines = angles(o, "cos", cos), *sines = angles(o, "sin", sin);
	const char *first, *second, *a, *b;

	mu_onnx_int(o, "axis", 2);
	first = mu_onnx_add_node(o, "Split", 2,
				 (const char *const[]){x, mu_onnx_whole(o, halves, 2), NULL});
	second = mu_onnx_output(o, 1);
	a = mu_onnx_node(o, "Mul", first, cosines);
	b = mu_onnx_node(o, "Mul", second, sines);
	a = mu_onnx_node(o, "Sub", a, b);
	b = mu_onnx_node(o, "Mul", second, cosines);
	first = mu_onnx_node(o, "Mul", first, sines);
	b = mu_onnx_node(o, "Add", b, first);
	mu_onnx_int(o, "axis", 2);
	return mu_onnx_node(o, "Concat", a, b);
}

/* 0 for the steps that a step sees, -infinity for those after it. */
static const char *mask(struct onnx_layer *o, size_t steps)
{
	const char *name = mu_onnx_name(o->onnx, "causal_%zu", steps);
	float *values = add_shared(o, name, steps, steps);

	for (size_t i = 0; i < steps * steps && values; i++)
		values[i] = i % steps > i / steps ? -INFINITY : 0;
	return name;
}

/* Operands (n, heads, steps, d). With fewer heads of keys: (n, kv, heads / kv, steps, d), where the
 * keys have one for all of a group. */
static const char *take_heads(struct onnx_layer *o, const char *x, size_t heads,
			      const struct mu_attention_sizes *s)
{
	const long groups[] = {0, (long)s->kv, (long)(heads / s->kv), (long)s->d, (long)s->steps};

	if (s->kv == s->heads)
		return mu_onnx_transpose(o, x, 4, (const int[]){0, 1, 3, 2});
	mu_onnx_reshape(o, x, 5, groups);
	return mu_onnx_transpose(o, o->value, 5, (const int[]){0, 1, 2, 4, 3});
}

/* MatMul, Softmax, MatMul. */
static const char *write_out(struct onnx_layer *o, const char *q, const char *k, const char *v,
			     const struct mu_attention_sizes *s)
{
	const struct mu_attention *a = o->layer->attr;
	const long dims[] = {0, (long)s->heads, (long)s->steps, (long)s->d};
	const long keys[] = {0, (long)s->kv, 1, (long)s->d, (long)s->steps};

	q = take_heads(o, q, s->heads, s);
	v = take_heads(o, v, s->kv, s);
	if (s->kv != s->heads)
		k = mu_onnx_reshape(o, k, 5, keys);
	q = mu_onnx_node(o, "Mul", q, mu_onnx_number(o, 1 / sqrt((double)s->d)));
	mu_onnx_node(o, "MatMul", q, k);
	if (a->causal)
		mu_onnx_node(o, "Add", o->value, mask(o, s->steps));
	mu_onnx_int(o, "axis", -1);
	mu_onnx_node(o, "Softmax", o->value);
	mu_onnx_node(o, "MatMul", o->value, v);
	return s->kv == s->heads ? o->value : mu_onnx_reshape(o, o->value, 4, dims);
}

/* One operation, from opset 23 on. */
static const char *as_one(struct onnx_layer *o, const char *q, const char *k, const char *v)
{
	static const int order[] = {0, 1, 3, 2};
	const struct mu_attention *a = o->layer->attr;

	q = mu_onnx_transpose(o, q, 4, order);
	k = mu_onnx_transpose(o, k, 4, order);
	v = mu_onnx_transpose(o, v, 4, order);
	mu_onnx_int(o, "is_causal", a->causal);
	return mu_onnx_node(o, "Attention", q, k, v);
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_attention *a = o->layer->attr;
	const struct mu_attention_sizes s = mu_attention_sizes(a, o->in);
	const long all[] = {0, (long)(s.heads + 2 * s.kv), (long)s.d, (long)s.steps};
	const long parts[] = {(long)s.heads, (long)s.kv, (long)s.kv},
		   turned[] = {(long)(s.heads + s.kv), (long)s.kv};
	const bool rotates = a->rotary > 0;
	const char *q = mu_onnx_reshape(o, mu_onnx_in(o, 0), 4, all), *k, *v;

	mu_onnx_int(o, "axis", 1);
	q = mu_onnx_add_node(o, "Split", rotates ? 2 : 3,
			     (const char *const[]){q,
						   rotates ? mu_onnx_whole(o, turned, 2)
							   : mu_onnx_whole(o, parts, 3),
						   NULL});
	k = mu_onnx_output(o, 1);
	v = mu_onnx_output(o, rotates ? 1 : 2);
	if (rotates) {
		q = rotate(o, q);
		mu_onnx_int(o, "axis", 1);
		q = mu_onnx_add_node(o, "Split", 2,
				     (const char *const[]){q, mu_onnx_whole(o, parts, 2), NULL});
		k = mu_onnx_output(o, 1);
	}
	q = o->onnx->config.opset >= 23 ? as_one(o, q, k, v) : write_out(o, q, k, v, &s);
	mu_onnx_transpose(o, q, 4, (const int[]){0, 1, 3, 2});
	mu_onnx_reshape_to(o, o->value, o->out);
}

/* A fused one reads its output in backward. */
const struct mu_layer_kind mu_layer_attention = {
	.op = MU_OP_ATTENTION,
	.attr_nbytes = sizeof(struct mu_attention),
	.ndims = 4,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.macs = macs,
	.can_remember = is_causal,
	.past = past,
	.onnx = onnx,
};

int mu_net_attention(struct mu_net *net, int in, const struct mu_attention *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_attention, in, attr, name);
}

bool mu_net_attends(const struct mu_net *net)
{
	for (int i = 0; i < net->n_layers; i++)
		if (net->layers[i].kind == &mu_layer_attention)
			return true;
	return false;
}
