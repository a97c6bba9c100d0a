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

/* Each sample counts once, also where its blocks are measured one by one. */
void mu_engine_staged_measure(const struct mu_engine *e, struct mu_metrics *m)
{
	const struct engine_staged *s = e->split;
	const double samples = m->samples + (double)s->batch.count;

	if (!mu_engine_staged_is_here(e, s->stages.n - 1))
		return;
	for (size_t k = 0; k < s->n_now; k++)
		mu_metrics_add(m, &s->measured[k]);
	m->samples = samples;
}

enum mu_status mu_engine_staged_probabilities(const struct mu_engine *e, float *out)
{
	enum mu_status st = MU_OK;
	const struct engine_staged *s = e->split;
	struct mu_plan *last = mu_engine_staged_plan_of(s, s->stages.n - 1, 0);
	const float *p = s->probabilities;

	if (!p)
		MU_TRY((p = mu_plan_probabilities(last)) ? MU_OK : MU_ERR_MEMORY);
	memcpy(out, p,
	       s->total * mu_shape_sample(mu_plan_probabilities_shape(last)) * sizeof *out);
out:
	return st;
}

void mu_engine_staged_predictions(const struct mu_engine *e, struct mu_prediction *out)
{
	const struct engine_staged *s = e->split;
	const struct mu_plan *last = mu_engine_staged_plan_of(s, s->stages.n - 1, 0);

	memcpy(out, s->predictions, s->total * mu_plan_targets(last) * sizeof *out);
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
