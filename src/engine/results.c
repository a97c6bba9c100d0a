/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a batch on the devices of a rank: loss, metrics, probabilities. */
#include <string.h>

#include "samples.h"

double mu_engine_samples_loss(const struct mu_engine *e)
{
	double loss = 0;

	for (size_t i = 0; i < e->devices.list.n; i++)
		if (e->devices.of[i].now)
			loss += mu_plan_batch(e->devices.of[i].now)->loss;
	return loss;
}

void mu_engine_samples_measure(const struct mu_engine *e, struct mu_metrics *m)
{
	for (size_t i = 0; i < e->devices.list.n; i++)
		if (e->devices.of[i].now)
			mu_plan_metrics(e->devices.of[i].now, (size_t)e->conf->top_k, m);
}

void mu_engine_samples_predictions(const struct mu_engine *e, struct mu_prediction *out)
{
	for (size_t i = 0; i < e->devices.list.n; i++) {
		const struct engine_device *d = &e->devices.of[i];
		const size_t steps = d->now ? mu_plan_targets(d->now) : 0;

		if (steps > 0)
			memcpy(out + d->first * steps, mu_plan_batch(d->now)->predictions,
			       d->n * steps * sizeof *out);
	}
}

enum mu_status mu_engine_samples_probabilities(const struct mu_engine *e, float *out)
{
	enum mu_status st = MU_OK;
	const size_t n = mu_shape_sample(mu_plan_probabilities_shape(e->plan));

	for (size_t i = 0; i < e->devices.list.n; i++) {
		const struct engine_device *d = &e->devices.of[i];
		const float *p;

		if (!d->now)
			continue;
		MU_TRY((p = mu_plan_probabilities(d->now)) ? MU_OK : MU_ERR_MEMORY);
		memcpy(out + d->first * n, p, d->n * n * sizeof *out);
	}
out:
	return st;
}

enum mu_status mu_engine_samples_overflowed(const struct mu_engine *e, bool *overflowed)
{
	enum mu_status st = MU_OK;
	bool one;

	*overflowed = false;
	for (size_t i = 0; i < e->devices.list.n; i++) {
		if (!e->devices.of[i].now)
			continue;
		MU_TRY(mu_plan_overflowed(e->devices.of[i].now, &one));
		*overflowed |= one;
	}
out:
	return st;
}

const char *mu_engine_samples_find_nonfinite(struct mu_engine *e)
{
	const char *place = NULL;

	for (size_t i = 0; i < e->devices.list.n && !place; i++)
		if (e->devices.of[i].now)
			place = mu_plan_find_nonfinite(e->devices.of[i].now);
	return place;
}
