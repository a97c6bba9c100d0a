/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the stages of a team's ranks. Each border between two ranks has two passages
 * (parallel.h): values are sent when the earlier stage's forward ends, gradients when the later
 * stage's backward ends. A task packs its results into the buffer of its micro-batch and increments
 * a counter. The first device's thread, the only one that calls MPI, sees the counter, sends, and
 * counts the messages that arrive. Results are never sent from the slot, which is then free for the
 * next micro-batch.
 *
 * The kind of a message is the kind of its plan: group of the input, and full micro-batch, fewer
 * samples or validation.
 */
#include "staged.h"

#include <muster/base.h>

enum { KIND_FULL, KIND_TAIL, KIND_INFER, KINDS };

static size_t kind_of(const struct engine_staged *s, size_t k)
{
	const size_t first = s->steps > 0 ? 0 : s->group * KINDS;

	if (s->phase == MU_PHASE_INFER)
		return first + KIND_INFER;
	return first + (s->steps > 0 || (k + 1) * s->micro <= s->total ? KIND_FULL : KIND_TAIL);
}

/* The plan of any slot: all slots of a stage are the same. NULL: none of this kind. */
static const struct mu_plan *find_plan(const struct engine_stage *stage, size_t kind)
{
	const struct mu_plan *plan = NULL;

	for (size_t i = 0; i < stage->n_slots && !plan; i++) {
		const struct engine_plans *p = &stage->slots[i].plans[kind / KINDS];

		plan = kind % KINDS == KIND_FULL   ? p->full
		       : kind % KINDS == KIND_TAIL ? p->tail
						   : p->infer;
	}
	return plan;
}

/* Bytes of a border's messages, by kind. */
static void measure(const struct mu_engine *e, const struct engine_border *border, int way,
		    size_t *nbytes)
{
	const struct engine_staged *s = e->split;

	for (size_t kind = 0; kind < e->split->n_groups * KINDS; kind++) {
		const struct mu_plan *from = find_plan(&s->of[border->from], kind);
		const struct mu_plan *to = find_plan(&s->of[border->to], kind);
		const bool passes = way == ENGINE_VALUES || kind % KINDS != KIND_INFER;

		nbytes[kind] = from && to && passes
				       ? mu_plan_pack_nbytes(from, to, way == ENGINE_GRADIENTS)
				       : 0;
	}
}

/* Tails differ from team to team. */
uint64_t mu_engine_borders_hash(const struct mu_engine *e)
{
	const struct engine_staged *s = e->split;
	uint64_t hash = 0;

	for (size_t b = 0; b < s->n_borders; b++)
		for (size_t kind = 0; kind < e->split->n_groups * KINDS; kind++) {
			const struct mu_plan *from = find_plan(&s->of[s->borders[b].from], kind);
			const struct mu_plan *to = find_plan(&s->of[s->borders[b].to], kind);

			if (from && to && kind % KINDS != KIND_TAIL)
				hash = hash * 31 + mu_plan_pack_nbytes(from, to, false);
		}
	return hash;
}

size_t mu_engine_border_counter(const struct mu_engine *e, size_t border, int way)
{
	return e->split->stages.n * ENGINE_STAGE_COUNTERS + border * ENGINE_WAYS + (size_t)way;
}

/* ---- life ---- */

static enum mu_status open_way(struct mu_engine *e, size_t b, int way, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	struct engine_border *border = &s->borders[b];
	struct engine_way *w = &border->ways[way];
	const bool is_from = mu_engine_staged_is_here(e, border->from);
	const size_t kinds = e->split->n_groups * KINDS;
	size_t most = 0;

	w->sends = is_from == (way == ENGINE_VALUES);
	w->peer = mu_engine_team_worker(
		e, mu_engine_staged_member(e, is_from ? border->to : border->from));
	measure(e, border, way, nbytes);
	for (size_t kind = 0; kind < kinds; kind++)
		most = nbytes[kind] > most ? nbytes[kind] : most;
	if (most > 0)
		MU_TRY(mu_passage_new(&w->passage, &(struct mu_passage_config){
							   .comm = s->comm,
							   .peer = w->peer,
							   .tag = (int)(b * ENGINE_WAYS) + way,
							   .sends = w->sends,
							   .n_micro = s->n_micro,
							   .n_kinds = kinds,
							   .nbytes = nbytes,
						   }));
out:
	return st;
}

enum mu_status mu_engine_borders_open(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	size_t *nbytes = NULL;

	MU_TRY(mu_peers_dup(e->members, &s->comm));
	MU_TRY(MU_ALLOC(nbytes, e->split->n_groups * KINDS, "borders"));
	MU_TRY(MU_ALLOC(s->kinds, s->n_micro, "borders"));
	for (size_t b = 0; b < s->n_borders; b++)
		for (int way = 0; way < ENGINE_WAYS; way++)
			if (mu_engine_staged_is_here(e, s->borders[b].from) !=
			    mu_engine_staged_is_here(e, s->borders[b].to))
				MU_TRY(open_way(e, b, way, nbytes));
out:
	mu_free(nbytes);
	return st;
}

void mu_engine_borders_close(struct mu_engine *e)
{
	struct engine_staged *s = e->split;

	for (size_t b = 0; s->borders && b < s->n_borders; b++)
		for (int way = 0; way < ENGINE_WAYS; way++)
			mu_passage_free(s->borders[b].ways[way].passage);
	mu_comm_close(&s->comm);
	mu_free(s->kinds);
}

/* ---- a batch ---- */

/* NULL: nothing passes; gradients pass only in training. */
static struct engine_way *way_of(const struct engine_staged *s, size_t b, int way)
{
	struct engine_way *w = &s->borders[b].ways[way];

	return w->passage && (way == ENGINE_VALUES || s->phase == MU_PHASE_TRAIN) ? w : NULL;
}

enum mu_status mu_engine_borders_begin(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;

	for (size_t k = 0; s->kinds && k < s->n_now; k++)
		s->kinds[k] = kind_of(s, k);
	for (size_t b = 0; b < s->n_borders; b++)
		for (int way = 0; way < ENGINE_WAYS; way++) {
			struct engine_way *w = way_of(s, b, way);

			if (!w)
				continue;
			w->begun = w->passed = 0;
			MU_TRY(mu_passage_begin(w->passage, s->kinds, s->n_now));
		}
out:
	return st;
}

/* Send the micro-batches that are complete. */
static enum mu_status send_ready(struct mu_engine *e, const struct engine_border *border, int way,
				 struct engine_way *w)
{
	enum mu_status st = MU_OK;
	const size_t i = way == ENGINE_VALUES
				 ? mu_engine_staged_counter(border->from, ENGINE_FORWARDS)
				 : mu_engine_staged_counter(border->to, ENGINE_BACKWARDS);

	for (const size_t made = mu_engine_threads_count(e->devices.threads, i); w->begun < made;
	     w->begun++) {
		MU_TRY(mu_passage_send(w->passage));
		mu_wake(e->members, mu_worker_rank(e->members, w->peer));
	}
out:
	return st;
}

enum mu_status mu_engine_borders_move(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;

	for (size_t b = 0; b < s->n_borders; b++)
		for (int way = 0; way < ENGINE_WAYS; way++) {
			struct engine_way *w = way_of(s, b, way);
			size_t passed;

			if (!w)
				continue;
			if (w->sends)
				MU_TRY(send_ready(e, &s->borders[b], way, w));
			MU_TRY(mu_passage_test(w->passage, &passed));
			for (; w->passed < passed; w->passed++)
				if (!w->sends)
					mu_engine_threads_increment(
						e->devices.threads, 0,
						mu_engine_border_counter(e, b, way));
		}
out:
	return st;
}

bool mu_engine_borders_have_left(const struct mu_engine *e)
{
	const struct engine_staged *s = e->split;

	for (size_t b = 0; b < s->n_borders; b++)
		for (int way = 0; way < ENGINE_WAYS; way++) {
			const struct engine_way *w = way_of(s, b, way);

			if (w && w->sends && w->passed < s->n_now)
				return false;
		}
	return true;
}

void mu_engine_borders_awaited(const void *context, struct mu_awaited *a)
{
	const struct mu_engine *e = context;
	const struct engine_staged *s = e->split;

	snprintf(a->what, sizeof a->what, "messages between the ranks of team %zu", e->team.index);
	for (size_t b = 0; b < s->n_borders; b++)
		for (int way = 0; way < ENGINE_WAYS; way++) {
			const struct engine_way *w = way_of(s, b, way);

			if (w && w->passed < s->n_now)
				mu_awaited_add(a, mu_worker_rank(e->members, w->peer));
		}
}

static struct mu_plan *plan_of(const struct engine_staged *s, size_t stage, size_t k, int way)
{
	return mu_engine_staged_plan_of(s, stage,
					way == ENGINE_GRADIENTS ? mu_engine_staged_micro(s, k) : k);
}

enum mu_status mu_engine_borders_receive(struct mu_engine *e, size_t stage, size_t k, int way)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;

	for (size_t b = 0; b < s->n_borders; b++) {
		const struct engine_border *border = &s->borders[b];
		const struct engine_way *w = way_of(s, b, way);

		if (w && !w->sends && stage == (way == ENGINE_VALUES ? border->to : border->from))
			MU_TRY(mu_plan_unpack(
				plan_of(s, border->from, k, way), plan_of(s, border->to, k, way),
				way == ENGINE_GRADIENTS, mu_passage_buffer(w->passage, k)));
	}
out:
	return st;
}

enum mu_status mu_engine_borders_send(struct mu_engine *e, size_t stage, size_t k, int way)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;

	for (size_t b = 0; b < s->n_borders; b++) {
		const struct engine_border *border = &s->borders[b];
		const struct engine_way *w = way_of(s, b, way);

		if (w && w->sends && stage == (way == ENGINE_VALUES ? border->from : border->to))
			MU_TRY(mu_plan_pack(plan_of(s, border->from, k, way),
					    plan_of(s, border->to, k, way), way == ENGINE_GRADIENTS,
					    mu_passage_buffer(w->passage, k)));
	}
out:
	return st;
}
