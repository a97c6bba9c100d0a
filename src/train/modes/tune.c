/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --conv-algo tune: a full batch's step by each algorithm, layer by layer, on the first device; the
 * fastest of each layer are written to --conv-table. Gradients of data and of weights are measured
 * together, so engines of cuDNN's do one of them at a time, beside the best so far of the other.
 * Matrix products are not tried: their plain layouts would cost their neighbours more than they
 * save. The fixed rule is tried first, for some algorithms are only its own: a device's own
 * gradients, or convolutions that sum their output for batch-norms, where a convolution's forward
 * counts with that of the batch-norm behind it. A table that makes the whole step no faster than
 * the fixed rule is not worth another rounding: then the rule is written.
 */
#include "engine/engine.h"
#include "modes.h"

#include <string.h>

enum { STEPS = 4 }; /* of each algorithm; the first is a warm-up */

struct tuner {
	const struct mu_engine *engine;
	struct mu_device *device;
	size_t n; /* layers */
	struct mu_layer_times *times, *best;
	/* The best so far, and what is tried, of the same layers. */
	struct mu_convolution_choice *choices, *tried;
	size_t n_choices, *layers;
	float *labels, *samples; /* random; labels are of the first class */
	bool sums;               /* by the fixed rule convolutions make those of batch-norms */
};

static enum mu_status run_steps(struct tuner *t, struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	memset(t->times, 0, t->n * sizeof *t->times);
	for (int step = 0; step < STEPS; step++) {
		if (step == 1)
			mu_plan_measure(plan, t->times);
		for (size_t l = 0; l < t->n; l++)
			MU_TRY(mu_plan_forward(plan, l));
		for (size_t l = t->n; l-- > 0;)
			MU_TRY(mu_plan_backward(plan, l));
	}
out:
	return st;
}

static enum mu_status plan_choices(struct tuner *t, struct mu_convolution_choice *choices,
				   struct mu_plan **plan)
{
	const struct mu_engine *e = t->engine;

	t->device->choices = choices;
	t->device->n_choices = t->n_choices;
	return mu_plan_new_dry(plan, e->net, t->device, e->devices.of[0].batch, MU_PHASE_TRAIN,
			       NULL);
}

/* Once for all plans, which takes longer than their steps. */
static enum mu_status draw_samples(struct tuner *t)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = t->engine;
	const struct mu_random key = {.purpose = MU_RANDOM_SYNTHETIC};
	const size_t n = e->devices.of[0].batch * mu_input_sample(e->train, 0);

	if ((e->network->traits & MU_NETWORK_SEQUENCES))
		return MU_OK;
	MU_TRY(MU_ALLOC(t->samples, n, "samples"));
	mu_random_normals(&key, 0, n, t->samples);
out:
	return st;
}

/* In the memory of the run's own plan where that is enough. */
static enum mu_status measure(struct tuner *t, struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = t->engine;
	size_t batch = e->devices.of[0].batch;
	float *weights = NULL, *gradients = NULL;
	struct mu_batch *b;

	MU_TRY(mu_plan_allocate_in(plan, e->plan));
	MU_TRY(MU_ALLOC(weights, mu_plan_n(plan), "weights"));
	MU_TRY(MU_ALLOC(gradients, mu_plan_n(plan), "gradients"));
	MU_TRY(mu_plan_init_weights(plan, "uniform", 0, weights));
	MU_TRY(mu_plan_bind(plan, weights, gradients));
	b = mu_plan_batch(plan);
	b->count = batch;
	b->labels = t->labels;
	if (t->samples)
		memcpy(mu_plan_input(plan), t->samples,
		       batch * mu_input_sample(e->train, 0) * sizeof *t->samples);
	MU_TRY(run_steps(t, plan));
out:
	mu_free(weights);
	mu_free(gradients);
	return st;
}

/* Of a step: all layers at their fastest. */
static double seconds_of(const struct tuner *t)
{
	double sum = 0;

	for (size_t l = 0; l < t->n; l++)
		sum += t->times[l].forward.fastest + t->times[l].backward.fastest;
	return sum * (double)t->engine->devices.of[0].batch;
}

/* Of a layer, and of a batch-norm directly behind it. */
static struct mu_layer_time forward_of(const struct tuner *t, const struct mu_plan *plan, size_t l)
{
	struct mu_layer_time time = t->times[l].forward;
	char kind[64] = "";

	if (t->sums && l + 1 < t->n)
		mu_plan_layer_kind(plan, l + 1, kind, sizeof kind);
	if (strncmp(kind, "batchnorm", strlen("batchnorm")) == 0)
		time.fastest += t->times[l + 1].forward.fastest;
	return time;
}

static bool makes_sums(const struct mu_plan *plan)
{
	char text[64];

	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		if (strstr(mu_plan_layer_algorithm(plan, l, false, text, sizeof text), "+sums"))
			return true;
	return false;
}

/* ---- one trial ---- */

/* Phases, as bits. */
enum {
	FORWARD = 1 << MU_CONVOLUTION_FORWARD,
	DATA = 1 << MU_CONVOLUTION_DATA,
	WEIGHTS = 1 << MU_CONVOLUTION_WEIGHTS,
	ALL = FORWARD | DATA | WEIGHTS,
};

static void set(struct mu_convolution_choice *choice, enum mu_convolution_algorithm algorithm,
		int phases)
{
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		if (phases >> phase & 1)
			choice->algorithms[phase] = algorithm;
}

static bool does(const struct mu_plan *plan, size_t l, enum mu_convolution_algorithm algorithm,
		 int phases)
{
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		if (phases >> phase & 1 &&
		    mu_plan_convolution(plan, l, (enum mu_convolution_phase)phase) == algorithm)
			return true;
	return false;
}

/* What was measured of choice i is the best so far, if this algorithm did any of it. */
static void keep_best(struct tuner *t, const struct mu_plan *plan, size_t i,
		      enum mu_convolution_algorithm algorithm, int phases)
{
	const size_t l = t->layers[i];
	const struct mu_layer_time forward = forward_of(t, plan, l);
	const struct mu_layer_time backward = t->times[l].backward;
	const int back = phases & (DATA | WEIGHTS);
	struct mu_layer_times *best = &t->best[l];
	const bool first = best->forward.calls == 0;

	if (first || (does(plan, l, algorithm, phases & FORWARD) &&
		      forward.fastest < best->forward.fastest)) {
		best->forward = forward;
		set(&t->choices[i], algorithm, FORWARD);
	}
	if (first ||
	    (does(plan, l, algorithm, back) && backward.fastest < best->backward.fastest)) {
		best->backward = backward;
		set(&t->choices[i], algorithm, back);
	}
}

/* The algorithm in these phases of all layers, the best so far in the others. *some: layers use it;
 * where none does, an engine is not measured. */
static enum mu_status try_phases(struct tuner *t, enum mu_convolution_algorithm algorithm,
				 int phases, bool *some)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = NULL;

	for (size_t i = 0; i < t->n_choices; i++) {
		t->tried[i] = t->choices[i];
		set(&t->tried[i], algorithm, phases);
	}
	MU_TRY(plan_choices(t, t->tried, &plan));
	*some = false;
	for (size_t i = 0; i < t->n_choices; i++)
		*some |= does(plan, t->layers[i], algorithm, phases);
	if (algorithm != MU_CONVOLUTION_AUTO && algorithm != MU_CONVOLUTION_DIRECT && !*some)
		goto out;
	MU_TRY(measure(t, plan));
	for (size_t i = 0; i < t->n_choices; i++)
		keep_best(t, plan, i, algorithm, phases);
	mu_log_info("--conv-algo tune: a step of %zu sample%s by %s%s takes %.4f s",
		    t->engine->devices.of[0].batch, MU_S(t->engine->devices.of[0].batch),
		    mu_convolution_algorithm_name(algorithm),
		    phases == ALL       ? ""
		    : phases == WEIGHTS ? " for weights"
					: " but for weights",
		    seconds_of(t));
out:
	mu_plan_free(plan);
	return st;
}

static enum mu_status try_algorithm(struct tuner *t, enum mu_convolution_algorithm algorithm)
{
	bool some;

	return try_phases(t, algorithm, ALL, &some);
}

/* As many as any layer has. */
static enum mu_status try_engines(struct tuner *t)
{
	enum mu_status st = MU_OK;
	bool some = true, weights;

	for (int k = 0; k < MU_CONVOLUTION_ENGINES && some; k++) {
		const int engine = MU_CONVOLUTION_ENGINE + k;

		MU_TRY(try_phases(t, (enum mu_convolution_algorithm)engine, FORWARD | DATA, &some));
		MU_TRY(try_phases(t, (enum mu_convolution_algorithm)engine, WEIGHTS, &weights));
		some |= weights;
	}
out:
	return st;
}

/* ---- all of them ---- */

/* The layers for which there are several algorithms. */
static enum mu_status list_layers(struct tuner *t)
{
	enum mu_status st = MU_OK;
	const struct mu_plan *plan = t->engine->plan;

	MU_TRY(MU_ALLOC(t->choices, t->n, "table of convolutions"));
	MU_TRY(MU_ALLOC(t->tried, t->n, "table of convolutions"));
	MU_TRY(MU_ALLOC(t->layers, t->n, "table of convolutions"));
	for (size_t l = 0; l < t->n; l++) {
		struct mu_convolution_choice *choice = &t->choices[t->n_choices];

		if (mu_plan_convolution(plan, l, MU_CONVOLUTION_FORWARD) == MU_CONVOLUTION_AUTO)
			continue;
		snprintf(choice->layer, sizeof choice->layer, "%s", mu_plan_layer_name(plan, l));
		t->layers[t->n_choices++] = l;
	}
out:
	return st;
}

/* The whole step, by the rule and by the table. */
static enum mu_status compare_steps(struct tuner *t)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = NULL;
	double rule, table;

	for (size_t i = 0; i < t->n_choices; i++)
		set(&t->tried[i], MU_CONVOLUTION_AUTO, ALL);
	MU_TRY(plan_choices(t, t->tried, &plan));
	MU_TRY(measure(t, plan));
	rule = seconds_of(t);
	mu_plan_free(plan);
	plan = NULL;
	MU_TRY(plan_choices(t, t->choices, &plan));
	MU_TRY(measure(t, plan));
	table = seconds_of(t);
	mu_log_info("--conv-algo tune: by the fixed rule %.4f s, by the fastest of each layer "
		    "%.4f s%s",
		    rule, table, table < rule ? "" : ": the rule is kept");
	for (size_t i = 0; i < t->n_choices && table >= rule; i++)
		set(&t->choices[i], MU_CONVOLUTION_AUTO, ALL);
out:
	mu_plan_free(plan);
	return st;
}

enum mu_status mu_train_tune(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	struct tuner t = {
		.engine = e, .device = &e->devices.of[0].device, .n = mu_plan_layers(e->plan)};
	const struct engine_conv_net net = {
		.name = v->network_name, .shape = mu_input_shape(e->train), .path = v->conv_table};

	if (!e->ops->shares_batch)
		MU_FAIL(MU_ERR_USAGE, "--conv-algo tune measures a device that has all layers: "
				      "leave out --model-parallel, --micro-batches, "
				      "--time-block and --model-parallel-ranks");
	MU_TRY(MU_ALLOC(t.times, t.n, "times of the layers"));
	MU_TRY(MU_ALLOC(t.best, t.n, "times of the layers"));
	MU_TRY(MU_ALLOC(t.labels, e->devices.of[0].batch * mu_net_labels(e->net), "labels"));
	MU_TRY(list_layers(&t));
	if (t.n_choices == 0)
		MU_FAIL(MU_ERR_USAGE,
			"--conv-algo tune: network %s on device %s has no convolutions that there "
			"are several algorithms for",
			v->network_name, t.device->ops->name);
	t.sums = makes_sums(e->plan);
	MU_TRY(draw_samples(&t));
	MU_TRY(try_algorithm(&t, MU_CONVOLUTION_AUTO));
	MU_TRY(try_algorithm(&t, MU_CONVOLUTION_DIRECT));
	MU_TRY(try_algorithm(&t, MU_CONVOLUTION_WINOGRAD));
	MU_TRY(try_engines(&t));
	MU_TRY(compare_steps(&t));
	MU_TRY(mu_engine_conv_write(e->plan, t.device, &net, t.choices, t.n_choices));
	mu_log_info("--conv-algo tune: wrote %s: %zu convolutions; --conv-table %s trains by it",
		    v->conv_table, t.n_choices, v->conv_table);
out:
	t.device->choices = NULL;
	t.device->n_choices = 0;
	mu_free(t.times);
	mu_free(t.best);
	mu_free(t.choices);
	mu_free(t.tried);
	mu_free(t.layers);
	mu_free(t.labels);
	mu_free(t.samples);
	return st;
}
