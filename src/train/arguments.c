/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a job: see arguments.h. */
#include "arguments.h"

#include <stdlib.h>
#include <string.h>

#include <muster/comm.h>

#include "same.h"

enum mu_status mu_train_read_arguments(struct conf_arguments *own, MPI_Comm comm, int argc,
				       char *const argv[])
{
	enum mu_status st = MU_OK;
	int rank, size;

	MU_TRY(mu_train_same_program(comm, argc, argv));
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (rank == 0) {
		MU_TRY(mu_conf_arguments_read(own, argc, argv));
		MU_TRY(mu_conf_arguments_check(own));
	}
out:
	return st;
}

enum mu_status mu_train_share_arguments(struct train_arguments *a, MPI_Comm comm, int argc,
					char *const argv[])
{
	enum mu_status st = MU_OK;
	long sizes[2] = {argc, 0};
	char *at;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	for (int i = 0; i < argc; i++)
		sizes[1] += (long)strlen(argv[i]) + 1;
	MU_TRY(mu_bcast(sizes, sizeof sizes, 0, comm));
	a->argc = sizes[0];
	a->text = malloc((size_t)sizes[1]);
	a->argv = calloc((size_t)a->argc + 1, sizeof *a->argv);
	if (!a->text || !a->argv)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the arguments");
	at = a->text;
	for (int i = 0; rank == 0 && i < argc; i++)
		at = stpcpy(at, argv[i]) + 1;
	MU_TRY(mu_bcast(a->text, (size_t)sizes[1], 0, comm));
	at = a->text;
	for (long i = 0; i < a->argc; i++) {
		a->argv[i] = at;
		at += strlen(at) + 1;
	}
out:
	return st;
}

void mu_train_release_arguments(struct train_arguments *a)
{
	free(a->argv);
	free(a->text);
}
