/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the pretended GPUs, asked for in the environment:
 *
 *	PRETEND_INIT=RESULT   cuInit answers so
 *	PRETEND_OPEN=RESULT   a context cannot be had
 *	PRETEND_DRIVER=12020  the driver's version
 *	PRETEND_CUDNN=80907   cuDNN's version; _FOR=12000: the CUDA that it is for
 *	PRETEND_USED=MIB      memory of each GPU that other processes have
 *	PRETEND_LOST=RESULT   the GPUs are lost: calls of the driver answer so, those of cuBLAS
 *	                      and cuDNN that they failed, and nothing runs; _AT: from this launch
 *	                      on (kernels and graphs); _FILE: not before this file exists;
 *	                      _RANK: of this rank only
 *
 * Those of NCCL are in nccl.c.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "pretend.h"

static atomic_long launches;

long pretend_setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

static int is_concerned(void)
{
	const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
	const long asked = pretend_setting("PRETEND_LOST_RANK", -1);
	const char *file = getenv("PRETEND_LOST_FILE");

	return getenv("PRETEND_LOST") && (asked < 0 || (rank && atol(rank) == asked)) &&
	       (!file || access(file, F_OK) == 0);
}

CUresult pretend_lost(void)
{
	if (launches < pretend_setting("PRETEND_LOST_AT", 1) || !is_concerned())
		return 0;
	return (CUresult)pretend_setting("PRETEND_LOST", 0);
}

CUresult pretend_launch(void)
{
	launches++;
	return pretend_lost();
}
