/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A net as a model of ONNX: GraphProto and ModelProto of onnx.proto. What is small is made in
 * memory, parameters come from the plan when the file is written.
 */
#include "config.h"

#include "onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "net/layers/layer.h"
#include "net/plan/plan.h"

enum { MODEL_IR = 1, MODEL_PRODUCER, MODEL_VERSION, MODEL_DOC = 6, MODEL_GRAPH, MODEL_OPSET,
       MODEL_NOTE = 14 };
enum { GRAPH_NAME = 2, GRAPH_ARRAY = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT };
enum { ARRAY_DIM = 1, ARRAY_TYPE, ARRAY_NAME = 8, ARRAY_RAW, ARRAY_PLACE = 13, ARRAY_EXTERNAL };
/* Layers that need a later opset use the second figures: opset 17 is of ONNX 1.12, 23 of 1.18. */
enum { OPSET = 17, OPSET_ATTENTION = 23, IR = 8, IR_ATTENTION = 11 };
/* Arrays of fewer bytes stay in the file: shapes are computed from some. */
enum { LEAST_OUTSIDE = 1024, ALIGNED = 64 };

/* ---- input and output ---- */

/* A dimension of 0 is the batch. ValueInfoProto of a tensor. */
static void add_end(struct mu_onnx *onnx, int field, const char *name, int type,
		    const struct mu_shape *shape, const char *about)
{
	struct onnx_bytes b = {.n = 0}, kind = {.n = 0}, tensor = {.n = 0}, dims = {.n = 0};

	for (int i = 0; i < shape->ndims; i++) {
		struct onnx_bytes dim = {.n = 0};

		if (i == 0)
			mu_wire_text(&dim, 2, "batch");
		else
			mu_wire_int(&dim, 1, shape->dims[i]);
		mu_wire_message(&dims, 1, &dim);
	}
	mu_wire_int(&tensor, 1, (uint64_t)type);
	mu_wire_message(&tensor, 2, &dims);
	mu_wire_message(&kind, 1, &tensor);
	mu_wire_text(&b, 1, name);
	mu_wire_message(&b, 2, &kind);
	if (about)
		mu_wire_text(&b, 3, about);
	mu_wire_message(&onnx->ends, field, &b);
}

/* Do layers that look words up alone read the input? */
static enum mu_status find_words(struct mu_onnx *onnx)
{
	enum mu_status st = MU_OK;
	const struct mu_net *net = onnx->net;
	bool *input = NULL; /* by tensor: is it the input, passed on by splits? */

	MU_TRY(MU_ALLOC(input, (size_t)net->n_tensors, "tensors of a graph"));
	input[0] = true;
	onnx->words = net->tensors[0].shape.ndims == 4 && net->tensors[0].shape.dims[1] == 1 &&
		      net->tensors[0].shape.dims[3] == 1;
	for (int l = 0; l < net->n_layers; l++) {
		const struct net_layer *layer = &net->layers[l];
		const bool passes = mu_layer_has(layer->kind, MU_LAYER_IS_PASSAGE);

		for (int i = 0; i < layer->n_inputs; i++) {
			if (!input[layer->inputs[i]])
				continue;
			onnx->words &= passes || mu_layer_has(layer->kind, MU_LAYER_HAS_TABLE);
			for (int k = 0; k < layer->n_outputs && passes; k++)
				input[layer->outputs[k]] = true;
		}
	}
out:
	mu_free(input);
	return st;
}

/* (value - mean) / std of each channel, as the reader of pictures makes of pixels. */
static void normalise(struct mu_onnx *onnx)
{
	const struct mu_shape *shape = &onnx->net->tensors[0].shape;
	char name[] = "input";
	struct net_layer input = {.name = name};
	struct onnx_layer o = {.onnx = onnx, .layer = &input};
	const size_t n = shape->dims[1];
	const size_t dims[MU_MAX_DIMS] = {n, 1, 1, 1};
	float *mean = mu_onnx_room(&o, n), *std = mu_onnx_room(&o, n);

	for (size_t c = 0; c < n && mean && std; c++) {
		mean[c] = onnx->config.mean[c];
		std[c] = onnx->config.std[c];
	}
	mu_onnx_node(&o, "Sub", onnx->values[0],
		     mu_onnx_floats(&o, "mean", mean, shape->ndims - 1, dims));
	onnx->values[0] = mu_onnx_node(&o, "Div", o.value, mu_onnx_floats(&o, "std", std,
									  shape->ndims - 1, dims));
}

static enum mu_status begin(struct mu_onnx *onnx)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *shape = &onnx->net->tensors[0].shape;
	const struct mu_shape words = {2, {0, shape->dims[2]}};

	MU_TRY(find_words(onnx));
	onnx->values[0] = "input";
	add_end(onnx, GRAPH_INPUT, "input", onnx->words ? ONNX_INT64 : ONNX_FLOAT,
		onnx->words ? &words : shape, onnx->config.about_input);
	if (onnx->config.mean)
		normalise(onnx);
out:
	return st;
}

/* Of a sequence: (batch, steps, classes). */
static bool has_steps(const struct mu_onnx *onnx, const struct mu_shape *shape)
{
	return onnx->words && shape->ndims == 4 && shape->dims[3] == 1;
}

static void finish(struct onnx_layer *o)
{
	struct mu_shape shape = *o->out;

	if (has_steps(o->onnx, o->out)) {
		const long dims[] = {0, (long)shape.dims[1], (long)shape.dims[2]};

		mu_onnx_reshape(o, o->value, 3, dims);
		o->onnx->next = "output";
		mu_onnx_transpose(o, o->value, 3, (const int[]){0, 2, 1});
		shape = (struct mu_shape){3, {0, o->out->dims[2], o->out->dims[1]}};
	}
	add_end(o->onnx, GRAPH_OUTPUT, "output", ONNX_FLOAT, &shape, o->onnx->config.about_output);
}

/* ---- layers ---- */

/* The batch-norm that alone reads the output of layer l, and that l can take over. */
static const struct net_layer *find_norm(struct mu_onnx *onnx, int l)
{
	const struct mu_net *net = onnx->net;

	if (!onnx->config.fold || !mu_layer_has(net->layers[l].kind, MU_LAYER_TAKES_SCALE))
		return NULL;
	for (int k = l + 1; k < net->n_layers; k++)
		if (net->layers[k].kind == &mu_layer_batch_norm &&
		    net->layers[k].inputs[0] == net->layers[l].outputs[0]) {
			onnx->folded[k] = true;
			return &net->layers[k];
		}
	return NULL;
}

static enum mu_status add_layer(struct mu_onnx *onnx, int l)
{
	enum mu_status st = MU_OK;
	const struct mu_net *net = onnx->net;
	const struct net_layer *layer = &net->layers[l];
	const struct mu_layer_kind *kind = layer->kind;
	const bool last = l + 1 == net->n_layers;
	struct onnx_layer o = {
		.onnx = onnx,
		.layer = layer,
		.in = &net->tensors[layer->inputs[0]].shape,
		.out = &net->tensors[layer->outputs[0]].shape,
		.norm = find_norm(onnx, l),
	};

	if (!kind->onnx)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"layer %s, a %s, cannot be written as ONNX: there is no operation for it",
			layer->name,
			kind->title ? kind->title(layer->attr) : mu_op_kind_name(kind->op));
	if (last && !has_steps(onnx, o.out))
		onnx->next = "output";
	if (onnx->folded[l])
		mu_onnx_pass(&o);
	else
		kind->onnx(&o);
	MU_TRY(onnx->st);
	for (int i = 0; i < layer->n_outputs; i++)
		onnx->values[layer->outputs[i]] = o.value;
	if (last)
		finish(&o);
out:
	mu_wire_release(&o.attributes);
	return st;
}

static void describe(struct mu_onnx *onnx)
{
	const struct mu_onnx_config *c = &onnx->config;
	struct onnx_bytes opset = {.n = 0};

	mu_wire_int(&onnx->about, MODEL_IR, c->opset >= OPSET_ATTENTION ? IR_ATTENTION : IR);
	mu_wire_text(&onnx->about, MODEL_PRODUCER, "Muster");
	mu_wire_text(&onnx->about, MODEL_VERSION, PACKAGE_VERSION);
	mu_wire_text(&opset, 1, "");
	mu_wire_int(&opset, 2, (uint64_t)c->opset);
	mu_wire_message(&onnx->about, MODEL_OPSET, &opset);
	for (size_t i = 0; i < c->n_notes; i++) {
		struct onnx_bytes note = {.n = 0};

		mu_wire_text(&note, 1, c->notes[i].name);
		mu_wire_text(&note, 2, c->notes[i].text);
		mu_wire_message(&onnx->about, MODEL_NOTE, &note);
	}
}

enum mu_status mu_onnx_new(struct mu_onnx **out, const struct mu_plan *plan, const float *weights,
			   const struct mu_onnx_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_onnx *onnx = NULL;

	*out = NULL;
	if (config->opset != 0 && config->opset != OPSET && config->opset != OPSET_ATTENTION)
		MU_FAIL(MU_ERR_USAGE, "ONNX opset %d: %d and %d are written", config->opset, OPSET,
			OPSET_ATTENTION);
	MU_TRY(MU_ALLOC(onnx, 1, "ONNX graph"));
	onnx->net = plan->net;
	onnx->source = (struct onnx_source){.plan = plan,
					    .weights = weights,
					    .shape = mu_plan_slice_shape,
					    .read = mu_plan_slice_to_plain};
	onnx->source.slices = mu_plan_slices(plan, &onnx->source.n);
	onnx->config = *config;
	if (config->opset == 0)
		onnx->config.opset = OPSET;
	MU_TRY(MU_ALLOC(onnx->values, (size_t)onnx->net->n_tensors, "tensors of a graph"));
	MU_TRY(MU_ALLOC(onnx->folded, (size_t)onnx->net->n_layers, "layers of a graph"));
	describe(onnx);
	MU_TRY(begin(onnx));
	for (int l = 0; l < onnx->net->n_layers; l++)
		MU_TRY(add_layer(onnx, l));
	mu_wire_text(&onnx->ends, GRAPH_NAME, onnx->net->config.network);
	if (onnx->nodes.failed || onnx->ends.failed || onnx->about.failed)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the ONNX graph of network %s",
			onnx->net->config.network);
	*out = onnx;
	onnx = NULL;
out:
	mu_onnx_free(onnx);
	return st;
}

void mu_onnx_free(struct mu_onnx *onnx)
{
	if (!onnx)
		return;
	for (size_t i = 0; i < onnx->n_kept; i++)
		free(onnx->kept[i]);
	free(onnx->kept);
	free(onnx->arrays);
	mu_free(onnx->values);
	mu_free(onnx->folded);
	mu_wire_release(&onnx->nodes);
	mu_wire_release(&onnx->ends);
	mu_wire_release(&onnx->about);
	mu_free(onnx);
}

/* ---- the file ---- */

/* The file that is written, and the one of large arrays beside it. */
struct output {
	const struct mu_onnx *onnx;
	FILE *file, *data; /* data NULL: there is none */
	const char *data_name;
	size_t at; /* in data */
	float *plain;
};

static bool is_outside(const struct output *f, const struct onnx_array *array)
{
	return f->data && array->nbytes >= LEAST_OUTSIDE;
}

static void add_place(struct onnx_bytes *b, const char *name, const char *text)
{
	struct onnx_bytes entry = {.n = 0};

	mu_wire_text(&entry, 1, name);
	mu_wire_text(&entry, 2, text);
	mu_wire_message(b, ARRAY_PLACE, &entry);
}

/* TensorProto, but for its numbers. */
static void add_head(const struct output *f, const struct onnx_array *array, size_t at,
		     struct onnx_bytes *b)
{
	char number[32];

	for (int i = 0; i < array->ndims; i++)
		mu_wire_int(b, ARRAY_DIM, array->dims[i]);
	mu_wire_int(b, ARRAY_TYPE, (uint64_t)array->type);
	mu_wire_text(b, ARRAY_NAME, array->name);
	if (!is_outside(f, array)) {
		mu_wire_begin(b, ARRAY_RAW, array->nbytes);
		return;
	}
	add_place(b, "location", f->data_name);
	snprintf(number, sizeof number, "%zu", at);
	add_place(b, "offset", number);
	snprintf(number, sizeof number, "%zu", array->nbytes);
	add_place(b, "length", number);
	mu_wire_int(b, ARRAY_EXTERNAL, 1);
}

static size_t next_place(size_t at, const struct onnx_array *array)
{
	return (at + array->nbytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Bytes of the graph; *failed: no memory. */
static size_t graph_nbytes(const struct output *f, bool *failed)
{
	size_t n = f->onnx->nodes.n + f->onnx->ends.n, at = 0;

	for (size_t i = 0; i < f->onnx->n_arrays; i++) {
		const struct onnx_array *array = &f->onnx->arrays[i];
		struct onnx_bytes head = {.n = 0}, field = {.n = 0};
		size_t nbytes;

		add_head(f, array, at, &head);
		nbytes = head.n + (is_outside(f, array) ? 0 : array->nbytes);
		mu_wire_begin(&field, GRAPH_ARRAY, nbytes);
		n += field.n + nbytes;
		if (is_outside(f, array))
			at = next_place(at, array);
		*failed |= head.failed || field.failed;
		mu_wire_release(&head);
		mu_wire_release(&field);
	}
	return n;
}

double mu_onnx_nbytes(const struct mu_onnx *onnx)
{
	const struct output f = {.onnx = onnx};
	bool failed = false;

	return (double)onnx->about.n + (double)graph_nbytes(&f, &failed);
}

/* Errors stay in the stream. */
static void put(FILE *file, const void *data, size_t n)
{
	if (n > 0)
		fwrite(data, 1, n, file);
}

/* Its numbers, in the order of bytes of all machines that Muster runs on: the low ones first. */
static enum mu_status put_numbers(struct output *f, const struct onnx_array *array, FILE *to)
{
	enum mu_status st = MU_OK;
	const void *data = array->data;

	if (!data) {
		const struct onnx_source *from = &f->onnx->source;

		MU_TRY(from->read(from->plan, array->key, from->weights, f->plain));
		data = f->plain;
	}
	put(to, data, array->nbytes);
out:
	return st;
}

static enum mu_status put_array(struct output *f, const struct onnx_array *array)
{
	enum mu_status st = MU_OK;
	static const char zeros[ALIGNED];
	struct onnx_bytes head = {.n = 0}, field = {.n = 0};
	const bool outside = is_outside(f, array);

	add_head(f, array, f->at, &head);
	mu_wire_begin(&field, GRAPH_ARRAY, head.n + (outside ? 0 : array->nbytes));
	if (head.failed || field.failed)
		MU_FAIL(MU_ERR_MEMORY, "no memory for array %s", array->name);
	put(f->file, field.of, field.n);
	put(f->file, head.of, head.n);
	MU_TRY(put_numbers(f, array, outside ? f->data : f->file));
	if (outside) {
		const size_t next = next_place(f->at, array);

		put(f->data, zeros, next - f->at - array->nbytes);
		f->at = next;
	}
out:
	mu_wire_release(&head);
	mu_wire_release(&field);
	return st;
}

enum mu_status mu_onnx_write(const struct mu_onnx *onnx, FILE *file, FILE *data,
			     const char *data_name)
{
	enum mu_status st = MU_OK;
	struct output f = {.onnx = onnx, .file = file, .data = data, .data_name = data_name};
	struct onnx_bytes field = {.n = 0};
	bool failed = false;
	size_t most = 0;

	for (size_t k = 0; k < onnx->source.n; k++)
		most = onnx->source.slices[k].n > most ? onnx->source.slices[k].n : most;
	MU_TRY(MU_ALLOC(f.plain, most + 1, "an array"));
	mu_wire_begin(&field, MODEL_GRAPH, graph_nbytes(&f, &failed));
	if (failed || field.failed)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the ONNX graph of network %s",
			onnx->net->config.network);
	put(file, onnx->about.of, onnx->about.n);
	put(file, field.of, field.n);
	put(file, onnx->nodes.of, onnx->nodes.n);
	put(file, onnx->ends.of, onnx->ends.n);
	for (size_t i = 0; i < onnx->n_arrays; i++)
		MU_TRY(put_array(&f, &onnx->arrays[i]));
	errno = 0;
	if (fflush(file) != 0 || (data && fflush(data) != 0) || ferror(file) ||
	    (data && ferror(data)))
		MU_FAIL(MU_ERR_IO, "cannot be written: %s",
			errno != 0 ? strerror(errno) : "no room on the disk?");
out:
	mu_wire_release(&field);
	mu_free(f.plain);
	return st;
}
