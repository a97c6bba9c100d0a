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
#include "random_op.h"
#include "random_train.h"

/* The case that runs, for the message of a crash inside a kernel. */
static char running[600];

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
		double error = random_distance(b->v, ref->blocks[i].v, b->n, 0.1);

		if (error <= op_tolerance)
			continue;
		snprintf(text, sizeof text, "array %d (kind %d) differs by %.1e", b->index,
			 (int)b->what, error);
		fail_case(text);
	}
	if (!(fabs(rig->batch.loss - ref->batch.loss) <=
	      op_tolerance * (1 + fabs(ref->batch.loss)))) {
		snprintf(text, sizeof text, "the loss is %g, not %g", rig->batch.loss,
			 ref->batch.loss);
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

enum { MAX_BATCH = 5 };

/*
 * An input of relu, or the second largest value of a pooling, may lie within rounding of where the
 * gradient jumps. So a case that differs is drawn anew with other weights and data, and has failed
 * when it differs TRIES times; a wrong kernel or arena always differs.
 */
static const double net_tolerance = 1e-3;
enum { TRIES = 4 };

/* tell: print the layers of a network that differs. */
static double try_net(const struct random_job *job, struct mu_device *device, struct mu_device *ref,
		      bool tell)
{
	struct random_job plain = *job;
	struct trained t = {.net = NULL}, truth;
	double error = INFINITY;

	plain.net.recompute = MU_RECOMPUTE_NONE;
	if (trained_run(&truth, &plain, ref, 0) == MU_OK &&
	    trained_run(&t, job, device, 0) == MU_OK)
		error = trained_distance(&t, &truth);
	else
		fail_case("the network failed");
	if (tell && error > net_tolerance && truth.plan)
		mu_plan_summary(truth.plan, stderr);
	trained_free(&t);
	trained_free(&truth);
	return error;
}

static void compare_bits(const struct trained *t, const struct trained *should, const char *what)
{
	const char *apart = trained_differs(t, should);
	char text[120];

	if (!apart)
		return;
	snprintf(text, sizeof text, "%s: not the same bits: %s", what, apart);
	fail_case(text);
	mu_plan_summary(t->plan, stderr);
}

/* Neither what is computed again nor where it is cut into parts changes a bit. */
static void test_same(struct random_job *job, struct mu_device *device, uint64_t seed_of_cuts)
{
	struct random_job plain = *job;
	struct trained t = {.net = NULL}, parts = {.net = NULL}, should;

	plain.net.recompute = MU_RECOMPUTE_NONE;
	if (trained_run(&should, &plain, device, 0) == MU_OK &&
	    trained_run(&t, job, device, 0) == MU_OK &&
	    trained_run(&parts, job, device, seed_of_cuts) == MU_OK) {
		compare_bits(&t, &should, "computed again");
		compare_bits(&parts, &t, "in parts");
	} else {
		fail_case("the network failed");
	}
	trained_free(&parts);
	trained_free(&t);
	trained_free(&should);
}

static struct random_job draw_job(struct draw *d)
{
	struct random_job job = {.net = {.network = "random", .classes = RANDOM_CLASSES},
				 .batch = (size_t)draw_int(d, 1, MAX_BATCH)};
	const bool volume = draw_chance(d, 40);

	job.net.num_layers = (long)(d->key.seed << 32 | d->key.sample);
	job.net.recompute = (enum mu_recompute)draw_int(d, 0, MU_RECOMPUTE_N - 1);
	job.net.shape.ndims = volume ? 5 : 4;
	job.net.shape.dims[1] = (size_t)draw_channels(d, volume ? 8 : 20);
	for (int i = 2; i < job.net.shape.ndims; i++)
		job.net.shape.dims[i] = (size_t)draw_int(d, 1, volume ? 6 : 14);
	job.count = draw_chance(d, 30) ? (size_t)draw_int(d, 0, (int)job.batch) : job.batch;
	job.smoothing = draw_chance(d, 20) ? 0.125f : 0;
	return job;
}

static void test_net(struct draw *d, struct mu_device *device, struct mu_device *ref)
{
	struct random_job job = draw_job(d);
	const uint64_t cuts = 1 + (uint64_t)draw_int(d, 0, 999);
	double error = INFINITY;
	char text[80];

	for (int i = 0; i < TRIES && error > net_tolerance; i++) {
		job.seed = 1 + (uint64_t)i;
		error = try_net(&job, device, ref, i == TRIES - 1);
	}
	snprintf(text, sizeof text, "a network differs by %.1e", error);
	if (error > net_tolerance)
		fail_case(text);
	else
		test_same(&job, draw_chance(d, 30) ? ref : device, cuts);
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
