/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --loss-scale. Growth and backoff as everywhere in the field (PyTorch's GradScaler, MXNet's
 * LossScaler): twice the scale after --loss-scale-window good batches, half of it after a bad one.
 *
 * A bad batch must change nothing on any worker, and gradients that have left cannot be called
 * back. So with a loss scale gradients leave only when all workers have told that theirs are
 * finite: one maximum a batch, and no push goes on beside backward. A batch left out is left
 * out by all, as batches without samples are. dist_async meets nobody inside an epoch: there each
 * worker has a scale of its own, and checkpoints hold worker 0's.
 */
#include "fit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* The scale of a mean of a batch that others begin with; ours is of its sum. */
#define START 65536.0
#define LEAST CONF_SCALE_LEAST
#define MOST  CONF_SCALE_MOST
#define MOST_IN_A_ROW 10 /* of a fixed scale */

void mu_train_loss_scale_begin(struct train_run *run)
{
	struct train_loss_scale *s = &run->loss_scale;
	const struct checkpoint_loss_scale *before = &run->resume->at.loss_scale;

	*s = (struct train_loss_scale){.scale = run->options.scale.start,
				       .dynamic = run->options.scale.dynamic,
				       .window = (size_t)run->options.loss_scale_window};
	if (s->dynamic && s->scale == 0)
		for (s->scale = START; s->scale * (double)run->train.config.batch > START;)
			s->scale /= 2;
	if (s->dynamic && before->scale > 0) {
		s->scale = before->scale;
		s->good = before->good;
	}
	if (s->scale > 0)
		s->left_out = before->left_out;
}

/* The state after a batch. */
static void move_on(struct train_loss_scale *s, bool good)
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

static void tell(const struct train_fit *f, size_t step, double before)
{
	const struct train_loss_scale *s = &f->run->loss_scale;

	if (s->in_a_row > 0)
		mu_log_info("epoch %zu, step %zu: gradients overflow at a loss scale of %g; %s "
			    "leaves the batch out, %zu so far; the loss scale is %g now",
			    f->epoch, step, before,
			    f->run->store.synchronous ? "every worker" : "worker 0", s->left_out,
			    s->scale);
	else if (s->scale != before)
		mu_log_info("epoch %zu, step %zu: loss scale %g after %zu good batches", f->epoch,
			    step, s->scale, s->window);
}

enum mu_status mu_train_loss_scale_judge(struct train_fit *f, size_t step, bool idle, bool *good)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	struct train_loss_scale *s = &run->loss_scale;
	const double before = s->scale;
	bool overflowed = false;
	long bad;

	*good = true;
	if (before == 0)
		goto out;
	if (!idle)
		MU_TRY(run->engine.ops->overflowed(&run->engine, &overflowed));
	bad = overflowed;
	if (run->store.synchronous && run->topology.num_workers > 1)
		MU_TRY(mu_allreduce_long(&bad, 1, MPI_MAX, run->topology.peers));
	*good = bad == 0;
	if (*good && !idle)
		f->in_a_row = 0;
	move_on(s, *good);
	if (run->topology.index == 0)
		tell(f, step, before);
	if (s->dynamic ? s->scale < LEAST : s->in_a_row >= MOST_IN_A_ROW)
		MU_FAIL(MU_ERR_NUMERIC,
			"epoch %zu, step %zu: gradients are not finite at a loss scale of %g%s; a "
			"lower --lr%s may help",
			f->epoch, step, before, s->dynamic ? "" : ", of 10 batches in a row",
			s->dynamic ? "" : " or --loss-scale");
out:
	return st;
}

void mu_train_loss_scale_tell(const struct train_run *run, const char *what)
{
	const struct train_loss_scale *s = &run->loss_scale;

	if (s->scale > 0 && run->topology.index == 0)
		mu_log_info("%s Loss-scale=%g, %zu batches left out so far", what, s->scale,
			    s->left_out);
}
