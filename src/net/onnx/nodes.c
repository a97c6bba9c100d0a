/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a graph: NodeProto and AttributeProto of onnx.proto. */
#include "onnx.h"

enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT, ATTRIBUTE_INT, ATTRIBUTE_TEXT, ATTRIBUTE_INTS = 8,
       ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT, TYPE_TEXT, TYPE_INTS = 7 };
enum { GRAPH_NODE = 1 };

const char *mu_onnx_in(const struct onnx_layer *o, int i)
{
	return o->onnx->values[o->layer->inputs[i]];
}

bool mu_onnx_reads_words(const struct onnx_layer *o)
{
	return o->onnx->words && mu_onnx_in(o, 0) == o->onnx->values[0];
}

void mu_onnx_pass(struct onnx_layer *o)
{
	o->value = mu_onnx_in(o, 0);
}

/* ---- attributes ---- */

static void add_attribute(struct onnx_layer *o, const char *name, int type,
			  struct onnx_bytes *values)
{
	struct onnx_bytes b = {.n = 0};

	mu_wire_text(&b, ATTRIBUTE_NAME, name);
	mu_wire_append(&b, values->of, values->n);
	mu_wire_int(&b, ATTRIBUTE_TYPE, (uint64_t)type);
	b.failed |= values->failed;
	mu_wire_release(values);
	mu_wire_message(&o->attributes, NODE_ATTRIBUTE, &b);
}

void mu_onnx_int(struct onnx_layer *o, const char *name, long value)
{
	struct onnx_bytes b = {.n = 0};

	mu_wire_int(&b, ATTRIBUTE_INT, (uint64_t)value);
	add_attribute(o, name, TYPE_INT, &b);
}

void mu_onnx_float(struct onnx_layer *o, const char *name, float value)
{
	struct onnx_bytes b = {.n = 0};

	mu_wire_float(&b, ATTRIBUTE_FLOAT, value);
	add_attribute(o, name, TYPE_FLOAT, &b);
}

void mu_onnx_text(struct onnx_layer *o, const char *name, const char *text)
{
	struct onnx_bytes b = {.n = 0};

	mu_wire_text(&b, ATTRIBUTE_TEXT, text);
	add_attribute(o, name, TYPE_TEXT, &b);
}

void mu_onnx_ints(struct onnx_layer *o, const char *name, const int *values, int n)
{
	struct onnx_bytes b = {.n = 0};

	for (int i = 0; i < n; i++)
		mu_wire_int(&b, ATTRIBUTE_INTS, (uint64_t)(int64_t)values[i]);
	add_attribute(o, name, TYPE_INTS, &b);
}

void mu_onnx_pads(struct onnx_layer *o, const int *before, const int *after, int n)
{
	int all[2 * MU_MAX_SPACE];

	for (int i = 0; i < n; i++) {
		all[i] = before[i];
		all[n + i] = after[i];
	}
	mu_onnx_ints(o, "pads", all, 2 * n);
}

/* ---- nodes ---- */

/* Values of a node are numbered one after another: output i counts from the last node's first. */
const char *mu_onnx_output(struct onnx_layer *o, int i)
{
	return i == 0 ? o->value : mu_onnx_name(o->onnx, "%s.%d", o->value, i);
}

const char *mu_onnx_add_node(struct onnx_layer *o, const char *op, int n_outputs,
			     const char *const *inputs)
{
	struct mu_onnx *onnx = o->onnx;
	struct onnx_bytes b = {.n = 0};

	o->value = onnx->next ? onnx->next
			      : mu_onnx_name(onnx, "%s:%zu", o->layer->name, onnx->n_values);
	onnx->next = NULL;
	onnx->n_values++;
	for (size_t i = 0; inputs[i]; i++)
		mu_wire_text(&b, NODE_INPUT, inputs[i]);
	for (int i = 0; i < n_outputs; i++)
		mu_wire_text(&b, NODE_OUTPUT, mu_onnx_output(o, i));
	mu_wire_text(&b, NODE_NAME, o->value);
	mu_wire_text(&b, NODE_OP, op);
	b.failed |= o->attributes.failed;
	mu_wire_append(&b, o->attributes.of, o->attributes.n);
	mu_wire_release(&o->attributes);
	mu_wire_message(&onnx->nodes, GRAPH_NODE, &b);
	return o->value;
}

const char *mu_onnx_reshape(struct onnx_layer *o, const char *x, int n, const long *dims)
{
	return mu_onnx_node(o, "Reshape", x, mu_onnx_whole(o, dims, n));
}

const char *mu_onnx_reshape_to(struct onnx_layer *o, const char *x, const struct mu_shape *shape)
{
	long dims[MU_MAX_DIMS] = {0};

	for (int i = 1; i < shape->ndims; i++)
		dims[i] = (long)shape->dims[i];
	return mu_onnx_reshape(o, x, shape->ndims, dims);
}

const char *mu_onnx_transpose(struct onnx_layer *o, const char *x, int n, const int *order)
{
	mu_onnx_ints(o, "perm", order, n);
	return mu_onnx_node(o, "Transpose", x);
}

/* The axes are an attribute until opset 17, an input from 18 on. */
const char *mu_onnx_mean(struct onnx_layer *o, const char *x, int axis)
{
	const long axes[] = {axis};

	if (o->onnx->config.opset >= 18)
		return mu_onnx_node(o, "ReduceMean", x, mu_onnx_whole(o, axes, 1));
	mu_onnx_ints(o, "axes", &axis, 1);
	return mu_onnx_node(o, "ReduceMean", x);
}
