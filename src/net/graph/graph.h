/* SPDX-License-Identifier: Apache-2.0 */
/* graph: the representation of a net, private to src/net. Layers in order of execution, tensors by
 * number. The batch dimension of every shape is 0 here; the plan sets it. */
#ifndef NET_GRAPH_H
#define NET_GRAPH_H

#include <stdalign.h>

#include <muster/net.h>

#include "device/op.h"

enum { NET_GROUP = 32 }; /* bytes of a group's name, terminator included */

#define NET_MAX_PARAMS (2 * MU_MAX_PARAMS)

struct net_param {
	char *name;
	struct mu_shape shape;
	bool aux;
	float momentum; /* of an aux array's running average */
	float initial;  /* initial value, if the name's suffix has no rule */
	float scale; /* of an initial weight; 0 means 1 */
	bool tied; /* it is the weight of an embedding, of the same name */
};

struct mu_layer_kind; /* net/layers/layer.h */
struct mu_loss;       /* muster/metrics.h */

struct net_layer {
	const struct mu_layer_kind *kind;
	char *name;
	char group[NET_GROUP]; /* "": group of the layer before */
	void *attr;            /* copy of the caller's struct; NULL for kinds without */
	int n_inputs, n_outputs;
	int *inputs, *outputs;
	int n_params;
	struct net_param params[NET_MAX_PARAMS]; /* learnable ones first, then aux */
};

struct net_tensor {
	struct mu_shape shape;
	int producer; /* layer, -1 for the input */
	int n_consumers;
};

struct mu_net {
	struct mu_net_config config;
	const char *initializer; /* meaning of "default"; NULL = gaussian, in, 2 */
	enum mu_status st;       /* first error of the builder */
	struct net_layer *layers;
	int n_layers;
	struct net_tensor *tensors;
	int n_tensors;
	int named[MU_OP_N]; /* automatic names used so far, by kind */
	char prefix[64];    /* of explicit names */
	char group[NET_GROUP];
	bool use_ignore;
	float ignore_label;
	float *class_weights; /* config.classes of them; NULL: none */
	struct net_heads *heads; /* of mu_net_losses; NULL: one loss */
	long depth; /* of mu_net_set_depth */
	const struct mu_loss *objective; /* NULL: the network ends in a loss of its own */
	bool takes_objective;            /* mu_net_objective was called */
	/* Made of config.options: of the network, of the objective. */
	alignas(max_align_t) char settings[MU_SETTINGS_BYTES];
	alignas(max_align_t) char objective_settings[MU_SETTINGS_BYTES];
	char *options; /* a copy, which they refer to */
	struct net_report {
		const char *setting;
		long value;
	} reports[MU_MAX_SETTINGS];
	char note[256];
};

/* settings.c: sets config.settings and config.objective_settings, if the caller has not. Errors
 * begin with the network's name. */
enum mu_status mu_net_settings_read(struct mu_net *net, const struct mu_network *network);

/* build.c: add a layer with one output; copies attr and inputs. Returns the output tensor or -1. */
struct net_spec {
	const struct mu_layer_kind *kind;
	const char *name;
	const void *attr;
	int n_inputs;
	const int *inputs;
};
int mu_net_add(struct mu_net *net, const struct net_spec *spec);
int mu_net_add_one(struct mu_net *net, const struct mu_layer_kind *kind, int in, const void *attr,
		   const char *name);
void mu_net_add_param(struct mu_net *net, const char *suffix, struct mu_shape shape,
		      float aux_momentum);
/* Is there such a tensor, and no error so far? If not, an error is noted. */
bool mu_net_can_read(struct mu_net *net, int in);
int mu_net_fail(struct mu_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The losses of mu_net_losses: their names, each as a net of its own, and the row of all. */
struct net_heads {
	char names[MU_MAX_HEADS][16];
	struct mu_net *of[MU_MAX_HEADS];
	struct mu_loss *row;
};

/* count.c: multiply-adds of forward of one sample. */
double mu_net_layer_macs(const struct mu_net *net, const struct net_layer *layer);

/* rewrite.c: make the graph cheaper without changing its results; then give every
 * tensor a single consumer. */
enum mu_status mu_net_rewrite(struct mu_net *net);
void mu_net_count_consumers(struct mu_net *net);

#endif
