/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/*
 * Random operations and random small networks, every device against ref. make check runs some of a
 * fixed seed; make check-long runs for MUSTER_SECONDS (default 240) with a seed from the clock. A
 * failure tells seed and case; again:  MUSTER_SEED=seed MUSTER_CASE=case  (case 0 of the seed:
 * all).
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "op_rig.h"
#include "random_draw.h"
#include "random_net.h"
#include "net/plan.h"

/* The case that runs, for the message of a crash inside a kernel. */
static char running[400];

static void tell_crash(int number)
{
	static const char text[] = "crashed: ";

	(void)number;
	if (write(2, text, sizeof text - 1) < 0 || write(2, running, strlen(running)) < 0 ||
	    write(2, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

static void fail_case(const char *what)
{
	fprintf(stderr, "%s\n", running);
	check_true(false, __FILE__, __LINE__, what);
	mu_trace_print(stderr, "campaign");
	mu_trace_clear();
}

/* Largest difference by the largest size of `should`, or by `least` where that is larger. */
static double distance(const float *is, const float *should, size_t n, double least)
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

/* ---- operations ---- */

/*
 * Float sums of up to some thousand products, in another order; Winograd's algorithm has the
 * largest error. By the largest value of an array: an element may be near zero by cancelling.
 */
static const double op_tolerance = 1e-4;

static enum mu_status run_op(struct op_rig *rig, const struct op_rig_config *config,
			     const struct op_values *values)
{
	enum mu_status st = MU_OK;

	MU_TRY(op_rig_init(rig, config));
	for (int i = 0; i < 2; i++) {
		MU_TRY(op_rig_forward(rig, values));
		if (rig->out[0].needs_grad)
			MU_TRY(op_rig_backward(rig, values));
	}
out:
	return st;
}

static void compare_op(const struct op_rig *rig, const struct op_rig *ref)
{
	char text[80];

	for (int i = 0; i < ref->n_blocks; i++) {
		const struct op_block *b = &rig->blocks[i];
		double error = distance(b->v, ref->blocks[i].v, b->n, 0.1);

		if (error <= op_tolerance)
			continue;
		snprintf(text, sizeof text, "array %d (kind %d) differs by %.1e", b->index,
			 (int)b->what, error);
		fail_case(text);
	}
}

static void test_op(struct draw *d, struct mu_device *device, struct mu_device *ref)
{
	struct random_case r;
	struct op_rig rig, truth;
	struct op_values values;
	struct op_rig_config config = {.device = device, .phase = MU_PHASE_TRAIN}, ref_config;
	size_t n = strlen(running);

	random_case_init(&r, d);
	config.c = &r.c;
	config.layouts = (enum op_layouts)draw_int(d, 0, OP_LAYOUT_N - 1);
	config.phase = draw_chance(d, 80) ? MU_PHASE_TRAIN : MU_PHASE_INFER;
	ref_config = config;
	ref_config.device = ref;
	ref_config.layouts = OP_LAYOUT_PLAIN;
	snprintf(running + n, sizeof running - n, "phase %d layouts %d %s", (int)config.phase,
		 (int)config.layouts, r.name);
	if (op_values_init(&values, &r.c) == MU_OK &&
	    run_op(&truth, &ref_config, &values) == MU_OK) {
		if (run_op(&rig, &config, &values) == MU_OK)
			compare_op(&rig, &truth);
		else
			fail_case("the operation failed");
		op_rig_release(&rig);
	} else {
		fail_case("ref failed");
	}
	op_rig_release(&truth);
	op_values_release(&values);
}

/* ---- networks ---- */

enum { CLASSES = 4, MAX_BATCH = 5 };

struct job {
	struct mu_net_config net;
	size_t batch, count;
	uint64_t seed; /* of weights and data */
};

/* A network on one device: what its last step found, in plain order. */
struct trained {
	struct mu_net *net;
	struct mu_plan *plan, *infer;
	float *weights, *gradients, *plain;
	float *probabilities[2]; /* training, inference */
	double loss[2];
	float labels[MAX_BATCH];
	uint32_t ids[MAX_BATCH];
};

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

static enum mu_status fill_weights(struct trained *t, const struct job *job)
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

static enum mu_status start(struct trained *t, const struct job *job, struct mu_device *device)
{
	enum mu_status st = MU_OK;
	size_t n;

	MU_TRY(mu_net_new_from(&t->net, &random_network, &job->net));
	MU_TRY(mu_plan_new(&t->plan, t->net, device, job->batch, MU_PHASE_TRAIN, NULL));
	MU_TRY(mu_plan_new(&t->infer, t->net, device, job->batch, MU_PHASE_INFER, t->plan));
	n = mu_plan_n(t->plan);
	MU_TRY(MU_ALLOC(t->weights, n, "weights"));
	MU_TRY(MU_ALLOC(t->gradients, n, "gradients"));
	MU_TRY(MU_ALLOC(t->plain, n, "plain gradients"));
	for (int i = 0; i < 2; i++)
		MU_TRY(MU_ALLOC(t->probabilities[i], job->batch * CLASSES, "probabilities"));
	MU_TRY(fill_weights(t, job));
	MU_TRY(mu_plan_bind(t->plan, t->weights, t->gradients));
	MU_TRY(mu_plan_bind(t->infer, t->weights, NULL));
out:
	return st;
}

static void stop(struct trained *t)
{
	mu_plan_free(t->infer);
	mu_plan_free(t->plan);
	mu_net_free(t->net);
	mu_free(t->weights);
	mu_free(t->gradients);
	mu_free(t->plain);
	mu_free(t->probabilities[0]);
	mu_free(t->probabilities[1]);
}

static enum mu_status forward(struct trained *t, const struct job *job, int phase)
{
	enum mu_status st = MU_OK;
	struct mu_plan *plan = phase ? t->infer : t->plan;
	struct mu_random key = {.seed = job->seed, .purpose = MU_RANDOM_TEST, .sample = 1};
	const float *found;
	size_t n = job->batch * mu_shape_sample(&job->net.shape);

	for (size_t i = 0; i < n; i++)
		mu_plan_input(plan)[i] = 2 * mu_random_uniform(&key, i) - 1;
	for (size_t i = 0; i < job->batch; i++) {
		t->labels[i] = (float)mu_random_below(&key, i, CLASSES);
		t->ids[i] = (uint32_t)(7 + 3 * i);
	}
	*mu_plan_batch(plan) = (struct mu_batch){
		.labels = t->labels, .count = job->count, .seed = job->seed, .ids = t->ids};
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		MU_TRY(mu_plan_forward(plan, l));
	found = mu_plan_probabilities(plan);
	if (!found)
		MU_FAIL(MU_ERR_DEVICE, "there are no probabilities");
	memcpy(t->probabilities[phase], found, job->batch * CLASSES * sizeof(float));
	t->loss[phase] = mu_plan_batch(plan)->loss;
out:
	return st;
}

/* Two steps, since a plan made once must serve many; then inference. */
static enum mu_status train(struct trained *t, const struct job *job, struct mu_device *device)
{
	enum mu_status st = MU_OK;
	size_t n;
	const struct mu_slice *slices;

	*t = (struct trained){.net = NULL};
	MU_TRY(start(t, job, device));
	for (int i = 0; i < 2; i++) {
		MU_TRY(forward(t, job, 0));
		for (size_t l = mu_plan_layers(t->plan); l-- > 0;)
			MU_TRY(mu_plan_backward(t->plan, l));
	}
	slices = mu_plan_slices(t->plan, &n);
	for (size_t k = 0, at = 0; k < n; at += slices[k++].n)
		MU_TRY(mu_plan_slice_to_plain(t->plan, k, t->gradients, t->plain + at));
	MU_TRY(forward(t, job, 1));
out:
	return st;
}

/*
 * Largest distance of the two. Gradients that are zero but for rounding (of a bias in front of
 * batch-norm) are seen by the largest gradient of the network.
 */
static double compare_nets(const struct trained *t, const struct trained *ref, size_t batch)
{
	double worst = 0, size = 1e-3;
	size_t n, total = 0;
	const struct mu_slice *slices = mu_plan_slices(ref->plan, &n);

	for (int i = 0; i < 2; i++) {
		worst = fmax(worst, fabs(t->loss[i] - ref->loss[i]) / (1 + ref->loss[i]));
		worst = fmax(worst, distance(t->probabilities[i], ref->probabilities[i],
					     batch * CLASSES, 1));
	}
	for (size_t k = 0; k < n; k++)
		total += slices[k].n;
	for (size_t i = 0; i < total; i++)
		size = fmax(size, fabs((double)ref->plain[i]));
	for (size_t k = 0, at = 0; k < n; at += slices[k++].n)
		worst = fmax(worst,
			     distance(t->plain + at, ref->plain + at, slices[k].n, 0.02 * size));
	return worst;
}

/*
 * An input of relu, or the second largest value of a pooling, may lie within rounding of where the
 * gradient jumps. So a case that differs is drawn anew with other weights and data, and has failed
 * when it differs TRIES times; a wrong kernel or arena always differs.
 */
static const double net_tolerance = 1e-3;
enum { TRIES = 4 };

/* tell: print the layers of a network that differs. */
static double try_net(const struct job *job, struct mu_device *device, struct mu_device *ref,
		      bool tell)
{
	struct trained t, truth;
	double error = INFINITY;

	if (train(&truth, job, ref) == MU_OK && train(&t, job, device) == MU_OK)
		error = compare_nets(&t, &truth, job->batch);
	else
		fail_case("the network failed");
	if (tell && error > net_tolerance && truth.plan)
		mu_plan_summary(truth.plan, stderr);
	stop(&t);
	stop(&truth);
	return error;
}

static void test_net(struct draw *d, struct mu_device *device, struct mu_device *ref)
{
	struct job job = {.net = {.network = "random", .classes = CLASSES},
			  .batch = (size_t)draw_int(d, 1, MAX_BATCH)};
	double error = INFINITY;
	char text[80];

	job.net.num_layers = (long)(d->key.seed << 32 | d->key.sample);
	job.net.shape.ndims = 4;
	job.net.shape.dims[1] = (size_t)draw_channels(d, 20);
	for (int i = 2; i < 4; i++)
		job.net.shape.dims[i] = (size_t)draw_int(d, 1, 14);
	job.count = draw_chance(d, 30) ? (size_t)draw_int(d, 0, (int)job.batch) : job.batch;
	for (int i = 0; i < TRIES && error > net_tolerance; i++) {
		job.seed = 1 + (uint64_t)i;
		error = try_net(&job, device, ref, i == TRIES - 1);
	}
	if (error <= net_tolerance)
		return;
	snprintf(text, sizeof text, "a network differs by %.1e", error);
	fail_case(text);
}

/* ---- the campaign ---- */

static long from_environment(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

/* One case in five is a network. */
static void test_case(uint64_t seed, uint64_t number, const struct mu_device_ops *ops)
{
	struct mu_device device, ref;
	struct draw d;
	int n_threads;

	draw_init(&d, seed, number);
	n_threads = draw_chance(&d, 10) ? 2 : 1;
	snprintf(running, sizeof running,
		 "MUSTER_SEED=%llu MUSTER_CASE=%llu %s: ", (unsigned long long)seed,
		 (unsigned long long)number, ops->name);
	if (!CHECK(mu_device_open(&ref, "ref", 1) == MU_OK) ||
	    !CHECK(mu_device_open(&device, ops->name, n_threads) == MU_OK))
		return;
	if (number % 5 == 0)
		test_net(&d, &device, &ref);
	else
		test_op(&d, &device, &ref);
	mu_device_close(&device);
	mu_device_close(&ref);
}

static void run(uint64_t seed, uint64_t first, uint64_t last, double seconds)
{
	double end = mu_now() + seconds;
	uint64_t number = first;
	char why[256];

	for (; number <= last && mu_now() < end && check_failures() < 20; number++)
		for (size_t i = 0; mu_device_table[i]; i++)
			if (strcmp(mu_device_table[i]->name, "ref") != 0 &&
			    mu_device_is_here(mu_device_table[i], why, sizeof why))
				test_case(seed, number, mu_device_table[i]);
	printf("seed %llu: cases %llu to %llu\n", (unsigned long long)seed,
	       (unsigned long long)first, (unsigned long long)number - 1);
}

int main(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	bool all = check_in_tier("long");
	uint64_t seed = (uint64_t)from_environment("MUSTER_SEED", all ? (long)time(NULL) : 1);
	long only = from_environment("MUSTER_CASE", 0);

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		signal(signals[i], tell_crash);
	seed &= 0x7fffffff;
	if (only > 0)
		run(seed, (uint64_t)only, (uint64_t)only, INFINITY);
	else if (all)
		run(seed, 1, 0xffffffff, (double)from_environment("MUSTER_SECONDS", 240));
	else
		run(seed, 1, check_in_tier("full") ? 200 : 50, INFINITY);
	return check_failures() ? 1 : 0;
}
