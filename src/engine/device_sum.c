/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sum of the devices' gradients. Each element is summed in the order of the devices, so the
 * result does not depend on the thread. The home of a key is the device whose thread sums it into
 * the first device's array, which is the store's. For stores that sum on the CPU the first device
 * is the home of all keys. Stores of GPUs sum by themselves: no key has a home.
 */
#include "accumulate.h"
#include "engine/engine.h"

#include <string.h>

#include <muster/base.h>

enum { BLOCK = 4096 }; /* elements that stay in the L1 cache while devices are added */

/* The largest key without a home; among equal ones the first. */
static size_t largest_left(const struct mu_slice *slices, size_t n, const size_t *homes)
{
	size_t found = n;

	for (size_t k = 0; k < n; k++)
		if (homes[k] == SIZE_MAX &&
		    (found == n || slices[k].n_padded > slices[found].n_padded))
			found = k;
	return found;
}

enum mu_status mu_engine_homes(struct mu_engine *e, bool on_devices)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	size_t n, loads[TRAIN_MAX_DEVICES] = {0};
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n);

	MU_TRY(MU_ALLOC(s->homes, n, "homes of the keys"));
	for (size_t k = 0; k < n; k++)
		s->homes[k] = on_devices ? SIZE_MAX : 0;
	for (size_t i = 0; on_devices && !e->store->on_gpus && i < n; i++) {
		size_t k = largest_left(slices, n, s->homes), least = 0;

		for (size_t d = 1; d < s->list.n; d++)
			if (loads[d] < loads[least])
				least = d;
		s->homes[k] = least;
		loads[least] += slices[k].n_padded;
	}
out:
	return st;
}

bool mu_engine_is_home(const struct mu_engine *e, size_t device)
{
	size_t n;

	mu_plan_slices(e->plan, &n);
	for (size_t k = 0; k < n; k++)
		if (e->devices.homes[k] == device)
			return true;
	return false;
}

/* Sum n elements from `at`. Devices without samples are skipped. */
static void sum_block(const struct engine_devices *s, size_t at, size_t n)
{
	float *out = s->of[0].gradients + at;
	bool first = true;

	for (size_t i = 0; i < s->list.n; i++) {
		const struct engine_device *d = &s->of[i];

		if (!d->now)
			continue;
		if (!first)
			mu_engine_add(out, d->gradients + at, n);
		else if (i > 0)
			memcpy(out, d->gradients + at, n * sizeof *out);
		first = false;
	}
}

static void sum_key(const struct engine_devices *s, const struct mu_slice *slice)
{
	for (size_t at = 0; at < slice->n_padded; at += BLOCK) {
		size_t left = slice->n_padded - at;

		sum_block(s, slice->at + at, left < BLOCK ? left : BLOCK);
	}
}

void mu_engine_sum_layers(struct mu_engine *e, struct engine_device *d, size_t to)
{
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	const size_t *keys;

	while (d->unsummed > to)
		for (size_t i = mu_plan_layer_keys(e->plan, --d->unsummed, &keys); i-- > 0;)
			if (e->devices.homes[keys[i]] == d->number)
				sum_key(&e->devices, &slices[keys[i]]);
}
