/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim: update rules and learning-rate schedules. weights <- rule(weights, gradient).
 *
 * g' = rescale * gradient; rescale is 1 / (samples behind the gradient). clip is applied to g' if
 * clip_gradient > 0. Formulas: see each rule's file. Names and defaults are MXNet's.
 */
#ifndef MUSTER_OPTIM_H
#define MUSTER_OPTIM_H

#include <muster/base.h>

struct mu_optim_config {
	const char *name; /* "sgd", "nag", "adam", "test", "none" */
	double mom;       /* sgd, nag */
	double wd; /* weight decay: only for names that end in _weight, or in _gamma if wd_gamma */
	double beta1, beta2;  /* adam */
	double eps;           /* adam */
	double clip_gradient; /* 0 = no clipping */
	bool wd_gamma;        /* MXNet decays gammas too: true is its way */
};

/* What one update of a run of elements needs. */
struct mu_update {
	float lr, wd, rescale, clip, mom, beta1, beta2, eps;
	uint64_t t; /* updates of this element counting this one: 1, 2, ... */
};

#define MU_MAX_STATES 2

/*
 * A rule is one exported const table. update: n elements, a multiple of 16, so that the vector loop
 * has no remainder and every element sees the same instructions wherever the arrays are cut.
 * states[i] is the rule's i-th state array, zero at first. Arrays do not overlap.
 */
struct mu_rule {
	const char *name;
	const char *help;
	int n_states;
	const char *state_names[MU_MAX_STATES]; /* "momentum" */
	void (*update)(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		       float *const *states);
};

extern const struct mu_rule *const mu_rule_table[]; /* NULL-terminated */

/*
 * A piece of a flat array that an optimiser holds: [at, at + n) of the model, stored at `local` of
 * its own array.
 */
struct mu_piece {
	size_t at, n, local;
};

/*
 * An optimiser over some pieces of the model (the whole model is one piece; a server's shard is
 * several). Pieces start and end on multiples of 16 elements; what rule, decay and momentum an
 * element has comes from the slice it lies in. Elements between two slices are padding of the
 * first.
 */
struct mu_optim;

/*
 * MU_ERR_USAGE for an unknown name, with the list. slices are copied (their names too are not
 * needed afterwards).
 */
enum mu_status mu_optim_new(struct mu_optim **out, const struct mu_optim_config *config,
			    const struct mu_slice *slices, size_t n_slices,
			    const struct mu_piece *pieces, size_t n_pieces);
void mu_optim_free(struct mu_optim *o);
/*
 * One update of piece p: _begin, then _block for runs that cover the piece once, in any order, from
 * and n multiples of 16. weights and gradients point to the run's first element. lr: see
 * mu_schedule_lr. count: samples behind the gradient (rescale = 1 / count; with count = 0 nothing
 * is done and t does not advance). t counts per piece.
 */
void mu_optim_begin(struct mu_optim *o, size_t p, double lr, double count);
void mu_optim_block(struct mu_optim *o, size_t p, size_t from, size_t n, float *weights,
		    const float *gradients);
/* Updates of piece p from now on count from here: the next one has t = updates + 1. */
void mu_optim_set_updates(struct mu_optim *o, size_t p, uint64_t updates);
/*
 * State array i over all pieces ("momentum"), n_local elements; NULL past the last. For
 * checkpoints.
 */
float *mu_optim_state(struct mu_optim *o, int i, const char **name, size_t *n);

/*
 * out = ((in[0] + in[1]) + in[2]) + ..., element by element; n_in >= 2, n a multiple of 16. Arrays
 * do not overlap.
 */
void mu_optim_sum(float *out, const float *const *in, size_t n_in, size_t n);

/* ---- learning rate ---- */

#define MU_MAX_LR_STEPS 32

struct mu_schedule {
	double lr;     /* base */
	double factor; /* multiplied in at every boundary; >= 1 or no boundaries: constant */
	size_t n_steps;
	double steps[MU_MAX_LR_STEPS]; /* boundaries in units of progress (samples), ascending */
};

/*
 * Learning rate of the update that begins after `progress` samples: lr * factor^(number of
 * boundaries <= progress).
 */
double mu_schedule_lr(const struct mu_schedule *s, double progress);
/* "10,20" in epochs of n samples each. MU_ERR_USAGE names what cannot be read. */
enum mu_status mu_schedule_parse(struct mu_schedule *s, const char *epochs,
				 double samples_per_epoch);

#endif
