/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim: update rules and learning-rate schedules. weights <- rule(weights, gradient).
 *
 * g' = rescale * gradient, where rescale is 1 / (number of samples in the gradient). g' is clipped
 * if clip_gradient > 0. Formulas: see the file of each rule. Names and defaults are MXNet's.
 */
#ifndef MUSTER_OPTIM_H
#define MUSTER_OPTIM_H

#include <muster/base.h>
#include <muster/update.h>

MU_BEGIN_C

/* A rule ignores settings that it does not have. mu_optim_defaults sets a rule's defaults. */
struct mu_optim_config {
	const char *name; /* name of a rule: see mu_rule_table */
	double mom;       /* momentum */
	double wd; /* weight decay: for names that end in _weight, and in _gamma if wd_gamma; a
		      multiplier of the slice overrides this */
	double beta1, beta2;     /* adam, lamb: decay rates of the first and second moment */
	double eps;              /* added to a root in a divisor */
	double clip_gradient;    /* limit of each element of g', 0 = none */
	bool wd_gamma;           /* decay gammas as well, as MXNet does */
	double clip_global_norm; /* limit of the norm of g' over all learnable keys, 0 = none */
	double rho;              /* adadelta: decay rate of the squares */
	double gamma1, gamma2;   /* rmsprop: decay rate of the squares; centred: momentum */
	bool centered;           /* rmsprop: divide by the variance instead of the second moment */
	bool decoupled;          /* adam: decoupled weight decay (AdamW) */
	double lamda1, beta;     /* ftrl: weight of the 1-norm; initial divisor of the learning rate
				    */
	double wd_lh;            /* signum: weight decay outside the momentum */
	double lars_eta;         /* lars: trust coefficient */
	double lamda;            /* dcasgd: strength of the compensation of delay */
	double lower_bound, upper_bound; /* lamb: limits of the norm of a key's weights, 0 = none */
	bool prior; /* set by a store that calls mu_optim_prior: the rule keeps no copy of the
		       weights */
};

/* Arguments of one update of a run of elements. */
struct mu_update {
	float lr, wd, rescale, clip, mom;
	float trust;        /* trust factor of the key, see mu_rule.trust; else 1 */
	uint64_t t;         /* number of this update of the element: 1, 2, ... */
	const float *prior; /* see mu_optim_prior; else NULL */
	const struct mu_optim_config *config;
};

/* A setting of a rule; its name is also the trainer's option. */
struct mu_setting {
	const char *name;
	size_t offset;  /* of a double in struct mu_optim_config; 0: one default for all rules */
	double initial; /* the rule's default, if offset is not 0 */
};

#define MU_MAX_STATES 3

/*
 * A rule is one exported const table. n is a multiple of 16, so the vector loop has no remainder
 * and every element sees the same instructions wherever the arrays are cut. states[i] is the rule's
 * i-th state array, zero at first. Arrays do not overlap. Weights and gradients that are zero
 * (padding) stay zero.
 *
 * A rule with `measure` scales the step of a key by norms over the whole key. measure runs over all
 * elements before update; it adds two kinds of squares (of the weights, and of the quantity
 * compared with them) to sums[0] and sums[1] by mu_norm_squares. trust computes from the two totals
 * a factor, which update reads from u->trust.
 */
struct mu_rule {
	const char *name;
	const char *help;
	bool internal;                     /* for tests and stores; not listed */
	double lr; /* default of the trainer; 0: as sgd's, which networks declare */
	const struct mu_setting *settings; /* ends with a NULL name */
	int n_states;
	const char *state_names[MU_MAX_STATES]; /* "momentum" */
	/* Number of states in use, from the first; NULL: all. */
	int (*states)(const struct mu_optim_config *config);
	void (*update)(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		       float *const *states);
	/* Element-wise rules: the constants of an update, for mu_element_update. NULL: elements
	 * depend on one another. */
	struct mu_element (*element)(const struct mu_update *u);
	void (*measure)(const struct mu_update *u, size_t n, const float *weights,
			const float *gradients, float *const *states, uint64_t *const *sums);
	double (*trust)(const struct mu_update *u, const double *squares);
	bool trusts_weights_only; /* u->trust is 1 for _bias, _gamma and _beta */
	bool corrects_momentum;   /* u->mom is scaled with the learning rate */
	bool replaces;            /* the update copies the gradients to the weights */
};

extern const struct mu_rule *const mu_rule_table[]; /* NULL-terminated */

/* MU_ERR_USAGE with the list for an unknown name. */
enum mu_status mu_rule_find(const struct mu_rule **rule, const char *name);
/* The rule's setting of this name, NULL if there is none. */
const struct mu_setting *mu_rule_setting(const struct mu_rule *rule, const char *name);
/* "sgd, nag, ...": the rules that are not internal; with setting not NULL, those that have it. */
void mu_rule_list(const char *setting, char *text, size_t nbytes);

/* The rule's defaults, wd 0 and no clipping. Errors as mu_rule_find. */
enum mu_status mu_optim_defaults(struct mu_optim_config *config, const char *name);
/* MU_ERR_USAGE: a setting that is out of the rule's range. */
enum mu_status mu_optim_check(const struct mu_optim_config *config);
/* Names of the state arrays that the config needs; returns their number, 0 for an unknown rule. */
int mu_optim_states(const struct mu_optim_config *config, const char *names[MU_MAX_STATES]);

/* A piece of a flat array in an optimiser: elements [at, at + n) of the model, stored from `local`
 * on in the optimiser's arrays. */
struct mu_piece {
	size_t at, n, local;
};

/*
 * An optimiser of some pieces of the model: a worker has one piece, the whole model; a server's
 * shard is several. Pieces start and end on multiples of 16 elements. Rule, weight decay and
 * momentum of an element are those of its slice. Elements between two slices are padding of the
 * first.
 */
struct mu_optim;

/* Errors: as mu_rule_find and mu_optim_check. slices are copied, names included. */
enum mu_status mu_optim_new(struct mu_optim **out, const struct mu_optim_config *config,
			    const struct mu_slice *slices, size_t n_slices,
			    const struct mu_piece *pieces, size_t n_pieces);
void mu_optim_free(struct mu_optim *o);
/*
 * One update of piece p: _begin, then _block for runs that cover the piece once, in any order; from
 * and n are multiples of 16. weights and gradients point to the first element of the run. lr: see
 * mu_schedule_lr. count: samples in the gradient (rescale = 1 / count). With count = 0 nothing is
 * done and t does not advance. t counts per piece.
 */
void mu_optim_begin(struct mu_optim *o, size_t p, double lr, double count);
void mu_optim_block(struct mu_optim *o, size_t p, size_t from, size_t n, float *weights,
		    const float *gradients);
/* Set the number of updates of piece p so far: the next one has t = updates + 1. */
void mu_optim_set_updates(struct mu_optim *o, size_t p, uint64_t updates);
/*
 * After _begin, for rules that compensate delay (dcasgd): the weights at which piece p's gradients
 * were computed, from the piece's first element. They must not change until the last _block.
 * Without this call, and without config.prior, such a rule uses the weights before its last update,
 * as MXNet does.
 */
void mu_optim_prior(struct mu_optim *o, size_t p, const float *prior);
/* Does an update with any samples just copy the gradients to the weights? The caller may then omit
 * the update and write the gradients there. */
bool mu_optim_replaces(const struct mu_optim_config *config, const struct mu_slice *slices,
		       size_t n_slices);
/* For checkpoints: the largest number of updates of a piece, and the learning rate of the last
 * update (0: none yet). _set sets all pieces to the same. */
void mu_optim_counts(const struct mu_optim *o, uint64_t *updates, double *last_lr);
void mu_optim_set_counts(struct mu_optim *o, uint64_t updates, double last_lr);
/*
 * State array i of all pieces ("momentum"), n_local elements; NULL after the last. For checkpoints.
 */
float *mu_optim_state(struct mu_optim *o, int i, const char **name, size_t *n);

/*
 * Updates by the caller instead of mu_optim_block, for example on a GPU, by mu_element_update for
 * each element. Elements with equal constants form a class; the classes are the same in all pieces.
 * The caller then owns the states; mu_optim_state returns what the caller wrote there.
 */
bool mu_optim_is_by_element(const struct mu_optim *o, char *why, size_t nbytes);
/* classes[i]: class of elements [16 i, 16 i + 16) of piece p. */
void mu_optim_classes(const struct mu_optim *o, size_t p, unsigned char *classes);
/* After mu_optim_begin: the constants of each class. Returns their number; 0 if there is nothing to
 * do. */
size_t mu_optim_elements(const struct mu_optim *o, size_t p,
			 struct mu_element of[MU_ELEMENT_CLASSES]);

/*
 * Norms. Rules with a trust factor, and clip_global_norm with any rule, need norms over whole keys
 * or over the whole model before the first element is updated, and keys may be cut over pieces and
 * ranks. Such an update is: mu_optim_begin for all pieces, with equal lr and count; for every round
 * r: mu_optim_measure on every owner of pieces, add the sums of all owners word by word,
 * mu_optim_norms_set with the totals on every owner; then mu_optim_block over all pieces.
 *
 * Sums are exact integers: the result does not depend on the cut into pieces, on the number of
 * owners, or on the order of additions.
 */
bool mu_optim_needs_norms(const struct mu_optim_config *config);
int mu_optim_rounds(const struct mu_optim *o);   /* 0: no norms are needed */
size_t mu_optim_words(const struct mu_optim *o); /* length of the sums of a round */
/* Add the squares of piece p to sums, which are 0 at first. weights and gradients point to the
 * first element of the piece. Call once per piece and round: it may advance states. */
void mu_optim_measure(struct mu_optim *o, int round, size_t p, const float *weights,
		      const float *gradients, uint64_t *sums);
size_t mu_optim_pieces(const struct mu_optim *o);
void mu_optim_norms_set(struct mu_optim *o, int round, const uint64_t *sums);

/* The sum of the squares of a key: a fixed-point number in 32-bit words with deferred carries. Up
 * to 2^36 elements. n is a multiple of 16. */
#define MU_NORM_WORDS 19
void mu_norm_squares(uint64_t *sum, size_t n, const float *values);
/* NaN if a value was not finite. */
double mu_norm_value(const uint64_t *sum);

/* out = ((in[0] + in[1]) + in[2]) + ..., element by element; n_in >= 2, n a multiple of 16. Arrays
 * do not overlap. */
void mu_optim_sum(float *out, const float *const *in, size_t n_in, size_t n);

/* ---- learning rate ---- */

#define MU_MAX_LR_STEPS 32

enum mu_schedule_kind {
	MU_SCHEDULE_MULTIFACTOR, /* lr * factor^(boundaries passed); constant without boundaries */
	MU_SCHEDULE_FACTOR,      /* max(final_lr, lr * factor^(whole steps passed)) */
	MU_SCHEDULE_POLY,        /* final_lr + (lr - final_lr) (1 - x)^power */
	MU_SCHEDULE_COSINE,      /* final_lr + (lr - final_lr) (1 + cos(pi x)) / 2 */
};

/*
 * Progress is counted in samples, so epochs mean the same for every batch size and store. x above
 * is (progress - warmup) / (length - warmup), at most 1. Formulas: MXNet 1.9's lr_scheduler.py;
 * cosine: Loshchilov and Hutter, SGDR, ICLR 2017, equation 5.
 */
struct mu_schedule {
	enum mu_schedule_kind kind;
	double lr;     /* base */
	double factor; /* 1 or more: constant learning rate */
	size_t n_steps;
	double steps[MU_MAX_LR_STEPS]; /* boundaries of multifactor, ascending */
	double step;                   /* interval of MU_SCHEDULE_FACTOR */
	double length, power, final_lr;
	/*
	 * Warm-up during the first `warmup` samples: constant warmup_begin_lr, or linear from
	 * warmup_begin_lr to lr (Goyal et al., Accurate, large minibatch SGD, 2017, section 2.2).
	 */
	double warmup, warmup_begin_lr;
	bool warmup_constant;
};

/*
 * Learning rate of an update of `count` samples after `progress` samples. Schedules with steps use
 * `progress`: an update that starts at a boundary is the first with the new rate. Smooth schedules
 * use progress + count, as MXNet 1.9, which counts an update before it computes the rate: the first
 * update of a warm-up from 0 has a rate above 0, and the last update of training has final_lr.
 */
double mu_schedule_lr(const struct mu_schedule *s, double progress, double count);
/* Parse the boundaries of multifactor: "10,20", in epochs of samples_per_epoch samples.
 * MU_ERR_USAGE names the bad text. */
enum mu_status mu_schedule_parse(struct mu_schedule *s, const char *epochs,
				 double samples_per_epoch);

MU_END_C

#endif
