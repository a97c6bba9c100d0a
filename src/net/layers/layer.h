/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer: a kind of layer is one row, a const struct mu_layer_kind, in the file of its name, next to
 * the call that adds such a layer to a net (muster/net.h). The list of kinds is device/kinds.def.
 * What plans do with a layer follows from its row.
 */
#ifndef NET_LAYERS_LAYER_H
#define NET_LAYERS_LAYER_H

#include <muster/metrics.h>

#include "net/graph/graph.h"

/* What plans may do with a layer. A trait that is not set is right, but costs memory or time. */
enum mu_layer_trait {
	MU_LAYER_INPUT_UNUSED = 1 << 0,    /* backward does not read the input's values */
	MU_LAYER_OUTPUT_UNUSED = 1 << 1,   /* backward does not read the output's values */
	MU_LAYER_STEPWISE = 1 << 2,        /* each step of a sequence depends on that step alone */
	MU_LAYER_OVERWRITES_GRAD = 1 << 3, /* backward may overwrite its output's gradient */
	MU_LAYER_LENDS_OUTPUT = 1 << 4,    /* an activation after it may work in its output */
	/* Fusion with the layer after it: an activation; a ReLU, which backward undoes from the
	 * input; the sum of its output and one other tensor. */
	MU_LAYER_ABSORBS_ACTIVATION = 1 << 5,
	MU_LAYER_ABSORBS_RELU = 1 << 6,
	MU_LAYER_ABSORBS_ADDEND = 1 << 7,
	MU_LAYER_WANTS_SUMS = 1 << 8,       /* the producer of its input may sum channels for it */
	MU_LAYER_IS_ACTIVATION = 1 << 9,    /* of each element alone, from the output */
	MU_LAYER_IS_ADDITION = 1 << 10,     /* the gradient of each input is that of the output */
	MU_LAYER_IS_PASSAGE = 1 << 11,      /* the outputs are the input, in the same memory */
	MU_LAYER_IS_RESHAPE = 1 << 12,      /* the output is the input, in another shape */
	MU_LAYER_READS_ANY_SHAPE = 1 << 13, /* needs no reshape before it */
	MU_LAYER_WORKS_OVER = 1 << 14,     /* its output may take the place of a large input */
	MU_LAYER_HAS_ALGORITHMS = 1 << 15, /* enum mu_convolution_algorithm */
	/* mu_net_tie: its first parameter is a table; it may have such a table as its weight. */
	MU_LAYER_HAS_TABLE = 1 << 16,
	MU_LAYER_MAY_SHARE = 1 << 17,
	MU_LAYER_NAMES_ITSELF = 1 << 18, /* automatic names begin with its title */
	MU_LAYER_IN_SPACE = 1 << 19, /* needs an input of two or three axes of space */
	/* Weights begin with the filters: it may take over the batch-norm after it, in ONNX. */
	MU_LAYER_TAKES_SCALE = 1 << 20,
};

/*
 * A layer that is being added. `shape` of its kind checks the attributes and the input's shape,
 * fills in defaults of the layer's own copy of the attributes, sets the shape of the output, which
 * begins as that of the first input, and adds parameters. -1 after an error.
 */
struct net_draft {
	struct mu_net *net;
	struct net_layer *layer;
	const struct mu_shape *in;
	struct mu_shape out;
};

struct onnx_layer; /* net/onnx/onnx.h */

struct mu_layer_kind {
	enum mu_op_kind op;
	size_t attr_nbytes;
	int ndims, min_inputs; /* 0: any number of dimensions; one input */
	unsigned traits;       /* enum mu_layer_trait */
	unsigned restored;     /* bit r: computed again at level r of enum mu_recompute */
	/* NULL: nothing to check, no parameters, and the output has the input's shape. */
	int (*shape)(struct net_draft *d);
	const char *(*title)(const void *attr); /* in summaries. NULL: the name of the kind */
	/* Multiply-adds of forward of one sample. NULL: 0. */
	double (*macs)(const struct net_layer *l, const struct mu_shape *out);
	/* Without STEPWISE: do these attributes make it so? NULL: no. */
	bool (*is_stepwise)(const void *attr);
	/* Floats of the state that blocks of steps pass on. NULL: it has none. */
	size_t (*state)(const struct mu_shape *out);
	/* If it is not stepwise, in inference: can it work on some steps after others, with what it
	 * remembers of those (struct mu_past)? Floats of that memory. NULL: no; it has none. */
	bool (*can_remember)(const struct mu_op *op);
	size_t (*past)(const struct mu_op *op, size_t most);
	/* Does it commute with activations, as a maximum does? NULL: no. */
	bool (*commutes)(const void *attr);
	/* Of a loss, the last layer, of whose output nobody has a gradient: muster/metrics.h; all
	 * that the attributes choose from, then NULL. NULL: it is none. */
	const struct mu_loss *const *losses;
	size_t (*which_loss)(const void *attr); /* NULL: the first */
	const struct mu_loss *(*own_loss)(const void *attr); /* instead: the user's */
	void (*onnx)(struct onnx_layer *o); /* NULL: there is no operation for it */
};

static inline bool mu_layer_has(const struct mu_layer_kind *kind, enum mu_layer_trait trait)
{
	return kind->traits & trait;
}

/* NULL: it is none. */
static inline const struct mu_loss *mu_layer_loss(const struct mu_layer_kind *kind,
						  const void *attr)
{
	if (kind->own_loss)
		return kind->own_loss(attr);
	return kind->losses ? kind->losses[kind->which_loss ? kind->which_loss(attr) : 0] : NULL;
}

#define KIND(OP, row, name, cpu, cuda) extern const struct mu_layer_kind mu_layer_##row;
#include "device/kinds.def"
#undef KIND

/* ---- graph/kinds.c ---- */

const struct mu_layer_kind *mu_layer_kind(enum mu_op_kind op);
bool mu_layer_is_stepwise(const struct mu_layer_kind *kind, const void *attr);
bool mu_op_has(const struct mu_op *op, enum mu_layer_trait trait);
const struct mu_loss *mu_op_loss(const struct mu_op *op); /* NULL: it is none */

/* ---- graph/build.c: errors of the layer that is being added ---- */

/* "convolution conv1 needs ..." */
int mu_layer_fail(struct mu_net *net, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* It needs an input of this form, not that one. */
int mu_layer_needs(struct mu_net *net, const char *form, const struct mu_shape *in);

/* ---- custom.c ---- */

int mu_layer_custom_shape(struct net_draft *d);
/* False: an error was noted, of its attributes. */
bool mu_layer_custom_check(struct mu_net *net, const struct mu_custom *custom);

/* ---- losses/loss.c ---- */

/* Of a batch, the targets that count. */
size_t mu_loss_counted(const struct mu_loss *loss, const struct mu_loss_results *r);

/* ---- losses/heads.c: several losses as one ---- */

/* The row; of heads of which the joint's own pointers outlive it. Free by mu_free. */
enum mu_status mu_joint_row(struct mu_loss **out, const struct mu_joint *joint);

/* ---- losses/parts.c ---- */

/* A sum by counted target; NaN of samples of which none counts, 0 without samples. */
double mu_loss_mean(const struct mu_metrics *m, int sum);

/* ---- graph/load.c: losses of files, for mu_loss_at; NULL: there are no more ---- */

const struct mu_loss *mu_loss_loaded(size_t i);

/* ---- activation.c: activations and smooth ones ---- */

const char *mu_layer_activation_title(const void *attr);
int mu_layer_activation_shape(struct net_draft *d);
void mu_layer_activation_onnx(struct onnx_layer *o);

/* ---- graph/shapes.c: what the rows share ---- */

struct mu_shape mu_layer_vector(size_t n);
struct mu_shape mu_layer_matrix(size_t rows, size_t columns);

enum { LAYER_SIZES = 48 };
/* "5 x 5" of n axes of space; returns text. */
const char *mu_layer_sizes(const int *sizes, int n, char text[LAYER_SIZES]);

/* Windows that move over the input, such as a convolution's: a number for each axis of space. */
struct layer_window {
	int *kernel, *stride, *pad; /* a stride of 0 becomes 1 */
	int *dilate;                /* NULL: 1 */
	bool ceil;
};
/* Set the output's axes of space. */
int mu_layer_window(struct net_draft *d, const struct layer_window *w);

#endif
