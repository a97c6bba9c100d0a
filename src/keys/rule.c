/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the values of keys are updated: optimiser, updater, and the optimiser's states.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

struct rule_text {
	char text[224];
};

/* What messages call a rule: the optimizer 'sgd'. */
static struct rule_text rule_text(const struct mu_rule_order *order)
{
	struct rule_text rule = {"no updater"};

	if (order->kind == MU_RULE_OPTIM || order->kind == MU_RULE_UPDATER)
		snprintf(rule.text, sizeof rule.text, "the %s '%s'",
			 order->kind == MU_RULE_OPTIM ? "optimizer" : "updater", order->name);
	return rule;
}

/* Same rule on all workers: its kind and name. */
static enum mu_status check_same(struct mu_keys *keys, const struct mu_rule_order *mine)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = keys->members;
	struct mu_rule_order *all = NULL;
	int n;

	MU_TRY(mu_keys_gather(keys, mine, sizeof *mine, (void **)&all, &n));
	for (int w = 0; w < n; w++) {
		if (all[w].kind == MU_RULE_BAD)
			MU_FAIL(MU_ERR_ARGUMENT, "worker %d (rank %d): %s", w, mu_worker_rank(m, w),
				all[w].name);
		if (all[w].kind != all[0].kind || strcmp(all[w].name, all[0].name) != 0)
			MU_FAIL(MU_ERR_ARGUMENT, "worker %d (rank %d) sets %s, worker 0 %s", w,
				mu_worker_rank(m, w), rule_text(&all[w]).text,
				rule_text(&all[0]).text);
	}
out:
	mu_free(all);
	return st;
}

static enum mu_status set_rule(struct mu_keys *keys, struct mu_rule_order *order)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_same(keys, order));
	MU_TRY(keys->ops->bcast(keys, order, sizeof *order));
	MU_TRY(keys->ops->rule(keys, order));
	keys->rule = *order;
out:
	return st;
}

/*
 * What is wrong with the caller's rule travels in place of its name, so that all workers tell of
 * it.
 */
__attribute__((format(printf, 2, 3))) static void refuse(struct mu_rule_order *order,
							 const char *format, ...)
{
	va_list arguments;

	order->kind = MU_RULE_BAD;
	va_start(arguments, format);
	vsnprintf(order->name, sizeof order->name, format, arguments);
	va_end(arguments);
}

static bool is_rate(double x)
{
	return x >= 0 && isfinite(x);
}

/* What is wrong with a schedule; NULL: nothing. */
static const char *find_fault(const struct mu_schedule *s)
{
	const bool decays = s->kind == MU_SCHEDULE_POLY || s->kind == MU_SCHEDULE_COSINE;

	if ((unsigned)s->kind > MU_SCHEDULE_COSINE)
		return "the kind of the schedule is no enum mu_schedule_kind for optimizer";
	if (!is_rate(s->lr) || !is_rate(s->final_lr) || !is_rate(s->warmup_begin_lr))
		return "the learning rate must be finite and not below 0, and it is not for "
		       "optimizer";
	if (!is_rate(s->factor) || !is_rate(s->warmup) || !is_rate(s->power))
		return "factor, warmup and power of the schedule must be finite and not below 0, "
		       "and are not for optimizer";
	if (s->n_steps > MU_MAX_LR_STEPS)
		return "the schedule has too many steps for optimizer";
	for (size_t i = 0; i < s->n_steps; i++) {
		if (!is_rate(s->steps[i]) || (i > 0 && s->steps[i] < s->steps[i - 1]))
			return "the steps of the schedule must be finite and ascending, and are "
			       "not for optimizer";
	}
	if (s->kind == MU_SCHEDULE_FACTOR && (!(s->step > 0) || !isfinite(s->step)))
		return "the step of the schedule must be finite and above 0, and it is not for "
		       "optimizer";
	if (decays && (!(s->length > s->warmup) || !isfinite(s->length)))
		return "the length of the schedule must be finite and above its warmup, and it is "
		       "not for optimizer";
	return NULL;
}

void mu_rule_order_fill(struct mu_rule_order *order, const struct mu_kv_optimizer *optimizer)
{
	const char *name = optimizer ? optimizer->optim.name : NULL;
	const struct mu_rule *rule;

	memset(order, 0, sizeof *order);
	order->kind = MU_RULE_OPTIM;
	if (!name) {
		refuse(order, optimizer ? "the optimizer has no name" : "the optimizer is NULL");
		return;
	}
	order->optimizer = *optimizer;
	order->optimizer.optim.name = NULL;
	if (mu_rule_find(&rule, name) != MU_OK)
		refuse(order, "there is no optimizer '%.64s'", name);
	else if (mu_optim_check(&optimizer->optim) != MU_OK)
		refuse(order, "optimizer '%.64s': %s", name, mu_trace_message());
	else if (mu_optim_needs_norms(&optimizer->optim))
		refuse(order,
		       "norms over whole keys are for the store of a model: not with optimizer "
		       "'%.64s'",
		       name);
	else if (!(optimizer->rescale > 0) || !isfinite(optimizer->rescale))
		refuse(order,
		       "rescale must be finite and above 0, and it is not for optimizer '%.64s'",
		       name);
	else if (find_fault(&optimizer->schedule))
		refuse(order, "%s '%.64s'", find_fault(&optimizer->schedule), name);
	else
		snprintf(order->name, sizeof order->name, "%s", name);
	mu_trace_clear();
}

enum mu_status mu_keys_set_optimizer(struct mu_keys *keys, const struct mu_kv_optimizer *optimizer)
{
	enum mu_status st = MU_OK;
	struct mu_rule_order order;

	MU_TRY(mu_keys_check_all(keys, "mu_keys_set_optimizer"));
	mu_rule_order_fill(&order, optimizer);
	MU_TRY(set_rule(keys, &order));
out:
	return st;
}

static bool has_updater(const struct mu_keys *keys, const char *name)
{
	for (size_t i = 0; i < keys->n_updaters; i++) {
		if (strcmp(keys->updaters[i].name, name) == 0)
			return true;
	}
	return false;
}

enum mu_status mu_keys_set_updater(struct mu_keys *keys, const char *name)
{
	enum mu_status st = MU_OK;
	struct mu_rule_order order;

	MU_TRY(mu_keys_check_all(keys, "mu_keys_set_updater"));
	memset(&order, 0, sizeof order);
	order.kind = name ? MU_RULE_UPDATER : MU_RULE_REPLACE;
	if (name && !has_updater(keys, name))
		refuse(&order, "mu_keys_new was given no updater '%.64s'", name);
	else
		snprintf(order.name, sizeof order.name, "%s", name ? name : "");
	MU_TRY(set_rule(keys, &order));
out:
	return st;
}

/* ---- multipliers ---- */

static enum mu_status check_multipliers(const struct mu_keys *keys, size_t n,
					const struct mu_kv_multiplier *list)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < n; i++) {
		const struct mu_key_text key = mu_key_text(list[i].key, list[i].name);

		if (!mu_key_find(&keys->table, list[i].key, list[i].name))
			MU_FAIL(MU_ERR_ARGUMENT, "multipliers of key %s, which does not exist",
				key.text);
		if (!is_rate(list[i].lr) || !is_rate(list[i].wd))
			MU_FAIL(MU_ERR_ARGUMENT,
				"multipliers %g and %g of key %s: they must be finite and not "
				"below 0",
				list[i].lr, list[i].wd, key.text);
	}
out:
	return st;
}

static enum mu_status put_multipliers(struct mu_keys *keys, size_t n,
				      const struct mu_kv_multiplier *list)
{
	enum mu_status st = MU_OK;

	if (n > 0 && !list)
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_set_multipliers on worker 0: the list of %zu multipliers is NULL",
			n);
	MU_TRY(check_multipliers(keys, n, list));
	mu_keys_begin(keys);
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key =
			mu_key_find(&keys->table, list[i].key, list[i].name);
		double *values;

		MU_TRY(mu_keys_scratch(keys, (void **)&values, 2 * sizeof *values));
		values[0] = list[i].lr;
		values[1] = list[i].wd;
		for (size_t p = 0; p < key->n_parts; p++) {
			struct mu_transfer *x;

			MU_TRY(mu_keys_transfer(keys, &x));
			x->part = key->first_part + p;
			x->coding = MU_CODING_MULTIPLIERS_PUT;
			x->data = values;
			x->nbytes = 2 * sizeof *values;
		}
	}
	MU_TRY(keys->ops->call(keys, keys->call.n, keys->call.transfers));
out:
	mu_keys_end(keys);
	return st;
}

enum mu_status mu_keys_set_multipliers(struct mu_keys *keys, size_t n,
				       const struct mu_kv_multiplier *list)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_check_all(keys, "mu_keys_set_multipliers"));
	/* Owners obey the rule in force again when they have all earlier pushes. */
	MU_TRY(keys->ops->rule(keys, &keys->rule));
	if (keys->members->index == 0)
		st = put_multipliers(keys, n, list);
	MU_TRY(mu_keys_agree_first(keys, st, "mu_keys_set_multipliers"));
out:
	return st;
}

/* ---- states of the optimiser ---- */

enum mu_status mu_keys_move(struct mu_keys *keys, const struct mu_key *key, enum mu_coding coding,
			    size_t state, void *data)
{
	enum mu_status st = MU_OK;
	const bool put = coding == MU_CODING_STATE_PUT || coding == MU_CODING_UPDATES_PUT ||
			 coding == MU_CODING_WEIGHTS_PUT;
	const bool count = coding == MU_CODING_UPDATES_GET || coding == MU_CODING_UPDATES_PUT;

	mu_keys_begin(keys);
	for (size_t i = 0; i < key->n_parts; i++) {
		const struct mu_key_part *part = &keys->table.parts[key->first_part + i];
		const size_t nbytes = count ? sizeof(uint64_t) : part->n * sizeof(float);
		char *p = (char *)data + (count ? 0 : part->from * sizeof(float));
		struct mu_transfer *x;

		MU_TRY(mu_keys_transfer(keys, &x));
		x->part = key->first_part + i;
		x->coding = coding;
		x->n_rows = state;
		if (put) {
			x->data = p;
			x->nbytes = nbytes;
		} else {
			x->out = p;
			x->out_nbytes = nbytes;
		}
	}
	MU_TRY(keys->ops->call(keys, keys->call.n, keys->call.transfers));
out:
	mu_keys_end(keys);
	return st;
}

struct visit {
	mu_kv_state_fn fn;
	void *context;
	bool put;
};

/* One state through the caller's function; i = -1: a rule without states has its count alone. */
static enum mu_status visit_state(struct mu_keys *keys, const struct mu_key *key, int i,
				  const char *name, const struct visit *v)
{
	enum mu_status st = MU_OK;
	struct mu_kv_state state = {.key = key->number,
				    .key_name = key->name,
				    .name = name,
				    .n = i < 0 ? 0 : key->n};

	MU_TRY(MU_ALLOC(state.data, key->n, "state of a key"));
	if (!v->put) {
		MU_TRY(mu_keys_move(keys, key, MU_CODING_UPDATES_GET, 0, &state.updates));
		if (i >= 0)
			MU_TRY(mu_keys_move(keys, key, MU_CODING_STATE_GET, (size_t)i, state.data));
	}
	MU_TRY(v->fn(v->context, &state));
	if (v->put) {
		MU_TRY(mu_keys_move(keys, key, MU_CODING_UPDATES_PUT, 0, &state.updates));
		if (i >= 0)
			MU_TRY(mu_keys_move(keys, key, MU_CODING_STATE_PUT, (size_t)i, state.data));
	}
out:
	mu_free(state.data);
	return st;
}

int mu_keys_state_names(const struct mu_rule_order *order, const char *names[MU_MAX_STATES])
{
	struct mu_optim_config config = order->optimizer.optim;

	if (order->kind != MU_RULE_OPTIM)
		return 0;
	config.name = order->name;
	return mu_optim_states(&config, names);
}

static enum mu_status visit_all(struct mu_keys *keys, const struct visit *v)
{
	enum mu_status st = MU_OK;
	const char *names[MU_MAX_STATES];
	const int n = mu_keys_state_names(&keys->rule, names);

	for (size_t k = 0; k < keys->table.n_keys; k++) {
		const struct mu_key *key = &keys->table.keys[k];

		for (int i = 0; i < n; i++)
			MU_TRY(visit_state(keys, key, i, names[i], v));
		if (n == 0)
			MU_TRY(visit_state(keys, key, -1, "", v));
	}
out:
	return st;
}

static enum mu_status visit_states(struct mu_keys *keys, const char *call, const struct visit *v)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_check_all(keys, call));
	if (keys->rule.kind != MU_RULE_OPTIM)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: there are no states without mu_keys_set_optimizer",
			call);
	/* The rule in force, told again, is obeyed when all earlier pushes are in: no more is
	 * meant. */
	MU_TRY(keys->ops->rule(keys, &keys->rule));
	if (keys->members->index == 0 && !v->fn)
		st = mu_trace_start(MU_ERR_ARGUMENT, __FILE__, __LINE__,
				    "%s on worker 0: the function is NULL", call);
	else if (keys->members->index == 0)
		st = visit_all(keys, v);
	MU_TRY(mu_keys_agree_first(keys, st, call));
out:
	return st;
}

enum mu_status mu_keys_states_save(struct mu_keys *keys, mu_kv_state_fn fn, void *context)
{
	const struct visit v = {fn, context, false};

	return visit_states(keys, "mu_keys_states_save", &v);
}

enum mu_status mu_keys_states_load(struct mu_keys *keys, mu_kv_state_fn fn, void *context)
{
	const struct visit v = {fn, context, true};

	return visit_states(keys, "mu_keys_states_load", &v);
}
