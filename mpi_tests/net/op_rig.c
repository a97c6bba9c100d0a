/* SPDX-License-Identifier: Apache-2.0 */
/* Running one operation on one device. */
#include "op_rig.h"

#include <assert.h>
#include <string.h>

#include <muster/base.h>
#include "op_memory.h"

/* Memory full of NaN. */
static enum mu_status own(struct op_rig *rig, void **out, size_t nbytes)
{
	enum mu_status st = MU_OK;

	assert(rig->n_owned < OP_MAX_OWNED);
	MU_TRY(op_memory_new(rig->device, out, nbytes));
	rig->owned[rig->n_owned++] = *out;
	MU_TRY(op_memory_spoil(rig->device, *out, nbytes));
out:
	return st;
}

static enum mu_status own_floats(struct op_rig *rig, float **out, size_t n)
{
	return own(rig, (void **)out, n * sizeof **out);
}

/* ---- plan ---- */

static void describe_operation(struct op_rig *rig, const struct op_rig_config *config)
{
	static const char *const names[] = {"first", "second", "third", "fourth"};
	const struct op_case *c = config->c;
	struct mu_op *op = &rig->op;
	struct mu_shape out = op_output_shape(c), shapes[MU_MAX_PARAMS];
	bool train = config->phase == MU_PHASE_TRAIN;

	rig->batch.class_weights = op_class_weights(c);
	*op = (struct mu_op){
		.kind = c->kind,
		.name = c->name,
		.index = c->index,
		.attr = c->attr,
		.phase = config->phase,
		.n_outputs = c->n_outputs ? c->n_outputs : 1,
		.inputs = rig->links,
		.outputs = rig->links + OP_MAX_TENSORS,
		.batch = &rig->batch,
		.fusion.activation = c->fused,
		.fusion.undo = c->undoes ? c->undoes : c->undone ? NULL : c->fused,
		.fusion.in_place = c->in_place,
		.fusion.restored = c->restored && train,
		.fusion.shared_grads = train ? c->shared_grads : 0,
	};
	op->n_params = op_n_params(c, shapes);
	op->n_aux = c->kind == MU_OP_BATCH_NORM ? 2 : 0;
	for (int i = 0; i < op->n_params; i++)
		op->params[i] = (struct mu_param){.name = names[i], .shape = shapes[i]};
	for (int i = 0; i < op->n_aux; i++)
		op->aux[i] = (struct mu_param){.name = names[i], .shape = shapes[i]};
	for (int i = 0; i < OP_MAX_TENSORS; i++) {
		rig->links[i] = &rig->in[i];
		rig->links[OP_MAX_TENSORS + i] = &rig->out[i];
		op->n_inputs += c->in[i].ndims > 0;
		rig->in[i].shape = c->in[i];
		rig->in[i].needs_grad = train && !(c->frozen >> i & 1);
		rig->in[i].nbytes = c->in[i].ndims ? mu_shape_n(&c->in[i]) * sizeof(float) : 0;
		rig->out[i].shape = out;
	}
	for (int i = 0; i < OP_MAX_TENSORS; i++)
		rig->out[i].needs_grad =
			train && (op->n_params > 0 || c->frozen + 1 < 1u << op->n_inputs);
}

/* Give tensor t the layout that a 1x1 convolution of `from` channels makes on this device. */
static enum mu_status take_layout(struct mu_device *device, enum mu_phase phase, size_t from,
				  struct mu_tensor *t)
{
	enum mu_status st = MU_OK;
	size_t c = t->shape.dims[1];
	struct mu_tensor in = {.shape = t->shape}, out = in, *links[2] = {&in, &out};
	struct mu_convolution attr = {.filters = (int)c, .kernel = {1, 1, 1}, .no_bias = true};
	struct mu_op op = {
		.kind = MU_OP_CONVOLUTION,
		.name = "layout",
		.attr = &attr,
		.phase = phase,
		.n_inputs = 1,
		.n_outputs = 1,
		.inputs = links,
		.outputs = links + 1,
		.n_params = 1,
		.params = {{.name = "weight", .shape = {t->shape.ndims, {c, from, 1, 1, 1}}}},
	};

	in.shape.dims[1] = from;
	in.nbytes = mu_shape_n(&in.shape) * sizeof(float);
	MU_TRY(device->ops->plan(device, &op));
	MU_TRY(device->ops->copy_layout(device, out.layout, &t->layout));
	t->nbytes = out.nbytes;
out:
	device->ops->release(device, &op);
	device->ops->free_layout(device, out.layout);
	device->ops->free_layout(device, op.params[0].layout);
	return st;
}

bool op_layouts_differ(const struct op_case *c, enum op_layouts layouts,
		       const struct mu_device *device)
{
	bool sixteen = false;

	if (device->ops->memory && layouts > (device->dtype ? OP_LAYOUT_ALL : OP_LAYOUT_PLAIN))
		return false;
	for (int i = 0; i < OP_MAX_TENSORS && c->in[i].ndims; i++)
		sixteen |= c->in[i].dims[1] % 16 == 0;
	switch (layouts) {
	case OP_LAYOUT_PLAIN: return true;
	case OP_LAYOUT_ALL: return c->in[0].ndims >= 4;
	case OP_LAYOUT_ALL_OF_5: return c->in[0].ndims >= 4 && sixteen;
	default: return c->in[0].ndims >= 4 && c->in[1].ndims > 0;
	}
}

static enum mu_status choose_layout(struct op_rig *rig, const struct op_rig_config *config, int i)
{
	struct mu_tensor *t = &rig->in[i];
	bool foreign[OP_LAYOUT_N] = {false, i == 0, true, true, true};
	bool five = config->layouts == OP_LAYOUT_ALL_OF_5 ||
		    (config->layouts == OP_LAYOUT_MIXED && i % 2 > 0);

	if (t->shape.ndims < 4 || !foreign[config->layouts])
		return MU_OK;
	return take_layout(rig->device, config->phase, five ? 5 : t->shape.dims[1], t);
}

static enum mu_status keep_layout(struct mu_device *device, const struct mu_param *from,
				  struct mu_param *to)
{
	to->n_padded = from->n_padded;
	return device->ops->copy_layout(device, from->layout, &to->layout);
}

static enum mu_status plan(struct op_rig *rig, const struct op_rig_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = &rig->op;

	for (int i = 0; i < op->n_inputs; i++)
		MU_TRY(choose_layout(rig, config, i));
	for (int i = 0; config->like && i < op->n_params; i++)
		MU_TRY(keep_layout(rig->device, &config->like->op.params[i], &op->params[i]));
	for (int i = 0; config->like && i < op->n_aux; i++)
		MU_TRY(keep_layout(rig->device, &config->like->op.aux[i], &op->aux[i]));
	rig->planned = true;
	MU_TRY(rig->device->ops->plan(rig->device, op));
out:
	return st;
}

static enum mu_status allocate_params(struct op_rig *rig, struct mu_param *params, int n)
{
	enum mu_status st = MU_OK;

	for (int i = 0; i < n; i++) {
		MU_TRY(own_floats(rig, &params[i].data, params[i].n_padded));
		if (rig->op.phase == MU_PHASE_TRAIN)
			MU_TRY(own_floats(rig, &params[i].grad, params[i].n_padded));
	}
out:
	return st;
}

static enum mu_status allocate_states(struct op_rig *rig)
{
	enum mu_status st = MU_OK;
	const struct mu_shape shape = op_state_shape(rig->c);
	float *v[4] = {NULL}; /* before, before_grad, after_grad, after */

	for (int i = 0; i < 4; i++)
		if (rig->c->states & (i < 2 ? OP_BEFORE : OP_AFTER))
			MU_TRY(own_floats(rig, &v[i], mu_shape_n(&shape)));
	rig->state = (struct mu_state){v[0], v[2], v[3], v[1], .shared = NULL};
out:
	return st;
}

/* Of a sum: gradients of inputs that are the output's own. */
static void share(struct op_rig *rig)
{
	for (int i = 0; i < rig->op.n_inputs; i++)
		if (rig->op.fusion.shared_grads >> i & 1)
			rig->in[i].grad = rig->out[0].grad;
}

/* In place: data and gradient are the input's; of a split and a sum the data only. */
static enum mu_status allocate(struct op_rig *rig)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = &rig->op;

	for (int i = 0; i < op->n_inputs; i++) {
		MU_TRY(own(rig, (void **)&rig->in[i].data, rig->in[i].nbytes));
		if (rig->in[i].needs_grad)
			MU_TRY(own(rig, (void **)&rig->in[i].grad, rig->in[i].nbytes));
	}
	for (int i = 0; i < op->n_outputs; i++) {
		struct mu_tensor *t = &rig->out[i];

		if (op->fusion.in_place && t->nbytes != rig->in[0].nbytes)
			MU_FAIL(MU_ERR_ARGUMENT, "%s: in place, but of another size", op->name);
		if (op->fusion.in_place)
			t->data = rig->in[0].data;
		else
			MU_TRY(own(rig, (void **)&t->data, t->nbytes));
		if (op->fusion.in_place && op->kind != MU_OP_SPLIT && op->kind != MU_OP_SUM)
			t->grad = rig->in[0].grad;
		else if (t->needs_grad)
			MU_TRY(own(rig, (void **)&t->grad, t->nbytes));
	}
	share(rig);
	MU_TRY(allocate_states(rig));
	MU_TRY(allocate_params(rig, op->params, op->n_params));
	MU_TRY(allocate_params(rig, op->aux, op->n_aux));
	MU_TRY(own(rig, &op->workspace, op->workspace_nbytes));
	MU_TRY(own(rig, &op->scratch, op->scratch_nbytes));
out:
	return st;
}

static enum mu_status add_block(struct op_rig *rig, enum op_what what, int index,
				const struct mu_shape *shape)
{
	struct op_block *b = &rig->blocks[rig->n_blocks++];

	*b = (struct op_block){.what = what, .index = index, .n = mu_shape_n(shape)};
	return MU_ALLOC(b->v, b->n, "test memory");
}

static enum mu_status make_blocks(struct op_rig *rig)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = &rig->op;
	const struct mu_shape state = op_state_shape(rig->c);

	for (int i = 0; i < op->n_outputs; i++)
		MU_TRY(add_block(rig, OP_OUTPUT, i, &rig->out[i].shape));
	if (rig->c->states & OP_AFTER)
		MU_TRY(add_block(rig, OP_STATE, 0, &state));
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	for (int i = 0; i < op->n_inputs; i++)
		if (rig->in[i].needs_grad)
			MU_TRY(add_block(rig, OP_INPUT_GRAD, i, &rig->in[i].shape));
	for (int i = 0; i < op->n_params; i++)
		MU_TRY(add_block(rig, OP_PARAM_GRAD, i, &op->params[i].shape));
	for (int i = 0; i < op->n_aux; i++)
		MU_TRY(add_block(rig, OP_AUX_GRAD, i, &op->aux[i].shape));
	if (rig->c->states & OP_BEFORE)
		MU_TRY(add_block(rig, OP_STATE_GRAD, 0, &state));
out:
	return st;
}

enum mu_status op_rig_init(struct op_rig *rig, const struct op_rig_config *config)
{
	enum mu_status st = MU_OK;

	*rig = (struct op_rig){.c = config->c, .device = config->device};
	describe_operation(rig, config);
	MU_TRY(plan(rig, config));
	MU_TRY(allocate(rig));
	MU_TRY(make_blocks(rig));
	MU_TRY(rig->device->ops->bind(rig->device, &rig->op));
out:
	return st;
}

void op_rig_release(struct op_rig *rig)
{
	const struct mu_device_ops *ops = rig->device->ops;

	if (rig->planned)
		ops->release(rig->device, &rig->op);
	for (int i = 0; i < OP_MAX_TENSORS; i++) {
		ops->free_layout(rig->device, rig->in[i].layout);
		ops->free_layout(rig->device, rig->out[i].layout);
	}
	for (int i = 0; i < MU_MAX_PARAMS; i++) {
		ops->free_layout(rig->device, rig->op.params[i].layout);
		ops->free_layout(rig->device, rig->op.aux[i].layout);
	}
	for (int i = 0; i < rig->n_blocks; i++)
		mu_free(rig->blocks[i].v);
	for (int i = 0; i < rig->n_owned; i++)
		op_memory_free(rig->device, rig->owned[i]);
}

/* ---- run ---- */

/* An array of the device: a tensor's or a parameter's data or gradient. */
struct array {
	const struct mu_shape *shape;
	const void *layout;
	float *v;
	size_t nbytes;
};

static struct array data_of(const struct mu_tensor *t)
{
	return (struct array){&t->shape, t->layout, t->data, t->nbytes};
}

static struct array grad_of(const struct mu_tensor *t)
{
	return (struct array){&t->shape, t->layout, t->grad, t->nbytes};
}

static struct array param_of(const struct mu_param *p, float *v)
{
	return (struct array){&p->shape, p->layout, v, p->n_padded * sizeof(float)};
}

static enum mu_status put(struct op_rig *rig, struct array a, const float *plain)
{
	return rig->device->ops->from_plain(rig->device, a.shape, a.layout, plain, a.v);
}

/* Fetch an array and check that its padding is zero: from_plain makes the same bytes of it. */
static enum mu_status get(struct op_rig *rig, struct array a, float *plain)
{
	enum mu_status st = MU_OK;
	float *again = NULL, *have = NULL;

	MU_TRY(mu_alloc((void **)&again, a.nbytes, "test memory"));
	MU_TRY(mu_alloc((void **)&have, a.nbytes, "test memory"));
	memset(again, 0xff, a.nbytes);
	MU_TRY(rig->device->ops->to_plain(rig->device, a.shape, a.layout, a.v, plain));
	MU_TRY(put(rig, (struct array){a.shape, a.layout, again, a.nbytes}, plain));
	MU_TRY(op_memory_fetch(rig->device, have, a.v, a.nbytes));
	if (memcmp(again, have, a.nbytes) != 0)
		MU_FAIL(MU_ERR_NUMERIC, "%s: the padding is not zero", rig->op.name);
out:
	mu_free(have);
	mu_free(again);
	return st;
}

/* NaN everywhere but in the padding. */
static enum mu_status spoil_param(struct op_rig *rig, struct mu_param *p)
{
	enum mu_status st = MU_OK;
	size_t n = mu_shape_n(&p->shape);
	float *plain = NULL;

	MU_TRY(MU_ALLOC(plain, n, "test memory"));
	memset(plain, 0xff, n * sizeof *plain);
	MU_TRY(put(rig, param_of(p, p->grad), plain));
out:
	mu_free(plain);
	return st;
}

static struct array state_of(const struct mu_shape *s, const float *v)
{
	return (struct array){s, NULL, (float *)(uintptr_t)v, mu_shape_n(s) * sizeof *v};
}

static enum mu_status get_block(struct op_rig *rig, struct op_block *b)
{
	struct mu_op *op = &rig->op;
	const struct mu_shape state = op_state_shape(rig->c);

	switch (b->what) {
	case OP_OUTPUT: return get(rig, data_of(&rig->out[b->index]), b->v);
	case OP_STATE: return get(rig, state_of(&state, rig->state.after), b->v);
	case OP_STATE_GRAD: return get(rig, state_of(&state, rig->state.before_grad), b->v);
	case OP_INPUT_GRAD: return get(rig, grad_of(&rig->in[b->index]), b->v);
	case OP_PARAM_GRAD:
		return get(rig, param_of(&op->params[b->index], op->params[b->index].grad), b->v);
	default: return get(rig, param_of(&op->aux[b->index], op->aux[b->index].grad), b->v);
	}
}

/* Those that forward makes, or backward. */
static enum mu_status get_blocks(struct op_rig *rig, bool forward)
{
	enum mu_status st = MU_OK;

	for (int i = 0; i < rig->n_blocks; i++) {
		const enum op_what what = rig->blocks[i].what;

		if ((what == OP_OUTPUT || what == OP_STATE) == forward)
			MU_TRY(get_block(rig, &rig->blocks[i]));
	}
out:
	return st;
}

/* What is in front of a block, or behind it, is there; what it leaves is spoilt. */
static enum mu_status join(struct op_rig *rig, const struct op_values *values)
{
	enum mu_status st = MU_OK;
	const struct mu_shape shape = op_state_shape(rig->c);
	struct mu_state *s = &rig->state;

	rig->op.state = rig->c->states ? s : NULL;
	if (s->before)
		MU_TRY(put(rig, state_of(&shape, s->before), values->state));
	if (s->after_grad)
		MU_TRY(put(rig, state_of(&shape, s->after_grad), values->state_grad));
	MU_TRY(op_memory_spoil(rig->device, s->after, mu_shape_n(&shape) * sizeof(float)));
	MU_TRY(op_memory_spoil(rig->device, s->before_grad, mu_shape_n(&shape) * sizeof(float)));
out:
	return st;
}

enum mu_status op_rig_forward(struct op_rig *rig, const struct op_values *values)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = &rig->op;
	size_t n = rig->in[0].shape.dims[0];

	rig->batch = (struct mu_batch){
		.labels = values->labels,
		.count = rig->c->count == OP_NO_ROWS ? 0
			 : rig->c->count             ? rig->c->count
						     : n,
		.use_ignore = rig->c->use_ignore,
		.ignore_label = 1,
		.label_smoothing = rig->c->smoothing,
		.class_weights = op_class_weights(rig->c),
		.seed = 11,
		.epoch = 5,
		.step = 3,
		.ids = values->ids,
	};
	for (int i = 0; i < op->n_outputs && !op->fusion.in_place; i++)
		MU_TRY(op_memory_spoil(rig->device, rig->out[i].data, rig->out[i].nbytes));
	for (int i = 0; i < op->n_inputs; i++)
		MU_TRY(put(rig, data_of(&rig->in[i]), values->in[i]));
	for (int i = 0; i < op->n_params; i++)
		MU_TRY(put(rig, param_of(&op->params[i], op->params[i].data), values->params[i]));
	for (int i = 0; i < op->n_aux; i++) {
		MU_TRY(put(rig, param_of(&op->aux[i], op->aux[i].data), values->aux[i]));
		if (op->phase == MU_PHASE_TRAIN)
			MU_TRY(spoil_param(rig, &op->aux[i]));
	}
	MU_TRY(op_memory_spoil(rig->device, op->workspace, op->workspace_nbytes));
	MU_TRY(op_memory_spoil(rig->device, op->scratch, op->scratch_nbytes));
	MU_TRY(join(rig, values));
	MU_TRY(rig->device->ops->forward(rig->device, op));
	MU_TRY(get_blocks(rig, true));
out:
	return st;
}

/* The output comes back, bit by bit. */
static enum mu_status restore(struct op_rig *rig)
{
	enum mu_status st = MU_OK;
	struct mu_tensor *out = &rig->out[0];
	void *before = NULL, *after = NULL;

	if (!rig->op.fusion.restored)
		return MU_OK;
	MU_TRY(mu_alloc(&before, out->nbytes, "test memory"));
	MU_TRY(mu_alloc(&after, out->nbytes, "test memory"));
	MU_TRY(op_memory_fetch(rig->device, before, out->data, out->nbytes));
	MU_TRY(op_memory_spoil(rig->device, out->data, out->nbytes));
	MU_TRY(rig->device->ops->restore(rig->device, &rig->op));
	MU_TRY(op_memory_fetch(rig->device, after, out->data, out->nbytes));
	if (memcmp(before, after, out->nbytes) != 0)
		MU_FAIL(MU_ERR_NUMERIC, "%s: the output was restored otherwise", rig->op.name);
out:
	mu_free(after);
	mu_free(before);
	return st;
}

enum mu_status op_rig_backward(struct op_rig *rig, const struct op_values *values)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = &rig->op;

	for (int i = 0; i < op->n_inputs; i++)
		MU_TRY(op_memory_spoil(rig->device, rig->in[i].grad, rig->in[i].nbytes));
	for (int i = 0; i < op->n_outputs; i++)
		if (rig->out[i].grad && !op_case_is_loss(rig->c))
			MU_TRY(put(rig, grad_of(&rig->out[i]), values->out_grad[i]));
	for (int i = 0; i < op->n_params; i++)
		MU_TRY(spoil_param(rig, &op->params[i]));
	MU_TRY(op_memory_spoil(rig->device, op->scratch, op->scratch_nbytes));
	MU_TRY(restore(rig));
	MU_TRY(rig->device->ops->backward(rig->device, op));
	MU_TRY(get_blocks(rig, false));
out:
	return st;
}
