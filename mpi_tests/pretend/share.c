/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pretended driver's part for several GPUs of a process: access to each other's memory.
 * PRETEND_PEERS=FILE gets a line for each pair that is enabled; PRETEND_NO_PEERS: none can be.
 */
#include "pretend.h"

enum { MAX_GPUS = 8 };

CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice other)
{
	*can = d != other && !getenv("PRETEND_NO_PEERS");
	return 0;
}
CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned f)
{
	static char enabled[MAX_GPUS][MAX_GPUS];
	const char *name = getenv("PRETEND_PEERS");
	const int from = pretend_device(), to = *(const int *)context; /* its number */
	FILE *file = name ? fopen(name, "a") : NULL;

	NEED(from >= 0 && from != to && f == 0 && !getenv("PRETEND_NO_PEERS"));
	if (file) {
		fprintf(file, "%d %d\n", from, to);
		fclose(file);
	}
	return enabled[from][to]++ ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : 0;
}
