/* SPDX-License-Identifier: Apache-2.0 */
/* What the pretended libraries do not have: functions that are there, and fail. */
#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)
#define MISSING(f) __asm__(".weak " WORD(f) "\n.set " WORD(f) ", pretend_missing\n");

int pretend_missing(void);

int pretend_missing(void)
{
	return 1;
}

CUDA_DRIVER_FUNCTIONS(MISSING)
CUDA_BLAS_FUNCTIONS(MISSING)
CUDA_DNN_FUNCTIONS(MISSING)
