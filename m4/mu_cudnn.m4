dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_CUDNN: off unless asked for, only with CUDA. Sets mu_has_cudnn.
AC_DEFUN([MU_CHECK_CUDNN], [MU_CUDA_LIBRARY([cudnn], [cuDNN], [cudnn.h])])
