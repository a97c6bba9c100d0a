/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning rate as a function of the samples counted so far.
 */
#include <stdlib.h>

#include <muster/optim.h>

double mu_schedule_lr(const struct mu_schedule *s, double progress)
{
	double lr = s->lr;

	if (s->factor >= 1)
		return lr;
	for (size_t i = 0; i < s->n_steps && s->steps[i] <= progress; i++)
		lr *= s->factor;
	return lr;
}

enum mu_status mu_schedule_parse(struct mu_schedule *s, const char *epochs,
				 double samples_per_epoch)
{
	enum mu_status st = MU_OK;
	const char *p = epochs ? epochs : "";
	double last = 0;

	s->n_steps = 0;
	while (*p) {
		char *end = NULL;
		double epoch = strtod(p, &end);

		/* The comparison is written so that NaN fails it. */
		if (end == p || !(epoch > last) || epoch > 1e9 ||
		    (*end != '\0' && (*end != ',' || end[1] == '\0')))
			MU_FAIL(MU_ERR_USAGE,
				"learning rate steps '%s': cannot read '%s', a rising list of "
				"epochs such as 10,20 is needed",
				epochs, p);
		if (s->n_steps == MU_MAX_LR_STEPS)
			MU_FAIL(MU_ERR_USAGE, "learning rate steps '%s': more than %d", epochs,
				MU_MAX_LR_STEPS);
		s->steps[s->n_steps++] = epoch * samples_per_epoch;
		last = epoch;
		p = *end == ',' ? end + 1 : end;
	}
out:
	return st;
}
