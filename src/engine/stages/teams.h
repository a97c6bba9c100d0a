/* SPDX-License-Identifier: Apache-2.0 */
/* rank_team: --group2rank and --model-parallel-ranks, known to src/train only. */
#ifndef TRAIN_RANK_TEAM_H
#define TRAIN_RANK_TEAM_H

#include <muster/kvstore.h>
#include <muster/parallel.h>

#include "conf/options.h"

struct mu_engine;

/* Workers that share the layers of a network, and one batch. Without the options each is alone. */
struct engine_team {
	size_t size;
	size_t n, index; /* teams, and which of them is this worker's */
	size_t member;   /* this worker's number in it */
};

/* MU_ERR_USAGE for what cannot be. */
enum mu_status mu_engine_team_size(const struct conf *v, size_t *size);
/* Layers by --group2rank. */
enum mu_status mu_engine_team_stages(const struct conf *v, const struct mu_plan *plan,
				     struct mu_stages *stages);
/* Once the topology is there. MU_ERR_USAGE, on all ranks: the workers are no whole teams. */
enum mu_status mu_engine_team_open(struct mu_engine *e);
/* The number among the workers of a member of this team. */
int mu_engine_team_worker(const struct mu_engine *e, size_t member);
/* Samples that this worker tells the store, of so many of its team. */
size_t mu_engine_team_count(const struct mu_engine *e, size_t count);
void mu_engine_team_report(const struct mu_engine *e);

#endif
