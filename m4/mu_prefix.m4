dnl SPDX-License-Identifier: Apache-2.0
dnl MU_ARG_PREFIX(name, text, default) Adds --with-<name>=DIR. Sets mu_<name>_want to yes, no or
dnl auto and mu_<name>_prefix to DIR, which must exist, or to nothing.
AC_DEFUN([MU_ARG_PREFIX], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [$2])], [], [with_$1=$3])
mu_$1_prefix=
AS_CASE([$with_$1],
	[yes|no|auto], [mu_$1_want=$with_$1],
	[""], [AC_MSG_ERROR([--with-$1= needs a folder])],
	[mu_$1_want=yes
	mu_$1_prefix=$with_$1
	AS_IF([test ! -d "$mu_$1_prefix"], [AC_MSG_ERROR([--with-$1=$with_$1: there is no such folder])])])
])

dnl MU_PREFIX_FLAGS(name, VARIABLE) VARIABLE_CPPFLAGS and VARIABLE_LIBS for the prefix of a
dnl package: include folder, library folders and the run path to them. Empty without a prefix, and
dnl for /usr, which the compiler knows.
AC_DEFUN([MU_PREFIX_FLAGS], [
$2_CPPFLAGS=
$2_LIBS=
AS_CASE([$mu_$1_prefix], [""|/usr|/usr/], [], [
	$2_CPPFLAGS="-I$mu_$1_prefix/include"
	for mu_dir in lib64 lib; do
		AS_IF([test -d "$mu_$1_prefix/$mu_dir"],
			[$2_LIBS="$$2_LIBS -L$mu_$1_prefix/$mu_dir -Wl,-rpath,$mu_$1_prefix/$mu_dir"])
	done])
])

dnl MU_PREFIX_HAS(name, header): a prefix that was given holds the header, so that the system's is not
dnl taken in its place.
AC_DEFUN([MU_PREFIX_HAS], [
AS_CASE([$mu_$1_prefix], [""|/usr|/usr/], [],
	[AS_IF([test ! -f "$mu_$1_prefix/include/$2"],
		[AC_MSG_ERROR([--with-$1=$mu_$1_prefix: there is no $mu_$1_prefix/include/$2])])])
])

dnl MU_LINK_WITH(cppflags, libs, headers, body, if yes, if no)
dnl Link a small program with flags that are put back afterwards. mu_loaded: the libraries it loads.
AC_DEFUN([MU_LINK_WITH], [
mu_save_CPPFLAGS=$CPPFLAGS
mu_save_LIBS=$LIBS
CPPFLAGS="$1 $CPPFLAGS"
LIBS="$2 $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([$3], [$4])], [mu_linked=yes
	mu_loaded=`ldd ./conftest$EXEEXT 2>/dev/null`], [mu_linked=no])
CPPFLAGS=$mu_save_CPPFLAGS
LIBS=$mu_save_LIBS
AS_IF([test $mu_linked = yes], [$5], [$6])
])

dnl MU_HEADER_TEXT(variable, cppflags, header, macro) What a macro of a header expands to, quotes
dnl and blanks removed; empty if the header or the macro is not there. The source is a file: Open
dnl MPI's mpicc adds its own flags only where the command names one.
AC_DEFUN([MU_HEADER_TEXT], [
printf '#include <%s>\nmu_value %s\n' "$3" "$4" >conftest.c
$1=`$CC $CPPFLAGS $2 -E -P conftest.c 2>/dev/null |
	sed -n '/^mu_value/,$p' | tr -d ' "\n' | sed 's/^mu_value//'`
rm -f conftest.c
AS_IF([test "x$$1" = "x$4"], [$1=])
])
