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
#include <muster/update.h>

/* Settings that a rule does not have are ignored. mu_optim_defaults fills in a rule's own. */
struct mu_optim_config {
	const char *name; /* of a rule: see mu_rule_table */
	double mom;       /* momentum */
	double wd; /* weight decay: only for names that end in _weight, or in _gamma if wd_gamma;
		    * a slice's own multiplier takes the place of that */
	double beta1, beta2;     /* adam, lamb: decay of the first and of the second moment */
	double eps;              /* beside a root in a divisor */
	double clip_gradient;    /* limit of every element of g', 0 = none */
	bool wd_gamma;           /* MXNet decays gammas too: true is its way */
	double clip_global_norm; /* limit of the norm of g' over all learnable keys, 0 = none */
	double rho;              /* adadelta: decay of the squares */
	double gamma1, gamma2;   /* rmsprop: decay of the squares; centred: momentum */
	bool centered;           /* rmsprop: by the variance, not by the second moment */
	bool decoupled;          /* adam: weight decay beside the moments (AdamW), not within */
	double lamda1, beta;     /* ftrl: weight of the 1-norm; the rate's divisor at the start */
	double wd_lh;            /* signum: weight decay beside the momentum */
	double lars_eta;         /* lars: trust coefficient */
	double lamda;            /* dcasgd: how much of the delay is compensated */
	double lower_bound, upper_bound; /* lamb: limits of a key's norm of weights, 0 = none */
	bool prior; /* set by a store that calls mu_optim_prior: the rule keeps no copy of its own
		     */
};

/* What one update of a run of elements needs. */
struct mu_update {
	float lr, wd, rescale, clip, mom;
	float trust;        /* of the key, see mu_rule.trust; 1 without */
	uint64_t t;         /* updates of this element counting this one: 1, 2, ... */
	const float *prior; /* see mu_optim_prior; NULL without */
	const struct mu_optim_config *config;
};

/* A setting that a rule has: its name as an option of the trainer. */
struct mu_setting {
	const char *name;
	size_t offset;  /* of a double in struct mu_optim_config; 0: the same default everywhere */
	double initial; /* the rule's own default, if offset is not 0 */
};

#define MU_MAX_STATES 3

/*
 * A rule is one exported const table. n is a multiple of 16, so that the vector loop has no
 * remainder and every element sees the same instructions wherever the arrays are cut. states[i] is
 * the rule's i-th state array, zero at first. Arrays do not overlap. Weights and gradients that are
 * zero (padding) stay zero.
 *
 * A rule with measure scales a key's step by norms over the whole key: measure runs over all
 * elements before update does and adds squares of two kinds (of the weights, and of what the rule
 * compares them with) to sums[0] and sums[1] with mu_norm_squares; trust makes a factor of the
 * two totals, which update finds in u->trust.
 */
struct mu_rule {
	const char *name;
	const char *help;
	bool internal;                     /* for tests and stores: lists leave it out */
	const struct mu_setting *settings; /* ends with a NULL name */
	int n_states;
	const char *state_names[MU_MAX_STATES]; /* "momentum" */
	/* How many of the states, from the first, are needed; NULL: all. */
	int (*states)(const struct mu_optim_config *config);
	void (*update)(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		       float *const *states);
	/*
	 * The same for one element after the other: what mu_element_update needs for an update.
	 * NULL: elements depend on one another.
	 */
	struct mu_element (*element)(const struct mu_update *u);
	void (*measure)(const struct mu_update *u, size_t n, const float *weights,
			const float *gradients, float *const *states, uint64_t *const *sums);
	double (*trust)(const struct mu_update *u, const double *squares);
	bool trusts_weights_only; /* u->trust stays 1 for _bias, _gamma and _beta */
	bool corrects_momentum;   /* u->mom is scaled with the learning rate */
	bool replaces;            /* the gradients become the weights: no more than a copy */
};

extern const struct mu_rule *const mu_rule_table[]; /* NULL-terminated */

/* MU_ERR_USAGE for an unknown name, with the list. */
enum mu_status mu_rule_find(const struct mu_rule **rule, const char *name);
/* The rule's setting of this name, NULL if it has none. */
const struct mu_setting *mu_rule_setting(const struct mu_rule *rule, const char *name);
/* "sgd, nag, ...": the rules that are not internal and, unless it is NULL, have this setting. */
void mu_rule_list(const char *setting, char *text, size_t nbytes);

/* A config of the rule's own defaults, wd 0 and no clipping. MU_ERR_USAGE as mu_rule_find. */
enum mu_status mu_optim_defaults(struct mu_optim_config *config, const char *name);
/* Settings that the rule cannot work with: MU_ERR_USAGE. */
enum mu_status mu_optim_check(const struct mu_optim_config *config);
/* Names of the state arrays that the config needs; returns their number, 0 for an unknown rule. */
int mu_optim_states(const struct mu_optim_config *config, const char *names[MU_MAX_STATES]);

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
 * MU_ERR_USAGE for an unknown name, with the list, and as mu_optim_check. slices are copied (their
 * names too are not needed afterwards).
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
 * After _begin, for rules that compensate delay (dcasgd): the weights that piece p's gradients were
 * computed with, from its first element on; they stay as they are until the last _block. Without
 * it, and without config.prior, such a rule takes the weights before its last update, as MXNet.
 */
void mu_optim_prior(struct mu_optim *o, size_t p, const float *prior);
/*
 * Do gradients just take the place of weights, in an update of any samples at all? The caller may
 * then leave the update out and put them there.
 */
bool mu_optim_replaces(const struct mu_optim_config *config, const struct mu_slice *slices,
		       size_t n_slices);
/*
 * How far the pieces have come, for checkpoints: updates of the one that has most, and the learning
 * rate of its last (0: there was none). All pieces are set to the same.
 */
void mu_optim_counts(const struct mu_optim *o, uint64_t *updates, double *last_lr);
void mu_optim_set_counts(struct mu_optim *o, uint64_t updates, double last_lr);
/*
 * State array i over all pieces ("momentum"), n_local elements; NULL past the last. For
 * checkpoints.
 */
float *mu_optim_state(struct mu_optim *o, int i, const char **name, size_t *n);

/*
 * Updates that the caller does, on a GPU for example, in the place of mu_optim_block: with
 * mu_element_update for each element. Elements fall into classes of equal constants, the same
 * classes in all pieces. States are then the caller's, too; those of mu_optim_state are as he
 * leaves them.
 */
bool mu_optim_is_by_element(const struct mu_optim *o, char *why, size_t nbytes);
/* classes[i]: of elements [16 i, 16 i + 16) of piece p. */
void mu_optim_classes(const struct mu_optim *o, size_t p, unsigned char *classes);
/* After mu_optim_begin: the constants by class. Returns their number; 0 if nothing is to be done.
 */
size_t mu_optim_elements(const struct mu_optim *o, size_t p,
			 struct mu_element of[MU_ELEMENT_CLASSES]);

/*
 * Norms. Rules with a trust factor, and clip_global_norm with any rule, need norms over whole keys
 * or the whole model before a first element can be updated, and keys may be cut over pieces and
 * over ranks. So an update then is: mu_optim_begin for all pieces, all of one lr and count; for
 * every round r: mu_optim_measure on every owner of pieces, the sums of all owners added word by
 * word, mu_optim_norms_set with the totals on every owner; then mu_optim_block over all pieces.
 *
 * Sums are exact integers: neither the cut into pieces, nor the number of owners, nor the order in
 * which their words are added changes a bit of the result.
 */
bool mu_optim_needs_norms(const struct mu_optim_config *config);
int mu_optim_rounds(const struct mu_optim *o);   /* 0: no norms are needed */
size_t mu_optim_words(const struct mu_optim *o); /* of the sums of a round */
/*
 * Add those of piece p to sums, which are 0 at first. weights and gradients point to the piece's
 * first element. Once in a round for each piece: it may advance states.
 */
void mu_optim_measure(struct mu_optim *o, int round, size_t p, const float *weights,
		      const float *gradients, uint64_t *sums);
size_t mu_optim_pieces(const struct mu_optim *o);
void mu_optim_norms_set(struct mu_optim *o, int round, const uint64_t *sums);

/*
 * The sum of one kind of squares of a key: a fixed-point number in words of 32 bits, which carry
 * into one another only at the end. Up to 2^36 elements. n is a multiple of 16.
 */
#define MU_NORM_WORDS 19
void mu_norm_squares(uint64_t *sum, size_t n, const float *values);
/* NaN if a value was not finite. */
double mu_norm_value(const uint64_t *sum);

/*
 * out = ((in[0] + in[1]) + in[2]) + ..., element by element; n_in >= 2, n a multiple of 16. Arrays
 * do not overlap.
 */
void mu_optim_sum(float *out, const float *const *in, size_t n_in, size_t n);

/* ---- learning rate ---- */

#define MU_MAX_LR_STEPS 32

enum mu_schedule_kind {
	MU_SCHEDULE_MULTIFACTOR, /* lr * factor^(boundaries passed); without boundaries: constant */
	MU_SCHEDULE_FACTOR,      /* max(final_lr, lr * factor^(whole steps passed)) */
	MU_SCHEDULE_POLY,        /* final_lr + (lr - final_lr) (1 - x)^power */
	MU_SCHEDULE_COSINE,      /* final_lr + (lr - final_lr) (1 + cos(pi x)) / 2 */
};

/*
 * Progress is counted in samples: epochs mean the same whatever the batch and the store. x above
 * is (progress - warmup) / (length - warmup), at most 1. Formulas: MXNet 1.9's lr_scheduler.py;
 * cosine: Loshchilov and Hutter, SGDR, ICLR 2017, equation 5.
 */
struct mu_schedule {
	enum mu_schedule_kind kind;
	double lr;     /* base */
	double factor; /* 1 or more: the rate stays */
	size_t n_steps;
	double steps[MU_MAX_LR_STEPS]; /* boundaries of multifactor, ascending */
	double step;                   /* of factor */
	double length, power, final_lr;
	/*
	 * Before `warmup` samples: warmup_begin_lr, or a line from there to lr (gradual warm-up:
	 * Goyal et al., Accurate, large minibatch SGD, 2017, section 2.2).
	 */
	double warmup, warmup_begin_lr;
	bool warmup_constant;
};

/*
 * Learning rate of the update of `count` samples after `progress` others. What changes in steps
 * looks at `progress`: an update that begins at a boundary is the first with the new rate. What
 * changes smoothly looks at progress + count, as MXNet 1.9, which counts an update before it asks:
 * the first update of a warm-up from 0 does not have the rate 0, and the last update of training
 * has final_lr.
 */
double mu_schedule_lr(const struct mu_schedule *s, double progress, double count);
/*
 * Boundaries of multifactor: "10,20" in epochs of n samples each. MU_ERR_USAGE names what cannot be
 * read.
 */
enum mu_status mu_schedule_parse(struct mu_schedule *s, const char *epochs,
				 double samples_per_epoch);

#endif
