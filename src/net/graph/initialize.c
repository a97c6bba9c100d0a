/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initial weights, by name suffix and initializer, as in MXNet. fan_in = dim 1 x window, fan_out =
 * dim 0 x window. Suffixes without a rule belong to users' layers, which define a value.
 *
 *	default     the network's initializer, else gaussian with standard deviation
 *		    sqrt(2 / fan_in) (He et al., Delving Deep into Rectifiers, 2015)
 *	xavier      uniform in +-sqrt(3 / ((fan_in + fan_out) / 2)) (Glorot and Bengio, 2010)
 *	msra        gaussian with sqrt(2 / (1 + 0.25^2) / ((fan_in + fan_out) / 2))
 *	orthogonal  rows (or columns) orthonormal times 1.414 (Saxe et al., 2013), by Gram and
 *		    Schmidt
 */
#include "net/plan/plan.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include <muster/base.h>

enum { MOST_PARTS = 64, PART_LEAST = 1 << 16 };

struct weight {
	struct mu_random random;
	size_t n_threads;
	size_t rows, columns; /* dim 0, all the others */
	size_t fan_in, fan_out;
	float *values;
};

/* Parts of an array, which threads fill concurrently. */
struct part {
	const struct weight *w;
	float deviation;
	size_t from, to;
	pthread_t thread;
};

static void *draw_part(void *argument)
{
	const struct part *p = argument;
	float *values = p->w->values + p->from;

	mu_random_normals(&p->w->random, p->from, p->to - p->from, values);
	for (size_t i = 0; i < p->to - p->from; i++)
		values[i] *= p->deviation;
	return NULL;
}

/* The caller fills the last part, and every part for which no thread could be created. */
static void gaussian(struct weight *w, double deviation)
{
	struct part parts[MOST_PARTS];
	size_t n = w->rows * w->columns, n_parts = n / PART_LEAST + 1;
	bool started[MOST_PARTS] = {false};

	n_parts = n_parts < w->n_threads ? n_parts : w->n_threads;
	n_parts = n_parts < MOST_PARTS ? n_parts : MOST_PARTS;
	for (size_t i = 0; i < n_parts; i++) {
		struct part *p = &parts[i];

		*p = (struct part){.w = w,
				   .deviation = (float)deviation,
				   .from = n * i / n_parts,
				   .to = n * (i + 1) / n_parts};
		started[i] = i + 1 < n_parts &&
			     pthread_create(&p->thread, NULL, draw_part, p) == 0;
		if (!started[i])
			draw_part(p);
	}
	for (size_t i = 0; i < n_parts; i++)
		if (started[i])
			pthread_join(parts[i].thread, NULL);
}

static void fill(struct weight *w, float value)
{
	for (size_t i = 0; i < w->rows * w->columns; i++)
		w->values[i] = value;
}

static void init_he(struct weight *w)
{
	gaussian(w, sqrt(2.0 / (double)w->fan_in));
}

static void uniform(struct weight *w, double bound)
{
	for (size_t i = 0; i < w->rows * w->columns; i++)
		w->values[i] = (float)bound * (2 * mu_random_uniform(&w->random, i) - 1);
}

static void init_xavier(struct weight *w)
{
	uniform(w, sqrt(3.0 / ((double)(w->fan_in + w->fan_out) / 2)));
}

static void init_msra(struct weight *w)
{
	gaussian(w, sqrt(2.0 / (1 + 0.25 * 0.25) / ((double)(w->fan_in + w->fan_out) / 2)));
}

static void init_normal(struct weight *w)
{
	gaussian(w, 0.01);
}

static void init_normal_gpt2(struct weight *w)
{
	gaussian(w, 0.02);
}

static void init_uniform(struct weight *w)
{
	uniform(w, 0.07);
}

static void init_uniform_tenth(struct weight *w)
{
	uniform(w, 0.1);
}

static void init_one(struct weight *w)
{
	fill(w, 1);
}

static void init_zero(struct weight *w)
{
	fill(w, 0);
}

/* Orthonormalise n vectors of m elements; element j of vector i is at i * outer + j * inner. */
static void orthonormalize(float *v, size_t n, size_t m, size_t outer, size_t inner)
{
	for (size_t i = 0; i < n; i++) {
		float *a = v + i * outer;
		double norm = 0;

		for (size_t k = 0; k < i; k++) {
			const float *b = v + k * outer;
			double dot = 0;

			for (size_t j = 0; j < m; j++)
				dot += (double)a[j * inner] * (double)b[j * inner];
			for (size_t j = 0; j < m; j++)
				a[j * inner] -= (float)dot * b[j * inner];
		}
		for (size_t j = 0; j < m; j++)
			norm += (double)a[j * inner] * (double)a[j * inner];
		for (size_t j = 0; j < m; j++)
			a[j * inner] /= (float)sqrt(norm);
	}
}

static void init_orthogonal(struct weight *w)
{
	gaussian(w, 1);
	if (w->rows <= w->columns)
		orthonormalize(w->values, w->rows, w->columns, w->columns, 1);
	else
		orthonormalize(w->values, w->columns, w->rows, 1, w->columns);
	for (size_t i = 0; i < w->rows * w->columns; i++)
		w->values[i] *= 1.414f;
}

static const struct {
	const char *name;
	void (*init)(struct weight *w);
} initializers[] = {
	{"default", init_he},    {"xavier", init_xavier},
	{"msra", init_msra},     {"orthogonal", init_orthogonal},
	{"normal", init_normal}, {"uniform", init_uniform},
	{"one", init_one},       {"zero", init_zero},
	{"uniform-0.1", init_uniform_tenth},
	{"normal-0.02", init_normal_gpt2},
};

static const struct net_param *param_of(const struct mu_plan *plan, size_t k)
{
	const struct plan_key *key = &plan->layout.keys[k];

	return &plan->net->layers[plan->ops[key->op].index].params[key->param];
}

static float initial_value(const struct mu_plan *plan, size_t k)
{
	const char *name = plan->layout.slices[k].name;

	if (mu_stem(name, "_gamma") || mu_stem(name, "_moving_var"))
		return 1;
	if (mu_stem(name, "_bias") || mu_stem(name, "_beta"))
		return 0;
	return param_of(plan, k)->initial;
}

static void init_slice(const struct mu_plan *plan, size_t k, void (*init)(struct weight *),
		       struct weight *w)
{
	const struct mu_shape *shape = mu_plan_slice_shape(plan, k);
	const char *name = plan->layout.slices[k].name;
	size_t window = 1;

	for (int i = 2; i < shape->ndims; i++)
		window *= shape->dims[i];
	w->random.sample = k;
	w->rows = shape->dims[0];
	w->columns = plan->layout.slices[k].n / w->rows;
	w->fan_in = shape->ndims > 1 ? shape->dims[1] * window : 1;
	w->fan_out = shape->dims[0] * window;
	if (!mu_stem(name, "_weight")) {
		fill(w, initial_value(plan, k));
		return;
	}
	init(w);
	for (size_t i = 0; i < plan->layout.slices[k].n && param_of(plan, k)->scale > 0; i++)
		w->values[i] *= param_of(plan, k)->scale;
}

enum mu_status mu_plan_init_weights(const struct mu_plan *plan, const char *initializer,
				    uint64_t seed, float *flat)
{
	enum mu_status st = MU_OK;
	struct weight w = {.random = {.seed = seed, .purpose = MU_RANDOM_INIT},
			   .n_threads = (size_t)plan->device->n_threads};
	void (*init)(struct weight *) = NULL;
	size_t largest = 0;

	if (strcmp(initializer, "default") == 0 && plan->net->initializer)
		initializer = plan->net->initializer;
	for (size_t i = 0; i < sizeof initializers / sizeof *initializers; i++)
		if (strcmp(initializers[i].name, initializer) == 0)
			init = initializers[i].init;
	if (!init)
		MU_FAIL(MU_ERR_USAGE,
			"initializer %s: unknown; known are default, xavier, msra, orthogonal, "
			"normal, uniform, one, zero, uniform-0.1, normal-0.02",
			initializer);
	for (size_t k = 0; k < plan->layout.n_slices; k++)
		if (plan->layout.slices[k].n > largest)
			largest = plan->layout.slices[k].n;
	MU_TRY(MU_ALLOC(w.values, largest, "initial weights"));
	for (size_t k = 0; k < plan->layout.n_slices; k++) {
		init_slice(plan, k, init, &w);
		MU_TRY(mu_plan_slice_from_plain(plan, k, w.values, flat));
	}
out:
	mu_free(w.values);
	return st;
}
