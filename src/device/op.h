/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op: operations, and what a device is to nets. A device is one exported const table of struct
 * mu_device_ops (mu_device_ref, mu_device_cpu). It runs operations (struct mu_op) on tensors. `ref`
 * is plain loops and defines the results; every other device must match it, operation by operation.
 *
 * Life of an operation: plan once (choose kernels and layouts, compute memory sizes), bind once
 * (set pointers), then forward and backward many times. forward and backward neither allocate nor
 * plan. src/net owns the graph and all memory.
 *
 * A device may use its own layouts for tensors and parameters, with padding; padding is zero and
 * stays zero. backward overwrites the gradients of inputs and parameters (except with `adds` of
 * struct mu_op).
 */
#ifndef DEVICE_OP_H
#define DEVICE_OP_H

#include <muster/device.h>

#include "device/memory.h"

/* ---- kinds ---- */

enum mu_op_kind {
#define KIND(OP, row, name, cpu, cuda) MU_OP_##OP,
#include "device/kinds.def"
#undef KIND
	MU_OP_N,
};

/* "convolution"; without separators, as in array names: "batchnorm". */
const char *mu_op_kind_name(enum mu_op_kind kind);

/* Of an input: kv, heads of keys and values; d, channels of a head; channels = (heads + 2 kv) d. */
struct mu_attention_sizes {
	size_t n, steps, heads, kv, d, channels;
};
struct mu_attention_sizes mu_attention_sizes(const struct mu_attention *a,
					     const struct mu_shape *in);

float mu_batch_loss_scale(const struct mu_batch *batch); /* 1 for 0 */

/* ---- tensors and parameters ---- */

struct mu_tensor {
	struct mu_shape shape;
	bool needs_grad; /* an operation reads its gradient */
	size_t nbytes;   /* of data, and of grad, in this layout; set by plan of the operation that
			    writes the tensor */
	void *layout;    /* private to the device, NULL = plain */
	size_t sums_at;  /* bytes from data to sums of each channel, which the device writes with
			    the tensor for a batch-norm; part of nbytes. 0: none */
	float *data;     /* set before bind */
	float *grad;     /* set before bind; NULL if !needs_grad */
};

/* (n, c), or with two or three axes of space. */
static inline bool mu_tensor_shape_fits(const struct mu_shape *shape)
{
	return shape->ndims == 2 || shape->ndims == 4 || shape->ndims == 5;
}

struct mu_param {
	const char *name;      /* owned by the net */
	struct mu_shape shape; /* plain */
	size_t n_padded;       /* set by plan */
	void *layout;          /* set by plan, private to the device, NULL = plain */
	float *data;           /* in the flat array of weights, set before bind */
	float *grad; /* in the flat array of gradients, set before bind; NULL when not training */
};

/* ---- operations ---- */

/*
 * State of an LSTM that processes one block of the steps of a sequence: h then c, each plain (n,
 * units) in the device's memory, passed between neighbouring blocks. NULL before the first block
 * (zero) and after the last (unused). The net sets all members before forward.
 */
struct mu_state {
	const float *before, *after_grad; /* read by forward and backward; by backward */
	float *after, *before_grad;       /* written by forward; by backward */
	/* Memory of shared_nbytes that all blocks share, for weights as backward prepares them;
	 * has_shared: another block has filled it. */
	void *shared;
	bool has_shared;
};

/*
 * Steps of a sequence before those of an operation in inference, for attention (causal) and
 * positions. Attention keeps their keys and values here, and adds those of its own steps. Rows are
 * (n, most, 2 kv_heads d), keys first; behind them is room for (2, most).
 */
struct mu_past {
	size_t steps, most;
	float *rows;
};

/*
 * What an operation does besides its own work, and what others do for it. The net proposes it
 * before plan (src/net/plan/fuse.c); plan clears what the device lacks, where that is said below.
 */
struct mu_fusion {
	/* forward applies it to the output. Of a convolution, a fully connected layer, a sum, and
	 * (ReLU only) a batch-norm. NULL: none. */
	const struct mu_activation *activation;
	/* The gradient that backward receives is that after this activation, which it undoes first.
	 * It is `activation`; or NULL if a split alone reads the output and undoes the activation,
	 * a ReLU, on the sum of its gradients: then it is that split's. A batch-norm with one input
	 * does not read its output for this. */
	const struct mu_activation *undo;
	/* Of a batch-norm with an addend and a ReLU that a split undoes: the two outputs of that
	 * split. Backward of the batch-norm sets the output's gradient to the sum of theirs, before
	 * the ReLU; it may lie where the first one does. plan may clear it. */
	struct mu_tensor **branches;
	/* Of a sum, and of a batch-norm with an addend: bit i is set if the gradient of input i may
	 * use the memory of the output's gradient, which saves a copy. plan may clear bits. */
	unsigned shared_grads;
	/* The output shares the input's memory: data and gradient; of a split and a sum only data,
	 * of a sum the first input's; of a softmax, whose plan may clear it, also the gradient of
	 * the input. */
	bool in_place;
	bool joined; /* of the split of `branches`, set after plan: its backward does nothing */
	/* A batch-norm alone reads the output: a device may write sums for it (sums_at). A softmax
	 * in place alone reads it: the device may choose its layout. */
	bool feeds_norm, feeds_loss;
	/* Between forward and backward the memory of the output is reused, and `restore` computes
	 * the output again. */
	bool restored;
	/* backward leaves the gradients of parameters to backward_weights. plan clears it if
	 * backward computes all gradients. */
	bool weights_later;
};

struct mu_op {
	enum mu_op_kind kind;
	const char *name;
	int index; /* position in the net; part of dropout's random key (element = index << 24 | the
		      low 24 bits of the element of the sample, block after block; its higher bits
		      are the sample's from bit 40 on) */
	const void *attr; /* struct mu_convolution, ... by kind; NULL for kinds without attributes
			     */
	enum mu_phase phase;
	int n_inputs, n_outputs;
	struct mu_tensor **inputs, **outputs;
	int n_params, n_aux;
	struct mu_param params[MU_MAX_PARAMS]; /* weight, bias | gamma, beta */
	struct mu_param aux[MU_MAX_PARAMS];    /* moving_mean, moving_var */
	struct mu_batch *batch;                /* shared by all operations of a plan */

	struct mu_fusion fusion;
	/* Softmax, set by the net before forward: forward does not wait for the device; set_loss
	 * (struct mu_device_ops) sets the batch's loss. */
	bool loss_later;
	/* Time blocks. LSTM: its state, NULL for whole sequences. Dropout: the number of the block,
	 * from 0; each block has its own masks. */
	const struct mu_state *state;
	size_t block;
	/* NULL: the operation has the whole sequence. */
	struct mu_past *past;
	/* With can_add, at any time: backward adds the gradients of parameters to the present
	 * values. */
	bool adds;

	/* Set by plan. */
	size_t workspace_nbytes;   /* own memory, kept from forward to backward */
	size_t scratch_nbytes;     /* memory used during one call */
	void *workspace, *scratch; /* set before bind, aligned to 64 bytes */
	/* Memory for prepare and conclude (struct mu_device_ops), kept from the begin of a step to
	 * its end. NULL: neither is called. */
	size_t kept_nbytes;
	void *kept;
	void *impl;                /* private to the device */
	size_t shared_nbytes;      /* see struct mu_state */
	bool can_add;              /* see adds; set in training */
	/* Convolution: the algorithm of each phase. AUTO: the device has one algorithm only, or has
	 * no such phase. */
	enum mu_convolution_algorithm algorithms[MU_CONVOLUTION_PHASES];
};

/* ---- devices ---- */

/* Peak rates of a device with all its threads, per second. */
struct mu_device_limits {
	double flops; /* in its dtype, in a large matrix product */
	double bytes; /* read and written, in a copy larger than all caches */
	double host_bytes; /* to a device with memory of its own, from the host's; 0: has none */
};

struct mu_device_ops {
	const char *name; /* "ref" */
	const char *help; /* one line */
	/* Number of devices of this kind; if 0, `why` holds the reason. NULL: any index can be
	 * opened. */
	int (*count)(char *why, size_t nbytes);
	const struct mu_device_memory *memory; /* NULL: the device works in host memory */
	/* Nets fuse a sum of two with the batch-norm before it: see struct mu_batch_norm. */
	bool norms_add;
	bool remembers; /* has struct mu_past */
	bool has_tf32;  /* see struct mu_device */
	enum mu_status (*open)(struct mu_device *device);
	void (*close)(struct mu_device *device);
	/*
	 * Choose kernels; set outputs' layout and nbytes, params' n_padded and layout,
	 * workspace_nbytes, scratch_nbytes. Layouts of the inputs are set. A parameter whose layout
	 * is set already (n_padded != 0) keeps it.
	 */
	enum mu_status (*plan)(struct mu_device *device, struct mu_op *op);
	/* Before that, for an operation that alone reads the net's input: set layout and nbytes of
	 * the input. NULL: it is plain. */
	void (*lay_input)(struct mu_device *device, const struct mu_op *op);
	enum mu_status (*bind)(struct mu_device *device, struct mu_op *op);
	enum mu_status (*forward)(struct mu_device *device, struct mu_op *op);
	enum mu_status (*backward)(struct mu_device *device, struct mu_op *op);
	/*
	 * What is less work for n neighbouring operations together than for each: before their
	 * forward, and after their backward, which leaves gradients of parameters to `conclude`,
	 * where `kept` is set. NULL: nothing.
	 */
	enum mu_status (*prepare)(struct mu_device *device, struct mu_op *ops, size_t n);
	enum mu_status (*conclude)(struct mu_device *device, struct mu_op *ops, size_t n);
	/* For an operation with `loss_later`, when its forward is done: set the batch's loss and
	 * predictions. NULL: not supported. */
	void (*set_loss)(struct mu_device *device, struct mu_op *op);
	/* For an operation with `weights_later`, after its backward. NULL: not supported. */
	enum mu_status (*backward_weights)(struct mu_device *device, struct mu_op *op);
	/* For an operation with `restored`, between forward and backward: recompute the output, bit
	 * for bit, from inputs and workspace. */
	enum mu_status (*restore)(struct mu_device *device, struct mu_op *op);
	void (*release)(struct mu_device *device, struct mu_op *op);
	/*
	 * Convert between plain order and the layout of a tensor or a parameter; layout NULL is
	 * plain, then both copy. to_plain drops padding, from_plain zeroes it. n_padded is the
	 * number of elements in the layout.
	 */
	enum mu_status (*from_plain)(struct mu_device *device, const struct mu_shape *shape,
				     const void *layout, const float *plain, float *out);
	enum mu_status (*to_plain)(struct mu_device *device, const struct mu_shape *shape,
				   const void *layout, const float *in, float *plain);
	enum mu_status (*copy_layout)(struct mu_device *device, const void *layout, void **out);
	void (*free_layout)(struct mu_device *device, void *layout);
	/* Are these rows: float32, the c numbers of a position together, positions in order of n,
	 * h, w, no padding? NULL: never. */
	bool (*is_rows)(const struct mu_shape *shape, const void *layout);
	/* Equal hashes = equal layouts; 0 for plain. */
	uint64_t (*hash_layout)(struct mu_device *device, const void *layout);
	/*
	 * An error with the reason if the device cannot compute in this type. NULL: float32 only.
	 */
	enum mu_status (*check_dtype)(const struct mu_device *device, enum mu_dtype dtype);
	/* Like run of struct mu_share, on the threads that run the operations. NULL: one thread. */
	void (*share)(size_t n, mu_part_fn *part, void *of);
	/* "oneDNN 2.6.3, avx512_core_bf16, 2 threads" */
	void (*describe)(const struct mu_device *device, char *text, size_t nbytes);
	/* J that the whole device has used since some time. false: it has no counter, errno says
	 * why. _identify: the same text for the same device of this machine, "" if it has no
	 * counter. NULL: both are. */
	bool (*energy)(struct mu_device *device, double *joules);
	void (*identify)(struct mu_device *device, char *text, size_t nbytes);
	/* Measure the limits, in a third of a second. NULL: unknown. */
	enum mu_status (*measure)(struct mu_device *device, struct mu_device_limits *limits);
};

/* NULL-terminated list of the devices in this build, in order of preference. */
extern const struct mu_device_ops *const mu_device_table[];

/* Can a device of this kind be opened on this machine? If not, `why` holds the reason. */
bool mu_device_is_here(const struct mu_device_ops *ops, char *why, size_t nbytes);

/*
 * Algorithms requested for the convolution of this name: its choice, else the device's algorithm.
 */
void mu_convolution_requested(const struct mu_device *device, const char *layer,
			enum mu_convolution_algorithm out[MU_CONVOLUTION_PHASES]);

#endif
