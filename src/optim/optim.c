/* SPDX-License-Identifier: Apache-2.0 */
/* An optimiser: its pieces, cut by the slices into segments of one rule and one decay, and their
 * states. */
#include <assert.h>
#include <math.h>

#include "object.h"

/* MXNet decays only weights and gammas. */
static float decay_of(const struct mu_optim *o, const struct mu_slice *slice)
{
	bool gammas = o->config.wd_gamma && mu_rule_setting(o->rule, "wd-gamma");

	if (slice->has_wd_mult)
		return (float)(o->config.wd * slice->wd_mult);
	if (mu_stem(slice->name, "_weight") || (gammas && mu_stem(slice->name, "_gamma")))
		return (float)o->config.wd;
	return 0;
}

static bool is_trusted(const struct mu_optim *o, const struct mu_slice *slice)
{
	if (slice->rule != MU_SLICE_LEARN || slice->fixed || !o->rule->trust)
		return false;
	return !o->rule->trusts_weights_only ||
	       !(mu_stem(slice->name, "_bias") || mu_stem(slice->name, "_gamma") ||
		 mu_stem(slice->name, "_beta"));
}

static enum mu_status make_keys(struct mu_optim *o, const struct mu_slice *slices, size_t n_slices)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(o->keys, n_slices + 1, "keys of the optimizer"));
	o->n_keys = n_slices;
	for (size_t k = 0; k < n_slices; k++)
		o->keys[k] = (struct key){
			.rule = slices[k].rule,
			.fixed = slices[k].fixed,
			.wd = decay_of(o, &slices[k]),
			.lr_mult = slices[k].has_lr_mult ? slices[k].lr_mult : 1,
			.momentum = slices[k].momentum,
			.trusted = is_trusted(o, &slices[k]),
			.trust = 1,
		};
	mu_optim_classify(o);
out:
	return st;
}

/* End of slice k, with its padding and the gap before the next slice. */
static size_t slice_end(const struct mu_slice *slices, size_t n_slices, size_t k)
{
	return k + 1 < n_slices ? slices[k + 1].at : mu_pad(slices[k].at + slices[k].n_padded);
}

/* Segments of a piece into out (NULL: only count them); returns their number. */
static size_t cut_piece(const struct mu_slice *slices, size_t n_slices,
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
			out[n] = (struct segment){from - piece->at, to - piece->at, k};
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
		n += cut_piece(slices, n_slices, &pieces[p], NULL);
	}
	MU_TRY(MU_ALLOC(o->segments, n + 1, "segments of the optimizer"));
	n = 0;
	for (size_t p = 0; p < o->n_pieces; p++) {
		struct piece *piece = &o->pieces[p];

		piece->n = pieces[p].n;
		piece->local = pieces[p].local;
		piece->first_segment = n;
		piece->n_segments = cut_piece(slices, n_slices, &pieces[p], o->segments + n);
		n += piece->n_segments;
		if (o->n_local < piece->local + piece->n)
			o->n_local = piece->local + piece->n;
	}
out:
	return st;
}

enum mu_status mu_optim_check(const struct mu_optim_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_rule *rule;
	const struct mu_setting *eps;

	MU_TRY(mu_rule_find(&rule, config->name));
	eps = mu_rule_setting(rule, "epsilon");
	if (eps && eps->initial > 0 && !((float)config->eps > 0))
		MU_FAIL(MU_ERR_USAGE,
			"optimizer %s: epsilon %g: more than 0 is needed, it keeps a divisor above "
			"0 (default %g)",
			rule->name, config->eps, eps->initial);
	if (mu_rule_setting(rule, "beta2") && (config->beta1 >= 1 || config->beta2 >= 1))
		MU_FAIL(MU_ERR_USAGE,
			"optimizer %s: beta1 %g, beta2 %g: less than 1 is needed, or no gradient "
			"counts",
			rule->name, config->beta1, config->beta2);
	if (config->upper_bound > 0 && config->upper_bound < config->lower_bound)
		MU_FAIL(MU_ERR_USAGE, "optimizer %s: lower-bound %g is above upper-bound %g",
			rule->name, config->lower_bound, config->upper_bound);
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
	MU_TRY(mu_optim_check(config));
	MU_TRY(MU_ALLOC(o, 1, "optimizer"));
	MU_TRY(mu_rule_find(&o->rule, config->name));
	o->config = *config;
	o->config.name = o->rule->name; /* the caller may free its string */
	o->n_states = mu_rule_states(o->rule, config);
	o->clips_norm = mu_rule_clips_norm(o->rule, config);
	o->n_rounds = o->clips_norm + (o->rule->measure != NULL);
	o->scale = 1;
	MU_TRY(MU_ALLOC(o->pieces, n_pieces + 1, "pieces of the optimizer"));
	o->n_pieces = n_pieces;
	MU_TRY(make_keys(o, slices, n_slices));
	MU_TRY(cut_pieces(o, slices, n_slices, pieces));
	for (int i = 0; i < o->n_states; i++)
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
	mu_free(o->keys);
	mu_free(o);
}

/* With a constant rate the momentum is the config's. */
static double momentum_of(const struct mu_optim *o, const struct piece *piece, double lr)
{
	if (o->rule->corrects_momentum && piece->last_lr > 0)
		return o->config.mom * (lr / piece->last_lr);
	return o->config.mom;
}

void mu_optim_begin(struct mu_optim *o, size_t p, double lr, double count)
{
	struct piece *piece = &o->pieces[p];
	double limit = o->config.clip_gradient;

	assert(p < o->n_pieces);
	piece->active = count > 0;
	if (!piece->active)
		return;
	piece->t++;
	piece->update = (struct mu_update){
		.lr = (float)lr,
		.rescale = (float)(1 / count),
		.clip = limit > 0 ? (float)limit : INFINITY,
		.mom = (float)momentum_of(o, piece, lr),
		.trust = 1,
		.t = piece->t,
		.config = &o->config,
	};
	piece->last_lr = lr;
}

void mu_optim_prior(struct mu_optim *o, size_t p, const float *prior)
{
	o->pieces[p].update.prior = prior;
}

struct mu_update mu_optim_update_of(const struct mu_optim *o, const struct piece *piece,
				    const struct key *key, size_t at, float **states)
{
	struct mu_update u = piece->update;

	u.lr = (float)(piece->last_lr * key->lr_mult);
	u.wd = key->wd;
	u.trust = key->trust;
	if (o->clips_norm)
		u.rescale = (float)((double)u.rescale * o->scale);
	if (u.prior)
		u.prior += at;
	for (int i = 0; i < o->n_states; i++)
		states[i] = o->states[i] + piece->local + at;
	return u;
}

struct mu_update mu_optim_average_of(const struct piece *piece, const struct key *key)
{
	struct mu_update u = piece->update;

	u.mom = key->momentum;
	return u;
}

static void update_run(const struct mu_optim *o, const struct piece *piece, const struct key *key,
		       size_t at, size_t n, float *weights, const float *gradients)
{
	float *states[MU_MAX_STATES] = {NULL};
	struct mu_update u;

	if (key->fixed)
		return;
	if (key->rule == MU_SLICE_AVERAGE) {
		u = mu_optim_average_of(piece, key);
		mu_rule_average(&u, n, weights, gradients);
		return;
	}
	u = mu_optim_update_of(o, piece, key, at, states);
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
			update_run(o, piece, &o->keys[segment->key], a, b - a, weights + (a - from),
				   gradients + (a - from));
	}
}

/* ---- norms ---- */

int mu_optim_rounds(const struct mu_optim *o)
{
	return o->n_rounds;
}

size_t mu_optim_words(const struct mu_optim *o)
{
	return o->n_keys * 2 * MU_NORM_WORDS;
}

static bool clips_in(const struct mu_optim *o, int round)
{
	return o->clips_norm && round == 0;
}

static void measure_segment(const struct mu_optim *o, int round, const struct piece *piece,
			    const struct segment *segment, const float *weights,
			    const float *gradients, uint64_t *sums)
{
	const struct key *key = &o->keys[segment->key];
	uint64_t *const two[2] = {sums + 2 * segment->key * MU_NORM_WORDS,
				  sums + (2 * segment->key + 1) * MU_NORM_WORDS};
	size_t at = segment->from, n = segment->to - at;
	float *states[MU_MAX_STATES] = {NULL};
	struct mu_update u;

	if (key->rule != MU_SLICE_LEARN || key->fixed)
		return;
	if (clips_in(o, round)) {
		mu_norm_squares(two[0], n, gradients + at);
		return;
	}
	u = mu_optim_update_of(o, piece, key, segment->from, states);
	o->rule->measure(&u, n, weights + at, gradients + at, states, two);
}

void mu_optim_measure(struct mu_optim *o, int round, size_t p, const float *weights,
		      const float *gradients, uint64_t *sums)
{
	const struct piece *piece = &o->pieces[p];

	for (size_t i = 0; piece->active && i < piece->n_segments; i++)
		measure_segment(o, round, piece, &o->segments[piece->first_segment + i], weights,
				gradients, sums);
}

size_t mu_optim_pieces(const struct mu_optim *o)
{
	return o->n_pieces;
}

/* Pascanu, Mikolov, Bengio, On the difficulty of training recurrent networks, 2013, algorithm 1. */
static void set_scale(struct mu_optim *o, const uint64_t *sums)
{
	uint64_t total[MU_NORM_WORDS] = {0};
	double norm;

	for (size_t k = 0; k < o->n_keys; k++)
		for (size_t i = 0; i < MU_NORM_WORDS; i++)
			total[i] += sums[2 * k * MU_NORM_WORDS + i];
	norm = sqrt(mu_norm_value(total)) * (double)o->pieces[0].update.rescale;
	o->scale = norm > o->config.clip_global_norm ? o->config.clip_global_norm / norm : 1;
}

static void set_trust(struct mu_optim *o, size_t k, const uint64_t *sums)
{
	float *none[MU_MAX_STATES] = {NULL};
	struct key *key = &o->keys[k];
	struct mu_update u = mu_optim_update_of(o, &o->pieces[0], key, 0, none);
	double squares[2] = {mu_norm_value(sums), mu_norm_value(sums + MU_NORM_WORDS)};

	key->trust = (float)o->rule->trust(&u, squares);
}

void mu_optim_norms_set(struct mu_optim *o, int round, const uint64_t *sums)
{
	if (o->n_pieces == 0)
		return;
	if (clips_in(o, round)) {
		set_scale(o, sums);
		return;
	}
	for (size_t k = 0; k < o->n_keys; k++)
		if (o->keys[k].trusted)
			set_trust(o, k, sums + 2 * k * MU_NORM_WORDS);
}

void mu_optim_set_updates(struct mu_optim *o, size_t p, uint64_t updates)
{
	o->pieces[p].t = updates;
}

void mu_optim_counts(const struct mu_optim *o, uint64_t *updates, double *last_lr)
{
	*updates = 0;
	*last_lr = 0;
	for (size_t p = 0; p < o->n_pieces; p++) {
		if (o->pieces[p].t < *updates)
			continue;
		*updates = o->pieces[p].t;
		*last_lr = o->pieces[p].last_lr;
	}
}

void mu_optim_set_counts(struct mu_optim *o, uint64_t updates, double last_lr)
{
	for (size_t p = 0; p < o->n_pieces; p++) {
		o->pieces[p].t = updates;
		o->pieces[p].last_lr = last_lr;
	}
}

float *mu_optim_state(struct mu_optim *o, int i, const char **name, size_t *n)
{
	if (i < 0 || i >= o->n_states)
		return NULL;
	*name = o->rule->state_names[i];
	*n = o->n_local;
	return o->states[i];
}
