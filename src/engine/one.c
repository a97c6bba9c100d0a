/* SPDX-License-Identifier: Apache-2.0 */
/* One device with all layers and all samples. */
#include "samples.h"

#include <muster/base.h>

static enum mu_status bind(struct mu_engine *e)
{
	return mu_engine_samples_bind(e, &e->devices.of[0]);
}

static enum mu_status forward(struct mu_engine *e, size_t l)
{
	return mu_plan_forward(e->devices.of[0].now, l);
}

static enum mu_status backward(struct mu_engine *e, size_t *ready)
{
	return mu_engine_samples_backward_next(&e->devices.of[0], &e->devices.layer, ready);
}

static enum mu_status backward_begin(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;

	while (s->layer > 0)
		MU_TRY(mu_plan_backward_begin(s->of[0].now, --s->layer));
	MU_TRY(mu_plan_results_end(s->of[0].now));
out:
	return st;
}

static void describe(const struct mu_engine *e)
{
	char text[128];

	mu_log_detail("device %s",
		      mu_engine_device_text(&e->devices.of[0].device, text, sizeof text));
}

const struct mu_engine_ops mu_engine_one = {
	.open = mu_engine_samples_open,
	.plan = mu_engine_samples_plan,
	.allocate = mu_engine_samples_allocate,
	.close = mu_engine_samples_close,
	.arena = mu_engine_samples_arena,
	.activations = mu_engine_samples_activations,
	.bind = bind,
	.begin = mu_engine_samples_begin,
	.count = mu_engine_samples_count,
	.forward = forward,
	.backward = backward,
	.backward_begin = backward_begin,
	.loss = mu_engine_samples_loss,
	.measure = mu_engine_samples_measure,
	.probabilities = mu_engine_samples_probabilities,
	.predictions = mu_engine_samples_predictions,
	.overflowed = mu_engine_samples_overflowed,
	.find_nonfinite = mu_engine_samples_find_nonfinite,
	.describe = describe,
	.shares_batch = true,
};
