/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: a net compiled for a device, a batch size and a phase: layouts, kernels, fusions, and one
 * arena in which activations share memory by lifetime. Executing a plan allocates nothing. This is
 * what a program needs to run a network, such as jobs/examples/infer.c.
 */
#ifndef MUSTER_PLAN_H
#define MUSTER_PLAN_H

#include <muster/net.h>

MU_BEGIN_C

struct mu_plan;

/* like: a plan of the same net and device whose parameter layouts the new plan uses, so that both
 * can share flat arrays; or NULL. */
enum mu_status mu_plan_new(struct mu_plan **out, const struct mu_net *net, struct mu_device *device,
			   size_t batch, enum mu_phase phase, const struct mu_plan *like);
/* The same without memory for activations: for summaries and counts. */
enum mu_status mu_plan_new_dry(struct mu_plan **out, const struct mu_net *net,
			       struct mu_device *device, size_t batch, enum mu_phase phase,
			       const struct mu_plan *like);
void mu_plan_free(struct mu_plan *plan);

/*
 * Slices of the flat arrays, parameters then auxiliary values; number of elements of a flat array.
 */
const struct mu_slice *mu_plan_slices(const struct mu_plan *plan, size_t *n_slices);
size_t mu_plan_n(const struct mu_plan *plan);

/* ---- execution ---- */

/* Set the flat arrays (gradients NULL for MU_PHASE_INFER). Once, before execution. */
enum mu_status mu_plan_bind(struct mu_plan *plan, float *weights, float *gradients);
/* Where the caller writes samples: plain (batch, c, h, w), NULL for a part that reads none; and
 * labels, count and so on. use_ignore and ignore_label are set from the net. */
float *mu_plan_input(struct mu_plan *plan);
struct mu_batch *mu_plan_batch(struct mu_plan *plan);
size_t mu_plan_batch_size(const struct mu_plan *plan);

/* Layers in order of execution. */
size_t mu_plan_layers(const struct mu_plan *plan);
const char *mu_plan_layer_name(const struct mu_plan *plan, size_t l);
enum mu_status mu_plan_forward(struct mu_plan *plan, size_t l);
enum mu_status mu_plan_backward(struct mu_plan *plan, size_t l);
/* Results of the last forward: probabilities, plain, (batch, classes) or (batch, classes, h, w).
 * In training read them before backward. NULL after an error, and in training of large vocabularies
 * in half precision on a device with its own memory: read mu_plan_batch's `predictions`. */
const float *mu_plan_probabilities(struct mu_plan *plan);
const struct mu_shape *mu_plan_probabilities_shape(const struct mu_plan *plan);

/* Convert slice k between plain order and its place in a flat array. */
enum mu_status mu_plan_slice_from_plain(const struct mu_plan *plan, size_t k, const float *plain,
					float *flat);
enum mu_status mu_plan_slice_to_plain(const struct mu_plan *plan, size_t k, const float *flat,
				      float *plain);
const struct mu_shape *mu_plan_slice_shape(const struct mu_plan *plan, size_t k);

/* ---- descriptions of a plan ---- */

/* Table of layers: output shape, parameters, multiply-adds, memory; and totals. */
enum mu_status mu_plan_summary(const struct mu_plan *plan, FILE *stream);
/* The same as a graph in the language of Graphviz. */
enum mu_status mu_plan_dot(const struct mu_plan *plan, FILE *stream);

/* ---- initial weights ---- */

/*
 * By suffix of the name: bias 0, gamma 1, beta 0, moving_mean 0, moving_var 1, others (of users'
 * layers) as the layer defines; weight by the initializer: "default" (the network's, else gaussian,
 * in, 2), "xavier" (uniform, avg, 3), "msra", "orthogonal", "normal" (0.01), "uniform" (0.07),
 * "one", "zero". Depends on seed and key, not on the rank.
 */
enum mu_status mu_plan_init_weights(const struct mu_plan *plan, const char *initializer,
				    uint64_t seed, float *flat);

/* ---- ONNX (onnx.ai): the network with its parameters, for other programs ---- */

/*
 * A plan for inference. The model's input is called "input": (batch, c, h, w) of float32, or where
 * the network looks words up (batch, steps) of int64; the output "output", as
 * mu_plan_probabilities has it, but (batch, steps, c) of words.
 */
struct mu_onnx_note {
	const char *name, *text;
};
struct mu_onnx_config {
	int opset; /* 17, or 23: attention is one operation; 0: 17 */
	/* Batch-norms become part of the convolution or fully connected layer before them. */
	bool fold;
	/* Of each channel: the model reads pixels, and makes (pixel - mean) / std of them. NULL: it
	 * reads what the network reads. */
	const float *mean, *std;
	const char *about_input, *about_output; /* NULL: nothing */
	const struct mu_onnx_note *notes;       /* the model's metadata_props */
	size_t n_notes;
};
struct mu_onnx;
/* Refers to plan, weights (a flat array of it) and *config's texts. MU_ERR_UNSUPPORTED: the message
 * names a layer that cannot be written. */
enum mu_status mu_onnx_new(struct mu_onnx **out, const struct mu_plan *plan, const float *weights,
			   const struct mu_onnx_config *config);
void mu_onnx_free(struct mu_onnx *onnx);
/* Of a file with everything in it. A file of MU_ONNX_MOST or more is read by no program. */
#define MU_ONNX_MOST 2147483647.0
double mu_onnx_nbytes(const struct mu_onnx *onnx);
/* data: a second file, for arrays of 1 kB and more, which the first one calls data_name, by a path
 * from its own folder; or NULL. MU_ERR_IO: writing failed, with errno. */
enum mu_status mu_onnx_write(const struct mu_onnx *onnx, FILE *file, FILE *data,
			     const char *data_name);

MU_END_C

#endif
