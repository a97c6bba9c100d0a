/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation on one device, with everything that a net would give it: plan, memory, bind, run.
 * Values go in and come out in plain order, so that devices can be compared. Memory that the
 * operation must write holds NaN before.
 */
#ifndef MUSTER_OP_RIG_H
#define MUSTER_OP_RIG_H

#include "op_cases.h"

/* What goes in, plain; the same for every device. NULL where the case has no such array. */
struct op_values {
	float *in[OP_MAX_TENSORS];
	float *out_grad[OP_MAX_TENSORS]; /* gradients of the outputs; not for softmax */
	float *params[MU_MAX_PARAMS], *aux[MU_MAX_PARAMS];
	float *labels;
	uint32_t *ids;
	float *state, *state_grad; /* (2, n, units): before a block, after it */
};

/* What comes out, plain. */
enum op_what { OP_OUTPUT, OP_STATE, OP_INPUT_GRAD, OP_PARAM_GRAD, OP_AUX_GRAD, OP_STATE_GRAD };

struct op_block {
	enum op_what what;
	int index;
	size_t n;
	float *v;
};

enum { OP_MAX_BLOCKS = 2 * OP_MAX_TENSORS + 2 * MU_MAX_PARAMS + 2, OP_MAX_OWNED = 48 };

/*
 * Which inputs come in a layout that a convolution of the device makes; the others are plain. What
 * layout that is depends on the channels of the convolution's own input: as many as its filters, or
 * 5. MIXED: the one for inputs 0 and 2, the other for 1 and 3.
 */
enum op_layouts {
	OP_LAYOUT_PLAIN,
	OP_LAYOUT_FIRST,
	OP_LAYOUT_ALL,
	OP_LAYOUT_ALL_OF_5,
	OP_LAYOUT_MIXED,
	OP_LAYOUT_N
};

struct op_rig {
	const struct op_case *c;
	struct mu_device *device;
	struct mu_op op;
	struct mu_tensor in[OP_MAX_TENSORS], out[OP_MAX_TENSORS];
	struct mu_tensor *links[2 * OP_MAX_TENSORS];
	struct mu_batch batch;
	struct mu_state state;
	bool planned;
	struct op_block blocks[OP_MAX_BLOCKS]; /* results of the last run */
	int n_blocks;
	void *owned[OP_MAX_OWNED];
	int n_owned;
};

struct op_rig_config {
	const struct op_case *c;
	struct mu_device *device;
	enum mu_phase phase;
	enum op_layouts layouts;
	const struct op_rig *like; /* keep the parameters' layouts of this one; or NULL */
};

/* Shapes that the case's operation has. Written independently of the devices. */
struct mu_shape op_output_shape(const struct op_case *c);
struct mu_shape op_state_shape(const struct op_case *c);
int op_n_params(const struct op_case *c, struct mu_shape *shapes);

/*
 * Can these layouts be others than those before them? Vectors are plain on every device; mixtures
 * need two inputs; for channels that are no multiple of 16, what convolves them makes no difference
 * on the devices so far. GPUs have channels last in half types, and are plain in float32.
 */
bool op_layouts_differ(const struct op_case *c, enum op_layouts layouts,
		       const struct mu_device *device);

/* Random values, away from ties and kinks by more than 1/64. */
enum mu_status op_values_init(struct op_values *values, const struct op_case *c);
void op_values_release(struct op_values *values);

enum mu_status op_rig_init(struct op_rig *rig, const struct op_rig_config *config);
void op_rig_release(struct op_rig *rig);
/* Fill the outputs' blocks, then (after forward, when training) those of the gradients. */
enum mu_status op_rig_forward(struct op_rig *rig, const struct op_values *values);
enum mu_status op_rig_backward(struct op_rig *rig, const struct op_values *values);
/* op_values.c: after forward of softmax: the predictions of `batch`, against scores and output. */
void op_check_predictions(const struct op_rig *rig, const struct op_values *values);
/* A loss refuses this label of number 1, with this message. */
void op_check_label(struct mu_device *device, const struct op_case *c, float label,
		    const char *message);

#endif
