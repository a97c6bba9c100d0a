/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of the GPU's work: see costs.h. Every array that a kernel reads or writes counts once:
 * what is read several times is taken to come from a cache. Kernels of our own are bound by memory,
 * so that their operations are not counted. A kernel without a row here is counted without bytes.
 */
#include <pthread.h>
#include <string.h>

#include "pretend.h"

int pretend_is_dry(void)
{
	return getenv("PRETEND_DRY") != NULL;
}

/* ---- kernels ---- */

static double size_of(int type)
{
	return type == CUDA_FLOAT32 ? 4 : 2;
}

/* bytes read and written by kernel `name`, whose arguments are *a */
#define COST(name, reads, writes) \
	void pretend_cost_##name(const struct cuda_##name *a, struct pretend_cost *c); \
	void pretend_cost_##name(const struct cuda_##name *a, struct pretend_cost *c) \
	{ \
		const double n = (double)a->n; \
		c->read = (reads); \
		c->written = (writes); \
	}
#define T size_of(a->type)
#define ALL ((double)a->samples * (double)a->channels * (double)a->area)
#define LANES(l) ((double)(l).lanes * (double)(l).channels * ((l).second ? 8 : 4))
#define CHANNELS(l) ((double)(l).channels)
#define AREA(w, of) ((double)(w).of[0] * (w).of[1] * (w).of[2])

COST(scale, 4 * n, 4 * n)
COST(convert, n *(size_of(a->from_type) + (a->adds ? size_of(a->to_type) : 0)),
     n *size_of(a->to_type))
static double elements(const struct cuda_lay_weights *a)
{
	double sum = 0;

	for (int k = 0; k < a->n_of; k++)
		sum += a->of[k].n;
	return sum;
}
COST(lay_weights, elements(a) * (a->back ? 2 : 4), elements(a) * (a->back ? 4 : 2))
#define PIXELS(a) ((double)(a)->n * ((a)->to_last ? (double)(a)->channels : 1))
COST(unpack, PIXELS(a), PIXELS(a) * size_of(a->to_type))
COST(copy_rows, T *n, T *n)
COST(dropout, T *n, (T + (a->mask ? 4 : 0)) * n)
COST(activate, T *n, T *n)
COST(activate_backward, 2 * T * n, T *n)
COST(add_bias, T *n + (a->bias ? 4.0 * (double)a->channels : 0), T *n)
COST(add, (a->n_x + (a->of ? 1 : 0)) * T * n, T *n)
COST(multiply, (T + 4) * n, T *n)
COST(smooth, T *n, T *n)
COST(smooth_backward, 2 * T * n, T *n)
COST(product_of, 2 * T * n, T *n)
COST(product_of_backward, 3 * T * n, (a->da && a->db ? 2 : 1) * T * n)
/* a row is read three times, in backward twice: from a cache but for the first time */
COST(layer_norm,
     T *(double)a->channels *n + (a->beta ? 8.0 : 4.0) * (double)a->channels,
     T *(double)a->channels *n + (a->statistics ? 8 : 0) * n)
COST(layer_norm_backward, (2 * T * (double)a->channels + 8) * n + 4 * (double)a->channels,
     T *(double)a->channels *n)
COST(layer_norm_sums, (2 * T * (double)a->channels + 8) * (double)a->rows,
     8 * (double)a->lanes * (double)a->channels)
COST(positions, T *n + 4.0 * (double)a->c * (double)a->steps, T *n)
COST(positions_backward,
     T *(double)a->samples *(double)a->c *(double)a->steps + (a->adds ? 4 : 0) * n, 4 * n)
COST(pick_step, T *n, 4 * n)
COST(pick_step_backward, 4 * n / (double)a->steps, T *n)
COST(split_heads, size_of(a->from_type) * n, size_of(a->to_type) * n)
COST(join_heads, size_of(a->from_type) * n, size_of(a->to_type) * n)
COST(attend, 4 * (double)a->keys * n, T *(double)a->keys *n)
COST(attend_backward, 8 * (double)a->keys * n, 2 * T * (double)a->keys * n)
COST(plane_sums, (a->dy ? 2 : 1) * T * ALL,
     (a->second ? 8.0 : 4.0) * (double)a->lanes * (double)a->channels)
COST(channel_sums, LANES(a->of) + (a->adds ? 4 * CHANNELS(a->of) : 0), 4 * CHANNELS(a->of))
COST(statistics,
     LANES(a->of) + ((a->x ? T : 0) + (a->normals.gamma ? 8 : 4)) * CHANNELS(a->of),
     (16 + (double)sizeof(struct cuda_normal)) * CHANNELS(a->of))
COST(normals, (16 + (a->gamma ? 4 : 0) + 4) * n, (double)sizeof(struct cuda_normal) * n)
/* constants of sums: (sums, squares, gamma, beta), (constants, mean, variance) */
COST(normalize, (a->add ? 2 : 1) * T * ALL + (a->from.of.first ? 16 * (double)a->channels : 0),
     (T + (a->on ? 0.125 : 0)) * ALL + (a->from.of.first ? 32 * (double)a->channels : 0))
/* The last blocks add the lanes of dy's sums: (lanes, statistics), (means, gradients). */
#define SUMS_OF_LANES (8.0 * (double)a->lanes * (double)a->channels)
COST(gradient_sums_float16, 2 * T *ALL + SUMS_OF_LANES + 16.0 * (double)a->channels,
     SUMS_OF_LANES + 24.0 * (double)a->channels)
COST(joined_sums_float16, (3 * T + 0.125) * ALL + SUMS_OF_LANES + 16.0 * (double)a->channels,
     T *ALL + SUMS_OF_LANES + 24.0 * (double)a->channels)
COST(normal_sums, LANES(a->of) + 16 * CHANNELS(a->of), 24 * CHANNELS(a->of))
COST(normalize_backward, 2 * T * ALL, T *ALL)
COST(lrn, 4 * n, (a->scale ? 8 : 4) * n)
COST(lrn_backward, 12 * n, 4 * n)
/* by elements of y, in groups of `group`, whose maxima have a byte each, others an int */
#define PLACE(a, group) ((a)->winners ? (group) == 1 ? 4 : 1 : 0)
#define POOL(name, group) \
	COST(name, T *(group)*n / AREA(a->w, out) * AREA(a->w, in), \
	     (T + PLACE(a, group)) * (group)*n)
#define POOL_BACKWARD(name, group) \
	COST(name, \
	     (T + PLACE(a, group)) * (group)*n / AREA(a->w, in) * AREA(a->w, out), \
	     T *(group)*n)
POOL(pool, 1)
POOL_BACKWARD(pool_backward, 1)
POOL(pool_float16, 8)
POOL(pool_bfloat16, 8)
POOL_BACKWARD(pool_backward_float16, 8)
POOL_BACKWARD(pool_backward_bfloat16, 8)
COST(embed_backward, 4 * n * (double)a->units + 4 * n, 4 * n * (double)a->units)
COST(softmax, T *n *(double)a->t.classes + 4 * n, T *n *(double)a->t.classes + 16 * n)
COST(softmax_halves, T *n *(double)a->t.classes + 4 * n, T *n *(double)a->t.classes + 16 * n)
COST(softmax_backward, 4 * n, 4 * n)
COST(embed, 4 * n + 4 * n / (double)a->units, 4 * n)
COST(to_steps, T *n, T *n)
COST(from_steps, T *n, T *n)
COST(lstm_weights, 4 * n, T *n)
COST(lstm_gradients, (T + (a->adds ? 4 : 0)) * n, 4 * n)
COST(element_loss, 8 * (double)a->each * n / (double)a->parts,
     4 * (double)a->each * n / (double)a->parts + 8 * n)
COST(element_loss_backward, 8 * n, 4 * n)
#define REGION ((double)sizeof(struct cuda_region))
COST(region_softmax, 4 * n * (double)a->t.classes + 4 * n, 4 * n * (double)a->t.classes + 16 * n)
COST(region_sums, 8 * n / (double)a->parts * (double)a->t.area, REGION * n)
COST(region_totals, REGION * n * (double)a->parts, REGION *n)
COST(region_backward, 4 * n * (double)a->t.classes + 4 * n, 4 * n * (double)a->t.classes)
COST(group_sums, (a->dy ? 2 : 1) * T * n / (double)a->lanes * (double)a->area, 16 * n)
COST(group_totals, 16 * n * (double)a->lanes, 16 * n)
COST(group_means, (16.0 * (double)a->channels / (double)a->groups + (a->gamma ? 8 : 0)) * n, 8 * n)
COST(group_norm, T *n + 8.0 * a->channels, T *n)
COST(group_norm_backward, 2 * T * n + 4.0 * a->channels, T *n)
COST(group_gradients, (16 + 8.0 * (double)a->groups / (double)a->channels) * n * (double)a->samples,
     8 * n)
/* n: eight channels of a position of y */
#define EIGHTS_OF(to) (n * (double)a->channels / (double)((a->channels + 7) / 8) / AREA(*a, to))
COST(upsample, T *EIGHTS_OF(out) * AREA(*a, in), T *EIGHTS_OF(out) * AREA(*a, out))
COST(upsample_backward, T *EIGHTS_OF(in) * AREA(*a, out), T *EIGHTS_OF(in) * AREA(*a, in))
COST(pad, T *a->width *n, T *a->width *n)
/* The host passes states that the rule does not have as NULL. */
static double states(const struct cuda_update *a)
{
	double sum = 0;

	for (int k = 0; k < 3; k++)
		sum += a->states[k] ? 4 : 0;
	return sum;
}
COST(update, (8 + states(a)) * n + n / MU_ELEMENT_RUN, (4 + states(a)) * n)

/* The same for another type. */
#define LIKE(name, other) \
	void pretend_cost_##name(const struct cuda_##name *a, struct pretend_cost *c); \
	void pretend_cost_##name(const struct cuda_##name *a, struct pretend_cost *c) \
	{ \
		pretend_cost_##other(a, c); \
	}
LIKE(normalize_float16, normalize)
LIKE(normalize_bfloat16, normalize)
LIKE(normalize_backward_float16, normalize_backward)
LIKE(normalize_backward_bfloat16, normalize_backward)
LIKE(value_sums_float16, plane_sums)
LIKE(value_sums_bfloat16, plane_sums)
LIKE(gradient_sums_bfloat16, gradient_sums_float16)
LIKE(joined_sums_bfloat16, joined_sums_float16)

#define ROW(name) \
	void __attribute__((weak)) \
	pretend_cost_##name(const struct cuda_##name *a, struct pretend_cost *c); \
	static int row_##name(const void *a, struct pretend_cost *c) \
	{ \
		if (pretend_cost_##name) \
			pretend_cost_##name(a, c); \
		return pretend_cost_##name != NULL; \
	}
CUDA_KERNELS(ROW)
#define ENTRY(name) {#name, row_##name},
static const struct {
	const char *name;
	int (*cost)(const void *a, struct pretend_cost *c);
} rows[] = {CUDA_KERNELS(ENTRY){NULL, NULL}};

struct pretend_cost pretend_cost_of(const char *kernel, const void *args)
{
	struct pretend_cost c = {.name = kernel};

	for (int i = 0; rows[i].name; i++)
		if (strcmp(rows[i].name, kernel) == 0)
			c.known = rows[i].cost(args, &c);
	return c;
}

/* ---- counts ---- */

enum { MAX_COUNTED = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counted {
	struct pretend_cost cost;
	unsigned long n;
} counted[MAX_COUNTED];

static int is_same(const struct pretend_cost *a, const struct pretend_cost *b)
{
	return strcmp(a->name, b->name) == 0 && a->read == b->read && a->written == b->written &&
	       a->operations == b->operations && a->half == b->half && a->known == b->known;
}

void pretend_count(const struct pretend_cost *cost)
{
	struct counted *at = counted;

	if (!cost->name || !getenv("PRETEND_COSTS"))
		return;
	pthread_mutex_lock(&lock);
	while (at < counted + MAX_COUNTED && at->n > 0 && !is_same(&at->cost, cost))
		at++;
	NEED(at < counted + MAX_COUNTED);
	at->cost = *cost;
	at->n++;
	pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void write_costs(void)
{
	const char *name = getenv("PRETEND_COSTS");
	FILE *f = name && counted[0].n > 0 ? fopen(name, "w") : NULL;

	for (const struct counted *at = counted; f && at < counted + MAX_COUNTED && at->n > 0; at++)
		fprintf(f, "%s\t%lu\t%.0f\t%.0f\t%.0f\t%d\t%d\n", at->cost.name, at->n,
			at->cost.read, at->cost.written, at->cost.operations, at->cost.half,
			at->cost.known);
	if (f)
		fclose(f);
}
