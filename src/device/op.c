/* SPDX-License-Identifier: Apache-2.0 */
/* Names of operations and algorithms. */
#include "device/op.h"

#include <string.h>

#include <muster/base.h>

struct mu_attention_sizes mu_attention_sizes(const struct mu_attention *a,
					     const struct mu_shape *in)
{
	const size_t heads = (size_t)a->heads, kv = a->kv_heads ? (size_t)a->kv_heads : heads;

	return (struct mu_attention_sizes){.n = in->dims[0],
					   .steps = in->dims[2],
					   .heads = heads,
					   .kv = kv,
					   .d = in->dims[1] / (heads + 2 * kv),
					   .channels = in->dims[1]};
}

const char *mu_op_kind_name(enum mu_op_kind kind)
{
	static const char *const names[MU_OP_N] = {
#define KIND(OP, row, name, cpu, cuda) name,
#include "device/kinds.def"
#undef KIND
	};

	return (unsigned)kind < MU_OP_N ? names[kind] : "unknown";
}

bool mu_activation_is_smooth(enum mu_activation_kind kind)
{
	return kind >= MU_ACTIVATION_GELU && kind < MU_ACTIVATION_N;
}

float mu_batch_loss_scale(const struct mu_batch *batch)
{
	return batch->loss_scale > 0 ? batch->loss_scale : 1;
}

static const char *const algorithm_names[] = {
	[MU_CONVOLUTION_AUTO] = "auto",
	[MU_CONVOLUTION_DIRECT] = "direct",
	[MU_CONVOLUTION_WINOGRAD] = "winograd",
	[MU_CONVOLUTION_GEMM] = "gemm",
};

#define TEN(d) \
	"engine" #d "0", "engine" #d "1", "engine" #d "2", "engine" #d "3", "engine" #d "4", \
		"engine" #d "5", "engine" #d "6", "engine" #d "7", "engine" #d "8", "engine" #d "9"

static const char *const engine_names[MU_CONVOLUTION_ENGINES] = {TEN(), TEN(1), TEN(2), TEN(3)};

const char *mu_convolution_algorithm_name(enum mu_convolution_algorithm algorithm)
{
	return algorithm < MU_CONVOLUTION_ENGINE ? algorithm_names[algorithm]
						 : engine_names[algorithm - MU_CONVOLUTION_ENGINE];
}

enum mu_status mu_convolution_algorithm_find(enum mu_convolution_algorithm *out, const char *name)
{
	enum mu_status st = MU_OK;

	for (int a = MU_CONVOLUTION_AUTO; a < MU_CONVOLUTION_ALGORITHMS; a++) {
		*out = (enum mu_convolution_algorithm)a;
		if (strcmp(algorithm_names[a], name) == 0)
			goto out;
	}
	for (int k = 0; k < MU_CONVOLUTION_ENGINES; k++) {
		*out = (enum mu_convolution_algorithm)(MU_CONVOLUTION_ENGINE + k);
		if (strcmp(engine_names[k], name) == 0)
			goto out;
	}
	MU_FAIL(MU_ERR_USAGE,
		"unknown algorithm of convolutions \"%s\"; known ones: auto, direct, winograd, "
		"gemm, engine0 to engine%d",
		name, MU_CONVOLUTION_ENGINES - 1);
out:
	return st;
}

void mu_convolution_requested(const struct mu_device *device, const char *layer,
			enum mu_convolution_algorithm out[MU_CONVOLUTION_PHASES])
{
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		out[phase] = device->algorithm;
	for (size_t i = 0; i < device->n_choices; i++)
		if (strcmp(device->choices[i].layer, layer) == 0)
			memcpy(out, device->choices[i].algorithms,
			       sizeof device->choices[i].algorithms);
}
