/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --lr-schedule plateau: the learning rate is multiplied by --lr-factor after every validation
 * whose perplexity is not lower than the lowest so far by --plateau-improvement. (MXNet's
 * example/model-parallel-lstm, where both are fixed: 0.5 and 1.)
 */
#include "plateau.h"

#include <math.h>
#include <string.h>

bool mu_train_has_plateau(const struct conf *v)
{
	return v->schedule.kind == CONF_SCHEDULE_PLATEAU;
}

void mu_train_plateau_resume(struct train_run *run)
{
	if (mu_train_has_plateau(&run->options) && run->plateau.rate > 0)
		mu_kv_set_rate(run->kv, run->plateau.rate);
}

void mu_train_plateau_look(struct train_run *run, const struct mu_metrics *m)
{
	struct checkpoint_plateau *p = &run->plateau;
	const struct conf_schedule *s = &run->options.schedule;
	const double perplexity = exp(m->log_loss / m->predictions);

	if (!mu_train_has_plateau(&run->options))
		return;
	if (p->rate == 0) { /* the first validation */
		p->rate = 1;
		p->best = perplexity;
		return;
	}
	if (!(perplexity <= p->best - s->improvement)) {
		p->rate *= s->factor;
		mu_kv_set_rate(run->kv, p->rate);
		if (run->topology.index == 0)
			mu_log_info("perplexity %f is not %g below %f: learning rate %g from now "
				    "on",
				    perplexity, s->improvement, p->best, run->lr * p->rate);
	}
	if (perplexity < p->best)
		p->best = perplexity;
}
