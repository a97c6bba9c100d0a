/* SPDX-License-Identifier: Apache-2.0 */
/* The devices' threads also run the store's updates of the whole model, between their jobs. */
#include "threads.h"
#include "engine/engine.h"

struct shared {
	mu_part_fn *part;
	void *of;
};

static enum mu_status do_part(void *context, size_t member)
{
	const struct shared *shared = context;

	shared->part(shared->of, member);
	return MU_OK;
}

static enum mu_status share_part(void *context, mu_part_fn *part, void *of)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = context;
	const struct engine_devices *s = &e->devices;
	const struct mu_device *first = &s->of[0].device;
	struct shared shared = {part, of};

	if (s->list.n == 1) {
		first->ops->share((size_t)first->n_threads, part, of);
	} else if (mu_engine_threads_ended(s->threads) && !mu_engine_threads_stopped(s->threads)) {
		mu_engine_threads_begin(s->threads, do_part, &shared);
		part(of, 0);
		MU_TRY(mu_engine_devices_join(e, false));
	} else { /* a job is in progress, or has an error that is not reported yet */
		for (size_t i = 0; i < s->list.n; i++)
			part(of, i);
	}
out:
	return st;
}

void mu_engine_devices_share(struct mu_engine *e, struct mu_share *share)
{
	const struct engine_devices *s = &e->devices;
	const struct mu_device *first = &s->of[0].device;

	*share = (struct mu_share){.n = s->list.n, .run = share_part, .context = e};
	if (s->list.n == 1)
		share->n = first->ops->share ? (size_t)first->n_threads : 1;
}
