/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <muster/base.h>

#include "engine/stages/staged.h"
#include "threads.h"

void mu_engine_close(struct mu_engine *e)
{
	mu_engine_threads_free(e->devices.threads); /* first: its threads use everything below */
	mu_engine_energy_close(&e->energy);
	if (e->ops)
		e->ops->close(e);
	mu_engine_devices_close(e);
	mu_engine_conv_close(e);
	mu_net_free(e->block_net);
	for (size_t g = 0; e->nets && g < e->n_groups; g++)
		mu_net_free(e->nets[g]);
	mu_free(e->nets);
	if (e->tally)
		mu_tally_close(e->tally);
	mu_free(e->tally);
}

enum mu_status mu_engine_link(struct mu_engine *e)
{
	return e->team.size > 1 ? mu_engine_borders_open(e) : MU_OK;
}

uint64_t mu_engine_hash(const struct mu_engine *e)
{
	return mu_plan_hash(e->plan) ^ (e->ops->hash ? e->ops->hash(e) : 0);
}

size_t mu_engine_classes(const struct mu_engine *e)
{
	return mu_shape_channels(mu_plan_probabilities_shape(e->plan));
}

size_t mu_engine_update_period(const struct mu_engine *e)
{
	const size_t asked = (size_t)e->conf->update_period;

	return asked < e->steps ? asked : e->steps;
}

size_t mu_engine_updates(const struct mu_engine *e)
{
	const size_t period = mu_engine_update_period(e);

	return period > 0 ? (e->steps + period - 1) / period : 0;
}

enum mu_status mu_engine_skip(struct mu_engine *e)
{
	return e->ops->skip ? e->ops->skip(e) : MU_OK;
}

enum mu_status mu_engine_backward_begin(struct mu_engine *e)
{
	enum mu_status st = MU_OK;

	if (!e->early_backward)
		goto out;
	mu_clock_start(MU_CLOCK_FORWARD); /* it waits for forward */
	st = e->ops->backward_begin(e);
	mu_clock_stop(MU_CLOCK_FORWARD);
out:
	return st;
}
