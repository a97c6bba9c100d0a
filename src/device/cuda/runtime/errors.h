/* SPDX-License-Identifier: Apache-2.0 */
/* What an error of the driver means to the user. Private to src/device/cuda and src/kvstore/gpu. */
#ifndef DEVICE_CUDA_ERRORS_H
#define DEVICE_CUDA_ERRORS_H

#include <cuda.h>

#include <muster/base.h>

/* What to do about an error of the driver, beginning with ": "; "" if that is not known. *st: of
 * what kind the error is, for MU_FAIL. */
const char *mu_cuda_cure(CUresult result, enum mu_status *st);

#endif
