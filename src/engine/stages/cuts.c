/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of equal size, and the borders between stages. */
#include <muster/parallel.h>

#include <math.h>
#include <string.h>

#include "net/plan.h"

/* Weight of parameters in a layer's size; the rest is its multiply-adds. */
#define PARAMETERS 0.25

/* ---- sizes ---- */

static double params_of(const struct mu_plan *plan, size_t l)
{
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(plan, &n_slices);
	const size_t *keys;
	double n = 0;

	for (size_t i = mu_plan_layer_keys(plan, l, &keys); i-- > 0;)
		if (slices[keys[i]].rule == MU_SLICE_LEARN)
			n += (double)slices[keys[i]].n;
	return n;
}

static double work_of(const struct mu_plan *plan, size_t l)
{
	struct mu_layer_cost forward, backward;

	mu_plan_layer_cost(plan, l, &forward, &backward);
	return forward.flops;
}

/* A cut: size and multiply-adds of the layers before it, bytes that cross it. */
struct cut {
	double size, work, nbytes; /* fractions of the whole network */
};

/* A choice of cuts: its largest stage, and all bytes that cross. */
struct way {
	double largest, nbytes;
	size_t before; /* the cut before the last stage */
};

/* cuts[l]: before layer l, for l from 0 to the number of layers. */
static enum mu_status measure_cuts(const struct mu_plan *plan, struct cut *cuts,
				   size_t *with_params)
{
	enum mu_status st = MU_OK;
	const size_t layers = mu_plan_layers(plan);
	struct mu_plan_edge *edges = NULL;
	double work = 0, params = 0;
	size_t n;

	*with_params = 0;
	for (size_t l = 0; l < layers; l++) {
		work += work_of(plan, l);
		params += params_of(plan, l);
		*with_params += params_of(plan, l) > 0;
	}
	for (size_t l = 0; l < layers; l++) {
		const double own = params > 0 ? params_of(plan, l) / params : 0;

		cuts[l + 1].work = cuts[l].work + (work > 0 ? work_of(plan, l) / work : 0);
		cuts[l + 1].size = cuts[l].size + PARAMETERS * own +
				   (1 - PARAMETERS) * (cuts[l + 1].work - cuts[l].work);
	}
	MU_TRY(mu_plan_edges(plan, &edges, &n));
	for (size_t i = 0; i < n; i++)
		for (size_t l = edges[i].from + 1; l <= edges[i].to; l++)
			cuts[l].nbytes += (double)(edges[i].nbytes + edges[i].gradient_nbytes);
out:
	mu_free(edges);
	return st;
}

static enum mu_status check_parts(size_t n, size_t layers, const char *what)
{
	enum mu_status st = MU_OK;

	if (n > layers || n > MU_MAX_STAGES)
		MU_FAIL(MU_ERR_USAGE,
			"the network has %zu layers with %s, and each of %zu parts needs one",
			layers, what, n);
out:
	return st;
}

static bool is_better(const struct way *a, const struct way *b)
{
	return a->largest < b->largest || (a->largest <= b->largest && a->nbytes < b->nbytes);
}

/* ways[s * (layers + 1) + l]: the best of s + 1 stages over the first l layers. */
static void find_ways(const struct cut *cuts, size_t layers, size_t n, struct way *ways)
{
	for (size_t s = 0; s < n; s++)
		for (size_t l = 0; l <= layers; l++) {
			struct way *best = &ways[s * (layers + 1) + l];

			*best = (struct way){s == 0 && l > 0 ? cuts[l].size : INFINITY, 0, 0};
			for (size_t at = 1; s > 0 && at < l; at++) {
				const struct way *front = &ways[(s - 1) * (layers + 1) + at];
				const double own = cuts[l].size - cuts[at].size;
				const struct way way = {fmax(front->largest, own),
							front->nbytes + cuts[at].nbytes, at};

				if (is_better(&way, best))
					*best = way;
			}
		}
}

enum mu_status mu_stages_balanced(struct mu_stages *stages, const struct mu_plan *plan, size_t n)
{
	enum mu_status st = MU_OK;
	const size_t layers = mu_plan_layers(plan);
	struct cut *cuts = NULL;
	struct way *ways = NULL;
	size_t with_params, end = layers;

	MU_TRY(MU_ALLOC(cuts, layers + 1, "cuts of a network"));
	MU_TRY(MU_ALLOC(ways, n * (layers + 1), "cuts of a network"));
	MU_TRY(measure_cuts(plan, cuts, &with_params));
	MU_TRY(check_parts(n, with_params, "parameters"));
	find_ways(cuts, layers, n, ways);
	stages->n = n;
	for (size_t s = n; s-- > 0;) {
		const size_t first = ways[s * (layers + 1) + end].before;

		stages->of[s] = (struct mu_stage){.first = first, .n = end - first, .device = s};
		end = first;
	}
out:
	mu_free(cuts);
	mu_free(ways);
	return st;
}

/* ---- for blocks ---- */

/* Cuts are compared by a simulated step of BLOCKS blocks; pairs of cuts at most NEAR apart are
 * moved together. */
enum { BLOCKS = 4, NEAR = 3 };

/* Cuts are before layers with multiply-adds, so that each stage has one. Place p is layer at[p];
 * at[0] is 0. */
struct search {
	const struct cut *cuts;
	size_t layers, n_places, *at;
	size_t n_devices;
	struct mu_stages stages;    /* of the cuts tried last */
	size_t best[MU_MAX_STAGES]; /* the places where the stages begin */
	double time;                /* of a step with the best cuts */
};

static void set_stages(struct search *m, const size_t *cut)
{
	struct mu_stages *stages = &m->stages;

	for (size_t s = 0; s < stages->n; s++) {
		const size_t first = m->at[cut[s]];
		const size_t end = s + 1 < stages->n ? m->at[cut[s + 1]] : m->layers;

		stages->of[s] = (struct mu_stage){first, end - first, s % m->n_devices,
						  m->cuts[end].work - m->cuts[first].work};
	}
}

static enum mu_status try_cuts(struct search *m, const size_t *cut)
{
	enum mu_status st = MU_OK;
	struct mu_stage_order *order = NULL;

	set_stages(m, cut);
	MU_TRY(mu_stage_order_new(&order, &m->stages, m->n_devices, BLOCKS, true));
	if (order->time < m->time) {
		m->time = order->time;
		memcpy(m->best, cut, m->stages.n * sizeof *cut);
	}
	mu_stage_order_free(order);
out:
	return st;
}

/* Try all places of the starts of stages i <= j between their neighbours. */
static enum mu_status move_two(struct search *m, size_t i, size_t j)
{
	enum mu_status st = MU_OK;
	size_t cut[MU_MAX_STAGES];
	const size_t end = j + 1 < m->stages.n ? m->best[j + 1] : m->n_places;

	memcpy(cut, m->best, m->stages.n * sizeof *cut);
	for (size_t p = cut[i - 1] + 1; p < (j > i + 1 ? cut[i + 1] : end); p++) {
		cut[i] = p;
		for (size_t q = j > i ? cut[j - 1] + 1 : p; q < (j > i ? end : p + 1); q++) {
			cut[j] = q;
			MU_TRY(try_cuts(m, cut));
		}
	}
out:
	return st;
}

/* The best cuts into n stages; starts from equal numbers of layers. */
static enum mu_status search(struct search *m, size_t n)
{
	enum mu_status st = MU_OK;
	size_t cut[MU_MAX_STAGES];
	double before = INFINITY;

	m->stages = (struct mu_stages){.n = n, .blocks = true};
	m->time = INFINITY;
	for (size_t s = 0; s < n; s++)
		cut[s] = s * m->n_places / n;
	MU_TRY(try_cuts(m, cut));
	while (m->time < before) {
		before = m->time;
		for (size_t i = 1; i < n; i++)
			for (size_t j = i; j < n && j <= i + NEAR; j++)
				MU_TRY(move_two(m, i, j));
	}
	set_stages(m, m->best);
out:
	return st;
}

static void find_places(struct search *m)
{
	m->n_places = 1;
	for (size_t l = 1; l < m->layers; l++)
		if (m->cuts[l].work > 0 && m->cuts[l + 1].work > m->cuts[l].work)
			m->at[m->n_places++] = l;
}

enum mu_status mu_stages_of_blocks(struct mu_stages *stages, const struct mu_plan *plan, size_t n)
{
	enum mu_status st = MU_OK;
	struct search m = {.layers = mu_plan_layers(plan), .n_devices = n};
	struct cut *cuts = NULL;
	double time;
	size_t with_params;

	MU_TRY(MU_ALLOC(cuts, m.layers + 1, "cuts of a network"));
	MU_TRY(MU_ALLOC(m.at, m.layers, "cuts of a network"));
	m.cuts = cuts;
	MU_TRY(measure_cuts(plan, cuts, &with_params));
	find_places(&m);
	MU_TRY(check_parts(n, m.n_places, "multiply-adds"));
	MU_TRY(search(&m, n));
	*stages = m.stages;
	time = m.time;
	if (n > 1 && 2 * n <= m.n_places && 2 * n <= MU_MAX_STAGES)
		MU_TRY(search(&m, 2 * n));
	if (m.time < time)
		*stages = m.stages;
out:
	mu_free(m.at);
	mu_free(cuts);
	return st;
}

/* ---- borders ---- */

static size_t stage_of(const struct mu_stages *stages, size_t l)
{
	size_t s = 0;

	while (s + 1 < stages->n && l >= stages->of[s + 1].first)
		s++;
	return s;
}

enum mu_status mu_stages_borders(const struct mu_stages *stages, const struct mu_plan *plan,
				 size_t n_micro, struct mu_stage_border **borders, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_plan_edge *edges = NULL;
	size_t n_edges = 0;

	*n = 0;
	*borders = NULL;
	MU_TRY(mu_plan_edges(plan, &edges, &n_edges));
	MU_TRY(MU_ALLOC(*borders, n_edges + 1, "borders"));
	for (size_t i = 0; i < n_edges; i++) {
		const size_t from = stage_of(stages, edges[i].from);
		const size_t to = stage_of(stages, edges[i].to);
		struct mu_stage_border *b = *borders;

		if (from == to)
			continue;
		while (b < *borders + *n && (b->from != from || b->to != to))
			b++;
		if (b == *borders + *n)
			*(*borders + (*n)++) = (struct mu_stage_border){from, to, 0, 0};
		b->tensors++;
		b->nbytes += (double)n_micro * (double)(edges[i].nbytes + edges[i].gradient_nbytes);
	}
out:
	mu_free(edges);
	return st;
}
