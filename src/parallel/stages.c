/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of equal size, and what passes between stages. */
#include <muster/parallel.h>

#include <math.h>
#include <string.h>

/* Of a layer's size: how much its parameters count beside its multiply-adds. */
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

/* Of layers in front of a cut: their size, what passes the cut; and the best way so far. */
struct cut {
	double size, nbytes;
};

struct way {
	double largest, nbytes;
	size_t before; /* the cut in front of the last stage */
};

/* cuts[l]: in front of layer l, for l up to and with the number of layers. */
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
	for (size_t l = 0; l < layers; l++)
		cuts[l + 1].size = cuts[l].size +
				   (work > 0 ? (1 - PARAMETERS) * work_of(plan, l) / work : 0) +
				   (params > 0 ? PARAMETERS * params_of(plan, l) / params : 0);
	MU_TRY(mu_plan_edges(plan, &edges, &n));
	for (size_t i = 0; i < n; i++)
		for (size_t l = edges[i].from + 1; l <= edges[i].to; l++)
			cuts[l].nbytes += (double)(edges[i].nbytes + edges[i].gradient_nbytes);
out:
	mu_free(edges);
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
	if (n > with_params || n > MU_MAX_STAGES)
		MU_FAIL(MU_ERR_USAGE,
			"the network has %zu layers with parameters, and each of %zu parts needs "
			"one",
			with_params, n);
	find_ways(cuts, layers, n, ways);
	stages->n = n;
	for (size_t s = n; s-- > 0;) {
		const size_t first = ways[s * (layers + 1) + end].before;

		stages->of[s] = (struct mu_stage){first, end - first, s};
		end = first;
	}
out:
	mu_free(cuts);
	mu_free(ways);
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
