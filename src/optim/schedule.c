/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate as a function of progress (samples counted so far). */
#include <math.h>
#include <stdlib.h>

#include <muster/optim.h>

#define PI 3.14159265358979323846

static double multifactor(const struct mu_schedule *s, double progress)
{
	double lr = s->lr;

	if (s->factor >= 1)
		return lr;
	for (size_t i = 0; i < s->n_steps && s->steps[i] <= progress; i++)
		lr *= s->factor;
	return lr;
}

static double factor(const struct mu_schedule *s, double progress)
{
	double lr;

	if (s->factor >= 1)
		return s->lr;
	lr = s->lr * pow(s->factor, floor(progress / s->step));
	return lr > s->final_lr ? lr : s->final_lr;
}

/* From 1 at the end of the warm-up to 0 at the end of training. */
static double rest(const struct mu_schedule *s, double progress)
{
	double x = (progress - s->warmup) / (s->length - s->warmup);

	return x > 1 ? 0 : x < 0 ? 1 : 1 - x;
}

double mu_schedule_lr(const struct mu_schedule *s, double progress, double count)
{
	double range = s->lr - s->final_lr, after = progress + count;

	if (s->warmup_constant && progress < s->warmup)
		return s->warmup_begin_lr;
	if (after < s->warmup)
		return s->warmup_begin_lr + (s->lr - s->warmup_begin_lr) * (after / s->warmup);
	switch (s->kind) {
	case MU_SCHEDULE_MULTIFACTOR: return multifactor(s, progress);
	case MU_SCHEDULE_FACTOR: return factor(s, progress);
	case MU_SCHEDULE_POLY: return s->final_lr + range * pow(rest(s, after), s->power);
	case MU_SCHEDULE_COSINE:
		return s->final_lr + range * (1 + cos(PI * (1 - rest(s, after)))) / 2;
	}
	return s->lr;
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

		/* NaN fails this form of the comparison. */
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
