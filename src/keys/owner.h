/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the owner of keys, or of runs of keys: it holds their values and updates
 * them. A server has one, and so has the worker of a store without servers. No messages here.
 */
#ifndef MUSTER_KEYS_OWNER_H
#define MUSTER_KEYS_OWNER_H

#include <muster/keys.h>

#include "pool.h"

/* Elements that are read, summed, updated and rounded at a time: they stay in the first cache. */
#define MU_KEYS_BLOCK ((size_t)2048)

/* How an array that goes to an owner, or comes from it, is written. */
enum mu_coding {
	MU_CODING_NONE,  /* nothing */
	MU_CODING_DENSE, /* in the key's type */
	MU_CODING_2BIT,  /* see bits.h */
	MU_CODING_1BIT,
	MU_CODING_ROWS,        /* numbers of rows (uint64_t), then what of them lies in the run */
	MU_CODING_ROW_IDS,     /* numbers of rows whose values are wanted */
	MU_CODING_VALUE_PUT,   /* first values, in the key's type */
	MU_CODING_STATE_GET,   /* a state of the optimiser is wanted */
	MU_CODING_STATE_PUT,   /* a state of the optimiser, float32 */
	MU_CODING_UPDATES_GET, /* the count of updates, uint64_t */
	MU_CODING_UPDATES_PUT,
	/* The count of closed rounds, uint64_t; always answered at once. n_rows: does it wait? */
	MU_CODING_ROUNDS_GET,
	MU_CODING_WEIGHTS_GET, /* the value in the owner's precision, float32 */
	MU_CODING_WEIGHTS_PUT,
	MU_CODING_MULTIPLIERS_PUT, /* of learning rate and weight decay, two doubles */
};

/* A gradient. */
struct mu_source {
	const void *data;
	enum mu_coding coding; /* DENSE, 2BIT, 1BIT */
	enum mu_dtype dtype;
	float threshold;
};

/* What messages call a key: 7, or 'conv1_weight'. */
struct mu_key_text {
	char text[MU_KEY_NAME_MAX + 3];
};
struct mu_key_text mu_key_text(int number, const char *name);

/* A run of a key: elements [from, from + n). */
struct mu_owned {
	int key;
	char name[MU_KEY_NAME_MAX + 1]; /* "": the key is a number */
	size_t from, n;
	enum mu_dtype dtype;
	float *weights;         /* padded to whole runs of 16 */
	struct mu_optim *optim; /* NULL without an optimiser */
	char rule[192];         /* that optim and updates belong to */
	bool has_multipliers;
	double multipliers[2]; /* of the learning rate and of the weight decay */
	uint64_t updates;
	uint64_t rounds; /* that are closed */
};

/* What a push does: replace the value, the optimiser, the caller's updater. BAD: see rule.c.
 */
enum mu_rule_kind { MU_RULE_REPLACE, MU_RULE_OPTIM, MU_RULE_UPDATER, MU_RULE_BAD };

struct mu_owner {
	struct mu_pool *pool;
	enum mu_rule_kind kind;
	struct mu_kv_optimizer optimizer;
	char rule[192];                       /* name of the optimiser's rule or of the updater */
	const struct mu_kv_updater *updaters; /* all that there are */
	size_t n_updaters;
	const struct mu_kv_updater *updater;
	float *blocks;         /* one per source, and one for the sum */
	const float **sources; /* of the present block */
	size_t max_sources;
};

enum mu_status mu_owner_init(struct mu_owner *o, const struct mu_keys_config *config,
			     struct mu_pool *pool, size_t max_sources);
void mu_owner_release(struct mu_owner *o);
/* A new run of zeros; p->key, from, n and dtype are set. */
enum mu_status mu_owner_add(struct mu_owner *o, struct mu_owned *p);
void mu_owner_drop(struct mu_owned *p);
/* One update of a run by the sum of sources, in their order. n_sources <= max_sources. */
enum mu_status mu_owner_update(struct mu_owner *o, struct mu_owned *p,
			       const struct mu_source *sources, size_t n_sources);
/* The sum of n elements of some sources, rounded to the type. */
void mu_owner_sum(struct mu_owner *o, enum mu_dtype dtype, void *out,
		  const struct mu_source *sources, size_t n_sources, size_t n);

/*
 * What is told to all owners in the same words: a rule. On the wire as it is, all ranks being of
 * one machine type.
 */
struct mu_rule_order {
	uint32_t kind;
	char name[192];                   /* of the optimiser or of the updater */
	struct mu_kv_optimizer optimizer; /* its name is not used */
};
enum mu_status mu_owner_set_rule(struct mu_owner *o, const struct mu_rule_order *order);
/* Bring a run's optimiser in line with the rule. After mu_owner_set_rule, for every run. */
enum mu_status mu_owner_renew(struct mu_owner *o, struct mu_owned *p);
void mu_owner_set_updates(struct mu_owned *p, uint64_t updates);
/* Rounds to the key's type, unless the rule keeps float32. */
void mu_owner_set_weights(const struct mu_owner *o, struct mu_owned *p, const float *weights);

/* ---- what comes and goes, by coding (coding.c) ---- */

/* What a call does with one run of a key. */
struct mu_transfer {
	size_t part;           /* in the table of keys */
	enum mu_coding coding; /* of what goes to the owner */
	float threshold;       /* of 2BIT, 1BIT */
	const void *data;      /* what goes to the owner */
	size_t nbytes;
	size_t n_rows, row_length; /* of rows; n_rows: number of a state, or see ROUNDS_GET */
	void *out;                 /* what comes back, NULL = nothing is wanted */
	size_t out_nbytes;
};

/* Is it a worker's part of a round? */
bool mu_coding_is_push(enum mu_coding coding);
/* What of row r of row_length elements lies in [from, from + n)? Returns the elements. */
size_t mu_row_in_run(uint64_t row, size_t row_length, size_t from, size_t n, size_t *offset);
/* Rows as they came with CODING_ROWS, added up into float32; out has n elements, all written. */
void mu_coding_expand(const struct mu_owned *p, const void *data, size_t n_rows, size_t row_length,
		      float *out);
/* Values, a state, a count of updates or multipliers are set; other codings do nothing. */
enum mu_status mu_coding_put(struct mu_owner *o, struct mu_owned *p, const struct mu_transfer *x);
/* What x wants of a run: its bytes, and itself. out may be any memory. */
size_t mu_coding_answer_bytes(const struct mu_owned *p, const struct mu_transfer *x);
enum mu_status mu_coding_answer(const struct mu_owned *p, const struct mu_transfer *x, void *out);

#endif
