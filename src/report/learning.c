/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A warning where nothing is learnt: at the end of the first epoch after enough steps, the loss
 * of its second half is at chance, if the loss knows that, or above the first step's. Fewer steps
 * are enough where it is far above both. The usual cause is the learning rate, and the warning has
 * another one. Worker 0, by its own losses.
 */
#include "observers.h"

#include <math.h>

#include <muster/base.h>

#include "checkpoint/checkpoint.h"

/* Below MOVED times chance the loss has moved. Steps: fewer may be too few to learn anything. */
#define MOVED 0.98
#define ROSE  1.05
#define FAR   2
enum { ENOUGH_STEPS = 100, FEW_STEPS = 10, FACTOR = 10 };

struct learning {
	struct mu_metrics half; /* of the first half of the epoch */
	double start, most;     /* loss of the run's first step; highest of a step so far */
	struct mu_metrics last; /* of the epoch so far */
	size_t steps;           /* of the run */
	bool judged;
};

static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	const struct conf *v = o->view->engine->conf;
	const struct checkpoint_position *from = o->view->from;
	struct learning *l;

	/* Random data have nothing to learn; a run that resumes, or begins with the parameters of a
	 * file, does not begin at chance. */
	if (!mu_report_is_worker_0(o) || v->benchmark || v->evaluate || v->load ||
	    from->epoch > 0 || from->step > 0)
		goto out;
	MU_TRY(MU_ALLOC(l, 1, "learning"));
	o->state = l;
out:
	return st;
}

static void close(struct report_observer *o)
{
	mu_free(o->state);
}

/* The mean loss of what `to` has and `from` has not; below 0: nothing. */
static double mean_loss(const struct report_observer *o, const struct mu_metrics *from,
			const struct mu_metrics *to)
{
	const struct mu_metrics m = mu_metrics_since(to, from);

	return m.counted > 0 ? mu_metric_value(o->view->metrics->mean, &m) : -1;
}

static void step(struct report_observer *o, const struct report_step *s)
{
	struct learning *l = o->state;
	const struct mu_metrics none = {0};
	double loss;

	if (l->judged)
		return;
	if (s->done == 1)
		l->half = l->last = none;
	loss = mean_loss(o, &l->last, &s->metrics);
	if (l->steps++ == 0)
		l->start = loss;
	l->most = loss > l->most ? loss : l->most;
	l->last = s->metrics;
	if (s->done <= o->view->engine->steps / 2)
		l->half = s->metrics;
}

/* "try a higher --lr, such as 0.5 (now 0.05)" */
static void advise(const struct report_observer *o, bool lower, char *text, size_t nbytes)
{
	const struct conf *v = o->view->engine->conf;
	const double lr = o->view->lr;

	if (v->facts.lacks_rate || lr <= 0)
		snprintf(text, nbytes, "try another --optimizer");
	else
		snprintf(text, nbytes, "try a %s --lr, such as %.3g (now %.3g)",
			 lower ? "lower" : "higher", lower ? lr / FACTOR : lr * FACTOR, lr);
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	struct learning *l = o->state;
	const struct mu_loss *kind = o->view->metrics->loss;
	char advice[96], source[64];
	const double chance = kind->chance ? kind->chance(o->view->engine->train->classes, source,
							  sizeof source)
					   : 0;
	const double loss = mean_loss(o, &l->half, &l->last);
	const bool far = loss > FAR * fmax(l->start, chance);

	if (l->judged || l->steps < (far ? FEW_STEPS : ENOUGH_STEPS) || w->early)
		return;
	l->judged = true;
	if (loss < 0 || l->start < 0) /* of a team another rank has the loss */
		return;
	if (loss > ROSE * l->start && loss > chance) {
		advise(o, true, advice, sizeof advice);
		mu_log_warn("epoch %zu of %ld: the loss has risen from %.4g to %.4g: %s",
			    w->epoch + 1, o->view->engine->conf->num_epochs, l->start, loss,
			    advice);
	} else if (chance > 0 && loss > MOVED * chance) {
		advise(o, l->most > 2 * l->start, advice, sizeof advice);
		mu_log_warn("epoch %zu of %ld: nothing is learnt: the loss is %.4g, and that of "
			    "chance is %.4g, %s: %s",
			    w->epoch + 1, o->view->engine->conf->num_epochs, loss, chance, source,
			    advice);
	}
}

const struct report_observer_ops mu_report_learning = {
	.open = open, .close = close, .step = step, .epoch = epoch};
