/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An optimiser: its pieces, cut by the slices into segments of one rule and one decay, and their
 * states.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rule.h"

const struct mu_rule *const mu_rule_table[] = {
	&mu_rule_sgd, &mu_rule_nag, &mu_rule_adam, &mu_rule_test, &mu_rule_none, NULL,
};

/* [from, to) of a piece, all of it in one slice. */
struct segment {
	size_t from, to;
	enum mu_slice_rule rule;
	float wd;
	float momentum;
};

struct piece {
	size_t n, local;
	size_t first_segment, n_segments;
	bool active; /* the update that is under way does something */
	uint64_t t;
	struct mu_update update;
};

struct mu_optim {
	const struct mu_rule *rule;
	struct mu_optim_config config;
	struct piece *pieces;
	size_t n_pieces;
	struct segment *segments;
	size_t n_local;
	float *states[MU_MAX_STATES];
};

static enum mu_status find_rule(const struct mu_rule **rule, const char *name)
{
	enum mu_status st = MU_OK;
	char known[256] = "";

	for (size_t i = 0; mu_rule_table[i]; i++) {
		size_t n = strlen(known);

		*rule = mu_rule_table[i];
		if (name && strcmp(name, (*rule)->name) == 0)
			goto out;
		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", (*rule)->name);
	}
	*rule = NULL;
	MU_FAIL(MU_ERR_USAGE, "optimizer '%s' is not known: %s are", name ? name : "", known);
out:
	return st;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name);
	size_t m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* MXNet decays weights and gammas, and nothing else. */
static float decay_of(const struct mu_optim_config *config, const struct mu_slice *slice)
{
	if (ends_in(slice->name, "_weight") || (config->wd_gamma && ends_in(slice->name, "_gamma")))
		return (float)config->wd;
	return 0;
}

/* Where slice k ends, its padding and the gap before the next slice included. */
static size_t slice_end(const struct mu_slice *slices, size_t n_slices, size_t k)
{
	return k + 1 < n_slices ? slices[k + 1].at : mu_pad(slices[k].at + slices[k].n_padded);
}

/* Segments of a piece into out (NULL: only count them); returns their number. */
static size_t cut_piece(const struct mu_optim *o, const struct mu_slice *slices, size_t n_slices,
			const struct mu_piece *piece, struct segment *out)
{
	size_t n = 0;

	for (size_t k = 0; k < n_slices; k++) {
		size_t from = slices[k].at > piece->at ? slices[k].at : piece->at;
		size_t to = slice_end(slices, n_slices, k);

		if (to > piece->at + piece->n)
			to = piece->at + piece->n;
		if (from >= to)
			continue;
		if (out)
			out[n] = (struct segment){
				.from = from - piece->at,
				.to = to - piece->at,
				.rule = slices[k].rule,
				.wd = decay_of(&o->config, &slices[k]),
				.momentum = slices[k].momentum,
			};
		n++;
	}
	return n;
}

static enum mu_status cut_pieces(struct mu_optim *o, const struct mu_slice *slices, size_t n_slices,
				 const struct mu_piece *pieces)
{
	enum mu_status st = MU_OK;
	size_t n = 0;

	for (size_t p = 0; p < o->n_pieces; p++) {
		if (pieces[p].at % MU_LANES || pieces[p].n % MU_LANES || pieces[p].local % MU_LANES)
			MU_FAIL(MU_ERR_ARGUMENT,
				"piece %zu (at %zu, %zu elements, stored at %zu): multiples of %d "
				"are needed",
				p, pieces[p].at, pieces[p].n, pieces[p].local, MU_LANES);
		n += cut_piece(o, slices, n_slices, &pieces[p], NULL);
	}
	MU_TRY(MU_ALLOC(o->segments, n + 1, "segments of the optimizer"));
	n = 0;
	for (size_t p = 0; p < o->n_pieces; p++) {
		struct piece *piece = &o->pieces[p];

		piece->n = pieces[p].n;
		piece->local = pieces[p].local;
		piece->first_segment = n;
		piece->n_segments = cut_piece(o, slices, n_slices, &pieces[p], o->segments + n);
		n += piece->n_segments;
		if (o->n_local < piece->local + piece->n)
			o->n_local = piece->local + piece->n;
	}
out:
	return st;
}

enum mu_status mu_optim_new(struct mu_optim **out, const struct mu_optim_config *config,
			    const struct mu_slice *slices, size_t n_slices,
			    const struct mu_piece *pieces, size_t n_pieces)
{
	enum mu_status st = MU_OK;
	struct mu_optim *o = NULL;

	*out = NULL;
	MU_TRY(MU_ALLOC(o, 1, "optimizer"));
	o->config = *config;
	o->config.name = NULL; /* the caller's string may go */
	MU_TRY(find_rule(&o->rule, config->name));
	MU_TRY(MU_ALLOC(o->pieces, n_pieces + 1, "pieces of the optimizer"));
	o->n_pieces = n_pieces;
	MU_TRY(cut_pieces(o, slices, n_slices, pieces));
	for (int i = 0; i < o->rule->n_states; i++)
		MU_TRY(MU_ALLOC(o->states[i], o->n_local + 1, "state of the optimizer"));
	*out = o;
	o = NULL;
out:
	mu_optim_free(o);
	return st;
}

void mu_optim_free(struct mu_optim *o)
{
	if (!o)
		return;
	for (int i = 0; i < MU_MAX_STATES; i++)
		mu_free(o->states[i]);
	mu_free(o->segments);
	mu_free(o->pieces);
	mu_free(o);
}

void mu_optim_begin(struct mu_optim *o, size_t p, double lr, double count)
{
	const struct mu_optim_config *config = &o->config;
	struct piece *piece = &o->pieces[p];

	assert(p < o->n_pieces);
	piece->active = count > 0;
	if (!piece->active)
		return;
	piece->t++;
	piece->update = (struct mu_update){
		.lr = (float)lr,
		.rescale = (float)(1 / count),
		.clip = config->clip_gradient > 0 ? (float)config->clip_gradient : INFINITY,
		.mom = (float)config->mom,
		.beta1 = (float)config->beta1,
		.beta2 = (float)config->beta2,
		.eps = (float)config->eps,
		.t = piece->t,
	};
}

static void update_run(const struct mu_optim *o, const struct piece *piece,
		       const struct segment *segment, size_t at, size_t n, float *weights,
		       const float *gradients)
{
	struct mu_update u = piece->update;
	float *states[MU_MAX_STATES] = {NULL};

	if (segment->rule == MU_SLICE_AVERAGE) {
		u.mom = segment->momentum;
		mu_rule_average(&u, n, weights, gradients);
		return;
	}
	u.wd = segment->wd;
	for (int i = 0; i < o->rule->n_states; i++)
		states[i] = o->states[i] + piece->local + at;
	o->rule->update(&u, n, weights, gradients, states);
}

void mu_optim_block(struct mu_optim *o, size_t p, size_t from, size_t n, float *weights,
		    const float *gradients)
{
	const struct piece *piece = &o->pieces[p];

	assert(from % MU_LANES == 0 && n % MU_LANES == 0 && from + n <= piece->n);
	if (!piece->active)
		return;
	for (size_t i = 0; i < piece->n_segments; i++) {
		const struct segment *segment = &o->segments[piece->first_segment + i];
		size_t a = segment->from > from ? segment->from : from;
		size_t b = segment->to < from + n ? segment->to : from + n;

		if (a < b)
			update_run(o, piece, segment, a, b - a, weights + (a - from),
				   gradients + (a - from));
	}
}

void mu_optim_set_updates(struct mu_optim *o, size_t p, uint64_t updates)
{
	o->pieces[p].t = updates;
}

float *mu_optim_state(struct mu_optim *o, int i, const char **name, size_t *n)
{
	if (i < 0 || i >= o->rule->n_states)
		return NULL;
	*name = o->rule->state_names[i];
	*n = o->n_local;
	return o->states[i];
}
