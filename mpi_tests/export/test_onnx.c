/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/*
 * Models of ONNX, read by a decoder of our own (model.c): the graph of a small network as text, its
 * arrays, batch-norms that are folded, arrays in a second file. Whether programs compute the same
 * with them: test_export.sh.
 */
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>
#include <muster/plan.h>

#include "../lib/check.h"
#include "model.h"

/* ---- a net ---- */

struct rig {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights;
};

static bool open_rig(struct rig *r, const struct mu_network *network,
		     const struct mu_net_config *config)
{
	*r = (struct rig){.net = NULL};
	return CHECK(mu_device_open(&r->device, "ref", 1) == MU_OK) &&
	       CHECK((network ? mu_net_new_from(&r->net, network, config)
			      : mu_net_new(&r->net, config)) == MU_OK) &&
	       CHECK(mu_plan_new_dry(&r->plan, r->net, &r->device, 1, MU_PHASE_INFER, NULL) ==
		     MU_OK) &&
	       CHECK(MU_ALLOC(r->weights, mu_plan_n(r->plan), "weights") == MU_OK) &&
	       CHECK(mu_plan_init_weights(r->plan, "default", 5, r->weights) == MU_OK);
}

static void close_rig(struct rig *r)
{
	mu_plan_free(r->plan);
	mu_net_free(r->net);
	mu_device_close(&r->device);
	mu_free(r->weights);
}

static bool export(const struct rig *r, const struct mu_onnx_config *config, FILE *data,
		   struct model *m)
{
	struct mu_onnx *onnx = NULL;
	FILE *file = tmpfile();
	bool good = CHECK(file != NULL) &&
		    CHECK(mu_onnx_new(&onnx, r->plan, r->weights, config) == MU_OK) &&
		    CHECK(mu_onnx_write(onnx, file, data, "m.onnx.data") == MU_OK) &&
		    model_read(m, file);

	if (good && !data)
		CHECK(mu_onnx_nbytes(onnx) <= (double)m->nbytes &&
		      mu_onnx_nbytes(onnx) + 16 > (double)m->nbytes);
	if (file)
		fclose(file);
	mu_onnx_free(onnx);
	return good;
}

/* ---- LeNet ---- */

static const char lenet[] =
	"ir 8\n"
	"by Muster\n"
	"opset 17\n"
	"network: lenet\n"
	"Conv(input, convolution0_weight, convolution0_bias) convolution0:0 kernel_shape=5,5 "
	"strides=1,1 pads=0,0,0,0 dilations=1,1 group=1\n"
	"MaxPool(convolution0:0) pooling0:1 kernel_shape=2,2 strides=2,2 pads=0,0,0,0\n"
	"Tanh(pooling0:1) activation0:2\n"
	"Conv(activation0:2, convolution1_weight, convolution1_bias) convolution1:3 "
	"kernel_shape=5,5 strides=1,1 pads=0,0,0,0 dilations=1,1 group=1\n"
	"MaxPool(convolution1:3) pooling1:4 kernel_shape=2,2 strides=2,2 pads=0,0,0,0\n"
	"Tanh(pooling1:4) activation1:5\n"
	"Flatten(activation1:5) fullyconnected0:6\n"
	"Gemm(fullyconnected0:6, fullyconnected0_weight, fullyconnected0_bias) "
	"fullyconnected0:7 transB=1\n"
	"Tanh(fullyconnected0:7) activation2:8\n"
	"Gemm(activation2:8, fullyconnected1_weight, fullyconnected1_bias) fullyconnected1:9 "
	"transB=1\n"
	"Softmax(fullyconnected1:9) output axis=1\n"
	"input 1 batch 1 28 28\n"
	"output 1 batch 10\n";

static void check_slices(const struct rig *r, const struct model *m, const unsigned char *data)
{
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(r->plan, &n);

	CHECK(m->n_arrays == n);
	for (size_t k = 0; k < n; k++) {
		const struct array *a = model_array(m, slices[k].name);
		const struct mu_shape *shape = mu_plan_slice_shape(r->plan, k);
		const size_t nbytes = slices[k].n * sizeof(float);
		const void *raw;

		if (!CHECK(a != NULL))
			continue;
		CHECK((int)a->ndims == shape->ndims &&
		      memcmp(a->dims, shape->dims, a->ndims * sizeof *a->dims) == 0);
		CHECK(a->outside == (data && nbytes >= 1024));
		if (a->outside) {
			CHECK_TEXT(a->place, "m.onnx.data");
			CHECK(a->offset % 64 == 0 && a->length == nbytes && !a->raw);
		} else {
			CHECK(a->nbytes == nbytes);
		}
		raw = a->outside ? data + a->offset : a->raw;
		CHECK(memcmp(raw, r->weights + slices[k].at, nbytes) == 0);
	}
}

static void test_lenet(void)
{
	const struct mu_net_config config = {
		.network = "lenet", .shape = MU_SAMPLE(1, 28, 28), .classes = 10};
	const struct mu_onnx_note note = {"network", "lenet"};
	struct mu_onnx_config how = {.notes = &note, .n_notes = 1};
	static struct model m;
	struct rig r;
	FILE *data = tmpfile();
	size_t n;
	char *bytes;

	if (open_rig(&r, NULL, &config) && export(&r, &how, NULL, &m)) {
		CHECK_TEXT(m.text.of, lenet);
		check_slices(&r, &m, NULL);
		free(m.bytes);
	}
	if (r.weights && CHECK(data != NULL) && export(&r, &how, data, &m)) {
		n = (size_t)ftell(data);
		bytes = malloc(n);
		rewind(data);
		CHECK(bytes && fread(bytes, 1, n, data) == n);
		CHECK(m.nbytes < 8192);
		CHECK_TEXT(m.text.of, lenet);
		check_slices(&r, &m, (unsigned char *)bytes);
		free(bytes);
		free(m.bytes);
	}
	how.opset = 18;
	CHECK(mu_onnx_new(&(struct mu_onnx *){NULL}, r.plan, r.weights, &how) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "ONNX opset 18: 17 and 23 are written");
	mu_trace_clear();
	if (data)
		fclose(data);
	close_rig(&r);
}

/* ---- batch-norms, and pixels ---- */

static enum mu_status build_norm(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected two = {.units = (int)config->classes};
	const struct mu_batch_norm norm = {.eps = 0.25f, .momentum = 0.5f};
	int x = mu_net_input(net);

	x = mu_net_fully_connected(net, x, &two, "fc");
	x = mu_net_batch_norm(net, x, &norm, "bn");
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static void set(struct rig *r, const char *name, float first, float second)
{
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(r->plan, &n);

	for (size_t k = 0; k < n; k++)
		if (strcmp(slices[k].name, name) == 0) {
			r->weights[slices[k].at] = first;
			r->weights[slices[k].at + 1] = second;
			return;
		}
	CHECK_TEXT(name, "an array");
}

static void check_floats(const struct model *m, const char *name, float first, float second)
{
	const struct array *a = model_array(m, name);
	float is[2];

	if (!CHECK(a && a->nbytes == sizeof is))
		return;
	memcpy(is, a->raw, sizeof is);
	CHECK(is[0] == first && is[1] == second);
}

static void test_fold(void)
{
	static const struct mu_network network = {.name = "norm", .help = "h", .classes = 2,
						  .shape = MU_SAMPLE(1, 1, 1),
						  .build = build_norm};
	const struct mu_net_config config = {.shape = MU_SAMPLE(1, 1, 1), .classes = 2};
	const float mean = 100, std = 50;
	static struct model m;
	struct rig r;

	if (!open_rig(&r, &network, &config))
		return;
	set(&r, "fc_weight", 3, 5);
	set(&r, "fc_bias", 1, 2);
	set(&r, "bn_gamma", 2, 1);
	set(&r, "bn_beta", 7, -1);
	set(&r, "bn_moving_mean", 4, 6);
	set(&r, "bn_moving_var", 0.75f, 3.75f); /* with eps 1 and 4: roots 1 and 2 */
	if (export(&r, &(struct mu_onnx_config){.opset = 0}, NULL, &m)) {
		CHECK_HAS(m.text.of, "BatchNormalization(fc:1, bn_gamma, bn_beta, bn_moving_mean, "
				     "bn_moving_var) bn:2 epsilon=0.25\n");
		check_floats(&m, "fc_weight", 3, 5);
		free(m.bytes);
	}
	if (export(&r, &(struct mu_onnx_config){.fold = true, .mean = &mean, .std = &std}, NULL,
		   &m)) {
		CHECK(!strstr(m.text.of, "BatchNormalization"));
		CHECK_HAS(m.text.of, "Sub(input, input_mean) input:0\n"
				     "Div(input:0, input_std) input:1\n"
				     "Flatten(input:1) fc:2\n"
				     "Gemm(fc:2, fc_weight, fc_bias) fc:3 transB=1\n"
				     "Softmax(fc:3) output axis=1\n");
		check_floats(&m, "fc_weight", 6, 2.5f);
		check_floats(&m, "fc_bias", (1 - 4) * 2 + 7, (2 - 6) / 2 - 1);
		CHECK(m.n_arrays == 4);
		free(m.bytes);
	}
	close_rig(&r);
}

/* ---- a layer of one's own ---- */

static enum mu_status shape_own(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}

static enum mu_status pass(struct mu_layer *layer)
{
	(void)layer;
	return MU_OK;
}

static const struct mu_layer_ops own = {
	.name = "mine", .shape = shape_own, .forward = pass, .backward = pass};

static enum mu_status build_own(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected last = {.units = (int)config->classes};
	int x = mu_net_input(net);

	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &own}, "odd");
	mu_net_softmax(net, mu_net_fully_connected(net, x, &last, NULL), NULL);
	return MU_OK;
}

static void test_own(void)
{
	static const struct mu_network network = {.name = "own", .help = "h", .classes = 2,
						  .shape = MU_SAMPLE(1, 2, 2), .build = build_own};
	const struct mu_net_config config = {.shape = MU_SAMPLE(1, 2, 2), .classes = 2};
	struct mu_onnx *onnx = NULL;
	struct rig r;

	if (!open_rig(&r, &network, &config))
		return;
	CHECK(mu_onnx_new(&onnx, r.plan, r.weights, &(struct mu_onnx_config){.opset = 17}) ==
	      MU_ERR_UNSUPPORTED);
	CHECK_TEXT(mu_trace_message(), "layer odd, a mine, cannot be written as ONNX: there is no "
				       "operation for it");
	CHECK(onnx == NULL);
	mu_trace_clear();
	close_rig(&r);
}

int main(void)
{
	test_lenet();
	test_fold();
	test_own();
	return check_failures() ? 1 : 0;
}
