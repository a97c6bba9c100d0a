/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of cuDNN's graph API: see dnn/graph.h. */
#include "device/cuda/dnn/graph.h"

#include <string.h>

#include <muster/base.h>

enum { MAX_CONFIGS = 64, MAX_NOTES = 16, FIRST_COMPUTED = 1000 };

/* ---- descriptors ---- */

void mu_dnn_graph(struct dnn_graph *g, const struct cuda_api *api, struct dnn_plan *plan)
{
	*plan = (struct dnn_plan){.plan = NULL};
	*g = (struct dnn_graph){.api = api, .plan = plan};
}

static void refuse(struct dnn_graph *g, const char *what, const char *why)
{
	enum mu_status st = MU_OK;

	if (g->st == MU_OK)
		MU_FAIL(MU_ERR_DEVICE, "cuDNN's graph API, %s: %s", what, why);
	return;
out:
	g->st = st;
}

static void check(struct dnn_graph *g, cudnnStatus_t result, const char *what)
{
	if (result != CUDNN_STATUS_SUCCESS)
		refuse(g, what, g->api->cudnnGetErrorString(result));
}

dnn_part mu_dnn_begin(struct dnn_graph *g, cudnnBackendDescriptorType_t kind)
{
	enum { MOST = sizeof g->plan->parts / sizeof *g->plan->parts };
	dnn_part out = NULL;

	if (g->plan->n_parts == MOST)
		refuse(g, "a descriptor", "too many");
	if (g->st != MU_OK)
		return NULL;
	check(g, g->api->cudnnBackendCreateDescriptor(kind, &out), "a descriptor");
	if (out)
		g->plan->parts[g->plan->n_parts++] = out;
	return out;
}

void mu_dnn_set(struct dnn_graph *g, dnn_part d, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
	if (g->st == MU_OK)
		check(g, g->api->cudnnBackendSetAttribute(d, name, type, n, values), "a setting");
}

void mu_dnn_set_part(struct dnn_graph *g, dnn_part d, cudnnBackendAttributeName_t name,
		     dnn_part value)
{
	mu_dnn_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void mu_dnn_end(struct dnn_graph *g, dnn_part d, const char *what)
{
	if (g->st == MU_OK)
		check(g, g->api->cudnnBackendFinalize(d), what);
}

void mu_dnn_add_op(struct dnn_graph *g, dnn_part op, const char *what)
{
	if (g->n_ops == sizeof g->ops / sizeof *g->ops)
		refuse(g, what, "too many operations");
	mu_dnn_end(g, op, what);
	if (g->st == MU_OK)
		g->ops[g->n_ops++] = op;
}

/* cuDNN's numbers of tensors: those of arrays from 1 on. */
dnn_part mu_dnn_tensor(struct dnn_graph *g, const struct dnn_tensor *t)
{
	const bool computed = t->number == DNN_COMPUTED;
	const int64_t alignment = 16;
	const int64_t number = computed ? FIRST_COMPUTED + g->n_computed++ : t->number + 1;
	dnn_part d = mu_dnn_begin(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
	mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->ndims, t->sizes);
	mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->ndims, t->strides);
	mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
	mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &computed);
	if (t->by_value)
		mu_dnn_set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1,
			   &t->by_value);
	mu_dnn_end(g, d, "a tensor");
	return d;
}

void mu_dnn_pointwise(struct dnn_graph *g, const struct dnn_pointwise *p)
{
	const cudnnDataType_t precision = p->of_truth ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
	const int64_t axis = p->axis;
	dnn_part how = mu_dnn_begin(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op;

	mu_dnn_set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p->mode);
	mu_dnn_set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
		mu_dnn_set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
	mu_dnn_end(g, how, "a pointwise operation");
	op = mu_dnn_begin(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x);
	if (p->b)
		mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b);
	if (p->t)
		mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t);
	mu_dnn_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->y);
	mu_dnn_add_op(g, op, "a pointwise operation");
}

/* ---- choice ---- */

/* The engine of a configuration: whether it is fit, its number, whether it uses tensor cores. */
static bool is_fit(const struct cuda_api *api, const struct dnn_wish *wish, dnn_part config,
		   struct dnn_plan *out)
{
	cudnnBackendNumericalNote_t notes[MAX_NOTES];
	int64_t n = 0, count;
	dnn_part engine = NULL;
	bool fit = false;

	if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
	    CUDNN_STATUS_SUCCESS)
		return false;
	if (api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
					  &engine) != CUDNN_STATUS_SUCCESS ||
	    api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
					  1, &count, &out->engine) != CUDNN_STATUS_SUCCESS ||
	    api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
					  CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &n,
					  notes) != CUDNN_STATUS_SUCCESS)
		goto out;
	fit = true;
	out->tensor_cores = false;
	for (int64_t i = 0; i < n; i++)
		switch (notes[i]) {
		case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
			out->tensor_cores = true;
			fit = fit && (wish->type != CUDNN_DATA_FLOAT || wish->allow_tf32);
			break;
		case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP: break;
		default: fit = false;
		}
out:
	api->cudnnBackendDestroyDescriptor(engine);
	return fit;
}

/* A plan of this configuration: true if cuDNN makes it within the limit. */
static bool finish(const struct cuda_api *api, const struct dnn_target *target, dnn_part config,
		   int64_t most_bytes, struct dnn_plan *out)
{
	int64_t count;
	dnn_part plan = NULL;

	if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
	    CUDNN_STATUS_SUCCESS)
		return false;
	if (api->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
					  &config) == CUDNN_STATUS_SUCCESS &&
	    (target->handle ? api->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
							    CUDNN_TYPE_HANDLE, 1, &target->handle)
			    : api->cudnnBackendSetAttribute(
				      plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
				      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->properties)) ==
		    CUDNN_STATUS_SUCCESS &&
	    api->cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS &&
	    api->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
					  CUDNN_TYPE_INT64, 1, &count,
					  &out->nbytes) == CUDNN_STATUS_SUCCESS &&
	    out->nbytes <= most_bytes) {
		out->plan = plan;
		return true;
	}
	api->cudnnBackendDestroyDescriptor(plan);
	return false;
}

/* The configuration that is wanted, if it is in this list of cuDNN's. An empty list is no error.
 * n_fit: engines so far. */
static void choose(struct dnn_graph *g, const struct dnn_target *target,
		   const struct dnn_wish *wish, dnn_part graph, cudnnBackendHeurMode_t mode,
		   int *n_fit)
{
	dnn_part list = mu_dnn_begin(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	dnn_part configs[MAX_CONFIGS] = {NULL};
	const struct cuda_api *api = g->api;
	int64_t n = 0;

	mu_dnn_set_part(g, list, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	mu_dnn_set(g, list, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (!target->handle)
		mu_dnn_set_part(g, list, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->properties);
	if (g->st != MU_OK || api->cudnnBackendFinalize(list) != CUDNN_STATUS_SUCCESS)
		return;
	for (int i = 0; i < MAX_CONFIGS; i++)
		if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
						      &configs[i]) != CUDNN_STATUS_SUCCESS)
			goto out;
	if (api->cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, &n,
					  configs) != CUDNN_STATUS_SUCCESS)
		goto out;
	for (int64_t i = 0; i < n && !g->plan->plan; i++)
		if (is_fit(api, wish, configs[i], g->plan) &&
		    (wish->engine == DNN_FIRST || wish->engine == (*n_fit)++))
			finish(api, target, configs[i], wish->most_bytes, g->plan);
out:
	for (int i = 0; i < MAX_CONFIGS && configs[i]; i++)
		api->cudnnBackendDestroyDescriptor(configs[i]);
}

/* ---- the calls ---- */

enum mu_status mu_dnn_properties(const struct cuda_api *api, const char *json, dnn_part *out)
{
	struct dnn_plan none;
	struct dnn_graph g;

	mu_dnn_graph(&g, api, &none);
	*out = mu_dnn_begin(&g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	mu_dnn_set(&g, *out, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
		   (int64_t)strlen(json) + 1, json);
	mu_dnn_end(&g, *out, "properties of a GPU");
	if (g.st != MU_OK) {
		mu_dnn_release(api, &none);
		*out = NULL;
	}
	return g.st;
}

enum mu_status mu_dnn_finish(struct dnn_graph *g, const struct dnn_target *target,
			     const struct dnn_wish *wish)
{
	dnn_part graph = mu_dnn_begin(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	int n_fit = 0;

	mu_dnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops,
		   g->ops);
	if (target->handle)
		mu_dnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
			   &target->handle);
	/* A graph that cuDNN does not know is none that it can plan. */
	if (g->st == MU_OK && g->api->cudnnBackendFinalize(graph) == CUDNN_STATUS_SUCCESS) {
		choose(g, target, wish, graph, CUDNN_HEUR_MODE_A, &n_fit);
		if (!g->plan->plan)
			choose(g, target, wish, graph, CUDNN_HEUR_MODE_FALLBACK, &n_fit);
	}
	if (g->st != MU_OK)
		mu_dnn_release(g->api, g->plan);
	return g->st;
}

struct dnn_plan mu_dnn_lend(const struct dnn_plan *from)
{
	return (struct dnn_plan){.plan = from->plan,
				 .engine = from->engine,
				 .nbytes = from->nbytes,
				 .tensor_cores = from->tensor_cores,
				 .lent = true};
}

void mu_dnn_release(const struct cuda_api *api, struct dnn_plan *plan)
{
	if (plan->pack)
		api->cudnnBackendDestroyDescriptor(plan->pack);
	if (plan->plan && !plan->lent)
		api->cudnnBackendDestroyDescriptor(plan->plan);
	while (plan->n_parts > 0)
		api->cudnnBackendDestroyDescriptor(plan->parts[--plan->n_parts]);
	*plan = (struct dnn_plan){.plan = NULL};
}
