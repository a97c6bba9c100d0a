/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */ /* @timeout 600 */
/*
 * Every operation of every device. ref against central finite differences and against numbers
 * worked out by hand, the other devices against ref, case by case (op_cases.c): outputs, gradients
 * of inputs and parameters, auxiliary gradients, in training and inference, with plain inputs and
 * with inputs in the device's layouts, with 1 and 2 threads.
 */
#include <math.h>
#include <string.h>

#include "../lib/check.h"
#include "op_literals.h"
#include "op_rig.h"
#include "device/op.h"

/*
 * A finite difference and a gradient g may differ by this much times (1 + |g|): rounding of float
 * outputs by the step, and step^2 / 6 times the third derivative.
 */
static const double difference_tolerance = 5e-4;
static const float step = 1.0f / 64;
enum { MAX_DIFFERENCES = 60 }; /* per array */

static double worst[MU_OP_N]; /* largest error by kind, since the last report */

static const char *what_name(enum op_what what)
{
	static const char *const names[] = {
		"output", "state", "gradient of input", "gradient of parameter",
		"gradient of auxiliary array", "gradient of state"};

	return names[what];
}

/* Where a comparison happens, for messages. */
struct place {
	const struct op_case *c;
	const char *device, *how;
	double tolerance;
};

/* The comparison of one array. */
struct tally {
	size_t wrong, worst;
	double error, is, should;
};

static void compare(const struct place *at, struct tally *t, size_t k, double is, double should)
{
	double error = fabs(is - should) / (1 + fabs(should));

	if (isnan(error))
		error = INFINITY;
	t->wrong += error > at->tolerance;
	if (error <= t->error)
		return;
	t->error = error;
	t->worst = k;
	t->is = is;
	t->should = should;
}

static void conclude(const struct place *at, const struct op_block *b, const struct tally *t)
{
	char text[240];

	if (t->error > worst[at->c->kind])
		worst[at->c->kind] = t->error;
	if (t->wrong == 0)
		return;
	snprintf(text, sizeof text,
		 "%s on %s (%s), %s %d: %zu of %zu wrong, [%zu] is %.9g, not %.9g", at->c->name,
		 at->device, at->how, what_name(b->what), b->index, t->wrong, b->n, t->worst, t->is,
		 t->should);
	check_true(false, __FILE__, __LINE__, text);
}

static void compare_block(const struct place *at, const struct op_block *b, const float *should)
{
	struct tally t = {.wrong = 0};

	for (size_t k = 0; k < b->n; k++)
		compare(at, &t, k, (double)b->v[k], (double)should[k]);
	conclude(at, b, &t);
}

/* false, with the trace printed, when the call failed. */
static bool worked(enum mu_status st, const struct op_case *c, const char *device)
{
	if (st == MU_OK)
		return true;
	mu_trace_print(stderr, device);
	mu_trace_clear();
	check_true(false, __FILE__, __LINE__, c->name);
	return false;
}

static void report(const char *title)
{
	printf("%s: worst error", title);
	for (int kind = 0; kind < MU_OP_N; kind++) {
		printf("%s %s %.1e", kind ? "," : "", mu_op_kind_name((enum mu_op_kind)kind),
		       worst[kind]);
		worst[kind] = 0;
	}
	printf("\n");
}

/* Twice, since a plan made once must serve many steps. */
static enum mu_status run(struct op_rig *rig, const struct op_values *values)
{
	enum mu_status st = MU_OK;

	for (int i = 0; i < 2; i++) {
		MU_TRY(op_rig_forward(rig, values));
		if (rig->out[0].needs_grad)
			MU_TRY(op_rig_backward(rig, values));
	}
	op_check_predictions(rig, values);
out:
	return st;
}

/* ---- ref against finite differences ---- */

/* The scalar that is derived: the loss, or the sum of out_grad * output. */
static double scalar(const struct op_rig *rig, const struct op_values *values)
{
	double sum = 0;

	if (op_case_is_loss(rig->c))
		return rig->batch.loss;
	for (int i = 0; i < rig->n_blocks; i++) {
		const struct op_block *b = &rig->blocks[i];
		const float *grad = b->what ? values->state_grad : values->out_grad[b->index];

		for (size_t k = 0; b->what <= OP_STATE && k < b->n; k++)
			sum += (double)grad[k] * (double)b->v[k];
	}
	return sum;
}

static enum mu_status difference(struct op_rig *rig, struct op_values *values, float *x,
				 double *out)
{
	enum mu_status st = MU_OK;
	float middle = *x, above = middle + step, below = middle - step;
	double high;

	*x = above;
	MU_TRY(op_rig_forward(rig, values));
	high = scalar(rig, values);
	*x = below;
	MU_TRY(op_rig_forward(rig, values));
	*out = (high - scalar(rig, values)) / ((double)above - (double)below);
out:
	*x = middle;
	return st;
}

/* false when forward failed. */
static bool check_array(struct op_rig *rig, struct op_values *values, const struct op_block *b,
			float *x)
{
	struct place at = {rig->c, "ref", "differences", difference_tolerance};
	struct tally t = {.wrong = 0};

	for (size_t k = 0; k < b->n; k += b->n / MAX_DIFFERENCES + 1) {
		double d = 0;

		if (!worked(difference(rig, values, &x[k], &d), rig->c, "ref"))
			return false;
		compare(&at, &t, k, (double)b->v[k], d);
	}
	conclude(&at, b, &t);
	return true;
}

static void check_differences(struct op_rig *rig, struct op_values *values)
{
	bool ok = true;

	for (int i = 0; i < rig->n_blocks && ok; i++) {
		const struct op_block *b = &rig->blocks[i];

		if (b->what == OP_INPUT_GRAD)
			ok = check_array(rig, values, b, values->in[b->index]);
		else if (b->what == OP_PARAM_GRAD)
			ok = check_array(rig, values, b, values->params[b->index]);
		else if (b->what == OP_STATE_GRAD)
			ok = check_array(rig, values, b, values->state);
	}
}

/* Inference gives training's outputs, with exceptions; dropout does nothing. */
static void check_inference(struct op_rig *train, struct op_rig *infer,
			    const struct op_values *values)
{
	struct place at = {train->c, "ref", "inference", 0};
	bool dropout = train->c->kind == MU_OP_DROPOUT;

	for (int i = 0; i < infer->n_blocks && op_case_infers(train->c); i++)
		compare_block(&at, &infer->blocks[i], dropout ? values->in[0] : train->blocks[i].v);
}

static void test_ref(const struct op_case *c, struct mu_device *ref)
{
	struct op_rig_config config = {.c = c, .device = ref, .phase = MU_PHASE_TRAIN};
	struct op_rig_config infer_config = {.c = c, .device = ref, .phase = MU_PHASE_INFER};
	struct op_rig rig, infer;
	struct op_values values;

	if (!worked(op_values_init(&values, c), c, "ref"))
		return;
	if (worked(op_rig_init(&rig, &config), c, "ref") && worked(run(&rig, &values), c, "ref")) {
		infer_config.like = &rig;
		if (worked(op_rig_init(&infer, &infer_config), c, "ref") &&
		    worked(run(&infer, &values), c, "ref"))
			check_inference(&rig, &infer, &values);
		op_rig_release(&infer);
		if (!c->no_differences)
			check_differences(&rig, &values);
	}
	op_rig_release(&rig);
	op_values_release(&values);
}

/* ---- other devices against ref ---- */

static void compare_rigs(const struct op_rig *rig, const struct op_rig *ref, const char *how)
{
	double tolerance = rig->c->tolerance > 0 ? rig->c->tolerance : OP_TOLERANCE;
	struct place at = {rig->c, rig->device->ops->name, how, tolerance};

	if (!CHECK(rig->n_blocks == ref->n_blocks))
		return;
	for (int i = 0; i < rig->n_blocks; i++)
		compare_block(&at, &rig->blocks[i], ref->blocks[i].v);
	CHECK_NEAR(rig->batch.loss, ref->batch.loss, tolerance * (1 + fabs(ref->batch.loss)));
}

static const char *how_text(char *text, size_t nbytes, const struct op_rig_config *config)
{
	static const char *const layouts[OP_LAYOUT_N] = {
		"plain inputs", "first input not plain", "inputs not plain",
		"inputs of convolutions of 5 channels", "inputs of several layouts"};

	snprintf(text, nbytes, "%s, %s, %d threads",
		 config->phase == MU_PHASE_TRAIN ? "training" : "inference",
		 layouts[config->layouts], config->device->n_threads);
	return text;
}

/* In config's phase; after training also in inference, which keeps the parameters' layouts. */
static void match_ref(const struct op_rig_config *config, struct mu_device *ref,
		      const struct op_values *values)
{
	struct op_rig_config ref_config = {.c = config->c, .device = ref, .phase = config->phase};
	const char *name = config->device->ops->name;
	struct op_rig rig, truth;
	char how[80];

	how_text(how, sizeof how, config);
	if (worked(op_rig_init(&rig, config), config->c, name) &&
	    worked(op_rig_init(&truth, &ref_config), config->c, "ref")) {
		if (worked(run(&rig, values), config->c, name) &&
		    worked(run(&truth, values), config->c, "ref"))
			compare_rigs(&rig, &truth, how);
		op_rig_release(&truth);
	}
	if (config->phase == MU_PHASE_TRAIN) {
		struct op_rig_config infer = *config;

		infer.phase = MU_PHASE_INFER;
		infer.like = &rig;
		match_ref(&infer, ref, values);
	}
	op_rig_release(&rig);
}

static void test_device(const struct op_case *c, struct mu_device *device, struct mu_device *ref)
{
	struct op_values values;

	if (!op_case_is_for(c, device) || !worked(op_values_init(&values, c), c, "ref"))
		return;
	for (int l = OP_LAYOUT_PLAIN; l < OP_LAYOUT_N; l++) {
		struct op_rig_config config = {.c = c,
					       .device = device,
					       .phase = MU_PHASE_TRAIN,
					       .layouts = (enum op_layouts)l};

		if (op_layouts_differ(c, config.layouts, device))
			match_ref(&config, ref, &values);
	}
	op_values_release(&values);
}

/* ---- all devices: numbers worked out by hand ---- */

static void compare_literal(const struct op_rig *rig, const struct op_literal *l)
{
	struct place at = {rig->c, rig->device->ops->name, "by hand", 2e-6};

	for (int i = 0; i < rig->n_blocks; i++) {
		const struct op_block *b = &rig->blocks[i];

		switch (b->what) {
		case OP_OUTPUT: compare_block(&at, b, l->out); break;
		case OP_INPUT_GRAD:
			compare_block(&at, b, b->index ? l->second_grad : l->in_grad);
			break;
		case OP_PARAM_GRAD: compare_block(&at, b, l->param_grads[b->index]); break;
		default: compare_block(&at, b, l->aux_grads[b->index]); break;
		}
	}
	CHECK_NEAR(rig->batch.loss, l->loss, 1e-6);
}

/* Values of a literal are lent, not copied: the rig does not write them. */
static void test_literal(const struct op_literal *l, struct mu_device *device)
{
	struct op_rig_config config = {.c = &l->c, .device = device, .phase = l->phase};
	struct op_literal copy = *l;
	struct op_values values = {.in = {copy.in, copy.second},
				   .out_grad = {copy.out_grad, copy.out_grad},
				   .params = {copy.params[0], copy.params[1]},
				   .aux = {copy.aux[0], copy.aux[1]},
				   .labels = copy.labels};
	const char *name = device->ops->name;
	struct op_rig rig;

	if (worked(op_rig_init(&rig, &config), &l->c, name) &&
	    worked(run(&rig, &values), &l->c, name))
		compare_literal(&rig, l);
	op_rig_release(&rig);
}

/* The mask depends on the sample's id alone, drops about p of the elements and scales the others.
 */
static void test_dropout(struct mu_device *device)
{
	const struct op_case c = {"dropout mask", .kind = MU_OP_DROPOUT, .in = {{2, {3, 2000}}},
				  .attr = &(const struct mu_dropout){.p = 0.75f}, .index = 3};
	struct op_rig_config config = {.c = &c, .device = device, .phase = MU_PHASE_TRAIN};
	struct op_rig rig;
	struct op_values values;
	size_t dropped = 0, differ = 0;

	if (!worked(op_values_init(&values, &c), &c, "ref"))
		return;
	for (size_t k = 0; k < 6000; k++)
		values.in[0][k] = 1;
	values.ids[0] = values.ids[2] = 1; /* NULL ids below: row 1 has id 1 */
	if (worked(op_rig_init(&rig, &config), &c, "dropout") &&
	    worked(run(&rig, &values), &c, "dropout")) {
		float first[2000];
		const float *y = rig.blocks[0].v;

		for (size_t k = 0; k < 2000; k++) {
			CHECK(y[k] == 0 || y[k] == 4);
			dropped += y[k] == 0;
			differ += y[k] != y[2000 + k];
			CHECK(y[k] == y[4000 + k]);
			first[k] = y[k];
		}
		CHECK(dropped > 1400 && dropped < 1600); /* 1500, standard deviation 19 */
		CHECK(differ > 500);                     /* 750 */
		mu_free(values.ids);
		values.ids = NULL;
		if (worked(run(&rig, &values), &c, "dropout"))
			CHECK(memcmp(first, rig.blocks[0].v + 2000, sizeof first) == 0);
	}
	op_rig_release(&rig);
	op_values_release(&values);
}

/* ---- what the device interface promises besides ---- */

static void test_names(void)
{
	struct mu_shape image = {4, {64, 20, 24, 24}}, other = {4, {64, 20, 24, 25}},
			flat = {2, {64, 20}};
	struct mu_device device;
	char text[96], small[6];

	CHECK_TEXT(mu_shape_text(&image, text, sizeof text), "(64, 20, 24, 24)");
	CHECK_TEXT(mu_shape_text(&image, small, sizeof small), "(64, ");
	CHECK(mu_shape_n(&image) == 737280);
	CHECK(mu_shape_equal(&image, &image) && !mu_shape_equal(&image, &other));
	CHECK(!mu_shape_equal(&image, &flat));
	CHECK_TEXT(mu_op_kind_name(MU_OP_FULLY_CONNECTED), "fullyconnected");
	CHECK(mu_device_open(&device, NULL, 1) == MU_OK && device.ops == mu_device_table[0]);
	mu_device_close(&device);
	CHECK(mu_device_open(&device, "ref:2", 1) == MU_OK && device.index == 2);
	mu_device_close(&device);
	mu_device_close(&device);
	CHECK(mu_device_open(&device, "gpx:0", 1) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "\"gpx:0\"");
	CHECK_HAS(mu_trace_message(), "ref");
	mu_trace_clear();
	CHECK(mu_device_open(&device, "re", 1) == MU_ERR_USAGE);
	mu_trace_clear();
	CHECK(mu_device_open(&device, "ref:", 1) == MU_ERR_USAGE);
	mu_trace_clear();
	CHECK(mu_device_open(&device, "ref:1x", 1) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "ref:0");
	mu_trace_clear();
	CHECK(mu_device_open(&device, "ref", 0) == MU_ERR_ARGUMENT);
	mu_trace_clear();
}

/* ref refuses what cannot be, and names the operation and the shape. */
static void test_refusals(struct mu_device *ref)
{
	for (size_t i = 0; i < op_n_refusals; i++) {
		const struct op_refusal *r = &op_refusals[i];
		struct mu_tensor in = {.shape = r->in}, out = {.shape = r->out};
		struct mu_tensor *links[2] = {&in, &out};
		struct mu_op op = {.kind = r->kind,
				   .name = "layer7",
				   .attr = r->attr,
				   .n_inputs = 1,
				   .n_outputs = 1,
				   .inputs = links,
				   .outputs = links + 1,
				   .n_params = r->n_params,
				   .params = {{.name = "w", .shape = r->weight},
					      {.name = "b", .shape = r->bias}}};

		CHECK(ref->ops->plan(ref, &op) != MU_OK);
		CHECK_HAS(mu_trace_message(), "layer7");
		CHECK_HAS(mu_trace_message(), r->message);
		mu_trace_clear();
		ref->ops->release(ref, &op);
	}
}

static void test_labels(struct mu_device *device)
{
	const struct op_case two = {"labels", .kind = MU_OP_SOFTMAX, .in = {{2, {2, 3}}}};

	op_check_label(device, &two, 3, "label of sample 1003, position 0 is 3; it must be 0");
	for (size_t i = 0; i < op_n_cases; i++)
		if (strcmp(op_cases[i].name, "bce") == 0) {
			op_check_label(device, &op_cases[i], 1.5f,
				       "sample 1000 is 1.5; targets are probabilities");
			op_check_label(device, &op_cases[i], NAN, "target 1 of sample 1000 is nan");
		}
}

static void test_all_cases(const struct mu_device_ops *ops, int n_threads, struct mu_device *ref)
{
	struct mu_device device;
	char title[200];

	if (!CHECK(mu_device_open(&device, ops->name, n_threads) == MU_OK)) {
		mu_trace_print(stderr, ops->name);
		mu_trace_clear();
		return;
	}
	for (size_t i = 0; i < op_n_literals; i++)
		test_literal(&op_literals[i], &device);
	test_dropout(&device);
	for (size_t i = 0; i < op_n_cases && strcmp(ops->name, "ref") != 0; i++)
		if (check_is_asked("MU_TEST_CASES", op_cases[i].name))
			test_device(&op_cases[i], &device, ref);
	ops->describe(&device, title, sizeof title);
	report(title);
	mu_device_close(&device);
}

int main(void)
{
	struct mu_device ref;

	printf("%zu cases, %zu worked by hand\n", op_n_cases, op_n_literals);
	test_names();
	if (!CHECK(mu_device_open(&ref, "ref", 1) == MU_OK))
		return 1;
	test_refusals(&ref);
	test_labels(&ref);
	for (size_t i = 0; i < op_n_cases && check_is_asked("MU_TEST_DEVICES", "ref"); i++)
		if (check_is_asked("MU_TEST_CASES", op_cases[i].name))
			test_ref(&op_cases[i], &ref);
	report("ref against finite differences");
	for (size_t d = 0; mu_device_table[d]; d++) /* a GPU's work is not of the host's threads */
		for (int n_threads = 1; n_threads <= (mu_device_table[d]->memory ? 1 : 2) &&
					CHECK_IS_HERE(mu_device_table[d]);
		     n_threads++)
			test_all_cases(mu_device_table[d], n_threads, &ref);
	mu_device_close(&ref);
	return check_failures() ? 1 : 0;
}
