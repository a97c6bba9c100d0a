dnl SPDX-License-Identifier: Apache-2.0
dnl MU_MPI_COMPILER: CC is mpicc when the user gave none. Before AC_PROG_CC.
AC_DEFUN([MU_MPI_COMPILER], [
AC_BEFORE([$0], [AC_PROG_CC])
AC_ARG_VAR([MPIRUN], [program that starts MPI jobs])
mu_mpicc_missing="no mpicc on the PATH. Debian, Ubuntu: apt-get install mpich libmpich-dev; \
Fedora, Rocky: dnf install mpich-devel, then module load mpi/mpich-x86_64; \
a cluster: module load mpich (or openmpi, cray-mpich, impi); or configure with CC=/path/to/mpicc"
AS_IF([test "x$CC" = x], [
	AC_PATH_PROGS([MPICC], [mpicc mpicc.mpich mpicc.openmpi mpiicc])
	AS_IF([test "x$MPICC" = x], [AC_MSG_ERROR([$mu_mpicc_missing])])
	CC=$MPICC])
])

dnl MU_CHECK_MPI: an MPI program must compile and link; sets mu_mpi_flavor (mpich, openmpi,
dnl abi, other), MPIRUN, mu_has_mpi.
AC_DEFUN([MU_CHECK_MPI], [
AC_CACHE_CHECK([whether $CC builds MPI programs], [mu_cv_mpi],
	[AC_LINK_IFELSE([AC_LANG_PROGRAM([
#include <mpi.h>
#if MPI_VERSION < 3
#error MPI is too old
#endif
], [MPI_Request r; return MPI_Ibarrier(MPI_COMM_WORLD, &r);])], [mu_cv_mpi=yes], [mu_cv_mpi=no])])
AS_IF([test $mu_cv_mpi = no],
	[AC_MSG_ERROR(['$CC' cannot build a program of MPI 3.0 or later; see config.log.
Is its development package there (Debian: libmpich-dev)?
To choose the compiler behind mpicc: CC='env MPICH_CC=clang OMPI_CC=clang mpicc'])])
mu_mpi_flavor=other
MU_HEADER_TEXT([mu_mpi_version], [], [mpi.h], [MPICH_VERSION])
AS_IF([test "x$mu_mpi_version" != x], [mu_mpi_flavor=mpich], [
	MU_HEADER_TEXT([mu_mpi_version], [], [mpi.h], [OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION])
	AS_CASE([$mu_mpi_version], [""|*OMPI*], [mu_mpi_version=], [mu_mpi_flavor=openmpi])])
dnl The ABI of the MPI standard, version 5: a program runs with any library that has it.
AS_IF([test $mu_mpi_flavor = other], [
	MU_HEADER_TEXT([mu_mpi_version], [], [mpi.h], [MPI_ABI_VERSION.MPI_ABI_SUBVERSION])
	AS_CASE([$mu_mpi_version], [*MPI_ABI*], [mu_mpi_version=], [?*], [mu_mpi_flavor=abi])])
mu_mpi_tested="; tests were run with MPICH 4.0.2, 4.2.1 and 5.0.2, with Open MPI 4.1.4 and 5.0.7"
AS_CASE(["$mu_mpi_flavor $mu_mpi_version"], ["mpich 4.0."*|"mpich 4.2."*|"mpich 5.0."*|"openmpi 4.1."*|"openmpi 5.0."*],
	[mu_mpi_tested=])
AS_CASE([$mu_mpi_flavor],
	[mpich], [mu_has_mpi="yes (MPICH $mu_mpi_version or a relative of it$mu_mpi_tested)"],
	[openmpi], [mu_has_mpi="yes (Open MPI $mu_mpi_version$mu_mpi_tested)"],
	[abi], [mu_has_mpi="yes (MPI standard ABI $mu_mpi_version; \
tests were run with MPICH 5.0.2 and Intel MPI 2021.18)"],
	[mu_has_mpi="yes (neither MPICH nor Open MPI$mu_mpi_tested)"])
MU_FIND_MPIRUN
])

dnl The launcher beside the compiler that is used (mpicc.mpich: mpirun.mpich), else the first on
dnl the PATH.
AC_DEFUN([MU_FIND_MPIRUN], [
AS_IF([test "x$MPIRUN" = x], [
	for mu_word in $CC; do
		AS_CASE([$mu_word], [*mpicc*], [
			mu_path=`command -v "$mu_word" 2>/dev/null`
			mu_path=`AS_ECHO(["$mu_path"]) | sed -e 's/_abi$//' -e 's/mpicc\(@<:@^/@:>@*\)$/mpirun\1/'`
			AS_IF([test -x "$mu_path"], [MPIRUN=$mu_path])])
	done])
AS_IF([test "x$MPIRUN" = x], [AC_PATH_PROGS([MPIRUN], [mpirun mpiexec])])
AS_IF([test "x$MPIRUN" = x], [
	MPIRUN=mpirun
	AC_MSG_WARN([no mpirun found: make check will need one])],
	[MU_CHECK_MPIRUN])
])

dnl The launcher of one MPI starts programs of another, each process as a job of its own.
AC_DEFUN([MU_CHECK_MPIRUN], [
AS_CASE([`$MPIRUN --version 2>/dev/null </dev/null | head -n 5`],
	[*"Open MPI"*|*OpenRTE*|*PRRTE*|*prte*], [mu_launcher=openmpi],
	[*HYDRA*|*MPICH*|*"Intel(R) MPI"*], [mu_launcher=mpich],
	[mu_launcher=$mu_mpi_flavor])
AS_IF([test $mu_launcher != $mu_mpi_flavor && test $mu_mpi_flavor != other && test $mu_mpi_flavor != abi],
	[AC_MSG_WARN([the launcher $MPIRUN is of another MPI than $CC, whose programs it would start as
jobs of one process each: configure with MPIRUN=/path/to/mpirun of the same MPI])
	mu_mpirun_other=" (of another MPI than the compiler)"])
])
