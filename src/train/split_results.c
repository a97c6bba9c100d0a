/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a batch that went through stages. */
#include "split.h"

#include <string.h>

double mu_train_split_loss(const struct train_run *run)
{
	double loss = 0;

	for (size_t k = 0; k < run->split->n_now; k++)
		loss += run->split->losses[k];
	return loss;
}

/* Of all samples, in their order. */
static const float *probabilities(const struct train_split *s, struct mu_shape *shape)
{
	struct mu_plan *last = mu_train_split_plan_of(s, s->stages.n - 1, 0);

	*shape = *mu_plan_probabilities_shape(last);
	if (!s->probabilities)
		return mu_plan_probabilities(last);
	shape->dims[0] = s->n_micro * s->micro;
	return s->probabilities;
}

void mu_train_split_measure(const struct train_run *run, struct mu_metrics *m)
{
	const struct train_split *s = run->split;
	const struct mu_batch *of_plan;
	struct mu_batch batch = s->batch;
	struct mu_shape shape;
	const float *p;

	if (!mu_train_split_is_here(run, s->stages.n - 1))
		return;
	of_plan = mu_plan_batch(mu_train_split_plan_of(s, s->stages.n - 1, 0));
	p = probabilities(s, &shape);
	batch.use_ignore = of_plan->use_ignore;
	batch.ignore_label = of_plan->ignore_label;
	mu_metrics_measure(m, p, &shape, &batch, (size_t)run->options.top_k);
}

void mu_train_split_probabilities(const struct train_run *run, float *out)
{
	struct mu_shape shape;
	const float *p = probabilities(run->split, &shape);

	memcpy(out, p, run->split->total * shape.dims[1] * sizeof *out);
}

enum mu_status mu_train_split_overflowed(const struct train_run *run, bool *overflowed)
{
	enum mu_status st = MU_OK;
	const struct train_split *s = run->split;
	bool one;

	*overflowed = false;
	for (size_t k = 0; k < s->n_now; k++)
		for (size_t stage = 0; stage < s->stages.n; stage++) {
			if (!mu_train_split_is_here(run, stage))
				continue;
			MU_TRY(mu_plan_overflowed(mu_train_split_plan_of(s, stage, k), &one));
			*overflowed |= one;
		}
out:
	return st;
}

/* All that is done here once more, in this thread. */
const char *mu_train_split_find_nonfinite(struct train_run *run)
{
	const struct train_split *s = run->split;
	const char *place = NULL;

	for (size_t k = 0; k < s->n_now && !place; k++)
		for (size_t stage = 0; stage < s->stages.n && !place; stage++)
			if (mu_train_split_is_here(run, stage) &&
			    mu_train_split_begin_forward(run, stage, k) == MU_OK)
				place = mu_plan_find_nonfinite(mu_train_split_plan_of(s, stage, k));
	return place;
}
