/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net: a network as a list of layers. How it is compiled for a device and run: plan.h.
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
 *	mu_net_objective(net, x);
 *
 * With name NULL a layer gets MXNet's automatic name, "convolution0". Parameters are <name>_weight,
 * _bias, _gamma, _beta; auxiliary values <name>_moving_mean, _moving_var. Keys number the
 * parameters in order of first use, then the auxiliary arrays.
 */
#ifndef MUSTER_NET_H
#define MUSTER_NET_H

#include <stddef.h>

#include <muster/base.h>
#include <muster/device.h>

MU_BEGIN_C

struct mu_net;

/*
 * What backward computes again instead of keeping it in memory; results are the same. AUTO: in
 * float32 batch-norms and sums. ATTENTION: besides, whatever the type, what costs little:
 * attention, layer normalisation, smooth activations, products. ALL: all but sums, so that a
 * residual network keeps its sums only.
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
	struct mu_shape shape; /* of one sample: MU_SAMPLE(c, h, w) */
	size_t classes;
	long num_layers; /* 0 = the network's default; see enum mu_network_trait */
	/* Settings of the network that differ from their defaults, by name: "num-hidden=8
	 * dropout=0.1"; NULL: none. */
	const char *options;
	/* All its settings, as the network's struct; build() reads these. NULL: mu_net_new makes
	 * them of `options`. */
	const void *settings;
	size_t longest; /* steps of the longest sequence for the same parameters; 0: of shape */
	enum mu_recompute recompute;
	/* The loss of a network that leaves it open (mu_net_objective); NULL: its usual one. */
	const char *objective;
	/* Settings of that loss, as its struct; NULL: mu_net_new makes them of `options`. */
	const void *objective_settings;
};

/* Images of at most this height are small: MNIST's and CIFAR's. */
enum { MU_SMALL_IMAGE = 32 };

/* What trains a network where no option says otherwise. 0: the trainer's own default; pad: none. */
struct mu_training {
	double lr;  /* of sgd with momentum 0.9, in steps of batch samples */
	long batch; /* samples per worker and step */
	long pad;   /* pixels around training images before a random crop */
};

/* What the trainer must know of a network before it is built. */
enum mu_network_trait {
	MU_NETWORK_DEPTHS = 1 << 0,    /* accepts num_layers */
	MU_NETWORK_SEQUENCES = 1 << 1, /* reads word numbers, (n, 1, steps, 1) */
	MU_NETWORK_LINEAR = 1 << 2,    /* accepts num_layers -1: no hidden layer */
};

/* Of a network's settings, at most: bytes of their struct, and rows. */
enum { MU_SETTINGS_BYTES = 512, MU_MAX_SETTINGS = 32 };

/*
 * A network is one file with one exported const table.
 *
 * A setting of a network is a row of an option (struct mu_option, base.h) in its file: name, type,
 * default, limits, help, what a checkpoint does with it. The trainer has it as an option while it
 * runs this network; values are in the struct that the offsets refer to, config->settings in
 * build():
 *
 *	struct settings {
 *		long width;
 *	};
 *	static const struct mu_option settings[] = {
 *		{MU_SETTING("width", INT, struct settings, width), .initial = "16",
 *		 .min = 1, .max = 4096, .record = MU_RECORD_SHAPES, .help = "N  filters"},
 *		{.name = NULL},
 *	};
 *	... .settings = settings, .settings_nbytes = sizeof(struct settings), ...
 */
#define MU_SETTING(name_, type_, struct_, member) \
	.name = name_, .type = MU_OPTION_##type_, .offset = offsetof(struct_, member)

struct mu_network {
	const char *name;
	const char *help;
	struct mu_shape shape; /* of its usual sample, where the data do not define one */
	size_t classes;
	unsigned traits; /* MU_NETWORK_* */
	const struct mu_option *settings;    /* the last row has no name; NULL: none */
	size_t settings_nbytes;
	const struct mu_option_rule *rules; /* about settings; the last has no option; or NULL */
	struct mu_training training;       /* say where the figures come from */
	struct mu_training training_small; /* of small images, if that differs */
	const char *initializer; /* meaning of --initializer default; NULL = gaussian, in, 2 */
	/* The usual loss of a network that ends in mu_net_objective: "softmax". NULL: it ends in a
	 * loss of its own, and --objective is refused. */
	const char *objective;
	enum mu_status (*build)(struct mu_net *net, const struct mu_net_config *config);
};

extern const struct mu_network *const mu_network_table[]; /* NULL-terminated; nets/table.c */

/* The number of a network's settings; the row of one of them, NULL: it has no such setting. */
size_t mu_network_settings(const struct mu_network *network);
const struct mu_option *mu_network_setting(const struct mu_network *network, const char *name);

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
#define MU_ABI 13

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
/* The value that build chose for a setting of its own, where its default leaves the choice to the
 * network: what a checkpoint records. */
void mu_net_report(struct mu_net *net, const char *setting, long value);
/* NULL: none was reported. */
const long *mu_net_reported(const struct mu_net *net, const char *setting);
/* Index of config->num_layers in depths[n]; num_layers 0 is depths[0]. MU_ERR_USAGE with the list
 * if it is not there. */
enum mu_status mu_net_find_depth(const struct mu_net_config *config, const int *depths, size_t n,
				 size_t *found);

/* ---- layers: each returns the number of its output tensor, or -1 after an error ---- */

int mu_net_input(struct mu_net *net);
int mu_net_convolution(struct mu_net *net, int in, const struct mu_convolution *attr,
		       const char *name);
/* In two or three axes of space. */
int mu_net_deconvolution(struct mu_net *net, int in, const struct mu_deconvolution *attr,
			 const char *name);
int mu_net_upsampling(struct mu_net *net, int in, const struct mu_upsampling *attr,
		      const char *name);
int mu_net_pad(struct mu_net *net, int in, const struct mu_pad *attr, const char *name);
int mu_net_crop(struct mu_net *net, int in, const struct mu_crop *attr, const char *name);
int mu_net_group_norm(struct mu_net *net, int in, const struct mu_group_norm *attr,
		      const char *name);
int mu_net_fully_connected(struct mu_net *net, int in, const struct mu_fully_connected *attr,
			   const char *name);
int mu_net_activation(struct mu_net *net, int in, enum mu_activation_kind kind, const char *name);
/* With a parameter. */
int mu_net_activation_of(struct mu_net *net, int in, const struct mu_activation *attr,
			 const char *name);
int mu_net_pooling(struct mu_net *net, int in, const struct mu_pooling *attr, const char *name);
/* The mean over axes, whose sizes become 1: bit i for the axis i of space, MU_AXIS_CHANNELS for the
 * channels. */
enum { MU_AXIS_CHANNELS = 1 << MU_MAX_SPACE };
int mu_net_mean(struct mu_net *net, int in, unsigned axes, const char *name);
int mu_net_flatten(struct mu_net *net, int in, const char *name);
/* The same elements in the same order, (c), (c, h, w) or (c, d, h, w) of a sample: MU_SAMPLE. */
int mu_net_reshape(struct mu_net *net, int in, const struct mu_shape *sample, const char *name);
int mu_net_dropout(struct mu_net *net, int in, float p, const char *name);
int mu_net_batch_norm(struct mu_net *net, int in, const struct mu_batch_norm *attr,
		      const char *name);
int mu_net_lrn(struct mu_net *net, int in, const struct mu_lrn *attr, const char *name);
int mu_net_sum(struct mu_net *net, int n, const int *ins, const char *name);
/* Element by element, of two tensors of one shape: a gate, such as SiLU(a) b (Shazeer, GLU variants
 * improve transformer, 2020). */
int mu_net_product(struct mu_net *net, int a, int b, const char *name);
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
/* The last layer: a loss of any shape (n, ...), with a target for each element of a sample. */
void mu_net_element_loss(struct mu_net *net, int in, const struct mu_element_loss *l,
			 const char *name);
/* The last layer: the loss that the configuration names, else the network's usual one. Its outputs,
 * (n, config->classes, ...), are classes or values; the layer has the loss's name. */
void mu_net_objective(struct mu_net *net, int in);
/* The last layer: (n, classes, space...) with one label for each position. */
void mu_net_region_loss(struct mu_net *net, int in, const struct mu_region_loss *l,
			const char *name);
/* The last layer: a loss of the user's, on the host's plain arrays (struct mu_custom_loss in
 * device.h); it has the loss's name. */
void mu_net_custom_loss(struct mu_net *net, int in, const struct mu_loss *loss,
			const struct mu_custom *layer);
/*
 * The last layer: several losses, each of a tensor of its own. Training minimises the sum of weight
 * times loss. A sample's targets are those of all heads, in the order of the heads, in one row: of
 * softmax and dice one for each position, of the others one for each output; and so is the output,
 * (n, outputs of all heads), each as its loss has it alone: probabilities, values. Metrics are
 * "<name>-<metric>", "class-accuracy", and "loss", the sum. jobs/examples/two_heads.c.
 */
struct mu_head {
	const char *name; /* "class": at most 15 letters, digits, '-' and '_' */
	int in;
	const char *loss;     /* as --objective names it, "softmax": one of the library's */
	const char *settings; /* of that loss, "class-weights=1,2 ignore-class=0"; NULL: none */
	double weight;        /* 0: the head is measured, and does not train */
};
void mu_net_losses(struct mu_net *net, int n, const struct mu_head *heads);
/* Predictions with this label are ignored: no loss, no gradient, not counted. For the padding of
 * sequences. MXNet's use_ignore and ignore_label. */
void mu_net_ignore_label(struct mu_net *net, float label);
/* Weights of the classes in loss and gradient, "1,2.5,1", above 0. */
void mu_net_class_weights(struct mu_net *net, const char *weights);

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
/* Has it layers of attention? */
bool mu_net_attends(const struct mu_net *net);
/* The text of mu_net_note, "" if there is none. */
const char *mu_net_notes(const struct mu_net *net);

MU_END_C

#endif
