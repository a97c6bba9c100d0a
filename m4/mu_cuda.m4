dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_CUDA: off unless asked for. This version has no device code; the check makes sure
dnl that what is named is there. Sets HAVE_CUDA (conditional), mu_has_cuda.
AC_DEFUN([MU_CHECK_CUDA], [
MU_ARG_PREFIX([cuda], [look for CUDA in this prefix (no device code yet in this version)], [no])
mu_has_cuda="no (not asked for)"
AS_IF([test $mu_cuda_want = auto], [mu_cuda_want=yes])
AS_IF([test $mu_cuda_want = yes], [
	AS_IF([test "x$mu_cuda_prefix" = x], [
		AC_PATH_PROG([mu_nvcc], [nvcc])
		AS_IF([test "x$mu_nvcc" = x],
			[AC_MSG_ERROR([--with-cuda: no nvcc on the PATH; give --with-cuda=DIR])])
		mu_cuda_prefix=`dirname "$mu_nvcc"`
		mu_cuda_prefix=`dirname "$mu_cuda_prefix"`])
	for mu_file in bin/nvcc include/cuda_runtime_api.h; do
		AS_IF([test ! -f "$mu_cuda_prefix/$mu_file"],
			[AC_MSG_ERROR([--with-cuda: there is no $mu_cuda_prefix/$mu_file])])
	done
	mu_has_cuda="found $mu_cuda_prefix, no device code in this version"])
AM_CONDITIONAL([HAVE_CUDA], [test $mu_cuda_want = yes])
])

dnl MU_CUDA_LIBRARY(name, title, header): the common part of NCCL and cuDNN.
AC_DEFUN([MU_CUDA_LIBRARY], [
MU_ARG_PREFIX([$1], [look for $2 in this prefix; needs --with-cuda], [no])
mu_has_$1="no (not asked for)"
AS_IF([test $mu_$1_want != no], [
	AS_IF([test $mu_cuda_want = no], [AC_MSG_ERROR([--with-$1 needs --with-cuda=DIR])])
	MU_PREFIX_HAS([$1], [$3])
	MU_PREFIX_FLAGS([$1], [mu_$1])
	mu_save_CPPFLAGS=$CPPFLAGS
	CPPFLAGS="$mu_$1_CPPFLAGS -I$mu_cuda_prefix/include $CPPFLAGS"
	AC_MSG_CHECKING([for $3])
	AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <$3>]])],
		[AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
		AC_MSG_ERROR([--with-$1: no usable $3 in ${mu_$1_prefix:-the CUDA and compiler folders}])])
	CPPFLAGS=$mu_save_CPPFLAGS
	mu_has_$1="found ${mu_$1_prefix:-$3}, not used in this version"])
])
