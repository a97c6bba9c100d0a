/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: what computes; the attributes of layers; and layers that users define. How a device runs
 * operations is private to the library: src/device/op.h.
 *
 * Shapes are (n, c), (n, c, h, w) or (n, c, d, h, w); n is the batch, the axes after c are space:
 * height and width, in volumes depth before them. One axis of space is (n, c, w, 1). Weights of a
 * convolution are (filters, c / groups, kh, kw), in volumes with kd before kh, of a fully connected
 * layer (units, features): y = x W' + b. "Plain" means this order, dense, float32.
 *
 * Gradients are gradients of the sum of the samples' losses, not of the mean.
 */
#ifndef MUSTER_DEVICE_H
#define MUSTER_DEVICE_H

#include <muster/base.h>
#include <muster/shape.h>

MU_BEGIN_C

/* ---- attributes of layers: the settings of each kind ---- */

/* Of windows: a number for each axis of space of the input, (height, width) or (depth, height,
 * width). An axis without a kernel is as the one before it: {5, 5} reads volumes, too. Output
 * size: floor((size + 2 pad - dilate (kernel - 1) - 1) / stride) + 1. */
struct mu_convolution {
	int filters;
	int kernel[MU_MAX_SPACE], pad[MU_MAX_SPACE];
	int stride[MU_MAX_SPACE], dilate[MU_MAX_SPACE]; /* 0 means 1 */
	int groups;                                     /* 0 means 1 */
	bool no_bias;
};

/*
 * Transposed convolution (Zeiler et al., Deconvolutional networks, 2010): y is made of x as the
 * gradient of a convolution's input is made of that of its output, plus a bias. Weights are
 * (channels of x, filters / groups, kernel...), as PyTorch's. Output size: (size - 1) stride - 2
 * pad + dilate (kernel - 1) + extra + 1, where extra, less than the stride, chooses between sizes
 * that the convolution brings to the same one (PyTorch's output_padding, MXNet's adj).
 */
struct mu_deconvolution {
	int filters;
	int kernel[MU_MAX_SPACE], pad[MU_MAX_SPACE], extra[MU_MAX_SPACE];
	int stride[MU_MAX_SPACE], dilate[MU_MAX_SPACE]; /* 0 means 1 */
	int groups;                                     /* 0 means 1 */
	bool no_bias;
};

/*
 * By axis from n to m elements: m is `size`, or n `scale`. Nearest: y[o] = x[floor(o n / m)].
 * Linear: y[o] is between the two elements around (o + 1/2) n / m - 1/2, or with align_corners
 * around o (n - 1) / (m - 1), x[0] before the first; of several axes the product of their weights.
 */
struct mu_upsampling {
	bool linear; /* else nearest */
	bool align_corners;
	int scale[MU_MAX_SPACE]; /* 0 means 1 */
	int size[MU_MAX_SPACE];  /* 0: by scale */
};

/* Elements of this value before and after each axis of space; negative numbers cut as many off. */
struct mu_pad {
	int before[MU_MAX_SPACE], after[MU_MAX_SPACE];
	float value;
};

/* `size` elements of each axis of space from `start` on. */
struct mu_crop {
	int start[MU_MAX_SPACE], size[MU_MAX_SPACE];
};

struct mu_fully_connected {
	int units;
	bool no_bias;
};

/*
 * GELU(x) = x / 2 (1 + erf(x / sqrt 2)); GELU_TANH approximates it by x / 2 (1 + tanh(sqrt(2 / pi)
 * (x + 0.044715 x^3))), as GPT-2 does (Hendrycks and Gimpel, Gaussian error linear units, 2016).
 * SiLU(x) = x sigmoid(x). With the parameter p (0 means the default):
 *	LEAKY_RELU(x) = max(x, 0) + p min(x, 0), p = 0.01 (Maas et al., 2013)
 *	ELU(x) = x above 0, else p (e^x - 1), p = 1 (Clevert et al., 2016)
 *	SOFTPLUS(x) = ln(1 + e^(p x)) / p, p = 1
 *	SCALED_TANH(x) = p tanh(x), p = 1
 */
enum mu_activation_kind {
	MU_ACTIVATION_RELU,
	MU_ACTIVATION_TANH,
	MU_ACTIVATION_SIGMOID,
	MU_ACTIVATION_GELU,
	MU_ACTIVATION_GELU_TANH,
	MU_ACTIVATION_SILU,
	MU_ACTIVATION_LEAKY_RELU,
	MU_ACTIVATION_ELU,
	MU_ACTIVATION_SOFTPLUS,
	MU_ACTIVATION_SCALED_TANH,
	MU_ACTIVATION_N,
};

struct mu_activation {
	enum mu_activation_kind kind;
	float parameter; /* p; 0 where there is none */
};
/* Does its gradient need the input? */
bool mu_activation_is_smooth(enum mu_activation_kind kind);

/*
 * Losses by element. A sample has as many targets t, finite numbers, as elements x; its loss is the
 * mean over them. y, the output, is x, or with LOGISTIC the probability 1 / (1 + e^-x).
 */
enum mu_element_form {
	MU_ELEMENT_SQUARED,  /* (x - t)^2 */
	MU_ELEMENT_ABSOLUTE, /* |x - t|, with the slope 0 at 0 */
	/* (x - t)^2 / 2 where |x - t| <= delta, else delta (|x - t| - delta / 2) (Huber, Robust
	 * estimation of a location parameter, 1964) */
	MU_ELEMENT_HUBER,
	/* Binary cross-entropy of x, the logit, with 0 <= t <= 1: -t ln y - (1 - t) ln(1 - y) =
	 * max(x, 0) - x t + ln(1 + e^-|x|) */
	MU_ELEMENT_LOGISTIC,
	MU_ELEMENT_N,
};

struct mu_element_loss {
	enum mu_element_form form;
	float delta; /* of HUBER; 0 in a net: 1 */
};

/*
 * Dice by region. p = softmax(x) along c; t, one-hot, of the labels (struct mu_batch). A sample's
 * loss is the mean over the classes of 1 - (2 sum p t + smooth) / (sum p + sum t + smooth), with
 * sums over its positions that are not ignored. (Milletari, Navab and Ahmadi, V-Net, 2016, with
 * the plain sums below of later libraries.)
 */
struct mu_region_loss {
	float smooth; /* above 0 */
};

/* Average pooling divides by the kernel's area, zero padding included. A window that `ceil` extends
 * beyond the padding is clipped to the padding. */
struct mu_pooling {
	bool average; /* else maximum; padding is never the maximum */
	bool global;  /* kernel = input, stride 1, pad 0 */
	bool ceil;    /* output size rounds up instead of down */
	int kernel[MU_MAX_SPACE], stride[MU_MAX_SPACE], pad[MU_MAX_SPACE];
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
 * y = (x - mean) / sqrt(var + eps) gamma + beta, with mean and biased variance over a sample's
 * channels of a group and all their positions (Wu and He, Group normalization, 2018); groups 0:
 * each channel is one (Ulyanov et al., Instance normalization, 2016). Parameters: gamma, beta (c).
 */
struct mu_group_norm {
	float eps;
	int groups; /* divides c */
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

/* ---- a batch ---- */

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
 * per sample, d * h * w of a volume, for the steps of a sequence or the pixels of an image (MXNet's
 * multi_output). Labels are plain (n) or (n, h * w), class indices 0..c-1. A prediction is counted
 * if its sample is one of the first `count` and its label is not the ignored one. Other predictions
 * have no loss and no gradient, and metrics omit them.
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
	/* Of a loss of classes: factors w[k] of the target, one each; NULL: 1. The loss of a
	 * prediction is then -sum over k of w[k] target[k] ln p[k]. */
	const float *class_weights;
};

#define MU_MAX_HEADS 8 /* losses of one net: mu_net_losses */
#define MU_MAX_PARAMS 4 /* of one layer; auxiliary arrays are counted separately */

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
	struct mu_shape shape; /* inputs and output: as above, n the batch */
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
	double *losses; /* of a struct mu_custom_loss: one a sample, 0 before forward; else NULL */
};

/* Each function returns MU_OK or an error, preferably by MU_FAIL with a message (base.h). The error
 * climbs to the caller and ends the job with that message. */
struct mu_layer_ops {
	const char *name; /* "prelu": for automatic names (prelu0, prelu1) and the summary */
	/*
	 * Check n_inputs, inputs[].shape, attr and phase; set output.shape, n_params,
	 * params[].suffix, params[].shape (1 to MU_MAX_DIMS dimensions), params[].initial and
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

/* The attributes of such a layer. */
struct mu_custom {
	const struct mu_layer_ops *ops; /* must outlive the net */
	const void *attr;               /* settings of this layer, or NULL */
	size_t attr_nbytes;
};

/*
 * A loss of your own, the last layer of a net: struct mu_loss (metrics.h) and a layer with one
 * input. jobs/examples/focal.c is a complete example.
 *
 * shape may be NULL: the output has the input's shape, which a loss of classes needs. Targets are
 * batch->labels: of classes one at each position of the output, from 0 to c - 1; else one for each
 * of its elements. forward sets the output, what --predict writes (probabilities of the classes;
 * values), and losses[s] of each sample s. backward sets the gradient of the sum of these losses;
 * output.grad is NULL. Samples from batch->count on have labels that mean nothing, and what forward
 * and backward set of them is not used, nor do they know of loss_scale.
 */
struct mu_loss; /* metrics.h */
struct mu_custom_loss {
	struct mu_custom layer;
	const struct mu_loss *loss; /* must outlive the net */
	bool of_classes;            /* as the loss says, set by mu_net_custom_loss */
};

/* ---- devices ---- */

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

struct mu_device_ops; /* src/device/op.h */

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

/* name: "cpu", "cpu:0", "ref"; NULL = the first of the table. Unknown: MU_ERR_USAGE with the list.
 * Not collective. */
enum mu_status mu_device_open(struct mu_device *device, const char *name, int n_threads);
void mu_device_close(struct mu_device *device);
/* Call before the first plan. MU_ERR_UNSUPPORTED: the device or this machine cannot use the type;
 * the message says why. */
enum mu_status mu_device_set_dtype(struct mu_device *device, enum mu_dtype dtype);
/* Set only ops and index from a name. Same errors as mu_device_open. */
enum mu_status mu_device_find(struct mu_device *device, const char *name);
MU_END_C

#endif
