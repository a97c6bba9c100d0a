/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of a rank made of a batch: loss, metrics, probabilities. */
#include <string.h>

#include "engine/stages/staged.h"

double mu_engine_devices_loss(const struct train_run *run)
{
	double loss = 0;

	if (run->split)
		return mu_engine_staged_loss(run);
	for (size_t i = 0; i < run->devices.list.n; i++)
		if (run->devices.of[i].now)
			loss += mu_plan_batch(run->devices.of[i].now)->loss;
	return loss;
}

void mu_engine_devices_measure(const struct train_run *run, struct mu_metrics *m)
{
	if (run->split)
		mu_engine_staged_measure(run, m);
	for (size_t i = 0; !run->split && i < run->devices.list.n; i++) {
		struct mu_plan *now = run->devices.of[i].now;

		if (now)
			mu_metrics_measure(m, mu_plan_probabilities(now),
					   mu_plan_probabilities_shape(now), mu_plan_batch(now),
					   (size_t)run->options.top_k);
	}
}

size_t mu_engine_devices_classes(const struct train_run *run)
{
	return mu_plan_probabilities_shape(run->plan)->dims[1];
}

void mu_engine_devices_probabilities(const struct train_run *run, float *out)
{
	const size_t classes = mu_engine_devices_classes(run);

	if (run->split)
		mu_engine_staged_probabilities(run, out);
	for (size_t i = 0; !run->split && i < run->devices.list.n; i++) {
		const struct engine_device *d = &run->devices.of[i];

		if (d->now)
			memcpy(out + d->first * classes, mu_plan_probabilities(d->now),
			       d->n * classes * sizeof *out);
	}
}

enum mu_status mu_engine_devices_overflowed(const struct train_run *run, bool *overflowed)
{
	enum mu_status st = MU_OK;
	bool one;

	if (run->split)
		return mu_engine_staged_overflowed(run, overflowed);
	*overflowed = false;
	for (size_t i = 0; i < run->devices.list.n; i++) {
		if (!run->devices.of[i].now)
			continue;
		MU_TRY(mu_plan_overflowed(run->devices.of[i].now, &one));
		*overflowed |= one;
	}
out:
	return st;
}

enum mu_status mu_engine_devices_skip(struct train_run *run)
{
	return run->split ? mu_engine_staged_skip(run) : MU_OK;
}

const char *mu_engine_devices_find_nonfinite(struct train_run *run)
{
	const char *place = NULL;

	if (run->split)
		return mu_engine_staged_find_nonfinite(run);
	for (size_t i = 0; i < run->devices.list.n && !place; i++)
		if (run->devices.of[i].now)
			place = mu_plan_find_nonfinite(run->devices.of[i].now);
	return place;
}
