/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the pretended cuDNN that are no convolutions, step by step, by their definition. */
#include "parts.h"

static int type_of(const struct pretend_value *v)
{
	switch (v->type) {
	case CUDNN_DATA_HALF: return CUDA_FLOAT16;
	case CUDNN_DATA_BFLOAT16: return CUDA_BFLOAT16;
	default: return CUDA_FLOAT32;
	}
}

int64_t pretend_numbers_in(const struct pretend_value *v)
{
	return v->sizes[0] * v->sizes[1] * v->sizes[2] * v->sizes[3];
}

size_t pretend_nbytes(const struct pretend_value *v)
{
	int64_t last = 0;

	for (int k = 0; k < 4; k++)
		last += (v->sizes[k] - 1) * v->strides[k];
	return (size_t)(last + 1) * (v->type == CUDNN_DATA_FLOAT ? 4 : 2);
}

/* Element i, the last index fastest. */
struct index {
	int64_t at[4];
};

static struct index index_of(const struct pretend_value *v, int64_t i)
{
	struct index x;

	for (int k = 3; k >= 0; k--) {
		x.at[k] = i % v->sizes[k];
		i /= v->sizes[k];
	}
	return x;
}

/* Its place in a value of other sizes. */
static int64_t place_in(const struct pretend_value *v, const struct pretend_value *of,
			const struct index *x)
{
	int64_t place = 0;

	for (int k = 0; k < 4; k++)
		place = place * v->sizes[k] + x->at[k] * v->sizes[k] / of->sizes[k];
	return place;
}

static size_t in_memory(const struct pretend_value *v, int64_t i)
{
	const struct index x = index_of(v, i);
	int64_t at = 0;

	for (int k = 0; k < 4; k++)
		at += x.at[k] * v->strides[k];
	return (size_t)at;
}

/* A number as its type holds it. */
static double rounded(const struct pretend_value *v, double number)
{
	float room;

	if (v->type == CUDNN_DATA_INT32 || v->type == CUDNN_DATA_BOOLEAN)
		return number;
	set_number(&room, type_of(v), 0, (float)number);
	return (double)number_at(&room, type_of(v), 0);
}

/* ---- from descriptors ---- */

static int flag_of(const struct part *p, cudnnBackendAttributeName_t name)
{
	const struct attribute *a = find(p, name);

	return a && a->v.bytes[0];
}

/* The value that this part describes; -1 for none. */
static int value_of_part(struct pretend_program *p, const struct part *t)
{
	struct pretend_value *v = p->values;

	if (!t)
		return -1;
	while (v < p->values + p->n_values && v->part != t)
		v++;
	if (v == p->values + p->n_values) {
		NEED(p->n_values++ < PRETEND_TENSORS);
		*v = (struct pretend_value){
			.part = t,
			.type = word_of(t, CUDNN_ATTR_TENSOR_DATA_TYPE),
			.computed = flag_of(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
			.by_value = flag_of(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE),
			.number = *numbers_of(t, CUDNN_ATTR_TENSOR_UNIQUE_ID),
			.alignment = *numbers_of(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)};
		memcpy(v->sizes, numbers_of(t, CUDNN_ATTR_TENSOR_DIMENSIONS), sizeof v->sizes);
		memcpy(v->strides, numbers_of(t, CUDNN_ATTR_TENSOR_STRIDES), sizeof v->strides);
		for (const struct pretend_value *w = p->values; w < v; w++)
			NEED(w->number != v->number);
	}
	return (int)(v - p->values);
}

static struct part *part_or_none(const struct part *op, cudnnBackendAttributeName_t name)
{
	return find(op, name) ? part_of(op, name) : NULL;
}

/* 0: it is no step of a program. */
static int add_step(struct pretend_program *p, const struct part *op)
{
	static const struct names {
		cudnnBackendDescriptorType_t kind;
		cudnnBackendAttributeName_t how, mode, x, b, t, y;
	} kinds[] = {
#define OP(kind) CUDNN_BACKEND_OPERATION_##kind##_DESCRIPTOR
#define OF(kind, name) CUDNN_ATTR_OPERATION_##kind##_##name
		{OP(MATMUL), OF(MATMUL, DESC), CUDNN_ATTR_MATMUL_COMP_TYPE, OF(MATMUL, ADESC),
		 OF(MATMUL, BDESC), OF(MATMUL, BDESC), OF(MATMUL, CDESC)},
		{OP(REDUCTION), OF(REDUCTION, DESC), CUDNN_ATTR_REDUCTION_OPERATOR,
		 OF(REDUCTION, XDESC), OF(REDUCTION, XDESC), OF(REDUCTION, XDESC),
		 OF(REDUCTION, YDESC)},
		{OP(RESHAPE), OF(RESHAPE, XDESC), CUDNN_ATTR_TENSOR_DATA_TYPE, OF(RESHAPE, XDESC),
		 OF(RESHAPE, XDESC), OF(RESHAPE, XDESC), OF(RESHAPE, YDESC)},
		{OP(POINTWISE), OF(POINTWISE, PW_DESCRIPTOR), CUDNN_ATTR_POINTWISE_MODE,
		 OF(POINTWISE, XDESC), OF(POINTWISE, BDESC), OF(POINTWISE, TDESC),
		 OF(POINTWISE, YDESC)},
	};
	const struct names *k = kinds;
	struct pretend_step *s = &p->steps[p->n_steps];
	const struct part *how;

	while (k < kinds + sizeof kinds / sizeof *kinds && k->kind != op->kind)
		k++;
	if (k == kinds + sizeof kinds / sizeof *kinds)
		return 0;
	how = part_of(op, k->how);
	*s = (struct pretend_step){.kind = op->kind,
				   .how = word_of(how, k->mode),
				   .x = value_of_part(p, part_of(op, k->x)),
				   .b = value_of_part(p, part_or_none(op, k->b)),
				   .t = value_of_part(p, part_or_none(op, k->t)),
				   .y = value_of_part(p, part_of(op, k->y))};
	if (find(how, CUDNN_ATTR_POINTWISE_AXIS))
		s->axis = (int)*numbers_of(how, CUDNN_ATTR_POINTWISE_AXIS);
	p->n_steps++;
	return 1;
}

/* All that is computed has been made before it is read. */
static void check_order(const struct pretend_program *p)
{
	int made[PRETEND_TENSORS] = {0};

	for (const struct pretend_step *s = p->steps; s < p->steps + p->n_steps; s++) {
		const int read[] = {s->x, s->b, s->t};

		for (int i = 0; i < 3; i++)
			NEED(read[i] < 0 || made[read[i]] || !p->values[read[i]].computed);
		NEED(!made[s->y] && !p->values[s->y].by_value);
		made[s->y] = 1;
	}
}

int pretend_compile_program(struct part *plan, const struct attribute *ops)
{
	struct pretend_program *p = calloc(1, sizeof *p);

	plan->program = p;
	plan->n_arrays = 0;
	for (int64_t i = 0; i < ops->n; i++)
		if (!add_step(p, ops->v.pointers[i]))
			return 0;
	check_order(p);
	for (int i = 0; i < p->n_values; i++) {
		if (p->values[i].computed)
			continue;
		NEED(plan->n_arrays < MAX_ARRAYS);
		plan->numbers[plan->n_arrays] = p->values[i].number;
		plan->alignment[plan->n_arrays] = p->values[i].alignment;
		plan->nbytes[plan->n_arrays++] = (int64_t)pretend_nbytes(&p->values[i]);
	}
	return p->values[p->steps[0].x].type != CUDNN_DATA_FLOAT &&
	       p->values[0].sizes[0] <= pretend_setting("PRETEND_MOST_SAMPLES", 1 << 30);
}

/* ---- steps: data by values ---- */

static void multiply(const struct pretend_program *p, const struct pretend_step *s, double **data)
{
	const struct pretend_value *a = &p->values[s->x], *b = &p->values[s->b];
	const struct pretend_value *c = &p->values[s->y];

	NEED(a->sizes[3] == b->sizes[2] && c->sizes[2] == a->sizes[2]);
	NEED(c->sizes[3] == b->sizes[3] && c->sizes[1] == a->sizes[1]);
	for (int64_t i = 0; i < pretend_numbers_in(c); i++) {
		const struct index x = index_of(c, i);
		const int64_t of_a = (x.at[0] * a->sizes[1] + x.at[1]) * a->sizes[2] + x.at[2];
		const int64_t of_b = x.at[0] * b->sizes[1] + x.at[1] * b->sizes[1] / c->sizes[1];
		double sum = 0;

		for (int64_t k = 0; k < a->sizes[3]; k++)
			sum += data[s->x][of_a * a->sizes[3] + k] *
			       data[s->b][(of_b * b->sizes[2] + k) * b->sizes[3] + x.at[3]];
		data[s->y][i] = sum;
	}
}

static void reduce(const struct pretend_program *p, const struct pretend_step *s, double **data)
{
	const struct pretend_value *x = &p->values[s->x], *y = &p->values[s->y];
	const int most = s->how == CUDNN_REDUCE_TENSOR_MAX;

	NEED(most || s->how == CUDNN_REDUCE_TENSOR_ADD);
	for (int64_t i = 0; i < pretend_numbers_in(y); i++)
		data[s->y][i] = most ? -INFINITY : 0;
	for (int64_t i = 0; i < pretend_numbers_in(x); i++) {
		const struct index at = index_of(x, i);
		double *to = data[s->y] + place_in(y, x, &at);

		*to = most ? fmax(*to, data[s->x][i]) : *to + data[s->x][i];
	}
}

/* The same memory, seen with rows as columns. */
static void turn(const struct pretend_program *p, const struct pretend_step *s, double **data)
{
	const struct pretend_value *x = &p->values[s->x], *y = &p->values[s->y];
	const int64_t rows = y->sizes[2], columns = y->sizes[3];

	for (int k = 0; k < 4; k++) {
		const int from = k < 2 ? k : 5 - k;

		NEED(x->sizes[from] == y->sizes[k] && x->strides[from] == y->strides[k]);
	}
	for (int64_t i = 0; i < pretend_numbers_in(y); i++) {
		const int64_t matrix = i / (rows * columns), at = i % (rows * columns);

		data[s->y][i] = data[s->x][(matrix * columns + at % columns) * rows + at / columns];
	}
}

static double result_of(int mode, double x, double b, double t)
{
	switch (mode) {
	case CUDNN_POINTWISE_ADD: return x + b;
	case CUDNN_POINTWISE_SUB: return x - b;
	case CUDNN_POINTWISE_MUL: return x * b;
	case CUDNN_POINTWISE_DIV: return x / b;
	case CUDNN_POINTWISE_EXP: return exp(x);
	case CUDNN_POINTWISE_LOG: return log(x);
	case CUDNN_POINTWISE_CMP_GE: return x >= b;
	case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
	default: NEED(!"a mode that is known");
	}
}

static void put(const struct pretend_program *p, const struct pretend_step *s, double **data)
{
	const struct pretend_value *y = &p->values[s->y];
	const int others[] = {s->x, s->b, s->t};

	for (int64_t i = 0; i < pretend_numbers_in(y); i++) {
		const struct index at = index_of(y, i);
		double of[3] = {0};

		for (int k = 0; k < 3; k++)
			if (others[k] >= 0)
				of[k] = data[others[k]][place_in(&p->values[others[k]], y, &at)];
		data[s->y][i] = s->how == CUDNN_POINTWISE_GEN_INDEX
					? (double)at.at[s->axis]
					: result_of(s->how, of[0], of[1], of[2]);
	}
}

/* ---- the program ---- */

struct run {
	const struct pretend_program *program;
	void *arrays[PRETEND_TENSORS]; /* by values */
	float numbers[PRETEND_TENSORS];
};

static int is_made(const struct pretend_program *p, int value)
{
	for (int i = 0; i < p->n_steps; i++)
		if (p->steps[i].y == value)
			return 1;
	return 0;
}

static void load(const struct run *r, int i, double *data)
{
	const struct pretend_value *v = &r->program->values[i];

	if (v->by_value)
		data[0] = (double)r->numbers[i];
	else
		for (int64_t k = 0; k < pretend_numbers_in(v); k++)
			data[k] = (double)number_at(r->arrays[i], type_of(v), in_memory(v, k));
}

static int run_program(struct pretend_work *work)
{
	struct run r;
	const struct pretend_program *p;
	double *data[PRETEND_TENSORS];

	memcpy(&r, work->args, sizeof r);
	p = r.program;
	for (int i = 0; i < p->n_values; i++) {
		data[i] = calloc((size_t)pretend_numbers_in(&p->values[i]), sizeof **data);
		if (!is_made(p, i))
			load(&r, i, data[i]);
	}
	for (const struct pretend_step *s = p->steps; s < p->steps + p->n_steps; s++) {
		const struct pretend_value *y = &p->values[s->y];

		switch (s->kind) {
		case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: multiply(p, s, data); break;
		case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: reduce(p, s, data); break;
		case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: turn(p, s, data); break;
		default: put(p, s, data);
		}
		for (int64_t i = 0; i < pretend_numbers_in(y); i++) {
			data[s->y][i] = rounded(y, data[s->y][i]);
			if (!y->computed)
				set_number(r.arrays[s->y], type_of(y), in_memory(y, i),
					   (float)data[s->y][i]);
		}
	}
	for (int i = 0; i < p->n_values; i++)
		free(data[i]);
	memset(work->to, 0x7f, work->n); /* the workspace holds nothing that is needed */
	return 1;
}

static struct pretend_cost cost_of(const struct pretend_program *p)
{
	struct pretend_cost c = {.name = "cuDNN, attention", .half = 1, .known = 1};
	int masks = 0;

	for (int i = 0; i < p->n_values; i++) {
		const struct pretend_value *v = &p->values[i];
		const double n = v->computed ? 0
					     : (double)pretend_numbers_in(v) *
						       (v->type == CUDNN_DATA_FLOAT ? 4 : 2);

		c.read += is_made(p, i) ? 0 : n;
		c.written += is_made(p, i) ? n : 0;
	}
	for (int i = 0; i < p->n_steps; i++) {
		masks |= p->steps[i].how == CUDNN_POINTWISE_BINARY_SELECT;
		if (p->steps[i].kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
			c.operations += 2 * (double)pretend_numbers_in(&p->values[p->steps[i].y]) *
					(double)p->values[p->steps[i].x].sizes[3];
	}
	c.operations /= masks ? 2 : 1; /* scores that are masked are not computed */
	return c;
}

cudnnStatus_t pretend_put_program(cudnnHandle_t h, const struct pretend_program *p,
				  void *const *arrays, void *room, size_t nbytes)
{
	struct pretend_work w = {.run = run_program, .to = room, .n = nbytes, .cost = cost_of(p)};
	struct run r = {.program = p};

	NEED(sizeof r <= sizeof w.args);
	if (pretend_launch())
		return CUDNN_STATUS_EXECUTION_FAILED;
	for (int i = 0; i < p->n_values; i++) {
		r.arrays[i] = arrays[i];
		if (p->values[i].by_value)
			r.numbers[i] = *(const float *)arrays[i];
	}
	memcpy(w.args, &r, sizeof r);
	pretend_put(pretend_stream(h), w);
	return 0;
}
