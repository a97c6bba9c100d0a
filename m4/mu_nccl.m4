dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_NCCL: off unless asked for, only with CUDA. Sets mu_has_nccl.
AC_DEFUN([MU_CHECK_NCCL], [MU_CUDA_LIBRARY([nccl], [NCCL], [nccl.h])])
