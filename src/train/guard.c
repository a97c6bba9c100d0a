/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See guard.h. The loss scale grows and falls as in PyTorch's GradScaler and MXNet's LossScaler:
 * twice the scale after --loss-scale-window good batches, half of it after a bad one.
 *
 * A bad batch must change nothing on any worker, and gradients that were pushed cannot be
 * recalled. So with a loss scale gradients are pushed only after all workers found theirs finite:
 * one maximum a batch, and no push overlaps with backward. A skipped batch is skipped by all
 * workers, as are batches without samples. The workers of dist_async do not meet inside an epoch:
 * there each has its own scale, and checkpoints hold worker 0's.
 */
#include "guard.h"

#include <math.h>

#include <muster/base.h>

#include "checkpoint/checkpoint.h"
#include "engine/engine.h"

/* Once weights are not finite, no later batch is good. */
#define MOST_IN_A_ROW 10

enum { WHERE_BYTES = 96 };

/* Initial scale of other frameworks, for a batch's mean loss; ours is for the sum. */
#define START 65536.0
#define LEAST CONF_SCALE_LEAST
#define MOST  CONF_SCALE_MOST

void mu_train_guard_open(struct train_guard *g, struct mu_engine *e,
			 const struct checkpoint_loss_scale *before)
{
	struct train_loss_scale *s = &g->scale;

	*g = (struct train_guard){.engine = e, .recovering = g->recovering};
	*s = (struct train_loss_scale){.scale = e->conf->scale.start,
				       .dynamic = e->conf->scale.dynamic,
				       .window = (size_t)e->conf->loss_scale_window};
	if (s->dynamic && s->scale == 0)
		for (s->scale = START; s->scale * (double)e->train->config.batch > START;)
			s->scale /= 2;
	if (s->dynamic && before->scale > 0) {
		s->scale = before->scale;
		s->good = before->good;
	}
	if (s->scale > 0)
		s->left_out = before->left_out;
}

void mu_train_guard_epoch(struct train_guard *g, size_t epoch)
{
	g->epoch = epoch;
	g->left_out = g->in_a_row = 0;
}

struct checkpoint_loss_scale mu_train_guard_state(const struct train_guard *g)
{
	const struct train_loss_scale *s = &g->scale;

	return (struct checkpoint_loss_scale){
		.scale = s->scale, .good = s->good, .left_out = s->left_out};
}

/* ---- values that are not finite ---- */

static bool skips(const struct train_guard *g)
{
	return g->engine->conf->on_nan != CONF_ON_NAN_STOP;
}

bool mu_train_guard_holds(const struct train_guard *g)
{
	return skips(g) || g->scale.scale > 0;
}

/* "epoch 3 of 10, step 5", both counted from 1 as a person does. */
static const char *where(const struct train_guard *g, size_t step, char text[WHERE_BYTES])
{
	snprintf(text, WHERE_BYTES, "epoch %zu of %ld, step %zu", g->epoch + 1,
		 g->engine->conf->num_epochs, step + 1);
	return text;
}

/* place: the first array that is not finite; NULL: the loss alone is not. */
static enum mu_status leave_out(struct train_guard *g, size_t step, const char *what,
				 const char *place)
{
	enum mu_status st = MU_OK;
	const enum conf_on_nan on_nan = g->engine->conf->on_nan;
	char at[WHERE_BYTES];

	where(g, step, at);
	if (!place)
		place = "the loss itself";
	if (!skips(g))
		MU_FAIL(MU_ERR_NUMERIC,
			"%s: the %s is not finite; the first value that is not finite is in %s; "
			"a lower --lr may help",
			at, what, place);
	g->left_out++;
	if (++g->in_a_row == MOST_IN_A_ROW)
		MU_FAIL(MU_ERR_NUMERIC,
			"%s: the %s is not finite, of %d batches in a row (--on-nan %s); the last "
			"time first in %s",
			at, what, MOST_IN_A_ROW, mu_conf_on_nan_words[on_nan], place);
	mu_log_warn("worker %d leaves the batch of %s out: the %s is not finite, first in %s",
		    g->engine->members->index, at, what, place);
	MU_TRY(mu_train_recover(g->recovering, TRAIN_LEFT_OUT, MU_OK));
out:
	return st;
}

static enum mu_status skip_batch(struct train_guard *g, size_t step, const char *what,
				 const char *place)
{
	return mu_train_recover(g->recovering, TRAIN_NOT_FINITE, leave_out(g, step, what, place));
}

enum mu_status mu_train_guard_loss(struct train_guard *g, size_t step, bool *keep)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = g->engine;

	*keep = isfinite(e->ops->loss(e));
	if (*keep)
		goto out;
	MU_TRY(mu_engine_skip(e));
	MU_TRY(skip_batch(g, step, "loss", e->ops->find_nonfinite(e)));
out:
	return st;
}

/* The name of the first array with a value that is not finite, or NULL. */
static const char *find_slice(const struct mu_engine *e, const float *flat)
{
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);

	for (size_t k = 0; k < n_slices; k++)
		for (size_t i = 0; i < slices[k].n_padded; i++)
			if (!isfinite(flat[slices[k].at + i]))
				return slices[k].name;
	return NULL;
}

static enum mu_status check_finite(struct train_guard *g, size_t step, bool *keep)
{
	const char *place = find_slice(g->engine, mu_kv_gradients(g->engine->kv));

	*keep = !place;
	if (place)
		return skip_batch(g, step, "gradient", place);
	g->in_a_row = 0;
	return MU_OK;
}

/*
 * A loss can hide values that are not finite (oneDNN's relu turns NaN into 0), weights cannot. All
 * workers hold the same weights here.
 */
enum mu_status mu_train_guard_weights(const struct train_guard *g)
{
	enum mu_status st = MU_OK;
	const char *place = find_slice(g->engine, mu_kv_weights(g->engine->kv));

	if (place)
		MU_FAIL(MU_ERR_NUMERIC, "epoch %zu of %ld: %s is not finite; a lower --lr may help",
			g->epoch + 1, g->engine->conf->num_epochs, place);
out:
	return mu_train_recover(g->recovering, TRAIN_NOT_GOOD, st);
}

/* ---- the loss scale ---- */

/* The state after a batch. */
static void update_scale(struct train_loss_scale *s, bool good)
{
	s->in_a_row = good ? 0 : s->in_a_row + 1;
	s->left_out += !good;
	if (!s->dynamic)
		return;
	if (!good) {
		s->scale /= 2;
		s->good = 0;
	} else if (++s->good >= s->window) {
		s->good = 0;
		if (s->scale * 2 <= MOST)
			s->scale *= 2;
	}
}

static void report_scale(const struct train_guard *g, size_t step, double before)
{
	const struct train_loss_scale *s = &g->scale;
	char at[WHERE_BYTES];

	if (s->in_a_row > 0)
		mu_log_detail("%s: gradients overflow at a loss scale of %g; %s leaves the batch "
			      "out, %zu so far; the loss scale is %g now",
			      where(g, step, at), before,
			      g->engine->store->synchronous ? "every worker" : "worker 0",
			      s->left_out, s->scale);
	else if (s->scale != before)
		mu_log_detail("%s: loss scale %g after %zu good batch%s", where(g, step, at),
			      s->scale, s->window, MU_ES(s->window));
}

static enum mu_status check_scaled(struct train_guard *g, size_t step, bool idle, bool *keep)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = g->engine;
	const struct mu_members *m = e->members;
	struct train_loss_scale *s = &g->scale;
	const double before = s->scale;
	bool overflowed = false;
	char at[WHERE_BYTES];
	long bad;

	if (!idle)
		MU_TRY(e->ops->overflowed(e, &overflowed));
	bad = overflowed;
	if (e->store->synchronous && !mu_members_alone(m))
		MU_TRY(mu_peers_reduce(m, &bad, 1, MPI_MAX));
	*keep = bad == 0;
	if (*keep && !idle)
		g->in_a_row = 0;
	update_scale(s, *keep);
	if (m->index == 0)
		report_scale(g, step, before);
	if (s->dynamic ? s->scale < LEAST : s->in_a_row >= MOST_IN_A_ROW)
		MU_FAIL(MU_ERR_NUMERIC,
			"%s: gradients are not finite at a loss scale of %g%s; a lower --lr%s may "
			"help",
			where(g, step, at), before, s->dynamic ? "" : ", of 10 batches in a row",
			s->dynamic ? "" : " or --loss-scale");
out:
	return st;
}

enum mu_status mu_train_guard_gradients(struct train_guard *g, size_t step, bool idle, bool *keep)
{
	*keep = true;
	if (g->scale.scale > 0)
		return mu_train_recover(g->recovering, TRAIN_NOT_GOOD,
					check_scaled(g, step, idle, keep));
	return idle ? MU_OK : check_finite(g, step, keep);
}

/* ---- all workers' weights, and the log ---- */

enum mu_status mu_train_guard_verify(const struct train_guard *g, size_t done)
{
	enum mu_status st = MU_OK;
	const size_t every = (size_t)g->engine->conf->verify_steps;
	char when[WHERE_BYTES];

	if (every == 0 || done % every != 0)
		goto out;
	snprintf(when, sizeof when, "epoch %zu of %ld, after step %zu", g->epoch + 1,
		 g->engine->conf->num_epochs, done);
	MU_TRY(mu_kv_verify(g->engine->kv, when));
out:
	return st;
}

void mu_train_guard_report(const struct train_guard *g, const char *what)
{
	const struct train_loss_scale *s = &g->scale;
	const int worker = g->engine->members->index;

	if (g->left_out > 0)
		mu_log_warn("%s: worker %d left %zu batch%s out that %s not finite", what, worker,
			    g->left_out, MU_ES(g->left_out),
			    g->left_out == 1 ? "was" : "were");
	if (s->scale > 0 && worker == 0)
		mu_log_info("%s: loss scale %g, %zu batch%s left out so far", what, s->scale,
			    s->left_out, MU_ES(s->left_out));
}
