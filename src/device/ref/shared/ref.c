/* SPDX-License-Identifier: Apache-2.0 */
/* The ref device: its table. See ref.h. */
#include "device/ref/ref.h"

#include <assert.h>
#include <string.h>

#include <muster/base.h>

#include "device/plain.h"

extern const struct mu_device_ops mu_device_ref;

static const struct mu_ref_kind *const kinds[MU_OP_N] = {
#define KIND(OP, row, name, cpu, cuda) &mu_ref_##row,
#include "device/kinds.def"
#undef KIND
};

const struct mu_ref_kind *mu_ref_kind_of(enum mu_op_kind kind)
{
	return kinds[kind];
}

enum mu_status mu_ref_backward(struct mu_op *op)
{
	const struct mu_ref_kind *kind = kinds[op->kind];

	if (kind->try_backward)
		return kind->try_backward(op);
	kind->backward(op);
	return MU_OK;
}

static enum mu_status plan(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_ref_kind *kind = kinds[op->kind];

	(void)device;
	if (op->kind == MU_OP_SOFTMAX)
		op->fusion.in_place = false;
	MU_TRY(mu_ref_check(op, kind));
	op->workspace_nbytes = 0;
	op->scratch_nbytes = 0;
	MU_TRY(kind->plan(op));
	MU_TRY(mu_ref_set_plain(op));
out:
	return st;
}

static enum mu_status forward(struct mu_device *device, struct mu_op *op)
{
	(void)device;
	return kinds[op->kind]->forward(op);
}

static enum mu_status backward(struct mu_device *device, struct mu_op *op)
{
	(void)device;
	return mu_ref_backward(op);
}

/* ---- nothing to keep: no handles, one layout ---- */

static enum mu_status open_ref(struct mu_device *device)
{
	(void)device;
	return MU_OK;
}

static void close_ref(struct mu_device *device)
{
	(void)device;
}

static void release(struct mu_device *device, struct mu_op *op)
{
	(void)device;
	(void)op;
}

static enum mu_status copy_plain(struct mu_device *device, const struct mu_shape *shape,
				 const void *layout, const float *from, float *to)
{
	(void)device;
	(void)layout;
	assert(!layout);
	memcpy(to, from, mu_shape_n(shape) * sizeof(float));
	return MU_OK;
}

static void describe(const struct mu_device *device, char *text, size_t nbytes)
{
	(void)device;
	snprintf(text, nbytes, "ref: plain loops, 1 thread");
}

const struct mu_device_ops mu_device_ref = {
	.name = "ref",
	.help = "plain loops, slow: the reference that other devices are tested against",
	.open = open_ref,
	.close = close_ref,
	.plan = plan,
	.bind = mu_plain_bind,
	.forward = forward,
	.backward = backward,
	.restore = forward,
	.release = release,
	.from_plain = copy_plain,
	.to_plain = copy_plain,
	.copy_layout = mu_plain_copy_layout,
	.free_layout = mu_plain_free_layout,
	.hash_layout = mu_plain_hash_layout,
	.remembers = true,
	.describe = describe,
};
