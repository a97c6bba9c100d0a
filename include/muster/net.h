/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net: a network as a list of layers, and its plan for one device.
 *
 * A network is built by one call per layer; calls take and return tensor numbers. After the first
 * error later calls have no effect, and mu_net_new returns that error, so models need no error
 * handling. See nets/lenet.c.
 *
 *	const struct mu_convolution conv = {.filters = 20, .kernel = {5, 5}};
 *
 *	int x = mu_net_input(net);
 *	x = mu_net_convolution(net, x, &conv, NULL);
 *	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
 *	...
 *	mu_net_softmax(net, x, "softmax");
 *
 * With name NULL a layer gets MXNet's automatic name, "convolution0". Parameters are <name>_weight,
 * _bias, _gamma, _beta; auxiliary values <name>_moving_mean, _moving_var. Keys number the
 * parameters in order of first use, then the auxiliary arrays.
 *
 * A plan is a net compiled for a device, a batch size and a phase: layouts, kernels, fusions, and
 * one arena in which activations share memory by lifetime. Executing a plan allocates nothing.
 */
#ifndef MUSTER_NET_H
#define MUSTER_NET_H

#include <muster/base.h>
#include <muster/device.h>

MU_BEGIN_C

struct mu_net;

/*
 * What backward computes again instead of keeping it in memory; results are the same. AUTO: in
 * float32 batch-norms and sums. ATTENTION: besides, whatever the type, what costs little:
 * attention, layer normalisation, smooth activations. ALL: all but sums, so that a residual
 * network keeps its sums only.
 */
enum mu_recompute {
	MU_RECOMPUTE_AUTO,
	MU_RECOMPUTE_NONE,
	MU_RECOMPUTE_ATTENTION,
	MU_RECOMPUTE_ALL,
	MU_RECOMPUTE_N,
};

struct mu_net_config {
	const char *network; /* "lenet" */
	size_t shape[3];     /* of one sample: c, h, w */
	size_t classes;
	long num_layers; /* 0 = the network's default */
	/* For networks that read sequences or have heads of attention; 0, or dropout_given false:
	 * the network's default. */
	size_t hidden, embed, heads, positions;
	enum mu_recompute recompute;
	bool padded; /* number 0 is no word, but fills sequences up: it is not to be predicted */
	bool dropout_given;
	bool untied; /* the output of a transformer of text has weights of its own */
	float dropout;
	float norm_eps; /* of layer norms; 0: the network's own */
};

/* Images of at most this height are small: MNIST's and CIFAR's. */
enum { MU_SMALL_IMAGE = 32 };

/* What trains a network where no option says otherwise. 0: the trainer's own default; pad: none. */
struct mu_training {
	double lr;  /* of sgd with momentum 0.9, in steps of batch samples */
	long batch; /* samples per worker and step */
	long pad;   /* pixels around training images before a random crop */
};

/* A network is one file with one exported const table. */
struct mu_network {
	const char *name;
	const char *help;
	size_t shape[3]; /* default input shape (c, h, w), if the data does not define one */
	size_t classes;
	bool has_depths;         /* accepts num_layers */
	bool reads_sequences;    /* of word numbers, (n, 1, steps, 1); accepts hidden, embed,
				    dropout */
	bool has_heads;          /* accepts hidden, heads, dropout */
	struct mu_training training;       /* say where the figures come from */
	struct mu_training training_small; /* of small images, if that differs */
	const char *initializer; /* meaning of --initializer default; NULL = gaussian, in, 2 */
	enum mu_status (*build)(struct mu_net *net, const struct mu_net_config *config);
};

extern const struct mu_network *const mu_network_table[]; /* NULL-terminated; nets/table.c */

/* '_' reads as '-', capitals as small letters. MU_ERR_USAGE for an unknown name, with the network
 * and depth that are meant ("resnet50"), else with the list. A name that contains '/' or ends in
 * ".so" is a file: see mu_network_load. */
enum mu_status mu_network_find(const struct mu_network **out, const char *name);
/* What is meant by "inceptionv3", or by a name with the depth in it, as other programs have them:
 * "resnet50", "vgg16_bn", "resnext50_32x4d". NULL: no network; *depth 0: the name says none. */
const struct mu_network *mu_network_guess(const char *name, long *depth);

/* ---- a network in its own file ---- */

/*
 * A user's model is one C file: a build function, a struct mu_network like those of nets/, and at
 * the end
 *
 *	MU_NETWORK_EXPORT(network);
 *
 * which defines the file's only exported symbol. Compiled to a shared object, outside Muster's
 * source,
 *
 *	cc -shared -fPIC $(pkg-config --cflags muster) mynet.c -o mynet.so
 *
 * it is loaded by `trainer --network ./mynet.so`. It may call all functions of base.h, device.h and
 * net.h, and define layers by struct mu_layer_ops (device.h). jobs/examples/mynet.c and prelu.c are
 * complete examples. Every rank loads the file, so every node needs it. A checkpoint holds the
 * network's name, not the file's.
 *
 * MU_ABI is the version of the binary interface. It is raised whenever a struct or function that
 * such a file uses changes, and checked before anything else in the file is read.
 */
#define MU_ABI 8

struct mu_network_export {
	int abi; /* first, and an int, in all versions */
	const struct mu_network *network;
};

#define MU_NETWORK_EXPORT(network) \
	extern const struct mu_network_export mu_network_export \
		__attribute__((visibility("default"))); \
	const struct mu_network_export mu_network_export = {MU_ABI, &(network)}

/*
 * Load such a file; it stays loaded until the process ends. A path without '/' is relative to the
 * working directory. MU_ERR_IO: the file cannot be read. MU_ERR_FORMAT: not a shared object, a
 * symbol that this library lacks, not a model, another MU_ABI, or an incomplete struct mu_network.
 * Not collective.
 */
enum mu_status mu_network_load(const struct mu_network **out, const char *path);

/* Build the network that config names. */
enum mu_status mu_net_new(struct mu_net **out, const struct mu_net_config *config);
/* The same for a network that need not be in the table; config->network is not read. */
enum mu_status mu_net_new_from(struct mu_net **out, const struct mu_network *network,
			       const struct mu_net_config *config);
void mu_net_free(struct mu_net *net);

/* ---- for definitions of networks ---- */

/* Prefix of explicit layer names from now on, such as "stage1_unit2_". Automatic names have no
 * prefix. */
void mu_net_prefix(struct mu_net *net, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Group of the layers from now on, such as "stage2". --group2dev assigns groups to devices. A layer
 * without a group belongs to the group before it. At most 31 characters. */
void mu_net_group(struct mu_net *net, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Note what build chose: "stem for images of height <= 32". One line; replaces an earlier note. */
void mu_net_note(struct mu_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The depth that the network builds, which it chose if num_layers is 0. */
void mu_net_set_depth(struct mu_net *net, long depth);
/* Index of config->num_layers in depths[n]; num_layers 0 is depths[0]. MU_ERR_USAGE with the list
 * if it is not there. */
enum mu_status mu_net_find_depth(const struct mu_net_config *config, const int *depths, size_t n,
				 size_t *found);

/* ---- layers: each returns the number of its output tensor, or -1 after an error ---- */

int mu_net_input(struct mu_net *net);
int mu_net_convolution(struct mu_net *net, int in, const struct mu_convolution *attr,
		       const char *name);
int mu_net_fully_connected(struct mu_net *net, int in, const struct mu_fully_connected *attr,
			   const char *name);
int mu_net_activation(struct mu_net *net, int in, enum mu_activation_kind kind, const char *name);
int mu_net_pooling(struct mu_net *net, int in, const struct mu_pooling *attr, const char *name);
int mu_net_flatten(struct mu_net *net, int in, const char *name);
int mu_net_dropout(struct mu_net *net, int in, float p, const char *name);
int mu_net_batch_norm(struct mu_net *net, int in, const struct mu_batch_norm *attr,
		      const char *name);
int mu_net_lrn(struct mu_net *net, int in, const struct mu_lrn *attr, const char *name);
int mu_net_sum(struct mu_net *net, int n, const int *ins, const char *name);
int mu_net_concat(struct mu_net *net, int n, const int *ins, const char *name);
/* For sequences (n, c, h, 1): see struct mu_embedding and struct mu_lstm in device.h. A fully
 * connected layer per step, such as the last one, is a 1 x 1 convolution. */
int mu_net_embedding(struct mu_net *net, int in, const struct mu_embedding *attr, const char *name);
int mu_net_lstm(struct mu_net *net, int in, const struct mu_lstm *attr, const char *name);
/* For transformers: struct mu_layer_norm, mu_attention, mu_positions and mu_step in device.h. */
int mu_net_layer_norm(struct mu_net *net, int in, const struct mu_layer_norm *attr,
		      const char *name);
int mu_net_attention(struct mu_net *net, int in, const struct mu_attention *attr, const char *name);
int mu_net_positions(struct mu_net *net, int in, const struct mu_positions *attr, const char *name);
int mu_net_step(struct mu_net *net, int in, int step, const char *name);
/*
 * The weight of the layer added last, a convolution or a fully connected layer, is that of an
 * embedding before it with as many elements: one key, whose gradient is the sum of both (Press and
 * Wolf, Using the output embedding to improve language models, 2017). Both are then on one device.
 */
void mu_net_tie(struct mu_net *net, const char *weight); /* "wte_weight" */
/* The weight of the layer added last begins as this many times what the initializer draws. */
void mu_net_scale_initial(struct mu_net *net, float factor);
/*
 * A layer defined by the user, with n inputs: see struct mu_layer_ops in device.h. attr is copied.
 * name NULL: the kind's name and a number, "prelu0".
 *
 *	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &prelu}, NULL);
 */
int mu_net_custom(struct mu_net *net, int n, const int *ins, const struct mu_custom *custom,
		  const char *name);
/* The last layer: (n, classes), or (n, classes, h, w) with one label for each of the h * w
 * positions. */
void mu_net_softmax(struct mu_net *net, int in, const char *name);
/* Predictions with this label are ignored: no loss, no gradient, not counted. For the padding of
 * sequences. MXNet's use_ignore and ignore_label. */
void mu_net_ignore_label(struct mu_net *net, float label);

/* ---- properties of a net ---- */

/* params: learnable parameters, in elements; arrays: arrays of them; aux: auxiliary values; macs:
 * multiply-adds of convolutions and fully connected layers. */
struct mu_net_counts {
	size_t params, arrays, aux, layers;
	double macs; /* per sample, forward */
};
void mu_net_counts(const struct mu_net *net, struct mu_net_counts *counts);
/* Labels per sample: 1, or h * w for a softmax input of (n, classes, h, w). */
size_t mu_net_labels(const struct mu_net *net);
/* num_layers, or the depth that the network chose; 0: it says none. */
long mu_net_depth(const struct mu_net *net);
/* Heads of the first attention layer; 0: there is none. */
int mu_net_heads(const struct mu_net *net);
/* The text of mu_net_note, "" if there is none. */
const char *mu_net_notes(const struct mu_net *net);

/* ---- plan ---- */

struct mu_plan;

/* like: a plan of the same net and device whose parameter layouts the new plan uses, so that both
 * can share flat arrays; or NULL. */
enum mu_status mu_plan_new(struct mu_plan **out, const struct mu_net *net, struct mu_device *device,
			   size_t batch, enum mu_phase phase, const struct mu_plan *like);
/* The same without memory for activations: for summaries and mu_plan_arena_bytes. mu_plan_allocate
 * completes it. */
enum mu_status mu_plan_new_dry(struct mu_plan **out, const struct mu_net *net,
			       struct mu_device *device, size_t batch, enum mu_phase phase,
			       const struct mu_plan *like);
enum mu_status mu_plan_allocate(struct mu_plan *plan);
/* Allocate in the memory of another plan, where that is large enough. Only one of the two plans may
 * run at a time; free the owner last. */
enum mu_status mu_plan_allocate_in(struct mu_plan *plan, const struct mu_plan *owner);
void mu_plan_free(struct mu_plan *plan);

/*
 * Slices of the flat arrays, parameters then auxiliary values; number of elements of a flat array.
 */
const struct mu_slice *mu_plan_slices(const struct mu_plan *plan, size_t *n_slices);
size_t mu_plan_n(const struct mu_plan *plan);
/* Hash of the layout of the flat arrays. Ranks with equal hashes have (almost certainly) equal
 * layouts. */
uint64_t mu_plan_hash(const struct mu_plan *plan);
/* Hash of the names, plain shapes and rules of all parameters: the same on every device. */
uint64_t mu_plan_structure_hash(const struct mu_plan *plan);
size_t mu_plan_arena_bytes(const struct mu_plan *plan);

/*
 * For a plan for inference of one step of a sequence, or some, of a network whose layers need other
 * steps for causal attention and positions only: remember up to `most` steps. Forward works on the
 * steps from number `steps`, from 0, and reads what it remembers of the steps before.
 * MU_ERR_UNSUPPORTED: the device or a layer cannot. The memory goes with the plan; `share` lets
 * another plan of the same network, of more steps at once, use that of `of`, which must outlive it.
 */
enum mu_status mu_plan_remember(struct mu_plan *plan, size_t most);
enum mu_status mu_plan_share_past(struct mu_plan *plan, const struct mu_plan *of);
void mu_plan_set_past(struct mu_plan *plan, size_t steps);

/* ---- parts of a plan: a net on several devices ---- */

/*
 * A net can be cut into parts of consecutive layers, each a plan on its own device. Keys are those
 * of the whole plan: a part uses the same flat arrays, in the slices of its layers. The layers are
 * also those of the whole plan, fusions included; a part numbers its layers from 0.
 *
 * A part is used like a plan, except that the caller copies values between parts: values that other
 * parts computed before forward, gradients of the part's own outputs before backward:
 *
 *	mu_plan_receive(b, a);
 *	... forward of b's layers, and backward ...
 *	mu_plan_return(b, a);
 *
 * Nothing else may use a part between the end of its forward and its backward.
 */
struct mu_plan_part {
	const struct mu_net *net;
	struct mu_device *device; /* of the same kind as the whole plan's */
	size_t batch;
	enum mu_phase phase;
	const struct mu_plan *whole;   /* of this net, or of one with the same layers and keys */
	size_t first, n;               /* its layers, numbered as in the whole plan */
	struct mu_plan *const *before; /* n_before parts that compute all values that it reads */
	size_t n_before;
	bool of_block; /* part of a time block: see mu_plan_join */
	/* For time blocks, except for the first part made: that first part. It must be allocated
	 * before this one runs, and outlive it. */
	const struct mu_plan *first_block;
};
/* The part is dry until mu_plan_allocate or mu_plan_allocate_in. */
enum mu_status mu_plan_new_part(struct mu_plan **out, const struct mu_plan_part *part);
/* Copy the values that `from` computes and `part` reads. Both work on the same samples. Any parts
 * that were made for the same layers and batch may be combined. */
enum mu_status mu_plan_receive(struct mu_plan *part, const struct mu_plan *from);
/* Copy back their gradients, after backward of `part`. */
enum mu_status mu_plan_return(const struct mu_plan *part, struct mu_plan *to);
/*
 * Wait until the part's device is idle. For asynchronous devices, needed: before another part
 * receives what this one computed; after mu_plan_receive; and after mu_plan_return, before the part
 * that received gradients continues.
 */
enum mu_status mu_plan_finish(struct mu_plan *part);
/*
 * The same transfer through bytes, for a part in the memory of another rank: the values that `from`
 * computes and `to` reads, or with `gradients` their gradients in the other direction. Only the
 * plan that the bytes come from needs memory for _pack, only the one they go to for _unpack. Done
 * on return.
 */
size_t mu_plan_pack_nbytes(const struct mu_plan *from, const struct mu_plan *to, bool gradients);
enum mu_status mu_plan_pack(struct mu_plan *from, struct mu_plan *to, bool gradients, void *bytes);
enum mu_status mu_plan_unpack(struct mu_plan *from, struct mu_plan *to, bool gradients,
			      const void *bytes);

/*
 * Time blocks: a net of k steps processes longer sequences block by block, each with its own part;
 * forward in the order of the blocks, backward in the reverse order. Before forward of a block its
 * part is joined to the parts of the blocks before and after it, of the same layers; they keep
 * their values until its backward is done. LSTMs start with their final state of the block before,
 * and get the gradient of their final state from the block after. NULL: no such block. Dropout
 * draws other masks for each number `block`.
 */
void mu_plan_join(struct mu_plan *part, size_t block, const struct mu_plan *before,
		  const struct mu_plan *after);
/*
 * In a part of a time block, a layer with mu_plan_weights_later leaves the gradients of its
 * parameters to mu_plan_backward_weights, which does nothing for other layers. Call it after
 * backward of the part and before the end of the step, blocks in the same order; no other part
 * depends on it.
 */
bool mu_plan_weights_later(const struct mu_plan *part, size_t l);
enum mu_status mu_plan_backward_weights(struct mu_plan *part, size_t l);
/* MU_ERR_USAGE: the net has no LSTM, or a layer other than an LSTM that combines several steps. */
enum mu_status mu_net_check_blocks(const struct mu_net *net);

/* A tensor that passes from a layer to a later one, sizes for the whole batch; sorted by the
 * reading layer. */
struct mu_plan_edge {
	size_t from, to;
	size_t nbytes, gradient_nbytes; /* forward; backward, 0 if no gradient is needed */
};
/* *edges: a new array, freed by mu_free. */
enum mu_status mu_plan_edges(const struct mu_plan *plan, struct mu_plan_edge **edges, size_t *n);
/* Group of a layer, "" if the net has none. */
const char *mu_plan_layer_group(const struct mu_plan *plan, size_t l);

/* ---- execution ---- */

/* Set the flat arrays (gradients NULL for MU_PHASE_INFER). Once, before execution. */
enum mu_status mu_plan_bind(struct mu_plan *plan, float *weights, float *gradients);
/* Before mu_plan_bind, on devices that work in host memory: key k's gradients begin at element
 * places[k], kept by the caller, and not at its slice. NULL: at the slice. */
void mu_plan_set_places(struct mu_plan *plan, const size_t *places);
/*
 * The same, but layers whose kernels can add (mu_plan_adds; none with a loss scale) add their
 * gradients to `sum` in backward. Other layers write theirs to `own`, an array of the same size,
 * which the caller adds. A device with its own memory keeps the sum there, if the first plan of the
 * sum was bound by mu_plan_bind on the same device; the plan with `last` copies the sum back.
 */
enum mu_status mu_plan_bind_sum(struct mu_plan *plan, float *weights, float *sum, float *own,
				bool last);
bool mu_plan_adds(const struct mu_plan *plan, size_t l);

/*
 * For devices with their own memory: record forward and backward in pieces whose gradients have
 * about most_bytes (0: any size). A piece is submitted as a whole when its last layer is due:
 * mu_plan_backward_begin submits nothing before that, and mu_plan_backward must not be called. Call
 * before the first forward, after mu_plan_set_resident. _count_pieces: number of recorded pieces,
 * and of layers that cannot be recorded.
 */
enum mu_status mu_plan_set_recorded(struct mu_plan *plan, size_t most_bytes);
void mu_plan_count_pieces(const struct mu_plan *plan, size_t *recorded, size_t *alone);

/* Where the caller writes samples: plain (batch, c, h, w), NULL for a part that reads none; and
 * labels, count and so on. use_ignore and ignore_label are set from the net. */
float *mu_plan_input(struct mu_plan *plan);
/*
 * For devices with their own memory, no effect on others: start to copy these samples, and labels,
 * ids and epoch of batch, to the device. Forward of the first layer is their first reader. Call it
 * any time after forward of the previous batch has ended, also during its backward, from any
 * thread. mu_plan_input and batch's arrays must not change until that forward has ended. Without
 * this call forward copies them. pixels: the samples are in mu_plan_input_bytes (batch, c, h, w),
 * with values as pixels defines; NULL: they are in mu_plan_input. _bytes is NULL if the plan cannot
 * read bytes.
 */
enum mu_status mu_plan_send(struct mu_plan *plan, const struct mu_batch *batch,
			    const struct mu_pixels *pixels);
uint8_t *mu_plan_input_bytes(struct mu_plan *plan);
bool mu_plan_is_sent(const struct mu_plan *plan); /* and forward has not begun */
struct mu_batch *mu_plan_batch(struct mu_plan *plan);
size_t mu_plan_batch_size(const struct mu_plan *plan);

/* Layers in order of execution. `keys` lists the keys of layer l, learnable and auxiliary. */
size_t mu_plan_layers(const struct mu_plan *plan);
/* Number of convolutions in the plan, and of those computed by Winograd's algorithm, by matrix
 * products, and by engines that a table names, for each phase. */
struct mu_plan_convolutions {
	size_t n[MU_CONVOLUTION_PHASES], winograd[MU_CONVOLUTION_PHASES],
		gemm[MU_CONVOLUTION_PHASES], engines[MU_CONVOLUTION_PHASES];
};
void mu_plan_convolutions(const struct mu_plan *plan, struct mu_plan_convolutions *counts);
const char *mu_plan_layer_name(const struct mu_plan *plan, size_t l);
size_t mu_plan_layer_keys(const struct mu_plan *plan, size_t l, const size_t **keys);
/* The keys whose gradients the layer's backward writes: also one that an earlier layer completes
 * (mu_net_tie). */
size_t mu_plan_layer_writes(const struct mu_plan *plan, size_t l, const size_t **keys);
/* Write "convolution + relu" into text; returns text. */
const char *mu_plan_layer_kind(const struct mu_plan *plan, size_t l, char *text, size_t nbytes);
/* "winograd", "direct+sums" with sums for the batch-norm behind; for backward "direct/winograd",
 * the algorithms for the gradients of data and weights.
 * "" for layers other than convolutions, and on devices with one algorithm. */
const char *mu_plan_layer_algorithm(const struct mu_plan *plan, size_t l, bool backward, char *text,
				    size_t nbytes);
/* AUTO: as "" above, or the layer does nothing in that phase. */
enum mu_convolution_algorithm mu_plan_convolution(const struct mu_plan *plan, size_t l,
						  enum mu_convolution_phase phase);
enum mu_status mu_plan_forward(struct mu_plan *plan, size_t l);
enum mu_status mu_plan_backward(struct mu_plan *plan, size_t l);
/*
 * Backward in two parts, for asynchronous devices. _begin: submit layer l, last layer first. _left:
 * *left layers, counted from the first, are not done; gradients of layers *left and later are in
 * the flat array. wait: wait until at least one more of the submitted layers is done.
 */
enum mu_status mu_plan_backward_begin(struct mu_plan *plan, size_t l);
enum mu_status mu_plan_backward_left(struct mu_plan *plan, bool wait, size_t *left);
/*
 * For a device with its own memory, in training: from now on forward of the last layer does not
 * wait for the device, so that backward can be submitted before the loss is known. Then
 * mu_plan_results_end waits for forward alone; loss and predictions of the batch are set after it,
 * and not before. Other plans ignore both calls.
 */
void mu_plan_set_results_later(struct mu_plan *plan);
enum mu_status mu_plan_results_end(struct mu_plan *plan);
/* For a batch with a loss scale: was a gradient of a parameter not finite in a backward since the
 * last call? The scale may have been too large. Waits for the device. */
enum mu_status mu_plan_overflowed(struct mu_plan *plan, bool *overflowed);
/*
 * For a device with its own memory and a plan that is no part: from now on forward copies the
 * weights of key k to the device only if versions[k] differs from its value at the last copy (see
 * mu_kv_versions). Without versions, and the first time, forward copies all weights.
 */
void mu_plan_set_versions(struct mu_plan *plan, const uint64_t *versions);
/* For a device with its own memory: from now on, does forward of this plan copy weights to the
 * device, or has another plan of the device done so? Default: true. */
void mu_plan_set_upload(struct mu_plan *plan, bool brings);
/*
 * For a device with its own memory: from now on the device's mirrors of the flat arrays are
 * authoritative (resident). Forward copies no weights, backward copies no gradients back; for
 * mu_plan_backward_left a layer is done as soon as it has been submitted.
 */
void mu_plan_set_resident(struct mu_plan *plan);

/* Time of a layer's forward, or backward, so far. */
struct mu_layer_time {
	size_t calls, samples;
	double seconds;
	double fastest; /* seconds per sample of the fastest call */
};
struct mu_layer_times {
	struct mu_layer_time forward, backward;
};
/* From now on add the times of layer l to times[l]; several plans of a net may share the array.
 * NULL: stop, which is the default. */
void mu_plan_measure(struct mu_plan *plan, struct mu_layer_times *times);
/*
 * Work of a layer, independent of its kernels. flops: 2 per multiply-add of convolutions and fully
 * connected layers, 0 for other layers; backward counts the gradients of weights and, if needed, of
 * the input. Bytes: each array that must be read or written, once, in float32 without padding.
 */
struct mu_layer_cost {
	double flops, sample_bytes; /* per sample */
	double call_bytes;          /* parameters and their gradients */
};
void mu_plan_layer_cost(const struct mu_plan *plan, size_t l, struct mu_layer_cost *forward,
			struct mu_layer_cost *backward);

/* Results of the last forward: probabilities, plain, (batch, classes) or (batch, classes, h, w).
 * In training read them before backward. NULL after an error, and in training of large vocabularies
 * in half precision on a device with its own memory: read mu_plan_batch's `predictions`. */
const float *mu_plan_probabilities(struct mu_plan *plan);
/* The same as the device has them, if those are rows, (n h w, c), one for each label; else NULL. */
const float *mu_plan_rows(const struct mu_plan *plan);
const struct mu_shape *mu_plan_probabilities_shape(const struct mu_plan *plan);
/* For error messages: the first layer whose output or parameter gradient is not finite; NULL if
 * there is none. */
const char *mu_plan_find_nonfinite(struct mu_plan *plan);

/* Convert slice k between plain order and its place in a flat array. */
enum mu_status mu_plan_slice_from_plain(const struct mu_plan *plan, size_t k, const float *plain,
					float *flat);
enum mu_status mu_plan_slice_to_plain(const struct mu_plan *plan, size_t k, const float *flat,
				      float *plain);
/* The same where `laid` points to the slice itself, for arrays that hold only some slices. */
enum mu_status mu_plan_key_from_plain(const struct mu_plan *plan, size_t k, const float *plain,
				      float *laid);
enum mu_status mu_plan_key_to_plain(const struct mu_plan *plan, size_t k, const float *laid,
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

MU_END_C

#endif
