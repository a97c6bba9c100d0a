dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_NCCL: sums between the GPUs of a node. Optional, used when found, beside CUDA or in a prefix of its
dnl own, and only with CUDA. Sets NCCL_CPPFLAGS, HAVE_NCCL (conditional and macro), mu_has_nccl.
AC_DEFUN([MU_CHECK_NCCL], [
AC_REQUIRE([MU_CHECK_CUDA])
MU_ARG_PREFIX([nccl], [use NCCL 2 of this prefix (default: looked for beside CUDA)], [auto])
mu_nccl_found=no
NCCL_CPPFLAGS=
AS_IF([test $mu_nccl_want = no], [mu_has_nccl="no (--without-nccl)"],
	[test $mu_cuda_found = no], [mu_has_nccl="no (without CUDA)"],
	[MU_LOOK_FOR_NCCL])
AS_IF([test $mu_nccl_found = no], [
	AS_IF([test $mu_nccl_want = yes], [AC_MSG_ERROR([--with-nccl was given, but: $mu_has_nccl])])],
	[AC_DEFINE([HAVE_NCCL], [1], [Define to 1 if there are stores that use NCCL])
	AC_DEFINE_UNQUOTED([MU_NCCL_LIBRARY_PATH], ["$CUDA_LIBRARY_PATH"],
		[Folders of NCCL, looked into where the loader finds none])])
AC_SUBST([NCCL_CPPFLAGS])
AM_CONDITIONAL([HAVE_NCCL], [test $mu_nccl_found = yes])
])

AC_DEFUN([MU_LOOK_FOR_NCCL], [
mu_save_cuda=$CUDA_CPPFLAGS
CUDA_CPPFLAGS=
AS_IF([test "x$mu_nccl_prefix" != x], [MU_CUDA_FOLDERS([$mu_nccl_prefix])])
NCCL_CPPFLAGS=$CUDA_CPPFLAGS
CUDA_CPPFLAGS=$mu_save_cuda
AC_MSG_CHECKING([for NCCL])
MU_HEADER_TEXT([mu_nccl_version], [$NCCL_CPPFLAGS $CUDA_CPPFLAGS], [nccl.h],
	[NCCL_MAJOR.NCCL_MINOR.NCCL_PATCH])
AS_CASE([$mu_nccl_version],
	[2.*], [mu_nccl_found=yes
		mu_has_nccl="yes ($mu_nccl_version)"],
	[mu_has_nccl="no (no nccl.h of version 2; --with-nccl=DIR)"])
AC_MSG_RESULT([$mu_nccl_found])
])
