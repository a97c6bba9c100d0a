/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --conv-algo tune: a full batch's step by each algorithm, layer by layer, on the first device; the
 * fastest of each layer are written to --conv-table. Gradients of data and of weights are measured
 * together. Matrix products are not tried: their plain layouts would cost their neighbours
 * more than they save. Where convolutions sum their output for batch-norms, by the fixed rule only,
 * the rule is tried, too, and a convolution's forward counts with that of the batch-norm behind it.
 * A table that makes the whole step no faster than the fixed rule is not worth another rounding:
 * then the rule is written.
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
	struct mu_convolution_choice *choices;
	size_t n_choices;
	float *labels;
	bool sums; /* by the fixed rule convolutions make those of batch-norms */
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

/* Random samples of the first class, in the memory of the run's own plan where that is enough. */
static enum mu_status measure(struct tuner *t, struct mu_plan **plan)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = t->engine;
	const struct mu_random key = {.purpose = MU_RANDOM_SYNTHETIC};
	size_t batch = e->devices.of[0].batch;
	float *weights = NULL, *gradients = NULL;
	struct mu_batch *b;

	MU_TRY(mu_plan_new_dry(plan, e->net, t->device, batch, MU_PHASE_TRAIN, NULL));
	MU_TRY(mu_plan_allocate_in(*plan, e->plan));
	MU_TRY(MU_ALLOC(weights, mu_plan_n(*plan), "weights"));
	MU_TRY(MU_ALLOC(gradients, mu_plan_n(*plan), "gradients"));
	MU_TRY(mu_plan_init_weights(*plan, "default", 0, weights));
	MU_TRY(mu_plan_bind(*plan, weights, gradients));
	b = mu_plan_batch(*plan);
	b->count = batch;
	b->labels = t->labels;
	if (!e->network->reads_sequences)
		mu_random_normals(&key, 0, batch * mu_input_sample(e->train, 0),
				  mu_plan_input(*plan));
	MU_TRY(run_steps(t, *plan));
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

/* What was measured of layer l is the best so far, if this algorithm did any of it. */
static void keep_best(struct tuner *t, const struct mu_plan *plan, size_t l,
		      struct mu_convolution_choice *choice)
{
	enum mu_convolution_algorithm algorithm = t->device->algorithm;
	const char *name = mu_convolution_algorithm_name(algorithm);
	bool first = t->best[l].forward.calls == 0;
	const struct mu_layer_time forward = forward_of(t, plan, l);
	char text[64];

	mu_plan_layer_algorithm(plan, l, false, text, sizeof text);
	if (first || (strstr(text, name) && forward.fastest < t->best[l].forward.fastest)) {
		t->best[l].forward = forward;
		choice->algorithms[MU_CONVOLUTION_FORWARD] = algorithm;
	}
	mu_plan_layer_algorithm(plan, l, true, text, sizeof text);
	if (first ||
	    (strstr(text, name) && t->times[l].backward.fastest < t->best[l].backward.fastest)) {
		t->best[l].backward = t->times[l].backward;
		choice->algorithms[MU_CONVOLUTION_DATA] = algorithm;
		choice->algorithms[MU_CONVOLUTION_WEIGHTS] = algorithm;
	}
}

static enum mu_status try_algorithm(struct tuner *t, enum mu_convolution_algorithm algorithm)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = NULL;
	char text[64];

	t->device->algorithm = algorithm;
	MU_TRY(measure(t, &plan));
	t->n_choices = 0;
	for (size_t l = 0; l < t->n; l++) {
		struct mu_convolution_choice *choice = &t->choices[t->n_choices];

		if (!*mu_plan_layer_algorithm(plan, l, false, text, sizeof text))
			continue;
		snprintf(choice->layer, sizeof choice->layer, "%s", mu_plan_layer_name(plan, l));
		keep_best(t, plan, l, choice);
		t->n_choices++;
	}
	mu_log_info("--conv-algo tune: a step of %zu samples by %s takes %.4f s",
		    t->engine->devices.of[0].batch, mu_convolution_algorithm_name(algorithm),
		    seconds_of(t));
out:
	mu_plan_free(plan);
	return st;
}

/* The whole step, by the rule and by the table. */
static enum mu_status compare_steps(struct tuner *t)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = NULL;
	double rule, table;

	t->device->algorithm = MU_CONVOLUTION_AUTO;
	MU_TRY(measure(t, &plan));
	rule = seconds_of(t);
	mu_plan_free(plan);
	plan = NULL;
	t->device->choices = t->choices;
	t->device->n_choices = t->n_choices;
	MU_TRY(measure(t, &plan));
	table = seconds_of(t);
	mu_log_info("--conv-algo tune: by the fixed rule %.4f s, by the fastest of each layer "
		    "%.4f s%s",
		    rule, table, table < rule ? "" : ": the rule is kept");
	for (size_t i = 0; i < t->n_choices && table >= rule; i++)
		for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
			t->choices[i].algorithms[phase] = MU_CONVOLUTION_AUTO;
out:
	t->device->choices = NULL;
	t->device->n_choices = 0;
	mu_plan_free(plan);
	return st;
}

enum mu_status mu_train_tune(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	struct tuner t = {.engine = e,
			  .device = &e->devices.of[0].device,
			  .n = mu_plan_layers(e->plan)};
	const struct engine_conv_net net = {
		.name = v->network_name, .shape = e->train->shape, .path = v->conv_table};

	if (!e->ops->shares_batch)
		MU_FAIL(MU_ERR_USAGE, "--conv-algo tune measures a device that has all layers: "
				      "leave out --model-parallel, --micro-batches, "
				      "--time-block and --model-parallel-ranks");
	MU_TRY(MU_ALLOC(t.times, t.n, "times of the layers"));
	MU_TRY(MU_ALLOC(t.best, t.n, "times of the layers"));
	MU_TRY(MU_ALLOC(t.choices, t.n, "table of convolutions"));
	MU_TRY(MU_ALLOC(t.labels, e->devices.of[0].batch * mu_net_labels(e->net),
			"labels"));
	t.sums = makes_sums(e->plan);
	if (t.sums)
		MU_TRY(try_algorithm(&t, MU_CONVOLUTION_AUTO));
	MU_TRY(try_algorithm(&t, MU_CONVOLUTION_DIRECT));
	MU_TRY(try_algorithm(&t, MU_CONVOLUTION_WINOGRAD));
	if (t.n_choices == 0)
		MU_FAIL(MU_ERR_USAGE,
			"--conv-algo tune: network %s on device %s has no convolutions that there "
			"are several algorithms for",
			v->network_name, t.device->ops->name);
	MU_TRY(compare_steps(&t));
	MU_TRY(mu_engine_conv_write(e->plan, t.device, &net, t.choices, t.n_choices));
	mu_log_info("--conv-algo tune: wrote %s: %zu convolutions; --conv-table %s trains by it",
		    v->conv_table, t.n_choices, v->conv_table);
out:
	mu_free(t.times);
	mu_free(t.best);
	mu_free(t.choices);
	mu_free(t.labels);
	return st;
}
