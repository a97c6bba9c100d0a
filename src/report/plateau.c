/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --lr-schedule plateau: the learning rate is multiplied by --lr-factor after every validation
 * that is not better than the best so far by --plateau-improvement; by perplexity, or what the loss
 * has in its place. (MXNet's example/model-parallel-lstm, where both are fixed: 0.5 and 1.) All
 * workers see the same validations, and set the same rate.
 */
#include "observers.h"

#include <muster/base.h>
#include <muster/notice.h>

#include "checkpoint/checkpoint.h"

struct plateau {
	double best; /* the lowest perplexity, or what the loss has */
	double rate; /* factor of the learning rate; 0: no validation yet */
};

/* The store gets the rate of the checkpoint that the run resumes from. */
static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = o->view->engine;
	struct plateau *p;

	if (e->conf->schedule.kind != CONF_SCHEDULE_PLATEAU || e->conf->evaluate ||
	    e->members->role != MU_ROLE_WORKER)
		goto out;
	MU_TRY(MU_ALLOC(p, 1, "plateau"));
	o->state = p;
	p->best = o->view->from->plateau.best;
	p->rate = o->view->from->plateau.rate;
	if (p->rate > 0)
		mu_kv_set_rate(e->kv, p->rate);
out:
	return st;
}

static void close(struct report_observer *o)
{
	mu_free(o->state);
}

static void validation(struct report_observer *o, size_t epoch, size_t done,
		       const struct mu_metrics *m)
{
	const struct conf_schedule *s = &o->view->engine->conf->schedule;
	const struct mu_metric *metric = o->view->metrics->plateau;
	const double value = mu_metric_value(metric, m);
	struct plateau *p = o->state;

	(void)epoch;
	if (done > 0)
		return;
	if (p->rate == 0) { /* the first validation */
		p->rate = 1;
		p->best = value;
		return;
	}
	if (!(metric->better * value >= metric->better * p->best + s->improvement)) {
		p->rate *= s->factor;
		mu_kv_set_rate(o->view->engine->kv, p->rate);
		if (mu_report_is_worker_0(o))
			mu_log_info("%s %f is not %g %s %f: learning rate %g from now on",
				    metric->name, value, s->improvement,
				    metric->better > 0 ? "above" : "below", p->best,
				    o->view->lr * p->rate);
	}
	if (metric->better * value > metric->better * p->best)
		p->best = value;
}

static void save(const struct report_observer *o, struct checkpoint_position *at)
{
	const struct plateau *p = o->state;

	at->plateau.best = p->best;
	at->plateau.rate = p->rate;
}

const struct report_observer_ops mu_report_plateau = {
	.open = open, .close = close, .validation = validation, .save = save};
