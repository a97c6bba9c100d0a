dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_CUDA: the device gpu. Optional, used when found: nvcc, the headers of the driver and of cuBLAS in
dnl one prefix ($CUDA_HOME, /usr/local/cuda, or that of the nvcc on the PATH), and cuDNN 9 there or in a prefix of
dnl its own. Prefixes may be as pip unpacks them (nvidia/cudnn/include, nvidia/cudnn/lib). Nothing is linked:
dnl libraries are opened by their names when a GPU is used, and then in the folders that are found here.
dnl Sets CUDA_CPPFLAGS, CUDA_LIBRARY_PATH, NVCC, HAVE_CUDA (conditional and macro), mu_cuda_found, mu_has_cuda.
AC_DEFUN([MU_CHECK_CUDA], [
MU_ARG_PREFIX([cuda], [use CUDA 12 or later of this prefix (default: used when found, with cuDNN)], [auto])
MU_ARG_PREFIX([cudnn], [use cuDNN 9 of this prefix (default: looked for beside CUDA)], [auto])
AC_ARG_VAR([NVCC], [CUDA compiler])
mu_cuda_found=no
CUDA_CPPFLAGS= CUDA_LIBRARY_PATH=
AS_IF([test $mu_cuda_want = no], [mu_has_cuda="no (--without-cuda)"],
	[test $mu_cudnn_want = no], [mu_has_cuda="no (--without-cudnn)"],
	[MU_LOOK_FOR_CUDA])
AS_IF([test $mu_cuda_found = no], [
	AS_IF([test $mu_cuda_want = yes], [AC_MSG_ERROR([--with-cuda was given, but: $mu_has_cuda])])
	AS_IF([test $mu_cudnn_want = yes], [AC_MSG_ERROR([--with-cudnn was given, but: $mu_has_cuda])])
	CUDA_CPPFLAGS= CUDA_LIBRARY_PATH=],
	[AC_DEFINE([HAVE_CUDA], [1], [Define to 1 if there is a device gpu])
	AC_DEFINE_UNQUOTED([MU_CUDA_LIBRARY_PATH], ["$CUDA_LIBRARY_PATH"],
		[Folders of CUDA's libraries, looked into where the loader finds none])])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([NVCC])
AM_CONDITIONAL([HAVE_CUDA], [test $mu_cuda_found = yes])
])

dnl The prefix of CUDA: the one asked for, or the first that has nvcc.
AC_DEFUN([MU_CUDA_PREFIX], [
AS_IF([test "x$mu_cuda_prefix" = x], [
	mu_nvcc=`command -v nvcc 2>/dev/null`
	mu_path=
	AS_IF([test "x$mu_nvcc" != x], [
		mu_nvcc=`readlink -f "$mu_nvcc"`
		mu_path=`dirname "$mu_nvcc"`
		mu_path=`dirname "$mu_path"`])
	for mu_dir in "$CUDA_HOME" "$mu_path" /usr/local/cuda; do
		AS_IF([test "x$mu_cuda_prefix" = x && test -f "$mu_dir/include/cuda.h"], [mu_cuda_prefix=$mu_dir])
	done])
AS_IF([test "x$NVCC" = x && test -x "$mu_cuda_prefix/bin/nvcc"], [NVCC=$mu_cuda_prefix/bin/nvcc])
AS_IF([test "x$NVCC" = x], [AC_PATH_PROGS([NVCC], [nvcc])])
])

dnl MU_CUDA_FOLDERS(prefix): add its headers and libraries. Not -I: warnings about them are of no use.
AC_DEFUN([MU_CUDA_FOLDERS], [
CUDA_CPPFLAGS="$CUDA_CPPFLAGS -isystem $1/include"
for mu_dir in lib64 lib; do
	AS_IF([test -d "$1/$mu_dir"], [CUDA_LIBRARY_PATH="${CUDA_LIBRARY_PATH:+$CUDA_LIBRARY_PATH:}$1/$mu_dir"
		break])
done
])

dnl A compiler for the host that nvcc does not know, or none, is no reason to fail in the build.
AC_DEFUN([MU_TRY_NVCC], [
echo '__global__ void f(float *x) { *x = 1; }' >conftest.cu
AS_IF(["$NVCC" --fatbin -gencode arch=compute_90,code=sm_90 -o conftest.fatbin conftest.cu \
		>&AS_MESSAGE_LOG_FD 2>&1], [],
	[mu_cuda_found=no
	mu_has_cuda="no ($NVCC cannot compile, see config.log)"])
rm -f conftest.cu conftest.fatbin
])

AC_DEFUN([MU_LOOK_FOR_CUDA], [
MU_CUDA_PREFIX
AS_IF([test "x$mu_cudnn_prefix" != x], [MU_CUDA_FOLDERS([$mu_cudnn_prefix])])
AS_IF([test "x$mu_cuda_prefix" != x], [MU_CUDA_FOLDERS([$mu_cuda_prefix])])
AC_MSG_CHECKING([for CUDA and cuDNN])
MU_HEADER_TEXT([mu_cuda_version], [$CUDA_CPPFLAGS], [cuda.h], [CUDA_VERSION])
MU_HEADER_TEXT([mu_cudnn_version], [$CUDA_CPPFLAGS], [cudnn_version.h],
	[CUDNN_MAJOR.CUDNN_MINOR.CUDNN_PATCHLEVEL])
mu_has_cuda=
AS_CASE([$mu_cuda_version],
	[""|CUDA*], [mu_has_cuda="no (no cuda.h; --with-cuda=DIR)"],
	[1@<:@2-9@:>@???], [],
	[mu_has_cuda="no (cuda.h of version $mu_cuda_version; 12000 or later is needed)"])
AS_IF([test "x$mu_has_cuda" = x], [
	AS_CASE([$mu_cudnn_version],
		[""|CUDNN*], [mu_has_cuda="no (CUDA is there, but no cudnn.h; --with-cudnn=DIR)"],
		[9.*], [],
		[mu_has_cuda="no (cuDNN $mu_cudnn_version; version 9 is needed)"])])
AS_IF([test "x$mu_has_cuda" = x && test "x$NVCC" = x], [mu_has_cuda="no (no nvcc; NVCC=PATH)"])
AS_IF([test "x$mu_has_cuda" = x], [
	mu_save_CPPFLAGS=$CPPFLAGS
	CPPFLAGS="$CUDA_CPPFLAGS $CPPFLAGS"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <cuda.h>
#include <cublas_v2.h>
#include <cudnn.h>]], [return (int)CUBLAS_VER_MAJOR + (int)CUDNN_MAJOR;])], [
		mu_cuda_found=yes
		mu_has_cuda="yes ($mu_cuda_version, cuDNN $mu_cudnn_version, $NVCC)"],
		[mu_has_cuda="no (cuda.h, cublas_v2.h and cudnn.h cannot be compiled, see config.log)"])
	CPPFLAGS=$mu_save_CPPFLAGS])
AS_IF([test $mu_cuda_found = yes], [MU_TRY_NVCC])
AC_MSG_RESULT([$mu_cuda_found])
])
