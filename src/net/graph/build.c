/* SPDX-License-Identifier: Apache-2.0 */
/* Create and free a net; add a layer. Its kind is a row in src/net/layers. */
#include "graph.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "net/layers/layer.h"

/* Store the first error; later calls do nothing. */
int mu_net_fail(struct mu_net *net, const char *format, ...)
{
	char text[512];
	va_list args;

	if (net->st != MU_OK)
		return -1;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	net->st = mu_trace_start(MU_ERR_USAGE, __FILE__, __LINE__, "network %s: %s",
				 net->config.network, text);
	return -1;
}

bool mu_net_can_read(struct mu_net *net, int in)
{
	if (net->st == MU_OK && (in < 0 || in >= net->n_tensors))
		mu_net_fail(net, "a layer reads tensor %d; there are 0 to %d so far", in,
			    net->n_tensors - 1);
	return net->st == MU_OK;
}

static int out_of_memory(struct mu_net *net)
{
	if (net->st == MU_OK)
		net->st = mu_trace_start(MU_ERR_MEMORY, __FILE__, __LINE__,
					 "no memory for network %s", net->config.network);
	return -1;
}

static int add_tensor(struct mu_net *net, const struct mu_shape *shape, int producer)
{
	struct net_tensor *grown =
		realloc(net->tensors, ((size_t)net->n_tensors + 1) * sizeof *grown);

	if (!grown)
		return out_of_memory(net);
	net->tensors = grown;
	net->tensors[net->n_tensors] = (struct net_tensor){.shape = *shape, .producer = producer};
	return net->n_tensors++;
}

/* Number of layers so far that name themselves so. */
static int count_titles(const struct mu_net *net, const char *title)
{
	int n = 0;

	for (int l = 0; l < net->n_layers; l++) {
		const struct net_layer *layer = &net->layers[l];

		if (mu_layer_has(layer->kind, MU_LAYER_NAMES_ITSELF) && layer->attr)
			n += strcmp(layer->kind->title(layer->attr), title) == 0;
	}
	return n;
}

static char *layer_name(struct mu_net *net, const struct net_spec *spec)
{
	char text[192];
	const char *title;

	if (spec->name) {
		snprintf(text, sizeof text, "%s%s", net->prefix, spec->name);
	} else if (mu_layer_has(spec->kind, MU_LAYER_NAMES_ITSELF)) {
		title = spec->kind->title(spec->attr);
		snprintf(text, sizeof text, "%s%d", title, count_titles(net, title));
	} else {
		snprintf(text, sizeof text, "%s%d", mu_op_kind_name(spec->kind->op),
			 net->named[spec->kind->op]++);
	}
	return strdup(text);
}

int mu_layer_fail(struct mu_net *net, const char *format, ...)
{
	const struct net_layer *l = &net->layers[net->n_layers - 1];
	const char *kind = mu_op_kind_name(l->kind->op);
	const bool automatic = strncmp(l->name, kind, strlen(kind)) == 0;
	char text[384];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return mu_net_fail(net, "%s%s%s %s", automatic ? "" : kind, automatic ? "" : " ", l->name,
			   text);
}

int mu_layer_needs(struct mu_net *net, const char *form, const struct mu_shape *in)
{
	char text[96];

	return mu_layer_fail(net, "needs an input %s, not %s", form,
			     mu_shape_text(in, text, sizeof text));
}

/* A layer without an output tensor. NULL: no memory. */
static struct net_layer *append(struct mu_net *net, const struct net_spec *spec)
{
	const size_t attr_nbytes = spec->kind->attr_nbytes;
	const size_t nbytes = (size_t)spec->n_inputs * sizeof(int);
	struct net_layer *layer,
		*grown = realloc(net->layers, ((size_t)net->n_layers + 1) * sizeof *grown);

	if (!grown)
		return NULL;
	net->layers = grown;
	layer = &net->layers[net->n_layers++];
	*layer = (struct net_layer){.kind = spec->kind, .n_inputs = spec->n_inputs, .n_outputs = 1};
	memcpy(layer->group, net->group, sizeof layer->group);
	layer->name = layer_name(net, spec);
	layer->inputs = malloc(nbytes);
	layer->outputs = malloc(sizeof(int));
	layer->attr = attr_nbytes > 0 ? malloc(attr_nbytes) : NULL;
	if (!layer->name || !layer->inputs || !layer->outputs || (attr_nbytes > 0 && !layer->attr))
		return NULL;
	memcpy(layer->inputs, spec->inputs, nbytes);
	if (attr_nbytes > 0)
		memcpy(layer->attr, spec->attr, attr_nbytes);
	return layer;
}

int mu_net_add(struct mu_net *net, const struct net_spec *spec)
{
	const struct mu_layer_kind *kind = spec->kind;
	struct net_draft d = {.net = net};

	if (spec->n_inputs < kind->min_inputs)
		return mu_net_fail(net, "%s needs at least %d inputs, not %d",
				   mu_op_kind_name(kind->op), kind->min_inputs, spec->n_inputs);
	if (kind->attr_nbytes > 0 && !spec->attr)
		return mu_net_fail(net, "attr of a layer that reads tensor %d is NULL",
				   spec->inputs[0]);
	for (int i = 0; i < spec->n_inputs; i++)
		if (!mu_net_can_read(net, spec->inputs[i]))
			return -1;
	d.layer = append(net, spec);
	if (!d.layer)
		return out_of_memory(net);
	d.in = &net->tensors[spec->inputs[0]].shape;
	if (kind->ndims && d.in->ndims != kind->ndims)
		return mu_layer_needs(net, "(n, c, h, w)", d.in);
	if (mu_layer_has(kind, MU_LAYER_IN_SPACE) && d.in->ndims < 4)
		return mu_layer_needs(net, "(n, c, h, w) or (n, c, d, h, w)", d.in);
	d.out = *d.in;
	if ((kind->shape && kind->shape(&d) != 0) || net->st != MU_OK)
		return -1;
	d.layer->outputs[0] = add_tensor(net, &d.out, net->n_layers - 1);
	return d.layer->outputs[0];
}

int mu_net_add_one(struct mu_net *net, const struct mu_layer_kind *kind, int in, const void *attr,
		   const char *name)
{
	return mu_net_add(net, &(struct net_spec){kind, name, attr, 1, &in});
}

/* Add a parameter, or with aux_momentum > 0 an auxiliary array, to the layer added last. */
void mu_net_add_param(struct mu_net *net, const char *suffix, struct mu_shape shape,
		      float aux_momentum)
{
	struct net_layer *layer = &net->layers[net->n_layers - 1];
	struct net_param *param = &layer->params[layer->n_params];
	const size_t nbytes = strlen(layer->name) + strlen(suffix) + 2;
	char *name = net->st == MU_OK ? malloc(nbytes) : NULL;

	if (!name) {
		out_of_memory(net);
		return;
	}
	snprintf(name, nbytes, "%s_%s", layer->name, suffix);
	*param = (struct net_param){
		.name = name, .shape = shape, .aux = aux_momentum > 0, .momentum = aux_momentum};
	layer->n_params++;
}

/* The weight of an embedding with this name; NULL: there is none. */
static const struct net_param *find_table(const struct mu_net *net, const char *weight)
{
	for (int l = 0; l + 1 < net->n_layers; l++)
		if (mu_layer_has(net->layers[l].kind, MU_LAYER_HAS_TABLE) &&
		    strcmp(net->layers[l].params[0].name, weight) == 0)
			return &net->layers[l].params[0];
	return NULL;
}

void mu_net_tie(struct mu_net *net, const char *weight)
{
	struct net_layer *last = net->n_layers > 0 ? &net->layers[net->n_layers - 1] : NULL;
	const struct net_param *table;
	struct net_param *own;
	char *name;

	if (net->st != MU_OK)
		return;
	table = find_table(net, weight);
	if (!last || !table || !mu_layer_has(last->kind, MU_LAYER_MAY_SHARE) ||
	    last->params[0].shape.dims[0] != table->shape.dims[0] ||
	    mu_shape_n(&last->params[0].shape) != mu_shape_n(&table->shape)) {
		mu_net_fail(net,
			    "the weight of %s cannot be %s: a convolution or a fully connected "
			    "layer can have that of an embedding with as many rows and elements",
			    last ? last->name : "no layer", weight);
		return;
	}
	own = &last->params[0];
	name = strdup(weight);
	if (!name) {
		mu_net_fail(net, "no memory for a name");
		return;
	}
	free(own->name);
	own->name = name;
	own->tied = true;
}

void mu_net_scale_initial(struct mu_net *net, float factor)
{
	if (net->st == MU_OK && net->n_layers > 0 && net->layers[net->n_layers - 1].n_params > 0)
		net->layers[net->n_layers - 1].params[0].scale = factor;
}

void mu_net_prefix(struct mu_net *net, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(net->prefix, sizeof net->prefix, format, args);
	va_end(args);
}

void mu_net_group(struct mu_net *net, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vsnprintf(net->group, sizeof net->group, format, args) >= (int)sizeof net->group)
		mu_net_fail(net, "the name of group %s... is longer than %d characters", net->group,
			    NET_GROUP - 1);
	va_end(args);
}

void mu_net_note(struct mu_net *net, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(net->note, sizeof net->note, format, args);
	va_end(args);
}

void mu_net_set_depth(struct mu_net *net, long depth)
{
	net->depth = depth;
}

long mu_net_depth(const struct mu_net *net)
{
	return net->depth ? net->depth : net->config.num_layers;
}

void mu_net_report(struct mu_net *net, const char *setting, long value)
{
	for (size_t i = 0; i < MU_MAX_SETTINGS; i++)
		if (!net->reports[i].setting || strcmp(net->reports[i].setting, setting) == 0) {
			net->reports[i] = (struct net_report){setting, value};
			return;
		}
	mu_net_fail(net, "more settings are reported than a network may have");
}

const long *mu_net_reported(const struct mu_net *net, const char *setting)
{
	for (size_t i = 0; i < MU_MAX_SETTINGS && net->reports[i].setting; i++)
		if (strcmp(net->reports[i].setting, setting) == 0)
			return &net->reports[i].value;
	return NULL;
}

const char *mu_net_notes(const struct mu_net *net)
{
	return net->note;
}

void mu_net_ignore_label(struct mu_net *net, float label)
{
	net->use_ignore = true;
	net->ignore_label = label;
}

void mu_net_class_weights(struct mu_net *net, const char *weights)
{
	const size_t classes = net->config.classes;
	const char *p = weights;
	size_t n = 0;
	char *end;

	if (net->st != MU_OK)
		return;
	free(net->class_weights);
	net->class_weights = calloc(classes, sizeof *net->class_weights);
	if (!net->class_weights) {
		out_of_memory(net);
		return;
	}
	for (bool more = true; more; n++) {
		const float w = strtof(p, &end);

		more = *end == ',';
		if (end == p || (*end && !more) || !(w > 0 && w <= 1e6f)) {
			mu_net_fail(net,
				    "%.64s: numbers above 0 and at most 1e6 are needed, such as "
				    "1,2.5,1 (setting class-weights)",
				    weights);
			return;
		}
		if (n < classes)
			net->class_weights[n] = w;
		p = end + more;
	}
	if (n != classes)
		mu_net_fail(net,
			    "%.64s: %zu weight%s, and there are %zu classes "
			    "(setting class-weights)",
			    weights, n, MU_S(n), classes);
}

const struct mu_loss *mu_net_loss(const struct mu_net *net)
{
	const struct net_layer *last = &net->layers[net->n_layers - 1];

	return mu_layer_loss(last->kind, last->attr);
}

bool mu_net_may_ignore(const struct mu_net *net)
{
	return mu_net_loss(net)->of_classes && !net->layers[net->n_layers - 1].kind->own_loss;
}

bool mu_net_weighs(const struct mu_net *net)
{
	return net->class_weights || net->use_ignore;
}

size_t mu_net_labels(const struct mu_net *net)
{
	const struct net_layer *last = &net->layers[net->n_layers - 1];

	return mu_loss_targets(mu_net_loss(net), &net->tensors[last->outputs[0]].shape);
}

int mu_net_input(struct mu_net *net)
{
	const struct mu_shape *s = &net->config.shape;
	char text[MU_SAMPLE_TEXT];

	if (net->st != MU_OK)
		return -1;
	if (net->n_tensors > 0)
		return mu_net_fail(net, "the input must come first, and once");
	if (s->dims[0] != 0 || !mu_tensor_shape_fits(s) || mu_shape_sample(s) == 0)
		return mu_net_fail(net,
				   "layers read samples (c), (c, h, w) or (c, d, h, w), one axis "
				   "of space as (c, w, 1), sequences as (1, steps, 1), and not "
				   "(%s)",
				   mu_sample_text(s, ", ", text, sizeof text));
	return add_tensor(net, s, -1);
}

void mu_net_free(struct mu_net *net)
{
	if (!net)
		return;
	for (int l = 0; l < net->n_layers; l++) {
		struct net_layer *layer = &net->layers[l];

		for (int p = 0; p < layer->n_params; p++)
			free(layer->params[p].name);
		free(layer->name);
		free(layer->attr);
		free(layer->inputs);
		free(layer->outputs);
	}
	free(net->layers);
	free(net->tensors);
	free(net->options);
	free(net->class_weights);
	for (size_t i = 0; net->heads && i < MU_MAX_HEADS; i++)
		mu_net_free(net->heads->of[i]);
	if (net->heads)
		mu_free(net->heads->row);
	free(net->heads);
	free(net);
}
