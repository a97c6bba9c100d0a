/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --model-parallel-ranks: teams of workers that share the layers of one network.
 * Team t of size m is workers t m .. t m + m - 1, in whose order they have the numbers 0 .. m - 1
 * of the options. A team reads one batch, and counts as one worker wherever samples are divided;
 * stores and checkpoints know only workers.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* Read a list of groups; *size: the number of ranks. */
static enum mu_status read_groups(struct mu_group_map *map, const char *text, size_t *size)
{
	enum mu_status st = MU_OK;
	size_t numbers[MU_MAX_STAGES];
	bool used[MU_MAX_STAGES] = {false};

	MU_TRY(mu_group_map_read(map, text, true));
	*size = 0;
	for (size_t d = 0; d < map->n_devices; d++) {
		const char *name = map->devices[d];

		numbers[d] = strtoul(name, NULL, 10);
		if (name[strspn(name, "0123456789")] != '\0' || numbers[d] >= MU_MAX_STAGES)
			MU_FAIL(MU_ERR_USAGE,
				"--model-parallel-ranks: %s is no rank of a team: a number from 0 "
				"to %d is needed",
				name, MU_MAX_STAGES - 1);
		used[numbers[d]] = true;
		*size = numbers[d] + 1 > *size ? numbers[d] + 1 : *size;
	}
	for (size_t r = 0; r < *size; r++)
		if (!used[r])
			MU_FAIL(MU_ERR_USAGE,
				"--model-parallel-ranks: rank %zu has no group; %s makes a team of "
				"the ranks 0 to %zu",
				r, text, *size - 1);
	for (size_t i = 0; i < map->n; i++)
		map->of[i].device = numbers[map->of[i].device];
out:
	return st;
}

enum mu_status mu_engine_team_size(const struct conf *v, size_t *size)
{
	enum mu_status st = MU_OK;
	struct mu_group_map map;

	*size = (size_t)v->model_parallel_ranks;
	if (v->group2rank)
		MU_TRY(read_groups(&map, v->group2rank, size));
out:
	return st;
}

enum mu_status mu_engine_team_stages(const struct conf *v, const struct mu_plan *plan,
				     struct mu_stages *stages)
{
	enum mu_status st = MU_OK;
	struct mu_group_map map;
	size_t size;

	MU_TRY(read_groups(&map, v->group2rank, &size));
	MU_TRY(mu_stages_of_groups(stages, plan, &map));
out:
	return st;
}

enum mu_status mu_engine_team_open(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	const size_t workers = (size_t)m->num_workers;
	struct engine_team *team = &e->team;

	MU_TRY(mu_engine_team_size(e->conf, &team->size));
	if (workers % team->size != 0)
		MU_FAIL(MU_ERR_USAGE,
			"--model-parallel-ranks: %zu worker%s (%d ranks, %d of them servers) "
			"cannot be divided into teams of %zu",
			workers, MU_S(workers), m->size, m->num_servers, team->size);
	team->n = workers / team->size;
	team->index = (size_t)m->index / team->size;
	team->member = (size_t)m->index % team->size;
out:
	return st;
}

int mu_engine_team_worker(const struct mu_engine *e, size_t member)
{
	return (int)(e->team.index * e->team.size + member);
}

size_t mu_engine_team_count(const struct mu_engine *e, size_t count)
{
	return e->team.member == 0 ? count : 0;
}

void mu_engine_team_report(const struct mu_engine *e)
{
	const struct engine_team *team = &e->team;

	if (team->size > 1)
		mu_log_detail(
			"%zu team%s of %zu workers each, which share a batch and the layers of "
			"the network",
			team->n, MU_S(team->n), team->size);
}
