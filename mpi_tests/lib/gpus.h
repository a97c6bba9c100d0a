/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that cuDNN plans for though they are not there. */
#ifndef GPUS_H
#define GPUS_H

#include <stdbool.h>

/* Properties as cuDNN wants them; figures of NVIDIA's data sheets and programming guide (compute
 * capabilities 8.0 and 9.0). */
#define PROPERTIES(name, version, processors, shared, core, memory, l2, bytes) \
	"{\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64], " \
	"\"regsPerBlock\": 65536, \"multiProcessorCount\": " #processors ", \"warpSize\": 32, " \
	"\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": " #shared ", " \
	"\"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, " \
	"\"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, " \
	"\"pciDeviceId\": 0, \"isTccDriver\": 0, \"supportCoopLaunch\": 1, " \
	"\"smClockRateKHz\": " #core ", \"memClockRateKHz\": " #memory ", \"l2CacheSize\": " #l2 \
	", \"deviceName\": \"" name "\", \"deviceVer\": " #version ", \"driverVer\": 13000, " \
	"\"cudaDeviceId\": 0, \"totalGlobalMem\": " #bytes "}"

static const struct gpu {
	const char *name, *properties;
	bool fuses_more; /* than graph.h says */
} gpus[] = {
	{"H200", PROPERTIES("NVIDIA H200", 900, 132, 232448, 1980000, 3201000, 62914560,
			    150754820096),
	 false},
	{"H100", PROPERTIES("NVIDIA H100 80GB HBM3", 900, 132, 232448, 1980000, 2619000, 52428800,
			    85029158912),
	 false},
	{"A100", PROPERTIES("NVIDIA A100-SXM4-80GB", 800, 108, 166912, 1410000, 1593000, 41943040,
			    85174714368),
	 true},
};

enum { N_GPUS = sizeof gpus / sizeof *gpus };

#endif
