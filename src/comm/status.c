/* SPDX-License-Identifier: Apache-2.0 */
/* MPI's error codes as enum mu_status, and counts for MPI. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <muster/comm.h>

enum mu_status mu_from_mpi(int mpi_error, const char *call, const char *file, int line)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n = 0;

	if (mpi_error == MPI_SUCCESS)
		return MU_OK;
	if (MPI_Error_string(mpi_error, text, &n) != MPI_SUCCESS)
		n = 0;
	mu_memory_keep(); /* of messages that this error leaves in flight */
	return mu_trace_start(MU_ERR_MPI, file, line, "%s: %s", call,
			      n > 0 ? text : "an error that MPI has no text for");
}

int mu_count(size_t n)
{
	assert(n <= INT_MAX);
	return (int)n;
}

void mu_comm_version(char *text, size_t nbytes)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING] = "unknown";
	int n = 0;

	if (MPI_Get_library_version(version, &n) == MPI_SUCCESS)
		version[strcspn(version, "\n")] = '\0';
	for (char *c = version; *c; c++)
		*c = *c == '\t' ? ' ' : *c;
	snprintf(text, nbytes, "%s", version);
}

const char *mu_comm_gpu_support(void)
{
	int started = 0, takes = -1;
	int (*ask)(void);

	if (MPI_Initialized(&started) != MPI_SUCCESS || !started)
		return "it answers behind mpirun only";
	/* An extension of MPICH, Open MPI and others: which library it is may be known now only. */
	*(void **)&ask = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
	if (ask)
		takes = ask();
	return takes < 0 ? "it does not say" : takes ? "yes" : "no";
}
