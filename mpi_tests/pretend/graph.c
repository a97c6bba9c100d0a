/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph API of the pretended cuDNN, for convolutions alone, forward and backward, and forward
 * in one kernel with sums of the output, but where PRETEND_NO_FUSION is set; and for products,
 * reductions and pointwise operations in half precision (program.c), of at most
 * PRETEND_MOST_SAMPLES samples: any other graph has no plan. Each descriptor is a table of
 * attributes. Who sets one that its kind does not have, another type or number of values, or any
 * after it was finished, forgets one, or passes arrays that are not aligned as promised or not on
 * the GPU, is told. Of the engines offered only the last two are deterministic and direct.
 */
#include "parts.h"

/* The first fit one; bytes of its scratch, of the next one's twice as many. */
enum { N_ENGINES = 4, FIT = 2, SCRATCH = 640 };

/* Attributes that may be set: how many values; fewest 0: not needed. */
static const struct rule {
	cudnnBackendDescriptorType_t kind;
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t fewest, most;
} rules[] = {
#define PART CUDNN_TYPE_BACKEND_DESCRIPTOR
#define RULE(kind, name, type, fewest, most) \
	{CUDNN_BACKEND_##kind##_DESCRIPTOR, CUDNN_ATTR_##name, type, fewest, most}
	RULE(TENSOR, TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1),
	RULE(TENSOR, TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 5),
	RULE(TENSOR, TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 5),
	RULE(TENSOR, TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1),
	RULE(TENSOR, TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1),
	RULE(TENSOR, TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 0, 1),
	RULE(TENSOR, TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 0, 1),
	RULE(MATMUL, MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1),
	RULE(OPERATION_MATMUL, OPERATION_MATMUL_DESC, PART, 1, 1),
	RULE(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, PART, 1, 1),
	RULE(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, PART, 1, 1),
	RULE(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, PART, 1, 1),
	RULE(REDUCTION, REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1),
	RULE(REDUCTION, REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1),
	RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, PART, 1, 1),
	RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, PART, 1, 1),
	RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, PART, 1, 1),
	RULE(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, PART, 1, 1),
	RULE(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, PART, 1, 1),
	RULE(POINTWISE, POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1),
	RULE(POINTWISE, POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1),
	RULE(POINTWISE, POINTWISE_AXIS, CUDNN_TYPE_INT64, 0, 1),
	RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, PART, 1, 1),
	RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, PART, 1, 1),
	RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, PART, 0, 1),
	RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, PART, 0, 1),
	RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, PART, 1, 1),
	RULE(CONVOLUTION, CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1),
	RULE(CONVOLUTION, CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1),
	RULE(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1),
	RULE(CONVOLUTION, CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 3),
	RULE(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 3),
	RULE(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 3),
	RULE(CONVOLUTION, CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 3),
#define CONVOLUTION(kind, phase, x, w, y) \
	RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##phase##_CONV_DESC, PART, 1, 1), \
		RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##phase##_##x, PART, 1, \
		     1), \
		RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##phase##_##w, PART, 1, \
		     1), \
		RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##phase##_##y, PART, 1, \
		     1), \
		RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##phase##_ALPHA, \
		     CUDNN_TYPE_FLOAT, 1, 1), \
		RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##phase##_BETA, \
		     CUDNN_TYPE_FLOAT, 1, 1)
	CONVOLUTION(FORWARD, FORWARD, X, W, Y),
	CONVOLUTION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
	CONVOLUTION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
	RULE(OPERATION_GEN_STATS, OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, 1),
	RULE(OPERATION_GEN_STATS, OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1),
	RULE(OPERATION_GEN_STATS, OPERATION_GENSTATS_XDESC, PART, 1, 1),
	RULE(OPERATION_GEN_STATS, OPERATION_GENSTATS_SUMDESC, PART, 1, 1),
	RULE(OPERATION_GEN_STATS, OPERATION_GENSTATS_SQSUMDESC, PART, 1, 1),
	RULE(OPERATIONGRAPH, OPERATIONGRAPH_OPS, PART, 1, PRETEND_STEPS),
	RULE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1),
	RULE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, PART, 1, 1),
	RULE(ENGINEHEUR, ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1),
	RULE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, PART, 1, 1),
	RULE(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1),
	RULE(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, MAX_ARRAYS),
	RULE(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, MAX_ARRAYS),
	RULE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1),
};
enum { N_RULES = sizeof rules / sizeof *rules };

/* ---- descriptors ---- */

static size_t bytes_of(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_INT64: return sizeof(int64_t);
	case CUDNN_TYPE_FLOAT: return sizeof(float);
	case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
	default: return sizeof(int); /* an enum */
	}
}

/* Kinds without rules: of other graphs, and those that cuDNN fills in. */
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
					   cudnnBackendDescriptor_t *out)
{
	struct part *p = calloc(1, sizeof *p);

	p->kind = kind;
	*out = p;
	return 0;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
	NEED(d);
	free(((struct part *)d)->program);
	free(d);
	return 0;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t n, const void *v)
{
	struct part *p = d;
	const struct rule *r = rules;
	int known = 0;

	for (int i = 0; i < N_RULES; i++)
		known |= rules[i].kind == p->kind;
	if (!known)
		return 0; /* of a graph that has no plan */
	while (r < rules + N_RULES && (r->kind != p->kind || r->name != name))
		r++;
	NEED(r < rules + N_RULES && r->type == type && n >= r->fewest && n <= r->most);
	NEED(!p->finished && p->n_set < MAX_SET && !find(p, name));
	NEED((size_t)n * bytes_of(type) <= MAX_VALUES);
	p->set[p->n_set] = (struct attribute){.name = name, .n = n};
	memcpy(p->set[p->n_set++].v.bytes, v, (size_t)n * bytes_of(type));
	for (int64_t i = 0; type == PART && i < n; i++) {
		const struct part *other = ((struct part *const *)v)[i];

		NEED(other && other->finished);
	}
	return 0;
}

/* ---- plans ---- */

/* A tensor of a plan, float32 plain, the others and sums with channels last. */
static void keep_tensor(struct part *plan, int i, const struct part *t, struct pretend_tensor *to)
{
	const int64_t *n = numbers_of(t, CUDNN_ATTR_TENSOR_DIMENSIONS);
	const int64_t *strides = numbers_of(t, CUDNN_ATTR_TENSOR_STRIDES);
	const cudnnDataType_t type = word_of(t, CUDNN_ATTR_TENSOR_DATA_TYPE);
	const int n_dims = (int)find(t, CUDNN_ATTR_TENSOR_DIMENSIONS)->n;
	const int plain = to && type == CUDNN_DATA_FLOAT;
	int64_t step = plain ? 1 : n[1];

	NEED(find(t, CUDNN_ATTR_TENSOR_STRIDES)->n == n_dims);
	for (int d = n_dims - 1; d > 1; step *= n[d--])
		NEED(strides[d] == step);
	NEED(strides[1] == (plain ? step : 1));
	step *= plain ? n[1] : 1;
	NEED(strides[0] == step);
	plan->numbers[i] = *numbers_of(t, CUDNN_ATTR_TENSOR_UNIQUE_ID);
	plan->alignment[i] = *numbers_of(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
	plan->nbytes[i] = n[0] * step * (type == CUDNN_DATA_FLOAT ? 4 : 2);
	for (int k = 0; k < i; k++)
		NEED(plan->numbers[k] != plan->numbers[i]);
	if (to)
		to->like = (struct cudnnTensorStruct){
			plain ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC,
			type,
			{(int)n[0], (int)n[1], (int)n[n_dims - 2], (int)n[n_dims - 1],
			 n_dims > 4 ? (int)n[2] : 1},
			.n_dims = n_dims};
}

static int out_size(const struct pretend_convolution *k, int i)
{
	const struct cudnnConvolutionStruct *s = &k->shape;
	const int window = s->dilation[i] * (k->w.like.n[2 + i] - 1) + 1;

	return (k->x.like.n[2 + i] + 2 * s->pad[i] - window) / s->stride[i] + 1;
}

/* In one kernel with sums, what cuDNN 9.19 plans on Hopper: float16, channels and filters in
 * eights. */
static int sums_are_supported(const struct pretend_convolution *k)
{
	return k->x.like.type == CUDNN_DATA_HALF && k->x.like.n[1] % 8 == 0 &&
	       k->y.like.n[1] % 8 == 0 && k->shape.groups == 1 && !getenv("PRETEND_NO_FUSION");
}

/* The three kinds of convolutions. */
static const struct phase {
	cudnnBackendDescriptorType_t kind;
	int out;
	cudnnBackendAttributeName_t x, w, y, shape, alpha, beta;
} phases[] = {
#define PHASE(kind, out, phase, x, w, y) \
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, \
	 out, \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##phase##_##x, \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##phase##_##w, \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##phase##_##y, \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##phase##_CONV_DESC, \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##phase##_ALPHA, \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##phase##_BETA}
	PHASE(FORWARD, PRETEND_OUT_Y, FORWARD, X, W, Y),
	PHASE(BACKWARD_DATA, PRETEND_OUT_X, BWD_DATA, DX, W, DY),
	PHASE(BACKWARD_FILTER, PRETEND_OUT_W, BWD_FILTER, X, DW, DY),
};
enum { N_PHASES = sizeof phases / sizeof *phases };

static float factor_of(const struct part *op, cudnnBackendAttributeName_t name)
{
	float factor;

	memcpy(&factor, find(op, name)->v.bytes, sizeof factor);
	return factor;
}

static void keep_sums(struct part *plan, const struct part *stats, const struct part *y)
{
	NEED(part_of(stats, CUDNN_ATTR_OPERATION_GENSTATS_XDESC) == y);
	NEED(word_of(stats, CUDNN_ATTR_OPERATION_GENSTATS_MODE) == CUDNN_GENSTATS_SUM_SQSUM);
	keep_tensor(plan, 3, part_of(stats, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC), NULL);
	keep_tensor(plan, 4, part_of(stats, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC), NULL);
	NEED(plan->nbytes[3] == 4 * plan->work.y.like.n[1] && plan->nbytes[4] == plan->nbytes[3]);
	plan->n_arrays = 5;
}

/* Height, width, depth. */
static void keep_window(struct pretend_convolution *k, const struct part *shape)
{
	const int axes = k->x.like.n_dims - 2;

	NEED(*numbers_of(shape, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == axes);
	NEED(find(shape, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->n == axes &&
	     find(shape, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->n == axes &&
	     find(shape, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->n == axes &&
	     find(shape, CUDNN_ATTR_CONVOLUTION_DILATIONS)->n == axes);
	k->shape.stride[2] = k->shape.dilation[2] = 1;
	for (int from = 0; from < axes; from++) {
		const int i = (from + 5 - axes) % 3;

		k->shape.pad[i] = (int)numbers_of(shape, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)[from];
		k->shape.stride[i] =
			(int)numbers_of(shape, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)[from];
		k->shape.dilation[i] =
			(int)numbers_of(shape, CUDNN_ATTR_CONVOLUTION_DILATIONS)[from];
	}
	for (int i = 0; i < 3; i++)
		NEED(k->y.like.n[2 + i] == out_size(k, i));
}

/* A convolution, forward also with sums of its output behind it, or a program. */
static int compile(struct part *plan, const struct part *graph)
{
	const struct attribute *ops = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	const struct part *op = ops->v.pointers[0], *last = ops->v.pointers[ops->n - 1];
	const struct part *y;
	const struct phase *p = phases;
	struct pretend_convolution *k = &plan->work;

	while (p < phases + N_PHASES && p->kind != op->kind)
		p++;
	if (p == phases + N_PHASES)
		return pretend_compile_program(plan, ops);
	if (ops->n > 2 ||
	    (ops->n == 2 && (p->out != PRETEND_OUT_Y ||
			     last->kind != CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR)))
		return 0;
	NEED(factor_of(op, p->alpha) == 1 && factor_of(op, p->beta) == 0);
	y = part_of(op, p->y);
	plan->n_arrays = 3;
	keep_tensor(plan, 0, part_of(op, p->x), &k->x);
	keep_tensor(plan, 1, part_of(op, p->w), &k->w);
	keep_tensor(plan, 2, y, &k->y);
	if (ops->n == 2)
		keep_sums(plan, last, y);
	k->shape.groups = k->x.like.n[1] / k->w.like.n[1];
	keep_window(k, part_of(op, p->shape));
	NEED(k->x.like.n[0] == k->y.like.n[0] && k->w.like.n[0] == k->y.like.n[1]);
	k->out = p->out;
	return ops->n == 1 || sums_are_supported(k);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
	struct part *p = d, *config, room = {0};
	int known;

	NEED(!p->finished);
	for (int i = 0; i < N_RULES; i++)
		NEED(rules[i].kind != p->kind || rules[i].fewest == 0 || find(p, rules[i].name));
	p->finished = 1;
	switch (p->kind) {
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		known = compile(&room, p);
		free(room.program);
		return known ? 0 : CUDNN_STATUS_NOT_SUPPORTED;
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
		p->graph = part_of(p, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
		return 0;
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
		config = part_of(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
		NEED(config->graph && config->engine >= FIT);
		p->engine = config->engine;
		p->handle = find(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)->v.pointers[0];
		return compile(p, config->graph) ? 0 : CUDNN_STATUS_NOT_SUPPORTED;
	case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		NEED(find(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->n ==
		     find(p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->n);
		return 0;
	default: return 0;
	}
}

/* ---- answers ---- */

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d,
				       cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t most, int64_t *n,
				       void *v)
{
	static const cudnnBackendNumericalNote_t notes[N_ENGINES][2] = {
		{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
		{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_WINOGRAD},
		{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP},
		{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, CUDNN_NUMERICAL_NOTE_TENSOR_CORE}};
	const struct part *p = d;
	struct part *to;

	NEED(p->finished);
	*n = 1;
	switch (name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		NEED(type == PART && most >= N_ENGINES);
		*n = N_ENGINES;
		break;
	case CUDNN_ATTR_ENGINECFG_ENGINE: NEED(type == PART && most == 1); break;
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
		NEED(type == CUDNN_TYPE_INT64 && most == 1);
		*(int64_t *)v = p->engine;
		return 0;
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
		NEED(type == CUDNN_TYPE_NUMERICAL_NOTE && most >= 2);
		*n = 2;
		memcpy(v, notes[p->engine], sizeof notes[p->engine]);
		return 0;
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		NEED(type == CUDNN_TYPE_INT64 && most == 1);
		*(int64_t *)v = SCRATCH * (p->engine - FIT + 1);
		return 0;
	default: NEED(!"an attribute that can be read");
	}
	for (int i = 0; i < *n; i++) {
		to = ((struct part **)v)[i];
		NEED(to->kind == (name == CUDNN_ATTR_ENGINEHEUR_RESULTS
					  ? CUDNN_BACKEND_ENGINECFG_DESCRIPTOR
					  : CUDNN_BACKEND_ENGINE_DESCRIPTOR));
		to->graph = p->graph;
		to->engine = name == CUDNN_ATTR_ENGINEHEUR_RESULTS ? i : p->engine;
		to->finished = 1;
	}
	return 0;
}

/* ---- work ---- */

/* Array i of the plan, which is on the GPU and aligned, or on the host. */
static void *array_of(const struct part *plan, const struct part *pack, int i, int on_host)
{
	const struct attribute *numbers = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	const struct attribute *arrays = find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
	int device = -1, k = 0;

	while (k < numbers->n && ((const int64_t *)numbers->v.bytes)[k] != plan->numbers[i])
		k++;
	NEED(k < numbers->n);
	if (on_host)
		return arrays->v.pointers[k];
	NEED((uintptr_t)arrays->v.pointers[k] % (uintptr_t)plan->alignment[i] == 0);
	NEED(pretend_is_on_gpu(arrays->v.pointers[k], (size_t)plan->nbytes[i], &device));
	NEED(device == pretend_device());
	return arrays->v.pointers[k];
}

static cudnnStatus_t execute_program(cudnnHandle_t h, const struct part *plan,
				     const struct part *pack, void *room, size_t nbytes)
{
	const struct pretend_program *p = plan->program;
	void *arrays[PRETEND_TENSORS] = {NULL};
	int i = 0;

	for (int v = 0; v < p->n_values; v++)
		if (!p->values[v].computed)
			arrays[v] = array_of(plan, pack, i++, p->values[v].by_value);
	return pretend_put_program(h, p, arrays, room, nbytes);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan_of,
				  cudnnBackendDescriptor_t pack_of)
{
	const struct part *plan = plan_of, *pack = pack_of;
	const size_t scratch = (size_t)(SCRATCH * (plan->engine - FIT + 1));
	struct pretend_convolution k = plan->work;
	void *room;
	int device = -1;

	NEED(plan->finished && plan->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	NEED(pack->finished && pack->kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	NEED(plan->handle == h);
	NEED(find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->n == plan->n_arrays);
	room = find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->v.pointers[0];
	NEED(pretend_is_on_gpu(room, scratch, &device) && device == pretend_device());
	if (plan->program)
		return execute_program(h, plan, pack, room, scratch);
	k.x.data = array_of(plan, pack, 0, 0);
	k.w.data = array_of(plan, pack, 1, 0);
	k.y.data = array_of(plan, pack, 2, 0);
	for (int i = 3; i < plan->n_arrays; i++)
		k.sums[i - 3] = array_of(plan, pack, i, 0);
	return pretend_put_convolution(h, &k, room, scratch);
}
