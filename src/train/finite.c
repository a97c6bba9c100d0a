/* SPDX-License-Identifier: Apache-2.0 */
/* Values that cannot be right: not finite, or not the same on all workers. */
#include "fit.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

/* A net whose weights have gone bad has no good batch any more. */
#define MOST_IN_A_ROW 10

bool mu_train_leaves_out(const struct train_run *run)
{
	return run->options.on_nan != CONF_ON_NAN_STOP;
}

/* What is not finite, in which place (NULL: there alone). */
static enum mu_status leave_out(struct train_fit *f, size_t step, const char *what,
				const char *place)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;

	if (!place)
		place = "the loss itself";
	if (!mu_train_leaves_out(run))
		MU_FAIL(MU_ERR_NUMERIC,
			"epoch %zu, step %zu: the %s is not finite; the first value that is not "
			"finite is in %s; a lower --lr may help",
			f->epoch, step, what, place);
	f->left_out++;
	if (++f->in_a_row == MOST_IN_A_ROW)
		MU_FAIL(MU_ERR_NUMERIC,
			"epoch %zu, step %zu: the %s is not finite, of %d batches in a row "
			"(--on-nan %s); the last time first in %s",
			f->epoch, step, what, MOST_IN_A_ROW,
			mu_conf_on_nan_words[run->options.on_nan], place);
	mu_log_warn("worker %d leaves the batch of epoch %zu, step %zu out: the %s is not finite, "
		    "first in %s",
		    run->topology.index, f->epoch, step, what, place);
	run->halt.not_finite = run->options.on_nan == CONF_ON_NAN_ROLLBACK;
out:
	return st;
}

enum mu_status mu_train_judge_loss(struct train_fit *f, size_t step, bool *good)
{
	enum mu_status st = MU_OK;

	*good = isfinite(f->run->engine.ops->loss(&f->run->engine));
	if (*good)
		goto out;
	MU_TRY(mu_engine_skip(&f->run->engine));
	MU_TRY(leave_out(f, step, "loss", f->run->engine.ops->find_nonfinite(&f->run->engine)));
out:
	return st;
}

/* The name of the first array that holds something not finite, or NULL. */
static const char *find_slice(const struct train_run *run, const float *flat)
{
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(run->engine.plan, &n_slices);

	for (size_t k = 0; k < n_slices; k++)
		for (size_t i = 0; i < slices[k].n_padded; i++)
			if (!isfinite(flat[slices[k].at + i]))
				return slices[k].name;
	return NULL;
}

enum mu_status mu_train_judge_gradients(struct train_fit *f, size_t step, bool *good)
{
	const char *place = find_slice(f->run, mu_kv_gradients(f->run->kv));

	*good = !place;
	if (place)
		return leave_out(f, step, "gradient", place);
	f->in_a_row = 0;
	return MU_OK;
}

void mu_train_tell_left_out(const struct train_fit *f, const char *what)
{
	if (f->left_out > 0)
		mu_log_warn("%s worker %d left %zu batches out that were not finite", what,
			    f->run->topology.index, f->left_out);
	mu_train_loss_scale_tell(f->run, what);
}

enum mu_status mu_train_verify(const struct train_run *run, size_t epoch, size_t done)
{
	enum mu_status st = MU_OK;
	const size_t every = (size_t)run->options.verify_steps;
	char when[64];

	if (every == 0 || done % every != 0)
		goto out;
	snprintf(when, sizeof when, "epoch %zu, after step %zu", epoch, done);
	MU_TRY(mu_kv_verify(run->kv, when));
out:
	return st;
}

/*
 * A loss can hide values that are not finite (relu of oneDNN makes 0 of NaN), weights cannot. All
 * workers hold the same ones here.
 */
enum mu_status mu_train_check_weights(const struct train_run *run, size_t epoch)
{
	enum mu_status st = MU_OK;
	const char *place = find_slice(run, mu_kv_weights(run->kv));

	if (place)
		MU_FAIL(MU_ERR_NUMERIC, "epoch %zu: %s is not finite; a lower --lr may help", epoch,
			place);
out:
	return st;
}
