/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a benchmark: see program.h. */
#include "program.h"

/* Options; answers --help. */
static enum mu_status read_options(const struct bench_program *p, int argc, char **argv, int rank)
{
	enum mu_status st = MU_OK;
	struct mu_options o;

	MU_TRY(mu_options_init(&o, p->table, p->n_options, p->values));
	MU_TRY(mu_options_parse(&o, argc, argv));
	if (*p->help && rank == 0) {
		printf("usage: mpirun -np N %s [options]\n\n%s\n", p->name, p->about);
		mu_options_help(&o, stdout, true);
	}
out:
	mu_options_release(&o);
	return st;
}

int bench_main(const struct bench_program *p, int argc, char **argv)
{
	enum mu_status st;
	MPI_Comm world = MPI_COMM_NULL;
	int rank = 0, size = 1;

	if (!mu_world_launched() && read_options(p, argc, argv, rank) == MU_OK && *p->help)
		return 0;
	mu_trace_clear(); /* of wrong options all ranks shall know */
	st = mu_world_open(&argc, &argv, &world);
	if (st == MU_OK)
		st = mu_comm_rank(world, &rank, &size);
	if (st == MU_OK)
		st = read_options(p, argc, argv, rank);
	if (st == MU_OK && !*p->help)
		st = p->run(p->context, world);
	if (st != MU_OK)
		mu_world_fail(st, p->name, rank,
			      p->roles->size > 0 ? mu_role_name(p->roles->role) : "");
	return mu_world_close(&world, 0);
}
