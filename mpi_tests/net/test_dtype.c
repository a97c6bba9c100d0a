/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * bfloat16 and float16: every operation of the table, in training and inference, on the devices
 * that have the type against ref in float32, which is given the same rounded values. Single values
 * differ where rounding moves one past a kink, so what is compared is the distance of whole arrays.
 * Without the instructions: the error that says so.
 */
#include <math.h>
#include <string.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "op_rig.h"
#include "device/op.h"

/*
 * |is - should| / |should| of an array may be this much. A bfloat16 has 8 bits, so rounding once
 * makes 2^-9 at most and 0.0017 as the root of the mean square. Measured: at most 0.0049. A float16
 * has 11 bits, of which at most 0.0006 was measured.
 */
static const double tolerances[] = {[MU_BFLOAT16] = 0.008, [MU_FLOAT16] = 0.001};
/* cuDNN's LSTM rounds its state and the gradients of its gates at every step. On an H200, of the
 * sizes of the table, it is up to 0.0112 and 0.0012 away, and PyTorch's, which is cuDNN's too, with
 * other numbers up to 0.0106 and 0.0009. */
static const double lstm_tolerances[] = {[MU_BFLOAT16] = 0.016, [MU_FLOAT16] = 0.002};
static enum mu_dtype dtype = MU_BFLOAT16;
static double worst;

static bool worked(enum mu_status st, const char *name)
{
	if (st == MU_OK)
		return true;
	mu_trace_print(stderr, name);
	mu_trace_clear();
	check_true(false, __FILE__, __LINE__, name);
	return false;
}

/* What the type holds of n numbers. */
static void coarsen(float *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		uint16_t half;

		mu_dtype_from_float(dtype, &half, &v[i], 1);
		mu_dtype_to_float(dtype, &v[i], &half, 1);
	}
}

static void coarsen_all(struct op_values *values, const struct op_rig *ref)
{
	const struct mu_op *op = &ref->op;

	for (int i = 0; i < op->n_inputs && op->kind != MU_OP_EMBEDDING; i++)
		coarsen(values->in[i], mu_shape_n(&op->inputs[i]->shape));
	for (int i = 0; i < op->n_outputs; i++)
		coarsen(values->out_grad[i], mu_shape_n(&op->outputs[i]->shape));
	for (int i = 0; i < op->n_params; i++)
		coarsen(values->params[i], mu_shape_n(&op->params[i].shape));
}

static void compare(const struct op_rig *rig, const struct op_rig *ref)
{
	const bool by_steps = rig->op.kind == MU_OP_LSTM && !strcmp(rig->device->ops->name, "gpu");

	for (int b = 0; b < rig->n_blocks; b++) {
		const float *is = rig->blocks[b].v, *should = ref->blocks[b].v;
		double difference = 0, size = 0, error;
		char text[160];

		for (size_t k = 0; k < rig->blocks[b].n; k++) {
			double d = (double)is[k] - (double)should[k];

			difference += d * d;
			size += (double)should[k] * (double)should[k];
		}
		/* What vanishes but for rounding, such as the gradient in front of a batch-norm of
		 * one value, is compared with what it came from. */
		error = sqrt(difference / fmax(size, 0.01 * (double)rig->blocks[b].n));
		if (!(error <= worst))
			worst = error;
		snprintf(text, sizeof text, "%s: array %d, kind %d, is %g of its size away",
			 rig->c->name, b, (int)rig->blocks[b].what, error);
		if (!(error <= (by_steps ? lstm_tolerances : tolerances)[dtype]))
			check_true(false, __FILE__, __LINE__, text);
	}
}

static bool runs(struct op_rig *rig, const struct op_values *values)
{
	return worked(op_rig_forward(rig, values), rig->c->name) &&
	       (!rig->out[0].needs_grad || worked(op_rig_backward(rig, values), rig->c->name));
}

/* In config's phase; after training also in inference, which keeps the parameters' layouts. truths:
 * ref's, by phase. */
static void match_ref(const struct op_rig_config *config, const struct op_rig *truths,
		      const struct op_values *values)
{
	struct op_rig_config infer = *config;
	struct op_rig rig;

	if (worked(op_rig_init(&rig, config), config->c->name) && runs(&rig, values))
		compare(&rig, &truths[config->phase]);
	infer.phase = MU_PHASE_INFER;
	infer.like = &rig;
	if (config->phase == MU_PHASE_TRAIN)
		match_ref(&infer, truths, values);
	op_rig_release(&rig);
}

/* The numbers that an embedding looks up are the net's input, which is plain. */
static bool has_layout(enum mu_op_kind kind, enum op_layouts layouts)
{
	return kind != MU_OP_EMBEDDING || layouts == OP_LAYOUT_PLAIN;
}

/* With all layouts of inputs. */
static void test_case(const struct op_case *c, struct mu_device *device, struct mu_device *ref)
{
	struct op_rig truths[2];
	struct op_values values;
	bool ok = worked(op_values_init(&values, c), c->name);

	for (int phase = 0; phase < 2; phase++) {
		const struct op_rig_config config = {
			.c = c, .device = ref, .phase = (enum mu_phase)phase};

		ok = worked(op_rig_init(&truths[phase], &config), c->name) && ok;
		if (ok && phase == MU_PHASE_TRAIN)
			coarsen_all(&values, &truths[phase]);
		ok = ok && runs(&truths[phase], &values);
	}
	for (enum op_layouts l = OP_LAYOUT_PLAIN; ok && l < OP_LAYOUT_N; l++) {
		const struct op_rig_config config = {
			.c = c, .device = device, .phase = MU_PHASE_TRAIN, .layouts = l};

		if (has_layout(c->kind, l) && op_layouts_differ(c, l, device))
			match_ref(&config, truths, &values);
	}
	op_rig_release(&truths[0]);
	op_rig_release(&truths[1]);
	op_values_release(&values);
}

/* Only float32 here, or nothing of the kind: the device says why, and stays as it was. */
static void check_refusal(struct mu_device *device, enum mu_dtype wanted, const char *why)
{
	CHECK(mu_device_set_dtype(device, wanted) == MU_ERR_UNSUPPORTED);
	CHECK_HAS(mu_trace_message(), why);
	CHECK(device->dtype == MU_FLOAT32);
	mu_trace_clear();
}

/* ---- fused attention: the same cases, and the same bits in every run ---- */

static void check_again(struct op_rig *rig, const struct op_values *values)
{
	float *first[OP_MAX_BLOCKS] = {NULL};

	for (int b = 0; b < rig->n_blocks; b++)
		if (CHECK(MU_ALLOC(first[b], rig->blocks[b].n, "results") == MU_OK))
			memcpy(first[b], rig->blocks[b].v, rig->blocks[b].n * sizeof(float));
	if (worked(op_rig_forward(rig, values), rig->c->name) &&
	    worked(op_rig_backward(rig, values), rig->c->name))
		for (int b = 0; b < rig->n_blocks; b++)
			CHECK(memcmp(first[b], rig->blocks[b].v,
				     rig->blocks[b].n * sizeof(float)) == 0);
	for (int b = 0; b < rig->n_blocks; b++)
		mu_free(first[b]);
}

/* Only then attention without dropout keeps something from forward to backward. */
static bool is_fused(const struct op_case *c, struct mu_device *device)
{
	const struct op_rig_config config = {
		.c = c, .device = device, .phase = MU_PHASE_TRAIN, .layouts = OP_LAYOUT_ALL};
	const struct mu_attention *a = c->attr;
	struct op_values values;
	struct op_rig rig;
	bool fused = false;

	if (worked(op_values_init(&values, c), c->name) &&
	    worked(op_rig_init(&rig, &config), c->name)) {
		fused = a->dropout == 0 && rig.op.workspace_nbytes > 0;
		if (fused && worked(op_rig_forward(&rig, &values), c->name) &&
		    worked(op_rig_backward(&rig, &values), c->name))
			check_again(&rig, &values);
		op_rig_release(&rig);
	}
	op_values_release(&values);
	return fused;
}

static void test_fused(struct mu_device *device, struct mu_device *ref)
{
	size_t n = 0, n_fused = 0;

	device->fused_attention = true;
	worst = 0;
	for (size_t i = 0; i < op_n_cases; i++) {
		const struct op_case *c = &op_cases[i];

		if (c->kind != MU_OP_ATTENTION || !op_case_is_for(c, device))
			continue;
		n++;
		n_fused += is_fused(c, device);
		test_case(c, device, ref);
	}
	device->fused_attention = false;
	printf("%s, %s: fused attention, %zu of %zu cases, worst distance %.4f\n",
	       device->ops->name, mu_dtype_name(dtype), n_fused, n, worst);
}

static void test_device(struct mu_device *device, struct mu_device *ref)
{
	dtype = device->dtype;
	worst = 0;
	for (size_t i = 0; i < op_n_cases; i++)
		if (op_case_is_for(&op_cases[i], device))
			test_case(&op_cases[i], device, ref);
	printf("%s, %s: worst distance %.4f\n", device->ops->name, mu_dtype_name(dtype), worst);
}

static void test_halves(struct mu_device *gpu, struct mu_device *ref)
{
	test_device(gpu, ref);
	test_fused(gpu, ref);
}

/* Both types, on one GPU. False: there is none; says why. */
static bool test_gpu(struct mu_device *ref)
{
	static const enum mu_dtype types[] = {MU_FLOAT16, MU_BFLOAT16};
	struct mu_device gpu;

	for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
		if (mu_device_find(&gpu, "gpu") != MU_OK) {
			mu_trace_clear();
			printf("skipped: this build has no device gpu\n");
			return false;
		}
		if (!CHECK_IS_HERE(gpu.ops))
			return false;
		if (!worked(mu_device_open(&gpu, "gpu", 1), "gpu"))
			return true;
		if (worked(mu_device_set_dtype(&gpu, types[t]), "gpu"))
			test_halves(&gpu, ref);
		mu_device_close(&gpu);
	}
	return true;
}

/* Only bfloat16, where the processor has it. False: it has not; says why. */
static bool test_cpu(struct mu_device *ref)
{
	struct mu_device device;
	bool has;

	if (mu_device_open(&device, "cpu", 2) != MU_OK) {
		mu_trace_clear();
		printf("skipped: this build has no device cpu\n");
		return false;
	}
	check_refusal(&device, MU_FLOAT16, "no float16");
	has = mu_device_set_dtype(&device, MU_BFLOAT16) == MU_OK;
	if (has) {
		test_device(&device, ref);
	} else {
		CHECK_HAS(mu_trace_message(), "no instructions for bfloat16");
		printf("skipped on the cpu: %s\n", mu_trace_message());
	}
	mu_device_close(&device);
	return has;
}

int main(void)
{
	struct mu_device ref;
	bool done;

	if (!CHECK(mu_device_open(&ref, "ref", 1) == MU_OK))
		return 1;
	check_refusal(&ref, MU_BFLOAT16, "device ref has no bfloat16");
	done = test_cpu(&ref);
	done |= test_gpu(&ref);
	mu_device_close(&ref);
	if (check_failures())
		return 1;
	return done ? 0 : CHECK_SKIPPED;
}
