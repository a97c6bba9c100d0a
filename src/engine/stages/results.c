/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a batch of a cut network. */
#include "staged.h"

#include <string.h>

double mu_engine_staged_loss(const struct mu_engine *e)
{
	double loss = 0;

	for (size_t k = 0; k < e->split->n_now; k++)
		loss += e->split->losses[k];
	return loss;
}

/* Of all samples, in order. */
static const float *probabilities(const struct engine_staged *s, struct mu_shape *shape)
{
	struct mu_plan *last = mu_engine_staged_plan_of(s, s->stages.n - 1, 0);

	*shape = *mu_plan_probabilities_shape(last);
	if (!s->probabilities)
		return s->outputs[0];
	shape->dims[0] = s->n_micro * s->micro;
	return s->probabilities;
}

/* Each sample counts once. */
static void measure_blocks(const struct engine_staged *s, struct mu_metrics *m,
			   struct mu_batch *batch, size_t top_k)
{
	const size_t last = s->stages.n - 1;
	const double samples = m->samples + (double)batch->count;

	for (size_t k = 0; k < s->n_now; k++) {
		batch->labels = s->labels + k * s->micro * s->steps;
		mu_metrics_measure(
			m, s->outputs[k],
			mu_plan_probabilities_shape(mu_engine_staged_plan_of(s, last, k)), batch,
			top_k);
	}
	m->samples = samples;
}

void mu_engine_staged_measure(const struct mu_engine *e, struct mu_metrics *m)
{
	const struct engine_staged *s = e->split;
	const size_t top_k = (size_t)e->conf->top_k;
	struct mu_plan *last;
	struct mu_batch batch = s->batch;
	struct mu_shape shape;
	const float *p;

	if (!mu_engine_staged_is_here(e, s->stages.n - 1))
		return;
	last = mu_engine_staged_plan_of(s, s->stages.n - 1, 0);
	if (!s->outputs[0]) {
		const double samples = m->samples + (double)batch.count;

		for (size_t k = 0; k < s->n_now; k++)
			mu_metrics_add(m, &s->measured[k]);
		m->samples = samples;
		return;
	}
	batch.use_ignore = mu_plan_batch(last)->use_ignore;
	batch.ignore_label = mu_plan_batch(last)->ignore_label;
	if (s->steps > 0) {
		measure_blocks(s, m, &batch, top_k);
		return;
	}
	p = probabilities(s, &shape);
	mu_metrics_measure(m, p, &shape, &batch, top_k);
}

enum mu_status mu_engine_staged_probabilities(const struct mu_engine *e, float *out)
{
	struct mu_shape shape;
	const float *p = probabilities(e->split, &shape);

	memcpy(out, p, e->split->total * shape.dims[1] * sizeof *out);
	return MU_OK;
}

enum mu_status mu_engine_staged_overflowed(const struct mu_engine *e, bool *overflowed)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	bool one;

	*overflowed = false;
	for (size_t k = 0; k < s->n_now; k++)
		for (size_t stage = 0; stage < s->stages.n; stage++) {
			if (!mu_engine_staged_is_here(e, stage))
				continue;
			MU_TRY(mu_plan_overflowed(mu_engine_staged_plan_of(s, stage, k), &one));
			*overflowed |= one;
		}
out:
	return st;
}

/* Repeat the forwards of this rank, on this thread. */
const char *mu_engine_staged_find_nonfinite(struct mu_engine *e)
{
	const struct engine_staged *s = e->split;
	const char *place = NULL;

	for (size_t k = 0; k < s->n_now && !place; k++)
		for (size_t stage = 0; stage < s->stages.n && !place; stage++)
			if (mu_engine_staged_is_here(e, stage) &&
			    mu_engine_staged_begin_forward(e, stage, k) == MU_OK)
				place = mu_plan_find_nonfinite(
					mu_engine_staged_plan_of(s, stage, k));
	return place;
}
