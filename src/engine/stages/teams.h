/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of ranks: --model-parallel-ranks. */
#ifndef ENGINE_TEAMS_H
#define ENGINE_TEAMS_H

#include <muster/kvstore.h>
#include <muster/parallel.h>

#include "conf/options.h"

struct mu_engine;

/* Workers that share the layers of a network and a batch. Without the options a team is one worker.
 * */
struct engine_team {
	size_t size;
	size_t n, index; /* number of teams; number of this worker's team */
	size_t member;   /* number of this worker in its team */
};

/* Workers of a team. MU_ERR_USAGE: a list that cannot be read. */
enum mu_status mu_engine_team_size(const struct conf *v, size_t *size);
/* The stages of a list of groups of layers. */
enum mu_status mu_engine_team_stages(const struct conf *v, const struct mu_plan *plan,
				     struct mu_stages *stages);
/* After the members are known. MU_ERR_USAGE, on all ranks: the workers cannot be divided into
 * teams. */
enum mu_status mu_engine_team_open(struct mu_engine *e);
/* The worker number of a member of this team. */
int mu_engine_team_worker(const struct mu_engine *e, size_t member);
/* Of `count` samples of its team, the number that this worker reports to the store. */
size_t mu_engine_team_count(const struct mu_engine *e, size_t count);
void mu_engine_team_report(const struct mu_engine *e);

#endif
