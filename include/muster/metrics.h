/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics: what a loss is, sums over what a model found, and the numbers computed from the sums.
 *
 * A loss is the last layer of a net. Its kind has a row, struct mu_loss, in the file of the layer
 * (src/net/layers): what its output is, what its value is a mean over, the sums that workers add
 * up and checkpoints hold, and its metrics, a row each. Logs, files for other programs, the best
 * checkpoint, early stopping and the tools for logs read the rows, and know no metric by name.
 */
#ifndef MUSTER_METRICS_H
#define MUSTER_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <muster/device.h>
#include <muster/net.h>

MU_BEGIN_C

struct mu_plan;
struct mu_joint; /* src/device/joint.h */

enum { MU_LOSS_SUMS = 48 }; /* enough for MU_MAX_HEADS */

/*
 * Sums over what is counted (see struct mu_batch), zero at first; those of several workers are
 * added. Of the targets as given, also if training smooths them: then batch->loss differs.
 */
struct mu_metrics {
	double samples; /* with any targets: for speeds */
	double counted; /* targets that count */
	double sums[MU_LOSS_SUMS];
	struct mu_tally *tally; /* of a validation that needs one; else NULL */
};

/* Of the targets of one output: number, mean, squared deviations from it; and squared errors. */
struct mu_moments {
	double n, mean, squares, errors;
};

/*
 * What metrics need of all predictions of a validation together, and no sums of batches give. The
 * row of a loss says how much of it there is.
 */
struct mu_tally {
	size_t outputs;
	size_t n_sums;
	double *sums; /* classes: their confusion, (target, prediction) */
	size_t n_moments;
	struct mu_moments *moments; /* values: of each output */
	bool keeps_pairs;
	size_t columns, n_pairs, room; /* pairs: score and target of each of n columns in turn */
	float (*pairs)[2];
	bool too_many, no_memory;
	double auc; /* mean over the columns; NAN: not defined */
	/* Of several losses: that of each head, and nothing else; outputs 0: it needs none. */
	size_t n_heads;
	struct mu_tally *heads;
};

/* What uses a metric where no option chooses others. */
enum mu_metric_use {
	MU_METRIC_IS_LOSS = 1 << 0,      /* the mean of what training minimises: "loss" */
	MU_METRIC_ALWAYS = 1 << 1,       /* in every log */
	MU_METRIC_OF_SEQUENCES = 1 << 2, /* in logs of sequences, of texts */
	MU_METRIC_OF_TEXTS = 1 << 3,
	MU_METRIC_CHOSEN = 1 << 4,       /* --loss may name it */
	MU_METRIC_BEST = 1 << 5,         /* decides which checkpoint is the best; of sequences */
	MU_METRIC_BEST_OF_SEQUENCES = 1 << 6,
	MU_METRIC_OF_PLATEAU = 1 << 7,   /* decides when --lr-schedule plateau lowers the rate */
	MU_METRIC_OF_TALLY = 1 << 8,     /* of validation alone, from mu_metrics.tally */
	MU_METRIC_OF_WEIGHTS = 1 << 9,   /* in logs of a net that weighs targets: mu_net_weighs */
};

/* A number in the log, computed from the sums. */
struct mu_metric {
	const char *name;    /* of options: "ce"; at most 15 characters, 31 with that of a head */
	const char *other;   /* MXNet's name, or NULL */
	const char *printed; /* in the log: "cross-entropy" */
	const char *column;  /* at most 6 letters, heads a column; NULL: the name */
	const char *unit;    /* NULL: none */
	int better;          /* 1: larger is better, -1: smaller */
	bool takes_k;        /* of --top-k K, which is printed after its name */
	unsigned use;        /* enum mu_metric_use */
	double (*value)(const struct mu_metrics *m); /* nothing counted: 0, perplexity 1;
							NAN: not defined */
	/* Of one of several losses: its number, from 1 on, and where its sums begin, that of
	 * targets that count before them; `value` gets them as those of a loss that is alone. 0: of
	 * the whole. */
	unsigned short head, head_at;
};

enum mu_loss_output { MU_OUTPUT_PROBABILITIES, MU_OUTPUT_VALUES };

/*
 * What metrics are means over: targets that are not ignored; all targets. Training minimises the
 * sum over a sample's targets, by their weights, divided by the number of samples, also of those
 * without a target that counts: MU_METRIC_IS_LOSS is the same function where all targets count one.
 */
enum mu_loss_mean { MU_MEAN_OF_COUNTED, MU_MEAN_OF_TARGETS };

/* What forward found out, for `measure`. */
struct mu_loss_results {
	const struct mu_batch *batch; /* labels, count; predictions, if the loss makes them */
	size_t targets;               /* of a sample */
	size_t k;                     /* of --top-k; 0: none */
	const float *output;          /* plain; NULL unless the loss reads it, or a tally */
	const struct mu_shape *shape; /* of the output */
};

struct mu_loss {
	const char *name;    /* "softmax": of --objective, and of the layer */
	const char *similar; /* what others call it, "ce|nll"; or NULL */
	const char *help;    /* "softmax cross-entropy" */
	/* Rows of options, as those of a network (muster/net.h). */
	const struct mu_option *settings;
	size_t settings_nbytes;
	const struct mu_option_rule *rules;
	/* Adds the last layer; settings: the loss's struct, NULL if it has none. */
	void (*add)(struct mu_net *net, int in, const struct mu_loss *loss, const void *settings);
	enum mu_loss_output output;
	enum mu_loss_mean mean;
	bool reads_output; /* measure does */
	bool smooths;      /* targets may be smoothed: --label-smoothing */
	bool of_classes;   /* a target is one of several classes, which have an order by probability
			      (--top-k), may be ignored, and be smoothed (struct mu_batch) */
	/* Names in checkpoints, in order; then NULL. */
	const char *sums[MU_LOSS_SUMS + 1];
	const char *again; /* older programs read the last sum under this name; or NULL */
	const char *extra; /* a further sum, which checkpoints have where it is not 0; or NULL */
	/* Targets of a sample; the output's first dimension is the batch. */
	size_t (*targets)(const struct mu_shape *output);
	/* The loss of a model that knows nothing, and how that is found: "the log of 10 classes".
	 * NULL: it depends on the data. */
	double (*chance)(size_t outputs, char *text, size_t nbytes);
	/* Add a batch to the sums; samples and counted are added by the caller. */
	void (*measure)(struct mu_metrics *m, const struct mu_loss_results *r);
	/* Validation: how much a tally needs, for this output; and add a batch to it. Or NULL. */
	void (*tally_size)(struct mu_tally *t, const struct mu_shape *output);
	void (*tally)(struct mu_tally *t, const struct mu_loss_results *r);
	const struct mu_metric *metrics; /* ends with a NULL name */
	/* Several losses, mu_net_losses, whose row the net has made and owns: their heads, which
	 * say what targets, measure and tally are. NULL: one loss. */
	const struct mu_joint *joint;
};

/* Loss i of those that there are, then of those that were loaded; NULL: no such. */
const struct mu_loss *mu_loss_at(size_t i);
size_t mu_loss_settings(const struct mu_loss *loss); /* their number */
/* '_' reads as '-'. MU_ERR_USAGE for an unknown name, with the nearest and the list. A name that
 * contains '/' or ends in ".so" is a file: see mu_loss_load. */
enum mu_status mu_loss_find(const struct mu_loss **out, const char *name);
const struct mu_loss *mu_net_loss(const struct mu_net *net);
/* Can it leave labels out? Losses of classes can, but not those of users. */
bool mu_net_may_ignore(const struct mu_net *net);
/* Does it leave some out, or have weights of classes? */
bool mu_net_weighs(const struct mu_net *net);

/* A loss that is alone, or a head of several, and what of the sums is its own. */
struct mu_loss_part {
	const char *head; /* its name; "": the loss is alone */
	const struct mu_loss *loss;
	struct mu_shape output; /* of a head; else undefined */
	struct mu_metrics m;
};
/* Part i; false: there is none. m: sums of the loss, or NULL. */
bool mu_loss_part(struct mu_loss_part *part, const struct mu_loss *loss, size_t i,
		  const struct mu_metrics *m);
/* Heads and how many targets each has, "class 1, value 2"; returns text. */
const char *mu_loss_heads(const struct mu_loss *loss, char *text, size_t nbytes);
size_t mu_loss_targets(const struct mu_loss *loss, const struct mu_shape *output);
/* Its value, from the sums of the net's loss. */
double mu_metric_value(const struct mu_metric *metric, const struct mu_metrics *m);
/* The first metric of this use, of this name (either of the two), NULL: none. */
const struct mu_metric *mu_metric_used(const struct mu_loss *loss, enum mu_metric_use use);
const struct mu_metric *mu_metric_named(const struct mu_loss *loss, const char *name, size_t n);
/* Of any loss, or head, as a log prints it: "top_k_accuracy_5". NULL: another program's. */
const struct mu_metric *mu_metric_printed(const char *printed);

/* Has m what the metric is computed from? */
bool mu_metric_is_known(const struct mu_metric *metric, const struct mu_metrics *m);

/*
 * tally.c. MU_ERR_USAGE: its matrix would be too large. _clear: for the next validation. _pair: of
 * the next column. _auc: of all pairs of all workers, which it sorts.
 */
enum mu_status mu_tally_open(struct mu_tally *t, const struct mu_loss *loss,
			     const struct mu_shape *output);
/* Of several losses: n tallies without anything, each of which may then be opened. */
enum mu_status mu_tally_heads(struct mu_tally *t, size_t n);
/* That of part i; NULL: it has none. */
struct mu_tally *mu_tally_part(struct mu_tally *t, size_t i);
void mu_tally_close(struct mu_tally *t);
void mu_tally_clear(struct mu_tally *t);
void mu_tally_pair(struct mu_tally *t, float score, float target);
void mu_tally_target(struct mu_moments *m, double target, double predicted);
enum mu_status mu_tally_auc(struct mu_tally *t, float (*pairs)[2], size_t n);
/* Of a class: targets, predictions, and both. */
struct mu_class_counts {
	double targets, predicted, both;
};
struct mu_class_counts mu_tally_class(const struct mu_tally *t, size_t k);
/* The class that all predictions are, of several classes of targets; outputs: there is none. */
size_t mu_tally_only(const struct mu_tally *t);
/* Metrics: means over classes that occur (recall), that occur or are predicted. */
double mu_tally_recall(const struct mu_metrics *m);
double mu_tally_iou(const struct mu_metrics *m);
double mu_tally_dice(const struct mu_metrics *m);
double mu_tally_r2(const struct mu_metrics *m);
double mu_tally_area(const struct mu_metrics *m);

void mu_metrics_add(struct mu_metrics *m, const struct mu_metrics *more);
/* What m has and `before` has not. */
struct mu_metrics mu_metrics_since(const struct mu_metrics *m, const struct mu_metrics *before);
bool mu_metrics_are_finite(const struct mu_metrics *m);
/* Add what is counted of a batch after forward. */
void mu_metrics_measure(struct mu_metrics *m, const struct mu_loss *loss,
			const struct mu_loss_results *r);
/*
 * ---- a loss in its own file ----
 *
 * A user's loss is one C file: a layer (struct mu_custom_loss, device.h), a struct mu_loss whose
 * `add` calls mu_net_custom_loss, and at the end MU_LOSS_EXPORT(loss), which defines the file's
 * only exported symbol. Compiled as a network is (net.h), it trains any network that leaves its
 * loss open: `trainer --objective ./focal.so`. A checkpoint holds the loss's name, not the file's.
 */
struct mu_loss_export {
	int abi; /* MU_ABI; first, and an int, in all versions */
	const struct mu_loss *loss;
};

#define MU_LOSS_EXPORT(loss) \
	extern const struct mu_loss_export mu_loss_export \
		__attribute__((visibility("default"))); \
	const struct mu_loss_export mu_loss_export = {MU_ABI, &(loss)}

/* As mu_network_load. MU_ERR_FORMAT also for a name that another loss has. Once loaded, it is among
 * those of mu_loss_at. */
enum mu_status mu_loss_load(const struct mu_loss **out, const char *path);
/* What a loss needs and this one lacks; NULL: nothing. */
const char *mu_loss_lacks(const struct mu_loss *loss);

/* Parts of rows. Of classes: sums of the loss, of labels that are the likeliest class, of -ln p. Of
 * values: of the loss, of squared and absolute errors. */
void mu_loss_measure_classes(struct mu_metrics *m, const struct mu_loss_results *r);
void mu_loss_size_classes(struct mu_tally *t, const struct mu_shape *output);
void mu_loss_tally_classes(struct mu_tally *t, const struct mu_loss_results *r);
void mu_loss_measure_values(struct mu_metrics *m, const struct mu_loss_results *r);
void mu_loss_size_values(struct mu_tally *t, const struct mu_shape *output);
void mu_loss_tally_values(struct mu_tally *t, const struct mu_loss_results *r);
double mu_metric_loss(const struct mu_metrics *m); /* mean over samples */
double mu_metric_accuracy(const struct mu_metrics *m);
double mu_metric_cross_entropy(const struct mu_metrics *m);
double mu_metric_squared(const struct mu_metrics *m);
double mu_metric_root(const struct mu_metrics *m);
double mu_metric_absolute(const struct mu_metrics *m);

#define MU_LOSS_OF_CLASSES \
	.output = MU_OUTPUT_PROBABILITIES, .mean = MU_MEAN_OF_COUNTED, .of_classes = true, \
	.sums = {"loss", "correct", "cross_entropy"}, .targets = mu_shape_positions, \
	.measure = mu_loss_measure_classes, .tally_size = mu_loss_size_classes, \
	.tally = mu_loss_tally_classes
#define MU_LOSS_OF_VALUES \
	.output = MU_OUTPUT_VALUES, .mean = MU_MEAN_OF_TARGETS, .reads_output = true, \
	.sums = {"loss", "squared", "absolute"}, .targets = mu_shape_sample, \
	.measure = mu_loss_measure_values, .tally_size = mu_loss_size_values, \
	.tally = mu_loss_tally_values

/* The mean of the loss, which decides where no option says otherwise. */
#define MU_METRIC_OF_LOSS(n) \
	{.name = n, .printed = n, .better = -1, \
	 .use = MU_METRIC_IS_LOSS | MU_METRIC_ALWAYS | MU_METRIC_CHOSEN | MU_METRIC_BEST | \
		MU_METRIC_OF_PLATEAU, \
	 .value = mu_metric_loss}
#define MU_METRIC_BY_TALLY(n, column_, function) \
	{.name = n, .printed = n, .column = column_, .better = 1, \
	 .use = MU_METRIC_CHOSEN | MU_METRIC_OF_TALLY, .value = (function)}
#define MU_METRICS_OF_CONFUSION \
	MU_METRIC_BY_TALLY("recall", NULL, mu_tally_recall), \
	MU_METRIC_BY_TALLY("iou", NULL, mu_tally_iou), \
	MU_METRIC_BY_TALLY("dice-score", "dice", mu_tally_dice)
#define MU_METRICS_OF_CLASSES \
	{.name = "accuracy", .printed = "accuracy", .column = "acc", .better = 1, \
	 .use = MU_METRIC_ALWAYS, .value = mu_metric_accuracy}, \
	{.name = "ce", .other = "cross-entropy", .printed = "cross-entropy", .better = -1, \
	 .use = MU_METRIC_CHOSEN, .value = mu_metric_cross_entropy}, \
	MU_METRICS_OF_CONFUSION
#define MU_METRIC_OF_ERRORS(n, function) \
	{.name = n, .printed = n, .better = -1, .use = MU_METRIC_CHOSEN, .value = (function)}
#define MU_METRICS_OF_VALUES \
	MU_METRIC_OF_ERRORS("mse", mu_metric_squared), \
	MU_METRIC_OF_ERRORS("rmse", mu_metric_root), \
	MU_METRIC_OF_ERRORS("mae", mu_metric_absolute), \
	MU_METRIC_BY_TALLY("r2", NULL, mu_tally_r2)

/* As text for checkpoints; false: it is none of this loss. */
void mu_metrics_print(const struct mu_metrics *m, const struct mu_loss *loss, char *text,
		      size_t nbytes);
bool mu_metrics_scan(struct mu_metrics *m, const struct mu_loss *loss, const char *text);

MU_END_C

#endif
