/* SPDX-License-Identifier: Apache-2.0 */
/* When a training validates, and what follows from it. */
#include "validate.h"

#include <muster/base.h>

#include "best.h"
#include "evaluate.h"

bool mu_train_validates_epoch(const struct train_fit *f)
{
	const struct conf *v = f->engine->conf;
	const size_t done = f->epoch + 1;

	return f->validate &&
	       (done % (size_t)v->validate_every == 0 || done == (size_t)v->num_epochs);
}

static bool validates_step(const struct train_fit *f, size_t done)
{
	const size_t every = (size_t)f->engine->conf->validate_steps;

	return f->validate && every > 0 && done % every == 0 && done < f->engine->steps;
}

/* Saves make progress during validation. */
static enum mu_status validation_step(void *context, size_t step, size_t count,
				      const struct mu_metrics *m)
{
	enum mu_status st = MU_OK;
	struct train_fit *f = context;

	(void)count, (void)m;
	mu_report_validating(f->observers, step + 1, f->validate->steps);
	mu_engine_energy_poll(&f->engine->energy);
	MU_TRY(mu_alarm_check(f->engine->members));
	MU_TRY(mu_train_fit_poll(f));
out:
	return st;
}

enum mu_status mu_train_validate(struct train_fit *f, bool *ends)
{
	enum mu_status st = MU_OK;
	const struct mu_members *members = f->engine->members;
	const struct mu_metric *metric = f->target;
	const double target = f->engine->conf->target_accuracy;
	struct mu_metrics m;

	MU_TRY(mu_train_evaluate(f->batches, f->validate, validation_step, f, &m));
	MU_TRY(mu_train_fit_goes_back(f, f->epoch + 1, ends));
	if (*ends)
		goto out;
	MU_TRY(mu_peers_share(members, &m, sizeof m)); /* decisions below are the same on all */
	m.tally = f->engine->tally;
	mu_train_best_update(f->best, f->epoch + 1, &m);
	f->unvalidated = false;
	mu_report_validation(f->observers, f->epoch, 0, &m);
	mu_train_best_report(f->best);
	*ends = metric && mu_metric_value(metric, &m) >= target;
	if (*ends && members->index == 0)
		mu_log_info("target accuracy %g reached: training ends", target);
	*ends = *ends || mu_train_best_stops(f->best);
out:
	return st;
}

/* Windows and epochs count no time of it, and no energy. */
enum mu_status mu_train_validate_inside(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_seconds s;
	struct mu_metrics m;
	struct engine_energy *g = &f->engine->energy;
	double joules;

	if (!validates_step(f, f->done))
		goto out;
	MU_TRY(mu_kv_meet(f->engine->kv)); /* all workers have the weights after this step */
	s = (struct train_seconds){-mu_now(), -mu_clock_seconds(MU_CLOCK_DATA),
				   -mu_report_comm_seconds()};
	joules = mu_engine_energy_read(g);
	MU_TRY(mu_train_evaluate(f->batches, f->validate, validation_step, f, &m));
	mu_engine_energy_aside(g, mu_engine_energy_read(g) - joules);
	MU_TRY(mu_train_halt_agree_back(f->halt));
	if (!f->halt->goes_back)
		mu_report_validation(f->observers, f->epoch, f->done, &m);
	s.all += mu_now();
	s.data += mu_clock_seconds(MU_CLOCK_DATA);
	s.comm += mu_report_comm_seconds();
	f->window_start += s.all;
	f->window_data += s.data;
	f->window_comm += s.comm;
	f->aside.all += s.all;
	f->aside.data += s.data;
	f->aside.comm += s.comm;
out:
	return st;
}

enum mu_status mu_train_validate_pending(struct train_fit *f, bool *ends)
{
	enum mu_status st = MU_OK;

	if (!f->validate || f->from->step > 0 || !f->from->best.pending)
		goto out;
	f->epoch--;
	MU_TRY(mu_train_validate(f, ends));
	MU_TRY(mu_train_fit_save(f));
	f->epoch++;
out:
	return st;
}

enum mu_status mu_train_validate_loaded(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct mu_metrics m;

	if (!f->validate)
		goto out;
	f->epoch--;
	MU_TRY(mu_train_evaluate(f->batches, f->validate, validation_step, f, &m));
	mu_report_validation(f->observers, f->epoch, 0, &m);
out:
	return st;
}
