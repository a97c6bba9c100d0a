/* SPDX-License-Identifier: Apache-2.0 */
/* What main of a benchmark is: options, --help without mpirun, a world, errors told once. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <muster/comm.h>

struct bench_program {
	const char *name, *about; /* about: for --help, "Time ...\n" */
	const struct mu_option *table;
	size_t n_options;
	void *values;                    /* the struct that the table's offsets point into */
	const bool *help;                /* its --help */
	const struct mu_members *roles;  /* whose role errors name; size 0: not known yet */
	enum mu_status (*run)(void *context, MPI_Comm world); /* collective */
	void *context;
};

/* The exit status. */
int bench_main(const struct bench_program *program, int argc, char **argv);

#endif
