dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_HDF5: model files. Optional, used when found. Order: the given prefix; pkg-config
dnl (the parallel HDF5 of the MPI in use, then plain and serial hdf5); what h5pcc tells; the compiler's own
dnl folders. Sets HDF5_CPPFLAGS, HDF5_LIBS, HAVE_HDF5, mu_hdf5_found, mu_has_hdf5.
AC_DEFUN([MU_CHECK_HDF5], [
MU_ARG_PREFIX([hdf5], [use HDF5 of this prefix (default: used when found)], [auto])
mu_hdf5_found=no
AS_IF([test $mu_hdf5_want = no], [mu_has_hdf5="no (--without-hdf5)"], [MU_LOOK_FOR_HDF5])
AS_IF([test $mu_hdf5_found = no], [
	AS_IF([test $mu_hdf5_want = yes], [AC_MSG_ERROR([--with-hdf5 was given, but: $mu_has_hdf5])])
	HDF5_CPPFLAGS= HDF5_LIBS=],
	[AC_DEFINE([HAVE_HDF5], [1], [Define to 1 if HDF5 is used])])
AC_SUBST([HDF5_CPPFLAGS])
AC_SUBST([HDF5_LIBS])
AM_CONDITIONAL([HAVE_HDF5], [test $mu_hdf5_found = yes])
])

AC_DEFUN([MU_LOOK_FOR_HDF5], [
mu_has_hdf5="no (no HDF5 for this MPI; Debian: apt-get install libhdf5-mpich-dev; or --with-hdf5=DIR)"
AS_CASE([$mu_hdf5_prefix], [/usr|/usr/], [mu_hdf5_prefix=])
AS_IF([test "x$mu_hdf5_prefix" != x], [
	MU_PREFIX_HAS([hdf5], [hdf5.h])
	MU_PREFIX_FLAGS([hdf5], [HDF5])
	HDF5_LIBS="$HDF5_LIBS -lhdf5"
	MU_TRY_HDF5([$mu_hdf5_prefix])
	AS_IF([test $mu_hdf5_found$mu_linked = nono],
		[mu_has_hdf5="no (no program can be linked with that of $mu_hdf5_prefix, see config.log)"])],
	[MU_HDF5_PKG_CONFIG
	MU_HDF5_H5PCC
	AS_IF([test $mu_hdf5_found = no], [
		HDF5_CPPFLAGS= HDF5_LIBS=-lhdf5
		MU_TRY_HDF5([the compiler's folders])])])
])

AC_DEFUN([MU_HDF5_PKG_CONFIG], [
AS_IF([test "x$PKG_CONFIG" != x], [
	for mu_module in hdf5-$mu_mpi_flavor hdf5 hdf5-serial; do
		AS_IF([test $mu_hdf5_found = no && $PKG_CONFIG --exists $mu_module 2>/dev/null], [
			HDF5_CPPFLAGS=`$PKG_CONFIG --cflags-only-I $mu_module`
			MU_HDF5_OWN_LIBS([`$PKG_CONFIG --libs $mu_module`])
			MU_TRY_HDF5([pkg-config $mu_module])])
	done])
])

dnl h5pcc -show prints the compile command that the parallel HDF5 was made for.
AC_DEFUN([MU_HDF5_H5PCC], [
for mu_h5cc in h5pcc.$mu_mpi_flavor h5pcc; do
	AS_IF([test $mu_hdf5_found = no && command -v $mu_h5cc >/dev/null 2>&1], [
		mu_show=`$mu_h5cc -show 2>/dev/null`
		HDF5_CPPFLAGS=
		for mu_word in $mu_show; do
			AS_CASE([$mu_word], [-I*], [HDF5_CPPFLAGS="$HDF5_CPPFLAGS $mu_word"])
		done
		MU_HDF5_OWN_LIBS([$mu_show])
		MU_TRY_HDF5([$mu_h5cc])])
done
])

dnl Of many words only those that are about HDF5: its MPI and the libraries below are linked
dnl already.
AC_DEFUN([MU_HDF5_OWN_LIBS], [
HDF5_LIBS=
mu_folders=
for mu_word in $1; do
	AS_CASE([$mu_word],
		[-L*|-Wl,-rpath*], [mu_folders="$mu_folders $mu_word"],
		[-lhdf5*], [HDF5_LIBS="$HDF5_LIBS $mu_word"],
		[*/libhdf5.so|*/libhdf5.a], [HDF5_LIBS="$HDF5_LIBS $mu_word"])
done
HDF5_LIBS="$mu_folders ${HDF5_LIBS:--lhdf5}"
])

dnl MU_TRY_HDF5(where): compile and link with HDF5_CPPFLAGS, HDF5_LIBS. A program that would load two
dnl MPIs, ours and that of this HDF5, links, and fails when it runs: not taken.
AC_DEFUN([MU_TRY_HDF5], [
AC_MSG_CHECKING([for HDF5 ($1)])
MU_LINK_WITH([$HDF5_CPPFLAGS], [$HDF5_LIBS], [[
#include <mpi.h>
#include <hdf5.h>
]], [int n; return MPI_Initialized(&n) || H5open() < 0;],
	[mu_mpis=`AS_ECHO(["$mu_loaded"]) | tr -d '\t' |
		sed -n -e 's/^\(libmpi\(ch\)\{0,1\}\.so@<:@^ @:>@*\).*/\1/p' \
			-e 's/^\(libmpi_abi\.so@<:@^ @:>@*\).*/\1/p' | sort -u | tr '\n' ' '`
	AS_CASE([$mu_mpis],
		[*" "*" "*], [mu_has_hdf5="no (that of $1 is another MPI's: a program would load ${mu_mpis% }; \
a serial HDF5 will do, Debian: libhdf5-dev)"],
		[mu_hdf5_found=yes])])
AS_IF([test $mu_hdf5_found = yes], [
	MU_HEADER_TEXT([mu_hdf5_version], [$HDF5_CPPFLAGS], [hdf5.h], [H5_VERS_INFO])
	MU_HEADER_TEXT([mu_hdf5_parallel], [$HDF5_CPPFLAGS], [hdf5.h], [H5_HAVE_PARALLEL])
	AS_IF([test "x$mu_hdf5_parallel" = x1], [mu_hdf5_parallel=parallel], [mu_hdf5_parallel=serial])
	mu_hdf5_version=`AS_ECHO(["$mu_hdf5_version"]) | sed 's/^HDF5libraryversion://'`
	mu_has_hdf5="yes ($mu_hdf5_version, $mu_hdf5_parallel, found by $1)"])
AC_MSG_RESULT([$mu_hdf5_found])
])
