/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of gradients: see "shards of gradients" in kvstore.h. */
#include "engine/engine.h"

#include <string.h>

#include <muster/base.h>

#include "lives.h"

enum mu_status mu_engine_lives(const struct conf *v, const struct mu_plan *plan,
			       struct mu_kv_life **lives)
{
	enum mu_status st = MU_OK;
	const size_t n = mu_plan_layers(plan);
	const size_t *keys;
	size_t n_slices;

	*lives = NULL;
	if (!v->shard_gradients)
		goto out;
	mu_plan_slices(plan, &n_slices);
	MU_TRY(MU_ALLOC(*lives, n_slices + 1, "lives of gradients"));
	for (size_t l = 0; l < n; l++) { /* the last layer that writes a key is first in backward */
		for (size_t i = mu_plan_layer_writes(plan, l, &keys); i-- > 0;)
			(*lives)[keys[i]].from = n - 1 - l;
		for (size_t i = mu_plan_layer_keys(plan, l, &keys); i-- > 0;)
			(*lives)[keys[i]].to = n - 1 - l;
	}
out:
	return st;
}

enum mu_status mu_engine_gradients_begin(const struct mu_engine *e, size_t l)
{
	enum mu_status st = MU_OK;
	const size_t *keys;

	for (size_t i = mu_plan_layer_writes(e->plan, l, &keys); i-- > 0;)
		MU_TRY(mu_kv_gradients_begin(e->kv, keys[i]));
out:
	return st;
}

enum mu_status mu_engine_gradients_clear(const struct mu_engine *e, size_t l)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	const size_t *keys, *places = mu_kv_gradient_places(e->kv);

	MU_TRY(mu_engine_gradients_begin(e, l));
	for (size_t i = mu_plan_layer_keys(e->plan, l, &keys); i-- > 0;) {
		const struct mu_slice *s = &slices[keys[i]];
		const size_t at = places ? places[keys[i]] : s->at;

		memset(mu_kv_gradients(e->kv) + at, 0, s->n_padded * sizeof(float));
	}
out:
	return st;
}
