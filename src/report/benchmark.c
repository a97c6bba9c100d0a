/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines of a --benchmark of pictures, in the words of Horovod's benchmarks, which tests of
 * clusters look for (EESSI's, with ReFrame): speed of all epochs, over all GPUs, or CPUs: workers.
 */
#include "observers.h"

#include <muster/base.h>

struct speed {
	double seconds, samples;
};

static enum mu_status open(struct report_observer *o)
{
	const struct mu_engine *e = o->view->engine;

	if (!mu_report_is_worker_0(o) || !e->conf->benchmark ||
	    (e->network->traits & MU_NETWORK_SEQUENCES))
		return MU_OK;
	return mu_alloc(&o->state, sizeof(struct speed), "speed of a benchmark");
}

static void close(struct report_observer *o)
{
	mu_free(o->state);
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	struct speed *s = o->state;

	s->seconds += w->seconds;
	s->samples += w->samples;
}

static enum mu_status end(struct report_observer *o)
{
	const struct mu_engine *e = o->view->engine;
	const struct speed *s = o->state;
	const bool gpus = e->list->kind->memory;
	const size_t n = (size_t)e->members->num_workers * (gpus ? e->list->n : 1);
	const double all = s->seconds > 0 ? s->samples / s->seconds : 0;
	const char letter = gpus ? 'G' : 'C';

	if (s->samples == 0)
		return MU_OK;
	mu_log_in(MU_LOG_ANY, MU_LOG_RESULT, "Img/sec per %cPU: %.2f", letter, all / (double)n);
	mu_log_in(MU_LOG_ANY, MU_LOG_RESULT, "Total img/sec on %zu %cPU(s): %.2f", n, letter, all);
	return MU_OK;
}

const struct report_observer_ops mu_report_benchmark = {
	.open = open,
	.close = close,
	.epoch = epoch,
	.end = end,
};
