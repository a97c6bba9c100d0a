/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a table of its operations, or as a graph for Graphviz. */
#include "plan.h"

#include <muster/base.h>

/* One sample's shape: "(64, 56, 56)" */
static const char *sample_shape(const struct mu_tensor *t, char *text, size_t nbytes)
{
	char sizes[MU_SAMPLE_TEXT];

	snprintf(text, nbytes, "(%s)", mu_sample_text(&t->shape, ", ", sizes, sizeof sizes));
	return text;
}

const char *mu_plan_layer_kind(const struct mu_plan *plan, size_t l, char *text, size_t nbytes)
{
	const struct mu_op *op = &plan->ops[l];
	const struct mu_layer_kind *kind = mu_layer_kind(op->kind);
	const bool sum = mu_layer_has(kind, MU_LAYER_ABSORBS_ADDEND) && op->n_inputs > 1;
	const struct mu_activation *fused = op->fusion.activation;

	snprintf(text, nbytes, "%s%s%s%s",
		 kind->title ? kind->title(op->attr) : mu_op_kind_name(op->kind),
		 sum ? " + sum" : "", fused ? " + " : "",
		 fused ? mu_layer_activation.title(fused) : "");
	return text;
}

static size_t params_of(const struct mu_op *op)
{
	size_t n = 0;

	for (int i = 0; i < op->n_params; i++)
		n += mu_shape_n(&op->params[i].shape);
	return n;
}

static double macs_of(const struct mu_plan *plan, size_t i)
{
	return mu_net_layer_macs(plan->net, &plan->net->layers[plan->ops[i].index]);
}

/* Bytes of the outputs that do not alias an input. */
static size_t output_bytes(const struct mu_op *op)
{
	size_t n = 0;

	for (int o = 0; o < op->n_outputs && !op->fusion.in_place; o++)
		n += op->outputs[o]->nbytes;
	return n;
}

static void print_line(const struct mu_plan *plan, size_t i, FILE *stream)
{
	const struct mu_op *op = &plan->ops[i];
	char shape[96], kind[64];

	fprintf(stream, "%-36s %-22s %-17s %11zu %9.5f %10.3f %10.3f\n", mu_shown(op->name),
		mu_plan_layer_kind(plan, i, kind, sizeof kind),
		sample_shape(op->outputs[0], shape, sizeof shape), params_of(op),
		macs_of(plan, i) / 1e9, (double)output_bytes(op) / 1e6,
		(double)op->workspace_nbytes / 1e6);
}

static void print_totals(const struct mu_plan *plan, FILE *stream)
{
	struct mu_net_counts counts;
	double outputs = 0, workspaces = 0, scratch = 0;

	mu_net_counts(plan->net, &counts);
	for (size_t i = 0; i < plan->n_ops; i++) {
		const struct mu_op *op = &plan->ops[i];

		outputs += (double)output_bytes(op);
		workspaces += (double)op->workspace_nbytes;
		if ((double)op->scratch_nbytes > scratch)
			scratch = (double)op->scratch_nbytes;
	}
	fprintf(stream, "%-36s %-22s %-17s %11zu %9.5f %10.3f %10.3f\n", "total", "", "",
		counts.params, counts.macs / 1e9, outputs / 1e6, workspaces / 1e6);
	fprintf(stream,
		"\nparameters %zu in %zu arrays, auxiliary values %zu, %.6f GMAC per sample\n",
		counts.params, counts.arrays, counts.aux, counts.macs / 1e9);
	fprintf(stream,
		"memory: weights %.1f MB%s; activations, %sworkspace and %.1f MB of scratch, "
		"shared by lifetime: %.1f MB\n",
		(double)plan->layout.n * sizeof(float) / 1e6,
		plan->phase == MU_PHASE_TRAIN ? ", gradients as much" : "",
		plan->phase == MU_PHASE_TRAIN ? "their gradients, " : "", scratch / 1e6,
		(double)plan->memory.nbytes / 1e6);
}

static enum mu_status check_stream(const struct mu_plan *plan, FILE *stream)
{
	enum mu_status st = MU_OK;

	if (fflush(stream) != 0 || ferror(stream))
		MU_FAIL(MU_ERR_IO, "the summary of network %s could not be written",
			plan->net->config.network);
out:
	return st;
}

enum mu_status mu_plan_summary(const struct mu_plan *plan, FILE *stream)
{
	char device[128], shape[96];

	plan->device->ops->describe(plan->device, device, sizeof device);
	fprintf(stream, "%s, input %s, batch %zu, %s, %s\n", mu_shown(plan->net->config.network),
		sample_shape(&plan->tensors[0], shape, sizeof shape), plan->batch_size,
		plan->phase == MU_PHASE_TRAIN ? "training" : "inference", device);
	if (*plan->net->note)
		fprintf(stream, "%s\n", plan->net->note);
	fprintf(stream, "\n%-36s %-22s %-17s %11s %9s %10s %10s\n", "layer", "kind",
		"output (c, h, w)", "parameters", "GMAC", "output MB", "workspace");
	for (size_t i = 0; i < plan->n_ops; i++)
		print_line(plan, i, stream);
	print_totals(plan, stream);
	return check_stream(plan, stream);
}

/* ---- graph ---- */

static void print_node(const struct mu_plan *plan, size_t i, FILE *stream)
{
	const struct mu_op *op = &plan->ops[i];
	char shape[96], kind[64];

	fprintf(stream, "\tn%zu [label=\"%s\\n%s\\n%s", i, mu_shown(op->name),
		mu_plan_layer_kind(plan, i, kind, sizeof kind),
		sample_shape(op->outputs[0], shape, sizeof shape));
	if (op->n_params > 0)
		fprintf(stream, "\\n%zu parameters", params_of(op));
	fprintf(stream, "\"];\n");
}

enum mu_status mu_plan_dot(const struct mu_plan *plan, FILE *stream)
{
	char shape[96];

	fprintf(stream, "digraph \"%s\" {\n\tnode [shape=box];\n\tn%zu [label=\"input\\n%s\"];\n",
		plan->net->config.network, plan->n_ops,
		sample_shape(&plan->tensors[0], shape, sizeof shape));
	for (size_t i = 0; i < plan->n_ops; i++) {
		print_node(plan, i, stream);
		for (int k = 0; k < plan->ops[i].n_inputs; k++) {
			const size_t from = mu_plan_maker(plan, plan->ops[i].inputs[k]);

			fprintf(stream, "\tn%zu -> n%zu;\n",
				from == MU_PLAN_NONE ? plan->n_ops : from, i);
		}
	}
	fprintf(stream, "}\n");
	return check_stream(plan, stream);
}
