/* SPDX-License-Identifier: Apache-2.0 */
/* The best validation so far, which P-best points to, and --early-stopping. */
#include "best.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

void mu_train_best_open(struct train_best *b, const struct mu_engine *e,
			const struct engine_metrics *metrics, const struct checkpoint_best *from)
{
	const bool tells = mu_members_lead(e->members);

	*b = (struct train_best){.conf = e->conf, .metric = metrics->best, .worker_0 = tells};
	b->state.pending = from->pending;
	snprintf(b->state.metric, sizeof b->state.metric, "%s",
		 b->metric ? b->metric->name : "none");
	if (!b->metric)
		return;
	if (from->epoch == 0 || strcmp(from->metric, b->metric->name) == 0)
		b->state = *from;
	else if (tells)
		mu_log_info("the checkpoint's best validation is of %s: that of %s begins anew",
			    from->metric, b->metric->name);
	snprintf(b->state.metric, sizeof b->state.metric, "%s", b->metric->name);
	b->state.pending = from->pending;
}

bool mu_train_best_update(struct train_best *b, size_t epochs, const struct mu_metrics *m)
{
	struct checkpoint_best *s = &b->state;
	const double value = b->metric ? mu_metric_value(b->metric, m) : 0;

	s->pending = s->improved = false;
	if (!b->metric)
		return false;
	if (isnan(value)) { /* not defined */
		s->since++;
		return false;
	}
	s->improved = s->epoch == 0 ||
		      (b->metric->better > 0 ? value > s->value : value < s->value);
	if (!s->improved) {
		s->since++;
		return false;
	}
	s->value = value;
	s->epoch = epochs;
	s->since = 0;
	return true;
}

void mu_train_best_report(const struct train_best *b)
{
	const struct checkpoint_best *s = &b->state;

	if (b->worker_0 && s->improved && (b->conf->model_prefix || b->conf->early_stopping > 0))
		mu_log_mxnet("best so far: %s %f of Epoch[%zu]", s->metric, s->value, s->epoch - 1);
}

bool mu_train_best_stops(const struct train_best *b)
{
	const struct checkpoint_best *s = &b->state;
	const long patience = b->conf->early_stopping;

	if (patience == 0 || s->since < (size_t)patience)
		return false;
	if (b->worker_0 && s->epoch == 0)
		mu_log_info("early stopping: %s was not defined in %zu validation%s: training ends",
			    s->metric, s->since, MU_S(s->since));
	else if (b->worker_0)
		mu_log_info("early stopping: no better %s than %f after epoch %zu of %ld in %zu "
			    "validation%s: training ends",
			    s->metric, s->value, s->epoch, b->conf->num_epochs, s->since,
			    MU_S(s->since));
	return true;
}
