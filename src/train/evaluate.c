/* SPDX-License-Identifier: Apache-2.0 */
/* Validation, and code that it shares with training. */
#include "evaluate.h"

#include <muster/base.h>

#include "engine/comm_thread.h"
#include "engine/metrics.h"

void mu_train_report_bad(const struct mu_engine *e, const struct mu_input *in, const char *what)
{
	if (in->n_bad > 0 && e->team.member == 0)
		mu_log_warn("%s: worker %d left %zu bad record%s out", what, e->members->index,
			    in->n_bad, MU_S(in->n_bad));
}

enum mu_status mu_train_check_samples(const struct mu_metrics *m, const char *what)
{
	enum mu_status st = MU_OK;

	if (m->samples == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: none of the records can be read or used; without --skip-bad-records "
			"and --on-nan the run ends with the error of the first one",
			what);
out:
	return st;
}

static enum mu_status check_results(const struct mu_engine *e, const struct mu_metrics *m)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_train_check_samples(m, "validation"));
	if (!mu_metrics_are_finite(m))
		MU_FAIL(MU_ERR_NUMERIC,
			"validation: the loss is not finite%s",
			e->conf->evaluate ? ": the weights, or the data, have numbers that are not"
					  : "; a lower --lr may help");
out:
	return st;
}

enum mu_status mu_train_evaluate(struct train_batches *b, struct mu_input *data,
				 train_evaluate_fn *each_step, void *context, struct mu_metrics *m)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = b->engine;
	size_t count;

	*m = (struct mu_metrics){.tally = data->unlabelled ? NULL : e->tally};
	if (m->tally)
		mu_tally_clear(m->tally);
	MU_TRY(mu_input_epoch(data, 0));
	for (size_t step = 0; step < data->steps; step++) {
		count = mu_input_count(data, step);
		if (count > 0)
			MU_TRY(mu_train_batch_load(b, data, step, &count));
		for (size_t l = 0; count > 0 && st == MU_OK && l < mu_plan_layers(e->plan); l++)
			st = mu_engine_forward(e, l);
		mu_train_batch_name(data, st);
		MU_TRY(st);
		if (count > 0)
			e->ops->measure(e, m);
		MU_TRY(each_step(context, step, count, m));
	}
	mu_train_report_bad(e, data, "validation");
	MU_TRY(mu_engine_metrics_reduce(m, e->members));
	MU_TRY(mu_train_recover(b->recovering, TRAIN_NOT_GOOD,
				check_results(e, m))); /* the same on all workers */
out:
	return st;
}
