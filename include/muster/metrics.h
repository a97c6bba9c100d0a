/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: sums over the predictions of a model, and the numbers that a log shows of them. */
#ifndef MUSTER_METRICS_H
#define MUSTER_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <muster/device.h>
#include <muster/net.h>

MU_BEGIN_C

/*
 * Sums over the counted predictions (see struct mu_batch), zero at first; the sums of several
 * workers are added. Of the labels, also if training smooths the targets: then batch->loss differs.
 */
struct mu_metrics {
	double samples;        /* with any labels: for speeds */
	double predictions;    /* one per sample or per position, without ignored ones */
	double correct, top_k; /* the label has the largest p, one of the k largest p */
	double cross_entropy;  /* -ln p */
};

void mu_metrics_add(struct mu_metrics *m, const struct mu_metrics *more);
/* Add the counted predictions of a batch after forward, `steps` a sample. k = 0: no top-k. */
void mu_metrics_measure(struct mu_metrics *m, const struct mu_batch *batch, size_t steps, size_t k);

/* A number in the log, computed from the sums. MXNet's names and definitions. */
struct mu_metric {
	const char *name;                            /* in --loss: "ce" */
	const char *other;                           /* an alias, or NULL */
	const char *printed;                         /* in the log: "cross-entropy" */
	double (*value)(const struct mu_metrics *m); /* without predictions: 0, perplexity 1 */
	bool always;                                 /* always shown */
	bool loss;                                   /* allowed in --loss */
	bool takes_k; /* shown for --top-k K; K is printed after its name */
};

/* Ends with a NULL name. */
extern const struct mu_metric mu_metric_table[];

MU_END_C

#endif
