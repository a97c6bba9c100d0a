/* SPDX-License-Identifier: Apache-2.0 */
/* Private to optim: the representation of an optimiser. */
#ifndef MUSTER_OPTIM_OBJECT_H
#define MUSTER_OPTIM_OBJECT_H

#include "rule.h"

/* Constants of a key's update. */
struct key {
	enum mu_slice_rule rule;
	bool fixed;
	float wd;
	double lr_mult;
	float momentum; /* of MU_SLICE_AVERAGE */
	bool trusted;   /* norms scale its step */
	float trust;
	size_t class; /* see mu_optim_classes */
};

/* [from, to) of a piece, all of it in one slice. */
struct segment {
	size_t from, to, key;
};

struct piece {
	size_t n, local;
	size_t first_segment, n_segments;
	bool active; /* the current update changes this piece */
	uint64_t t;
	double last_lr;
	struct mu_update update;
};

struct mu_optim {
	const struct mu_rule *rule;
	struct mu_optim_config config;
	int n_states, n_rounds;
	bool clips_norm; /* in round 0; a rule's own round is the last */
	struct key *keys;
	size_t n_keys;
	struct piece *pieces;
	size_t n_pieces;
	struct segment *segments;
	size_t n_local;
	float *states[MU_MAX_STATES];
	double scale; /* factor of the gradients that limits their norm */
	size_t n_classes;
};

/* Arguments of the update of a key's elements at `at` of a piece, and the states there. */
struct mu_update mu_optim_update_of(const struct mu_optim *o, const struct piece *piece,
				    const struct key *key, size_t at, float **states);
/* The same for a key of MU_SLICE_AVERAGE, which has no states. */
struct mu_update mu_optim_average_of(const struct piece *piece, const struct key *key);
/* Number the kinds of keys: key->class and o->n_classes. */
void mu_optim_classify(struct mu_optim *o);

#endif
