/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log in the plain form: one line an epoch, and one at the end. A line is written when its
 * epoch is validated and saved, at the latest when the next one begins.
 */
#include "observers.h"

#include <string.h>

#include <muster/base.h>

#include "checkpoint/checkpoint.h"

struct lines {
	long num_epochs;
	struct report_window trained;
	struct mu_metrics validated;
	bool pending, has_validation;
	char saved[CHECKPOINT_PATH]; /* "": the epoch has no file */
	size_t epochs;
	double seconds, samples; /* of all epochs, without validation */
	double last, best;       /* accuracy of validation */
	size_t best_epoch;       /* counted from 1; 0: none yet */
};

static enum mu_status open(struct report_observer *o)
{
	enum mu_status st = MU_OK;
	struct lines *l;

	if (!mu_report_is_worker_0(o))
		goto out;
	MU_TRY(MU_ALLOC(l, 1, "lines of epochs"));
	o->state = l;
	l->num_epochs = o->view->engine->conf->num_epochs;
out:
	return st;
}

static double loss(const struct mu_metrics *m)
{
	return m->predictions > 0 ? m->cross_entropy / m->predictions : 0;
}

static double accuracy(const struct mu_metrics *m)
{
	return m->predictions > 0 ? m->correct / m->predictions : 0;
}

static double speed(double samples, double seconds)
{
	return seconds > 0 ? samples / seconds : 0;
}

static void write_line(struct lines *l)
{
	const struct report_window *w = &l->trained;
	const char *name = strrchr(l->saved, '/');
	char validation[96] = "";

	if (!l->pending)
		return;
	l->pending = false;
	if (l->has_validation)
		snprintf(validation, sizeof validation, ", val %.4f acc %.4f best %.4f",
			 loss(&l->validated), accuracy(&l->validated), l->best);
	mu_log_status("");
	mu_log_plain("epoch %zu/%ld: loss %.4f acc %.4f%s, %.1f s, %.0f/s%s%s", w->epoch + 1,
		     l->num_epochs, loss(&w->metrics), accuracy(&w->metrics), validation,
		     w->seconds, speed(w->samples, w->seconds), *l->saved ? ", " : "",
		     name ? name + 1 : l->saved);
}

static void close(struct report_observer *o)
{
	write_line(o->state);
	mu_free(o->state);
}

static void epoch_begin(struct report_observer *o, size_t first)
{
	struct lines *l = o->state;

	(void)first;
	write_line(l);
	l->has_validation = false;
	l->saved[0] = '\0';
}

static void epoch(struct report_observer *o, const struct report_window *w)
{
	struct lines *l = o->state;

	l->seconds += w->seconds;
	l->samples += w->samples;
	if (w->early || w->metrics.samples <= 0)
		return;
	l->trained = *w;
	l->pending = true;
	l->epochs++;
}

/* Without an epoch before it: of --evaluate, or of a run that has nothing left to train. */
static void validation(struct report_observer *o, size_t epoch, const struct mu_metrics *m)
{
	struct lines *l = o->state;

	l->validated = *m;
	l->has_validation = true;
	l->last = accuracy(m);
	if (l->best_epoch == 0 || l->last > l->best) {
		l->best = l->last;
		l->best_epoch = epoch + 1;
	}
	if (l->pending) /* the file follows */
		return;
	mu_log_status("");
	mu_log_in(MU_LOG_PLAIN, MU_LOG_RESULT,
		  "validation: loss %.4f, accuracy %.4f (%.0f samples)", loss(m), accuracy(m),
		  m->samples);
}

static void save(const struct report_observer *o, struct checkpoint_position *at)
{
	struct lines *l = o->state;
	const struct mu_engine *e = o->view->engine;

	if (!l->pending || at->step > 0)
		return;
	if (e->conf->model_prefix &&
	    (at->epoch % (size_t)e->conf->save_period == 0 || o->view->best->improved))
		mu_checkpoint_path(e->conf->model_prefix, at->epoch, 0, l->saved, sizeof l->saved);
	write_line(l);
}

static enum mu_status end(struct report_observer *o)
{
	struct lines *l = o->state;
	char result[96] = "";

	write_line(l);
	if (l->samples == 0)
		return MU_OK;
	if (l->best_epoch > 0)
		snprintf(result, sizeof result,
			 "; validation accuracy %.4f, best %.4f after epoch %zu", l->last, l->best,
			 l->best_epoch);
	mu_log_in(MU_LOG_PLAIN, MU_LOG_RESULT, "trained %zu epoch%s in %.1f s, %.0f samples/s%s",
		  l->epochs, l->epochs == 1 ? "" : "s", l->seconds, speed(l->samples, l->seconds),
		  result);
	return MU_OK;
}

const struct report_observer_ops mu_report_epoch_line = {
	.open = open,
	.close = close,
	.epoch_begin = epoch_begin,
	.epoch = epoch,
	.validation = validation,
	.save = save,
	.end = end,
};
