/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a graph: parameters as they are, or made of them, and constants. */
#include "onnx.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* ---- memory ---- */

static void *fail(struct mu_onnx *onnx)
{
	if (onnx->st == MU_OK)
		onnx->st = mu_trace_start(MU_ERR_MEMORY, __FILE__, __LINE__,
					  "no memory for the ONNX graph of network %s",
					  onnx->net->config.network);
	return NULL;
}

void *mu_onnx_keep(struct mu_onnx *onnx, size_t nbytes)
{
	void **grown = realloc(onnx->kept, (onnx->n_kept + 1) * sizeof *grown);

	if (!grown)
		return fail(onnx);
	onnx->kept = grown;
	grown[onnx->n_kept] = malloc(nbytes + 1);
	if (!grown[onnx->n_kept])
		return fail(onnx);
	return grown[onnx->n_kept++];
}

const char *mu_onnx_name(struct mu_onnx *onnx, const char *format, ...)
{
	char text[512], *name;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	name = mu_onnx_keep(onnx, strlen(text));
	return name ? strcpy(name, text) : "";
}

float *mu_onnx_room(struct onnx_layer *o, size_t n)
{
	return mu_onnx_keep(o->onnx, n * sizeof(float));
}

/* ---- arrays ---- */

const char *mu_onnx_find(const struct mu_onnx *onnx, const char *name)
{
	for (size_t i = 0; i < onnx->n_arrays; i++)
		if (strcmp(onnx->arrays[i].name, name) == 0)
			return onnx->arrays[i].name;
	return NULL;
}

void mu_onnx_add_array(struct mu_onnx *onnx, const struct onnx_array *array)
{
	struct onnx_array *grown = realloc(onnx->arrays, (onnx->n_arrays + 1) * sizeof *grown);

	if (!grown) {
		fail(onnx);
		return;
	}
	onnx->arrays = grown;
	grown = &grown[onnx->n_arrays++];
	*grown = *array;
	grown->nbytes = array->type == ONNX_FLOAT ? sizeof(float) : sizeof(int64_t);
	for (int i = 0; i < array->ndims; i++)
		grown->nbytes *= array->dims[i];
}

const char *mu_onnx_floats(struct onnx_layer *o, const char *suffix, const float *data, int ndims,
			   const size_t *dims)
{
	struct onnx_array array = {.type = ONNX_FLOAT, .ndims = ndims, .data = data};

	array.name = mu_onnx_name(o->onnx, "%s_%s", o->layer->name, suffix);
	if (mu_onnx_find(o->onnx, array.name)) /* layers without parameters may share a name */
		array.name = mu_onnx_name(o->onnx, "%s_%s_%zu", o->layer->name, suffix,
					  o->onnx->n_arrays);
	memcpy(array.dims, dims, (size_t)ndims * sizeof *dims);
	mu_onnx_add_array(o->onnx, &array);
	return array.name;
}

const char *mu_onnx_number(struct onnx_layer *o, double value)
{
	char name[48];
	const float is = (float)value;
	struct onnx_array array = {.type = ONNX_FLOAT};
	float *data;

	snprintf(name, sizeof name, "number_%.9g", (double)is);
	if (mu_onnx_find(o->onnx, name))
		return mu_onnx_find(o->onnx, name);
	data = mu_onnx_room(o, 1);
	if (data)
		*data = is;
	array.data = data;
	array.name = mu_onnx_name(o->onnx, "%s", name);
	mu_onnx_add_array(o->onnx, &array);
	return array.name;
}

/* ndims 0: one number. */
static const char *whole(struct mu_onnx *onnx, const char *begin, const long *values, int n,
			 int ndims)
{
	char name[32 * ONNX_DIMS];
	size_t used = (size_t)snprintf(name, sizeof name, "%s", begin);
	struct onnx_array array = {.type = ONNX_INT64, .ndims = ndims, .dims = {(size_t)n}};
	int64_t *data;

	for (int i = 0; i < n && used < sizeof name; i++)
		used += (size_t)snprintf(name + used, sizeof name - used, "_%ld", values[i]);
	if (used < sizeof name && mu_onnx_find(onnx, name))
		return mu_onnx_find(onnx, name);
	data = mu_onnx_keep(onnx, (size_t)n * sizeof *data);
	for (int i = 0; i < n && data; i++)
		data[i] = values[i];
	array.data = data;
	array.name = used < sizeof name
			     ? mu_onnx_name(onnx, "%s", name)
			     : mu_onnx_name(onnx, "%s:%zu", begin, onnx->n_values++);
	mu_onnx_add_array(onnx, &array);
	return array.name;
}

const char *mu_onnx_whole(struct onnx_layer *o, const long *values, int n)
{
	return whole(o->onnx, "numbers", values, n, 1);
}

const char *mu_onnx_whole_scalar(struct onnx_layer *o, long value)
{
	return whole(o->onnx, "index", &value, 1, 0);
}

/* ---- parameters ---- */

/* Every parameter of a net is a slice of its plan. */
static size_t find_key(const struct onnx_source *from, const char *name)
{
	size_t k = 0;

	while (k + 1 < from->n && strcmp(from->slices[k].name, name) != 0)
		k++;
	return k;
}

/* A weight that is tied has the shape of the embedding's. */
const char *mu_onnx_param(struct onnx_layer *o, int i)
{
	const struct net_param *param = &o->layer->params[i];
	const struct onnx_source *from = &o->onnx->source;
	const size_t key = find_key(from, param->name);
	const struct mu_shape *shape = from->shape(from->plan, key);
	struct onnx_array array = {
		.name = param->name, .type = ONNX_FLOAT, .ndims = shape->ndims, .key = key};
	long dims[MU_MAX_DIMS];

	memcpy(array.dims, shape->dims, sizeof shape->dims);
	if (!mu_onnx_find(o->onnx, param->name))
		mu_onnx_add_array(o->onnx, &array);
	if (mu_shape_equal(shape, &param->shape))
		return param->name;
	for (int d = 0; d < param->shape.ndims; d++)
		dims[d] = (long)param->shape.dims[d];
	return mu_onnx_reshape(o, param->name, param->shape.ndims, dims);
}

const float *mu_onnx_values(struct onnx_layer *o, const struct net_layer *layer, int i)
{
	const struct onnx_source *from = &o->onnx->source;
	float *plain = mu_onnx_room(o, mu_shape_n(&layer->params[i].shape));

	if (plain && o->onnx->st == MU_OK)
		o->onnx->st = from->read(from->plan, find_key(from, layer->params[i].name),
					 from->weights, plain);
	return plain;
}

/* The factor of each channel that a batch-norm is, gamma / sqrt(var + eps); its mean and beta. */
struct norm {
	const float *gamma, *beta, *mean, *var;
	double eps;
};

static double scale_of(const struct norm *n, size_t c)
{
	return (n->gamma ? (double)n->gamma[c] : 1) / sqrt((double)n->var[c] + n->eps);
}

static void fold(struct onnx_layer *o, const char **weight, const char **bias)
{
	const struct mu_batch_norm *a = o->norm->attr;
	const struct mu_shape *shape = &o->layer->params[0].shape;
	const size_t filters = shape->dims[0], each = mu_shape_n(shape) / filters;
	const float *w = mu_onnx_values(o, o->layer, 0),
		    *b = o->layer->n_params > 1 ? mu_onnx_values(o, o->layer, 1) : NULL;
	const struct norm norm = {
		.gamma = a->fix_gamma ? NULL : mu_onnx_values(o, o->norm, 0),
		.beta = mu_onnx_values(o, o->norm, 1),
		.mean = mu_onnx_values(o, o->norm, 2),
		.var = mu_onnx_values(o, o->norm, 3),
		.eps = (double)a->eps,
	};
	float *scaled = mu_onnx_room(o, mu_shape_n(shape)), *shift = mu_onnx_room(o, filters);

	if (o->onnx->st != MU_OK)
		return;
	for (size_t f = 0; f < filters; f++) {
		const double scale = scale_of(&norm, f);

		for (size_t i = 0; i < each; i++)
			scaled[f * each + i] = (float)((double)w[f * each + i] * scale);
		shift[f] = (float)(((b ? (double)b[f] : 0) - (double)norm.mean[f]) * scale +
				   (double)norm.beta[f]);
	}
	*weight = mu_onnx_floats(o, "weight", scaled, shape->ndims, shape->dims);
	*bias = mu_onnx_floats(o, "bias", shift, 1, &filters);
}

void mu_onnx_weights(struct onnx_layer *o, const char **weight, const char **bias)
{
	*weight = "";
	*bias = NULL;
	if (o->norm) {
		fold(o, weight, bias);
		return;
	}
	*weight = mu_onnx_param(o, 0);
	if (o->layer->n_params > 1)
		*bias = mu_onnx_param(o, 1);
}
