/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: runs a training job from its options; metrics. trainer(1) is a thin main around mu_train.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include <stdatomic.h>

#include <mpi.h>
#include <muster/base.h>
#include <muster/device.h>
#include <muster/net.h>

/*
 * How a job ended. agreed: all ranks return the same status and may finalize MPI, and only the rank
 * that reports the error has a trace. Otherwise other ranks may be waiting for this one, and the
 * job must be aborted. who: role of this rank, such as "worker 2", or "" if it was not known yet.
 */
struct mu_train_end {
	bool agreed;
	char who[32];
	bool halted; /* with MU_OK: training was ended early; exit with MU_TRAIN_EXIT_HALTED */
	/* Set by the caller beforehand. A value above 0, which any thread may write, ends training
	 * on all ranks after a step, with a checkpoint. NULL: no such flag. */
	const atomic_int *signal;
};
enum { MU_TRAIN_EXIT_HALTED = 85 };

/*
 * Before MPI_Init: make MPI use the network interface that --interface of argv, or DMLC_INTERFACE
 * in the environment, names. Sets the environment variables that MPI libraries read; existing
 * values are kept. MU_ERR_USAGE if this host has no such interface; mu_train reports other errors
 * of argv. Not collective.
 */
enum mu_status mu_conf_choose_interface(int argc, char *const argv[]);

/* --help, --help-all, --version and --info without a job: true if argv contains one of them and its
 * text was printed. mu_train reports errors of argv. Needs no MPI_Init. */
bool mu_train_answer(int argc, char *const argv[]);

/* Run a training job. argv of rank 0 is used, other ranks' argv is ignored. --help and the like
 * return MU_OK. Collective over comm. */
enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], struct mu_train_end *end);

/*
 * Load the parameters and running statistics of a checkpoint, or of another HDF5 file with arrays
 * arg/NAME and aux/NAME, into a flat array of the plan. MU_ERR_FORMAT lists all mismatches by name
 * and shape, arrays missing in the file, and arrays missing in the network; with skip_mismatch a
 * warning lists them and the rest is loaded. Not collective.
 */
enum mu_status mu_load_weights(const struct mu_plan *plan, const char *path, bool skip_mismatch,
			       float *flat);

/* ---- metrics ---- */

/*
 * Sums over the counted predictions (see struct mu_batch), zero at first; the sums of several
 * workers are added. p is the probability of a prediction's label, also if training smooths the
 * targets: then batch->loss differs.
 */
struct mu_metrics {
	double samples;        /* with any labels: for speeds */
	double predictions;    /* one per sample or per position, without ignored ones */
	double correct, top_k; /* the label has the largest p, one of the k largest p */
	double cross_entropy;  /* -ln(p + 1e-12) */
	double log_loss;       /* -ln max(p, 1e-10) */
};

void mu_metrics_add(struct mu_metrics *m, const struct mu_metrics *more);
/* Add the counted predictions of a batch. probabilities: plain, with this shape, (n, c) or (n, c,
 * h, w). Among classes of equal probability the lowest ranks first. k = 0: no top-k. */
void mu_metrics_measure(struct mu_metrics *m, const float *probabilities,
			const struct mu_shape *shape, const struct mu_batch *batch, size_t k);

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

#endif
