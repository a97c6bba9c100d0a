/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-batches of a batch: their plans, samples, labels and results. */
#include "staged.h"

#include <string.h>

#include <muster/base.h>

/* Micro-batch k of the current batch: its first sample, and its number of samples. A time block has
 * all samples. */
static size_t first_of(const struct engine_staged *s, size_t k)
{
	return s->steps > 0 ? 0 : k * s->micro;
}

static size_t samples_of(const struct engine_staged *s, size_t k)
{
	const size_t left = s->total - first_of(s, k);

	return s->steps == 0 && left < s->micro ? left : s->micro;
}

size_t mu_engine_staged_micro(const struct engine_staged *s, size_t i)
{
	return s->steps > 0 ? s->n_now - 1 - i : i;
}

struct mu_plan *mu_engine_staged_plan_of(const struct engine_staged *s, size_t stage, size_t k)
{
	const struct engine_stage *of = &s->of[stage];
	const struct engine_plans *plans =
		&of->slots[k % of->n_slots].plans[s->steps > 0 ? 0 : s->group];

	if (s->phase == MU_PHASE_INFER)
		return plans->infer;
	return samples_of(s, k) == s->micro ? plans->full : plans->tail;
}

/* Copy the steps of block k from rows of all steps; pad with `fill` after the last step and row. */
static void cut_block(const struct mu_engine *e, size_t k, const float *rows, float fill,
		      float *out)
{
	const struct engine_staged *s = e->split;
	const size_t length = e->devices.sample;

	for (size_t i = 0; i < s->micro; i++)
		for (size_t t = 0; t < s->steps; t++) {
			const size_t step = k * s->steps + t;

			*out++ = i < s->total && step < length ? rows[i * length + step] : fill;
		}
}

/* The labels of block k, for the last stage. A network without an ignored label ignores -1. */
static const float *block_labels(const struct mu_engine *e, struct mu_batch *own, size_t k)
{
	const struct engine_staged *s = e->split;
	float *labels = s->labels + k * s->micro * s->steps;

	if (!own->use_ignore)
		own->ignore_label = -1;
	own->use_ignore = true;
	cut_block(e, k, s->batch.labels, own->ignore_label, labels);
	return labels;
}

static void set_batch(const struct mu_engine *e, struct mu_plan *plan, size_t stage, size_t k)
{
	const struct engine_staged *s = e->split;
	const size_t first = first_of(s, k), n = samples_of(s, k);
	const size_t left = s->batch.count > first ? s->batch.count - first : 0;
	struct mu_batch *own = mu_plan_batch(plan);

	own->count = left < n ? left : n;
	if (s->steps == 0)
		own->labels = s->batch.labels + first * mu_input_labels(e->train, s->group);
	else if (stage + 1 == s->stages.n)
		own->labels = block_labels(e, own, k);
	own->ids = s->batch.ids + first;
	own->label_smoothing = s->batch.label_smoothing;
	own->loss_scale = s->batch.loss_scale;
	own->seed = s->batch.seed;
	own->epoch = s->batch.epoch;
	own->step = s->batch.step;
}

/* Copy the samples if this stage reads them. */
static void set_input(const struct mu_engine *e, struct mu_plan *plan, size_t k)
{
	const struct engine_staged *s = e->split;
	const size_t n = e->devices.sample;

	if (!mu_plan_input(plan))
		return;
	if (s->steps > 0)
		cut_block(e, k, e->devices.samples, 0, mu_plan_input(plan));
	else
		memcpy(mu_plan_input(plan), e->devices.samples + first_of(s, k) * n,
		       samples_of(s, k) * n * sizeof(float));
}

enum mu_status mu_engine_staged_begin_forward(struct mu_engine *e, size_t stage, size_t k)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	struct mu_plan *plan = mu_engine_staged_plan_of(s, stage, k);
	const size_t first = mu_engine_staged_micro(s, 0);

	set_batch(e, plan, stage, k);
	if (s->partial && s->phase == MU_PHASE_TRAIN) { /* the first backward overwrites the sum */
		float *weights = mu_kv_weights(e->kv);

		if (k == first)
			MU_TRY(mu_plan_bind(plan, weights, s->gradients));
		else
			MU_TRY(mu_plan_bind_sum(plan, weights, s->gradients, s->partial,
						k == mu_engine_staged_micro(s, s->n_now - 1)));
	}
	mu_plan_set_upload(plan, k == 0);
	if (s->steps > 0)
		mu_plan_join(plan, k, k > 0 ? mu_engine_staged_plan_of(s, stage, k - 1) : NULL,
			     k + 1 < s->n_now ? mu_engine_staged_plan_of(s, stage, k + 1) : NULL);
	set_input(e, plan, k);
	for (size_t r = 0; r < stage; r++)
		if (mu_engine_staged_is_here(e, r))
			MU_TRY(mu_plan_receive(plan, mu_engine_staged_plan_of(s, r, k)));
	MU_TRY(mu_engine_borders_receive(e, stage, k, ENGINE_VALUES));
out:
	return st;
}

enum mu_status mu_engine_staged_keep(struct mu_engine *e, size_t k)
{
	enum mu_status st = MU_OK;
	struct engine_staged *s = e->split;
	struct mu_plan *plan = mu_engine_staged_plan_of(s, s->stages.n - 1, k);
	const struct mu_shape *shape = mu_plan_probabilities_shape(plan);
	const size_t n = mu_shape_sample(shape), targets = mu_plan_targets(plan);
	const float *p;

	s->losses[k] = mu_plan_batch(plan)->loss;
	s->measured[k] = (struct mu_metrics){
		.tally = s->phase == MU_PHASE_TRAIN ? NULL : e->tally};
	mu_plan_metrics(plan, (size_t)e->conf->top_k, &s->measured[k]);
	if (s->predictions)
		memcpy(s->predictions + first_of(s, k) * targets, mu_plan_batch(plan)->predictions,
		       samples_of(s, k) * targets * sizeof *s->predictions);
	if (s->phase == MU_PHASE_TRAIN || !s->probabilities)
		goto out;
	MU_TRY((p = mu_plan_probabilities(plan)) ? MU_OK : MU_ERR_MEMORY);
	memcpy(s->probabilities + first_of(s, k) * n, p, samples_of(s, k) * n * sizeof(float));
out:
	return st;
}
