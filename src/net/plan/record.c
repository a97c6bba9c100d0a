/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records a step's work once and replays it (struct mu_device_memory): the host submits one piece
 * to a GPU instead of each operation. Pieces are runs of layers that can be recorded; other layers
 * are pieces of their own. A piece is submitted when the last of its layers is due: so its weights
 * have arrived, and callers see no difference from layer by layer, except that gradients arrive in
 * pieces.
 *
 * A recording holds the arguments of the operations. Addresses do not change; epoch and ids of the
 * batch are read from device memory; all other arguments are compared before each step. A piece is
 * run once with its arguments before it is recorded, which also lets libraries load their code.
 */
#include "plan.h"

#include <muster/base.h>

/* ---- pieces ---- */

static size_t gradient_bytes(const struct mu_op *op)
{
	size_t n = 0;

	for (int p = 0; p < op->n_params; p++)
		n += op->params[p].n_padded;
	return n * sizeof(float);
}

/* Pieces of backward are cut in its order, from the last layer on. */
static enum mu_status cut(struct mu_plan *plan, struct plan_pieces *pieces, bool backward,
			  size_t most_bytes)
{
	enum mu_status st = MU_OK;
	struct plan_piece *piece = NULL;
	size_t nbytes = 0;

	MU_TRY(MU_ALLOC(pieces->all, plan->n_ops, "pieces of a step"));
	MU_TRY(MU_ALLOC(pieces->of, plan->n_ops, "pieces of a step"));
	for (size_t i = 0; i < plan->n_ops; i++) {
		const size_t l = backward ? plan->n_ops - 1 - i : i;
		const bool can = memory_of(plan)->can_record(&plan->ops[l], backward);

		if (!piece || !can || !piece->can_record ||
		    (most_bytes > 0 && nbytes >= most_bytes)) {
			piece = &pieces->all[pieces->n++];
			*piece = (struct plan_piece){.from = l, .to = l + 1, .can_record = can};
			nbytes = 0;
		}
		if (l < piece->from)
			piece->from = l;
		piece->to = l + 1 > piece->to ? l + 1 : piece->to;
		nbytes += gradient_bytes(&plan->ops[l]);
		pieces->of[l] = pieces->n - 1;
	}
out:
	return st;
}

enum mu_status mu_plan_set_recorded(struct mu_plan *plan, size_t most_bytes)
{
	enum mu_status st = MU_OK;
	struct plan_record *r = &plan->record;

	if (!memory_of(plan) || r->on)
		goto out;
	MU_TRY(cut(plan, &r->forward, false, most_bytes));
	if (plan->phase == MU_PHASE_TRAIN)
		MU_TRY(cut(plan, &r->backward, true, most_bytes));
	r->on = true;
out:
	return st;
}

static void drop(struct mu_plan *plan, struct plan_pieces *pieces)
{
	for (size_t i = 0; i < pieces->n; i++) {
		if (pieces->all[i].recording)
			memory_of(plan)->free_recording(plan->device, pieces->all[i].recording);
		pieces->all[i].recording = NULL;
		pieces->all[i].ran = false;
	}
}

void mu_plan_record_drop(struct mu_plan *plan)
{
	drop(plan, &plan->record.forward);
	drop(plan, &plan->record.backward);
}

void mu_plan_record_close(struct mu_plan *plan)
{
	struct plan_pieces *pieces[] = {&plan->record.forward, &plan->record.backward};

	mu_plan_record_drop(plan);
	for (size_t i = 0; i < 2; i++) {
		mu_free(pieces[i]->all);
		mu_free(pieces[i]->of);
	}
}

void mu_plan_count_pieces(const struct mu_plan *plan, size_t *recorded, size_t *alone)
{
	const struct plan_pieces *pieces[] = {&plan->record.forward, &plan->record.backward};

	*recorded = *alone = 0;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < pieces[i]->n; k++)
			*(pieces[i]->all[k].can_record ? recorded : alone) += 1;
}

/* ---- a step ---- */

/* Compares what operations pass as arguments. */
static bool is_alike(const struct mu_batch *a, const struct mu_batch *b)
{
	return a->count == b->count && a->label_smoothing == b->label_smoothing &&
	       a->loss_scale == b->loss_scale && a->seed == b->seed &&
	       a->use_ignore == b->use_ignore && a->ignore_label == b->ignore_label;
}

static enum mu_status run(struct mu_plan *plan, bool backward, const struct plan_piece *piece)
{
	return mu_plan_run(plan, backward, piece->from, piece->to);
}

enum { WHY = 256 };

/* Keep the first reason. */
static void note(enum mu_status st, char why[WHY])
{
	if (st == MU_OK)
		return;
	if (!*why)
		snprintf(why, WHY, "%s", mu_trace_message());
	mu_trace_clear();
}

/* Work that cannot be recorded, for any reason, is run directly. */
static void record(struct mu_plan *plan, bool backward, struct plan_piece *piece)
{
	const struct mu_device_memory *memory = memory_of(plan);
	const enum mu_status begun = memory->record_begin(plan->device);
	char why[WHY] = "";

	note(begun, why);
	if (begun == MU_OK) {
		note(run(plan, backward, piece), why);
		note(memory->record_end(plan->device, &piece->recording), why);
	}
	if (!*why)
		return;
	mu_log_warn("%s of layers %s to %s is no CUDA graph, and done call by call: %s",
		    backward ? "backward" : "forward", plan->ops[piece->from].name,
		    plan->ops[piece->to - 1].name, why);
	piece->can_record = false;
	if (piece->recording)
		memory->free_recording(plan->device, piece->recording);
	piece->recording = NULL;
}

static enum mu_status submit_piece(struct mu_plan *plan, bool backward, struct plan_piece *piece)
{
	enum mu_status st = MU_OK;

	if (piece->ran && piece->can_record && !piece->recording)
		record(plan, backward, piece);
	if (piece->recording)
		return memory_of(plan)->replay(plan->device, piece->recording);
	MU_TRY(run(plan, backward, piece));
	piece->ran = true;
out:
	return st;
}

enum mu_status mu_plan_submit(struct mu_plan *plan, bool backward, size_t l, bool *given)
{
	struct plan_record *r = &plan->record;
	struct plan_pieces *pieces = backward ? &r->backward : &r->forward;
	struct plan_piece *piece;

	*given = true;
	if (!r->on || plan->times)
		return mu_plan_run(plan, backward, l, l + 1);
	if (!backward && l == 0 && !is_alike(&r->batch, &plan->batch)) {
		mu_plan_record_drop(plan);
		r->batch = plan->batch;
	}
	piece = &pieces->all[pieces->of[l]];
	*given = l == (backward ? piece->from : piece->to - 1);
	return *given ? submit_piece(plan, backward, piece) : MU_OK;
}
