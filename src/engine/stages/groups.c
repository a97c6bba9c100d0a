/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of layers: the list of their devices or ranks, and the stages of a list. */
#include <muster/parallel.h>

#include <stdlib.h>
#include <string.h>

#include "net/plan.h"

enum { MOST_IN_RANGE = 10000 };

/* ---- the list ---- */

static enum mu_status find_device(struct mu_group_map *map, const char *name, size_t *device)
{
	enum mu_status st = MU_OK;

	for (*device = 0; *device < map->n_devices; ++*device)
		if (strcmp(map->devices[*device], name) == 0)
			goto out;
	if (map->n_devices == MU_MAX_STAGES)
		MU_FAIL(MU_ERR_USAGE, "--%s: more than %d %ss", map->option, MU_MAX_STAGES,
			map->kind);
	snprintf(map->devices[map->n_devices++], MU_PLACE_NAME, "%s", name);
out:
	return st;
}

static enum mu_status add_group(struct mu_group_map *map, const char *name, size_t device)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->of[i].name, name) == 0)
			MU_FAIL(MU_ERR_USAGE, "--%s: group %s is named twice", map->option, name);
	if (map->n == MU_MAX_GROUPS)
		MU_FAIL(MU_ERR_USAGE, "--%s: more than %d groups", map->option, MU_MAX_GROUPS);
	snprintf(map->of[map->n].name, MU_PLACE_NAME, "%s", name);
	map->of[map->n++].device = device;
out:
	return st;
}

/* "lstm0-3": the start of the number before the hyphen; NULL: not a range. */
static const char *find_range(const char *name, unsigned long *from, unsigned long *to)
{
	const char *hyphen = strrchr(name, '-'), *digits = hyphen;
	char *end;

	while (digits && digits > name && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	if (!hyphen || digits == hyphen || hyphen[1] < '0' || hyphen[1] > '9')
		return NULL;
	*from = strtoul(digits, NULL, 10);
	*to = strtoul(hyphen + 1, &end, 10);
	return *end ? NULL : digits;
}

static enum mu_status add_groups(struct mu_group_map *map, const char *name, size_t device)
{
	enum mu_status st = MU_OK;
	unsigned long from, to;
	const char *digits = find_range(name, &from, &to);
	char one[MU_PLACE_NAME];

	if (!digits) {
		MU_TRY(add_group(map, name, device));
		goto out;
	}
	if (from > to || to > MOST_IN_RANGE)
		MU_FAIL(MU_ERR_USAGE, "--%s: %s is not a range: it must rise, to at most %d",
			map->option, name, MOST_IN_RANGE);
	for (; from <= to; from++) {
		if (snprintf(one, sizeof one, "%.*s%lu", (int)(digits - name), name, from) >=
		    (int)sizeof one)
			MU_FAIL(MU_ERR_USAGE, "--%s: group %s... is longer than %d characters",
				map->option, one, MU_PLACE_NAME - 1);
		MU_TRY(add_group(map, one, device));
	}
out:
	return st;
}

enum mu_status mu_group_map_read(struct mu_group_map *map, const char *text, bool ranks)
{
	enum mu_status st = MU_OK;

	*map = (struct mu_group_map){.option = ranks ? "model-parallel-ranks"
						     : "model-parallel",
				     .kind = ranks ? "rank" : "device",
				     .cuts = ranks ? "model-parallel-ranks" : "model-parallel"};
	while (text) {
		const size_t n = strcspn(text, ",");
		const char *equals = memchr(text, '=', n);
		const size_t left = equals ? (size_t)(equals - text) : n;
		char name[MU_PLACE_NAME], where[MU_PLACE_NAME];
		size_t device;

		if (!equals || left == 0 || left >= sizeof name || n - left - 1 == 0 ||
		    n - left - 1 >= sizeof where)
			MU_FAIL(MU_ERR_USAGE,
				"--%s: cannot read '%.*s': GROUP=%s is needed, as in %s",
				map->option, (int)n, text, ranks ? "RANK" : "DEVICE",
				ranks ? "embed=0,lstm0-3=0,lstm4-7=1,decode=1"
				      : "embed=cpu:0,lstm0-3=cpu:0,lstm4-7=cpu:1,"
					"decode=cpu:1");
		snprintf(name, sizeof name, "%.*s", (int)left, text);
		snprintf(where, sizeof where, "%.*s", (int)(n - left - 1), equals + 1);
		MU_TRY(find_device(map, where, &device));
		MU_TRY(add_groups(map, name, device));
		text = text[n] ? text + n + 1 : NULL;
	}
out:
	return st;
}

/* ---- the stages ---- */

/* Each name of the list must be a group of the network. */
static enum mu_status check_names(const struct mu_plan *plan, const struct mu_group_map *map)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < map->n; i++) {
		const char *best = NULL, *name = map->of[i].name;
		size_t least = SIZE_MAX;

		for (size_t l = 0; l < mu_plan_layers(plan); l++) {
			const char *group = mu_plan_layer_group(plan, l);
			const size_t d =
				strcmp(group, name) == 0 ? 0 : mu_name_distance(name, group) + 1;

			if (d < least)
				best = group;
			least = d < least ? d : least;
		}
		if (least > 0)
			MU_FAIL(MU_ERR_USAGE,
				"--%s: the network has no group %s; the nearest one is %s",
				map->option, name, best ? best : "");
	}
out:
	return st;
}

static enum mu_status device_of(const struct mu_plan *plan, const struct mu_group_map *map,
				size_t l, size_t *device)
{
	enum mu_status st = MU_OK;
	const char *group = mu_plan_layer_group(plan, l);

	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->of[i].name, group) == 0) {
			*device = map->of[i].device;
			goto out;
		}
	MU_FAIL(MU_ERR_USAGE, "--%s: group %s (%s) has no %s", map->option, group,
		mu_plan_layer_name(plan, l), map->kind);
out:
	return st;
}

enum mu_status mu_stages_of_groups(struct mu_stages *stages, const struct mu_plan *plan,
				   const struct mu_group_map *map)
{
	enum mu_status st = MU_OK;
	size_t device = 0;

	*stages = (struct mu_stages){.n = 0};
	if (!*mu_plan_layer_group(plan, 0))
		MU_FAIL(MU_ERR_USAGE,
			"--%s: the layers of this network have no groups; --%s N cuts it by itself",
			map->option, map->cuts);
	MU_TRY(check_names(plan, map));
	for (size_t l = 0; l < mu_plan_layers(plan); l++) {
		struct mu_stage *last = stages->n ? &stages->of[stages->n - 1] : NULL;

		MU_TRY(device_of(plan, map, l, &device));
		if (last && last->device == device) {
			last->n++;
			continue;
		}
		if (stages->n == MU_MAX_STAGES)
			MU_FAIL(MU_ERR_USAGE, "--%s: more than %d stages", map->option,
				MU_MAX_STAGES);
		stages->of[stages->n++] = (struct mu_stage){.first = l, .n = 1, .device = device};
	}
out:
	return st;
}
