/* SPDX-License-Identifier: Apache-2.0 */
/* Training of random networks. */
#include "random_train.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>
#include <muster/metrics.h>

#include "device/joint.h"

/* ---- weights and data ---- */

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

static float weight_value(const struct mu_random *key, const char *name, size_t fan_in, size_t i)
{
	float u = 2 * mu_random_uniform(key, i) - 1;

	if (ends_in(name, "_weight"))
		return u * sqrtf(6 / (float)fan_in);
	return ends_in(name, "_gamma") || ends_in(name, "_var") ? 1 + u / 4 : u / 4;
}

static enum mu_status fill_weights(struct trained *t, const struct random_job *job)
{
	enum mu_status st = MU_OK;
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(t->plan, &n);

	for (size_t k = 0; k < n; k++) {
		struct mu_random key = {
			.seed = job->seed, .purpose = MU_RANDOM_TEST, .sample = 100 + k};
		size_t fan_in = slices[k].n / mu_plan_slice_shape(t->plan, k)->dims[0];

		for (size_t i = 0; i < slices[k].n; i++)
			t->plain[i] = weight_value(&key, slices[k].name, fan_in, i);
		MU_TRY(mu_plan_slice_from_plain(t->plan, k, t->plain, t->weights));
	}
out:
	return st;
}

/* Target i of a sample: of a class its number, of a value one from 0 to 1. */
static float target_of(const struct mu_loss *loss, const struct mu_random *key, size_t sample,
		       size_t i, size_t n)
{
	const uint64_t at = sample * n + i;
	bool of_classes = loss->of_classes;
	size_t k = 0;

	if (loss->joint) {
		while (mu_joint_part(loss->joint, k + 1).target <= i)
			k++;
		of_classes = loss->joint->heads[k].of_classes;
	}
	return of_classes ? (float)mu_random_below(key, at, RANDOM_CLASSES)
			  : mu_random_uniform(key, at);
}

static void fill_targets(struct trained *t, const struct random_job *job)
{
	const struct mu_random key = {.seed = job->seed, .purpose = MU_RANDOM_TEST, .sample = 2};

	for (size_t s = 0; s < job->batch; s++) {
		for (size_t i = 0; i < t->n_targets; i++)
			t->labels[s * t->n_targets + i] =
				target_of(mu_net_loss(t->net), &key, s, i, t->n_targets);
		t->ids[s] = (uint32_t)(7 + 3 * s);
	}
}

/* Samples that do not count have no number, so that dropout draws anything for them, which the
 * statistics of a batch-norm would show. */
static size_t count_of(const struct trained *t, const struct random_job *job)
{
	for (size_t l = 0; l < mu_plan_layers(t->plan); l++)
		if (strncmp(mu_plan_layer_name(t->plan, l), "dropout", 7) == 0)
			return job->batch;
	return job->count;
}

static void fill_batch(struct mu_plan *plan, const struct trained *t, const struct random_job *job)
{
	const struct mu_random key = {.seed = job->seed, .purpose = MU_RANDOM_TEST, .sample = 1};
	const size_t n = job->batch * mu_shape_sample(&job->net.shape);
	float *input = mu_plan_input(plan);

	for (size_t i = 0; input && i < n; i++)
		input[i] = 2 * mu_random_uniform(&key, i) - 1;
	*mu_plan_batch(plan) = (struct mu_batch){
		.labels = t->labels,
		.count = count_of(t, job),
		.seed = job->seed,
		.ids = t->ids,
		.label_smoothing = mu_net_loss(t->net)->smooths ? job->smoothing : 0};
}

/* ---- plans ---- */

/* Cuts are between any two layers; fewer parts where there are few layers. */
static enum mu_status make_parts(struct trained *t, const struct random_job *job,
				 struct mu_device *device, uint64_t seed)
{
	enum mu_status st = MU_OK;
	const struct mu_random key = {.seed = seed, .purpose = MU_RANDOM_TEST};
	const size_t layers = mu_plan_layers(t->plan);
	size_t first = 0;

	for (size_t p = 0; p < RANDOM_PARTS && first < layers; p++) {
		const size_t left = layers - first, n = 1 + mu_random_below(&key, p, left);
		const struct mu_plan_part part = {
			.net = t->net,
			.device = device,
			.batch = job->batch,
			.phase = MU_PHASE_TRAIN,
			.whole = t->plan,
			.first = first,
			.n = p + 1 < RANDOM_PARTS ? n : left,
			.before = t->parts,
			.n_before = p};

		MU_TRY(mu_plan_new_part(&t->parts[p], &part));
		t->n_parts++;
		MU_TRY(mu_plan_allocate(t->parts[p]));
		MU_TRY(mu_plan_bind(t->parts[p], t->weights, t->gradients));
		first += part.n;
	}
out:
	return st;
}

static enum mu_status start(struct trained *t, const struct random_job *job,
			    struct mu_device *device)
{
	enum mu_status st = MU_OK;
	size_t n;

	MU_TRY(mu_net_new_from(&t->net, &random_network, &job->net));
	MU_TRY(mu_plan_new(&t->plan, t->net, device, job->batch, MU_PHASE_TRAIN, NULL));
	MU_TRY(mu_plan_new(&t->infer, t->net, device, job->batch, MU_PHASE_INFER, t->plan));
	n = mu_plan_n(t->plan);
	t->n_outputs = mu_shape_n(mu_plan_probabilities_shape(t->plan));
	t->n_targets = mu_plan_targets(t->plan);
	MU_TRY(MU_ALLOC(t->weights, n, "weights"));
	MU_TRY(MU_ALLOC(t->gradients, n, "gradients"));
	MU_TRY(MU_ALLOC(t->plain, n, "plain gradients"));
	MU_TRY(MU_ALLOC(t->labels, job->batch * t->n_targets, "targets"));
	MU_TRY(MU_ALLOC(t->ids, job->batch, "numbers of samples"));
	for (int i = 0; i < 2; i++)
		MU_TRY(MU_ALLOC(t->outputs[i], t->n_outputs, "outputs"));
	fill_targets(t, job);
	MU_TRY(fill_weights(t, job));
	MU_TRY(mu_plan_bind(t->plan, t->weights, t->gradients));
	MU_TRY(mu_plan_bind(t->infer, t->weights, NULL));
out:
	return st;
}

void trained_free(struct trained *t)
{
	for (size_t p = 0; p < RANDOM_PARTS; p++)
		mu_plan_free(t->parts[p]);
	mu_plan_free(t->infer);
	mu_plan_free(t->plan);
	mu_net_free(t->net);
	mu_free(t->weights);
	mu_free(t->gradients);
	mu_free(t->plain);
	mu_free(t->labels);
	mu_free(t->ids);
	mu_free(t->outputs[0]);
	mu_free(t->outputs[1]);
}

/* ---- steps ---- */

static enum mu_status forward(struct trained *t, const struct random_job *job,
			      struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	fill_batch(plan, t, job);
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		MU_TRY(mu_plan_forward(plan, l));
out:
	return st;
}

static enum mu_status forward_parts(struct trained *t, const struct random_job *job)
{
	enum mu_status st = MU_OK;

	for (size_t p = 0; p < t->n_parts; p++) {
		for (size_t q = 0; q < p; q++)
			MU_TRY(mu_plan_receive(t->parts[p], t->parts[q]));
		MU_TRY(mu_plan_finish(t->parts[p]));
		MU_TRY(forward(t, job, t->parts[p]));
		MU_TRY(mu_plan_finish(t->parts[p]));
	}
out:
	return st;
}

static enum mu_status backward(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	for (size_t l = mu_plan_layers(plan); l-- > 0;)
		MU_TRY(mu_plan_backward(plan, l));
out:
	return st;
}

static enum mu_status backward_parts(struct trained *t)
{
	enum mu_status st = MU_OK;

	for (size_t p = t->n_parts; p-- > 0;) {
		MU_TRY(backward(t->parts[p]));
		for (size_t q = 0; q < p; q++)
			MU_TRY(mu_plan_return(t->parts[p], t->parts[q]));
		MU_TRY(mu_plan_finish(t->parts[p]));
	}
out:
	return st;
}

static enum mu_status keep_results(struct trained *t, int phase, struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	const float *found = mu_plan_probabilities(plan);

	if (!found)
		MU_FAIL(MU_ERR_DEVICE, "there is no output");
	memcpy(t->outputs[phase], found, t->n_outputs * sizeof *found);
	t->loss[phase] = mu_plan_batch(plan)->loss;
out:
	return st;
}

/* Two steps, since a plan made once must serve many; then inference. */
enum mu_status trained_run(struct trained *t, const struct random_job *job,
			   struct mu_device *device, uint64_t seed_of_cuts)
{
	enum mu_status st = MU_OK;
	size_t n;
	const struct mu_slice *slices;

	*t = (struct trained){.net = NULL};
	MU_TRY(start(t, job, device));
	if (seed_of_cuts)
		MU_TRY(make_parts(t, job, device, seed_of_cuts));
	for (int i = 0; i < 2; i++) {
		MU_TRY(t->n_parts ? forward_parts(t, job) : forward(t, job, t->plan));
		MU_TRY(keep_results(t, 0, t->n_parts ? t->parts[t->n_parts - 1] : t->plan));
		MU_TRY(t->n_parts ? backward_parts(t) : backward(t->plan));
	}
	slices = mu_plan_slices(t->plan, &n);
	for (size_t k = 0; k < n; t->n_plain += slices[k++].n)
		MU_TRY(mu_plan_slice_to_plain(t->plan, k, t->gradients, t->plain + t->n_plain));
	MU_TRY(forward(t, job, t->infer));
	MU_TRY(keep_results(t, 1, t->infer));
out:
	return st;
}

/* ---- comparisons ---- */

double random_distance(const float *is, const float *should, size_t n, double least)
{
	double size = least, worst = 0;

	for (size_t i = 0; i < n; i++) {
		double error = fabs((double)is[i] - (double)should[i]);

		if (!isfinite(error))
			return INFINITY;
		worst = fmax(worst, error);
		size = fmax(size, fabs((double)should[i]));
	}
	return worst / size;
}

/*
 * Gradients that are zero but for rounding (of a bias in front of batch-norm) are seen by the
 * largest gradient of the network.
 */
double trained_distance(const struct trained *t, const struct trained *ref)
{
	double worst = 0, size = 1e-3;
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(ref->plan, &n);

	for (int i = 0; i < 2; i++) {
		worst = fmax(worst, fabs(t->loss[i] - ref->loss[i]) / (1 + fabs(ref->loss[i])));
		worst = fmax(worst,
			     random_distance(t->outputs[i], ref->outputs[i], ref->n_outputs, 1));
	}
	for (size_t i = 0; i < ref->n_plain; i++)
		size = fmax(size, fabs((double)ref->plain[i]));
	for (size_t k = 0, at = 0; k < n; at += slices[k++].n)
		worst = fmax(worst, random_distance(t->plain + at, ref->plain + at, slices[k].n,
						    0.02 * size));
	return worst;
}

const char *trained_differs(const struct trained *a, const struct trained *b)
{
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(b->plan, &n);

	if (a->n_plain != b->n_plain || a->n_outputs != b->n_outputs)
		return "sizes";
	if (memcmp(a->outputs[0], b->outputs[0], a->n_outputs * sizeof(float)) != 0)
		return "outputs";
	if (memcmp(&a->loss[0], &b->loss[0], sizeof(double)) != 0)
		return "the loss";
	for (size_t k = n, at = a->n_plain; k-- > 0;) {
		at -= slices[k].n;
		if (memcmp(a->plain + at, b->plain + at, slices[k].n * sizeof(float)) != 0)
			return slices[k].name;
	}
	return NULL;
}
