dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_ONEDNN: the cpu device. Optional, used when found. The C API changed in 3.0: 2.6 and
dnl 2.7 have one, 3.x has the other, and src/device/cpu/onednn a file for each. Sets ONEDNN_CPPFLAGS,
dnl ONEDNN_LIBS, HAVE_ONEDNN, HAVE_ONEDNN_2, mu_onednn_found, mu_has_onednn.
AC_DEFUN([MU_CHECK_ONEDNN], [
MU_ARG_PREFIX([onednn], [use oneDNN (2.6, 2.7 or 3.x) of this prefix (default: used when found)], [auto])
mu_onednn_found=no
AS_IF([test $mu_onednn_want = no], [mu_has_onednn="no (--without-onednn)"], [MU_LOOK_FOR_ONEDNN])
AS_IF([test $mu_onednn_found = no], [
	AS_IF([test $mu_onednn_want = yes], [AC_MSG_ERROR([--with-onednn was given, but: $mu_has_onednn])])
	ONEDNN_CPPFLAGS= ONEDNN_LIBS=],
	[AC_DEFINE([HAVE_ONEDNN], [1], [Define to 1 if oneDNN is used])])
AC_SUBST([ONEDNN_CPPFLAGS])
AC_SUBST([ONEDNN_LIBS])
AC_SUBST([ONEDNN_SUMMARY], [$mu_has_onednn])
AM_CONDITIONAL([HAVE_ONEDNN], [test $mu_onednn_found = yes])
AM_CONDITIONAL([HAVE_ONEDNN_2], [test "x$mu_onednn_api" = x2])
])

dnl The OpenMP runtime that libdnnl itself was linked with: we set its number of threads, and a second
dnl runtime in one process would start threads of its own. Looks at what the test program loads; of another machine's
dnl libraries it takes GCC's.
AC_DEFUN([MU_ONEDNN_OPENMP], [
mu_openmp=
for mu_lib in gomp iomp5 omp; do
	AS_CASE([$mu_openmp:$mu_loaded], [:*lib$mu_lib.so*], [mu_openmp=lib$mu_lib])
done
AS_IF([test "x$mu_openmp$cross_compiling" = xyes], [mu_openmp=libgomp])
AS_IF([test "x$mu_openmp" != x], [ONEDNN_LIBS="$ONEDNN_LIBS -l${mu_openmp#lib}"])
])

AC_DEFUN([MU_LOOK_FOR_ONEDNN], [
MU_PREFIX_HAS([onednn], [dnnl.h])
MU_PREFIX_FLAGS([onednn], [ONEDNN])
ONEDNN_LIBS="$ONEDNN_LIBS -ldnnl"
MU_HEADER_TEXT([mu_onednn_version], [$ONEDNN_CPPFLAGS], [dnnl_version.h],
	[DNNL_VERSION_MAJOR.DNNL_VERSION_MINOR.DNNL_VERSION_PATCH])
mu_onednn_api=no
AS_CASE([$mu_onednn_version], [2.6.*|2.7.*], [mu_onednn_api=2], [3.*], [mu_onednn_api=3])
AC_MSG_CHECKING([for oneDNN 2.6, 2.7 or 3.x])
AS_CASE([$mu_onednn_api:$mu_onednn_version],
	[2:*|3:*], [MU_LINK_WITH([$ONEDNN_CPPFLAGS], [$ONEDNN_LIBS], [[#include <dnnl.h>]], [
		dnnl_engine_t engine;
		return (int)dnnl_engine_create(&engine, dnnl_cpu, 0) + dnnl_version()->major;],
		[MU_ONEDNN_OPENMP
		mu_onednn_found=yes
		mu_has_onednn="yes ($mu_onednn_version, threads by ${mu_openmp:-no OpenMP})"],
		[mu_has_onednn="no (version $mu_onednn_version: no program can be linked with it, see config.log)"])],
	[no:|no:DNNL*], [mu_has_onednn="no (no dnnl.h; Debian: apt-get install libdnnl-dev; or --with-onednn=DIR)"],
	[mu_has_onednn="no (found version $mu_onednn_version; Muster knows 2.6, 2.7 and 3.x)"])
AC_MSG_RESULT([$mu_onednn_found])
])
