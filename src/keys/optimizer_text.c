/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An optimiser of a store of keys as text: "sgd optim.mom=0.9 ... schedule.steps=10,20". Numbers
 * are written so that they are read back exactly.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static const struct member {
	const char *name;
	size_t at;
	bool flag; /* else a double */
} members[] = {
#define NUMBER(m) \
	{ \
#m, offsetof(struct mu_kv_optimizer, m), false \
	}
#define FLAG(m) \
	{ \
#m, offsetof(struct mu_kv_optimizer, m), true \
	}
	NUMBER(optim.mom),
	NUMBER(optim.wd),
	NUMBER(optim.beta1),
	NUMBER(optim.beta2),
	NUMBER(optim.eps),
	NUMBER(optim.clip_gradient),
	FLAG(optim.wd_gamma),
	NUMBER(optim.clip_global_norm),
	NUMBER(optim.rho),
	NUMBER(optim.gamma1),
	NUMBER(optim.gamma2),
	FLAG(optim.centered),
	FLAG(optim.decoupled),
	NUMBER(optim.lamda1),
	NUMBER(optim.beta),
	NUMBER(optim.wd_lh),
	NUMBER(optim.lars_eta),
	NUMBER(optim.lamda),
	NUMBER(optim.lower_bound),
	NUMBER(optim.upper_bound),
	FLAG(optim.prior),
	NUMBER(schedule.lr),
	NUMBER(schedule.factor),
	NUMBER(schedule.step),
	NUMBER(schedule.length),
	NUMBER(schedule.power),
	NUMBER(schedule.final_lr),
	NUMBER(schedule.warmup),
	NUMBER(schedule.warmup_begin_lr),
	FLAG(schedule.warmup_constant),
	NUMBER(rescale),
	FLAG(multi_precision),
};

static const char kind_name[] = "schedule.kind", steps_name[] = "schedule.steps";

void mu_optimizer_text(const struct mu_rule_order *order, char text[MU_OPTIMIZER_TEXT])
{
	const struct mu_kv_optimizer *o = &order->optimizer;
	size_t n = (size_t)snprintf(text, MU_OPTIMIZER_TEXT, "%s %s=%d", order->name, kind_name,
				    (int)o->schedule.kind);

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const void *p = (const char *)o + members[i].at;
		double value;

		if (members[i].flag)
			value = *(const bool *)p;
		else
			memcpy(&value, p, sizeof value);
		n += (size_t)snprintf(text + n, MU_OPTIMIZER_TEXT - n, " %s=%.17g", members[i].name,
				      value);
	}
	if (o->schedule.n_steps > 0)
		n += (size_t)snprintf(text + n, MU_OPTIMIZER_TEXT - n, " %s=", steps_name);
	for (size_t i = 0; i < o->schedule.n_steps; i++)
		n += (size_t)snprintf(text + n, MU_OPTIMIZER_TEXT - n, "%s%.17g", i ? "," : "",
				      o->schedule.steps[i]);
}

static bool read_number(const char *text, double *value, char **end)
{
	*value = strtod(text, end);
	return *end != text;
}

static bool read_steps(const char *text, struct mu_schedule *s)
{
	char *end;

	for (s->n_steps = 0; s->n_steps < MU_MAX_LR_STEPS; text = end + 1) {
		if (!read_number(text, &s->steps[s->n_steps++], &end))
			return false;
		if (*end != ',')
			return !*end;
	}
	return false;
}

static bool read_word(char *word, struct mu_kv_optimizer *o)
{
	char *value = strchr(word, '='), *end;
	double number;

	if (!value)
		return false;
	*value++ = '\0';
	if (strcmp(word, steps_name) == 0)
		return read_steps(value, &o->schedule);
	if (!read_number(value, &number, &end) || *end)
		return false;
	if (strcmp(word, kind_name) == 0) {
		o->schedule.kind = (enum mu_schedule_kind)(int)number;
		return number >= 0 && number <= MU_SCHEDULE_COSINE;
	}
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		void *p = (char *)o + members[i].at;

		if (strcmp(word, members[i].name) != 0)
			continue;
		if (members[i].flag)
			*(bool *)p = number != 0;
		else
			memcpy(p, &number, sizeof number);
		return true;
	}
	return false;
}

enum mu_status mu_optimizer_parse(char *text, struct mu_kv_optimizer *optimizer)
{
	enum mu_status st = MU_OK;
	char *rest = text;
	const char *name = strsep(&rest, " ");

	memset(optimizer, 0, sizeof *optimizer);
	optimizer->optim.name = name;
	while (rest) {
		char *word = strsep(&rest, " ");

		if (!read_word(word, optimizer))
			MU_FAIL(MU_ERR_FORMAT,
				"the optimizer '%.40s' has a setting '%.80s' that "
				"this build does not know",
				name, word);
	}
out:
	return st;
}
