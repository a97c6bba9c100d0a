/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: calls of MPI that block, which poll inside MPI. Each is named on standard error.
 */
#include <mpi.h>
#include <stdio.h>

static void tell(const char *name)
{
	int rank = 0;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "blocking: %s, rank %d\n", name, rank);
}

#define WRAP(name, parameters, arguments) \
	int MPI_##name parameters; \
	int MPI_##name parameters \
	{ \
		tell("MPI_" #name); \
		return PMPI_##name arguments; \
	}

WRAP(Barrier, (MPI_Comm c), (c))
WRAP(Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
WRAP(Gather, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r,
     MPI_Comm c),
     (b, n, t, d, m, u, r, c))
WRAP(Scatter, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int r,
     MPI_Comm c),
     (b, n, t, d, m, u, r, c))
WRAP(Allgather, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
     (b, n, t, d, m, u, c))
WRAP(Alltoall, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
     (b, n, t, d, m, u, c))
WRAP(Reduce, (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm c),
     (b, d, n, t, o, r, c))
WRAP(Allreduce, (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (b, d, n, t, o, c))
WRAP(Scan, (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (b, d, n, t, o, c))
WRAP(Comm_dup, (MPI_Comm c, MPI_Comm *o), (c, o))
WRAP(Comm_split, (MPI_Comm c, int x, int y, MPI_Comm *o), (c, x, y, o))
WRAP(Comm_split_type, (MPI_Comm c, int x, int y, MPI_Info i, MPI_Comm *o), (c, x, y, i, o))
WRAP(Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm *o), (c, g, o))
WRAP(Comm_create_group, (MPI_Comm c, MPI_Group g, int t, MPI_Comm *o), (c, g, t, o))
WRAP(Win_create, (void *b, MPI_Aint z, int d, MPI_Info i, MPI_Comm c, MPI_Win *w),
     (b, z, d, i, c, w))
WRAP(Win_allocate, (MPI_Aint z, int d, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w),
     (z, d, i, c, b, w))
WRAP(Win_allocate_shared, (MPI_Aint z, int d, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w),
     (z, d, i, c, b, w))
WRAP(Wait, (MPI_Request *q, MPI_Status *s), (q, s))
WRAP(Waitall, (int n, MPI_Request *q, MPI_Status *s), (n, q, s))
WRAP(Recv, (void *b, int n, MPI_Datatype t, int r, int g, MPI_Comm c, MPI_Status *s),
     (b, n, t, r, g, c, s))
WRAP(Send, (const void *b, int n, MPI_Datatype t, int r, int g, MPI_Comm c), (b, n, t, r, g, c))
