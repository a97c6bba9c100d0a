/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: options to a finished run, and metrics. trainer(1) is a thin main over mu_train.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include <stdatomic.h>

#include <mpi.h>
#include <muster/base.h>
#include <muster/device.h>
#include <muster/net.h>

/*
 * How a job ended. agreed: all ranks return the same status and may finalize, and only the rank
 * that is to tell of an error has a trace; else the others may be waiting for this rank, and the
 * job must be aborted. who: what this rank was, such as "worker 2", or "" if that was not known
 * yet.
 */
struct mu_train_end {
	bool agreed;
	char who[32];
	bool halted; /* with MU_OK: training was ended early; MU_TRAIN_EXIT_HALTED is for that */
	/*
	 * Set by the caller before: a number above 0, which any thread may write there, ends
	 * training on all ranks after a step, with a checkpoint. NULL: nothing is looked at.
	 */
	const atomic_int *signal;
};
enum { MU_TRAIN_EXIT_HALTED = 85 };

/*
 * Before MPI_Init: makes MPI use the network interface that --interface of argv, or DMLC_INTERFACE
 * in the environment, names, by the variables that MPI libraries read; those that are set stay as
 * they are. MU_ERR_USAGE if this host has no such interface; other errors of argv are mu_train's.
 * Not collective.
 */
enum mu_status mu_conf_choose_interface(int argc, char *const argv[]);

/*
 * --help, --help-all, --version and --info without a job: true if argv asks for one of them, which
 * is printed. Errors of argv are mu_train's. Needs no MPI_Init.
 */
bool mu_train_answer(int argc, char *const argv[]);

/*
 * Run a whole training job: argv of rank 0 counts, the other ranks' is ignored. --help and the like
 * return MU_OK. Collective over comm.
 */
enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], struct mu_train_end *end);

/*
 * The parameters and running statistics of a checkpoint, or of another HDF5 file with arrays
 * arg/NAME and aux/NAME, into a flat array of the plan. MU_ERR_FORMAT lists what does not fit by
 * name and shape, what the file lacks and what the network does; with skip_mismatch a warning does,
 * and the rest is taken. Not collective.
 */
enum mu_status mu_load_weights(const struct mu_plan *plan, const char *path, bool skip_mismatch,
			       float *flat);

/* ---- metrics ---- */

/*
 * Sums over the counted predictions (see struct mu_batch), zero at first; those of several workers
 * add up. p is the probability that a prediction gives to its label, also where training smooths
 * its targets: batch->loss is then something else.
 */
struct mu_metrics {
	double samples;        /* whatever their labels: for speeds */
	double predictions;    /* one per sample, or one per position; the ignored are left out */
	double correct, top_k; /* the label has the largest p, one of the k largest p */
	double cross_entropy;  /* -ln(p + 1e-12) */
	double log_loss;       /* -ln max(p, 1e-10) */
};

void mu_metrics_add(struct mu_metrics *m, const struct mu_metrics *more);
/*
 * Add the counted predictions of a batch. probabilities: plain, of this shape, (n, c) or
 * (n, c, h, w). Of classes with equal probability the first comes first. k = 0: no top-k.
 */
void mu_metrics_measure(struct mu_metrics *m, const float *probabilities,
			const struct mu_shape *shape, const struct mu_batch *batch, size_t k);

/* A number that the log shows, made of the sums. MXNet's names and definitions. */
struct mu_metric {
	const char *name;                            /* in --loss: "ce" */
	const char *other;                           /* another name for it, or NULL */
	const char *printed;                         /* in the log: "cross-entropy" */
	double (*value)(const struct mu_metrics *m); /* 0 predictions: 0, perplexity 1 */
	bool always;                                 /* shown without being asked for */
	bool loss;                                   /* --loss may ask for it */
	bool takes_k; /* --top-k K asks for it; K is printed behind its name */
};

/* Up to the one whose name is NULL. */
extern const struct mu_metric mu_metric_table[];

#endif
