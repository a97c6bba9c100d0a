/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onnx: a net as a graph of ONNX (github.com/onnx/onnx). A kind of layer writes itself, by the
 * function `onnx` of its row, as nodes and arrays. After the first error later calls have no
 * effect, and mu_onnx_new returns that error.
 *
 *	mu_onnx_int(o, "axis", 1);
 *	mu_onnx_node(o, "Softmax", mu_onnx_in(o, 0));
 */
#ifndef NET_ONNX_ONNX_H
#define NET_ONNX_ONNX_H

#include <muster/plan.h>

#include "net/graph/graph.h"
#include "wire.h"

enum { ONNX_DIMS = 8, ONNX_FLOAT = 1, ONNX_INT64 = 7 };

/* Its numbers: `data`, or if that is NULL the plain values of a key. */
struct onnx_array {
	const char *name;
	int type; /* ONNX_FLOAT, ONNX_INT64 */
	int ndims;
	size_t dims[ONNX_DIMS], nbytes, key;
	const void *data;
};

/* Where parameters come from: a plan, which this folder's functions for layers do not know. */
struct onnx_source {
	const struct mu_plan *plan;
	const float *weights;
	const struct mu_slice *slices;
	size_t n;
	const struct mu_shape *(*shape)(const struct mu_plan *plan, size_t k);
	enum mu_status (*read)(const struct mu_plan *plan, size_t k, const float *weights,
			       float *plain);
};

struct mu_onnx {
	const struct mu_net *net;
	struct onnx_source source;
	struct mu_onnx_config config;
	enum mu_status st; /* first error */
	struct onnx_bytes nodes, ends, about; /* of the graph: nodes; input and output; the model */
	struct onnx_array *arrays;
	size_t n_arrays;
	void **kept; /* memory of names and numbers */
	size_t n_kept;
	const char **values; /* by tensor of the net: the name of its value */
	bool *folded;        /* by layer: a batch-norm that the layer before it takes over */
	bool words;          /* the input is (batch, steps) of int64 */
	size_t n_values;     /* so far, to name them */
	const char *next;    /* name of the next node's value; NULL: of its layer */
};

/* A layer that writes itself. */
struct onnx_layer {
	struct mu_onnx *onnx;
	const struct net_layer *layer;
	const struct mu_shape *in, *out; /* of its first input, and of its output */
	const struct net_layer *norm;    /* the batch-norm that it takes over; NULL: none */
	struct onnx_bytes attributes;    /* of the next node */
	const char *value;               /* of the last node: the layer's output */
};

/* ---- nodes.c ---- */

/* The name of an input's value. */
const char *mu_onnx_in(const struct onnx_layer *o, int i);
/* Is the first input the words that the net reads, (batch, steps) of int64? */
bool mu_onnx_reads_words(const struct onnx_layer *o);
/* The output is the input. */
void mu_onnx_pass(struct onnx_layer *o);

/* Attributes of the next node. */
void mu_onnx_int(struct onnx_layer *o, const char *name, long value);
void mu_onnx_float(struct onnx_layer *o, const char *name, float value);
void mu_onnx_text(struct onnx_layer *o, const char *name, const char *text);
void mu_onnx_ints(struct onnx_layer *o, const char *name, const int *values, int n);
/* Numbers before each axis of space, then those after it. */
void mu_onnx_pads(struct onnx_layer *o, const int *before, const int *after, int n);
/* A node with the names of its inputs; "": one is left out. Returns the name of its value. */
#define mu_onnx_node(o, op, ...) \
	mu_onnx_add_node(o, op, 1, (const char *const[]){__VA_ARGS__, NULL})
/* The name of value number i of a node of several, which is the last one added. */
const char *mu_onnx_add_node(struct onnx_layer *o, const char *op, int n_outputs,
			     const char *const *inputs);
const char *mu_onnx_output(struct onnx_layer *o, int i);

/* Nodes that many layers need. A dimension of 0: as in the input. */
const char *mu_onnx_reshape(struct onnx_layer *o, const char *x, int n, const long *dims);
/* To the shape of a tensor of the net, whatever the batch. */
const char *mu_onnx_reshape_to(struct onnx_layer *o, const char *x, const struct mu_shape *shape);
const char *mu_onnx_transpose(struct onnx_layer *o, const char *x, int n, const int *order);
/* Over one axis, which stays as 1. */
const char *mu_onnx_mean(struct onnx_layer *o, const char *x, int axis);

/* ---- arrays.c: each returns the name of an array ---- */

/* A parameter of the layer, in its shape. */
const char *mu_onnx_param(struct onnx_layer *o, int i);
/* Weight and bias, with the batch-norm that the layer takes over; *bias NULL: it has none. */
void mu_onnx_weights(struct onnx_layer *o, const char **weight, const char **bias);
/* Plain values of a parameter, and memory for numbers, both freed with the graph. NULL: an error.
 */
const float *mu_onnx_values(struct onnx_layer *o, const struct net_layer *layer, int i);
float *mu_onnx_room(struct onnx_layer *o, size_t n);
/* Numbers that mu_onnx_room has made, called <layer>_<suffix>. */
const char *mu_onnx_floats(struct onnx_layer *o, const char *suffix, const float *data, int ndims,
			   const size_t *dims);
/* Constants, called by their values. */
const char *mu_onnx_number(struct onnx_layer *o, double value);
const char *mu_onnx_whole(struct onnx_layer *o, const long *values, int n);
const char *mu_onnx_whole_scalar(struct onnx_layer *o, long value);
/* An array of this name, if there is one already; NULL. */
const char *mu_onnx_find(const struct mu_onnx *onnx, const char *name);
/* Memory that is freed with the graph; NULL: an error. */
void *mu_onnx_keep(struct mu_onnx *onnx, size_t nbytes);
__attribute__((format(printf, 2, 3))) const char *mu_onnx_name(struct mu_onnx *onnx,
							       const char *format, ...);
void mu_onnx_add_array(struct mu_onnx *onnx, const struct onnx_array *array);

#endif
