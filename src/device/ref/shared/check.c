/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of shapes and counts when an operation is planned on the ref device. See ref.h. */
#include "device/ref/ref.h"

#include <muster/base.h>

enum mu_status mu_ref_need_shape(const struct mu_op *op, const char *what,
				 const struct mu_shape *have, const struct mu_shape *want)
{
	enum mu_status st = MU_OK;
	char a[96], b[96];

	if (!mu_shape_equal(have, want))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (%s): the %s has shape %s; it must be %s", op->name,
			mu_op_kind_name(op->kind), what, mu_shape_text(have, a, sizeof a),
			mu_shape_text(want, b, sizeof b));
out:
	return st;
}

enum mu_status mu_ref_need_same_shape(struct mu_op *op)
{
	return mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape);
}

enum mu_status mu_ref_need_ndims(const struct mu_op *op, int ndims, const char *form)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *in = &op->inputs[0]->shape;
	char text[96];

	if (in->ndims != ndims)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (%s): the input has shape %s; it must be %s", op->name,
			mu_op_kind_name(op->kind), mu_shape_text(in, text, sizeof text), form);
out:
	return st;
}

enum mu_status mu_ref_need_space(const struct mu_op *op)
{
	return op->inputs[0]->shape.ndims == MU_MAX_DIMS
		       ? MU_OK
		       : mu_ref_need_ndims(op, 4, "(n, c, h, w) or (n, c, d, h, w)");
}

/* n of them, where the kind has least to most; most below 0: any more. */
static enum mu_status check_count(const struct mu_op *op, const char *what, int n, int least,
				  int most)
{
	enum mu_status st = MU_OK;
	char has[64];

	if (n >= least && (most < 0 || n <= most))
		goto out;
	if (least == most)
		snprintf(has, sizeof has, "%d", least);
	else if (most < 0)
		snprintf(has, sizeof has, "%d or more", least);
	else
		snprintf(has, sizeof has, "%d to %d", least, most);
	MU_FAIL(MU_ERR_ARGUMENT, "%s (%s): %d %s%s; this kind has %s", op->name,
		mu_op_kind_name(op->kind), n, what, MU_S(n), has);
out:
	return st;
}

/* wanted below 0: that many or more. */
static enum mu_status check_tensors(const struct mu_op *op, const char *what, int n, int wanted)
{
	return check_count(op, what, n, wanted < 0 ? -wanted : wanted, wanted);
}

static bool can_fuse_activation(enum mu_op_kind kind)
{
	return kind == MU_OP_CONVOLUTION || kind == MU_OP_FULLY_CONNECTED ||
	       kind == MU_OP_BATCH_NORM || kind == MU_OP_SUM;
}

static enum mu_status check_counts(const struct mu_op *op, const struct mu_ref_kind *kind)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_tensors(op, "input", op->n_inputs, kind->n_inputs));
	MU_TRY(check_tensors(op, "output", op->n_outputs, kind->n_outputs));
	MU_TRY(check_count(op, "parameter", op->n_params, kind->min_params, kind->max_params));
	MU_TRY(check_count(op, "auxiliary array", op->n_aux, kind->n_aux, kind->n_aux));
	if (op->fusion.in_place && !kind->in_place)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (%s): this kind cannot work in place", op->name,
			mu_op_kind_name(op->kind));
	if (op->fusion.activation && !can_fuse_activation(op->kind))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (%s): only a convolution, a fully connected layer, a batch-norm or a "
			"sum takes an activation",
			op->name, mu_op_kind_name(op->kind));
out:
	return st;
}

/* Shapes are (n, c), (n, c, h, w) or (n, c, d, h, w) without empty dimensions, in plain layout. */
static enum mu_status check_inputs(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	char text[96];

	for (int i = 0; i < op->n_inputs; i++) {
		const struct mu_tensor *t = op->inputs[i];

		if (!mu_tensor_shape_fits(&t->shape) || mu_shape_n(&t->shape) == 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (%s): input %d has shape %s; it must be (n, c), (n, c, h, w) "
				"or (n, c, d, h, w), without zeros",
				op->name, mu_op_kind_name(op->kind), i,
				mu_shape_text(&t->shape, text, sizeof text));
		if (t->layout)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (%s): input %d has another device's layout; this one needs "
				"plain "
				"tensors",
				op->name, mu_op_kind_name(op->kind), i);
	}
out:
	return st;
}

static enum mu_status set_plain(const struct mu_op *op, struct mu_param *param)
{
	enum mu_status st = MU_OK;
	size_t n = mu_shape_n(&param->shape);

	if (param->layout || (param->n_padded != 0 && param->n_padded != n))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (%s): %s has another device's layout; this one needs plain arrays",
			op->name, mu_op_kind_name(op->kind), param->name);
	param->n_padded = n;
out:
	return st;
}

enum mu_status mu_ref_check(const struct mu_op *op, const struct mu_ref_kind *kind)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_counts(op, kind));
	MU_TRY(check_inputs(op));
out:
	return st;
}

enum mu_status mu_ref_set_plain(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int i = 0; i < op->n_outputs; i++) {
		op->outputs[i]->layout = NULL;
		op->outputs[i]->nbytes = mu_shape_n(&op->outputs[i]->shape) * sizeof(float);
	}
	for (int i = 0; i < op->n_params; i++)
		MU_TRY(set_plain(op, &op->params[i]));
	for (int i = 0; i < op->n_aux; i++)
		MU_TRY(set_plain(op, &op->aux[i]));
out:
	return st;
}
