/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a benchmark: see program.h. */
#include "program.h"

/* Options. *done: --help or --version was given; rank 0 answers. */
static enum mu_status read_options(const struct bench_program *p, int argc, char **argv, int rank,
				   bool *done)
{
	enum mu_status st = MU_OK;
	char usage[4096];
	struct mu_options o;

	MU_TRY(mu_options_init(&o, p->table, p->n_options, p->values));
	MU_TRY(mu_options_parse(&o, argc, argv));
	*done = *p->help || o.version;
	snprintf(usage, sizeof usage, "usage: mpirun -np N %s [options]\n\n%s\n", p->name,
		 p->about);
	if (*done && rank == 0)
		mu_options_answer(&o, p->name, usage);
out:
	mu_options_release(&o);
	return st;
}

int bench_main(const struct bench_program *p, int argc, char **argv)
{
	enum mu_status st;
	MPI_Comm world = MPI_COMM_NULL;
	int rank = 0, size = 1;
	bool done = false;

	mu_streams_begin();
	if (!mu_world_launched() && read_options(p, argc, argv, rank, &done) == MU_OK && done)
		return mu_streams_end(p->name, 0);
	mu_trace_clear(); /* of wrong options all ranks shall know */
	st = mu_world_open(&argc, &argv, &world);
	if (st == MU_OK)
		st = mu_comm_rank(world, &rank, &size);
	if (st == MU_OK)
		st = read_options(p, argc, argv, rank, &done);
	if (st == MU_OK && !done)
		st = p->run(p->context, world);
	if (st != MU_OK)
		mu_world_fail(st, p->name, rank,
			      p->roles->size > 0 ? mu_role_name(p->roles->role) : "");
	return mu_world_close(&world, mu_streams_end(p->name, 0));
}
