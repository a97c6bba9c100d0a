/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * The algorithms of convolutions: every convolution of the table of operations on every device
 * against ref, under each algorithm. Winograd's rounding has a tolerance of its own; what it does
 * not do keeps the case's.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/check.h"
#include "op_rig.h"
#include "device/op.h"

/*
 * A value v that Winograd made may differ from ref's w by this much times (1 + |w|). F(4x4, 3x3)
 * multiplies by up to 8 on the way to the result and back, so it loses some bits more than sums of
 * products do. Measured: at most 4.4e-5.
 */
static const double winograd_tolerance = 1e-4;

/* A case that all algorithms must do, so that the comparison is one. It has too few tiles for our
 * own Winograd under auto; this one has enough. */
static const char *const winograd_case = "conv 64 to 64";
static const char *const auto_case = "conv 16 to 48, batch 5";
/* Of our own products of matrices: several images at a time, and not all the same number. */
static const char *const columns_case = "conv 20 to 50, batch 21";

static bool worked(enum mu_status st, const char *name)
{
	if (st == MU_OK)
		return true;
	mu_trace_print(stderr, name);
	mu_trace_clear();
	check_true(false, __FILE__, __LINE__, name);
	return false;
}

static double error_of(const struct op_block *is, const struct op_block *should)
{
	double worst = 0;

	for (size_t k = 0; k < is->n; k++) {
		double w = (double)should->v[k];
		double error = fabs((double)is->v[k] - w) / (1 + fabs(w));

		if (!(error <= worst))
			worst = isnan(error) ? INFINITY : error;
	}
	return worst;
}

static enum mu_convolution_phase phase_of(const struct op_block *b)
{
	if (b->what == OP_OUTPUT)
		return MU_CONVOLUTION_FORWARD;
	return b->what == OP_INPUT_GRAD ? MU_CONVOLUTION_DATA : MU_CONVOLUTION_WEIGHTS;
}

static const char *const phase_names[MU_CONVOLUTION_PHASES] = {"forward", "data", "weights"};

static void compare(const struct op_rig *rig, const struct op_rig *ref)
{
	double usual = rig->c->tolerance > 0 ? rig->c->tolerance : OP_TOLERANCE;
	char text[200];

	if (!CHECK(rig->n_blocks == ref->n_blocks))
		return;
	for (int i = 0; i < rig->n_blocks; i++) {
		enum mu_convolution_phase phase = phase_of(&rig->blocks[i]);
		bool winograd = rig->op.algorithms[phase] == MU_CONVOLUTION_WINOGRAD;
		double error = error_of(&rig->blocks[i], &ref->blocks[i]);
		double tolerance = winograd ? winograd_tolerance : usual;

		snprintf(
			text, sizeof text,
			"%s on %s, %d threads: %s by %s: error %.1e, %.0e is allowed", rig->c->name,
			rig->device->ops->name, rig->device->n_threads, phase_names[phase],
			mu_convolution_algorithm_name(rig->op.algorithms[phase]), error, tolerance);
		if (winograd)
			printf("%s\n", text);
		if (error > tolerance)
			check_true(false, __FILE__, __LINE__, text);
	}
}

static void check_choice(const struct op_rig *rig)
{
	enum mu_convolution_algorithm asked = rig->device->algorithm;
	bool ref = strcmp(rig->device->ops->name, "ref") == 0;
	bool gpu = strcmp(rig->device->ops->name, "gpu") == 0; /* has direct ones alone */

	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++) {
		enum mu_convolution_algorithm used = rig->op.algorithms[phase];

		if (ref)
			CHECK(used == MU_CONVOLUTION_AUTO);
		if (asked == MU_CONVOLUTION_DIRECT || gpu)
			CHECK(used != MU_CONVOLUTION_WINOGRAD);
	}
}

static bool describes(const struct mu_device *device, const char *words)
{
	char text[128];

	device->ops->describe(device, text, sizeof text);
	return strstr(text, words);
}

/* Of oneDNN or of our own. */
static bool does_winograd(const struct mu_device *device)
{
	return describes(device, "avx512") || describes(device, "avx2");
}

/* oneDNN 2 has it for CPUs with AVX-512, oneDNN 3 for no x86. */
static bool has_own_winograd(const struct mu_device *device)
{
	return does_winograd(device) &&
	       !(describes(device, "oneDNN 2.") && describes(device, "avx512"));
}

static void check_asked(const struct op_rig *rig)
{
	enum mu_convolution_algorithm asked = rig->device->algorithm;
	bool does = asked == MU_CONVOLUTION_WINOGRAD ? does_winograd(rig->device)
						     : asked == MU_CONVOLUTION_GEMM;

	if (!does || strcmp(rig->device->ops->name, "cpu") != 0 ||
	    strcmp(rig->c->name, winograd_case) != 0)
		return;
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		CHECK(rig->op.algorithms[phase] == asked);
}

/* Of our own products of matrices: gradients alone. */
static void check_columns(const struct op_rig *rig)
{
	enum mu_convolution_algorithm asked = rig->device->algorithm;
	bool few = strcmp(rig->c->name, "conv rgb to 10") == 0;

	if (strcmp(rig->device->ops->name, "cpu") != 0 || !does_winograd(rig->device) ||
	    (!few && strcmp(rig->c->name, columns_case) != 0))
		return;
	for (int phase = MU_CONVOLUTION_DATA; phase <= MU_CONVOLUTION_WEIGHTS; phase++)
		if (asked == MU_CONVOLUTION_GEMM || (asked == MU_CONVOLUTION_AUTO && !few))
			CHECK(rig->op.algorithms[phase] == MU_CONVOLUTION_GEMM);
}

/* The fixed rule of our own Winograd. */
static void check_rule(const struct op_rig *rig)
{
	bool few = strcmp(rig->c->name, winograd_case) == 0;

	if (rig->device->algorithm != MU_CONVOLUTION_AUTO || !has_own_winograd(rig->device) ||
	    (!few && strcmp(rig->c->name, auto_case) != 0))
		return;
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		CHECK((rig->op.algorithms[phase] == MU_CONVOLUTION_WINOGRAD) != few);
}

/* What is asked for by name goes before what is asked for of all. */
static void test_choices(void)
{
	const struct mu_convolution_choice choices[] = {
		{"one", {MU_CONVOLUTION_GEMM, MU_CONVOLUTION_DIRECT, MU_CONVOLUTION_AUTO}},
		{"two", {MU_CONVOLUTION_WINOGRAD, MU_CONVOLUTION_AUTO, MU_CONVOLUTION_GEMM}},
	};
	const struct mu_device device = {
		.algorithm = MU_CONVOLUTION_DIRECT, .choices = choices, .n_choices = 2};
	enum mu_convolution_algorithm asked[MU_CONVOLUTION_PHASES];

	for (int i = 0; i < 2; i++) {
		mu_convolution_requested(&device, choices[i].layer, asked);
		CHECK(memcmp(asked, choices[i].algorithms, sizeof asked) == 0);
	}
	mu_convolution_requested(&device, "three", asked);
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		CHECK(asked[phase] == MU_CONVOLUTION_DIRECT);
}

static void test_case(const struct op_case *c, struct mu_device *device, struct mu_device *ref,
		      enum op_layouts layouts)
{
	struct op_rig_config config = {
		.c = c, .device = device, .phase = MU_PHASE_TRAIN, .layouts = layouts};
	struct op_rig_config ref_config = {.c = c, .device = ref, .phase = MU_PHASE_TRAIN};
	struct op_values values;
	struct op_rig rig, truth;

	if (!worked(op_values_init(&values, c), c->name))
		return;
	if (worked(op_rig_init(&rig, &config), c->name) &&
	    worked(op_rig_init(&truth, &ref_config), c->name)) {
		check_choice(&rig);
		check_asked(&rig);
		check_rule(&rig);
		check_columns(&rig);
		if (worked(op_rig_forward(&rig, &values), c->name) &&
		    worked(op_rig_backward(&rig, &values), c->name) &&
		    worked(op_rig_forward(&truth, &values), c->name) &&
		    worked(op_rig_backward(&truth, &values), c->name))
			compare(&rig, &truth);
		op_rig_release(&truth);
	}
	op_rig_release(&rig);
	op_values_release(&values);
}

static void test_device(const char *name, int n_threads, struct mu_device *ref)
{
	struct mu_device device;

	if (!worked(mu_device_open(&device, name, n_threads), name))
		return;
	CHECK(device.algorithm == MU_CONVOLUTION_AUTO);
	for (int a = MU_CONVOLUTION_AUTO; a < MU_CONVOLUTION_ALGORITHMS; a++) {
		device.algorithm = (enum mu_convolution_algorithm)a;
		for (size_t i = 0; i < op_n_cases; i++) {
			if (op_cases[i].kind != MU_OP_CONVOLUTION || op_cases[i].ref_only)
				continue;
			test_case(&op_cases[i], &device, ref, OP_LAYOUT_PLAIN);
			if (a == MU_CONVOLUTION_WINOGRAD &&
			    op_layouts_differ(&op_cases[i], OP_LAYOUT_ALL, &device))
				test_case(&op_cases[i], &device, ref, OP_LAYOUT_ALL);
		}
	}
	mu_device_close(&device);
}

/* ---- bits of our own kernels ---- */

/* Forward, of volumes, and where channels are sixteens or those of images, gemm is oneDNN's, as is
 * tanh, which rounds by the place in a thread's share. */
static bool is_own(const struct op_rig *rig, enum mu_convolution_phase phase)
{
	const struct mu_convolution *a = rig->op.attr;
	const struct mu_activation *activation = rig->op.fusion.activation;
	size_t channels = rig->op.inputs[0]->shape.dims[1];
	bool sixteens = a->filters % 16 == 0 && (channels % 16 == 0 || channels <= 3);

	if (rig->op.algorithms[phase] == MU_CONVOLUTION_GEMM)
		return phase != MU_CONVOLUTION_FORWARD && rig->op.inputs[0]->shape.ndims == 4 &&
		       !sixteens && a->groups <= 1 &&
		       a->dilate[0] <= 1 && a->dilate[1] <= 1 &&
		       !(activation && activation->kind == MU_ACTIVATION_TANH);
	return rig->op.algorithms[phase] == MU_CONVOLUTION_WINOGRAD &&
	       has_own_winograd(rig->device);
}

static bool run(struct op_rig *rig, const struct op_values *values)
{
	return worked(op_rig_forward(rig, values), rig->c->name) &&
	       worked(op_rig_backward(rig, values), rig->c->name);
}

/* A device's number of threads is its process's as long as it is the last one opened. */
static bool run_on(struct mu_device *device, int n_threads, const struct op_case *c,
		   const struct op_values *values, struct op_rig *rig)
{
	enum mu_convolution_algorithm algorithm = device->algorithm;
	struct op_rig_config config = {.c = c, .device = device, .phase = MU_PHASE_TRAIN};

	if (!worked(mu_device_open(device, "cpu", n_threads), "cpu"))
		return false;
	device->algorithm = algorithm;
	return worked(op_rig_init(rig, &config), c->name) && run(rig, values);
}

/* Bits do not depend on the number of threads. */
static void compare_bits(const struct op_case *c, enum mu_convolution_algorithm algorithm,
			 int n_threads)
{
	struct mu_device one = {.algorithm = algorithm}, many = one;
	struct op_values values;
	struct op_rig a, b;

	if (!worked(op_values_init(&values, c), c->name))
		return;
	if (run_on(&one, 1, c, &values, &a) && run_on(&many, n_threads, c, &values, &b)) {
		for (int i = 0; i < a.n_blocks; i++)
			if (is_own(&a, phase_of(&a.blocks[i])) &&
			    memcmp(a.blocks[i].v, b.blocks[i].v, a.blocks[i].n * sizeof(float)) !=
				    0)
				check_true(false, __FILE__, __LINE__, c->name);
		op_rig_release(&b);
		op_rig_release(&a);
		mu_device_close(&many);
		mu_device_close(&one);
	}
	op_values_release(&values);
}

static void test_threads(void)
{
	static const enum mu_convolution_algorithm algorithms[] = {MU_CONVOLUTION_WINOGRAD,
								   MU_CONVOLUTION_GEMM};
	struct mu_device cpu;
	bool has_own;

	if (!worked(mu_device_open(&cpu, "cpu", 1), "cpu"))
		return;
	has_own = does_winograd(&cpu);
	mu_device_close(&cpu);
	for (size_t i = 0; has_own && i < op_n_cases; i++)
		for (int n = 2; n <= 3; n++)
			for (int a = 0; a < 2; a++)
				if (op_cases[i].kind == MU_OP_CONVOLUTION && !op_cases[i].ref_only)
					compare_bits(&op_cases[i], algorithms[a], n);
}

static void test_names(void)
{
	static const char *const unknown[] = {"fft", "engine", "engine40", "engine01"};
	enum mu_convolution_algorithm found;

	for (int a = MU_CONVOLUTION_AUTO; a < MU_CONVOLUTION_ALGORITHMS; a++) {
		const char *name = mu_convolution_algorithm_name((enum mu_convolution_algorithm)a);

		CHECK(mu_convolution_algorithm_find(&found, name) == MU_OK && (int)found == a);
	}
	for (int k = 0; k < MU_CONVOLUTION_ENGINES; k++) {
		char name[24];

		snprintf(name, sizeof name, "engine%d", k);
		CHECK(mu_convolution_algorithm_find(&found, name) == MU_OK &&
		      (int)found == MU_CONVOLUTION_ENGINE + k &&
		      strcmp(mu_convolution_algorithm_name(found), name) == 0);
	}
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		CHECK(mu_convolution_algorithm_find(&found, unknown[i]) == MU_ERR_USAGE);
		CHECK_HAS(mu_trace_message(), "auto, direct, winograd, gemm, engine0 to engine39");
		mu_trace_clear();
	}
}

static int test_all(void)
{
	struct mu_device ref;

	if (!worked(mu_device_open(&ref, "ref", 1), "ref"))
		return 1;
	for (size_t d = 0; mu_device_table[d]; d++)
		for (int n_threads = 1; n_threads <= 2 && CHECK_IS_HERE(mu_device_table[d]);
		     n_threads++)
			test_device(mu_device_table[d]->name, n_threads, &ref);
	mu_device_close(&ref);
	if (strcmp(mu_device_table[0]->name, "cpu") == 0)
		test_threads();
	return check_failures() ? 1 : 0;
}

/* The same with the kernels of CPUs without AVX-512, in a process of its own: oneDNN reads the
 * variable once. */
static void test_avx2(void)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
		setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
		exit(test_all());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	      WEXITSTATUS(status) == 0);
}

int main(void)
{
	test_names();
	test_choices();
	test_avx2();
	return test_all();
}
