/* SPDX-License-Identifier: Apache-2.0 */
/* P-run.json: what was run, where, and how it ended. */
#ifndef CHECKPOINT_RUN_FILE_H
#define CHECKPOINT_RUN_FILE_H

#include <time.h>

#include <muster/base.h>

struct checkpoint_resume;
struct mu_engine;
struct mu_members;

enum { CHECKPOINT_PLACES = 16 };

struct checkpoint_run_file {
	const struct mu_engine *e;        /* the devices, the ranks, the settled options */
	const char *resumed_from;         /* "": nothing */
	const struct mu_options *options; /* NULL: this rank writes none */
	time_t started, ended;            /* 0: not yet */
	char places[CHECKPOINT_PLACES][256]; /* of the error that ended the run */
	size_t n_places;
	double joules_before; /* of the runs that this one goes on from; 0: none, or not measured */
	double *memory; /* most bytes of RAM that each rank has used; NULL: not known */
};
/*
 * The arguments must stay valid until _end. If worker 0 cannot write the file, it warns. A run that
 * has nothing left to train leaves the file of the run that trained. Not collective; other ranks do
 * nothing.
 */
void mu_checkpoint_run_file_begin(struct checkpoint_run_file *f, const struct mu_engine *e,
				  const struct checkpoint_resume *resumed,
				  const struct mu_options *options);
/* After a checkpoint: write the energy so far, where it is measured. */
void mu_checkpoint_run_file_energy(const struct checkpoint_run_file *f);
/* At the end: learn and log how much memory the ranks have used. Collective over all ranks. */
enum mu_status mu_checkpoint_run_file_memory(struct checkpoint_run_file *f,
					     const struct mu_members *m);
/*
 * st: how the run ended here; the cause of an error is the current trace, which stays. halted: why
 * the run was halted; NULL: it was not.
 */
void mu_checkpoint_run_file_end(struct checkpoint_run_file *f, enum mu_status st,
				const char *halted);
/* The same where another run in this job is about to begin, because of this error. */
void mu_checkpoint_run_file_back(struct checkpoint_run_file *f, const char *cause);

#endif
