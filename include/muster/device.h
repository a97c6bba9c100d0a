/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: what computes. A device is one exported const table (mu_device_ref, mu_device_cpu). It
 * runs operations (struct mu_op) on tensors. `ref` is plain loops and defines the results; every
 * other device must match it, operation by operation.
 *
 * Life of an operation: plan once (choose kernels and layouts, compute memory sizes), bind once
 * (set pointers), then forward and backward many times. forward and backward neither allocate nor
 * plan. src/net owns the graph and all memory.
 *
 * Shapes are (n, c, h, w) or (n, c); n is the batch. Weights of a convolution are (filters, c /
 * groups, kh, kw), of a fully connected layer (units, features): y = x W' + b. "Plain" means this
 * order, dense, float32. A device may use its own layouts for tensors and parameters, with padding;
 * padding is zero and stays zero.
 *
 * Gradients are gradients of the sum of the samples' losses, not of the mean. backward overwrites
 * the gradients of inputs and parameters (except with `adds` of struct mu_op).
 */
#ifndef MUSTER_DEVICE_H
#define MUSTER_DEVICE_H

#include <muster/base.h>
#include <muster/device_memory.h>

MU_BEGIN_C

#define MU_MAX_DIMS 4

struct mu_shape {
	int ndims;
	size_t dims[MU_MAX_DIMS];
};

/* Product of all dimensions. */
size_t mu_shape_n(const struct mu_shape *shape);
/* "(64, 20, 24, 24)" into text; returns text. */
const char *mu_shape_text(const struct mu_shape *shape, char *text, size_t nbytes);
bool mu_shape_equal(const struct mu_shape *a, const struct mu_shape *b);

/* ---- operations ---- */

enum mu_op_kind {
	MU_OP_CONVOLUTION,
	MU_OP_FULLY_CONNECTED,
	MU_OP_ACTIVATION,
	MU_OP_POOLING,
	MU_OP_FLATTEN,
	MU_OP_DROPOUT,
	MU_OP_BATCH_NORM,
	MU_OP_LRN,
	MU_OP_SUM,       /* element-wise, two or more inputs */
	MU_OP_CONCAT,    /* along c */
	MU_OP_SPLIT,     /* one input, several outputs of the same values; gradients are summed in
			    order */
	MU_OP_SOFTMAX,   /* softmax cross-entropy along c of (n, c) or (n, c, h, w) with integer
			    labels, see struct mu_batch; the last operation of a net */
	MU_OP_EMBEDDING, /* rows of a table, selected by number */
	MU_OP_LSTM,      /* over all steps of a sequence */
	MU_OP_LAYER_NORM, /* along c, at every position */
	MU_OP_SMOOTH,     /* activations whose gradient needs the input: GELU, SiLU */
	MU_OP_ATTENTION,  /* between the steps of a sequence */
	MU_OP_POSITIONS,  /* a learned vector for each step, perhaps a first step of its own */
	MU_OP_STEP,       /* one step of a sequence */
	MU_OP_CUSTOM,     /* a user's layer: struct mu_layer_ops */
	MU_OP_N,
};

/* A kind of operation, as plans see it. A member that is not set is right, but costs memory. */
struct mu_op_traits {
	const char *name;   /* "convolution"; without separators, as in array names: "batchnorm" */
	bool input_unused;  /* backward does not read the input's values */
	bool output_unused; /* backward does not read the output's values */
	bool stepwise;      /* computes each step of a sequence from that step alone */
};
const struct mu_op_traits *mu_op_traits(enum mu_op_kind kind);
const char *mu_op_kind_name(enum mu_op_kind kind);

/* Pairs are (height, width). Output size: floor((size + 2 pad - dilate (kernel - 1) - 1) / stride)
 * + 1. */
struct mu_convolution {
	int filters;
	int kernel[2], stride[2], pad[2], dilate[2]; /* stride, dilate 0 mean 1 */
	int groups;                                  /* 0 means 1 */
	bool no_bias;
};

struct mu_fully_connected {
	int units;
	bool no_bias;
};

/*
 * GELU(x) = x / 2 (1 + erf(x / sqrt 2)); GELU_TANH approximates it by x / 2 (1 + tanh(sqrt(2 / pi)
 * (x + 0.044715 x^3))), as GPT-2 does (Hendrycks and Gimpel, Gaussian error linear units, 2016).
 * SiLU(x) = x sigmoid(x). The first three are operations of kind MU_OP_ACTIVATION, these of kind
 * MU_OP_SMOOTH.
 */
enum mu_activation_kind {
	MU_ACTIVATION_RELU,
	MU_ACTIVATION_TANH,
	MU_ACTIVATION_SIGMOID,
	MU_ACTIVATION_GELU,
	MU_ACTIVATION_GELU_TANH,
	MU_ACTIVATION_SILU,
};

struct mu_activation {
	enum mu_activation_kind kind;
};
bool mu_activation_is_smooth(enum mu_activation_kind kind);

/* Average pooling divides by the kernel's area, zero padding included. A window that `ceil` extends
 * beyond the padding is clipped to the padding. */
struct mu_pooling {
	bool average; /* else maximum; padding is never the maximum */
	bool global;  /* kernel = input, stride 1, pad 0 */
	bool ceil;    /* output size rounds up instead of down */
	int kernel[2], stride[2], pad[2];
};

struct mu_dropout {
	float p; /* probability of zero; other elements are scaled by 1 / (1 - p). Identity in
		    inference. */
};

/*
 * Training normalises with the biased variance of this device's batch, inference with the moving
 * statistics. Parameters: gamma, beta (c). Auxiliary values: moving_mean, moving_var (c); in
 * training their gradients are n * statistic of the batch, written by backward. fix_gamma: gamma
 * counts as 1 and its gradient is 0. (Ioffe and Szegedy, 2015)
 *
 * A second input of the same shape is added to the result. Nets use it on devices with `norms_add`.
 */
struct mu_batch_norm {
	float eps;
	float momentum;
	bool fix_gamma;
};

/*
 * Local response normalisation across channels: y = x / (k + alpha / size * sum of x^2)^beta,
 * summed over the `size` channels centred on x's own (size is odd; channels outside count as 0).
 * (Krizhevsky et al., 2012, section 3.3)
 */
struct mu_lrn {
	int size;
	float alpha, beta, k;
};

/*
 * y = row x of the weight (inputs, units). x: (n, 1, h, w), integers from 0 to inputs - 1; others
 * are MU_ERR_ARGUMENT. y: (n, units, h, w). x has no gradient. Samples that do not count (struct
 * mu_batch) use row 0.
 */
struct mu_embedding {
	int inputs, units;
};

/*
 * Long short-term memory (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al.,
 * 2000) over the steps t = 0, 1, ... of x (n, c, h, 1); y: (n, units, h, 1). Initial state of each
 * sample: h(-1) = c(-1) = 0.
 *
 *	a = Wi x(t) + bi + Wh h(t-1) + bh, cut into four of `units` each:
 *	i = sigmoid(a0)   g = tanh(a1)   f = sigmoid(a2)   o = sigmoid(a3)
 *	c(t) = f c(t-1) + i g        y(t) = h(t) = o tanh(c(t))
 *
 * Parameters: i2h_weight (4 units, c), i2h_bias (4 units), h2h_weight (4 units, units), h2h_bias (4
 * units). The order of the gates is that of MXNet's examples; PyTorch and newer parts of MXNet use
 * i, f, g, o.
 */
struct mu_lstm {
	int units;
};

/*
 * At every position y = (x - mean) / sqrt(var + eps) gamma + beta, with mean and biased variance
 * over c (Ba et al., Layer normalization, 2016). rms: y = x / sqrt(mean of x^2 + eps) gamma (Zhang
 * and Sennrich, Root mean square layer normalization, 2019), without beta. Parameters: gamma, beta
 * (c).
 */
struct mu_layer_norm {
	float eps;
	bool rms;
};

/*
 * Attention (Vaswani et al., Attention is all you need, 2017) between the steps of x (n, (heads + 2
 * kv_heads) d, steps, 1), whose channels are the queries of all heads, then the keys, then the
 * values, d each. y: (n, heads d, steps, 1). Head h uses keys and values number h kv_heads / heads.
 *
 *	w[t][s] = exp(q[t] k[s] / sqrt d) / sum over s, for all s, or for s <= t (causal)
 *	y[t]    = sum over s of w[t][s] v[s]
 *
 * rotary B > 0: queries and keys of step t are rotated first: the elements i and i + d / 2 by the
 * angle t B^(-2 i / d) (Su et al., RoFormer, 2021; the order of Llama's weights). dropout: as
 * struct mu_dropout, of the weights w; element (h steps + t) steps + s of the sample.
 */
struct mu_attention {
	int heads;
	int kv_heads; /* divides heads; 0 means heads */
	bool causal;
	float rotary;
	float dropout;
};

/* Of an input: kv, heads of keys and values; d, channels of a head; channels = (heads + 2 kv) d. */
struct mu_attention_sizes {
	size_t n, steps, heads, kv, d, channels;
};
struct mu_attention_sizes mu_attention_sizes(const struct mu_attention *a,
					     const struct mu_shape *in);

/*
 * x (n, c, h, w) becomes (n, c, steps, 1), steps = h w, in that order: y(t) = x(t) + weight[t].
 * token: one step more, before the others: y(0) = token + weight[0], y(t + 1) = x(t) + weight[t +
 * 1]. (Dosovitskiy et al., An image is worth 16x16 words, 2021.) Parameters: weight (most_steps,
 * c), token (c).
 */
struct mu_positions {
	int most_steps; /* at least the steps of y; 0 means as many */
	bool token;
};

/* y (n, c) = x(step) of x (n, c, steps, 1). */
struct mu_step {
	int step;
};

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

struct mu_param {
	const char *name;      /* owned by the net */
	struct mu_shape shape; /* plain */
	size_t n_padded;       /* set by plan */
	void *layout;          /* set by plan, private to the device, NULL = plain */
	float *data;           /* in the flat array of weights, set before bind */
	float *grad; /* in the flat array of gradients, set before bind; NULL when not training */
};

enum mu_phase { MU_PHASE_TRAIN, MU_PHASE_INFER };

/*
 * What forward of softmax found out about a prediction; all 0 for one that is not counted. Losses
 * are computed from the inputs x, -ln p[k] = ln(sum of exp(x)) - x[k], so that they are right where
 * p is rounded to 0 or 1.
 */
struct mu_prediction {
	double loss;         /* its part of the batch's */
	float cross_entropy; /* -ln p[label], also where the loss has smoothed targets */
	uint32_t place;      /* of the label: 0 is the class with the largest p; among classes of
				equal p the lowest comes first */
};

/*
 * What changes from step to step. The caller fills it before forward.
 *
 * Softmax makes one prediction per sample of (n, c), and one per position of (n, c, h, w): h * w
 * per sample, for the steps of a sequence or the pixels of an image (MXNet's multi_output). Labels
 * are plain (n) or (n, h * w), class indices 0..c-1. A prediction is counted if its sample is one
 * of the first `count` and its label is not the ignored one. Other predictions have no loss and no
 * gradient, and metrics omit them.
 *
 * Loss and gradient are sums over the counted predictions. An update divides by the number of
 * samples; for (n, c, h, w) it divides neither by h * w nor by the number of counted predictions.
 * (MXNet divides the gradient of multi_output by h * w: lr / (h * w) here equals lr there.)
 *
 * Label smoothing E: the target is (1 - E) onehot + E / c instead of onehot (Szegedy et al.,
 * Rethinking the inception architecture, 2016, section 7). MXNet's smooth_alpha A distributes over
 * the other classes only, 1 - A and A / (c - 1): E = A c / (c - 1).
 */
struct mu_batch {
	const float *labels;
	size_t count; /* samples that count; later rows have no loss and no gradient */
	bool use_ignore;
	float ignore_label;    /* with use_ignore: predictions with this label are not counted */
	float label_smoothing; /* E, 0 <= E < 1; 0 in validation */
	/* Factor of the softmax's gradient (0 means 1); the consumer of the gradients divides by
	 * it. (Micikevicius et al., Mixed precision training, 2018, section 3.2) */
	float loss_scale;
	uint64_t seed; /* for dropout */
	uint32_t epoch;
	uint64_t step;
	const uint32_t *ids; /* sample ids, one per sample, for dropout; NULL: 0, 1, 2, ... */
	/* In the memory of a device that has its own: the labels; the epoch followed by one id per
	 * sample. NULL: operations copy what they need. */
	const float *device_labels;
	const uint32_t *device_draws;
	/*
	 * Output of softmax's forward: what training minimises, the sum over the counted
	 * predictions of -sum over k of target[k] ln p[k]. Without smoothing this is the
	 * cross-entropy of the labels, -ln p[label].
	 */
	double loss;
	/* The same of each label, in order; valid until backward or the next forward. */
	const struct mu_prediction *predictions;
};

float mu_batch_loss_scale(const struct mu_batch *batch); /* 1 for 0 */

#define MU_MAX_PARAMS 4 /* of one layer; auxiliary arrays are counted separately */

struct mu_device;

/*
 * Algorithm of a convolution. Winograd's F(4x4, 3x3) computes 3x3 convolutions of stride 1 with
 * fewer multiplications and rounds differently (Lavin and Gray, Fast algorithms for convolutional
 * neural networks, 2016). GEMM is a matrix product over unrolled windows (Chellapilla, Puri and
 * Simard, High performance convolutional neural networks for document processing, 2006). AUTO: a
 * fixed rule chooses the faster algorithm for each phase. ENGINE + k, with k below
 * MU_CONVOLUTION_ENGINES: number k of the kernels that cuDNN lists for this convolution in half
 * precision, all direct.
 */
enum mu_convolution_algorithm {
	MU_CONVOLUTION_AUTO,
	MU_CONVOLUTION_DIRECT,
	MU_CONVOLUTION_WINOGRAD,
	MU_CONVOLUTION_GEMM,
	MU_CONVOLUTION_ALGORITHMS,
	MU_CONVOLUTION_ENGINE = 16
};
enum { MU_CONVOLUTION_ENGINES = 40 };
enum mu_convolution_phase {
	MU_CONVOLUTION_FORWARD,
	MU_CONVOLUTION_DATA,    /* gradient of the input */
	MU_CONVOLUTION_WEIGHTS, /* gradient of weights and bias */
	MU_CONVOLUTION_PHASES
};

#define MU_CONVOLUTION_NAME 64 /* bytes of a layer's name in a choice */

/* Algorithms of the convolution of this name. */
struct mu_convolution_choice {
	char layer[MU_CONVOLUTION_NAME];
	enum mu_convolution_algorithm algorithms[MU_CONVOLUTION_PHASES];
};

const char *mu_convolution_algorithm_name(enum mu_convolution_algorithm algorithm);
/* Parse "winograd", "engine7" and so on; MU_ERR_USAGE with the list for an unknown name. */
enum mu_status mu_convolution_algorithm_find(enum mu_convolution_algorithm *out, const char *name);

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

	/*
	 * Set by the net before plan, where allowed.
	 *
	 * in_place: the output shares the input's memory (data and grad; of a split and a sum only
	 * data, of a sum the first input's; of a softmax, whose plan may clear it, also the
	 * gradient of the input).
	 *
	 * fused_activation: forward applies it to the output; backward receives the gradient after
	 * the activation and first undoes the activation. Allowed for convolution, fully connected,
	 * sum, and batch-norm (ReLU only; with one input its backward does not read the output).
	 * NULL: none. `undone`: the reader of the output has undone the activation already. That
	 * reader is a split whose `undoes` is that activation, a ReLU: the split's input gradient
	 * is the gradient before the activation.
	 *
	 * shared_grads of a sum, and of a batch-norm with an addend: bit i is set if the gradient
	 * of input i may use the memory of the output's gradient, which saves a copy. plan clears
	 * bits that the device does not support.
	 *
	 * branches of a batch-norm with an addend and a ReLU that a split undoes: the two outputs
	 * of that split. Backward of the batch-norm then sets the output's gradient to the sum of
	 * theirs, before the ReLU; it may lie where the first one does. plan clears it where the
	 * device does not do so. `joined`, of that split, set after plan: its backward does
	 * nothing.
	 */
	bool in_place, undone, joined;
	const struct mu_activation *fused_activation, *undoes;
	unsigned shared_grads;
	struct mu_tensor **branches;
	/* A batch-norm alone reads the output: a device may write sums for it (sums_at). A softmax
	 * in place alone reads it: the device may choose its layout. */
	bool feeds_norm, feeds_softmax;
	/* Batch-norm and sum: between forward and backward the memory of the output is reused, and
	 * `restore` computes the output again. */
	bool restored;
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
	/* backward leaves the gradients of parameters to backward_weights. Set by the net before
	 * plan; plan clears it if backward computes all gradients. */
	bool weights_later;

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

/* ---- layers defined by users ---- */

/*
 * A layer that the library lacks: three functions in a const struct mu_layer_ops, added to a net by
 * mu_net_custom (net.h), from a program or from a model file. jobs/examples/prelu.c is a complete
 * example. It runs on every device. The layer's arrays are always plain: the device converts its
 * layouts before and after forward and backward, in steps that it plans once. Such a layer is never
 * fused with its neighbours, moved, or run in place.
 *
 * Ownership: the library owns all arrays and the workspace. A layer allocates nothing and stores
 * nothing between calls except in its workspace. The struct mu_layer is valid during the call.
 * Calls for one device come one at a time from one thread; calls for several devices of a rank come
 * concurrently from several threads, so a layer must not write static data. forward and backward
 * may use threads of their own.
 */
#define MU_MAX_LAYER_INPUTS 4

struct mu_layer_array {
	struct mu_shape shape; /* inputs and output: (n, c, h, w) or (n, c), n the batch */
	float *data;           /* 64-byte aligned; NULL in shape */
	float *grad;           /* NULL if not wanted: always in shape and forward */

	/* Of parameters only, set by shape: the key is called <layer>_<suffix>. */
	const char *suffix; /* a string literal, or a string in attr */
	float initial; /* initial value of every element, unless the suffix has a rule: see below */
};

struct mu_layer {
	const char *name; /* "prelu0" */
	const void *attr; /* the net's copy of the attributes given to mu_net_custom; NULL if there
			     are none */
	enum mu_phase phase;
	int n_inputs, n_params;
	struct mu_layer_array inputs[MU_MAX_LAYER_INPUTS];
	struct mu_layer_array output;
	struct mu_layer_array params[MU_MAX_PARAMS];
	size_t workspace_nbytes;
	void *workspace; /* 64-byte aligned; kept from forward to backward of the same step */
	const struct mu_batch *batch; /* NULL in shape */
};

/* Each function returns MU_OK or an error, preferably by MU_FAIL with a message (base.h). The error
 * climbs to the caller and ends the job with that message. */
struct mu_layer_ops {
	const char *name; /* "prelu": for automatic names (prelu0, prelu1) and the summary */
	/*
	 * Check n_inputs, inputs[].shape, attr and phase; set output.shape, n_params,
	 * params[].suffix, params[].shape (1 to 4 dimensions), params[].initial and
	 * workspace_nbytes. Called when the net is built, with n = 1, and again for every plan with
	 * its batch. Only n of the output, which equals the n of the inputs, and the workspace may
	 * differ between these calls.
	 *
	 * Suffixes with a rule: "weight" is initialised by --initializer (fan-in is dimension 1
	 * times the dimensions after it) and decayed by --wd; "gamma" starts at 1 and is decayed
	 * unless --wd-gamma 0; "bias" and "beta" start at 0. All others start at `initial` and are
	 * not decayed.
	 */
	enum mu_status (*shape)(struct mu_layer *layer);
	/* Compute output.data from inputs[].data and params[].data. Write every element. */
	enum mu_status (*forward)(struct mu_layer *layer);
	/*
	 * Compute from output.grad: inputs[].grad, where it is not NULL, and params[].grad, summed
	 * over the batch. Overwrite every element; do not add. inputs[].data, output.data,
	 * params[].data and the workspace are unchanged since forward. Training only.
	 */
	enum mu_status (*backward)(struct mu_layer *layer);
};

/* The attributes of MU_OP_CUSTOM. */
struct mu_custom {
	const struct mu_layer_ops *ops; /* must outlive the net */
	const void *attr;               /* settings of this layer, or NULL */
	size_t attr_nbytes;
};

/* Call ops->shape and check the result. MU_ERR_ARGUMENT with the reason. */
enum mu_status mu_layer_shape(struct mu_layer *layer, const struct mu_layer_ops *ops);

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
	/* Measure the limits, in a third of a second. NULL: unknown. */
	enum mu_status (*measure)(struct mu_device *device, struct mu_device_limits *limits);
};

struct mu_device {
	const struct mu_device_ops *ops;
	int index;     /* 1 in "cpu:1" */
	int n_threads; /* threads that this device may use */
	/* AUTO when opened. The caller may change it before the first plan. Where the device has no
	 * such kernel it chooses as for AUTO. */
	enum mu_convolution_algorithm algorithm;
	/* Choices for single convolutions; they override `algorithm`. Owned by the caller. */
	const struct mu_convolution_choice *choices;
	size_t n_choices;
	/* Attention by one kernel each way, which never writes scores to memory, where the device
	 * has it; false when opened. Other bits, in the same bounds. */
	bool fused_attention;
	/*
	 * Number type of the operands of convolutions and fully connected layers and of tensors
	 * between operations: float32 when opened, or as set by mu_device_set_dtype. Always
	 * float32: parameters and their gradients, statistics, outputs of fully connected layers,
	 * the softmax, all that callers read, and the accumulation of products.
	 */
	enum mu_dtype dtype;
	/*
	 * Products of float32, also in convolutions and LSTM, may have their factors rounded to
	 * TF32: float32's range, 10 bits of mantissa. Sums stay float32. False when opened. The
	 * caller may change it before the first plan, on devices whose kind has_tf32; the others
	 * ignore it.
	 */
	bool allow_tf32;
	void *impl;
};

/* NULL-terminated list of the devices in this build, in order of preference. */
extern const struct mu_device_ops *const mu_device_table[];

/* name: "cpu", "cpu:0", "ref"; NULL = the first of the table. Unknown: MU_ERR_USAGE with the list.
 * Not collective. */
enum mu_status mu_device_open(struct mu_device *device, const char *name, int n_threads);
void mu_device_close(struct mu_device *device);
/*
 * Algorithms requested for the convolution of this name: its choice, else the device's algorithm.
 */
void mu_convolution_requested(const struct mu_device *device, const char *layer,
			enum mu_convolution_algorithm out[MU_CONVOLUTION_PHASES]);
/* Call before the first plan. MU_ERR_UNSUPPORTED: the device or this machine cannot use the type;
 * the message says why. */
enum mu_status mu_device_set_dtype(struct mu_device *device, enum mu_dtype dtype);
/* Set only ops and index from a name. Same errors as mu_device_open. */
enum mu_status mu_device_find(struct mu_device *device, const char *name);
/* Can a device of this kind be opened on this machine? If not, `why` holds the reason. */
bool mu_device_is_here(const struct mu_device_ops *ops, char *why, size_t nbytes);

MU_END_C

#endif
